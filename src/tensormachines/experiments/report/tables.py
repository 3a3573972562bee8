"""Results to the tables of the report: their rows, captions and notes."""

from __future__ import annotations

from collections import Counter

from ...datasets import SETS
from ..printed import PRINTED, TEST_ROWS, Printed
from .curves import Point, Quartiles, Relative, cheapest, over_sets, printed_relatives
from .document import NO_FITS, Block, Cell, Row, Table
from .labels import (
    STATUS_WORDS,
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
    times,
    whole,
)
from .results import Results
from .run_facts import DataSet, unfinished


def table_1(results: Results) -> Table:
    """The data sets."""
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
        about = Cell(
            _standing(data_set, results),
            SETS[data_set.name].note.replace("`", "") if data_set.used and data_set.name in SETS else "",
        )
        rows.append(Row((Cell(set_name(data_set.name)), about, Cell(task), Cell(degree), *sizes)))
    caption = f"The paper's sets and what stands here for them; below each size the paper's. {results.budget}"
    return Table(
        "Table 1",
        caption,
        ("set", "what it is", "task", "q", "training rows", "test rows", "columns d"),
        tuple(rows),
        wordy=True,
    )


def _standing(data_set: DataSet, results: Results) -> str:
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
        return "like the paper's set, but not set beside its figures"
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
    # A fit is skipped where it would take too long: the curve ends there, which is no failure of what is on
    # it.
    troubles = Counter(
        STATUS_WORDS.get(status, status) for status in statuses if curve.best is None or status != "skipped"
    )
    if curve.best is None:
        return Cell(listing(list(troubles)), count(len(curve.trouble), "fit"))
    most = max(point.error.count for point in curve.points)
    parts = [seconds(curve.best.seconds.mean), _size(curve.best, method)]
    if curve.best.error.count < most:
        parts.append(f"{curve.best.error.count} of {most} trials")
    parts += [f"{number_} {word}" for word, number_ in troubles.items()]
    winner = results.best(name, results.winner(name) or "")
    strong = (
        winner is not None and method != "krr" and number(curve.best.error.mean) == number(winner.error.mean)
    )  # as the paper has it
    return Cell(str(curve.best.error), " · ".join(part for part in parts if part), strong)


def _paper_cell(cell: Printed | None, method: str, strong: bool) -> Cell:
    if cell is None:
        return Cell("-")
    size = (
        ""
        if cell.size is None
        else (f" · {cell.size:,} features" if method == "craftmaps" else f" · r = {cell.size}")
    )
    return Cell(number(cell.error), f"{cell.seconds:,g} s{size}", strong)


def table_2(results: Results) -> tuple[Block, ...]:
    """Error and seconds of every method: the paper's sets beside the printed figures, and apart from them the
    relatives.
    """
    if not results.used:
        return (NO_FITS,)
    others = [data_set for data_set in results.used if not data_set.faithful]
    blocks: list[Block] = []
    if results.faithful:
        caption = f"The paper's own sets: test error, CPU seconds of the fit (rank or features), ours and the printed. {results.budget}"
        blocks.append(_error_table(results, "Table 2", caption, results.faithful))
    if others:
        caption = f"Relatives of the paper's sets: test error, CPU seconds of the fit (rank or features). {results.budget}"
        note = "Other rows or another coding, other figures: the printed ones do not belong beside them. Table 1 says what each set is."
        blocks.append(
            _error_table(results, "Table 2b" if results.faithful else "Table 2", caption, others, (note,))
        )
    return tuple(blocks)


def _error_table(
    results: Results, number_: str, caption: str, sets: list[DataSet], notes: tuple[str, ...] = ()
) -> Table:
    names = [data_set.name for data_set in sets]
    methods = [
        method for method in results.methods if any((name, method) in results.compared for name in names)
    ]
    rows = []
    for data_set in sets:
        heading = Cell(set_name(data_set.name), _whose(data_set))
        rows.append(
            Row(
                (heading, *(_our_cell(results, data_set.name, method) for method in methods)),
                "ours" if data_set.faithful else "",
            )
        )
        if data_set.faithful:
            printed = PRINTED[data_set.name]
            lowest = min(cell.error for method, cell in printed.items() if method != "krr")
            cells = [(printed.get(method), method) for method in methods]
            shown = [
                _paper_cell(cell, method, cell is not None and method != "krr" and cell.error == lowest)
                for cell, method in cells
            ]
            rows.append(Row((Cell(set_name(data_set.name), "paper"), *shown), "paper"))
    best = (
        "Bold: the lowest mean error, KRR left aside as in the paper. ± is the standard deviation over trials. "
        "Of each method's curve the value with the lowest mean test error is shown; the paper selects by test error as well."
    )
    return Table(number_, caption, ("set", *headings(methods)), tuple(rows), (best, *dagger(methods), *notes))


def _whose(data_set: DataSet) -> str:
    """Below a set's name: ours, where the paper's row follows, and on how many rows where they are fewer."""
    if not data_set.faithful:
        return ""
    return f"ours, {whole(data_set.rows)} rows" if data_set.capped else "ours"


def table_3(results: Results) -> tuple[Block, ...]:
    """Time relative to KRR on the paper's sets, beside the printed ratio."""
    rows = []
    for data_set in results.faithful:
        for method in results.methods:
            ours, printed = results.relative.get((data_set.name, method)), PRINTED[data_set.name].get(method)
            if ours is not None and printed is not None:
                rows.append(_time_row(results, data_set.name, method, ours, printed))
    if not rows:
        return (NO_FITS,)
    caption = f"Time relative to KRR, ours and printed, and the cheapest fit on the curve that reaches the printed error. {results.budget}"
    header = (
        "set, method",
        "time / KRR's, ours",
        "printed",
        "better by",
        "printed error",
        "reached in",
        "with",
        "time / KRR's",
        "better by",
    )
    note = "Better by: the printed ratio over ours. A dash: no fit on the curve reached the printed error."
    return (Table("Table 3", caption, header, tuple(rows), (note,)),)


def _time_row(results: Results, name: str, method: str, ours: Relative, printed: Printed) -> Row:
    baseline, curve = results.best(name, "krr"), results.compared[(name, method)]
    ratio = printed.relative_time(PRINTED[name]["krr"])
    first = cheapest(point for point in curve.points if printed.reached_by(point.error.mean))
    reached: tuple[Cell, ...] = (Cell("-"),) * 4
    if first is not None and baseline is not None and first.seconds.mean > 0:
        relative = first.seconds.mean / baseline.seconds.mean
        reached = (
            Cell(seconds(first.seconds.mean)),
            Cell(_major(first, method)),
            Cell(number(relative, 2)),
            Cell(times(ratio / relative)),
        )
    factor = results.time_factor(name, method)
    heading = Cell(f"{set_name(name)}, {method_name(method)}")
    return Row(
        (
            heading,
            Cell(number(ours.time, 2)),
            Cell(number(ratio, 2)),
            Cell(times(factor)),
            Cell(number(printed.error)),
            *reached,
        )
    )


def _major(point: Point, method: str) -> str:
    return (
        ""
        if point.at is None
        else f"{point.at:,.6g}\N{NO-BREAK SPACE}{major_name(method, point.value('major_name'))}"
    )


def table_4(results: Results) -> tuple[Block, ...]:
    """Chosen parameters, and how many numbers each model holds."""
    rows = []
    for data_set in results.used:
        for method in results.methods:
            point = results.best(data_set.name, method)
            if point is not None:
                rows.append(_parameter_row(results, data_set, method, point))
    if not rows:
        return (NO_FITS,)
    caption = f"Minor parameters chosen by cross-validation, the major one by test error, and the numbers in the fitted model. {results.budget}"
    header = (
        "set, method",
        "major",
        "minor parameters",
        "candidates",
        "error in CV",
        "numbers in the model",
        "multiples of d",
    )
    note = "The paper: at most 72 d for a Tensor Machine, at least 400 d for CRAFTMaps."
    return (Table("Table 4", caption, header, tuple(rows), (note,), wordy=True),)


def _parameter_row(results: Results, data_set: DataSet, method: str, point: Point) -> Row:
    minor = [
        (name.removeprefix("param_"), point.value(name))
        for name in sorted(point.lines[-1])
        if name.startswith("param_")
    ]
    named = ", ".join(
        f"{name} {f'{value:.3g}' if isinstance(value, float) else value}"
        for name, value in minor
        if value is not None
    )
    tuning = results.tuned.get((data_set.name, method))
    size = point.mean("parameters")
    return Row(
        (
            Cell(f"{set_name(data_set.name)}, {method_name(method)}"),
            Cell(_major(point, method) or "-"),
            Cell(named or "-"),
            Cell(f"{tuning.candidates} in {tuning.folds or '?'} folds" if tuning else "-"),
            Cell(number(tuning.error) if tuning else "-"),
            Cell(whole(size)),
            Cell(f"{number(size / data_set.columns, 2)} d" if size and data_set.columns else "-"),
        )
    )


def table_5(results: Results) -> tuple[Block, ...]:
    """Error and time relative to KRR set by set, with their quartiles."""
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
    same = [set_name(data_set.name) for data_set in results.used if data_set not in results.counted]
    for title, over in (
        ("ours, over sets", over_sets(results.relative)),
        ("paper, over ten sets", over_sets(printed)),
    ):
        for heading, cell in (
            ("Median", _median_cell),
            ("Quartiles", _quartile_cell),
            ("Worst", _worst_cell),
        ):
            cells = [cell(*over[method]) if method in over else Cell("-") for method in methods]
            rows.append(Row((Cell(heading, title), *cells)))
    again = (
        [f"{listing(same)}: rows that are counted already, left out of what is said over sets."]
        if same
        else []
    )
    caption = f"Error relative to KRR's, and below it time relative to KRR's. {results.budget}"
    return (Table("Table 5", caption, ("set", *headings(methods)), tuple(rows), (*dagger(methods), *again)),)


def _relative_cell(relative: Relative | None) -> Cell:
    return (
        Cell("-") if relative is None else Cell(percent(relative.error), f"time {number(relative.time, 2)}")
    )


def _median_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    return Cell(percent(errors.median), f"time {number(ratios.median, 2)}, {count(errors.count, 'set')}")


def _quartile_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    between = f"time {number(ratios.first, 2)} to {number(ratios.third, 2)}"
    return Cell(f"{percent(errors.first)} to {percent(errors.third)}", between)


def _worst_cell(errors: Quartiles, ratios: Quartiles) -> Cell:
    return Cell(percent(errors.worst), f"time {number(ratios.worst, 2)}")


def table_6(results: Results) -> tuple[Block, ...]:
    """What did not finish."""
    troubles = unfinished(results.lines)
    if not troubles:
        return ("Every fit finished." if results.lines else NO_FITS,)
    rows = []
    for (experiment, name, method, status, reason), number_ in troubles.items():
        word = STATUS_WORDS.get(status, status)
        cells = (f"{set_name(name)}, {method_name(method)}", experiment, word, str(number_), reason)
        rows.append(Row(tuple(Cell(text) for text in cells)))
    caption = f"Fits without figures, and why. {results.budget}"
    return (
        Table(
            "Table 6",
            caption,
            ("set, method", "experiment", "status", "fits", "reason"),
            tuple(rows),
            wordy=True,
        ),
    )
