"""Directions stay orthonormal, and the compiled passes over them equal the NumPy ones."""

import numpy as np
import pytest

from tensormachines._fit.solvers import sfo_subspace
from tensormachines._fit.solvers.sfo_subspace import Subspace
from tensormachines._model import native

IMPLEMENTATIONS = ["native", "numpy"]


@pytest.fixture(params=IMPLEMENTATIONS)
def implementation(request, monkeypatch):
    if request.param == "numpy":
        monkeypatch.setattr(native, "extension", None)


def unit(vector):
    return vector / np.linalg.norm(vector)


def error_of(space):
    directions = space.directions[: space.size].astype(np.float64)
    return np.abs(directions @ directions.T - np.eye(space.size)).max()


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("new_share", [0.3, 1e-2, 2e-3, 1e-4, 1e-6])
@pytest.mark.parametrize(
    ("dtype", "orthonormal", "exact"), [(np.float32, 1e-6, 2e-7), (np.float64, 1e-8, 1e-13)]
)
def test_directions_stay_orthonormal(rng, dtype, orthonormal, exact, new_share):
    """Over many additions and rotations, however small the new share of a vector is."""
    space = Subspace(rng.standard_normal(501).astype(dtype), 30)
    for _ in range(700):
        if space.full:
            assert error_of(space) < orthonormal
            x = rng.standard_normal(30)
            before = space.point(x)
            kept = np.linalg.qr(np.column_stack([x, rng.standard_normal((30, 19))]))[0]
            space.rotate(kept, np.zeros(30))
            np.testing.assert_allclose(space.point(x @ kept), before, atol=20 * exact * np.linalg.norm(x))
        vector = new_share * unit(rng.standard_normal(501))
        if space.size:
            vector = vector + unit(rng.standard_normal(space.size)) @ space.directions[: space.size]
        vector = vector.astype(dtype)
        coordinates = space.coordinates(vector)
        point = space.point(coordinates)
        assert len(coordinates) == space.size
        assert not space.pending
        np.testing.assert_allclose(
            coordinates @ space.directions[: space.size].astype(np.float64),
            vector,
            atol=exact * np.linalg.norm(vector),
        )
        np.testing.assert_allclose(point - space.origin, vector, atol=10 * exact)


@pytest.mark.usefixtures("implementation")
def test_vectors_inside_add_no_direction(rng):
    space = Subspace(np.zeros(50, dtype=np.float32), 10)
    vectors = rng.standard_normal((3, 50)).astype(np.float32)
    for vector in vectors:
        space.coordinates(vector)  # with no point between them
    assert space.size == 3
    for inside in (vectors[0] + vectors[2], np.zeros(50, dtype=np.float32), vectors[1]):
        coordinates = space.coordinates(inside)
        assert space.size == 3
        np.testing.assert_allclose(space.vector(coordinates), inside, atol=1e-5)
    assert error_of(space) < 1e-6


@pytest.mark.usefixtures("implementation")
@pytest.mark.parametrize("ask", ["point", "vector"])
def test_a_pending_direction_is_settled_by_whatever_comes_first(rng, ask):
    origin, vector = rng.standard_normal((2, 40))
    space = Subspace(origin, 5)
    space.coordinates(rng.standard_normal(40))
    coordinates = space.coordinates(vector)
    assert space.pending
    np.testing.assert_allclose(
        getattr(space, ask)(coordinates) - (origin if ask == "point" else 0), vector, atol=1e-12
    )
    assert not space.pending


def test_whole_space_is_its_own_coordinates(rng):
    space = Subspace(rng.standard_normal(4), 6)
    vector = rng.standard_normal(4)
    assert space.whole
    assert not space.full
    np.testing.assert_array_equal(space.point(space.coordinates(vector)), vector)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("count", "length"), [(0, 3), (1, 1), (7, 5), (9, 1031), (30, 4100)])
def test_native_passes_equal_numpy(rng, monkeypatch, dtype, count, length):
    rows = (rng.standard_normal((count + 2, length)) / np.sqrt(length)).astype(dtype)
    coefficients, others = rng.standard_normal((2, count))
    defect = 1e-3 * rng.standard_normal((count + 2, count + 2))
    found = []
    for extension in (native.extension, None):
        monkeypatch.setattr(native, "extension", extension)
        result, other_result, own_defect, coordinates = (
            np.empty_like(rows[0]),
            rows[-1].copy(),
            defect.copy(),
            np.zeros(count + 1),
        )
        sfo_subspace.combinations(
            rows, coefficients, rows[0], 0.5, result, others, other_result, 2.0, other_result
        )
        project = extension.project if extension else sfo_subspace.numpy_project
        squares = project(rows, count, True, own_defect, coordinates)
        found.append(
            (
                result,
                other_result,
                own_defect,
                coordinates,
                np.array(squares),
                sfo_subspace.gram(rows, count + 2),
            )
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(
            one,
            other,
            rtol=1e-6 if one.dtype == np.float32 else 1e-11,
            atol=1e-6 if one.dtype == np.float32 else 1e-12,
        )
