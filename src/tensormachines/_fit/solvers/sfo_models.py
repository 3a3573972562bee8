"""Quadratic models of several functions, learned from their gradients, and the minimum of their sum."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from ..._model import native
from .state import VALUE, Array, Entry, like, same

HISTORY = 10  # pairs that a function remembers
ROWS_AT_ONCE = 256
LARGEST_RATIO = 1e8  # of the curvatures of one function
DEPENDENT = 1e-6  # steps are dependent if a singular value is below this share of the largest


class Newton(NamedTuple):
    """The Newton step of the sum of the models at some x."""

    factor: np.ndarray  # lower Cholesky factor of H, in Fortran order
    gradient: np.ndarray
    step: np.ndarray  # H^-1 gradient: x - step is the minimum
    length: float  # of the step
    slope: float  # <step, gradient>


class QuadraticModels:
    """For each function i, a model around the point x_i where it was last evaluated:

        g_i(x) = value_i + <gradient_i, x - x_i> + 1/2 (x - x_i)' H_i (x - x_i)
        H_i = scale_i I + Q_i' C_i Q_i

    H_i is the BFGS update of scale_i I by the last HISTORY pairs (step, change of the gradient) of this
    function. Q_i are orthonormal rows that span the pairs, which are R_i' Q_i. All vectors are coordinates in
    a space of up to ``capacity`` dimensions; the first ``size`` are in use. The sums over the functions are
    kept up to date, so that no step loops over the functions:

        H = diagonal I + curvature,      gradient of the sum at x = linear + H x
    """

    def __init__(self, n_functions: int, capacity: int, size: int):
        self.size = size
        self.evaluations = np.zeros(n_functions, dtype=np.int64)
        self.values = np.zeros(n_functions)
        self.positions = np.zeros((n_functions, capacity))
        self.gradients = np.zeros((n_functions, capacity))
        self.n_pairs = np.zeros(n_functions, dtype=np.int64)
        self.steps = np.zeros((n_functions, HISTORY, capacity))  # newest last
        self.changes = np.zeros((n_functions, HISTORY, capacity))
        self.scales = np.zeros(n_functions)
        self.rows = np.zeros((n_functions, 2 * HISTORY, capacity))  # Q
        self.cores = np.zeros((n_functions, 2 * HISTORY, 2 * HISTORY))  # C
        self.triangles = np.zeros((n_functions, 2 * HISTORY, 2 * HISTORY))  # R
        self.curvature = np.zeros((capacity, capacity))
        self.diagonal = 0.0
        self.linear = np.zeros(capacity)
        self._bound: tuple[Any, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the bound arrays, which cannot leave the process."""
        return {**vars(self), "_bound": ()}

    def entries(self, size: int) -> dict[str, Entry]:
        """Return the allowed attributes of models of this size, see `state`."""
        found: dict[str, Entry] = {
            name: like(value) for name, value in vars(self).items() if isinstance(value, np.ndarray)
        }
        counts = {
            "evaluations": Array(self.evaluations.shape, np.int64, low=0),
            "n_pairs": Array(self.n_pairs.shape, np.int64, low=0, high=HISTORY),
        }
        return {**found, **counts, "size": same(size), "diagonal": VALUE}

    # ---- one function

    def observe(
        self,
        i: int,
        value: float,
        position: np.ndarray,
        gradient: np.ndarray,
        scale: float,
        shortest: float,
        smallest: float,
    ) -> None:
        """Learn from an evaluation. ``scale`` serves as curvature until there is a pair.

        Steps shorter than ``shortest`` and changes of the gradient below ``smallest`` are rounding errors.
        """
        before = self.scales[i] if self.evaluations[i] else 0.0
        if native.extension is None:
            self._observe(i, value, position, gradient, scale, shortest, smallest)
        else:
            limits = shortest, smallest, LARGEST_RATIO
            if not self._compiled.observe(i, self.size, value, position, gradient, scale, *limits):
                # The pairs are nearly dependent, which is rare.
                self._fit(i, scale)
                self._add(i, 1)
        self.diagonal += self.scales[i] - before

    def _observe(
        self,
        i: int,
        value: float,
        position: np.ndarray,
        gradient: np.ndarray,
        scale: float,
        shortest: float,
        smallest: float,
    ) -> None:
        K = self.size
        self._add(i, -1)
        step, change = position - self.positions[i, :K], gradient - self.gradients[i, :K]
        if self.evaluations[i] and np.linalg.norm(step) > shortest and np.linalg.norm(change) > smallest:
            self._remember(i, step, change)
        self.evaluations[i] += 1
        self.values[i] = value
        self.positions[i, :K] = position
        self.gradients[i, :K] = gradient
        self._fit(i, scale)
        self._add(i, 1)

    def learn_pair(self, i: int, step: np.ndarray, change: np.ndarray) -> None:
        """Learn from the change of the gradient along a step from the last position, which does not move."""
        K, before = self.size, self.scales[i]
        if native.extension is None:
            self._add(i, -1)
            self._remember(i, step, change)
            self._fit(i, before)
            self._add(i, 1)
        else:
            last = self.values[i], self.positions[i, :K], self.gradients[i, :K]
            fitted = self._compiled.observe(i, K, *last, before, 0.0, 0.0, LARGEST_RATIO, step, change)
            self.evaluations[i] -= 1  # this was not an evaluation
            if not fitted:
                self._fit(i, before)
                self._add(i, 1)
        self.diagonal += self.scales[i] - before

    @property
    def _compiled(self) -> Any:
        """Return the compiled functions, which read and change these arrays."""
        arrays = (
            self.evaluations,
            self.values,
            self.positions,
            self.gradients,
            self.n_pairs,
            self.steps,
            self.changes,
            self.scales,
            self.rows,
            self.cores,
            self.triangles,
            self.curvature,
            self.linear,
        )
        # Another state may have been restored since.
        if not (self._bound and all(map(operator.is_, arrays, self._bound))):
            self._bound = (*arrays, native.extension.QuadraticModels(*arrays))
        return self._bound[-1]

    def forget(self, i: int) -> None:
        """Forget all evaluations of a function."""
        if self.evaluations[i]:
            self._add(i, -1)
            self.diagonal -= self.scales[i]
        self.evaluations[i] = self.n_pairs[i] = 0

    def model_value(self, i: int, x: np.ndarray) -> float:
        return self._model_value(i, x) if native.extension is None else self._compiled.value(i, x)

    def _model_value(self, i: int, x: np.ndarray) -> float:
        distance = x - self.positions[i, : self.size]
        return float(
            self.values[i] + distance @ (self.gradients[i, : self.size] + 0.5 * self._times(i, distance))
        )

    def model_gradient(self, i: int, x: np.ndarray) -> np.ndarray:
        return self.gradients[i, : self.size] + self._times(i, x - self.positions[i, : self.size])

    def _times(self, i: int, vector: np.ndarray) -> np.ndarray:
        """Return H_i @ vector."""
        n = 2 * self.n_pairs[i]
        rows = self.rows[i, :n, : self.size]
        return self.scales[i] * vector + (self.cores[i, :n, :n] @ (rows @ vector)) @ rows

    def _remember(self, i: int, step: np.ndarray, change: np.ndarray) -> None:
        length = float(np.linalg.norm(step))
        n = int(self.n_pairs[i])
        if n == HISTORY:
            self.steps[i, :-1] = self.steps[i, 1:]
            self.changes[i, :-1] = self.changes[i, 1:]
            n -= 1
        self.steps[i, n, : self.size] = step / length
        self.changes[i, n, : self.size] = change / length
        self.n_pairs[i] = n + 1

    def _fit(self, i: int, scale: float) -> None:
        """Compute scale_i, Q_i and C_i from the pairs.

        Q_i' C_i Q_i is the compact form of BFGS (Byrd, Nocedal & Schnabel 1994, eq. 2.17).
        """
        n = int(self.n_pairs[i])
        self.scales[i] = scale
        if n == 0:
            return
        Q, R = _orthonormal(
            np.concatenate([self.steps[i, :n, : self.size], self.changes[i, :n, : self.size]])
        )
        S, Y = R[:, :n], R[:, n:]
        smallest, largest = _extreme_curvatures(S, Y)
        if not np.isfinite(largest) or largest == 0:
            self.n_pairs[i] = 0
            return
        self.scales[i] = smallest
        self.rows[i, : len(Q), : self.size] = Q
        self.rows[i, len(Q) : 2 * n, : self.size] = 0
        self.cores[i, : 2 * n, : 2 * n] = self.triangles[i, : 2 * n, : 2 * n] = 0
        self.triangles[i, : len(Q), : 2 * n] = R
        self.cores[i, : len(Q), : len(Q)] = _positive(_bfgs(smallest, S, Y), smallest)

    # ---- the sum

    def _add(self, i: int, sign: int) -> None:
        """Add function i to the sums, or subtract it, without its share of the diagonal."""
        if not self.evaluations[i]:
            return
        if native.extension is not None and sign > 0:
            return self._compiled.include(i, i, self.size)
        n = 2 * int(self.n_pairs[i])
        rows = self.rows[i, :n, : self.size]
        self.curvature[: self.size, : self.size] += sign * (rows.T @ (self.cores[i, :n, :n] @ rows))
        self.linear[: self.size] += sign * self.model_gradient(i, np.zeros(self.size))

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.linear[: self.size] + self.times(x)

    def times(self, x: np.ndarray) -> np.ndarray:
        """Return H @ x."""
        return self.curvature[: self.size, : self.size] @ x + self.diagonal * x

    def newton(self, x: np.ndarray) -> Newton:
        extra = 0.0
        while True:
            found = _newton(self.curvature, self.diagonal + extra, self.linear, x)
            if found:
                return found
            if not np.isfinite(extra):
                raise FloatingPointError("The curvature is not finite.")
            # Every H_i is positive definite, but by rounding their sum may no longer be.
            if not extra:
                self.add_up()
            extra = (
                10 * extra
                if extra
                else np.finfo(np.float64).eps * (self.diagonal + float(np.abs(np.diag(self.curvature)).max()))
            )

    def add_up(self) -> None:
        """Recompute the sums, which lose precision over time."""
        self.curvature[...] = 0
        self.linear[...] = 0
        self.diagonal = float(self.scales[self.evaluations > 0].sum())
        if native.extension is not None:
            return self._compiled.include(0, len(self.values) - 1, self.size)
        for i in range(len(self.values)):
            self._add(i, 1)

    def distances(self, x: np.ndarray, own: bool) -> np.ndarray:
        """Return the squared distances of x from the last positions, in the metric of H or of each H_i."""
        difference = x - self.positions[:, : self.size]
        if not own:
            return np.einsum(
                "ij,ij->i", difference @ self.curvature[: self.size, : self.size], difference
            ) + self.diagonal * np.einsum("ij,ij->i", difference, difference)
        inside = np.matmul(self.rows[:, :, : self.size], difference[:, :, None])[:, :, 0]
        return np.einsum("ij,ij->i", difference, difference) * self.scales + np.einsum(
            "ij,ijk,ik->i", inside, self.cores, inside
        )

    # ---- another basis

    def grow(self, size: int) -> None:
        """Make room for further coordinates, which are 0 so far."""
        self.size = size

    def rotate(self, kept: np.ndarray, center: np.ndarray) -> None:
        """See `Subspace.rotate`."""
        K, fewer = kept.shape
        self.positions[:, :K] -= center
        for vectors in (self.positions, self.gradients, self.rows):
            flat = vectors.reshape(-1, vectors.shape[-1])
            for start in range(0, len(flat), ROWS_AT_ONCE):
                some = flat[start : start + ROWS_AT_ONCE]
                some[:, :fewer] = some[:, :K] @ kept
                some[:, fewer:K] = 0
        self.size = fewer
        self._follow_rows(K)
        self.add_up()

    def _follow_rows(self, size: int) -> None:
        """Rotate the pairs, which had ``size`` coordinates, as R_i' Q_i: faster than Q_i itself."""
        self.steps[:, :, self.size : size] = self.changes[:, :, self.size : size] = 0
        for i, n in enumerate(self.n_pairs.tolist()):
            pairs = self.triangles[i, : 2 * n, : 2 * n].T @ self.rows[i, : 2 * n, : self.size]
            self.steps[i, :n, : self.size], self.changes[i, :n, : self.size] = pairs[:n], pairs[n:]


def _newton(curvature: np.ndarray, diagonal: float, linear: np.ndarray, x: np.ndarray) -> Newton | None:
    """Return the Newton step; None if H is not positive definite."""
    if native.extension is None:
        return numpy_newton(curvature, diagonal, linear, x)
    K = len(x)
    factor, gradient, step = np.empty((K, K)), np.empty(K), np.empty(K)
    found = native.extension.newton(curvature, diagonal, linear, x, factor, gradient, step)
    return Newton(factor.T, gradient, step, *found) if found else None


def numpy_newton(curvature: np.ndarray, diagonal: float, linear: np.ndarray, x: np.ndarray) -> Newton | None:
    K = len(x)
    H = curvature[:K, :K] + diagonal * np.eye(K)
    factor, failed = lapack.dpotrf(H.T, lower=1, clean=0)
    if failed:
        return None
    gradient = linear[:K] + H @ x
    step = lapack.dpotrs(factor, gradient, lower=1)[0]
    return Newton(factor, gradient, step, float(np.linalg.norm(step)), float(step @ gradient))


def _orthonormal(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return orthonormal rows Q and R with vectors = R.T @ Q; ``vectors`` is overwritten."""
    n, K = vectors.shape
    packed, tau, _, _ = lapack.dgeqrf(vectors.T, overwrite_a=1)
    R = np.triu(packed[: min(n, K)])
    Q, _, _ = lapack.dorgqr(packed[:, : min(n, K)], tau)
    return Q.T, R


def _extreme_curvatures(S: np.ndarray, Y: np.ndarray) -> tuple[float, float]:
    """Return the smallest and the largest singular value of the best D with D S = Y.

    The smallest is at least the largest / LARGEST_RATIO. Only independent steps count: a step and its reverse
    say nothing about other directions.
    """
    _, lengths, right = np.linalg.svd(S, full_matrices=False)
    rank = int(np.count_nonzero(lengths > DEPENDENT * lengths[0]))
    if rank == 0:  # the steps are 0, or so long that their lengths overflow
        return 0.0, 0.0
    D = Y @ (right[:rank].T / lengths[:rank])  # without left.T, which changes no singular value
    squares = np.linalg.eigvalsh(D.T @ D)
    largest = float(np.sqrt(max(squares[-1], 0)))
    return max(float(np.sqrt(max(squares[0], 0))), largest / LARGEST_RATIO), largest


def _bfgs(scale: float, S: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return H - scale I, where H is the BFGS update of scale I by the pairs in the columns of S and Y.

    The oldest pair comes first.
    """
    SY = S.T @ Y
    lower = np.tril(SY, -1)
    middle = np.block([[scale * (S.T @ S), lower], [lower.T, -np.diag(np.diag(SY))]])
    outer = np.concatenate([scale * S, Y], axis=1)
    try:
        change = -outer @ np.linalg.solve(middle, outer.T)
    except np.linalg.LinAlgError:
        return np.zeros((len(S), len(S)))
    if not np.isfinite(change).all():
        return np.zeros((len(S), len(S)))
    return 0.5 * (change + change.T)


def _positive(change: np.ndarray, scale: float) -> np.ndarray:
    """Return ``change``, modified so that scale I + change is positive definite.

    Eigenvalues that are too small become the smallest of the others. (The authors' code takes the median of
    all positive ones; the smallest gives a lower objective, see benchmarks/RESULTS.md.)
    """
    H = change + scale * np.eye(len(change))
    largest = float(np.trace(np.abs(H)))
    if not lapack.dpotrf(H - largest / LARGEST_RATIO * np.eye(len(H)))[1]:
        return change
    eigenvalues, vectors = np.linalg.eigh(H)
    small = eigenvalues <= np.abs(eigenvalues).max() / LARGEST_RATIO
    eigenvalues[small] = eigenvalues[~small].min() if not small.all() else scale
    return (vectors * (eigenvalues - scale)) @ vectors.T
