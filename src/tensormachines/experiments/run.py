"""The paper's experiments, fit by fit.

Every fit has a key and leaves a line (see records.py); a fit whose line is there is not repeated, so a run
that was stopped goes on where it was. For every set the minor parameters of a method are chosen by
cross-validation on training rows; the major one is raised until the test error no longer falls; then come the
experiments that use these settings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from inspect import signature
from pathlib import Path
from typing import Any

from ..datasets import SETS, DataSet, UnavailableError, is_at_hand, load, unit_scaling
from .fits import Fit, Rows, Search
from .methods import METHODS, Grid, Method, Params
from .printed import SATURATED
from .profiles import Profile
from .progress import Progress
from .records import Ledger, Line, machine, versions
from .report.curves import Point, lowest, paths
from .report.labels import SAME_ROWS, kin
from .worker import Outcome, attempt

EXPERIMENTS = ("compare", "rank", "starts", "scaling", "bound")
SETS_TO_RUN = (
    "indoor",
    "indoor_heard",
    "year",
    "census",
    "slice",
    "buzz",
    "gisette",
    "adult",
    "forest",
    "ebay",
    "cod_rna",
)
RANK_SETS, STARTS_SETS, SCALING_SET, BOUND_SET = ("census", "slice"), ("census", "adult"), "ebay", "forest"
RANK_METHODS, SCALING_METHODS = ("tm-batch", "tm-sfo", "fm"), ("tm-sfo", "craftmaps")
# rows times columns that a selection can afford: with few rows small ranks and large penalties seem best
SELECT_NUMBERS = 4_000_000
MOST_RANK = 5
BOUND_PARAMS: Params = {
    "rank": 3,
    "alpha": 0.0,
    "max_norm": 3.0,
}  # a class of functions that is the same for any number of rows
BOUND_ITERATIONS = 100


class NoParametersError(RuntimeError):
    """The minor parameters of a method could not be chosen on a set."""


class FitFailedError(RuntimeError):
    """A fit failed in a run that is to end at the first one that does."""


class Run:
    """The experiments of one profile, their lines in ``folder / "lines.jsonl"``."""

    def __init__(
        self,
        profile: Profile,
        folder: Path,
        data: Path | None = None,
        *,
        retry: bool = False,
        fail_fast: bool = False,
    ):
        self.profile = profile
        self.ledger = Ledger(folder / "lines.jsonl")
        others = sorted({key.partition("/")[0] for key in self.ledger.by_key} - {profile.name})
        if others:  # their fits would stand on one path
            raise ValueError(
                f"{self.ledger.path} has lines of the profile {others[0]}: name another --output for {profile.name}."
            )
        self.data = data
        self.retry = retry
        self.fail_fast = fail_fast
        self._elapsed_before = max(
            (line.get("elapsed", 0.0) for line in self.ledger.by_key.values()), default=0.0
        )
        self._loaded: tuple[str, Rows | None] = ("", None)
        self._unavailable: dict[str, str] = {}
        self._found: dict[str, str | None] = {}
        self.progress = Progress({})

    # What is run

    def all(
        self,
        sets: Sequence[str],
        methods: Sequence[str],
        experiments: Sequence[str],
        among_others: bool = False,
    ) -> None:
        """All parts that are asked for, set by set, so that only one is in memory; ``among_others`` that
        write to the terminal too.
        """
        parts = list(self._parts(sets, methods, experiments))
        self.progress = Progress({_title(part): self._guess(*part) for part in parts}, alone=not among_others)
        for part in parts:
            experiment, name, method = part
            self.progress.start(_title(part))
            if name not in self._unavailable:
                self._one_part(experiment, SETS[name], METHODS[method])
            self.progress.finish(_title(part))
        self.progress.end()

    def guess(self, wanted: str, methods: Sequence[str], experiments: Sequence[str]) -> float:
        """Roughly how many seconds a set takes."""
        return sum(self._guess(*part) for part in self._parts([wanted], methods, experiments))

    def _parts(
        self, sets: Sequence[str], methods: Sequence[str], experiments: Sequence[str]
    ) -> Iterator[tuple[str, str, str]]:
        for wanted in sets:
            name = self._at_hand(wanted)
            family = SETS[wanted].paper_name or wanted
            if name is None:
                continue
            if "compare" in experiments:
                yield from (
                    ("compare", name, method)
                    for method in methods
                    if method != "fm" or SETS[name].degree == 2
                )
            if "rank" in experiments and family in RANK_SETS:
                yield from (
                    ("rank", name, method)
                    for method in RANK_METHODS
                    if method in methods and (method != "fm" or SETS[name].degree == 2)
                )
            if "starts" in experiments and family in STARTS_SETS and "tm-batch" in methods:
                yield "starts", name, "tm-batch"
            if "scaling" in experiments and family == SCALING_SET:
                yield from (("scaling", name, method) for method in SCALING_METHODS if method in methods)
            if "bound" in experiments and family == BOUND_SET and "tm-batch" in methods:
                yield "bound", name, "tm-batch"

    def _one_part(self, experiment: str, known: DataSet, method: Method) -> None:
        run: Callable[[DataSet, Method], None] = getattr(self, f"_{experiment}")
        try:
            run(known, method)
        except UnavailableError as reason:
            self._unavailable[known.name] = str(reason)
            self._skip(known, str(reason))
        except NoParametersError as reason:
            # In the place of the first fit, which a later try puts there.
            facts = self._facts(
                "compare", known, method, trial=0, n_rows=0, major=next(iter(method.ladder), None)
            )
            self._append(facts, Outcome("failed", str(reason)))

    # The experiments

    def _compare(self, known: DataSet, method: Method) -> None:
        """Table 2, Figures 1 and 3: the major parameter is raised until two steps together gain less than
        SATURATED of KRR's error.

        The paper looks at one step; the first iterations on a plateau would end it there.
        """
        params, n_rows = self._chosen(known, method), self._n_rows(known, method)
        trials = self.profile.kernel_trials if method.name == "krr" else self.profile.trials
        if "random_state" not in signature(method.regressor).parameters or (
            method.name == "krr" and n_rows == self._n_rows(known)
        ):
            trials = 1  # nothing is drawn at random: all would be alike
        for number, major in enumerate(method.ladder[: self.profile.rungs] or (None,)):
            so_far = [
                point for point in self._points(known, method.name) if point.at in method.ladder[:number]
            ]
            if self._is_saturated(known, so_far):
                return
            expected = _expected_seconds(so_far)
            if expected > self.profile.rung_seconds:
                reason = f"about {expected:.0f} s a fit expected, more than the {self.profile.rung_seconds:.0f} s of this profile"
                facts = self._facts("compare", known, method, 0, n_rows, params, major)
                before = self.ledger.by_key.get(facts["key"])
                if before is None or (before["status"] == "skipped" and before["reason"] != reason):
                    self._append(facts, Outcome("skipped", reason))
                return
            for trial in range(trials):
                facts = self._facts("compare", known, method, trial, n_rows, params, major)
                line = self._fit(facts, known, method, n_rows, params, major, trial)
                if line["status"] != "ok":
                    return

    def _rank(self, known: DataSet, method: Method) -> None:
        """Figure 2."""
        params, n_rows, major = (
            self._chosen(known, method),
            self._n_rows(known),
            self._best_major(known, method),
        )
        for rank in self.profile.ranks:
            for trial in range(self.profile.rank_trials):
                facts = self._facts("rank", known, method, trial, n_rows, {**params, "rank": rank}, major)
                self._fit(facts, known, method, n_rows, {**params, "rank": rank}, major, trial)

    def _starts(self, known: DataSet, method: Method) -> None:
        """How much the error depends on where the fit begins."""
        params, n_rows, major = (
            self._chosen(known, method),
            self._n_rows(known),
            self._best_major(known, method),
        )
        for trial in range(self.profile.starts):
            facts = self._facts("starts", known, method, trial, n_rows, params, major)
            self._fit(facts, known, method, n_rows, params, major, trial)

    def _scaling(self, known: DataSet, method: Method) -> None:
        """Figure 4."""
        chosen = self._chosen(known, method)
        major = self.profile.scaling_epochs if method.name == "tm-sfo" else self.profile.scaling_features
        for n_rows in self.profile.scaling_rows:
            params = method.carried_over(chosen, self._n_rows(known), n_rows)
            if "rank" in params:
                params = {**params, "rank": MOST_RANK}
            facts = self._facts("scaling", known, method, 0, n_rows, params, major)
            self._fit(
                facts, known, method, n_rows, params, major, 0, most_rows=max(self.profile.scaling_rows)
            )

    def _bound(self, known: DataSet, method: Method) -> None:
        """Theorem 1 beside the gap between training and test risk."""
        for n_rows in self.profile.bound_rows:
            for trial in range(self.profile.trials):
                facts = self._facts("bound", known, method, trial, n_rows, BOUND_PARAMS, BOUND_ITERATIONS)
                self._fit(
                    facts, known, method, n_rows, BOUND_PARAMS, BOUND_ITERATIONS, trial, with_bound=True
                )

    # Their parts

    def _is_saturated(self, known: DataSet, points: Sequence[Point]) -> bool:
        errors = [point.error.mean for point in points]
        baseline = lowest(self._points(known, "krr"))
        if baseline is None or len(errors) < 3:
            return False
        return min(errors[:-2]) - min(errors[-2:]) < SATURATED * baseline.error.mean

    def _best_major(self, known: DataSet, method: Method) -> float | None:
        best = lowest(self._points(known, method.name))
        return best.at if best else method.select_at

    def _points(self, known: DataSet, method: str) -> tuple[Point, ...]:
        """What the method did on the set so far, as the tables will have it."""
        lines = (
            line
            for line in self.ledger.by_key.values()
            if line["set"] == known.name and line.get("method") == method
        )
        path = paths(lines).get((known.name, method))
        return path.points if path else ()

    def _chosen(self, known: DataSet, method: Method) -> Params:
        """The minor parameters with the lowest error in cross-validation, for all rows."""
        grid = method.grid_of(self.profile.grids)
        n_rows = self._select_rows(known, method)
        prefix = f"{self.profile.name}/select/{known.name}/{method.name}/"
        if not any(
            key.startswith(prefix) and line["status"] == "ok" for key, line in self.ledger.by_key.items()
        ):
            self._select(known, method, grid, n_rows)
        lines = [
            line
            for key, line in self.ledger.by_key.items()
            if key.startswith(prefix) and line["status"] == "ok"
        ]
        if not lines:
            raise NoParametersError(
                f"no parameters could be chosen: {self.ledger.by_key[prefix + 'search']['reason']}"
            )
        best = min(lines, key=lambda line: line["error"])
        params = {name: best[f"param_{name}"] for name in grid}
        params = method.carried_over(params, best["rows"], self._n_rows(known, method))
        return params

    def _select_rows(self, known: DataSet, method: Method) -> int:
        """Training rows for cross-validation; the time of KRR grows with their cube."""
        rows, profile = self._n_rows(known, method), self.profile
        if profile.select_rows is None:
            return rows
        affordable = (
            0 if method.name == "krr" else min(profile.most_select_rows, SELECT_NUMBERS // known.columns)
        )
        return min(rows, max(profile.select_rows, affordable))

    def _select(self, known: DataSet, method: Method, grid: Grid, n_rows: int) -> None:
        failed = self.ledger.by_key.get(f"{self.profile.name}/select/{known.name}/{method.name}/search")
        if failed and not self.retry:
            return
        rows = self._rows(known)
        self.progress.fitting(f"{known.name}: {method.title}, choosing parameters")
        outcome = attempt(
            Search(method, rows, n_rows, grid, self.profile.folds),
            self.profile.limit_seconds,
            self.progress.tick,
        )
        if outcome.status == "ok" and not outcome.value:
            outcome = Outcome("failed", "no candidate has a finite error")
        facts = {**self._facts("select", known, method, 0, n_rows), "folds": self.profile.folds}
        if outcome.status != "ok":
            self._append(facts, outcome)
        lines = []
        for params, error, spread in outcome.value or []:
            named = ",".join(f"{name}={value:g}" for name, value in params.items())
            line = {
                **facts,
                "key": facts["key"].replace("/search", f"/{named}"),
                "error_spread": spread,
                **_flat(params),
            }
            lines.append(
                self._line(line, Outcome("ok", value={"error": error}, peak_megabytes=outcome.peak_megabytes))
            )
        self.ledger.append(
            *lines
        )  # all at once: half of a grid would be taken for the whole by a run that goes on
        self.progress.fitted(
            f"{len(outcome.value)} candidates"
            if outcome.status == "ok"
            else f"{outcome.status}: {outcome.reason}"
        )

    def _fit(
        self,
        facts: Line,
        known: DataSet,
        method: Method,
        n_rows: int,
        params: Params,
        major: float | None,
        trial: int,
        *,
        most_rows: int | None = None,
        with_bound: bool = False,
    ) -> Line:
        """The line of a fit, which is done unless it is there."""
        before = self.ledger.by_key.get(facts["key"])
        if before and (before["status"] == "ok" or not (self.retry or before["status"] == "skipped")):
            return before  # one that was skipped as too long is not expected to be so any more
        rows = self._rows(known, most_rows)
        value = "" if major is None else f" {method.major}={major:g}"
        self.progress.fitting(f"{known.name}: {method.title}{value}, {n_rows:,} rows, trial {trial}")
        part = (
            trial if method.name == "krr" else 0
        )  # its trials differ in their rows, those of the others in what they draw at random
        work = Fit(
            method, rows, min(n_rows, rows.data.X_train.shape[0]), params, major, trial, part, with_bound
        )
        line = self._append(facts, attempt(work, self.profile.limit_seconds, self.progress.tick))
        self.progress.fitted(
            f"error {line['error']:.4g}, {line['seconds']:.3g} s"
            if line["status"] == "ok"
            else f"{line['status']}: {line['reason']}"
        )
        return line

    def _append(self, facts: Line, outcome: Outcome) -> Line:
        line = self._line(facts, outcome)
        self.ledger.append(line)
        if self.fail_fast and line["status"] in ("failed", "crashed"):
            raise FitFailedError(f"{line['key']}: {line['reason']}")
        return line

    def _line(self, facts: Line, outcome: Outcome) -> Line:
        value = outcome.value or {}
        status, reason = outcome.status, outcome.reason
        if any(isinstance(number, float) and not math.isfinite(number) for number in value.values()):
            status, reason, value = "failed", "a result is not finite", {}
        return {
            **facts,
            **value,
            "peak_megabytes": outcome.peak_megabytes,
            "status": status,
            "reason": reason,
            "versions": versions(),
            "machine": machine(),
            "when": datetime.now(UTC).isoformat(timespec="seconds"),
            "limit_seconds": self.profile.limit_seconds,
            "elapsed": round(self._elapsed_before + time.monotonic() - self.progress.began, 1),
        }

    def _facts(
        self,
        experiment: str,
        known: DataSet,
        method: Method,
        trial: int,
        n_rows: int,
        params: Params | None = None,
        major: float | None = None,
    ) -> Line:
        """What is known of a fit before it is done."""
        where = {"select": "search", "scaling": f"rows={n_rows}", "bound": f"rows={n_rows}"}.get(
            experiment, f"{method.major}={major}"
        )
        where += f"/rank={params['rank']}" if experiment == "rank" and params else ""
        where += "" if experiment == "select" else f"/trial={trial}"
        return {
            "key": f"{self.profile.name}/{experiment}/{known.name}/{method.name}/{where}",
            "profile": self.profile.name,
            "experiment": experiment,
            "set": known.name,
            "faithful": known.faithful,
            "method": method.name,
            "task": known.task,
            "degree": known.degree,
            "rows": n_rows,
            "columns": known.columns,
            "test_rows": min(known.test_rows, self.profile.test_rows or known.test_rows),
            "major_name": method.major,
            "major": major,
            "trial": trial,
            **_flat(params or {}),
        }

    # Data

    def _n_rows(self, known: DataSet, method: Method | None = None) -> int:
        """Training rows of a fit."""
        most = self.profile.generated_rows if known.name == "ebay_like" else self.profile.rows
        rows = min(known.rows, most or known.rows)
        return min(rows, self.profile.kernel_rows) if method is not None and method.name == "krr" else rows

    def _rows(self, known: DataSet, most_rows: int | None = None) -> Rows:
        """The set in the paper's scaling; the last one is kept."""
        wanted = max(
            most_rows or 0,
            self._n_rows(known),
            *(self.profile.bound_rows if known.paper_name == BOUND_SET else ()),
        )
        name, rows = self._loaded
        if (
            rows is None
            or name != known.name
            or (rows.data.X_train.shape[0] < wanted and known.name == "ebay_like")
        ):
            self._loaded = "", None  # two sets need not be in memory at a time
            self.progress.fitting(f"{known.name}: loading")
            loaded = load(
                known.name,
                self.data,
                rows=wanted,
                test_rows=self.profile.test_rows,
                download=self.profile.download,
            )
            rows = Rows(unit_scaling(loaded), known.task, known.degree)
            self._loaded = known.name, rows
        return rows

    def _at_hand(self, name: str) -> str | None:
        """The set itself, or the relative in its place; looked for once."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> str | None:
        """A set that cannot be had leaves a line that says why."""
        known = SETS[name]
        if is_at_hand(name, self.data) or any(
            line["set"] == name and line["status"] == "ok" for line in self.ledger.by_key.values()
        ):
            return name
        try:
            load(
                name,
                self.data,
                rows=1,
                download=self.profile.download,
                progress=self.progress.downloading(name),
            )
        except UnavailableError as reason:
            self._skip(known, str(reason))
            stand_ins = [other for other in kin(name)[1:] if other not in SAME_ROWS]
            return self._at_hand(stand_ins[0]) if stand_ins else None
        return name

    def _skip(self, known: DataSet, reason: str) -> None:
        print(f"skipped {reason}", file=self.progress.stream, flush=True)
        facts: Line = {
            "key": f"{self.profile.name}/load/{known.name}",
            "profile": self.profile.name,
            "experiment": "load",
            "set": known.name,
        }
        facts |= {
            "faithful": known.faithful,
            "task": known.task,
            "degree": known.degree,
            "rows": known.rows,
            "columns": known.columns,
        }
        self._append({**facts, "test_rows": known.test_rows}, Outcome("skipped", reason))

    def _guess(self, experiment: str, name: str, method: str) -> float:
        """Roughly how many seconds a part takes: only its proportion to the others matters."""
        known, profile = SETS[name], self.profile
        rows = self._n_rows(known, METHODS[method])
        if method == "krr":
            return 2 + 7e-12 * rows**3 * profile.kernel_trials
        size = rows * known.columns * known.degree * profile.trials
        return (
            2
            + size
            * {"compare": 4e-6, "rank": 1e-6, "starts": 1e-6, "scaling": 2e-7, "bound": 1e-7}[experiment]
        )


def _expected_seconds(points: Sequence[Point]) -> float:
    """Of a fit at the next value of the major parameter: as much longer again as the last was than the one
    before.
    """
    seconds = [point.seconds.mean for point in points]
    return seconds[-1] * max(1.0, seconds[-1] / seconds[-2]) if len(seconds) > 1 else 0.0


def _title(part: tuple[str, str, str]) -> str:
    return "/".join(part)


def _flat(params: Params) -> dict[str, Any]:
    return {f"param_{name}": value for name, value in params.items()}
