"""A fitted model in the form that the kernel evaluates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import kernel, native
from .basis import AffineBasis, Basis
from .block import Block
from .layout import Layout
from .rows import Rows
from .spline_basis import SplineBasis

FILLED_AT_ONCE = 4096  # sparse rows
FEW_ROWS = 16  # up to this number of rows, an affine basis needs no block


@dataclass(frozen=True)
class Machine:
    """Basis, layout and params (layout.size) of one model, in the units of its target.

    A spline basis spreads the factors of its functions over the states of the columns (`SplineBasis.spread`);
    a fit must do this at every step. Here the params no longer change, so `_read` spreads them once. The
    kernel then sees an equal model whose features are the states themselves, in the basis
    ``AffineBasis(row_width)``, which leaves them unchanged. For an affine basis there is nothing to
    replace."""

    basis: Basis
    layout: Layout
    params: np.ndarray

    @property
    def has_trend(self) -> bool:
        return isinstance(self.basis, SplineBasis) and any(column.trend for column in self.basis.columns)

    @property
    def thresholds(self) -> list[np.ndarray]:
        """Return the thresholds of each column at which there is a jump; an empty list without splines."""
        splines = self.basis.columns if isinstance(self.basis, SplineBasis) else ()
        return [np.array(column.thresholds) for column in splines]

    @property
    def has_jumps(self) -> bool:
        return isinstance(self.basis, SplineBasis) and self.basis.n_jumps > 0

    def __getstate__(self) -> dict[str, Any]:
        """Leave out zeros: a penalty makes many of them."""
        present = self.params != 0
        return {
            "basis": self.basis,
            "layout": self.layout,
            "present": np.packbits(present),
            "values": self.params[present],
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        params = np.zeros(state["layout"].size, dtype=state["values"].dtype)
        params[np.unpackbits(state["present"], count=len(params)).astype(bool)] = state["values"]
        self.__dict__.update({"basis": state["basis"], "layout": state["layout"], "params": params})

    def outputs(self, X: Rows, threads: int = 1) -> np.ndarray:
        """Return f of every row, (rows, n_outputs), computed in the type of X."""
        machine = self._in(X.dtype)
        splines = not isinstance(self.basis, AffineBasis)
        if native.compiled() and (splines or (isinstance(X, np.ndarray) and len(X) <= FEW_ROWS)):
            outputs = np.empty((X.shape[0], self.layout.n_outputs), dtype=X.dtype)
            if isinstance(X, np.ndarray):
                machine._predictor.outputs(X, outputs, threads)
                return outputs
            for start in range(0, len(outputs), FILLED_AT_ONCE):
                some = slice(start, start + FILLED_AT_ONCE)
                machine._predictor.outputs(X[some].toarray(), outputs[some], threads)
            return outputs
        basis, layout, params = machine._read
        return kernel.outputs(Block(machine.basis.rows(X), basis), layout, params, threads)

    def terms(self, X: Rows, threads: int = 1) -> np.ndarray:
        """Return the products of every row, (rows, n_sets * n_terms), computed in the type of X."""
        machine = self._in(X.dtype)
        basis, layout, params = machine._read
        return kernel.terms(Block(machine.basis.rows(X), basis), layout, params, threads)

    def _in(self, dtype: np.dtype) -> Machine:
        if self.params.dtype == dtype:
            return self
        if dtype not in self._in_other_types:
            self._in_other_types[dtype] = replace(
                self, basis=self.basis.astype(dtype), params=self.params.astype(dtype)
            )
        return self._in_other_types[dtype]

    @cached_property
    def _in_other_types(self) -> dict[np.dtype, Machine]:
        return {}

    @cached_property
    def _predictor(self) -> Any:
        """Return the compiled model for dense rows: for splines any number, for an affine basis few rows."""
        _, layout, params = self._read
        model = kernel.native_layout(layout), params[0, : layout.head], layout.factors(params[0])
        basis = self.basis
        if not isinstance(basis, AffineBasis):
            return native.extension.spline_predictor(*basis.states.native_columns, *model)
        numbers = basis.n_columns, basis.shift, basis.scale, basis.clip, basis.constant, basis.unit_rows
        return native.extension.affine_predictor(*numbers, *model)

    @cached_property
    def _read(self) -> tuple[AffineBasis, Layout, np.ndarray]:
        """Return basis, layout and params (1, size) of the model that the kernel evaluates."""
        if isinstance(self.basis, AffineBasis):
            return self.basis, self.layout, self.params[None]
        states = self.basis.spread(self.layout.factors(self.params))
        params = np.append(self.params[: self.layout.head], states)
        width = self.basis.row_width
        return AffineBasis(width), replace(self.layout, n_features=width), params[None]
