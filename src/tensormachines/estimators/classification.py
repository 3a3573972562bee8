"""Classification with a polynomial model."""

from __future__ import annotations

from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from .._data.open import is_in_memory, open_rows
from .._data.training import RowsInMemory, TrainingRows
from .._fit.pose import Target
from .._fit.problem import Problem
from .._fit.settings import DEFAULT_TOL
from .._model.compiled import predictions
from .._model.losses import LOGISTIC
from .._model.spline_column import USUAL_SHAPE
from .docstrings import LOG_LOSS, LOSS_PARAMETERS, documentation
from .fit_scope import fit_scope
from .held_out_rows import GivenRows, check_given
from .label_matrix import (
    is_label_matrix,
    like_columns,
    n_labels_elsewhere,
    refuse_class_weight,
    refuse_label_matrix,
)
from .lazy import lazy_on_dask
from .own_names import own_names
from .polynomial_model import PolynomialModel
from .sklearn_private import StrOptions, fit_context
from .sum_over_rows import require_y
from .summed_scores import accuracy
from .validation import all_finite, as_columns, require_some_weight


class Classification(ClassifierMixin, PolynomialModel):
    """Classification, whatever the terms of the model."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolynomialModel._parameter_constraints,
        "loss": [StrOptions({"log_loss"})],
        "class_weight": [StrOptions({"balanced"}), dict, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def __init__(
        self,
        degree: int | str = "auto",
        rank: int | str = "auto",
        alpha: float | str = "auto",
        *,
        loss: str = "log_loss",
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
        class_weight: Any = None,
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
        self.class_weight = class_weight

    def _open(
        self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None = None
    ) -> tuple[TrainingRows, Target]:
        training = open_rows(X, y, sample_weight)
        if training is not None and (n_labels := n_labels_elsewhere(X, y)) > 1:
            refuse_class_weight(self.class_weight)
            return training, Target(labels=np.arange(n_labels), loss=LOGISTIC)
        if training is not None:
            of_labels = None if self.class_weight is None else self._class_factors
            return training, Target(True, class_factors=of_labels)
        if is_label_matrix(y):
            return self._open_labels(X, y, sample_weight, given)
        X, y, weight = self._check_training_data(X, y, sample_weight)
        labels, numbers = encode_labels(y)
        factors = self._factors_of_rows(weight, labels, numbers)
        held_out = check_given(self, given, X, partial(as_numbers, labels, factors))
        targets, weight = by_class(numbers, factors, weight)
        return self._in_memory(X, targets, weight, held_out), Target(True, labels)

    def _open_labels(
        self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None
    ) -> tuple[TrainingRows, Target]:
        """Do the same as `_open` for multilabel targets."""
        refuse_class_weight(self.class_weight)
        X, y, weight = self._check_training_data(X, y, sample_weight, multi_output=True)
        targets = as_columns(y)
        held_out = check_given(self, given, X, partial(like_columns, targets), multi_output=True)
        training = self._in_memory(X, targets, weight, held_out, flat=False)
        return training, Target(labels=np.arange(targets.shape[1]), loss=LOGISTIC)

    def _fitted_attributes(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        learnt = {"classes_": problem.labels, "_target_link": _target_link(problem)}
        return super()._fitted_attributes(problem, params) | learnt

    def _warm_params(self, problem: Problem) -> np.ndarray:
        if _target_link(problem) != self._target_link:
            raise ValueError(
                "warm_start cannot go from one label for each row to several, or back: fit a clone, or set "
                "warm_start=False."
            )
        return super()._warm_params(problem)

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from one more block of rows, which the caller need not keep.

        The first block determines the basis, so it should resemble later blocks; a few thousand rows per
        block work well. The objective is the mean over the last 30 blocks; each past block is represented by
        a quadratic model of its loss. After `fit`, or in a loaded model, every row counts alike: a block of a
        tenth of all rows so far moves the parameters a tenth of the way to those that are best for this
        block. The solver settings (solver, max_iter, tol, n_restarts) are ignored.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like of shape (n_classes,), optional
            All labels that will ever occur. Required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
        """
        with fit_scope(self):
            first = not hasattr(self, "_machine")
            refuse_label_matrix(y)
            if not first and self._target_link == "sigmoid":
                raise ValueError(
                    "partial_fit takes one label for each row, and this model was fitted to several: fit a "
                    "clone."
                )
            X, y, weight = self._check_training_data(X, y, sample_weight, reset=first)
            labels = labels_of_stream(classes, None if first else self.classes_)
            numbers = numbers_of(labels, y)
            if self.class_weight == "balanced":
                raise ValueError(
                    'class_weight="balanced" needs all rows at once: give partial_fit a dict of weights.'
                )
            targets, weight = by_class(numbers, self._factors_of_rows(weight, labels, numbers), weight)
            rows = RowsInMemory(X, targets, weight, columns=self._columns)
            self._learn_block(rows, Target(True, labels))
        return self

    def _factors_of_rows(
        self, weight: np.ndarray | None, labels: np.ndarray, numbers: np.ndarray
    ) -> np.ndarray | None:
        """Return the class weight of each of some rows; None if there are no class weights."""
        if self.class_weight is None:
            return None
        return self._class_factors(labels, np.bincount(numbers, weights=weight, minlength=len(labels)))

    def _class_factors(self, labels: np.ndarray, totals: np.ndarray) -> np.ndarray:
        """Return class weights, given the total weight of each class; "balanced" counts rows by weight."""
        if self.class_weight == "balanced":
            factors = totals.sum() / (len(labels) * np.where(totals > 0, totals, 1))
        else:
            factors = compute_class_weight(self.class_weight, classes=labels, y=labels)
        require_some_weight(factors * totals, "class_weight")
        return factors

    @lazy_on_dask
    def decision_function(self, X: Any) -> np.ndarray:
        """Return log-odds of the second class, (n_samples,).

        With more than two classes, return the outputs of all classes, (n_samples, n_classes). With multilabel
        targets, return the log-odds of each label, (n_samples, n_labels).
        """
        outputs = self._outputs(X)
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @lazy_on_dask
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict probabilities, (n_samples, n_classes) in the order of ``classes_``.

        With multilabel targets, predict the probability of each label, (n_samples, n_labels).
        """
        return self._predictions(self._outputs(X))

    def _predictions(self, outputs: np.ndarray) -> np.ndarray:
        """Return the probabilities for outputs (rows, n_outputs)."""
        of_classes = "softmax" if outputs.shape[1] > 1 else "logistic"
        link = "sigmoid" if self._target_link == "sigmoid" else of_classes
        return predictions(_without_overflow(outputs), link)

    @lazy_on_dask
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Predict logarithms of the probabilities, (n_samples, n_classes)."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @lazy_on_dask
    def predict(self, X: Any) -> np.ndarray:
        """Predict labels, (n_samples,), or a matrix of 0 and 1 for multilabel targets,
        (n_samples, n_labels)."""
        return self._labels(self._outputs(X))

    def _labels(self, outputs: np.ndarray) -> np.ndarray:
        """Return the labels for outputs (rows, n_outputs)."""
        if self._target_link == "sigmoid":
            return (outputs > 0).astype(np.int64)
        two, outputs = outputs.shape[1] == 1, _without_overflow(outputs)
        return self.classes_[(outputs[:, 0] > 0).astype(np.intp) if two else outputs.argmax(axis=1)]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of rows with a correct label, or with all labels correct.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Or a Dask collection, or a source of blocks, which provides its own targets and weights.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : array-like of shape (n_samples,), optional
        """
        if not is_in_memory(X):
            return accuracy(self, X, y, sample_weight)
        require_y(y)
        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))


def _target_link(problem: Problem) -> str:
    return "sigmoid" if problem.recipe.classes is None else "identity"


def _without_overflow(outputs: np.ndarray) -> np.ndarray:
    """Return the outputs, with large numbers in place of infinite ones, and 0 in place of NaN."""
    if all_finite(outputs):
        return outputs
    most = np.finfo(outputs.dtype).max / 4
    return np.nan_to_num(outputs, nan=0.0, posinf=most, neginf=-most)


def encode_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    check_classification_targets(y)
    try:
        labels, numbers = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y.tolist()})
        raise ValueError(f"y must have labels of one sortable type, got {', '.join(kinds)}.") from None
    if len(labels) < 2:
        raise ValueError(f"y must have at least two classes, got one class: {labels.tolist()[0]!r}.")
    return labels, numbers


def numbers_of(labels: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the index of each label of y among the known labels."""
    known = {label: number for number, label in enumerate(labels.tolist())}
    found, inverse = np.unique(y, return_inverse=True)
    unknown = [label for label in found.tolist() if label not in known]
    if unknown:
        raise ValueError(f"y has the label {unknown[0]!r}, which is not among the classes {labels}.")
    return np.array([known[label] for label in found.tolist()], dtype=np.intp)[inverse]


def labels_of_stream(classes: Any, before: np.ndarray | None) -> np.ndarray:
    """Return the labels of all calls of `partial_fit`, given its ``classes``, and the labels of the calls
    ``before``, if any."""
    if classes is None:
        if before is None:
            raise ValueError(
                "partial_fit needs all classes in its first call: partial_fit(X, y, classes=...)."
            )
        return before
    labels = np.unique(classes)
    if before is not None and not np.array_equal(labels, before):
        raise ValueError(f"classes must be the same in every call: they were {before}, now {labels}.")
    if len(labels) < 2:
        raise ValueError(f"classes must name at least two classes, got {labels}.")
    return labels


def by_class(
    numbers: np.ndarray, factors: np.ndarray | None, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the targets (class indices), and the sample weights times the class weights."""
    targets = numbers[:, None].astype(np.float64)
    if factors is None:
        return targets, weight
    return targets, factors[numbers] if weight is None else weight * factors[numbers]


def as_numbers(
    labels: np.ndarray, factors: np.ndarray | None, y: np.ndarray, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the targets and weights of `by_class`, given labels y."""
    return by_class(numbers_of(labels, y), factors, weight)


@own_names
class TensorMachineClassifier(Classification):
    __doc__ = documentation(
        "Classification by a Tensor Machine with learned polynomial features (logistic or multinomial loss).",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines import TensorMachineClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = TensorMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        1.0
        """,
        leave_out=("task", *LOSS_PARAMETERS),
        instead={"loss": LOG_LOSS},
    )
