"""Exposures and offsets on Dask: as in memory, or refused by name."""

import numpy as np
import pytest

from dask_rows import BY_LBFGS, NAMES, numbers
from tensormachines import TensorMachineRegressor, blocks

pd = pytest.importorskip("pandas")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.filterwarnings("ignore:.*stopped at max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def data():
    return numbers()


def test_exposures_are_on_dask_as_the_rows_are(data):
    X, y, _ = (each[:100] for each in data)
    y, exposure = np.abs(y), np.ones(100)
    frame = dd.from_pandas(pd.DataFrame(X, columns=NAMES).assign(y=y), npartitions=2)
    model = TensorMachineRegressor(loss="poisson", degree=1, random_state=0)
    for rows, target, lengths in (
        (da.from_array(X, chunks=(50, -1)), da.from_array(y, chunks=50), r"X\.chunks\[0\]"),
        (frame[NAMES], frame["y"], r"tuple\(X\.map_partitions\(len\)\.compute\(\)\)"),
    ):
        advice = rf"exposure must be one, too, got .*from_array\(exposure, chunks={lengths}\)"
        with pytest.raises(TypeError, match=advice):
            model.fit(rows, target, exposure=exposure)
    model.fit(frame[NAMES].compute(), y)
    with pytest.raises(TypeError, match=advice):
        model.predict(frame[NAMES], exposure=exposure)


@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize("kind", ["exposure", "offset"])
def test_predictions_for_an_exposure_or_an_offset_are_those_in_memory(data, kind, n_outputs):
    X, y, _ = (each[:100] for each in data)
    known, y = 1 + np.abs(X[:, 0]), np.exp(y / 10)
    names = pd.DataFrame(X, columns=NAMES)
    frame = dd.from_pandas(names.assign(known=known), npartitions=3)
    model = TensorMachineRegressor(loss="poisson", degree=1, random_state=0)
    model.fit(X, y if n_outputs == 1 else np.column_stack([y, y**2]))
    expected = model.predict(X, **{kind: known})
    rows, other = da.from_array(X, chunks=(40, -1)), da.from_array(known, chunks=30)
    for beside in (known, other, da.from_array(known, chunks=40)):
        found = model.predict(rows, **{kind: beside})
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), expected)
    with pytest.raises(ValueError, match=f"In a partition: X has .* rows, but {kind} has 33."):
        model.predict(rows, **{kind: frame["known"]}).compute()
    for given in (known[:50], other[:50], 2.0):
        with pytest.raises(ValueError, match=f"{kind} must have one number for each row of X, got shape"):
            model.predict(rows, **{kind: given})
    model.fit(names, y if n_outputs == 1 else np.column_stack([y, y**2]))
    for beside in (frame["known"], frame["known"].to_dask_array(lengths=True)):
        found = model.predict(frame[NAMES], **{kind: beside})
        np.testing.assert_allclose(found.compute(), expected)
    for given, has in ((other, "has 4 and 1 axes"), (frame[["known"]], "has 3 and 2 axes")):
        with pytest.raises(ValueError, match=f"X has 3 partitions, {kind} {has}. Take both from one"):
            model.predict(frame[NAMES], **{kind: given})
    with pytest.raises(ValueError, match=f"{kind} must hold"):
        model.predict(frame[NAMES], **{kind: frame["known"] * np.nan}).compute()


@pytest.mark.parametrize("loss", ["squared_error", "poisson", "gamma", "tweedie"])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_fits_with_an_exposure_or_an_offset_are_those_in_memory(data, loss, n_outputs):
    X, y, weight = (each[:200] for each in data)
    y, offset, exposure = np.exp(y / 10), X[:, 1] / 10, 1 + np.abs(X[:, 2])
    y = y if n_outputs == 1 else np.column_stack([y, y**2])
    names = [*NAMES, "weight", "offset", "exposure", *(f"y{k}" for k in range(n_outputs))]
    table = pd.DataFrame(np.column_stack([X, weight, offset, exposure, y]), columns=names)
    frame = dd.from_pandas(table, npartitions=3)
    target = frame["y0"] if n_outputs == 1 else frame[["y0", "y1"]]
    for with_weight in (False, True):
        known = {"offset": offset} | ({} if loss == "squared_error" else {"exposure": exposure})
        given = known | ({"sample_weight": weight} if with_weight else {})
        model = TensorMachineRegressor(loss=loss, degree=1, **BY_LBFGS, random_state=0)
        expected = model.fit(X, y, **given).predict(X)
        score = model.score(X, y, **given)
        arrays = {name: da.from_array(each, chunks=30) for name, each in given.items()}
        rows, targets = da.from_array(X, chunks=(40, -1)), da.from_array(y, chunks=(40, -1)[: y.ndim])
        np.testing.assert_allclose(
            model.fit(rows, targets, **arrays).predict(X), expected, rtol=1e-6, atol=1e-7
        )
        series = {name: frame["weight" if name == "sample_weight" else name] for name in given}
        model.fit(frame[NAMES], target, **series)
        np.testing.assert_allclose(model.predict(table[NAMES]), expected, rtol=1e-6, atol=1e-7)
        assert model.score(frame[NAMES], target, **series) == pytest.approx(score)


def test_what_is_wrong_with_an_exposure_or_an_offset_is_named(data):
    X, y, _ = (each[:100] for each in data)
    rows, target = da.from_array(X, chunks=(40, -1)), da.from_array(np.abs(y), chunks=40)
    known = da.from_array(np.where(np.arange(100) == 70, np.nan, 1.0), chunks=40)
    model = TensorMachineRegressor(loss="poisson", degree=1)
    for kind, allowed in (("exposure", "positive, finite"), ("offset", "finite")):
        with pytest.raises(ValueError, match=f"partition 1: {kind} must hold {allowed} numbers"):
            model.fit(rows, target, **{kind: known})
        with pytest.raises(ValueError, match=f"{kind} must have one number for each row, got 2 axes"):
            model.fit(rows, target, **{kind: known[:, None]})
        with pytest.raises(ValueError, match=f"has 100 rows, but {kind} has 99"):
            model.fit(rows, target, **{kind: known[1:]})
        series = dd.from_pandas(pd.Series(np.ones(100)), npartitions=2)
        with pytest.raises(
            ValueError, match=f"y and {kind} must have the same rows in each partition: y has"
        ):
            model.fit(rows, target, **{kind: series})


@pytest.mark.parametrize(
    ("settings", "power"), [({"loss": "poisson"}, 1), ({"loss": "gamma"}, 2), ({"loss": "tweedie"}, 1.5)]
)
def test_what_takes_the_place_of_an_offset_in_a_source_is_said(data, settings, power):
    X, y, _ = (each[:100] for each in data)
    y, offset = np.exp(y / 10), X[:, 1] / 10
    model = TensorMachineRegressor(**settings, degree=1, random_state=0)
    expected = model.fit(X, y, offset=offset).predict(X)
    with pytest.raises(
        ValueError,
        match=r"offset needs X and y in memory or on Dask: let the source divide y by exp\(offset\)",
    ) as found:
        model.fit(blocks.iterable(lambda: [(X, y)]), offset=offset)
    factors = {1: "give exp(offset) as the weight", 1.5: "give exp(0.5 * offset) as the weight"}
    assert factors.get(power, "by exp(offset).") in str(found.value)
    model.fit(X, y / np.exp(offset), sample_weight=np.exp((2 - power) * offset))
    np.testing.assert_allclose(model.predict(X), expected)
