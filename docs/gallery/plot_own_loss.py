"""
A loss of your own
==================

Too few loaves cost a bakery more than too many: customers go elsewhere, and some do not come back. If you
know what an error costs, minimise the cost instead of squared errors: a loss is a function of six lines.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor

# %%
# A loaf too many costs 1 euro. A loaf too few costs 2 euros, and the more loaves are missing, the more
# customers are lost for good. The function returns the loss of each row and its derivative with respect to
# the prediction.


def euros(y, z):
    missing, left = np.maximum(y - z, 0), np.maximum(z - y, 0)
    loss = left + 2 * missing + 0.1 * missing**2
    slope = np.where(z > y, 1.0, -2 - 0.2 * missing)
    return loss, slope


# %%
# Demand depends on the weekday and the weather, and varies more on Saturdays.
rng = np.random.default_rng(0)
n = 3000
days = pd.DataFrame(
    {
        "weekday": rng.choice(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat"], n),
        "temperature": rng.uniform(-5, 30, n),
        "holiday": rng.random(n) < 0.15,
    }
)
saturday = days["weekday"] == "Sat"
demand = 120 + 60 * saturday - 0.08 * (days["temperature"] - 15) ** 2 + 40 * days["holiday"] * saturday
demand = (demand + np.where(saturday, 30, 10) * rng.normal(size=n)).round().to_numpy()
train, test = slice(0, 2000), slice(2000, None)

# %%
# We compare this loss with a model of the mean, and with a model of the quantile that would be best if no
# customers were lost: two thirds.
models = {
    "squared error": TensorMachineRegressor(random_state=0),
    "quantile 2/3": TensorMachineRegressor(loss="quantile", quantile=2 / 3, random_state=0),
    "own loss": TensorMachineRegressor(loss=euros, random_state=0),
}
baked, costs = {}, {}
for name, model in models.items():
    baked[name] = model.fit(days[train], demand[train]).predict(days[test])
    costs[name] = euros(demand[test], baked[name])[0]
    print(f"{name}: {costs[name].mean():.2f} euros a day, {np.mean(baked[name] < demand[test]):.0%} sold out")

# %%
# With its own loss, the bakery bakes more, above all on Saturdays, when errors are large and expensive.
colours = {"squared error": "#666666", "quantile 2/3": "#d9822b", "own loss": "#1f5fa8"}
figure, (curve, bars) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
errors = np.linspace(-60, 60, 241)
curve.plot(errors, euros(0, errors)[0], color="#1f5fa8", linewidth=2)
curve.set(xlabel="loaves baked minus loaves wanted", ylabel="cost (euros)", title="The loss")
curve.text(-58, 60, "sold out", color="#444444")
curve.text(35, 60, "left over", color="#444444")
places = np.arange(2)
for k, (name, cost) in enumerate(costs.items()):
    means = [cost[~saturday[test]].mean(), cost[saturday[test]].mean()]
    drawn = bars.bar(places + 0.27 * (k - 1), means, width=0.25, color=colours[name], label=name)
    bars.bar_label(drawn, fmt="%.0f")
bars.set_xticks(places, ["Monday to Friday", "Saturday"])
bars.set(ylabel="mean cost (euros a day)", title="1,000 new days")
bars.spines[["top", "right"]].set_visible(False)
bars.legend(frameon=False, loc="upper left")
plt.show()
