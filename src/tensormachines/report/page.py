"""The report as one HTML file that needs no other file and no network: a pure function of the findings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from .. import __version__
from .._data.files.source import Source
from ..inspection.members import COVERAGE
from .baselines import LINEAR
from .error_section import error_section
from .findings import MODEL, MOST_INPUTS, Findings, TargetErrors, find
from .formatting import count, interval_in_words, number, percent, title_of
from .measures import Measure
from .model_section import model_section
from .report_rows import targets_and_weights

FOLDER = Path(__file__).parent / "browser"
PROGRAM = (
    "model.js",
    "charts.js",
    "state.js",
    "inputs.js",
    "prediction.js",
    "effects.js",
    "diagnostics.js",
    "page.js",
)
EXAMPLES = 20
MANY_TIMES = 10  # an error more than this many times as large is given as a factor, otherwise in per cent


class Page(str):
    """The text of a page. A notebook shows the page in a frame, apart from its own page."""

    def __repr__(self) -> str:
        return f"<page of {len(self):,} characters: write it to a file, or show it in a notebook>"

    def _repr_html_(self) -> str:
        style = "width: 100%; height: 48rem; border: 1px solid #ccc; border-radius: 0.5rem"
        return (
            f'<iframe srcdoc="{escape(self)}" sandbox="allow-scripts" title="Report" loading="lazy" '
            f'style="{style}"></iframe>'
        )


def html_report(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    sample_weight: Any = None,
    exposure: Any = None,
    offset: Any = None,
    X_train: Any = None,
    y_train: Any = None,
    sample_weight_train: Any = None,
    exposure_train: Any = None,
    offset_train: Any = None,
    target: str | None = None,
    title: str | None = None,
    data_name: str | None = None,
    note: str | None = None,
    examples: int = EXAMPLES,
    random_state: int | None = 0,
    members: Sequence[Any] | None = None,
) -> str:
    """Return an HTML page about a fitted model that also runs the model.

    The page describes the model, compares its errors with those of simple baselines, and shows residuals or
    calibration, the important columns and pairs of columns, and their effects. Readers can change the inputs
    and see the prediction change. The page is a single file that needs no other file and no network.

    Parameters
    ----------
    model : TensorMachineRegressor, TensorMachineClassifier, or one of the searches, fitted
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        Held-out rows; training rows would make the errors look too small. If there are more than 20,000 rows,
        the page shows 20,000 random rows, and the errors of the model on all rows. A source of
        `tensormachines.blocks` is read once, a block at a time, and provides its own weights.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        A Dask collection if X is one. A source provides its own targets.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows in all errors.
    exposure, offset : array-like of shape (n_samples,), optional
        As in the `fit` of the regressor. The report is then about the quantity that the fit learns: for
        example the rates y / exposure, weighted by the exposure.
    X_train, y_train : as X and y, optional
        Rows that the baselines are fitted to; from a source or Dask collection, at most 100,000 random rows.
        Without them, the baselines are cross-validated on X.
    sample_weight_train, exposure_train, offset_train : as those of X, optional
        Give an exposure or an offset for both X and X_train, or for neither.
    target : str, optional
        Name of y, or of y / exposure; derived from its name in the fit by default.
    title : str, optional
    data_name : str, optional
        Name of the rows of X at the top of the page, such as their file name.
    note : str, optional
        First sentence of the page, such as a warning about the rows.
    examples : int
        Number of rows of X that the page contains as examples; 0 for none. The page always contains the
        medians of columns, counts of values and levels, and predicted and actual targets of up to 1,000 rows.
    random_state : int or None
        Seed for drawing rows and examples.
    members : list of models, optional
        Members from `inspection.bootstrap`: the page then shows bands around the effects of columns.

    Returns
    -------
    str
        The page, to be written to a file in UTF-8. A notebook shows it where it ends a cell.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.report import html_report
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(random_state=0).fit(X[:300], y[:300])
    >>> page = html_report(model, X[300:], y[300:], X_train=X[:300], y_train=y[:300])
    >>> page.splitlines()[0]
    '<!DOCTYPE html>'
    """
    _require_pairs(X, X_train, {"exposure": (exposure, exposure_train), "offset": (offset, offset_train)})
    name = getattr(model, "target_name_", None)
    if target is None and exposure is not None and isinstance(name, str):
        target = f"{name} / exposure"
    y, weight = targets_and_weights(model, X, y, sample_weight, exposure, offset)
    y_train, weight_train = targets_and_weights(
        model, X_train, y_train, sample_weight_train, exposure_train, offset_train
    )
    found = find(
        model,
        X,
        y,
        X_train,
        y_train,
        target,
        examples,
        random_state,
        members,
        sample_weight=weight,
        sample_weight_train=weight_train,
    )
    return Page(page_of(found, title, data_name, note))


def _require_pairs(X: Any, X_train: Any, known: dict[str, tuple[Any, Any]]) -> None:
    """Refuse an exposure or an offset for only some of the rows, unless a source has already removed it."""
    for name, (ours, of_train) in known.items():
        if X_train is None and of_train is not None:
            raise ValueError(f"{name}_train needs X_train and y_train, which are missing: give them all.")
        missing = (ours is None) != (of_train is None) and X_train is not None
        if missing and not isinstance(X, Source) and not isinstance(X_train, Source):
            raise ValueError(f"{name} and {name}_train are those of X and X_train: give both or neither.")


def page_of(
    findings: Findings,
    title: str | None = None,
    data_name: str | None = None,
    note: str | None = None,
    today: date | None = None,
) -> str:
    if title is None:
        title = f"A model of {findings.target}" if findings.target else "A model and its errors"
    link = findings.browser["model"]["link"]
    explained = {
        "log": "logarithm of the prediction",
        "logistic": "log-odds",
        "sigmoid": "log-odds",
        "softmax": "score",
    }.get(link, "prediction")
    more = findings.n_numbers - MOST_INPUTS
    other_inputs = (
        f" There are inputs for the {MOST_INPUTS} most important columns; "
        f"{count(more, 'other keeps its value', 'others keep their values')} in the row you start from."
    )
    return Template(_read("page.html")).substitute(
        title=escape(title),
        style=_read("page.css"),
        lead=("" if note is None else f"<strong>{escape(note)}</strong> ") + _lead(findings),
        made=_made(findings, data_name, today or date.today()),
        cards="".join(_card(each, findings.errors) for each in findings.errors[0].measures[MODEL]),
        other_inputs=other_inputs if more > 0 else "",
        predicted=escape(findings.target or "Prediction"),
        explained=explained,
        bands=_bands(findings.n_members),
        errors=error_section(findings),
        model=model_section(findings),
        data=_data(findings),
        program="\n".join(map(_read, PROGRAM)),
    )


def _bands(n_members: int) -> str:
    """Return a text that says what bands are, and what they are not."""
    if not n_members:
        return ""
    return (
        f"<p>The bands around the effects of columns come from {count(n_members, 'model')} of the same kind, "
        "each fitted to rows drawn anew from the training rows. At each point, a band is meant to contain "
        f"the true effect with a probability of {percent(COVERAGE)}, for rows from the same source. In "
        "trials with a known truth, 82 to 94&nbsp;% of the points were inside: models smooth, so true peaks "
        "may be sharper than a band allows for. A whole curve leaves its band more often than a point of it, "
        "and no band tells whether a column causes anything.</p>"
    )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _data(findings: Findings) -> str:
    """Return the data for the script in the page, as JSON that is safe in a script element."""
    shares = [
        {
            "columns": of_output.columns[:MOST_INPUTS],
            "pairs": [[*columns, share] for columns, share in of_output.pairs],
        }
        for of_output in findings.shares
    ]
    data = findings.browser | {
        "target": findings.target,
        "classes": findings.classes,
        "outputs": findings.outputs,
        "shares": shares,
        "diagnostics": [errors.diagnostics for errors in findings.errors],
    }
    return json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _lead(findings: Findings) -> str:
    columns = count(findings.n_columns, "column")
    if findings.n_categories:
        columns += f", {count(findings.n_categories, 'of them a category', 'of them categories')}"
    target = f"<strong>{escape(findings.target)}</strong>" if findings.target else "the target"
    rank = "" if findings.degree == 1 else f" and rank {findings.rank}"
    return (
        f"A Tensor Machine of degree {findings.degree}{rank} predicts {target} from {columns}. "
        f"It has {findings.n_parameters:,} parameters. {_against_baseline(findings.errors)}"
    )


def _made(findings: Findings, data_name: str | None, today: date) -> str:
    """Return a text that says when the page was made, from which rows, and by which version."""
    rows = count(findings.n_given, "row") + (f" of {escape(data_name)}" if data_name else "")
    if findings.n_measured < findings.n_given:
        rows += f", {findings.n_measured:,} of them shown"
    parts = [
        f'<time datetime="{today.isoformat()}">{today.day} {today:%B %Y}</time>',
        rows,
        f"tensormachines {__version__}",
    ]
    return " · ".join(parts)


def _against_baseline(errors: list[TargetErrors]) -> str:
    found = errors[0].comparison
    if found is None:
        return ""
    (low, high), difference = found.interval, found.ratio - 1
    target = f" for {escape(errors[0].label)}" if len(errors) > 1 else ""
    its_error = f"On these rows, which should not be training rows, its {found.name}{target} is"
    that_of = f"that of the best baseline, {'a ' if found.baseline == LINEAR else ''}{found.baseline}"
    if found.ratio > MANY_TIMES:
        bounds = f"95 % interval {number(low)} to {number(high)}"
        return f"{its_error} {number(found.ratio)} times {that_of} ({bounds})."
    bounds = f"95 % interval {percent(low - 1)} to {percent(high - 1)}"
    if low <= 1 <= high:
        bounds = f"difference {percent(difference)}; {bounds}"
        return f"{its_error} not significantly different from {that_of} ({bounds})."
    direction = "lower" if difference < 0 else "higher"
    return f"{its_error} {percent(abs(difference))} {direction} than {that_of} ({bounds})."


def _card(measure: Measure, errors: list[TargetErrors]) -> str:
    target = f", {escape(errors[0].label)}" if len(errors) > 1 else ""
    return (
        f'<li><h2>{title_of(measure.name)}{target}</h2><p class="value">{number(measure.value)}</p>'
        f"<p>95 % interval {interval_in_words(measure)}</p></li>"
    )
