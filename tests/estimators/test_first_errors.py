"""Mistakes of the first hour: one error or warning each, which names public things and says what to do."""

import inspect
import warnings

import numpy as np
import pytest

import tensormachines
from tensormachines import (
    ColumnWarning,
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    TensorMachineFeatures,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    peers,
)

pd, pl, pyarrow = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))

QUICK = {"degree": 2, "rank": 2, "max_iter": 3, "alpha": 1e-3, "random_state": 0}
CLASSES = [
    *(getattr(tensormachines, name) for name in tensormachines.__all__ if name.startswith("TensorMachine")),
    *(getattr(peers, name) for name in peers.__all__),
]
random = np.random.default_rng(0)
X = random.standard_normal((80, 3))
NAMED = pd.DataFrame(X, columns=list("abc"))
Y = X[:, 0] + X[:, 1] * X[:, 2]
LABELS = np.where(Y > 0, "up", "down").astype(object)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_wrong_parameter_is_an_error_of_the_public_class(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__}\.__init__\(\) got .* 'depth'"):
        cls(depth=3)


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_constructors_set_all_parameters(cls):
    assert cls().get_params() == {
        name: parameter.default for name, parameter in inspect.signature(cls).parameters.items()
    }


def with_a_gap(values, gap, dtype=object):
    values = np.array(values, dtype=object)
    values[6] = gap
    return pd.Series(values, dtype=dtype)


@pytest.mark.parametrize(
    "y",
    [
        with_a_gap(LABELS, pd.NA, "string"),
        with_a_gap(LABELS, None),
        with_a_gap(LABELS, np.nan),
        with_a_gap(LABELS, None).astype("category"),
        with_a_gap(Y > 0, pd.NA, "boolean"),
        with_a_gap((Y > 0).astype(int), pd.NA, "Int64"),
        with_a_gap(LABELS, None).to_numpy(),
        with_a_gap(LABELS, None).tolist(),
        pl.Series(with_a_gap(LABELS, None).tolist()),
        pyarrow.array(with_a_gap(LABELS, None).tolist()),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__} {getattr(y, 'dtype', '')}",
)
@pytest.mark.parametrize(
    "model",
    [
        TensorMachineClassifier(**QUICK),
        TensorMachineFeatures(**QUICK),
        TensorMachineClassifierCV(degrees=(1,), ranks=(1,)),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_missing_label_is_refused_with_its_row(model, y):
    with pytest.raises(ValueError, match=r"^y has a missing value in row 7 .*leave such rows out"):
        model.fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        with_a_gap(Y, pd.NA, "Float64"),
        with_a_gap(Y, None),
        with_a_gap(Y, np.nan).to_numpy(float),
        pd.DataFrame({"y": with_a_gap(Y, None), "z": Y}),
    ],
)
def test_a_missing_number_to_predict_is_refused_with_its_row(y):
    for model in (TensorMachineRegressor(**QUICK), TensorMachineRegressorCV(degrees=(1,), ranks=(1,))):
        with pytest.raises(ValueError, match=r"^y has a missing value in row 7 "):
            model.fit(X, y)
    with pytest.raises(ValueError, match=r"^y has 2 missing values, the first in row 3 "):
        TensorMachineRegressor().fit(X[:4], [1.0, 2.0, None, None])


def test_a_lazy_frame_has_to_be_collected():
    lazy, model = pl.from_pandas(NAMED).lazy(), TensorMachineRegressor(**QUICK)
    with pytest.raises(ValueError, match=r"X is a LazyFrame .*X\.collect\(\)"):
        model.fit(lazy, Y)
    with pytest.raises(ValueError, match=r"y is a LazyFrame .*y\.collect\(\)"):
        model.fit(NAMED, pl.LazyFrame({"y": Y}))
    with pytest.raises(ValueError, match=r"X is a LazyFrame"):
        TensorMachineRegressorCV(degrees=(1,), ranks=(1,)).fit(lazy, Y)
    model.fit(lazy.collect(), Y)
    with pytest.raises(ValueError, match=r"X is a LazyFrame"):
        model.predict(lazy)


@pytest.mark.parametrize("basis", ["auto", "standard"])
def test_two_columns_of_one_name_are_refused(basis):
    twice = pd.DataFrame(X, columns=["a", "b", "a"])
    model = TensorMachineRegressor(**QUICK, basis=basis)
    for table in (twice, pyarrow.table(list(X.T), names=["a", "b", "a"])):
        with pytest.raises(ValueError, match=r"X: .*more than one column named 'a'; give each its own name"):
            model.fit(table, Y)
    with pytest.raises(ValueError, match="more than one column named 0"):
        model.fit(pd.concat([pd.DataFrame(X), pd.DataFrame(X)], axis=1), Y)
    with pytest.raises(ValueError, match="more than one column named 'a'"):
        model.fit(NAMED, Y).predict(twice)


@pytest.mark.parametrize("basis", ["standard", None])
@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, pl.DataFrame])
def test_only_the_default_basis_takes_dates_and_durations(basis, form):
    dates = np.datetime64("2026-01-01", "ms") + (100 * X).astype("timedelta64[D]")
    model = TensorMachineRegressor(**QUICK, basis=basis)
    with pytest.raises(ValueError, match=r'needs numbers: column .* holds dates\. Use basis="auto"'):
        model.fit(form(dates), Y)
    with pytest.raises(ValueError, match=r"needs numbers: column .* holds durations\."):
        model.fit(form(dates - dates[0]), Y)
    for other in (basis, "auto"):
        fitted = TensorMachineRegressor(**QUICK, basis=other).fit(form(X), Y)
        with pytest.raises(ValueError, match=r"needs numbers: column .* holds dates\."):
            fitted.predict(form(dates))


# ---- columns that may not mean what they are taken for

STRANGE = NAMED.assign(
    customer_id=np.arange(1000, 1080),
    zip_code=random.choice([10115, 20095, 80331, 50667], 80),
    surname=[f"name {k}" for k in range(80)],
    district=random.choice(["north", "south"], 80),
    rooms=random.integers(1, 6, 80),
)


def noticed(model, table, target=Y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(table, target)
    return [each for each in caught if each.category is ColumnWarning]


@pytest.mark.parametrize("frame", [lambda table: table, pl.from_pandas], ids=["pandas", "polars"])
@pytest.mark.parametrize(
    ("model", "target"),
    [
        (TensorMachineRegressor(**QUICK), Y),
        (TensorMachineClassifier(**QUICK), LABELS),
        (TensorMachineRegressorCV(degrees=(1, 2), ranks=(1,), alphas=(1e-3,), max_iters=(3,), cv=2), Y),
        (TensorMachineClassifierCV(degrees=(1, 2), ranks=(1,), alphas=(1e-3,), max_iters=(3,), cv=2), LABELS),
    ],
    ids=lambda each: type(each).__name__,
)
def test_one_warning_lists_the_strange_columns(model, target, frame):
    (found,) = noticed(model, frame(STRANGE), target)
    lines = str(found.message).splitlines()[1:-1]
    assert [line.partition(":")[0] for line in lines] == [
        "- column 'customer_id'",
        "- column 'zip_code'",
        "- column 'surname'",
    ]
    assert "different whole number in every row" in lines[0]
    assert "look like codes" in lines[1]
    assert "no level with enough rows" in lines[2]
    assert found.filename == __file__  # it points to the call of fit


def test_the_warning_can_be_silenced_and_is_gone_once_the_columns_are_right():
    model = TensorMachineRegressor(**QUICK)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ColumnWarning)
        warnings.filterwarnings("ignore", category=ColumnWarning)
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        model.fit(STRANGE, Y)
    right = STRANGE.drop(columns=["customer_id", "surname"]).astype({"zip_code": "category"})
    assert not noticed(model, right)


def test_arrays_and_files_are_looked_at_as_well(tmp_path):
    rows = np.column_stack([X, random.permutation(80)])
    (found,) = noticed(TensorMachineRegressor(**QUICK), rows)
    assert "- column 4 of X: a different whole number" in str(found.message)
    assert not noticed(
        TensorMachineRegressor(**QUICK), np.arange(80.0)[:, None]
    )  # all there is to learn from
    STRANGE.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    (found,) = noticed(TensorMachineRegressor(**QUICK), blocks.csv(tmp_path / "t.csv", target="y"), None)
    assert "column 'surname': no level" in str(found.message)
