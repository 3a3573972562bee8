"""A polynomial that grows and is learned row by row.

The polynomial is ``sum over m of weight_m * monomial_m(x)``. Monomial 0 is the constant, monomial 1 + c is
column c, and every other monomial is the product of an *expanded* monomial, its parent, and a column, which
may already be in the parent. Each row is one step of the normalised adaptive gradient of Ross, Mineiro and
Langford (2013), here in units in which the largest value of every monomial so far is 1. Let u be the row's
monomials in these units, g the derivative of the loss and h the weight of the row:

    squares += h g^2 u^2                                  per monomial
    rate     = sqrt(sum h / sum h |u|^2) / sqrt(squares)  the sums over all rows so far
    weights += step rate u

When the scale of a monomial grows from s to s', its squares are multiplied by (s/s')^2. ``step`` follows the
loss of the row along this direction for a time learning_rate * h (Karampatziakis and Langford 2011), so it
never overshoots for any weight or learning rate."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit

from .._model import native
from .._model.block import canonical
from .._model.rows import Rows

SQUARED, LOGISTIC = 0, 1  # the losses; the logistic loss has targets 0 and 1
SPARSE_BELOW = 0.25  # share of non-zeros below which CSR rows are faster
VALUES_AT_ONCE = 1 << 20
NEWTON_STEPS = 30
STATE = ("weights", "squares", "scale", "inverse", "sums")  # the arrays that learning changes in place


def readable(X: Rows) -> Rows:
    """Return X in the form that passes read: contiguous, or CSR if it has few non-zeros."""
    if not sparse.issparse(X):
        if np.count_nonzero(X) >= SPARSE_BELOW * X.size:
            return np.ascontiguousarray(X)
        X = sparse.csr_array(X)
    X = canonical(X)
    if X.shape[1] > np.iinfo(np.int32).max:
        most = np.iinfo(np.int32).max
        raise ValueError(f"X has {X.shape[1]:,} columns, more than {most:,}, which are counted in 32 bits.")
    indptr, indices = X.indptr.astype(np.int64, copy=False), X.indices.astype(np.int32, copy=False)
    return sparse.csr_array((np.ascontiguousarray(X.data), indices, indptr), shape=X.shape)


class OnlinePolynomial:
    """Monomials, their weights, and the state of their learning.

    ``unit``, (columns,), multiplies the columns, so that products neither overflow nor vanish; all numbers
    have its dtype.
    """

    def __init__(self, unit: np.ndarray, n_outputs: int):
        n_columns, n_monomials = len(unit), 1 + len(unit)
        self.unit = unit
        self.parent_of = np.zeros(n_monomials, dtype=np.int32)
        self.column_of = np.arange(-1, n_columns, dtype=np.int32)
        self.degrees = np.minimum(np.arange(n_monomials), 1)
        self.parents = np.empty(0, dtype=np.int32)
        self.expanded = np.full(n_monomials, -1, dtype=np.int32)
        self.children = np.empty((0, n_columns), dtype=np.int32)
        self.weights = np.zeros((n_outputs, n_monomials), dtype=unit.dtype)
        self.squares = np.zeros_like(self.weights)
        self.scale = np.zeros(n_monomials, dtype=unit.dtype)
        self.inverse = np.zeros_like(self.scale)
        self.sums = np.zeros(2)

    @property
    def n_monomials(self) -> int:
        return len(self.scale)

    def copy(self) -> OnlinePolynomial:
        """Return a copy that learns and grows without changing this one."""
        result = copy(self)
        for name in STATE:
            setattr(result, name, getattr(self, name).copy())
        return result

    def columns(self, number: int) -> tuple[int, ...]:
        """Return the sorted columns of which a monomial is the product."""
        columns = []
        while number:
            columns.append(int(self.column_of[number]))
            number = self.parent_of[number]
        return tuple(sorted(columns))

    def coefficients(self) -> np.ndarray:
        """Return the coefficients of the monomials in the units of X, (outputs, monomials).

        Coefficients may be infinite for columns of very small numbers.
        """
        units = np.ones(self.n_monomials)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            for degree in range(1, int(self.degrees.max()) + 1):
                numbers = np.flatnonzero(self.degrees == degree)
                units[numbers] = units[self.parent_of[numbers]] * self.unit[self.column_of[numbers]]
            coefficients = self.weights * self.inverse * units
            return np.where(self.weights == 0, 0, coefficients).astype(self.unit.dtype)

    # ---- growth

    def expand(self, count: int, degree: int) -> None:
        """Expand the ``count`` monomials with the largest weights, below ``degree`` and not yet expanded."""
        importance = np.linalg.norm(self.weights, axis=0)
        importance[(self.degrees == 0) | (self.degrees >= degree) | (self.expanded >= 0)] = 0
        heaviest = np.argsort(-importance, kind="stable")[:count]
        self.expand_these([int(parent) for parent in heaviest[importance[heaviest] > 0]])

    def expand_these(self, parents: list[int]) -> None:
        self.expanded = self.expanded.copy()  # copies of the polynomial may share it
        new_columns = self._new_columns(parents)
        rows = np.full((len(parents), len(self.unit)), -1, dtype=np.int32)
        each = [len(columns) for columns in new_columns]
        column_of = np.concatenate([np.empty(0, dtype=np.int32), *new_columns])
        rows[np.repeat(np.arange(len(parents)), each), column_of] = self.n_monomials + np.arange(
            len(column_of)
        )
        self.expanded[parents] = len(self.parents) + np.arange(len(parents))
        self.parents = np.append(self.parents, np.array(parents, dtype=np.int32))
        self.children = np.vstack([self.children, rows])
        self._grow(np.repeat(np.array(parents, dtype=np.int32), each), column_of)

    def _new_columns(self, parents: list[int]) -> list[np.ndarray]:
        """Return for each parent the columns whose products with it are not yet monomials.

        A product already is a monomial if removing some column of the parent from it gives an expanded
        monomial.
        """
        completing: dict[tuple[int, ...], list[int]] = {}  # columns that turn a product into an expanded one
        new = []
        for place, parent in enumerate([*self.parents.tolist(), *parents]):
            product = self.columns(parent)
            without_one = {product[:i] + product[i + 1 :]: column for i, column in enumerate(product)}
            if place >= len(self.parents):
                known = [column for rest in without_one for column in completing.get(rest, [])]
                new.append(np.delete(np.arange(len(self.unit), dtype=np.int32), known))
            for rest, column in without_one.items():
                completing.setdefault(rest, []).append(column)
        return new

    def _grow(self, parent_of: np.ndarray, column_of: np.ndarray) -> None:
        more = len(parent_of)
        self.parent_of = np.append(self.parent_of, parent_of)
        self.column_of = np.append(self.column_of, column_of)
        self.degrees = np.append(self.degrees, self.degrees[parent_of] + 1)
        self.expanded = np.pad(self.expanded, (0, more), constant_values=-1)
        self.scale, self.inverse = np.pad(self.scale, (0, more)), np.pad(self.inverse, (0, more))
        self.weights, self.squares = (
            np.pad(state, ((0, 0), (0, more))) for state in (self.weights, self.squares)
        )

    # ---- passes

    def learn(
        self,
        X: Rows,
        y: np.ndarray,
        weight: np.ndarray | None,
        order: np.ndarray | None,
        loss: int,
        learning_rate: float,
        alpha: float,
    ) -> None:
        """Make one step for each row of X (as returned by `readable`), in the given order.

        ``y`` is (rows, outputs). ``alpha`` shrinks the weight of each monomial, in its own units, in rows
        where the monomial is not zero.
        """
        for name in STATE:  # a model read from a file may be read-only
            setattr(self, name, np.require(getattr(self, name), requirements="W"))
        if not native.compiled():
            return numpy_learn(self, X, y, weight, order, loss, learning_rate, alpha)
        state = [getattr(self, name) for name in STATE]
        native.extension.online_learn(
            *_arrays(X), *self._monomials(), order, y, weight, loss, learning_rate, alpha, *state
        )

    def outputs(self, X: Rows) -> np.ndarray:
        """Return the outputs of rows, (rows, outputs)."""
        if not native.compiled():
            return numpy_outputs(self, X)
        result = np.empty((X.shape[0], len(self.weights)), dtype=self.unit.dtype)
        native.extension.online_predict(*_arrays(X), *self._monomials(), self.weights * self.inverse, result)
        return result

    def _monomials(self) -> tuple[np.ndarray, ...]:
        return self.unit, self.parents, self.expanded, self.children


def _arrays(X: Rows) -> tuple[Any, ...]:
    return (X.data, X.indptr, X.indices) if sparse.issparse(X) else (X, None, None)


# ---- NumPy


def numpy_outputs(polynomial: OnlinePolynomial, X: Rows) -> np.ndarray:
    scaled_weights = (polynomial.weights * polynomial.inverse).T
    return np.vstack(
        [_values(polynomial, X[rows]) @ scaled_weights for rows in _blocks(polynomial, np.arange(X.shape[0]))]
    )


def numpy_learn(
    polynomial: OnlinePolynomial,
    X: Rows,
    y: np.ndarray,
    weight: np.ndarray | None,
    order: np.ndarray | None,
    loss: int,
    learning_rate: float,
    alpha: float,
) -> None:
    for rows in _blocks(polynomial, np.arange(X.shape[0]) if order is None else order):
        for values, row in zip(_values(polynomial, X[rows]), rows, strict=True):
            row_weight = 1.0 if weight is None else float(weight[row])
            if row_weight > 0:
                _learn_row(polynomial, values, y[row], row_weight, loss, learning_rate, alpha)


def _blocks(polynomial: OnlinePolynomial, rows: np.ndarray) -> list[np.ndarray]:
    at_once = max(1, VALUES_AT_ONCE // polynomial.n_monomials)
    return [rows[start : start + at_once] for start in range(0, max(len(rows), 1), at_once)]


def _values(polynomial: OnlinePolynomial, X: Rows) -> np.ndarray:
    """Return the values of the monomials, (rows, monomials)."""
    base = (X.toarray() if sparse.issparse(X) else X) * polynomial.unit
    values = np.empty((len(base), polynomial.n_monomials), dtype=base.dtype)
    values[:, 0] = 1
    values[:, 1 : 1 + base.shape[1]] = base
    for parent, children in zip(polynomial.parents, polynomial.children, strict=True):
        columns = np.flatnonzero(children >= 0)
        values[:, children[columns]] = values[:, [parent]] * base[:, columns]
    return values


def _learn_row(
    polynomial: OnlinePolynomial,
    values: np.ndarray,
    y: np.ndarray,
    weight: float,
    loss: int,
    learning_rate: float,
    alpha: float,
) -> None:
    larger = np.flatnonzero(np.abs(values) > polynomial.scale)
    scale = np.abs(values[larger])
    polynomial.squares[:, larger] *= (polynomial.scale[larger] / scale) ** 2
    polynomial.scale[larger] = scale
    normal = scale >= np.finfo(scale.dtype).tiny
    polynomial.inverse[larger] = np.divide(1, scale, out=np.zeros_like(scale), where=normal)
    u = values * polynomial.inverse
    polynomial.sums += weight * np.array([1, u @ u])
    multiplier = np.sqrt(polynomial.sums[0] / polynomial.sums[1])
    present = values != 0
    for weights, squares, target in zip(polynomial.weights, polynomial.squares, y, strict=True):
        p = float(weights @ u)
        slope = p - target if loss == SQUARED else expit(p) - target
        squares += weight * slope**2 * u**2
        rate = multiplier / np.sqrt(np.maximum(squares, np.finfo(u.dtype).tiny))  # where it is large, u is 0
        rate = rate.astype(u.dtype)
        reach = float(rate @ u**2)
        if reach > 0:
            weights += _travel(loss, float(target), p, learning_rate * weight * reach) / reach * rate * u
            weights[present] /= (1 + learning_rate * weight * alpha * rate)[present]


def _travel(loss: int, y: float, p: float, time: float) -> float:
    """Return the change of a prediction p that follows its loss downhill: d p / d time = -loss'(p)."""
    if loss == SQUARED:
        return (p - y) * np.expm1(-time)
    # The margin m grows by d with d + exp(m) (exp(d) - 1) = time, which is convex in d: Newton's method
    # descends to the root from the right.
    sign = 1 if y > 0 else -1
    m = sign * p
    linear, steep = np.exp(-max(m, 0.0)), np.exp(min(m, 0.0))
    # Both bounds are to the right of the root.
    d = min(time * linear / (linear + steep), np.logaddexp(0, np.log(time) - m))
    for _ in range(NEWTON_STEPS):
        following = d - (linear * (d - time) + steep * np.expm1(d)) / (linear + steep * np.exp(d))
        if not following < d:
            break
        d = following
    return sign * d
