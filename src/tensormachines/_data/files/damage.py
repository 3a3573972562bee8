"""What NumPy and zipfile raise where a file is damaged: its header may be any text, and its sizes any."""

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
