"""Tensor Machines that choose degree, rank, alpha and basis by cross-validation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit, check_cv

from .._fit.settings import DEFAULT_TOL
from .._model.losses import LOGISTIC, USUAL_POWER, USUAL_QUANTILE, Loss, quantile, require_targets
from .best_estimator import of_best_estimator
from .classification import Classification, TensorMachineClassifier, encode_labels
from .docstrings import LOG_LOSS, LOSS_PARAMETERS
from .ensemble import Outputs
from .fit_scope import fit_scope
from .fold import Fold, together
from .intervals import check_interval_data, learn_intervals, refuse_known_part, sizes_like
from .label_matrix import is_label_matrix, refuse_class_weight
from .own_names import own_names
from .quantile_levels import levels_of, require_one_target
from .regression import TensorMachineRegressor
from .regression_losses import (
    CONSTRAINTS,
    in_units_of,
    loss_of,
    mean_loss,
    unknown_part,
)
from .search import FOLDS, Search
from .search_docstrings import search_documentation
from .sklearn_private import fit_context
from .validation import as_columns

ENOUGH_TO_HOLD_OUT = 10_000  # rows: with fewer, the best of a hundred candidates on one fifth wins by chance
HELD_OUT = 0.2


class TensorMachineRegressorCV(RegressorMixin, Search):
    __doc__ = search_documentation(
        "A Tensor Machine for regression that chooses degree, rank, alpha and basis by cross-validation.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineRegressorCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TensorMachineRegressorCV(time_budget=5, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.4
        True
        """,
        leave_out=("class_weight", "classes_", "solver_", "validation_loss_curve_"),
    )

    _estimator_class = TensorMachineRegressor
    _passed_on = (*Search._passed_on, "loss", "power", "quantile")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Search._parameter_constraints,
        **CONSTRAINTS,
    }

    quantiles_ = of_best_estimator("quantiles_")

    def __init__(
        self,
        degrees: Sequence[int] = (1, 2, 3, 4, 6),
        ranks: Sequence[int] | str = "auto",
        alphas: Sequence[float] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        bases: Sequence[str | None] = ("auto",),
        relevances: Sequence[int] = (0, 2),
        roughnesses: Sequence[float] = (3.0, 20.0),
        trends: Sequence[bool] = (False, True),
        *,
        cv: Any = None,
        scoring: Any = None,
        halving: bool = True,
        time_budget: float | None = 60.0,
        subsample: int = 50_000,
        refit: bool = True,
        n_members: int = 3,
        loss: str | Callable[..., Any] = "squared_error",
        power: float = USUAL_POWER,
        quantile: float | Sequence[float] = USUAL_QUANTILE,
        intervals: bool = False,
        shared_factors: bool | str = "auto",
        jumps: bool | str = "auto",
        categorical_features: Any = "auto",
        periodic_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        solver: str = "adam",
        max_iters: Sequence[int] | None = None,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | str = "auto",
    ):
        super().__init__(
            degrees=degrees,
            ranks=ranks,
            alphas=alphas,
            bases=bases,
            relevances=relevances,
            roughnesses=roughnesses,
            trends=trends,
            cv=cv,
            scoring=scoring,
            halving=halving,
            time_budget=time_budget,
            subsample=subsample,
            refit=refit,
            n_members=n_members,
            shared_factors=shared_factors,
            jumps=jumps,
            categorical_features=categorical_features,
            periodic_features=periodic_features,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
            solver=solver,
            max_iters=max_iters,
            tol=tol,
            init_scale=init_scale,
            n_restarts=n_restarts,
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
        groups: Any = None,
    ) -> Self:
        """Choose among the candidates, and fit the best one to all rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a dataframe, a Dask array or dataframe, or a source of `tensormachines.blocks`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            A Dask collection if X is one. A source provides its own targets and weights.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 2 means the same as giving the row twice, also in the scores.
        exposure, offset : array-like of shape (n_samples,), optional
            See `TensorMachineRegressor.fit`.
        groups : array-like of shape (n_samples,), optional
            Group of each row, for ``cv``. X must be in memory.
        """
        with fit_scope(self):
            given = y
            if self.intervals:
                refuse_known_part(exposure, offset)
            y, sample_weight = unknown_part(self._loss(), X, y, sample_weight, exposure, offset)
            self._fit_and_warn(X, y, sample_weight, groups)
            self._name_target(X, given)
        return self

    def predict(self, X: Any, exposure: Any = None, offset: Any = None) -> np.ndarray:
        """Predict with the best estimator, see `TensorMachineRegressor.predict`."""
        return self._fitted().predict(X, exposure, offset)

    def score(
        self, X: Any, y: Any = None, sample_weight: Any = None, exposure: Any = None, offset: Any = None
    ) -> float:
        """Return the score of the best estimator by ``scoring``; if that is None, see
        `TensorMachineRegressor.score`."""
        if self.scoring is None:
            return self._fitted().score(X, y, sample_weight, exposure, offset)
        refuse_known_part(exposure, offset, f"scoring={self.scoring!r}")
        return self._score_by_scoring(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        if self.intervals:
            check_interval_data(X, y, sample_weight)
        checked = self._check_training_data(X, y, sample_weight, multi_output=True, y_numeric=True)
        require_targets(self._loss(), checked[1])
        if levels_of(self) is not None:
            require_one_target(checked[1])
        return checked

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Predict intervals, see `TensorMachineRegressor.predict_interval`."""
        return self._fitted().predict_interval(X, coverage)

    def _calibrate(self, estimator: Any, outputs: Outputs, folds: list[Fold], seed: int) -> None:
        if self.intervals:
            predicted = np.concatenate([each[:, 0] for each in outputs]).astype(np.float64)
            if estimator._target_link == "log":
                predicted = np.exp(predicted)
            X, y, weight = together([fold.scoring for fold in folds[: len(outputs)]])
            rows = X, y.astype(np.float64).ravel(), weight
            estimator._intervals = learn_intervals(sizes_like(estimator, seed), rows, predicted, seed)

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        return _without_classes(y, seed) if self.cv is None else check_cv(self.cv)

    def _mean_loss(self, outputs: np.ndarray, fold: Fold) -> float:
        """Return minus the mean loss, in the units of y, averaged over several quantiles."""
        _, y, weight = fold.scoring
        y = y.astype(np.float64).reshape(len(y), -1)
        if (levels := levels_of(self)) is not None:
            each = zip(levels, np.sort(outputs.astype(np.float64), axis=1).T, strict=True)
            return -float(np.mean([mean_loss(quantile(level), y, z[:, None], weight) for level, z in each]))
        loss = in_units_of(fold.training[1], fold.training[2], self._loss())
        return -mean_loss(loss, y, outputs.astype(np.float64), weight)


@own_names
class TensorMachineClassifierCV(ClassifierMixin, Search):
    __doc__ = search_documentation(
        "A Tensor Machine for classification that chooses degree, rank, alpha and basis by cross-validation.",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines import TensorMachineClassifierCV
        >>> X, y = load_iris(return_X_y=True)
        >>> model = TensorMachineClassifierCV(time_budget=5, random_state=0).fit(X, y)
        >>> model.score(X, y) > 0.9
        True
        """,
        leave_out=(*LOSS_PARAMETERS, "solver_", "validation_loss_curve_"),
        instead={"loss": LOG_LOSS},
    )

    _estimator_class = TensorMachineClassifier
    _passed_on = (*Search._passed_on, "loss", "class_weight")
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Search._parameter_constraints,
        **{name: Classification._parameter_constraints[name] for name in ("loss", "class_weight")},
    }

    classes_ = of_best_estimator("classes_")

    def __init__(
        self,
        degrees: Sequence[int] = (1, 2, 3, 4, 6),
        ranks: Sequence[int] | str = "auto",
        alphas: Sequence[float] = (1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2),
        bases: Sequence[str | None] = ("auto",),
        relevances: Sequence[int] = (0, 2),
        roughnesses: Sequence[float] = (3.0, 20.0),
        trends: Sequence[bool] = (False, True),
        *,
        cv: Any = None,
        scoring: Any = None,
        halving: bool = True,
        time_budget: float | None = 60.0,
        subsample: int = 50_000,
        refit: bool = True,
        n_members: int = 3,
        loss: str = "log_loss",
        shared_factors: bool | str = "auto",
        jumps: bool | str = "auto",
        categorical_features: Any = "auto",
        periodic_features: Any = None,
        monotonic_cst: Any = None,
        interaction_cst: Any = None,
        solver: str = "adam",
        max_iters: Sequence[int] | None = None,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        n_restarts: int = 1,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int | str = "auto",
    ):
        super().__init__(
            degrees=degrees,
            ranks=ranks,
            alphas=alphas,
            bases=bases,
            relevances=relevances,
            roughnesses=roughnesses,
            trends=trends,
            cv=cv,
            scoring=scoring,
            halving=halving,
            time_budget=time_budget,
            subsample=subsample,
            refit=refit,
            n_members=n_members,
            shared_factors=shared_factors,
            jumps=jumps,
            categorical_features=categorical_features,
            periodic_features=periodic_features,
            monotonic_cst=monotonic_cst,
            interaction_cst=interaction_cst,
            solver=solver,
            max_iters=max_iters,
            tol=tol,
            init_scale=init_scale,
            n_restarts=n_restarts,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        self.loss = loss
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def decision_function(self, X: Any) -> np.ndarray:
        """Return log-odds or outputs of the best estimator, see `TensorMachineClassifier`."""
        return self._fitted().decision_function(X)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities with the best estimator."""
        return self._fitted().predict_proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of the probabilities with the best estimator."""
        return self._fitted().predict_log_proba(X)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the score of the best estimator by ``scoring``; if that is None, the accuracy."""
        if self.scoring is None:
            return self._fitted().score(X, y, sample_weight)
        return self._score_by_scoring(X, y, sample_weight)

    def _check_all(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, np.ndarray, np.ndarray | None]:
        if is_label_matrix(y):
            refuse_class_weight(self.class_weight)
            X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True)
            y = as_columns(y)
        else:
            X, y, weight = self._check_training_data(X, y, sample_weight)
            encode_labels(y)  # refuses other targets before anything is fitted
        return X, y, weight

    def _splitter(self, y: np.ndarray, seed: int) -> Any:
        if self.cv is not None:
            return check_cv(self.cv, y, classifier=True)
        if y.ndim == 2:
            return _without_classes(y, seed)
        sizes = np.unique(y, return_counts=True)[1]
        # The only row of one of two classes must not be held out.
        if len(y) >= ENOUGH_TO_HOLD_OUT and (sizes.min() > 1 or len(sizes) > 2):
            splitter = StratifiedShuffleSplit if sizes.min() > 1 else ShuffleSplit
            return splitter(1, test_size=HELD_OUT, random_state=seed)
        splitter = StratifiedKFold if sizes.min() >= FOLDS else KFold
        return splitter(_n_folds(y), shuffle=True, random_state=seed)

    def _mean_loss(self, outputs: np.ndarray, fold: Fold) -> float:
        """Return minus the mean log-loss, averaged over several labels.

        A class that is missing in the training rows counts as if it had the smallest positive probability.
        """
        _, y, weight = fold.scoring
        if y.ndim == 2:
            losses = LOGISTIC.pointwise(y, outputs.astype(np.float64))[0]
            return -float(np.average(losses, weights=weight)) / y.shape[1]
        classes = fold.labels
        assert classes is not None
        if outputs.shape[1] == 1:
            outputs = np.hstack([np.zeros_like(outputs), outputs])
        numbers = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        logarithms = log_softmax(outputs, axis=1)[np.arange(len(y)), numbers]
        smallest = math.log(np.finfo(np.float64).eps)
        return float(np.average(np.where(classes[numbers] == y, logarithms, smallest), weights=weight))


def _without_classes(y: np.ndarray, seed: int) -> Any:
    if len(y) >= ENOUGH_TO_HOLD_OUT:
        return ShuffleSplit(1, test_size=HELD_OUT, random_state=seed)
    return KFold(_n_folds(y), shuffle=True, random_state=seed)


def _n_folds(y: np.ndarray) -> int:
    return max(2, min(FOLDS, len(y)))
