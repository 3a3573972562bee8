"""Findings: everything that a report says about a model, computed before a word of the page is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from typing import Any

import numpy as np

from .._model.description import Description, describe
from .._model.linear_forms import linear_forms
from .._model.losses import Loss
from ..inspection import Formula, polynomial
from ..inspection.decomposition import refuse_unit_rows, sets_of_columns
from ..inspection.displacements import ColumnForms, column_forms_about, forms_about_mean, mean_row
from ..inspection.forms import fitted_machine, output_keys
from ..inspection.functions import FIDELITY, formula_on
from ..inspection.importances import column_importances, set_importances
from ..inspection.members import check_members
from .bands import with_bands
from .baselines import CONSTANT, baseline_predictions
from .browser_model import browser_inputs, browser_model, dates_of, example_rows, typical_row
from .diagnostics import calibration, residuals
from .measures import (
    ABSENT_OR_PRESENT,
    Measure,
    class_codes,
    classification_errors,
    interval_of,
    regression_errors,
)
from .report_rows import MOST_ROWS, ReportRows, predictions_of, rows_of_report, training_rows
from .summed_errors import MODEL as OURS
from .summed_errors import losses_of, own_measures, own_values

MOST_ROWS_FOR_SHARES = 5_000
MOST_INPUTS = 40
MOST_IN_PAIRS = 16  # columns
MOST_PAIRS = 20
SMALLEST_SHARE = 0.0005  # of a pair that is shown: smaller shares would be rounded to 0
MOST_MONOMIALS = 5_000  # from which the largest terms are chosen
MOST_TERMS = 12  # that are shown
COLUMNS_OF_TERMS: dict[str | None, str] = {
    None: "columns in their own units",
    "standard": "standardised columns",
    "scaled": "columns divided by the typical size of their entries",
}
MOST_FORMULAS, MOST_FUNCTIONS = 6, 12  # outputs whose functions are shown, and functions of an output
MODEL = "this model"
AVERAGE, AVERAGE_OF_ROWS = "average", "average of these rows"  # where contributions start


@dataclass(frozen=True)
class Comparison:
    """The ``ratio`` of this model's error ``name`` to that of the best baseline, and its interval."""

    name: str
    baseline: str
    ratio: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class TargetErrors:
    """The measures of this model and of the baselines for one target, and diagnostics of this model."""

    label: str
    measures: dict[str, list[Measure]]
    comparison: Comparison | None
    diagnostics: dict[str, Any]


@dataclass(frozen=True)
class OutputShares:
    """The importance of columns, by index, and of pairs of columns for one output, largest first."""

    columns: list[tuple[int, float]]
    pairs: list[tuple[tuple[int, int], float]]


@dataclass(frozen=True)
class LargestTerms:
    """The largest of ``n_terms`` coefficients, by label; ``columns`` describes the columns in words."""

    n_terms: int
    columns: str
    coefficients: dict[str, float]


@dataclass(frozen=True)
class Findings:
    """Everything that a report says. ``settings`` are the settings that differ from the defaults, ``outputs``
    the names of the outputs, ``formulas`` the functions of each output, and ``n_members`` the number of
    models behind the bands. ``browser`` holds the model and its inputs for the script in the page. Of
    ``n_given`` rows, ``n_measured`` are in the page; if these are fewer, ``of_all_rows`` holds the measures
    of the model on all rows, by target. Errors are ``weighted`` if the rows have weights.
    """

    estimator: str
    settings: dict[str, str]
    degree: int
    rank: int
    basis: str | None
    n_parameters: int
    n_columns: int
    n_numbers: int  # of the matrix, in which a date has several
    n_categories: int
    target: str | None
    classes: list[str]
    outputs: list[str]
    n_given: int
    n_measured: int
    n_train: int | None
    n_train_given: int | None
    of_all_rows: list[list[Measure]] | None
    weighted: bool
    errors: list[TargetErrors]
    shares: list[OutputShares]
    terms: LargestTerms | None
    alpha: float | None  # None if the model comes from partial_fit alone
    formulas: list[Formula]
    n_members: int
    browser: dict[str, Any]


def find(
    model: Any,
    X: Any,
    y: Any,
    X_train: Any = None,
    y_train: Any = None,
    target: str | None = None,
    n_examples: int = 0,
    random_state: int | None = 0,
    members: Sequence[Any] | None = None,
    most_rows: int = MOST_ROWS,
    sample_weight: Any = None,
    sample_weight_train: Any = None,
) -> Findings:
    """Return all findings about a fitted model; see `html_report` for the parameters."""
    machine = fitted_machine(model)
    described = describe(model)  # refuses a model that predicts nothing
    if members is not None:
        check_members(model, members)
        refuse_unit_rows(machine)
    columns, classes = described.columns, described.classes
    random = np.random.RandomState(random_state)
    given = rows_of_report(model, X, y, most_rows, random.randint(1 << 31), sample_weight)
    rows, y = given.rows, given.y
    train = None
    if X_train is not None or y_train is not None:
        train = training_rows(model, X_train, y_train, sample_weight_train)
    examples = np.sort(random.permutation(len(y))[:n_examples])
    some = rows[np.linspace(0, len(y) - 1, min(len(y), MOST_ROWS_FOR_SHARES)).astype(np.intp)]

    target, outputs = _names(model, described, target)
    predictions = {MODEL: predictions_of(described, machine.outputs(rows))}
    fitted_to, weight = (None, given.weight) if train is None else ((train.rows, train.y), train.weight)
    n_codes = [column.n_codes for column in columns]
    losses = [] if described.kind == "classifier" else losses_of(model, len(outputs))
    if described.link == "sigmoid":
        predictions |= _baselines_of_labels(rows, y, fitted_to, n_codes, weight)
    elif losses and losses[0].name == "quantile":
        predictions |= _baselines_of_quantiles(rows, y, fitted_to, n_codes, losses, weight)
    else:
        predictions |= baseline_predictions(rows, y, fitted_to, n_codes, classes, weight=weight)
    center = mean_row(machine, some)
    forms = [column_forms_about(model, output, center) for output in output_keys(model)]
    booleans = given.booleans | (set() if train is None else train.booleans)
    importances = column_importances(machine, some)
    shares = [_shares(of_output, some, found) for of_output, found in zip(forms, importances, strict=True)]
    about_mean = _about_mean(model, some)
    dates = dates_of(model._columns)
    inputs = browser_inputs(described, rows, _most_important(shares, len(columns)), booleans, dates)
    if members is not None:
        inputs = with_bands(inputs, about_mean, [_about_mean(member, some) for member in members])
    return Findings(
        estimator=type(model).__name__,
        settings=_settings(model),
        degree=described.layout.degree,
        rank=described.layout.rank,
        basis=described.basis_name,
        n_parameters=model.n_parameters_,
        n_columns=model.n_features_in_,
        n_numbers=len(columns),
        n_categories=sum(column.kind == "category" for column in columns),
        target=target,
        classes=[] if classes is None else list(map(str, classes.tolist())),
        outputs=outputs,
        n_given=given.n_rows,
        n_measured=len(y),
        n_train=None if train is None else len(train.y),
        n_train_given=None if train is None else train.n_rows,
        of_all_rows=None if given.errors is None else _on_all_rows(given.errors.measures(model), losses),
        weighted=given.weight is not None,
        errors=_errors(described, given, predictions, outputs, target, losses),
        shares=shares,
        terms=_largest_terms(model, described),
        alpha=getattr(model, "alpha_", None),
        formulas=_formulas(model, rows, booleans, importances),
        n_members=0 if members is None else len(members),
        browser={
            "model": browser_model(linear_forms(described), about_mean),
            "average": AVERAGE if hasattr(model, "_mean_parts") else AVERAGE_OF_ROWS,
            "inputs": inputs,
            "typical": typical_row(described, rows, dates),
            "examples": example_rows(rows, examples),
            "example_numbers": (given.numbers[examples] + 1).tolist(),
            "actual": [
                np.broadcast_to(y[i], len(outputs)).tolist() if classes is None else str(y[i])
                for i in examples
            ],
        },
    )


def _about_mean(model: Any, rows: Any) -> list[ColumnForms]:
    """Return the forms of each output, from which contributions start."""
    return [forms_about_mean(model, output, rows) for output in output_keys(model)]


def _formulas(model: Any, rows: Any, booleans: set[int], importances: np.ndarray) -> list[Formula]:
    """Return the functions of each output; none if rows are normalised or if there are many outputs."""
    keys = output_keys(model)
    if fitted_machine(model).basis.unit_rows or len(keys) > MOST_FORMULAS:
        return []
    return [
        formula_on(model, rows, booleans, FIDELITY, MOST_FUNCTIONS, key)
        for key, of_columns in zip(keys, importances, strict=True)
        if of_columns.any()
    ]


def _settings(model: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults."""
    defaults = type(model)().get_params(deep=False)
    given = model.get_params(deep=False).items()
    return {name: repr(value) for name, value in given if repr(value) != repr(defaults[name])}


def _names(model: Any, described: Description, target: str | None) -> tuple[str | None, list[str]]:
    """Return the name of the target, or of all targets together, and the names of the outputs."""
    fitted, count = getattr(model, "target_name_", None), described.layout.n_outputs
    if target is None:
        target = ", ".join(fitted) if isinstance(fitted, list) else fitted
    if described.classes is not None:
        return target, list(map(str, described.classes.tolist()))[count == 1 :]
    if isinstance(fitted, list):
        return target, fitted
    if described.quantiles is not None:
        of_target = f" of {target}" if target else ""
        return target, [f"quantile {level}{of_target}" for level in described.quantiles]
    if count == 1:
        return target, [target or "prediction"]
    one = target or ("label" if described.link == "sigmoid" else "output")
    return target, [f"{one} {k}" for k in range(count)]


def _errors(
    described: Description,
    given: ReportRows,
    predictions: dict[str, np.ndarray],
    outputs: list[str],
    target: str | None,
    losses: Sequence[Loss],
) -> list[TargetErrors]:
    y, weight = given.y, given.weight
    if described.classes is not None:
        measures = classification_errors(y, described.classes, predictions, weight)
        found = calibration(class_codes(y, described.classes), predictions[MODEL], weight)
        return [TargetErrors(target or "class", measures, _compare(measures), found)]
    of_targets = []
    for k, label in enumerate(outputs):
        actual = np.broadcast_to(y.reshape(len(y), -1), (len(y), len(outputs)))[:, k]
        of_target = {name: predicted.reshape(len(y), -1)[:, k] for name, predicted in predictions.items()}
        if described.link == "sigmoid":
            measures, found = _errors_of_label(actual, of_target, weight)
        elif losses[k].name == "quantile":
            values = {name: own_values(losses[k], actual, each) for name, each in of_target.items()}
            measures = regression_errors(actual, of_target, weight, own=(own_measures(losses[k]), values))
            measures = {name: _of_quantile(each) for name, each in measures.items()}
            found = residuals(actual, of_target[MODEL], weight)
        else:
            measures = regression_errors(actual, of_target, weight)
            found = residuals(actual, of_target[MODEL], weight)
        of_targets.append(TargetErrors(label, measures, _compare(measures), found))
    return of_targets


def _of_quantile(measures: list[Measure]) -> list[Measure]:
    """Return the share of targets below a quantile, and the pinball loss; other measures do not apply."""
    *_, loss, below = measures
    return [below, loss]


def _on_all_rows(measures: list[dict[str, list[Measure]]], losses: Sequence[Loss]) -> list[list[Measure]]:
    """Return the measures of this model for each target."""
    if losses and losses[0].name == "quantile":
        return [_of_quantile(each[OURS]) for each in measures]
    return [each[OURS] for each in measures]


def _errors_of_label(
    actual: np.ndarray, probabilities: dict[str, np.ndarray], weight: np.ndarray | None
) -> tuple[dict[str, list[Measure]], dict[str, Any]]:
    of_both = {name: np.column_stack([1 - found, found]) for name, found in probabilities.items()}
    measures = classification_errors(actual, ABSENT_OR_PRESENT, of_both, weight)
    return measures, calibration(actual.astype(np.intp), of_both[MODEL], weight)


def _baselines_of_labels(
    rows: Any,
    y: np.ndarray,
    train: tuple[Any, np.ndarray] | None,
    n_codes: Sequence[int],
    weight: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Return the probabilities of each label, (rows, n_labels), from baselines fitted to each label."""
    of_labels = [None if train is None else (train[0], train[1][:, k]) for k in range(y.shape[1])]
    each = [
        baseline_predictions(rows, y[:, k], fitted_to, n_codes, ABSENT_OR_PRESENT, weight=weight)
        for k, fitted_to in enumerate(of_labels)
    ]
    return {name: np.column_stack([found[name][:, 1] for found in each]) for name in each[0]}


def _baselines_of_quantiles(
    rows: Any,
    y: np.ndarray,
    train: tuple[Any, np.ndarray] | None,
    n_codes: Sequence[int],
    losses: Sequence[Loss],
    weight: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Return the quantiles, (rows, n_outputs), from baselines fitted for each level, or target."""
    each = []
    for k, loss in enumerate(losses):
        target, fitted_to = y, train
        if y.ndim == 2:  # each target has its own
            target, fitted_to = y[:, k], None if train is None else (train[0], train[1][:, k])
        each.append(baseline_predictions(rows, target, fitted_to, n_codes, None, loss.level, weight))
    return {name: np.column_stack([found[name] for found in each]) for name in each[0]}


def _compare(measures: dict[str, list[Measure]]) -> Comparison | None:
    """Compare the model with the best baseline by the second measure, which is an error."""
    ours = measures[MODEL][1]
    baselines = {name: found[1] for name, found in measures.items() if name not in (MODEL, CONSTANT)}
    if not baselines:
        return None
    name = min(baselines, key=lambda name: baselines[name].value)
    best = baselines[name]
    if not best.value > 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):  # the interval ignores draws of error 0
        ratios = ours.draws / best.draws
    return Comparison(ours.name, name, ours.value / best.value, interval_of(ratios))


def _shares(forms: ColumnForms, rows: Any, of_columns: np.ndarray) -> OutputShares:
    order = np.argsort(-of_columns, kind="stable")
    sets = sets_of_columns(forms, 2, order[:MOST_IN_PAIRS].tolist(), max_parts=MOST_IN_PAIRS**2)
    pairs = [
        ((columns[0], columns[1]), share)
        for columns, share in zip(sets, set_importances(forms, rows, sets).tolist(), strict=False)
        if len(columns) == 2 and share >= SMALLEST_SHARE
    ]
    pairs.sort(key=lambda pair: -pair[1])
    return OutputShares([(int(j), float(of_columns[j])) for j in order], pairs[:MOST_PAIRS])


def _most_important(shares: list[OutputShares], n_columns: int) -> list[int]:
    """Return the columns with the largest share in any output."""
    largest = np.zeros(n_columns + 1)  # the last is the norm of normalised rows
    for of_output in shares:
        for column, share in of_output.columns:
            largest[column] = max(largest[column], share)
    return np.argsort(-largest[:n_columns], kind="stable")[:MOST_INPUTS].tolist()


def _largest_terms(model: Any, described: Description) -> LargestTerms | None:
    """Return the largest terms of the polynomial; None for splines, for rows of unit norm, for several
    outputs, and if there are too many terms to search.
    """
    n_columns, degree = len(described.columns), described.layout.degree
    if described.basis_name not in COLUMNS_OF_TERMS or described.layout.n_outputs > 1:
        return None
    if comb(n_columns + degree, degree) > MOST_MONOMIALS:
        return None
    terms = polynomial(model, units="basis")
    scale = described.machine.basis.constant or 1.0  # scales columns to a standard deviation or size of 1
    scaled = sorted(
        ((key, value * scale ** len(key)) for key, value in terms.items()), key=lambda term: -abs(term[1])
    )
    largest = {terms.label(key): value for key, value in scaled[:MOST_TERMS]}
    return LargestTerms(len(terms), COLUMNS_OF_TERMS[described.basis_name], largest)
