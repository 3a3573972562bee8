"""The container of a saved model: one JSON text and some arrays, with a checksum. All numbers are
little-endian.

    8 bytes    MAGIC
    4          version of the format
    4          1 if the content is compressed by zlib, otherwise 0
    8          number of bytes after the checksum
    8          number of bytes of the content before compression
    32         SHA-256 of all other bytes of the file
    ...        content: 8 bytes for the size of the JSON text, the text in ASCII, and then the arrays: for
               each, the first bytes of all entries, then their second bytes, and so on, to compress better

The text is an object {"arrays": [[dtype, shape], ...], "facts": ...}. A reader trusts no size before it has
seen that many bytes. It allocates at most a few times the size of the content, which is at most MOST_TIMES
the size of the file, or SMALL, whichever is larger."""

from __future__ import annotations

import json
import math
import os
import re
import stat
import struct
import zlib
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .._data.atomic_file import complete_or_not

MAGIC = b"\x89TMODEL\n"  # no text begins like this, and line-ending conversion breaks it
VERSION = 1
MOST_TIMES, SMALL = 8, 1 << 20
HEADER = struct.Struct("<8sIIQQ")
DIGEST_SIZE = 32
DTYPE = re.compile(r"\|b1|\|[iu]1|<[iu][248]|<f[248]|<U[1-9]\d{0,6}|\|S[1-9]\d{0,6}")


class ModelFileError(ValueError):
    """A file that is not a saved model, is damaged, or needs a newer version."""


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ModelFileError(f"it is damaged: {otherwise}")


# ---- writing


def pack(facts: Any, arrays: list[np.ndarray]) -> bytes:
    """Return the bytes of a file."""
    plain = [_little_endian(array) for array in arrays]
    declared = [[array.dtype.str, list(array.shape)] for array in plain]
    parsed = {"arrays": declared, "facts": facts}
    text = json.dumps(parsed, allow_nan=False, separators=(",", ":")).encode("ascii")
    content = b"".join([struct.pack("<Q", len(text)), text, *map(_bytes, plain)])
    stored = zlib.compress(content)  # a higher level takes ten times as long and saves 0.2 %
    compressed = len(stored) < len(content) <= _most(len(stored))
    stored = stored if compressed else content
    header = HEADER.pack(MAGIC, VERSION, compressed, len(stored), len(content))
    return b"".join([header, _digest(header, stored), stored])


def write(path: Path, data: bytes) -> None:
    """Write all or nothing: the new file is complete and on disk before it replaces the old one."""
    with complete_or_not(path) as unfinished, open(unfinished, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if os.name == "posix":  # the name is on disk once the folder is
        folder = os.open(os.path.dirname(os.path.realpath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _little_endian(array: np.ndarray) -> np.ndarray:
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if not DTYPE.fullmatch(array.dtype.str):
        raise TypeError(f"cannot save an array of dtype {array.dtype}")
    return array


def _bytes(array: np.ndarray) -> bytes:
    return np.frombuffer(array.tobytes(), np.uint8).reshape(array.size, array.itemsize).T.tobytes()


# ---- reading


def read(path: Path) -> bytes:
    """Return all bytes of a regular file that begins as model files do, and the first bytes of any other.

    Pipes and devices are refused, because they may have no end."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ModelFileError("it is not a regular file")
        with open(path, "rb") as file:
            start = file.read(len(MAGIC))
            if start != MAGIC:
                return start
            file.seek(0)
            return file.read()
    except OSError as error:
        raise ModelFileError(f"{error.strerror}") from error


def unpack(data: bytes) -> tuple[Any, list[np.ndarray]]:
    """Return the facts and the arrays of a file."""
    content = _content(data)
    (size,) = struct.unpack_from("<Q", content) if len(content) >= 8 else (math.inf,)
    require(size <= len(content) - 8, "its text is longer than the file")
    text = _parse(content[8 : 8 + size])
    known = isinstance(text, dict) and set(text) == {"arrays", "facts"} and isinstance(text["arrays"], list)
    require(known, "it has no list of arrays")
    arrays, place = [], 8 + size
    for declared in text["arrays"]:
        array = _array(content, place, declared)
        arrays.append(array)
        place += array.nbytes
    require(place == len(content), "it is longer than its arrays")
    return text["facts"], arrays


def _content(data: bytes) -> bytes:
    if not data.startswith(MAGIC):
        pickled = data[:1] == b"\x80"
        what = "a pickle, which can run any code when it is loaded" if pickled else "something else"
        raise ModelFileError(f"it is {what if data else 'empty'}")
    start = HEADER.size + DIGEST_SIZE
    require(len(data) >= start, "it is incomplete")
    _, version, compressed, stored_size, size = HEADER.unpack_from(data)
    if version > VERSION:
        raise ModelFileError(
            f"it was written by a newer version (format {version}, this one reads up to {VERSION}): "
            "upgrade tensormachines"
        )
    header, digest, stored = data[: HEADER.size], data[HEADER.size : start], data[start:]
    expected = f"it should have {stored_size} bytes after its header, and has {len(stored)}"
    require(stored_size == len(stored), expected)
    require(_digest(header, stored) == digest, "its checksum is wrong")
    possible = version > 0 and compressed <= 1 and size <= (_most(len(stored)) if compressed else len(stored))
    require(possible, "its header makes no sense")
    return _decompressed(stored, size) if compressed else stored


def _decompressed(stored: bytes, size: int) -> bytes:
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(stored, size + 1)
    except zlib.error as error:
        raise ModelFileError(f"it is damaged: {error}") from error
    complete = len(content) == size and reader.eof and not reader.unused_data
    require(complete, "its content does not have the size in its header")
    return content


def _digest(header: bytes, stored: bytes) -> bytes:
    digest = sha256(header)
    digest.update(stored)
    return digest.digest()


def _most(stored: int) -> int:
    """Return the largest size of the content of a compressed file."""
    return max(SMALL, MOST_TIMES * stored)


def _parse(text: bytes) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not a number")

    def finite(number: str) -> float:
        return float(number) if math.isfinite(float(number)) else refuse(number)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise ValueError("duplicate key")
        return dict(pairs)

    try:
        return json.loads(
            text.decode("ascii"), parse_constant=refuse, parse_float=finite, object_pairs_hook=unique
        )
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"it is damaged: {error}") from error


def _array(content: bytes, place: int, declared: Any) -> np.ndarray:
    match declared:
        case [str(code), list(shape)] if DTYPE.fullmatch(code) and len(shape) <= 8:
            dtype = np.dtype(code)
        case _:
            raise ModelFileError("it is damaged: an array has a type or shape that is not allowed")
    lengths = all(type(length) is int and 0 <= length < 1 << 48 for length in shape)
    require(lengths, "an array has a shape that is not allowed")
    count = math.prod(shape)
    fits = count * dtype.itemsize <= len(content) - place
    require(fits and math.prod(length or 1 for length in shape) < 1 << 48, "an array is longer than the file")
    planes = np.frombuffer(content, np.uint8, count * dtype.itemsize, place).reshape(dtype.itemsize, count)
    array = np.frombuffer(planes.T.tobytes(), dtype, count)
    if dtype.kind == "b":
        require(bool((array.view(np.uint8) <= 1).all()), "a boolean is neither 0 nor 1")
    if dtype.kind == "U":
        require(bool((array.view("<u4") <= 0x10FFFF).all()), "a string has characters that do not exist")
    return array.astype(dtype.newbyteorder("=")).reshape(shape)  # a writable copy
