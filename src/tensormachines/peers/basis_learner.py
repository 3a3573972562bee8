"""The Basis Learner: a polynomial network built layer by layer."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.linear_model import LogisticRegression

from .._model.rows import Rows
from ..estimators.sklearn_private import Interval
from .basis_network import Growth, grow
from .mixins import Probabilities, Regression, Rival, shift_and_scale

LOGISTIC_TOL = 1e-6
LARGEST_HESSIAN = 1500  # columns; with more, L-BFGS is used, which works well on orthonormal columns

DOCUMENTATION = """{summary}

    f(x) = b + sum over nodes h of  coef_h * h(x)

The Basis Learner [1]_. Layer 1 holds the first ``width`` principal directions of X. A candidate for layer t
is the product of a node of layer t-1 and one of layer 1. Candidates are taken one at a time: the next one is
the candidate whose part orthogonal to all nodes so far explains most of the residual of the target. All nodes
are kept orthogonal with mean square 1 on the training rows. {output}

With ``width=None``, the nodes span all polynomials of X of the given degree. The columns of X are not scaled,
so bring them to a common scale first.

Parameters
----------
degree : int, default=3
    Number of layers, and degree of the polynomial.
width : int, sequence of ``degree`` ints, or None, default=50
    Maximum number of nodes of a layer, without the constant. None: all linearly independent nodes.
alpha : float, default=1e-4
    Penalty of the output layer: the objective is (1 / total weight) * sum weight * loss + alpha/2 * |coef|^2.
batch : int, default=20
    Number of nodes to take before all candidates are compared with the residual again.
tol : float, default=1e-6
    A candidate is taken only if its part orthogonal to the nodes is larger than this share of the candidate.
    The smallest value used is the square root of the precision of X.
center : bool, default=True
    Whether layer 1 holds the principal directions of X about its mean. If False, it holds the singular
    vectors of [1 X], as in the original; the first of them is nearly the mean row. Either choice may be
    better.
{more}
Attributes
----------
intercept_, coef_ : the output layer; coef_ has one column per node, without the constant
network_ : Network
    ``network_.nodes(X)`` gives the nodes of new rows, ``network_.layers`` the number of nodes up to each
    layer.
residual_ : ndarray of shape (n_layers,)
    Share of the variance of the target that least squares on the nodes leaves unexplained after each layer.
    It never rises.
{attributes}n_features_in_, feature_names_in_ : as in scikit-learn

References
----------
.. [1] R. Livni, S. Shalev-Shwartz, O. Shamir. "An Algorithm for Training Polynomial Networks".
       arXiv:1304.7045, 2014.

Examples
--------{example}
"""


class _BasisLearner(Rival):
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "degree": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Integral, 1, None, closed="left"), "array-like", None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "batch": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, 1, closed="left")],
        "center": ["boolean"],
    }

    _needs_weights = True

    def _grow(self, X: Rows, targets: np.ndarray, weight: np.ndarray) -> Growth:
        growth = grow(
            X,
            targets.astype(X.dtype),
            weight,
            self._widths(),
            batch=int(self.batch),
            tol=float(self.tol),
            center=bool(self.center),
        )
        self.network_ = growth.network
        self.residual_ = np.array(growth.path)
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
        X = self._check_rows(X)
        return self.network_.outputs(X, np.atleast_1d(self.intercept_), np.atleast_2d(self.coef_))


class BasisLearnerRegressor(Regression, _BasisLearner):
    __doc__ = DOCUMENTATION.format(
        summary="Polynomial regression on nodes chosen layer by layer: the Basis Learner with least squares.",
        output="The output is\nridge regression on the nodes, with half the squared error as loss; the "
        "training error never rises with\na layer, for any alpha. Several outputs share their nodes, and "
        "count equally in the choice of nodes,\nregardless of their units.",
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
        self,
        degree: int = 3,
        width: Any = 50,
        alpha: float = 1e-4,
        *,
        batch: int = 20,
        tol: float = 1e-6,
        center: bool = True,
    ):
        self.degree = degree
        self.width = width
        self.alpha = alpha
        self.batch = batch
        self.tol = tol
        self.center = center

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: np.ndarray, flat: bool) -> None:
        mean, deviation = shift_and_scale(targets, weight)
        growth = self._grow(X, (targets - mean) / deviation, weight)
        # Ridge regression on orthonormal columns needs no linear solve.
        coef = (growth.coef[1:] * deviation / (1 + self.alpha)).T
        intercept = mean + growth.coef[0] * deviation
        self.coef_ = coef[0] if flat else coef
        self.intercept_ = intercept[0] if flat else intercept

    def _outputs(self, X: Any) -> np.ndarray:
        outputs = super()._outputs(X)
        return outputs[:, 0] if self.coef_.ndim == 1 else outputs


class BasisLearnerClassifier(Probabilities, _BasisLearner):
    __doc__ = DOCUMENTATION.format(
        summary="Classification on nodes chosen layer by layer: the Basis Learner with logistic loss.",
        output="Nodes are\nchosen by least squares on the one-hot classes. The output is logistic "
        "(multinomial) regression; its\nobjective never rises with a layer.",
        more="max_iter : int, default=200\n    Maximum number of iterations of the logistic regression.\n",
        attributes="classes_ : ndarray of shape (n_classes,)\n"
        "n_iter_ : int\n    Iterations of the logistic regression.\n",
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
        center: bool = True,
    ):
        self.degree = degree
        self.width = width
        self.alpha = alpha
        self.batch = batch
        self.max_iter = max_iter
        self.tol = tol
        self.center = center

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: np.ndarray) -> None:
        growth = self._grow(X, self._one_hot(numbers), weight)
        n_coef = growth.coef[1:].size
        logistic = LogisticRegression(
            C=np.inf if self.alpha == 0 else 1 / (self.alpha * weight.sum()),
            solver="newton-cholesky" if 0 < n_coef <= LARGEST_HESSIAN else "lbfgs",
            tol=LOGISTIC_TOL,
            max_iter=self.max_iter,
        )
        nodes = growth.values.columns
        logistic.fit(nodes[:, 1:] if n_coef else nodes * 0, numbers, sample_weight=weight)
        self.coef_ = logistic.coef_[:, : nodes.shape[1] - 1]
        self.intercept_ = logistic.intercept_
        self.n_iter_ = int(logistic.n_iter_[0])
