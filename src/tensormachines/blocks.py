"""Sources of row blocks, for data larger than memory.

A source names data that are elsewhere: in files, in an Arrow dataset, behind a Python iterable.
``iter(source)`` reads them one block at a time, from the beginning, as often as it is asked; between
iterations nothing is open and nothing but names is held.

    source = blocks.parquet("clicks/", target="clicked")
    for chunk in source:
        chunk.X, chunk.y, chunk.weight, chunk.place

Every block is checked as it is read. What is wrong is one ValueError (FileNotFoundError for a file that is
not there) that names the file, the row (data rows of that file, counting from 1: a header line is not a row)
and the column. Nothing is skipped or guessed."""

from ._data.files.arrow import arrow, parquet
from ._data.files.csv import csv
from ._data.files.iterable import iterable
from ._data.files.npy import npy
from ._data.files.source import Chunk, Source
from ._data.files.svmlight import svmlight
from ._data.read_ahead import ahead

__all__ = ["Chunk", "Source", "ahead", "arrow", "csv", "iterable", "npy", "parquet", "svmlight"]
