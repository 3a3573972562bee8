"""Tables in files: CSV, Parquet and Arrow by the names of their columns, a block of rows at a time; and what their columns are."""

from ._blocks import Asked, Block, Cells, TableFile
from ._cells import BOOLEANS
from ._inference import LIKE_NUMBERS, Description, read_table
from ._open import ARROW_SUFFIXES, PARQUET_SUFFIXES, import_pyarrow, is_svmlight, open_table, require_file, suffix
from ._reading import read_blocks
from ._svmlight import read_svmlight, svmlight_blocks

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
