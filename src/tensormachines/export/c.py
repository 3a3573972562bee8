"""A model as C99 without dependencies."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from .._model.linear_forms import Label, Plan, plan
from . import _c_templates as parts
from ._literals import column_of, nested, number

LONGEST_STRING = 4095  # that a C99 compiler has to take


def to_c(model: Any, name: str = "model") -> str:
    """The source of a C99 file that predicts as ``model`` does, from the C library alone (it needs ``-lm``).

    It holds, for a regressor,

        void NAME_predict(const double *numbers, const char *const *categories, double *predictions);

    and for a classifier, whose labels are in the array ``NAME_classes``,

        int NAME_predict(const double *numbers, const char *const *categories);   (the number of the class)
        void NAME_predict_proba(const double *numbers, const char *const *categories, double *probabilities);

    Each takes one row: its number columns (NAN where one is missing), and its category columns as text in
    UTF-8 (NULL where one is missing). Where the model takes no missing numbers, predictions are NAN then, and
    the number of the class is -1. The file lists the columns at its top.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search, greedy or factorization machine.
    name : str, default="model"
        What all names in the file begin with, so that several models can be linked together.
    """
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name must be letters, digits and underscores, with a letter first, got {name!r}.")
    planned = plan(model)
    pieces = [
        _head(planned),
        _code(name, parts.INCLUDES),
        _sizes(planned, name),
        _code(name, parts.PROTOTYPES[planned.portable.link]),
        _classes(planned, name),
        _affine(planned, name) if planned.affine else _spline(planned, name),
        _outputs(planned, name),
        _code(name, parts.PREDICTIONS[planned.portable.link]),
    ]
    return "\n".join(piece.strip("\n") + "\n" for piece in pieces if piece)


def _code(name: str, code: str) -> str:
    return code.replace("NAME", name)


def _array(declaration: str, array: np.ndarray) -> str:
    shape = "".join(f"[{size}]" for size in array.shape)
    return f"static const double {declaration}{shape} = {nested(array.astype(np.float64), '{}', '')};\n"


def _comment(text: str) -> str:
    """Text of others in a comment: nothing of it can end the comment, or look like the beginning of another,
    or like a trigraph.
    """
    return json.dumps(text).replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?")


def _string(text: str) -> str:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise NotImplementedError(
            f"to_c writes text in UTF-8, which has no {text!r}: rename this level or class."
        ) from None
    if 0 in encoded or len(encoded) > LONGEST_STRING:
        raise NotImplementedError(
            f"No string in C is {text[:50]!r}: it has a zero or is longer than {LONGEST_STRING} bytes."
        )
    plain = [
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in encoded
    ]
    return f'"{"".join(plain)}"'


def _head(planned: Plan) -> str:
    def listed(kind: str) -> str:
        names = [
            name
            for name, column in zip(planned.names, planned.portable.columns, strict=True)
            if column.kind == kind
        ]
        return (
            "".join(f"       {place}  {_comment(name)}\n" for place, name in enumerate(names))
            or "       (none: give NULL)\n"
        )

    return (
        f"/* {planned.about} In C99, without dependencies.\n\n"
        f"   numbers, NAN where missing:\n{listed('number')}"
        f"   categories, strings in UTF-8, NULL where missing:\n{listed('category')}*/\n"
    )


def _sizes(planned: Plan, name: str) -> str:
    portable = planned.portable
    n_numbers = sum(column.kind == "number" for column in portable.columns)
    sizes = {
        "NUMBERS": n_numbers,
        "CATEGORIES": planned.n_columns - n_numbers,
        "OUTPUTS": portable.n_outputs,
        "FORMS": planned.n_forms,
        **({} if portable.classes is None else {"CLASSES": len(portable.classes)}),
    }
    return "".join(f"#define {name}_N_{what} {size}\n" for what, size in sizes.items())


def _classes(planned: Plan, name: str) -> str:
    if planned.portable.classes is None:
        return ""
    labels = planned.labels
    kind = {bool: "int", int: "long long", float: "double", str: "char *const"}[type(labels[0])]
    if any(isinstance(label, int) and label > np.iinfo(np.int64).max for label in labels):
        kind = "unsigned long long"
    declaration = f"const {kind} {name}_classes[{len(labels)}]"
    return f"extern {declaration};\n{declaration} = {{\n{column_of([_label(label, kind) for label in labels])}}};\n"


def _label(label: Label, kind: str) -> str:
    if isinstance(label, str):
        return _string(label)
    if isinstance(label, float):
        return number(label)
    if label == np.iinfo(np.int64).min:
        return f"{label + 1}LL - 1"  # C has no negative literals, and no such positive one
    return f"{int(label)}{'LL' if kind == 'long long' else 'ULL' if kind == 'unsigned long long' else ''}"


def _affine(planned: Plan, name: str) -> str:
    basis = planned.affine
    assert basis is not None
    text = (
        _array(f"{name}_center", basis.center)
        + _array(f"{name}_scale", basis.scale)
        + _array(f"{name}_weights", planned.weights)
    )
    rest = []
    if basis.constant:
        rest.append(f"    t[{planned.n_columns}] = {number(basis.constant)};\n")
    if basis.unit_rows:
        rest.append(parts.UNIT_ROW)
    clip = parts.CLIP.replace("LIMIT", number(basis.clip)) if np.isfinite(basis.clip) else ""
    code = (
        parts.AFFINE.replace("        /* clip */\n", clip)
        .replace("    /* rest */\n", "".join(rest))
        .replace("WIDTH", str(basis.width))
    )
    return text + _code(name, code)


def _spline(planned: Plan, name: str) -> str:
    data, calls = [_array(f"{name}_offset", planned.offset)], []
    places = {"number": 0, "category": 0}
    for j, (column, table) in enumerate(zip(planned.portable.columns, planned.tables, strict=True)):
        comment, knots, place = _comment(planned.names[j]), planned.knots(j), places[column.kind]
        places[column.kind] += 1
        data.append(f"/* {comment} */\n" + _array(f"{name}_table_{j}", table))
        if knots is not None:
            data.append(_array(f"{name}_knots_{j}", knots))
            calls.append(
                f"{name}_add_number(numbers[{place}], {name}_knots_{j}, {len(knots)}, {name}_table_{j}, forms); /* {comment} */"
            )
            continue
        assert column.levels is not None
        levels = "NULL"
        if column.levels:
            levels = f"{name}_levels_{j}"
            data.append(
                f"static const char *const {levels}[{len(column.levels)}] = {{\n{column_of([*map(_string, column.levels)])}}};\n"
            )
        unknown = len(column.levels) if column.rare else len(table) - 1
        state = (
            f"{name}_level(categories[{place}], {levels}, {len(column.levels)}, {unknown}, {len(table) - 1})"
        )
        calls.append(f"{name}_add(1.0, {name}_table_{j}[{state}], forms); /* {comment} */")
    functions = (
        parts.ADD
        + (parts.ADD_NUMBER if places["number"] else "")
        + (parts.LEVEL if places["category"] else "")
    )
    forms = _code(name, parts.SPLINE).replace(
        "    /* columns */\n", "".join(f"    {call}\n" for call in calls)
    )
    return "".join(data) + _code(name, functions) + forms


def _outputs(planned: Plan, name: str) -> str:
    portable = planned.portable
    text = _array(f"{name}_intercept", portable.intercept)
    terms = ""
    for p, factors in portable.factors.items():
        if portable.terms == "anova":
            text += _array(f"{name}_factors_{p}", factors)
        else:
            counts = ", ".join(map(str, planned.n_terms[p]))
            text += f"static const int {name}_n_terms_{p}[{portable.n_outputs}] = {{{counts}}}; /* of degree {p}, of each output */\n"
        term = parts.PRODUCTS if portable.terms == "products" else parts.ANOVA
        terms += (
            term.replace("POWER", str(p))
            .replace("RANK", str(portable.rank))
            .replace("WIDTH", str(portable.basis.width))
        )
    start = parts.OUTPUTS if planned.affine else parts.OUTPUTS.replace("t[WIDTH], ", "").replace("t, ", "")
    start = start.replace("WIDTH", str(portable.basis.width))
    return text + _code(name, start.replace("    /* terms */\n", terms))
