"""A fitted model in the form that the kernel evaluates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from . import kernel
from .basis import AnyBasis, Basis
from .block import Block
from .layout import Layout
from .moments import Rows


@dataclass(frozen=True)
class Machine:
    """Basis, layout and params (layout.size) of one model, in the units of its target."""

    basis: AnyBasis
    layout: Layout
    params: np.ndarray

    def __getstate__(self) -> dict[str, Any]:
        """Without the zeros, which a penalty makes many of."""
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
        """f of every row, (rows, n_outputs), computed in the type of X."""
        machine = self._in(X.dtype)
        return kernel.outputs(machine._block(X), machine._read_layout, machine._read_params, threads)

    def terms(self, X: Rows, threads: int = 1) -> np.ndarray:
        """The products of every row, (rows, n_outputs * n_terms), computed in the type of X."""
        machine = self._in(X.dtype)
        return kernel.terms(machine._block(X), machine._read_layout, machine._read_params, threads)

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

    # What the kernel reads: the factors of all states of the columns, made once, where the basis has such.

    def _block(self, X: Rows) -> Block:
        rows = self.basis.rows(X)
        return Block(rows, self.basis if rows is X else Basis(self.basis.row_width))

    @cached_property
    def _read_layout(self) -> Layout:
        return self.layout if self._spread is None else replace(self.layout, n_features=self.basis.row_width)

    @cached_property
    def _read_params(self) -> np.ndarray:
        """(1, size)"""
        return (
            self.params[None]
            if self._spread is None
            else np.append(self.layout.bias(self.params), self._spread)[None]
        )

    @cached_property
    def _spread(self) -> np.ndarray | None:
        factors = self.layout.factors(self.params).reshape(self.layout.n_features, -1)
        spread = self.basis.spread(factors)
        return None if spread is factors else spread
