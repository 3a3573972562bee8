"""The largest terms of the model's polynomial, where it is one of the columns themselves."""

from __future__ import annotations

from html import escape
from math import comb

from .._model.basis import Basis
from .._model.description import describe
from ..inspection.monomials import Polynomial, polynomial
from .findings import Facts
from .formatting import count, number

MOST_MONOMIALS = 5_000
MOST_SHOWN = 12


def formula_section(facts: Facts) -> str:
    """Nothing for splines and rows of unit norm, for several outputs, or where the terms are too many to look
    through.
    """
    description = describe(facts.model)
    basis, layout, n_columns = description.machine.basis, description.layout, len(description.columns)
    too_many = comb(n_columns + layout.degree, layout.degree) > MOST_MONOMIALS
    if not isinstance(basis, Basis) or basis.unit_rows or layout.n_outputs > 1 or too_many:
        return ""
    terms = polynomial(facts.model, units="basis")
    if description.basis_name is None:
        of_what = "the columns as they are"
    else:
        of_what = "the columns in deviations from their means"
        terms = _in_deviations(terms, n_columns)
    rows = "".join(
        f'<tr><th scope="row">{escape(terms.label(key))}</th><td>{number(value)}</td></tr>'
        for key, value in terms.largest(MOST_SHOWN).items()
    )
    caption = f"The largest of {count(len(terms), 'term')}, of {of_what}"
    return f'<table class="terms"><caption>{caption}</caption><tbody>{rows}</tbody></table>'


def _in_deviations(terms: Polynomial, n_columns: int) -> Polynomial:
    """The basis "standard" also divides by the root of the number of columns."""
    return Polynomial(
        {key: value / n_columns ** (len(key) / 2) for key, value in terms.items()}, terms.names, terms.of_what
    )
