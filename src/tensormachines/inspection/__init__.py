"""Explanations of a fitted Tensor Machine: its formula, the contributions of columns to predictions, their
importance, and a generalisation bound.
"""

from .bound import RademacherBound, rademacher_bound
from .decomposition import Contributions, contributions, explain_row
from .distillation import Distilled, distil
from .effects import effect
from .forms import variables
from .functions import Formula, Function, formula
from .importances import importance, interaction_strength, part_importance
from .interactions import Interactions, top_interactions
from .members import bootstrap, effect_band
from .monomials import Polynomial, coefficient_tensor, polynomial, to_sympy
from .ranked import Ranked
from .shapley import column_contributions
from .spread import coefficient_spread
from .variance import column_variance_shares, variance_shares

__all__ = [
    "Contributions",
    "Distilled",
    "Formula",
    "Function",
    "Interactions",
    "Polynomial",
    "RademacherBound",
    "Ranked",
    "bootstrap",
    "coefficient_spread",
    "coefficient_tensor",
    "column_contributions",
    "column_variance_shares",
    "contributions",
    "distil",
    "effect",
    "effect_band",
    "explain_row",
    "formula",
    "importance",
    "interaction_strength",
    "part_importance",
    "polynomial",
    "rademacher_bound",
    "to_sympy",
    "top_interactions",
    "variables",
    "variance_shares",
]
