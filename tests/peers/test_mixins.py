"""Labels and probabilities of peers, and the units of their targets."""

import numpy as np
import pytest

from tensormachines.peers import AppleRegressor, BasisLearnerRegressor
from tensormachines.peers.mixins import OneAgainstTheRest, Probabilities, shift_and_scale


def given(kind, outputs):
    """A classifier whose decision_function gives back these outputs."""
    model = type("Given", (kind,), {"decision_function": lambda self, X: np.asarray(outputs, dtype=float)})()
    model.classes_ = np.array(["a", "b", "c"])[: 2 if np.ndim(outputs) == 1 else 3]
    return model


@pytest.mark.parametrize("kind", [Probabilities, OneAgainstTheRest])
def test_two_classes(kind):
    model = given(kind, [-800.0, 0.0, np.log(3)])
    assert model.predict(None).tolist() == ["a", "a", "b"]
    np.testing.assert_allclose(model.predict_proba(None), [[1, 0], [0.5, 0.5], [0.25, 0.75]])
    np.testing.assert_allclose(model.predict_log_proba(None)[1:], np.log([[0.5, 0.5], [0.25, 0.75]]))


def test_several_classes():
    outputs = np.log([[1.0, 2.0, 1.0], [3.0, 1.0, 1.0]])
    np.testing.assert_allclose(
        given(Probabilities, outputs).predict_proba(None), [[0.25, 0.5, 0.25], [0.6, 0.2, 0.2]]
    )
    shares = np.array([[1 / 2, 2 / 3, 1 / 2], [3 / 4, 1 / 2, 1 / 2]])  # of each against the rest
    model = given(OneAgainstTheRest, outputs)
    np.testing.assert_allclose(model.predict_proba(None), shares / shares.sum(axis=1, keepdims=True))
    assert model.predict(None).tolist() == ["b", "a"]


def test_shift_and_scale():
    rng = np.random.default_rng(0)
    y, weight = rng.standard_normal((50, 2)) * [3, 1e-200] + [1e6, 0], rng.integers(1, 4, 50)
    repeated = np.repeat(y, weight, axis=0)
    for shift, scale in (shift_and_scale(y, weight), shift_and_scale(repeated, None)):
        np.testing.assert_allclose(shift, repeated.mean(axis=0))
        np.testing.assert_allclose(scale, (repeated * [1, 1e200]).std(axis=0) * [1, 1e-200])
    assert shift_and_scale(np.full((7, 1), 0.1), None)[1] == 1  # whose mean is not 0.1 to the last bit


@pytest.mark.parametrize("model", [BasisLearnerRegressor(degree=2), AppleRegressor(degree=2, random_state=0)])
def test_targets_whose_squares_overflow(model):
    X = np.random.default_rng(0).standard_normal((200, 3))
    np.testing.assert_allclose(
        1e200 * model.fit(X, X[:, 0]).predict(X), model.fit(X, 1e200 * X[:, 0]).predict(X), rtol=1e-6
    )
    np.testing.assert_allclose(model.fit(X, np.full(200, 0.1)).predict(X), 0.1)
