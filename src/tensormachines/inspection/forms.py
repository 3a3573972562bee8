"""One output of a fitted Tensor Machine as products of linear forms of variables that have names.

    f(x) = constant + <linear, x> + sum over terms of  prod_j (offset_j + <factor_j, x>)

The variables x are the columns of the user's table where the basis is affine in them (basis None, and
"standard" with units="original"): shifts and constants of the basis go into the offsets. Otherwise they are
the columns of the basis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._data.frame import all_different
from .._data.files.source import Source
from .._data.open import is_on_dask
from .._model.basis import AnyBasis
from .._model.layout import AnovaLayout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from ..estimators.polynomial_model import PolynomialModel

UNITS = ("original", "basis")


@dataclass(frozen=True)
class Forms:
    """See the module. ``terms`` has for each degree p from 2 the offsets (rank, p) and the factors (rank, p,
    variables).

    ``groups`` is the number of the input column that a variable is made of, -1 for the constant of rows that
    are divided by their norm."""

    names: tuple[str, ...]
    groups: np.ndarray
    constant: float
    linear: np.ndarray
    terms: tuple[tuple[np.ndarray, np.ndarray], ...]
    of_what: str

    @property
    def degree(self) -> int:
        return len(self.terms) + 1

    def number(self, name: Any) -> int:
        """Of a variable, given by name or number."""
        if isinstance(name, str):
            if name not in self.names:
                some = ", ".join(map(repr, self.names[:10])) + (", ..." if len(self.names) > 10 else "")
                raise ValueError(f"There is no variable {name!r}: the variables are {some}.")
            return self.names.index(name)
        if not 0 <= int(name) < len(self.names):
            raise ValueError(
                f"A variable must have a name or a number from 0 to {len(self.names) - 1}, got {name!r}."
            )
        return int(name)


def fitted_machine(model: Any) -> Machine:
    """What a fitted Tensor Machine has learnt; an error for anything else."""
    if not isinstance(model, PolynomialModel) or issubclass(model._layout, AnovaLayout):
        raise TypeError(
            f"model must be a Tensor Machine, e.g. a TensorMachineRegressor, got {type(model).__name__}. "
            "Of a pipeline or a search of scikit-learn give the fitted Tensor Machine in it, with the rows that this one sees."
        )
    model._require_fit()
    return model._machine


def forms(model: Any, output: Any = None, units: str = "original") -> Forms:
    machine = fitted_machine(model)
    layout, number = machine.layout, output_number(model, output)
    change = _Change.of(machine.basis, units)
    factors = layout.factors(machine.params.astype(np.float64))[:, number]  # (width, projections)
    offsets, factors = change.origin @ factors, change.scale[:, None] * factors[change.kept]
    names = model.basis_features_[change.kept]
    terms = [
        (
            offsets[columns].reshape(p, layout.rank).T,
            factors[:, columns].reshape(-1, p, layout.rank).transpose(2, 1, 0),
        )
        for p, columns in layout.degrees()
    ]
    constant = float(layout.bias(machine.params)[number]) + float(offsets[0])
    return Forms(
        tuple(names),
        machine.basis.groups[change.kept],
        constant,
        factors[:, 0].copy(),
        tuple(terms),
        change.of_what,
    )


def output_number(model: Any, output: Any) -> int:
    """Which of the outputs is asked for: by its number, or in classification by the label of its class."""
    n_outputs = model._machine.layout.n_outputs
    if n_outputs == 1:
        if output is not None:
            raise ValueError(f"output must be None for a model of one output, got {output!r}.")
        return 0
    labels = list(getattr(model, "classes_", range(n_outputs)))
    if output is None or output not in labels:
        raise ValueError(
            f"The model has {n_outputs} outputs: output must be one of {[str(label) for label in labels]}, got {output!r}."
        )
    return labels.index(output)


def variables(model: Any, X: Any, units: str = "original") -> np.ndarray:
    """The values (n_samples, variables) that the variables of `polynomial` have in rows of X: what its
    formula is to be evaluated on.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
    units : {"original", "basis"}
        As in `polynomial`.
    """
    change = _Change.of(fitted_machine(model).basis, units)
    rows = check_rows(model, X)
    if change.identity:
        return rows.toarray() if sparse.issparse(rows) else rows
    return basis_rows(model._machine.basis, rows)[:, change.kept]


def check_rows(model: Any, X: Any) -> Any:
    """Rows in memory as float64, dense or sparse."""
    if is_on_dask(X):
        raise TypeError("X must be rows in memory, got a Dask collection: give X.compute().")
    if isinstance(X, Source):
        raise TypeError("X must be rows in memory, got a source of blocks: give some of its rows.")
    return model._check_rows(X).astype(np.float64, copy=False)


def basis_rows(basis: AnyBasis, rows: Any) -> np.ndarray:
    """(rows, width), dense, in float64."""
    basis = basis.astype(np.dtype(np.float64))
    lifted = basis.lift(basis.rows(rows)).explicit()
    return lifted.toarray() if sparse.issparse(lifted) else np.asarray(lifted)


def column_names(model: Any) -> list[str]:
    """Of X: as in the fit, or x0, x1, ..."""
    return all_different(
        map(str, getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)]))
    )


@dataclass(frozen=True)
class _Change:
    """From variables to the basis: basis[kept] = origin[kept] + scale * variables, and basis = origin
    elsewhere.
    """

    kept: Sequence[int] | np.ndarray
    scale: np.ndarray
    origin: np.ndarray
    identity: bool  # the variables are the columns of X
    of_what: str

    @classmethod
    def of(cls, basis: AnyBasis, units: str) -> _Change:
        if units not in UNITS:
            raise ValueError(f"units must be one of {list(UNITS)}, got {units!r}.")
        origin = np.zeros(basis.width)
        if basis.unit_rows:  # the constant, if there is one, varies with the norm
            what = "columns scaled and each row divided by its norm: a polynomial of these, not of the columns themselves"
            return cls(np.arange(basis.width), np.ones(basis.width), origin, False, what)
        kept = np.flatnonzero(basis.groups >= 0)
        if isinstance(basis, SplineBasis):
            origin[-1] = basis.always[-1]
            return cls(
                kept, np.ones(len(kept)), origin, False, "splines and levels of the columns (basis_features_)"
            )
        if basis.shift is None or basis.scale is None:
            return cls(kept, np.ones(len(kept)), origin, True, "columns as they are")
        origin[len(kept) :] = basis.constant
        if units == "basis":
            return cls(
                kept,
                np.ones(len(kept)),
                origin,
                False,
                f"columns as (x - mean) / deviation / {basis.n_columns**0.5:.4g}",
            )
        scale = basis.scale.astype(np.float64)
        origin[kept] = -basis.shift.astype(np.float64) * scale
        return cls(kept, scale, origin, True, "columns in their own units")
