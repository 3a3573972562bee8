"""Training rows on a Dask cluster, and lazy evaluation of new rows there.

A pass over the partitions is one task per partition, run by the current scheduler, and a tree of sums. The
blocks that a fit reads repeatedly (`dask_blocks`) are tasks of the same graph as the user's collection, kept
on the workers: if a worker dies, the scheduler recomputes what it held."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import partial, reduce
from inspect import unwrap
from operator import add
from typing import Any
from weakref import WeakSet

import dask
import dask.array
import numpy as np
from dask.delayed import Delayed

from .._model.block import BlockList, Blocks, fetch_parts
from .._model.packed_shares import PIECE
from .dask_blocks import BlocksOnDask, Pieces, shared_node, sum_of
from .dask_connection import scheduler_needed
from .dask_shares import SharesOnDask
from .dataframes import read_frame
from .dates import is_dates
from .encoding import Columns, columns_of
from .files.checks import Where, check_same_rows, float_type
from .files.items import item_chunk, item_rows, kinds_of
from .files.source import Chunk
from .frame import Frame, Levels, column_label
from .raw_columns import column_names
from .summary import Summarise, Summary, summarised
from .training import Recipe


class RowsOnDask:
    """The rows of Dask collections with the same partitions, in order; the first pass learns the ``columns``
    of frames with categories or dates."""

    streams, distant = False, True

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        n_columns, dtype = _shape(X)
        self.reader = Reader(n_columns, dtype, _names(X), _kinds(X))
        if is_array(X) and len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        beside = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        for what, collection in beside.items():
            require_collection(X, collection, what)
        self.flat = y.ndim == 1
        lengths = dict(zip(["X", *beside], lengths_of(X, *beside.values()), strict=True))
        beside = {what: aligned(X, lengths["X"], each, lengths[what], what) for what, each in beside.items()}
        collections = [partitions_of(each, is_array(X)) for each in (X, *beside.values())]
        if not any(lengths["X"]):
            raise ValueError("X has no rows.")
        present = lengths["X"] if sample_weight is None else _counts_of_positive(collections[-1])
        firsts, firsts_present = (np.cumsum([0, *counts]).tolist() for counts in (lengths["X"], present))
        self.partitions = [
            (number, firsts[number], firsts_present[number], parts)
            for number, (length, *parts) in enumerate(zip(lengths["X"], *collections, strict=True))
            if length
        ]
        self.n_rows = firsts_present[-1]
        self.kept: WeakSet[Pieces | SharesOnDask] = WeakSet()

    @property
    def n_columns(self) -> int:
        return self.reader.n_columns

    @property
    def feature_names(self) -> list[str] | None:
        return self.reader.names

    @property
    def columns(self) -> Columns | None:
        return self.reader.columns

    def _each(self, function: Callable[[Chunk], Any], present: bool) -> list[Any]:
        """Return a function of each chunk; the chunks of a fit have only the rows that are ``present``."""
        shared = shared_node(OnPartition(self.reader, function, present))
        task = dask.delayed(partition, pure=False)
        return [
            task(shared, number, first_present if present else first, *parts)
            for number, first, first_present, parts in self.partitions
        ]

    def sum(self, function: Callable[[Chunk], Any]) -> Any:
        return self._sum(function, present=False)

    def _sum(self, function: Callable[[Chunk], Any], present: bool) -> Any:
        with scheduler_needed():
            return sum_of(self._each(function, present), _sum).compute()

    def total(self, function: Summarise) -> Summary:
        """Summarise all partitions, and learn the columns of frames."""
        summary = self._sum(partial(summarised, function, self.feature_names), present=True)
        if summary.counts is None:
            return summary
        columns = columns_of(self.feature_names, summary.counts)
        self.reader = replace(self.reader, columns=columns, dtype=summary.dtype)
        return summary.encoded(columns)

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        minibatch = min(self.n_rows / recipe.n_parts, PIECE)
        recipe = replace(recipe, n_others=max(1, round(self.n_rows / len(self.partitions) / minibatch)))
        with scheduler_needed():
            pieces = Pieces(self._each(partial(_piece, recipe), present=True), self.kept)
            measures = pieces.measures()
        n_parts = recipe.n_blocks
        training, sample, *held_out = (
            BlocksOnDask(pieces, numbers, measures)
            for numbers in (range(n_parts), *([k] for k in range(n_parts, measures.shape[1])))
        )
        return training, fetch_parts(sample, [0]), held_out[0] if held_out else None

    def close(self) -> None:
        """Let the workers forget the blocks, even if a traceback still refers to them."""
        for pieces in self.kept:
            pieces.forget()


# ---- on the client


def is_array(collection: Any) -> bool:
    """Tell whether a collection is an array."""
    return isinstance(collection, dask.array.Array)


def is_frame(collection: Any) -> bool:
    """Tell whether this is a dataframe or a series, without importing dask.dataframe, which needs pandas."""
    # Delayed has every attribute.
    if not dask.is_dask_collection(collection) or isinstance(collection, Delayed):
        return False
    return hasattr(collection, "divisions") and hasattr(collection, "ndim")


def _shape(X: Any) -> tuple[int, np.dtype]:
    """Return the number of columns, and the float type of their matrix, without reading a row."""
    if not (is_array(X) or (is_frame(X) and X.ndim == 2 and hasattr(X, "columns"))):
        raise TypeError(f"X must be a Dask array or dataframe, got {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, rows and columns, got {X.ndim}.")
    if X.shape[1] == 0:
        raise ValueError("X has no columns.")
    if not is_array(X):
        numbers = [dtype for dtype in X.dtypes if getattr(dtype, "kind", "O") in "biuf"]
        single = bool(numbers) and all(dtype == np.float32 for dtype in numbers)
        return len(X.columns), np.dtype(np.float32 if single else np.float64)
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must be numbers, got the type {X.dtype}.")
    if not np.isfinite(X.shape[1]):
        raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes() first.")
    return X.shape[1], float_type([X.dtype])


def _names(X: Any) -> list[str] | None:
    names = None if is_array(X) else column_names(X._meta)
    return None if names is None else list(names)


def _kinds(X: Any) -> dict[int, str]:
    """Return the kinds of columns that are not numbers, see `item_rows`.

    Dtypes determine them, except for columns of Python objects, which one pass examines."""
    if is_array(X):
        return {}
    columns = read_frame(X._meta).columns
    kinds = {j: "date" for j, column in enumerate(columns) if is_dates(column)}
    kinds |= {j: "category" for j, column in enumerate(columns) if isinstance(column, Levels)}
    objects = [j for j, kind in kinds.items() if kind == "category" and not _holds_names(X.dtypes.iloc[j])]
    if not objects:
        return kinds
    look = dask.delayed(_kinds_of_objects, pure=False)
    parts = partitions_of(X[[X.columns[j] for j in objects]])
    found = dask.compute(*[look(part, number) for number, part in enumerate(parts)])
    for k, j in enumerate(objects):
        seen = {each[k] for each in found if k in each}
        if len(seen) > 1:
            label = column_label(_names(X), j)
            raise ValueError(f"{label} holds dates in some partitions, and text in others: convert it first.")
        kinds[j] = next(iter(seen), "number")
    return {j: kind for j, kind in kinds.items() if kind != "number"}


def _holds_names(dtype: Any) -> bool:
    return dtype.name == "category" or dtype.type is str


def require_collection(X: Any, collection: Any, what: str) -> None:
    """Refuse an array that accompanies the rows of X but is not on Dask."""
    if collection is None:
        raise ValueError(f"{what} is needed.")
    if not (is_array(collection) or is_frame(collection)):
        lengths = "X.chunks[0]" if is_array(X) else "tuple(X.map_partitions(len).compute())"
        raise TypeError(
            f"X is a Dask collection, so {what} must be one, too, got {type(collection).__name__}. "
            f"For an array that is in memory: dask.array.from_array({what}, chunks={lengths})."
        )


def lengths_of(*collections: Any) -> list[list[int]]:
    """Return the partition lengths of each collection; count unknown ones in one pass over all."""
    count = dask.delayed(_length, pure=False)
    unknown: list[list[Any]] = []
    for each in collections:
        if is_array(each) and not np.isnan(each.chunks[0]).any():
            unknown.append(list(each.chunks[0]))
        elif is_array(each):
            unknown.append([count(part) for part in partitions_of(each)])
        else:
            # Use the frame's own graph, which then need not read all columns.
            unknown.append(
                [
                    count(part)
                    for part in partitions_of(each[list(each.columns[:1])] if each.ndim == 2 else each)
                ]
            )
    return [list(map(int, lengths)) for lengths in dask.compute(*unknown)]


def _counts_of_positive(weights: list[Any]) -> list[int]:
    """Return the number of positive weights in each partition."""
    count = dask.delayed(np.count_nonzero, pure=False)
    return list(map(int, dask.compute(*map(count, weights))))


def aligned(X: Any, lengths: list[int], other: Any, others: list[int], what: str, beside: str = "X") -> Any:
    """Return a collection with the partitions of X, or of whatever else it is ``beside``."""
    check_same_rows(sum(lengths), sum(others), what, "the Dask collections")
    if lengths == others:
        return other
    if is_array(X) and is_array(other) and not np.isnan([*X.chunks[0], *other.chunks[0]]).any():
        return other.rechunk({0: tuple(lengths)})
    raise ValueError(
        f"{beside} and {what} must have the same rows in each partition: {beside} has {_some(lengths)}, "
        f"{what} has {_some(others)}. "
        "Take both from one dataframe; or call compute_chunk_sizes() on both arrays."
    )


def _some(lengths: list[int]) -> str:
    return f"{', '.join(map(str, lengths[:8]))}{', ...' if len(lengths) > 8 else ''}"


def partitions_of(collection: Any, optimise: bool = True) -> list[Any]:
    """Return the partitions as delayed values.

    The graph of an array beside a dataframe is not optimised, because the array may be made from it: Dask
    would fuse some of its tasks under names of the dataframe's tasks, and find cycles in the combined
    graph."""
    if is_array(collection):
        collection = collection if collection.ndim < 2 else collection.rechunk({1: -1})
        return list(collection.to_delayed(optimize_graph=optimise).ravel())
    # A simplified graph reads only its own columns. Dask's other optimisations may join partitions of X and y
    # in different ways.
    return list(
        (collection.simplify() if hasattr(collection, "simplify") else collection).to_delayed(
            optimize_graph=False
        )
    )


# ---- on the workers


@dataclass(frozen=True)
class Reader:
    """Facts about the columns of all partitions.

    ``names`` are the column names of a dataframe, if they are text, and ``kinds`` the kinds of non-numeric
    columns. The matrix has the type ``dtype``; once there are fitted ``columns``, frames are encoded.
    """

    n_columns: int
    dtype: np.dtype
    names: list[str] | None
    kinds: dict[int, str]
    columns: Columns | None = None

    def read(self, X: Any, y: Any, weight: Any, where: Where) -> Chunk:
        if X.ndim != 2 or X.shape[1] != self.n_columns:
            shape = tuple(X.shape)
            raise ValueError(f"{where.name}: expected {self.n_columns} columns, got rows of shape {shape}.")
        rows = item_rows(X, self.kinds, where, self.dtype)
        if self.columns is not None:
            assert isinstance(rows, Frame)
            rows = self.columns.encode(rows, self.dtype)
        chunk = item_chunk(rows, y, weight, where)
        return replace(chunk, y=chunk.y.reshape(len(chunk.y), -1))


@dataclass(frozen=True)
class OnPartition:
    """A function of a partition, which is read as a chunk, perhaps only of the rows that are ``present``."""

    reader: Reader
    function: Callable[[Chunk], Any]
    present: bool


def partition(what: OnPartition, number: int, first: int, X: Any, y: Any, weight: Any = None) -> Any:
    """Apply a function to a partition, numbered from 0 as in ``X.partitions``."""
    chunk = what.reader.read(X, y, weight, Where(f"partition {number}"))
    chunk = replace(chunk, first=first)
    return what.function(chunk.present() if what.present else chunk)


def _piece(recipe: Recipe, chunk: Chunk) -> BlockList:
    return BlockList(recipe(chunk))


def _kinds_of_objects(X: Any, number: int) -> dict[int, str]:
    return kinds_of(item_rows(X, {}, Where(f"partition {number}")))


def _length(partition: Any) -> int:
    return int(partition.shape[0])  # len() of a sparse matrix is an error


def _sum(parts: list[Any]) -> Any:
    return reduce(add, parts)


# ---- new rows


def example_rows(X: Any) -> Any:
    """Return all columns of X without rows, for scikit-learn's checks of columns and their names."""
    n_columns, _ = _shape(X)
    return np.empty((0, n_columns)) if is_array(X) else X._meta


def map_rows(estimator: Any, method: str, X: Any) -> Any:
    """Return the results of a method for the rows of X, as a lazy Dask array.

    ``estimator`` is a copy, so that a later fit does not change requested results."""
    _, dtype = _shape(X)
    evaluate = Evaluate(estimator, method, dtype, named=_names(X) is not None)
    width, meta = evaluate.nothing.shape[1:], evaluate.nothing
    shared = shared_node(evaluate)
    if not is_array(X):
        call = dask.delayed(_call, pure=False)
        parts = [
            dask.array.from_delayed(call(part, shared), shape=(np.nan, *width), meta=meta)
            for part in partitions_of(X)
        ]
        return dask.array.concatenate(parts, allow_unknown_chunksizes=True)
    rows = X.rechunk({1: -1})
    axes = {"chunks": (rows.chunks[0], width)} if width else {"drop_axis": 1}
    return rows.map_blocks(_call, shared, dtype=meta.dtype, meta=meta, **axes)


class Evaluate:
    """A method of an estimator; ``nothing`` is the result for no rows."""

    def __init__(self, estimator: Any, method: str, dtype: np.dtype, named: bool):
        of_matrix = copy(estimator)
        vars(of_matrix).pop("feature_names_in_", None)
        # Names have been checked, so rows without names should not warn.
        self.estimator = estimator if named else copy(of_matrix)
        self.method = method
        of_matrix._columns, of_matrix.n_features_in_ = None, estimator._machine.basis.n_columns
        self.nothing = self._call(of_matrix, np.zeros((1, of_matrix.n_features_in_), dtype))[:0]

    def _call(self, estimator: Any, rows: Any) -> np.ndarray:
        # Without scikit-learn's output containers.
        return unwrap(getattr(type(estimator), self.method))(estimator, rows)

    def __call__(self, rows: Any) -> np.ndarray:
        return self._call(self.estimator, rows) if rows.shape[0] else self.nothing


def _call(rows: Any, evaluate: Evaluate) -> np.ndarray:
    return evaluate(rows)
