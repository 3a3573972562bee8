"""`--cluster`: rows that Dask reads and evaluates, on the machines of a cluster or on this one."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from importlib import import_module
from operator import add
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from .._data.dataframes import read_frame
from .._data.dates import is_dates
from .._data.files.paths import PARQUET_SUFFIXES, Chosen, find_files, find_fitted, suffix
from .._data.frame import Frame, Levels, as_text, number_levels
from .._data.plain_text import plain
from .cluster_csv import SUFFIXES, TextColumns, read_text
from .known_part import columns_of_model, show_measured
from .model_rows import compared_columns, required_targets
from .named_columns import require_column
from .options import CLASSIFICATION, LOCAL
from .svmlight_rows import nothing_left
from .targets import MOST_VALUES, TargetFacts, decide_task, show_target, target_facts
from .training_rows import Training, chosen_columns

SECONDS = 5  # within which a scheduler must answer


# ---- a cluster


@contextmanager
def connected(address: str) -> Iterator[None]:
    """Let Dask compute on a cluster until the client is closed at the end."""
    try:
        import_module("dask.dataframe")
        from distributed import Client
    except ImportError as error:
        raise ImportError(f'--cluster needs Dask: pip install "tensormachines[dask]" ({error}).') from error
    if address == LOCAL:
        with Client(dashboard_address=":0", silence_logs=logging.ERROR):
            yield
        return
    _require_answer(address)
    with Client(address, timeout=SECONDS) as client:
        if not client.scheduler_info()["workers"]:
            print(f"note: {address} has no workers yet, and waits for them", file=sys.stderr)
        yield


def _require_answer(address: str) -> None:
    """Refuse an address that does not answer: a client would keep trying, and complain at its end."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    expected = f"give the address of a scheduler, such as tcp://host:8786, or {LOCAL}"
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise ValueError(f"--cluster {address}: this has no host and port; {expected}.")
    try:
        socket.create_connection((host, port), timeout=SECONDS).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise ValueError(f"--cluster {address}: no scheduler answers ({why}); {expected}.") from error
    try:
        asyncio.run(asyncio.wait_for(_greet(address), SECONDS))
    except (OSError, TimeoutError) as error:
        raise ValueError(f"--cluster {address}: what answers there is no scheduler; {expected}.") from error


async def _greet(address: str) -> None:
    """Shake hands as clients do, because something other than a scheduler may keep them waiting forever."""
    from distributed.comm import connect
    from distributed.security import Security

    comm = await connect(address, timeout=SECONDS, **Security().get_connection_args("client"))
    await comm.close()


# ---- tables


@dataclass(frozen=True)
class ClusterTable:
    """The files of a name or glob as a Dask dataframe, with cells of ``text`` if they are CSV.

    ``label`` and ``names`` have the same meaning as for a file."""

    label: str
    frame: Any
    text: bool

    @property
    def names(self) -> list[str]:
        return [str(name) for name in self.frame.columns]


def open_table(options: argparse.Namespace, path: str) -> ClusterTable:
    """Open Parquet or CSV."""
    import dask.dataframe as dd

    if suffix(path) not in (*PARQUET_SUFFIXES, *SUFFIXES):
        raise ValueError(f"--cluster reads Parquet and CSV (.csv, .tsv), got {path}.")
    if "://" not in path and not os.path.isdir(path):  # Dask also reads remote files and folders
        find_files(path)
    if suffix(path) in SUFFIXES:
        return ClusterTable(path, read_text(options, path), True)
    return ClusterTable(path, dd.read_parquet(path), False)


# ---- training


def read_on_cluster(options: argparse.Namespace) -> tuple[Training, Training | None]:
    """Return the rows that have a target, and the rows that `--holdout` leaves out of the fit."""
    table = open_table(options, options.data)
    chosen, forced = chosen_columns(options, table)
    if options.test is not None:
        tested = open_table(options, options.test)
        weight = [] if chosen.weight is None else [chosen.weight]
        for name in (*chosen.features, *chosen.targets, *chosen.known.values(), *weight):
            require_column(tested, "--test", name)
    frame = _columns(table, chosen, forced, options.decimal)
    n_rows, facts = _facts(frame[chosen.targets])
    task = decide_task(table.label, chosen.targets, facts, options.task)
    _show(table.label, frame, chosen, n_rows, options.cluster)
    show_target(chosen.targets, task, facts, n_rows, options)
    present = frame.dropna(subset=chosen.targets)
    training = partial(_training, table, chosen=chosen, task=task, whole=facts[0].whole)
    if options.holdout is None:
        return training(present, n_rows=facts[0].n_rows), None
    shares = [1 - options.holdout, options.holdout]
    fitted, held = _settled(present).random_split(shares, random_state=options.random_state)
    counts = len(fitted.index), len(held.index)
    if 0 in counts:
        raise nothing_left(options.holdout, sum(counts))
    return training(fitted, n_rows=counts[0]), training(held, n_rows=counts[1])


def _columns(table: ClusterTable, chosen: Chosen, forced: dict[str, str], decimal: str) -> Any:
    """Return the columns of a fit, with numbers turned into categories if users request it."""
    if table.text:
        columns = TextColumns(table.label, table.frame, chosen.all, decimal)
        classes = chosen.targets if chosen.single else []  # in multilabel targets, true and false are 1 and 0
        return columns.as_kinds(columns.kinds(forced, classes), classes)
    frame = table.frame[chosen.all]
    for name, kind in forced.items():
        type_ = frame.dtypes[name]
        if kind == "category" and type_.kind in "iuf":
            frame[name] = frame[name].map_partitions(_names_of_numbers, meta=(name, "string"))
        elif name in chosen.features and _remains(type_, kind):
            raise ValueError(
                f"--{kind} {name}: the column has the type {type_} in {table.label}, and with --cluster "
                f"columns of Parquet keep their types. Convert it, or leave out --{kind}."
            )
    return frame


def _remains(type_: Any, kind: str) -> bool:
    """Tell whether a column of Parquet remains what it is if another kind is requested for it."""
    if kind == "category":
        return type_.kind in "bmM"
    return type_.name.startswith(("str", "large_str", "category", "datetime", "timestamp"))


def _settled(frame: Any) -> Any:
    """Return a frame with partitions that Dask does not join; otherwise a random split depends on what is
    computed."""
    import dask.dataframe as dd

    parts = frame.simplify().to_delayed(optimize_graph=False)
    return dd.from_delayed(parts, meta=frame._meta, verify_meta=False)


def _training(
    table: ClusterTable, frame: Any, chosen: Chosen, task: str, whole: bool, n_rows: int
) -> Training:
    y = frame[chosen.targets[0] if chosen.single else chosen.targets]
    if task == CLASSIFICATION and not chosen.single:
        y = y.astype("int64")  # multilabel targets: 0 and 1, or true and false
    elif task == CLASSIFICATION and y.dtype.kind == "f":
        y = y.astype("int64") if whole else y.map_partitions(_names_of_numbers, meta=(y.name, "string"))
    weight = None if chosen.weight is None else frame[chosen.weight]
    target = chosen.targets[0] if chosen.single else chosen.targets
    known = {kind: frame[name] for kind, name in chosen.known.items()}
    rows = frame[chosen.features]
    return Training(rows, y, weight, target, task, n_rows, table, known_columns=chosen.known, known=known)


def _names_of_numbers(numbers: Any) -> Any:
    """Return a numeric column as names of the numbers, spelled like levels in files."""
    names = as_text(number_levels(numbers.to_numpy(dtype=np.float64, na_value=np.nan)))
    return numbers.astype("string").where(numbers.isna(), names).astype("string")


def _facts(targets: Any) -> tuple[int, list[TargetFacts]]:
    """Return the number of rows, and facts about the targets of rows that have all targets."""
    import dask

    look = dask.delayed(_facts_of_part, pure=False)
    found = dask.compute(*[look(part) for part in targets.to_delayed()])
    counts, facts = zip(*found, strict=True)
    return sum(counts), [reduce(add, of_target) for of_target in zip(*facts, strict=True)]


def _facts_of_part(part: Any) -> tuple[int, list[TargetFacts]]:
    return len(part), [target_facts(each, MOST_VALUES) for each in read_frame(part.dropna()).columns]


def _show(label: str, frame: Any, chosen: Chosen, n_rows: int, address: str) -> None:
    parts = f"{frame.npartitions:,} partition{'' if frame.npartitions == 1 else 's'}"
    print(f"{label}: {n_rows:,} rows in {parts} on {address}", file=sys.stderr)
    kinds: dict[str, list[str]] = {}
    columns: Frame = read_frame(frame[chosen.features]._meta)
    for name, column in zip(chosen.features, columns.columns, strict=True):
        kind = "categories" if isinstance(column, Levels) else "dates" if is_dates(column) else "numbers"
        kinds.setdefault(kind, []).append(name)
    for kind, names in kinds.items():
        print(f"  {kind}: {', '.join(map(plain, names))}", file=sys.stderr)


# ---- errors


def errors_on_cluster(
    model: Any, path: str, options: argparse.Namespace, target: Sequence[str] | None
) -> tuple[int, dict[str, Any]]:
    """Return the number of rows with a target, and the errors by target."""
    if not hasattr(model, "feature_names_in_"):
        raise ValueError("--cluster finds columns by name, and those of the fit had none.")
    targets = required_targets(model, target)
    table = open_table(options, path)
    names = list(model.feature_names_in_)
    places = find_fitted(table.label, table.names, names, "--delimiter")
    targets = compared_columns(table, targets, places)
    known = columns_of_model(model, table, options)
    asked = getattr(options, "weight", None)
    weight = [] if asked is None else [require_column(table, "--weight", asked)]
    show_measured(known, asked)
    beside = [*targets, *known.values(), *weight]
    frame = table.frame[[*places, *beside]]
    if table.text:
        columns = TextColumns(table.label, frame, frame.columns, options.decimal)
        frame = columns.as_fitted(model, places, beside)
    frame = frame.dropna(subset=targets)
    y = frame[targets[0] if len(targets) == 1 else targets]
    if not table.text and model._names_of_classes() and y.ndim == 1 and y.dtype.kind in "iuf":
        y = y.map_partitions(_names_of_numbers, meta=(y.name, "string"))
    X = frame[places].rename(columns=dict(zip(places, names, strict=True)))
    known_parts = {kind: frame[name] for kind, name in known.items()}
    return errors_of_frame(model, X, y, known_parts, frame[weight[0]] if weight else None)


def errors_of_frame(
    model: Any, X: Any, y: Any, known: Mapping[str, Any], weight: Any = None
) -> tuple[int, dict[str, Any]]:
    """Do the same as `errors_on_cluster` for rows, targets, exposures, offsets and weights in one Dask
    dataframe."""
    from ..estimators.regression_losses import unknown_part
    from ..estimators.sum_over_rows import fitted_alone, sum_over_rows
    from ..report.report_rows import MeasureChunk
    from .error_table import by_target

    fitted = fitted_alone(model)
    if known:
        parts = known.get("exposure"), known.get("offset")
        y, weight = unknown_part(fitted._loss(), X, y, weight, *parts)
    found = sum_over_rows(fitted, X, y, weight, MeasureChunk(fitted))
    return found.n_rows, by_target(model, found.measures(model))
