"""The computation that every export writes: linear forms of a row in its basis, then sums of their products.

    forms(x)   = offset + sum over the columns j of  part_j(x_j)                          (n_forms)
    output_k   = intercept_k + forms[k] + sum over p = 2..degree and its terms of  the product of p forms

Every output has a set of terms, or all outputs share one set, and each multiplies its terms by
``term_weights``. The forms are in order of use: one per output, then for p = 2, 3, ... the forms of each set,
term and factor. A term with a factor that is 0 for every row is left out; a penalty makes many such terms. In
a spline basis, part_j is a row of ``tables[j]`` or a mix of two rows; in other bases it is t_j
``weights[j]``. So other languages need to know nothing about waves, centres and sizes.

Factorization machines have one form per output; their terms are sums over sets of entries of t times
`Description.factors`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from .. import __version__
from .affine_basis import AffineBasis
from .description import Description
from .spline_basis import SplineBasis
from .spline_column import SplineColumn, SplineShape

Label: TypeAlias = bool | int | float | str


@dataclass(frozen=True)
class LinearForms:
    """A described model as linear forms, all in float64.

    ``weights`` (width, n_forms) multiply the entries of t; ``n_terms`` holds the number of terms of each set
    by degree, and is empty for factorization machines. ``term_weights`` are (n_outputs, terms) by degree, and
    empty without shared factors."""

    description: Description
    weights: np.ndarray
    n_terms: Mapping[int, list[int]]
    term_weights: Mapping[int, np.ndarray]

    @property
    def n_columns(self) -> int:
        return len(self.description.columns)

    @property
    def n_outputs(self) -> int:
        return self.description.layout.n_outputs

    @property
    def n_forms(self) -> int:
        return self.weights.shape[1]

    @property
    def width(self) -> int:
        return len(self.weights)

    @property
    def affine(self) -> AffineBasis | None:
        """Return the basis, or None if it is a spline basis."""
        basis = self.description.machine.basis
        return basis if isinstance(basis, AffineBasis) else None

    @property
    def center(self) -> np.ndarray:
        """Return the shift of each column in an affine basis."""
        shift = self.description.machine.basis.shift
        return np.zeros(self.n_columns) if shift is None else shift.astype(np.float64)

    @property
    def scale(self) -> np.ndarray:
        scale = self.description.machine.basis.scale
        return np.ones(self.n_columns) if scale is None else scale.astype(np.float64)

    @property
    def constant(self) -> float:
        """Return the constant, the last entry of t; 0 if there is none."""
        return self.splines.shape.constant if self.affine is None else float(self.affine.constant)

    @property
    def offset(self) -> np.ndarray:
        """Return the part of the constant, (n_forms,)."""
        return self.constant * self.weights[-1] if self.constant else np.zeros(self.n_forms)

    @property
    def splines(self) -> SplineBasis:
        basis = self.description.machine.basis
        assert isinstance(basis, SplineBasis)
        return basis

    @property
    def size(self) -> float:
        """Return the scale of all functions of a spline basis."""
        return self.splines._size

    @cached_property
    def centers(self) -> list[np.ndarray]:
        """Return the means of the functions of each column of a spline basis."""
        return np.split(self.splines.center.astype(np.float64), self._ends)[:-1]

    def functions(self, column: int) -> np.ndarray:
        """Return the entries of t for a number in a spline basis, (n_states + 1, functions): at its knots,
        and in the last row for a missing value."""
        return self.size * _at_states(self.splines.columns[column], self.splines.shape) - self.centers[column]

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Return the part of each column of a spline basis in the forms, (n_states + 1, n_forms)."""
        return [self._table(j, weights) for j, weights in enumerate(np.split(self.weights, self._ends)[:-1])]

    def _table(self, column: int, weights: np.ndarray) -> np.ndarray:
        spline = self.splines.columns[column]
        if not spline.category:
            return self.functions(column) @ weights
        table = np.zeros((len(spline.knots) + 1, self.n_forms))
        table[: spline.width] = self.size * weights
        return table - self.centers[column] @ weights

    @property
    def _ends(self) -> np.ndarray:
        """Return the position in t where the functions of each column of a spline basis end."""
        return np.cumsum([column.width for column in self.splines.columns])

    def knots(self, column: int) -> np.ndarray | None:
        """Return the knots of a number, at least one; None for a category."""
        spline = self.splines.columns[column]
        return None if spline.category else spline.knots if len(spline.knots) else np.zeros(1)

    @property
    def labels(self) -> list[Label]:
        """Return the classes as Python values of one type that every language has."""
        assert self.description.classes is not None
        labels: list[Any] = self.description.classes.tolist()
        for kind in (bool, int, float, str):
            if all(type(label) is kind for label in labels):
                return labels
        kinds = ", ".join(sorted({type(label).__name__ for label in labels}))
        raise NotImplementedError(
            "Only classes that are all strings, all integers, all floats or all booleans can be exported, "
            f"got classes of type {kinds}."
        )

    @property
    def about(self) -> str:
        """Return one line of text about the model."""
        described = self.description
        shape = f"degree {described.layout.degree}, rank {described.layout.rank}"
        shape += ", factors shared by all outputs" if described.layout.shared else ""
        what = f"{self.n_columns} columns, basis {described.basis_name}, {shape}"
        return f"A {described.kind} of tensormachines {__version__}: {what}."


def linear_forms(description: Description) -> LinearForms:
    """Return the linear forms of a model with finite parameters."""
    matrices, n_terms = [description.coef], {}
    term_weights = {p: weights.astype(np.float64) for p, weights in description.term_weights.items()}
    if description.terms == "products":
        for p, factors in description.factors.items():
            kept = (factors != 0).any(axis=3).all(axis=2)  # (n_sets, rank)
            if term_weights:
                kept &= term_weights[p].any(axis=0)
                term_weights[p] = term_weights[p][:, kept[0]]
            matrices.append(factors[kept].reshape(-1, factors.shape[-1]))
            n_terms[p] = kept.sum(axis=1).tolist()
    if not np.isfinite(description.machine.params).all():
        raise ValueError("The model has parameters that are not finite: fit it again before exporting it.")
    return LinearForms(description, np.vstack(matrices).astype(np.float64).T, n_terms, term_weights)


def _at_states(column: SplineColumn, shape: SplineShape) -> np.ndarray:
    """Return the functions of a number at its knots, before they are scaled and centred.

    The last row is for missing entries: if the fit had none, they count as the reference, or as 0 if the
    column has no reference. The same holds for a number in a column without numbers in the fit."""
    n_knots, reference = len(column.knots), column.reference
    table = column.table(shape)
    common = table[reference] if reference >= 0 else np.zeros(column.width)
    return np.vstack([table[:n_knots] if n_knots else common, table[n_knots] if column.missing else common])
