"""The network of the Basis Learner: polynomial nodes chosen layer by layer, by orthogonal least squares."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd
from scipy.sparse import issparse
from sklearn.utils import gen_batches

ROWS = 4096  # processed at a time, so that a block of nodes stays in the cache
SHORTLIST = 20  # candidates examined closely for each candidate taken
SAMPLE = 20000  # rows to compare candidates on; with 5,000 the rare products of binary columns are misjudged
SAMPLE_PER_NODE = 100  # more rows for wide layers
SMALLEST_REMAINDER = 0.1  # share of a candidate, if measured on a sample of the rows


def grow(
    X: Any,
    targets: np.ndarray,
    weight: np.ndarray,
    widths: list[int | None],
    *,
    batch: int,
    tol: float,
    center: bool = True,
    sample: int = SAMPLE,
    sample_per_node: int = SAMPLE_PER_NODE,
) -> Growth:
    """Grow a network with one layer for each of ``widths``; see `BasisLearnerRegressor` for the parameters.

    Candidates are compared on ``sample`` rows, or on ``sample_per_node`` rows per node of a layer if that is
    more. All rows are used if there are no more, or if a layer takes all candidates."""
    limited = [width for width in widths if width is not None]
    n_sample = max([sample, *(sample_per_node * width for width in limited)])
    weighted, sampled = np.flatnonzero(weight), None
    if len(limited) == len(widths) and len(weighted) > n_sample:  # the same rows in each such fit
        sampled = np.sort(np.random.default_rng(0).choice(weighted, n_sample, replace=False))
    growth = Growth(X, targets, weight / weight.sum(), widths[0], sampled, tol, center)
    for width in widths[1:]:
        n_nodes = growth.values.columns.shape[1]
        growth.add_layer(width, batch)
        if growth.values.columns.shape[1] == n_nodes:  # no node to build the next layer on
            break
    return growth


@dataclass(frozen=True)
class Batch:
    """Nodes added together: (nodes[left] * nodes[right] - nodes @ overlap) / triangle.

    The new nodes are orthonormal on the training rows.
    """

    left: np.ndarray
    right: np.ndarray
    overlap: np.ndarray  # (nodes before, nodes here)
    triangle: np.ndarray  # (nodes here, nodes here), upper


@dataclass(frozen=True)
class Network:
    """All nodes as functions of a row: the constant 1, ``(x - mean) @ directions``, and the batches in order.

    ``layers`` gives the number of nodes up to and including each layer.
    """

    mean: np.ndarray
    directions: np.ndarray
    batches: tuple[Batch, ...] = ()
    layers: tuple[int, ...] = ()

    def nodes(self, X: Any) -> np.ndarray:
        """Return the nodes, (rows, nodes), in the dtype of X."""
        dtype = X.dtype
        first = self.layers[0]
        nodes = np.empty((X.shape[0], self.layers[-1]), dtype)
        nodes[:, 0] = 1
        directions, mean = self.directions.astype(dtype, copy=False), self.mean.astype(dtype, copy=False)
        nodes[:, 1:first] = X @ directions - mean @ directions if issparse(X) else (X - mean) @ directions
        end = first
        for batch in self.batches:
            start, end = end, end + len(batch.left)
            products = nodes[:, batch.left] * nodes[:, batch.right]
            products -= nodes[:, :start] @ batch.overlap.astype(dtype, copy=False)
            nodes[:, start:end] = _divide(products, batch.triangle.astype(dtype, copy=False))
        return nodes

    def outputs(self, X: Any, intercept: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """Return outputs linear in the nodes, (rows, outputs), without all nodes of all rows in memory.

        ``coef`` is (outputs, nodes without the constant).
        """
        outputs = np.empty((X.shape[0], len(coef)), X.dtype)
        for rows in gen_batches(X.shape[0], ROWS):
            outputs[rows] = self.nodes(X[rows])[:, 1:] @ coef.T.astype(X.dtype, copy=False) + intercept
        return outputs


class NodeValues:
    """The values of the nodes on some rows, in ``columns``, which are orthonormal on these rows.

    The weighted mean of the products of the columns is the identity. The weights sum to 1.
    """

    def __init__(self, columns: np.ndarray, weight: np.ndarray):
        self._storage = columns
        self._count = columns.shape[1]
        self.weight = weight

    @property
    def columns(self) -> np.ndarray:
        return self._storage[:, : self._count]

    def inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Return weighted means of the products of columns, in float64."""
        total = np.zeros((left.shape[1], right.shape[1]))
        for rows in gen_batches(len(left), ROWS):
            total += left[rows].T @ (right[rows] * self.weight[rows, None])
        return total

    def project_out(self, products: np.ndarray) -> np.ndarray:
        """Subtract from products, in place, their projection on the columns; return its coefficients."""
        overlap = self.inner(self.columns, products).astype(products.dtype)
        products -= self.columns @ overlap
        return overlap

    def extend(self, products: np.ndarray, smallest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Append the orthogonal remainders of products that are larger than ``smallest``.

        Return overlap and triangle as in `Batch`, and which products were appended.
        """
        overlap = self.project_out(products)
        overlap += self.project_out(products)  # twice is enough
        triangle = _triangle(products, self.weight)
        good = np.abs(np.diag(triangle)) > smallest
        if not good.all():
            products, overlap = products[:, good], overlap[:, good]
            triangle = _triangle(products, self.weight)
        self._append(_divide(products, triangle))
        return overlap, triangle, good

    def _append(self, columns: np.ndarray) -> None:
        end = self._count + columns.shape[1]
        if end > self._storage.shape[1]:
            spare = np.empty((len(columns), max(columns.shape[1], self._count // 2)), columns.dtype)
            self._storage = np.hstack([self.columns, spare])
        self._storage[:, self._count : end] = columns
        self._count = end


class Growth:
    """A network while it grows: its nodes on the training rows, and the residual of the targets.

    The candidates of a layer are the products of a node of the previous layer and a node of the first layer.
    Their correlation with the residual does not change when they are made orthogonal to the nodes, and one
    matrix product computes it for all candidates, on all rows. Then only a shortlist is made orthogonal, and
    its members are compared with each other on a sample of the rows. Only the winners are computed on all
    rows."""

    def __init__(
        self,
        X: Any,
        targets: np.ndarray,
        weight: np.ndarray,
        width: int | None,
        sample: np.ndarray | None,
        tol: float,
        center: bool,
    ):
        # Remainders come from squares, which keep only half of the digits.
        self.tol = max(tol, float(np.sqrt(np.finfo(X.dtype).eps)))
        self.network = _first_layer(X, weight, width, self.tol, center)
        nodes = np.concatenate([self.network.nodes(X[rows]) for rows in gen_batches(X.shape[0], ROWS)])
        self.values = self.sampled = NodeValues(nodes, weight.astype(X.dtype))
        self.sample = sample
        if sample is not None:
            part = weight[sample] / weight[sample].sum()
            self.sampled = NodeValues(nodes[sample, :1], part.astype(X.dtype))
            self.sampled.extend(nodes[sample, 1:], np.full(nodes.shape[1] - 1, self.tol))
        self.coef = np.zeros((0, targets.shape[1]))
        self.left = targets
        self._explain(0)
        self.energy = float(
            self.values.weight @ np.square(targets - self.coef[0].astype(X.dtype)).sum(axis=1)
        )
        self.path = [self.residual]

    @property
    def residual(self) -> float:
        """Return the share of the variance of the targets that the nodes do not explain."""
        squares = float(self.values.weight @ np.square(self.left).sum(axis=1))
        return squares / self.energy if self.energy > 0 else 0.0

    @property
    def finished(self) -> bool:
        """Tell whether only rounding errors are left."""
        return self.path[-1] <= (1000 * np.finfo(self.left.dtype).eps) ** 2

    def add_layer(self, width: int | None, batch: int) -> None:
        layers = self.network.layers
        first, previous = slice(1, layers[0]), slice(1 if len(layers) == 1 else layers[-2], layers[-1])
        squares = self._squares(previous, first)
        available = squares > 0
        if len(layers) == 1:
            available &= np.tri(len(squares), dtype=np.bool_)  # the product of two directions once
        room = int(available.sum()) if width is None else min(width, int(available.sum()))
        while room > 0 and available.any() and not self.finished:
            correlations = self._correlations(previous, first)
            scores = np.divide(
                np.square(correlations).sum(axis=0),
                squares,
                out=np.full(squares.shape, -1.0),
                where=available,
            )
            want = min(batch, room)
            length = min(want if room >= available.sum() else SHORTLIST * want, int(available.sum()))
            places = np.unravel_index(np.argsort(-scores, axis=None, kind="stable")[:length], scores.shape)
            chosen, alive = self._compare(
                places[0] + previous.start,
                places[1] + first.start,
                correlations[:, places[0], places[1]].T,
                squares[places],
                want,
            )
            available[places[0][~alive], places[1][~alive]] = False
            room -= chosen
        if self.values.columns.shape[1] > layers[-1]:
            self.network = replace(self.network, layers=(*layers, self.values.columns.shape[1]))
            self.path.append(self.residual)

    def _correlations(self, previous: slice, first: slice) -> np.ndarray:
        """Return correlations of all candidates with the residual of each target.

        The shape is (targets, nodes of the previous layer, nodes of the first layer).
        """
        nodes, weight = self.values.columns, self.values.weight
        total = np.zeros((self.left.shape[1], previous.stop - previous.start, first.stop - first.start))
        for rows in gen_batches(len(nodes), ROWS):
            weighted = self.left[rows] * weight[rows, None]
            for target, own in zip(total, weighted.T, strict=True):
                target += nodes[rows, previous].T @ (nodes[rows, first] * own[:, None])
        return total

    def _squares(self, previous: slice, first: slice) -> np.ndarray:
        """Return mean squares of all candidates."""
        nodes, weight = self.values.columns, self.values.weight
        total = np.zeros((previous.stop - previous.start, first.stop - first.start))
        for rows in gen_batches(len(nodes), ROWS):
            total += np.square(nodes[rows, previous]).T @ (np.square(nodes[rows, first]) * weight[rows, None])
        return total

    def _compare(
        self, left: np.ndarray, right: np.ndarray, correlations: np.ndarray, squares: np.ndarray, want: int
    ) -> tuple[int, np.ndarray]:
        """Add the best of a shortlist of candidates; return their number, and which others may still be
        used."""
        nodes = self.values.columns if self.sample is None else self.values.columns[self.sample]
        products = nodes[:, left] * nodes[:, right]
        own_squares = self.sampled.weight @ np.square(products)
        self.sampled.project_out(products)
        # A rare product may seem to have almost no remainder on the sample, and then seem to explain a lot.
        floor = np.zeros_like(squares) if self.sample is None else SMALLEST_REMAINDER * squares
        chosen, alive = _choose(
            self.sampled.inner(products, products), correlations, self.tol**2 * own_squares, floor, want
        )
        if len(chosen) == 0:
            return 0, alive
        if self.sample is not None:
            self.sampled.extend(products[:, chosen], self.tol * np.sqrt(own_squares[chosen]))
        left, right = left[chosen], right[chosen]
        count = self.values.columns.shape[1]
        full = self.values.columns[:, left] * self.values.columns[:, right]
        overlap, triangle, good = self.values.extend(full, self.tol * np.sqrt(squares[chosen]))
        self.network = replace(
            self.network, batches=(*self.network.batches, Batch(left[good], right[good], overlap, triangle))
        )
        self._explain(count)
        return int(good.sum()), alive

    def _explain(self, start: int) -> None:
        """Subtract from the residual what the nodes from ``start`` on explain."""
        new = self.values.columns[:, start:]
        coef = self.values.inner(new, self.left)
        self.left = self.left - new @ coef.astype(new.dtype)
        self.coef = np.vstack([self.coef, coef])


def _choose(
    gram: np.ndarray, correlations: np.ndarray, smallest: np.ndarray, floor: np.ndarray, want: int
) -> tuple[np.ndarray, np.ndarray]:
    """Choose candidates by orthogonal least squares, given their products with each other and the residual.

    Each step takes the candidate whose remainder, orthogonal to those already taken, explains most. Return
    the candidates taken, in order, and which of the others have a squared remainder above ``smallest``.
    Squared remainders below ``floor`` count as ``floor``."""
    gram, correlations = gram.copy(), correlations.copy()
    squares = np.diag(gram)  # a view, which follows the updates
    alive = squares > smallest
    chosen: list[int] = []
    while len(chosen) < want and alive.any():
        explained = np.square(correlations).sum(axis=1)
        scores = np.full(len(squares), -1.0)
        best = int(np.divide(explained, np.maximum(squares, floor), out=scores, where=alive).argmax())
        share = gram[best] / np.sqrt(squares[best])
        correlations -= np.outer(share, correlations[best] / share[best])
        gram -= np.outer(share, share)
        alive &= squares > smallest
        alive[best] = False
        chosen.append(best)
    return np.array(chosen, dtype=np.intp), alive


def _first_layer(X: Any, weight: np.ndarray, width: int | None, tol: float, center: bool) -> Network:
    """Return the constant and the principal directions of X about its mean, all of unit mean square.

    Without ``center``, the directions are those of [1 X], without their part along the constant. The rank is
    determined on columns of unit variance, so it does not depend on their units; the order of the directions
    does.
    """
    mean, covariance = _moments(X, weight)
    deviation = np.sqrt(np.diag(covariance))
    # A constant column is constant up to the rounding of its mean.
    varies = deviation > 100 * np.finfo(X.dtype).eps * np.abs(mean)
    inverse = np.divide(1, deviation, out=np.zeros_like(deviation), where=varies)
    values, vectors = eigh(covariance * inverse * inverse[:, None])
    good = values > max(tol**2, 1e-13) * max(values[-1], 0)
    values, vectors = values[good], vectors[:, good]
    standard = inverse[:, None] * vectors / np.sqrt(values)
    if standard.shape[1]:
        centred = np.sqrt(values)[:, None] * vectors.T * deviation  # X - mean, in units of these nodes
        standard = standard @ (_principal(centred, width) if center else _singular(centred, mean, width, tol))
    network = Network(mean.astype(X.dtype), standard.astype(X.dtype), (), (1 + standard.shape[1],))
    if standard.shape[1] == 0:
        return network
    gram = np.zeros((standard.shape[1] + 1,) * 2)
    for rows in gen_batches(X.shape[0], ROWS):
        nodes = network.nodes(X[rows]).astype(np.float64)
        gram += nodes.T @ (nodes * weight[rows, None])
    directions = _divide(standard, np.linalg.cholesky(gram[1:, 1:]).T)
    return replace(network, directions=directions.astype(X.dtype))


def _principal(centred: np.ndarray, width: int | None) -> np.ndarray:
    """Return the rotation of uncorrelated nodes to the principal directions of X about its mean."""
    rotation: np.ndarray = svd(centred / np.abs(centred).max(), full_matrices=False)[0]
    return rotation[:, :width]


def _singular(centred: np.ndarray, mean: np.ndarray, width: int | None, tol: float) -> np.ndarray:
    """Return the nearest rotation of uncorrelated nodes to the singular vectors of [1 X].

    A singular vector is partly constant. Without this part the vectors are no longer orthogonal, so the
    nearest orthonormal directions replace them. One direction is lost if the constant is in their span."""
    both = np.block([[np.ones((1, 1)), mean[None]], [np.zeros((len(centred), 1)), centred]])
    without_constant = svd(both, full_matrices=False)[0][1:, :width]
    left, lengths, right = svd(without_constant, full_matrices=False)
    kept = lengths > tol
    rotation: np.ndarray = left @ right if kept.sum() == right.shape[1] else left[:, kept]
    return rotation


def _moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return weighted mean and covariance in float64; a sparse X is made dense some rows at a time."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.zeros(X.shape[1])
        for rows in gen_batches(X.shape[0], ROWS):
            mean += weight[rows] @ _dense(X[rows])
        covariance = np.zeros((X.shape[1],) * 2)
        for rows in gen_batches(X.shape[0], ROWS):
            centred = _dense(X[rows]) - mean
            covariance += centred.T @ (centred * weight[rows, None])
    if not np.isfinite(covariance).all():
        raise ValueError("X has values too large to be squared in float64: divide X by a power of ten first.")
    return mean, covariance


def _dense(X: Any) -> np.ndarray:
    return (X.toarray() if issparse(X) else X).astype(np.float64)


def _triangle(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    triangle: np.ndarray = np.linalg.qr(columns * np.sqrt(weight)[:, None], mode="r")  # type: ignore[assignment]
    return triangle


def _divide(columns: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """Return columns @ inverse(triangle)."""
    return solve_triangular(triangle, columns.T, trans="T", check_finite=False).T
