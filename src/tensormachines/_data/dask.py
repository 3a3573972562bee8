"""Training rows on a Dask cluster, and lazy evaluation of new rows there.

Dask is the engine: every pass over the rows is one task a partition, run by whatever scheduler is current,
and a tree of sums. The blocks that a fit goes over again and again are tasks of the same graph as the user's
collection, kept on the workers: where a worker dies, the scheduler computes again what it held."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from inspect import unwrap
from operator import add
from typing import Any

import dask
import dask.array
import numpy as np
from dask.delayed import Delayed
from dask.sizeof import sizeof
from scipy import sparse

from .._model.block import Block, BlockFunction, Blocks, add_up, canonical
from .._model.rows import Rows
from .encoding import Columns
from .files.checks import (
    Where,
    as_target,
    as_weight,
    check_finite,
    check_same_rows,
    dense_rows,
    float_type,
    labels,
)
from .files.source import Chunk
from .training import Recipe

SUMMED_AT_ONCE = 8


class RowsOnDask:
    """The rows of Dask collections that share their partitions, in their order."""

    streams = False
    columns: Columns | None = None  # of frames with categories, which are refused as yet

    def __init__(self, X: Any, y: Any, sample_weight: Any):
        names, self.n_columns, dtype = _columns(X)
        self.feature_names = _text(names)
        if _is_array(X) and len(X.chunks[1]) > 1:
            X = X.rechunk({1: -1})
        beside = {"y": y} if sample_weight is None else {"y": y, "sample_weight": sample_weight}
        for what, collection in beside.items():
            _require_collection(collection, what)
        self.flat = y.ndim == 1
        lengths = dict(zip(["X", *beside], _lengths(X, *beside.values()), strict=True))
        beside = {what: _aligned(X, lengths["X"], each, lengths[what], what) for what, each in beside.items()}
        columns = [_partitions(each) for each in (X, *beside.values())]
        firsts = np.cumsum([0, *lengths["X"]]).tolist()
        self.partitions = [
            (Partition(number, firsts[number], dtype, self.n_columns, names), parts)
            for number, (length, *parts) in enumerate(zip(lengths["X"], *columns, strict=True))
            if length
        ]
        if not self.partitions:
            raise ValueError("X has no rows.")
        self.kept: list[Any] = []

    def _each(self, function: Callable[[Chunk], Any]) -> list[Any]:
        shared = _shared(function)
        return [dask.delayed(partition, pure=False)(shared, *parts) for partition, parts in self.partitions]

    def total(self, function: Callable[[Chunk], Any]) -> Any:
        return _sum_of(self._each(function), _sum).compute()

    def blocks(self, recipe: Recipe) -> tuple[Blocks, Blocks, Blocks | None]:
        self.kept = list(dask.persist(*self._each(recipe)))
        measure = dask.delayed(_rows_and_weights, pure=False)
        measures = np.array(dask.compute(*[measure(piece) for piece in self.kept]))
        n_parts = recipe.n_parts
        training, sample, *held_out = (
            BlocksOnDask(self.kept, numbers, measures)
            for numbers in (range(n_parts), *([k] for k in range(n_parts, measures.shape[1])))
        )
        return training, sample, held_out[0] if held_out else None

    def close(self) -> None:
        """Let the workers forget the blocks, even where a traceback still refers to them."""
        if "distributed" in sys.modules:
            for future in sys.modules["distributed"].futures_of(self.kept):
                future.release()
        self.kept.clear()


class BlocksOnDask:
    """The blocks with these ``numbers`` in each of the ``pieces``: the lists of blocks that a recipe makes of
    the partitions.

    ``measures``, of shape (pieces, blocks, 2), are the rows and the weight of each block.
    """

    def __init__(self, pieces: list[Any], numbers: Sequence[int], measures: np.ndarray):
        self.pieces = pieces
        self.numbers = list(numbers)
        self.filled = measures[:, self.numbers, 0] > 0
        self.weights = measures[:, self.numbers, 1].sum(axis=0)

    def total(
        self, function: BlockFunction, part: int | None = None, likely_next: int | None = None
    ) -> tuple[Any, ...]:
        shared = _shared(function)
        evaluate = dask.delayed(_evaluate, pure=False)
        parts = slice(None) if part is None else slice(part, part + 1)
        results = [
            evaluate(
                shared,
                piece,
                [number for number, some in zip(self.numbers[parts], filled[parts], strict=True) if some],
            )
            for piece, filled in zip(self.pieces, self.filled, strict=True)
            if filled[parts].any()
        ]
        return tuple(map(_writeable, _sum_of(results, add_up).compute(optimize_graph=False)))


# ---- on the client


def _is_array(collection: Any) -> bool:
    return isinstance(collection, dask.array.Array)


def _is_frame(collection: Any) -> bool:
    """Tell a dataframe or a series, without importing dask.dataframe, which needs pandas."""
    # Delayed has any attribute that one asks for.
    if not dask.is_dask_collection(collection) or isinstance(collection, Delayed):
        return False
    return hasattr(collection, "divisions") and hasattr(collection, "ndim")


def _columns(X: Any) -> tuple[list[Any] | None, int, np.dtype]:
    """Return the names of columns, if any, their number, and the float type, without reading a row."""
    if not (_is_array(X) or (_is_frame(X) and X.ndim == 2 and hasattr(X, "columns"))):
        raise TypeError(f"X must be a Dask array or dataframe, got {type(X).__name__}.")
    if X.ndim != 2:
        raise ValueError(f"X must have 2 dimensions, rows and columns, got {X.ndim}.")
    if X.shape[1] == 0:
        raise ValueError("X has no columns.")
    if _is_array(X):
        if X.dtype.kind not in "biuf":
            raise ValueError(f"X must be numbers, got the type {X.dtype}.")
        if not np.isfinite(X.shape[1]):
            raise ValueError("X must have a known number of columns: call X.compute_chunk_sizes() first.")
        return None, X.shape[1], float_type([X.dtype])
    names = list(X.columns)
    for name, dtype in zip(names, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise ValueError(f"column {name!r} of X must be numbers, got the type {dtype}.")
    return (
        names,
        len(names),
        np.dtype(np.float32 if all(dtype == np.float32 for dtype in X.dtypes) else np.float64),
    )


def _text(names: list[Any] | None) -> list[str] | None:
    """Return names as scikit-learn takes them: all text, or None; a mixture is refused."""
    text = {isinstance(name, str) for name in names or ()}
    if len(text) > 1:
        raise TypeError(f"The names of the columns of X must all be text, or none of them, got {names}.")
    return names if text == {True} else None


def _require_collection(collection: Any, what: str) -> None:
    if collection is None:
        raise ValueError(f"{what} is needed.")
    if not (_is_array(collection) or _is_frame(collection)):
        raise TypeError(
            f"X is a Dask collection, so {what} must be one, too, got {type(collection).__name__}. "
            f"For an array that is in memory: dask.array.from_array({what}, chunks=X.chunks[0])."
        )


def _lengths(*collections: Any) -> list[list[int]]:
    """Return the lengths of the partitions of each; unknown ones are counted in one pass over all."""
    count = dask.delayed(_length, pure=False)
    unknown: list[list[Any]] = []
    for each in collections:
        if _is_array(each) and not np.isnan(each.chunks[0]).any():
            unknown.append(list(each.chunks[0]))
        elif _is_array(each):
            unknown.append([count(part) for part in _partitions(each)])
        else:
            # Through the frame's own graph, which then need not read all columns.
            unknown.append(
                [
                    count(part)
                    for part in _partitions(each[list(each.columns[:1])] if each.ndim == 2 else each)
                ]
            )
    return [list(map(int, lengths)) for lengths in dask.compute(*unknown)]


def _aligned(X: Any, lengths: list[int], other: Any, others: list[int], what: str) -> Any:
    check_same_rows(sum(lengths), sum(others), what, "the Dask collections")
    if lengths == others:
        return other
    if _is_array(X) and _is_array(other) and not np.isnan([*X.chunks[0], *other.chunks[0]]).any():
        return other.rechunk({0: tuple(lengths)})
    raise ValueError(
        f"X and {what} must have the same rows in each partition: X has {_some(lengths)}, {what} has "
        f"{_some(others)}. "
        "Take both from one dataframe; or call compute_chunk_sizes() on both arrays."
    )


def _some(lengths: list[int]) -> str:
    return f"{', '.join(map(str, lengths[:8]))}{', ...' if len(lengths) > 8 else ''}"


def _partitions(collection: Any) -> list[Any]:
    if _is_array(collection):
        collection = collection if collection.ndim < 2 else collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    # Simplified, it reads no other columns than its own. The rest of Dask's optimisation may join partitions,
    # of X and y in different ways.
    return list(
        (collection.simplify() if hasattr(collection, "simplify") else collection).to_delayed(
            optimize_graph=False
        )
    )


def _shared(function: Any) -> Any:
    """Return a node of its own in the graph, which goes to each worker once, not with each task."""
    return dask.delayed(function, pure=False, traverse=False)


def _sum_of(parts: list[Any], sum_up: Callable[[list[Any]], Any]) -> Any:
    """Return a tree of sums. Its shape depends on the number of parts alone, so that rounding does not depend
    on who computes what.
    """
    summed = dask.delayed(sum_up, pure=False)
    while len(parts) > 1:
        parts = [
            summed(parts[start : start + SUMMED_AT_ONCE]) for start in range(0, len(parts), SUMMED_AT_ONCE)
        ]
    return parts[0]


def _writeable(result: Any) -> Any:
    """Copy read-only arrays received from another process."""
    return result.copy() if isinstance(result, np.ndarray) and not result.flags.writeable else result


# ---- on the workers


class Partition:
    """What is known of a non-empty partition before it is computed.

    Calling it with the rows makes a chunk of them and applies a function to it.

    Its ``number`` counts from 0, as ``X.partitions`` does. ``names`` are those of the columns of a dataframe.
    """

    def __init__(self, number: int, first: int, dtype: np.dtype, n_columns: int, names: list[Any] | None):
        self.number = number
        self.first = first
        self.dtype = dtype
        self.n_columns = n_columns
        self.names = names
        self.__name__ = "partition"  # what Dask's dashboard calls the task

    def __call__(self, function: Callable[[Chunk], Any], X: Any, y: Any, weight: Any = None) -> Any:
        place = f"partition {self.number}"
        rows = as_rows(X, self.dtype, self.n_columns, self.names, f"{place} of X")
        target = as_target(y, Where(f"{place} of y"), labels(None, "y", single=y.ndim == 1))
        check_same_rows(rows.shape[0], len(target), "y", place)
        if weight is not None:
            weight = as_weight(
                weight, Where(f"{place} of sample_weight"), labels(None, "sample_weight", single=True)
            )
            check_same_rows(rows.shape[0], len(weight), "sample_weight", place)
        chunk = Chunk(canonical(rows), target.reshape(len(target), -1), weight, Where(place), self.first)
        return function(chunk)


def as_rows(X: Any, dtype: np.dtype, n_columns: int, names: list[Any] | None, place: str) -> Rows:
    """Return a partition in the form that the kernels read; refuse what is not a finite number."""
    where, label = Where(place), labels(names, "X")
    if X.ndim != 2 or X.shape[1] != n_columns:
        raise ValueError(f"{place}: expected {n_columns} columns, got an array of shape {tuple(X.shape)}.")
    if sparse.issparse(X):
        rows = canonical(X.tocsr().astype(dtype, copy=False))
        check_finite(rows, where, label)
        return rows
    if not (isinstance(X, np.ndarray) or hasattr(X, "to_numpy")):
        raise TypeError(
            f"{place}: it must be a NumPy array, a pandas dataframe or a scipy.sparse matrix, got "
            f"{type(X).__name__}."
        )
    return dense_rows(
        X if isinstance(X, np.ndarray) else X.to_numpy(dtype=dtype, na_value=np.nan), dtype, where, label
    )


def _length(partition: Any) -> int:
    return int(partition.shape[0])  # len() of a sparse matrix is an error


def _rows_and_weights(blocks: list[Block]) -> list[tuple[float, float]]:
    return [(float(block.n_rows), block.total_weight) for block in blocks]


def _evaluate(function: BlockFunction, blocks: list[Block], numbers: list[int]) -> tuple[Any, ...]:
    return add_up(function(blocks[number]) for number in numbers)


def _sum(parts: list[Any]) -> Any:
    return reduce(add, parts)


@sizeof.register(Block)
def _size_of_block(block: Block) -> int:
    """Return the size of a block, which Dask would take for a few bytes that cost nothing to send around."""
    return sum(array.nbytes for array in block.arrays.values())


# ---- new rows


def example_rows(X: Any) -> Any:
    """Return no rows, but all columns of X, by which scikit-learn checks columns and their names."""
    _, n_columns, _ = _columns(X)
    return np.empty((0, n_columns)) if _is_array(X) else X._meta


def map_rows(estimator: Any, method: str, X: Any) -> Any:
    """Return the results of a method for the rows of X, as a Dask array of which nothing is computed yet."""
    names, n_columns, dtype = _columns(X)
    evaluate = Evaluate(estimator, method, dtype, n_columns, names)
    example = evaluate(np.zeros((1, n_columns), dtype))
    width, meta = example.shape[1:], example[:0]
    shared = _shared(evaluate)
    if not _is_array(X):
        call = dask.delayed(_call, pure=False)
        parts = [
            dask.array.from_delayed(call(part, shared), shape=(np.nan, *width), meta=meta)
            for part in _partitions(X)
        ]
        return dask.array.concatenate(parts, allow_unknown_chunksizes=True)
    rows = X.rechunk({1: -1})
    axes = {"chunks": (rows.chunks[0], width)} if width else {"drop_axis": 1}
    return rows.map_blocks(_call, shared, dtype=meta.dtype, meta=meta, **axes)


class Evaluate:
    """A method of an estimator as it is now: a later fit does not change what has been asked for."""

    def __init__(self, estimator: Any, method: str, dtype: np.dtype, n_columns: int, names: list[Any] | None):
        self.estimator = copy(estimator)
        # Names have been checked; the others are of fits alone.
        for name in ("feature_names_in_", "_skl_callbacks", "_stream"):
            vars(self.estimator).pop(name, None)
        self.method = method
        self.dtype = dtype
        self.n_columns = n_columns
        self.names = names

    def __call__(self, partition: Any) -> np.ndarray:
        rows = as_rows(partition, self.dtype, self.n_columns, self.names, "a partition of X")
        # Without scikit-learn's containers for the output.
        method = unwrap(getattr(type(self.estimator), self.method))
        if rows.shape[0]:
            return method(self.estimator, rows)
        return method(self.estimator, np.zeros((1, self.n_columns), self.dtype))[:0]


def _call(partition: Any, evaluate: Evaluate) -> np.ndarray:
    return evaluate(partition)
