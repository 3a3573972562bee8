"""Displacements: how far each column of X moves the linear forms of a Tensor Machine from a reference.

Let t be a row in its basis, and m the reference, the mean row. Every form is a sum over the columns g of X,

    <v, t> = <v, m> + sum over g of d_g,        d_g = <v_g, t_g - m_g>,

where v_g are the entries of v at the basis columns made from g. For a set U of columns, f(U) is the output if
only the columns in U are displaced: f of all columns is the prediction, and f of the empty set is the output
at the reference. The mean output over the rows with mean m differs from the output at the reference by the
sum of the mean parts of the columns (`_model.mean_parts`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.frame import all_different
from .._model.block import Block
from .._model.layout import Layout
from .._model.machine import Machine
from .._model.mean_parts import at_mean, knows_mean, mean_parts
from .drawn_rows import rows_to_inspect
from .forms import basis_rows, column_names, fitted_machine, output_number, position

ENTRIES_AT_ONCE = 1 << 21
NORM = "1 / norm"  # the constant of normalised rows: it varies with all columns


@dataclass(frozen=True)
class ColumnForms:
    """The linear forms of one output, split by column of X.

    ``places`` are the positions of each column in the basis, ``center`` (width) is the reference row,
    ``factors`` are (width, 1 + set_columns): the linear part, then the terms. ``means`` (columns) are the
    mean parts of the columns, 0 if they are not known or do not matter."""

    machine: Machine
    columns: tuple[str, ...]
    places: tuple[np.ndarray, ...]
    bias: float
    center: np.ndarray
    factors: np.ndarray
    means: np.ndarray

    @property
    def mean_output(self) -> float:
        """Return the mean output over the reference rows: the training rows, unless others were given. If the
        mean parts are not known, return the output at the reference.
        """
        return float(self.outputs(self.reference) + self.means.sum())

    @property
    def layout(self) -> Layout:
        return self.machine.layout

    @property
    def reference(self) -> np.ndarray:
        """Return the forms at the reference, (1 + set_columns)."""
        return self.center @ self.factors

    def column(self, name: Any) -> int:
        """Return the index of a column, given by name or index."""
        return position(self.columns, name, "column")

    def outputs(self, forms: np.ndarray) -> np.ndarray:
        """Return f for values of the forms (..., 1 + set_columns)."""
        total = self.bias + forms[..., 0]
        for p, columns in self.layout.degrees():
            factors = forms[..., 1:][..., columns].reshape(*forms.shape[:-1], p, self.layout.rank)
            total += factors.prod(axis=-2).sum(axis=-1)
        return total

    def displaced_outputs(self, displaced: np.ndarray) -> np.ndarray:
        """Return f for displacements by any columns, (rows, columns, 1 + set_columns)."""
        return self.outputs(self.reference + displaced.sum(axis=1))

    def displacements(self, rows: Any) -> np.ndarray:
        """Return the displacements of rows, (rows, columns, 1 + set_columns)."""
        distance = basis_rows(self.machine.basis, rows) - self.center
        displaced = np.empty((len(distance), len(self.places), self.factors.shape[1]))
        for column, places in enumerate(self.places):
            displaced[:, column] = distance[:, places] @ self.factors[places]
        return displaced

    def blocks(self, rows: Any, copies: int = 1) -> Iterator[np.ndarray]:
        """Yield the displacements of a few rows at a time, so that ``copies`` of them fit into memory."""
        entries = len(self.places) * self.factors.shape[1] * copies + self.machine.basis.width
        at_once = max(1, ENTRIES_AT_ONCE // max(1, entries))
        for start in range(0, rows.shape[0], at_once):
            yield self.displacements(rows[start : start + at_once])

    def map(self, rows: Any, function: Callable[[np.ndarray], np.ndarray], copies: int = 1) -> np.ndarray:
        """Return ``function`` of the displacements of all rows."""
        return np.concatenate([function(displaced) for displaced in self.blocks(rows, copies)])


def column_forms(model: Any, output: Any, reference: Any) -> ColumnForms:
    """Return the forms of an output about the mean of ``reference``, by default the training rows."""
    machine, number = fitted_machine(model), output_number(model, output)
    basis = machine.basis
    if reference is not None:
        return forms_about_rows(model, output, rows_to_inspect(model, reference)[0])
    if not knows_mean(basis):
        raise ValueError(
            "A model with this basis does not know the mean of its training rows: "
            "give reference=X_train, rows whose mean is the reference."
        )
    means = getattr(model, "_mean_parts", None)  # not known after partial_fit, and in older files
    return column_forms_about(model, output, at_mean(basis), None if means is None else means[number])


def forms_and_rows(model: Any, output: Any, X: Any, reference: Any) -> tuple[ColumnForms, Any]:
    """Return the forms of an output about the mean of ``reference``, by default X, and the rows of X."""
    rows, _ = rows_to_inspect(model, X)
    if reference is None:
        return forms_about_rows(model, output, rows), rows
    return column_forms(model, output, reference), rows


def forms_about_mean(model: Any, output: Any, rows: Any) -> ColumnForms:
    """Return the forms of an output about the mean of the training rows, or of checked rows if the model does
    not know that mean.
    """
    if hasattr(model, "_mean_parts"):
        return column_forms(model, output, None)
    return forms_about_rows(model, output, rows)


def forms_about_rows(model: Any, output: Any, rows: Any) -> ColumnForms:
    """Return the forms of an output about the mean of checked rows."""
    machine = fitted_machine(model)
    center = mean_row(machine, rows)
    means = mean_parts_of(machine, rows, center)[output_number(model, output)]
    return column_forms_about(model, output, center, means)


def mean_parts_of(machine: Machine, rows: Any, center: np.ndarray) -> np.ndarray:
    """Return the mean parts of columns over checked rows for all outputs, (n_outputs, columns)."""
    basis = machine.basis.astype(np.dtype(np.float64))
    at_once = max(1, ENTRIES_AT_ONCE // max(basis.width, machine.layout.n_columns))
    pieces = (rows[start : start + at_once] for start in range(0, rows.shape[0], at_once))
    found = [
        mean_parts(Block(basis.rows(piece), basis), machine.layout, machine.params, center)[0]
        for piece in pieces
    ]
    return np.sum(found, axis=0) / rows.shape[0]


def column_forms_about(
    model: Any, output: Any, center: np.ndarray, means: np.ndarray | None = None
) -> ColumnForms:
    """Return the forms of an output about a row of the basis (width)."""
    machine = fitted_machine(model)
    number, layout, basis = output_number(model, output), machine.layout, machine.basis
    names, constant = column_names(model), basis.groups < 0
    places = [np.flatnonzero(basis.groups == g) for g in range(len(names))]
    if not basis.unit_rows:
        center = np.where(constant, at_mean(basis), center)
    elif constant.any():
        names, places = all_different([*names, NORM]), [*places, np.flatnonzero(constant)]
    params = machine.params.astype(np.float64)
    return ColumnForms(
        machine,
        tuple(names),
        tuple(places),
        float(layout.bias(params)[number]),
        center,
        layout.factors_of_output(params, number),
        np.zeros(len(names)) if means is None else means,
    )


def mean_row(machine: Machine, rows: Any) -> np.ndarray:
    """Return the mean (width) of checked rows in the basis."""
    at_once = max(1, ENTRIES_AT_ONCE // machine.basis.width)
    total = np.zeros(machine.basis.width)
    for start in range(0, rows.shape[0], at_once):
        total += basis_rows(machine.basis, rows[start : start + at_once]).sum(axis=0)
    return total / rows.shape[0]
