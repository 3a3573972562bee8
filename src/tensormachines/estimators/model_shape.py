"""The shape of the model that an estimator asks for: degree, rank, shared factors, and jumps."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from .._fit.settings import USUAL_DEGREE, Settings, usual_rank
from .._fit.solver_table import SolverChoice
from .._model.layout import Layout
from .column_parameters import allowed_degree, require_terms
from .warm_start import continues


def shape_of(
    estimator: Any, n_features: int, n_outputs: int, n_meetings: int = 1, of_classes: bool = True
) -> Layout:
    """Return the layout: "auto" shares factors among three or more classes, and then has more terms.

    ``of_classes``: whether outputs are mutually exclusive classes; otherwise they may be labels. Each degree
    has at least as many terms as there are sets of columns that may interact."""
    among_classes = estimator.shared_factors == "auto" and is_classifier(estimator) and of_classes
    shared = n_outputs > 1 and (among_classes or estimator.shared_factors is True)
    if estimator.rank == "auto":
        rank = max(n_meetings, usual_rank(n_outputs if shared else 1))
    else:
        rank = int(estimator.rank)
        require_terms("rank", rank, rank, n_meetings)
    allowed = allowed_degree(estimator.degree, estimator.interaction_cst)
    degree = USUAL_DEGREE if isinstance(allowed, str) else allowed
    return estimator._layout(n_features, degree, rank, n_outputs, shared)


def jumps_of(
    estimator: Any, settings: Settings, chosen: SolverChoice | None
) -> bool | str | list[np.ndarray]:
    """Return whether to look for jumps; a warm start keeps the jumps of the model that it continues."""
    if estimator.monotonic_cst is not None:
        return False  # ramps are jumps too, and a race could drop them
    if continues(estimator):
        return estimator._machine.thresholds if estimator._machine.has_jumps else False
    return settings.jumps is True or ("auto" if chosen and settings.races and settings.jumps else False)
