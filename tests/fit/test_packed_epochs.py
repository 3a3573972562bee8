"""Epochs of Adam on packed rows, of which each thread has some columns of the factors."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from losses import LOSSES, make_targets
from tensormachines._fit.solvers.adam import adam
from tensormachines._fit.solvers.protocol import Epoch, in_units, minimise
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import Layout
from tensormachines._model.objective import Objective
from tensormachines._model.spline_learning import learn_splines

BORDERS = [0, 700, 3200, 3260]  # the second has more pieces of rows than are added up in float32


def packed_objective(rng, loss="squared", rank=4, shared=False, sizes=False):
    """An objective over three minibatches of columns of every kind; with a high rank, threads share it."""
    loss, outputs = LOSSES[loss]
    n_rows = BORDERS[-1]
    X = rng.standard_normal((n_rows, 7)).astype(np.float32)
    X[:, 4] *= rng.random(n_rows) < 0.3
    X[:, 5] = rng.integers(0, 50, n_rows)
    X[:, 6] = rng.integers(0, 900, n_rows)  # of which only the levels of the rows at hand are added up
    X[rng.random(n_rows) < 0.1, 1] = np.nan
    weight = rng.random(n_rows).astype(np.float32)
    basis = learn_splines(X, weight.astype(float), (None,) * 5 + (50, 900), np.dtype(np.float32))
    y = make_targets(rng, loss, n_rows, outputs)
    blocks = [
        Block(basis.rows(X[a:b], packed=True), basis, y[a:b], weight[a:b]) for a, b in pairwise(BORDERS)
    ]
    layout = Layout(basis.width, 3, rank, outputs, shared and outputs > 1)
    expected = rng.uniform(0.5, 2, basis.width) if sizes else None
    return Objective(BlocksInMemory(blocks), layout, loss, 1e-2, 1, expected)


def start_of(rng, objective):
    return (0.1 * rng.standard_normal(objective.layout.size)).astype(np.float32)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("scaled", [False, True])
def test_an_epoch_at_once_is_its_steps(rng, loss, shared, scaled):
    objective = packed_objective(rng, loss, shared=shared, sizes=scaled)
    start = start_of(rng, objective)
    units = rng.uniform(0.5, 2, len(start)).astype(np.float32)
    found = []
    for whole_epochs in (True, False):
        solver = adam(start, n_functions=3, max_iter=3, seed=1, whole_epochs=whole_epochs)
        found.append(minimise(objective, [in_units(solver, units) if scaled else solver])[0])
    assert found[0].n_evaluations == found[1].n_evaluations
    assert found[0].value == pytest.approx(found[1].value, rel=2e-3)
    np.testing.assert_allclose(found[0].params, found[1].params, rtol=5e-3, atol=5e-3)


@pytest.mark.parametrize("shared", [False, True])
def test_threads_change_no_bit(rng, shared):
    objective = packed_objective(rng, "multinomial", rank=30, shared=shared, sizes=True)
    start = start_of(rng, objective)
    units = rng.uniform(0.5, 2, len(start)).astype(np.float32)
    found = []
    for threads in (1, 2, 3, 5):
        solver = in_units(adam(start, n_functions=3, max_iter=2, seed=1, whole_epochs=True), units)
        found.append(minimise(replace(objective, threads=threads), [solver])[0])
        assert found[-1].value == found[0].value
        np.testing.assert_array_equal(found[-1].params, found[0].params)
    value, _ = objective(found[0].params[None])
    assert found[0].value == pytest.approx(value[0], rel=1e-5)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_an_epoch_ends_where_it_diverges(rng, threads):
    objective = replace(packed_objective(rng, rank=40), threads=threads)
    start = start_of(rng, objective)
    values, _ = objective(start[None])
    # The second rate overflows, which the penalty after this step tells, or the value of the next block.
    for limit, rates, steps in (
        (np.inf, (1e-3, 1e-3, 1e-3), 3),
        (values[0] / 1e6, (1e-3, 1e-3, 1e-3), 0),
        (np.inf, (1e-3, 1e38, 1e-3), 2),
    ):
        params, mean, square = start.copy(), np.zeros_like(start), np.zeros_like(start)
        limits = limit, 0.9, 0.99, 1e-15, 1e-9
        request = Epoch(params, mean, square, np.arange(3), np.array(rates), np.ones(3), *limits)
        ((total, _, taken),) = objective.epochs([request])
        assert taken == steps
        assert np.isfinite(total) == (steps != 2)
