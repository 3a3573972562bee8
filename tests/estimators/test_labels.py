"""Several labels of a row in one model: each is a logistic regression, in all that a model does."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.neural_network import MLPClassifier

from tensormachines import (
    TensorMachineClassifier,
    TensorMachineClassifierCV,
    blocks,
    inspection,
    load,
)

pd = pytest.importorskip("pandas")
QUICK = {"degree": 2, "rank": 2, "alpha": 1e-3, "max_iter": 20, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X, Y = make_multilabel_classification(300, 6, n_classes=3, n_labels=2, random_state=0)
    return X / X.std(axis=0), Y


@pytest.fixture(scope="module")
def model(rows):
    return TensorMachineClassifier(**QUICK).fit(*rows)


@pytest.mark.parametrize(
    ("solver", "tolerance"), [("lbfgs", 1e-5), ("kfac", 1e-5), ("sfo", 1e-3), ("adam", 0.05)]
)
def test_linear_models_are_logistic_regressions(rows, solver, tolerance):
    X, Y = rows
    weight = np.random.default_rng(0).integers(1, 4, len(X))
    settings = {"degree": 1, "alpha": 1 / weight.sum(), "basis": None, "solver": solver, "tol": 1e-9}
    model = TensorMachineClassifier(**settings, max_iter=1000, random_state=0).fit(X, Y, weight)
    for k, label in enumerate(Y.T):
        alone = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, label, weight)
        np.testing.assert_allclose(
            model.predict_proba(X)[:, k], alone.predict_proba(X)[:, 1], rtol=0, atol=tolerance
        )


@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_predictions_have_the_shapes_of_scikit_learn(rows, model):
    X, Y = rows
    network = MLPClassifier((2,), max_iter=5).fit(X, Y)
    for method in ("predict", "predict_proba"):
        found, expected = getattr(model, method)(X), getattr(network, method)(X)
        assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(model.classes_, network.classes_)
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-model.decision_function(X))))
    np.testing.assert_array_equal(model.predict(X), model.predict_proba(X) > 0.5)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.score(X, Y) == (model.predict(X) == Y).all(axis=1).mean()
    assert model.score(X, sparse.csr_array(Y)) == accuracy_score(Y, model.predict(X))


@pytest.mark.parametrize(
    "given",
    [
        lambda Y: Y.astype(bool),
        lambda Y: Y.astype(float),
        lambda Y: Y.tolist(),
        sparse.csr_array,
        sparse.csc_matrix,
        lambda Y: pd.DataFrame(Y, columns=["a", "b", "c"]),
        lambda Y: pd.DataFrame(Y == 1, columns=["a", "b", "c"]).astype("boolean"),
    ],
)
def test_labels_may_come_in_any_form(rows, model, given):
    X, Y = rows
    again = TensorMachineClassifier(**QUICK).fit(X, given(Y))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.predict(X).dtype == np.int64


@pytest.mark.parametrize("solver", ["adam", "lbfgs", "sfo", "kfac"])
def test_rows_to_validate_on_sparse_rows_and_single_precision(rows, solver):
    X, Y = rows
    settings = {**QUICK, "max_iter": 200, "solver": solver, "early_stopping": True}
    model = TensorMachineClassifier(**settings).fit(X[:200], Y[:200], X_val=X[200:], y_val=Y[200:])
    z = model.decision_function(X[200:])
    loss = np.logaddexp(0, np.where(Y[200:] == 1, -z, z)).sum(axis=1).mean()
    np.testing.assert_allclose(np.min(model.validation_loss_curve_), loss, rtol=1e-3)
    for given in (sparse.csr_array(X), X.astype(np.float32)):
        found = TensorMachineClassifier(**settings).fit(given, Y).predict_proba(given)
        assert (found.shape, found.dtype) == (Y.shape, given.dtype)
        assert ((found > 0.5) == Y).mean() > 0.75


def test_labels_that_never_occur_have_small_probabilities(rows):
    X, Y = rows
    Y = np.column_stack([Y, np.zeros(len(Y), int), np.ones(len(Y), int)])
    for settings in ({}, {"solver": "lbfgs"}):
        found = TensorMachineClassifier(random_state=0, **settings).fit(X, Y).predict_proba(X)
        assert found[:, 3].max() < 0.1
        assert found[:, 4].min() > 0.9


def test_the_default_finds_an_interaction_of_each_label(rng):
    X = rng.normal(size=(2000, 4))
    z = 3 * np.column_stack([X[:, 0] * X[:, 1], X[:, 2] * X[:, 3], X[:, 0]])
    Y = (z + rng.logistic(size=z.shape) > 0).astype(int)
    model = TensorMachineClassifier(random_state=0).fit(X[:1000], Y[:1000])
    true = 1 / (1 + np.exp(-z[1000:]))
    assert np.abs(model.predict_proba(X[1000:]) - true).mean() < 0.07


def test_saved_and_pickled_models_are_the_same(rows, model, tmp_path):
    X, Y = rows
    searched = TensorMachineClassifierCV((1,), (1,), (1e-2,), n_members=1, random_state=0).fit(X, Y)
    for fitted in (model, searched):
        fitted.save(tmp_path / "labels.tm")
        for again in (load(tmp_path / "labels.tm"), pickle.loads(pickle.dumps(fitted))):
            for method in ("predict", "predict_proba", "decision_function"):
                np.testing.assert_array_equal(getattr(again, method)(X), getattr(fitted, method)(X))


def test_a_search_scores_by_the_mean_log_loss_of_labels(rows):
    X, Y = rows
    order = np.random.default_rng(0).permutation(len(X))
    training, others = order[:200], order[200:]
    settings = {"degrees": (1,), "ranks": (1,), "bases": (None,), "relevances": (0,), "trends": (False,)}
    how = {"cv": [(training, others)], "solver": "lbfgs", "halving": False, "n_members": 1}
    alphas = (1e-3, 10.0)
    search = TensorMachineClassifierCV(**settings, **how, alphas=alphas).fit(X, Y)
    scores = []
    for alpha in alphas:
        linear = LogisticRegression(C=1 / (200 * alpha))
        z = np.column_stack([linear.fit(X[training], y).decision_function(X[others]) for y in Y[training].T])
        scores.append(-np.logaddexp(0, np.where(Y[others] == 1, -z, z)).mean())
    found = search.cv_results_
    by_alpha = dict(zip(found["param_alpha"], found["mean_test_score"], strict=True))
    np.testing.assert_allclose([by_alpha[alpha] for alpha in alphas], scores, rtol=1e-2)
    assert search.best_params_["alpha"] == 1e-3
    assert search.score(X, Y) == (search.predict(X) == Y).all(axis=1).mean()


def test_contributions_of_a_label_by_its_name(rows):
    X, Y = rows
    model = TensorMachineClassifier(**QUICK).fit(X, pd.DataFrame(Y, columns=["red", "green", "blue"]))
    assert model.target_name_ == ["red", "green", "blue"]
    for output in ("green", 1):
        found = inspection.contributions(model, X, output=output)
        np.testing.assert_allclose(found.values.sum(axis=1), model.decision_function(X)[:, 1], rtol=1e-6)
    with pytest.raises(ValueError, match=r"must be one of .*'green', 'blue'.*got 'grey'"):
        inspection.contributions(model, X, output="grey")


def test_what_cannot_be_is_refused(rows, model):
    X, Y = rows
    with pytest.raises(ValueError, match="class_weight needs one label for each row"):
        TensorMachineClassifier(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="class_weight needs one label for each row"):
        TensorMachineClassifierCV(class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="partial_fit takes one label for each row"):
        TensorMachineClassifier().partial_fit(X, Y, classes=[0, 1])
    for given in (Y + 1, Y * [1, 2, 3], np.where(Y, "yes", "no")):
        for classifier in (TensorMachineClassifier(), TensorMachineClassifierCV()):
            message = rf"a matrix of 0 and 1 .*MultiOutputClassifier\({type(classifier).__name__}"
            with pytest.raises(ValueError, match=message):
                classifier.fit(X, given)
    with pytest.raises(ValueError, match="y must be a matrix of 0 and 1 with 3 columns"):
        TensorMachineClassifier().fit(X, Y, X_val=X, y_val=Y[:, :2])
    several = TensorMachineClassifier(**QUICK, shared_factors=False).fit(X, Y)
    with pytest.raises(ValueError, match="this model was fitted to several"):
        several.partial_fit(X, Y.sum(axis=1) % 3)
    continued = TensorMachineClassifier(**QUICK, warm_start=True).fit(X, Y.sum(axis=1) % 3)
    with pytest.raises(ValueError, match="from one label for each row to several"):
        continued.fit(X, Y)


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_warm_start_goes_on(rows):
    model = TensorMachineClassifier(**QUICK, solver="lbfgs", warm_start=True).fit(*rows)
    before = model.objective_
    assert model.fit(*rows).objective_ < before


@pytest.mark.filterwarnings("ignore:.*stopped at max_iter")
def test_labels_in_files_and_on_dask_are_those_in_memory(rows, tmp_path):
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    X, Y = rows
    names = [f"x{j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names).assign(red=Y[:, 0], round=Y[:, 1] > 0, big=Y[:, 2])
    labels = ["red", "round", "big"]
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    settings = {"degree": 2, "rank": 2, "alpha": 1e-3, "solver": "lbfgs", "max_iter": 8, "random_state": 0}
    expected = TensorMachineClassifier(**settings).fit(frame[names], frame[labels])
    lazy = dd.from_pandas(frame, npartitions=3)
    for given in (
        (blocks.csv(tmp_path / "t.csv", target=labels),),
        (blocks.parquet(tmp_path / "t.parquet", target=labels),),
        (lazy[names], lazy[labels]),
        (da.from_array(X, chunks=(90, -1)), da.from_array(Y, chunks=(90, -1))),
    ):
        found = TensorMachineClassifier(**settings).fit(*given)
        named = getattr(found, "feature_names_in_", None) is not None
        predicted = found.predict_proba(frame[names] if named else X)
        np.testing.assert_allclose(predicted, expected.predict_proba(frame[names]), atol=1e-4)
        assert found.score(*given) == pytest.approx(accuracy_score(Y, predicted > 0.5))
        np.testing.assert_array_equal(found.classes_, [0, 1, 2])
        if named:
            assert found.target_name_ == labels
    with pytest.raises(ValueError, match="class_weight needs one label for each row"):
        TensorMachineClassifier(class_weight="balanced").fit(lazy[names], lazy[labels])
    with pytest.raises(ValueError, match="y must hold 0 and 1, a column for each label of a row, or one"):
        TensorMachineClassifier().fit(lazy[names], lazy[["red", "x1"]])
    with pytest.raises(ValueError, match="in memory, on Dask, or in files with column names"):
        TensorMachineClassifier().fit(blocks.npy(X, Y))
