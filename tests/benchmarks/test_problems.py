"""The problems that benchmarks of solvers pose by hand: they use the package's private names."""

import numpy as np
import pytest

from problems import Counted, generated, in_memory, pose, start


def test_a_problem_is_posed_as_a_solver_sees_it():
    problem = pose(in_memory(generated(60, 4, classes=True)), 2, degree=3, rank=2, parts=lambda n_rows: 3)
    objective = Counted(problem.objective(1e-3, 1))
    params = start(problem)[None]
    value, _ = objective(params)
    parts = sum(objective.partial(params, part)[0] for part in range(3))
    assert (problem.layout.degree, problem.layout.rank) == (3, 2)
    np.testing.assert_allclose(parts, value, rtol=1e-5)
    assert objective.passes == pytest.approx(2)
