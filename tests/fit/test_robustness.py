"""Data that ought not to happen, and do."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from reference import learn_basis
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, blocks
from tensormachines._data.files.source import Chunk
from tensormachines._data.summary import Summarise, ValidationRows
from tensormachines._fit import pose
from tensormachines._model import kernel
from tensormachines._model.basis import AffineBasis
from tensormachines._model.block import Block
from tensormachines._model.layout import Layout
from tensormachines._model.losses import SQUARED

pd = pytest.importorskip("pandas")

QUICK = {"degree": 2, "rank": 1, "random_state": 0, "tol": 1e-2}


@pytest.mark.parametrize("constant", [0.1, 0.3, 1234.567])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_constant_column_is_not_stretched(rng, constant, form):
    X = rng.standard_normal((20_000, 3))
    X[:, 1] = constant
    basis = learn_basis("standard", form(X), np.ones(len(X)))
    assert basis.scale[1] == 1 / np.sqrt(3)
    model = TensorMachineRegressor(**QUICK).fit(form(X), X[:, 0])
    assert abs(model.predict([[0, 2 * constant, 0]])[0]) < 1e4


def test_moments_of_sparse_columns_far_from_zero(rng):
    X = rng.standard_normal((5000, 2)) + 1e6
    dense, from_sparse = (
        learn_basis("standard", form(X), np.ones(5000)) for form in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_allclose(from_sparse.scale, dense.scale, rtol=1e-9)


@pytest.mark.parametrize("rows", [1001, 1024])
def test_rows_that_fill_no_strip_with_columns_far_from_zero(rng, rows):
    X = (1e4 + rng.standard_normal((rows, 4))).astype(np.float32)
    y = (X[:, 0] - 1e4) * (X[:, 1] - 1e4)
    assert TensorMachineRegressor(degree=6, tol=1e-2, random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("settings", [{}, {"loss": "huber"}, {"solver": "kfac", "max_iter": 20}], ids=str)
def test_few_rows_of_positive_weight_among_many(rng, tmp_path, settings):
    """Seen: samples of the rows without any weight, and so models that ended as constants, or errors."""
    X, weight = rng.standard_normal((40_000, 2)), np.zeros(40_000)
    weight[rng.choice(np.flatnonzero(np.arange(40_000) % 10), 300, replace=False)] = 2
    y, present = np.sin(2 * X[:, 0]) + X[:, 0] * X[:, 1], weight > 0
    model = TensorMachineRegressor(trend=False, random_state=0, **settings)
    alone = clone(model).fit(X[present], y[present]).predict(X)
    among = clone(model).fit(X, y, sample_weight=weight).predict(X)
    assert r2_score(y, alone) > 0.9
    np.testing.assert_allclose(among, alone, atol=1e-4)
    paths = [tmp_path / name for name in ("X.npy", "y.npy", "weight.npy")]
    for path, array in zip(paths, (X, y, weight), strict=True):
        np.save(path, array)
    from_files = clone(model).fit(blocks.npy(*paths))
    assert r2_score(y, from_files.predict(X)) > 0.9
    assert from_files.feature_importances_.sum() == pytest.approx(1)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_row_of_weight_zero_is_absent_whatever_it_holds(rng, form):
    X = rng.standard_normal((20_000, 4)).astype(np.float32)
    y, weight = X[:, 0] * X[:, 1], np.ones(20_000)
    X[7], weight[7] = 1e30, 0
    model = TensorMachineRegressor(**QUICK, basis=None).fit(form(X), y, sample_weight=weight)
    assert model.score(np.delete(X, 7, 0), np.delete(y, 7)) > 0.9


def test_duplicate_sparse_entries_are_added_up(rng):
    X = rng.standard_normal((50, 3))
    halves = sparse.csr_array(
        (np.repeat(X.ravel() / 2, 2), np.tile(np.repeat(np.arange(3), 2), 50), np.arange(51) * 6),
        shape=(50, 3),
    )
    for basis in ("unit", "standard", "sphere"):
        dense = TensorMachineRegressor(**QUICK, basis=basis).fit(X, X[:, 0])
        np.testing.assert_allclose(dense.predict(halves), dense.predict(X))
        np.testing.assert_allclose(
            TensorMachineRegressor(**QUICK, basis=basis).fit(halves, X[:, 0]).predict(X), dense.predict(X)
        )
    assert halves.nnz == 300


@pytest.mark.parametrize("columns", [10, 500_000])
def test_float32_sums_over_many_rows_keep_their_digits(columns):
    """A column that every row has, beside a rare one."""
    rows = 400_000
    X = sparse.csr_array(
        (np.ones(rows, np.float32), np.zeros(rows, np.int32), np.arange(rows + 1, dtype=np.int32)),
        shape=(rows, columns),
    )
    layout = Layout(columns, 2, 4)
    _, gradient = kernel.value_and_gradient(
        Block(X, AffineBasis(columns), np.full((rows, 1), -0.1)),
        layout,
        np.zeros((1, layout.size), np.float32),
        SQUARED,
    )
    assert layout.factors(gradient)[0, 0, 0] == pytest.approx(0.1 * rows, rel=5e-5)


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs"])
def test_scales_that_differ_a_lot_get_a_warning_or_a_model(rng, solver):
    X = rng.standard_normal((500, 5))
    y = X[:, 0] * X[:, 1]
    model = TensorMachineRegressor(basis=None, solver=solver, random_state=0).fit(X * 1e10, y)
    assert model.n_iter_ > 0
    assert model.score(X * 1e10, y) > 0
    assert (
        TensorMachineRegressor(random_state=0)
        .fit(X * [1, 1, 1, 1e4, 1e6], y)
        .score(X * [1, 1, 1, 1e4, 1e6], y)
        > 0.9
    )


@pytest.mark.parametrize("weights", [{0: 0, 1: 0}, {0: -1, 1: 1}, {0: np.nan, 1: 1}])
def test_class_weights_are_checked(weights):
    with pytest.raises(ValueError, match="class_weight"):
        TensorMachineClassifier(class_weight=weights).fit(np.eye(4), [0, 1, 0, 1])


def test_balanced_classes_count_weights_as_repetitions(rng):
    X = rng.standard_normal((100, 2))
    y, weight = (X[:, 0] > 0.7).astype(int), rng.integers(1, 4, 100)
    options = {"degree": 1, "class_weight": "balanced", "alpha": 0.01, "random_state": 0}
    weighted = TensorMachineClassifier(**options).fit(X, y, sample_weight=weight)
    repeated = TensorMachineClassifier(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.linear_, repeated.linear_, rtol=1e-6)


def test_features_with_columns_of_classes(rng):
    X, y = rng.standard_normal((30, 2)), rng.integers(0, 2, (30, 1))
    assert TensorMachineFeatures(degree=2, rank=2).fit_transform(X, y).shape == (30, 2)
    with pytest.raises(ValueError, match="one column of classes"):
        TensorMachineFeatures(task="classification").fit(X, np.hstack([y, y]))


def test_early_stopping_with_a_class_of_equal_rows(rng):
    X, y = np.vstack([np.ones((40, 2)), rng.standard_normal((60, 2))]), np.repeat([1, 0], [40, 60])
    assert TensorMachineClassifier(degree=2, early_stopping=True, random_state=0).fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(("dtype", "size"), [(np.float64, 1e200), (np.float32, 1e60)])
def test_targets_too_large_are_named(rng, dtype, size):
    X = rng.standard_normal((20, 2)).astype(dtype)
    with pytest.raises(ValueError, match="y has values too large"):
        TensorMachineRegressor().fit(X, X[:, 0].astype(float) * size)


@pytest.mark.parametrize("scale", [1e-50, 1e39])
def test_only_ratios_of_weights_matter(rng, scale):
    X = rng.standard_normal((200, 2)).astype(np.float32)
    weight = rng.integers(1, 3, 200)
    one, other = (
        TensorMachineRegressor(**QUICK).fit(X, X[:, 0], sample_weight=w) for w in (weight, weight * scale)
    )
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=1e-3, atol=1e-3)


def test_strides_of_broken_elements(rng):
    table = np.zeros(30_000, dtype=[("flag", "i1"), ("x", "f8", (3,))])
    table["x"] = rng.standard_normal((30_000, 3))
    model = TensorMachineRegressor(**QUICK).fit(table["x"], table["x"][:, 0])
    whole = np.array(table["x"])
    np.testing.assert_allclose(model.predict(table["x"]), model.predict(whole), rtol=1e-12, atol=1e-12)
    other = TensorMachineRegressor(**QUICK).fit(whole, whole[:, 0])
    np.testing.assert_allclose(other.predict(whole), model.predict(whole), rtol=1e-6, atol=1e-6)


def misaligned(array):
    """Return a contiguous copy whose numbers begin at odd addresses, as those of a packed file may."""
    bytes_ = np.empty(array.nbytes + 1, dtype=np.uint8)
    copy = bytes_[1:].view(array.dtype).reshape(array.shape)
    copy[...] = array
    assert not copy.flags.aligned
    return copy


@pytest.mark.filterwarnings("ignore:.*max_iter=3:sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("solver", ["adam", "lbfgs", "sfo"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_numbers_at_odd_addresses(rng, solver, form):
    X = rng.standard_normal((2000, 3)) * (rng.random((2000, 3)) < 0.5)
    y, weight = X[:, 0] * X[:, 1] + X[:, 2], rng.random(2000)
    rows = form(X)
    odd = misaligned(X)
    if sparse.issparse(rows):
        odd = rows.copy()
        for name in ("data", "indices", "indptr"):
            setattr(odd, name, misaligned(getattr(rows, name)))
    one, other = (TensorMachineRegressor(**{**QUICK, "solver": solver, "max_iter": 3}) for _ in range(2))
    one.fit(rows, y, sample_weight=weight)
    other.fit(odd, misaligned(y), sample_weight=misaligned(weight))
    np.testing.assert_array_equal(other.predict(odd), one.predict(rows))
    if form is np.asarray:
        compiled = one.compiled()
        np.testing.assert_array_equal(compiled(misaligned(X)), compiled(X))
        np.testing.assert_array_equal(compiled(misaligned(X[0])), compiled(X[0]))


def test_warm_start_with_another_basis_is_refused(rng):
    X = rng.standard_normal((50, 2))
    model = TensorMachineRegressor(**QUICK, warm_start=True).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="same shape and basis"):
        model.set_params(basis="sphere").fit(X, X[:, 0])


def test_a_fit_that_cannot_begin_says_so(rng, monkeypatch):
    def hopeless(*_):
        return None, 1
        yield

    X = rng.standard_normal((50, 2))
    monkeypatch.setattr("tensormachines._fit.solvers.lbfgs.line_search", hopeless)
    with pytest.warns(ConvergenceWarning, match="random start|worse than a constant"):
        TensorMachineRegressor(solver="lbfgs", basis="standard", random_state=0).fit(X, X[:, 0])


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e30])
def test_unpenalised_columns_of_extreme_size(rng, scale):
    X = rng.standard_normal((300, 4)).astype(np.float32)
    y = X[:, 0] * X[:, 1]
    X[:, 3] *= np.float32(scale)
    X = sparse.csr_array(X)
    assert TensorMachineRegressor(basis=None, alpha=0, degree=2, random_state=0).fit(X, y).score(X, y) > 0.99


def test_dense_columns_as_they_are_are_measured_only_for_who_asks(rng):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 1))
    weight = rng.uniform(size=50)
    chunk = Chunk(X, y, weight)
    measured, unmeasured = (
        Summarise(False, False, ValidationRows(), False, measured=asked)(chunk) for asked in (True, False)
    )
    np.testing.assert_allclose(measured.moments_by_label[None].mean, np.average(X, axis=0, weights=weight))
    assert np.isnan(unmeasured.moments_by_label[None].mean).all()
    assert unmeasured.moments_by_label[None].weight == pytest.approx(weight.sum())
    # Solvers of sparse rows always ask for the sizes of the columns.
    sparse_chunk = Chunk(sparse.csr_array(X), y, weight)
    of_sparse = Summarise(False, False, ValidationRows(), False, measured=False)(sparse_chunk)
    np.testing.assert_allclose(
        of_sparse.moments_by_label[None].mean_squares, np.average(X**2, axis=0, weights=weight)
    )


def test_levels_that_a_sample_of_rows_lacks_keep_their_coefficients(rng, monkeypatch):
    monkeypatch.setattr(pose, "ROWS_SAMPLED", 100)  # of which most of the 500 levels have none
    level = np.repeat(np.arange(500), 6)
    effect = rng.normal(size=500)
    table = pd.DataFrame({"level": [f"level {i}" for i in level], "x": rng.normal(size=3000)})
    settings = {"degree": 1, "alpha": 1e-5, "max_iter": 20, "jumps": False, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(table, effect[level] + table.x)
    assert model.score(table, effect[level] + table.x) > 0.99


@pytest.mark.filterwarnings("ignore:.*(worse than a constant|stopped at max_iter)")
@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs", "sfo"])
@pytest.mark.parametrize("rows", [2, 8, 60])
def test_weights_from_almost_nothing_to_one(rng, rows, solver):
    """Where one row has almost all weight, the model has the target of that row."""
    X = rng.standard_normal((rows, 3))
    y = X[:, 0] + X[:, 1] * X[:, 2]
    model = TensorMachineRegressor(degree=2, rank=2, solver=solver, max_iter=4, random_state=0)
    for lowest in (-300, -40):
        weight = np.logspace(lowest, 0, rows)
        predicted = model.fit(X, y, sample_weight=weight).predict(X)
        assert np.isfinite(predicted).all()
        if rows == 2:
            assert predicted[-1] == pytest.approx(y[-1])


def test_sparse_values_with_steps_between_them(rng):
    X = sparse.random_array((300, 4), density=0.4, random_state=rng, format="csr")
    X.data = rng.standard_normal(X.nnz)
    y = X[:, [0]].toarray().ravel()
    model = TensorMachineRegressor(**QUICK, solver="lbfgs").fit(X, y)
    complex_ones = X + 1j * X
    for strided in (complex_ones.real, complex_ones.imag):
        np.testing.assert_array_equal(model.predict(strided), model.predict(X))
        other = TensorMachineRegressor(**QUICK, solver="lbfgs").fit(strided, y)
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
    backwards = X.copy()
    backwards.data = X.data[::-1].copy()[::-1]
    np.testing.assert_array_equal(model.predict(backwards), model.predict(X))


def test_large_integers_of_a_category_keep_their_digits():
    accounts = [1234567890123456789, 1234567890123456788, 1234567890123456700] * 20
    frame = pd.DataFrame({"account": accounts, "x": np.arange(60.0) % 7})
    y = np.tile([0.0, 1.0, 2.0], 20)
    model = TensorMachineRegressor(degree=1, alpha=1e-6, categorical_features=["account"], random_state=0)
    expected = model.fit(frame, y).predict(frame)
    np.testing.assert_allclose(expected, y, atol=0.05)
    nullable = frame.astype({"account": "Int64"})
    np.testing.assert_array_equal(model.predict(nullable), expected)
    np.testing.assert_allclose(model.fit(nullable, y).predict(nullable), y, atol=0.05)


UNENDING = """
import warnings
import numpy as np
from tensormachines import TensorMachineRegressor

warnings.simplefilter("ignore")
X = np.random.default_rng(0).standard_normal((90, 140))
settings = dict(degree=7, rank=2, relevance=2, n_restarts=2, solver="sfo", basis="standard", random_state=0)
model = TensorMachineRegressor(**settings).fit(X, X[:, 0] * X[:, 1])
print(np.isfinite(model.predict(X)).all())
"""


@pytest.mark.slow
def test_a_fit_of_high_degree_to_few_rows_ends():
    run = subprocess.run([sys.executable, "-c", UNENDING], capture_output=True, text=True, timeout=120)
    assert run.stdout == "True\n", run.stderr


@pytest.mark.filterwarnings("ignore:.*max_iter=1000:sklearn.exceptions.ConvergenceWarning")
def test_separable_classes_without_a_penalty_are_predicted_as_they_were_fitted():
    """Log-odds are large, and a share of their variance that is small elsewhere decides."""
    for seed in (6, 11, 20, 21):
        draws = np.random.default_rng(seed)
        for n_rows in (2, 3, 30):
            X, y = draws.standard_normal((n_rows, 2)), draws.random(n_rows) < 0.5
            if y.all() or not y.any():
                continue
            model = TensorMachineClassifier(degree=2, rank=1, alpha=0, solver="kfac", random_state=0).fit(
                X, y
            )
            found = -np.log(model.predict_proba(X)[np.arange(n_rows), y.astype(int)]).mean()
            assert found <= model.objective_ + 0.02
