"""One fold of a cross-validation: rows to train on, rows to score on, and models fitted to them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from inspect import signature
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import check_scoring

from .._data.frame import Frame, concatenate
from .._data.raw_columns import is_a
from .._data.summary import ValidationRows
from .._fit.fit import find_relevance, fit_together
from .._fit.problem import Problem
from .._fit.settings import Deadline
from .._fit.solver_table import choice
from .._fit.solvers.protocol import Outcome
from .polynomial_model import PolynomialModel
from .quantile_levels import levels_of, of_each_level, side_by_side_attributes
from .sklearn_private import safe_indexing

Rows = tuple[Any, np.ndarray, np.ndarray | None]  # X, y, weight


class Fold:
    """Rows to train on and rows to score on, given as row indices of X.

    ``kinds`` are the kinds of the columns if X is raw, and ``given`` is X before its columns were read, which
    the scorer of a user sees. For each basis, the problem is set up once, from all
    training rows and nothing else; fits to fewer rows and models of other shapes share it.
    """

    def __init__(
        self,
        X: Any,
        y: np.ndarray,
        weight: np.ndarray | None,
        rows: tuple[np.ndarray, np.ndarray],
        seed: int,
        kinds: tuple[str, ...] | None = None,
        given: Any = None,
    ):
        self.training, self.scoring = (select(X, y, weight, part) for part in rows)
        self.given = self.scoring[0] if given is None else select(given, y, None, rows[1])[0]
        self.n_training_rows = len(rows[0])
        self.seed = seed
        self.kinds = kinds
        self._posed: dict[tuple[Any, ...], tuple[PolynomialModel, Problem]] = {}
        self.labels: np.ndarray | None = None  # the classes of the training rows, once they are known
        self._encoded: dict[int, Any] = {}  # rows to score on, by the estimator that knows the columns

    def fit(
        self, estimators: Sequence[PolynomialModel], share: float, deadline: Deadline
    ) -> list[PolynomialModel | None]:
        """Fit estimators that differ only in alpha to a share of the rows, in shared passes.

        A failed fit gives None. With several quantiles, each level is fitted separately.
        """
        of_levels = list(zip(*map(of_each_level, estimators), strict=True))
        fitted = [
            self._fit_together(alike, share, deadline.share(len(of_levels) - k))
            for k, alike in enumerate(of_levels)
        ]
        return [self._joined(*each) for each in zip(estimators, zip(*fitted, strict=True), strict=True)]

    def _joined(
        self, estimator: PolynomialModel, models: Sequence[PolynomialModel | None]
    ) -> PolynomialModel | None:
        """Return a fitted estimator, given the models of its levels."""
        fitted = [model for model in models if model is not None]
        if len(fitted) < len(models):
            return None
        if levels_of(estimator) is None:
            return fitted[0]
        joined = copy(fitted[0]).set_params(**estimator.get_params(deep=False))
        vars(joined).update(side_by_side_attributes(fitted))
        return joined

    def _fit_together(
        self, estimators: Sequence[PolynomialModel], share: float, deadline: Deadline
    ) -> list[PolynomialModel | None]:
        first = estimators[0]
        checked, problem = self._pose(first, deadline)
        problem = problem.with_shape(int(first.degree), int(first.rank)).with_share(share, self.seed)
        settings = [estimator._settings(deadline) for estimator in estimators]
        solutions = fit_together(problem, settings, np.random.RandomState(self.seed))
        fitted: list[PolynomialModel | None] = []
        for estimator, solution in zip(estimators, solutions, strict=True):
            if solution.outcome is Outcome.NOT_FINITE:
                fitted.append(None)
                continue
            model = copy(checked).set_params(**estimator.get_params(deep=False))
            learnt = {"n_iter_": solution.n_iter, "objective_": solution.value}
            for name, value in {**model._fitted_attributes(problem, solution.params), **learnt}.items():
                setattr(model, name, value)
            fitted.append(model)
        return fitted

    def fit_alone(self, estimator: PolynomialModel, deadline: Deadline) -> PolynomialModel | None:
        """Fit an estimator to the training rows with its own `fit`; return None if this fails."""
        model = copy(estimator)
        model._kinds = self.kinds
        try:
            model._fit(*self.training, deadline)
        except ValueError:  # an objective that is not finite
            return None
        finally:
            del model._kinds
        self.labels = getattr(model, "classes_", None)
        return model

    def outputs(self, fitted: PolynomialModel) -> np.ndarray:
        """Return the outputs of a model from `fit` for the rows to score on; these rows are encoded once."""
        key = id(fitted._columns)
        if key not in self._encoded:
            self._encoded[key] = fitted._check_rows(self.scoring[0])
        return fitted._bounded(fitted._outputs_in_memory(self._encoded[key]))

    def _pose(self, estimator: PolynomialModel, deadline: Deadline) -> tuple[PolynomialModel, Problem]:
        """Return an estimator that knows the columns, and the problem."""
        of_columns = estimator.basis, float(estimator.roughness), int(estimator.relevance), estimator.trend
        key = *of_columns, str(getattr(estimator, "quantile", None))
        if key not in self._posed:
            checked = copy(estimator)
            checked._kinds = self.kinds
            training, target = checked._open(*self.training)
            del checked._kinds
            random_state = np.random.RandomState(self.seed)
            chosen = choice(estimator.solver, None)
            problem = checked._pose(training, target, ValidationRows(), random_state, chosen)
            if estimator.trend is True and problem.can_have_trend:
                problem = problem.without_trend(problem.fit_trend())
            problem = find_relevance(problem, estimator._settings(deadline), random_state)
            self._posed[key] = checked, problem
            self.labels = problem.labels
        return self._posed[key]


def usable(
    splits: Iterable[tuple[np.ndarray, np.ndarray]], y: np.ndarray, weight: np.ndarray | None, classes: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the indices of the rows to train on and to score on for each usable split."""
    numbers = np.arange(len(y))
    found = [(numbers[training], numbers[scoring]) for training, scoring in splits]
    if weight is not None:
        found = [split for split in found if all(weight[part].any() for part in split)]
    if classes:
        found = [split for split in found if len(np.unique(y[split[0]])) > 1]
    if not found:
        raise ValueError(
            "cv has no usable split: each needs rows of positive weight both to train on (of at least "
            "two classes in classification) and to score on."
        )
    return found


def select(X: Any, y: np.ndarray, weight: np.ndarray | None, numbers: np.ndarray) -> Rows:
    """Return the rows with these indices."""
    rows = X[numbers] if isinstance(X, Frame) else safe_indexing(X, numbers)
    return rows, y[numbers], None if weight is None else weight[numbers]


def together(rows: Sequence[Rows]) -> Rows:
    """Return rows of several folds, one after the other."""
    Xs, ys, weights = zip(*rows, strict=True)
    joined = concatenate(Xs) if isinstance(Xs[0], Frame) else _stacked(Xs)
    return joined, np.concatenate(ys), None if weights[0] is None else np.concatenate(weights)


def _stacked(Xs: Sequence[Any]) -> Any:
    if sparse.issparse(Xs[0]):
        return sparse.vstack(Xs, format="csr")
    if is_a("pandas", Xs[0]):
        import pandas

        return pandas.concat(Xs)
    if is_a("polars", Xs[0]):
        import polars

        return polars.concat(Xs)
    return np.concatenate(Xs)


Score = Callable[[PolynomialModel, Fold], float]


def with_scorer(scoring: Any, estimator: PolynomialModel) -> Score:
    """Return a function that scores a fitted model on a fold."""

    def score(fitted: PolynomialModel, fold: Fold) -> float:
        _, y, weight = fold.scoring
        return scored(scorer, fitted, fold.given, y, weight)

    scorer = check_scoring(estimator, scoring)
    return score


def scored(scorer: Any, fitted: PolynomialModel, X: Any, y: Any, weight: Any) -> float:
    """Return the score of a fitted model, with weights if the scorer accepts them."""
    weighted = weight is not None and "sample_weight" in signature(scorer).parameters
    return float(scorer(fitted, X, y, **({"sample_weight": weight} if weighted else {})))
