"""Finding the arrays of a data set: in a folder, in the cache, or on the network."""

from __future__ import annotations

import os
import sys
import tarfile
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Literal

import numpy as np

from .._data.atomic_file import complete_or_not
from .._data.files.damage import DAMAGED_ARCHIVE
from .catalogue import SETS, DataSet
from .download import DownloadError, Progress, fetch, note_digest, noted_digest, remove
from .parsers import ORIGINALS, Arrays, parse

ARRAYS = ("X_train", "y_train", "X_test", "y_test")


class UnavailableError(RuntimeError):
    """A set is not available; the message is one line that says why and what to do."""


def find_arrays(
    known: DataSet,
    folder: str | os.PathLike[str] | None,
    progress: Progress | None,
    download: bool,
    verify: bool,
) -> tuple[Arrays, Literal["folder", "cache", "download"]]:
    """Return the arrays of a set, and where they were found; the parameters are those of `load`."""
    chosen = folder if folder is not None else os.environ.get("TENSORMACHINES_DATA") or None
    if chosen is not None and (path := Path(chosen) / known.file).exists():
        return _read(path, known.sha256 if verify else None), "folder"
    cached = cache_folder() / known.file
    if cached.exists():
        return _read(cached, noted_digest(cached) if verify else None), "cache"
    if chosen is None:
        missing = f"{known.name}: TENSORMACHINES_DATA is not set, and"
        remedy = f"Put {known.file} into a folder and set TENSORMACHINES_DATA to it."
    else:
        place = "named by TENSORMACHINES_DATA" if folder is None else Path(chosen).name
        missing = f"{known.name}: not in the folder {place}, and"
        remedy = f"Put {known.file} there."
    if known.name not in ORIGINALS:
        raise UnavailableError(f"{missing} there is no public file to download. {remedy}")
    if not download:
        raise UnavailableError(f"{missing} downloads are switched off. {remedy}")
    try:
        return _download(known, cached, progress), "download"
    except (DownloadError, OSError) as error:
        reason = " ".join(str(error).split())
        raise UnavailableError(f"{missing} the download failed: {reason}. {remedy}") from error


def is_at_hand(name: str, folder: str | os.PathLike[str] | None = None) -> bool:
    """Return whether a set can be loaded without the network."""
    file = SETS[name].file
    places = [folder or os.environ.get("TENSORMACHINES_DATA"), cache_folder()]
    return name == "ebay_like" or any(
        (Path(place) / file).is_file() for place in places if place is not None and file
    )


def cache_folder() -> Path:
    """Return TENSORMACHINES_CACHE, or the usual cache folder of the platform."""
    if chosen := os.environ.get("TENSORMACHINES_CACHE"):
        return Path(chosen)
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen) / "tensormachines"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "tensormachines"
    return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "tensormachines"


def content_digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Return the sha256 of dtype, shape and bytes of X_train, y_train, X_test and y_test, in this order."""
    digest = sha256()
    for key in ARRAYS:
        array = np.ascontiguousarray(arrays[key])
        digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.data.cast("B") if array.size else b"")
    return digest.hexdigest()


def _read(path: Path, digest: str | None) -> Arrays:
    """Read the arrays of a file, and check them if a digest is given."""
    try:  # np.load leaves a broken file open
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in ARRAYS}
    except DAMAGED_ARCHIVE as error:
        raise UnavailableError(
            f"{path}: not a .npz file with {', '.join(ARRAYS)}: {error}. Replace or delete it."
        ) from error
    if digest is not None and content_digest(arrays) != digest:
        raise UnavailableError(
            f"{path}: its arrays do not have the known sha256 {digest}. Replace it, or pass verify=False."
        )
    return arrays


def _download(known: DataSet, cached: Path, progress: Progress | None) -> Arrays:
    """Download and parse the original of a set, and keep its arrays in the cache."""
    original = ORIGINALS[known.name]
    paths = [cached.parent / "originals" / remote.file for remote in original.remotes]
    for remote, path in zip(original.remotes, paths, strict=True):
        fetch(remote.urls, path, remote.sha256, progress)
    try:
        arrays = parse(original, paths, known.rows, known.test_rows)
        _check_shapes(known, arrays)
    except (*DAMAGED_ARCHIVE, tarfile.TarError) as error:
        for path in paths:  # the next call downloads them again
            remove(path)
        names = " and ".join(path.name for path in paths)
        raise DownloadError(f"{names} from {original.remotes[0].urls[0]} cannot be read: {error}") from error
    with complete_or_not(cached) as unfinished, open(unfinished, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    note_digest(cached, content_digest(arrays))
    return arrays


def _check_shapes(known: DataSet, arrays: Arrays) -> None:
    for part, rows in (("train", known.rows), ("test", known.test_rows)):
        X, y = arrays[f"X_{part}"], arrays[f"y_{part}"]
        if X.shape != (rows, known.columns) or y.shape != (rows,):
            raise ValueError(
                f"expected {part} rows of shape {(rows, known.columns)}, got {X.shape}, and labels {y.shape}"
            )
        if known.task == "binary" and not np.array_equal(np.unique(y), [-1, 1]):
            raise ValueError(f"expected {part} labels -1 and 1, got {np.unique(y)[:5].tolist()}")
