"""The data sets of the paper, related sets, and a generator that replaces the private one.

    data = load("forest")          # data.X_train, data.y_train, data.X_test, data.y_test
    data = unit_scaling(data)      # the paper's preprocessing

`load` looks for a set in

1. a folder: the argument ``folder``, or else the environment variable TENSORMACHINES_DATA. The set is a file
   NAME.npz with the arrays X_train, y_train, X_test, y_test, of numbers of any type;
2. the cache: TENSORMACHINES_CACHE, or else the usual place for caches of the platform, with files of the same
   form;
3. the network: the original is downloaded, checked, split as in the paper if that split is known, and kept
   in the cache.

Files of the folder are checked by the sha256 of their arrays (`DataSet.sha256`), if it is known. Downloads
are checked by the sha256 that their source publishes. If none is published, rows, columns and labels are
counted, and the sha256 of the first download is stored next to the file, so that later reads see the same
content."""

from __future__ import annotations

import os

from .catalogue import SETS, DataSet, describe
from .data import Data, heard_signals, prepare, unit_scaling
from .download import Progress
from .ebay_generator import ebay_like
from .storage import UnavailableError, cache_folder, content_digest, find_arrays, is_at_hand

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
    """Load a data set; the module docstring says where it comes from.

    Parameters
    ----------
    name : str
        One of `SETS`.
    folder : path, optional
        Folder of the .npz files; None for the environment variable TENSORMACHINES_DATA.
    rows, test_rows : int, optional
        Number of rows to load; None for all rows, which for ebay_like is the number in Table 1. Rows are
        always shuffled in the same way before the first ones are taken, because several of the files are
        sorted. If all test rows are loaded, they keep the order of the file.
    progress : callable, optional
        Called with the number of bytes downloaded so far and in total (None if the server does not say).
    download : bool
        Whether the network may be used.
    verify : bool
        Whether to check the content of a file against the known checksum.

    Returns
    -------
    Data

    Raises
    ------
    UnavailableError
        If the set is not available; the message is one line with the reason.
    """
    if name not in SETS:
        raise ValueError(f"name must be one of {sorted(SETS)}, got {name!r}.")
    for label, number in (("rows", rows), ("test_rows", test_rows)):
        if number is not None and number < 1:
            raise ValueError(f"{label} must be at least 1 or None, got {number!r}.")
    known = SETS[name]
    if name == "ebay_like":
        arrays = ebay_like(rows or known.rows, test_rows or known.test_rows)
        return Data(name, *arrays, known.faithful, "generated")
    if name == "ebay":
        raise UnavailableError(
            "ebay: the search data of eBay are private. Use ebay_like, which is generated in the same shape."
        )
    source = SETS["indoor"] if name == "indoor_heard" else known
    data = prepare(source, *find_arrays(source, folder, progress, download, verify), rows, test_rows)
    return heard_signals(data) if name == "indoor_heard" else data
