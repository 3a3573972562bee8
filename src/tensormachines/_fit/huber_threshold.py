"""The threshold of Huber's loss, from the residuals of a short fit.

A threshold in the units of the target would be far above the noise of a model that explains most of y, and
outliers would count much more than other rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from .._model import kernel
from .._model.block import Block
from .._model.layout import Layout
from .._model.losses import ABSOLUTE, HUBER, huber
from .problem import Problem
from .settings import Settings
from .solver_table import make_solver
from .solvers.protocol import minimise
from .target_units import weighted_quantiles

EPOCHS, ITERATIONS = 10, 50  # of a short fit by Adam, and by the other solvers
MEDIAN_OF_NORMAL = 0.6745  # of the absolute value of a standard normal number
SMALLEST = 0.02  # deviation of the noise, in units of the target


@dataclass(frozen=True)
class Residuals:
    """Absolute residuals and weights of rows; adding two concatenates them."""

    sizes: np.ndarray
    weights: np.ndarray

    def __add__(self, other: Residuals) -> Residuals:
        both = zip((self.sizes, self.weights), (other.sizes, other.weights), strict=True)
        return Residuals(*(np.concatenate(pair) for pair in both))


def find_threshold(problem: Problem, settings: Settings, random_state: np.random.RandomState) -> Problem:
    """Return the problem with a threshold of 1.35 deviations of the noise, if its loss is Huber's.

    The deviation is the median absolute residual of a short fit of the median, divided by 0.6745; at most the
    deviation of the target, and at least a fiftieth of it."""
    if problem.loss.name != "huber":
        return problem
    most = EPOCHS if settings.solver == "adam" else ITERATIONS
    short = replace(settings, max_iter=min(most, settings.max_iter), init="random", early_stopping=False)
    medians = replace(problem, loss=ABSOLUTE)
    objective = medians.objective(short.penalty(medians), short.threads(problem.n_rows))
    start = medians.random_start(short.init_scale, random_state)
    solver = make_solver(start, medians, objective, short, random_state)()
    params = minimise(objective, [solver], short.deadline.watch)[0].params
    (found,) = problem.sample.total(partial(_residuals, layout=problem.layout, params=params[None]))
    (median,) = weighted_quantiles(found.sizes, found.weights, [0.5])
    deviation = float(np.clip(median / MEDIAN_OF_NORMAL, SMALLEST, 1.0))
    return replace(problem, loss=huber(HUBER * deviation))


def _residuals(block: Block, layout: Layout, params: np.ndarray) -> tuple[Residuals]:
    weight = block.row_weights
    present = weight > 0  # other rows may overflow
    sizes = np.abs(block.targets - kernel.outputs(block, layout, params))[present]
    return (Residuals(sizes.astype(np.float64).ravel(), np.repeat(weight[present], layout.n_outputs)),)
