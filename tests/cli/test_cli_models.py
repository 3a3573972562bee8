"""fit and predict, as they are typed; the estimators in Python are the truth."""

import gzip
import io
import json
import sys

import numpy as np
import pytest
from sklearn.metrics import r2_score

from commands import QUICK, QUICKLY, error_of, frame, run, write
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load
from tensormachines._data.files import csv
from tensormachines.estimators.polynomial_model import PolynomialModel

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("target", ["rent", "balcony", "district"])
def test_models_are_those_of_the_estimators(here, target):
    table, new = frame("flats.csv"), frame("new.csv")
    y = table[target] if target == "rent" else table[target].astype(str)
    estimator = TensorMachineRegressor if target == "rent" else TensorMachineClassifier
    expected = estimator(**QUICKLY).fit(table.drop(columns=target), y)
    found = load(f"{target}.tm")
    assert found.target_name_ == target
    assert list(found.feature_names_in_) == list(expected.feature_names_in_)
    assert run("predict", f"{target}.tm", "new.csv", "-o", "predicted.csv") == 0
    predicted = pd.read_csv("predicted.csv")
    assert list(predicted.columns) == ["prediction"]
    if target == "rent":
        np.testing.assert_allclose(
            predicted["prediction"], expected.predict(new.drop(columns=target)), rtol=1e-9
        )
    else:
        assert (
            predicted["prediction"].astype(str).tolist()
            == expected.predict(new.drop(columns=target)).tolist()
        )


def test_probabilities(here):
    assert run("predict", "district.tm", "new.csv", "--probabilities", "-o", "p.csv") == 0
    found, model = pd.read_csv("p.csv"), load("district.tm")
    assert list(found.columns) == ["prediction", *(f"probability_{label}" for label in model.classes_)]
    np.testing.assert_allclose(
        found.iloc[:, 1:], model.predict_proba(frame("new.csv", "district")), rtol=1e-9
    )


@pytest.mark.parametrize("rows", [1, 7])
def test_blocks_of_any_size_predict_the_same(here, rows, capsys, monkeypatch):
    run("predict", "rent.tm", "new.csv", "--keep", "id", "heating")
    once = capsys.readouterr().out
    monkeypatch.setattr(csv.CsvFile.blocks, "__defaults__", (rows,))
    run("predict", "rent.tm", "new.csv", "--keep", "id", "heating")
    in_blocks = capsys.readouterr().out
    assert once.splitlines()[0] == "id,heating,prediction"
    one, other = (pd.read_csv(io.StringIO(text)) for text in (once, in_blocks))
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)
    assert one["id"].tolist() == frame("new.csv").index.map(lambda k: f"F1{k:05d}").tolist()


def test_order_of_columns_others_and_standard_input(here, capsys, monkeypatch):
    table = pd.read_csv("new.csv")
    run("predict", "rent.tm", "new.csv")
    expected = capsys.readouterr().out
    text = table[table.columns[::-1]].drop(columns="rent").assign(other="x").to_csv(index=False, sep=";")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(text.encode()))))
    assert run("predict", "rent.tm", "-") == 0
    assert capsys.readouterr().out == expected


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.tsv", "out.parquet", "out.arrow"])
def test_outputs_by_suffix(here, name):
    pa = pytest.importorskip("pyarrow")
    assert (
        run("predict", "district.tm", "new.csv", "--keep", "id", "size", "--probabilities", "-o", name) == 0
    )
    run("predict", "district.tm", "new.csv", "--keep", "id", "size", "--probabilities", "-o", "plain.csv")
    expected = pd.read_csv("plain.csv")
    if name.endswith("parquet"):
        found = pd.read_parquet(name)
    elif name.endswith("arrow"):
        found = pa.ipc.open_file(name).read_pandas()
    else:
        found = pd.read_csv(name, sep="\t" if ".tsv" in name else ",")
    assert list(found.columns) == list(expected.columns)
    np.testing.assert_allclose(found.iloc[:, 3:], expected.iloc[:, 3:], rtol=1e-12)
    assert found["prediction"].tolist() == expected["prediction"].tolist()
    assert found["size"].astype(float).tolist() == expected["size"].tolist()


def test_equal_gzipped_tables_are_equal_files(here):
    for name in ("one.csv.gz", "other.csv.gz"):
        assert run("predict", "rent.tm", "new.csv", "-o", name) == 0
    assert (here / "one.csv.gz").read_bytes() == (here / "other.csv.gz").read_bytes()
    assert gzip.decompress((here / "one.csv.gz").read_bytes()).startswith(b"prediction\n")


def test_the_model_of_a_search_predicts_with_the_threads_asked_for(here, monkeypatch):
    rows = ("flats.csv", "--target", "rent", "--ignore", "id")
    assert run("tune", *rows, "--degrees", "1", "--time-budget", "1", "--n-jobs", "2", "-o", "tuned.tm") == 0
    asked = []
    outputs = PolynomialModel._outputs_in_memory
    monkeypatch.setattr(
        PolynomialModel,
        "_outputs_in_memory",
        lambda self, *rows: asked.append(self.n_jobs) or outputs(self, *rows),
    )
    assert run("predict", "tuned.tm", "new.csv", "-o", "found.csv") == 0
    assert run("predict", "tuned.tm", "new.csv", "--n-jobs", "2", "-o", "found.csv") == 0
    assert asked == [None, 2]


def test_parquet_is_predicted_as_csv_is(here, capsys):
    pytest.importorskip("pyarrow")
    pd.read_csv("new.csv").to_parquet("new.parquet")
    run("predict", "rent.tm", "new.csv")
    expected = capsys.readouterr().out
    assert run("predict", "rent.tm", "new.parquet") == 0
    assert capsys.readouterr().out == expected


def test_quantiles_are_named_by_their_levels(here, capsys):
    table = pd.read_csv("flats.csv")
    settings = {"loss": "quantile", "quantile": (0.1, 0.9), "degree": 1, "max_iter": 2, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(table[["size", "floor"]], table["rent"])
    model.save("levels.tm")
    assert run("predict", "levels.tm", "new.csv", "-o", "found.csv") == 0
    assert list(pd.read_csv("found.csv").columns) == ["prediction_0.1", "prediction_0.9"]
    assert run("explain", "levels.tm", "new.csv", "--output", "0.1") == 0
    assert "--output must be one of 0.1, 0.9, got '1'" in error_of(
        capsys, "explain", "levels.tm", "new.csv", "--output", "1"
    )


def test_several_targets(here, capsys):
    command = [
        "fit",
        "flats.csv",
        "--target",
        "rent",
        "--target",
        "size",
        "--columns",
        "rooms",
        "district",
        *QUICK,
        "-o",
        "two.tm",
    ]
    assert run(*command) == 0
    table, new = pd.read_csv("flats.csv"), pd.read_csv("new.csv")
    expected = TensorMachineRegressor(**QUICKLY).fit(table[["rooms", "district"]], table[["rent", "size"]])
    assert load("two.tm").target_name_ == expected.target_name_ == ["rent", "size"]
    assert run("predict", "two.tm", "new.csv", "-o", "two.csv") == 0
    found = pd.read_csv("two.csv")
    assert list(found.columns) == ["prediction_rent", "prediction_size"]
    np.testing.assert_allclose(found, expected.predict(new[["rooms", "district"]]), rtol=1e-9)
    capsys.readouterr()
    assert run("evaluate", "two.tm", "new.csv", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["rows"] == 100
    assert shown["errors"]["size"]["R2"]["value"] == pytest.approx(
        r2_score(new["size"], found["prediction_size"])
    )
    assert run("explain", "two.tm", "new.csv", "--output", "size") == 0


@pytest.mark.parametrize("name", ["rent", "two"])
def test_report(here, name, capsys):
    """What is in it is tested where it is made; here, that it is the same page."""
    from tensormachines.report import html_report

    targets = ["rent"] if name == "rent" else ["rent", "size"]
    if name == "two":
        options = [option for target in targets for option in ("--target", target)]
        assert (
            run("fit", "flats.csv", *options, "--columns", "rooms", "district", *QUICK, "-o", "two.tm") == 0
        )
    capsys.readouterr()
    assert run("report", f"{name}.tm", "new.csv", "--title", "Flats", "-o", "page.html") == 0
    assert "100 rows of new.csv" in capsys.readouterr().out
    model, new = load(f"{name}.tm"), pd.read_csv("new.csv")
    X, y = new[list(model.feature_names_in_)], new[targets[0] if name == "rent" else targets]
    page = html_report(model, X, y, title="Flats", data_name="new.csv")
    assert (here / "page.html").read_text(encoding="utf-8") == page


def test_svmlight(here, rng, capsys):
    X = np.where(rng.random((60, 4)) < 0.5, 0, rng.random((60, 4)))
    y = (X[:, 0] > X[:, 1]).astype(int)
    lines = [
        f"{label} " + " ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row.tolist()) if x)
        for label, row in zip(y, X, strict=True)
    ]
    (here / "t.svm").write_text("\n".join(lines) + "\n")
    assert run("fit", "t.svm", *QUICK, "-o", "svm.tm") == 0
    capsys.readouterr()
    assert run("predict", "svm.tm", "t.svm", "--probabilities") == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))
    from scipy import sparse

    expected = TensorMachineClassifier(**QUICKLY).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(found.iloc[:, 1:], expected.predict_proba(sparse.csr_matrix(X)), rtol=1e-9)
    assert run("evaluate", "svm.tm", "t.svm") == 0
    assert (
        error_of(capsys, "predict", "svm.tm", "t.svm", "--keep-all")
        == "--keep-all: the columns of t.svm have no names."
    )
    (here / "nan.svm").write_text("1 1:2\nnan 1:3\n")
    assert "nan.svm, data row 2 (counting from 1), y: NaN, where a finite number is needed" in error_of(
        capsys, "fit", "nan.svm", "-o", "a.tm"
    )


def test_levels_that_are_numbers_have_many_spellings(here, capsys):
    table = pd.DataFrame({"code": [1.0, 2.0, 3.5] * 20, "y": [0.0, 5.0, 9.0] * 20})
    model = TensorMachineRegressor(**QUICKLY).fit(table[["code"]].astype("category"), table["y"])
    model.save("code.tm")
    (here / "spelled.csv").write_text("code\n1\n1.0\n2.00\n3.5\n35e-1\n")
    assert run("predict", "code.tm", "spelled.csv") == 0
    found = pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"]
    np.testing.assert_allclose(found, model.predict(table[["code"]].astype("category"))[[0, 0, 1, 2, 2]])


@pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")  # of x
def test_what_looks_missing_may_be_a_level_of_the_fit(here, capsys):
    """pandas leaves white space where it is, in names too, and knows no "?"; "NA" is read as it is if it is
    told so.
    """
    pytest.importorskip("pyarrow")
    text = " kind ,x\n" + "".join(f"{level},{k}\n" for k, level in enumerate(["a", " a", "?", "NA", ""] * 12))
    (here / "levels.csv").write_text(text)
    table = pd.read_csv("levels.csv", na_values=[""], keep_default_na=False)
    model = TensorMachineRegressor(**QUICKLY).fit(table, np.arange(60.0) % 5)
    model.save("levels.tm")
    table.to_parquet("levels.parquet")
    for name in ("levels.csv", "levels.parquet"):
        assert run("predict", "levels.tm", name) == 0
        np.testing.assert_array_equal(
            pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"], model.predict(table)
        )


@pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")  # of x
def test_text_of_parquet_is_taken_as_it_is(here, capsys):
    pytest.importorskip("pyarrow")
    table = pd.DataFrame(
        {"kind": ["a", " a", "?", "NA", "", None] * 10, "x": np.arange(60.0), "y": np.arange(60.0) % 6}
    )
    table.to_parquet("texts.parquet")
    assert run("fit", "texts.parquet", "--target", "y", *QUICK, "-o", "texts.tm") == 0
    assert "5 levels" in capsys.readouterr().err
    expected = TensorMachineRegressor(**QUICKLY).fit(table[["kind", "x"]], table["y"])
    assert run("predict", "texts.tm", "texts.parquet") == 0
    np.testing.assert_allclose(
        pd.read_csv(io.StringIO(capsys.readouterr().out))["prediction"],
        expected.predict(table[["kind", "x"]]),
    )


def test_classes_that_no_row_has_do_not_count(here, capsys):
    pytest.importorskip("pyarrow")
    pd.DataFrame({"x": range(30), "y": pd.Categorical(["a"] * 30, categories=["a", "b"])}).to_feather(
        "classes.feather"
    )
    assert "the target 'y' has the same value in all rows" in error_of(
        capsys, "fit", "classes.feather", "--target", "y", "-o", "a.tm"
    )


@pytest.mark.parametrize(
    ("labels", "spelled"), [(["1.50", "2.5"], ["1.5", "2.500"]), (["true", "false"], ["TRUE", "False"])]
)
def test_labels_in_another_spelling_are_the_same(here, capsys, labels, spelled):
    for name, values in (("labels.csv", labels), ("spelled.csv", spelled)):
        write(name, {"x": np.arange(40) % 7, "y": np.array(values)[np.arange(40) % 7 // 4]})
    assert run("fit", "labels.csv", "--target", "y", *QUICK, "-o", "labels.tm") == 0
    capsys.readouterr()
    printed = [
        (run("evaluate", "labels.tm", name, "--json"), capsys.readouterr().out)
        for name in ("labels.csv", "spelled.csv")
    ]
    assert printed[0] == printed[1]
    assert printed[0][0] == 0
