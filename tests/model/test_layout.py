from functools import partial

import numpy as np
import pytest

import reference
from tensormachines._model.layout import AnovaLayout, Layout, one_of_several, side_by_side, weighted_sum

LAYOUTS = [
    pytest.param(partial(kind, shared=shared), id=f"{kind.__name__}{'-shared' if shared else ''}")
    for kind in (Layout, AnovaLayout)
    for shared in (False, True)
]


@pytest.mark.parametrize(("degree", "rank", "outputs"), [(1, 3, 2), (2, 1, 1), (4, 3, 2)])
def test_counts_agree_with_the_formula(degree, rank, outputs):
    layout = Layout(7, degree, rank, outputs)
    per_output = 1 + 7 + sum(p * rank * 7 for p in range(2, degree + 1))
    assert layout.size == outputs * per_output
    assert layout.n_terms == rank * (degree - 1)


def test_shared_factors_are_counted_once():
    layout = Layout(7, 3, 4, 10, shared=True)
    assert layout.size == 10 * (1 + 2 * 4) + 7 * (10 + (2 + 3) * 4)
    assert layout.n_terms == 8


@pytest.mark.parametrize("kind", LAYOUTS)
def test_views_are_views_and_cover_everything_once(kind):
    layout = kind(3, 3, 2, 2)
    params = np.arange(layout.size, dtype=float)
    parts = [
        layout.bias(params).ravel(),
        layout.weights(params).ravel(),
        layout.linear(params).ravel(),
        *(f.ravel() for f in layout.factors_by_degree(params).values()),
    ]
    assert sorted(np.concatenate(parts)) == list(range(layout.size))
    layout.factors(params)[...] = -1
    layout.weights(params)[...] = -1
    assert (params[2:] == -1).all()


@pytest.mark.parametrize("kind", LAYOUTS)
def test_scaling_the_outputs(rng, kind):
    layout = kind(4, 3, 2, 2)
    params, X = rng.standard_normal(layout.size), rng.standard_normal((5, 4))
    scaled = layout.scale_outputs(params, np.array([0.01, 300.0]))
    np.testing.assert_allclose(
        reference.outputs(X, layout, scaled), reference.outputs(X, layout, params) * [0.01, 300.0]
    )


@pytest.mark.parametrize("kind", LAYOUTS)
@pytest.mark.parametrize(
    "shapes", [[(1, 2), (1, 2)], [(2, 2)], [(4, 2), (4, 2), (4, 2)], [(1, 5), (3, 1), (2, 4)]]
)
def test_a_weighted_sum_of_models_is_the_model_of_their_outputs(rng, kind, shapes):
    layouts = [kind(4, degree, rank, 2) for degree, rank in shapes]
    models = [(layout, rng.standard_normal(layout.size)) for layout in layouts]
    X, weights = rng.standard_normal((6, 4)), rng.uniform(0.1, 2, len(shapes))
    layout, params = weighted_sum(models, weights)
    assert layout.degree == max(degree for degree, _ in shapes)
    outputs = [reference.outputs(X, *model) for model in models]
    np.testing.assert_allclose(reference.outputs(X, layout, params), np.tensordot(weights, outputs, 1))
    singles = [(layout, params.astype(np.float32)) for layout, params in models]
    assert weighted_sum(singles, weights)[1].dtype == np.float32


def test_models_side_by_side_are_those_of_each_output(rng):
    layouts = [Layout(3, 3, 2), Layout(3, 1, 2), Layout(3, 2, 4)]
    models = [(layout, rng.normal(size=layout.size).astype(np.float32)) for layout in layouts]
    joined, X = side_by_side(models), rng.normal(size=(20, 3))
    truth = np.column_stack([reference.outputs(X, *model)[:, 0] for model in models])
    np.testing.assert_allclose(reference.outputs(X, *joined), truth, rtol=1e-5)
    for k in range(3):
        layout, params = one_of_several(joined, k)
        np.testing.assert_allclose(reference.outputs(X, layout, params)[:, 0], truth[:, k], rtol=1e-5)
        assert (layout.n_outputs, params.dtype) == (1, np.float32)
