"""Jumps: thresholds against least squares and against what is known of generated targets."""

import numpy as np
import pytest

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    load,
)
from tensormachines._fit.jumps import MOST_JUMPS, SMOOTH_DEGREE, find_jump, find_jumps
from tensormachines._fit.regression_tree import MOST_BINS, Bins, Tree
from tensormachines._model.spline_learning import learn_splines
from tensormachines.export import to_python
from tensormachines.inspection import distil, formula

pd = pytest.importorskip("pandas")

NUMBERS = [None, None, None]


def steps(rng, n_rows, noise=0.1):
    """A target with thresholds at 0.3 of x0 and, where that is exceeded, at -0.2 of x1; smooth in x2."""
    X = rng.uniform(-1, 1, (n_rows, 3))
    high = X[:, 0] > 0.3
    y = 2.0 * high - 3.0 * (high & (X[:, 1] > -0.2)) + np.sin(2 * X[:, 2])
    return X, y + noise * rng.standard_normal(n_rows)


def all_thresholds(found):
    return {(j, threshold) for j, of_column in enumerate(found) for threshold in of_column}


@pytest.mark.parametrize("n_values", [40, 400])
def test_a_jump_explains_what_least_squares_says(rng, n_values):
    x = rng.integers(0, n_values, 800) / n_values
    weight = rng.integers(1, 4, 800).astype(float)
    y = np.column_stack([1.0 * (x > 0.6), -0.5 * (x > 0.6) + x**2]) + 0.2 * rng.standard_normal((800, 2))
    jump = find_jump(x, y, weight)

    code = Bins.of(x[:, None]).codes[:, 0]
    of_bin = np.bincount(code, weight)
    rank = (2 * (np.cumsum(of_bin) - of_bin / 2) / of_bin.sum() - 1)[code]  # that of the middle of a bin
    smooth = rank[:, None] ** np.arange(SMOOTH_DEGREE + 1)
    root = np.sqrt(weight)[:, None]

    def left(columns):
        return np.linalg.lstsq(root * columns, root * y, rcond=None)[1].sum()

    bounds = np.unique(code)[2:-2]
    gains = {bound: left(smooth) - left(np.column_stack([smooth, code <= bound])) for bound in bounds}
    best = max(gains, key=gains.get)
    assert jump.gain == pytest.approx(gains[best], rel=1e-6)
    assert abs(jump.threshold - 0.6) <= 2 / min(n_values, MOST_BINS)
    if n_values < MOST_BINS:  # each value has a bin of its own
        values = np.unique(x)
        assert jump.threshold == pytest.approx((values[best] + values[best + 1]) / 2)


def test_a_tree_leaves_the_residuals_of_its_leaves(rng):
    X, y = steps(rng, 500)
    weight = rng.uniform(0.5, 2, 500)
    tree = Tree(Bins.of(X), weight, y[:, None], 8)
    left = tree.left(0.5)
    assert len(tree.leaves) == 8
    assert len(tree.splits) == 7
    assert sorted(np.concatenate([leaf.rows for leaf in tree.leaves])) == list(range(500))
    for leaf in tree.leaves:
        mean = np.average(y[leaf.rows], weights=weight[leaf.rows])
        np.testing.assert_allclose(left[leaf.rows, 0], y[leaf.rows] - 0.5 * mean)
        sums = Bins.of(X).sums(leaf.rows, tree.numbers)
        np.testing.assert_allclose(leaf.sums, sums, atol=1e-9)


def test_the_best_split_explains_most(rng):
    X, y = steps(rng, 300)
    node = Tree(Bins.of(X), np.ones(300), y[:, None], 1).leaves[0]
    explained = [
        300 * y.var() - sum(len(side) * side.var() for side in (y[X[:, j] <= bound], y[X[:, j] > bound]))
        for j in range(3)
        for bound in np.sort(X[:, j])[9:-10]
    ]
    assert node.gain == pytest.approx(max(explained), rel=0.01)  # bins hold one or two rows


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_thresholds_are_found(rng, classes):
    X, y = steps(rng, 3000)
    targets = y[:, None]
    if classes:
        bounds = np.quantile(y, np.linspace(0, 1, classes + 1)[1:-1])
        targets = (np.searchsorted(bounds, y)[:, None] == np.arange(classes)).astype(float)
    found = find_jumps(X, targets, np.ones(3000), NUMBERS)
    assert np.abs(found[0] - 0.3).min() < 0.02
    assert np.abs(found[1] + 0.2).min() < 0.02
    assert sum(map(len, found)) <= MOST_JUMPS


def test_pure_nodes_have_no_jumps(rng):
    """Rounding errors are all that a step explains where the targets are equal."""
    X = rng.normal(size=(600, 5))
    y = (rng.random(600) < 1 / (1 + np.exp(-8 * (X[:, 0] ** 2 - 1)))).astype(float)
    found = find_jumps(X, y[:, None], np.ones(600), [None] * 5)
    assert not any(len(of_column) for of_column in found[1:])


@pytest.mark.parametrize("kind", ["smooth", "wave", "noise", "constant"])
def test_a_smooth_target_has_no_jumps(rng, kind):
    X = rng.uniform(-1, 1, (4000, 3))
    noise = rng.standard_normal(4000)
    y = {
        "smooth": np.sin(2 * X[:, 0]) * X[:, 1] + np.exp(X[:, 2]) + 0.1 * noise,
        "wave": np.sin(7 * X[:, 0]) + 0.1 * noise,
        "noise": noise,
        "constant": np.zeros(4000),
    }[kind]
    assert not all_thresholds(find_jumps(X, y[:, None], np.ones(4000), NUMBERS))


def test_weights_missing_entries_and_categories(rng):
    X, y = steps(rng, 3000)
    X[rng.random(3000) < 0.1, 0] = np.nan
    category = rng.integers(0, 4, 3000)
    y = y + 5.0 * (category == 2)
    rows = np.column_stack([X, category])
    found = find_jumps(rows, y[:, None], np.ones(3000), [None, None, None, 4])
    assert found[0][0] == pytest.approx(0.3, abs=0.02)
    assert not len(found[3])
    # Rows of tiny weight do not matter, and only ratios of weights do.
    wrong = np.vstack([rows, rows])
    weight = np.append(np.full(3000, 7.0), np.full(3000, 1e-9))
    again = find_jumps(wrong, np.append(y, -y)[:, None], weight, [None, None, None, 4])
    assert again[0][0] == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_function_of_a_jump_is_an_indicator_of_the_rows(rng, dtype):
    X = rng.standard_normal((2000, 1)).astype(dtype)
    thresholds = [np.array([0.5, -1.0, 0.5001, 50.0, -50.0])]
    basis = learn_splines(X, np.ones(2000), [None], np.dtype(dtype), thresholds=thresholds)
    (column,) = basis.columns
    assert len(column.jumps) == 2  # one is too near, and two are outside
    rows = basis.lift(basis.rows(X)).explicit()
    places = np.flatnonzero(basis.is_jump)
    for place, threshold in zip(places, column.thresholds, strict=True):
        truth = X[:, 0] > threshold
        assert 0 < truth.mean() < 1
        np.testing.assert_allclose(rows[:, place], truth - truth.mean(), atol=1e-4)
    assert column.thresholds == pytest.approx([-1.0, 0.5], abs=0.01)
    assert [basis.names(["x"], [None])[place] for place in places] == ["x > -1", "x > 0.5"]
    plain = basis.without_jumps()
    assert (plain.width, plain.n_jumps) == (basis.width - 2, 0)
    np.testing.assert_array_equal(plain.rows(X).toarray(), basis.rows(X).toarray())
    np.testing.assert_allclose(
        plain.lift(plain.rows(X)).explicit(), np.delete(rows, places, axis=1), atol=1e-6
    )


def test_numbers_of_few_values_keep_their_knots(rng):
    X = rng.integers(0, 9, (500, 1)).astype(float)
    basis = learn_splines(
        X, np.ones(500), [None], np.dtype(np.float64), thresholds=[np.array([0.5, 7.5, 0.4])]
    )
    (column,) = basis.columns
    assert column.knots.tolist() == list(range(9))
    assert column.jumps == (0, 7)


@pytest.mark.parametrize("trend", [False, True])
def test_jumps_lower_the_error_and_are_saved_and_exported(rng, tmp_path, trend):
    X, y = steps(rng, 2000)
    X_test, y_test = steps(rng, 1000)
    frame, test = (pd.DataFrame(rows, columns=["a", "b", "c"]) for rows in (X, X_test))
    model = TensorMachineRegressor(trend=trend, random_state=0).fit(frame, y)
    plain = TensorMachineRegressor(trend=trend, jumps=False, random_state=0).fit(frame, y)
    assert not plain._machine.has_jumps
    errors = [np.mean((each.predict(test) - y_test) ** 2) for each in (model, plain)]
    assert errors[0] < 0.7 * errors[1]
    assert np.abs(model.jumps_["a"] - 0.3).min() < 0.01
    assert f"a > {model.jumps_['a'][0]:.15g}" in model.basis_features_
    assert plain.jumps_ == {}

    far = pd.concat([test, 10 * test, test.assign(a=np.nan)])
    predictions = model.predict(far)
    model.save(tmp_path / "model.tm")
    np.testing.assert_array_equal(load(tmp_path / "model.tm").predict(far), predictions)
    namespace: dict = {}
    exec(to_python(model), namespace)
    np.testing.assert_allclose(namespace["predict"](far.to_numpy()), predictions, rtol=1e-9, atol=1e-9)


def test_impossible_jumps_in_a_file_are_refused(rng, tmp_path):  # which a save checks
    X = rng.uniform(-1, 1, (1000, 2))
    y = 1.0 * (X[:, 0] > 0.3) - 2.0 * (X[:, 0] > -0.5) + 0.01 * rng.standard_normal(1000)
    model = TensorMachineRegressor(jumps=True, random_state=0).fit(X, y)
    column = max(model._machine.basis.columns, key=lambda column: len(column.jumps))
    jumps = column.jumps
    for wrong in [(*jumps[:-1], 500), (-1, *jumps[1:]), (jumps[0], *jumps[:-1]), jumps[::-1]]:
        object.__setattr__(column, "jumps", wrong)
        with pytest.raises(ValueError, match="damaged: a column has impossible jumps"):
            model.save(tmp_path / "model.tm")


def test_classes_have_jumps(rng):
    X, y = steps(rng, 3000)
    X_test, y_test = steps(rng, 3000)
    bounds = np.quantile(y, [0.3, 0.6])
    labels, labels_test = (np.searchsorted(bounds, each) for each in (y, y_test))
    scores = [
        TensorMachineClassifier(jumps=jumps, random_state=0).fit(X, labels).score(X_test, labels_test)
        for jumps in ("auto", False)
    ]
    assert scores[0] > scores[1]


def test_a_smooth_target_has_a_model_as_without_jumps(rng):
    X = rng.uniform(-1, 1, (1000, 2))
    y = np.sin(3 * X[:, 0]) * X[:, 1]
    each = [TensorMachineRegressor(jumps=jumps, random_state=0).fit(X, y) for jumps in ("auto", False, True)]
    assert all((model.predict(X) == each[0].predict(X)).all() for model in each)


def test_jumps_that_are_not_kept_leave_their_knots():
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, (800, 3))
    y = np.tanh(12 * (X[:, 0] - 0.3)) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(800)
    auto, plain, jumping = (
        TensorMachineRegressor(jumps=jumps, random_state=0).fit(X, y) for jumps in ("auto", False, True)
    )
    assert jumping.jumps_
    assert not auto.jumps_
    for j, column in enumerate(auto._machine.basis.columns):
        np.testing.assert_array_equal(column.knots, jumping._machine.basis.columns[j].knots)
    difference = np.mean((auto.predict(X) - plain.predict(X)) ** 2)
    assert 0 < difference < 0.01 * np.var(y)


def test_other_losses_and_given_penalties_have_no_jumps_unless_asked(rng):
    X, y = steps(rng, 1000)
    assert not TensorMachineRegressor(loss="absolute_error", jumps=True).fit(X, y)._machine.has_jumps
    assert not TensorMachineRegressor(alpha=1e-3).fit(X, y)._machine.has_jumps
    assert TensorMachineRegressor(alpha=1e-3, jumps=True).fit(X, y)._machine.has_jumps


def test_a_warm_start_goes_on_with_the_jumps(rng):
    X, y = steps(rng, 2000)
    model = TensorMachineRegressor(warm_start=True, random_state=0).fit(X, y)
    assert model._machine.has_jumps
    before = model.jumps_
    error = np.mean((model.predict(X) - y) ** 2)
    model.fit(X, y)
    assert np.mean((model.predict(X) - y) ** 2) < 1.1 * error
    np.testing.assert_equal(model.jumps_, before)
    model.fit(rng.permuted(X, axis=0), np.sin(X[:, 2]))  # the same thresholds, whatever the target
    np.testing.assert_equal(model.jumps_, before)


def test_thresholds_are_in_formulas(rng):
    frame = pd.DataFrame({"weight": rng.uniform(0, 30, 2000), "zone": rng.choice(["A", "B"], 2000)})
    in_zone = (frame["weight"] > 20) & (frame["zone"] == "A")
    y = 5 + 4.0 * (frame["weight"] > 10) + 6.0 * in_zone + 0.2 * rng.standard_normal(2000)
    model = TensorMachineRegressor(random_state=0).fit(frame, y)
    small = distil(model, frame, terms=2)
    assert small.fidelity > 0.99
    low, high = (f"weight > {threshold:.15g}" for threshold in model.jumps_["weight"])
    found = {frozenset(monomial): coefficient for monomial, coefficient in small.items()}
    assert found[frozenset()] == pytest.approx(5, abs=0.1)
    assert found[frozenset([low])] == pytest.approx(4, abs=0.1)
    assert found[frozenset([high, "zone = A"])] == pytest.approx(6, abs=0.1)
    predicted = small.predict(pd.DataFrame({"weight": [5.0, 15.0, 25.0, np.nan], "zone": ["A"] * 4}))
    np.testing.assert_allclose(predicted, [5, 9, 15, 5], atol=0.2)
    read = formula(model, frame)
    assert read.fidelity > 0.99
    assert "weight" in read.functions[0].columns
    assert read.functions[0].axes[0].labels == sorted(set(read.functions[0].axes[0].labels), key=float)


def test_an_unexpected_gap_is_predicted_between_both_sides(rng):
    X = rng.uniform(0, 10, (2000, 1))
    y = 3.0 * (X[:, 0] > 6) + 0.1 * rng.standard_normal(2000)
    model = TensorMachineRegressor(random_state=0).fit(X, y)
    assert model.jumps_["x0"].tolist() == [6.0]
    assert 0.5 < model.predict([[np.nan]])[0] < 2.5


@pytest.mark.slow
def test_a_search_has_jumps_where_the_default_has_them(rng):
    X, y = steps(rng, 1500)
    search = TensorMachineRegressorCV(time_budget=6, random_state=0, verbose=0).fit(X, y)
    assert search.best_params_["jumps"]
    assert search.best_estimator_._machine.has_jumps
    tried = search.cv_results_["param_jumps"]
    assert all(tried)
    smooth = TensorMachineRegressorCV(time_budget=6, random_state=0, verbose=0).fit(X, X[:, 0] * X[:, 1])
    assert not any(smooth.cv_results_["param_jumps"])
