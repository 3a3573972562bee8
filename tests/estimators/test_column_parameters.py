"""Parameters that name columns: categories, periods, monotonic effects, and which columns may meet in a
term."""

from itertools import combinations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineRegressor,
    TensorMachineRegressorCV,
    blocks,
    load,
)
from tensormachines.export import to_python

pd = pytest.importorskip("pandas")


@pytest.fixture
def friedman():
    """10 sin(pi x0 x1) + 20 (x2 - 0.5)^2 + 10 x3 + 5 x4."""
    return make_friedman1(1500, n_features=6, noise=0.5, random_state=0)


@pytest.fixture
def mixed(rng):
    table = pd.DataFrame(
        {
            "dose": rng.normal(size=1200),
            "age": rng.uniform(0, 1, 1200),
            "kind": rng.integers(0, 6, 1200),
            "group": rng.choice(["a", "b", "c"], 1200),
        }
    )
    effects = np.array([3.0, -2.0, 1.0, -4.0, 2.5, 0.0])
    y = np.exp(table.dose) + effects[table.kind] + table.age * (table.group == "a")
    return table, y.to_numpy() + 0.1 * rng.normal(size=1200)


def joint_difference(model, X, i, j):
    """The part of predictions that columns i and j have only together: 0 if they never meet."""
    a, b = X, X[::-1]
    both = a.copy()
    both[:, [i, j]] = b[:, [i, j]]
    one, other = a.copy(), a.copy()
    one[:, i], other[:, j] = b[:, i], b[:, j]
    return model.predict(both) - model.predict(one) - model.predict(other) + model.predict(a)


# ---- interactions


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"basis": "standard", "solver": "lbfgs", "alpha": 1e-4, "tol": 1e-2},
        {"jumps": True, "alpha": 1e-4},
    ],
)
def test_only_columns_of_a_set_interact(friedman, settings):
    X, y = friedman
    model = TensorMachineRegressor(interaction_cst=[{0, 1}, {1, 2, 3}], random_state=0, **settings).fit(X, y)
    allowed = {(0, 1), (1, 2), (1, 3), (2, 3), (4, 5)}  # the last two are the rest
    for pair in combinations(range(6), 2):
        difference = np.abs(joint_difference(model, X[:200], *pair)).max()
        if pair in allowed and pair == (0, 1):
            assert difference > 1
        if pair not in allowed:
            assert difference < 1e-9


def test_coefficients_of_other_columns_are_exactly_zero(friedman):
    X, y = friedman
    names = [f"c{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names)
    model = TensorMachineRegressor(interaction_cst=[["c0", "c1"]], random_state=0).fit(frame, y)
    columns = np.array([str(name).split()[0] for name in model.basis_features_])
    for factors in model.factors_.values():
        (of_output,) = factors
        for i, term in enumerate(of_output):
            met = set(columns[np.any(term != 0, axis=0)]) - {"constant"}
            assert met <= ({"c0", "c1"} if i % 2 == 0 else {"c2", "c3", "c4", "c5"})


@pytest.mark.parametrize(("given", "degree"), [("pairwise", 2), ("no_interactions", 1)])
def test_words_limit_the_degree(friedman, given, degree):
    X, y = friedman
    model = TensorMachineRegressor(interaction_cst=given, random_state=0).fit(X, y)
    assert max([1, *model.factors_]) == degree
    if degree == 1:
        assert np.abs(joint_difference(model, X[:200], 0, 1)).max() < 1e-9


def test_more_sets_than_usual_have_a_term_each(rng):
    X = rng.normal(size=(400, 24))
    pairs = [(j, j + 1) for j in range(0, 24, 2)]
    y = sum(X[:, i] * X[:, j] for i, j in pairs)
    model = TensorMachineRegressor(degree=2, interaction_cst=pairs, basis="standard", random_state=0)
    assert model.fit(X, y).factors_[2].shape[1] == 12


# ---- monotonic effects


@pytest.mark.parametrize("signs", [(1, -1), (-1, 1)])
def test_predictions_rise_and_fall_with_columns(friedman, rng, signs):
    X, y = friedman
    X = X.copy()
    X[::9, 3] = np.nan
    model = TensorMachineRegressor(monotonic_cst=[0, 0, 0, *signs, 0], random_state=0).fit(X, y)
    for column, sign in zip((3, 4), signs, strict=True):
        for row in rng.uniform(-0.3, 1.3, (20, 6)):
            grid = np.repeat(row[None], 500, axis=0)
            grid[:, column] = np.linspace(-0.5, 1.5, 500)
            assert (sign * np.diff(model.predict(grid)) > -1e-12).all()
        dense = np.repeat(rng.uniform(0, 1, (1, 6)), 100_000, axis=0)
        dense[:, column] = np.linspace(-0.5, 1.5, 100_000)
        predicted = model.predict(dense)
        assert (sign * np.diff(predicted)).min() >= -1e-14 * np.abs(predicted).max()  # see docs/tables.md


def test_true_constraints_cost_little_accuracy(friedman):
    X, y = friedman
    train, test = slice(0, 1000), slice(1000, None)
    free = TensorMachineRegressor(random_state=0).fit(X[train], y[train])
    bound = TensorMachineRegressor(monotonic_cst=[0, 0, 0, 1, 1, 0], random_state=0).fit(X[train], y[train])
    assert bound.score(X[test], y[test]) > free.score(X[test], y[test]) - 0.01


def test_classes_rates_and_linear_models_are_monotonic_too(mixed):
    table, y = mixed
    numbers = table[["dose", "age"]]
    grid = pd.DataFrame({"dose": np.linspace(-4, 4, 300), "age": 0.5})
    classifier = TensorMachineClassifier(monotonic_cst={"dose": 1}, random_state=0).fit(numbers, y > 1)
    counts = TensorMachineRegressor(loss="poisson", monotonic_cst={"dose": -1}, random_state=0)
    counts.fit(numbers, np.round(np.exp(y / 4)))
    line = TensorMachineRegressor(degree=1, basis="standard", monotonic_cst={"dose": -1}, random_state=0)
    line.fit(numbers, y)
    assert (np.diff(classifier.predict_proba(grid)[:, 1]) > -1e-12).all()
    assert (np.diff(counts.predict(grid)) < 1e-12).all()
    assert (np.diff(line.predict(grid)) < 1e-12).all()


def test_constrained_models_are_saved_and_exported(mixed, tmp_path):
    table, y = mixed
    model = TensorMachineRegressor(
        monotonic_cst={"dose": 1}, interaction_cst=[{"age", "group"}, {"dose"}], random_state=0
    ).fit(table, y)
    model.save(tmp_path / "model.tm")
    loaded = load(tmp_path / "model.tm")
    assert np.array_equal(loaded.predict(table), model.predict(table))
    assert loaded.interaction_cst == [{"age", "group"}, {"dose"}]
    numbers = table[["dose", "age"]].to_numpy()
    model = TensorMachineRegressor(monotonic_cst=[1, 0], random_state=0).fit(numbers, y)
    exported: dict = {}
    exec(to_python(model), exported)
    assert np.allclose(exported["predict"](numbers), model.predict(numbers), rtol=1e-12)


# ---- categories


def test_declared_categories_are_those_of_a_categorical_type(mixed):
    table, y = mixed
    typed = table.assign(kind=table.kind.astype("category"))
    expected = TensorMachineRegressor(random_state=0).fit(typed, y).predict(typed)
    for given in (["kind"], [2], [False, False, True, False]):
        model = TensorMachineRegressor(categorical_features=given, random_state=0).fit(table, y)
        assert np.array_equal(model.predict(table), expected)
        assert model.predict(table[:1])[0] == pytest.approx(expected[0], rel=1e-12)
    numbers = table[["dose", "age", "kind"]].to_numpy()
    array = TensorMachineRegressor(categorical_features=[2], random_state=0).fit(numbers, y)
    assert "x2 = 3" in array.basis_features_
    assert array.score(numbers, y) > 0.95


def test_a_search_keeps_to_all_of_them(mixed):
    table, y = mixed
    search = TensorMachineRegressorCV(
        degrees=(2, 3),
        ranks=(4,),
        alphas=(1e-3,),
        max_iters=(5,),
        categorical_features=["kind"],
        monotonic_cst={"dose": 1},
        interaction_cst="pairwise",
        random_state=0,
        verbose=0,
    ).fit(table, y)
    assert search.best_params_["degree"] == 2
    assert search.best_params_["trend"] is False
    assert "kind = 3" in search.basis_features_
    grid = pd.concat([table[:1]] * 200).assign(dose=np.linspace(-4, 4, 200))
    assert (np.diff(search.predict(grid)) > -1e-12).all()


CANDIDATES = {"degrees": (2,), "ranks": (2,), "alphas": (1e-3,), "max_iters": (10,), "n_members": 1}


def test_a_search_of_an_array_reads_its_numbers_as_levels(rng):
    X = np.column_stack([rng.normal(size=600), rng.choice([10.0, 20.0, 30.0], 600)])
    y = X[:, 0] + (X[:, 1] == 20)
    settings = {**CANDIDATES, "categorical_features": [1], "random_state": 0, "verbose": 0}
    search = TensorMachineRegressorCV(**settings).fit(X, y)
    assert search.best_estimator_._columns.columns[1].levels == ("10", "20", "30")
    for given in (X.tolist(), pd.DataFrame({"x": X[:, 0], "kind": X[:, 1].astype(int)})):
        other = TensorMachineRegressorCV(**settings).fit(given, y)
        np.testing.assert_allclose(other.predict(given), search.predict(X))
    assert search.score(X, y) > 0.9


def test_a_search_keeps_booleans_0_and_1(rng):
    pl = pytest.importorskip("polars")
    x, yes = rng.normal(size=400), rng.random(400) < 0.5
    for table in (
        pl.DataFrame({"yes": yes, "x": x}),
        pd.DataFrame({"yes": pd.array(yes, dtype="boolean"), "x": x}),
        pd.DataFrame({"yes": yes.astype(object), "x": x}),
    ):
        search = TensorMachineRegressorCV(
            **CANDIDATES, categorical_features=["yes"], random_state=0, verbose=0
        )
        search.fit(table, x + 2 * yes)
        assert search.score(table, x + 2 * yes) > 0.9


def test_booleans_stay_0_and_1(rng):
    table = pd.DataFrame({"yes": rng.random(300) < 0.5, "x": rng.normal(size=300)})
    model = TensorMachineRegressor(categorical_features=["yes"], random_state=0).fit(table, 10.0 * table.yes)
    for value in (True, 1, 1.0):
        assert model.predict(pd.DataFrame({"yes": [value], "x": [0.0]}))[0] == pytest.approx(10, abs=0.01)


def test_a_search_has_a_term_for_each_set(rng):
    X = rng.normal(size=(200, 24))
    pairs = [{j, j + 1} for j in range(0, 24, 2)]
    y = sum(X[:, i] * X[:, j] for i, j in pairs)
    settings = {"degrees": (2,), "alphas": (1e-3,), "bases": ("standard",), "max_iters": (5,), "verbose": 0}
    search = TensorMachineRegressorCV(interaction_cst=pairs, n_members=1, random_state=0, **settings)
    assert search.fit(X, y).best_params_["rank"] >= 12
    with pytest.raises(ValueError, match="ranks must be 12 or more"):
        search.set_params(ranks=(4,)).fit(X, y)


# ---- periods


@pytest.fixture
def clock(rng):
    """A function of the hour that is steep at midnight, where there are no rows, and 10 higher for "b"."""
    table = pd.DataFrame(
        {"hour": rng.uniform(1, 23, 1500), "z": rng.normal(size=1500), "kind": rng.choice(["a", "b"], 1500)}
    )
    y = np.sin(2 * np.pi * table.hour / 24) * (3 + table.z) + 10 * (table.kind == "b")
    return table, y.to_numpy() + 0.1 * rng.normal(size=1500)


def at_midnight(table):
    rows = table[:50]
    return rows.assign(hour=0.0), rows.assign(hour=24.0), rows.assign(hour=1e-9), rows.assign(hour=24 - 1e-9)


def test_periodic_columns_join_at_the_ends_of_their_period(clock, tmp_path):
    table, y = clock
    model = TensorMachineRegressor(periodic_features={"hour": 24}, random_state=0).fit(table, y)
    assert {"hour cosine 1", "hour sine 1"} <= set(model.basis_features_)
    assert not any(name.startswith(("hour wave", "hour line", "hour >")) for name in model.basis_features_)
    begins, ends, after, before = map(model.predict, at_midnight(table))
    assert np.allclose(begins, ends, rtol=1e-12)
    assert np.allclose(after, before, atol=1e-6)
    truth = 10 * (table.kind[:50] == "b")
    plain = TensorMachineRegressor(random_state=0).fit(table, y)
    errors = [np.abs(each.predict(at_midnight(table)[0]) - truth).mean() for each in (model, plain)]
    assert errors[0] < 0.5 * errors[1]
    model.save(tmp_path / "model.tm")
    loaded = load(tmp_path / "model.tm")
    assert np.array_equal(loaded.predict(table), model.predict(table))
    assert loaded.periodic_features == {"hour": 24}
    continued = clone(model).set_params(warm_start=True, max_iter=2).fit(table, y).fit(table, y)
    assert np.allclose(*map(continued.predict, at_midnight(table)[:2]), rtol=1e-12)


def test_arrays_files_blocks_and_searches_have_periods(clock, tmp_path):
    table, y = clock
    numbers = table[["z", "hour"]].to_numpy()
    ends = np.array([[0.5, 0.0], [0.5, 24.0]])
    model = TensorMachineRegressor(periodic_features={1: 24}, random_state=0)
    assert np.ptp(model.fit(numbers, y).predict(ends)) < 1e-12
    assert np.ptp(clone(model).partial_fit(numbers, y).predict(ends)) < 1e-12
    table.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    streamed = clone(model).set_params(periodic_features={"hour": 24})
    streamed.fit(blocks.csv(tmp_path / "rows.csv", target="y"))
    assert np.allclose(*map(streamed.predict, at_midnight(table)[:2]), rtol=1e-12)
    settings = {"degrees": (2,), "ranks": (2,), "alphas": (1e-3,), "max_iters": (3,), "verbose": 0}
    search = TensorMachineRegressorCV(periodic_features={"hour": 24}, random_state=0, **settings)
    assert np.allclose(*map(search.fit(table, y).predict, at_midnight(table)[:2]), rtol=1e-12)
    assert "hour sine 1" in search.basis_features_


# ---- errors


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"monotonic_cst": {"group": 1}}, "which is a category"),
        ({"monotonic_cst": {"height": 1}}, "names the column 'height', which X does not have"),
        ({"monotonic_cst": [1]}, "has 1 entries, but X has 4 columns"),
        ({"monotonic_cst": {"dose": 2}}, "must hold -1, 0 or 1, got 2"),
        ({"monotonic_cst": {"dose": 1, 0: -1}}, "monotonic_cst names column 'dose' twice"),
        ({"monotonic_cst": {"dose": 1}, "solver": "lbfgs"}, "needs solver='adam'"),
        (
            {"monotonic_cst": {"dose": 1}, "interaction_cst": [{"age"}, {"dose", "group"}]},
            "a set that contains column 'dose', which has a sign in monotonic_cst",
        ),
        ({"monotonic_cst": {"dose": 1}, "trend": True}, "leave trend out"),
        ({"monotonic_cst": {"dose": 1}, "jumps": True}, "leave jumps out"),
        ({"interaction_cst": ["dose"]}, "must hold sets of columns, got 'dose'"),
        ({"interaction_cst": [["dose", 9]]}, "from 0 to 3, got 9"),
        ({"interaction_cst": "pairwise", "degree": 3}, "a degree of at most 2"),
        ({"interaction_cst": [["dose", "age"]], "solver": "kfac"}, "needs solver='adam' or 'lbfgs'"),
        ({"interaction_cst": [["dose"], ["age"], ["kind"]], "rank": 2}, "rank must be 4 or more, got 2"),
        ({"periodic_features": {"height": 3}}, "names the column 'height', which X does not have"),
        ({"periodic_features": {"age": 0}}, "positive periods, got 0 for column 'age'"),
        ({"periodic_features": {"kind": 3}}, "from 0 to 5: take them modulo 3 first"),
        ({"periodic_features": {"group": 3}}, "column 'group', which does not hold numbers"),
        ({"periodic_features": {"age": 1}, "monotonic_cst": {"age": 1}}, "both name column 'age'"),
        ({"categorical_features": ["height"]}, "names the column 'height'"),
        ({"categorical_features": [True]}, "a mask of 1 columns, but X has 4"),
    ],
)
def test_impossible_parameters_are_refused(mixed, settings, message):
    table, y = mixed
    model = TensorMachineRegressor(**settings)
    with pytest.raises(ValueError, match=message):
        model.fit(table, y)
    clone(model)


def test_columns_without_names_have_the_numbers_of_parameters(mixed):
    table, y = mixed
    X = table[["dose", "age", "kind"]].to_numpy()
    for settings, message in (
        ({"interaction_cst": [[0, 1]], "monotonic_cst": [1, 0, 0]}, "that contains column 0 of X, which"),
        ({"periodic_features": {0: 1}}, "a period of 1 for column 0 of X, whose"),
        ({"categorical_features": [2], "monotonic_cst": {2: 1}}, "for column 2 of X, which is a category"),
    ):
        with pytest.raises(ValueError, match=message):
            TensorMachineRegressor(**settings).fit(X, y)
    dates = np.column_stack(
        [np.full(60, "a", dtype=object), pd.date_range("2024", periods=60).to_pydatetime()]
    )
    with pytest.raises(ValueError, match="column 1 of X holds dates, and cannot be a category"):
        TensorMachineRegressor(categorical_features=[1]).fit(dates, y[:60])
    with pytest.raises(ValueError, match="for column 1 of X, which holds dates"):
        TensorMachineRegressor(monotonic_cst=[0, 1]).fit(dates, y[:60])


@pytest.mark.parametrize("periods", [[1], "age", {"age"}])
@pytest.mark.parametrize("estimator", [TensorMachineRegressor, TensorMachineRegressorCV])
def test_periods_are_a_mapping(mixed, estimator, periods):
    with pytest.raises(ValueError, match=r"'periodic_features' .* must be a mapping \{column: period\}"):
        estimator(periodic_features=periods).fit(*mixed)


def test_monotonic_columns_are_those_of_all_targets(mixed):
    table, y = mixed
    both = np.column_stack([y, -y])
    model = TensorMachineRegressor(monotonic_cst=[1, 0], random_state=0).fit(table[["dose", "age"]], both)
    grid = pd.DataFrame({"dose": np.linspace(-4, 4, 300), "age": 0.5})
    assert (np.diff(model.predict(grid), axis=0) > -1e-12).all()


def test_what_the_parameters_need_is_said(mixed, tmp_path):
    table, y = mixed
    table.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(ValueError, match="categorical_features needs X in memory"):
        TensorMachineRegressor(categorical_features=["kind"]).fit(
            blocks.csv(tmp_path / "rows.csv", target="y")
        )
    numbers = table[["dose", "age"]]
    with pytest.raises(ValueError, match="needs two classes"):
        TensorMachineClassifier(monotonic_cst={"dose": 1}).fit(table, table.group)
    with pytest.raises(ValueError, match="all columns interact: use another basis with interaction_cst"):
        TensorMachineRegressor(interaction_cst=[[0]], basis="sphere").fit(numbers, y)
    with pytest.raises(ValueError, match="categorical_features needs dense rows"):
        TensorMachineRegressor(categorical_features=[0], basis="standard").fit(numbers, y)
    with pytest.raises(ValueError, match="periodic_features needs splines"):
        TensorMachineRegressor(periodic_features={"age": 1}, basis="standard").fit(numbers, y)
    dated = numbers.assign(when=pd.date_range("2024-01-01", periods=len(numbers)), group="a")
    with pytest.raises(ValueError, match="column 'when' holds dates, and cannot be a category"):
        TensorMachineRegressor(categorical_features=["when"]).fit(dated, y)
    with pytest.raises(ValueError, match="column 'when', which holds dates"):
        TensorMachineRegressor(monotonic_cst={"when": 1}).fit(dated, y)
    with pytest.raises(ValueError, match="column 'group', which is a category"):
        TensorMachineRegressor(monotonic_cst={"group": 1}).fit(dated, y)
    with pytest.raises(ValueError, match="the columns of X have no names"):
        TensorMachineRegressor(monotonic_cst={"dose": 1}).fit(numbers.to_numpy(), y)
    with pytest.raises(ValueError, match="partial_fit does not support interaction_cst"):
        TensorMachineRegressor(interaction_cst="pairwise").partial_fit(numbers, y)
