"""The description of a fitted model, from which exports and reports are made.

A model turns a row into outputs in three steps:

    columns   each entry to a number: itself, or the code of its level; NaN if missing or an unknown level
    basis     these numbers to the row t, of ``width`` entries
    terms     f_k(t) = intercept_k + <coef_k, t> + sum over p = 2..degree, i = 1..rank of  term_kpi(t)
              or, if the outputs share their factors,  sum over p, i of  weight_kpi term_pi(t)

In regression, the outputs are the predictions, in the units of the target; with the link "log", predictions
are exp(min(f_k, largest_k)), and several quantiles are the sorted outputs (link "sorted"). In classification,
the outputs are the log-odds of the second class (link "logistic", one output) or go through a softmax (one
output per class); for multilabel targets, they are the log-odds of each label (link "sigmoid")."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np

from .basis import Basis
from .layout import AnovaLayout, Layout
from .machine import Machine
from .spline_basis import SplineBasis


class Column(Protocol):
    """A column of the matrix that the model reads: a number if ``levels`` is None, otherwise a category.

    Level ``levels[l]`` becomes the number l. All other levels become len(levels) if the fit ``pooled`` rare
    ones; otherwise they are missing."""

    @property
    def levels(self) -> tuple[str, ...] | None: ...
    @property
    def pooled(self) -> bool: ...
    @property
    def kind(self) -> str: ...
    @property
    def n_codes(self) -> int: ...
    @property
    def level_names(self) -> list[str] | None: ...


@dataclass(frozen=True)
class Description:
    """A fitted regressor or classifier.

    ``columns`` are the columns of a frame, with dates replaced by the numbers made from them.
    ``feature_names`` is None if the columns of the fit had no names. ``classes`` are in the order of the
    outputs; None in regression and for multilabel targets. ``squeeze``: predictions of a single output have
    one axis. ``target_link`` is the link of a regressor, or "sigmoid" for multilabel targets;
    ``largest_outputs`` (n_outputs,) is set if it is "log". ``quantiles`` (n_outputs,) are the levels of
    several quantiles, otherwise None. ``target_names`` are the names of the targets or labels; None if y had
    no names, and for classes."""

    machine: Machine
    columns: tuple[Column, ...]
    feature_names: tuple[str, ...] | None
    classes: np.ndarray | None
    squeeze: bool
    target_link: Literal["identity", "log", "sigmoid"] = "identity"
    largest_outputs: np.ndarray | None = None
    quantiles: np.ndarray | None = None
    target_names: tuple[str, ...] | None = None

    @property
    def kind(self) -> Literal["regressor", "classifier"]:
        of_numbers = self.classes is None and self.target_link != "sigmoid"
        return "regressor" if of_numbers else "classifier"

    @property
    def link(self) -> Literal["identity", "log", "logistic", "softmax", "sigmoid", "sorted"]:
        if self.quantiles is not None:
            return "sorted"
        if self.classes is None:
            return self.target_link
        return "logistic" if len(self.classes) == 2 else "softmax"

    @property
    def n_targets(self) -> int:
        """Return the number of columns of y."""
        single = self.classes is not None or self.quantiles is not None
        return 1 if single else self.layout.n_outputs

    @cached_property
    def names(self) -> list[str]:
        """Return the names of the columns; x0, x1, ... as in scikit-learn if they have none."""
        return list(self.feature_names or (f"x{j}" for j in range(len(self.columns))))

    @property
    def output_names(self) -> list[str]:
        """Return the names of the targets or labels; 0, 1, ... if they have none."""
        return list(self.target_names or map(str, range(self.layout.n_outputs)))

    @property
    def basis_name(self) -> str | None:
        return basis_name(self.machine.basis)

    @property
    def layout(self) -> Layout:
        return self.machine.layout

    @property
    def terms(self) -> Literal["products", "anova"]:
        return "anova" if isinstance(self.layout, AnovaLayout) else "products"

    @property
    def intercept(self) -> np.ndarray:
        """(n_outputs,)"""
        return self.layout.bias(self.machine.params)

    @property
    def coef(self) -> np.ndarray:
        """(n_outputs, width)"""
        return self.layout.linear(self.machine.params).T

    @cached_property
    def factors(self) -> dict[int, np.ndarray]:
        """Return factors by degree p: (n_sets, rank, p, width) for products, (n_sets, rank, width) for anova.

        There is a set for each output, or one shared set."""
        return self.layout.factors_by_degree(self.machine.params)

    @cached_property
    def term_weights(self) -> dict[int, np.ndarray]:
        """Return weights by degree p, (n_outputs, rank), if the outputs share factors; otherwise empty."""
        if not self.layout.shared:
            return {}
        weights = self.layout.weights(self.machine.params)
        return {p: weights[:, p - 2] for p, _ in self.layout.degrees()}


def basis_name(basis: Basis) -> str | None:
    """Return the value of the parameter ``basis`` that makes this basis."""
    if isinstance(basis, SplineBasis):
        return "spline"
    if basis.shift is None:
        return None
    if basis.unit_rows:
        return "sphere" if basis.constant else "unit"
    return "standard" if basis.clip == np.inf else "scaled"


def describe(model: Any) -> Description:
    """Describe a fitted Tensor Machine, search, greedy or factorization machine that predicts."""
    if not (hasattr(model, "_description") and hasattr(model, "predict")):
        raise TypeError(
            "model must be a TensorMachineRegressor, TensorMachineClassifier, a search of these (...CV), or "
            "a GreedyTensorMachine... or FactorizationMachine... of tensormachines.peers, "
            f"got {type(model).__name__}."
        )
    described: Description = model._description()
    return described
