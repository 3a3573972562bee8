"""A fitted model as plain data: what files, exports to other languages and the HTML page are all made of.

A model turns a row into outputs in three steps, and `_model.description_form.Portable` has what each needs:

    columns   each entry to a number: itself, or the number of its level; NaN where it is missing or its level is unknown
    basis     these numbers to the row t, of ``width`` entries: an `AffineBasis` or a `SplineBasis`
    model     f_k(t) = intercept_k + <coef_k, t> + sum over p = 2..degree, i = 1..rank of  term_kpi(t)

In regression the outputs are the predictions, in the units of the target: there is nothing else to be done to
them. In classification they are log-odds (link "logistic", one output, of the second class) or go through a
softmax (link "softmax", an output a class).

`evaluate` does these steps slowly, from the description alone. It is the truth of all that is made from a
description."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..estimators.classification import Classification
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.regression import Regression
from ..estimators.search import Search
from .basis import AnyBasis
from .description_columns import columns_of, encode
from .description_form import AffineBasis, Column, Link, Portable, SplineBasis, SplineCategory, SplineNumber
from .layout import AnovaLayout
from .spline_basis import CLIP, CONSTANT, LINE, ROUGHNESS
from .spline_basis import SplineBasis as FittedSplineBasis
from .spline_basis import SplineColumn as FittedSplineColumn

# ---- from a model


def describe(model: Any) -> Portable:
    """The description of a fitted regressor or classifier: any Tensor Machine, search, greedy or
    factorization machine.
    """
    model = model._fitted() if isinstance(model, Search) else model
    if not isinstance(model, Regression | Classification):
        raise TypeError(
            "Only regressors and classifiers that are polynomials can be described: TensorMachineRegressor, TensorMachineClassifier, "
            "their searches (...CV), and GreedyTensorMachine... and FactorizationMachine... of tensormachines.peers; "
            f"got {type(model).__name__}."
        )
    return describe_machine(model)


def describe_machine(model: PolynomialModel) -> Portable:
    """The same for every model that has a machine: for `TensorMachineFeatures`, too, which shows its terms
    and not their sum.
    """
    model = model._fitted() if isinstance(model, Search) else model
    model._require_fit()
    machine = model._machine
    layout, params = machine.layout, machine.params
    classes = model.classes_ if isinstance(model, Classification) else None
    link: Link = "identity" if classes is None else "logistic" if len(classes) == 2 else "softmax"
    return Portable(
        kind="classifier"
        if classes is not None
        else "regressor"
        if isinstance(model, Regression)
        else "features",
        link=link,
        classes=classes,
        columns=_columns(model),
        basis=_basis(machine.basis),
        terms="anova" if isinstance(layout, AnovaLayout) else "products",
        degree=layout.degree,
        rank=layout.rank,
        intercept=layout.bias(params).copy(),
        coef=np.ascontiguousarray(layout.linear(params)),
        factors={p: np.ascontiguousarray(factors) for p, factors in layout.factors_by_degree(params).items()},
        squeeze=bool(model._squeezed),
    )


def _columns(model: PolynomialModel) -> tuple[Column, ...]:
    names = getattr(model, "feature_names_in_", range(model.n_features_in_))
    fitted = [None] * len(names) if model._columns is None else model._columns.columns
    basis = model._machine.basis
    splines = basis.columns if isinstance(basis, FittedSplineBasis) else [None] * len(names)
    return tuple(
        Column(
            name=name if isinstance(name, int) else str(name),
            levels=None if column is None else column.levels,
            rare=column is not None and column.pooled,
            missing="refused"
            if spline is None
            else "own"
            if spline.missing
            else "zero"
            if spline.reference < 0
            else "commonest",
        )
        for name, column, spline in zip(names, fitted, splines, strict=True)
    )


def _basis(basis: AnyBasis) -> AffineBasis | SplineBasis:
    if isinstance(basis, FittedSplineBasis):
        return _spline_basis(basis)
    if basis.shift is None or basis.scale is None:
        name, center, scale = None, np.zeros(basis.n_columns), np.ones(basis.n_columns)
    else:
        name = "standard" if not basis.unit_rows else "sphere" if basis.constant else "unit"
        center, scale = basis.shift, basis.scale
    return AffineBasis(name, center, scale, float(basis.clip), float(basis.constant), basis.unit_rows)


def _spline_basis(basis: FittedSplineBasis) -> SplineBasis:
    varying = sum(len(column.knots) + column.missing > 1 for column in basis.columns)
    size = float(1 / np.sqrt(max(1, varying)))
    columns: list[SplineNumber | SplineCategory] = []
    start = 0
    for column in basis.columns:
        center = basis.center[start : start + column.width]
        start += column.width
        if column.category:
            columns.append(SplineCategory(len(column.knots), size, column.missing, center))
        else:
            columns.append(_spline_number(column, size, center))
    return SplineBasis(tuple(columns), size, CONSTANT, ROUGHNESS, LINE, CLIP)


def _spline_number(column: FittedSplineColumn, size: float, center: np.ndarray) -> SplineNumber:
    knots = column.knots if len(column.knots) else np.zeros(1)
    values = np.zeros((len(knots), len(center)))
    k, rank = np.arange(1, column.waves + 1), np.linspace(0, 1, len(knots))
    of_all = (ROUGHNESS / np.tanh(ROUGHNESS) - 1) / 2  # the sum of the strengths of all waves
    strength = 1 / (1 + (np.pi * k / ROUGHNESS) ** 2) / of_all
    values[:, : column.waves] = np.sqrt(2 * strength) * np.cos(np.pi * np.outer(rank, k))
    if column.deviation > 0:
        values[:, column.waves] = LINE * np.clip((knots - column.mean) / column.deviation, -CLIP, CLIP)
    at_missing = np.zeros(len(center))
    at_missing[len(center) - column.missing :] = 1.0
    if column.reference >= 0 and not column.missing:
        at_missing = values[column.reference]
    if column.reference >= 0 and not len(column.knots):
        values = at_missing[None]
    return SplineNumber(
        knots=knots,
        values=size * values - center.astype(np.float64),
        at_missing=size * at_missing - center.astype(np.float64),
        waves=column.waves,
        mean=column.mean,
        deviation=column.deviation,
        missing=column.missing,
        only_missing=not len(column.knots),
        reference=column.reference,
        center=center,
    )


# ---- evaluation


def evaluate(portable: Portable, rows: Any) -> np.ndarray:
    """The outputs f of every row, (rows, n_outputs), in float64.

    ``rows``: two-dimensional array, list of rows, sparse matrix, or frame of pandas or polars, with the
    columns in their order."""
    numbers = encode(portable.columns, columns_of(rows, len(portable.columns)))
    lifted = lift(portable.basis, numbers)
    outputs = portable.intercept.astype(np.float64) + lifted @ portable.coef.astype(np.float64).T
    for p, factors in portable.factors.items():
        for output, of_output in enumerate(factors.astype(np.float64)):
            for term in of_output:
                outputs[:, output] += (
                    _sum_over_sets(lifted * term, p)
                    if portable.terms == "anova"
                    else (lifted @ term.T).prod(axis=1)
                )
    return outputs


def lift(basis: AffineBasis | SplineBasis, numbers: np.ndarray) -> np.ndarray:
    """Rows of numbers (rows, n_columns) in the basis, (rows, width)."""
    if isinstance(basis, AffineBasis):
        lifted = np.clip((numbers - basis.center.astype(np.float64)) * basis.scale, -basis.clip, basis.clip)
        if basis.constant:
            lifted = np.column_stack([lifted, np.full(len(lifted), basis.constant)])
        if not basis.unit_rows:
            return lifted
        norm = np.linalg.norm(lifted, axis=1, keepdims=True)
        return lifted / np.where(norm == 0, 1.0, norm)
    parts = [_functions(column, numbers[:, j]) for j, column in enumerate(basis.columns)]
    return np.column_stack([*parts, np.full(len(numbers), basis.constant)])


def probabilities(portable: Portable, outputs: np.ndarray) -> np.ndarray:
    """(rows, n_classes), in the order of ``classes``."""
    if portable.link == "identity":
        raise ValueError("A regressor has no probabilities.")
    scores = (
        outputs if portable.link == "softmax" else np.column_stack([np.zeros(len(outputs)), outputs[:, 0]])
    )
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def predictions(portable: Portable, outputs: np.ndarray) -> np.ndarray:
    """Numbers (rows,) or (rows, n_outputs); or labels (rows,): of equally probable ones the first."""
    if portable.classes is None:
        return outputs[:, 0] if portable.squeeze else outputs
    return portable.classes[
        (outputs[:, 0] > 0).astype(np.intp) if portable.link == "logistic" else outputs.argmax(axis=1)
    ]


def _functions(column: SplineNumber | SplineCategory, x: np.ndarray) -> np.ndarray:
    missing = np.isnan(x)
    if isinstance(column, SplineCategory):
        functions = np.tile(-column.center.astype(np.float64), (len(x), 1))
        present = np.flatnonzero(~missing)
        functions[present, x[present].astype(np.intp)] += column.size
        if column.missing:
            functions[missing, column.n_levels] += column.size
        return functions
    values, knots = column.values, column.knots
    if len(knots) == 1:
        functions = np.repeat(values, len(x), axis=0)
    else:
        below = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
        low, high = (
            0.5 * knots[below],
            0.5 * knots[below + 1],
        )  # halves: the difference of two large numbers would overflow
        above = np.clip((0.5 * x - low) / (high - low), 0, 1)[:, None]
        functions = (1 - above) * values[below] + above * values[below + 1]
    functions[missing] = column.at_missing
    return functions


def _sum_over_sets(entries: np.ndarray, p: int) -> np.ndarray:
    """Of the products of the entries of all sets of p different columns, for each row; one column after the
    other.
    """
    sums = np.zeros((p + 1, len(entries)))
    sums[0] = 1.0
    for column in entries.T:
        sums[1:] += column * sums[:-1]
    return sums[p]
