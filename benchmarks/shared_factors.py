"""Should classes share their factors?

    python benchmarks/shared_factors.py

fits every table and set with three classes or more twice: each class with terms of its own (10 of each
degree), and with the shared terms that are the default (20 and more). Everything else is the default. Errors,
log-losses, bytes of the saved file and CPU seconds are means over the seeds; at most ROWS training rows of
each. `--sets` names some of them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from timing import one_thread, timed

one_thread()

import numpy as np
from sklearn.metrics import log_loss

from records import print_facts, table
from sets import load as load_set
from tensormachines import TensorMachineClassifier

SETS = ("iris", "wine", "digits", "letter", "mnist")
ROWS, SEEDS, MANY = 20_000, (0, 1), 10  # MANY classes
LAYOUTS: dict[str, dict[str, Any]] = {"own": {"shared_factors": False, "rank": 10}, "shared": {}}
Rows = tuple[Any, np.ndarray, Any, np.ndarray]


def multiclass_tables() -> list[str]:
    index = Path(os.environ.get("TENSORMACHINES_DATA", ".")) / "tables" / "index.json"
    entries = json.loads(index.read_text()) if index.exists() else {}
    return [
        name
        for name, entry in entries.items()
        if entry["task"] == "classification" and len(np.unique(load(name)[1])) > 2
    ]


def load(name: str) -> Rows:
    """Return training rows in random order, and test rows."""
    if name in SETS:
        data = load_set(name)
        return data.train.X, data.train.y, data.test.X, data.test.y
    folder = Path(os.environ["TENSORMACHINES_DATA"]) / "tables"
    sys.path.insert(0, str(folder))
    from load import load as load_table  # type: ignore[import-not-found]

    X, y, X_test, y_test, _ = load_table(name)
    return X, y, X_test, y_test


def some_rows(rows: Rows) -> Rows:
    X, y, X_test, y_test = rows
    chosen = np.random.default_rng(0).permutation(len(y))[:ROWS]
    return X.iloc[chosen] if hasattr(X, "iloc") else X[chosen], y[chosen], X_test, y_test


def measure(rows: Rows, seed: int) -> dict[str, np.ndarray]:
    """Return for each layout the error, the log-loss, the kilobytes and the seconds."""
    X, y, X_test, y_test = rows
    found = {}
    for name, settings in LAYOUTS.items():
        model = TensorMachineClassifier(alpha="rows", random_state=seed, **settings)
        _, seconds = timed(partial(model.fit, X, y))
        known = np.isin(y_test, model.classes_)  # a class may be in the test rows alone
        loss = log_loss(y_test[known], model.predict_proba(X_test)[known], labels=model.classes_)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.tm"
            model.save(path)
            size = path.stat().st_size / 1000
        found[name] = np.array([np.mean(model.predict(X_test) != y_test), loss, size, seconds])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    lines, ratios, n_classes = [], [], []
    for name in parser.parse_args().sets or [*multiclass_tables(), *SETS]:
        rows = some_rows(load(name))
        each = [measure(rows, seed) for seed in SEEDS]
        own, shared = (np.mean([found[layout] for found in each], axis=0) for layout in LAYOUTS)
        n_classes.append(len(np.unique(rows[1])))
        ratios.append((shared / np.maximum(own, 1e-12))[1:])
        cells = [
            f"{a:{form}} / {b:{form}}"
            for a, b, form in zip(own, shared, (".4f", ".4f", ".0f", ".2f"), strict=True)
        ]
        lines.append((name, f"{rows[0].shape[0]:,} x {rows[0].shape[1]}", str(n_classes[-1]), *cells))
        print(*lines[-1], file=sys.stderr, flush=True)
    print(
        table(("table", "rows x columns", "classes", "error, own / shared", "log-loss", "kB", "CPU s"), lines)
    )
    for what, chosen in (("All", 0), (f"{MANY} classes and more", MANY)):
        some = [ratio for ratio, count in zip(ratios, n_classes, strict=True) if count >= chosen]
        if some:
            loss, size, seconds = np.exp(np.mean(np.log(some), axis=0))
            print(
                f"\n{what}: geometric means of shared over own: log-loss {loss:.2f}, bytes {size:.2f}, "
                f"seconds {seconds:.2f}."
            )
    print_facts(SEEDS)


if __name__ == "__main__":
    main()
