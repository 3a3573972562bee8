"""Raw tables come into a fit, or are refused with a reason."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import get_tags

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from tensormachines._data.frame import all_different
from tensormachines._data.training import merge_rows
from tensormachines._fit.solvers.protocol import Outcome, Solution
from tensormachines.peers import FactorizationMachineRegressor

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAN = np.nan
COMPLETE = Solution(np.zeros(0), 0.0, 1, 1, Outcome.COMPLETE)


class DoorRegressor(TensorMachineRegressor):
    """Stops where the data are in: what comes after is not the business of these tests."""

    def _fit_rows(self, table, target, callbacks, deadline):
        return {"matrix": table.chunk.X, "_machine": None, "solver_": self.solver}, COMPLETE


class DoorClassifier(TensorMachineClassifier):
    def _fit_rows(self, table, target, callbacks, deadline):
        return {"matrix": table.chunk.X, "_machine": None, "solver_": self.solver}, COMPLETE


FRAME = pd.DataFrame(
    {
        "work": ["Gov", "Private", None, "Private"],
        "age": [20.0, np.nan, 40.0, 50.0],
        "member": [True, False, True, True],
    }
)
MATRIX = np.array([[0, 20, 1], [1, NAN, 0], [NAN, 40, 1], [1, 50, 1]])
Y = np.array([1.0, 2.0, 3.0, 4.0])


def in_any_order(X):
    return sorted(map(str, np.asarray(X).tolist()))


FORMS = {
    "pandas": FRAME,
    "polars": pl.from_pandas(FRAME),
    "array": FRAME.to_numpy(),
    "list": FRAME.to_numpy().tolist(),
}


@pytest.mark.parametrize("basis", ["spline", "auto"])
@pytest.mark.parametrize("form", FORMS)
def test_raw_tables_come_in(form, basis):
    frame = FORMS[form]
    for model, y in ((DoorRegressor(basis=basis), Y), (DoorClassifier(basis=basis), Y > 2)):
        model.fit(frame, y)
        assert in_any_order(model.matrix) == in_any_order(MATRIX)
        assert model.n_features_in_ == 3
        named = hasattr(frame, "columns")
        assert list(getattr(model, "feature_names_in_", [])) == (list(FRAME.columns) if named else [])
        assert model._columns.names == (tuple(FRAME.columns) if named else None)
        np.testing.assert_array_equal(model._check_rows(frame), MATRIX)


def test_numbers_come_in_as_they_are(rng):
    X = rng.standard_normal((5000, 20))
    X[0, 0] = NAN
    model = DoorRegressor(basis="spline").fit(X, X[:, 1])
    assert model.matrix is X
    assert model._check_rows(X) is X
    assert model._columns is None
    rows = sparse.random(30, 5, density=0.5, format="csr", random_state=0)
    model = DoorRegressor(basis="spline").fit(rows, np.arange(30))
    assert sparse.issparse(model.matrix)
    assert sparse.issparse(model._check_rows(rows))
    for frame in (
        pd.DataFrame({"a": [1.5, NAN], "b": [1, 2]}),
        pl.DataFrame({"a": [1.5, None], "b": [1, 2]}),
    ):
        model = DoorRegressor(basis="spline").fit(frame, [0.0, 1.0])
        np.testing.assert_array_equal(model._check_rows(frame), [[1.5, 1], [NAN, 2]])
        assert list(model.feature_names_in_) == ["a", "b"]
    nulls = pl.DataFrame({"a": [None, 2], "b": [1, 2]})
    np.testing.assert_array_equal(model._check_rows(nulls), [[NAN, 1], [2, 2]])


@pytest.mark.parametrize("basis", ["spline", "auto", "standard"])
def test_infinity_is_refused(basis):
    frame = pd.DataFrame({"a": ["x", "y"] if basis != "standard" else [1, 2], "b": [1.0, np.inf]})
    model = DoorRegressor(basis=basis)
    remedy = "finite" if basis == "standard" else r"finite, or missing \(NaN\)"
    message = rf"^column 'b' has infinity in row 1 \(counting from 0\): make such numbers {remedy}\.$"
    with pytest.raises(ValueError, match=message):
        model.fit(frame, [0.0, 1.0])
    assert vars(model) == vars(DoorRegressor(basis=basis))
    model.fit(frame.assign(b=1.0), [0.0, 1.0])
    with pytest.raises(ValueError, match=message):
        model._check_rows(frame)


def test_names_and_order_of_the_columns_are_checked():
    model = DoorRegressor(basis="auto").fit(FRAME, Y)
    for frame in (
        FRAME[["age", "work", "member"]],
        FRAME.rename(columns={"age": "years"}),
        FRAME[["work", "age"]],
    ):
        for form in (frame, pl.from_pandas(frame)):
            with pytest.raises(
                ValueError, match="feature names should match those that were passed during fit"
            ):
                model._check_rows(form)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model._check_rows(FRAME.to_numpy()), MATRIX)
    with pytest.warns(UserWarning, match="feature names"), pytest.raises(ValueError, match="2 features"):
        model._check_rows(FRAME.to_numpy()[:, :2])
    unnamed = DoorRegressor(basis="auto").fit(FRAME.to_numpy(), Y)
    with pytest.raises(ValueError, match="2 features"):
        unnamed._check_rows(FRAME.to_numpy()[:, :2])


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (FRAME, "column 'work' holds strings"),
        (pl.from_pandas(FRAME), "column 'work' holds strings"),
        (FRAME[["age"]], "column 'age' has missing values"),
        (pl.DataFrame({"age": [1, None, 3, 4]}), "column 'age' has missing values"),
        (FRAME.to_numpy(), "column 0 of X holds strings"),
        (
            pd.DataFrame({"none": pd.Series([None] * 4, dtype=object)}),
            "column 'none' holds nothing but missing values",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_other_bases_say_what_to_do(frame, reason):
    for basis, written in (("standard", '"standard"'), (None, "None")):
        with pytest.raises(
            ValueError, match=f'^basis={written} needs numbers: {reason}. Use basis="auto", which encodes'
        ):
            TensorMachineRegressor(basis=basis).fit(frame, Y)
    with pytest.raises(
        ValueError, match=f'^basis="auto" needs numbers: {reason}. Use OneHotEncoder and SimpleImputer'
    ):
        FactorizationMachineRegressor().fit(frame, Y)
    fitted = TensorMachineRegressor(basis="standard", random_state=0).fit(
        np.arange(4.0 * frame.shape[1]).reshape(4, -1) ** 2, Y
    )
    with pytest.raises(ValueError, match=reason):
        fitted.predict(frame)


def test_objects_are_refused_in_the_words_that_scikit_learn_expects():
    X = np.arange(8.0).reshape(4, 2).astype(object)
    X[0, 0] = {"foo": "bar"}
    for basis in ("auto", "standard"):
        with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
            TensorMachineRegressor(basis=basis).fit(X, Y)


def test_bytes_are_refused_by_the_name_of_their_column():
    X = np.array([[b"a"], ["é".encode()]])
    for basis in ("auto", "standard"):
        with pytest.raises(TypeError, match=r"column 0 .* bytes, .* Decode them .* numpy\.char\.decode"):
            TensorMachineRegressor(basis=basis).fit(X, [0.0, 1.0])


def test_a_model_of_numbers_says_which_column_is_none():
    model = DoorRegressor(basis="auto").fit(FRAME[["age"]], Y)
    assert model._columns is None
    with pytest.raises(
        ValueError,
        match=r"basis=\"auto\" needs numbers: column 'age' holds strings\. In the fit all columns were",
    ):
        model._check_rows(pd.DataFrame({"age": ["old"]}))
    np.testing.assert_array_equal(
        model._check_rows(pd.DataFrame({"age": pd.array([3, None], dtype="Int64")})), [[3], [NAN]]
    )


def test_errors_of_y_and_weights_stay_theirs():
    for model in (DoorRegressor(basis="auto"), TensorMachineRegressor()):
        X = FRAME if model.basis == "auto" else FRAME[["member"]]
        with pytest.raises(ValueError, match="y has a missing value"):
            model.fit(X, [1, 2, 3, NAN])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, Y[:3])
        with pytest.raises(ValueError, match="requires y to be passed"):
            model.fit(X, None)
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[1, 2])
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[-1, 1, 1, 1])
        with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
            model.fit(X, Y, sample_weight=[0, 0, 0, 0])


def test_a_failed_fit_leaves_the_columns_as_they_were():
    model = DoorRegressor(basis="auto").fit(FRAME, Y)
    before = model._columns
    with pytest.raises(ValueError, match="y has a missing value"):
        model.fit(FRAME[["work"]].assign(work="x"), [NAN, 1, 2, 3])
    assert model._columns is before
    np.testing.assert_array_equal(model._check_rows(FRAME), MATRIX)
    model.fit(MATRIX, Y)
    assert model._columns is None
    assert not hasattr(model, "feature_names_in_")


def test_the_first_block_of_partial_fit_sets_the_columns(monkeypatch):
    seen, learn_block = [], TensorMachineRegressor._learn_block

    def learn(self, table, *rest):
        seen.append(table.chunk.X)
        learn_block(self, table, *rest)

    monkeypatch.setattr(TensorMachineRegressor, "_learn_block", learn)
    model = TensorMachineRegressor(basis="auto", random_state=0).partial_fit(FRAME, Y)
    model.partial_fit(
        pd.DataFrame({"work": ["Private", "new"], "age": [1, 2], "member": [False, False]}), [1.0, 2.0]
    )
    np.testing.assert_array_equal(seen[0], MATRIX)
    np.testing.assert_array_equal(seen[1], [[1, 1, 0], [NAN, 2, 0]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(FRAME[["age", "work", "member"]], Y)


def test_tags_tell_what_the_basis_takes():
    for estimator in (TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures):
        for basis in ("spline", "auto", "standard", None):
            tags = get_tags(estimator(basis=basis)).input_tags
            assert tags.allow_nan == tags.categorical == (basis in ("spline", "auto"))
            assert tags.sparse
    assert not get_tags(FactorizationMachineRegressor(basis="auto")).input_tags.allow_nan


def test_constant_and_duplicate_columns():
    frame = pd.DataFrame(
        {"constant": ["x"] * 4, "a": list("abab"), "same": list("abab"), "none": [None] * 4, "two": [2] * 4}
    )
    model = DoorRegressor(basis="auto").fit(frame, Y)
    assert model._columns.kinds == ("category", "category", "category", "category", "number")
    np.testing.assert_array_equal(model._check_rows(frame)[:2], [[0, 0, 0, NAN, 2], [0, 1, 1, NAN, 2]])


# ---- equal rows


def test_rows_with_missing_values_are_merged(rng):
    X = rng.integers(0, 2, (60, 3)).astype(float)
    X[rng.random((60, 3)) < 0.3] = NAN
    y = rng.integers(0, 2, (60, 1)).astype(float)
    rows, targets, weight = merge_rows(X, y, None)
    truth = {}
    for row in np.hstack([X, y]).tolist():
        truth[str(row)] = truth.get(str(row), 0) + 1
    merged = dict(zip(map(str, np.hstack([rows, targets]).tolist()), weight, strict=True))
    assert merged == truth
    order = rng.permutation(60)
    again = merge_rows(X[order], y[order], None)
    for one, other in zip((rows, targets, weight), again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_names_are_made_different():
    assert all_different(["a", "b", "a", "a (2)", "a", "a (2)"]) == [
        "a",
        "b",
        "a (3)",
        "a (2)",
        "a (4)",
        "a (2) (2)",
    ]
    assert all_different([]) == []
