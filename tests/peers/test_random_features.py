"""Random features: their kernel is right in the mean, with the variance that theory gives; the models on them
are scikit-learn's.
"""

import itertools

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import hadamard
from sklearn.kernel_approximation import PolynomialCountSketch
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines._model import native
from tensormachines.peers import (
    CRAFTMaps,
    CRAFTMapsClassifier,
    CRAFTMapsRegressor,
    KarKarnick,
    KarKarnickClassifier,
    KarKarnickRegressor,
    TensorSketch,
    TensorSketchClassifier,
    TensorSketchRegressor,
)

MAPS = [KarKarnick(), TensorSketch(), CRAFTMaps(), CRAFTMaps(up="kar-karnick")]
REGRESSORS = [KarKarnickRegressor(60), CRAFTMapsRegressor(60), TensorSketchRegressor(60)]
CLASSIFIERS = [KarKarnickClassifier(20), CRAFTMapsClassifier(20), TensorSketchClassifier(20)]
X_PAIR = np.array([[0.5, -1.0, 0.8, 0.3], [1.0, 0.4, 0.7, -0.2]])


def name(estimator):
    return type(estimator).__name__ + ("-kk" if getattr(estimator, "up", "") == "kar-karnick" else "")


def fresh(estimator, **settings):
    return type(estimator)(**{**estimator.get_params(), **settings})


@parametrize_with_checks([*(fresh(each, n_components=10) for each in MAPS), *REGRESSORS, *CLASSIFIERS])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# ---- The kernel


def kernels(estimator, n_seeds, **settings):
    """<phi(x), phi(y)> of the pair under so many draws."""
    draws = (fresh(estimator, random_state=seed, **settings).fit_transform(X_PAIR) for seed in range(n_seeds))
    return np.array([x @ y for x, y in draws])


def variance_of_signs(x, y, degree):
    """Of the product of two Kar-Karnick features, by way of every choice of signs."""
    signs = np.array(list(itertools.product([-1, 1], repeat=len(x))))
    return np.mean(((signs @ x) * (signs @ y)) ** 2) ** degree - (x @ y) ** (2 * degree)


@pytest.mark.parametrize("estimator", MAPS, ids=name)
@pytest.mark.parametrize(("degree", "coef0", "gamma"), [(1, 0.0, 1.0), (2, 1.0, 0.5), (3, 0.5, 1.0)])
def test_mean_is_the_kernel(estimator, degree, coef0, gamma):
    drawn = kernels(estimator, 600, n_components=16, degree=degree, coef0=coef0, gamma=gamma)
    exact = (gamma * X_PAIR[0] @ X_PAIR[1] + coef0) ** degree
    for n_seeds in (60, 600):  # the error falls with the square root of their number
        assert abs(drawn[:n_seeds].mean() - exact) < 4 * drawn.std() / np.sqrt(n_seeds)


@pytest.mark.parametrize(("degree", "coef0"), [(1, 0.0), (2, 0.0), (2, 1.0), (3, 0.3)])
def test_variance_of_kar_karnick(degree, coef0):
    x, y = np.hstack([X_PAIR, np.full((2, 1), np.sqrt(coef0))])
    expected = variance_of_signs(x, y, degree)
    closed_form = ((x @ x) * (y @ y) + 2 * (x @ y) ** 2 - 2 * np.sum(x**2 * y**2)) ** degree - (x @ y) ** (
        2 * degree
    )
    np.testing.assert_allclose(closed_form, expected)
    D = 200_000  # one draw of many features holds as many independent products
    features = KarKarnick(D, degree, coef0=coef0, gamma=1.0, random_state=0).fit_transform(X_PAIR)
    products = D * features[0] * features[1]
    fourth = np.mean((products - products.mean()) ** 4)
    assert abs(products.var() - expected) < 5 * np.sqrt((fourth - expected**2) / D)
    assert abs(products.mean() - (x @ y) ** degree) < 4 * np.sqrt(expected / D)
    for n_components in (8, 128):  # and over seeds it falls with the number of features
        drawn = kernels(KarKarnick(gamma=1.0), 500, n_components=n_components, degree=degree, coef0=coef0)
        assert 0.7 < drawn.var() * n_components / expected < 1.4


def test_variance_of_tensor_sketch_of_degree_one():
    """A count sketch: only the collisions of two entries count, and of these there are 1 / D."""
    x, y = X_PAIR
    expected = ((x @ x) * (y @ y) + (x @ y) ** 2 - 2 * np.sum(x**2 * y**2)) / 8
    assert (
        0.7
        < kernels(TensorSketch(gamma=1.0), 600, n_components=8, degree=1, coef0=0.0).var() / expected
        < 1.4
    )


@pytest.mark.parametrize("up", ["tensor-sketch", "kar-karnick"])
def test_craft_maps_are_a_hadamard_transform_of_the_up_projection(up):
    rows = np.random.default_rng(0).standard_normal((7, 4))
    craft = CRAFTMaps(6, 3, up=up, expansion=4, random_state=0).fit(rows)
    assert craft.up_.n_components == 24
    matrix = hadamard(32)[:24, craft.places_] * craft.signs_[:, None] / np.sqrt(6)
    np.testing.assert_allclose(craft.transform(rows), craft.up_.transform(rows) @ matrix, atol=1e-12)
    assert len(set(craft.places_)) == 6
    whole = CRAFTMaps(64, 3, up=up, expansion=1, random_state=0).fit(rows)  # nothing is left out: a rotation
    before, after = whole.up_.transform(rows), whole.transform(rows)
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-10)


@pytest.mark.parametrize("coef0", [0.0, 0.7])
@pytest.mark.parametrize("n_components", [1, 7, 32])
def test_tensor_sketch_equals_scikit_learn(coef0, n_components):
    rows = np.random.default_rng(0).standard_normal((20, 9))
    settings = {"n_components": n_components, "degree": 3, "coef0": coef0, "gamma": 0.3, "random_state": 5}
    expected = PolynomialCountSketch(**settings).fit_transform(rows)
    np.testing.assert_allclose(TensorSketch(**settings).fit_transform(rows), expected, atol=1e-10)


@pytest.mark.parametrize("estimator", MAPS, ids=name)
def test_sparse_equals_dense_and_blocks_do_not_matter(estimator):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((6000, 6)) * (rng.random((6000, 6)) < 0.4)  # more than a block
    rows[2], rows[:, 3] = 0, 0
    for coef0 in (0.0, 1.0):
        fitted = fresh(estimator, coef0=coef0, degree=3, random_state=0).fit(rows)
        expected = fitted.transform(rows)
        np.testing.assert_allclose(fitted.transform(sparse.csr_array(rows)), expected, atol=1e-12)
        np.testing.assert_allclose(fitted.transform(rows.astype(np.float32)), expected, atol=1e-4)
        assert fitted.transform(sparse.csr_array(rows.astype(np.float32))).dtype == np.float32
        parts = [fitted.transform(part) for part in np.split(rows, [7, 5000])]
        np.testing.assert_allclose(np.vstack(parts), expected, atol=1e-12)


def test_settings_may_be_numpy_numbers():
    rows = np.random.default_rng(0).standard_normal((20, 4))
    for estimator in (KarKarnick, TensorSketch, CRAFTMaps):
        numbers = {
            "n_components": np.int64(6),
            "degree": np.int32(3),
            "coef0": np.float64(0.5),
            "random_state": 0,
        }
        expected = estimator(n_components=6, degree=3, coef0=0.5, random_state=0).fit_transform(rows)
        np.testing.assert_allclose(estimator(**numbers).fit_transform(rows), expected)


def test_without_the_extension(monkeypatch):
    rows = np.random.default_rng(0).standard_normal((20, 4))
    fitted = CRAFTMaps(50, 3, random_state=0).fit(rows)
    expected = fitted.transform(rows)
    monkeypatch.setattr(native, "extension", None)
    np.testing.assert_allclose(fitted.transform(rows), expected, atol=1e-12)


# ---- The models


def table(n_rows=300, n_outputs=1):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 5)) / 2
    X[3], X[:, 2] = 0, 0
    y = (1000 + X[:, 0] * X[:, 1])[:, None] + 0.1 * rng.standard_normal((n_rows, n_outputs))
    return X, y[:, 0] if n_outputs == 1 else y, rng.integers(1, 4, n_rows)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
@pytest.mark.parametrize("n_outputs", [1, 2])
@pytest.mark.parametrize(("n_rows", "n_components"), [(300, 20), (300, 400), (1500, 400)])
def test_regression_is_ridge_on_the_features(estimator, n_outputs, n_rows, n_components):
    """In the primal, in the dual, and in the primal over several blocks of rows."""
    X, y, weight = table(n_rows, n_outputs)
    model = fresh(estimator, n_components=n_components, alpha=1e-2, random_state=0).fit(X, y, weight)
    ridge = Ridge(alpha=1e-2 * weight.sum()).fit(model.map_.transform(X), y, weight)
    np.testing.assert_allclose(model.coef_, ridge.coef_, atol=1e-8)
    np.testing.assert_allclose(model.predict(X), ridge.predict(model.map_.transform(X)), atol=1e-8)
    repeated = fresh(model, random_state=0).fit(X.repeat(weight, axis=0), y.repeat(weight, axis=0))
    np.testing.assert_allclose(model.predict(X), repeated.predict(X), atol=1e-8)
    np.testing.assert_allclose(
        fresh(model).fit(sparse.csr_array(X), y, weight).predict(X), model.predict(X), atol=1e-8
    )
    assert fresh(model).fit(X.astype(np.float32), y).predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classification_is_logistic_regression_on_the_features(estimator, n_classes):
    X, y, weight = table()
    labels = np.array(["a", "b", "c"])[np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))]
    model = fresh(estimator, alpha=1e-2, random_state=0).fit(X, labels, weight)
    features = model.map_.transform(X)
    logistic = LogisticRegression(C=1 / (1e-2 * weight.sum()), tol=1e-10, max_iter=10_000).fit(
        features, labels, weight
    )
    np.testing.assert_allclose(model.predict_proba(X), logistic.predict_proba(features), atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.classes_[model.predict_proba(X).argmax(axis=1)])
    assert model.decision_function(X).shape == ((300,) if n_classes == 2 else (300, 3))
    np.testing.assert_allclose(
        fresh(model).fit(sparse.csr_array(X), labels, weight).predict_proba(X),
        model.predict_proba(X),
        atol=1e-6,
    )
    many = fresh(model, n_components=2100).fit(X, labels, weight)  # too many for Newton's method
    features = many.map_.transform(X)
    np.testing.assert_allclose(
        many.predict_proba(X), logistic.fit(features, labels, weight).predict_proba(features), atol=1e-2
    )
    single = fresh(model).fit(X.astype(np.float32), labels, weight)
    assert single.predict_proba(X.astype(np.float32)).dtype == np.float32
    np.testing.assert_allclose(single.predict_proba(X), model.predict_proba(X), atol=1e-2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # X is far too large
@pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=name)
def test_edges(estimator):
    X, y, _ = table()
    y = y > np.median(y) if name(estimator).endswith("Classifier") else y
    tables = [np.hstack([X, X]), X[:, :1], 1e3 * X, np.full_like(X, 0.5)]
    for rows in tables:
        for settings in ({}, {"degree": 1, "alpha": 1e-10}):
            assert np.isfinite(
                fresh(estimator, random_state=0, **settings).fit(rows, y).predict(rows).astype(float)
            ).all()
    assert len(fresh(estimator, random_state=0).fit(X[:5], [0, 1, 1, 0, 1]).predict(X)) == 300
    model = fresh(estimator, degree=4)
    with pytest.raises(ValueError, match="overflow float32: scale the rows of X"):
        model.fit((1e20 * X).astype(np.float32), y)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_few_rows_with_columns_of_other_scales(estimator):
    """Their squares are singular, they are not."""
    X, y, _ = table(50)
    X = X * [1, 1e4, 1, 1, 1]
    model = fresh(estimator, random_state=0, gamma=1.0).fit(X, y)
    expected = (
        Ridge(50 * model.alpha, solver="svd").fit(model.map_.transform(X), y).predict(model.map_.transform(X))
    )
    np.testing.assert_allclose(model.predict(X), expected, atol=1e-3)
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_no_penalty(estimator):
    X, y, _ = table()
    for n_rows in (40, 300):
        model = fresh(estimator, alpha=0.0, degree=2, random_state=0).fit(
            X[:n_rows], y[:n_rows]
        )  # 60 features, 15 monomials
        assert model.score(X[:n_rows], y[:n_rows]) > 0.8


def test_xor_is_learnt():
    X = np.random.default_rng(0).uniform(-1, 1, (500, 2))
    y = X[:, 0] * X[:, 1] > 0
    for estimator in CLASSIFIERS:  # in some draws of TensorSketch the two columns fall into one place
        assert (
            np.median(
                [fresh(estimator, degree=2, random_state=seed).fit(X, y).score(X, y) for seed in range(5)]
            )
            > 0.97
        )
