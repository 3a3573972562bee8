"""Linear forms of a fitted Tensor Machine. Only this module reads the private state of a model.

One output is a sum of products of linear forms of named variables,

    f(x) = constant + <linear, x> + sum over terms of  prod_j (offset_j + <factor_j, x>)

The variables x are the columns of X if the basis is affine in them (basis None, and "standard" with
units="original"); the offsets absorb the shifts and constants of the basis. Otherwise the variables are the
columns of the basis."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse

from .._data.dataframes import boolean_columns as booleans_of
from .._data.files.source import Source
from .._data.frame import all_different
from .._data.open import is_on_dask
from .._data.raw_columns import is_a
from .._model.basis import Basis
from .._model.layout import AnovaLayout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.search import Search

UNITS = ("original", "basis")
SPLINES = "splines and levels of the columns (basis_features_)"


@dataclass(frozen=True)
class Forms:
    """The forms of one output: see the module docstring.

    ``terms`` holds for each degree p from 2 the offsets (rank, p) and the factors (rank, p, variables).
    ``groups`` holds the index of the column of X that each variable is made from, -1 for the constant of
    normalised rows. ``of_what`` says in words what the variables are."""

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
        """Return the index of a variable, given by name or index."""
        return position(self.names, name, "variable")


def position(names: tuple[str, ...], name: Any, kind: str) -> int:
    """Return the position of a name among names; a number already is a position."""
    if isinstance(name, str):
        if name not in names:
            some = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
            raise ValueError(f"There is no {kind} {name!r}: the {kind}s are {some}.")
        return names.index(name)
    if not (isinstance(name, Integral) and 0 <= int(name) < len(names)):
        raise ValueError(f"A {kind} must be a name or a number from 0 to {len(names) - 1}, got {name!r}.")
    return int(name)


# ---- what a model is


def fitted_machine(model: Any) -> Machine:
    """Return the machine of a fitted Tensor Machine; refuse any other model."""
    if not isinstance(model, Search) and (
        not isinstance(model, PolynomialModel) or issubclass(model._layout, AnovaLayout)
    ):
        raise TypeError(
            f"model must be a Tensor Machine, e.g. a TensorMachineRegressor, got {type(model).__name__}. Of "
            "a pipeline or a search of scikit-learn, give the fitted Tensor Machine in it, and X as that one "
            "gets it."
        )
    model._require_fit()
    return model._machine


def output_keys(model: Any) -> list[Any]:
    """Return the values of ``output`` that select outputs: [None], classes, quantile levels or numbers."""
    n_outputs = fitted_machine(model).layout.n_outputs
    if n_outputs == 1:
        return [None]
    if hasattr(model, "quantiles_"):
        return model.quantiles_.tolist()
    return list(getattr(model, "classes_", range(n_outputs)))


def output_number(model: Any, output: Any) -> int:
    """Return the position of an output, given by number, quantile level, class label, or column name in y."""
    labels, names = output_keys(model), getattr(model, "target_name_", None)
    if isinstance(names, list) and output in names:
        return names.index(output)
    if len(labels) == 1 and output is not None:
        raise ValueError(f"output must be None for a model of one output, got {output!r}.")
    if output not in labels:
        shown = [str(label) for label in labels] + (names if isinstance(names, list) else [])
        raise ValueError(
            f"The model has {len(labels)} outputs: output must be one of {shown}, got {output!r}."
        )
    return labels.index(output)


def output_name(model: Any, number: int) -> str:
    """Return the name of an output: the target, its quantile or logarithm, or the log-odds or score of a
    class or label.
    """
    link, name = model._description().link, _name_of_output(model, number, "output")
    of_link = {"log": "log", "logistic": "log-odds", "sigmoid": "log-odds", "softmax": "score"}
    return f"{of_link[link]} of {name}" if link in of_link else name


def prediction_name(model: Any, number: int) -> str:
    """Return what an output predicts: the target, a quantile of it, the probability of a class or label."""
    name = _name_of_output(model, number, "prediction")
    return f"probability of {name}" if model._description().kind == "classifier" else name


def _name_of_output(model: Any, number: int, unknown: str) -> str:
    """Return the target, a quantile of it, the class or the label; ``unknown`` is a target without a name."""
    described, target = model._description(), getattr(model, "target_name_", unknown)
    if described.classes is not None:
        return str(described.classes[-1 if described.link == "logistic" else number])
    if described.quantiles is not None:
        return f"quantile {described.quantiles[number]} of {target}"
    if described.link == "sigmoid":
        return described.output_names[number]
    return target if isinstance(target, str) else target[number]


def column_names(model: Any) -> list[str]:
    """Return the column names of the matrix that the model reads: the names in X, or x0, x1, ..., and names
    for the numbers made from dates.
    """
    return all_different(model._description().names)


def level_names(model: Any, column: int) -> list[str] | None:
    """Return the levels of a column of the matrix in the order of their codes; None for numbers."""
    return None if model._columns is None else model._columns.encoded[column].level_names


def boolean_columns(model: Any, X: Any) -> set[int]:
    """Return the columns of the matrix that are boolean in X."""
    return matrix_columns(model, booleans_of(X))


def matrix_columns(model: Any, columns: Iterable[int]) -> set[int]:
    """Return the first matrix column of each of these columns of X."""
    starts = None if model._columns is None else model._columns.starts
    return {j if starts is None else int(starts[j]) for j in columns}


# ---- rows


def check_rows(model: Any, X: Any) -> Any:
    """Return X as a matrix in float64, dense or sparse, with categories as codes."""
    if is_on_dask(X):
        raise TypeError("X must be rows in memory, got a Dask collection: give X.compute().")
    if isinstance(X, Source):
        raise TypeError("X must be rows in memory, got a source of blocks: give some of its rows.")
    return model._check_rows(X).astype(np.float64, copy=False)


def framed(X: Any, values: np.ndarray, names: Sequence[str]) -> Any:
    """Return values (rows, len(names)) in the type of X: a DataFrame with its index if X is from pandas."""
    if not is_a("pandas", X):
        return values
    import pandas

    return pandas.DataFrame(values, X.index, list(names))


def basis_rows(basis: Basis, rows: Any) -> np.ndarray:
    """Return rows in the basis: (rows, width), dense, in float64."""
    basis = basis.astype(np.dtype(np.float64))
    lifted = basis.lift(basis.rows(rows)).explicit()
    return lifted.toarray() if sparse.issparse(lifted) else np.asarray(lifted)


# ---- forms


def forms_of(model: Any, output: Any = None, units: str = "original") -> Forms:
    machine = fitted_machine(model)
    layout, number = machine.layout, output_number(model, output)
    change = _Change.of(machine.basis, units)
    factors = layout.factors_of_output(machine.params.astype(np.float64), number)
    offsets, factors = change.origin @ factors, change.scale[:, None] * factors[change.kept]
    terms = [
        (
            offsets[1:][columns].reshape(p, layout.rank).T,
            factors[:, 1:][:, columns].reshape(-1, p, layout.rank).transpose(2, 1, 0),
        )
        for p, columns in layout.degrees()
    ]
    return Forms(
        names=tuple(model.basis_features_[change.kept]),
        groups=machine.basis.groups[change.kept],
        constant=float(layout.bias(machine.params)[number]) + float(offsets[0]),
        linear=factors[:, 0].copy(),
        terms=tuple(terms),
        of_what=change.of_what,
    )


def variables(model: Any, X: Any, units: str = "original") -> Any:
    """Return the values of the variables of `polynomial` for rows of X, on which its formula is evaluated.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
    units : {"original", "basis"}
        As in `polynomial`.

    Returns
    -------
    ndarray of shape (n_samples, variables), or DataFrame
        A DataFrame with the names of the variables if X is a pandas DataFrame.
    """
    basis = fitted_machine(model).basis
    change = _Change.of(basis, units)
    rows = check_rows(model, X)
    if change.identity:
        values = rows.toarray() if sparse.issparse(rows) else rows
    else:
        values = basis_rows(basis, rows)[:, change.kept]
    return framed(X, values, model.basis_features_[change.kept])


@dataclass(frozen=True)
class _Change:
    """Change from variables to the basis: basis[kept] = origin[kept] + scale * variables; elsewhere the basis
    is the constant origin.
    """

    kept: np.ndarray
    scale: np.ndarray
    origin: np.ndarray
    identity: bool  # whether the variables are the columns of X
    of_what: str

    @classmethod
    def of(cls, basis: Basis, units: str) -> _Change:
        if units not in UNITS:
            raise ValueError(f"units must be one of {list(UNITS)}, got {units!r}.")
        origin = np.zeros(basis.width)
        if basis.unit_rows:  # the constant, if any, varies with the norm
            what = (
                "columns scaled and each row divided by its norm: "
                "a polynomial of these, not of the columns themselves"
            )
            return cls(np.arange(basis.width), np.ones(basis.width), origin, False, what)
        kept = np.flatnonzero(basis.groups >= 0)
        scale = np.ones(len(kept))
        if isinstance(basis, SplineBasis):
            origin[-1] = basis.always[-1]
            return cls(kept, scale, origin, False, SPLINES)
        if basis.shift is None or basis.scale is None:
            return cls(kept, scale, origin, True, "columns in their own units")
        origin[len(kept) :] = basis.constant
        if basis.clip < np.inf:
            what = f"columns as (x - mean) times a scale, cut off at ±{basis.clip:.3g}: a polynomial of these"
            return cls(kept, scale, origin, False, what)
        if units == "basis":
            what = f"columns as (x - mean) / deviation / {basis.n_columns**0.5:.4g}"
            return cls(kept, scale, origin, False, what)
        scale = basis.scale.astype(np.float64)
        origin[kept] = -basis.shift.astype(np.float64) * scale
        return cls(kept, scale, origin, True, "columns in their own units")
