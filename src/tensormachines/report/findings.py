"""Everything that a report says of a model, found out before a word of it is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_consistent_length, column_or_1d

from .._model.description import describe
from ..inspection.decomposition import sets_of_columns
from ..inspection.displacements import moves_about
from ..inspection.forms import check_rows, column_names, fitted_machine
from ..inspection.variance import column_shares, set_shares
from .baselines import baseline_predictions
from .browser_model import example_rows, live_inputs, live_model, plain, typical_row
from .diagnostics import calibration, residuals
from .measures import Measure, class_codes, classification_errors, regression_errors

FEWEST_ROWS = 10
MOST_ROWS = 20_000  # that errors are measured on
MOST_ROWS_FOR_SHARES = 5_000
MOST_INPUTS = 40
MOST_IN_PAIRS = 16  # columns
MOST_PAIRS = 20
SMALLEST_SHARE = 0.0005  # of a pair that is shown: less would be rounded to 0
MODEL = "this model"


@dataclass(frozen=True)
class View:
    """One output: the shares of the output's variance of columns, by number, and of pairs of them; the
    largest come first.
    """

    label: str
    columns: list[tuple[int, float]]
    pairs: list[tuple[tuple[int, int], float]]


@dataclass(frozen=True)
class Errors:
    """Of one target: the measures of this model and of others on the same rows, and a closer look at the
    predictions of this one.
    """

    label: str
    measures: dict[str, list[Measure]]
    check: dict[str, Any]


@dataclass(frozen=True)
class Facts:
    """See `html_report` for its parameters.

    ``y`` and the predictions are those of ``rows``, a sample of the ``n_rows`` that were given.
    """

    model: Any
    target: str | None
    rows: Any
    places: np.ndarray  # of the rows among those that were given
    n_rows: int
    y: np.ndarray
    predicted: np.ndarray  # or probabilities
    train: tuple[Any, np.ndarray] | None
    examples: np.ndarray  # by their places in rows

    @property
    def classifier(self) -> bool:
        return bool(is_classifier(self.model))

    @property
    def classes(self) -> list[str]:
        return [str(label) for label in self.model.classes_.tolist()] if self.classifier else []

    @cached_property
    def names(self) -> list[str]:
        return column_names(self.model)

    @cached_property
    def some_rows(self) -> Any:
        """Enough of the rows to tell what matters."""
        return self.rows[
            np.linspace(0, len(self.y) - 1, min(len(self.y), MOST_ROWS_FOR_SHARES)).astype(np.intp)
        ]

    @cached_property
    def output_labels(self) -> list[str]:
        count = fitted_machine(self.model).layout.n_outputs
        if self.classifier:
            return self.classes if count > 1 else self.classes[1:]
        named = getattr(self.model, "target_name_", None)
        if isinstance(named, list):
            return named
        return (
            [self.target or "prediction"]
            if count == 1
            else [f"{self.target or 'output'} {k}" for k in range(count)]
        )

    @cached_property
    def views(self) -> list[View]:
        outputs: list[Any] = [None]
        if len(self.output_labels) > 1:
            outputs = list(self.model.classes_) if self.classifier else list(range(len(self.output_labels)))
        return [self._view(label, output) for label, output in zip(self.output_labels, outputs, strict=True)]

    def _view(self, label: str, output: Any) -> View:
        rows = self.some_rows
        moves = moves_about(self.model, output, rows)
        outputs = moves.map(rows, lambda of_rows: moves.outputs(moves.reference + of_rows.sum(axis=1)))
        if not np.ptp(outputs) > 0:
            return View(label, [(j, 0.0) for j in range(len(self.names))], [])
        shares = column_shares(moves, rows)
        order = np.argsort(-np.abs(shares), kind="stable")
        top = [int(j) for j in order[:MOST_IN_PAIRS]]
        sets = sets_of_columns(moves, 2, top, max_parts=MOST_IN_PAIRS**2)
        pairs = [
            (columns, share)
            for columns, share in zip(sets, set_shares(moves, rows, sets).tolist(), strict=False)
            if len(columns) == 2
        ]
        pairs = sorted(
            (pair for pair in pairs if abs(pair[1]) >= SMALLEST_SHARE), key=lambda pair: -abs(pair[1])
        )
        return View(
            label,
            [(int(j), float(shares[j])) for j in order],
            [((a, b), share) for (a, b), share in pairs[:MOST_PAIRS]],
        )

    @cached_property
    def errors(self) -> list[Errors]:
        others = baseline_predictions(self.model, self.rows, self.y, self.train)
        predictions = {MODEL: self.predicted, **others}
        if self.classifier:
            measures = classification_errors(self.y, self.model.classes_, predictions)
            return [
                Errors(
                    self.target or "class",
                    measures,
                    calibration(class_codes(self.y, self.model.classes_), self.predicted),
                )
            ]
        if self.y.ndim == 1:
            return [
                Errors(
                    self.output_labels[0],
                    regression_errors(self.y, predictions),
                    residuals(self.y, self.predicted),
                )
            ]
        found = []
        for k, label in enumerate(self.output_labels):
            of_target = {name: predicted[:, k] for name, predicted in predictions.items()}
            found.append(
                Errors(
                    label,
                    regression_errors(self.y[:, k], of_target),
                    residuals(self.y[:, k], self.predicted[:, k]),
                )
            )
        return found

    @cached_property
    def page(self) -> dict[str, Any]:
        """What the page's own program needs: plain values."""
        shown = self._shown_columns()
        return {
            "model": live_model(self.model, self.some_rows),
            "inputs": live_inputs(self.model, self.rows, shown),
            "typical": typical_row(self.model, self.rows),
            "examples": example_rows(self.rows, self.examples),
            "example_numbers": (self.places[self.examples] + 1).tolist(),
            "actual": [self._actual(self.y[i]) for i in self.examples],
            "target": self.target,
            "classes": self.classes,
            "outputs": self.output_labels,
            "views": [
                {
                    "columns": view.columns[:MOST_INPUTS],
                    "pairs": [[*columns, share] for columns, share in view.pairs],
                }
                for view in self.views
            ],
            "checks": [errors.check for errors in self.errors],
        }

    def _shown_columns(self) -> list[int]:
        """Those that matter most to any output."""
        largest: dict[int, float] = {}
        for view in self.views:
            for column, share in view.columns:
                largest[column] = max(largest.get(column, 0.0), abs(share))
        ranked = sorted((j for j in largest if j < len(self.names)), key=lambda j: -largest[j])
        return ranked[:MOST_INPUTS]

    def _actual(self, of_row: Any) -> Any:
        if self.classifier:
            return str(of_row)
        return [plain(float(value)) for value in np.atleast_1d(of_row)]


def find_facts(
    model: Any,
    X: Any,
    y: Any,
    X_train: Any,
    y_train: Any,
    target: str | None,
    n_examples: int,
    random_state: int | None,
) -> Facts:
    fitted_machine(model)
    describe(model)  # an error for what is a machine, but predicts nothing
    if (X_train is None) != (y_train is None):
        raise ValueError("X_train and y_train must be given together.")
    rows, y = check_rows(model, X), _target(model, y, "y")
    check_consistent_length(rows, y)
    if rows.shape[0] < FEWEST_ROWS:
        raise ValueError(f"A report needs at least {FEWEST_ROWS} rows, got {rows.shape[0]}.")
    train = None
    if X_train is not None:
        train = check_rows(model, X_train), _target(model, y_train, "y_train")
        check_consistent_length(*train)
    random = np.random.RandomState(random_state)
    chosen = np.sort(random.permutation(rows.shape[0])[:MOST_ROWS])
    examples = np.sort(random.permutation(len(chosen))[:n_examples])
    predicted = model.predict_proba(X) if is_classifier(model) else model.predict(X)
    n_outputs = model._machine.layout.n_outputs
    if not is_classifier(model) and n_outputs == 1:
        predicted = predicted.reshape(len(predicted))
    target = getattr(model, "target_name_", None) if target is None else target
    if isinstance(target, list):
        target = ", ".join(target)
    return Facts(
        model, target, rows[chosen], chosen, rows.shape[0], y[chosen], predicted[chosen], train, examples
    )


def _target(model: Any, y: Any, name: str) -> np.ndarray:
    if is_classifier(model):
        labels = column_or_1d(y)
        class_codes(labels, model.classes_)
        return labels
    numbers = np.asarray(y, dtype=np.float64)
    n_outputs = model._machine.layout.n_outputs
    if n_outputs == 1:
        numbers = column_or_1d(numbers)
    elif numbers.ndim != 2 or numbers.shape[1] != n_outputs:
        raise ValueError(
            f"{name} must have {n_outputs} columns, one an output of the model, got an array of shape {numbers.shape}."
        )
    if not np.isfinite(numbers).all():
        raise ValueError(f"{name} must hold finite numbers: leave out the rows where it is missing.")
    return numbers
