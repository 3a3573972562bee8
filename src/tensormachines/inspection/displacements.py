"""How far each column of X moves the linear forms of a Tensor Machine away from a reference.

With t the row in its basis and m the reference, the mean row, every form is a sum over the columns g of X,

    <v, t> = <v, m> + sum over g of move_g,        move_g = <v_g, t_g - m_g>,

where v_g are the entries of v at what the basis makes of column g. For a set U of columns, f(U) is the output
where only the columns in U have moved: all columns make the prediction, none the output at the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from .._data.frame import all_different
from .._model.layout import Layout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from .forms import basis_rows, check_rows, column_names, fitted_machine, output_number

ENTRIES_AT_ONCE = 1 << 21
NORM = "1 / norm"  # the constant of rows that are divided by their norm: it varies with all columns


@dataclass(frozen=True)
class Moves:
    """The forms of one output: ``reference`` (projections), ``factors`` (width, projections), the places of
    each column in the basis.
    """

    machine: Machine
    layout: Layout
    columns: tuple[str, ...]
    places: tuple[np.ndarray, ...]
    bias: float
    center: np.ndarray
    factors: np.ndarray

    @property
    def reference(self) -> np.ndarray:
        return self.center @ self.factors

    def outputs(self, forms: np.ndarray) -> np.ndarray:
        """f of values of the forms (..., projections)."""
        total = self.bias + forms[..., 0]
        for p, columns in self.layout.degrees():
            total += (
                forms[..., columns].reshape(*forms.shape[:-1], p, self.layout.rank).prod(axis=-2).sum(axis=-1)
            )
        return total

    def of(self, rows: Any) -> np.ndarray:
        """(rows, columns, projections)"""
        distance = basis_rows(self.machine.basis, rows) - self.center
        moves = np.empty((len(distance), len(self.places), self.factors.shape[1]))
        for column, places in enumerate(self.places):
            moves[:, column] = distance[:, places] @ self.factors[places]
        return moves

    def blocks(self, rows: Any, copies: int = 1) -> Iterator[np.ndarray]:
        """The moves of a few rows at a time, so that ``copies`` numbers for each of them find room."""
        at_once = max(
            1,
            ENTRIES_AT_ONCE
            // max(1, len(self.places) * self.factors.shape[1] * copies + self.machine.basis.width),
        )
        for start in range(0, rows.shape[0], at_once):
            yield self.of(rows[start : start + at_once])

    def map(self, rows: Any, function: Callable[[np.ndarray], np.ndarray], copies: int = 1) -> np.ndarray:
        return np.concatenate([function(moves) for moves in self.blocks(rows, copies)])

    def column(self, name: Any) -> int:
        """The number of a column, given by name or number."""
        if isinstance(name, str):
            if name not in self.columns:
                raise ValueError(
                    f"There is no column {name!r}: the columns are {', '.join(map(repr, self.columns[:10]))}."
                )
            return self.columns.index(name)
        if not 0 <= int(name) < len(self.columns):
            raise ValueError(
                f"A column must have a name or a number from 0 to {len(self.columns) - 1}, got {name!r}."
            )
        return int(name)


def moves_of(model: Any, output: Any, reference: Any) -> Moves:
    """Where reference is None it is the mean of the training rows, which bases with a centre know."""
    if reference is not None:
        return moves_about(model, output, check_rows(model, reference))
    basis = fitted_machine(model).basis
    if not (isinstance(basis, SplineBasis) or (basis.shift is not None and not basis.unit_rows)):
        raise ValueError(
            "This basis does not know the mean of its training rows: give reference=X_train, rows whose mean is the reference."
        )
    return _moves(model, output, np.zeros(basis.width))


def moves_about(model: Any, output: Any, rows: Any) -> Moves:
    """The reference is the mean of rows that have been checked, where categories are numbers."""
    return _moves(model, output, _mean(fitted_machine(model), rows))


def _moves(model: Any, output: Any, center: np.ndarray) -> Moves:
    machine = fitted_machine(model)
    number, layout, basis = output_number(model, output), machine.layout, machine.basis
    constant = basis.groups < 0
    if not basis.unit_rows:
        center[constant] = basis.always[-1] if isinstance(basis, SplineBasis) else basis.constant
    names, groups = column_names(model), basis.groups
    places = [np.flatnonzero(groups == g) for g in range(len(names))]
    if basis.unit_rows and constant.any():
        names, places = all_different([*names, NORM]), [*places, np.flatnonzero(constant)]
    params = machine.params.astype(np.float64)
    return Moves(
        machine,
        layout,
        tuple(names),
        tuple(places),
        float(layout.bias(params)[number]),
        center,
        layout.factors(params)[:, number].copy(),
    )


def _mean(machine: Machine, rows: Any) -> np.ndarray:
    at_once = max(1, ENTRIES_AT_ONCE // machine.basis.width)
    total = np.zeros(machine.basis.width)
    for start in range(0, rows.shape[0], at_once):
        total += basis_rows(machine.basis, rows[start : start + at_once]).sum(axis=0)
    return total / rows.shape[0]
