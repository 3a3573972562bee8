"""The paper's data sets as their authors publish them: addresses of the files, and parsers of their text."""

from __future__ import annotations

import bz2
import gzip
import tarfile
import zipfile
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from io import BufferedReader, BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal, TypeAlias, cast

import numpy as np

Arrays: TypeAlias = dict[str, np.ndarray]  # X_train, y_train, X_test, y_test

UCI = "https://archive.ics.uci.edu/static/public"
OLD_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
MOST_BYTES, MOST_OF_LINE = 1 << 32, 1 << 20  # of unpacked text: a small archive can unpack without end
SPLIT_SEED = 20150407  # for random splits: the splits of the paper are not published


@dataclass(frozen=True)
class Remote:
    """A file of an original: its name in the cache, its possible addresses, and the published sha256."""

    file: str
    urls: tuple[str, ...]
    sha256: str | None = None


@dataclass(frozen=True)
class Original:
    """The files of a set, and how to read them.

    ``read`` returns X_train, y_train, X_test and y_test if the source is split, and otherwise X and y;
    ``split`` then says whether the first rows or random rows are for training.
    """

    remotes: tuple[Remote, ...]
    read: Callable[[list[Path]], tuple[np.ndarray, ...]]
    split: Literal["published", "first", "random"] = "published"


class FormatError(ValueError):
    """A file does not have its expected format."""


def parse(original: Original, paths: list[Path], rows: int, test_rows: int) -> Arrays:
    """Read the files of an original, and split them into training and test rows if they are not yet split."""
    arrays = original.read(paths)
    if original.split != "published":
        X, y = arrays
        exactly = original.split == "first"  # a split by the order of the rows needs all of them
        if len(X) < rows + test_rows or (exactly and len(X) > rows + test_rows):
            raise FormatError(
                f"expected {'' if exactly else 'at least '}{rows + test_rows} rows, got {len(X)}"
            )
        order = np.arange(len(X)) if exactly else np.random.default_rng(SPLIT_SEED).permutation(len(X))
        train, test = order[:rows], order[rows : rows + test_rows]
        arrays = X[train], y[train], X[test], y[test]
    return dict(zip(("X_train", "y_train", "X_test", "y_test"), arrays, strict=True))


def read_indoor(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read UJIIndoorLoc: 520 signal strengths, then longitude, latitude and seven other columns.

    The target is the longitude.
    """
    train, test = (
        _numbers(paths[0], member, skiprows=1) for member in ("trainingData.csv", "validationData.csv")
    )
    return train[:, :520], train[:, 520], test[:, :520], test[:, 520]


def read_year(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read the year, then 90 columns. If the first rows are for training, no artist is in both parts."""
    numbers = _numbers(paths[0], "YearPredictionMSD.txt")
    return numbers[:, 1:], numbers[:, 0]


def read_slice(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read the patient number, which is dropped, 384 columns, and the position in the body."""
    numbers = _numbers(paths[0], "slice_localization_data.csv", skiprows=1)
    return numbers[:, 1:-1], numbers[:, -1]


def read_buzz(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read 77 columns and the number of future discussions."""
    numbers = _numbers(paths[0], "Twitter.data")
    return numbers[:, :-1], numbers[:, -1]


def read_forest(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read 54 columns and the forest type, 1 to 7; the target is type 2 against the rest."""
    numbers = _numbers(paths[0], "covtype.data", dtype=np.int16)
    return numbers[:, :-1], np.where(numbers[:, -1] == 2, 1, -1)


def read_gisette(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read 5,000 columns and the labels of the challenge's training and validation rows.

    The labels of the test rows were never published.
    """
    X_train, y_train, X_test, y_test = (
        _numbers(paths[0], f"gisette_{part}.{kind}", separator=None, dtype=np.int16)
        for part in ("train", "valid")
        for kind in ("data", "labels")
    )
    return X_train, _column(y_train), X_test, _column(y_test)


def read_adult(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read LIBSVM's a9a and a9a.t without the 123rd column, which is empty in a9a.t: the paper has 122."""
    return _svmlight_pair(paths, 123, 122)


def read_cod_rna(paths: list[Path]) -> tuple[np.ndarray, ...]:
    """Read LIBSVM's cod-rna, and cod-rna.r for testing: the one of its three files with 157,413 rows."""
    return _svmlight_pair(paths, 8, 8)


ORIGINALS: dict[str, Original] = {
    "indoor": Original(
        (Remote("ujiindoorloc.zip", (f"{UCI}/310/ujiindoorloc.zip", f"{OLD_UCI}/00310/UJIndoorLoc.zip")),),
        read_indoor,
    ),
    "year": Original(
        (
            Remote(
                "yearpredictionmsd.zip",
                (f"{UCI}/203/yearpredictionmsd.zip", f"{OLD_UCI}/00203/YearPredictionMSD.txt.zip"),
            ),
        ),
        read_year,
        "first",
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
        read_slice,
        "random",
    ),
    "buzz": Original(
        (
            Remote(
                "buzz_in_social_media",
                (f"{UCI}/248/buzz+in+social+media.zip", f"{OLD_UCI}/00248/regression.tar.gz"),
            ),
        ),
        read_buzz,
        "random",
    ),
    "gisette": Original((Remote("gisette.zip", (f"{UCI}/170/gisette.zip",)),), read_gisette),
    "adult": Original((Remote("a9a", (f"{LIBSVM}/a9a",)), Remote("a9a.t", (f"{LIBSVM}/a9a.t",))), read_adult),
    "forest": Original(
        (
            Remote(
                "covtype.data.gz",
                ("https://ndownloader.figshare.com/files/5976039", f"{OLD_UCI}/covtype/covtype.data.gz"),
                # as in sklearn.datasets.fetch_covtype
                "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            ),
        ),
        read_forest,
        "random",
    ),
    "cod_rna": Original(
        (Remote("cod-rna", (f"{LIBSVM}/cod-rna",)), Remote("cod-rna.r", (f"{LIBSVM}/cod-rna.r",))),
        read_cod_rna,
    ),
}


def _numbers(
    path: Path, member: str, *, separator: str | None = ",", dtype: Any = np.float64, skiprows: int = 0
) -> np.ndarray:
    """Read the numbers of a text file, compressed or not, or of the archive member with this name."""
    if path.stat().st_size == 0:
        raise FormatError("the file is empty")
    with path.open("rb") as file:
        lines = _find(file, member)
        if lines is None:
            raise FormatError(f"the archive has no {member}")
        with closing(limited_lines(lines)) as limited:
            return np.loadtxt(limited, dtype=dtype, delimiter=separator, skiprows=skiprows, ndmin=2)


def limited_lines(file: IO[bytes], most_bytes: int = MOST_BYTES) -> Generator[bytes, None, None]:
    """Yield the lines of a file; refuse one with more bytes than expected, or with an endless line."""
    left, text = most_bytes, BufferedReader(cast(Any, file), MOST_OF_LINE)
    try:
        while line := text.readline(MOST_OF_LINE):
            left -= len(line)
            if left < 0 or len(line) == MOST_OF_LINE:
                raise FormatError(
                    f"the text has more than {most_bytes / 1e9:.3g} GB, or a line of more than "
                    f"{MOST_OF_LINE / 1e6:.3g} MB"
                )
            yield line
    finally:
        text.detach()  # who opened the file closes it


def _find(file: IO[bytes], member: str) -> IO[bytes] | None:
    """Return a stream of the member with this name, also from nested archives; None if there is none.

    A file that is not an archive is taken to be the member itself.
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
            if archive.getinfo(name).file_size > MOST_BYTES:
                raise FormatError(f"{name} would unpack to more than {MOST_BYTES / 1e9:.3g} GB")
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


def _svmlight_pair(paths: list[Path], columns: int, kept: int) -> tuple[np.ndarray, ...]:
    from sklearn.datasets import load_svmlight_file

    parts: list[np.ndarray] = []
    for path in paths:
        X, y = load_svmlight_file(str(path), n_features=columns, dtype=np.float32, zero_based=False)
        parts += [X.toarray()[:, :kept], y]
    return tuple(parts)


def _column(numbers: np.ndarray) -> np.ndarray:
    if numbers.shape[1] != 1:
        raise FormatError(f"expected labels in 1 column, got {numbers.shape[1]}")
    return numbers[:, 0]
