"""Errors that NumPy and zipfile raise for a damaged file: its header and its sizes may be anything."""

import struct
import zipfile
import zlib
from tokenize import TokenError

DAMAGED_ARRAY = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    RecursionError,
    SyntaxError,
    TokenError,
    TypeError,
    ValueError,
)
DAMAGED_ARCHIVE = (
    *DAMAGED_ARRAY,
    AttributeError,
    OSError,
    RuntimeError,  # an encrypted entry, or an unknown compression
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
