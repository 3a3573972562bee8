"""A small model with all kinds of columns, and its file."""

import warnings

import numpy as np
import pytest

from fitted_models import fitted, frame


@pytest.fixture(autouse=True)
def _fits_need_not_converge():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped at max_iter")
        yield


@pytest.fixture(scope="module")
def model():
    """A small one, with all kinds of columns."""
    rng = np.random.default_rng(0)
    return fitted(
        rng, "binary", frame(rng)[["gaps", "flag", "mostly", "sparse text"]], max_iter=2, rank=1, degree=2
    )


@pytest.fixture(scope="module")
def data(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.tm"
    model.save(path)
    return path.read_bytes()
