import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

import reference
from tensormachines import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor

EXACT = {"max_iter": 5000, "tol": 0.0, "random_state": 0}


def teacher(rng, rows=2000, dtype=np.float64):
    """A target that a machine of degree 3 and rank 1 can represent."""
    X = rng.standard_normal((rows, 5)).astype(dtype)
    y = 2 + X[:, 0] - 3 * X[:, 1] * X[:, 2] + X[:, 0] * X[:, 3] * (X[:, 4] + X[:, 1])
    return X, y


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
    model = TensorMachineRegressor(rank=3, alpha=1e-7, basis=None, n_restarts=3, max_iter=5000, tol=1e-3, random_state=0).fit(X, y)
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
    model = TensorMachineRegressor(rank=2, basis=None, max_iter=30, tol=0, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_iter=30"):
        model.fit(X, Y[:, 0] if outputs == 1 else Y)
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    expected = [
        [reference.output(x, intercept[k], coef[k], {p: f[k] for p, f in model.factors_.items()}) for k in range(outputs)] for x in X
    ]
    np.testing.assert_allclose(model.predict(X).reshape(60, -1), expected, rtol=1e-10)
    assert {p: f.shape for p, f in model.factors_.items()} == {2: (outputs, 2, 2, 4), 3: (outputs, 2, 3, 4)}
    assert model.n_parameters_ == coef.size + intercept.size + sum(f.size for f in model.factors_.values())
    assert model.n_iter_ == 30


def test_attributes_give_the_decision_function_of_several_classes():
    X, y = load_iris(return_X_y=True)
    model = TensorMachineClassifier(degree=2, rank=1, basis=None, alpha=1e-2, random_state=0).fit(X, y)
    expected = [[reference.output(x, model.intercept_[k], model.coef_[k], {2: model.factors_[2][k]}) for k in range(3)] for x in X]
    np.testing.assert_allclose(model.decision_function(X), expected, rtol=1e-10)


def test_objective_is_the_formula(rng):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = TensorMachineClassifier(rank=1, alpha=0.01, basis=None, random_state=0).fit(X, y)
    margin = np.where(y == 1, 1, -1) * model.decision_function(X)
    squares = (model.coef_**2).sum() + sum((f**2).sum() for f in model.factors_.values())
    assert model.objective_ == pytest.approx(np.logaddexp(0, -margin).mean() + 0.005 * squares, rel=1e-9)


def test_units_of_the_target_do_not_matter(rng):
    X, y = teacher(rng, 300)
    one, other = (TensorMachineRegressor(rank=2, alpha=1e-3, random_state=0).fit(X, target) for target in (y, y * 1e6 - 3e7))
    np.testing.assert_allclose(other.predict(X), one.predict(X) * 1e6 - 3e7, rtol=1e-3)


def test_standard_basis_makes_units_of_x_irrelevant(rng):
    X, y = teacher(rng, 300)
    scaled = X * [1, 1e3, 1e-3, 5, 1] + [0, 1e4, 1, 0, -3]
    one, other = (TensorMachineRegressor(rank=2, alpha=1e-3, random_state=0).fit(rows, y) for rows in (X, scaled))
    assert other.score(scaled, y) == pytest.approx(one.score(X, y), abs=0.01)


# ---- options of the fit


def test_weight_is_repetition_on_data_too_large_to_merge(rng):
    X = rng.standard_normal((1500, 60))
    y, weight = X[:, 0] * X[:, 1] + X[:, 2], rng.integers(0, 3, 1500)
    options = {"degree": 2, "rank": 1, "alpha": 0.05, "random_state": 0}
    weighted = TensorMachineRegressor(**options).fit(X, y, sample_weight=weight)
    repeated = TensorMachineRegressor(**options).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.predict(X), repeated.predict(X), atol=1e-4)


def test_class_weight_is_sample_weight():
    X, y = load_iris(return_X_y=True)
    by_class = TensorMachineClassifier(degree=2, rank=1, class_weight={0: 1, 1: 5, 2: 2}, random_state=0).fit(X, y)
    by_row = TensorMachineClassifier(degree=2, rank=1, random_state=0).fit(X, y, sample_weight=np.array([1, 5, 2])[y])
    np.testing.assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


def test_max_norm_is_kept_and_binds_only_where_it_must(rng):
    X, y = teacher(rng)
    X_basis = X / np.sqrt(5)
    options = {"rank": 2, "alpha": 0.0, "basis": None, "max_iter": 3000, "tol": 1e-8, "random_state": 0, "n_restarts": 2}

    def norms(model):
        return np.concatenate([[np.linalg.norm(model.coef_)], *(np.linalg.norm(f, axis=-1).ravel() for f in model.factors_.values())])

    scores = []
    for bound in (1.0, 2.0, 100.0):
        model = TensorMachineRegressor(max_norm=bound, **options).fit(X_basis, y)
        assert norms(model).max() <= bound * (1 + 1e-9)
        scores.append(model.score(X_basis, y))
    assert norms(TensorMachineRegressor(max_norm=1.0, **options).fit(X_basis, y)).max() == pytest.approx(1.0)
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
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-4)


def test_restarts_keep_the_best(rng):
    X, y = teacher(rng, 500)
    options = {"rank": 1, "alpha": 1e-6, "random_state": 3}
    several = TensorMachineRegressor(n_restarts=6, **options).fit(X, y)
    assert several.objective_ <= TensorMachineRegressor(**options).fit(X, y).objective_ * (1 + 1e-9)


def test_warm_start_goes_on_from_where_it_was(rng):
    X, y = teacher(rng, 500)
    model = TensorMachineRegressor(rank=2, warm_start=True, max_iter=5, tol=0, random_state=0)
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
    options = {"alpha": 0.0, "rank": 3, "random_state": 0}
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


def test_n_jobs_changes_nothing(rng):
    X, y = teacher(rng, 5000)
    one, two = (TensorMachineRegressor(n_jobs=jobs, random_state=0, tol=1e-3).fit(X, y) for jobs in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))


def test_verbose_prints(capsys):
    X, y = load_diabetes(return_X_y=True)
    TensorMachineRegressor(degree=2, verbose=1, random_state=0).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert "iteration 1: objective" in lines[0]
    assert "iteration 20:" in lines[10]


# ---- input


@pytest.mark.parametrize("basis", [None, "unit", "standard", "sphere"])
def test_dense_and_every_sparse_format_agree(rng, basis):
    X = rng.standard_normal((3000, 30)) * (rng.random((3000, 30)) < 0.3)
    y = X[:, 0] * X[:, 1] - X[:, 2]
    options = {"degree": 2, "rank": 2, "basis": basis, "alpha": 1e-3, "tol": 1e-5, "random_state": 0}
    dense = TensorMachineRegressor(**options).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        rows = form(X)
        model = TensorMachineRegressor(**options).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), dense.predict(X), atol=2e-3)
        np.testing.assert_allclose(dense.predict(rows), dense.predict(X), rtol=1e-9, atol=1e-9)


def test_64_bit_sparse_indices_and_wide_matrices():
    X = sparse.random(200, 20_000, density=1e-3, random_state=0, format="csr")
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    y = np.arange(200) % 2
    model = TensorMachineClassifier(degree=2, rank=1, basis=None, random_state=0).fit(X, y)
    assert model.predict_proba(X).shape == (200, 2)


def test_unsorted_and_duplicate_sparse_indices(rng):
    X = sparse.csr_array((np.array([1.0, 2.0, 3.0, 4.0]), np.array([2, 0, 1, 1]), np.array([0, 2, 4])), shape=(2, 3))
    model = TensorMachineRegressor(degree=2, rank=1, basis=None, random_state=0).fit(rng.standard_normal((20, 3)), np.arange(20.0))
    np.testing.assert_allclose(model.predict(X), model.predict(X.toarray()))


def test_float32_stays_float32(rng):
    X, y = teacher(rng, 500, np.float32)
    model = TensorMachineRegressor(random_state=0).fit(X, y)
    assert model.predict(X).dtype == np.float32
    assert model.coef_.dtype == np.float32
    assert all(f.dtype == np.float32 for f in model.factors_.values())
    wide = TensorMachineRegressor(random_state=0).fit(X.astype(np.float64), y)
    assert wide.predict(X.astype(np.float64)).dtype == np.float64
    np.testing.assert_allclose(wide.predict(X), wide.predict(X.astype(np.float64)), rtol=1e-3, atol=1e-3)
    classifier = TensorMachineClassifier(degree=2, random_state=0).fit(X, y > 0)
    assert classifier.predict_proba(X).dtype == np.float32


def test_layouts_of_numpy_arrays(rng, tmp_path):
    X, y = teacher(rng, 200)
    expected = TensorMachineRegressor(rank=1, random_state=0).fit(X, y).predict(X)
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    for rows in (np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], read_only, np.load(tmp_path / "X.npy", mmap_mode="r"), X.tolist()):
        model = TensorMachineRegressor(rank=1, random_state=0).fit(rows, y)
        np.testing.assert_allclose(model.predict(rows), expected, rtol=1e-6)


def test_x_is_not_changed_or_copied_whole(rng):
    X = np.asfortranarray(rng.standard_normal((2000, 50)))
    before = X.copy()
    model = TensorMachineRegressor(rank=1, degree=2, random_state=0).fit(X, X[:, 0])
    np.testing.assert_array_equal(X, before)
    assert model._check_rows(X) is X


def test_integers_frames_and_names(rng):
    X = rng.integers(0, 10, (100, 3))
    y = X[:, 0] * X[:, 1]
    expected = TensorMachineRegressor(random_state=0).fit(X, y).predict(X)
    columns = ["a", "b", "c"]
    for frame in (pd.DataFrame(X, columns=columns), pl.DataFrame(X, schema=columns)):
        model = TensorMachineRegressor(random_state=0).fit(frame, y)
        assert list(model.feature_names_in_) == columns
        np.testing.assert_array_equal(model.predict(frame), expected)


@pytest.mark.parametrize("labels", [[0, 1], [-1, 1], ["no", "yes"], [False, True], ["a", "b", "c"], [3, 5, 9]])
def test_labels_of_any_type(rng, labels):
    X = rng.standard_normal((150, 3))
    y = np.array(labels)[np.digitize(X[:, 0], [0] if len(labels) == 2 else [-0.5, 0.5])]
    model = TensorMachineClassifier(degree=2, rank=1, random_state=0).fit(X, y)
    assert set(model.classes_) == set(labels)
    assert model.score(X, y) > 0.9
    probabilities = model.predict_proba(X)
    assert probabilities.shape == (150, len(labels))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.decision_function(X).shape == ((150,) if len(labels) == 2 else (150, 3))
    np.testing.assert_array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"degree": 0}, "'degree' parameter"),
        ({"degree": 2.5}, "'degree' parameter"),
        ({"rank": 0}, "'rank' parameter"),
        ({"alpha": -1.0}, "'alpha' parameter"),
        ({"basis": "splines"}, "'basis' parameter"),
        ({"solver": "adam"}, "'solver' parameter"),
        ({"init_scale": 0.0}, "'init_scale' parameter"),
        ({"max_norm": 0.0}, "'max_norm' parameter"),
        ({"n_restarts": 0}, "'n_restarts' parameter"),
        ({"validation_fraction": 1.0}, "'validation_fraction' parameter"),
    ],
)
@pytest.mark.parametrize("estimator", [TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures])
def test_bad_parameters_are_named(estimator, change, message):
    with pytest.raises(ValueError, match=message):
        estimator(**change).fit(np.eye(4), [0, 1, 0, 1])


@pytest.mark.parametrize("basis", [None, "standard"])
def test_bad_data_get_one_clear_error(basis):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    regressor, classifier = TensorMachineRegressor(basis=basis), TensorMachineClassifier(basis=basis)
    with pytest.raises(ValueError, match="NaN"):
        regressor.fit(np.where(X == 1, np.nan, X), y)
    with pytest.raises(ValueError, match="infinity"):
        regressor.fit(np.where(X == 1, np.inf, X), y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        regressor.fit(X, y[:3])
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        classifier.fit(X, np.ones(4))
    with pytest.raises(ValueError, match=r"(?i)sample.?weight"):
        regressor.fit(X, y, sample_weight=np.zeros(4))
    with pytest.raises(ValueError, match="sample_weight"):
        regressor.fit(X, y, sample_weight=[-1, 1, 1, 1])
    with pytest.raises(ValueError, match="features"):
        regressor.fit(X, y).predict(np.eye(5))
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier.fit(X, [0.1, 0.2, 0.3, 0.4])


def test_overflow_is_not_silent(rng):
    X = rng.standard_normal((50, 2)).astype(np.float32)
    with pytest.raises(ValueError, match="not finite at the start"):
        TensorMachineRegressor(basis=None, init_scale=1e30, random_state=0).fit(X, X[:, 0])
    model = TensorMachineRegressor(random_state=0, basis=None).fit(X, X[:, 0] * X[:, 1])
    with pytest.warns(RuntimeWarning, match="overflow"):
        model.predict(np.full((1, 2), 3e38, dtype=np.float32))


@pytest.mark.parametrize("estimator", [TensorMachineRegressor(degree=2, tol=1e-2, random_state=0), TensorMachineClassifier(random_state=0)])
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(estimator, monkeypatch):
    X, y = load_breast_cancer(return_X_y=True)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    model = clone(estimator)
    with monkeypatch.context() as patch:
        patch.setattr("tensormachines._kernel.value_and_gradient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    assert vars(model) == vars(clone(estimator))
    model.fit(X, y)
    before = {name: value for name, value in vars(model).items()}
    with monkeypatch.context() as patch:
        patch.setattr("tensormachines._kernel.value_and_gradient", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:, :5], y)
    assert vars(model) == before
    assert model.predict(X).shape == y.shape


# ---- as a citizen


def test_pickle_and_grid_search():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(TensorMachineClassifier(degree=2, random_state=0), {"alpha": [1e-3, 1e-1], "rank": [1, 2]}, cv=3).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.predict_proba(X))


def test_features_help_a_linear_model(rng):
    X, y = teacher(rng)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    pipeline = make_pipeline(TensorMachineFeatures(rank=3, alpha=1e-5, random_state=0), Ridge()).fit(train, y_train)
    assert pipeline.score(test, y_test) > 0.9 > Ridge().fit(train, y_train).score(test, y_test) + 0.3


def test_features_are_the_products_and_have_names():
    X, y = load_iris(return_X_y=True, as_frame=True)
    features = TensorMachineFeatures(degree=3, rank=2, basis=None, random_state=0).set_output(transform="pandas")
    frame = features.fit_transform(X, y)
    assert frame.shape == (150, 3 * 4)
    assert list(frame.columns[:3]) == ["0_degree2_term1", "0_degree2_term2", "0_degree3_term1"]
    term = np.prod([X.to_numpy() @ features.factors_[3][1, 0, j] for j in range(3)], axis=0)
    np.testing.assert_allclose(frame["1_degree3_term1"], term, rtol=1e-10)


def test_features_know_regression_from_classification(rng):
    X = rng.standard_normal((100, 3))
    y = rng.integers(0, 3, 100)
    shapes = [TensorMachineFeatures(degree=2, rank=2, task=task).fit_transform(X, y).shape[1] for task in ("auto", "regression")]
    assert shapes == [6, 2]
    assert TensorMachineFeatures(degree=2, rank=2).fit_transform(X, y.astype(float)).shape[1] == 2
    assert TensorMachineFeatures(degree=2, rank=2).fit(X, np.column_stack([y, y]) + 0.5).get_feature_names_out()[2] == "y1_degree2_term1"


def test_digits_in_several_classes():
    X, y = load_digits(return_X_y=True)
    train, test, y_train, y_test = train_test_split(X, y, random_state=0)
    assert TensorMachineClassifier(degree=2, random_state=0).fit(train, y_train).score(test, y_test) > 0.96
