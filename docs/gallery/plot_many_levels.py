"""
Categories with many levels
===========================

A column of post codes, products or shops has hundreds of levels, some with many rows and some with three. You
need no encoding, and levels may differ in their slopes, not only in their means.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, TargetEncoder

from tensormachines import TensorMachineRegressor

# %%
# We generate rents in 300 post codes, each with its own price per square metre. Some codes have dozens of
# rows, some fewer than five.
rng = np.random.default_rng(0)
n, levels = 6000, 300
names = np.array([f"{10000 + 37 * k}" for k in range(levels)])
metre = 11 + 2.5 * rng.normal(size=levels)
code = rng.choice(levels, n, p=(share := 1 / np.arange(30, levels + 30)) / share.sum())
flats = pd.DataFrame({"code": names[code], "area": rng.uniform(30, 130, n), "age": rng.uniform(0, 100, n)})
rent = flats["area"] * metre[code] - 0.01 * flats["area"] * flats["age"] + rng.normal(0, 60, n)
train, test = slice(0, 4000), slice(4000, None)
rows_of = pd.Series(code[train]).value_counts().reindex(range(levels), fill_value=0).to_numpy()
rare = (rows_of < 5)[code[test]]
print(f"{(rows_of < 5).sum()} of {levels} codes have fewer than 5 training rows")

# %%
# Trees get the mean target of each code; ridge regression gets one-hot encoded codes and no interactions.
numbers = (StandardScaler(), ["area", "age"])
indicators = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["code"]), numbers)
means = make_column_transformer((TargetEncoder(), ["code"]), numbers)
models = {
    "Tensor Machine": TensorMachineRegressor(random_state=0),
    "target encoding, boosted trees": make_pipeline(means, HistGradientBoostingRegressor(random_state=0)),
    "indicators, ridge regression": make_pipeline(indicators, RidgeCV(np.logspace(-2, 2, 9))),
}
for name, model in models.items():
    squares = (model.fit(flats[train], rent[train]).predict(flats[test]) - rent[test]) ** 2
    error, of_rare = np.sqrt(squares[~rare].mean()), np.sqrt(squares[rare].mean())
    print(f"{name}: error {error:.0f} euros, in codes of fewer than 5 rows {of_rare:.0f} (noise alone: 60)")

# %%
# What does a square metre cost in each code? We take the difference of two predictions, for 130 and for 30
# square metres. The fewer rows a code has, the closer its price is to the mean of all codes. Codes with a
# single row share one coefficient.
small, large = (pd.DataFrame({"code": names, "area": float(area), "age": 50.0}) for area in (30, 130))
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, name in zip(axes, ("Tensor Machine", "target encoding, boosted trees"), strict=True):
    slope = (models[name].predict(large) - models[name].predict(small)) / 100
    points = ax.scatter(metre - 0.5, slope, c=rows_of.clip(1), norm="log", cmap="viridis_r", s=20)
    ax.axline((10, 10), slope=1, color="black", linewidth=1, linestyle="--")
    ax.set(title=name, xlabel="true price (euros per square metre)")
axes[0].set_ylabel("found (euros per square metre)")
figure.colorbar(points, ax=axes, label="training rows of the code")
plt.show()
