"""
Learned features against random ones
====================================

A kernel method is too slow for your data, so you approximate it by random features and need thousands of
them. Tensor Machines instead learn the few features that the target needs.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.kernel_approximation import PolynomialCountSketch, RBFSampler
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineFeatures

# %%
# The target is a product of three linear functions of ten columns, plus the square of a fourth.
rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 10))
first, second, third, fourth = (X @ rng.normal(size=(10, 4)) / np.sqrt(10)).T
y = first * second * third + fourth**2 + 0.1 * rng.normal(size=3000)
train, test = slice(0, 2000), slice(2000, None)

# %%
# We compare three kinds of features, with the same ridge regression on top of each. Random features are drawn
# without looking at y: for a polynomial kernel of degree 3, and for a Gaussian kernel.


def error(*steps):
    model = make_pipeline(*steps, StandardScaler(), RidgeCV(np.logspace(-4, 4, 9))).fit(X[train], y[train])
    return np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)) / y[test].std()


random_counts, ranks = (10, 30, 100, 300, 600), (1, 2, 3, 5, 8)
settings = {"basis": "standard", "solver": "kfac", "alpha": 1e-5, "tol": 1e-3, "random_state": 0}
errors = {
    "learned: TensorMachineFeatures": (
        [2 * rank for rank in ranks],
        [error(TensorMachineFeatures(degree=3, rank=rank, **settings)) for rank in ranks],
    ),
    "random: PolynomialCountSketch": (
        random_counts,
        [
            error(PolynomialCountSketch(degree=3, coef0=1, n_components=n, random_state=0))
            for n in random_counts
        ],
    ),
    "random: RBFSampler": (
        random_counts,
        [error(RBFSampler(gamma=0.02, n_components=n, random_state=0)) for n in random_counts],
    ),
}
for name, (counts, values) in errors.items():
    best = int(np.argmin(values))
    print(f"{name}: {values[best]:.3f} of the spread is left with {counts[best]} features")

# %%
# Four learned features, two of each degree, are nearly enough. Random features of the polynomial kernel need
# 600, as expected: ten columns have 286 monomials. A hundred columns would have 177,000. More learned
# features than needed cost a little accuracy, because they fit noise.
colours = ("#1f5fa8", "#d9822b", "#8c6bb1")
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
for (name, (counts, values)), colour in zip(errors.items(), colours, strict=True):
    ax.loglog(counts, values, "o-", color=colour, linewidth=2, label=name)
ax.axhline(0.1 / y[test].std(), color="black", linestyle=":", label="noise")
ax.set(
    xlabel="number of features", ylabel="error (share of the spread)", title="Features for a ridge regression"
)
ax.legend(frameon=False)
plt.show()
