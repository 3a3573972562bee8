"""Facts about the training rows that a fitted model keeps: mean outputs, the parts that columns contribute to
them, the importance of columns, and the losses of the fit.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._fit.problem import Problem
from .._fit.solvers.protocol import Curves
from .._model import kernel
from .._model.block import Block
from .._model.layout import AnovaLayout, Layout
from .._model.mean_parts import at_mean, knows_mean, mean_parts, outputs_at
from .._model.total_effects import shares, total_effects

MOST_ENTRIES = 1 << 18  # projections that are computed for importances: less than a hundredth of a second
MOST_ENTRIES_FOR_PARTS = 1 << 20  # the same for mean parts: two hundredths
TRAINING_FACTS = (  # after `fit`, not after `partial_fit`
    "_mean_outputs",
    "_mean_parts",
    "_importances",
    "_relevance",
    "solver_",
    "loss_curve_",
    "validation_loss_curve_",
)


def training_facts(problem: Problem, params: np.ndarray, threads: int) -> dict[str, Any]:
    """Return ``_mean_outputs`` (n_outputs,), ``_mean_parts`` (n_outputs, n_columns) and ``_importances``
    (n_columns,), given the params of a solver.

    The mean outputs are weighted means over all training rows; the others come from a sample of these rows.
    The mean parts are relative to the mean row; there are none if the basis does not know the mean row."""
    problem, params = problem.with_trend(params.astype(problem.dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        sums, weight = problem.blocks.total(
            partial(output_sums, layout=problem.layout, params=params, threads=threads)
        )
        effects, _ = problem.sample.total(
            partial(total_effects, layout=problem.layout, params=params, most_entries=MOST_ENTRIES)
        )
        means = sums / weight
        parts = _mean_parts(problem, params, means)
    n_columns = problem.basis.n_columns  # without the column of the norm
    return {
        "_mean_outputs": problem.center + problem.deviation * means,
        "_importances": shares(shares(effects[:, :n_columns]).sum(axis=0)),
    } | ({} if parts is None else {"_mean_parts": np.reshape(problem.deviation, (-1, 1)) * parts})


def loss_curves(curves: Curves) -> dict[str, np.ndarray]:
    """Return ``loss_curve_`` and, if rows were held out, ``validation_loss_curve_``."""
    learnt = {"loss_curve_": np.array(curves.values)}
    return learnt | ({"validation_loss_curve_": np.array(curves.held_out)} if curves.held_out else {})


def _mean_parts(problem: Problem, params: np.ndarray, means: np.ndarray) -> np.ndarray | None:
    """Return the parts (n_outputs, n_columns) that columns contribute to the difference between the mean
    outputs and the outputs at the mean row; None if the basis does not know the mean row.

    The parts come from a sample of the rows; the rest of each difference is distributed in proportion to
    their sizes.
    """
    layout, basis = problem.layout, problem.basis
    if isinstance(layout, AnovaLayout) or not knows_mean(basis):
        return None
    center, params = at_mean(basis), params.astype(np.float64)
    sums, weight = problem.sample.total(
        partial(mean_parts, layout=layout, params=params, center=center, most_entries=MOST_ENTRIES_FOR_PARTS)
    )
    parts = sums / weight
    left = means - outputs_at(center, layout, params) - parts.sum(axis=1)
    return parts + shares(np.abs(parts)) * left[:, None]


def output_sums(
    block: Block, layout: Layout, params: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, float]:
    """Return the weighted sums over the rows of a block of the outputs, (n_outputs,), and of the weights."""
    outputs = kernel.outputs(block, layout, params[None], threads).astype(np.float64)
    weight = block.row_weights
    present = weight > 0  # other rows may overflow
    return weight[present] @ outputs[present], float(weight.sum())
