"""The spread of a coefficient over the members of a model that averages several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .forms import Forms, fitted_machine, forms_of
from .monomials import Monomial, coefficients, monomial_numbers


def coefficient_spread(
    model: Any, monomials: Iterable[Any], *, output: Any = None, units: str = "original"
) -> dict[Monomial, tuple[float, float]]:
    """Return the mean of coefficients over the members of the model (n_members > 1), and their standard
    deviation.

    Members differ in their random start only: their spread shows what the optimisation leaves open, not what
    other rows would change. The mean is the coefficient of the model. The linear part is kept as a mean over
    members, so monomials of degree 0 and 1 have no spread.

    Parameters
    ----------
    model : Tensor Machine fitted with n_members of 2 or more
    monomials, output, units
        As in `polynomial`.

    Returns
    -------
    dict of tuples (mean, standard deviation), by monomial
    """
    forms = forms_of(model, output, units)
    members = _member_count(model)
    asked = [monomial_numbers(forms, monomial) for monomial in monomials]
    if any(len(key) < 2 for key in asked):
        raise ValueError(
            "monomials must be of degree 2 and more: "
            "the linear part and the constant are kept only as means over the members."
        )
    by_member = []
    for member in range(members):
        terms = tuple(_terms_of(forms, member, members))
        by_member.append(coefficients(replace(forms, terms=terms), asked))
    names = forms.names
    values = {key: np.array([of_member[key] for of_member in by_member]) for key in by_member[0]}
    return {
        tuple(names[v] for v in key): (float(value.mean()), float(value.std(ddof=1)))
        for key, value in values.items()
    }


def _member_count(model: Any) -> int:
    """Return the number of members: the rank of the model over the rank of a member."""
    layout = fitted_machine(model).layout
    # A search that was short of time has fitted fewer members than its setting says.
    model = getattr(model, "best_estimator_", model)
    members = model.n_members
    of_member = layout.rank // members if model.rank == "auto" else model.rank
    if members < 2 or layout.degree < 2 or members * of_member != layout.rank:
        raise ValueError(
            "The spread needs a model that averages several members: "
            "fit it with n_members=5, for example, and degree 2 or more."
        )
    return members


def _terms_of(forms: Forms, member: int, members: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the terms of one member, which are adjacent, without the factor 1 / members of the mean."""
    for offsets, factors in forms.terms:
        rank, p = offsets.shape
        own = slice(member * rank // members, (member + 1) * rank // members)
        yield offsets[own] * members ** (1 / p), factors[own] * members ** (1 / p)
