"""The original implementation of Apple: Vowpal Wabbit's ``--stage_poly``, behind scikit-learn's interface."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from shlex import split
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from .._data.deduplicate import merge_rows
from .._model.moments import Rows
from ..estimators.classification import encode_labels
from ..estimators.polynomial_model import all_or_nothing
from ..estimators.sklearn_private import Interval, check_sample_weight, fit_context
from ..estimators.validation import require_some_weight
from .mixins import OneAgainstTheRest, shift_and_scale

PARAMETERS = """

    Unlike in Apple here, degrees are not limited, products reached by different ways are different monomials, and weights share the places
    of a hash table. Needs ``pip install tensormachines[vowpal]``.

    Parameters
    ----------
    expansion : float, default=0.75
        Vowpal Wabbit's ``--sched_exponent``: an expansion takes (mean number of non-zeros in a row) ** expansion monomials.
    batch_size : int, default=0
        Vowpal Wabbit's ``--batch_sz``: monomials are expanded after 1, 2, 4, 8, ... times so many rows; 0 is after every epoch.
    max_iter : int, default=20
        Epochs, ``--passes``.
    learning_rate : float, default=0.5
    alpha : float, default=0.0
        ``--l2``.
    bits : int, default=18
        The table of weights has 2**bits places.
    arguments : str, default=""
        More of Vowpal Wabbit's own arguments.
    random_state : int, RandomState instance or None, default=None
        Order of the rows, the same in every epoch.

    Attributes
    ----------
    learn_seconds_ : float
        Time of the learning alone; the rows were already in Vowpal Wabbit's own binary form.
    n_iter_ : int
        Epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where all columns of X have names.{classes}

    References
    ----------
    A. Agarwal, A. Beygelzimer, D. Hsu, J. Langford, M. Telgarsky, "Scalable Nonlinear Learning with Adaptive Polynomial Expansions", 2014.
"""


class VowpalWabbit(BaseEstimator):
    """What the regressor and the classifier share.

    A model is kept as the bytes of Vowpal Wabbit's own file.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "expansion": [Interval(Real, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "bits": [Interval(Integral, 1, 32, closed="both")],
        "arguments": [str],
        "random_state": ["random_state"],
    }
    _loss: ClassVar[str]

    def __init__(
        self,
        expansion: float = 0.75,
        *,
        batch_size: int = 0,
        max_iter: int = 20,
        learning_rate: float = 0.5,
        alpha: float = 0.0,
        bits: int = 18,
        arguments: str = "",
        random_state: Any = None,
    ):
        self.expansion = expansion
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.bits = bits
        self.arguments = arguments
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_models")

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, **settings: Any
    ) -> tuple[Rows, np.ndarray, np.ndarray | None]:
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], **settings)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            require_some_weight(sample_weight, "sample_weight")
        return X, y, sample_weight

    def _learn(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None) -> tuple[list[bytes], float]:
        """The models of the targets (rows, outputs), and the seconds of learning them."""
        X, targets, weight = merge_rows(X, targets, weight)
        order = check_random_state(self.random_state).permutation(len(targets))
        texts = _lines(X[order])
        targets, weights = targets[order], np.ones(len(order)) if weight is None else weight[order]
        models, seconds = [], 0.0
        for target in targets.T:
            rows = [
                f"{t:.9g} {w:.9g} {text}\n"
                for t, w, text in zip(target.tolist(), weights.tolist(), texts, strict=True)
                if w > 0
            ]
            model, more = self._learn_one("".join(rows))
            models.append(model)
            seconds += more
        return models, seconds

    def _learn_one(self, rows: str) -> tuple[bytes, float]:
        with TemporaryDirectory() as folder:
            data, cache, model = (Path(folder) / name for name in ("rows", "cache", "model"))
            data.write_text(rows)
            _run(
                [
                    "--noop",
                    f"--bit_precision={self.bits}",
                    f"--data={data}",
                    f"--cache_file={cache}",
                    "--kill_cache",
                ]
            )
            start = perf_counter()
            settings = {
                "sched_exponent": self.expansion,
                "batch_sz": self.batch_size,
                "loss_function": self._loss,
                "learning_rate": self.learning_rate,
                "l2": self.alpha,
                "bit_precision": self.bits,
                "passes": self.max_iter,
                "cache_file": cache,
                "final_regressor": model,
            }
            _run(
                [
                    "--stage_poly",
                    "--holdout_off",
                    *(f"--{name}={value}" for name, value in settings.items()),
                    *split(self.arguments),
                ]
            )
            return model.read_bytes(), perf_counter() - start

    def _outputs(self, X: Any) -> np.ndarray:
        """(rows, models)"""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        outputs = np.empty((X.shape[0], len(self._models)), dtype=X.dtype)
        with TemporaryDirectory() as folder:
            data, saved, predictions = (Path(folder) / name for name in ("rows", "model", "predictions"))
            data.write_text("".join(f"{text}\n" for text in _lines(X)))
            for k, model in enumerate(self._models):
                saved.write_bytes(model)
                _run(
                    [
                        "--testonly",
                        f"--initial_regressor={saved}",
                        f"--data={data}",
                        f"--predictions={predictions}",
                    ]
                )
                outputs[:, k] = np.loadtxt(predictions, ndmin=1)
        return outputs


class VowpalWabbitRegressor(RegressorMixin, VowpalWabbit):
    __doc__ = (
        "Least squares with a sparse polynomial that is found online, by Vowpal Wabbit's ``--stage_poly``."
        + PARAMETERS.format(classes="")
        + """
    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines.peers import VowpalWabbitRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> bool(VowpalWabbitRegressor(random_state=0).fit(X, y).score(X, y) > 0.4)
    True
    """
    )
    _loss = "squared"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight, y_numeric=True)
            targets = y.astype(np.float64, copy=False)[:, None]
            (shift,), (scale,) = shift_and_scale(targets, weight)
            models, seconds = self._learn(X, (targets - shift) / scale, weight)
            self._models, self._shift, self._scale = models, shift, scale
            self.learn_seconds_, self.n_iter_ = seconds, self.max_iter
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,)."""
        outputs = self._outputs(X)[:, 0]
        return (outputs * self._scale + self._shift).astype(outputs.dtype)


class VowpalWabbitClassifier(OneAgainstTheRest, VowpalWabbit):
    __doc__ = (
        "Logistic regression, of several classes each against the rest, with a polynomial found online by Vowpal Wabbit's ``--stage_poly``."
        + PARAMETERS.format(classes="\n    classes_ : ndarray of shape (n_classes,)")
        + """
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tensormachines.peers import VowpalWabbitClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(VowpalWabbitClassifier(random_state=0).fit(X, y).score(X, y) > 0.9)
    True
    """
    )
    _loss = "logistic"

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
            How many rows each counts for.
        """
        with all_or_nothing(self):
            X, y, weight = self._check_training_data(X, y, sample_weight)
            labels, numbers = encode_labels(y)
            own = numbers[:, None] == np.arange(len(labels))
            targets = np.where(own, 1.0, -1.0)[:, 1 if len(labels) == 2 else 0 :]
            models, seconds = self._learn(X, targets, weight)
            self._models, self.classes_ = models, labels
            self.learn_seconds_, self.n_iter_ = seconds, self.max_iter
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second class (n_samples,), or with more than two classes of each against the rest
        (n_samples, n_classes).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if len(self.classes_) == 2 else outputs


def _run(arguments: list[str]) -> None:
    """Everything happens while the workspace opens: it goes through the rows that the arguments name."""
    try:
        from vowpalwabbit import Workspace
    except ImportError as missing:
        raise ImportError(
            "VowpalWabbitRegressor and VowpalWabbitClassifier need: pip install tensormachines[vowpal]"
        ) from missing
    Workspace(arg_list=["--quiet", *arguments]).finish()


def _lines(X: Rows) -> list[str]:
    """Rows as Vowpal Wabbit writes them, which leaves out zeros by itself."""
    if not sparse.issparse(X):
        pattern = "|x " + " ".join(f"{column}:%.9g" for column in range(X.shape[1]))
        return [pattern % tuple(row) for row in X.tolist()]
    columns, values = X.indices.tolist(), X.data.tolist()
    ends = X.indptr.tolist()
    return [
        "|x " + " ".join(f"{columns[k]}:{values[k]:.9g}" for k in range(start, stop))
        for start, stop in pairwise(ends)
    ]
