"""
Intervals: how far off may a prediction be?
===========================================

A single number is not enough: you have to know how much stock to hold, or how late a delivery may be at
worst. ``intervals=True`` gives calibrated bounds around predictions; quantiles describe the whole
distribution.
"""

import matplotlib.pyplot as plt
import numpy as np

from tensormachines import TensorMachineRegressor

# %%
# The target is the delay of a delivery in minutes; it depends on the hour of the shift and the load of the
# van. Its noise grows during the day and is not symmetric, so no interval of constant width fits.
rng = np.random.default_rng(0)
hour, load = rng.uniform(0, 10, 4000), rng.uniform(size=4000)
y = 3 * np.sin(hour) + 2 * load + (0.2 + 0.25 * hour) * (rng.gamma(2, 1, 4000) - 2)
X = np.column_stack([hour, load])
X, X_test, y, y_test = X[:2000], X[2000:], y[:2000], y[2000:]

# %%
# Intervals come from the errors of further models on held-out rows. On new rows they have the requested
# coverage, for any kind of noise.
model = TensorMachineRegressor(intervals=True, random_state=0).fit(X, y)
levels = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 0.95])


def inside(bounds):
    return (bounds[:, 0] <= y_test) & (y_test <= bounds[:, 1])


coverages = [inside(model.predict_interval(X_test, coverage=level)).mean() for level in levels]
print(", ".join(f"{level:.0%}: {share:.1%}" for level, share in zip(levels, coverages, strict=True)))

# %%
# Quantiles are another way: there is one model per level, and predictions are sorted. Quantiles follow the
# asymmetry, but they are not calibrated.
quantiles = TensorMachineRegressor(loss="quantile", quantile=(0.05, 0.25, 0.5, 0.75, 0.95), random_state=0)
quantiles.fit(X, y)
low, _, _, _, high = quantiles.predict(X_test).T
print(f"between the quantiles of 5 and 95 %: {inside(np.column_stack([low, high])).mean():.1%} of new rows")
grid = np.column_stack([np.linspace(0.05, 9.95, 300), np.full(300, 0.5)])
print("quantiles cross:", bool((np.diff(quantiles.predict(grid), axis=1) < 0).any()))

# %%
near = np.abs(X_test[:, 1] - 0.5) < 0.2
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
bounds, predicted = model.predict_interval(grid, coverage=0.9), model.predict(grid)
axes[0].fill_between(grid[:, 0], *bounds.T, color="#1f5fa8", alpha=0.25, linewidth=0, label="90 % interval")
axes[0].plot(grid[:, 0], predicted, color="#1f5fa8", linewidth=2, label="prediction")
curves = quantiles.predict(grid).T
axes[1].fill_between(
    grid[:, 0], curves[0], curves[4], color="#d9822b", alpha=0.2, linewidth=0, label="5 to 95 %"
)
axes[1].fill_between(
    grid[:, 0], curves[1], curves[3], color="#d9822b", alpha=0.4, linewidth=0, label="25 to 75 %"
)
axes[1].plot(grid[:, 0], curves[2], color="#a85a10", linewidth=2, label="median")
for ax, title in zip(axes, ("intervals=True", 'loss="quantile"'), strict=True):
    ax.plot(*X_test[near].T[:1], y_test[near], ".", color="#444444", markersize=2.5, alpha=0.6, zorder=0)
    ax.set(title=title, xlabel="hour of the shift", ylim=(-8, 16))
    ax.legend(frameon=False, loc="upper left")
axes[0].set_ylabel("delay (minutes)")
plt.show()

# %%
# The coverage may be right on average but not everywhere: where does each kind of interval miss?
edges = np.linspace(0, 10, 11)
places = np.digitize(X_test[:, 0], edges) - 1
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, rows, colour in (
    ("intervals=True", inside(model.predict_interval(X_test, coverage=0.9)), "#1f5fa8"),
    ("quantiles 5 and 95 %", inside(np.column_stack([low, high])), "#d9822b"),
):
    shares = [100 * rows[places == place].mean() for place in range(10)]
    ax.plot(edges[:-1] + 0.5, shares, "o-", color=colour, linewidth=2, label=name)
ax.axhline(90, color="black", linestyle=":", label="asked for")
ax.set(
    xlabel="hour of the shift", ylabel="new rows inside (%)", title="Coverage during the day", ylim=(70, 100)
)
ax.legend(frameon=False, loc="lower left")
plt.show()
