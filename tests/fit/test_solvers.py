"""Every solver on every problem, through the protocol that they share."""

import numpy as np
import pytest
from scipy.optimize import minimize, rosen, rosen_der

from tensormachines._fit.solvers.lbfgs import lbfgs
from tensormachines._fit.solvers.projected_gradient import projected_gradient
from tensormachines._fit.solvers.protocol import Outcome, minimise


def quadratic(x):
    scales = np.logspace(0, 3, x.shape[1])
    return 0.5 * (scales * (x - 1) ** 2).sum(axis=1), (scales * (x - 1)).astype(x.dtype)


def rosenbrock(x):
    return np.array([rosen(row) for row in x]), np.array([rosen_der(row) for row in x])


def with_a_wall(x):
    """log(x) is not a number beyond the wall at 0, where long steps from 1e-3 lead."""
    with np.errstate(all="ignore"):
        return (x - np.log(x)).sum(axis=1), 1 - 1 / x


def free(x):
    return x.copy()


def lopsided(params):
    """An inverse curvature that is wrong by factors up to 100."""
    return lambda vector: vector * np.resize([0.1, 10], len(vector)).astype(vector.dtype)


def misleading(params):
    return lambda vector: -vector


SOLVERS = {
    "lbfgs": lambda start, **options: lbfgs(start, **options),
    "curvature": lambda start, **options: lbfgs(start, curvature=lopsided, history=20, **options),
    "misled": lambda start, **options: lbfgs(start, curvature=misleading, **options),
    "unknown": lambda start, **options: lbfgs(start, curvature=lambda params: None, **options),
    "projected": lambda start, **options: projected_gradient(start, free, **options),
}
PROBLEMS = {
    "quadratic": (quadratic, np.zeros(20), np.ones(20)),
    "rosenbrock": (rosenbrock, np.array([-1.2, 1.0, -1.2, 1.0]), np.ones(4)),
    "wall": (with_a_wall, np.full(3, 1e-3), np.ones(3)),
}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_reaches_the_minimum(solver, problem):
    objective, start, minimum = PROBLEMS[problem]
    (solution,) = minimise(objective, [SOLVERS[solver](start, max_iter=5000, tol=0)])
    np.testing.assert_allclose(solution.params, minimum, atol=1e-5)
    assert solution.value == pytest.approx(objective(solution.params[None])[0][0])


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_stays_float32(solver):
    (solution,) = minimise(quadratic, [SOLVERS[solver](np.zeros(5, np.float32), max_iter=500, tol=0)])
    assert solution.params.dtype == np.float32
    np.testing.assert_allclose(solution.params, 1, atol=1e-3)


@pytest.mark.parametrize("solver", SOLVERS)
def test_outcomes(solver):
    def run(start, objective=quadratic, watch=lambda number, iterate: False, **options):
        (solution,) = minimise(
            objective, [SOLVERS[solver](start, **{"max_iter": 1000, "tol": 0, **options})], watch
        )
        return solution

    start = np.zeros(20)
    assert run(np.ones(20)).outcome is Outcome.STATIONARY
    assert run(start, max_iter=3).outcome is Outcome.LIMIT
    assert run(start, max_iter=3).n_iter == 3
    assert (
        run(start, objective=lambda x: (quadratic(x)[0] + 1, quadratic(x)[1]), tol=1e-3).outcome
        is Outcome.CONVERGED
    )
    assert run(start, watch=lambda number, iterate: iterate.iteration == 4).outcome is Outcome.STOPPED
    assert run(np.full(3, np.nan)).outcome is Outcome.NOT_FINITE
    assert run(np.full(3, -1.0), objective=with_a_wall).outcome is Outcome.NOT_FINITE


def test_lbfgs_is_no_worse_than_scipy():
    calls = []

    def counted(x):
        calls.append(len(x))
        return rosenbrock(x)

    start = np.tile([-1.2, 1.0], 25)
    (solution,) = minimise(counted, [lbfgs(start, max_iter=1000, tol=0)])
    scipy_calls = minimize(
        rosen, start, jac=rosen_der, method="L-BFGS-B", options={"ftol": 0, "gtol": 1e-8}
    ).nfev
    assert solution.value < 1e-12
    assert len(calls) < 2 * scipy_calls


def test_solvers_share_their_evaluations_and_do_not_disturb_each_other(rng):
    starts = rng.standard_normal((3, 4))
    sizes = []

    def counted(x):
        sizes.append(len(x))
        return rosenbrock(x)

    together = minimise(counted, [lbfgs(start, max_iter=1000, tol=0) for start in starts])
    alone = [minimise(rosenbrock, [lbfgs(start, max_iter=1000, tol=0)])[0] for start in starts]
    assert sizes[0] == 3
    assert len(sizes) == max(solution.n_evaluations for solution in alone)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one.params, other.params)


def test_projected_gradient_solves_the_constrained_problem(rng):
    """Least squares over a ball, against the solution by the Lagrange multiplier."""
    A, b, radius = rng.standard_normal((30, 6)), rng.standard_normal(30) * 5, 0.7

    def objective(x):
        residual = x @ A.T - b
        return 0.5 * (residual**2).sum(axis=1), residual @ A

    def ball(x):
        return x * min(1.0, radius / max(np.linalg.norm(x), 1e-300))

    (solution,) = minimise(objective, [projected_gradient(np.ones(6), ball, max_iter=2000, tol=0)])
    low, high = 0.0, 1e6
    for _ in range(200):
        multiplier = (low + high) / 2
        x = np.linalg.solve(A.T @ A + multiplier * np.eye(6), A.T @ b)
        low, high = (multiplier, high) if np.linalg.norm(x) > radius else (low, multiplier)
    assert np.linalg.norm(solution.params) == pytest.approx(radius, rel=1e-9)
    np.testing.assert_allclose(solution.params, x, rtol=1e-5, atol=1e-7)


def test_the_right_curvature_needs_one_step():
    scales = np.logspace(0, 3, 20)
    solver = lbfgs(np.zeros(20), max_iter=50, tol=0, curvature=lambda params: lambda vector: vector / scales)
    (solution,) = minimise(quadratic, [solver])
    assert solution.n_evaluations <= 3
    np.testing.assert_allclose(solution.params, 1, rtol=1e-12)


def test_the_curvature_is_computed_ever_more_rarely():
    places = []

    def counted(params):
        places.append(params)

    minimise(rosenbrock, [lbfgs(np.tile([-1.2, 1.0], 25), max_iter=71, tol=0, curvature=counted)])
    assert len(places) == 4  # after 0, 10, 30, 70 iterations
