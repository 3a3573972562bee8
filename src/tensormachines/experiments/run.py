"""The paper's experiments, fit by fit.

Every fit has a key and leaves a line (see records.py). A fit that has a line is not repeated, so a run that
was stopped continues where it ended. For each set and method, the minor parameters are chosen by
cross-validation on training rows; the major one is raised until the test error no longer falls; the other
experiments then use these settings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from math import sqrt
from pathlib import Path

from ..datasets import SETS, DataSet, UnavailableError
from .data_on_hand import BOUND_SET, DataOnHand
from .fits import Fit, Search
from .methods import METHODS, Method, Params
from .printed import PRINTED, SATURATED
from .profiles import Profile
from .progress import Progress
from .recorder import Attempt, Recorder, Setting, prefixed
from .records import Line
from .report.curves import Point, curves, last_gain, lowest
from .report.labels import SAME_ROWS, SET_ORDER, in_order
from .worker import Outcome, attempt

SETS_TO_RUN = tuple(name for name in SET_ORDER if name in PRINTED)
MOST_RANK = 5
# A class of functions that is the same for any number of rows.
BOUND_PARAMS: Params = {"rank": 3, "alpha": 0.0, "max_norm": 3.0}
BOUND_ITERATIONS = 100


class NoParametersError(RuntimeError):
    """The minor parameters of a method could not be chosen on a set."""


class Run:
    """The experiments of one profile, with their lines in ``folder / "lines.jsonl"``.

    ``methods`` are the methods by name, and ``attempt`` calls a piece of work in a child process.
    """

    def __init__(
        self,
        profile: Profile,
        folder: Path,
        data: Path | None = None,
        *,
        retry: bool = False,
        fail_fast: bool = False,
        methods: Mapping[str, Method] = METHODS,
        attempt: Attempt = attempt,
    ):
        self.profile = profile
        self.recorder = Recorder(profile, folder, attempt, fail_fast=fail_fast)
        self.data = DataOnHand(profile, data, self.recorder)
        self.retry = retry
        self.methods = methods
        self._unavailable: set[str] = set()

    def all(
        self,
        sets: Sequence[str],
        methods: Sequence[str],
        experiments: Collection[str],
        among_others: bool = False,
    ) -> None:
        """Run everything requested, set by set, so that only one set is in memory.

        ``among_others`` says that other processes write to the terminal too.
        """
        parts = list(self._parts(sets, methods, experiments))
        guesses = {"/".join(part): self._guess(*part) for part in parts}
        progress = self.recorder.progress = Progress(guesses, alone=not among_others)
        for experiment, name, method in parts:
            progress.start(f"{experiment}/{name}/{method}")
            if name not in self._unavailable:
                self._run_part(experiment, SETS[name], self.methods[method])
            progress.finish()
        progress.end()

    def guess(self, wanted: str, methods: Sequence[str], experiments: Collection[str]) -> float:
        """Return roughly how many seconds a set takes."""
        return sum(self._guess(*part) for part in self._parts([wanted], methods, experiments))

    def _guess(self, experiment: str, name: str, method: str) -> float:
        """Return roughly how many seconds a part takes; only its proportion to the others matters."""
        known, profile = SETS[name], self.profile
        rows = self.data.n_rows(known, self.methods[method])
        if method == "krr":
            n_alphas = len(self.methods[method].grid_of(profile.grids)["alpha"])
            searched = n_alphas / 8  # half of the rows take an eighth of the time
            return 2 + 6e-12 * rows**3 * (profile.kernel_trials + searched)
        numbers = rows * known.columns * known.degree * profile.trials
        # Large sets are searched on a part of their rows, and their ladders end sooner: no linear growth.
        return 2 + (0.4 * profile.rung_seconds + 0.03 * sqrt(numbers)) * EXPERIMENTS[experiment].cost

    def _parts(
        self, sets: Sequence[str], methods: Sequence[str], experiments: Collection[str]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield (experiment, set, method), with relatives in place of sets that are not available.

        Kernel ridge comes first, because curves end at a share of its error.
        """
        methods = in_order(methods, self.methods)
        for wanted in sets:
            name = self.data.find(wanted)
            if name is None:
                continue
            family = SETS[wanted].paper_name or wanted
            for title, experiment in EXPERIMENTS.items():
                own = () if name in SAME_ROWS else (family,)  # another coding is for the comparison alone
                if title in experiments and (not experiment.sets or set(own) & set(experiment.sets)):
                    for method in experiment.methods or methods:
                        if method in methods and (method != "fm" or SETS[name].degree == 2):
                            yield title, name, method

    def _run_part(self, experiment: str, known: DataSet, method: Method) -> None:
        try:
            EXPERIMENTS[experiment].run(self, known, method)
        except UnavailableError as reason:
            self._unavailable.add(known.name)
            self.recorder.skip_set(known, str(reason))
        except NoParametersError as reason:
            # In the place of the first fit, so that a later attempt replaces it. All experiments but
            # "uncentred" have the parameters of the comparison.
            centred = experiment != "uncentred"
            first = Setting(
                "compare" if centred else experiment,
                known,
                method,
                n_rows=0,
                major=next(iter(method.ladder), None),
                centred=centred,
            )
            self.recorder.append(first.facts(self.profile), Outcome("failed", str(reason)))

    # The experiments

    def compare(self, known: DataSet, method: Method) -> None:
        """Raise the major parameter, for Table 2 and Figures 1 and 3."""
        self._climb("compare", known, method)

    def uncentred(self, known: DataSet, method: Method) -> None:
        """Do the same with a target that keeps its mean, as that of the authors' programs.

        For KRR alone: the models of this package, and most rivals, standardise a target themselves.
        """
        self._climb("uncentred", known, method)

    def _climb(self, experiment: str, known: DataSet, method: Method) -> None:
        """Raise the major parameter until two steps gain less than SATURATED of KRR's error in total.

        The paper looks at one step, which would stop at a plateau of the first iterations.
        """
        chosen = self._tuned(experiment, known, method)
        n_trials = self.profile.kernel_trials if method.name == "krr" else self.profile.trials
        has_all_rows = method.name == "krr" and chosen.n_rows == self.data.n_rows(known)
        if has_all_rows or "random_state" not in signature(method.regressor).parameters:
            n_trials = 1  # nothing is drawn at random: all trials would be alike
        for number, major in enumerate(method.ladder[: self.profile.rungs] or (None,)):
            setting = replace(chosen, major=major)
            points = self._points(known, method.name, experiment)
            so_far = [point for point in points if point.at in method.ladder[:number]]
            if self._is_saturated(known, so_far) or self._takes_too_long(setting, so_far):
                return
            for trial in range(n_trials):
                if self._fit(replace(setting, trial=trial))["status"] != "ok":
                    return

    def rank(self, known: DataSet, method: Method) -> None:
        """Fit every rank, for Figure 2."""
        chosen = replace(self._tuned("rank", known, method), major=self._best_major(known, method))
        for rank in self.profile.ranks:
            for trial in range(self.profile.rank_trials):
                self._fit(replace(chosen, params={**chosen.params, "rank": rank}, trial=trial))

    def starts(self, known: DataSet, method: Method) -> None:
        """Fit from several random starts."""
        chosen = replace(self._tuned("starts", known, method), major=self._best_major(known, method))
        for trial in range(self.profile.starts):
            self._fit(replace(chosen, trial=trial))

    def scaling(self, known: DataSet, method: Method) -> None:
        """Fit to more and more rows, for Figure 4."""
        chosen = self._tuned("scaling", known, method)
        major = self.profile.scaling_epochs if method.name == "tm-sfo" else self.profile.scaling_features
        for n_rows in self.profile.scaling_rows:
            params = method.carried_over(chosen.params, chosen.n_rows, n_rows)
            if "rank" in params:
                params = {**params, "rank": MOST_RANK}
            self._fit(replace(chosen, n_rows=n_rows, params=params, major=major))

    def bound(self, known: DataSet, method: Method) -> None:
        """Compare the bound of Theorem 1 with the gap between training and test risk."""
        for n_rows in self.profile.bound_rows:
            for trial in range(self.profile.trials):
                self._fit(Setting("bound", known, method, n_rows, BOUND_PARAMS, BOUND_ITERATIONS, trial))

    # Their steps

    def _is_saturated(self, known: DataSet, points: Sequence[Point]) -> bool:
        gain = last_gain(points, lowest(self._points(known, "krr")))
        return gain is not None and gain < SATURATED

    def _takes_too_long(self, setting: Setting, so_far: Sequence[Point]) -> bool:
        """Record that a fit is skipped if it is expected to exceed the profile's seconds."""
        expected, limit = _expected_seconds(so_far), self.profile.rung_seconds
        if expected <= limit:
            return False
        reason = f"about {expected:.0f} s a fit expected, more than the {limit:.0f} s of this profile"
        facts = setting.facts(self.profile)
        before = self.recorder.ledger.by_key.get(facts["key"])
        if before is None or (before["status"] == "skipped" and before["reason"] != reason):
            self.recorder.append(facts, Outcome("skipped", reason))
        return True

    def _best_major(self, known: DataSet, method: Method) -> float | None:
        best = lowest(self._points(known, method.name))
        return best.at if best else method.select_at

    def _lines(self, known: DataSet, method: str) -> list[Line]:
        lines = self.recorder.ledger.by_key.values()
        return [line for line in lines if line["set"] == known.name and line.get("method") == method]

    def _points(self, known: DataSet, method: str, experiment: str = "compare") -> tuple[Point, ...]:
        """Return the curve of a method on a set so far, as the tables will show it."""
        curve = curves(self._lines(known, method), experiment).get((known.name, method))
        return curve.points if curve else ()

    def _tuned(self, experiment: str, known: DataSet, method: Method) -> Setting:
        """Return a fit to all rows, with the minor parameters of the lowest error in cross-validation."""
        centred = experiment != "uncentred"
        lines = [
            line
            for line in self._lines(known, method.name)
            if line["experiment"] == "select"
            and line["status"] == "ok"
            and line.get("centred", True) == centred
        ]
        grid = method.grid_of(self.profile.grids)
        if any(line.get(f"param_{name}") not in grid[name] for line in lines for name in grid):
            raise ValueError(
                f"{self.recorder.ledger.path} has candidates of {method.title} on {known.name} that this "
                "version does not try: give another --output, or delete the file."
            )
        best = min(lines or self._select(known, method, centred), key=lambda line: line["error"])
        params = {name: best[f"param_{name}"] for name in grid}
        n_rows = self.data.n_rows(known, method)
        params = method.carried_over(params, best["rows"], n_rows)
        return Setting(experiment, known, method, n_rows, params, centred=centred)

    def _select(self, known: DataSet, method: Method, centred: bool = True) -> list[Line]:
        """Cross-validate the grid and return the lines of its candidates."""
        n_rows, folds = self.data.select_rows(known, method), self.data.folds(known, method)
        setting = Setting("select", known, method, n_rows, centred=centred)
        facts = {**setting.facts(self.profile), "folds": folds}
        failed = self.recorder.ledger.by_key.get(facts["key"])
        if failed is None or self.retry:
            grid = method.grid_of(self.profile.grids)
            scaled = replace(self.data.load(known), centred=centred)
            search = Search(method, scaled, n_rows, grid, folds)
            self.recorder.progress.fitting(f"{known.name}: {method.title}, choosing parameters")
            outcome = self.recorder.attempt(search)
            if outcome.status == "ok" and outcome.value:
                return self._append_candidates(facts, outcome)
            if outcome.status == "ok":
                outcome = Outcome("failed", "no candidate has a finite error")
            failed = self.recorder.append(facts, outcome)
            self.recorder.progress.fitted(f"{outcome.status}: {outcome.reason}")
        raise NoParametersError(f"no parameters could be chosen: {failed['reason']}")

    def _append_candidates(self, facts: Line, outcome: Outcome) -> list[Line]:
        lines = []
        for params, error, spread in outcome.value:
            named = ",".join(f"{name}={value:g}" for name, value in params.items())
            key = facts["key"].replace("/search", f"/{named}")
            about = {**facts, "key": key, "error_spread": spread, **prefixed(params)}
            found = Outcome("ok", value={"error": error}, peak_megabytes=outcome.peak_megabytes)
            lines.append(self.recorder.line(about, found))
        # All in one write: a run that continues would take half of a grid for the whole.
        self.recorder.ledger.append(*lines)
        self.recorder.progress.fitted(f"{len(lines)} candidates")
        return lines

    def _fit(self, setting: Setting) -> Line:
        """Return the line of a fit, which is done unless the line exists."""
        facts = setting.facts(self.profile)
        before = self.recorder.ledger.by_key.get(facts["key"])
        if before and (before["status"] == "ok" or not (self.retry or before["status"] == "skipped")):
            return before  # a fit skipped as too slow is repeated: it is no longer expected to be
        known, method, major, trial = setting.known, setting.method, setting.major, setting.trial
        most_rows = max(self.profile.scaling_rows) if setting.experiment == "scaling" else 0
        data = replace(self.data.load(known, most_rows), centred=setting.centred)
        value = "" if major is None else f" {method.major}={major:g}"
        progress = self.recorder.progress
        progress.fitting(f"{known.name}: {method.title}{value}, {setting.n_rows:,} rows, trial {trial}")
        # Trials of KRR differ in their rows, those of the other methods in what they draw at random.
        part = trial if method.name == "krr" else 0
        n_rows = min(setting.n_rows, data.n_rows)
        with_bound = setting.experiment == "bound"
        work = Fit(method, data, n_rows, setting.params, major, trial, part, with_bound)
        line = self.recorder.append(facts, self.recorder.attempt(work))
        finished = line["status"] == "ok"
        progress.fitted(
            f"error {line['error']:.4g}, {line['seconds']:.3g} s"
            if finished
            else f"{line['status']}: {line['reason']}"
        )
        return line


def _expected_seconds(points: Sequence[Point]) -> float:
    """Extrapolate the seconds of the next fit: as much longer again as the last was than the one before."""
    seconds = [point.seconds.mean for point in points]
    return seconds[-1] * max(1.0, seconds[-1] / seconds[-2]) if len(seconds) > 1 else 0.0


@dataclass(frozen=True)
class Experiment:
    """An experiment, the paper's sets and the methods it is for (empty: all), and its cost.

    The cost is in units of that of the comparison.
    """

    run: Callable[[Run, DataSet, Method], None]
    cost: float
    sets: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()


EXPERIMENTS = {
    "compare": Experiment(Run.compare, 1.0),
    "rank": Experiment(Run.rank, 0.5, ("census", "slice"), ("tm-batch", "tm-sfo", "fm")),
    "starts": Experiment(Run.starts, 0.05, ("census", "adult"), ("tm-batch",)),
    "scaling": Experiment(Run.scaling, 0.25, ("ebay",), ("tm-sfo", "craftmaps")),
    "bound": Experiment(Run.bound, 0.01, (BOUND_SET,), ("tm-batch",)),
    "uncentred": Experiment(Run.uncentred, 0.0, ("indoor",), ("krr",)),
}
