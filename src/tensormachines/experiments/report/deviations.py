"""What was done otherwise than in the paper: always, and in the run at hand."""

from __future__ import annotations

from ...datasets import SETS
from .curves import curves
from .labels import NOT_IN_PAPER, RELATIVES, count, listing, method_name, set_name, span, whole
from .results import Results
from .run_facts import unfinished

SCALING_ROWS = 1_100_000  # that Figure 4 of the paper goes to
DEVIATIONS = (
    "Another machine and other software: absolute seconds are not comparable with the printed ones. "
    "Times are therefore compared as ratios to kernel ridge regression (KRR) on the same machine.",
    "Seconds are CPU seconds of one thread, of the one line model.fit. "
    "The paper reports the running time of MATLAB programs on a machine of 24 cores. "
    "Two runs may have gone side by side on two cores, from which CPU seconds suffer a little.",
    "Preprocessing (columns of unit norm, then rows of unit norm) is done before the timed line. "
    "The target of a regression has mean 0 and variance 1 for every method; errors are in its own units.",
    "KRR works in float64, all other methods in float32.",
    "Apple's time is that of the implementation here; the paper prints the errors of a MATLAB program and the seconds of Vowpal Wabbit.",
    "The value of the major parameter is that of the lowest mean test error on its curve. "
    "The paper selects by test error as well: its errors are somewhat optimistic for it, and so are these.",
    "The minor parameters are chosen at one value of the major parameter, the same for all sets. The paper does not say at which.",
    "The curve is raised until two steps together improve the mean test error by less than 0.02 of KRR's error. The paper looks at one "
    "step, which would end a curve on the plateau of its first iterations. A curve also ends where a fit reaches its time limit, or is "
    "expected to take longer than the profile allows.",
    *(
        f"{method_name(method)}, {text}, is not in the paper: its claims are judged without it."
        for method, text in NOT_IN_PAPER.items()
    ),
    "Factorization machines (FM) are fitted where q = 2; the paper shows them on Census alone.",
)


def deviations_of_run(results: Results) -> list[str]:
    """What only the lines can tell: sets, rows, folds, candidates, trials, and what did not finish."""
    return [
        *_sets(results),
        *_fewer_rows(results),
        *_selection(results),
        *_trials(results),
        *_ended_early(results),
    ]


def _sets(results: Results) -> list[str]:
    found = []
    absent = [set_name(data_set.name) for data_set in results.sets if data_set.reason]
    if absent:
        found.append(f"Not at hand: {listing(absent)} (Table 1 says why).")
    used = {data_set.name for data_set in results.used}
    placed = [
        f"{set_name(RELATIVES[name])} by {name}"
        for name in RELATIVES
        if name in used and RELATIVES[name] not in used
    ]
    if placed:
        found.append(
            f"Represented by relatives under their own names, whose figures are never set beside the printed ones: {listing(placed)}."
        )
    if any(line.get("set") == "ebay_like" and line.get("experiment") != "load" for line in results.lines):
        found.append(
            "The constants of ebay_like were chosen so that errors come out near those that the paper prints for the private data: "
            "that they agree is no evidence."
        )
    return found


def _fewer_rows(results: Results) -> list[str]:
    found = []
    for what, field in (("Training", "rows"), ("Test", "test_rows")):
        sizes = {
            s.name: (getattr(s, field) or 0, getattr(SETS[s.name], field))
            for s in results.used
            if s.name in SETS
        }
        capped = [
            f"{set_name(name)} {whole(ours)} of {whole(all_)}"
            for name, (ours, all_) in sizes.items()
            if 0 < ours < all_
        ]
        if capped:
            found.append(f"{what} rows were capped: {listing(capped)}.")
    fewer = []
    for data_set in results.used:
        point = results.best(data_set.name, "krr")
        rows = point.value("rows") if point else None
        if rows and data_set.rows and rows < data_set.rows:
            fewer.append(f"{set_name(data_set.name)} {whole(rows)}")
    if fewer:
        found.append(
            f"KRR was fitted to a random part of the rows (the paper's limit is 40,000): {listing(fewer)}."
        )
    most = max(
        (
            point.at or 0
            for curve in curves(results.lines, "scaling", "rows").values()
            for point in curve.points
        ),
        default=SCALING_ROWS,
    )
    if most < SCALING_ROWS:
        found.append(
            f"Figure 4 goes to {whole(most)} training rows (the paper: {whole(SCALING_ROWS)}), with one fit each."
        )
    return found


def _selection(results: Results) -> list[str]:
    if not results.tuned:
        return []
    folds = sorted({tuning.folds for tuning in results.tuned.values() if tuning.folds})
    candidates = [tuning.candidates for tuning in results.tuned.values()]
    found = [
        f"Cross-validation had {listing([str(fold) for fold in folds]) or 'an unknown number of'} folds (the paper: 10) "
        f"over {min(candidates)} to {max(candidates)} candidates a method and set; the paper does not give its grids."
    ]
    fewer = []
    for data_set in results.used:
        rows = [
            tuning.rows
            for (name, _), tuning in results.tuned.items()
            if name == data_set.name and tuning.rows
        ]
        if rows and min(rows) < (data_set.rows or 0):
            fewer.append(f"{set_name(data_set.name)} {span(rows)}")
    if fewer:
        found.append(
            f"Minor parameters were chosen on fewer training rows (the paper: on all): {listing(fewer)}. "
            "A penalty that is added to a mean loss was then lowered with the square root of the number of rows."
        )
    return found


def _trials(results: Results) -> list[str]:
    trials: dict[str, set[int]] = {}
    for (_, method), curve in results.compared.items():
        trials.setdefault(method, set()).update(point.error.count for point in curve.points)
    numbers = sorted({number for found in trials.values() for number in found})
    if not numbers:
        return []
    once = [method_name(method) for method in results.methods if trials[method] == {1}]
    why = (
        f" Only one of {listing(once)}, where nothing is random, but for KRR the rows if it has a part of them."
        if once
        else ""
    )
    return [f"Trials a setting: {listing([str(number) for number in numbers])} (the paper: 3).{why}"]


def _ended_early(results: Results) -> list[str]:
    """Curves that were ended for their time are no failures: what is on them stands."""
    found = []
    ended: dict[str, list[str]] = {}
    for (name, method), curve in results.compared.items():
        if curve.points and any(line.get("status") == "skipped" for line in curve.trouble):
            ended.setdefault(name, []).append(method_name(method))
    if ended:
        curves = "; ".join(f"{set_name(name)}: {listing(methods)}" for name, methods in ended.items())
        found.append(
            f"Curves that ended because the next fit was expected to take longer than the profile allows: {curves}."
        )
    failed = sum(
        number for (*_, status, _), number in unfinished(results.lines).items() if status != "skipped"
    )
    if failed:
        found.append(f"{count(failed, 'fit')} gave no figures (Table 6).")
    return found
