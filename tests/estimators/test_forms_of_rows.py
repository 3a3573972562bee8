"""Forms in which rows come that are neither plain arrays nor frames of pandas or polars."""

from pathlib import Path

import numpy as np
import pytest

from tensormachines import TensorMachineClassifier, TensorMachineRegressor, TensorMachineRegressorCV, blocks
from tensormachines.inspection import effect, explain_row, importance
from tensormachines.report import html_report

pd = pytest.importorskip("pandas")
pa = pytest.importorskip("pyarrow")

random = np.random.default_rng(0)
FRAME = pd.DataFrame(random.standard_normal((200, 3)), columns=["u", "v", "w"]).assign(
    e=random.random(200) < 0.5, c=random.choice(["a", "b", "c"], 200)
)
Y = (FRAME.u + 2 * FRAME.e + (FRAME.c == "a")).to_numpy()
NUMBERS = FRAME[["u", "v", "w"]]
QUICK = {"degree": 2, "rank": 2, "max_iter": 20, "alpha": 1e-3, "random_state": 0}


def model(**settings):
    return TensorMachineRegressor(**QUICK | settings)


# ---- other frames


def pa_table(frame):
    return pa.Table.from_pandas(frame, preserve_index=False)


def batch(frame):
    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


def narwhals_of(convert):
    def form(frame):
        return pytest.importorskip("narwhals").from_native(convert(frame))

    return form


def stable_narwhals(frame):
    return pytest.importorskip("narwhals.stable.v1").from_native(frame)


def polars(frame):
    return pytest.importorskip("polars").from_pandas(frame)


OTHER_FRAMES = {
    "record batch": batch,
    "narwhals of pandas": narwhals_of(lambda frame: frame),
    "narwhals of polars": narwhals_of(polars),
    "narwhals of pyarrow": narwhals_of(pa_table),
    "stable narwhals": stable_narwhals,
}


@pytest.mark.parametrize("form", OTHER_FRAMES.values(), ids=OTHER_FRAMES)
@pytest.mark.parametrize(("basis", "frame"), [("auto", FRAME), ("auto", NUMBERS), ("standard", NUMBERS)])
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_other_frames_have_the_names_of_their_columns(form, basis, frame):
    expected = model(basis=basis).fit(frame, Y)
    fitted = model(basis=basis).fit(form(frame), Y, X_val=form(frame), y_val=Y)
    assert fitted.feature_names_in_.tolist() == list(frame.columns)
    for rows in (frame, frame[:1]):
        np.testing.assert_array_equal(fitted.predict(form(rows)), expected.predict(rows))
    assert fitted.score(form(frame), Y) == expected.score(frame, Y)
    with pytest.raises(ValueError, match=r"(?i)feature names|named as in the fit"):
        expected.predict(form(frame[frame.columns[::-1]]))


@pytest.mark.parametrize("form", OTHER_FRAMES.values(), ids=OTHER_FRAMES)
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_other_frames_are_inspected_and_reported(form):
    fitted = model(intervals=True).fit(form(FRAME), Y)
    expected = model(intervals=True).fit(FRAME, Y)
    np.testing.assert_array_equal(fitted.predict_interval(form(FRAME)), expected.predict_interval(FRAME))
    assert importance(fitted, form(FRAME)) == importance(expected, FRAME)
    assert effect(fitted, "e", form(FRAME)).tolist() == effect(expected, "e", FRAME).tolist()
    assert explain_row(fitted, form(FRAME[:1])) == explain_row(expected, FRAME[:1])
    pages = [
        html_report(expected, kind(FRAME), Y, X_train=kind(FRAME), y_train=Y) for kind in (form, pa_table)
    ]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("form", OTHER_FRAMES.values(), ids=OTHER_FRAMES)
@pytest.mark.parametrize(("bases", "frame"), [(("auto",), FRAME), (("standard",), NUMBERS)])
def test_other_frames_are_searched(form, bases, frame):
    search = TensorMachineRegressorCV(
        degrees=(1, 2), ranks=(1,), alphas=(1e-3,), max_iters=(5,), bases=bases, cv=2, random_state=0
    )
    expected = search.fit(frame, Y).predict(frame)
    assert search.fit(form(frame), Y).feature_names_in_.tolist() == list(frame.columns)
    np.testing.assert_array_equal(search.predict(form(frame)), expected)


@pytest.mark.parametrize("form", OTHER_FRAMES.values(), ids=OTHER_FRAMES)
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_blocks_may_be_other_frames(form):
    source = blocks.iterable([(form(FRAME[:100]), Y[:100]), (form(FRAME[100:]), Y[100:])])
    fitted = model().fit(source)
    assert fitted.feature_names_in_.tolist() == list(FRAME.columns)
    np.testing.assert_array_equal(fitted.predict(form(FRAME)), fitted.predict(source))


def test_a_lazy_frame_of_narwhals_has_to_be_collected():
    lazy = stable_narwhals(polars(FRAME).lazy())
    with pytest.raises(ValueError, match=r"X is a LazyFrame of narwhals.*X\.collect\(\)"):
        model().fit(lazy, Y)


# ---- masked arrays

MASK = random.random((200, 3)) < 0.2
A = np.where(MASK, 1000.0, NUMBERS.to_numpy())
GAPS = np.where(MASK, np.nan, A)
MASKED_FORMS = {
    "floats": (A, GAPS),
    "float32": (A.astype(np.float32), GAPS.astype(np.float32)),
    "integers": (A.round().astype(int), GAPS.round()),
    "booleans": (A > 0, np.where(MASK, None, A > 0)),
    "texts": (A.round().astype(str), np.where(MASK, None, A.round().astype(str).astype(object))),
    "objects": (A.astype(object), np.where(MASK, None, A.astype(object))),
    "dates": (
        np.datetime64("2024-01-01") + A.round().astype("timedelta64[D]"),
        np.where(
            MASK, np.datetime64("NaT", "D"), np.datetime64("2024-01-01") + A.round().astype("timedelta64[D]")
        ),
    ),
}


@pytest.mark.parametrize(("values", "expected"), MASKED_FORMS.values(), ids=MASKED_FORMS)
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter", "ignore::tensormachines.ColumnWarning")
def test_masked_entries_are_missing_values(values, expected):
    masked = np.ma.masked_array(values, mask=MASK)
    same = model().fit(expected, Y)
    fitted = model().fit(masked, Y, X_val=masked, y_val=Y)
    np.testing.assert_array_equal(fitted.predict(masked), same.predict(expected))
    np.testing.assert_array_equal(fitted.predict(masked[:1]), same.predict(expected[:1]))
    assert importance(fitted, masked) == importance(same, expected)
    assert values[MASK].tolist() == masked.data[MASK].tolist()  # X of the user is unchanged


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_a_mask_that_hides_nothing_changes_nothing():
    shown = np.ma.masked_array(A, mask=np.zeros_like(MASK))
    for basis in ("auto", "standard"):
        fitted = model(basis=basis).fit(shown, np.ma.masked_array(Y))
        np.testing.assert_array_equal(fitted.predict(shown), model(basis=basis).fit(A, Y).predict(A))


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_masked_entries_are_refused_where_values_may_not_be_missing():
    masked, message = np.ma.masked_array(A, mask=MASK), r"needs numbers: X has masked entries, .*\"auto\""
    with pytest.raises(ValueError, match=message):
        model(basis="standard").fit(masked, Y)
    fitted = model(basis="standard").fit(A, Y)
    with pytest.raises(ValueError, match=message):
        fitted.predict(masked)
    with pytest.raises(ValueError, match=message):
        TensorMachineRegressorCV(degrees=(1,), ranks=(1,), bases=("standard",)).fit(masked, Y)


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_masked_targets_and_weights_are_refused():
    masked = np.ma.masked_array(Y, mask=np.isin(np.arange(200), (6, 9)))
    weight = np.ma.masked_array(np.ones(200), mask=np.arange(200) == 7)
    both = np.ma.masked_array(np.column_stack([Y, Y]), mask=np.column_stack([masked.mask, masked.mask]))
    exposed = {"exposure": np.ones(200)}
    fitted, message = model().fit(A, Y), r"^y has 2 rows with masked entries, the first in row 6 .*leave such"
    for y in (masked, both):
        with pytest.raises(ValueError, match=message):
            model().fit(A, y)
    with pytest.raises(ValueError, match=message):
        model(loss="poisson").fit(A, masked**2, **exposed)
    with pytest.raises(ValueError, match=message):
        TensorMachineClassifier(**QUICK).fit(A, masked > 0)
    with pytest.raises(ValueError, match=message):
        fitted.score(A, masked)
    with pytest.raises(ValueError, match=message):
        html_report(fitted, A, masked)
    with pytest.raises(ValueError, match="sample_weight has a masked entry in row 7 "):
        model().fit(A, Y, sample_weight=weight)
    with pytest.raises(ValueError, match="item 1: y has 2 rows"):
        model().fit(blocks.iterable([(A, masked)]))
    with pytest.raises(ValueError, match="has 2 rows with masked entries"):
        model().fit(blocks.npy(A, masked))


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_masked_entries_of_blocks_are_missing_values():
    masked = np.ma.masked_array(A, mask=MASK)
    expected = model().fit(blocks.iterable([(GAPS, Y)])).predict(GAPS)
    np.testing.assert_array_equal(model().fit(blocks.iterable([(masked, Y)])).predict(masked), expected)


# ---- arrays of text

TEXT_TYPES = ["U", *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else [])]


@pytest.mark.parametrize("dtype", TEXT_TYPES, ids=str)
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_arrays_of_text_hold_categories(dtype):
    z = random.choice(["01", "1", "001"], 1000)[:, None]
    y = 1.0 * (z[:, 0] == "01")
    expected = model().fit(pd.DataFrame(z), y)
    fitted = model().fit(z.astype(dtype), y)
    assert fitted.score(z.astype(dtype), y) > 0.99
    for rows in (z, z[:1]):
        np.testing.assert_array_equal(
            fitted.predict(rows.astype(dtype)), expected.predict(pd.DataFrame(rows))
        )
        np.testing.assert_array_equal(fitted.predict(rows.astype(object)), fitted.predict(rows.astype(dtype)))


@pytest.mark.parametrize("dtype", TEXT_TYPES, ids=str)
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_arrays_of_text_are_refused_where_numbers_are_needed(dtype):
    text, message = (
        A.astype(str).astype(dtype),
        r"needs numbers: column 0 of X holds strings\. Use basis=\"auto\"",
    )
    for basis in ("standard", None):
        with pytest.raises(ValueError, match=message):
            model(basis=basis).fit(text, Y)
        fitted = model(basis=basis).fit(A, Y)
        with pytest.raises(ValueError, match=message):
            fitted.predict(text)


# ---- what holds no rows


def pairs():
    yield A, Y


NO_ROWS = {
    "generator": (pairs, r"got a generator, which can be read only once.*blocks\.iterable\(function\)"),
    "iterator": (lambda: iter(A.tolist()), r"got a list_iterator, which can be read .*list\(X\)"),
    "str": (lambda: "rows.csv", r"got the str 'rows\.csv'.*blocks\.csv\(X\)"),
    "path": (lambda: Path("rows.parquet"), r"got the \w+Path 'rows\.parquet'.*blocks\.parquet\(X\)"),
    "dict": (lambda: {"a": [1, 2], "b": [3, 4]}, r"got a dict.*pandas\.DataFrame\(X\)"),
}


@pytest.mark.parametrize(("make", "message"), NO_ROWS.values(), ids=NO_ROWS)
@pytest.mark.parametrize("basis", ["auto", "standard"])
@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_what_holds_no_rows_is_refused_with_a_hint(make, message, basis):
    message = f"^X must hold rows, {message}"
    for y in (None, Y):
        with pytest.raises(ValueError, match=message):
            model(basis=basis).fit(make(), y)
        with pytest.raises(ValueError, match=message):
            TensorMachineClassifier(**QUICK).fit(make(), y)
        with pytest.raises(ValueError, match=message):
            TensorMachineRegressorCV(degrees=(1,), ranks=(1,), bases=(basis,)).fit(make(), y)
    for rows in (A, NUMBERS):
        with pytest.raises(ValueError, match=message):
            model(basis=basis).fit(rows, Y).predict(make())


# ---- booleans that have become text


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_booleans_as_text_are_refused_as_what_they_were():
    wrong = FRAME.assign(e=FRAME.e.astype(str))
    with pytest.raises(
        ValueError, match=r"column 'e' held booleans or numbers in the fit, .*'(True|False)': con"
    ):
        model().fit(FRAME, Y).predict(wrong)
    numbers = FRAME.drop(columns="c")
    with pytest.raises(ValueError, match=r"column 'e' holds strings.*were numbers or booleans"):
        model().fit(numbers, Y).predict(wrong.drop(columns="c"))
    with pytest.raises(
        ValueError, match="column 'u' held numbers in the fit, now it holds strings such as 'a'"
    ):
        model().fit(FRAME, Y).predict(FRAME.assign(u="a"))
