"""Sources of row blocks, for data larger than memory.

A source refers to data that are elsewhere: in files, in an Arrow dataset, or behind a Python iterable.
``iter(source)`` reads them one block at a time, from the beginning, as often as needed; between iterations no
file is open, and a source holds only names and facts about the columns.

    source = blocks.parquet("clicks/", target="clicked")
    for chunk in source:
        chunk.X, chunk.y, chunk.weight, chunk.place

CSV, Parquet and Arrow may contain what a DataFrame may contain: categories, booleans, text, dates and missing
values. X is a matrix if all its columns are numbers, and otherwise a frame, which a model encodes.

Every block is checked as it is read. An error is one ValueError (FileNotFoundError for a missing file) that
names the file, the row (data rows of the file, counted from 1 without a header line) and the column, by name,
or by index if columns have no names: column 3 is X[:, 3]."""

from ._data.files.arrow import arrow, parquet
from ._data.files.csv import csv
from ._data.files.iterable import iterable
from ._data.files.npy import npy
from ._data.files.source import Chunk, Source
from ._data.files.svmlight import svmlight
from ._data.read_ahead import ahead

__all__ = ["Chunk", "Source", "ahead", "arrow", "csv", "iterable", "npy", "parquet", "svmlight"]
