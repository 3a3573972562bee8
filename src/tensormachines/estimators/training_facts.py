"""Facts about the training rows that a fitted model keeps: mean outputs, and the importance of columns."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .._fit.problem import Problem
from .._model import kernel
from .._model.block import Block
from .._model.layout import Layout
from .._model.total_effects import shares, total_effects

MOST_ENTRIES = 1 << 18  # projections that are computed for importances: less than a hundredth of a second
TRAINING_FACTS = ("_mean_outputs", "_importances")  # after `fit`, not after `partial_fit`


def training_facts(problem: Problem, params: np.ndarray, threads: int) -> dict[str, Any]:
    """Return ``_mean_outputs`` (n_outputs,) and ``_importances`` (n_columns,) of the params of a solver.

    The mean is over all training rows, by weight; the importances are from a sample of them."""
    problem, params = problem.with_trend(params.astype(problem.dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        sums, weight = problem.blocks.total(
            partial(output_sums, layout=problem.layout, params=params, threads=threads)
        )
        effects, _ = problem.sample.total(
            partial(total_effects, layout=problem.layout, params=params, most_entries=MOST_ENTRIES)
        )
    n_columns = problem.basis.n_columns  # without that of the norm
    return {
        "_mean_outputs": problem.center + problem.deviation * sums / weight,
        "_importances": shares(shares(effects[:, :n_columns]).sum(axis=0)),
    }


def output_sums(
    block: Block, layout: Layout, params: np.ndarray, threads: int = 1
) -> tuple[np.ndarray, float]:
    """Return the weighted sums over the rows of a block of the outputs, (n_outputs,), and of the weights."""
    outputs = kernel.outputs(block, layout, params[None], threads).astype(np.float64)
    weight = np.ones(block.n_rows) if block.weight is None else block.weight.astype(np.float64)
    present = weight > 0  # other rows may overflow
    return weight[present] @ outputs[present], float(weight.sum())
