"""The data sets of a run: which are available, which related sets replace others, how many rows are used."""

from __future__ import annotations

from pathlib import Path

from ..datasets import SETS, DataSet, UnavailableError, is_at_hand, load, unit_scaling
from .fits import ScaledSet
from .methods import Method
from .profiles import Profile
from .recorder import Recorder
from .report.labels import SAME_ROWS, kin

BOUND_SET = "forest"  # the set of the experiment "bound", which may need more rows than the others

# Rows times columns that a selection can afford: with few rows, small ranks and large penalties seem best.
SELECT_NUMBERS = 4_000_000

# Indoor has many records of each place, and its test rows are of other places, recorded months later. So a
# fold must not contain records of the places that it is validated on.
WHOLE_TARGETS = ("indoor",)


class DataOnHand:
    """Data sets as one profile uses them; only the last one loaded is kept in memory."""

    def __init__(self, profile: Profile, folder: Path | None, recorder: Recorder):
        self.profile = profile
        self.folder = folder
        self._recorder = recorder
        self._loaded: tuple[str, ScaledSet | None] = ("", None)
        self._found: dict[str, str | None] = {}

    def n_rows(self, known: DataSet, method: Method | None = None) -> int:
        """Return the number of training rows of a fit."""
        most = self.profile.generated_rows if known.name == "ebay_like" else self.profile.rows
        rows = min(known.rows, most or known.rows)
        return min(rows, self.profile.kernel_rows) if method is not None and method.name == "krr" else rows

    def select_rows(self, known: DataSet, method: Method) -> int:
        """Return the number of rows for cross-validation: all that KRR is fitted to, or else a part."""
        rows, profile = self.n_rows(known, method), self.profile
        if profile.select_rows is None or method.name == "krr":
            return rows
        most = min(profile.most_select_rows, SELECT_NUMBERS // known.columns)
        return min(rows, max(profile.select_rows, most))

    def folds(self, known: DataSet, method: Method) -> int:
        """Return the number of folds; 1 if half of the rows are fitted and the other half is predicted.

        The best penalty of KRR does not follow a power of the number of rows: on Forest it is 1e-3 for 5,000
        rows, and 1e-5 to 1e-4 for 20,000; on Adult it is 10 to 30 for 2,000 to 8,000. Hence one split into
        halves, and not several folds of few rows."""
        profile, rows = self.profile, self.select_rows(known, method)
        few = profile.select_rows is not None and rows <= profile.select_rows
        if method.name == "krr" and profile.select_rows is not None and not few:
            return 1
        return profile.most_folds if few and rows == self.n_rows(known, method) else profile.folds

    def load(self, known: DataSet, most_rows: int = 0) -> ScaledSet:
        """Load a set in the paper's scaling, with at least ``most_rows`` training rows if possible."""
        for_bound = self.profile.bound_rows if known.paper_name == BOUND_SET else ()
        wanted = max(most_rows, self.n_rows(known), *for_bound)
        name, scaled = self._loaded
        too_few = scaled is not None and known.name == "ebay_like" and scaled.n_rows < wanted
        if scaled is None or name != known.name or too_few:
            self._loaded = "", None  # never two sets in memory
            self._recorder.progress.fitting(f"{known.name}: loading")
            profile = self.profile
            data = load(
                known.name, self.folder, rows=wanted, test_rows=profile.test_rows, download=profile.download
            )
            whole_targets = known.paper_name in WHOLE_TARGETS
            scaled = ScaledSet(unit_scaling(data), known.task, known.degree, whole_targets)
            self._loaded = known.name, scaled
        return scaled

    def find(self, name: str) -> str | None:
        """Return the set itself if it is available, else the related set that replaces it, else None."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> str | None:
        lines = self._recorder.ledger.by_key.values()
        if is_at_hand(name, self.folder) or any(
            line["set"] == name and line["status"] == "ok" for line in lines
        ):
            return name
        progress = self._recorder.progress.downloading(name)
        try:
            load(name, self.folder, rows=1, download=self.profile.download, progress=progress)
        except UnavailableError as reason:
            self._recorder.skip_set(SETS[name], str(reason))
            relatives = [other for other in kin(name)[1:] if other not in SAME_ROWS]
            return self.find(relatives[0]) if relatives else None
        return name
