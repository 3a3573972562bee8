"""Trials of candidates: fit candidates to the folds of a search together, and score them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .._fit.settings import Clock, Deadline
from .candidates import on_rung
from .fold import Fold, Score
from .halving import Rung, Trial, has_fallen_behind
from .polynomial_model import PolynomialModel


@dataclass(frozen=True)
class Judge:
    """Fit a group of candidates, given by their indices, and score them: see `halving.Evaluate`."""

    estimators: Sequence[PolynomialModel]
    folds: Sequence[Fold]
    rungs: Sequence[Rung]
    score: Score
    clock: Clock

    def __call__(
        self, group: Sequence[int], number: int, deadline: float, leader: Trial | None
    ) -> list[Trial]:
        rung = self.rungs[number]
        some = self.folds[: rung.n_splits(len(self.folds))]
        scores, fit_seconds, score_seconds = (np.full((len(group), len(some)), np.nan) for _ in range(3))
        fewer = [on_rung(self.estimators[candidate], rung) for candidate in group]
        outputs: list[list[np.ndarray]] = [[] for _ in group]
        for s, fold in enumerate(some):
            began = time.perf_counter()
            results = fold.fit(fewer, rung.rows, Deadline(deadline, self.clock))
            fit_seconds[:, s] = (time.perf_counter() - began) / len(group)
            for k, fitted in enumerate(results):
                began = time.perf_counter()
                if fitted is not None:
                    scores[k, s] = self.score(fitted, fold)
                    if number == len(self.rungs) - 1:
                        outputs[k].append(fold.outputs(fitted).astype(np.float32))
                score_seconds[k, s] = time.perf_counter() - began
            if all(has_fallen_behind(scores[k, : s + 1], leader) for k in range(len(group))):
                break
        return [
            Trial(candidate, number, scores[k], fit_seconds[k], score_seconds[k], outputs[k])
            for k, candidate in enumerate(group)
        ]
