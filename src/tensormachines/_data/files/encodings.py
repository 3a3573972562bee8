"""The encoding of a text file, detected from its bytes if the user does not give it."""

from __future__ import annotations

import codecs
import warnings

from .paths import open_binary

# Byte order marks; UTF-32 comes before UTF-16, because its mark begins with that of UTF-16.
MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
UTF8 = "utf-8-sig"  # with or without a mark
BYTES_TO_JUDGE, PIECE = 64 * 2**20, 2**20
CP1252_LACKS = {0x81, 0x8D, 0x8F, 0x90, 0x9D}
CONTROL = {*range(32)} - set(b"\t\n\r\f\x1a")  # bytes that do not occur in text
WORDS = {"cp1252": "Windows-1252 (Western European)", "latin-1": "Latin-1 (Western European)"}


def check_encoding(encoding: str) -> str:
    """Return the name of an encoding of text that Python knows, or refuse it."""
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # codecs such as base64 are not encodings of text
    except LookupError:
        raise ValueError(
            'encoding must be the name of an encoding of text, such as "utf-8", "utf-16", "latin-1" or '
            f'"cp1252", got {encoding!r}.'
        ) from None
    return UTF8 if name == "utf-8" else name


def detect_encoding(path: str, label: str) -> str:
    """Return the encoding of a file that can be read again: that of its mark, or UTF-8 if its first 64 MB are
    UTF-8 or not text at all. Otherwise assume Western European text, with a warning."""
    found = UTF8
    with open_binary(path) as file:
        piece = file.read(PIECE)
        if (mark := marked(piece)) is not None:
            return mark
        decoder, read = codecs.getincrementaldecoder("utf-8")(), 0
        while piece and read < BYTES_TO_JUDGE:
            read += len(piece)
            if found == UTF8 and not _decodes(decoder, piece):
                found = "cp1252"
            if found != UTF8 and CONTROL & set(piece):
                return UTF8  # which then raises an error: this is not text
            if found == "cp1252" and CP1252_LACKS & set(piece):
                found = "latin-1"
            piece = file.read(PIECE)
    if found != UTF8:
        warnings.warn(
            f"{label} is not text in UTF-8: it is read as {WORDS[found]}. If texts look wrong, pass its "
            "encoding (--encoding on the command line).",
            UserWarning,
            stacklevel=2,
        )
    return found


def marked(start: bytes) -> str | None:
    """Return the encoding of text that begins with a byte order mark."""
    return next((encoding for mark, encoding in MARKS.items() if start.startswith(mark)), None)


def _decodes(decoder: codecs.IncrementalDecoder, piece: bytes) -> bool:
    try:
        decoder.decode(piece)
    except UnicodeDecodeError:
        return False
    return True
