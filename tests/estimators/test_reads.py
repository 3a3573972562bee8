"""Raw input at the door of an estimator: every form of frame comes in, and a column is read once."""

import numpy as np
import pytest

from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV
from tensormachines._data import raw_columns
from tensormachines._data.dataframes import as_frame

pd = pytest.importorskip("pandas")


@pytest.fixture
def reads(monkeypatch):
    """The columns of DataFrames that were read, in a list."""
    read, found = raw_columns._pandas_column, []
    monkeypatch.setattr(
        raw_columns, "_pandas_column", lambda series, *rest: found.append(series.name) or read(series, *rest)
    )
    return found


FRAME = pd.DataFrame({"size": np.arange(60.0) % 13, "kind": ["a", "b", None] * 20, "new": [True, False] * 30})
TARGET = np.arange(60.0) % 3


def test_a_column_is_read_once_in_a_fit_and_once_in_a_prediction(reads):
    model = TensorMachineRegressor(degree=2, rank=1, max_iter=2, random_state=0).fit(FRAME, TARGET)
    assert reads == ["size", "kind", "new"]
    reads.clear()
    model.predict(FRAME)  # few rows, which take a shorter way
    assert reads == []
    model.predict(pd.concat([FRAME] * 20))
    assert reads == ["size", "kind", "new"]


def test_a_column_is_read_once_in_a_search(reads):
    few = {"degrees": (1, 2), "ranks": (2,), "alphas": (1e-3,), "max_iters": (2,), "cv": 3, "random_state": 0}
    TensorMachineRegressorCV(**few).fit(FRAME, TARGET)
    assert reads == ["size", "kind", "new"]


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_dicts_and_tables_of_pyarrow_are_frames():
    pyarrow = pytest.importorskip("pyarrow")
    settings = {"degree": 2, "rank": 1, "max_iter": 2, "random_state": 0}
    expected = TensorMachineRegressor(**settings).fit(FRAME, TARGET)
    rows = FRAME.to_dict("records")
    table = pyarrow.Table.from_pandas(FRAME, preserve_index=False)
    for form in (rows, table):
        model = TensorMachineRegressor(**settings).fit(form, TARGET)
        assert model._columns == expected._columns
        assert model.feature_names_in_.tolist() == ["size", "kind", "new"]
        for other in (form, FRAME):
            np.testing.assert_array_equal(model.predict(other), expected.predict(FRAME))
    np.testing.assert_array_equal(
        model.predict([{"size": 1.0, "kind": "a", "new": True}]),
        expected.predict(FRAME[1:2].assign(kind="a", new=True)),
    )
    del rows[0]["kind"]
    assert TensorMachineRegressor(**settings).fit(rows, TARGET)._columns.kinds == (
        "number",
        "number",
        "category",
    )
    nested = pyarrow.table({"sizes": pyarrow.array([[1.0]])})
    with pytest.raises(TypeError, match="column 'sizes' is of type list"):
        TensorMachineRegressor().fit(nested, [1.0])
    with pytest.raises(TypeError, match="keys of its rows must be names"):
        TensorMachineRegressor().fit([{1: 2.0}], [1.0])


def test_frames_without_names_are_cut_as_arrays_are():
    rows = FRAME.to_numpy()
    frame = as_frame(rows)
    assert (frame.names, frame.shape) == (None, (60, 3))
    settings = {"degree": 2, "rank": 1, "max_iter": 2, "random_state": 0}
    model = TensorMachineRegressor(**settings).fit(frame[:40], TARGET[:40])
    expected = TensorMachineRegressor(**settings).fit(rows[:40], TARGET[:40])
    np.testing.assert_array_equal(model.predict(rows), expected.predict(rows))
    named = TensorMachineRegressor(**settings).fit(FRAME, TARGET)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(named.predict(frame), named.predict(FRAME))
