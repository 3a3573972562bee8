"""Regression with a polynomial model, whatever its terms."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin

from .._data.open import open_table
from .._data.table import Table, TableInMemory
from .._fit.problem import Target
from .callbacks import FitCallbacks
from .lazy import lazy_on_dask
from .polynomial_model import Attributes, PolynomialModel, all_or_nothing
from .sklearn_private import fit_context


class Regression(RegressorMixin, PolynomialModel):
    _attributes: ClassVar[Attributes] = Attributes(squeeze=True)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), Dask array or dataframe, or source of `tensormachines.blocks`
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Where X is a Dask collection, one too. A source brings its own targets and weights.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as the row given twice.
        """
        with all_or_nothing(self):
            callbacks = FitCallbacks(self, X, y, sample_weight)
            table, target = self._open(X, y, sample_weight)
            self._fit(table, target, self._attributes, callbacks)
            self._name_target(y)
        return self

    def _open(self, X: Any, y: Any, sample_weight: Any) -> tuple[Table, Target]:
        table = open_table(X, y, sample_weight)
        if table is None:
            X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)
            targets = y.astype(np.float64, copy=False).reshape(len(y), -1)
            table = self._table_in_memory(X, targets, weight, flat=y.ndim == 1)
        return table, Target()

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, which need not be kept.

        The first block sets the basis and the units of the target, and should look like those to come; some
        thousand rows a block serve well. The objective is the mean over the last 30 blocks; a block that is
        gone counts by what was learnt of it. After `fit` it goes on from there. The settings of the solver
        (solver, max_iter, tol, n_restarts) play no part.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        """
        with all_or_nothing(self):
            first = not hasattr(self, "_machine")
            X, y, weight = self._check_training_data(
                X, y, sample_weight, multi_output=True, y_numeric=True, reset=first
            )
            targets = y.astype(np.float64, copy=False).reshape(len(y), -1)
            if not first and targets.shape[1] != self._machine.layout.n_outputs:
                raise ValueError(
                    f"y must have {self._machine.layout.n_outputs} outputs as before, got {targets.shape[1]}."
                )
            self._learn(TableInMemory(X, targets, weight, flat=y.ndim == 1), Target(), self._attributes)
        return self

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predicted targets, (n_samples,) or (n_samples, n_outputs) like the y of the fit."""
        outputs = self._outputs(X)
        return outputs[:, 0] if self._squeezed else outputs
