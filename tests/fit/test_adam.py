from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from losses import LOSSES, make_targets
from tensormachines import TensorMachineRegressor
from tensormachines._fit.pose import fewer_if_wide
from tensormachines._fit.solver_table import minibatch_count
from tensormachines._fit.solvers import adam as adam_module
from tensormachines._fit.solvers.adam import MEMORY, MOMENTUM, NEGLIGIBLE, SMALLEST, adam
from tensormachines._fit.solvers.protocol import Epoch, Outcome, in_units, minimise
from tensormachines._model import native
from tensormachines._model.basis import fit_basis
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.losses import SQUARED
from tensormachines._model.moments import moments
from tensormachines._model.objective import Objective
from tensormachines._model.spline_learning import learn_splines


class Parts:
    """Mean over the parts of |x - target|^2 / 2, with as many targets as parts."""

    def __init__(self, targets):
        self.targets = targets

    def __call__(self, params):
        values, gradients = zip(
            *(self.partial(params, part) for part in range(len(self.targets))), strict=True
        )
        return sum(values), sum(gradients)

    def partial(self, params, part, likely_next=None):
        difference = params - self.targets[part].astype(params.dtype)
        return 0.5 * (difference**2).sum(axis=1) / len(self.targets), difference / len(self.targets)


@pytest.fixture
def parts(rng):
    return Parts(1 + 0.1 * rng.standard_normal((20, 6)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_reaches_the_minimum(parts, dtype):
    (solution,) = minimise(parts, [adam(np.zeros(6, dtype), n_functions=20, max_iter=100, seed=0)])
    assert solution.params.dtype == dtype
    np.testing.assert_allclose(solution.params, parts.targets.mean(axis=0), atol=5e-3)
    assert solution.value == pytest.approx(float(parts(solution.params[None])[0][0]))
    assert solution.outcome is Outcome.COMPLETE


def test_a_step_is_that_of_the_paper(rng, monkeypatch):
    vectors = [rng.standard_normal(50) for _ in range(3)]
    square = rng.random(50)
    results = []
    for compiled in (True, False):
        monkeypatch.setattr(native, "compiled", lambda compiled=compiled: compiled)
        params, gradient, mean, second = (vector.copy() for vector in (*vectors, square))
        adam_module.adam_step(params, gradient, mean, second, step=3, rate=0.1 * (1 - 0.9**3))
        results.append(params)
    mean, second = 0.9 * vectors[2] + 0.1 * vectors[1], 0.99 * square + 0.01 * vectors[1] ** 2
    truth = vectors[0] - 0.1 * mean / np.sqrt(second / (1 - 0.99**3))
    np.testing.assert_allclose(results, [truth, truth])


def test_goes_back_from_where_it_is_not_finite(parts):
    """Half-way to the minimum is a wall."""

    class Walled(Parts):
        def partial(self, params, part, likely_next=None):
            value, gradient = super().partial(params, part)
            return np.where(params[:, 0] > 0.5, np.nan, value), gradient

    (solution,) = minimise(Walled(parts.targets), [adam(np.zeros(6), n_functions=20, max_iter=100, seed=0)])
    assert solution.params[0] <= 0.5
    assert np.isfinite(solution.value)
    (solution,) = minimise(Walled(parts.targets), [adam(np.ones(6), n_functions=20, max_iter=100, seed=0)])
    assert solution.outcome is Outcome.NOT_FINITE


def test_resumes_to_the_bit(parts):
    states = []

    def watch(number, iterate):
        states.append(iterate.state())
        return False

    (whole,) = minimise(parts, [adam(np.zeros(6), n_functions=20, max_iter=10, seed=3)], watch)
    (resumed,) = minimise(
        parts, [adam(np.zeros(6), n_functions=20, max_iter=10, seed=3, resume=dict(states[4]))]
    )
    np.testing.assert_array_equal(resumed.params, whole.params)
    assert resumed.n_evaluations == whole.n_evaluations


def test_minibatches_are_neither_many_nor_tiny():
    assert minibatch_count(1) == 1
    assert minibatch_count(100) == 13
    assert minibatch_count(10_000) == 24
    assert minibatch_count(512_000) == 1000
    assert fewer_if_wide(585, n_rows=300_000, n_features=500) == 585
    assert fewer_if_wide(585, n_rows=300_000, n_features=24_000) == 100
    assert fewer_if_wide(585, n_rows=300_000, n_features=100_000) == 30
    assert fewer_if_wide(24, n_rows=10_000, n_features=100_000) == 24


def test_fit_is_deterministic_and_does_not_depend_on_threads(rng):
    X = rng.standard_normal((3000, 4))
    y = X[:, 0] * X[:, 1]
    fits = [
        TensorMachineRegressor(solver="adam", basis="spline", max_iter=8, random_state=0, n_jobs=jobs)
        .fit(X, y)
        .predict(X[:50])
        for jobs in (1, 1, 2)
    ]
    np.testing.assert_array_equal(fits[0], fits[1])
    np.testing.assert_array_equal(fits[0], fits[2])


def test_terms_that_the_penalty_has_ended_are_zero(rng):
    X = rng.standard_normal((500, 5))
    model = TensorMachineRegressor(solver="adam", max_iter=200, rank=4, alpha=0.1, random_state=0).fit(
        X, X[:, 0]
    )
    assert (model.factors_[3] == 0).mean() > 0.5
    assert not (np.abs(model.factors_[3][model.factors_[3] != 0]) < 1e-10).any()


# ---- epochs in the compiled kernel


def make_objective(rng, kind, dtype, loss, model=Layout, sizes=False, threads=1):
    """An objective over five minibatches of different sizes, one of them with a single row."""
    loss, outputs = LOSSES[loss]
    X = rng.standard_normal((300, 4)).astype(dtype)
    X[:, 3] = rng.integers(0, 3, 300)
    X[rng.random(300) < 0.1, 0] = np.nan if kind == "spline" else 0
    weight = rng.random(300)
    if kind == "spline":
        basis = learn_splines(X, weight, (None, None, None, 3), np.dtype(dtype))
    else:
        basis = fit_basis("standard", moments(X, weight), np.dtype(dtype))
        X = sparse.csr_array(X) if kind == "csr" else X
    y = make_targets(rng, loss, 300, outputs)
    borders = [0, 1, 64, 130, 200, 300]
    rows = basis.rows(X)
    blocks = [Block(rows[a:b], basis, y[a:b], weight[a:b]) for a, b in pairwise(borders)]
    layout = model(basis.width, 3, 5, outputs)
    expected = rng.uniform(0.5, 2, basis.width) if sizes else None
    columns = basis.groups if kind == "spline" else None
    return Objective(BlocksInMemory(blocks), layout, loss, 1e-3, threads, expected, columns)


@pytest.mark.parametrize("kind", ["dense", "csr", "spline"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("model", [Layout, AnovaLayout])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 2e-3), (np.float64, 1e-9)])
@pytest.mark.parametrize("scaled", [False, True])
def test_an_epoch_at_once_is_its_steps(rng, kind, loss, model, dtype, tolerance, scaled):
    objective = make_objective(rng, kind, dtype, loss, model, sizes=scaled)
    start = (0.3 * rng.standard_normal(objective.layout.size)).astype(dtype)
    units = rng.uniform(0.5, 2, len(start)).astype(dtype)
    strength = objective.column_strength if kind == "spline" else None
    found = []
    for whole_epochs in (True, False):
        solver = adam(start, n_functions=5, max_iter=4, seed=1, whole_epochs=whole_epochs, strength=strength)
        found.append(minimise(objective, [in_units(solver, units) if scaled else solver])[0])
    assert found[0].n_evaluations == found[1].n_evaluations
    assert found[0].value == pytest.approx(found[1].value, rel=tolerance)
    np.testing.assert_allclose(found[0].params, found[1].params, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("sizes", [False, True])
def test_columns_of_a_factor_are_penalised_more_the_smaller_they_are(rng, sizes):
    objective = make_objective(rng, "spline", np.float64, "squared", sizes=sizes)
    layout, columns = objective.layout, objective.columns
    params = rng.standard_normal(layout.size)
    factors = layout.factors(params)
    factors[columns == 1] *= 1e-5
    factors[:, 3] = 0
    found = layout.factors(objective.column_strength(params))
    usual = np.ones(len(columns)) if objective.sizes is None else 1 / objective.sizes**2
    for k in range(layout.n_columns):
        norms = {j: np.linalg.norm(factors[columns == j, k]) for j in range(4)}
        mean = np.mean(list(norms.values()))
        for j, norm in norms.items():
            weight = 1.0 if mean == 0 else min(10.0, np.sqrt(mean / max(norm, 1e-300)))
            np.testing.assert_allclose(found[columns == j, k], weight * usual[columns == j])
    np.testing.assert_allclose(found[columns == -1].T, usual[columns == -1] * np.ones((layout.n_columns, 1)))


@pytest.mark.parametrize("kind", ["dense", "csr", "spline"])
def test_epochs_do_not_depend_on_threads_or_on_other_models(rng, kind):
    objective = make_objective(rng, kind, np.float64, "logistic")
    starts = 0.3 * rng.standard_normal((3, objective.layout.size))

    def fit(starts, threads):
        solvers = [adam(start, n_functions=5, max_iter=3, seed=1, whole_epochs=True) for start in starts]
        return [solution.params for solution in minimise(replace(objective, threads=threads), solvers)]

    together = fit(starts, 1)
    np.testing.assert_array_equal(fit(starts, 2), together)
    np.testing.assert_array_equal([fit([start], 2)[0] for start in starts], together)


@pytest.mark.parametrize("kind", ["dense", "csr", "spline"])
@pytest.mark.parametrize("model", [Layout, AnovaLayout])
def test_threads_share_the_steps_of_larger_minibatches(rng, kind, model):
    """Use more rows and columns than a piece has, so that each number of threads divides them differently."""
    X = rng.standard_normal((1500, 7)).astype(np.float32)
    X[:, 5:] = rng.integers(0, 150, (1500, 2))
    X[rng.random(1500) < 0.1, 1] = np.nan if kind == "spline" else 0
    if kind == "spline":
        basis = learn_splines(X, np.ones(1500), (None,) * 5 + (150, 150), np.dtype(np.float32))
    else:
        basis = fit_basis("standard", moments(X, np.ones(1500)), np.dtype(np.float32))
    rows, y = basis.rows(sparse.csr_array(X) if kind == "csr" else X), rng.standard_normal((1500, 1))
    blocks = [Block(rows[a:b], basis, y[a:b]) for a, b in pairwise([0, 700, 1440, 1500])]
    objective = Objective(BlocksInMemory(blocks), model(basis.width, 3, 4, 1), SQUARED, 1e-3)
    start = (0.1 * rng.standard_normal(objective.layout.size)).astype(np.float32)
    units = rng.uniform(0.5, 2, len(start)).astype(np.float32)
    found = []
    for threads in (1, 2, 3, 5):
        solver = in_units(adam(start, n_functions=3, max_iter=3, seed=1, whole_epochs=True), units)
        found.append(minimise(replace(objective, threads=threads), [solver])[0])
        assert found[-1].value == found[0].value
        np.testing.assert_array_equal(found[-1].params, found[0].params)
    value, _ = objective(found[0].params[None])
    assert found[0].value == pytest.approx(value[0], rel=1e-5)


def test_an_epoch_without_rates_adds_up_the_values(rng):
    objective = make_objective(rng, "spline", np.float64, "squared", sizes=True)
    params = rng.standard_normal(objective.layout.size)
    units = rng.uniform(0.5, 2, len(params))
    none, before = np.empty(0), params.copy()
    request = Epoch(params, params, params, np.arange(5), none, none, np.inf, 0.9, 0.99, 1e-15, 1e-9, units)
    ((value, _, taken),) = objective.epochs([request])
    assert taken == 5
    assert value == pytest.approx(objective((params * units)[None])[0][0])
    np.testing.assert_array_equal(params, before)


def test_an_epoch_ends_where_it_diverges(rng):
    objective = make_objective(rng, "spline", np.float64, "squared")
    start = rng.standard_normal(objective.layout.size)
    (values, _), n_functions = objective(start[None]), 5
    for limit, steps in ((np.inf, 5), (values[0] / 1e6, 0)):
        params, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
        rates = np.full(n_functions, 1e-3)
        request = Epoch(params, mean, square, np.arange(5), rates, np.ones(5), limit, 0.9, 0.99, 1e-15, 1e-9)
        ((_, _, taken),) = objective.epochs([request])
        assert taken == steps
        assert np.array_equal(params, start) == (steps == 0)


@pytest.mark.parametrize("sparsely", [False, True])
def test_an_epoch_ends_where_any_gradient_is_not_finite(rng, sparsely):
    """Only the first of many columns has a gradient above the largest number in float32."""
    X = rng.standard_normal((40, 20_000)).astype(np.float32)
    X *= rng.random(X.shape) < 0.001 if sparsely else 1
    X[:, 0] = 1e30
    basis = fit_basis(None, moments(X, np.ones(len(X))), np.dtype(np.float32))
    y = np.full((len(X), 1), 1e15, dtype=np.float32)
    block = Block(sparse.csr_array(X) if sparsely else X, basis, y)
    objective = Objective(BlocksInMemory([block]), Layout(basis.width, 2, 1, 1), SQUARED, 0.0)
    params = np.full(objective.layout.size, 1e-3, dtype=np.float32)
    objective.layout.factors(params)[0] = 0
    zeros, one = np.zeros_like(params), np.ones(1)
    request = Epoch(
        params, zeros, zeros.copy(), np.arange(1), one, one, np.inf, MOMENTUM, MEMORY, SMALLEST, NEGLIGIBLE
    )
    ((value, largest, taken),) = objective.epochs([request])
    assert np.isfinite(value)
    assert not np.isfinite(largest)
    assert taken == 0


def test_epochs_need_blocks_in_memory(rng, numpy_only):
    assert not make_objective(rng, "dense", np.float64, "squared").takes_epochs
