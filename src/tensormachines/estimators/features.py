"""A transformer that returns the learned features of a Tensor Machine."""

from __future__ import annotations

from functools import partial
from numbers import Integral
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from .._data.open import open_rows
from .._data.training import TrainingRows
from .._fit.pose import Target
from .._fit.problem import Problem
from .._fit.settings import DEFAULT_TOL
from .._model.losses import SQUARED
from .._model.machine import Machine
from .._model.spline_column import USUAL_SHAPE
from .._model.total_effects import shares
from .classification import as_numbers, encode_labels
from .docstrings import LOSS, documentation
from .held_out_rows import GivenRows, check_given, like
from .lazy import lazy_on_dask
from .own_names import own_names
from .polynomial_model import PolynomialModel
from .sklearn_private import Interval, StrOptions, check_feature_names_in

MOST_NAMED = 3  # maximum number of columns in the name of a term
SMALLEST_NAMED = 0.05  # smallest share of a column in a name, and of all others together for "more"


@own_names
class TensorMachineFeatures(TransformerMixin, PolynomialModel):
    __doc__ = documentation(
        "Transformer that learns the polynomial features of a Tensor Machine for a target.",
        """
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineFeatures
        >>> X, y = load_diabetes(return_X_y=True)
        >>> TensorMachineFeatures(degree=3, rank=2, random_state=0).fit_transform(X, y).shape
        (442, 4)
        """,
        leave_out=("class_weight", "classes_", *LOSS),
        instead={"degree": "degree : int, default=3\n    Largest degree of a feature, at least 2."},
    )

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PolynomialModel._parameter_constraints,
        "degree": [Interval(Integral, 2, None, closed="left")],
        "task": [StrOptions({"auto", "regression", "classification"})],
    }

    def __init__(
        self,
        degree: int = 3,
        rank: int | str = "auto",
        alpha: float | str = "auto",
        *,
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
        task: str = "auto",
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
        self.task = task

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _open(
        self, X: Any, y: Any, sample_weight: Any, given: GivenRows | None = None
    ) -> tuple[TrainingRows, Target]:
        training = open_rows(X, y, sample_weight)
        if training is None:
            X, labels, weight = self._check_training_data(X, y, sample_weight, multi_output=True)
            targets, target = self._targets(labels)
            known = target.labels
            convert = partial(like, targets, SQUARED) if known is None else partial(as_numbers, known, None)
            held_out = check_given(self, given, X, convert, multi_output=True)
            return self._in_memory(X, targets, weight, held_out), target
        if self.task == "auto":
            raise ValueError(
                'task="auto" looks at all of y, which is not in memory here: '
                'set task="regression" or "classification".'
            )
        return training, Target(self.task == "classification")

    def _fitted_attributes(self, problem: Problem, params: np.ndarray) -> dict[str, Any]:
        n_outputs = problem.layout.n_outputs
        if problem.labels is None:
            names = [f"y{k}" for k in range(n_outputs)]
        else:
            names = [str(label) for label in problem.labels[-n_outputs:]]
        return super()._fitted_attributes(problem, params) | {"_output_names": names}

    def _targets(self, y: np.ndarray) -> tuple[np.ndarray, Target]:
        """Return the targets (rows, targets) in float64, and what they hold."""
        labels_given = y.dtype.kind not in "f" and type_of_target(y) in ("binary", "multiclass")
        if self.task == "regression" or (self.task == "auto" and not labels_given):
            return y.astype(np.float64).reshape(len(y), -1), Target()
        if y.ndim > 1 and y.shape[1] > 1:
            raise ValueError(
                f"y must have one column of classes, got {y.shape[1]}: "
                'use task="regression" for several targets.'
            )
        labels, numbers = encode_labels(y.ravel())
        return numbers[:, None].astype(np.float64), Target(True, labels)

    @lazy_on_dask
    def transform(self, X: Any) -> np.ndarray:
        """Return the learned features of new rows, ordered by output, degree and rank.

        The shape is (n_samples, n_outputs * (degree - 1) * rank).
        """
        return self._on_rows(X, lambda rows: self._machine.terms(rows, self._threads(rows.shape[0])))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return names such as "degree2_term1(area & floor)", preceded by the output or class if there are
        several.

        In brackets are up to three columns of X with the largest factors in the term; "more" stands for
        others that are not negligible."""
        check_is_fitted(self)
        columns = list(map(str, check_feature_names_in(self, input_features)))
        layout = self._machine.layout
        several = layout.n_sets > 1
        names = []
        for number, of_columns in enumerate(self._of_inputs(column_shares_of_terms(self._machine))):
            of_set, place = divmod(number, layout.n_terms)
            p, i = divmod(place, layout.rank)
            prefix = f"{self._output_names[of_set]}_" if several else ""
            names.append(f"{prefix}degree{p + 2}_term{i + 1}({_largest(columns, of_columns)})")
        return np.array(names, dtype=object)


def column_shares_of_terms(machine: Machine) -> np.ndarray:
    """Return each column's share of the squared norms of the factors of each term, ordered by set, degree and
    rank: (n_sets * n_terms, n_columns).
    """
    layout, basis = machine.layout, machine.basis
    of_column = np.equal.outer(basis.groups, np.arange(basis.n_columns)).astype(np.float64)
    each = []
    for factors in layout.factors_by_degree(machine.params.astype(np.float64)).values():
        squares = factors**2 @ of_column  # (n_sets, rank, p, n_columns)
        each.append(shares(shares(squares).sum(axis=2)))
    return np.concatenate(each, axis=1).reshape(layout.n_sets * layout.n_terms, basis.n_columns)


def _largest(columns: list[str], strength: np.ndarray) -> str:
    order = np.argsort(-strength, kind="stable")
    named = [columns[j] for j in order[:MOST_NAMED] if strength[j] >= SMALLEST_NAMED]
    more = strength[order[len(named) :]].sum() >= SMALLEST_NAMED
    return " & ".join([*named, *["more"] * bool(more)]) or "nothing"
