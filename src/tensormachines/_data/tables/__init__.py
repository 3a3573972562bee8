"""Tables in files: CSV, Parquet and Arrow by the names of their columns, a block of rows at a time; and what
their columns are.
"""

from .blocks import Asked, Block, Cells, TableFile
from .cells import BOOLEANS
from .inference import LIKE_NUMBERS, Description, read_table
from .open import (
    ARROW_SUFFIXES,
    PARQUET_SUFFIXES,
    import_pyarrow,
    is_svmlight,
    open_table,
    require_file,
    suffix,
)
from .reading import read_blocks
from .svmlight import read_svmlight, svmlight_blocks

__all__ = [
    "ARROW_SUFFIXES",
    "BOOLEANS",
    "LIKE_NUMBERS",
    "PARQUET_SUFFIXES",
    "Asked",
    "Block",
    "Cells",
    "Description",
    "TableFile",
    "import_pyarrow",
    "is_svmlight",
    "open_table",
    "read_blocks",
    "read_svmlight",
    "read_table",
    "require_file",
    "suffix",
    "svmlight_blocks",
]
