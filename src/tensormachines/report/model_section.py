"""The section of the page on the model: its functions of one and two columns, its terms, and its settings."""

from __future__ import annotations

from html import escape

from .. import __version__
from ..inspection import Formula, Function
from .findings import Findings, LargestTerms
from .formatting import count, number, signed, table


def model_section(findings: Findings) -> str:
    facts = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
        for name, value in _facts(findings).items()
    )
    formulas = "".join(_formula(formula, len(findings.formulas) == 1) for formula in findings.formulas)
    terms = "" if findings.terms is None else _terms(findings.terms)
    return f'{formulas}{terms}<p class="formula">{_products(findings)}</p><dl class="facts">{facts}</dl>'


def _formula(formula: Formula, is_open: bool) -> str:
    """Return the functions of one output, collapsed if there are several outputs."""
    functions = count(len(formula.functions), "function")
    part = f"{100 * formula.fidelity:.1f}&nbsp;%"
    summary = (
        f"<strong>{escape(formula.name)}</strong> = {number(formula.constant)} + {functions} of one and two "
        f"columns, {part} of the model"
    )
    note = (
        f"<p>{number(formula.constant)} is the average. For each table, add the number at the value of its "
        "column, or of its two columns; between the values of numbers, along straight lines. This explains "
        f"{part} of the variance of the model's own outputs on {formula.n_rows:,} rows. Percentages below "
        "are shares in the variances of all functions.</p>"
    )
    tables = "".join(map(_function, formula.functions))
    opened = " open" if is_open else ""
    return (
        f'<details class="functions"{opened}><summary>{summary}</summary>{note}'
        f'<div class="columns">{tables}</div></details>'
    )


def _function(function: Function) -> str:
    title = " \N{MULTIPLICATION SIGN} ".join(function.columns)
    down, across, cells = function.shown()
    if not down:  # a function of one column: vertical, because its levels may have long names
        down, across, cells = across, [], cells.T
    header = "".join(f'<th scope="col">{escape(label)}</th>' for label in across)
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th>{"".join(f"<td>{signed(each)}</td>" for each in row)}</tr>'
        for label, row in zip(down, cells.tolist(), strict=True)
    )
    share = f"<small>{100 * function.share:.1f}&nbsp;%</small>"
    shown = table("function", escape(title), f"<td></td>{header}" if header else "", rows)
    return f"<figure><h3>{escape(title)} {share}</h3>{shown}</figure>"


def _products(findings: Findings) -> str:
    """Return the formula of such models."""
    of_what = "the row in its basis"
    if findings.basis == "spline":
        of_what = "the row as splines of its numbers and levels of its categories"
    formula = "f(x) = w<sub>0</sub> + ⟨w, x⟩"
    if findings.degree > 1:
        sums = f"Σ<sub>p = 2..{findings.degree}</sub> Σ<sub>i = 1..{findings.rank}</sub>"
        formula += f" + {sums} Π<sub>j = 1..p</sub> ⟨v<sub>pij</sub>, x⟩"
    return f"{formula} <small>with x {of_what}</small>"


def _terms(terms: LargestTerms) -> str:
    rows = "".join(
        f'<tr><th scope="row">{escape(label)}</th><td>{number(value)}</td></tr>'
        for label, value in terms.coefficients.items()
    )
    caption = f"Largest of {count(terms.n_terms, 'term')}, for {terms.columns}"
    return f'<table class="terms"><caption>{caption}</caption><tbody>{rows}</tbody></table>'


def _facts(findings: Findings) -> dict[str, str]:
    settings = ", ".join(f"{name}={value}" for name, value in findings.settings.items())
    return {
        "Estimator": findings.estimator,
        "Degree, rank": f"{findings.degree}, {findings.rank}" if findings.degree > 1 else "1",
        "Basis": findings.basis or "none (columns unchanged)",
        **({} if findings.alpha is None else {"Penalty": f"alpha = {findings.alpha:.3g}"}),
        "Parameters": f"{findings.n_parameters:,}",
        "Columns": f"{findings.n_columns:,}",
        "Settings": settings or "defaults",
        "Version": f"tensormachines {__version__}",
    }
