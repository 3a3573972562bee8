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


@pytest.mark.parametrize("cls", CLASSES[:5], ids=lambda cls: cls.__name__)
def test_a_wrong_argument_of_fit_is_an_error_of_the_public_class(cls):
    with pytest.raises(TypeError, match=rf"^{cls.__name__}\.fit\(\) got .* 'depth'"):
        cls().fit(X, LABELS, depth=3)


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
    with pytest.raises(ValueError, match=r"^y has a missing value in row 6 .*leave such rows out"):
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
        with pytest.raises(ValueError, match=r"^y has a missing value in row 6 "):
            model.fit(X, y)
    with pytest.raises(ValueError, match=r"^y has 2 missing values, the first in row 2 "):
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


REGRESSORS = [TensorMachineRegressor(**QUICK), TensorMachineRegressorCV(degrees=(1,), ranks=(1,), verbose=0)]


@pytest.mark.parametrize(
    "y",
    [
        LABELS,
        LABELS.astype(str),
        LABELS.tolist(),
        pd.Series(LABELS),
        pd.Series(LABELS).astype("category"),
        pd.Series(LABELS, dtype="string"),
        pl.Series(LABELS.tolist()),
        pyarrow.array(LABELS.tolist()),
        pd.DataFrame({"numbers": Y, "labels": LABELS}),
        np.array([*Y[:-1], LABELS[0]], dtype=object),
    ],
    ids=lambda y: f"{type(y).__module__}.{type(y).__name__} {getattr(y, 'dtype', '')}",
)
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_text_to_predict_is_for_classifiers(model, y):
    name = type(model).__name__
    message = f"^y holds text such as '{LABELS[0]}', and {name} predicts numbers: TensorMachineClassifier "
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (pd.Series(pd.date_range("2024-01-01", periods=len(Y))), "dates.*give numbers of days"),
        (np.arange(len(Y)).astype("timedelta64[s]"), "durations.*give numbers of seconds"),
    ],
    ids=["dates", "durations"],
)
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_dates_to_predict_are_numbers_of_days(model, y, message):
    with pytest.raises(ValueError, match=f"^y holds {message} as y"):
        model.fit(X, y)


def test_text_that_spells_numbers_is_predicted_as_numbers():
    model = TensorMachineRegressor(**QUICK)
    expected = model.fit(X, Y).predict(X)
    for spelled in (Y.astype(str), pd.Series(map(repr, Y.tolist()))):
        np.testing.assert_array_equal(model.fit(X, spelled).predict(X), expected)


MIXED = NAMED.assign(d="category")
FORMS = {
    "array": np.asarray,
    "objects": lambda frame: np.asarray(frame).astype(object),
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pyarrow.Table.from_pandas(frame, preserve_index=False),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("frame", [NAMED, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_nothing_to_learn_from_is_refused(model, frame, form):
    with pytest.raises(ValueError, match=r"^X has no rows: .* Check how they were selected\.$"):
        model.fit(FORMS[form](frame[:0]), Y[:0])
    with pytest.raises(ValueError, match=r"^X has (no rows and )?no columns: "):  # polars counts no rows then
        model.fit(FORMS[form](frame[[]]), Y)
    if not model.get_params().get("degrees"):
        fitted = model.fit(FORMS[form](frame), Y)
        with pytest.raises(ValueError, match=r"^X has no rows: "):
            fitted.predict(FORMS[form](frame[:0]))
    with pytest.raises(ValueError, match=r"^y is empty: give a target for each row of X\.$"):
        model.fit(FORMS[form](frame), [])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("frame", [NAMED, MIXED], ids=["numbers", "mixed"])
@pytest.mark.parametrize("model", REGRESSORS, ids=lambda model: type(model).__name__)
def test_infinite_numbers_are_refused_with_their_place(model, frame, form):
    wrong = frame.copy()
    wrong.loc[[6, 9], "b"] = np.inf
    wrong = FORMS[form](wrong)
    label = "column 1 of X" if isinstance(wrong, np.ndarray) else "column 'b'"
    message = rf"^{label} has infinity.* in row 6 \(counting from 0\): make .* finite, or missing"
    with pytest.raises(ValueError, match=message):
        model.fit(wrong, Y)
    if not model.get_params().get("degrees"):
        fitted = model.fit(FORMS[form](frame), Y)
        for fitted_to in (fitted, model.fit(X, Y)) if form == "objects" and frame is NAMED else (fitted,):
            with pytest.raises(ValueError, match=message):
                fitted_to.predict(wrong)


def test_periods_have_to_be_converted():
    when = pd.period_range("2020-01", periods=80, freq="M")
    model = TensorMachineRegressor(**QUICK)
    for table in (NAMED.assign(when=when), NAMED.assign(when=when.astype(object))):
        with pytest.raises(
            TypeError, match=r"column 'when' is of type Period.*to_timestamp\(\).*astype\(str\)"
        ):
            model.fit(table, Y)
    for wrong in (when, pd.Series(when)):
        with pytest.raises(ValueError, match=r"X is a .* of type period\[M\], and periods are not numbers"):
            model.fit(wrong, Y)
    series = pd.Series(when)  # what the messages advise
    years = pd.Series(when.asfreq("Y")).astype(str)
    model.fit(pd.DataFrame({"year": when.year, "month": series.dt.month, "name": years}), Y)


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
    assert "- column 3 of X: a different whole number" in str(found.message)
    assert not noticed(
        TensorMachineRegressor(**QUICK), np.arange(80.0)[:, None]
    )  # all there is to learn from
    STRANGE.assign(y=Y).to_csv(tmp_path / "t.csv", index=False)
    (found,) = noticed(TensorMachineRegressor(**QUICK), blocks.csv(tmp_path / "t.csv", target="y"), None)
    assert "column 'surname': no level" in str(found.message)


TEXT = pd.DataFrame(
    {
        "number": random.standard_normal(400).astype(str),
        "mistake": [*random.standard_normal(399), "?"],
        "date": [
            str(np.datetime64("2024-01-01") + np.timedelta64(int(k), "D"))
            for k in random.integers(0, 300, 400)
        ],
        "group": random.choice(["1", "2", "3"], 400),
        "zip": [f"{k:05}" for k in random.integers(1000, 99999, 400)],
        "meant": pd.Categorical(random.standard_normal(400).round(1).astype(str)),
    }
)
OF_TEXT = random.standard_normal(400)


@pytest.mark.parametrize(
    "frame",
    [
        lambda table: table,
        lambda table: pl.from_pandas(table.assign(mistake=table.mistake.astype(str))),
        lambda table: pyarrow.Table.from_pandas(table.assign(mistake=table.mistake.astype(str))),
        lambda table: table.to_dict("records"),
    ],
    ids=["pandas", "polars", "pyarrow", "dicts"],
)
@pytest.mark.parametrize("cv", [False, True])
def test_text_that_looks_like_numbers_or_dates_is_noticed(frame, cv):
    model = TensorMachineRegressor(**QUICK)
    if cv:
        model = TensorMachineRegressorCV(degrees=(1, 2), ranks=(1,), alphas=(1e-3,), max_iters=(3,), cv=2)
    table = TEXT.drop(columns="meant") if frame(TEXT[:1]).__class__ is list else TEXT
    (found,) = noticed(model, frame(table), OF_TEXT)
    assert str(found.message).splitlines()[1:-1] == [
        "- column 'number': text that looks like numbers, taken as a category "
        '(pd.to_numeric(..., errors="coerce") makes it numbers)',
        "- column 'mistake': text that looks like numbers, except for '?', taken as a category "
        '(pd.to_numeric(..., errors="coerce") makes it numbers)',
        "- column 'date': text that looks like dates, taken as a category "
        "(pd.to_datetime(...) makes it dates)",
    ]
    converted = table.assign(  # what the message advises
        number=pd.to_numeric(table.number, errors="coerce"),
        mistake=pd.to_numeric(table.mistake, errors="coerce"),
        date=pd.to_datetime(table.date),
    )
    assert not noticed(model, converted, OF_TEXT)
    declared = TensorMachineRegressor(**QUICK, categorical_features=["number", "mistake", "date"])
    assert "looks like" not in "".join(str(each.message) for each in noticed(declared, table, OF_TEXT))


def test_arrays_of_text_are_noticed_alike():
    (found,) = noticed(TensorMachineRegressor(**QUICK), TEXT[["number"]].to_numpy().astype(str), OF_TEXT)
    assert "- column 0 of X: text that looks like numbers" in str(found.message)


def test_categories_of_files_are_what_their_source_says(tmp_path):
    TEXT[["number"]].assign(y=OF_TEXT).to_csv(tmp_path / "t.csv", index=False)
    source = blocks.csv(tmp_path / "t.csv", target="y", category=["number"])
    search = TensorMachineRegressorCV(degrees=(1, 2), ranks=(1,), alphas=(1e-3,), max_iters=(3,), cv=2)
    for model in (TensorMachineRegressor(**QUICK), search):
        assert "looks like" not in "".join(str(each.message) for each in noticed(model, source, None))
