"""Fits on sources of blocks: the same as in memory, without the memory."""

import threading
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor, blocks
from tensormachines._data.disk import RowsOnDisk, rows_dealt
from tensormachines._data.row_assignment import deal, held_out, part_count
from tensormachines._data.summary import Summarise, ValidationRows
from tensormachines._data.training import Recipe
from tensormachines._fit.solvers.adam import adam
from tensormachines._fit.solvers.protocol import minimise
from tensormachines._model.block import fetch_parts
from tensormachines._model.layout import Layout
from tensormachines._model.losses import SQUARED
from tensormachines._model.objective import Objective
from tensormachines._model.spline_learning import learn_splines

ROWS, COLUMNS = 12_000, 6  # more entries than are sorted and merged in memory
QUICK = {
    "degree": 2,
    "rank": 2,
    "alpha": 1e-4,
    "basis": "standard",
    "random_state": 0,
    "max_iter": 8,
    "tol": 0,
}

pytestmark = pytest.mark.filterwarnings("ignore:.*max_iter:sklearn.exceptions.ConvergenceWarning")


@pytest.fixture
def table(rng):
    X = rng.standard_normal((ROWS, COLUMNS))
    return X, X[:, 0] * X[:, 1] + X[:, 2] + 0.1 * rng.standard_normal(ROWS)


def pieces(*arrays, borders=(0, 1, 5000, 5001, 11_000, ROWS)):
    return blocks.iterable([tuple(array[a:b] for array in arrays) for a, b in pairwise(borders)])


@pytest.mark.parametrize(
    ("solver", "basis"), [("adam", "auto"), ("adam", "standard"), ("lbfgs", "standard"), ("sfo", "standard")]
)
@pytest.mark.parametrize(
    "form", [np.asarray, sparse.csr_array, lambda X: X.astype(np.float32)], ids=["dense", "sparse", "float32"]
)
def test_regression_is_the_same_as_in_memory(table, solver, basis, form):
    X, y = form(table[0]), table[1]
    splines = basis == "auto" and not sparse.issparse(X)  # which adam fits in float32
    tolerance = 1e-3 if X.dtype == np.float32 else 1e-6 if splines else 1e-9
    one, other = (TensorMachineRegressor(**{**QUICK, "solver": solver, "basis": basis}) for _ in range(2))
    one.fit(X, y)
    other.fit(pieces(X, y))
    assert one.n_features_in_ == other.n_features_in_ == COLUMNS
    assert other.objective_ == pytest.approx(one.objective_, rel=tolerance)
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=10 * tolerance)
    np.testing.assert_array_equal(other.predict(pieces(X, y)), other.predict(X))


@pytest.mark.parametrize("class_weight", [None, "balanced", {"high": 3, "low": 1}])
def test_classification_is_the_same_as_in_memory(table, rng, class_weight):
    X, y, weight = (
        table[0],
        np.where(table[1] > 1, "high", "low"),
        rng.integers(0, 15, ROWS).astype(float),
    )  # some are 0
    one, other = (TensorMachineClassifier(solver="sfo", class_weight=class_weight, **QUICK) for _ in range(2))
    one.fit(X, y, sample_weight=weight)
    other.fit(pieces(X, y, weight))
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-7)
    np.testing.assert_array_equal(other.predict(pieces(X, y, weight)), other.predict(X))


def test_several_outputs_and_features(table):
    X, y = table[0], np.column_stack([table[1], table[0][:, 3]])
    one, other = TensorMachineRegressor(**QUICK).fit(X, y), TensorMachineRegressor(**QUICK).fit(pieces(X, y))
    assert other.linear_.shape == one.linear_.shape == (2, COLUMNS + 1)
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=1e-8)
    features = TensorMachineFeatures(task="regression", **QUICK).fit(pieces(X, y))
    assert features.transform(pieces(X, y)).shape == (ROWS, 4)
    with pytest.raises(ValueError, match='set task="regression"'):
        TensorMachineFeatures(**QUICK).fit(pieces(X, y))


def test_early_stopping(table):
    X, y = table
    model = TensorMachineRegressor(
        degree=2, rank=2, basis="standard", solver="sfo", early_stopping=True, random_state=0
    ).fit(pieces(X, y))
    assert model.score(X, y) > 0.98


def test_systems_that_cannot_read_at_a_position(table, monkeypatch):
    X, y = table
    model = TensorMachineRegressor(solver="sfo", **QUICK).fit(pieces(X, y))
    monkeypatch.delattr("os.preadv")
    other = TensorMachineRegressor(solver="sfo", **QUICK).fit(pieces(X, y))
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_files_are_read_twice_and_nothing_is_left(table, tmp_path, monkeypatch):
    X, y = table
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    np.save(tmp_path / "y.npy", y)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    source = blocks.npy(tmp_path / "X.npy", tmp_path / "y.npy", rows=1000)
    reads = []
    chunks = source._chunks
    monkeypatch.setattr(source, "_chunks", lambda: reads.append(1) or chunks())
    threads = threading.active_count()
    model = TensorMachineRegressor(solver="sfo", **QUICK).fit(source)
    assert model.score(X.astype(np.float32), y) > 0.98
    assert len(reads) == 2
    assert not list(scratch.iterdir())
    assert threading.active_count() == threads


def test_names_of_columns(table, tmp_path):
    X, y = table
    rows = np.column_stack([X, y])[:200]
    np.savetxt(tmp_path / "a.csv", rows, delimiter=",", header="a,b,c,d,e,f,price", comments="")
    np.savetxt(
        tmp_path / "b.csv",
        rows[:, [1, 0, 2, 3, 4, 5, 6]],
        delimiter=",",
        header="b,a,c,d,e,f,price",
        comments="",
    )
    model = TensorMachineRegressor(**QUICK).fit(blocks.csv(tmp_path / "a.csv", target="price"))
    assert list(model.feature_names_in_) == list("abcdef")
    for order in ("abcdef", "bacdef"):
        np.testing.assert_allclose(
            model.predict(blocks.csv(tmp_path / "b.csv", columns=list(order))),
            model.predict(blocks.npy(X[:200])),
        )


def test_what_is_missing_is_named(table):
    X, y = table
    with pytest.raises(ValueError, match="there is no y"):
        TensorMachineRegressor().fit(blocks.npy(X))
    with pytest.raises(ValueError, match="brings its own targets"):
        TensorMachineRegressor().fit(pieces(X, y), y)
    with pytest.raises(ValueError, match="at least two classes"):
        TensorMachineClassifier().fit(pieces(X, np.ones(ROWS, dtype=int)))
    with pytest.raises(ValueError, match="must be numbers"):
        TensorMachineRegressor().fit(pieces(X, np.full(ROWS, "text")))
    with pytest.raises(ValueError, match="one column of classes"):
        TensorMachineClassifier().fit(pieces(X, X[:, :2]))
    with pytest.raises(ValueError, match="X has 6 columns, but the model was fitted on 5"):
        TensorMachineRegressor(**QUICK).fit(pieces(X[:, :5], y)).predict(pieces(X, y))


def test_a_full_disk_is_explained(table, monkeypatch):
    class Full:
        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **options: Full())
    with pytest.raises(OSError, match="Point TMPDIR to a folder with room"):
        TensorMachineRegressor(**QUICK).fit(pieces(*table))


@pytest.mark.parametrize("last", [1, 20, 700])
def test_sparse_blocks_whatever_their_indices_are(table, last):
    """A block with fewer rows than parts leaves some parts empty, and SciPy then chooses other integers."""
    X, y = sparse.csr_array(table[0]), table[1]
    rows = [slice(0, 6000), slice(6000, ROWS - last), slice(ROWS - last, ROWS)]
    items = [(X[part], y[part]) for part in rows]
    for number, index in enumerate((np.int64, np.int32, np.int64)):
        items[number][0].indices, items[number][0].indptr = (
            a.astype(index) for a in (items[number][0].indices, items[number][0].indptr)
        )
    one, other = (
        TensorMachineRegressor(**QUICK).fit(X, y),
        TensorMachineRegressor(**QUICK).fit(blocks.iterable(items)),
    )
    np.testing.assert_allclose(other.predict(X), one.predict(X), atol=1e-8)


def test_a_source_that_changes_is_refused(table):
    X, y = table
    calls = []

    def shrinking():
        calls.append(1)
        return [(X, y)] if len(calls) == 1 else [(X[:100], y[:100])]

    with pytest.raises(ValueError, match="12000 rows at first and 100 rows"):
        TensorMachineRegressor(**QUICK).fit(blocks.iterable(shrinking))
    labels = np.arange(ROWS) % 3
    calls.clear()

    def relabelled():
        calls.append(1)
        return [(X, labels if len(calls) == 1 else labels + 1)]

    with pytest.raises(ValueError, match="the label 3"):
        TensorMachineClassifier(**QUICK).fit(blocks.iterable(relabelled))


def test_names_of_frames_are_checked_even_if_they_are_known_late(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table[0], columns=list("abcdef"))
    model = TensorMachineRegressor(**QUICK).fit(blocks.iterable([(frame, table[1])]))
    with pytest.raises(ValueError, match="named as in the fit"):
        model.predict(blocks.iterable([frame[list("fedcba")]]))


def test_no_thread_outlives_an_error_that_is_kept(table):
    X, y = table
    before = threading.active_count()
    with pytest.raises(ValueError, match="must be numbers") as kept:
        TensorMachineRegressor().fit(blocks.npy(X, y.astype(str), rows=100))
    assert kept is not None
    assert threading.active_count() == before


def test_repeated_fits_give_the_same_bits(table):
    """Validation and training are read at the same time."""
    settings = {**QUICK, "solver": "sfo", "early_stopping": True}
    first, *others = (TensorMachineRegressor(**settings).fit(pieces(*table)).linear_ for _ in range(4))
    for other in others:
        np.testing.assert_array_equal(first, other)


# ---- the deal


def test_every_part_gets_its_share_of_whatever_the_rows_are_sorted_by():
    parts = deal(0, 60_000, 30, seed=1)
    labels = np.repeat([0, 1, 2], [20_010, 30_000, 9_990])
    counts = np.array([np.bincount(labels[parts == i], minlength=3) for i in range(30)])
    assert np.ptp(counts, axis=0).max() <= 1
    assert not np.array_equal(parts[:30], parts[30:60])
    assert (deal(0, 60_000, 30, seed=2) != parts).any()


@pytest.mark.parametrize("n_parts", [1, 7, 30, 100_000])
def test_stretches_are_dealt_as_the_whole(n_parts):
    whole, mask = deal(0, 150_000, n_parts, seed=3), held_out(0, 150_000, 0.2, seed=3)
    for first, rows in ((0, 1), (65_535, 3), (12_345, 100_000), (149_999, 1), (70_000, 0)):
        np.testing.assert_array_equal(deal(first, rows, n_parts, seed=3), whole[first : first + rows])
        np.testing.assert_array_equal(held_out(first, rows, 0.2, seed=3), mask[first : first + rows])
    assert mask.mean() == pytest.approx(0.2, abs=0.01)


def test_number_of_parts():
    assert [part_count(n) for n in (1, 20, 150, 10_000, 522_910, 10**8)] == [1, 20, 30, 30, 72, 1000]


@pytest.fixture
def on_disk(table):
    """Parts of rows of splines on disk, and the recipe for them."""
    X, y = table
    rows = RowsOnDisk(pieces(X, y))
    rows.total(Summarise(False, False, ValidationRows(), False))
    basis = learn_splines(X, np.ones(ROWS), (None,) * COLUMNS, np.dtype(np.float32))
    recipe = Recipe(basis, 7, 10, 0, ValidationRows(), np.zeros(1), np.ones(1), packed=True)
    yield rows.blocks(recipe)[0], recipe
    rows.close()


def test_groups_of_parts_are_read_in_order(on_disk):
    parts, _ = on_disk
    order = [3, 0, 6, 1, 2]
    whole, single = (list(parts.groups(order, most_bytes)) for most_bytes in (1 << 30, 1))
    assert [len(group.blocks) for group in whole] == [5]
    assert [len(group.blocks) for group in single] == [1] * 5
    for number, block, group in zip(order, whole[0].blocks, single, strict=True):
        (expected,) = fetch_parts(parts, [number]).blocks
        for name, array in expected.arrays.items():
            np.testing.assert_array_equal(block.arrays[name], array)
            np.testing.assert_array_equal(group.blocks[0].arrays[name], array)


def test_chunks_are_joined_so_that_a_part_gets_many_rows_of_them(on_disk, table):
    parts, recipe = on_disk
    (first,) = fetch_parts(parts, [0]).blocks
    assert len(first.X.n_rows) == 3  # pieces: two of the 11,000 rows of four chunks, one of the last chunk
    assert rows_dealt(recipe, COLUMNS) == 7 * 1024
    assert rows_dealt(recipe, 10**9) == 0
    assert rows_dealt(replace(recipe, packed=False), COLUMNS) == 1
    epochs = [
        Objective(blocks_, Layout(recipe.basis.width, 2, 2), SQUARED, 1e-3)
        for blocks_ in (parts, fetch_parts(parts, range(7)))
    ]
    assert all(objective.takes_epochs for objective in epochs)
    start = 0.1 * np.random.default_rng(0).standard_normal(epochs[0].layout.size).astype(np.float32)
    one, other = (
        minimise(each, [adam(start, n_functions=7, max_iter=3, seed=0, whole_epochs=True)])[0]
        for each in epochs
    )
    np.testing.assert_array_equal(one.params, other.params)
    assert one.value == other.value
