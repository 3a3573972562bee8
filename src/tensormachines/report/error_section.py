"""The section of the page on errors: tables, and figures whose contents the page draws."""

from __future__ import annotations

from html import escape

from .findings import MODEL, Errors, Facts
from .formatting import interval_of, number, title_of
from .measures import Measure


def error_section(facts: Facts) -> str:
    used = (
        f"{len(facts.y):,} rows"
        if facts.n_rows == len(facts.y)
        else f"{len(facts.y):,} rows, drawn from {facts.n_rows:,}"
    )
    if facts.train is None:
        fitted = "cross-validated: fitted to four fifths of these rows to predict the rest, not to the rows that the model was fitted to"
    else:
        fitted = f"fitted to {len(facts.train[1]):,} training rows"
    intervals = "Intervals are those that hold 95 % of all repetitions with rows drawn again (bootstrap)."
    about = f"<p>Measured on {used}. If the model was fitted to these, its errors with new rows are larger. {intervals}</p>"
    settings = "default settings of scikit-learn" + (
        "" if facts.classifier else "; the linear one chooses its penalty"
    )
    rivals = f"<p>The others were {fitted}. They have {settings}.</p>"
    several = len(facts.errors) > 1
    tables = (
        _error_table(errors, several) + _check(errors, place, facts.classes)
        for place, errors in enumerate(facts.errors)
    )
    return about + rivals + "".join(tables)


def _error_table(errors: Errors, several: bool) -> str:
    ours = errors.measures[MODEL]
    header = "".join(f'<th scope="col">{escape(title_of(measure.name))}</th>' for measure in ours)
    rows = []
    for name, measures in errors.measures.items():
        cells = "".join(
            _error_cell(measure, [other[place] for other in errors.measures.values()])
            for place, measure in enumerate(measures)
        )
        rows.append(
            f'<tr{" class=ours" if name == MODEL else ""}><th scope="row">{escape(title_of(name))}</th>{cells}</tr>'
        )
    heading = f"<h3>{escape(errors.label)}</h3>" if several else ""
    return heading + _table("errors", "Errors", f"<td></td>{header}", "".join(rows))


def _table(kind: str, label: str, header: str, rows: str) -> str:
    table = f'<table class="{kind}"><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>'
    return f'<div class="table" tabindex="0" role="region" aria-label="{label}">{table}</div>'


def _error_cell(measure: Measure, all_of_it: list[Measure]) -> str:
    """The figure, its interval, and where that lies among those of all methods."""
    bounds = [bound for other in all_of_it for bound in other.interval]
    low, high = measure.interval
    first, last = min(bounds), max(bounds)
    reach = (last - first) or 1.0
    marks = ""
    if first < last:
        places = [100 * (value - first) / reach for value in (low, measure.value, high)]
        style = ";".join(
            f"--{name}:{place:.1f}%" for name, place in zip(("low", "at", "high"), places, strict=True)
        )
        marks = f'<span class="interval" aria-hidden="true" style="{style}"></span>'
    return f"<td>{number(measure.value)} <small>{interval_of(measure)}</small>{marks}</td>"


def _check(errors: Errors, place: int, classes: list[str]) -> str:
    check = errors.check
    if check["kind"] == "residuals":
        note = (
            f"Half of all predictions are within {number(check['half'])} of the actual value, nine of ten within {number(check['most'])}. "
            f"On average, the actual value is {number(abs(check['bias']))} {'above' if check['bias'] > 0 else 'below'} the prediction."
        )
        return _figures(
            place,
            [
                ("scatter", "Actual against predicted", note),
                ("residuals", "Residuals", "Outermost bars hold all beyond them."),
            ],
        )
    stated = (
        f"the stated probability of {classes[1]}"
        if len(classes) == 2
        else "the stated probability of the predicted class"
    )
    note = f"Ten groups of rows, by {stated}. On the dashed line it would be as often true as stated; whiskers are 95 % intervals."
    return _figures(
        place, [("calibration", "Calibration", note)], _confusion_table(check["confusion"], classes)
    )


def _figures(place: int, charts: list[tuple[str, str, str]], beside: str = "") -> str:
    figures = "".join(
        f'<figure><h3>{title}</h3><div class="chart" data-check="{place}" data-kind="{kind}"></div>'
        f"<figcaption>{escape(note)}</figcaption></figure>"
        for kind, title, note in charts
    )
    return f'<div class="figures">{figures}{beside}</div>'


def _confusion_table(confusion: list[list[int]] | None, classes: list[str]) -> str:
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
    title = "Which class is taken for which"
    return f"<figure><h3>{title}</h3>{_table('confusion', title, corner + header, ''.join(rows))}</figure>"
