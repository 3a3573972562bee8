"""The cv_results_ of a search: one row per trial, as in scikit-learn's halving searches."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.stats import rankdata

from .halving import Rung, Trial


def cv_results(
    candidates: list[dict[str, Any]], trials: list[Trial], rungs: list[Rung], n_rows: int, n_splits: int
) -> dict[str, Any]:
    """Return the table of all trials; ``n_rows`` is the number of training rows in the smallest fold."""
    tried = [candidates[trial.candidate] for trial in trials]
    means = np.array([trial.score for trial in trials])
    iterations = [
        math.ceil(rungs[trial.rung].iterations * each["max_iter"])
        for trial, each in zip(trials, tried, strict=True)
    ]
    results: dict[str, Any] = {
        "iter": np.array([trial.rung for trial in trials]),
        "n_resources": np.array([math.ceil(rungs[trial.rung].rows * n_rows) for trial in trials]),
        "max_iter": np.array(iterations),
    }
    for name in ("fit", "score"):
        seconds = [getattr(trial, f"{name}_seconds")[trial.tried] for trial in trials]
        results[f"mean_{name}_time"] = np.array([each.mean() for each in seconds])
        results[f"std_{name}_time"] = np.array([each.std() for each in seconds])
    for name in tried[0]:
        kinds = {"basis": object, "trend": bool, "jumps": bool, "alpha": float, "roughness": float}
        kind = kinds.get(name, int)
        values = [each[name] for each in tried]
        if any(isinstance(value, str) for value in values):
            kind = object
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=False, dtype=kind)
    results["params"] = tried
    for split in range(n_splits):
        scores = [trial.scores[split] if split < len(trial.scores) else np.nan for trial in trials]
        results[f"split{split}_test_score"] = np.array(scores)
    return results | {
        "mean_test_score": np.where(np.isfinite(means), means, np.nan),
        "std_test_score": np.array([trial.scores.std() for trial in trials]),
        "rank_test_score": _ranks(trials, means, results["iter"]),
    }


def _ranks(trials: list[Trial], means: np.ndarray, rungs: np.ndarray) -> np.ndarray:
    """Rank the trials; as in scikit-learn, a trial ranks before all trials on lower rungs."""
    order = np.lexsort([-means, -rungs])
    keys = np.empty(len(trials))
    keys[order] = np.cumsum([1, *(_differ(trials[a], trials[b]) for a, b in pairwise(order))])
    return rankdata(keys, method="min").astype(np.int32)


def _differ(one: Trial, other: Trial) -> bool:
    return (one.rung, one.score) != (other.rung, other.score)
