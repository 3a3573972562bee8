"""The exported C files, compiled together with all warnings as errors, are the models."""

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

from exported_models import (
    AFFINE,
    HOSTILE,
    LEVELS,
    LINK_TASKS,
    NAMED_TASKS,
    TASKS,
    assert_close,
    factorization_model,
    labelled_model,
    model_with_empty_terms,
    named_model,
    number_rows,
    numbers_model,
    strange_table,
    table_model,
)
from tensormachines import TensorMachineRegressor
from tensormachines.export import to_c

N_ROWS = 10_000
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")

DRIVER = """
void NAME_all(int n, const double *numbers, const char *const *categories, double *out, int *label);
void NAME_all(int n, const double *numbers, const char *const *categories, double *out, int *label)
{
    int i;
    (void) label;
    for (i = 0; i < n; i++) {
        const double *number = numbers + i * NAME_N_NUMBERS;
        const char *const *category = categories ? categories + i * NAME_N_CATEGORIES : NULL;
        CALL
    }
}
"""
REGRESSOR = "NAME_predict(number, category, out + i * NAME_N_OUTPUTS);"
CLASSIFIER = """label[i] = NAME_predict(number, category);
        NAME_predict_proba(number, category, out + i * NAME_N_CLASSES);"""

LABELS = """NAME_predict(number, category, label + i * NAME_N_OUTPUTS);
        NAME_predict_proba(number, category, out + i * NAME_N_OUTPUTS);"""


def with_driver(model, name):
    classifier = LABELS if model._link() == "sigmoid" else CLASSIFIER
    driver = DRIVER.replace("CALL", classifier if hasattr(model, "classes_") else REGRESSOR)
    return to_c(model, name) + driver.replace("NAME", name)


def compiled(source, folder):
    (folder / "model.c").write_text(source, encoding="ascii")
    library = folder / "model.so"
    subprocess.run(["gcc", *STRICT, "-shared", "-fPIC", folder / "model.c", "-o", library, "-lm"], check=True)
    return ctypes.CDLL(str(library))


def run(library, name, model, numbers, categories=None):
    """Predictions, or probabilities and the numbers of classes, or all labels."""
    n_rows = len(numbers)
    out = np.full(
        (n_rows, len(model.classes_) if hasattr(model, "classes_") else np.size(model.intercept_)), -7.0
    )
    label = np.full(out.shape if model._link() == "sigmoid" else n_rows, -7, dtype=np.int32)
    numbers = np.ascontiguousarray(numbers, dtype=np.float64)
    if categories is not None:
        texts = [None if text is None else text.encode() for text in np.ravel(categories).tolist()]
        categories = (ctypes.c_char_p * len(texts))(*texts)
    pointers = [
        numbers.ctypes.data_as(ctypes.c_void_p),
        categories,
        out.ctypes.data_as(ctypes.c_void_p),
        label.ctypes.data_as(ctypes.c_void_p),
    ]
    getattr(library, f"{name}_all")(n_rows, *pointers)
    return out, label


def assert_is_the_model(library, name, model, rows, numbers, categories=None):
    out, label = run(library, name, model, numbers, categories)
    if hasattr(model, "classes_"):
        np.testing.assert_allclose(out, model.predict_proba(rows), rtol=1e-8, atol=1e-8)
        found = label if label.ndim == 2 else model.classes_[label]
        np.testing.assert_array_equal(found, model.predict(rows))
    else:
        assert_close(out, model.predict(rows))


@needs_gcc
@pytest.mark.parametrize("task", TASKS)
def test_all_bases(task, tmp_path):
    """In one file, so that the names of the models are seen not to collide."""
    of_numbers = {f"{basis}_model": numbers_model(task, basis) for basis in [*AFFINE, "spline"]}
    factorization, of_table = factorization_model(task), table_model(task)
    models = {**of_numbers, "factorization": factorization, "of_table": of_table}
    library = compiled("".join(with_driver(model, name) for name, model in models.items()), tmp_path)
    rows = number_rows(N_ROWS)
    for name, model in of_numbers.items():
        assert_is_the_model(library, name, model, rows, rows)
    near = number_rows(1000, reach=10)
    assert_is_the_model(library, "factorization", factorization, near, near)
    frame = strange_table(N_ROWS)
    kinds = [frame.dtypes.iloc[j].kind == "f" for j in range(frame.shape[1])]
    texts = frame.loc[:, np.logical_not(kinds)].to_numpy(dtype=object)
    texts[frame.loc[:, np.logical_not(kinds)].isna().to_numpy()] = None
    assert_is_the_model(library, "of_table", of_table, frame, frame.loc[:, kinds].to_numpy(), texts)


@needs_gcc
def test_other_links(tmp_path):
    models = {task: numbers_model(task, "standard") for task in LINK_TASKS}
    library = compiled("".join(with_driver(model, name) for name, model in models.items()), tmp_path)
    rows = number_rows(500)
    for name, model in models.items():
        assert_is_the_model(library, name, model, rows, rows)
    found = (ctypes.c_double * len(LEVELS)).in_dll(library, "quantiles_quantiles")
    assert list(found) == LEVELS


@needs_gcc
def test_names_of_targets(tmp_path):
    """The file lists them at its top, in a comment that they do not end."""
    models = {task: named_model(task)[0] for task in NAMED_TASKS}
    source = "".join(with_driver(model, name) for name, model in models.items())
    library, X = compiled(source, tmp_path), named_model("several")[1]
    for name, model in models.items():
        assert_is_the_model(library, name, model, X, X)
        head = to_c(model).partition("*/\n")[0]
        listed = head.partition("   labels:\n" if name == "labels" else "   predictions:\n")[2].splitlines()
        places = [json.loads(line.split(maxsplit=1)[1]) for line in listed]
        assert places == HOSTILE[:3]


@needs_gcc
def test_missing_numbers_that_must_not_be(tmp_path):
    models = {task: numbers_model(task, "sphere") for task in [*TASKS, "labels", "quantiles"]}
    library = compiled("".join(with_driver(model, name) for name, model in models.items()), tmp_path)
    for name, model in models.items():
        out, label = run(library, name, model, [[0.0, np.nan, 0.0, 0.0]])
        assert np.isnan(out).all()
        assert (label == (-1 if hasattr(model, "classes_") else -7)).all()


@needs_gcc
def test_labels_keep_their_type(tmp_path):
    cases = {
        "integers": (np.array([-(2**63), 2**63 - 1]), ctypes.c_longlong),
        "large": (np.array([3, 2**64 - 1], np.uint64), ctypes.c_ulonglong),
        "floats": (np.array([-1.0, 1e15]), ctypes.c_double),
        "flags": (np.array([False, True]), ctypes.c_int),
        "texts": (np.array(['a"\\\n?', "ü\x01" + "7"]), ctypes.c_char_p),
    }
    models = {name: labelled_model(labels)[0] for name, (labels, _) in cases.items()}
    library = compiled("".join(with_driver(model, name) for name, model in models.items()), tmp_path)
    for name, (labels, kind) in cases.items():
        found = list((kind * 2).in_dll(library, f"{name}_classes"))
        assert [label.decode() if isinstance(label, bytes) else label for label in found] == labels.tolist()


@needs_gcc
def test_empty_terms_are_left_out(tmp_path):
    model, rows = model_with_empty_terms(), number_rows(1000)
    source = with_driver(model, "model")
    assert "#define model_N_FORMS 25\n" in source  # four, and three for each of seven terms
    assert_is_the_model(compiled(source, tmp_path), "model", model, rows, rows)


def test_linear_models_have_no_products(rng, tmp_path):
    X = rng.standard_normal((40, 2))
    linear = TensorMachineRegressor(degree=1, basis="standard", random_state=0).fit(X, X[:, 0])
    source = to_c(linear)
    assert "product" not in source
    assert source == to_c(linear)
    if shutil.which("gcc"):
        assert_is_the_model(compiled(with_driver(linear, "model"), tmp_path), "model", linear, X, X)


def test_refusals():
    model = numbers_model("single", None)
    for name in ("", "1st", "a-b", "a;", "ä"):
        with pytest.raises(ValueError, match="name must be letters"):
            to_c(model, name)
    for label, reason in (("\ud800", "UTF-8"), ("a\0", "zero"), ("a" * 5000, "longer than 4095")):
        model, _ = labelled_model(["b", "c"])
        model.classes_ = np.array([label, "c"], dtype=object)
        with pytest.raises(NotImplementedError, match=reason):
            to_c(model)
