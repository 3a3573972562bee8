import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.preprocessing import PolynomialFeatures
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines.peers import BasisLearnerClassifier, BasisLearnerRegressor
from tensormachines.peers.basis_network import grow

EVERYTHING = {"width": None, "alpha": 0.0, "tol": 1e-9}


@parametrize_with_checks([BasisLearnerRegressor(), BasisLearnerClassifier()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def least_squares(X, y, new, degree):
    expand = PolynomialFeatures(degree).fit_transform
    return (expand(np.vstack([X, new])) @ np.linalg.lstsq(expand(X), y, rcond=1e-12)[0])[len(X) :]


def target(X, rng):
    return np.sin(2 * X[:, 0]) * X[:, -1] + X[:, 0] ** 2 + 3 + 0.1 * rng.standard_normal(len(X))


def grown_on_a_sample(X, y, degree, width):
    """Candidates compared on 1,000 of the rows, and the residual as a share of the variance."""
    options = {"batch": 20, "tol": 1e-6, "sample": 1000, "sample_per_node": 1}
    return grow(X, y[:, None].astype(X.dtype), np.ones(len(X)), [width] * degree, **options)


def outputs(growth, X):
    return growth.network.outputs(X, growth.coef[0], growth.coef[1:].T)[:, 0]


# ---- all nodes: the span of all monomials


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
@pytest.mark.parametrize("batch", [1, 20, 1000])
def test_all_nodes_are_all_monomials(rng, degree, batch):
    X, new = rng.standard_normal((300, 3)), rng.standard_normal((50, 3))
    y = target(X, rng)
    model = BasisLearnerRegressor(degree, **EVERYTHING, batch=batch).fit(X, y)
    assert model.network_.layers[-1] == PolynomialFeatures(degree).fit(X).n_output_features_
    np.testing.assert_allclose(model.predict(X), least_squares(X, y, X, degree), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict(new), least_squares(X, y, new, degree), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("wide_scales", [False, True])
def test_deficient_rank(rng, wide_scales):
    free = rng.standard_normal((350, 2))

    def deficient(free):  # a duplicate, a sum, a constant and a zero column
        return np.column_stack(
            [free, free[:, 0], free.sum(axis=1), np.full(len(free), 7.0), np.zeros(len(free))]
        )

    X, y = deficient(free), target(free, rng)
    if wide_scales:
        X = X * 10.0 ** np.array([-5, 4, -5, 2, 0, 0])
    model = BasisLearnerRegressor(3, **EVERYTHING).fit(X[:300], y[:300])
    assert model.network_.layers == (3, 6, 10)
    np.testing.assert_allclose(
        model.predict(X[300:]), least_squares(free[:300], y[:300], free[300:], 3), rtol=1e-7
    )


def test_fewer_rows_than_monomials(rng):
    X = rng.standard_normal((30, 5))
    y = target(X, rng)
    model = BasisLearnerRegressor(3, **EVERYTHING).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9, atol=1e-9)
    assert model.network_.layers[-1] == 30
    assert model.residual_[-1] < 1e-20


def test_several_outputs_and_weights_by_least_squares(rng):
    X, weight = rng.standard_normal((200, 3)), rng.random(200)
    Y = np.column_stack([target(X, rng), 1e5 * target(X[:, ::-1], rng)])
    model = BasisLearnerRegressor(2, **EVERYTHING).fit(X, Y, sample_weight=weight)
    root = np.sqrt(weight)[:, None]
    monomials = PolynomialFeatures(2).fit_transform(X)
    np.testing.assert_allclose(
        model.predict(X),
        monomials @ np.linalg.lstsq(root * monomials, root * Y, rcond=None)[0],
        rtol=1e-9,
        atol=1e-9,
    )


def test_uncentred_first_layer_spans_the_singular_vectors_of_the_original(rng):
    """Against the SVD of [1 X]: with the constant, its first vectors and the nodes span the same space."""
    X = rng.standard_normal((200, 6)) * [5, 4, 3, 2, 1, 0.5] + [3, 0, 0, 0, 9, 0]
    nodes = BasisLearnerRegressor(1, width=3, center=False).fit(X, X[:, 0]).network_.nodes(X)
    vectors = np.linalg.svd(np.column_stack([np.ones(200), X]), full_matrices=False)[0][:, :3]
    space = np.linalg.qr(np.column_stack([np.ones(200), vectors]))[0]
    np.testing.assert_allclose(nodes.T @ nodes / 200, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(space @ (space.T @ nodes), nodes, atol=1e-12)
    centred = BasisLearnerRegressor(1, width=3).fit(X, X[:, 0]).network_.nodes(X)
    assert np.abs(space @ (space.T @ centred) - centred).max() > 0.1  # another space


def test_uncentred_nodes_of_all_directions_are_all_monomials(rng):
    X, new = rng.standard_normal((300, 3)) + 2, rng.standard_normal((50, 3)) + 2
    y = target(X, rng)
    model = BasisLearnerRegressor(2, **EVERYTHING, center=False).fit(X, y)
    assert model.network_.layers == (4, 10)
    np.testing.assert_allclose(model.predict(new), least_squares(X, y, new, 2), rtol=1e-8, atol=1e-8)


# ---- the nodes


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_nodes_are_orthonormal_and_replayed(rng, dtype, sampled):
    X = rng.standard_normal((2000, 6)).astype(dtype)
    y = target(X, rng)
    if sampled:
        growth = grown_on_a_sample(X, y, degree=4, width=15)
        network, predict = growth.network, lambda X: outputs(growth, X)
    else:
        model = BasisLearnerRegressor(4, width=15).fit(X, y)
        network, predict = model.network_, model.predict
    nodes = network.nodes(X)
    assert nodes.dtype == dtype == predict(X).dtype
    assert nodes.shape[1] == 1 + 6 + 3 * 15
    precision = 1e-10 if dtype == np.float64 else 2e-4
    np.testing.assert_allclose(nodes.T @ nodes / len(X), np.eye(nodes.shape[1]), atol=precision)
    order = rng.permutation(len(X))[:300]
    np.testing.assert_allclose(predict(X[order]), predict(X)[order], atol=precision)
    np.testing.assert_allclose([predict(X[[i]])[0] for i in range(20)], predict(X)[:20], atol=precision)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_on_training_rows_are_the_fitted_values(rng, dtype):
    X = rng.standard_normal((1000, 5)).astype(dtype)
    y = target(X, rng)
    model = BasisLearnerRegressor(4, width=12, alpha=0).fit(X, y)
    left = np.mean((y - model.predict(X)) ** 2) / y.var()
    assert left == pytest.approx(model.residual_[-1], rel=1e-10 if dtype == np.float64 else 1e-3)


def test_each_step_takes_the_candidate_that_explains_most(rng):
    """Against explicit orthogonal least squares: one node at a time, every candidate fitted together with all
    nodes.
    """
    X = rng.standard_normal((150, 4))
    y = target(X, rng)
    model = BasisLearnerRegressor(2, width=5, alpha=0, batch=1).fit(X, y)
    first = model.network_.nodes(X)[:, :5]
    candidates = [first[:, i] * first[:, j] for i in range(1, 5) for j in range(1, i + 1)]
    chosen = first
    for _ in range(5):
        trials = [np.column_stack([chosen, c]) for c in candidates]
        errors = [np.sum((y - trial @ np.linalg.lstsq(trial, y, rcond=None)[0]) ** 2) for trial in trials]
        chosen = trials[int(np.argmin(errors))]
    assert model.residual_[-1] == pytest.approx(min(errors) / np.sum((y - y.mean()) ** 2), rel=1e-10)


@pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer, load_iris, load_digits])
def test_training_error_never_rises(load):
    X, y = load(return_X_y=True)
    for alpha in (0.0, 0.1):
        errors = []
        for degree in (1, 2, 3, 4):
            model = BasisLearnerRegressor(degree, width=15, alpha=alpha).fit(X, y)
            errors.append(np.mean((y - model.predict(X)) ** 2))
            assert (np.diff(model.residual_) <= 0).all()
        assert (np.diff(errors) <= 0).all()
        assert errors[-1] < 0.99 * errors[0]


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_logistic_objective_never_rises(load):
    X, y = load(return_X_y=True)
    objectives = []
    for degree in (1, 2, 3):
        model = BasisLearnerClassifier(degree, width=10, alpha=1e-3).fit(X, y)
        objectives.append(log_loss(y, model.predict_proba(X)) + 0.5e-3 * np.square(model.coef_).sum())
    assert (np.diff(objectives) < 1e-9).all()


# ---- the output layer


def test_ridge_on_the_nodes(rng):
    X, weight = rng.standard_normal((200, 3)), rng.random(200)
    y = target(X, rng)
    model = BasisLearnerRegressor(2, width=4, alpha=0.3).fit(X, y, sample_weight=weight)
    ridge = Ridge(alpha=0.3 * weight.sum()).fit(model.network_.nodes(X)[:, 1:], y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-10)
    assert model.intercept_ == pytest.approx(ridge.intercept_)


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_logistic_regression_on_the_nodes(load):
    X, y = load(return_X_y=True)
    model = BasisLearnerClassifier(2, width=4, alpha=0.01).fit(X, y)
    nodes = model.network_.nodes(X)[:, 1:]
    logistic = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-8, max_iter=1000).fit(nodes, y)
    np.testing.assert_allclose(model.predict_proba(X), logistic.predict_proba(nodes), atol=1e-4)
    assert model.decision_function(X).shape == ((len(y),) if len(set(y)) == 2 else (len(y), 3))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


@pytest.mark.parametrize("bits", [2, 3])
def test_learns_parity(rng, bits):
    X = rng.uniform(-1, 1, (1500, 5))
    y = np.where(np.prod(X[:, :bits], axis=1) > 0, "even", "odd")
    model = BasisLearnerClassifier(bits, width=35).fit(X[:1000], y[:1000])
    assert model.score(X[1000:], y[1000:]) > 0.93
    assert BasisLearnerClassifier(bits - 1, width=35).fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) < 0.6


def test_digits():
    X, y = load_digits(return_X_y=True)
    model = BasisLearnerClassifier(2, width=40, alpha=1e-2).fit(X[:1200], y[:1200])
    assert model.score(X[1200:], y[1200:]) > 0.94


# ---- what comes in


@pytest.mark.parametrize("learner", [BasisLearnerRegressor, BasisLearnerClassifier])
def test_sparse_is_dense(rng, learner):
    X = rng.standard_normal((300, 8)) * (rng.random((300, 8)) < 0.3)
    X[0], X[:, 3] = 0, 0
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    dense = learner(width=6).fit(X, y)
    for form in (sparse.csr_matrix, sparse.csr_array, sparse.coo_array):
        model = learner(width=6).fit(form(X), y)
        np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-6)
        np.testing.assert_allclose(model.predict(form(X)), dense.predict(X), atol=1e-6)


@pytest.mark.parametrize("learner", [BasisLearnerRegressor, BasisLearnerClassifier])
def test_weight_is_repetition(rng, learner):
    X, weight = rng.standard_normal((150, 4)), rng.integers(0, 4, 150)
    y = (X[:, 0] * X[:, 1] + X[:, 2] > 0).astype(int)
    weighted, repeated = (
        learner(width=6).fit(X, y, sample_weight=weight),
        learner(width=6).fit(X.repeat(weight, 0), y.repeat(weight)),
    )
    predict = "predict" if learner is BasisLearnerRegressor else "decision_function"
    np.testing.assert_allclose(
        getattr(weighted, predict)(X), getattr(repeated, predict)(X), rtol=1e-5, atol=1e-6
    )


def test_units_of_the_columns_and_of_the_targets_do_not_matter_if_all_directions_fit(rng):
    X = rng.standard_normal((300, 3))
    Y = np.column_stack([target(X, rng), target(X[:, ::-1], rng)])
    model = BasisLearnerRegressor(3, width=None).fit(X, Y)
    other = BasisLearnerRegressor(3, width=None).fit(X * [1e-6, 1, 1e6] + [1, 0, 1e6], Y * [1e4, 1e-4])
    np.testing.assert_allclose(
        other.predict(X * [1e-6, 1, 1e6] + [1, 0, 1e6]) / [1e4, 1e-4], model.predict(X), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_raw_scales(rng, dtype):
    X = (np.exp(3 * rng.standard_normal((500, 6))) * 10.0 ** np.arange(-9, 9, 3)).astype(dtype)
    y = X[:, 2] > np.median(X[:, 2])
    for model in (BasisLearnerRegressor(width=5), BasisLearnerClassifier(width=5), BasisLearnerRegressor()):
        assert np.isfinite(model.fit(X, y).predict(X).astype(float)).all()


def test_edge_cases(rng):
    X, y = rng.standard_normal((20, 1)), rng.standard_normal(20)
    assert BasisLearnerRegressor(degree=3, width=50).fit(X, y).network_.layers == (2, 3, 4)
    assert BasisLearnerRegressor(degree=30, width=50).fit(X, y).network_.layers[-1] <= 20
    constant = BasisLearnerRegressor().fit(np.ones((20, 2)), y)
    np.testing.assert_allclose(constant.predict(np.ones((3, 2))), y.mean())
    classes = BasisLearnerClassifier().fit(np.ones((20, 2)), y > 0)
    np.testing.assert_allclose(
        classes.predict_proba([[1, 1]]), [[np.mean(y <= 0), np.mean(y > 0)]], atol=1e-4
    )
    np.testing.assert_allclose(BasisLearnerRegressor().fit(X, np.full(20, 5.0)).predict(X), 5)
    assert len(BasisLearnerRegressor().fit(X[:2], y[:2]).predict(X)) == 20
    exact = BasisLearnerRegressor(degree=4).fit(X, 1 + X[:, 0] ** 2)
    assert exact.network_.layers == (2, 3)  # nothing is left for more


def test_width_of_each_layer(rng):
    X = rng.standard_normal((200, 6))
    assert BasisLearnerRegressor(width=[4, 7, 2]).fit(X, target(X, rng)).network_.layers == (5, 12, 14)
    for wrong in ([4, 7], [4, 7, 0], [1.5, 2.0, 3.0], "many"):
        with pytest.raises(ValueError, match="width"):
            BasisLearnerRegressor(width=wrong).fit(X, target(X, rng))


def test_failed_fit_leaves_the_model_as_it_was(rng):
    X = rng.standard_normal((50, 3))
    model = BasisLearnerRegressor(width=5).fit(X, X[:, 0])
    before = model.predict(X)
    with pytest.raises(ValueError, match="too large"):
        model.fit(np.full((50, 4), 1e200) * rng.standard_normal((50, 4)), X[:, 0])
    np.testing.assert_array_equal(model.predict(X), before)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), before)
    np.testing.assert_array_equal(clone(model).fit(X, X[:, 0]).predict(X), before)


def test_comparing_on_a_sample_of_the_rows_hardly_changes_the_error(rng):
    X = rng.standard_normal((6000, 8))
    X[:, 7] = X[:, 7] > 3  # hardly ever 1
    y = target(X[:, :7], rng) + X[:, 2] * X[:, 3] * X[:, 4]
    every = BasisLearnerRegressor(width=30, alpha=0).fit(X, y)
    growth = grown_on_a_sample(X, y, degree=3, width=30)
    assert not np.array_equal(growth.network.batches[-1].left, every.network_.batches[-1].left)
    assert growth.path[-1] < 1.1 * every.residual_[-1]
    assert growth.path[-1] == pytest.approx(np.mean((y - outputs(growth, X)) ** 2) / y.var(), rel=1e-9)
