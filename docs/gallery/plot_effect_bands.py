"""
Bands: how certain is the effect of a column?
=============================================

The curve of a column goes up, then down: is this real, or would other rows show something else? The bootstrap
refits the model to samples of its rows, and bands show how far the curves might move.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import bootstrap, effect_band
from tensormachines.plots import effect_curve

# %%
# The target is a crop yield in tonnes per hectare. It rises with rain up to a point, has an optimal
# temperature, and does not depend on the phase of the moon.
rng = np.random.default_rng(3)
fields = pd.DataFrame(
    {
        "rain": rng.uniform(100, 900, 400),
        "temperature": rng.uniform(8, 28, 400),
        "moon": rng.uniform(0, 1, 400),
    }
)
truth = {
    "rain": lambda value: 4 * (1 - np.exp(-value / 250)),
    "temperature": lambda value: 3 * np.exp(-(((value - 18) / 5) ** 2)),
    "moon": lambda value: 0 * value,
}
crop = sum(function(fields[name]) for name, function in truth.items()) + rng.normal(0, 1, 400)

# %%
# Each bootstrap member is a new fit and takes as long as the first one. Each member chooses its own penalty,
# so the bands also include the uncertainty of this choice.
model = TensorMachineRegressor(random_state=0).fit(fields, crop)
members = bootstrap(model, fields, crop, n_members=20, random_state=0)

# %%
units = {"rain": "rain (mm a year)", "temperature": "temperature (°C)", "moon": "phase of the moon"}
figure, axes = plt.subplots(1, 3, figsize=(9, 4), sharey=True, layout="constrained")
for ax, (name, function) in zip(axes, truth.items(), strict=True):
    effect_curve(model, name, fields, members=members, ax=ax)
    values = np.linspace(*np.quantile(fields[name], [0.01, 0.99]), 200)
    ax.plot(values, function(values) - function(fields[name]).mean(), "--", color="black", label="truth")
    ax.set(title=name, xlabel=units[name], ylabel="effect (tonnes per hectare)" if name == "rain" else "")
    ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# For which share of the fields do the bands contain the truth? This share should be 90 % at each single
# point. For a column without an effect, the bands are too wide.
for name, function in truth.items():
    low, high = effect_band(model, name, fields, members).T
    effect = function(fields[name]) - function(fields[name]).mean()
    share, width = np.mean((low <= effect) & (effect <= high)), np.mean(high - low)
    print(f"{name}: {share:.0%} inside, mean width {width:.2f} tonnes per hectare")
