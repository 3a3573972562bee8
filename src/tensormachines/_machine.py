"""A fitted model in the form that the kernel evaluates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from . import _kernel
from ._blocks import Block
from ._layout import Layout
from ._moments import Rows
from .basis import AnyBasis


@dataclass(frozen=True)
class Machine:
    """Basis, layout and params (layout.size) of one model, in the units of its target."""

    basis: AnyBasis
    layout: Layout
    params: np.ndarray

    def outputs(self, X: Rows, threads: int = 1) -> np.ndarray:
        """f of every row, (rows, n_outputs), computed in the type of X."""
        machine = self._in(X.dtype)
        return _kernel.outputs(Block(machine.basis.rows(X), machine.basis), machine.layout, machine.params[None], threads)

    def terms(self, X: Rows, threads: int = 1) -> np.ndarray:
        """The products of every row, (rows, n_outputs * n_terms), computed in the type of X."""
        machine = self._in(X.dtype)
        return _kernel.terms(Block(machine.basis.rows(X), machine.basis), machine.layout, machine.params[None], threads)

    def _in(self, dtype: np.dtype) -> Machine:
        if self.params.dtype == dtype:
            return self
        return replace(self, basis=self.basis.astype(dtype), params=self.params.astype(dtype))
