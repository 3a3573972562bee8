"""Which features do the libraries have?

    python benchmarks/feature_table.py [--verbose] [--libraries ebm glum] [--features offset quantile]

Every mark is the result of a trial on a few generated rows: a feature counts if it passes the check that
feature_table_checks.py has for it, the same for all libraries. "no" stands for a feature that a library does
not offer, or whose trial failed; --verbose prints why. Takes some minutes. Needs gcc, g++ and
`pip install tensormachines[accuracy] glum pygam polars`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import traceback
import warnings
from collections.abc import Callable

from timing import one_thread

one_thread()

import feature_table_checks as checks
import feature_table_formulas as formulas
import feature_table_trees as trees
from feature_table_checks import Fit
from records import print_facts, table

FEATURES: dict[str, tuple[str, Callable[[Fit], str]]] = {
    "text": ("text categories in a data frame, not encoded", checks.text),
    "missing": ("missing numbers", checks.missing),
    "dates": ("dates in a data frame", checks.dates),
    "polars": ("polars frames", checks.polars),
    "sparse": ("sparse X", checks.sparse),
    "weights": ("sample weights", checks.weights),
    "classes": ("three classes or more", checks.classes),
    "labels": ("several labels of a row", checks.labels),
    "targets": ("several numeric targets", checks.targets),
    "counts": ("Poisson, gamma and Tweedie losses", checks.counts_and_costs),
    "quantile": ("quantile loss", checks.quantile),
    "quantiles": ("several quantiles in one model that never cross", checks.quantiles),
    "own_loss": ("a loss of one's own", checks.own_loss),
    "ranking": ("ranking of rows within groups", checks.ranking),
    "offset": ("offset or exposure", checks.offset),
    "monotonic": ("monotonic columns", checks.monotonic),
    "limits": ("limits to interactions", checks.limits),
    "intervals": ("prediction intervals from a method of its own", checks.intervals),
    "validation": ("own validation rows for early stopping", checks.validation),
    "warm_start": ("continuing a fit", checks.warm_start),
    "files": ("rows larger than memory, from files", checks.files),
    "parts": ("parts that add up to a prediction", checks.parts),
    "export": ("export to SQL, C or C++", checks.export),
}
LIBRARIES: dict[str, tuple[str, Callable[[], trees.Cells]]] = {
    "tensormachines": ("tensormachines", formulas.tensormachines),
    "lightgbm": ("LightGBM", trees.lightgbm),
    "xgboost": ("XGBoost", trees.xgboost),
    "catboost": ("CatBoost", trees.catboost),
    "histogram_trees": ("HistGradientBoosting", trees.histogram_trees),
    "ebm": ("EBM", formulas.ebm),
    "glum": ("glum", formulas.glum),
    "pygam": ("pyGAM", formulas.pygam),
}
PACKAGES = ("lightgbm", "xgboost", "catboost", "interpret-core", "glum", "pygam", "pandas", "polars")


def mark(feature: str, cells: trees.Cells) -> tuple[str, str]:
    """Return the mark of a library, and why nothing or not the first thing worked."""
    tried = cells.get(feature, [])
    failures = ""
    for remark, fit in tried if isinstance(tried, list) else [("", tried)]:
        found, failure = attempt(feature, fit)
        if not failure:
            return remark or found, failures
        failures += failure
    return "no", failures or "not offered"


def attempt(feature: str, fit: Fit) -> tuple[str, str]:
    """Return the mark or the error of one trial."""
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return FEATURES[feature][1](fit), ""
    except Exception:  # libraries raise whatever they like for what they cannot do
        return "", traceback.format_exc(limit=-2)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--verbose", action="store_true", help="print the reason of each no")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    arguments = parser.parse_args()
    columns: dict[str, list[str]] = {}
    for name in arguments.libraries:
        title, offered = LIBRARIES[name]
        try:
            cells = offered()
        except ImportError as error:
            print(f"{title} is left out: {error}", file=sys.stderr)
            continue
        columns[title] = []
        for feature in arguments.features:
            found, reason = mark(feature, cells)
            columns[title].append(found)
            if arguments.verbose and reason:
                print(f"--- {title}, {feature}: {found}\n{reason}", file=sys.stderr, flush=True)
    rows = zip([FEATURES[feature][0] for feature in arguments.features], *columns.values(), strict=True)
    print(table(["feature", *columns], rows))
    print_facts([0], PACKAGES)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
