"""Tables in files: CSV, Parquet and Arrow by the names of their columns, a block of rows at a time; and what their columns are."""

from ._blocks import Asked, Block, TableFile
from ._inference import Description, read_table
from ._open import open_table
from ._reading import read_blocks

__all__ = ["Asked", "Block", "Description", "TableFile", "open_table", "read_blocks", "read_table"]
