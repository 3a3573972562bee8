"""A model as one SQL query, for DuckDB, SQLite and their like.

The query is a chain of common table expressions. In a spline basis every entry of a row becomes a state of
its column, or lies between two of them (`located`); the forms of a row are sums of the forms of these states,
which are kept in a table a column (`states`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._model.linear_forms import Label, Plan, plan
from ._literals import lines, number

COLUMNS_AT_ONCE = 8  # whose tables are joined: there are databases that join no more than 64 tables
TERMS_AT_ONCE = 32  # of a sum: parsers count how deep one nests


def to_sql(model: Any, table: str | Sequence[str] = "rows", keep: Sequence[str] = ()) -> str:
    """A query that predicts the rows of a table as ``model`` does: one SELECT, which runs on DuckDB and
    SQLite.

    The result has a row for every row of the table, in its order: the columns to ``keep``, then "prediction"
    (with several targets "prediction_0", ...), and for classifiers the probability of each class,
    "probability_" with the label.

    The table has the columns of the fit under their names; those without names are x0, x1, ... NULL and NaN
    are missing. Where the model takes no missing values, the prediction is NULL then.

    Probabilities need the function exp, and basis "unit" and "sphere" need sqrt. DuckDB has them, SQLite if
    it was built with mathematical functions; otherwise register them: ``connection.create_function("exp", 1,
    lambda x: x if x is None else math.exp(x))``.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search or greedy machine. Factorization machines are refused.
    table : str or sequence of str, default="rows"
        The name of a table or view; ("main", "rows") is that of a table in a schema. Names that begin with
        tm_ are those of the query.
    keep : sequence of str, default=()
        Columns of the table to go along, such as its key.
    """
    planned = plan(model)
    if planned.portable.terms == "anova":
        raise NotImplementedError(
            "to_sql does not write factorization machines: use to_python or to_c, or a Tensor Machine."
        )
    if isinstance(keep, str):
        raise TypeError(f"keep must be a sequence of names, such as [{keep!r}], got the string {keep!r}.")
    _require_names_of_their_own(planned.names)
    kept = ["tm_row", *(f"kept{k}" for k in range(len(keep)))]  # by every step
    steps = [
        ("tm_input", _input(planned, table, keep)),
        *(_affine(planned, kept) if planned.affine else _spline(planned, kept)),
        ("tm_outputs", _outputs(planned, kept)),
        *(_ranking(planned, kept) if planned.portable.classes is not None else ()),
    ]
    results = _results(planned)
    taken = [name for name in keep if name.lower() in map(str.lower, results)]
    if taken:
        raise ValueError(
            f"keep names {taken[0]!r}, which is what a column of the result is called: rename it, or do not keep it."
        )
    columns = [f"kept{k} AS {_identifier(name)}" for k, name in enumerate(keep)]
    columns += [f"{expression} AS {_identifier(name)}" for name, expression in results.items()]
    chain = ",\n".join(f"{name} AS MATERIALIZED (\n{body}\n)" for name, body in steps)
    query = f"SELECT {_listed(columns)}\nFROM {steps[-1][0]}\nORDER BY tm_row\n"
    return f"-- {planned.about}\nWITH {chain}\n{query}"


# ---- words of the language


def _identifier(name: str) -> str:
    if "\0" in name:
        raise ValueError(f"No column or table in SQL is called {name!r}: it has a zero in its name.")
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    if "\0" in text:
        raise NotImplementedError(
            f"to_sql writes no text with a zero in it, got {text!r}: rename this level or class."
        )
    return "'" + text.replace("'", "''") + "'"


def _literal(label: Label) -> str:
    if isinstance(label, str):
        return _text(label)
    return _number(label) if isinstance(label, float) else str(label).upper()


def _number(x: float) -> str:
    """With an exponent, because DuckDB would read a decimal number otherwise, which overflows."""
    text = number(x)
    return text if "e" in text else f"{text}e0"


def _sum(terms: Sequence[str]) -> str:
    if len(terms) <= TERMS_AT_ONCE:
        return " + ".join(terms)
    groups = [
        f"({_sum(terms[start : start + TERMS_AT_ONCE])})" for start in range(0, len(terms), TERMS_AT_ONCE)
    ]
    return _sum(groups)


def _listed(expressions: Sequence[str]) -> str:
    return ",\n    ".join(expressions)


def _require_names_of_their_own(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise ValueError(
                f"SQL does not tell the columns {other!r} and {name!r} apart: fit the model with other names."
            )


# ---- steps


def _input(planned: Plan, table: str | Sequence[str], keep: Sequence[str]) -> str:
    columns = []
    for j, (name, column) in enumerate(zip(planned.names, planned.portable.columns, strict=True)):
        # Text with nothing appended: a column alone would be compared by its collation, which may ignore
        # case. Called by its table, because SQLite takes a name in quotes for text if there is no such
        # column.
        kind, suffix = ("DOUBLE", "") if column.kind == "number" else ("VARCHAR", " || ''")
        columns.append(f"CAST(source.{_identifier(name)} AS {kind}){suffix} AS x{j}")
    kept = [f"source.{_identifier(name)} AS kept{k}" for k, name in enumerate(keep)]
    named = ".".join(map(_identifier, [table] if isinstance(table, str) else table))
    return f"    SELECT row_number() OVER () AS tm_row,\n    {_listed([*columns, *kept])}\n    FROM {named} AS source"


def _is_nan(x: str) -> str:
    """In DuckDB NaN is larger than all numbers, and so is its negative; SQLite has none."""
    return f"{x} > 0 AND -{x} > 0"


def _affine(planned: Plan, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    basis = planned.affine
    assert basis is not None
    entries, source = [f"t{j}" for j in range(planned.n_columns)], "tm_scaled"
    scaled = [
        f"CASE WHEN NOT ({_is_nan(f'x{j}')}) THEN (x{j} - {_number(center)}) * {_number(scale)} END AS t{j} -- {json.dumps(name)}\n    "
        for j, (center, scale, name) in enumerate(zip(basis.center, basis.scale, planned.names, strict=True))
    ]
    yield "tm_scaled", f"    SELECT {', '.join(kept)}\n    , {', '.join(scaled)}FROM tm_input"
    if np.isfinite(basis.clip):
        low, high = _number(-basis.clip), _number(basis.clip)
        clipped = [
            f"CASE WHEN {t} > {high} THEN {high} WHEN {t} < {low} THEN {low} ELSE {t} END AS {t}"
            for t in entries
        ]
        yield "tm_clipped", f"    SELECT {', '.join(kept)},\n    {_listed(clipped)}\n    FROM tm_scaled"
        source = "tm_clipped"
    divisor = ""
    if basis.unit_rows:
        squares = _sum(
            [*(f"{t} * {t}" for t in entries), *([_number(basis.constant**2)] if basis.constant else [])]
        )
        yield "tm_norms", f"    SELECT *, sqrt({squares}) AS norm FROM {source}"
        source, divisor = "tm_norms", " / CASE WHEN norm = 0 THEN 1e0 ELSE norm END"
    forms = []
    for f, weights in enumerate(planned.weights.T):
        terms = [f"{_number(weight)} * {t}" for weight, t in zip(weights, entries, strict=False)]
        if basis.constant:
            terms.append(_number(planned.offset[f]))
        forms.append(f"({_sum(terms)}){divisor} AS f{f}")
    yield "tm_forms", f"    SELECT {', '.join(kept)},\n    {_listed(forms)}\n    FROM {source}"


def _spline(planned: Plan, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    columns = range(planned.n_columns)
    located = [
        f"{expression} -- {json.dumps(planned.names[j])}\n    "
        for j in columns
        for expression in _located(planned, j)
    ]
    yield "tm_located", f"    SELECT {', '.join(kept)}\n    , {', '.join(located)}FROM tm_input"
    names = [f"f{f}" for f in range(planned.n_forms)]
    for j in columns:
        states = (
            lines([str(state), *map(_number, forms)], "    ").strip()
            for state, forms in enumerate(planned.tables[j])
        )
        yield (
            f"tm_states{j}(state, {', '.join(names)})",
            "    VALUES\n" + ",\n".join(f"    ({row})" for row in states),
        )
    source, sums = "tm_located", [_number(offset) for offset in planned.offset]
    for first in columns[::COLUMNS_AT_ONCE]:
        these, others = columns[first : first + COLUMNS_AT_ONCE], columns[first + COLUMNS_AT_ONCE :]
        carried = [
            *kept,
            *(
                name
                for j in others
                for name in (f"below{j}", *([f"share{j}"] if _between(planned, j) else []))
            ),
        ]
        forms = [
            f"{_sum([before, *(_part(planned, j, f) for j in these)])} AS f{f}"
            for f, before in enumerate(sums)
        ]
        joins = [join for j in these for join in _joins(planned, j)]
        # A cross join with conditions, because SQLite then goes through the rows in this order, and looks the
        # states up.
        tables = " CROSS JOIN ".join([source, *(table for table, _ in joins)])
        conditions = " AND ".join(condition for _, condition in joins)
        name = f"tm_forms{first}" if others else "tm_forms"
        yield (
            name,
            f"    SELECT {', '.join(carried)},\n    {_listed(forms)}\n    FROM {tables}\n    WHERE {conditions}",
        )
        source, sums = name, [f"{name}.{form}" for form in names]


def _between(planned: Plan, j: int) -> bool:
    """Whether an entry of the column can lie between two states."""
    knots = planned.knots(j)
    return knots is not None and len(knots) > 1


def _located(planned: Plan, j: int) -> Iterator[str]:
    """The number of the level of an entry, or of the knot below it; and how near it is to the next one."""
    column, knots, missing, x = (
        planned.portable.columns[j],
        planned.knots(j),
        len(planned.tables[j]) - 1,
        f"x{j}",
    )
    if knots is None:
        assert column.levels is not None
        levels = [
            f"WHEN {x} IN ({_spellings(level, column.levels)}) THEN {code}"
            for code, level in enumerate(column.levels)
        ]
        yield f"CASE WHEN {x} IS NULL THEN {missing} {' '.join(levels)} ELSE {len(levels) if column.rare else missing} END AS below{j}"
        return
    is_missing, last = f"{x} IS NULL OR ({_is_nan(x)})", max(0, len(knots) - 2)
    yield f"CASE WHEN {is_missing} THEN {missing} ELSE {_search(x, knots, list(map(str, range(last + 1))))} END AS below{j}"
    if _between(planned, j):
        halves = 0.5 * knots  # the difference of two large numbers would overflow
        shares = [
            f"(0.5e0 * {x} - {_number(low)}) / {_number(gap)}"
            for low, gap in zip(halves, np.diff(halves), strict=False)
        ]
        ends = f"WHEN {x} <= {_number(knots[0])} THEN 0e0 WHEN {x} >= {_number(knots[-1])} THEN 1e0"
        yield f"CASE WHEN {is_missing} THEN 0e0 {ends} ELSE {_search(x, knots, shares)} END AS share{j}"


def _spellings(level: str, levels: Sequence[str]) -> str:
    """How a database writes a level: that called 3 may be the number 3.0 there, and True is true."""
    others = (
        [level.lower()]
        if level in ("True", "False")
        else [f"{level}.0"]
        if re.fullmatch("-?(0|[1-9][0-9]*)", level)
        else []
    )
    return ", ".join(map(_text, [level, *(other for other in others if other not in levels)]))


def _search(x: str, knots: np.ndarray, results: Sequence[str], first: int = 0) -> str:
    """The result for the two knots that x lies between; ``first`` is the lower one of the first two. By
    halves: with few comparisons.
    """
    if len(results) == 1:
        return results[0]
    half = len(results) // 2
    lower, upper = _search(x, knots, results[:half], first), _search(x, knots, results[half:], first + half)
    return f"CASE WHEN {x} < {_number(knots[first + half])} THEN {lower} ELSE {upper} END"


def _part(planned: Plan, j: int, f: int) -> str:
    return (
        f"(1 - share{j}) * low{j}.f{f} + share{j} * high{j}.f{f}" if _between(planned, j) else f"low{j}.f{f}"
    )


def _joins(planned: Plan, j: int) -> Iterator[tuple[str, str]]:
    yield f"tm_states{j} AS low{j}", f"low{j}.state = below{j}"
    if _between(planned, j):
        missing = len(planned.tables[j]) - 1
        yield (
            f"tm_states{j} AS high{j}",
            f"high{j}.state = CASE WHEN below{j} = {missing} THEN {missing} ELSE below{j} + 1 END",
        )


def _outputs(planned: Plan, kept: Sequence[str]) -> str:
    portable = planned.portable
    terms = [[_number(intercept), f"f{k}"] for k, intercept in enumerate(portable.intercept)]
    form = portable.n_outputs
    for p, counts in planned.n_terms.items():
        for of_output, count in zip(terms, counts, strict=True):
            for _ in range(count):
                of_output.append(" * ".join(f"f{f}" for f in range(form, form + p)))
                form += p
    sums = [f"{_sum(of_output)} AS z{k}" for k, of_output in enumerate(terms)]
    return f"    SELECT {', '.join(kept)},\n    {_listed(sums)}\n    FROM tm_forms"


def _ranking(planned: Plan, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The label of the largest output, and exponentials that cannot overflow."""
    labels = [_literal(label) for label in planned.labels]
    if planned.portable.link == "logistic":
        label = f"CASE WHEN z0 > 0 THEN {labels[1]} WHEN z0 <= 0 THEN {labels[0]} END"
        powers = "exp((-z0 - abs(z0)) / 2) AS e0, exp((z0 - abs(z0)) / 2) AS e1"
        yield (
            "tm_powers",
            f"    SELECT {', '.join(kept)}, {label} AS prediction,\n    {powers}\n    FROM tm_outputs",
        )
        return
    outputs = [f"z{k}" for k in range(len(labels))]
    largest = [
        " AND ".join(f"{z} >= {other}" for other in outputs[k + 1 :]) or f"{z} IS NOT NULL"
        for k, z in enumerate(outputs)
    ]
    label = " ".join(
        f"WHEN {condition} THEN {label}" for condition, label in zip(largest, labels, strict=True)
    )
    peak = " ".join(f"WHEN {condition} THEN {z}" for condition, z in zip(largest, outputs, strict=True))
    yield (
        "tm_ranked",
        f"    SELECT *,\n    CASE {label} END AS prediction,\n    CASE {peak} END AS peak\n    FROM tm_outputs",
    )
    exponentials = [f"exp({z} - peak) AS e{k}" for k, z in enumerate(outputs)]
    yield (
        "tm_powers",
        f"    SELECT {', '.join(kept)}, prediction,\n    {_listed(exponentials)}\n    FROM tm_ranked",
    )


def _results(planned: Plan) -> dict[str, str]:
    """The columns of the result, by name."""
    if planned.portable.classes is None:
        if planned.portable.squeeze:
            return {"prediction": "z0"}
        return {f"prediction_{k}": f"z{k}" for k in range(planned.portable.n_outputs)}
    names = [f"probability_{label}" for label in planned.labels]
    if len({name.lower() for name in names}) < len(names):  # which SQL does not tell apart
        names = [f"probability_{k}" for k in range(len(names))]
    total = _sum([f"e{k}" for k in range(len(names))])
    return {"prediction": "prediction", **{name: f"e{k} / ({total})" for k, name in enumerate(names)}}
