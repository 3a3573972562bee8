"""What every export computes: a few linear forms of a row in its basis, then sums of their products.

    forms(x)   = offset + sum over the columns j of  part_j(x_j)                          (n_forms)
    output_k   = intercept_k + forms[k] + sum over p = 2..degree and its terms of degree p of  the product of p forms

The forms are ordered as they are used: one an output, then for p = 2, 3, ... those of each output, term and
factor. A term with a factor that is 0 whatever the row is left out: a penalty makes many such. In a spline
basis part_j is a row of ``tables[j]``, or the mix of two of them; in the others it is t_j ``weights[j]``. So
nothing of waves, centres and sizes has to be written in another language.

Factorization machines have one form an output; their terms are sums over sets of entries of t times
`Portable.factors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .. import __version__
from .description import describe
from .description_form import AffineBasis, Portable, SplineBasis, SplineCategory

Label = bool | int | float | str


@dataclass(frozen=True)
class Plan:
    """Everything in float64. ``weights`` (width, n_forms) are those of the entries of t; ``n_terms`` says of
    every degree how many terms each output has. (Factorization machines have none of these.)"""

    portable: Portable
    weights: np.ndarray
    n_terms: Mapping[int, list[int]]

    @property
    def affine(self) -> AffineBasis | None:
        """The basis, unless it is a spline basis."""
        return self.portable.basis if isinstance(self.portable.basis, AffineBasis) else None

    @property
    def n_columns(self) -> int:
        return len(self.portable.columns)

    @property
    def n_forms(self) -> int:
        return self.weights.shape[1]

    @property
    def offset(self) -> np.ndarray:
        """(n_forms): what the constant entry of t adds."""
        constant = self.portable.basis.constant
        return constant * self.weights[-1] if constant else np.zeros(self.n_forms)

    @cached_property
    def names(self) -> list[str]:
        """Of the columns; as scikit-learn calls those without names: x0, x1, ..."""
        return [
            f"x{column.name}" if isinstance(column.name, int) else column.name
            for column in self.portable.columns
        ]

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Of each column of a spline basis, (n_states + 1, n_forms): by knot or by number of the level; the
        last row is "missing".
        """
        assert isinstance(self.portable.basis, SplineBasis)
        tables, start = [], 0
        for column in self.portable.basis.columns:
            if isinstance(column, SplineCategory):
                levels = column.size * np.eye(column.n_levels + 1, column.width)
                states = levels - column.center.astype(np.float64)
            else:
                states = np.vstack([column.values, column.at_missing]).astype(np.float64)
            tables.append(states @ self.weights[start : start + column.width])
            start += column.width
        return tables

    def knots(self, column: int) -> np.ndarray | None:
        """Of a number; None for a category."""
        basis = self.portable.basis
        assert isinstance(basis, SplineBasis)
        spline = basis.columns[column]
        return None if isinstance(spline, SplineCategory) else spline.knots

    @property
    def labels(self) -> list[Label]:
        """The classes as Python values of one type, which every language has."""
        assert self.portable.classes is not None
        labels: list[Any] = self.portable.classes.tolist()
        for kind in (bool, int, float, str):
            if all(type(label) is kind for label in labels):
                return labels
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise NotImplementedError(
            f"Classes must be all strings, all integers, all floats or all booleans to be exported; they are of type {kinds}."
        )

    @property
    def about(self) -> str:
        """One line of text."""
        what = f"{self.n_columns} columns, basis {self.portable.basis.name}, degree {self.portable.degree}, rank {self.portable.rank}"
        return f"A {self.portable.kind} of tensormachines {__version__}: {what}."


def plan(model: Any) -> Plan:
    """Of a fitted regressor or classifier."""
    portable = describe(model)
    matrices, n_terms = [portable.coef], {}
    if portable.terms == "products":
        for p, factors in portable.factors.items():
            kept = (factors != 0).any(axis=3).all(axis=2)  # (n_outputs, rank)
            matrices.append(factors[kept].reshape(-1, portable.basis.width))
            n_terms[p] = kept.sum(axis=1).tolist()
    arrays = [portable.intercept, *matrices, *portable.factors.values()]
    if not all(np.isfinite(array).all() for array in arrays):
        raise ValueError("The model has parameters that are not finite: fit it again before it is exported.")
    return Plan(portable, np.vstack(matrices).astype(np.float64).T, n_terms)
