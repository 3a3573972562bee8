"""The scikit-learn estimators: a regressor, a classifier, and a transformer that returns the learnt features."""

from __future__ import annotations

from numbers import Integral
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.multiclass import type_of_target

from .._data.open import open_table
from .._fit.problem import Problem, Target
from .callbacks import FitCallbacks
from .classification import Classification, encode_labels
from .docstrings import documentation
from .lazy import lazy_on_dask
from .polynomial_model import DEFAULT_TOL, Attributes, PolynomialModel, all_or_nothing
from .regression import Regression
from .sklearn_private import Interval, StrOptions, check_feature_names_in, fit_context


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


class TensorMachineClassifier(Classification):
    __doc__ = documentation(
        "Classification with learnt polynomial features: a Tensor Machine fitted by logistic, or for several classes multinomial, loss.",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines import TensorMachineClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = TensorMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        1.0
        """,
        leave_out=("task",),
    )


class TensorMachineFeatures(TransformerMixin, PolynomialModel):
    __doc__ = documentation(
        "Learns the polynomial features of a Tensor Machine for a target and returns them, to be used by another model.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineFeatures
        >>> X, y = load_diabetes(return_X_y=True)
        >>> TensorMachineFeatures(degree=3, rank=2, random_state=0).fit_transform(X, y).shape
        (442, 4)
        """,
        leave_out=("class_weight", "classes_"),
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolynomialModel._parameter_constraints,
        "degree": [Interval(Integral, 2, None, closed="left")],
        "task": [StrOptions({"auto", "regression", "classification"})],
    }

    def __init__(
        self,
        degree: int = 3,
        rank: int = 10,
        alpha: float | str = "auto",
        *,
        basis: str | None = "auto",
        solver: str = "adam",
        max_iter: int | None = None,
        tol: float = DEFAULT_TOL,
        init: str = "random",
        init_scale: float | str = "auto",
        relevance: int = 0,
        n_restarts: int = 1,
        n_members: int = 1,
        max_norm: float | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: int | None = None,
        task: str = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree=degree,
            rank=rank,
            alpha=alpha,
            basis=basis,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            init=init,
            init_scale=init_scale,
            relevance=relevance,
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
        self.task = task

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the features.

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
            table = open_table(X, y, sample_weight)
            if table is None:
                X, labels, weight = self._check_training_data(X, y, sample_weight, multi_output=True)
                targets, target = self._targets(labels)
                table = self._table_in_memory(X, targets, weight)
            elif self.task == "auto":
                raise ValueError(
                    'task="auto" looks at all of y, which is not in memory here: set task="regression" or "classification".'
                )
            else:
                target = Target(self.task == "classification")
            self._fit(table, target, Attributes(_output_names), callbacks)
            self._name_target(y)
        return self

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, Target]:
        """Targets (rows, targets) in float64, and what they are."""
        labels_given = y.dtype.kind not in "f" and type_of_target(y) in ("binary", "multiclass")
        if self.task == "regression" or (self.task == "auto" and not labels_given):
            return y.astype(np.float64).reshape(len(y), -1), Target()
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError(
                f'y must have one column of classes, got {y.shape[1]}: use task="regression" for several targets.'
            )
        labels, numbers = encode_labels(y.ravel())
        return numbers[:, None].astype(np.float64), Target(True, labels)

    @lazy_on_dask
    def transform(self, X: Any) -> np.ndarray:
        """The learnt features of new rows, (n_samples, n_outputs * (degree - 1) * rank): by output, degree
        and rank.
        """
        return self._on_rows(X, lambda rows: self._machine.terms(rows, self._threads(rows.shape[0])))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names such as "degree3_term1", with the output or class in front where there are several."""
        self._require_fit()
        check_feature_names_in(self, input_features)
        layout, outputs = self._machine.layout, self._output_names
        return np.array(
            [
                f"{output}_degree{p}_term{i}" if len(outputs) > 1 else f"degree{p}_term{i}"
                for output in outputs
                for p in range(2, layout.degree + 1)
                for i in range(1, layout.rank + 1)
            ],
            dtype=object,
        )


def _output_names(problem: Problem) -> dict[str, Any]:
    if problem.labels is None:
        return {"_output_names": [f"y{k}" for k in range(problem.layout.n_outputs)]}
    return {"_output_names": [str(label) for label in problem.labels[-problem.layout.n_outputs :]]}
