"""Compressed text: how it begins, and what is said if it is damaged."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

GZIP = b"\x1f\x8b"


@contextmanager
def whole_gzip(label: str) -> Iterator[None]:
    try:
        yield
    except EOFError as error:
        raise ValueError(f"{label} is cut off: it is compressed, and its end is missing.") from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{label} is damaged: {error}.") from error
