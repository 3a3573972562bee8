"""The Gauss-Newton matrix against finite differences, and the last stretch to targets without noise."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from reference import learn_basis
from targets import teacher
from tensormachines import TensorMachineRegressor
from tensormachines._fit import polish as polish_module
from tensormachines._fit import settings
from tensormachines._fit.polish import gauss_newton, nearly_exact
from tensormachines._fit.solvers import levenberg_marquardt as solver_module
from tensormachines._fit.solvers.levenberg_marquardt import levenberg_marquardt
from tensormachines._fit.solvers.protocol import Outcome, Solution, minimise
from tensormachines._model import kernel
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.losses import LOGISTIC, SQUARED
from tensormachines._model.objective import Objective
from tensormachines.peers import FactorizationMachineRegressor

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")

SETTINGS = {
    "degree": 3,
    "rank": 2,
    "basis": None,
    "alpha": 0,
    "solver": "kfac",
    "max_iter": 60,
    "random_state": 0,
}


def small_objective(rng, form=np.asarray, basis=None, weighted=False, alpha=0.0, sized=False):
    X = rng.standard_normal((40, 3))
    X[4], X[:, 2] = 0, 0
    weight = rng.integers(0, 3, 40).astype(float) if weighted else None
    basis = learn_basis(basis, X, weight)
    y = rng.standard_normal((40, 1))
    parts = [slice(0, 15), slice(15, 40)]
    blocks = [
        Block(form(X[part]), basis, y[part], None if weight is None else weight[part]) for part in parts
    ]
    layout = Layout(basis.width, degree=3, rank=2)
    return Objective(
        BlocksInMemory(blocks),
        layout,
        SQUARED,
        alpha,
        sizes=np.arange(1.0, basis.width + 1) if sized else None,
    )


def derivatives_by_differences(objective, params, step=1e-6):
    def outputs(at):
        return np.concatenate(
            [kernel.outputs(block, objective.layout, at[None], 1) for block in objective.blocks.blocks]
        )[:, 0]

    return np.stack(
        [
            (outputs(params + move) - outputs(params - move)) / (2 * step)
            for move in step * np.eye(len(params))
        ],
        axis=1,
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("basis", [None, "standard", "sphere"])
@pytest.mark.parametrize(
    ("weighted", "alpha", "sized"),
    [(False, 0.0, False), (True, 0.0, False), (True, 0.3, False), (True, 0.3, True)],
)
def test_matrix_is_that_of_finite_differences(rng, form, basis, weighted, alpha, sized):
    objective = small_objective(rng, form, basis, weighted, alpha, sized)
    params = rng.standard_normal(objective.layout.size)
    J = derivatives_by_differences(objective, params)
    blocks = objective.blocks.blocks
    weight = np.concatenate(
        [np.ones(block.n_rows) if block.weight is None else block.weight for block in blocks]
    )
    residuals = np.concatenate(
        [kernel.outputs(block, objective.layout, params[None], 1) - block.y for block in blocks]
    )[:, 0]
    strength = np.zeros(len(params))
    objective.layout.factors(strength)[...] = (
        alpha / (np.ones(objective.layout.n_features) if not sized else objective.sizes)[:, None] ** 2
    )
    exact = (J * weight[:, None]).T @ J / weight.sum() + np.diag(strength)
    np.testing.assert_allclose(
        np.tril(gauss_newton(objective, params, 7 * len(params))),
        np.tril(exact),
        atol=1e-6 * np.abs(exact).max(),
    )
    gradient = J.T @ (weight * residuals) / weight.sum() + strength * params
    np.testing.assert_allclose(objective(params[None])[1][0], gradient, atol=1e-6 * np.abs(gradient).max())


def test_rows_without_weight_may_overflow(rng):
    objective = small_objective(rng, weighted=True)
    params = rng.standard_normal(objective.layout.size)
    before = gauss_newton(objective, params)
    for block in objective.blocks.blocks:
        block.X[block.weight == 0] = 1e200
    np.testing.assert_array_equal(gauss_newton(objective, params), before)


def test_one_step_solves_a_linear_problem(rng):
    X, alpha = rng.standard_normal((50, 4)), 0.1
    y = X @ rng.standard_normal((4, 1)) + 2
    layout = Layout(4, degree=1, rank=1)
    objective = Objective(BlocksInMemory([Block(X, learn_basis(None, X, None), y)]), layout, SQUARED, alpha)
    start = Solution(np.zeros(layout.size), float(objective(np.zeros((1, 5)))[0][0]), 7, 9, Outcome.LIMIT)
    (solution,) = minimise(
        objective, [levenberg_marquardt(start, lambda params: gauss_newton(objective, params))]
    )
    design = np.hstack([np.ones((50, 1)), X])
    exact = np.linalg.solve(design.T @ design / 50 + np.diag([0, *[alpha] * 4]), design.T @ y[:, 0] / 50)
    np.testing.assert_allclose(solution.params, exact, rtol=1e-8)
    assert solution.outcome in (Outcome.CONVERGED, Outcome.PRECISION)
    assert solution.n_iter > 7
    assert solution.n_evaluations > 9


def fit(X, y, weight=None, **settings):
    return TensorMachineRegressor(**{**SETTINGS, **settings}).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_target_without_noise_is_fitted_to_all_its_digits(rng, monkeypatch, weighted, form):
    X, y = teacher(rng, 3000)
    new, truth = teacher(rng, 500)
    weight = rng.integers(0, 3, 3000) if weighted else None
    if weighted:
        y[weight == 0] = 1e3
    model = fit(form(X), y, weight)
    monkeypatch.setattr(polish_module, "MOST_PARAMETERS", 0)
    before = fit(form(X), y, weight)
    assert model.objective_ < 1e-6 * before.objective_ < 1e-6 * polish_module.NEARLY_EXACT
    assert before.n_iter_ < model.n_iter_ <= before.n_iter_ + solver_module.MOST_STEPS
    np.testing.assert_allclose(model.predict(new), truth, atol=1e-6 * truth.std())


@pytest.fixture
def forbidden(monkeypatch):
    def fail(*arguments):
        raise AssertionError("Levenberg-Marquardt was not to run")

    monkeypatch.setattr(polish_module, "levenberg_marquardt", fail)


@pytest.mark.usefixtures("forbidden")
def test_it_is_skipped_where_it_does_not_serve(rng):
    X, y = teacher(rng, 3000)
    noisy = y + 0.1 * y.std() * rng.standard_normal(3000)
    fit(X, noisy)
    fit(X, y, alpha=1e-6)  # the penalty is most of the objective
    fit(X, y, solver="lbfgs", max_iter=1000)
    fit(X, np.stack([y, -y], axis=1))
    fit(X.astype(np.float32), y)
    fit(X, y, max_norm=100.0)
    fit(X, np.ones(3000))
    FactorizationMachineRegressor(degree=2, rank=2, basis=None, alpha=0, solver="kfac", random_state=0).fit(
        X, X[:, 0] * X[:, 1]
    )
    with pytest.raises(AssertionError, match="not to run"):
        fit(X, y)


def test_what_it_asks_of_a_solution(rng, monkeypatch):
    objective = small_objective(rng)
    params = rng.standard_normal(objective.layout.size)
    blocks = [
        replace(block, y=kernel.outputs(block, objective.layout, params[None], 1) + 0.005)
        for block in objective.blocks.blocks
    ]
    objective = replace(objective, blocks=BlocksInMemory(blocks))
    solution = Solution(params, float(objective(params[None])[0][0]), 1, 1, Outcome.CONVERGED)
    assert nearly_exact(solution, objective)
    assert nearly_exact(replace(solution, outcome=Outcome.LIMIT), objective)
    for other in (
        {"value": 1e-3},
        {"value": 0.0},
        {"value": np.nan},
        {"outcome": Outcome.STOPPED},
        {"params": params.astype(np.float32)},
    ):
        assert not nearly_exact(replace(solution, **other), objective)
    for layout in (Layout(3, 3, 2, n_outputs=2), AnovaLayout(3, 3, 2), Layout(1000, 3, 2)):
        assert not nearly_exact(solution, replace(objective, layout=layout))
    assert not nearly_exact(solution, replace(objective, loss=LOGISTIC))
    monkeypatch.setattr(polish_module, "MOST_PRODUCTS", 39 * objective.layout.size**2)
    assert not nearly_exact(solution, objective)


def test_it_ends_with_the_time_of_a_search(rng, monkeypatch):
    X, y = teacher(rng, 3000)
    for module in (polish_module, solver_module):
        monkeypatch.setattr(module, "EXACT", 0.0)
    steps = []

    def counted(objective, params):
        steps.append(params)
        return gauss_newton(objective, params)

    monkeypatch.setattr(polish_module, "gauss_newton", counted)
    monkeypatch.setattr(settings.Deadline, "watch", lambda self, solver, iterate: len(steps) >= 2)
    fit(X, y)
    assert len(steps) == 2


def test_a_checkpoint_of_a_polished_fit_gives_the_same_fit(rng, tmp_path):
    X, y = teacher(rng, 3000)
    first = fit(X, y, checkpoint=tmp_path / "fit.npz")
    again = fit(X, y, checkpoint=tmp_path / "fit.npz")
    assert again.n_iter_ == first.n_iter_
    assert again.objective_ == first.objective_ < 1e-10
