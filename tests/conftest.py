import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def shared_data():
    """Loader of the real data sets; tests that use it are skipped where the data are not."""
    folder = Path(os.environ.get("TENSORMACHINES_DATA", Path(__file__).parents[2] / "shared" / "data"))

    def load(name):
        path = folder / f"{name}.npz"
        if not path.exists():
            pytest.skip(f"{name} is not in TENSORMACHINES_DATA: the data sets are too large to ship")
        return np.load(path)

    return load
