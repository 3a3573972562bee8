"""What may be handed to the estimators, and what is refused."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor


@pytest.mark.parametrize(
    ("basis", "solver"),
    [
        (None, "lbfgs"),
        ("unit", "lbfgs"),
        ("standard", "lbfgs"),
        ("sphere", "lbfgs"),
        ("unit", "adam"),
        ("standard", "adam"),
        ("sphere", "adam"),
    ],
)
def test_dense_and_every_sparse_format_agree(rng, basis, solver):
    X = rng.standard_normal((3000, 30)) * (rng.random((3000, 30)) < 0.3)
    y = X[:, 0] * X[:, 1] - X[:, 2]
    options = {
        "degree": 2,
        "rank": 2,
        "basis": basis,
        "solver": solver,
        "alpha": 1e-3,
        "tol": 1e-5,
        "random_state": 0,
    }
    dense = TensorMachineRegressor(**options).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        rows = form(X)
        model = TensorMachineRegressor(**options).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), dense.predict(X), atol=2e-3)
        np.testing.assert_allclose(dense.predict(rows), dense.predict(X), rtol=1e-9, atol=1e-9)


def test_splines_read_sparse_rows_as_dense_ones(rng):
    X = rng.standard_normal((300, 4)) * (rng.random((300, 4)) < 0.5)
    model = TensorMachineRegressor(random_state=0).fit(X, X[:, 0] - X[:, 1])
    for form in (sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_array_equal(model.predict(form(X)), model.predict(X))


def test_64_bit_sparse_indices_and_wide_matrices():
    X = sparse.random(200, 20_000, density=1e-3, random_state=0, format="csr")
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y = np.arange(200) % 2
    model = TensorMachineClassifier(degree=2, rank=1, basis=None, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)


def test_unsorted_and_duplicate_sparse_indices(rng):
    X = sparse.csr_array(
        (np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3)
    )
    model = TensorMachineRegressor(degree=2, rank=1, basis=None, random_state=0).fit(
        rng.standard_normal((20, 3)), np.arange(20.0)
    )
    np.testing.assert_allclose(model.predict(X), model.predict(X.toarray()))


def test_float32_stays_float32(rng):
    X, y = teacher(rng, 500, np.float32)
    model = TensorMachineRegressor(random_state=0).fit(X, y)
    assert model.predict(X).dtype == np.float32
    assert model.linear_.dtype == np.float32
    assert all(f.dtype == np.float32 for f in model.factors_.values())
    wide = TensorMachineRegressor(random_state=0).fit(X.astype(np.float64), y)
    assert wide.predict(X.astype(np.float64)).dtype == np.float64
    np.testing.assert_allclose(wide.predict(X), wide.predict(X.astype(np.float64)), rtol=1e-3, atol=1e-3)
    classifier = TensorMachineClassifier(degree=2, random_state=0).fit(X, y > 0)
    assert classifier.predict_proba(X).dtype == np.float32


def test_layouts_of_numpy_arrays(rng, tmp_path):
    X, y = teacher(rng, 200)
    expected = TensorMachineRegressor(rank=1, random_state=0).fit(X, y).predict(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    for rows in (
        np.asfortranarray(X),
        np.repeat(X, 2, axis=1)[:, ::2],
        read_only,
        np.load(tmp_path / "X.npy", mmap_mode="r"),
        X.tolist(),
    ):
        model = TensorMachineRegressor(rank=1, random_state=0).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-6)


def test_x_is_not_changed_or_copied_whole(rng):
    X = np.asfortranarray(rng.standard_normal((2000, 50)))
    before = X.copy()
    model = TensorMachineRegressor(rank=1, degree=2, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(X, before)
    assert model._check_rows(X) is X


def test_integers_frames_and_names(rng):
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    X = rng.integers(0, 10, (100, 3))
    y = X[:, 0] * X[:, 1]
    expected = TensorMachineRegressor(random_state=0).fit(X, y).predict(X)
    columns = ["a", "b", "c"]
    for frame in (pd.DataFrame(X, columns=columns), pl.DataFrame(X, schema=columns)):
        model = TensorMachineRegressor(random_state=0).fit(frame, y)
        assert list(model.feature_names_in_) == columns
        np.testing.assert_array_equal(model.predict(frame), expected)


@pytest.mark.parametrize(
    "labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True], ["a", "b", "c"], [3, 5, 9]]
)
def test_labels_of_any_type(rng, labels):
    X = rng.standard_normal((150, 3))
    y = np.array(labels)[np.digitize(X[:, 0], [0] if len(labels) == 2 else [-0.5, 0.5])]
    model = TensorMachineClassifier(degree=2, rank=1, random_state=0).fit(X, y)
    assert set(model.classes_) == set(labels)
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (150, len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.decision_function(X).shape == ((150,) if len(labels) == 2 else (150, 3))
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 0}, "'degree' parameter"),
        ({"degree": 2.5}, "'degree' parameter"),
        ({"rank": 0}, "'rank' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"basis": "splines"}, "'basis' parameter"),
        ({"solver": "sgd"}, "'solver' parameter"),
        ({"init_scale": 0.0}, "'init_scale' parameter"),
        ({"max_norm": 0.0}, "'max_norm' parameter"),
        ({"n_restarts": 0}, "'n_restarts' parameter"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
    ],
)
@pytest.mark.parametrize(
    "estimator", [TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures]
)
def test_bad_parameters_are_named(estimator, change, message):
    with pytest.raises(ValueError, match=message):
        estimator(**change).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("basis", [None, "standard"])
def test_bad_data_get_one_clear_error(basis):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    regressor, classifier = TensorMachineRegressor(basis=basis), TensorMachineClassifier(basis=basis)
    with pytest.raises(ValueError, match="NaN"):
        regressor.fit(np.where(X == 1, np.nan, X), y)
    with pytest.raises(ValueError, match="infinity"):
        regressor.fit(np.where(X == 1, np.inf, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor.fit(X, y[:3])
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        classifier.fit(X, np.ones(4))
    with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
        regressor.fit(X, y, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="sample_weight"):
        regressor.fit(X, y, sample_weight=[-1, 1, 1, 1])
    with pytest.raises(ValueError, match="features"):
        regressor.fit(X, y).predict(np.eye(5))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier.fit(X, [0.1, 0.2, 0.3, 0.4])


def test_overflow_is_not_silent(rng):
    X = rng.standard_normal((50, 2)).astype(np.float32)
    with pytest.raises(ValueError, match="not finite at the start"):
        TensorMachineRegressor(basis=None, init_scale=1e30, random_state=0).fit(X, X[:, 0])
    model = TensorMachineRegressor(random_state=0, basis=None).fit(X, X[:, 0] * X[:, 1])
    with pytest.warns(RuntimeWarning, match="overflow"):
        model.predict(np.full((1, 2), 3e38, dtype=np.float32))


def test_probabilities_of_rows_that_overflow_are_finite(rng):
    X = rng.standard_normal((60, 2))
    model = TensorMachineClassifier(basis="standard", degree=2, random_state=0).fit(X, np.arange(60) % 3)
    rows = [[1e300, 1.0], [-1e300, 1e300], [0.0, 0.0]]
    with pytest.warns(RuntimeWarning, match="overflow"):
        shares, labels = model.predict_proba(rows), model.predict(rows)
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    np.testing.assert_array_equal(labels, shares.argmax(axis=1))


@pytest.mark.parametrize(
    "estimator",
    [TensorMachineRegressor(degree=2, tol=1e-2, random_state=0), TensorMachineClassifier(random_state=0)],
)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(estimator, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    model = clone(estimator)
    with monkeypatch.context() as patch:
        patch.setattr("tensormachines._model.kernel.value_and_gradient", interrupted)
        patch.setattr("tensormachines._model.objective.Objective.epochs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert vars(model) == vars(clone(estimator))
    model.fit(X, y)
    before = {name: value for name, value in vars(model).items()}
    with monkeypatch.context() as patch:
        patch.setattr("tensormachines._model.kernel.value_and_gradient", interrupted)
        patch.setattr("tensormachines._model.objective.Objective.epochs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :5], y)
    assert vars(model) == before
    assert model.predict(X).shape == y.shape


def sparse_frame(X):
    return pytest.importorskip("pandas").DataFrame.sparse.from_spmatrix(X)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_matrix, sparse_frame])
def test_missing_values_in_sparse_rows_are_refused_by_name(kind):
    """Nothing knows what they would mean, and a prediction of NaN would be blamed on an overflow."""
    X = np.eye(20)
    model = TensorMachineRegressor(degree=2, rank=1, random_state=0).fit(sparse.csr_matrix(X), np.arange(20))
    X[3, 3] = np.nan
    rows = kind(sparse.csr_matrix(X))
    with pytest.raises(ValueError, match="sparse and contains NaN"):
        model.predict(rows)
    with pytest.raises(ValueError, match="sparse and contains NaN"):
        TensorMachineRegressor().fit(rows, np.arange(20))
