"""The plan of a search: its candidates, the folds that they are tried on, and the rungs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy import sparse

from .._fit.settings import usual_alpha, usual_rank
from .candidates import Grid, all_candidates
from .column_parameters import n_meetings
from .fold import Fold
from .halving import Rung, ladder


@dataclass(frozen=True)
class Plan:
    """Candidates, folds and rungs, and the default rank and penalty of a model of all rows."""

    candidates: Sequence[dict[str, Any]]
    folds: list[Fold]
    rungs: list[Rung]
    usual_rank: int
    usual_alpha: float

    @property
    def n_rows(self) -> int:
        """Return the number of training rows in the smallest fold."""
        return min(fold.n_training_rows for fold in self.folds)

    def grid(self, jumps: bool) -> Grid:
        """Return the grid of candidates, all with jumps or all without."""
        candidates = tuple({**candidate, "jumps": jumps} for candidate in self.candidates)
        return Grid(candidates, self.usual_rank, self.usual_alpha)


def plan_of(search: Any, folds: list[Fold], X: Any, n_classes: int) -> Plan:
    """Return the plan of a search for the rows of X; ``n_classes`` is 0 if there are none."""
    n_rows, n_columns = X.shape
    shared = n_classes > 2 and search.shared_factors is not False
    names = getattr(search, "feature_names_in_", None)
    n_sets = n_meetings(search.interaction_cst, n_columns, None if names is None else list(names))
    rank = max(usual_rank(n_classes if shared else 1), n_sets)
    candidates = all_candidates(search, rank, n_sets, sparse.issparse(X))
    alpha = usual_alpha(n_rows, n_classes if n_classes > 2 else 1, shared)
    rungs = ladder(min(fold.n_training_rows for fold in folds), len(candidates), search.halving)
    return Plan(candidates, folds, rungs, rank, alpha)
