"""Encoded columns of raw tables, for tests."""

import numpy as np

from tensormachines._data import encoding
from tensormachines._data.dataframes import read_frame

CATEGORIES = ["str", "string", "string[python]", "string[pyarrow]", object, "category"]


def learn_columns(X, sample_weight=None):
    """The columns of whatever an estimator takes, through the same door."""
    return encoding.learn_columns(read_frame(X), sample_weight)


def encode(columns, X, *dtype):
    return columns.encode(read_frame(X, columns.kinds), *dtype)


def encoded(column):
    """Kind, levels and codes of a table's only column."""
    columns = learn_columns(column)
    assert len(columns.columns) == 1
    return columns.kinds[0], columns.columns[0].levels, encode(columns, column)[:, 0]


def object_array(values):
    array = np.empty((len(values), 1), dtype=object)
    array[:, 0] = values
    return array
