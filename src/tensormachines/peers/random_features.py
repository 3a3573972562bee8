"""Random features of the polynomial kernel (gamma <x, y> + coef0)^degree.

A map phi to n_components features is drawn independently of the data, so that the mean of <phi(x), phi(y)>
over the draws is the kernel. With t(x) = (sqrt(gamma) x, sqrt(coef0)), the kernel is <t(x), t(y)>^degree, so
the maps only need homogeneous kernels."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy import fft, sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.utils import check_random_state
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_is_fitted, validate_data

from .._model.rows import Rows
from ..estimators.fit_scope import all_or_nothing
from ..estimators.own_names import own_names
from ..estimators.sklearn_private import Interval, StrOptions, fit_context
from .hadamard import walsh_hadamard
from .mixins import FLOATS

FEATURES_AT_ONCE = 1 << 19  # numbers in a block of rows: they stay in the cache through all steps
FEWEST_ROWS = 256  # in a block, so that the work done once per block does not matter

KERNEL_PARAMETERS = """n_components : int, default=100
        Number of features D.
    degree : int, default=2
    coef0 : float, default=1.0
        If 0, there are only monomials of the highest degree.
    gamma : float, optional
        1 / (mean squared norm of the rows of X) if not given: 1 for rows of unit norm, 1 / n_features for
        standardised columns."""
REFERENCES = {
    "KarKarnick": "Kar and Karnick, Random feature maps for dot product kernels, AISTATS 2012.",
    "TensorSketch": "Pham and Pagh, Fast and scalable polynomial kernels via explicit feature maps, "
    "KDD 2013.",
    "CRAFTMaps": "Hamid, Xiao, Gittens and DeCoste, Compact random feature maps, ICML 2014.",
}
RANDOM_STATE = """random_state : int, RandomState or None, default=None"""
FEATURE_NAMES = """n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if all columns of X have names."""


def row_blocks(n_rows: int, width: int) -> Iterator[slice]:
    at_once = max(FEWEST_ROWS, FEATURES_AT_ONCE // width)
    return (slice(start, min(start + at_once, n_rows)) for start in range(0, n_rows, at_once))


def inverse_mean_square(X: Rows, weight: np.ndarray | None = None) -> float:
    """Return 1 / (mean squared norm of the rows), or 1 if that is not a finite positive number."""
    with np.errstate(over="ignore"):
        mean = float(np.average(row_norms(X, squared=True).astype(np.float64), weights=weight))
    return 1 / mean if 0 < mean < np.inf else 1.0


class RandomFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A random map; `_block` computes features of rows in the type of X, using `_width` numbers per row."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "degree": [Interval(Integral, 1, None, closed="left")],
        "coef0": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 100,
        degree: int = 2,
        *,
        coef0: float = 1.0,
        gamma: float | None = None,
        random_state: Any = None,
    ):
        self.n_components = n_components
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None) -> Self:
        """Draw the map. Only the number of columns of X and, for gamma, the norms of its rows matter.

        y is ignored.
        """
        with all_or_nothing(self):
            X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS)
            self.gamma_ = inverse_mean_square(X) if self.gamma is None else float(self.gamma)
            self._draw(X.shape[1], check_random_state(self.random_state))
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return the features of the rows of X, (n_samples, n_components), in the type of X."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        result = np.empty((X.shape[0], self.n_components), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], self._width):
            result[rows] = self._block(X[rows])
        return result

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    @property
    def _width(self) -> int:
        return self.n_components

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        raise NotImplementedError

    def _block(self, X: Rows) -> np.ndarray:
        raise NotImplementedError


@own_names
class KarKarnick(RandomFeatures):
    __doc__ = f"""Products of random projections as features of a polynomial kernel.

        phi_i(x) = D^-1/2 prod over j = 1..degree of <s_ij, t(x)>,    t(x) = (sqrt(gamma) x, sqrt(coef0))

    with random signs s_ij has E <phi(x), phi(y)> = (gamma <x, y> + coef0)^degree.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    signs_ : ndarray of shape (degree, n_features + 1, n_components), int8
        The last row belongs to the constant; it is missing if coef0 is 0.
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["KarKarnick"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import KarKarnick
    >>> X = np.eye(3)
    >>> features = KarKarnick(n_components=100_000, degree=2, random_state=0).fit_transform(X)
    >>> (features @ features.T).round(1)
    array([[4., 1., 1.],
           [1., 4., 1.],
           [1., 1., 4.]])
    """

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        shape = (self.degree, n_features + (self.coef0 > 0), self.n_components)
        self.signs_ = (2 * random_state.randint(2, size=shape, dtype=np.int8) - 1).astype(np.int8, copy=False)

    def _block(self, X: Rows) -> np.ndarray:
        result = np.full((X.shape[0], self.n_components), self.n_components**-0.5, dtype=X.dtype)
        for signs in self.signs_:
            directions = (np.sqrt(self.gamma_) * signs[: X.shape[1]]).astype(X.dtype)
            result *= X @ directions + self._constant(signs[X.shape[1] :], X.dtype)
        return result

    def _constant(self, signs: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return (np.sqrt(self.coef0) * signs.sum(axis=0)).astype(dtype)  # there is one row, or none


@own_names
class TensorSketch(RandomFeatures):
    __doc__ = f"""The count sketch of a tensor power as features of a polynomial kernel.

    The count sketch of t(x) = (sqrt(gamma) x, sqrt(coef0)) adds every entry, with a random sign, to one of
    n_components places. The sketch of the tensor t(x) x ... x t(x) is the circular convolution of ``degree``
    independent count sketches, computed as a product of their Fourier transforms.

    Hashes and results equal those of scikit-learn's `PolynomialCountSketch`, but this is several times
    faster: it uses real transforms in the type of X, and a sparse product for the sketches.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    places_, signs_ : ndarray of shape (degree, n_features + 1)
        The last column belongs to the constant; it is missing if coef0 is 0.
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["TensorSketch"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import TensorSketch
    >>> TensorSketch(n_components=10, degree=3, random_state=0).fit_transform(np.eye(3)).shape
    (3, 10)
    """

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        settings = {
            "n_components": self.n_components,
            "degree": self.degree,
            "coef0": self.coef0,
            "random_state": random_state,
        }
        drawn = PolynomialCountSketch(**settings).fit(np.zeros((1, n_features)))
        self.places_, self.signs_ = drawn.indexHash_, drawn.bitHash_

    def _block(self, X: Rows) -> np.ndarray:
        product = None
        for places, signs in zip(self.places_, self.signs_, strict=True):
            transformed = fft.rfft(self._count_sketch(X, places, signs), axis=1)
            product = transformed if product is None else np.multiply(product, transformed, out=product)
        return fft.irfft(product, n=self.n_components, axis=1)

    def _count_sketch(self, X: Rows, places: np.ndarray, signs: np.ndarray) -> np.ndarray:
        n_features = X.shape[1]
        entries = (np.sqrt(self.gamma_) * signs[:n_features]).astype(X.dtype)
        matrix = sparse.csr_array(
            (entries, places[:n_features], np.arange(n_features + 1)), shape=(n_features, self.n_components)
        )
        sketch = X @ matrix
        sketch = sketch.toarray() if sparse.issparse(sketch) else sketch
        if self.coef0 > 0:
            sketch[:, places[-1]] += np.sqrt(self.coef0) * signs[-1]
        return sketch


UP_PROJECTIONS = {"tensor-sketch": TensorSketch, "kar-karnick": KarKarnick}
CRAFT_PARAMETERS = """up : "tensor-sketch" or "kar-karnick", default="tensor-sketch"
        The map whose features are compressed.
    expansion : int, default=4
        Number of features before the compression, as a multiple of n_components."""


class CRAFTMaps(RandomFeatures):
    __doc__ = f"""Compact random features of a polynomial kernel: many random features, compressed.

        phi(x) = D^-1/2 R H S up(x)

    where up(x) are expansion * D features of `TensorSketch` or `KarKarnick`, padded with zeros to a power of
    two. R H S is a fast Johnson-Lindenstrauss transform: S are random signs, H is the Walsh-Hadamard
    transform, and R selects D places without replacement. The mean of |phi(x)|^2 is |up(x)|^2.

    Parameters
    ----------
    {KERNEL_PARAMETERS}
    {CRAFT_PARAMETERS}
    {RANDOM_STATE}

    Attributes
    ----------
    up_ : TensorSketch or KarKarnick
    signs_ : ndarray of shape (expansion * n_components,), int8
    places_ : ndarray of shape (n_components,)
    gamma_ : float
    {FEATURE_NAMES}

    References
    ----------
    {REFERENCES["CRAFTMaps"]}

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines.peers import CRAFTMaps
    >>> CRAFTMaps(n_components=10, degree=3, random_state=0).fit_transform(np.eye(3)).shape
    (3, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **RandomFeatures._parameter_constraints,
        "up": [StrOptions(set(UP_PROJECTIONS))],
        "expansion": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 100,
        degree: int = 2,
        *,
        coef0: float = 1.0,
        gamma: float | None = None,
        up: str = "tensor-sketch",
        expansion: int = 4,
        random_state: Any = None,
    ):
        super().__init__(
            n_components=n_components, degree=degree, coef0=coef0, gamma=gamma, random_state=random_state
        )
        self.up = up
        self.expansion = expansion

    @property
    def _width(self) -> int:
        return 1 << (int(self.expansion * self.n_components) - 1).bit_length()  # np.int64 has no bit_length

    def _draw(self, n_features: int, random_state: np.random.RandomState) -> None:
        n_up = self.expansion * self.n_components
        self.up_ = UP_PROJECTIONS[self.up](
            n_up, self.degree, coef0=self.coef0, gamma=self.gamma_, random_state=random_state
        )
        self.up_.fit(np.zeros((1, n_features)))
        self.signs_ = (2 * random_state.randint(2, size=n_up) - 1).astype(np.int8)
        self.places_ = random_state.choice(self._width, self.n_components, replace=False)

    def _block(self, X: Rows) -> np.ndarray:
        padded = np.zeros((X.shape[0], self._width), dtype=X.dtype)
        np.multiply(self.up_._block(X), self.signs_, out=padded[:, : len(self.signs_)], casting="same_kind")
        walsh_hadamard(padded)
        return padded[:, self.places_] * X.dtype.type(self.n_components**-0.5)
