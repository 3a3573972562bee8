"""
Sensors: little noise, and the right degree
===========================================

A simulator or a calibrated instrument gives targets with almost no noise, and you want an error well below a
percent. Trees approximate by steps, and their error stays far above that; a polynomial of the right degree
can reach it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineRegressor

# %%
# The flow through a valve depends on pressure, temperature, opening and viscosity. It is measured with a
# noise of 0.1 % of its spread.
rng = np.random.default_rng(0)
X = rng.uniform([1, 10, 0.1, 0.5], [8, 90, 1, 2], (1500, 4))
pressure, temperature, opening, viscosity = X.T
flow = 12 * opening**2 * np.sqrt(pressure) * (1 + 0.004 * temperature) / viscosity
flow += 0.001 * flow.std() * rng.normal(size=len(X))
X, X_test, y, y_test = X[:1000], X[1000:], flow[:1000], flow[1000:]


def error(model):
    """Return the root mean square error on new rows, in percent of the spread of the target."""
    return 100 * np.sqrt(np.mean((model.fit(X, y).predict(X_test) - y_test) ** 2)) / y_test.std()


# %%
# Which degree? ``basis="standard"`` gives a plain polynomial of the columns, and the root and the quotient
# need a high degree. The default basis has smooth functions of each column and only needs enough products.
degrees = range(1, 7)
settings = {"rank": 5, "alpha": 1e-9, "basis": "standard", "solver": "kfac", "tol": 1e-2, "random_state": 0}
plain = [error(TensorMachineRegressor(degree, **settings)) for degree in degrees]
smooth = [error(TensorMachineRegressor(degree, random_state=0)) for degree in degrees]
# Maximum likelihood found these length scales; that takes longer than all the rest.
kernel = 400 * RBF([5.6, 47, 5.8, 2.1]) + WhiteKernel(1e-6)
rivals = {
    "boosted trees": error(HistGradientBoostingRegressor(max_iter=300, random_state=0)),
    "Gaussian process": error(
        make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True))
    ),
}
for name, value in rivals.items():
    print(f"{name}: {value:.2f} %")
print(f"Tensor Machine: {plain[-1]:.2f} % (polynomial of degree 6), {min(smooth):.2f} % (smooth functions)")

# %%
# Each additional degree divides the error of the polynomial by about three. The default basis reaches a fifth
# of the error of trees at once, but does not get further, because its functions are piecewise. A Gaussian
# process with a fitted kernel is better than both. But it stores all rows, while the polynomial of degree 6
# stores about 500 numbers.
figure, ax = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
ax.semilogy(degrees, smooth, "o-", color="#d9822b", linewidth=2, label="Tensor Machine, smooth functions")
ax.semilogy(degrees, plain, "o-", color="#1f5fa8", linewidth=2, label="Tensor Machine, plain polynomial")
for name, value in {**rivals, "noise": 0.1}.items():
    ax.axhline(value, color="#666666", linestyle="--", linewidth=1)
    ax.text(6.2, 1.05 * value, name, color="#444444", ha="right", va="bottom")
ax.set(
    xlabel="degree",
    ylabel="error on new rows (% of the spread)",
    title="Flow through a valve",
    ylim=(0.08, 130),
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper right")
plt.show()
