"""The section of the page on errors: tables, and figures that the script in the page draws."""

from __future__ import annotations

from html import escape
from typing import Any

from .baselines import FOLDS, LINEAR
from .findings import MODEL, Findings, TargetErrors
from .formatting import interval_in_words, number, probability, table, title_of
from .measures import Measure


def error_section(findings: Findings) -> str:
    drawn = "" if findings.n_given == findings.n_measured else f", drawn at random from {findings.n_given:,}"
    if findings.n_train is None:
        fitted = (
            f"cross-validated on these rows in {FOLDS} folds, not fitted to the training rows of the model"
        )
    else:
        fitted = f"fitted to {findings.n_train:,} training rows"
        if findings.n_train_given != findings.n_train:
            fitted += f", drawn at random from {findings.n_train_given:,}"
    of_numbers = findings.errors[0].diagnostics["kind"] == "residuals"
    linear = of_numbers and LINEAR in findings.errors[0].measures
    penalty = "; the linear model chooses its penalty by cross-validation" if linear else ""
    weighted = " Rows count by their weights." if findings.weighted else ""
    sections = [
        f"<p>Measured on {findings.n_measured:,} rows{drawn}. If these are training rows, errors on new rows "
        f"are larger. Intervals are 95&nbsp;% bootstrap intervals.{weighted}</p>"
        f"<p>The baselines were {fitted}. They have scikit-learn's default settings{penalty}.</p>"
    ]
    for place, errors in enumerate(findings.errors):
        if len(findings.errors) > 1:
            sections.append(f"<h3>{escape(errors.label)}</h3>")
        classes = findings.classes or [f"not {errors.label}", errors.label]  # the latter for a label
        sections += [_error_table(errors), _errors_on_all_rows(findings, place)]
        sections.append(_diagnostics(errors, place, classes, findings.weighted))
    return "".join(sections)


def _error_table(errors: TargetErrors) -> str:
    header = "".join(f'<th scope="col">{escape(title_of(ours.name))}</th>' for ours in errors.measures[MODEL])
    rows = []
    for name, measures in errors.measures.items():
        cells = "".join(
            _error_cell(measure, [other[place] for other in errors.measures.values()])
            for place, measure in enumerate(measures)
        )
        kind = " class=ours" if name == MODEL else ""
        rows.append(f'<tr{kind}><th scope="row">{escape(title_of(name))}</th>{cells}</tr>')
    return table("errors", "Errors", f"<td></td>{header}", "".join(rows))


def _errors_on_all_rows(findings: Findings, place: int) -> str:
    """Return the errors of this model on all rows, if the table shows those on some of them."""
    if findings.of_all_rows is None:
        return ""
    measures = findings.of_all_rows[place]
    found = [
        f"{escape(title_of(each.name))} {number(each.value)} ({interval_in_words(each)})" for each in measures
    ]
    return f'<p class="all-rows">On all {findings.n_given:,} rows, this model has: {"; ".join(found)}.</p>'


def _error_cell(measure: Measure, of_all: list[Measure]) -> str:
    """Return a cell with the value, its interval, and a bar that compares it with those of all methods."""
    bounds = [bound for other in of_all for bound in other.interval]
    low, high = measure.interval
    first, last = min(bounds), max(bounds)
    picture = ""
    if first < last:
        places = [100 * (value - first) / (last - first) for value in (low, measure.value, high)]
        style = "--low:{:.1f}%;--at:{:.1f}%;--high:{:.1f}%".format(*places)
        picture = f'<span class="interval" aria-hidden="true" style="{style}"></span>'
    return f"<td>{number(measure.value)} <small>{interval_in_words(measure)}</small>{picture}</td>"


def _diagnostics(errors: TargetErrors, place: int, classes: list[str], weighted: bool) -> str:
    found = errors.diagnostics
    if found["kind"] == "residuals":
        note = (
            f"Half of all predictions{', by weight,' if weighted else ''} are within "
            f"{number(found['half'])} of the actual value, 90 % within "
            f"{number(found['most'])}. On average the actual value is {number(abs(found['bias']))} "
            f"{'above' if found['bias'] > 0 else 'below'} the prediction."
        )
        figures = _figure(place, "scatter", "Actual against predicted", note)
        figures += _figure(place, "residuals", "Residuals", "The outermost bars include all beyond them.")
    else:
        whose = classes[1] if len(classes) == 2 else "the predicted class"
        note = (
            f"Rows in groups by predicted probability of {whose}, smaller groups where it is less certain. "
            "On the dashed line it equals the observed frequency; whiskers are 95 % intervals."
        )
        figures = _figure(
            place, "calibration", "Calibration", note, _calibration_table(found["groups"], whose)
        )
        figures += _confusion_matrix(found["confusion"], classes)
    return f'<div class="figures">{figures}</div>'


def _figure(place: int, kind: str, title: str, note: str, more: str = "") -> str:
    return (
        f'<figure><h3>{title}</h3><div class="chart" data-target="{place}" data-kind="{kind}"></div>'
        f"<figcaption>{escape(note)}</figcaption>{more}</figure>"
    )


def _calibration_table(groups: list[dict[str, Any]], whose: str) -> str:
    """Return the groups as a collapsed table, because the dots of a rare class overlap."""
    names = ("predicted", "observed", "95 % interval", "rows", f"of them {whose}")
    header = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    rows = []
    for group in groups:
        interval = f"{probability(group['low'])} to {probability(group['high'])}"
        means = probability(group["predicted"]), probability(group["observed"])
        cells = (*means, interval, f"{group['rows']:,}", f"{group['true']:,}")
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    shown = table("calibration", "Calibration in numbers", header, "".join(rows))
    return f"<details><summary>The same in numbers</summary>{shown}</details>"


def _confusion_matrix(confusion: list[list[int]] | None, classes: list[str]) -> str:
    if confusion is None:
        return ""
    header = "".join(f'<th scope="col">{escape(label)}</th>' for label in classes)
    rows = []
    for label, counts in zip(classes, confusion, strict=True):
        total = max(1, sum(counts))
        cells = "".join(
            f'<td style="--share:{round(100 * count / total)}%">{count:,}</td>' for count in counts
        )
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    corner = "<td>actual \N{DOWNWARDS ARROW}, predicted \N{RIGHTWARDS ARROW}</td>"
    title = "Confusion matrix"
    shown = table("confusion", title, corner + header, "".join(rows))
    note = (
        "<figcaption>The predicted class is the most probable one, so a rare class may never be predicted. "
        "The darker, the larger the share of the actual class.</figcaption>"
    )
    return f"<figure><h3>{title}</h3>{shown}{note}</figure>"
