"""A model as one SQL query, for DuckDB, SQLite and similar databases.

The query is a chain of common table expressions. In a spline basis, every entry of a row becomes a state of
its column, or lies between two states (`tm_located`). The forms of a row are sums of the forms of these
states, which are stored in one table per column (`tm_states0`, `tm_states1`, ...)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import isfinite
from typing import Any

import numpy as np

from .._data.frame import is_number, level_name
from .._model.affine_basis import AffineBasis
from .._model.description import describe
from .._model.linear_forms import Label, LinearForms, linear_forms
from ._literals import lines, number

COLUMNS_AT_ONCE = 8  # columns in one join: some databases join at most 64 tables
TERMS_AT_ONCE = 32  # terms in one sum: parsers limit how deeply sums are nested


def to_sql(model: Any, table: str | Sequence[str] = "rows", keep: Sequence[str] = ()) -> str:
    """Return a query that predicts the rows of a table like ``model``: one SELECT for DuckDB and SQLite.

    The result has a row for every row of the table, in its order. The columns are those to ``keep``, then
    "prediction" (with several targets, labels or quantiles, "prediction_" followed by the name or level of
    each). For classifiers, the probability of each class or label follows, as "probability_" followed by its
    name. Targets, labels and classes are numbered from 0 if they have no names, or names that SQL cannot tell
    apart.

    The table needs the columns of the fit, by name; columns without names are called x0, x1, ... NULL and NaN
    are missing. If a value is missing and the model accepts no missing values, the prediction is NULL.

    Probabilities and predictions with a log link need the function exp, and the bases "unit" and "sphere"
    need sqrt. DuckDB has both, and so does SQLite if it was built with mathematical functions; otherwise
    register them: ``connection.create_function("exp", 1, lambda x: x if x is None else math.exp(x))``.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search or greedy machine. Factorization machines are refused.
    table : str or sequence of str, default="rows"
        Name of a table or view; ("main", "rows") is a table in a schema. Names that begin with tm_ are
        reserved for the query.
    keep : sequence of str, default=()
        Columns of the table to copy to the result, such as its key.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> print("SELECT", to_sql(model, "patients", keep=["age"]).rpartition("SELECT ")[2], end="")
    SELECT kept0 AS "age",
        z0 AS "prediction"
    FROM tm_outputs
    ORDER BY tm_row
    """
    forms = linear_forms(describe(model))
    described = forms.description
    if described.terms == "anova":
        raise NotImplementedError(
            "to_sql does not write factorization machines: use to_python or to_c, or a Tensor Machine."
        )
    if isinstance(keep, str):
        raise TypeError(f"keep must be a sequence of names, such as [{keep!r}], got the string {keep!r}.")
    _require_distinct_names(described.names)
    kept = ["tm_row", *(f"kept{k}" for k in range(len(keep)))]  # columns that every step keeps
    steps = [
        ("tm_input", _input(forms, table, keep)),
        *(_affine(forms, forms.affine, kept) if forms.affine else _spline(forms, kept)),
        *_outputs(forms, kept),
        *(_ranking(forms, kept) if described.classes is not None else ()),
        *(_places(forms, kept) if described.link == "sorted" else ()),
    ]
    results = _results(forms)
    taken = [name for name in keep if name.lower() in map(str.lower, results)]
    if taken:
        raise ValueError(
            f"keep names {taken[0]!r}, which is a column of the result: rename it or leave it out."
        )
    columns = [f"kept{k} AS {_identifier(name)}" for k, name in enumerate(keep)]
    columns += [f"{expression} AS {_identifier(name)}" for name, expression in results.items()]
    chain = ",\n".join(f"{name} AS MATERIALIZED (\n{body}\n)" for name, body in steps)
    query = f"SELECT {_listed(columns)}\nFROM {steps[-1][0]}\nORDER BY tm_row\n"
    return f"-- {forms.about}\nWITH {chain}\n{query}"


# ---- elements of the language


def _identifier(name: str) -> str:
    if "\0" in name:
        raise ValueError(f"{name!r} cannot be the name of a column or table in SQL: it has a zero in it.")
    return '"' + name.replace('"', '""') + '"'


def _text(text: str) -> str:
    if "\0" in text:
        raise NotImplementedError(
            f"to_sql cannot write text with a zero in it, got {text!r}: rename this level or class."
        )
    return "'" + text.replace("'", "''") + "'"


def _literal(label: Label) -> str:
    if isinstance(label, str):
        return _text(label)
    return _number(label) if isinstance(label, float) else str(label).upper()


def _number(x: float) -> str:
    """Return a number with an exponent: without one, DuckDB would read a decimal number, which overflows."""
    text = number(x)
    return text if "e" in text else f"{text}e0"


def _sum(terms: Sequence[str]) -> str:
    if len(terms) <= TERMS_AT_ONCE:
        return " + ".join(terms)
    starts = range(0, len(terms), TERMS_AT_ONCE)
    return _sum([f"({_sum(terms[start : start + TERMS_AT_ONCE])})" for start in starts])


def _listed(expressions: Sequence[str]) -> str:
    return ",\n    ".join(expressions)


def _step(kept: Sequence[str], expressions: Sequence[str], source: str) -> str:
    return f"    SELECT {', '.join(kept)},\n    {_listed(expressions)}\n    FROM {source}"


def _commented_step(kept: Sequence[str], expressions: Sequence[tuple[str, str]], source: str) -> str:
    """Select expressions, each paired with the name of the column it refers to."""
    lines = [f"{expression} -- {json.dumps(name)}\n    " for expression, name in expressions]
    return f"    SELECT {', '.join(kept)}\n    , {', '.join(lines)}FROM {source}"


def _require_distinct_names(names: Sequence[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.lower(), name)
        if other is not name:
            raise ValueError(
                f"SQL does not tell the columns {other!r} and {name!r} apart: fit the model with other names."
            )


# ---- steps


def _input(forms: LinearForms, table: str | Sequence[str], keep: Sequence[str]) -> str:
    columns = []
    for j, (name, column) in enumerate(zip(forms.description.names, forms.description.columns, strict=True)):
        # The empty text is appended because a plain column would be compared by its collation, which may
        # ignore case. The source is named because SQLite treats a quoted name that is not a column as text.
        kind, suffix = ("DOUBLE", "") if column.kind == "number" else ("VARCHAR", " || ''")
        columns.append(f"CAST(source.{_identifier(name)} AS {kind}){suffix} AS x{j}")
    columns += [f"source.{_identifier(name)} AS kept{k}" for k, name in enumerate(keep)]
    named = ".".join(map(_identifier, [table] if isinstance(table, str) else table))
    return _step(["row_number() OVER () AS tm_row"], columns, f"{named} AS source")


def _is_nan(x: str) -> str:
    """Return a test for NaN: in DuckDB, NaN and -NaN are larger than all numbers; SQLite has no NaN."""
    return f"{x} > 0 AND -{x} > 0"


def _affine(forms: LinearForms, basis: AffineBasis, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    entries, source = [f"t{j}" for j in range(forms.n_columns)], "tm_scaled"
    scaled = [
        f"CASE WHEN NOT ({_is_nan(f'x{j}')}) THEN (x{j} - {_number(center)}) * {_number(scale)} END AS t{j}"
        for j, (center, scale) in enumerate(zip(forms.center, forms.scale, strict=True))
    ]
    yield source, _commented_step(kept, list(zip(scaled, forms.description.names, strict=True)), "tm_input")
    if np.isfinite(basis.clip):
        low, high = _number(-basis.clip), _number(basis.clip)
        clipped = [
            f"CASE WHEN {t} > {high} THEN {high} WHEN {t} < {low} THEN {low} ELSE {t} END AS {t}"
            for t in entries
        ]
        yield "tm_clipped", _step(kept, clipped, source)
        source = "tm_clipped"
    divisor = ""
    if basis.unit_rows:
        constant = [_number(basis.constant**2)] if basis.constant else []
        squares = _sum([*(f"{t} * {t}" for t in entries), *constant])
        yield "tm_norms", f"    SELECT *, sqrt({squares}) AS norm FROM {source}"
        source, divisor = "tm_norms", " / CASE WHEN norm = 0 THEN 1e0 ELSE norm END"
    sums = []
    for f, weights in enumerate(forms.weights.T):
        terms = [f"{_number(weight)} * {t}" for weight, t in zip(weights, entries, strict=False)]
        if basis.constant:
            terms.append(_number(forms.offset[f]))
        sums.append(f"({_sum(terms)}){divisor} AS f{f}")
    yield "tm_forms", _step(kept, sums, source)


def _spline(forms: LinearForms, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    columns = range(forms.n_columns)
    located = [(located, forms.description.names[j]) for j in columns for located in _located(forms, j)]
    yield "tm_located", _commented_step(kept, located, "tm_input")
    names = [f"f{f}" for f in range(forms.n_forms)]
    for j in columns:
        rows = [
            lines([str(state), *map(_number, row)], "    ").strip()
            for state, row in enumerate(forms.tables[j])
        ]
        values = ",\n".join(f"    ({row})" for row in rows)
        yield f"tm_states{j}(state, {', '.join(names)})", f"    VALUES\n{values}"
    source, sums = "tm_located", [_number(offset) for offset in forms.offset]
    for first in columns[::COLUMNS_AT_ONCE]:
        these, others = columns[first : first + COLUMNS_AT_ONCE], columns[first + COLUMNS_AT_ONCE :]
        carried = list(kept)
        for j in others:
            carried += [f"below{j}", *([f"share{j}"] if _between(forms, j) else [])]
        sums = [
            f"{_sum([before, *(_part(forms, j, f) for j in these)])} AS f{f}" for f, before in enumerate(sums)
        ]
        joins = [join for j in these for join in _joins(forms, j)]
        # A cross join with conditions makes SQLite read the rows in this order and look up the states.
        joined = " CROSS JOIN ".join([source, *(table for table, _ in joins)])
        conditions = " AND ".join(condition for _, condition in joins)
        source = f"tm_forms{first}" if others else "tm_forms"
        yield source, _step(carried, sums, f"{joined}\n    WHERE {conditions}")
        sums = [f"{source}.{form}" for form in names]


def _between(forms: LinearForms, j: int) -> bool:
    """Tell whether an entry of the column can lie between two states."""
    knots = forms.knots(j)
    return knots is not None and len(knots) > 1


def _located(forms: LinearForms, j: int) -> Iterator[str]:
    """Yield the index of an entry's level, or of the knot below it, and how near it is to the next knot."""
    x, missing, knots = f"x{j}", len(forms.tables[j]) - 1, forms.knots(j)
    levels = forms.description.columns[j].levels
    if levels is not None:
        cases = [
            f"WHEN {x} IN ({_spellings(level, levels)}) THEN {code}" for code, level in enumerate(levels)
        ]
        known = f"WHEN {_is_missing_level(x, levels)} THEN {missing} {' '.join(cases)}"
        yield f"CASE {known} ELSE {len(levels)} END AS below{j}"
        return
    assert knots is not None
    is_missing, below = f"{x} IS NULL OR ({_is_nan(x)})", [str(k) for k in range(max(1, len(knots) - 1))]
    yield f"CASE WHEN {is_missing} THEN {missing} ELSE {_search(x, knots, below)} END AS below{j}"
    if _between(forms, j):
        halves = 0.5 * knots  # the difference of two large numbers would overflow
        shares = [
            f"(0.5e0 * {x} - {_number(low)}) / {_number(gap)}"
            for low, gap in zip(halves, np.diff(halves), strict=False)
        ]
        ends = f"WHEN {x} <= {_number(knots[0])} THEN 0e0 WHEN {x} >= {_number(knots[-1])} THEN 1e0"
        yield f"CASE WHEN {is_missing} THEN 0e0 {ends} ELSE {_search(x, knots, shares)} END AS share{j}"


def _is_missing_level(x: str, levels: Sequence[str]) -> str:
    """Return a test for a missing category: NULL, or NaN if the levels are numbers."""
    numbers = levels and all(is_number(level) and isfinite(float(level)) for level in levels)
    return f"({x} IS NULL OR {x} IN ('nan', 'NaN'))" if numbers else f"{x} IS NULL"


def _spellings(level: str, levels: Sequence[str]) -> str:
    """Return the spellings of a level in databases, where 3 may be the number 3.0, and True may be true."""
    spellings = [level]
    if level in ("True", "False"):
        spellings.append(level.lower())
    elif is_number(level) and isfinite(float(level)) and level_name(float(level)) == level:
        spellings += [repr(float(level)), *_in_sqlite(float(level))]
    spellings = list(dict.fromkeys(spellings))
    return ", ".join(_text(spelling) for spelling in spellings if spelling == level or spelling not in levels)


def _in_sqlite(value: float) -> list[str]:
    """Return the texts that SQLite may cast a number to.

    Older releases (3.40) write 15 digits. Newer ones (3.53) write as few if these are the number, else 17,
    the last of which may be one more or less than it should."""
    short, long = Decimal(f"{value:.14e}"), Decimal(f"{value:.16e}")
    texts = [_with_digits(short, 15), _with_digits(long, 17)]
    if float(f"{value:.11e}") != value:
        step = Decimal(1).scaleb(long.adjusted() - 16)
        others = Decimal(repr(value)), long - step, long + step
        texts += [_with_digits(other, 17) for other in others if float(other) == value]
    return texts


def _with_digits(number: Decimal, digits: int) -> str:
    """Return a number as `printf("%.{digits}g")` writes it, but always with a point."""
    fixed = not number or -5 < number.adjusted() < digits
    text, _, power = (f"{number:f}" if fixed else f"{number:e}").partition("e")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}" + (f"e{int(power):+03d}" if power else "")


def _search(x: str, knots: np.ndarray, results: Sequence[str], first: int = 0) -> str:
    """Return the result for the two knots around x, by bisection; ``first`` is the lower of the first two."""
    if len(results) == 1:
        return results[0]
    half = len(results) // 2
    lower, upper = _search(x, knots, results[:half], first), _search(x, knots, results[half:], first + half)
    return f"CASE WHEN {x} < {_number(knots[first + half])} THEN {lower} ELSE {upper} END"


def _part(forms: LinearForms, j: int, f: int) -> str:
    low, high = f"low{j}.f{f}", f"high{j}.f{f}"
    return f"(1 - share{j}) * {low} + share{j} * {high}" if _between(forms, j) else low


def _joins(forms: LinearForms, j: int) -> Iterator[tuple[str, str]]:
    yield f"tm_states{j} AS low{j}", f"low{j}.state = below{j}"
    if _between(forms, j):
        missing = len(forms.tables[j]) - 1
        state = f"CASE WHEN below{j} = {missing} THEN {missing} ELSE below{j} + 1 END"
        yield f"tm_states{j} AS high{j}", f"high{j}.state = {state}"


def _outputs(forms: LinearForms, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    outputs = [[_number(intercept), f"f{k}"] for k, intercept in enumerate(forms.description.intercept)]
    source, products = "tm_forms", list(_products(forms))
    if forms.term_weights:  # compute each product once, not once per output
        source, linear = "tm_terms", [f"f{k}" for k in range(forms.n_outputs)]
        terms = [f"{product} AS p{t}" for t, (product, _) in enumerate(products)]
        yield source, _step([*kept, *linear], terms, "tm_forms") if terms else _step(kept, linear, "tm_forms")
        weights = np.hstack(list(forms.term_weights.values()))
        for of_output, own in zip(outputs, weights, strict=True):
            of_output += [f"{_number(weight)} * p{t}" for t, weight in enumerate(own)]
    else:
        for product, k in products:
            outputs[k].append(product)
    sums = [f"{_sum(of_output)} AS z{k}" for k, of_output in enumerate(outputs)]
    yield "tm_outputs", _step(kept, sums, source)


def _products(forms: LinearForms) -> Iterator[tuple[str, int]]:
    """Yield the terms, each with the index of its set."""
    form = forms.n_outputs
    for p, counts in forms.n_terms.items():
        for number_of_set, count in enumerate(counts):
            for _ in range(count):
                yield " * ".join(f"f{f}" for f in range(form, form + p)), number_of_set
                form += p


def _ranking(forms: LinearForms, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the label of the largest output, and exponentials that cannot overflow."""
    labels = [_literal(label) for label in forms.labels]
    if forms.description.link == "logistic":
        label = f"CASE WHEN z0 > 0 THEN {labels[1]} WHEN z0 <= 0 THEN {labels[0]} END"
        both = "exp((-z0 - abs(z0)) / 2) AS e0, exp((z0 - abs(z0)) / 2) AS e1"
        yield "tm_powers", _step([*kept, f"{label} AS prediction"], [both], "tm_outputs")
        return
    outputs = [f"z{k}" for k in range(len(labels))]
    largest = [
        " AND ".join(f"{z} >= {other}" for other in outputs[k + 1 :]) or f"{z} IS NOT NULL"
        for k, z in enumerate(outputs)
    ]

    def chosen(values: Sequence[str], name: str) -> str:
        cases = [f"WHEN {when} THEN {value}" for when, value in zip(largest, values, strict=True)]
        return f"CASE {' '.join(cases)} END AS {name}"

    yield "tm_ranked", _step(["*"], [chosen(labels, "prediction"), chosen(outputs, "peak")], "tm_outputs")
    powers = [f"exp({z} - peak) AS e{k}" for k, z in enumerate(outputs)]
    yield "tm_powers", _step([*kept, "prediction"], powers, "tm_ranked")


def _places(forms: LinearForms, kept: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the rank of each output in its row: how many outputs are smaller, or equal and before it."""
    outputs = [f"z{k}" for k in range(forms.n_outputs)]
    places = []
    for k, z in enumerate(outputs):
        smaller = [f"{other} {'<=' if j < k else '<'} {z}" for j, other in enumerate(outputs) if j != k]
        places.append(f"{_sum([f'CAST({each} AS INTEGER)' for each in smaller] or ['0'])} AS place{k}")
    yield "tm_places", _step([*kept, *outputs], places, "tm_outputs")


def _labels(names: Sequence[str]) -> dict[str, str]:
    """Return all labels of a row, then their probabilities, by exponentials that cannot overflow."""
    found = {
        f"prediction_{name}": f"CASE WHEN z{k} > 0 THEN 1 WHEN z{k} <= 0 THEN 0 END"
        for k, name in enumerate(names)
    }
    for k, name in enumerate(names):
        yes, no = f"exp((z{k} - abs(z{k})) / 2)", f"exp((-z{k} - abs(z{k})) / 2)"
        found[f"probability_{name}"] = f"{yes} / ({yes} + {no})"
    return found


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names, or numbers instead if SQL, which ignores case, would confuse or refuse the names."""
    if len({name.lower() for name in names}) < len(names) or any("\0" in name for name in names):
        return [str(k) for k in range(len(names))]
    return list(names)


def _results(forms: LinearForms) -> dict[str, str]:
    """Return the columns of the result, by name."""
    if forms.description.link == "sigmoid":
        return _labels(_distinct(forms.description.output_names))
    if forms.description.quantiles is not None:
        cases = " ".join(f"WHEN place{k} THEN z{k}" for k in range(forms.n_outputs))
        levels = enumerate(forms.description.quantiles.tolist())
        return {f"prediction_{level}": f"CASE {place} {cases} END" for place, level in levels}
    if forms.description.classes is None:
        values = [f"z{k}" for k in range(forms.n_outputs)]
        if (largest := forms.description.largest_outputs) is not None:
            limits = [(_number(z), _number(np.exp(z))) for z in largest]
            pairs = zip(values, limits, strict=True)
            values = [f"CASE WHEN {z} > {end} THEN {most} ELSE exp({z}) END" for z, (end, most) in pairs]
        if forms.description.squeeze:
            return {"prediction": values[0]}
        names = _distinct(forms.description.output_names)
        return {f"prediction_{name}": value for name, value in zip(names, values, strict=True)}
    names = [f"probability_{name}" for name in _distinct([str(label) for label in forms.labels])]
    total = _sum([f"e{k}" for k in range(len(names))])
    return {"prediction": "prediction", **{name: f"e{k} / ({total})" for k, name in enumerate(names)}}
