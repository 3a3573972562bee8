"""Regression with a polynomial model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from .._data.open import open_rows
from .._data.training import RowsInMemory, TrainingRows
from .._fit.problem import Problem, Target
from .constructor import own_constructor
from .docstrings import documentation
from .fit_scope import fit_scope
from .lazy import lazy_on_dask
from .polynomial_model import PolynomialModel
from .sklearn_private import fit_context


class Regression(RegressorMixin, PolynomialModel):
    """Regression, whatever the terms of the model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _open(self, X: Any, y: Any, sample_weight: Any) -> tuple[TrainingRows, Target]:
        training = open_rows(X, y, sample_weight)
        if training is None:
            X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)
            training = self._in_memory(X, _as_columns(y), weight, flat=y.ndim == 1)
        return training, Target()

    def _fitted_attributes(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        return super()._fitted_attributes(problem, params) | {"_squeezed": problem.flat}

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, which need not be kept.

        The first block sets the basis and the units of the target, and should look like those to come; a few
        thousand rows per block work well. The objective is the mean over the last 30 blocks; blocks that are
        gone count by a quadratic model of them. After `fit`, learning continues from the fitted model. The
        settings of the solver (solver, max_iter, tol, n_restarts) are ignored.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        """
        with fit_scope(self):
            first = not hasattr(self, "_machine")
            X, y, weight = self._check_training_data(
                X, y, sample_weight, multi_output=True, y_numeric=True, reset=first
            )
            targets = _as_columns(y)
            if not first and targets.shape[1] != (n_outputs := self._machine.layout.n_outputs):
                raise ValueError(f"y must have {n_outputs} outputs as before, got {targets.shape[1]}.")
            rows = RowsInMemory(X, targets, weight, flat=y.ndim == 1, columns=self._columns)
            self._learn_block(rows, Target())
        return self

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predict targets, (n_samples,) or (n_samples, n_outputs) like the y of the fit."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._squeezed else outputs


def _as_columns(y: np.ndarray) -> np.ndarray:
    return y.astype(np.float64, copy=False).reshape(len(y), -1)


@own_constructor
class TensorMachineRegressor(Regression):
    __doc__ = documentation(
        "Polynomial regression whose features are learnt: a Tensor Machine fitted by least squares.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        0.6
        """,
        leave_out=("class_weight", "task", "classes_"),
    )
