"""The original implementation of Apple: Vowpal Wabbit's ``--stage_poly``, behind scikit-learn's interface."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral, Real
from pathlib import Path
from shlex import split
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .._data.training import merge_rows
from .._model.rows import Rows
from ..estimators.own_names import own_names
from ..estimators.sklearn_private import Interval
from .mixins import OneAgainstTheRest, Regression, Rival, shift_and_scale

PARAMETERS = """

    Unlike in `AppleRegressor`, degrees are not limited, products found in different ways are different
    monomials, and weights share the places of a hash table. Needs ``pip install tensormachines[vowpal]``.

    Parameters
    ----------
    expansion : float, default=0.75
        Vowpal Wabbit's ``--sched_exponent``: an expansion takes
        (mean number of non-zeros in a row) ** expansion monomials.
    batch_size : int, default=0
        Vowpal Wabbit's ``--batch_sz``: monomials are expanded after 1, 2, 4, 8, ... times this number of
        rows, or after every epoch if 0.
    max_iter : int, default=20
        Number of epochs, ``--passes``.
    learning_rate : float, default=0.5
    alpha : float, default=0.0
        ``--l2``.
    bits : int, default=18
        The hash table of weights has 2**bits places.
    arguments : str, default=""
        Further arguments for Vowpal Wabbit.
    random_state : int, RandomState instance or None, default=None
        Order of the rows, the same in every epoch.

    Attributes
    ----------
    learn_seconds_ : float
        Time of learning, without the conversion of the rows to Vowpal Wabbit's binary format.
    n_iter_ : int
        Number of epochs.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if all columns of X have names.{classes}

    References
    ----------
    A. Agarwal, A. Beygelzimer, D. Hsu, J. Langford, M. Telgarsky, "Scalable Nonlinear Learning with Adaptive
    Polynomial Expansions", 2014.
"""


class VowpalWabbit(Rival):
    """Settings, learning and prediction, shared by the regressor and the classifier.

    A fitted model is kept as the bytes of Vowpal Wabbit's model file.
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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_models")

    def _learn(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None) -> tuple[list[bytes], float]:
        """Return one model per column of the targets (rows, outputs), and the seconds spent on learning."""
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
            prepare = {"bit_precision": self.bits, "data": data, "cache_file": cache}
            _run("--noop", "--kill_cache", *_options(prepare))
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
            _run("--stage_poly", "--holdout_off", *_options(settings), *split(self.arguments))
            return model.read_bytes(), perf_counter() - start

    def _outputs(self, X: Any) -> np.ndarray:
        X = self._check_rows(X)
        outputs = np.empty((X.shape[0], len(self._models)), dtype=X.dtype)
        with TemporaryDirectory() as folder:
            data, saved, predictions = (Path(folder) / name for name in ("rows", "model", "predictions"))
            data.write_text("".join(f"{text}\n" for text in _lines(X)))
            for k, model in enumerate(self._models):
                saved.write_bytes(model)
                files = {"initial_regressor": saved, "data": data, "predictions": predictions}
                _run("--testonly", *_options(files))
                outputs[:, k] = np.loadtxt(predictions, ndmin=1)
        return outputs


@own_names
class VowpalWabbitRegressor(Regression, VowpalWabbit):
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
    _several_outputs = False

    def _fit_targets(self, X: Rows, targets: np.ndarray, weight: np.ndarray | None, flat: bool) -> None:
        (shift,), (scale,) = shift_and_scale(targets, weight)
        self._models, self.learn_seconds_ = self._learn(X, (targets - shift) / scale, weight)
        self._shift, self._scale, self.n_iter_ = shift, scale, self.max_iter

    def _outputs(self, X: Any) -> np.ndarray:
        outputs = super()._outputs(X)[:, 0]
        return (outputs * self._scale + self._shift).astype(outputs.dtype)


@own_names
class VowpalWabbitClassifier(OneAgainstTheRest, VowpalWabbit):
    __doc__ = (
        "Logistic regression with a polynomial that is found online, by Vowpal Wabbit's ``--stage_poly``; "
        "with more than two classes each against the rest."
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

    def _fit_numbers(self, X: Rows, numbers: np.ndarray, weight: np.ndarray | None) -> None:
        targets = np.where(self._one_hot(numbers), 1.0, -1.0)
        self._models, self.learn_seconds_ = self._learn(X, targets, weight)
        self.n_iter_ = self.max_iter


def _options(settings: dict[str, Any]) -> list[str]:
    return [f"--{name}={value}" for name, value in settings.items()]


def _run(*arguments: str) -> None:
    """Run Vowpal Wabbit; it processes the rows named in the arguments while its workspace opens."""
    try:
        from vowpalwabbit import Workspace
    except ImportError as missing:
        raise ImportError(
            "VowpalWabbitRegressor and VowpalWabbitClassifier need Vowpal Wabbit: "
            "pip install tensormachines[vowpal]"
        ) from missing
    Workspace(arg_list=["--quiet", *arguments]).finish()


def _lines(X: Rows) -> list[str]:
    """Return the rows in Vowpal Wabbit's text format; it ignores zeros."""
    if not sparse.issparse(X):
        pattern = "|x " + " ".join(f"{column}:%.9g" for column in range(X.shape[1]))
        return [pattern % tuple(row) for row in X.tolist()]
    columns, values = X.indices.tolist(), X.data.tolist()
    ends = X.indptr.tolist()
    return [
        "|x " + " ".join(f"{columns[k]}:{values[k]:.9g}" for k in range(start, stop))
        for start, stop in pairwise(ends)
    ]
