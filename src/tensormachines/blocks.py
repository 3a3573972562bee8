"""Sources of row blocks, for data larger than memory.

A source names data that are elsewhere: in files, in an Arrow dataset, behind a Python iterable.
``iter(source)`` reads them one block at a time, from the beginning, as often as needed; between iterations
nothing is open, and only names and what is known of the columns are held.

    source = blocks.parquet("clicks/", target="clicked")
    for chunk in source:
        chunk.X, chunk.y, chunk.weight, chunk.place

CSV, Parquet and Arrow may have what a DataFrame may have: categories, booleans, text and missing values. X is
a matrix if all its columns are numbers, otherwise a frame, which a model encodes.

Every block is checked as it is read. What is wrong is one ValueError (FileNotFoundError for a file that is
not there) that names the file, the row (data rows of that file, counting from 1: a header line is not a row)
and the column, by its name, or by its number where columns have no names: column 3 is X[:, 3]."""

from ._data.files.arrow import arrow, parquet
from ._data.files.csv import csv
from ._data.files.iterable import iterable
from ._data.files.npy import npy
from ._data.files.source import Chunk, Source
from ._data.files.svmlight import svmlight
from ._data.read_ahead import ahead

__all__ = ["Chunk", "Source", "ahead", "arrow", "csv", "iterable", "npy", "parquet", "svmlight"]
