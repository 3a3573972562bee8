"""The models against explicit BFGS and explicit sums; compiled and NumPy against each other."""

import numpy as np
import pytest

from tensormachines._fit.solvers import sfo_models
from tensormachines._fit.solvers.sfo_models import HISTORY, QuadraticModels
from tensormachines._model import native

K = 45
KINDS = ["convex", "indefinite", "near-dependent", "flat", "noise"]


@pytest.fixture
def numpy_only(monkeypatch):
    monkeypatch.setattr(native, "extension", None)


def observations(rng, kind, size, many):
    """(function, value, position, gradient) of three functions."""
    bases = [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(3)]
    spectrum = np.geomspace(0.1, 10, size)
    if kind == "indefinite":
        spectrum = spectrum * np.where(np.arange(size) % 4 == 0, -1, 1)
    hessians = [basis @ np.diag(0 * spectrum if kind == "flat" else spectrum) @ basis.T for basis in bases]
    direction = rng.standard_normal(size)
    x = np.zeros(size)
    for t in range(many):
        move = rng.standard_normal(size)
        x = x + (direction + 1e-7 * move if kind == "near-dependent" else move)
        gradient = rng.standard_normal(size) if kind == "noise" else hessians[t % 3] @ x + bases[t % 3][0]
        yield t % 3, 0.5 * x @ hessians[t % 3] @ x, x.copy(), gradient


def hessian(models, i):
    n, size = 2 * models.n_pairs[i], models.size
    rows = models.rows[i, :n, :size]
    return models.scales[i] * np.eye(size) + rows.T @ models.cores[i, :n, :n] @ rows


def fill(rng, kind="convex", size=K, many=40, capacity=None):
    models = QuadraticModels(3, capacity or size + 3, size)
    for i, *observation in observations(rng, kind, size, many):
        models.observe(i, *observation, 1.0, shortest=1e-10, smallest=1e-10)
    return models


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 12, 19, 20, 21, 24, 45, 131])
def test_native_equals_numpy(monkeypatch, kind, size):
    """After every observation: few pairs and many, fewer dimensions than vectors, as many, and more."""
    extension = native.extension
    assert extension is not None
    pair = [QuadraticModels(3, size + 2, size) for _ in range(2)]
    # Where H_i hangs by a thread (a nearly singular pair), the two round differently.
    tolerance = 1e-3 if kind in ("indefinite", "noise", "near-dependent") else 1e-7
    for t, (i, *observation) in enumerate(observations(np.random.default_rng(0), kind, size, 45)):
        for models, implementation in zip(pair, (extension, None), strict=True):
            monkeypatch.setattr(native, "extension", implementation)
            models.observe(i, *observation, 0.7, shortest=1e-10, smallest=1e-10)
        ours, truth = pair
        assert ours.n_pairs[i] == truth.n_pairs[i]
        np.testing.assert_allclose(ours.steps, truth.steps, atol=1e-14)
        np.testing.assert_allclose(ours.changes, truth.changes, rtol=1e-13, atol=1e-14)
        scale = np.abs(hessian(truth, i)).max()
        np.testing.assert_allclose(hessian(ours, i) / scale, hessian(truth, i) / scale, atol=tolerance)
        assert np.isfinite(ours.curvature).all()
        x = np.random.default_rng(t).standard_normal(size)
        monkeypatch.setattr(native, "extension", extension)
        assert ours.model_value(i, x) == pytest.approx(ours._model_value(i, x), rel=1e-9, abs=1e-9 * scale)
        found, expected = (
            ours.newton(x),
            sfo_models.numpy_newton(ours.curvature, ours.diagonal, ours.linear, x),
        )
        assert expected is not None
        np.testing.assert_allclose(
            found.gradient, expected.gradient, atol=1e-10 * np.abs(expected.gradient).max() + 1e-10 * scale
        )
        np.testing.assert_allclose(
            np.tril(found.factor), np.tril(expected.factor), atol=1e-7 * np.sqrt(scale)
        )
        for newton in (found, expected):
            assert newton.length == pytest.approx(np.linalg.norm(newton.step))
            assert newton.slope == pytest.approx(newton.step @ newton.gradient, rel=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_sums_are_the_sums(rng, kind):
    models = fill(rng, kind)
    H = sum(hessian(models, i) for i in range(3))
    size = np.abs(H).max()
    total = models.curvature[:K, :K] + models.diagonal * np.eye(K)
    np.testing.assert_allclose(total, H, atol=1e-9 * size)
    np.testing.assert_array_equal(total, total.T)
    gradient = sum(models.gradients[i, :K] - hessian(models, i) @ models.positions[i, :K] for i in range(3))
    np.testing.assert_allclose(models.linear[:K], gradient, atol=1e-8 * max(size, np.abs(gradient).max()))
    x = rng.standard_normal(K)
    newton = models.newton(x)
    np.testing.assert_allclose(
        newton.gradient, gradient + H @ x, atol=1e-8 * max(size, np.abs(gradient).max())
    )
    L = np.tril(newton.factor)
    np.testing.assert_allclose(L @ L.T, total, atol=1e-9 * size)
    np.testing.assert_allclose(
        H @ newton.step, newton.gradient, atol=1e-6 * max(size, np.abs(newton.gradient).max())
    )
    eigenvalues = [np.linalg.eigvalsh(hessian(models, i)) for i in range(3)]
    assert all(values[0] > 0 for values in eigenvalues)


@pytest.mark.parametrize("implementation", ["native", "numpy"])
def test_model_is_bfgs(rng, implementation, request):
    """Update by update, from the smallest curvature that the pairs show."""
    if implementation == "numpy":
        request.getfixturevalue("numpy_only")
    models = fill(rng, many=3 * (HISTORY + 3))
    for i in range(3):
        S, Y = models.steps[i, :, :K].T, models.changes[i, :, :K].T
        curvatures = np.linalg.svd(Y @ np.linalg.pinv(S), compute_uv=False)[:HISTORY]
        assert models.scales[i] == pytest.approx(curvatures[-1], rel=1e-6)
        H = curvatures[-1] * np.eye(K)
        for s, y in zip(S.T, Y.T, strict=True):
            H = H + np.outer(y, y) / (y @ s) - np.outer(H @ s, H @ s) / (s @ H @ s)
        np.testing.assert_allclose(hessian(models, i), H, atol=1e-6 * np.abs(H).max())


def test_forgotten_function_leaves_nothing(rng):
    models = fill(rng)
    for i in range(3):
        models.forget(i)
        models.forget(i)
    assert models.diagonal == pytest.approx(0, abs=1e-12)
    assert np.abs(models.curvature).max() < 1e-12
    assert np.abs(models.linear).max() < 1e-10
    models.observe(0, 1.0, np.ones(K), np.ones(K), 2.0, shortest=0.0, smallest=0.0)
    assert models.diagonal == pytest.approx(2)
    assert models.n_pairs[0] == 0


def test_rotation_keeps_the_models(rng):
    models = fill(rng, capacity=K + 5)
    kept = np.linalg.qr(rng.standard_normal((K, K)))[0]
    center, x = rng.standard_normal((2, K))
    before = [models.model_value(i, x) for i in range(3)], models.newton(x)
    models.rotate(kept, center)
    after = [models.model_value(i, (x - center) @ kept) for i in range(3)], models.newton((x - center) @ kept)
    np.testing.assert_allclose(after[0], before[0], rtol=1e-9)
    np.testing.assert_allclose(kept @ after[1].step, before[1].step, atol=1e-8)


@pytest.mark.parametrize("implementation", ["native", "numpy"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [7, K])
def test_rotation_turns_the_pairs(rng, kind, size, implementation, request):
    """Also those of functions that were not evaluated between two rotations, which lose dimensions."""
    if implementation == "numpy":
        request.getfixturevalue("numpy_only")
    models = fill(rng, kind, size)
    for fewer in (size - 2, size - 5):
        kept = np.linalg.qr(rng.standard_normal((models.size, fewer)))[0]
        pairs = [pairs[..., : models.size] @ kept for pairs in (models.steps, models.changes)]
        models.rotate(kept, np.zeros(models.size))
        for found, truth in zip((models.steps, models.changes), pairs, strict=True):
            np.testing.assert_allclose(found[..., :fewer], truth, atol=1e-12 * max(1, np.abs(truth).max()))
            assert (found[..., fewer:] == 0).all()


def test_arrays_that_were_replaced_are_the_ones_that_change(rng):
    models = fill(rng)
    before = models.linear
    models.linear = before.copy()
    models.observe(0, 1.0, np.ones(K), np.ones(K), 2.0, shortest=0.0, smallest=0.0)
    np.testing.assert_allclose(
        models.linear[:K], sum(models.model_gradient(i, np.zeros(K)) for i in range(3)), atol=1e-9
    )
    assert (models.linear != before).any()


def test_bad_shapes_are_refused(rng):
    models = fill(rng)
    models.rows = models.rows[:, :-1].copy()
    with pytest.raises(ValueError, match="arrays do not fit together"):
        models.observe(0, 1.0, np.ones(K), np.ones(K), 2.0, shortest=0.0, smallest=0.0)


def test_a_pair_from_elsewhere_native_equals_numpy(monkeypatch):
    extension, found = native.extension, []
    for implementation in (extension, None):
        monkeypatch.setattr(native, "extension", implementation)
        models = fill(np.random.default_rng(0), many=9)
        step = np.random.default_rng(1).standard_normal(K)
        models.learn_pair(1, step, np.linspace(1, 3, K) * step)
        found.append(
            (
                models.curvature[:K, :K] + models.diagonal * np.eye(K),
                models.linear,
                models.evaluations,
                models.n_pairs,
            )
        )
    assert found[0][3].tolist() == [2, 3, 2]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
