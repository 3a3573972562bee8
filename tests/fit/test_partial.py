"""partial_fit: blocks that come and go."""

import pickle

import numpy as np
import pytest
from sklearn.metrics import mean_tweedie_deviance

from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineRegressor, load
from tensormachines._fit.partial import SLOTS
from tensormachines._fit.settings import Settings


def stream(rng, blocks, rows=300, **options):
    X, y = teacher(rng, blocks * rows, **options)
    return [(X[start : start + rows], y[start : start + rows]) for start in range(0, blocks * rows, rows)]


@pytest.mark.parametrize(("basis", "score"), [("auto", 0.93), ("standard", 0.99)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_regression_learns_from_every_block_once(rng, dtype, basis, score):
    """A polynomial of x is found sooner by one of x than by one of splines."""
    model = TensorMachineRegressor(degree=3, rank=3, alpha=1e-6, basis=basis, random_state=0)
    scores = []
    X, y = teacher(np.random.default_rng(1), dtype=dtype)
    for number, block in enumerate(stream(rng, 60, dtype=dtype)):
        model.partial_fit(*block)
        if number in (0, 10, 59):
            scores.append(model.score(X, y))
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > score
    assert model.n_iter_ == 60
    assert model.predict(X).dtype == dtype


@pytest.mark.parametrize("loss", ["squared_error", "huber", "quantile"])
def test_one_block_alone_does_not_lead_astray(loss):
    """The last step of the optimiser leads to a point that nobody has seen: it may be far too long."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.uniform(size=(200, 1))
        y = 10 + 4 * X[:, 0] + rng.normal(size=200)
        model = TensorMachineRegressor(loss=loss, random_state=seed).partial_fit(X, y)
        assert model.score(X, y) > -0.3


def positive_targets(rng, loss, mean):
    """Draw targets of this mean that suit a loss with a log link."""
    if loss == "poisson":
        return rng.poisson(mean)
    costs = mean * rng.gamma(1.0, size=len(mean))
    return costs if loss == "gamma" else costs * (rng.random(len(mean)) < 0.7)


@pytest.mark.parametrize(("loss", "power"), [("poisson", 1.0), ("gamma", 2.0), ("tweedie", 1.5)])
def test_exponentials_do_not_lead_astray(loss, power):
    """A step may be so long that the exponential of an output is 1e70: nothing may be learnt from there."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(4000, 5))
        y = positive_targets(rng, loss, np.exp(0.5 * X[:, 0] + 0.3 * X[:, 1] * X[:, 2]))
        X_new, y_new = X[1000:], y[1000:]
        constant = mean_tweedie_deviance(y_new, np.full(3000, y[:1000].mean()), power=power)
        model = TensorMachineRegressor(loss=loss, random_state=seed)
        for start in range(0, 1000, 200):
            model.partial_fit(X[start : start + 200], y[start : start + 200])
            assert mean_tweedie_deviance(y_new, model.predict(X_new), power=power) < 1.05 * constant
        assert mean_tweedie_deviance(y_new, model.predict(X_new), power=power) < 0.95 * constant


def test_blocks_sorted_by_class(rng):
    """What was learnt of old blocks stays: with one class a block, a model that forgot them would end up with
    the last.
    """
    X = rng.standard_normal((6000, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, "yes", "no")
    model = TensorMachineClassifier(degree=2, rank=2, random_state=0)
    for start in range(0, 6000, 400):
        rows = np.arange(start, start + 400)
        for label in ("yes", "no"):
            chosen = rows[y[rows] == label]
            model.partial_fit(X[chosen], y[chosen], classes=["no", "yes"])
    assert model.score(X, y) > 0.9


def test_memory_does_not_grow(rng):
    model = TensorMachineRegressor(degree=2, rank=2, random_state=0)
    sizes = []
    for block in stream(rng, 3 * SLOTS, rows=50):
        model.partial_fit(*block)
        sizes.append(len(pickle.dumps(model)))
    assert max(sizes[SLOTS:]) <= 1.05 * sizes[SLOTS - 1]
    X = rng.standard_normal((10, 5))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))


def test_weights(rng):
    X, y = teacher(rng, 600)
    wrong = np.concatenate([y, -y])
    weight = np.repeat([1.0, 0.0], 600)
    one = TensorMachineRegressor(random_state=0).partial_fit(X, y)
    other = TensorMachineRegressor(random_state=0).partial_fit(np.vstack([X, X]), wrong, sample_weight=weight)
    np.testing.assert_allclose(other.predict(X), one.predict(X), rtol=0.05, atol=0.2)


@pytest.mark.parametrize(("basis", "solver"), [("auto", "adam"), ("standard", "adam"), ("standard", "lbfgs")])
def test_it_goes_on_after_fit_and_fit_begins_anew(rng, basis, solver):
    X, y = teacher(rng, 2000)
    settings = {"degree": 3, "rank": 3, "alpha": 1e-4, "basis": basis, "solver": solver, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(X, y)
    fitted = model.score(X, y)
    assert model.partial_fit(X[:500], y[:500]).score(X, y) > fitted - 0.01
    again = TensorMachineRegressor(**settings).fit(X, y)
    np.testing.assert_array_equal(model.fit(X, y).linear_, again.linear_)


def test_the_basis_stays_that_of_the_fit(rng):
    """A handful of rows says little about means and variances."""
    X, y = teacher(rng, 2000)
    model = TensorMachineRegressor(
        degree=3, rank=1, alpha=1e-8, basis="standard", solver="lbfgs", random_state=0
    ).fit(5 * X + 100, y)
    assert model.partial_fit(5 * X[:5] + 100, y[:5]).score(5 * X + 100, y) > 0.98


def test_splines_stay_those_of_the_fit(rng):
    """A handful of rows would have fewer of them."""
    X, y = teacher(rng, 2000)
    model = TensorMachineRegressor(alpha=1e-5, random_state=0).fit(X, y)
    basis, score = model._machine.basis, model.score(X, y)
    model.partial_fit(X[:20], y[:20])
    assert model._machine.basis.kind == basis.kind
    np.testing.assert_array_equal(model._machine.basis.center, basis.center)
    assert model.score(X, y) > score - 0.1


def test_alpha_auto_falls_with_the_rows_that_came(rng, monkeypatch):
    """So that what many blocks say is not drowned by the penalty of the first; as in a fit of all rows that
    count.
    """
    alphas = []
    penalty = Settings.penalty

    def noted(self, problem, n_rows=None):
        alphas.append(penalty(self, problem, n_rows))
        return alphas[-1]

    monkeypatch.setattr(Settings, "penalty", noted)
    X, y = teacher(rng, 1000)
    weight = np.repeat([1.0, 0.0], 500)
    model = TensorMachineRegressor(degree=2, rank=1, basis="standard", random_state=0)
    model.partial_fit(X, y).partial_fit(X, y).partial_fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(alphas, [5 / 1000, 5 / 2000, 5 / 2500])
    for _ in range(SLOTS):
        model.partial_fit(X, y)
    assert alphas[-1] == pytest.approx(5 / (1000 * SLOTS))


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "sfo"])
def test_all_rows_of_a_block_count_whatever_the_solver(rng, solver):
    model = TensorMachineRegressor(
        degree=3, rank=3, alpha=1e-6, basis="standard", solver=solver, random_state=0
    )
    for block in stream(rng, 60, rows=100):
        model.partial_fit(*block)
    X, y = teacher(np.random.default_rng(1))
    assert model.score(X, y) > 0.95


def test_no_weights_are_weights_of_1(rng):
    X, y = teacher(rng, 400)
    heavy = np.full(200, 10.0)
    one, other = (
        TensorMachineRegressor(degree=2, random_state=0).partial_fit(X[:200], y[:200], sample_weight=heavy)
        for _ in range(2)
    )
    one.partial_fit(X[200:], y[200:])
    other.partial_fit(X[200:], y[200:], sample_weight=np.ones(200))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))


def test_blocks_of_another_float_type(rng):
    X, y = teacher(rng, 400)
    model = TensorMachineRegressor(degree=2, random_state=0).partial_fit(X[:200], y[:200])
    model.partial_fit(X[200:].astype(np.float32), y[200:])
    model = TensorMachineRegressor(degree=2, random_state=0).partial_fit(X[:200].astype(np.float32), y[:200])
    model.partial_fit(X[200:], y[200:])


def test_settings_that_changed_are_named(rng):
    X, y = teacher(rng, 200)
    model = TensorMachineRegressor(degree=2, random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="partial_fit began with degree, rank and basis"):
        model.set_params(degree=4).partial_fit(X, y)
    with pytest.raises(ValueError, match="or checkpoint"):
        TensorMachineRegressor(checkpoint="state.npz").partial_fit(X, y)


def test_class_weights(rng):
    X = rng.standard_normal((500, 3))
    y = X[:, 0] + rng.standard_normal(500) > 0
    plain = TensorMachineClassifier(degree=2, random_state=0).partial_fit(X, y, classes=[False, True])
    heavy = TensorMachineClassifier(degree=2, random_state=0, class_weight={True: 20}).partial_fit(
        X, y, classes=[False, True]
    )
    assert heavy.predict(X).mean() > plain.predict(X).mean() + 0.1
    with pytest.raises(ValueError, match="balanced"):
        TensorMachineClassifier(class_weight="balanced").partial_fit(X, y, classes=[False, True])


def test_errors_leave_what_was_learnt(rng):
    X, y = teacher(rng, 200)
    model = TensorMachineRegressor(degree=2, basis="standard", random_state=0).partial_fit(X, y)
    before = model.predict(X)
    for bad, message in (
        ((X[:, :4], y), "features"),
        ((X, np.column_stack([y, y])), "outputs"),
        ((X * 1e200, y), "overflow"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(*bad)
        np.testing.assert_array_equal(model.predict(X), before)
    model.partial_fit(X, y)
    classifier = TensorMachineClassifier(degree=2)
    with pytest.raises(ValueError, match="needs all classes in its first call"):
        classifier.partial_fit(X, y > 0)
    classifier.partial_fit(X, y > 0, classes=[False, True])
    with pytest.raises(ValueError, match="not among the classes"):
        classifier.partial_fit(X, np.full(200, 2))
    with pytest.raises(ValueError, match="same in every call"):
        classifier.partial_fit(X, y > 0, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="does not support max_norm"):
        TensorMachineRegressor(max_norm=1).partial_fit(X, y)


def test_goes_on_after_pickling_as_before(rng):
    X, y = rng.standard_normal((400, 3)), rng.integers(0, 4, 400)
    model = TensorMachineClassifier(degree=2, rank=2, random_state=0)
    model.partial_fit(X[:200], y[:200], classes=range(4))
    again = pickle.loads(pickle.dumps(model))
    for each in (model, again):
        each.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(again.linear_, model.linear_)


@pytest.mark.parametrize("rows", [1, 20, 200])
@pytest.mark.parametrize("task", ["numbers", "classes", "quantiles"])
def test_a_few_rows_do_not_spoil_a_fit(rng, tmp_path, task, rows):
    """Seen: after one row, a model with an R2 of 0.99 had 0."""
    X = rng.uniform(size=(2600, 4))
    y = np.sin(4 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(2600)
    y = y > np.median(y) if task == "classes" else y
    settings = {"loss": "quantile", "quantile": [0.2, 0.8]} if task == "quantiles" else {}
    estimator = TensorMachineClassifier if task == "classes" else TensorMachineRegressor
    model = estimator(random_state=0, **settings).fit(X[:1000], y[:1000])
    before = model.score(X[1600:], y[1600:])
    model.save(tmp_path / "model.tm")
    for learner in (model, load(tmp_path / "model.tm")):
        for start in range(1000, 1600, max(rows, 60)):
            learner.partial_fit(X[start : start + rows], y[start : start + rows])
        assert learner.score(X[1600:], y[1600:]) > before - 0.02


def test_every_row_counts_alike_after_a_fit(rng):
    """A line through new rows: the model goes as far towards it as their share of all rows."""
    X = rng.uniform(-1, 1, size=(900, 1))
    settings = {"degree": 1, "basis": "standard", "alpha": 0, "solver": "lbfgs", "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(X[:600], 2 * X[:600, 0])
    model.partial_fit(X[600:], 5 * X[600:, 0])
    slope = np.diff(model.predict([[0.0], [1.0]]))
    assert slope == pytest.approx(2 + 3 * 300 / 900, rel=0.05)
