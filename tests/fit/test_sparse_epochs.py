"""Epochs of Adam on CSR rows, where each minibatch has few of the columns."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from losses import LOSSES, make_targets
from tensormachines import TensorMachineClassifier
from tensormachines._fit.solvers.adam import MEMORY, MOMENTUM, NEGLIGIBLE, SMALLEST
from tensormachines._fit.solvers.protocol import Epoch
from tensormachines._model import kernel
from tensormachines._model.basis import fit_basis
from tensormachines._model.block import Block, BlocksInMemory
from tensormachines._model.layout import Layout
from tensormachines._model.moments import moments
from tensormachines._model.objective import Objective

BORDERS = [0, 40, 95, 130, 180, 181]
N_COLUMNS = 3000


def rows_of_few_columns(rng, n_rows=BORDERS[-1], n_columns=N_COLUMNS, dtype=np.float64):
    """Four entries in each row: the first column, and three others, some of which are in many rows."""
    columns = (n_columns ** rng.random((n_rows, 3))).astype(int)
    indices = np.column_stack([np.zeros(n_rows, dtype=int), columns]).ravel()
    X = sparse.csr_array((rng.uniform(1, 2, indices.size), indices, 4 * np.arange(n_rows + 1)))
    X.resize(n_rows, n_columns)
    X.sum_duplicates()
    return X.astype(dtype)


def sparse_objective(rng, loss="logistic", basis=None, dtype=np.float64, sizes=False, index=np.int32):
    loss, outputs = LOSSES[loss]
    X = rows_of_few_columns(rng, dtype=dtype)
    X.indptr, X.indices = X.indptr.astype(index), X.indices.astype(index)
    weight = rng.random(X.shape[0])
    fitted = fit_basis(basis, moments(X, weight), np.dtype(dtype))
    if basis is not None:  # as if the other columns were rare
        fitted = replace(fitted, shift=np.where(np.arange(N_COLUMNS) < 5, fitted.shift, 0).astype(dtype))
    y = make_targets(rng, loss, X.shape[0], outputs)
    blocks = [Block(X[a:b], fitted, y[a:b], weight[a:b]) for a, b in pairwise(BORDERS)]
    layout = Layout(fitted.width, 3, 2, outputs, shared=outputs > 1)
    expected = rng.uniform(0.5, 2, fitted.width) if sizes else None
    return Objective(BlocksInMemory(blocks), layout, loss, 1e-2, 1, expected)


def request_of(rng, objective, dtype=np.float64, units=False):
    """Twelve steps, some of them along the same block."""
    params = (0.3 * rng.standard_normal(objective.layout.size)).astype(dtype)
    steps = np.arange(1, 13)
    return Epoch(
        params,
        mean=np.zeros_like(params),
        square=np.zeros_like(params),
        order=np.array([0, 3, 1, 0, 4, 2, 2, 1, 0, 3, 4, 2]),
        rates=0.02 / (1 - MOMENTUM**steps),
        corrections=1 / (1 - MEMORY**steps),
        limit=np.inf,
        momentum=MOMENTUM,
        memory=MEMORY,
        smallest=SMALLEST,
        negligible=NEGLIGIBLE,
        units=rng.uniform(0.5, 2, params.size).astype(dtype) if units else None,
    )


def slow_epoch(objective, request):
    """Step by step and column by column; return the params and the sum of the values with their penalty."""
    layout, blocks = objective.layout, objective.blocks.blocks
    params, mean, square = request.params.copy(), request.mean.copy(), request.square.copy()
    units = np.ones_like(params) if request.units is None else request.units
    strength = np.ones_like(params)
    if objective.sizes is not None:
        layout.factors(strength)[...] = (1 / objective.sizes**2)[:, None]
    strength[: layout.n_outputs] = 0  # no penalty on biases
    total_weight = objective.blocks.weights.sum()
    moves = request.rates / np.sqrt(request.corrections)
    penalties = objective.alpha * objective.blocks.weights[request.order] / total_weight
    last = np.zeros(params.size, dtype=int)  # steps that each of the params has taken
    total = 0.0
    for step, number in enumerate([*request.order, None]):
        of_columns = np.zeros((layout.n_features, 1), dtype=bool)
        if number is None:
            of_columns[:] = True
        else:
            rows = blocks[number].basis.lift(blocks[number].X)
            of_columns[np.unique(rows.matrix.indices)] = True
            if rows.zero_row is not None:
                of_columns[rows.zero_row != 0] = True
        chosen = np.ones(params.size)
        layout.factors(chosen)[...] = of_columns
        for i in np.flatnonzero(chosen):
            passed = slice(last[i], step)
            pull = (moves[passed] * penalties[passed]).sum() * strength[i] * units[i] ** 2
            if square[i] > 0:
                params[i] /= 1 + pull / np.sqrt(square[i])
            elif pull > 0:
                most = moves[passed].sum()
                params[i] -= np.clip(params[i], -most, most)
            last[i] = step + 1
        if number is None:
            return params, total
        point = params * units
        value, (gradient,) = kernel.value_and_gradient(
            blocks[number], layout, point[None], objective.loss, threads=1
        )
        total += value[0] / total_weight + 0.5 * penalties[step] * (strength * point**2).sum()
        slopes = units * (gradient / total_weight + penalties[step] * strength * point)
        i = np.flatnonzero(chosen)
        mean[i] += (1 - MOMENTUM) * (slopes[i] - mean[i])
        square[i] += (1 - MEMORY) * (slopes[i] ** 2 - square[i])
        correction = request.corrections[step]
        params[i] -= request.rates[step] * mean[i] / (np.sqrt(square[i] * correction) + SMALLEST)
    raise AssertionError


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
@pytest.mark.parametrize("basis", [None, "scaled"])
@pytest.mark.parametrize("scaled", [False, True])
def test_steps_move_the_columns_of_their_rows(rng, loss, basis, scaled):
    objective = sparse_objective(rng, loss, basis, sizes=scaled)
    request = request_of(rng, objective, units=scaled)
    expected, total = slow_epoch(objective, request)
    ((value, largest, taken),) = objective.epochs([request])
    assert taken == len(request.order)
    np.testing.assert_allclose(request.params, expected, rtol=1e-9, atol=1e-12)
    assert np.isfinite(largest)
    assert value == pytest.approx(total, rel=1e-9)


def test_the_penalty_is_a_part_of_the_value(rng):
    objective = sparse_objective(rng)
    request = request_of(rng, objective)
    still = replace(request, rates=np.zeros_like(request.rates))
    penalty = np.sum(request.params[1:] ** 2)
    ((with_penalty, _, _),) = objective.epochs([still])
    ((without, _, _),) = replace(objective, alpha=0.0).epochs([still])
    shares = objective.blocks.weights[request.order].sum() / objective.blocks.weights.sum()
    assert with_penalty - without == pytest.approx(0.5 * objective.alpha * shares * penalty)


def test_an_epoch_without_rates_adds_up_the_values(rng):
    objective = sparse_objective(rng, basis="scaled")
    request = request_of(rng, objective)
    still = replace(request, order=np.arange(5), rates=np.empty(0), corrections=np.empty(0))
    ((value, _, _),) = objective.epochs([still])
    assert value == pytest.approx(objective(request.params[None])[0][0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neither_threads_nor_types_of_indices_change_a_bit(rng, dtype):
    seed = int(rng.integers(2**31))
    found = []
    for threads, index in ((1, np.int32), (2, np.int32), (3, np.int64)):
        own = np.random.default_rng(seed)
        objective = replace(sparse_objective(own, dtype=dtype, index=index), threads=threads)
        request = request_of(own, objective, dtype)
        found.append((objective.epochs([request]), request.params))
        assert found[-1][0] == found[0][0]
        np.testing.assert_array_equal(found[-1][1], found[0][1])


@pytest.mark.parametrize(("limit", "rate"), [(1e-9, 0.01), (np.inf, 1e300)])
def test_an_epoch_ends_where_it_diverges(rng, limit, rate):
    objective = sparse_objective(rng, "squared")
    request = request_of(rng, objective)
    request = replace(request, limit=limit, rates=np.full(12, rate))
    ((_, _, taken),) = objective.epochs([request])
    assert taken < 12


def test_columns_without_rows_end_at_zero(rng):
    X = rows_of_few_columns(rng, 4000, 30_000)
    y = np.asarray(X[:, [1]].todense())[:, 0] > 0
    model = TensorMachineClassifier(degree=2, rank=2, max_iter=10, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    absent = np.setdiff1d(np.arange(X.shape[1]), X.indices)
    assert len(absent) > 10_000
    machine = model._machine
    assert not machine.layout.factors(machine.params)[absent].any()
