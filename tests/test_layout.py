import numpy as np
import pytest

import reference
from tensormachines._layout import Layout


@pytest.mark.parametrize(("degree", "rank", "outputs"), [(1, 3, 2), (2, 1, 1), (4, 3, 2)])
def test_counts_agree_with_the_formula(degree, rank, outputs):
    layout = Layout(7, degree, rank, outputs)
    per_output = 1 + 7 + sum(p * rank * 7 for p in range(2, degree + 1))
    assert layout.size == outputs * per_output
    assert layout.n_terms == rank * (degree - 1)


def test_views_are_views_and_cover_everything_once():
    layout = Layout(3, 3, 2, 2)
    params = np.arange(layout.size, dtype=float)
    parts = [layout.bias(params).ravel(), layout.linear(params).ravel(), *(f.ravel() for f in layout.factors_by_degree(params).values())]
    assert sorted(np.concatenate(parts)) == list(range(layout.size))
    layout.factors(params)[...] = -1
    assert (params[2:] == -1).all()


def test_scaling_the_outputs(rng):
    layout = Layout(4, 3, 2, 2)
    params, X = rng.standard_normal(layout.size), rng.standard_normal((5, 4))
    scaled = layout.scale_outputs(params, np.array([0.01, 300.0]))
    np.testing.assert_allclose(reference.outputs(X, layout, scaled), reference.outputs(X, layout, params) * [0.01, 300.0])
