"""Losses of very large and very small numbers, by both kernels."""

import math

import numpy as np
import pytest

import reference
from kernels import KERNELS, MODELS
from losses import LOSSES
from reference import learn_basis
from tensormachines._model.block import Block
from tensormachines._model.layout import Layout
from tensormachines._model.losses import LOGISTIC, MULTINOMIAL, huber


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("loss", ["logistic", "multinomial"])
def test_large_margins_do_not_overflow(kernel, loss):
    loss, outputs = LOSSES[loss]
    X = np.array([[1000.0], [-1000.0], [0.0]])
    layout = Layout(1, 1, 1, outputs)
    params = np.zeros(layout.size)
    layout.factors(params)[0, 0] = 1.0
    y = np.array([[0.0], [1.0], [1.0]])
    values, gradients = KERNELS[kernel][0](
        Block(X, learn_basis(None, X, np.ones(3)), y), layout, params[None], loss
    )
    assert values[0] == pytest.approx(
        sum(reference.loss(loss, y[n], reference.outputs(X, layout, params)[n]) for n in range(3))
    )
    assert np.isfinite(gradients).all()


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_overflow_is_seen_in_the_value(kernel, model, loss):
    loss, outputs = LOSSES[loss]
    X = np.full((3, 2), 1e200)
    layout = MODELS[model](2, 2, 1, outputs)
    with np.errstate(all="ignore"):
        values, _ = KERNELS[kernel][0](
            Block(X, learn_basis(None, X, np.ones(3)), np.zeros((3, 1 if loss == MULTINOMIAL else outputs))),
            layout,
            np.ones((1, layout.size)),
            loss,
        )
    assert not np.isfinite(values[0])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 2e-15)])
def test_logistic_loss_is_exact_over_the_whole_range(kernel, dtype, tolerance):
    layout = Layout(1, 1, 1)
    params = np.array([[0, 1]], dtype=dtype)
    for z in [*np.linspace(-80, 80, 161), 0.0, 1e-3, -1e-3]:
        for label in (0.0, 1.0):
            X, y = np.array([[z]], dtype=dtype), np.array([[label]], dtype=dtype)
            value, gradient = KERNELS[kernel][0](
                Block(X, learn_basis(None, X, np.ones(1)), y), layout, params, LOGISTIC
            )
            margin = float(X[0, 0]) * (2 * label - 1)
            assert value[0] == pytest.approx(
                reference.loss(LOGISTIC, [label], [float(X[0, 0])]), rel=tolerance
            )
            assert gradient[0, 0] == pytest.approx((1 - 2 * label) / (1 + math.exp(margin)), rel=tolerance)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-6), (np.float64, 2e-15)])
def test_huber_s_loss_of_small_residuals_is_exact(kernel, dtype, tolerance):
    layout = Layout(1, 1, 1)
    params = np.array([[0, 1]], dtype=dtype)
    for z in (0.0, 1e-12, 1e-6, -1e-4, 0.5, -5.0):
        X, y = np.array([[z]], dtype=dtype), np.zeros((1, 1), dtype=dtype)
        block = Block(X, learn_basis(None, X, np.ones(1)), y)
        value, gradient = KERNELS[kernel][0](block, layout, params, huber(0.75))
        exact = float(X[0, 0])
        truth = exact**2 / 2 if abs(exact) < 0.75 else 0.75 * (abs(exact) - 0.375)
        assert value[0] == pytest.approx(truth, rel=tolerance, abs=0)
        assert gradient[0, 0] == pytest.approx(min(0.75, max(-0.75, exact)), rel=tolerance, abs=0)
