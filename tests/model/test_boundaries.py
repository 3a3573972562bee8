"""Numbers around 2^31 and 2^63: what 32 or 64 bits cannot count is refused, or has wider indices.

The guards are asked; nothing of such a size is made."""

import numpy as np
import pytest
from scipy import sparse

from tensormachines import TensorMachineRegressor
from tensormachines._model.block import index_type
from tensormachines._model.layout import AnovaLayout, Layout
from tensormachines._model.spline_states import require_countable
from tensormachines.peers.online_polynomial import readable

MOST = 2**31 - 1


@pytest.mark.parametrize("layout", [Layout, AnovaLayout])
def test_counts_of_a_layout(layout):
    counts = {"n_features": 1, "degree": 2, "rank": 1, "n_outputs": 1}
    for name in ("degree", "rank", "n_outputs"):
        with pytest.raises(ValueError, match=f"{name} must be at most 2,147,483,647, got 2,147,483,648"):
            layout(**{**counts, name: MOST + 1})
    assert layout(**{**counts, "rank": MOST}).size > MOST  # sizes are counted in 64 bits
    with pytest.raises(ValueError, match=r"parameters, more than any memory holds\. Use a smaller degree"):
        layout(**{**counts, "rank": MOST, "n_features": MOST})


@pytest.mark.parametrize("settings", [{"rank": 2**62}, {"degree": 2**31}, {"degree": 2**31 - 1, "rank": 10}])
def test_a_fit_refuses_models_that_cannot_be(rng, settings):
    X = rng.standard_normal((20, 2))
    with pytest.raises(ValueError, match=r"must be at most 2,147,483,647|more than any memory holds"):
        TensorMachineRegressor(basis="standard", alpha=1.0, **settings).fit(X, X[:, 0])


@pytest.mark.parametrize(
    ("columns", "entries", "expected"),
    [(3, 0, np.int32), (MOST, MOST, np.int32), (MOST + 1, 0, np.int64), (3, MOST + 1, np.int64)],
)
def test_indices_of_sparse_rows_are_wide_enough(columns, entries, expected):
    assert index_type(columns, entries) is expected


def test_states_of_splines_are_counted_in_32_bits():
    assert require_countable(MOST) == MOST
    with pytest.raises(ValueError, match=r"2,147,483,648 knots and levels in all.* Use basis=.standard."):
        require_countable(MOST + 1)


def test_columns_of_online_polynomials_are_counted_in_32_bits():
    row = sparse.csr_array(([1.0], [MOST], [0, 1]), shape=(1, MOST + 1))
    with pytest.raises(ValueError, match="X has 2,147,483,648 columns, more than 2,147,483,647"):
        readable(row)
    assert readable(row[:, :5]).shape == (1, 5)
