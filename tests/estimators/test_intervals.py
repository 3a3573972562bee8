"""Intervals around predictions: coverage of new rows, widths, files, and what they need."""

from copy import deepcopy

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV, blocks, load
from tensormachines.estimators.intervals import _bounds, learn_intervals

pd = pytest.importorskip("pandas")


def noisy(n_rows, seed, noise=lambda X: 0.2 + 1.5 * np.abs(X[:, 0])):
    """Rows, targets, and the standard deviation of the noise."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_rows, 3))
    deviation = noise(X) * np.ones(n_rows)
    return X, 2 * X[:, 1] * X[:, 2] + deviation * rng.normal(size=n_rows), deviation


def inside(bounds, y):
    return np.mean((bounds[:, 0] <= y) & (y <= bounds[:, 1]))


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = noisy(1200, 0)
    return TensorMachineRegressor(intervals=True, degree=2, random_state=0).fit(X, y)


def test_new_rows_are_covered_and_widths_follow_the_noise(fitted):
    X, y, deviation = noisy(10_000, 1)
    for coverage in (0.5, 0.8, 0.9, 0.95):
        assert inside(fitted.predict_interval(X, coverage), y) == pytest.approx(coverage, abs=0.035)
    width = np.diff(fitted.predict_interval(X), axis=1)[:, 0]
    assert np.corrcoef(width, deviation)[0, 1] > 0.9
    assert width.mean() < 1.15 * (2 * 1.645 * deviation).mean()  # that of the truth


def test_noise_of_one_size_has_one_width():
    X, y, _ = noisy(800, 0, noise=lambda X: 0.3)
    model = TensorMachineRegressor(intervals=True, degree=2, random_state=0).fit(X, y)
    width = np.diff(model.predict_interval(X), axis=1)
    assert width.std() < 0.15 * width.mean()


def test_bounds_are_the_order_statistics_of_conformal_prediction():
    errors = np.arange(1.0, 100.0)  # 99 of them: a new one is as likely in each of 100 gaps
    assert _bounds(errors, np.ones(99), 99, 0.9).tolist() == [5.0, 95.0]
    assert _bounds(errors[:9], np.ones(9), 9, 0.9).tolist() == [1.0, 9.0]


def test_weights_count_as_repetitions(rng):
    errors, weight = rng.normal(size=60), rng.integers(1, 4, 60).astype(float)
    rows = np.zeros((60, 1))

    def of(errors, weight):
        return learn_intervals(None, (np.zeros((len(errors), 1)), errors, weight), np.zeros(len(errors)), 0)

    weighted = of(errors, weight)
    repeated = of(np.repeat(errors, weight.astype(int)), None)
    for coverage in (0.5, 0.8):
        bounds = [each.around(np.zeros(60), rows, coverage)[0] for each in (weighted, repeated)]
        np.testing.assert_allclose(*bounds, atol=0.2)


def test_intervals_are_saved(fitted, tmp_path):
    X, _, _ = noisy(50, 2)
    fitted.save(tmp_path / "model.tm")
    loaded = load(tmp_path / "model.tm")
    np.testing.assert_array_equal(loaded.predict_interval(X, 0.8), fitted.predict_interval(X, 0.8))


def test_a_search_has_them_from_its_splits(tmp_path):
    X, y, _ = noisy(1000, 0)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=np.where(X[:, 0] > 0, "p", "n"))
    new, y_new, _ = noisy(4000, 1)
    new = pd.DataFrame(new, columns=["a", "b", "c"]).assign(group=np.where(new[:, 0] > 0, "p", "n"))
    search = TensorMachineRegressorCV(
        degrees=(2,), ranks=(4,), alphas=(1e-3,), max_iters=(20,), intervals=True, random_state=0, verbose=0
    ).fit(table, y)
    assert inside(search.predict_interval(new), y_new) == pytest.approx(0.9, abs=0.04)
    search.save(tmp_path / "search.tm")
    loaded = load(tmp_path / "search.tm")
    np.testing.assert_array_equal(loaded.predict_interval(new[:9]), search.predict_interval(new[:9]))


def test_counts_have_no_negative_bounds(rng):
    X = rng.uniform(-1, 1, (400, 2))
    model = TensorMachineRegressor(loss="poisson", degree=1, intervals=True, random_state=0)
    model.fit(X, rng.poisson(np.exp(X[:, 0])))
    assert model.predict_interval(X).min() >= 0


def test_targets_of_one_column_and_sparse_rows(fitted):
    X, y, _ = noisy(1200, 0)
    settings = {"intervals": True, "degree": 2, "random_state": 0}
    column = TensorMachineRegressor(**settings).fit(X, y[:, None])
    np.testing.assert_array_equal(column.predict_interval(X[:9]), fitted.predict_interval(X[:9]))
    few = TensorMachineRegressor(**settings, alpha=1e-3).fit(sparse.coo_matrix(X[:100]), y[:100])
    assert few.predict_interval(sparse.csr_matrix(X[:9])).shape == (9, 2)


def test_rows_of_weight_0_do_not_count():
    X, y, _ = noisy(150, 0)
    settings = {"intervals": True, "degree": 1, "alpha": 1e-3, "max_iter": 3, "random_state": 0}
    weight = np.repeat([1.0, 0.0], [100, 50])
    model = TensorMachineRegressor(**settings).fit(X, y, sample_weight=weight)
    assert model._intervals.n_rows == 100
    with pytest.raises(ValueError, match="at least 10 rows of positive weight, got 5"):
        TensorMachineRegressor(**settings).fit(X, y, sample_weight=np.repeat([1.0, 0.0], [5, 145]))


def test_a_target_without_noise_has_intervals_without_width():
    X, _, _ = noisy(300, 0)
    model = TensorMachineRegressor(intervals=True, degree=1, random_state=0).fit(X, np.full(300, 5.0))
    np.testing.assert_allclose(model.predict_interval(X[:3]), 5)


def test_coverage_that_few_rows_cannot_have_is_noticed():
    X, y, _ = noisy(30, 0)
    model = TensorMachineRegressor(intervals=True, degree=1, random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="coverage 0.99 need at least 199 rows, and the fit had 30"):
        model.predict_interval(X, 0.99)


def test_a_fit_without_intervals_forgets_them(fitted):
    X, y, _ = noisy(300, 0)
    model = TensorMachineRegressor(intervals=True, degree=1, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="intervals need fit: partial_fit keeps no rows"):
        model.partial_fit(X, y)
    assert model.predict_interval(X).shape == (300, 2)
    streamed = deepcopy(model).set_params(intervals=False).partial_fit(X, y)
    assert not hasattr(streamed, "_intervals")
    model.set_params(intervals=False).fit(X, y)
    with pytest.raises(AttributeError, match="set intervals=True"):
        model.predict_interval(X)
    with pytest.raises(ValueError, match="between 0 and 1, got 90"):
        fitted.predict_interval(X, 90)


def test_what_intervals_need_is_said(tmp_path):
    X, y, _ = noisy(300, 0)
    model = TensorMachineRegressor(intervals=True)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    with pytest.raises(ValueError, match="in memory"):
        model.fit(blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy"))
    with pytest.raises(ValueError, match="one target"):
        model.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="cannot be combined with exposure"):
        TensorMachineRegressor(intervals=True, loss="poisson").fit(X, np.abs(y), exposure=np.ones(300))


def test_targets_that_are_not_given_are_asked_for():
    X = np.ones((50, 2))
    with pytest.raises(ValueError, match="y is needed"):
        TensorMachineRegressor(intervals=True).fit(X)
    with pytest.raises(ValueError, match="y is needed"):
        TensorMachineRegressor(loss="poisson").fit(X, exposure=np.ones(50))
