"""Small problems for tests of searches."""

import pytest
from sklearn.datasets import make_classification


@pytest.fixture
def regression(rng):
    """A product of two columns: degree 2 finds it, degree 1 cannot."""
    X = rng.normal(size=(300, 4))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=300)


@pytest.fixture
def classes():
    return make_classification(
        300, 5, n_informative=4, n_redundant=0, n_classes=3, n_clusters_per_class=1, random_state=0
    )
