"""The tables of the report: rows, captions and notes."""

from __future__ import annotations

from collections import Counter

from ...datasets import SETS
from ..printed import PRINTED, TEST_ROWS, Printed
from .curves import Point, Quartiles, Relative, cheapest, over_sets, printed_relatives
from .document import NO_FITS, Block, Cell, Row, Table
from .labels import (
    count,
    dagger,
    headings,
    listing,
    major_name,
    method_name,
    number,
    percent,
    seconds,
    set_name,
    stands_for,
    status_word,
    times,
    whole,
)
from .results import Results
from .run_facts import UsedSet, unfinished


def table_1(results: Results) -> Table:
    """Return Table 1: the data sets."""
    rows = []
    for data_set in results.sets:
        paper = SETS[data_set.paper_name] if data_set.paper_name in PRINTED else None
        sizes = []
        for field in ("rows", "test_rows", "columns"):
            printed = TEST_ROWS.get(data_set.paper_name) if field == "test_rows" else None
            printed = printed or getattr(paper, field, None)
            sizes.append(Cell(whole(getattr(data_set, field)), f"paper {whole(printed)}" if printed else ""))
        degree = str(data_set.degree or (paper.degree if paper else "-"))
        task = data_set.task or (paper.task if paper else "-")
        note = SETS[data_set.name].note.replace("`", "") if data_set.used and data_set.name in SETS else ""
        about = Cell(_standing(data_set, results), note)
        rows.append(Row((Cell(set_name(data_set.name)), about, Cell(task), Cell(degree), *sizes)))
    caption = f"The paper's sets and those used here; below each size is the paper's. {results.budget}"
    header = ("set", "what it is", "task", "q", "training rows", "test rows", "columns d")
    return Table("Table 1", caption, header, tuple(rows), wordy=True)


def _standing(data_set: UsedSet, results: Results) -> str:
    if not data_set.used:
        stand_ins = [
            other.name
            for other in results.sets
            if other.used and other.name != data_set.name and other.paper_name == data_set.name
        ]
        skipped = [f"skipped: {data_set.reason}"] if data_set.reason else []
        represented = [f"represented by {listing(stand_ins)}"] if stand_ins else []
        return "; ".join(skipped + represented) or "no fits yet"
    if data_set.faithful:
        return "the paper's set, fewer rows" if data_set.capped else "the paper's set"
    if data_set.name in PRINTED:
        return "like the paper's set, but not comparable with its results"
    return f"a relative of {stands_for(data_set.name)}" if stands_for(data_set.name) else "not in the paper"


def _size(point: Point, method: str) -> str:
    if method == "craftmaps" and point.at is not None:
        return f"{whole(point.at)} features"
    rank = point.value("param_rank")
    return f"r = {rank}" if rank is not None else ""


def _our_cell(results: Results, name: str, method: str) -> Cell:
    curve = results.compared.get((name, method))
    if curve is None:
        return Cell("-")
    statuses = [str(line.get("status")) for line in curve.trouble]
    # A fit that would take too long is skipped: the curve ends there, which is not a failure.
    troubles = Counter(status_word(s) for s in statuses if curve.best is None or s != "skipped")
    if curve.best is None:
        return Cell(listing(list(troubles)), count(len(curve.trouble), "fit"))
    most = max(point.error.count for point in curve.points)
    parts = [seconds(curve.best.seconds.mean), _size(curve.best, method)]
    if curve.best.error.count < most:
        parts.append(f"{curve.best.error.count} of {most} trials")
    parts += [f"{fits} {word}" for word, fits in troubles.items()]
    winner = results.best(name, results.winner(name) or "")
    lowest = winner is not None and number(curve.best.error.mean) == number(winner.error.mean)
    strong = lowest and method != "krr"  # as in the paper
    return Cell(str(curve.best.error), " · ".join(part for part in parts if part), strong)


def _paper_cell(cell: Printed | None, method: str, lowest: float) -> Cell:
    if cell is None:
        return Cell("-")
    size = f"{cell.size:,} features" if method == "craftmaps" else f"r = {cell.size}"
    size = "" if cell.size is None else f" · {size}"
    return Cell(number(cell.error), f"{cell.seconds:,g} s{size}", method != "krr" and cell.error == lowest)


def table_2(results: Results) -> tuple[Block, ...]:
    """Return Table 2, the paper's sets with the printed numbers, and Table 2b, their relatives."""
    if not results.used:
        return (NO_FITS,)
    others = [data_set for data_set in results.used if not data_set.faithful]
    blocks: list[Block] = []
    if results.faithful:
        about = (
            "The paper's own sets: test error, CPU seconds of the fit (rank or features), ours and printed."
        )
        blocks.append(_error_table(results, "Table 2", about, results.faithful))
    if others:
        about = "Relatives of the paper's sets: test error, CPU seconds of the fit (rank or features)."
        note = (
            "These sets have other rows or another coding, so their errors are not comparable with the "
            "printed ones. Table 1 describes each set."
        )
        label = "Table 2b" if results.faithful else "Table 2"
        blocks.append(_error_table(results, label, about, others, (note,)))
    return tuple(blocks)


def _error_table(
    results: Results, label: str, about: str, sets: list[UsedSet], notes: tuple[str, ...] = ()
) -> Table:
    fitted = {method for name, method in results.compared if name in [data_set.name for data_set in sets]}
    methods = [method for method in results.methods if method in fitted]
    rows = []
    for data_set in sets:
        cells = [_our_cell(results, data_set.name, method) for method in methods]
        heading = Cell(set_name(data_set.name), _whose(data_set))
        rows.append(Row((heading, *cells), "ours" if data_set.faithful else ""))
        if data_set.faithful:
            printed = PRINTED[data_set.name]
            lowest = min(cell.error for method, cell in printed.items() if method != "krr")
            cells = [_paper_cell(printed.get(method), method, lowest) for method in methods]
            rows.append(Row((Cell(set_name(data_set.name), "paper"), *cells), "paper"))
    best = (
        "Bold: the lowest mean error, excluding KRR as in the paper. ± is the standard deviation over "
        "trials. The point of each method's curve with the lowest mean test error is shown; the paper "
        "selects by test error as well."
    )
    header, caption = ("set", *headings(methods)), f"{about} {results.budget}"
    return Table(label, caption, header, tuple(rows), (best, *dagger(methods), *notes))


def _whose(data_set: UsedSet) -> str:
    """Return the line below a set's name: "ours" if the paper's row follows, with the rows if fewer."""
    if not data_set.faithful:
        return ""
    return f"ours, {whole(data_set.rows)} rows" if data_set.capped else "ours"


def table_3(results: Results) -> tuple[Block, ...]:
    """Return Table 3: time relative to KRR on the paper's sets, and the printed ratio."""
    rows = []
    for data_set in results.faithful:
        for method in results.methods:
            ours, printed = results.relative.get((data_set.name, method)), PRINTED[data_set.name].get(method)
            if ours is not None and printed is not None:
                rows.append(_time_row(results, data_set.name, method, ours, printed))
    if not rows:
        return (NO_FITS,)
    caption = (
        "Time relative to KRR, ours and printed, and the cheapest fit on the curve that reaches the printed "
        f"error. {results.budget}"
    )
    header: tuple[str, ...] = ("set, method", "time / KRR's, ours", "printed", "printed / ours")
    header += ("printed error", "reached in", "with", "time / KRR's", "printed / ours")
    note = (
        "A dash: no fit on the curve reaches the printed error. The paper's KRR may have used several cores, "
        "which makes the printed ratios larger."
    )
    return (Table("Table 3", caption, header, tuple(rows), (note,)),)


def _time_row(results: Results, name: str, method: str, ours: Relative, printed: Printed) -> Row:
    baseline, curve = results.best(name, "krr"), results.compared[(name, method)]
    ratio = printed.relative_time(PRINTED[name]["krr"])
    first = cheapest(point for point in curve.points if printed.reached_by(point.error.mean))
    texts = [f"{set_name(name)}, {method_name(method)}", number(ours.time, 2), number(ratio, 2)]
    texts += [times(results.time_factor(name, method)), number(printed.error)]
    if first is not None and baseline is not None and first.seconds.mean > 0:
        relative = first.seconds.mean / baseline.seconds.mean
        texts += [seconds(first.seconds.mean), _major(first, method)]
        texts += [number(relative, 2), times(ratio / relative)]
    else:
        texts += ["-"] * 4
    return Row(tuple(map(Cell, texts)))


def _major(point: Point, method: str) -> str:
    if point.at is None:
        return ""
    return f"{point.at:,.6g}\N{NO-BREAK SPACE}{major_name(method, point.value('major_name'))}"


def table_4(results: Results) -> tuple[Block, ...]:
    """Return Table 4: chosen parameters, and how many numbers each model has."""
    rows = []
    for data_set in results.used:
        for method in results.methods:
            point = results.best(data_set.name, method)
            if point is not None:
                rows.append(_parameter_row(results, data_set, method, point))
    if not rows:
        return (NO_FITS,)
    caption = (
        "Minor parameters chosen by cross-validation, the major one by test error, and the numbers in the "
        f"fitted model. {results.budget}"
    )
    header: tuple[str, ...] = ("set, method", "major", "minor parameters", "candidates", "error in CV")
    header += ("numbers in the model", "multiples of d")
    note = (
        "The paper: at most 72 d for a Tensor Machine, at least 400 d for CRAFTMaps. Error in CV: in "
        "regression in standard deviations of the target. alpha: as scaled to all rows."
    )
    return (Table("Table 4", caption, header, tuple(rows), (note,), wordy=True),)


def _parameter_row(results: Results, data_set: UsedSet, method: str, point: Point) -> Row:
    minor = []
    for name in sorted(point.lines[-1]):
        value = point.value(name)
        if name.startswith("param_") and value is not None:
            shown = f"{value:.3g}" if isinstance(value, float) else value
            minor.append(f"{name.removeprefix('param_')} {shown}")
    tuning = results.tuned.get((data_set.name, method))
    size = point.mean("parameters")
    texts = (
        f"{set_name(data_set.name)}, {method_name(method)}",
        _major(point, method) or "-",
        ", ".join(minor) or "-",
        str(tuning or "-"),
        number(tuning.error) if tuning else "-",
        whole(size),
        f"{number(size / data_set.columns, 2)} d" if size and data_set.columns else "-",
    )
    return Row(tuple(map(Cell, texts)))


def table_5(results: Results) -> tuple[Block, ...]:
    """Return Table 5: error and time relative to KRR, set by set and in quartiles."""
    methods = [method for method in results.methods if method != "krr"]
    printed = printed_relatives()
    if not results.relative:
        return (NO_FITS,)
    rows = []
    for data_set in results.used:
        cells = [_relative_cell(results.relative.get((data_set.name, method))) for method in methods]
        rows.append(Row((Cell(set_name(data_set.name), "ours"), *cells), "ours" if data_set.faithful else ""))
        if data_set.faithful:
            cells = [_relative_cell(printed.get((data_set.name, method))) for method in methods]
            rows.append(Row((Cell(set_name(data_set.name), "paper"), *cells), "paper"))
    summaries = {"Median": _median_cell, "Quartiles": _quartile_cell, "Worst": _worst_cell}
    for title, relatives in (("ours, over sets", results.relative), ("paper, over ten sets", printed)):
        over = over_sets(relatives)
        for heading, cell in summaries.items():
            cells = [cell(*over[method]) if method in over else Cell("-") for method in methods]
            rows.append(Row((Cell(heading, title), *cells)))
    same = [set_name(data_set.name) for data_set in results.used if data_set not in results.counted]
    notes = dagger(methods)
    if same:
        notes.append(
            f"Left out of the summaries over sets, as its rows are counted already: {listing(same)}."
        )
    caption = f"Error relative to KRR's, and below it time relative to KRR's. {results.budget}"
    return (Table("Table 5", caption, ("set", *headings(methods)), tuple(rows), tuple(notes)),)


def _relative_cell(relative: Relative | None) -> Cell:
    if relative is None:
        return Cell("-")
    return Cell(percent(relative.error), f"time {number(relative.time, 2)}")


def _median_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    return Cell(percent(errors.median), f"time {number(ratios.median, 2)}, {count(errors.count, 'set')}")


def _quartile_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    between = f"time {number(ratios.first, 2)} to {number(ratios.third, 2)}"
    return Cell(f"{percent(errors.first)} to {percent(errors.third)}", between)


def _worst_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    return Cell(percent(errors.worst), f"time {number(ratios.worst, 2)}")


def table_6(results: Results) -> tuple[Block, ...]:
    """Return Table 6: fits that did not finish."""
    troubles = unfinished(results.lines)
    if not troubles:
        return ("Every fit finished." if results.lines else NO_FITS,)
    rows = []
    for (experiment, name, method, status, reason), fits in troubles.items():
        fit = f"{set_name(name)}, {method_name(method)}"
        rows.append(Row(tuple(map(Cell, (fit, experiment, status_word(status), str(fits), reason)))))
    caption = f"Fits without results, and why. {results.budget}"
    header = ("set, method", "experiment", "status", "fits", "reason")
    return (Table("Table 6", caption, header, tuple(rows), wordy=True),)
