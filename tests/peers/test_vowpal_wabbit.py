"""The adapter to Vowpal Wabbit, against Vowpal Wabbit itself."""

import pickle
import sys
import tempfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from tensormachines.peers import VowpalWabbitClassifier, VowpalWabbitRegressor
from tensormachines.peers.vowpal_wabbit import _lines

vowpalwabbit = pytest.importorskip("vowpalwabbit")


@parametrize_with_checks(
    [VowpalWabbitRegressor(bits=12, max_iter=6), VowpalWabbitClassifier(bits=12, max_iter=6)]
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def xor(n=600):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 4))
    X[5], X[:, 3] = 0, 0
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


def test_predictions_are_vowpal_wabbits_own():
    X, y = xor()
    model = VowpalWabbitClassifier(expansion=1.0, max_iter=3, random_state=0).fit(X, y)
    order = np.random.RandomState(0).permutation(len(X))
    X_sorted = X[np.lexsort(X.T[::-1])]  # the rows of a small data set are sorted first, then shuffled
    sign = np.where(X_sorted[:, 0] * X_sorted[:, 1] > 0, 1, -1)
    rows = [f"{sign[i]} |x " + " ".join(f"{c}:{X_sorted[i, c]:.9g}" for c in range(4)) for i in order]
    workspace = vowpalwabbit.Workspace(
        "--quiet --stage_poly --sched_exponent 1.0 --batch_sz 0 --loss_function logistic -b 18"
    )
    # Row by row there are no passes: only the first epoch, without an expansion, can be compared.
    one_pass = VowpalWabbitClassifier(expansion=1.0, max_iter=1, random_state=0).fit(X, y)
    for row in rows:
        workspace.learn(row)
    expected = [workspace.predict(row.split(" ", 1)[1]) for row in rows]
    workspace.finish()
    np.testing.assert_allclose(one_pass.decision_function(X_sorted[order]), expected, rtol=1e-4, atol=1e-5)
    assert model.score(X, y) > 0.9 > one_pass.score(X, y)


def test_sparse_is_dense_and_models_can_be_pickled():
    X, y = xor()
    dense = VowpalWabbitClassifier(random_state=0).fit(X, y)
    other = pickle.loads(pickle.dumps(VowpalWabbitClassifier(random_state=0).fit(sparse.csr_array(X), y)))
    np.testing.assert_allclose(
        other.decision_function(sparse.csr_array(X)), dense.decision_function(X), rtol=1e-6
    )
    assert dense.learn_seconds_ > 0


def test_regression_and_several_classes():
    X, _ = xor(2000)
    y = 1000 + 5 * X[:, 0] * X[:, 1]
    assert VowpalWabbitRegressor(expansion=1.0, random_state=0).fit(X, y).score(X, y) > 0.9
    three = np.digitize(X[:, 0], [-0.3, 0.3])
    model = VowpalWabbitClassifier(max_iter=10, random_state=0).fit(X, three)
    assert model.score(X, three) > 0.9
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))


def test_more_arguments_are_passed_on():
    X, y = xor()
    with pytest.raises(RuntimeError, match="no_such_argument"):
        VowpalWabbitClassifier(arguments="--no_such_argument").fit(X, y)


def test_temporary_folder_with_a_space_in_its_name(tmp_path, monkeypatch):
    folder = tmp_path / "my folder"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    X, y = xor(50)
    model = VowpalWabbitClassifier(max_iter=2, arguments="--power_t 0.4 --noconstant").fit(X, y)
    assert model.decision_function(0 * X[:1]) == 0  # there is no constant


def test_targets_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="could not convert string to float"):
        VowpalWabbitRegressor().fit(*xor(50))


def test_lines():
    X = np.array([[0, 1.5], [0, 0]])
    assert _lines(sparse.csr_array(X)) == ["|x 1:1.5", "|x "]
    assert _lines(X) == ["|x 0:0 1:1.5", "|x 0:0 1:0"]


def test_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vowpalwabbit", None)
    with pytest.raises(ImportError, match=r"tensormachines\[vowpal\]"):
        VowpalWabbitRegressor().fit([[1.0], [2.0]], [1.0, 2.0])
