"""Where a model is the mean of several members: how far these agree on a coefficient."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .forms import Forms, fitted_machine, forms
from .monomials import Monomial, coefficients, monomial_numbers


def coefficient_spread(
    model: Any, monomials: Iterable[Any], *, output: Any = None, units: str = "original"
) -> dict[Monomial, tuple[float, float]]:
    """How sure a coefficient is: its mean over the members of the model (n_members > 1), and their standard
    deviation.

    Members differ by their random start alone: what they disagree on is what the optimisation leaves open,
    not what other rows would change. The mean is the coefficient of the model. Only its terms tell members
    apart, the linear part is kept as a mean: so there is no spread of monomials of degree 0 and 1.

    Parameters
    ----------
    model : Tensor Machine fitted with n_members of 2 or more
    monomials, output, units
        As in `polynomial`.
    """
    of_variables = forms(model, output, units)
    members = _member_count(model)
    asked = [monomial_numbers(of_variables, monomial) for monomial in monomials]
    if any(len(key) < 2 for key in asked):
        raise ValueError(
            "monomials must be of degree 2 and more: of the linear part and the constant only the means over members are kept."
        )
    by_member = []
    for member in range(members):
        terms = tuple(_terms_of(of_variables, member, members))
        by_member.append(coefficients(replace(of_variables, terms=terms), asked))
    names = of_variables.names
    values = {key: np.array([of_member[key] for of_member in by_member]) for key in by_member[0]}
    return {
        tuple(names[v] for v in key): (float(value.mean()), float(value.std(ddof=1)))
        for key, value in values.items()
    }


def _member_count(model: Any) -> int:
    """Of an average: its rank is that of its members, as many times as there are of them."""
    layout = fitted_machine(model).layout
    model = getattr(
        model, "best_estimator_", model
    )  # where time was short, a search has fitted fewer members than it was to
    members = layout.rank // model.rank if layout.rank % model.rank == 0 else 0
    if members < 2 or layout.degree < 2 or members != model.n_members:
        raise ValueError(
            "The spread needs a model that is the mean of several: fit it with n_members=5, for example, and degree 2 or more."
        )
    return members


def _terms_of(of_variables: Forms, member: int, members: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Those of one member, which stand together, without their share of the mean."""
    for offsets, factors in of_variables.terms:
        rank, p = offsets.shape
        own = slice(member * rank // members, (member + 1) * rank // members)
        yield offsets[own] * members ** (1 / p), factors[own] * members ** (1 / p)
