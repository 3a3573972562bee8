"""A model as a Python module that needs NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._model.linear_forms import Plan, plan
from . import _python_templates as parts
from ._literals import column_of, nested, number


def to_python(model: Any) -> str:
    """The source of a Python module that predicts as ``model`` does, and imports nothing but NumPy.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search, greedy or factorization machine.

    Returns
    -------
    source : str
        A module with ``predict(rows)``, and for classifiers ``decision_function(rows)`` and
        ``predict_proba(rows)``. ``rows`` is a two-dimensional array, a list of rows, or a dict of columns (a
        frame of pandas or polars is as good). Entries that are None or NaN are missing.
    """
    planned = plan(model)
    pieces = [_head(planned), _columns(planned), _basis(planned), _terms(planned), _predictions(planned)]
    return "\n\n".join(piece.strip("\n") + "\n" for piece in pieces)


def _array(name: str, array: np.ndarray) -> str:
    return f"{name} = np.array(\n    {nested(array.astype(np.float64), '[]')}\n).reshape({array.shape})\n"


def _head(planned: Plan) -> str:
    return f'"""{planned.about} It needs NumPy alone."""\n\nimport numpy as np\n'


def _columns(planned: Plan) -> str:
    columns = planned.portable.columns
    names = [f"{name!a},  # {column.kind}" for name, column in zip(planned.names, columns, strict=True)]
    text = "COLUMNS = [\n" + "".join(f"    {name}\n" for name in names) + "]\n"
    if any(column.levels is not None for column in columns):
        levels = {j: column for j, column in enumerate(columns) if column.levels is not None}
        text += "LEVELS = {  # by column; the numbers of their levels\n"
        for j, column in levels.items():
            assert column.levels is not None
            numbered = [f"{level!a}: {code}" for code, level in enumerate(column.levels)]
            text += f"    {j}: {{\n{column_of(numbered, '        ')}    }},\n"
        text += "}\nUNKNOWN = {  # by column; the number of all other levels\n"
        text += (
            column_of(
                [
                    f"{j}: {len(column.levels or ()) if column.rare else 'np.nan'}"
                    for j, column in levels.items()
                ]
            )
            + "}\n"
        )
        return text + parts.NUMBERS + parts.LEVELS
    return text + parts.NUMBERS + parts.NO_LEVELS


def _basis(planned: Plan) -> str:
    basis = planned.affine
    if basis is None:
        return _tables(planned)
    text = _array("CENTER", basis.center) + _array("SCALE", basis.scale) + _array("WEIGHTS", planned.weights)
    body = ["    t = (numbers - CENTER) * SCALE"]
    if np.isfinite(basis.clip):
        body.append(f"    t = np.clip(t, {number(-basis.clip)}, {number(basis.clip)})")
    if basis.constant:
        body.append(f"    t = np.column_stack([t, np.full(len(t), {number(basis.constant)})])")
    if basis.unit_rows:
        body += [
            "    norm = np.linalg.norm(t, axis=1, keepdims=True)",
            "    t = t / np.where(norm == 0, 1.0, norm)",
        ]
    return text + parts.AFFINE.replace("    # t\n", "\n".join(body) + "\n")


def _tables(planned: Plan) -> str:
    text = (
        _array("OFFSET", planned.offset)
        + "KNOTS, TABLES = {}, {}  # by column; a row of a table is by knot or level, the last is for missing\n"
    )
    for j, (name, table) in enumerate(zip(planned.names, planned.tables, strict=True)):
        knots = planned.knots(j)
        text += (
            f"# {name!a}\n"
            + ("" if knots is None else _array(f"KNOTS[{j}]", knots))
            + _array(f"TABLES[{j}]", table)
        )
    return text + parts.SPLINE


def _terms(planned: Plan) -> str:
    portable = planned.portable
    text = _array("INTERCEPT", portable.intercept) + f"N_OUTPUTS = {portable.n_outputs}\n"
    if portable.terms == "products":
        return text + f"N_TERMS = {planned.n_terms}  # of each degree, and of each output\n" + parts.PRODUCTS
    text += f"RANK = {portable.rank}\n"
    text += "FACTORS = {}\n" + "".join(
        _array(f"FACTORS[{p}]", factors) for p, factors in portable.factors.items()
    )
    return text + parts.ANOVA


def _predictions(planned: Plan) -> str:
    portable = planned.portable
    if portable.classes is None:
        return parts.REGRESSOR.replace(
            "_outputs(rows)", "_outputs(rows)[:, 0]" if portable.squeeze else "_outputs(rows)"
        )
    dtype = "object" if portable.classes.dtype.kind == "O" else repr(portable.classes.dtype.str)
    classes = f"CLASSES = np.array(\n    [\n{column_of([ascii(label) for label in planned.labels], '        ')}    ],\n    dtype={dtype},\n)\n"
    return classes + (parts.LOGISTIC if portable.link == "logistic" else parts.SOFTMAX)
