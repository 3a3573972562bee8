"""Regression with a polynomial model, whatever its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from .._data.open import is_in_memory, open_rows
from .._data.training import RowsInMemory, TrainingRows
from .._fit.pose import Target
from .._fit.problem import Problem
from .._fit.settings import DEFAULT_TOL, NO_DEADLINE, Deadline
from .._fit.target_units import largest_outputs
from .._model.compiled import predictions
from .._model.losses import SQUARED, USUAL_POWER, USUAL_QUANTILE, Loss
from .._model.spline_column import USUAL_SHAPE
from .docstrings import documentation
from .fit_scope import fit_scope
from .held_out_rows import GivenRows, check_given, given_rows, like, require_pairs
from .intervals import bounds_of, check_interval_data, fit_intervals, refuse_known_part
from .lazy import lazy_on_dask
from .polynomial_model import PolynomialModel
from .quantile_levels import fit_levels, learn_levels, levels_of, require_same_levels
from .regression_losses import CONSTRAINTS, deviance_explained, loss_of, unknown_part, with_known_part
from .sklearn_private import fit_context
from .sum_over_rows import require_y
from .summed_scores import explained, pinball_explained, quantiles_explained
from .validation import as_columns

NUMBERS = {"multi_output": True, "y_numeric": True}  # what y may be, for scikit-learn's checks


class Regression(RegressorMixin, PolynomialModel):
    """Regression, whatever the terms of the model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _loss(self) -> Loss:
        return SQUARED

    def _open(
        self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None = None
    ) -> tuple[TrainingRows, Target]:
        training: TrainingRows | None = open_rows(X, y, sample_weight)
        if training is None:
            X, y, weight = self._check_training_data(X, y, sample_weight, **NUMBERS)
            targets = as_columns(y)
            held_out = check_given(self, given, X, partial(like, targets, self._loss()), **NUMBERS)
            training = self._in_memory(X, targets, weight, held_out, flat=y.ndim == 1)
        return training, Target(loss=self._loss())

    def _fitted_attributes(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        link = "log" if problem.loss.log_link else "identity"
        learnt = {"_squeezed": problem.flat, "_target_link": link, "_largest_outputs": problem.largest}
        return super()._fitted_attributes(problem, params) | learnt

    def _warm_params(self, problem: Problem) -> np.ndarray:
        self._require_link(problem.loss)
        return super()._warm_params(problem)

    def _require_link(self, loss: Loss) -> None:
        """Refuse to continue a model whose outputs have another meaning."""
        if loss.log_link != (self._target_link == "log"):
            was = "logarithms of" if self._target_link == "log" else "the"
            raise ValueError(
                f"A fit with {loss.shown} cannot continue this model, whose outputs are {was} "
                "predictions: fit a clone, or set warm_start=False."
            )

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, which the caller need not keep.

        The first block determines the basis and the units of the target, so it should resemble later blocks;
        a few thousand rows per block work well. The objective is the mean over the last 30 blocks; each past
        block is represented by a quadratic model of its loss. After `fit`, or in a loaded model, every row
        counts alike: a block of a tenth of all rows so far moves the parameters a tenth of the way to those
        that are best for this block. The solver settings (solver, max_iter, tol, n_restarts) are ignored.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        """
        with fit_scope(self):
            first = not hasattr(self, "_machine")
            X, y, weight = self._check_training_data(X, y, sample_weight, reset=first, **NUMBERS)
            targets, loss = as_columns(y), self._loss()
            if not first:
                self._require_link(loss)
            if not first and targets.shape[1] != (n_targets := self._description().n_targets):
                raise ValueError(f"y must have {n_targets} outputs as before, got {targets.shape[1]}.")
            rows = RowsInMemory(X, targets, weight, flat=y.ndim == 1, columns=self._columns)
            before = self._largest_outputs
            self._learn_block(rows, Target(loss=loss))
            if loss.log_link:
                self._largest_outputs = largest_outputs(targets.max(axis=0), before)
        return self

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predict targets of shape (n_samples,) or (n_samples, n_outputs), like the y of the fit."""
        return self._predictions(self._outputs(X))

    def _predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for outputs (rows, n_outputs)."""
        link = "sorted" if hasattr(self, "quantiles_") else self._target_link
        outputs = predictions(outputs, link, self._largest_outputs)
        return outputs[:, 0] if self._squeezed else outputs


class TensorMachineRegressor(Regression):
    __doc__ = documentation(
        "Polynomial regression with learned features: a Tensor Machine, fitted by least squares or by "
        "another loss.",
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolynomialModel._parameter_constraints,
        **CONSTRAINTS,
    }

    def __init__(
        self,
        degree: int | str = "auto",
        rank: int | str = "auto",
        alpha: float | str = "auto",
        *,
        loss: str | Callable[..., Any] = "squared_error",
        power: float = USUAL_POWER,
        quantile: float | Sequence[float] = USUAL_QUANTILE,
        intervals: bool = False,
        shared_factors: bool | str = "auto",
        basis: str | None = "auto",
        solver: str = "adam",
        max_iter: int | None = None,
        tol: float = DEFAULT_TOL,
        history: int | str = "auto",
        init: str = "random",
        init_scale: float | str = "auto",
        roughness: float = USUAL_SHAPE.roughness,
        relevance: int | str = "auto",
        trend: bool | str = "auto",
        jumps: bool | str = "auto",
        categorical_features: Any = "auto",
        periodic_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        n_restarts: int = 1,
        n_members: int = 1,
        max_norm: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree=degree,
            rank=rank,
            alpha=alpha,
            shared_factors=shared_factors,
            basis=basis,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            history=history,
            init=init,
            init_scale=init_scale,
            roughness=roughness,
            relevance=relevance,
            trend=trend,
            jumps=jumps,
            categorical_features=categorical_features,
            periodic_features=periodic_features,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
            n_restarts=n_restarts,
            n_members=n_members,
            max_norm=max_norm,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.loss = loss
        self.power = power
        self.quantile = quantile
        self.intervals = intervals

    def _loss(self) -> Loss:
        return loss_of(self)

    @fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        exposure: Any = None,
        offset: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        exposure_val: Any = None,
        offset_val: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a dataframe, a Dask array or dataframe, or a source of `tensormachines.blocks`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets; a Dask collection if X is one. A source provides its own targets and weights.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice.
        exposure : array-like of shape (n_samples,), optional
            How long, or how much of it, each row was observed; only for loss="poisson", "gamma" and
            "tweedie". The model is fitted to ``y / exposure`` with the weights ``sample_weight * exposure``,
            and predictions are for an exposure of 1.
        offset : array-like of shape (n_samples,), optional
            Known part of the outputs, which is added to them in the fit. With loss="poisson", "gamma" and
            "tweedie" outputs are logarithms, so offset=log(c) multiplies predictions by c. Without an offset,
            `predict` assumes an offset of 0.
        X_val : array-like or sparse matrix of shape (n_validation_samples, n_features), optional
            Validation rows, with the columns of X; both must be in memory. Their loss after each iteration is
            ``validation_loss_curve_``. ``early_stopping=True`` uses this loss and holds out no training rows.
        y_val : array-like of shape (n_validation_samples,) or (n_validation_samples, n_outputs), optional
        sample_weight_val : array-like of shape (n_validation_samples,), optional
        exposure_val, offset_val : array-like of shape (n_validation_samples,), optional
            Required with ``exposure`` or ``offset``, respectively.
        """
        with fit_scope(self):
            with_name = y
            given = given_rows(X, X_val, y_val, sample_weight_val)
            require_pairs(given, {"exposure": (exposure, exposure_val), "offset": (offset, offset_val)})
            y, sample_weight = unknown_part(self._loss(), X, y, sample_weight, exposure, offset)
            if given is not None:
                given = given.unknown_part(self._loss(), exposure_val, offset_val)
            if self.intervals:
                check_interval_data(X, y, sample_weight)
                refuse_known_part(exposure, offset)
            self.__dict__.pop("_intervals", None)
            self._fit_and_warn(X, y, sample_weight, given)
            self._name_target(X, with_name)
            if self.intervals:
                self._intervals = fit_intervals(self, X, y, sample_weight)
        return self

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, deadline: Deadline = NO_DEADLINE, given: Any = None
    ) -> list[str]:
        if levels_of(self) is not None:
            return fit_levels(self, (X, y, sample_weight), deadline, given)
        messages = super()._fit(X, y, sample_weight, deadline, given)
        self.__dict__.pop("quantiles_", None)
        return messages

    def _require_link(self, loss: Loss) -> None:
        require_same_levels(self)
        super()._require_link(loss)

    def _learn_block(self, training: RowsInMemory, target: Target) -> None:
        if self.intervals:
            raise ValueError(
                "intervals need fit: partial_fit keeps no rows to calibrate them on. Set intervals=False, or "
                "fit all rows at once."
            )
        if levels_of(self) is None:
            super()._learn_block(training, target)
        else:
            learn_levels(self, training)
        self.__dict__.pop("_intervals", None)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, exposure: Any = None, offset: Any = None
    ) -> Self:
        """Learn from one more block of rows, which the caller need not keep.

        The first block determines the basis and the units of the target, so it should resemble later blocks;
        a few thousand rows per block work well. The objective is the mean over the last 30 blocks; each past
        block is represented by a quadratic model of its loss. After `fit`, or in a loaded model, every row
        counts alike: a block of a tenth of all rows so far moves the parameters a tenth of the way to those
        that are best for this block. The solver settings (solver, max_iter, tol, n_restarts) are ignored.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight, exposure, offset : array-like of shape (n_samples,), optional
            See `fit`.
        """
        y, sample_weight = unknown_part(self._loss(), X, y, sample_weight, exposure, offset)
        return super().partial_fit(X, y, sample_weight)

    def predict(self, X: Any, exposure: Any = None, offset: Any = None) -> np.ndarray:
        """Predict targets of shape (n_samples,) or (n_samples, n_outputs), like the y of the fit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        exposure : array-like of shape (n_samples,), optional
            Factor of the predictions, see `fit`.
        offset : array-like of shape (n_samples,), optional
            Added to the outputs, see `fit`. If X is a Dask collection, ``exposure`` and ``offset`` must be
            Dask collections with the same partitions.
        """
        predicted = super().predict(X)
        if exposure is None and offset is None:
            return predicted
        return with_known_part(self._loss(), self._target_link, X, predicted, exposure, offset)

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict intervals that contain a share ``coverage`` of the targets of new rows.

        Errors on held-out rows calibrate the intervals (conformal prediction). Intervals are wider where
        larger errors are expected. The model must have been fitted with ``intervals=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        coverage : float, default=0.9
            Between 0 and 1, both excluded.

        Returns
        -------
        bounds : ndarray of shape (n_samples, 2)
            Lower and upper bound for each row.
        """
        self._require_fit()
        return bounds_of(self, X, coverage)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None, offset: Any = None
    ) -> float:
        """Return R2, or the explained share of the deviance for loss="poisson", "gamma" and "tweedie".

        Both are defined as in scikit-learn, the latter as in its GLMs: 1 for perfect predictions, and 0 for
        predicting the mean of y. Several outputs are averaged. With several quantile levels, the score is the
        mean explained share of their pinball losses, on 100,000 random rows if X is not in memory and has
        more.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a Dask collection, or a source of blocks, which provides its own targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
        exposure, offset : array-like of shape (n_samples,), optional
            See `fit`. The score then refers to the quantity that the fit learns: for example the rates y /
            exposure, weighted accordingly and relative to their mean.
        """
        y, sample_weight = unknown_part(self._loss(), X, y, sample_weight, exposure, offset)
        loss = SQUARED if self._target_link == "identity" else self._loss()
        if not is_in_memory(X):
            if hasattr(self, "quantiles_"):
                return quantiles_explained(self, X, y, sample_weight)
            return explained(self, loss, X, y, sample_weight)
        require_y(y)
        predicted = self.predict(X)
        if hasattr(self, "quantiles_"):
            return pinball_explained(self.quantiles_, y, predicted, sample_weight)
        if loss == SQUARED:
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        return deviance_explained(loss, y, predicted, sample_weight)
