import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

import reference
from targets import teacher
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor

EXACT = {"solver": "lbfgs", "max_iter": 5000, "tol": 0.0, "random_state": 0}


# ---- the model


def test_degree_1_is_ridge(rng):
    X, y = load_diabetes(return_X_y=True)
    weight = rng.random(len(y))
    model = TensorMachineRegressor(degree=1, alpha=0.01, basis=None, **EXACT).fit(X, y, sample_weight=weight)
    ridge = Ridge(alpha=0.01 * weight.sum()).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=1e-5)
    assert model.intercept_ == pytest.approx(ridge.intercept_)
    assert model.coef_.shape == ridge.coef_.shape


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_degree_1_is_logistic_regression(load):
    X, y = load(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = TensorMachineClassifier(degree=1, alpha=0.01, basis=None, **EXACT).fit(X, y)
    linear = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10, max_iter=10000).fit(X, y)
    assert model.coef_.shape == linear.coef_.shape
    assert model.intercept_.shape == linear.intercept_.shape
    np.testing.assert_allclose(model.predict_proba(X), linear.predict_proba(X), atol=1e-5)


def test_recovers_a_polynomial(rng):
    X, y = teacher(rng)
    settings = {
        "rank": 3,
        "alpha": 1e-7,
        "basis": None,
        "solver": "lbfgs",
        "n_restarts": 3,
        "max_iter": 5000,
        "tol": 1e-3,
    }
    model = TensorMachineRegressor(**settings, random_state=0).fit(X, y)
    new, truth = teacher(np.random.default_rng(1))
    assert np.linalg.norm(model.predict(new) - truth) / np.linalg.norm(truth) < 0.02


def test_learns_exclusive_or(rng):
    X = rng.uniform(-1, 1, (1000, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
    model = TensorMachineClassifier(degree=2, rank=2, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.98
    assert list(model.classes_) == ["different", "same"]


@pytest.mark.parametrize("outputs", [1, 3])
def test_attributes_give_the_formula(rng, outputs):
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, outputs)) * 100 + 7
    model = TensorMachineRegressor(
        rank=2, alpha=1e-4, basis=None, solver="lbfgs", max_iter=30, tol=0, random_state=0
    )
    with pytest.warns(ConvergenceWarning, match="max_iter=30"):
        model.fit(X, Y[:, 0] if outputs == 1 else Y)
    coef, intercept = np.atleast_2d(model.linear_), np.atleast_1d(model.intercept_)
    expected = [
        [
            reference.output(x, intercept[k], coef[k], {p: f[k] for p, f in model.factors_.items()})
            for k in range(outputs)
        ]
        for x in X
    ]
    np.testing.assert_allclose(model.predict(X).reshape(60, -1), expected, rtol=1e-10)
    assert {p: f.shape for p, f in model.factors_.items()} == {2: (outputs, 2, 2, 4), 3: (outputs, 2, 3, 4)}
    assert model.n_parameters_ == coef.size + intercept.size + sum(f.size for f in model.factors_.values())
    assert model.n_iter_ == 30


@pytest.mark.parametrize("shared", [False, True])
def test_attributes_give_the_decision_function_of_several_classes(shared):
    X, y = load_iris(return_X_y=True)
    settings = {"degree": 2, "rank": 2, "basis": None, "alpha": 1e-2, "random_state": 0}
    model = TensorMachineClassifier(shared_factors=shared, **settings).fit(X, y)
    assert model.factors_[2].shape == (1 if shared else 3, 2, 2, 4)
    assert model.term_weights_[2].shape == (3, 2)

    def output(x, k):
        factors, weights = model.factors_[2][0 if shared else k], model.term_weights_[2][k]
        return reference.output(x, model.intercept_[k], model.linear_[k], {2: factors}, {2: weights})

    expected = [[output(x, k) for k in range(3)] for x in X]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*worse than a constant would")
def test_three_classes_share_factors_and_other_outputs_do_not(rng):
    X, quick = rng.standard_normal((60, 3)), {"max_iter": 1, "random_state": 0}
    for n_classes, shape in ((2, (1, 10, 2)), (3, (1, 20, 2)), (15, (1, 22, 2))):
        model = TensorMachineClassifier(degree=2, **quick).fit(X, np.arange(60) % n_classes)
        assert model.factors_[2].shape[:3] == shape
    targets = TensorMachineRegressor(degree=2, **quick).fit(X, X[:, :2])
    assert targets.factors_[2].shape[:3] == (2, 10, 2)
    assert (targets.term_weights_[2] == 1).all()
    shared = TensorMachineRegressor(degree=2, rank=4, shared_factors=True, **quick).fit(X, X[:, :2])
    assert shared.factors_[2].shape[:3] == (1, 4, 2)
    assert shared.n_parameters_ == 2 * (1 + 4) + (2 + 2 * 4) * len(shared.basis_features_)


@pytest.mark.parametrize("solver", ["adam", "kfac", "lbfgs"])
def test_objective_is_the_formula(solver):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = TensorMachineClassifier(rank=1, alpha=0.01, basis=None, solver=solver, random_state=0).fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    squares = (model.linear_**2).sum() + sum((f**2).sum() for f in model.factors_.values())
    assert model.objective_ == pytest.approx(np.logaddexp(0, -margin).mean() + 0.005 * squares, rel=1e-9)


def test_units_of_the_target_do_not_matter(rng):
    X, y = teacher(rng, 300)
    one, other = (
        TensorMachineRegressor(rank=2, alpha=1e-3, random_state=0).fit(X, target)
        for target in (y, y * 1e6 - 3e7)
    )
    np.testing.assert_allclose(other.predict(X), one.predict(X) * 1e6 - 3e7, rtol=1e-3)


def test_standard_basis_makes_units_of_x_irrelevant(rng):
    X, y = teacher(rng, 300)
    scaled = X * [1, 1e3, 1e-3, 5, 1] + [0, 1e4, 1, 0, -3]
    settings = {"rank": 2, "alpha": 1e-3, "basis": "standard", "solver": "lbfgs", "random_state": 0}
    one, other = (TensorMachineRegressor(**settings).fit(rows, y) for rows in (X, scaled))
    assert other.score(scaled, y) == pytest.approx(one.score(X, y), abs=0.01)


# ---- options of the fit


def test_weight_is_repetition_on_data_too_large_to_merge(rng):
    X = rng.standard_normal((1500, 60))
    y, weight = X[:, 0] * X[:, 1] + X[:, 2], rng.integers(0, 3, 1500)
    options = {
        "degree": 2,
        "rank": 1,
        "alpha": 0.05,
        "basis": "standard",
        "solver": "lbfgs",
        "random_state": 0,
    }
    weighted = TensorMachineRegressor(**options).fit(X, y, sample_weight=weight)
    repeated = TensorMachineRegressor(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


def test_class_weight_is_sample_weight():
    X, y = load_iris(return_X_y=True)
    by_class = TensorMachineClassifier(degree=2, rank=1, class_weight={0: 1, 1: 5, 2: 2}, random_state=0).fit(
        X, y
    )
    by_row = TensorMachineClassifier(degree=2, rank=1, random_state=0).fit(
        X, y, sample_weight=np.array([1, 5, 2])[y]
    )
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_max_norm_is_kept_and_binds_only_where_it_must(rng, solver):
    X, y = teacher(rng, rows=500)
    X_basis = X / np.sqrt(5)
    options = {
        "rank": 2,
        "alpha": 0.0,
        "basis": None,
        "solver": solver,
        "max_iter": 3000,
        "tol": 1e-8,
        "random_state": 0,
        "n_restarts": 2,
    }

    def norms(model):
        return np.concatenate(
            [
                [np.linalg.norm(model.linear_)],
                *(np.linalg.norm(f, axis=-1).ravel() for f in model.factors_.values()),
            ]
        )

    scores = []
    for bound in (1.0, 2.0, 100.0):
        model = TensorMachineRegressor(max_norm=bound, **options).fit(X_basis, y)
        largest = norms(model).max()
        assert largest <= bound * (1 + 1e-9)
        if bound == 1.0:
            assert largest == pytest.approx(1.0)
        scores.append(model.score(X_basis, y))
    assert scores[0] < scores[1] < scores[2]
    assert scores[2] > 0.999


def test_max_norm_of_a_linear_model_is_the_constrained_least_squares(rng):
    X, y = rng.standard_normal((80, 4)), 30 * rng.standard_normal(80)
    model = TensorMachineRegressor(degree=1, alpha=0.0, basis=None, max_norm=1.5, **EXACT).fit(X, y)
    centred = X - X.mean(axis=0)
    low, high = 0.0, 1e9
    for _ in range(200):
        multiplier = (low + high) / 2
        coef = np.linalg.solve(centred.T @ centred + multiplier * np.eye(4), centred.T @ y)
        low, high = (multiplier, high) if np.linalg.norm(coef) > 1.5 else (low, multiplier)
    np.testing.assert_allclose(model.linear_, coef, rtol=1e-4)


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_restarts_keep_the_best(rng, solver):
    X, y = teacher(rng, 500)
    options = {"rank": 1, "alpha": 1e-6, "solver": solver, "basis": "standard", "random_state": 3}
    several = TensorMachineRegressor(n_restarts=6, **options).fit(X, y)
    assert several.objective_ <= TensorMachineRegressor(**options).fit(X, y).objective_ * (1 + 1e-9)


def test_warm_start_goes_on_from_where_it_was(rng):
    X, y = teacher(rng, 500)
    model = TensorMachineRegressor(
        rank=2,
        alpha=1e-4,
        basis="standard",
        solver="lbfgs",
        warm_start=True,
        max_iter=5,
        tol=0,
        random_state=0,
    )
    objectives = []
    for _ in range(4):
        with pytest.warns(ConvergenceWarning):
            objectives.append(model.fit(X, y).objective_)
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] < 0.9 * objectives[0]
    with pytest.raises(ValueError, match="same shape"):
        model.set_params(rank=3).fit(X, y)


def test_early_stopping_stops_early_and_keeps_the_best(rng):
    X, y = rng.standard_normal((300, 20)), rng.standard_normal(300)
    options = {"alpha": 0.0, "rank": 3, "basis": "standard", "solver": "lbfgs", "random_state": 0}
    stopped = TensorMachineRegressor(early_stopping=True, n_iter_no_change=3, **options).fit(X, y)
    assert stopped.n_iter_ < 50
    new = rng.standard_normal((500, 20))
    with pytest.warns(ConvergenceWarning):
        overfitted = TensorMachineRegressor(**options).fit(X, y)
    assert np.var(stopped.predict(new)) < np.var(overfitted.predict(new))


def test_early_stopping_of_a_classifier_is_stratified():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(early_stopping=True, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("solver", ["adam", "lbfgs"])
def test_n_jobs_changes_nothing(rng, solver):
    X, y = teacher(rng, 5000)
    one, two = (
        TensorMachineRegressor(n_jobs=jobs, random_state=0, solver=solver, tol=1e-3).fit(X, y)
        for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_verbose_prints(capsys):
    X, y = load_diabetes(return_X_y=True)
    TensorMachineRegressor(degree=2, alpha=1e-3, verbose=1, random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert "iteration 1: objective" in lines[0]
    assert "iteration 20:" in lines[10]


# ---- as a citizen


def test_pickle_and_grid_search():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(
        TensorMachineClassifier(degree=2, random_state=0), {"alpha": [1e-3, 1e-1], "rank": [1, 2]}, cv=3
    ).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))


def test_features_help_a_linear_model(rng):
    X, y = teacher(rng)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    pipeline = make_pipeline(TensorMachineFeatures(rank=3, alpha=1e-5, random_state=0), Ridge()).fit(
        train, y_train
    )
    assert pipeline.score(test, y_test) > 0.9 > Ridge().fit(train, y_train).score(test, y_test) + 0.3


def test_features_are_the_products_and_have_names():
    pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True, as_frame=True)
    features = TensorMachineFeatures(degree=3, rank=2, basis=None, random_state=0).set_output(
        transform="pandas"
    )
    frame = features.fit_transform(X, y)
    assert frame.shape == (150, 3 * 4)
    names = [name.partition("(")[0] for name in frame.columns]
    assert names[:3] == ["0_degree2_term1", "0_degree2_term2", "0_degree3_term1"]
    term = np.prod([X.to_numpy() @ features.factors_[3][1, 0, j] for j in range(3)], axis=0)
    np.testing.assert_allclose(frame.iloc[:, names.index("1_degree3_term1")], term, rtol=1e-10)


def test_features_know_regression_from_classification(rng):
    X = rng.standard_normal((100, 3))
    y = rng.integers(0, 3, 100)
    shapes = [
        TensorMachineFeatures(degree=2, rank=2, task=task).fit_transform(X, y).shape[1]
        for task in ("auto", "regression")
    ]
    assert shapes == [6, 2]
    assert TensorMachineFeatures(degree=2, rank=2).fit_transform(X, y.astype(float)).shape[1] == 2
    assert (
        TensorMachineFeatures(degree=2, rank=2)
        .fit(X, np.column_stack([y, y]) + 0.5)
        .get_feature_names_out()[2]
        .startswith("y1_degree2_term1(")
    )


def test_digits_in_several_classes():
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert TensorMachineClassifier(degree=2, random_state=0).fit(train, y_train).score(test, y_test) > 0.96
