"""The Basis Learner: a polynomial network built layer by layer, by orthogonal least squares over products of
nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.linalg import eigh, solve_triangular, svd
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_is_fitted, validate_data

from ..estimators.classification import encode_labels
from ..estimators.polynomial_model import all_or_nothing
from ..estimators.sklearn_private import Interval, check_sample_weight, fit_context
from ..estimators.validation import require_some_weight
from .mixins import Probabilities, shift_and_scale

ROWS = 4096  # at a time: a block of nodes stays in the cache
SHORTLIST = 20  # candidates looked at closely, for every one that is taken
# rows, at least, on which they are compared; with 5,000 the rare products of binary columns are misjudged
SAMPLE = 20000
SAMPLE_PER_NODE = 100
SMALLEST_REMAINDER = 0.1  # share of a candidate, as far as a sample of the rows can tell
LOGISTIC_TOL = 1e-6
LARGEST_HESSIAN = 1500  # columns; above it L-BFGS, which these orthonormal columns suit well


@dataclass(frozen=True)
class Batch:
    """Nodes that were added together: (nodes[left] * nodes[right] - nodes @ overlap) / triangle, orthonormal
    on the training rows.
    """

    left: np.ndarray
    right: np.ndarray
    overlap: np.ndarray  # (nodes before, nodes here)
    triangle: np.ndarray  # (nodes here, nodes here), upper


@dataclass(frozen=True)
class Network:
    """All nodes as functions of a row: the constant 1, ``(x - mean) @ directions``, and the batches in their
    order.

    ``layers`` gives the number of nodes up to and with each layer.
    """

    mean: np.ndarray
    directions: np.ndarray
    batches: tuple[Batch, ...] = ()
    layers: tuple[int, ...] = ()

    def nodes(self, X: Any) -> np.ndarray:
        """(rows, nodes), in the dtype of X."""
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
        """(rows, outputs): linear in the nodes, which never exist for all rows at once.

        coef: (outputs, nodes but the constant).
        """
        outputs = np.empty((X.shape[0], len(coef)), X.dtype)
        for rows in gen_batches(X.shape[0], ROWS):
            outputs[rows] = self.nodes(X[rows])[:, 1:] @ coef.T.astype(X.dtype, copy=False) + intercept
        return outputs


class Columns:
    """Nodes on some rows, orthonormal there: the weighted mean of their products is the identity. The weights
    sum to 1.
    """

    def __init__(self, values: np.ndarray, weight: np.ndarray):
        self._storage = values
        self._count = values.shape[1]
        self.weight = weight

    @property
    def values(self) -> np.ndarray:
        return self._storage[:, : self._count]

    def inner(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Weighted means of the products of columns, in float64 whatever the columns are."""
        total = np.zeros((left.shape[1], right.shape[1]))
        for rows in gen_batches(len(left), ROWS):
            total += left[rows].T @ (right[rows] * self.weight[rows, None])
        return total

    def project_out(self, products: np.ndarray) -> np.ndarray:
        """Take from products, in place, their part in the columns; returns its coefficients."""
        overlap = self.inner(self.values, products).astype(products.dtype)
        products -= self.values @ overlap
        return overlap

    def extend(self, products: np.ndarray, smallest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Append what is new in products; returns overlap, triangle, and which of them have a remainder
        larger than ``smallest``.
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
            self._storage = np.hstack([self.values, spare])
        self._storage[:, self._count : end] = columns
        self._count = end


class Growth:
    """A network while it grows: its nodes on the training rows, and what is left of the targets.

    The candidates of a layer are the products of a node of the layer before and one of the first. Their
    correlation with the residual is the same before and after they are made orthogonal to the nodes, and is
    one matrix product for all of them, on all rows. Only a short list is then made orthogonal, and compared
    with each other, on a sample of the rows; and only the winners are computed on all rows."""

    def __init__(
        self,
        X: Any,
        targets: np.ndarray,
        weight: np.ndarray,
        width: int | None,
        sample: np.ndarray | None,
        tol: float,
    ):
        self.tol = max(
            tol, float(np.sqrt(np.finfo(X.dtype).eps))
        )  # remainders come from squares, which have half of the digits
        self.network = _first_layer(X, weight, width, self.tol)
        nodes = np.concatenate([self.network.nodes(X[rows]) for rows in gen_batches(X.shape[0], ROWS)])
        self.columns = self.sampled = Columns(nodes, weight.astype(X.dtype))
        self.sample = sample
        if sample is not None:
            part = weight[sample] / weight[sample].sum()
            self.sampled = Columns(nodes[sample, :1], part.astype(X.dtype))
            self.sampled.extend(nodes[sample, 1:], np.full(nodes.shape[1] - 1, self.tol))
        self.coef = np.zeros((0, targets.shape[1]))
        self.left = targets
        self._explain(0)
        self.energy = float(
            self.columns.weight @ np.square(targets - self.coef[0].astype(X.dtype)).sum(axis=1)
        )
        self.path = [self.residual]

    @property
    def residual(self) -> float:
        """Share of the targets' variance that the nodes do not explain."""
        squares = float(self.columns.weight @ np.square(self.left).sum(axis=1))
        return squares / self.energy if self.energy > 0 else 0.0

    @property
    def finished(self) -> bool:
        """Nothing but rounding is left."""
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
        if self.columns.values.shape[1] > layers[-1]:
            self.network = replace(self.network, layers=(*layers, self.columns.values.shape[1]))
            self.path.append(self.residual)

    def _correlations(self, previous: slice, first: slice) -> np.ndarray:
        """Of all candidates with what is left of each target: (targets, nodes of the previous layer, nodes of
        the first).
        """
        nodes, weight = self.columns.values, self.columns.weight
        total = np.zeros((self.left.shape[1], previous.stop - previous.start, first.stop - first.start))
        for rows in gen_batches(len(nodes), ROWS):
            weighted = self.left[rows] * weight[rows, None]
            for target, own in zip(total, weighted.T, strict=True):
                target += nodes[rows, previous].T @ (nodes[rows, first] * own[:, None])
        return total

    def _squares(self, previous: slice, first: slice) -> np.ndarray:
        """Mean squares of all candidates."""
        nodes, weight = self.columns.values, self.columns.weight
        total = np.zeros((previous.stop - previous.start, first.stop - first.start))
        for rows in gen_batches(len(nodes), ROWS):
            total += np.square(nodes[rows, previous]).T @ (np.square(nodes[rows, first]) * weight[rows, None])
        return total

    def _compare(
        self, left: np.ndarray, right: np.ndarray, correlations: np.ndarray, squares: np.ndarray, want: int
    ) -> tuple[int, np.ndarray]:
        """Add the best of a short list of candidates; returns how many, and which of the others may still be
        of use.
        """
        nodes = self.columns.values if self.sample is None else self.columns.values[self.sample]
        products = nodes[:, left] * nodes[:, right]
        own_squares = self.sampled.weight @ np.square(products)
        self.sampled.project_out(products)
        # A product that is rare may seem to have next to no remainder on the sample, and then to explain a
        # lot.
        floor = np.zeros_like(squares) if self.sample is None else SMALLEST_REMAINDER * squares
        chosen, alive = _choose(
            self.sampled.inner(products, products), correlations, self.tol**2 * own_squares, floor, want
        )
        if len(chosen) == 0:
            return 0, alive
        if self.sample is not None:
            self.sampled.extend(products[:, chosen], self.tol * np.sqrt(own_squares[chosen]))
        left, right = left[chosen], right[chosen]
        count = self.columns.values.shape[1]
        full = self.columns.values[:, left] * self.columns.values[:, right]
        overlap, triangle, good = self.columns.extend(full, self.tol * np.sqrt(squares[chosen]))
        self.network = replace(
            self.network, batches=(*self.network.batches, Batch(left[good], right[good], overlap, triangle))
        )
        self._explain(count)
        return int(good.sum()), alive

    def _explain(self, start: int) -> None:
        """Take from what is left of the targets what the nodes from ``start`` on explain."""
        new = self.columns.values[:, start:]
        coef = self.columns.inner(new, self.left)
        self.left = self.left - new @ coef.astype(new.dtype)
        self.coef = np.vstack([self.coef, coef])


def _choose(
    gram: np.ndarray, correlations: np.ndarray, smallest: np.ndarray, floor: np.ndarray, want: int
) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonal least squares among candidates, in terms of their products with each other and with the
    residual alone.

    Each step takes the candidate whose remainder, orthogonal to those taken before, explains most. Returns
    those taken, in their order, and which of the others have a remainder of square more than ``smallest``.
    One of less than ``floor`` counts as if it were that."""
    gram, correlations = gram.copy(), correlations.copy()
    squares = np.diag(gram)  # a view: it follows
    alive = squares > smallest
    chosen: list[int] = []
    while len(chosen) < want and alive.any():
        explained = np.square(correlations).sum(axis=1)
        best = int(
            np.divide(
                explained, np.maximum(squares, floor), out=np.full(len(squares), -1.0), where=alive
            ).argmax()
        )
        share = gram[best] / np.sqrt(squares[best])
        correlations -= np.outer(share, correlations[best] / share[best])
        gram -= np.outer(share, share)
        alive &= squares > smallest
        alive[best] = False
        chosen.append(best)
    return np.array(chosen, dtype=np.intp), alive


def _first_layer(X: Any, weight: np.ndarray, width: int | None, tol: float) -> Network:
    """The constant, and the principal directions of X about its mean, all of unit mean square.

    The rank is decided on columns of unit variance, so that it does not depend on their units; the order of
    the directions does."""
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
        largest = deviation.max()
        standard = (
            standard
            @ svd(np.sqrt(values)[:, None] * vectors.T * (deviation / largest), full_matrices=False)[0][
                :, :width
            ]
        )
    network = Network(mean.astype(X.dtype), standard.astype(X.dtype), (), (1 + standard.shape[1],))
    if standard.shape[1] == 0:
        return network
    gram = np.zeros((standard.shape[1] + 1,) * 2)
    for rows in gen_batches(X.shape[0], ROWS):
        nodes = network.nodes(X[rows]).astype(np.float64)
        gram += nodes.T @ (nodes * weight[rows, None])
    directions = _divide(standard, np.linalg.cholesky(gram[1:, 1:]).T)
    return replace(network, directions=directions.astype(X.dtype))


def _moments(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weighted mean and covariance in float64; a sparse X is filled a block of rows at a time."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.zeros(X.shape[1])
        for rows in gen_batches(X.shape[0], ROWS):
            mean += weight[rows] @ _dense(X[rows])
        covariance = np.zeros((X.shape[1],) * 2)
        for rows in gen_batches(X.shape[0], ROWS):
            centred = _dense(X[rows]) - mean
            covariance += centred.T @ (centred * weight[rows, None])
    if not np.isfinite(covariance).all():
        raise ValueError(
            "X has values too large to be squared in float64: divide them by a power of ten first."
        )
    return mean, covariance


def _dense(X: Any) -> np.ndarray:
    return (X.toarray() if issparse(X) else X).astype(np.float64)


def _triangle(columns: np.ndarray, weight: np.ndarray) -> np.ndarray:
    triangle: np.ndarray = np.linalg.qr(columns * np.sqrt(weight)[:, None], mode="r")  # type: ignore[assignment]
    return triangle


def _divide(columns: np.ndarray, triangle: np.ndarray) -> np.ndarray:
    """columns @ inverse(triangle)"""
    return solve_triangular(triangle, columns.T, trans="T", check_finite=False).T


DOCUMENTATION = """{summary}

    f(x) = b + sum over nodes h of  coef_h * h(x)

The Basis Learner [1]_. Layer 1 holds the first ``width`` principal directions of X. A candidate for layer t is the product of a node of
layer t-1 and one of layer 1; of all candidates those are taken, one after the other, whose part orthogonal to all nodes so far explains
most of what is left of the target. All nodes are kept orthogonal with mean square 1 on the training rows. {output}

With ``width=None`` the nodes span all polynomials of X of the given degree. The columns of X are used as they are: scale them alike.

Parameters
----------
degree : int, default=3
    Number of layers, and degree of the polynomial.
width : int, sequence of ``degree`` ints, or None, default=50
    Nodes of a layer at most; of layer 1 beside the constant. None: all that are linearly independent.
alpha : float, default={alpha}
    Penalty of the output layer: the objective is (1 / total weight) * sum weight * loss + alpha/2 * |coef|^2.
batch : int, default=20
    Nodes that are taken before all candidates are compared anew with what is left of the target.
tol : float, default=1e-6
    A candidate is taken only if its part orthogonal to the nodes is larger than this share of it. At least the root of the precision of X.
{more}
Attributes
----------
intercept_, coef_ : the output layer; coef_ has a column for each node beside the constant
network_ : Network
    ``network_.nodes(X)`` gives the nodes of new rows, ``network_.layers`` the number of nodes up to each layer.
residual_ : ndarray of shape (n_layers,)
    Share of the variance of the target that least squares on the nodes leaves after each layer. It never rises.
{attributes}n_features_in_, feature_names_in_ : as in scikit-learn

References
----------
.. [1] R. Livni, S. Shalev-Shwartz, O. Shamir. "An Algorithm for Training Polynomial Networks". arXiv:1304.7045, 2014.

Examples
--------{example}
"""


class _BasisLearner(BaseEstimator):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, **options: Any
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], **options)
        weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        require_some_weight(weight, "sample_weight")
        return X, y, weight

    def _grow(self, X: Any, targets: np.ndarray, weight: np.ndarray) -> Growth:
        widths = self._widths()
        growth = Growth(
            X, targets, weight / weight.sum(), widths[0], _sample(weight, widths), float(self.tol)
        )
        for width in widths[1:]:
            n_nodes = growth.columns.values.shape[1]
            growth.add_layer(width, int(self.batch))
            if growth.columns.values.shape[1] == n_nodes:  # and so there is nothing to build a next layer on
                break
        return growth

    def _widths(self) -> list[int | None]:
        if self.width is None or isinstance(self.width, Integral):
            return [None if self.width is None else int(self.width)] * int(self.degree)
        widths = np.asarray(self.width)
        if widths.shape != (self.degree,) or widths.dtype.kind not in "iu" or (widths < 1).any():
            raise ValueError(
                f"width must be an int, None, or degree={self.degree} ints of at least 1, got {self.width!r}."
            )
        return [int(width) for width in widths]

    def _outputs(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        return self.network_.outputs(X, np.atleast_1d(self.intercept_), np.atleast_2d(self.coef_))


class BasisLearnerRegressor(RegressorMixin, _BasisLearner):
    __doc__ = DOCUMENTATION.format(
        summary="Polynomial regression on nodes that are chosen layer by layer: the Basis Learner with least squares.",
        output="The output is ridge regression on\n"
        "them, with half the squared error as loss; the training error never rises with a layer, whatever alpha is.",
        alpha="1e-4",
        more="",
        attributes="",
        example="""
>>> from sklearn.datasets import load_diabetes
>>> from tensormachines.peers import BasisLearnerRegressor
>>> X, y = load_diabetes(return_X_y=True)
>>> model = BasisLearnerRegressor(degree=2, width=10).fit(X, y)
>>> model.network_.layers
(11, 21)
>>> round(model.score(X, y), 1)
0.6""",
    )

    def __init__(
        self, degree: int = 3, width: Any = 50, alpha: float = 1e-4, *, batch: int = 20, tol: float = 1e-6
    ):
        self.degree = degree
        self.width = width
        self.alpha = alpha
        self.batch = batch
        self.tol = tol

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Several outputs share their nodes, and count alike in the choice of these, whatever their units.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)
            targets = y.astype(np.float64).reshape(len(y), -1)
            mean, deviation = shift_and_scale(targets, weight)
            growth = self._grow(X, ((targets - mean) / deviation).astype(X.dtype), weight)
            # Ridge regression on orthonormal columns has no system to solve.
            coef = (growth.coef[1:] * deviation / (1 + self.alpha)).T
            intercept = mean + growth.coef[0] * deviation
            self.network_ = growth.network
            self.residual_ = np.array(growth.path)
            self.coef_ = coef[0] if y.ndim == 1 else coef
            self.intercept_ = intercept[0] if y.ndim == 1 else intercept
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,) or (n_samples, n_outputs) like the y of the fit."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self.coef_.ndim == 1 else outputs


class BasisLearnerClassifier(Probabilities, _BasisLearner):
    __doc__ = DOCUMENTATION.format(
        summary="Classification on polynomial nodes that are chosen layer by layer: the Basis Learner with logistic loss.",
        output="They are chosen by least squares\n"
        "on the indicators of the classes; the output is logistic (multinomial) regression, whose objective never rises with a layer.",
        alpha="1e-4",
        more="max_iter : int, default=200\n    Iterations of the logistic regression at most.\n",
        attributes="classes_ : ndarray of shape (n_classes,)\nn_iter_ : int\n    Iterations of the logistic regression.\n",
        example="""
>>> from sklearn.datasets import load_iris
>>> from tensormachines.peers import BasisLearnerClassifier
>>> X, y = load_iris(return_X_y=True)
>>> model = BasisLearnerClassifier(degree=2, width=10).fit(X, y)
>>> round(model.score(X, y), 1)
1.0""",
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_BasisLearner._parameter_constraints,
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        degree: int = 3,
        width: Any = 50,
        alpha: float = 1e-4,
        *,
        batch: int = 20,
        max_iter: int = 200,
        tol: float = 1e-6,
    ):
        self.degree = degree
        self.width = width
        self.alpha = alpha
        self.batch = batch
        self.max_iter = max_iter
        self.tol = tol

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight)
            labels, numbers = encode_labels(y)
            indicators = numbers[:, None] == (np.arange(len(labels)) if len(labels) > 2 else [1])
            growth = self._grow(X, indicators.astype(X.dtype), weight)
            n_coef = growth.coef[1:].size
            logistic = LogisticRegression(
                C=np.inf if self.alpha == 0 else 1 / (self.alpha * weight.sum()),
                solver="newton-cholesky" if 0 < n_coef <= LARGEST_HESSIAN else "lbfgs",
                tol=LOGISTIC_TOL,
                max_iter=self.max_iter,
            )
            nodes = growth.columns.values
            logistic.fit(nodes[:, 1:] if n_coef else nodes * 0, numbers, sample_weight=weight)
            self.classes_ = labels
            self.network_ = growth.network
            self.residual_ = np.array(growth.path)
            self.coef_ = logistic.coef_[:, : nodes.shape[1] - 1]
            self.intercept_ = logistic.intercept_
            self.n_iter_ = int(logistic.n_iter_[0])
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_samples,), or with more than two classes the outputs (n_samples,
        n_classes).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs


def _sample(weight: np.ndarray, widths: list[int | None]) -> np.ndarray | None:
    """Rows that candidates are compared on: the same in every fit of as many rows; None for all of them."""
    limited = [width for width in widths if width is not None]
    rows = np.flatnonzero(weight)
    n_sample = max([SAMPLE, *(SAMPLE_PER_NODE * width for width in limited)])
    if len(limited) < len(widths) or len(rows) <= n_sample:
        return None
    return np.sort(np.random.default_rng(0).choice(rows, n_sample, replace=False))
