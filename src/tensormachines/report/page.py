"""The report as one HTML file that needs nothing beside it: no other file, no network."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from .. import __version__
from .._model.description import describe
from .._model.layout import Layout
from .baselines import CONSTANT, LINEAR
from .error_section import error_section
from .findings import MODEL, MOST_INPUTS, Errors, Facts, find_facts
from .formatting import count, interval_of, number, percent, title_of
from .formula import formula_section
from .measures import Measure, interval

FOLDER = Path(__file__).parent / "browser"
PROGRAM = (
    "model.js",
    "charts.js",
    "state.js",
    "inputs.js",
    "prediction.js",
    "effects.js",
    "checks.js",
    "page.js",
)
EXAMPLES = 20
MANY_TIMES = 10  # as large is "10 times", less is told in per cent


def html_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    target: str | None = None,
    title: str | None = None,
    examples: int = EXAMPLES,
    random_state: int | None = 0,
) -> str:
    """A page about a fitted model, in which the model itself runs: one HTML file that needs nothing beside
    it.

    It says what the model is, how large its errors are and those of simple rivals, whether its predictions
    can be taken at their word, which columns and pairs of columns matter and what they do, and lets its
    reader change the inputs and see the prediction change.

    Parameters
    ----------
    model : TensorMachineRegressor, TensorMachineClassifier, or one of the searches, fitted
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
        Rows that the model was not fitted to: with others, its errors would look smaller than they are. Of
        very many rows, 20,000 are drawn.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    X_train, y_train : as X and y, optional
        Rows that the rivals are fitted to. Without them, rivals are cross-validated on X.
    target : str, optional
        What y is called; without it, what it was called in the fit.
    title : str, optional
    examples : int
        So many rows of X are in the page to start from; 0 to keep all of them out of it. The medians of
        columns, how often values and levels occur, and predicted and actual targets of up to 1,000 rows are
        there in any case.
    random_state : int or None
        Which rows are drawn, and which are examples.

    Returns
    -------
    str
        To be written to a file, in UTF-8.

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
    facts = find_facts(model, X, y, X_train, y_train, target, examples, random_state)
    return _page(facts, title or (f"A model of {facts.target}" if facts.target else "A model and its errors"))


def _page(facts: Facts, title: str) -> str:
    more = len(facts.names) - MOST_INPUTS
    others = f" These are the {MOST_INPUTS} columns that matter most; {count(more, 'other')} stay as in the row you start from."
    return Template(_read("page.html")).substitute(
        title=escape(title),
        style=_read("page.css"),
        lead=_lead(facts),
        cards="".join(map(_card, facts.errors[0].measures[MODEL])),
        other_inputs=others if more > 0 else "",
        predicted=escape(facts.target or "Prediction"),
        explained="prediction"
        if not facts.classifier
        else "log-odds"
        if len(facts.output_labels) == 1
        else "score",
        errors=error_section(facts),
        terms=_terms(facts.model._machine.layout),
        formula=formula_section(facts),
        facts="".join(
            f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>"
            for name, value in _described(facts).items()
        ),
        data=json.dumps(facts.page, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        program="\n".join(map(_read, PROGRAM)),
    )


def _read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def _lead(facts: Facts) -> str:
    layout, columns = facts.model._machine.layout, facts.model._columns
    categories = 0 if columns is None else columns.kinds.count("category")
    made_of = count(len(facts.names), "column")
    if categories:
        made_of += f", {count(categories, 'of them a category', 'of them categories')}"
    what = f"<strong>{escape(facts.target)}</strong>" if facts.target else "the target"
    rank = "" if layout.degree == 1 else f" and rank {layout.rank}"
    size = f"It has {facts.model.n_parameters_:,} numbers."
    return f"A Tensor Machine of degree {layout.degree}{rank} predicts {what} from {made_of}. {size} {_against_rivals(facts.errors[0])}"


def _against_rivals(errors: Errors) -> str:
    """One sentence: beside the best rival, by the second measure, which is an error."""
    ours = errors.measures[MODEL][1]
    rivals = {
        name: measures[1] for name, measures in errors.measures.items() if name not in (MODEL, CONSTANT)
    }
    name, best = min(rivals.items(), key=lambda rival: rival[1].value)
    if not best.value > 0:
        return ""
    with np.errstate(divide="ignore", invalid="ignore"):  # such draws do not count
        low, high = interval(ours.draws / best.draws - 1)
    difference = ours.value / best.value - 1
    whose = f"that of the best rival here, {'a linear model' if name == LINEAR else name}"
    on_these = "On these rows, which should be new to it, its"
    if difference > MANY_TIMES - 1:
        return f"{on_these} {ours.name} is {number(difference + 1)} times {whose} (95 % interval {number(low + 1)} to {number(high + 1)})."
    bounds = f"95 % interval {percent(low)} to {percent(high)}"
    if low <= 0 <= high:
        return f"{on_these} {ours.name} cannot be told from {whose} ({percent(difference)}; {bounds})."
    return f"{on_these} {ours.name} is {percent(abs(difference))} {'lower' if difference < 0 else 'higher'} than {whose} ({bounds})."


def _card(measure: Measure) -> str:
    return f'<li><h2>{title_of(measure.name)}</h2><p class="value">{number(measure.value)}</p><p>95 % interval {interval_of(measure)}</p></li>'


def _terms(layout: Layout) -> str:
    if layout.degree == 1:
        return ""
    return f" + Σ<sub>p = 2..{layout.degree}</sub> Σ<sub>i = 1..{layout.rank}</sub> Π<sub>j = 1..p</sub> ⟨v<sub>pij</sub>, x⟩"


def _described(facts: Facts) -> dict[str, str]:
    model, layout = facts.model, facts.model._machine.layout
    defaults = type(model)().get_params(deep=False)
    chosen = {
        name: value
        for name, value in model.get_params(deep=False).items()
        if repr(value) != repr(defaults[name])
    }
    return {
        "Estimator": type(model).__name__,
        "Degree, rank": f"{layout.degree}, {layout.rank}" if layout.degree > 1 else "1",
        "Basis": describe(model).basis_name or "columns as they are",
        "Numbers in the model": f"{model.n_parameters_:,}",
        "Columns": f"{len(facts.names):,}",
        "Settings": ", ".join(f"{name}={value!r}" for name, value in chosen.items()) or "defaults",
        "Made with": f"tensormachines {__version__}",
    }
