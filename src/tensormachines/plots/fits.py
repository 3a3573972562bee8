"""Plots of fits: losses by iteration, and errors by rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import validation_curve
from sklearn.utils.validation import check_is_fitted

from .axes import GREY, PAIR, SINGLE, axes, tidy


def loss_curves(model: Any, *, label: str | None = None, color: Any = None, ax: Any = None) -> Any:
    """Draw the loss after each iteration of a fit, on the training rows and on the validation rows.

    The curves are ``loss_curve_`` and, if the model has one, ``validation_loss_curve_``. The lowest point of
    the latter is marked: early stopping keeps the model of this iteration.

    Parameters
    ----------
    model : estimator
        Fitted by `fit`, or a search.
    label : str, optional
        Prefix of each curve's label in the legend, for plots of several models in the same axes.
    color : color of matplotlib, optional
        One color for both curves; the validation curve is then dashed.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> ax = loss_curves(model)
    """
    check_is_fitted(model)
    if not hasattr(model, "loss_curve_"):
        raise ValueError(
            f"This {type(model).__name__} has no loss_curve_: it comes from partial_fit or an older version."
        )
    curves = {"training rows, with penalty": model.loss_curve_}
    if hasattr(model, "validation_loss_curve_"):
        curves["validation rows"] = model.validation_loss_curve_
    ax, of = axes(ax, (5.0, 3.4)), "" if label is None else f"{label}: "
    styles = ((SINGLE, "-"), (PAIR, "-")) if color is None else ((color, "-"), (color, "--"))
    for (name, losses), (colour, line) in zip(curves.items(), styles, strict=False):
        across = np.arange(1, len(losses) + 1)
        ax.plot(across, losses, color=colour, linestyle=line, linewidth=2, label=of + name)
    if len(curves) > 1:
        _mark_lowest(ax, model.validation_loss_curve_, styles[1][0], of)
    ax.legend(edgecolor="none")  # keep the frame: lines would cross the words
    every = np.concatenate(list(curves.values()))
    finite = every[np.isfinite(every)]
    if finite.size and finite.min() > 0 and finite.max() > 10 * finite.min():
        ax.set_yscale("log")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set(xlabel="iteration", ylabel="loss", title="Loss during the fit")
    tidy(ax, "y")
    return ax


def _mark_lowest(ax: Any, losses: np.ndarray, colour: Any, of: str) -> None:
    best = int(np.argmin(losses))
    ax.axvline(best + 1, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
    label = f"{of}lowest: iteration {best + 1}"
    ax.plot(best + 1, losses[best], "o", color=colour, markersize=6, label=label)


def training_curve(
    estimator: Any, X: Any, y: Any, *, X_test: Any = None, y_test: Any = None, ax: Any = None
) -> Any:
    """Fit a copy of the estimator and draw its error, 1 - score, after each iteration.

    A model records only its losses, see `loss_curves`, so a copy is fitted here; scoring all rows after each
    iteration takes time. Requires the callbacks of scikit-learn 1.9.

    Parameters
    ----------
    estimator : TensorMachineRegressor or TensorMachineClassifier
    X, y : training rows and targets, in memory
    X_test, y_test : optional
        Other rows to score.
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    if not hasattr(estimator, "set_callbacks"):
        raise RuntimeError(
            "training_curve needs the callbacks of scikit-learn 1.9 or later: pip install -U scikit-learn."
        )
    if getattr(estimator, "loss", None) == "quantile" and np.ndim(estimator.quantile):
        raise ValueError(
            "training_curve shows one model, but several levels of quantiles have one each: give one level."
        )
    recorded = _Errors(
        {"training rows": (X, y), **({} if X_test is None else {"other rows": (X_test, y_test)})}
    )
    clone(estimator).set_callbacks(recorded).fit(X, y)
    ax = axes(ax, (5.0, 3.4))
    for (name, errors), colour in zip(recorded.errors.items(), (SINGLE, PAIR), strict=False):
        ax.plot(np.arange(1, len(errors) + 1), errors, color=colour, linewidth=2, label=name)
    _error_axis(ax, [error for errors in recorded.errors.values() for error in errors])
    ax.set(xlabel="iteration", title="Error during the fit")
    if len(recorded.errors) > 1:
        ax.legend(frameon=False)
    return ax


def error_against_rank(
    estimator: Any, X: Any, y: Any, *, ranks: Sequence[int] = (1, 2, 4, 8, 16), cv: Any = 3, ax: Any = None
) -> Any:
    """Draw the training and the cross-validated error, 1 - score, against the rank.

    Parameters
    ----------
    estimator : TensorMachineRegressor or TensorMachineClassifier
    X, y : rows and targets, in memory
    ranks : sequence of int
    cv : int or splitter of scikit-learn
    ax : matplotlib Axes, optional

    Returns
    -------
    matplotlib Axes
    """
    scores = validation_curve(estimator, X, y, param_name="rank", param_range=list(ranks), cv=cv)
    ax = axes(ax, (5.0, 3.4))
    for name, colour, of_rank in zip(
        ("training rows", "other rows"), (SINGLE, PAIR), (1 - score for score in scores), strict=True
    ):
        middle, spread = of_rank.mean(axis=1), of_rank.std(axis=1)
        ax.plot(ranks, middle, "o-", color=colour, linewidth=2, markersize=4, label=name)
        ax.fill_between(ranks, middle - spread, middle + spread, color=colour, alpha=0.15, linewidth=0)
    _error_axis(ax, (1 - np.concatenate(scores)).mean(axis=1).tolist())
    ax.set_xscale("log", base=2)
    ax.set_xticks(list(ranks), [str(rank) for rank in ranks])
    ax.set(xlabel="rank", title="Error and rank")
    ax.legend(frameon=False)
    return ax


class _Errors:
    """A scikit-learn callback that records the error after each iteration."""

    def __init__(self, rows: dict[str, tuple[Any, Any]]):
        self.rows = rows
        self.errors: dict[str, list[float]] = {name: [] for name in rows}

    def setup(self, estimator: Any, context: Any) -> None:
        pass

    def teardown(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_begin(self, estimator: Any, context: Any) -> None:
        pass

    def on_fit_task_end(self, estimator: Any, context: Any, *, fitted_estimator: Any = None) -> bool:
        if context.task_name == "iteration":
            for name, (X, y) in self.rows.items():
                self.errors[name].append(1 - float(fitted_estimator.score(X, y)))
        return False


def _error_axis(ax: Any, errors: list[float]) -> None:
    ax.set_ylabel("error (1 - score)")
    if min(errors) > 0 and max(errors) > 10 * min(errors):
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=min(0.0, *errors))
    tidy(ax, "y")
