"""A model as C99 without dependencies."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from .._model.affine_basis import AffineBasis
from .._model.description import describe
from .._model.linear_forms import Label, LinearForms, linear_forms
from . import _c_templates as parts
from ._literals import column_of, nested, number

LONGEST_STRING = 4095  # bytes that every C99 compiler accepts


def to_c(model: Any, name: str = "model") -> str:
    """Return the source of a C99 file that predicts like ``model`` and needs only the C library (``-lm``).

    For a regressor, it defines

        void NAME_predict(const double *numbers, const char *const *categories, double *predictions);

    and for a classifier, with its labels in the array ``NAME_classes``,

        int NAME_predict(const double *numbers, const char *const *categories);   (the number of the class)
        void NAME_predict_proba(const double *numbers, const char *const *categories, double *probabilities);

    With multilabel targets, ``NAME_predict`` writes all labels, 0 or 1, to an ``int *labels`` instead.
    The levels of several quantiles are in the array ``NAME_quantiles``.

    Each function takes one row: its numeric columns (NAN for missing values), and its category columns as
    UTF-8 text (NULL for missing values). If a number is missing and the model accepts no missing numbers,
    predictions are NAN, and the number of the class, or each label, is -1. The top of the file lists the
    columns and the order of several targets or labels.

    Parameters
    ----------
    model : fitted regressor or classifier
        Any Tensor Machine, search, greedy or factorization machine.
    name : str, default="model"
        Prefix of all names in the file, so that several models can be linked together.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> "_predict(const double *numbers" in to_c(model)
    True
    """
    if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(f"name must be letters, digits and underscores, a letter first, got {name!r}.")
    forms = linear_forms(describe(model))
    pieces = [
        _head(forms),
        _code(name, parts.INCLUDES),
        _sizes(forms, name),
        _code(name, parts.PROTOTYPES[forms.description.link]),
        _classes(forms, name),
        _affine(forms, forms.affine, name) if forms.affine else _spline(forms, name),
        _outputs(forms, name),
        "" if (largest := forms.description.largest_outputs) is None else _array(f"{name}_largest", largest),
        _code(name, parts.PREDICTIONS[forms.description.link]),
    ]
    return "\n".join(piece.strip("\n") + "\n" for piece in pieces if piece)


def _code(name: str, code: str) -> str:
    return code.replace("NAME", name)


def _array(declaration: str, array: np.ndarray) -> str:
    shape = "".join(f"[{size}]" for size in array.shape)
    return f"static const double {declaration}{shape} = {nested(array.astype(np.float64), '{}', '')};\n"


def _comment(text: str) -> str:
    """Escape foreign text, so that it can neither end a comment nor begin another comment or a trigraph."""
    return json.dumps(text).replace("*/", "*\\/").replace("/*", "/\\*").replace("??", "?\\?")


def _string(text: str) -> str:
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise NotImplementedError(
            f"to_c writes text in UTF-8, which cannot encode {text!r}: rename this level or class."
        ) from None
    if 0 in encoded or len(encoded) > LONGEST_STRING:
        raise NotImplementedError(
            f"{text[:50]!r} cannot be a string in C: it has a zero or is longer than {LONGEST_STRING} bytes."
        )
    plain = [
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in encoded
    ]
    return f'"{"".join(plain)}"'


def _head(forms: LinearForms) -> str:
    def listed(kind: str) -> str:
        pairs = zip(forms.description.names, forms.description.columns, strict=True)
        names = [name for name, column in pairs if column.kind == kind]
        rows = [f"       {place}  {_comment(name)}\n" for place, name in enumerate(names)]
        return "".join(rows) or "       (none: give NULL)\n"

    return (
        f"/* {forms.about} In C99, without dependencies.\n\n"
        f"   numbers, NAN where missing:\n{listed('number')}"
        f"   categories, strings in UTF-8, NULL where missing:\n{listed('category')}{_targets(forms)}*/\n"
    )


def _targets(forms: LinearForms) -> str:
    """List the predictions of a row, if they have names."""
    described = forms.description
    if described.squeeze or described.target_names is None:
        return ""
    names = enumerate(described.target_names)
    what = "labels" if described.link == "sigmoid" else "predictions"
    return f"   {what}:\n" + "".join(f"       {place}  {_comment(name)}\n" for place, name in names)


def _sizes(forms: LinearForms, name: str) -> str:
    described = forms.description
    n_numbers = sum(column.kind == "number" for column in described.columns)
    sizes = {
        "NUMBERS": n_numbers,
        "CATEGORIES": forms.n_columns - n_numbers,
        "OUTPUTS": forms.n_outputs,
        "FORMS": forms.n_forms,
        **({} if described.classes is None else {"CLASSES": len(described.classes)}),
    }
    return "".join(f"#define {name}_N_{what} {size}\n" for what, size in sizes.items())


def _classes(forms: LinearForms, name: str) -> str:
    """Return the classes or the quantile levels, which users of the file may read."""
    if (levels := forms.description.quantiles) is not None:
        declaration = f"const double {name}_quantiles[{len(levels)}]"
        return f"extern {declaration};\n{declaration} = {nested(levels, '{}', '')};\n"
    if forms.description.classes is None:
        return ""
    labels = forms.labels
    kind = {bool: "int", int: "long long", float: "double", str: "char *const"}[type(labels[0])]
    if any(isinstance(label, int) and label > np.iinfo(np.int64).max for label in labels):
        kind = "unsigned long long"
    declaration = f"const {kind} {name}_classes[{len(labels)}]"
    values = column_of([_label(label, kind) for label in labels])
    return f"extern {declaration};\n{declaration} = {{\n{values}}};\n"


def _label(label: Label, kind: str) -> str:
    if isinstance(label, str):
        return _string(label)
    if isinstance(label, float):
        return number(label)
    if label == np.iinfo(np.int64).min:
        return f"{label + 1}LL - 1"  # C has no negative literals, and the positive one overflows
    return f"{int(label)}{'LL' if kind == 'long long' else 'ULL' if kind == 'unsigned long long' else ''}"


def _affine(forms: LinearForms, basis: AffineBasis, name: str) -> str:
    data = {"center": forms.center, "scale": forms.scale, "weights": forms.weights}
    rest = f"    t[{forms.n_columns}] = {number(basis.constant)};\n" if basis.constant else ""
    rest += parts.UNIT_ROW if basis.unit_rows else ""
    clip = parts.CLIP.replace("LIMIT", number(basis.clip)) if np.isfinite(basis.clip) else ""
    code = parts.AFFINE.replace("        /* clip */\n", clip).replace("    /* rest */\n", rest)
    arrays = [_array(f"{name}_{what}", array) for what, array in data.items()]
    return "".join(arrays) + _code(name, code.replace("WIDTH", str(forms.width)))


def _spline(forms: LinearForms, name: str) -> str:
    data, calls = [_array(f"{name}_offset", forms.offset)], []
    places = {"number": 0, "category": 0}
    for j, (column, table) in enumerate(zip(forms.description.columns, forms.tables, strict=True)):
        comment, knots, place = _comment(forms.description.names[j]), forms.knots(j), places[column.kind]
        places[column.kind] += 1
        data.append(f"/* {comment} */\n" + _array(f"{name}_table_{j}", table))
        if column.levels is None:
            assert knots is not None
            data.append(_array(f"{name}_knots_{j}", knots))
            given = f"numbers[{place}], {name}_knots_{j}, {len(knots)}, {name}_table_{j}"
            calls.append(f"    {name}_add_number({given}, forms); /* {comment} */\n")
            continue
        levels, n_levels = "NULL", len(column.levels)
        if column.levels:
            levels = f"{name}_levels_{j}"
            strings = column_of([_string(level) for level in column.levels])
            data.append(f"static const char *const {levels}[{n_levels}] = {{\n{strings}}};\n")
        state = f"{name}_level(categories[{place}], {levels}, {n_levels}, {n_levels}, {len(table) - 1})"
        calls.append(f"    {name}_add(1.0, {name}_table_{j}[{state}], forms); /* {comment} */\n")
    functions = (
        parts.ADD
        + (parts.ADD_NUMBER if places["number"] else "")
        + (parts.LEVEL if places["category"] else "")
    )
    body = _code(name, parts.SPLINE).replace("    /* columns */\n", "".join(calls))
    return "".join(data) + _code(name, functions) + body


def _outputs(forms: LinearForms, name: str) -> str:
    described = forms.description
    text, terms = _array(f"{name}_intercept", described.intercept), ""
    for p, factors in described.factors.items():
        shared = bool(forms.term_weights) and forms.term_weights[p].size > 0
        if shared:
            text += _array(f"{name}_term_weights_{p}", forms.term_weights[p])
        if described.terms == "anova":
            text += _array(f"{name}_factors_{p}", factors)
            add = parts.SHARED_ANOVA_ADD if shared else parts.ANOVA_ADD
            code = parts.ANOVA.replace("            /* add */\n", add).replace("SETS", str(len(factors)))
            terms += code.replace("POWER", str(p)).replace("RANK", str(described.layout.rank))
        elif forms.term_weights:
            if shared:
                count = str(forms.n_terms[p][0])
                terms += parts.SHARED_PRODUCTS.replace("POWER", str(p)).replace("COUNT", count)
        else:
            counts = ", ".join(map(str, forms.n_terms[p]))
            declaration = f"static const int {name}_n_terms_{p}[{forms.n_outputs}]"
            text += f"{declaration} = {{{counts}}}; /* of degree {p}, of each output */\n"
            terms += parts.PRODUCTS.replace("POWER", str(p))
    start = parts.OUTPUTS if forms.affine else parts.OUTPUTS.replace("t[WIDTH], ", "").replace("t, ", "")
    code = start.replace("    /* terms */\n", terms).replace("WIDTH", str(forms.width))
    return text + _code(name, code)
