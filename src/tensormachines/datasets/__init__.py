"""The data sets of the paper, their relatives, and a generator in the place of the one that is private.

    data = load("forest")          # data.X_train, data.y_train, data.X_test, data.y_test
    data = unit_scaling(data)      # the paper's preprocessing

A set is looked for in

1. a folder: the argument ``folder``, or else the environment variable TENSORMACHINES_DATA. There it is a file
NAME.npz with the arrays
   X_train, y_train, X_test, y_test, of numbers of any kind;
2. the cache: TENSORMACHINES_CACHE, or else the usual place for caches of the platform, with files of the same
form;
3. the network: the original is downloaded, checked, split as in the paper where that is known, and kept in
the cache.

How a file is known to be right: those of the folder by the sha256 of their arrays (`DataSet.sha256`), where
this is known; downloads by the sha256 that their source publishes, where it does. Where it does not, nothing
is invented: rows, columns and labels are counted, and the sha256 of the first download is kept beside the
file, so that what is read later is what was read first."""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import sparse

from .._data.atomic_file import complete_or_not
from .._model.basis import Basis, fit_basis
from .._model.moments import Rows, moments
from .catalogue import SETS, DataSet
from .download import DownloadError, Progress, fetch, note_digest, noted_digest, remove
from .ebay_generator import ebay_like
from .parsers import ORIGINALS, Arrays

__all__ = [
    "SETS",
    "Data",
    "DataSet",
    "UnavailableError",
    "cache_folder",
    "content_digest",
    "describe",
    "ebay_like",
    "is_at_hand",
    "load",
    "unit_scaling",
]

ARRAYS = ("X_train", "y_train", "X_test", "y_test")
SPARSE_BELOW = 0.1  # of a fit to Forest (0.22) and Adult (0.11), the dense form takes half the time
ORDER_SEED = 0
ROWS_AT_ONCE = 4096
NOT_HEARD, WEAKEST = 100, -104  # of the access points of Indoor


class UnavailableError(RuntimeError):
    """A set cannot be had; the message is one line that says why, and what to do."""


@dataclass(frozen=True)
class Data:
    """Rows to train and to test with.

    X is float32, C-contiguous, or a csr_array where less than a tenth of the training entries is not 0. y is
    float64 in regression, and -1 or +1 in int64 for two classes. ``faithful`` says whether errors may stand
    beside the paper's figures, ``origin`` where the rows come from: "folder", "cache", "download" or
    "generated"."""

    name: str
    X_train: Rows
    y_train: np.ndarray
    X_test: Rows
    y_test: np.ndarray
    faithful: bool
    origin: Literal["folder", "cache", "download", "generated"]


def load(
    name: str,
    folder: str | os.PathLike[str] | None = None,
    *,
    rows: int | None = None,
    test_rows: int | None = None,
    progress: Progress | None = None,
    download: bool = True,
    verify: bool = True,
) -> Data:
    """A data set; see the module for where it comes from.

    Parameters
    ----------
    name : str
        One of `SETS`.
    folder : path, optional
        Where the .npz files are; None for the environment variable TENSORMACHINES_DATA.
    rows, test_rows : int, optional
        Only so many; None for all, which for ebay_like is what Table 1 has. They are the first of an order
        that was shuffled once and for all, as several of the files are sorted; test rows keep the order of
        the file where all are wanted.
    progress : callable, optional
        Called with the bytes downloaded so far, and how many there are (None if the server does not say).
    download : bool
        Whether the network may be used.
    verify : bool
        Whether the content of a file must have the known checksum.

    Returns
    -------
    Data

    Raises
    ------
    UnavailableError
        If the set cannot be had: one line with the reason.
    """
    if name not in SETS:
        raise ValueError(f"name must be one of {sorted(SETS)}, got {name!r}.")
    for label, number in (("rows", rows), ("test_rows", test_rows)):
        if number is not None and number < 1:
            raise ValueError(f"{label} must be at least 1 or None, got {number!r}.")
    known = SETS[name]
    if name == "ebay_like":
        X_train, y_train, X_test, y_test = ebay_like(rows or known.rows, test_rows or known.test_rows)
        return Data(name, X_train, y_train, X_test, y_test, known.faithful, "generated")
    if name == "indoor_heard":
        return _heard(
            load(
                "indoor",
                folder,
                rows=rows,
                test_rows=test_rows,
                progress=progress,
                download=download,
                verify=verify,
            )
        )
    if name == "ebay":
        raise UnavailableError(
            "ebay: the search data of eBay are private. Use ebay_like, which is generated and of the same shape."
        )
    arrays, origin = _found(known, folder, progress, download, verify)
    # Downloads are of the paper's files themselves: what is said of a file in the folder does not hold for
    # them.
    faithful = known.faithful if origin == "folder" else known.name == known.paper_name
    return _finished(known, arrays, rows, test_rows, faithful, origin)


def _heard(indoor: Data) -> Data:
    """Signal strengths from 0 on: -104 dBm, the weakest, is 1, and an access point that was not heard 0.

    Those that were never heard in training are left out of the test rows too: nothing can be learnt of them,
    and they have no scale."""
    parts = {"X_train": indoor.X_train, "X_test": indoor.X_test}
    signals = {
        key: np.where(X == NOT_HEARD, 0.0, X - WEAKEST + 1).astype(np.float32) for key, X in parts.items()
    }
    signals["X_test"] *= signals["X_train"].any(axis=0)
    sparse_signals = {key: sparse.csr_array(X) for key, X in signals.items()}
    return replace(indoor, name="indoor_heard", faithful=SETS["indoor_heard"].faithful, **sparse_signals)


def is_at_hand(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Whether a set can be loaded without the network."""
    file = SETS[name].file
    places = [folder or os.environ.get("TENSORMACHINES_DATA"), cache_folder()]
    return name == "ebay_like" or any(
        (Path(place) / file).is_file() for place in places if place is not None and file
    )


def unit_scaling(data: Data) -> Data:
    """The paper's preprocessing: columns of the training rows to unit Euclidean norm, then every row; what is
    0 stays 0.

    It is what ``basis="unit"`` does to the rows inside a Tensor Machine, for the methods that have no bases.
    """
    basis = fit_basis("unit", moments(data.X_train), np.dtype(np.float32))
    return replace(data, X_train=_lifted(basis, data.X_train), X_test=_lifted(basis, data.X_test))


def describe() -> str:
    """The sets in Markdown: a table, then what is to be known and whom to cite."""
    lines = [
        "| set | rows to train / test | columns | task | q | beside the paper's figures? | had from | licence |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for s in SETS.values():
        size = f"{s.rows:,} / {s.test_rows:,} | {s.columns:,}"
        lines.append(
            f"| `{s.name}` | {size} | {s.task} | {s.degree} | {_comparable(s)} | {_access(s)} | {s.licence} |"
        )
    lines.append("")
    for s in SETS.values():
        source = f" [Source]({s.source})." if s.source.startswith("http") else ""
        lines.append(
            f"- `{s.name}` ({s.title}){': ' + s.note if s.note else '.'} Cite: {s.citation}.{source}"
        )
    return "\n".join(lines)


def content_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """sha256 of the type, shape and bytes of X_train, y_train, X_test and y_test, in this order."""
    digest = sha256()
    for key in ARRAYS:
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def _comparable(known: DataSet) -> str:
    if known.name != known.paper_name:
        return f"no: a relative of {SETS[known.paper_name].title}"
    return "yes" if known.faithful else "only if downloaded" if known.name in ORIGINALS else "no"


def _access(known: DataSet) -> str:
    if not known.file:
        return known.source
    return "folder, download" if Path(known.file).stem in ORIGINALS else "folder"


def _found(
    known: DataSet, folder: Any, progress: Progress | None, download: bool, verify: bool
) -> tuple[Arrays, Any]:
    chosen = folder if folder is not None else os.environ.get("TENSORMACHINES_DATA") or None
    if chosen is not None and (path := Path(chosen) / known.file).exists():
        return _read(path, known.sha256 if verify else None), "folder"
    cached = cache_folder() / known.file
    if cached.exists():
        return _read(cached, noted_digest(cached) if verify else None), "cache"
    if chosen is None:
        missing = f"{known.name}: TENSORMACHINES_DATA is not set, and"
        remedy = f"Put {known.file} into a folder and name that in TENSORMACHINES_DATA."
    else:
        missing = f"{known.name}: not in the folder {'that TENSORMACHINES_DATA names' if folder is None else Path(chosen).name}, and"
        remedy = f"Put {known.file} there."
    if known.name not in ORIGINALS:
        raise UnavailableError(f"{missing} there is no public file to download. {remedy}")
    if not download:
        raise UnavailableError(f"{missing} downloads are switched off. {remedy}")
    try:
        return _downloaded(known, cached, progress), "download"
    except (DownloadError, OSError) as error:
        raise UnavailableError(
            f"{missing} the download failed: {' '.join(str(error).split())}. {remedy}"
        ) from error


def cache_folder() -> Path:
    """TENSORMACHINES_CACHE, or the usual place of the platform."""
    if chosen := os.environ.get("TENSORMACHINES_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "tensormachines"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "tensormachines"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "tensormachines"


def _read(path: Path, digest: str | None) -> Arrays:
    """The arrays of a file, which must be whole."""
    try:
        with (
            path.open("rb") as stream,
            np.load(stream, allow_pickle=False) as file,
        ):  # np.load leaves a broken file open
            arrays = {key: file[key] for key in ARRAYS}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UnavailableError(
            f"{path}: not a .npz file with {', '.join(ARRAYS)}: {error}. Replace or delete it."
        ) from error
    if digest is not None and content_digest(arrays) != digest:
        raise UnavailableError(
            f"{path}: its arrays are not those that are known (sha256 {digest}). Replace it, or pass verify=False."
        )
    return arrays


def _downloaded(known: DataSet, cached: Path, progress: Progress | None) -> Arrays:
    original = ORIGINALS[known.name]
    paths = [cached.parent / "originals" / remote.file for remote in original.remotes]
    for remote, path in zip(original.remotes, paths, strict=True):
        fetch(remote.urls, path, remote.sha256, progress)
    try:
        arrays = original.parse(paths, (known.rows, known.test_rows))
        _check_shapes(known, arrays)
    except (ValueError, EOFError, zipfile.BadZipFile, tarfile.TarError, OSError) as error:
        for path in paths:  # the next call downloads them again
            remove(path)
        names = " and ".join(path.name for path in paths)
        raise DownloadError(f"{names} from {original.remotes[0].urls[0]} cannot be read: {error}") from error
    _keep(cached, arrays)
    return arrays


def _check_shapes(known: DataSet, arrays: Arrays) -> None:
    for part, rows in (("train", known.rows), ("test", known.test_rows)):
        X, y = arrays[f"X_{part}"], arrays[f"y_{part}"]
        if X.shape != (rows, known.columns) or y.shape != (rows,):
            raise ValueError(
                f"{part} rows of shape {X.shape}, labels {y.shape}, where {(rows, known.columns)} was expected"
            )
        if known.task == "binary" and not np.array_equal(np.unique(y), [-1, 1]):
            raise ValueError(f"{part} labels {np.unique(y)[:5].tolist()}, where -1 and 1 were expected")


def _keep(cached: Path, arrays: Arrays) -> None:
    with complete_or_not(cached) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    note_digest(cached, content_digest(arrays))


def _finished(
    known: DataSet, arrays: Arrays, rows: int | None, test_rows: int | None, faithful: bool, origin: Any
) -> Data:
    order = np.random.default_rng(ORDER_SEED).permutation(len(arrays["X_train"]))[:rows]
    tested = (
        np.random.default_rng(ORDER_SEED).permutation(len(arrays["X_test"]))[:test_rows]
        if test_rows
        else slice(None)
    )
    as_sparse = bool(np.count_nonzero(arrays["X_train"]) < SPARSE_BELOW * arrays["X_train"].size)
    dtype = np.dtype(np.float64 if known.task == "regression" else np.int64)
    X_train, X_test = (
        _in_float32(X, as_sparse) for X in (arrays["X_train"][order], arrays["X_test"][tested])
    )
    y_train, y_test = arrays["y_train"][order].astype(dtype), arrays["y_test"][tested].astype(dtype)
    return Data(known.name, X_train, y_train, X_test, y_test, faithful, origin)


def _in_float32(X: np.ndarray, as_sparse: bool) -> Rows:
    return sparse.csr_array(X, dtype=np.float32) if as_sparse else np.ascontiguousarray(X, dtype=np.float32)


def _lifted(basis: Basis, X: Rows) -> Rows:
    if sparse.issparse(X):
        return sparse.csr_array(basis.lift(X).explicit())
    scaled = np.empty(X.shape, dtype=np.float32)
    for start in range(
        0, len(X), ROWS_AT_ONCE
    ):  # in pieces, as the largest X fill half of the memory of a small machine
        piece = slice(start, start + ROWS_AT_ONCE)
        scaled[piece] = basis.lift(X[piece]).explicit()
    return scaled
