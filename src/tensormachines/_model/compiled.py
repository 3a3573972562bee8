"""A fitted model as a plain callable that maps rows of numbers to predictions, without any checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from . import native
from .machine import Machine

# In the order of their codes in src/native/predictor_module.cpp.
LINKS = ("identity", "logistic", "softmax", "log", "sigmoid", "sorted")

Compiled = Callable[[Any], Any]


def compiled(machine: Machine, link: str, flat: bool, largest: np.ndarray | None = None) -> Compiled:
    """Return a function of one row (columns,) or of rows (rows, columns), in float64; it can be pickled.

    ``link`` is one of LINKS; ``flat`` says that a single output has no axis of its own. ``largest``, for a
    log link, is the maximum of each output, (n_outputs,)."""
    if not native.compiled():
        return NumpyModel(machine, link, flat, largest)
    predictor = machine._in(np.dtype(np.float64))._predictor
    recipe = compiled, (machine, link, flat, largest)
    return native.extension.CompiledModel(predictor, LINKS.index(link), largest, flat, recipe)


@dataclass(frozen=True)
class NumpyModel:
    """The same callable in NumPy, the reference for the compiled one in the tests."""

    machine: Machine
    link: str
    flat: bool
    largest: np.ndarray | None = None

    def __call__(self, X: Any) -> Any:
        X = np.asarray(X, dtype=np.float64)
        if X.ndim not in (1, 2):
            raise ValueError("X must be one row, or a matrix of rows.")
        if X.shape[-1] != self.machine.basis.n_columns:
            raise ValueError(
                f"X has {X.shape[-1]} columns, in the fit there were {self.machine.basis.n_columns}."
            )
        results = predictions(self.machine.outputs(np.atleast_2d(X)), self.link, self.largest)
        results = results[:, 0] if self.flat else results
        if X.ndim == 2:
            return results
        return float(results[0]) if self.flat else results[0]


def predictions(outputs: np.ndarray, link: str, largest: np.ndarray | None = None) -> np.ndarray:
    """Return predictions (rows, n_outputs), or probabilities (rows, n_classes or n_labels), for outputs.

    ``link`` is one of LINKS; a log link needs the ``largest`` outputs, (n_outputs,)."""
    if link == "logistic":
        probabilities = np.empty((len(outputs), 2), dtype=outputs.dtype)
        expit(-outputs[:, 0], out=probabilities[:, 0])
        expit(outputs[:, 0], out=probabilities[:, 1])
        return probabilities
    if link == "softmax":
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return powers / powers.sum(axis=1, keepdims=True)
    if link == "sigmoid":
        return expit(outputs)
    if link == "sorted":
        return np.sort(outputs, axis=1)
    if link == "log":
        assert largest is not None
        return np.exp(np.minimum(outputs, largest.astype(outputs.dtype)))
    return outputs
