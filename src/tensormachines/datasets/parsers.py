"""The paper's data sets as their authors publish them: where the files are, and how their text becomes
arrays.
"""

from __future__ import annotations

import bz2
import gzip
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeAlias, cast

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray]  # X_train, y_train, X_test, y_test
Split: TypeAlias = tuple[int, int]  # rows to train with, rows to test with

UCI = "https://archive.ics.uci.edu/static/public"
OLD_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
SPLIT_SEED = 20150407  # where the paper's random split is not published


@dataclass(frozen=True)
class Remote:
    """A file of an original: its name in the cache, the addresses it may be at, and its sha256 where one is
    published.
    """

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Original:
    remotes: tuple[Remote, ...]
    parse: Callable[[list[Path], Split], Arrays]


class FormatError(ValueError):
    """A file is not what its format promises."""


def parse_indoor(paths: list[Path], split: Split) -> Arrays:
    """UJIIndoorLoc: 520 signal strengths, then longitude, latitude and seven other columns; the target is the
    longitude.
    """
    train, test = (
        _table(paths[0], member, skiprows=1) for member in ("trainingData.csv", "validationData.csv")
    )
    return _arrays(train[:, :520], train[:, 520], test[:, :520], test[:, 520])


def parse_year(paths: list[Path], split: Split) -> Arrays:
    """The year, then 90 columns; the first rows are for training, so that no artist is in both parts."""
    table = _table(paths[0], "YearPredictionMSD.txt")
    _check_rows(table, sum(split), exactly=True)
    return _divided(table[:, 1:], table[:, 0], np.arange(len(table)), split)


def parse_slice(paths: list[Path], split: Split) -> Arrays:
    """Number of the patient, 384 columns, the position in the body."""
    table = _table(paths[0], "slice_localization_data.csv", skiprows=1)
    return _random_split(table[:, 1:-1], table[:, -1], split)


def parse_buzz(paths: list[Path], split: Split) -> Arrays:
    """77 columns and the number of discussions to come."""
    table = _table(paths[0], "Twitter.data")
    return _random_split(table[:, :-1], table[:, -1], split)


def parse_forest(paths: list[Path], split: Split) -> Arrays:
    """54 columns and the type of the forest, 1 to 7: 2 against the rest."""
    table = _table(paths[0], "covtype.data", dtype=np.int16)
    return _random_split(table[:, :-1], np.where(table[:, -1] == 2, 1, -1), split)


def parse_gisette(paths: list[Path], split: Split) -> Arrays:
    """5,000 columns; the labels of the challenge's validation rows were published later, those of its test
    rows never.
    """
    parts = [
        _table(paths[0], f"gisette_{part}.{kind}", separator=None, dtype=np.int16)
        for part in ("train", "valid")
        for kind in ("data", "labels")
    ]
    X_train, y_train, X_test, y_test = parts
    return _arrays(X_train, _column(y_train), X_test, _column(y_test))


def parse_adult(paths: list[Path], split: Split) -> Arrays:
    """LIBSVM's a9a and a9a.t. The 123rd column is empty in a9a.t, and left out: the paper has 122."""
    return _svmlight_pair(paths, 123, 122)


def parse_cod_rna(paths: list[Path], split: Split) -> Arrays:
    """LIBSVM's cod-rna to train with, and cod-rna.r to test with: of the three files, the one with the
    paper's 157,413 rows.
    """
    return _svmlight_pair(paths, 8, 8)


ORIGINALS: dict[str, Original] = {
    "indoor": Original(
        (Remote("ujiindoorloc.zip", (f"{UCI}/310/ujiindoorloc.zip", f"{OLD_UCI}/00310/UJIndoorLoc.zip")),),
        parse_indoor,
    ),
    "year": Original(
        (
            Remote(
                "yearpredictionmsd.zip",
                (f"{UCI}/203/yearpredictionmsd.zip", f"{OLD_UCI}/00203/YearPredictionMSD.txt.zip"),
            ),
        ),
        parse_year,
    ),
    "slice": Original(
        (
            Remote(
                "slice_localization_data.zip",
                (
                    f"{UCI}/206/relative+location+of+ct+slices+on+axial+axis.zip",
                    f"{OLD_UCI}/00206/slice_localization_data.zip",
                ),
            ),
        ),
        parse_slice,
    ),
    "buzz": Original(
        (
            Remote(
                "buzz_in_social_media",
                (f"{UCI}/248/buzz+in+social+media.zip", f"{OLD_UCI}/00248/regression.tar.gz"),
            ),
        ),
        parse_buzz,
    ),
    "gisette": Original((Remote("gisette.zip", (f"{UCI}/170/gisette.zip",)),), parse_gisette),
    "adult": Original(
        (Remote("a9a", (f"{LIBSVM}/a9a",)), Remote("a9a.t", (f"{LIBSVM}/a9a.t",))), parse_adult
    ),
    "forest": Original(
        (
            Remote(
                "covtype.data.gz",
                ("https://ndownloader.figshare.com/files/5976039", f"{OLD_UCI}/covtype/covtype.data.gz"),
                # as in sklearn.datasets.fetch_covtype
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
        parse_forest,
    ),
    "cod_rna": Original(
        (Remote("cod-rna", (f"{LIBSVM}/cod-rna",)), Remote("cod-rna.r", (f"{LIBSVM}/cod-rna.r",))),
        parse_cod_rna,
    ),
}


def _table(
    path: Path, member: str, *, separator: str | None = ",", dtype: Any = np.float64, skiprows: int = 0
) -> np.ndarray:
    """Numbers in text: of a file that is compressed or not, or of the one with that name in an archive."""
    if path.stat().st_size == 0:
        raise FormatError("it is empty")
    with path.open("rb") as file:
        lines = _find(file, member)
        if lines is None:
            raise FormatError(f"there is no {member} in it")
        return np.loadtxt(lines, dtype=dtype, delimiter=separator, skiprows=skiprows, ndmin=2)


def _find(file: IO[bytes], member: str) -> IO[bytes] | None:
    """A stream of the text of that name, however many archives deep; a file that is no archive is taken to be
    the text itself.
    """
    start = file.read(4)
    file.seek(0)
    if start[:2] == b"PK":
        return _find_in_zip(zipfile.ZipFile(file), member)
    if start[:2] == b"\x1f\x8b":
        return _find_in_tar_or_text(gzip.GzipFile(fileobj=file), member)
    if start[:3] == b"BZh":
        return _find_in_tar_or_text(bz2.BZ2File(file), member)
    return _find_in_tar_or_text(file, member)


def _find_in_zip(archive: zipfile.ZipFile, member: str) -> IO[bytes] | None:
    names = archive.namelist()
    for name in names:
        if PurePosixPath(name).name == member:
            return archive.open(name)
    for name in names:
        if _is_archive(name):
            found = _find(BytesIO(archive.read(name)), member)
            if found is not None:
                return found
    return None


def _find_in_tar_or_text(file: Any, member: str) -> IO[bytes] | None:
    try:
        archive = tarfile.open(fileobj=file, mode="r:")  # noqa: SIM115 (the stream that is returned reads from it)
    except tarfile.ReadError:
        file.seek(0)
        return cast(IO[bytes], file)
    for entry in archive:
        if entry.isfile() and PurePosixPath(entry.name).name == member:
            return archive.extractfile(entry)
    return None


def _is_archive(name: str) -> bool:
    return name.lower().endswith((".zip", ".tar.gz", ".tgz", ".tar")) and not name.startswith("__MACOSX")


def _svmlight_pair(paths: list[Path], columns: int, kept: int) -> Arrays:
    from sklearn.datasets import load_svmlight_file

    parts: list[np.ndarray] = []
    for path in paths:
        X, y = load_svmlight_file(str(path), n_features=columns, dtype=np.float32, zero_based=False)
        parts += [X.toarray()[:, :kept], y]
    return _arrays(*parts)


def _random_split(X: np.ndarray, y: np.ndarray, split: Split) -> Arrays:
    _check_rows(X, sum(split), exactly=False)
    return _divided(X, y, np.random.default_rng(SPLIT_SEED).permutation(len(X)), split)


def _divided(X: np.ndarray, y: np.ndarray, order: np.ndarray, split: Split) -> Arrays:
    train, test = order[: split[0]], order[split[0] : sum(split)]
    return _arrays(X[train], y[train], X[test], y[test])


def _check_rows(table: np.ndarray, rows: int, exactly: bool) -> None:
    if len(table) < rows or (exactly and len(table) > rows):
        raise FormatError(
            f"it has {len(table)} rows, where {'' if exactly else 'at least '}{rows} were expected"
        )


def _column(table: np.ndarray) -> np.ndarray:
    if table.shape[1] != 1:
        raise FormatError(f"a label takes {table.shape[1]} columns, where 1 was expected")
    return table[:, 0]


def _arrays(X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Arrays:
    return {"X_train": X_train, "y_train": y_train, "X_test": X_test, "y_test": y_test}
