"""Plots of a fitted Tensor Machine with matplotlib. Each function draws into ``ax``, or into new axes, and
returns them.
"""

from .effects import effect_curve, effect_surface, interaction_heat_map, term_importance
from .fits import error_against_rank, loss_curves, training_curve

__all__ = [
    "effect_curve",
    "effect_surface",
    "error_against_rank",
    "interaction_heat_map",
    "loss_curves",
    "term_importance",
    "training_curve",
]
