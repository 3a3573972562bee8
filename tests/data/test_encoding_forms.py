"""A column in another form than in the fit is encoded alike."""

from decimal import Decimal

import numpy as np
import pytest
from scipy import sparse

from encoded_columns import CATEGORIES, encode, learn_columns, object_array
from tensormachines import TensorMachineRegressor
from tensormachines._data.encoding import Column

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAN = np.nan


@pytest.mark.parametrize("fitted_on", ["str", "category", object])
def test_the_same_values_in_every_form_have_the_same_codes(fitted_on):
    values = ["b", "a", None, "c", "a"]
    columns = learn_columns(pd.DataFrame({"a": pd.Series(values, dtype=fitted_on)}))
    reordered = pd.Categorical(values, categories=["unused", "c", "b", "a"])
    forms = [pd.DataFrame({"a": pd.Series(values, dtype=dtype)}) for dtype in CATEGORIES]
    forms += [pd.DataFrame({"a": reordered}), pl.DataFrame({"a": values}), object_array(values)]
    for form in forms:
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [1, 0, NAN, 2, 0])


def test_levels_that_are_numbers_come_back_in_any_form():
    columns = learn_columns(pd.DataFrame({"a": pd.Categorical([10, 2, 2, 30])}))
    forms = [
        pd.DataFrame({"a": [2, 30]}),
        pd.DataFrame({"a": [2.0, 30.0]}),
        pd.DataFrame({"a": pd.array([2, 30], dtype="Int64")}),
        pd.DataFrame({"a": ["2", "30"]}),
        np.array([[2], [30]], dtype=np.int8),
        np.array([[2.0], [30.0]], dtype=np.float32),
        object_array([np.int64(2), 30.0]),
        pl.DataFrame({"a": [2, 30]}),
    ]
    for form in forms:
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [0, 2])
    np.testing.assert_array_equal(encode(columns, np.array([[NAN], [10], [7]]))[:, 0], [NAN, 1, NAN])


def test_numbers_come_back_in_any_form():
    columns = learn_columns(object_array([1, 2, None]))
    for form in (
        np.array([[2.5], [1.0]]),
        object_array(["2.5", "1"]),
        pd.DataFrame({"a": pd.Categorical([2.5, 1])}),
    ):
        np.testing.assert_array_equal(encode(columns, form)[:, 0], [2.5, 1])
    with pytest.raises(
        ValueError, match="column 0 of X held numbers in the fit, now it holds strings such as 'many'"
    ):
        encode(columns, object_array([1, "many"]))


MIXED = [True, False, "maybe", 3, 0.5, Decimal("2.50"), "007", "1e3", 2**60 + 1, np.float32(0.1), None]


@pytest.mark.parametrize(
    "as_form", [object_array, lambda values: pd.DataFrame({"a": pd.Series(values, dtype=object)})]
)
def test_an_entry_of_a_category_is_read_alike_whatever_the_others_are(as_form):
    columns = learn_columns(object_array(MIXED))
    assert columns.kinds == ("category",)
    codes = encode(columns, object_array(MIXED))[:, 0]
    assert len(np.unique(codes)) == len(MIXED)
    for entry, code in zip(MIXED, codes, strict=True):
        np.testing.assert_array_equal(encode(columns, as_form([entry])), [[code]])
        np.testing.assert_array_equal(encode(columns, as_form([entry, "unknown"]))[0], [code])
    unknown = encode(columns, as_form([4]))
    np.testing.assert_array_equal(unknown, encode(columns, as_form([4, "maybe"]))[:1])
    assert np.isnan(unknown).all()


def test_typed_columns_are_read_as_the_category_that_they_were():
    columns = learn_columns(object_array([True, False, "maybe", 3, None]))
    code = {name: k for k, name in enumerate(columns.columns[0].levels)}
    booleans = [True, False], [code["True"], code["False"]]
    for values, expected in (booleans, ([3, 4], [code["3"], NAN]), ([True, None], [code["True"], NAN])):
        dtype = "boolean" if True in values else None
        for form in (
            pd.DataFrame({"a": pd.array(values, dtype=dtype)}),
            pl.DataFrame({"a": values}),
            object_array(values),
        ):
            np.testing.assert_array_equal(encode(columns, form)[:, 0], expected)
    np.testing.assert_array_equal(encode(columns, np.array([[True], [False]]))[:, 0], booleans[1])
    np.testing.assert_array_equal(encode(columns, pd.DataFrame({"a": [True, False]}))[:, 0], booleans[1])


def test_lists_of_rows_are_read_as_they_are_written():
    rows = [[answer, number] for number in range(20) for answer in (True, False, "maybe")]
    model = TensorMachineRegressor(degree=2, rank=1, max_iter=2, random_state=0).fit(rows, np.arange(60))
    assert model._columns.kinds == ("category", "number")
    together = model.predict(rows)
    np.testing.assert_allclose([model.predict([row])[0] for row in rows], together, rtol=1e-9)
    np.testing.assert_allclose(model.predict(np.array(rows, dtype=object)), together, rtol=1e-9)
    assert len(np.unique(together[:3])) == 3


def test_an_array_of_strings_is_read_alike_whatever_the_others_are():
    columns = learn_columns(np.array([["007", "1"], ["x", "2.5"], ["1.0", "nan"]]))
    assert columns.kinds == ("category", "category")
    np.testing.assert_array_equal(encode(columns, np.array([["007", "1"]])), [[0, 0]])
    np.testing.assert_array_equal(encode(columns, np.array([["1.0", "nan"]])), [[1, 2]])
    assert np.isnan(encode(columns, np.array([["7", "1e0"]]))).all()


def test_an_entry_of_a_number_is_read_alike_whatever_the_others_are():
    columns = learn_columns(object_array([1, True, None, 2.5]))
    assert columns.kinds == ("number",)
    entries, expected = (
        [True, "2", 3, Decimal("0.5"), "nan", None, np.float32(0.1)],
        [1, 2, 3, 0.5, NAN, NAN, np.float32(0.1)],
    )
    np.testing.assert_array_equal(encode(columns, object_array(entries))[:, 0], expected)
    for entry, number in zip(entries, expected, strict=True):
        np.testing.assert_array_equal(encode(columns, object_array([entry])), [[number]])
    with pytest.raises(
        ValueError, match="column 0 of X held numbers in the fit, now it holds strings such as 'many'"
    ):
        encode(columns, object_array([True, "many"]))


def test_a_single_number_among_strings_is_an_unknown_level():
    columns = learn_columns(pd.DataFrame({"job": ["cook", "pilot"]}))
    for form in (
        pd.DataFrame({"job": [7]}),
        pl.DataFrame({"job": [7]}),
        np.array([[7.0]]),
        object_array([7]),
        object_array([7, 8, 9]),
    ):
        assert np.isnan(encode(columns, form)).all()
    pooled = learn_columns(object_array(["cook", "pilot"] * 200 + [True, 7]))
    assert pooled.columns[0] == Column(("cook", "pilot"), pooled=True)
    for form in (object_array([7, True]), pd.DataFrame({"job": [7, 8]}), np.array([[True], [False]])):
        np.testing.assert_array_equal(encode(pooled, form), [[2], [2]])


def test_numbers_for_strings_are_an_error():
    columns = learn_columns(pd.DataFrame({"job": ["cook", "pilot"]}))
    with pytest.raises(
        ValueError, match="column 'job' held strings such as 'cook' in the fit, now it holds numbers"
    ):
        encode(columns, np.array([[0.0], [1.0]]))
    with pytest.raises(ValueError, match="2 columns, in the fit there were 1"):
        encode(columns, pd.DataFrame({"job": ["cook"], "age": [3]}))
    np.testing.assert_array_equal(encode(columns, np.array([[NAN]])), [[NAN]])
    for X in (sparse.csr_array((3, 1)), np.empty((3, 1, 1), dtype=object)):
        with pytest.raises(ValueError, match="X must be a frame with columns as in the fit"):
            encode(columns, X)


def test_empty_tables():
    columns = learn_columns(pd.DataFrame({"a": ["x", "y"], "b": [1, 2]}))
    nothing = {"a": [], "b": []}
    for frame in (
        pd.DataFrame(nothing),
        pd.DataFrame(nothing, dtype=object),
        pl.DataFrame(nothing),
        np.empty((0, 2), dtype=object),
    ):
        assert encode(columns, frame).shape == (0, 2)
