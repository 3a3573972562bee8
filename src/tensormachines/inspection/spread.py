"""The spread of a coefficient over bootstrap members, or over the members that a model averages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._model.spline_basis import SplineBasis
from .forms import Forms, fitted_machine, forms_of
from .members import check_members
from .monomials import Monomial, coefficients, monomial_numbers


def coefficient_spread(
    model: Any,
    monomials: Iterable[Any],
    *,
    members: Sequence[Any] | None = None,
    output: Any = None,
    units: str = "original",
) -> dict[Monomial, tuple[float, float]]:
    """Return the mean and standard deviation of coefficients over bootstrap members: how much other rows
    would change them.

    Without ``members``, use the members that the model itself averages (n_members > 1). These differ only in
    their random start, so their spread shows what the optimisation leaves open, not what other rows would
    change. The mean is then the coefficient of the model. Only the mean of the members' linear parts is kept,
    so monomials of degree 0 and 1 have no spread.

    Parameters
    ----------
    model : fitted Tensor Machine
        Without ``members``, its n_members must be 2 or more.
    monomials, output, units
        As in `polynomial`.
    members : list of models, optional
        Members from `bootstrap`. Not for the basis "spline": each member has its own functions, whose
        coefficients cannot be compared with those of other members; see `effect_band`.

    Returns
    -------
    dict of tuples (mean, standard deviation), by monomial
    """
    forms = forms_of(model, output, units)
    asked = [monomial_numbers(forms, monomial) for monomial in monomials]
    if members is None:
        of_members = _forms_of_average(model, forms, asked)
    else:
        of_members = _forms_of_members(model, members, output, units)
    by_member = [coefficients(each, asked) for each in of_members]
    names = forms.names
    values = {key: np.array([of_member[key] for of_member in by_member]) for key in by_member[0]}
    return {
        tuple(names[v] for v in key): (float(value.mean()), float(value.std(ddof=1)))
        for key, value in values.items()
    }


def _forms_of_members(model: Any, members: Sequence[Any], output: Any, units: str) -> list[Forms]:
    """Return the forms of the members of a bootstrap."""
    check_members(model, members)
    if isinstance(fitted_machine(model).basis, SplineBasis):
        raise ValueError(
            "Coefficients of splines have no spread over the members of a bootstrap, because each has "
            'splines of its own: use effect_band and plots.effect_curve, or basis="standard".'
        )
    return [forms_of(member, output, units) for member in members]


def _forms_of_average(model: Any, forms: Forms, asked: Sequence[tuple[int, ...]]) -> list[Forms]:
    """Return the forms of the members that a model averages."""
    members = _member_count(model)
    if any(len(key) < 2 for key in asked):
        raise ValueError(
            "monomials must be of degree 2 and more: "
            "the linear part and the constant are kept only as means over the members."
        )
    return [replace(forms, terms=tuple(_terms_of(forms, member, members))) for member in range(members)]


def _member_count(model: Any) -> int:
    """Return the number of members: the rank of the model divided by the rank of a member."""
    layout = fitted_machine(model).layout
    # A search that ran short of time has fitted fewer members than its setting says.
    model = getattr(model, "best_estimator_", model)
    members = model.n_members
    of_member = layout.rank // members if model.rank == "auto" else model.rank
    continued = not hasattr(model, "_mean_outputs")  # by partial_fit, which makes one model of the members
    if continued or members < 2 or layout.degree < 2 or members * of_member != layout.rank:
        raise ValueError(
            "The spread needs a model that averages several members: "
            "fit it with n_members=5, for example, and degree 2 or more. For the spread that other rows "
            "would cause, give members=bootstrap(model, X, y)."
        )
    return members


def _terms_of(forms: Forms, member: int, members: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the terms of one member, which are adjacent, without the factor 1 / members of the mean."""
    for offsets, factors in forms.terms:
        rank, p = offsets.shape
        own = slice(member * rank // members, (member + 1) * rank // members)
        yield offsets[own] * members ** (1 / p), factors[own] * members ** (1 / p)
