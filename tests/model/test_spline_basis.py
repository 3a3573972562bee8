import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge

from losses import LOSSES, make_targets
from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines._model import kernel, native, numpy_kernel, spline_learning
from tensormachines._model.block import Block
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.machine import Machine
from tensormachines._model.spline_basis import wave_sizes
from tensormachines._model.spline_column import SplineShape, cosines
from tensormachines._model.spline_learning import learn_splines
from tensormachines._model.spline_states import hats
from tensormachines.export import to_json

SHAPE = SplineShape(constant=0.7, roughness=2.0, line=0.4, line_clip=3.0)

NUMBERS = (None,) * 5


def table(rng, n_rows=300):
    """Numbers: usual, mostly 0, two values, constant; and categories with three levels, one of which is never
    seen.
    """
    X = np.column_stack(
        [
            rng.standard_normal(n_rows),
            np.where(rng.random(n_rows) < 0.7, 0, rng.exponential(size=n_rows)),
            rng.integers(0, 2, n_rows),
            np.full(n_rows, 7.0),
            rng.integers(0, 2, n_rows) * 2,
        ]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 3] = 7.0
    return X


def in_words(basis, x):
    """The basis of one row, written as the module's docstring says it, column by column."""
    row = []
    size = 1 / np.sqrt(sum(len(column.knots) + column.missing > 1 for column in basis.columns))
    strengths = 1 / (1 + (np.pi * np.arange(1, 100_000) / basis.shape.roughness) ** 2)
    for column, value in zip(basis.columns, x, strict=True):
        knots = column.knots
        if column.category:
            row += [float(value == level) for level in knots]
        else:
            known = not np.isnan(value) and len(knots) > 1
            rank = np.interp(value, knots, np.linspace(0, 1, len(knots))) if known else np.nan
            states = np.linspace(0, 1, len(knots))
            for k in range(1, column.waves + 1):
                if column.periodic:
                    cycles = (k + 1) // 2
                    of_cycles = 1 / (1 + (2 * np.pi * cycles / basis.shape.roughness) ** 2)
                    angle = 2 * np.pi * cycles * states
                    wave = np.sqrt(of_cycles / strengths[1::2].sum()) * [np.sin, np.cos][k % 2](angle)
                    row.append(np.interp(rank, states, wave) if known else 0.0)
                    continue
                wave = np.sqrt(2 * strengths[k - 1] / strengths.sum()) * np.cos(np.pi * k * states)
                row.append(np.interp(rank, states, wave) if known else 0.0)
            if column.deviation > 0:
                clip = basis.shape.line_clip
                line = basis.shape.line * np.clip((knots - column.mean) / column.deviation, -clip, clip)
                row.append(np.interp(value, knots, line) if known else 0.0)
        if column.missing:
            row.append(float(np.isnan(value)))
    return np.append(size * np.array(row) - basis.center, basis.shape.constant)


@pytest.fixture(params=["compiled", "NumPy"])
def either(request, monkeypatch):
    if request.param == "NumPy":
        monkeypatch.setattr(native, "compiled", lambda: False)


def test_rows_are_what_the_formula_says(rng, either):
    X = table(rng)
    basis = learn_splines(X, np.ones(len(X)), (None, None, None, None, 3), np.dtype(float), SHAPE)
    new = np.vstack([X[:40], [1e9, -1e9, 0.5, 8, 1], [np.nan] * 5, [0, 0, 0, 7, 5]])
    truth = np.array([in_words(basis, x) for x in new])
    np.testing.assert_allclose(basis.lift(basis.rows(new)).explicit(), truth, atol=1e-4)


def test_periodic_rows_are_what_the_formula_says(rng, either):
    X = np.column_stack([rng.uniform(0, 24, 300), rng.integers(1, 5, 300), rng.uniform(-170, 180, 300)])
    X[:, 1][rng.random(300) < 0.5] = 2  # more than half of the rows: the reference
    periods = {0: 24, 1: 4, 2: 360}
    basis = learn_splines(X, np.ones(300), (None,) * 3, np.dtype(float), SHAPE, periods=periods)
    ends = [(column.knots[0], column.knots[-1]) for column in basis.columns]
    assert ends == [(0, 24), (0, 4), (-180, 180)]
    assert [column.waves for column in basis.columns] == [8, 3, 8]  # of four numbers 3, which is all
    new = np.vstack([X[:40], [-5, 0.5, 1000], [np.nan, 2, np.nan]])
    truth = np.array([in_words(basis, x) for x in new])
    np.testing.assert_allclose(basis.lift(basis.rows(new)).explicit(), truth, atol=1e-4)
    first, last = basis.lift(basis.rows(np.array(ends).T)).explicit()
    np.testing.assert_array_equal(first, last)
    layout = Layout(basis.width, 3, 2)
    params = rng.standard_normal(layout.size)
    block = Block(basis.rows(X), basis)
    expected = numpy_kernel.outputs(block, layout, params[None])
    np.testing.assert_allclose(kernel.outputs(block, layout, params[None], 1), expected, rtol=1e-9)


def test_a_period_begins_at_a_multiple_of_it_or_of_half_of_it():
    assert spline_learning.start_of_period(0.5, 23.5, 24) == 0
    assert spline_learning.start_of_period(-3, 3, 2 * np.pi) == -np.pi
    assert spline_learning.start_of_period(1, 12.97, 12) == 1
    assert spline_learning.start_of_period(0, np.float32(2 * np.pi), 2 * np.pi) == 0
    assert spline_learning.start_of_period(0, 25, 24) is None


def test_functions_are_centred_and_small(rng):
    X = table(rng, 2000)
    lifted = learn_splines(X, np.ones(len(X)), NUMBERS, np.dtype(float))
    rows = lifted.lift(lifted.rows(X)).explicit()
    np.testing.assert_allclose(rows[:, :-1].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(rows[:, -1], SplineShape().constant)
    assert 0.1 < (rows[:, :-1] ** 2).sum(axis=1).mean() < 2


def test_strengths_add_up_to_one():
    strengths = (cosines(np.array([0.0, 1.0]), 3000, 3.0) ** 2)[0] / 2  # at rank 0 every cosine is 1
    assert strengths.sum() == pytest.approx(1, abs=1e-3)


def test_sizes_make_waves_as_strong_as_another_roughness_does(rng):
    X = table(rng)
    codes, weight = (None, None, None, None, 3), np.ones(len(X))
    usual = learn_splines(X, weight, codes, np.dtype(float))
    rough = learn_splines(X, weight, codes, np.dtype(float), SplineShape(roughness=20.0))
    sizes = wave_sizes(usual, 20.0)
    rows = [basis.lift(basis.rows(X)).explicit() for basis in (usual, rough)]
    np.testing.assert_allclose(rows[0] * sizes, rows[1], atol=1e-12)
    assert wave_sizes(rough, 20.0) is None
    one, other = (SplineShape(roughness=roughness) for roughness in (3.0, 20.0))
    periodic = [
        learn_splines(X[:, :1], weight, (None,), np.dtype(float), shape, periods={0: 20})
        for shape in (one, other)
    ]
    rows = [basis.lift(basis.rows(X[:, :1])).explicit() for basis in periodic]
    np.testing.assert_allclose(rows[0] * wave_sizes(periodic[0], 20.0), rows[1], atol=1e-12)


def test_weights_are_repetitions(rng, monkeypatch):
    monkeypatch.setattr(
        spline_learning, "MOST_WAVES", 5
    )  # more rows may have more of them, and these are more
    X, weight = table(rng), rng.integers(0, 3, 300)
    weighted = learn_splines(X[weight > 0], weight[weight > 0].astype(float), NUMBERS, np.dtype(float))
    repeated = learn_splines(np.repeat(X, weight, axis=0), np.ones(weight.sum()), NUMBERS, np.dtype(float))
    for ours, theirs in zip(weighted.columns, repeated.columns, strict=True):
        np.testing.assert_array_equal(ours.knots, theirs.knots)
        assert ours.reference == theirs.reference
    np.testing.assert_allclose(weighted.center, repeated.center, atol=1e-12)


def test_shares_are_the_same_compiled_and_not(rng, monkeypatch):
    X = table(rng).astype(np.float32)
    basis = learn_splines(X, np.ones(len(X)), (None, None, None, None, 3), np.dtype(np.float32))
    huge = np.where(np.arange(300)[:, None] % 7 == 0, np.float32(3e38), X)
    compiled = basis.rows(huge)
    assert compiled.nnz < 300 * 7  # states that most rows are in cost nothing
    monkeypatch.setattr(native, "compiled", lambda: False)
    np.testing.assert_allclose(compiled.toarray(), basis.rows(huge).toarray(), atol=1e-7)
    assert np.isfinite(compiled.data).all()


@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_is_the_central_difference(rng, either, loss):
    loss, outputs = LOSSES[loss]
    X = table(rng, 60)
    basis = learn_splines(X, np.ones(60), (None, None, None, None, 3), np.dtype(float))
    layout = Layout(basis.width, degree=3, rank=2, n_outputs=outputs)
    y = make_targets(rng, loss, 60, outputs)
    block = Block(basis.rows(X), basis, y, rng.random(60))
    params = 0.5 * rng.standard_normal((2, layout.size))
    values, gradient = kernel.value_and_gradient(block, layout, params, loss)
    truth, _ = numpy_kernel.value_and_gradient(block, layout, params, loss)
    np.testing.assert_allclose(values, truth)
    for i in rng.choice(layout.size, 25, replace=False):
        step = np.zeros_like(params)
        step[1, i] = 1e-6
        above, below = (
            kernel.value_and_gradient(block, layout, params + sign * step, loss)[0] for sign in (1, -1)
        )
        assert gradient[1, i] == pytest.approx((above - below)[1] / 2e-6, rel=1e-5, abs=1e-6)


def test_degree_one_is_a_ridge_on_the_splines(monkeypatch):
    monkeypatch.setattr("tensormachines._fit.pruning.NEGLIGIBLE", 0.0)
    X, y = load_diabetes(return_X_y=True)
    model = TensorMachineRegressor(degree=1, basis="spline", alpha=0.01, tol=0, max_iter=3000, solver="lbfgs")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    basis = model._machine.basis
    lifted = basis.lift(basis.rows(X)).explicit()
    ridge = Ridge(alpha=0.01 * len(y)).fit(lifted, y)  # the constant is no part of both: a ridge has its own
    difference = model.predict(X) - ridge.predict(lifted)
    assert np.std(difference) < 0.01 * np.std(
        ridge.predict(lifted)
    )  # coefficients that hardly matter are left out


@pytest.mark.filterwarnings("ignore::tensormachines.ColumnWarning")  # names are rare levels
def test_a_raw_table_just_works(rng):
    pd = pytest.importorskip("pandas")
    n = 800
    frame = pd.DataFrame(
        {
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n)),
            "size": np.where(rng.random(n) < 0.2, np.nan, rng.standard_normal(n)),
            "name": [f"nobody {i}" for i in range(n)],
            "always": 1.0,
            "flag": rng.random(n) < 0.5,
        }
    )
    frame["size again"] = frame["size"]
    y = np.where(frame.colour == "red", frame["size"].fillna(3.0), 0.0) + frame.flag
    model = TensorMachineRegressor(basis="auto", solver="adam", max_iter=60, random_state=0).fit(
        frame[:600], y[:600]
    )
    assert model.score(frame[600:], y[600:]) > 0.9
    new = frame[:4].assign(colour=["red", "violet", None, "blue"])
    assert np.isfinite(model.predict(new)).all()
    assert pickle.loads(pickle.dumps(model)).predict(new).tolist() == model.predict(new).tolist()
    shuffled = frame[600:].assign(colour=frame[600:].colour.astype(str))
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(frame[600:]))


def test_names_are_in_the_users_terms(rng):
    X = table(rng)
    basis = learn_splines(X, np.ones(len(X)), (None, None, None, None, 3), np.dtype(float))
    names = [
        name
        for column, label in zip(basis.columns, "abcde", strict=True)
        for name in column.names(label, None)
    ]
    assert len(names) == basis.width - 1
    assert {"a wave 1", "a line", "a missing", "c wave 1", "e = 2"} <= set(names)
    assert not any(name.startswith("d") for name in names)


def test_outliers_and_odd_columns_are_harmless(rng):
    X = rng.standard_normal((200, 4))
    X[:, 0] = np.nan
    X[0, 1] = 1e300
    X[1, 1] = -1e300
    X[:, 2] = 3
    model = TensorMachineRegressor(basis="spline", solver="adam", max_iter=5, random_state=0).fit(X, X[:, 3])
    assert np.isfinite(model.predict(X)).all()
    assert np.isfinite(model.predict(np.full((1, 4), 1e308))).all()


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_the_smallest_numbers_there_are_make_no_knots(rng):
    X, y = np.tile([[0.0], [5e-324]], (30, 1)), rng.normal(size=60)
    model = TensorMachineRegressor(max_iter=2, random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert np.ptp(model.predict(X)) == 0  # they are the same to it


def test_shares_far_outside_of_knots_close_together():
    below, above = hats(np.array([-1e300, -1e-30, 0.0, 1e-30, 1e300]), np.array([-1e-30, 0.0, 1e-30]))
    np.testing.assert_array_equal(below + above, [0, 0, 1, 2, 2])


def test_sparse_rows_stay_sparse(rng):
    X = sparse.random(300, 50, 0.1, format="csr", random_state=0)
    y = (X[:, [0]].toarray().ravel() > 0).astype(int)
    model = TensorMachineClassifier(basis="auto", random_state=0, max_iter=300).fit(X, y)
    assert model.linear_.shape == (1, 51)
    with pytest.raises(ValueError, match=r"spline.*sparse"):
        TensorMachineClassifier(basis="spline").fit(X, y)


def test_relevance_finds_the_column_that_matters(rng):
    X = rng.standard_normal((2000, 10))
    y = np.sin(2 * X[:, 3]) + 0.5 * rng.standard_normal(2000)
    new = rng.standard_normal((1000, 10))
    error = {}
    for rounds in (0, 2):
        model = TensorMachineRegressor(
            basis="spline", solver="adam", max_iter=20, relevance=rounds, alpha=1e-3, random_state=0
        ).fit(X, y)
        error[rounds] = np.mean((model.predict(new) - np.sin(2 * new[:, 3])) ** 2)
    assert error[2] < 0.5 * error[0]


def test_explicit_rows_are_the_products_with_unit_factors(rng):
    X = table(rng)
    basis = learn_splines(X, np.ones(len(X)), (*NUMBERS[:4], 3), np.dtype(np.float64))
    rows = basis.lift(basis.rows(X))
    units = rng.random(basis.width)
    np.testing.assert_allclose(rows.explicit(), rows.times(np.eye(basis.width)), atol=1e-14)
    np.testing.assert_allclose(
        rows.absolute_sums(units), np.abs(rows.times(np.eye(basis.width))) @ units, rtol=1e-12
    )


def test_memory_does_not_grow_with_the_square_of_the_number_of_levels(rng):
    pd = pytest.importorskip("pandas")
    levels = np.repeat([f"level {k}" for k in range(3000)], 5)
    X, y = (
        pd.DataFrame({"level": levels, "number": rng.normal(size=len(levels))}),
        rng.normal(size=len(levels)),
    )
    tracemalloc.start()
    try:
        model = TensorMachineRegressor(degree=2, rank=1, max_iter=1, random_state=0).fit(X, y)
        assert model.factors_[2].shape[-1] > 3000
        assert '"level 2999"' in to_json(model)
        assert tracemalloc.get_traced_memory()[1] < 3000**2 * 8
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("model", [Layout, AnovaLayout])
@pytest.mark.parametrize("rows", [1, 127, 300])
def test_outputs_of_dense_rows_are_those_of_their_shares(rng, monkeypatch, dtype, model, rows):
    X = table(rng, 300).astype(dtype)
    basis = learn_splines(X, np.ones(300), (None, None, None, None, 3), np.dtype(dtype))
    layout = model(basis.width, degree=3, rank=4, n_outputs=2)
    machine = Machine(basis, layout, (0.3 * rng.standard_normal(layout.size)).astype(dtype))
    new = np.asfortranarray(X[:rows])  # whatever its strides
    found = [machine.outputs(new, threads) for threads in (1, 2)]
    np.testing.assert_array_equal(*found)
    monkeypatch.setattr(native, "compiled", lambda: False)
    truth = Machine(basis, layout, machine.params).outputs(new)
    np.testing.assert_allclose(found[0], truth, rtol=1e-4 if dtype == np.float32 else 1e-10, atol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_of_columns_of_every_kind_in_any_number_of_rows(rng, monkeypatch, dtype):
    """Many knots and few, levels, common values, entries missing in the fit and afterwards."""
    n_rows = 2500
    numbers = rng.standard_normal((n_rows, 26)) * 10.0 ** rng.integers(-3, 4, 26)
    numbers[:, 1] = rng.integers(0, 2, n_rows)
    numbers[:, 2] = np.round(numbers[:, 2] / numbers[:, 2].std())
    numbers[:, 3] *= rng.random(n_rows) < 0.4  # most often in one state
    numbers[:, 4] = 7.0
    X = np.insert(numbers, [5, 5, 20], rng.integers(0, 4, (n_rows, 3)), axis=1)
    X[rng.random(n_rows) < 0.2, 9] = np.nan
    n_codes = [4 if j in (5, 6, 22) else None for j in range(X.shape[1])]
    few = slice(0, 7)  # of few columns each has more knots
    for columns in (few, slice(None)):
        rows = X[:, columns].astype(dtype)
        basis = learn_splines(rows, np.ones(n_rows), n_codes[columns], np.dtype(dtype))
        layout = Layout(basis.width, degree=3, rank=9, n_outputs=1)
        machine = Machine(basis, layout, (0.3 * rng.standard_normal(layout.size)).astype(dtype))
        new = rows[:600].copy()
        new[rng.random(new.shape) < 0.05] = np.nan
        new[:4] = np.array([[np.inf], [-np.inf], [0.0], [-1e30]])
        found = machine.outputs(new)
        for count in (1, 7, 8, 15, 17, 255, 257, 520):
            np.testing.assert_array_equal(machine.outputs(new[:count]), found[:count])
        with monkeypatch.context() as context:
            context.setattr(native, "compiled", lambda: False)
            truth = Machine(basis, layout, machine.params).outputs(new)
        tolerance = 1e-4 if dtype == np.float32 else 1e-11
        np.testing.assert_allclose(found, truth, rtol=tolerance, atol=tolerance)
        assert max(len(column.knots) for column in basis.columns) > (64 if columns is few else 16)


@pytest.mark.parametrize("scale", [1e-306, 1e-307, 1e-308, 1e-310, 5e-324])
def test_the_smallest_of_numbers_are_predicted(rng, scale):
    """Compiled code takes them for 0, and must not divide by their differences."""
    X = np.column_stack([scale * rng.uniform(-1, 1, 500), rng.uniform(-1, 1, 500)])
    y = X[:, 0] / scale + X[:, 1]
    model = TensorMachineRegressor(random_state=0).fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    assert model.score(X, y) > (0.9 if scale > 1e-307 else 0.3)
