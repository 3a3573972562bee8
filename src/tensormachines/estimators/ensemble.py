"""A weighted mean of candidates of a search, chosen by their outputs on held-out rows.

Caruana et al., "Ensemble selection from libraries of models" (2004): candidates are added one at a time, with
repetition, each time the one that lowers the loss of the mean most. A weighted sum of Tensor Machines in one
basis is a Tensor Machine, so the result is one model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar

from .._model.layout import weighted_sum
from .._model.machine import Machine
from .halving import NO_TIME, Budget, Report, Trial
from .polynomial_model import PolynomialModel

ROUNDS = 12
MOST_DISTINCT = 4
BEST = 24  # candidates that are considered
LEAST_GAIN = 1e-4  # relative amount by which a round must lower the loss
SCALES = -np.log(1.5), np.log(1.5)  # bounds: without errors on a few rows, the scale would have no limit

Outputs = Sequence[np.ndarray]  # of one candidate, one array per split
Loss = Callable[[Outputs], float]


def members_of(
    trials: Sequence[Trial], best: int, candidates: Sequence[Mapping[str, Any]], loss: Loss
) -> tuple[dict[int, float], Outputs]:
    """Return the weights of the candidates to average, the leader first, and their mean outputs on held-out
    rows.

    Candidates are chosen by their loss on these rows. All have the basis of the leader, whose trial is
    ``best``."""
    leader = trials[best].candidate
    usable = [
        trial
        for trial in trials
        if trial.outputs
        and trial.score > -math.inf
        and all(candidates[trial.candidate][name] == candidates[leader][name] for name in ("basis", "trend"))
    ]
    if not usable:
        return {leader: 1.0}, trials[best].outputs
    outputs = {trial.candidate: trial.outputs for trial in usable}
    weights = choose(outputs, {trial.candidate: trial.score for trial in usable}, leader, loss)
    return weights, mean_outputs(outputs, weights)


def choose(
    outputs: Mapping[int, Outputs], scores: Mapping[int, float], first: int, loss: Loss
) -> dict[int, float]:
    """Return the weights of the candidates in the mean, starting from the candidate ``first``."""
    best = sorted(outputs, key=lambda candidate: -scores[candidate])[:BEST]
    counts = {first: 1}
    total = list(outputs[first])
    lowest = loss(total)
    for rounds in range(1, ROUNDS):
        allowed = best if len(counts) < MOST_DISTINCT else list(counts)
        sums = {k: [a + b for a, b in zip(total, outputs[k], strict=True)] for k in allowed}
        losses = {k: loss([each / (rounds + 1) for each in of_sum]) for k, of_sum in sums.items()}
        added = min(losses, key=losses.__getitem__)
        if not losses[added] < lowest - LEAST_GAIN * abs(lowest):
            break
        total, lowest = sums[added], losses[added]
        counts[added] = counts.get(added, 0) + 1
    return {candidate: count / sum(counts.values()) for candidate, count in counts.items()}


def mean_outputs(outputs: Mapping[int, Outputs], weights: Mapping[int, float]) -> list[np.ndarray]:
    """Return the weighted mean of the outputs of candidates, split by split."""
    each = [[weight * of_split for of_split in outputs[k]] for k, weight in weights.items()]
    return [np.sum(of_split, axis=0) for of_split in zip(*each, strict=True)]


def best_scale(outputs: Outputs, loss: Loss) -> float:
    """Return the factor that calibrates the outputs: the inverse of their temperature.

    The logarithm of the factor is rounded, because further digits depend on the rounding of the outputs."""
    found = minimize_scalar(
        lambda logarithm: loss([np.exp(logarithm) * each for each in outputs]),
        bounds=SCALES,
        method="bounded",
    )
    return float(np.exp(np.round(found.x, 3)))


def refit(
    estimators: Mapping[int, PolynomialModel],
    rows: Any,
    n_members: int,
    budget: Budget,
    report: Report,
    verbose: int = 0,
) -> tuple[dict[int, PolynomialModel], list[str]]:
    """Fit candidates to all rows (X, y, weight), the leader first and then as many as there is time for.

    Together they have about ``n_members`` members. Return the fitted candidates, and warnings."""
    models: dict[int, PolynomialModel] = {}
    messages: list[str] = []
    for candidate, model in estimators.items():
        left = budget.fits_left(candidate, n_members)
        if models and not left:
            others = f"{len(estimators) - len(models)} of the {len(estimators)} candidates of the mean"
            report(f"{NO_TIME} {others}", kept=True)
            break
        report(f"fit {len(models) + 1} of {len(estimators)} to all rows")
        members = min(math.ceil(n_members / len(estimators)), max(1, left))
        model.set_params(n_members=members, verbose=verbose)
        X, y, weight = rows
        messages += model._fit(X, y, weight, budget.refit_deadline(candidate))
        models[candidate] = model
    return models, messages


def joined(
    models: Mapping[int, PolynomialModel],
    weights: Mapping[int, float],
    scale: float,
    candidates: Sequence[Mapping[str, Any]],
) -> tuple[PolynomialModel, list[dict[str, Any]]]:
    """Return the weighted mean of fitted candidates, the leader first, times ``scale``, and the settings of
    each, as fitted, with its weight. Some candidates may be missing for lack of time."""
    share = sum(weights[candidate] for candidate in models)
    scaled = {candidate: scale * weights[candidate] / share for candidate in models}
    first, *_ = fitted = list(models.values())
    join(first, fitted, list(scaled.values()))
    members = [{**candidates[k], "alpha": models[k].alpha, "weight": weight} for k, weight in scaled.items()]
    return first, members


def join(first: PolynomialModel, models: Sequence[PolynomialModel], weights: Sequence[float]) -> None:
    """Replace the outputs of the first model by the weighted sum over models in the same basis.

    The importance of a column becomes its weighted mean over the models."""
    machines = [model._machine for model in models]
    layout, params = weighted_sum([(each.layout, each.params) for each in machines], weights)
    facts = ("_mean_outputs", *(["_mean_parts"] if hasattr(first, "_mean_parts") else []))
    means = {name: np.tensordot(weights, [getattr(model, name) for model in models], 1) for name in facts}
    importances = np.average([model._importances for model in models], axis=0, weights=weights)
    first._machine = Machine(machines[0].basis, layout, params)
    first._importances = importances
    for name, mean in means.items():
        setattr(first, name, mean)
