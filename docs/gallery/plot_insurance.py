"""
Insurance: claims, exposure and costs
=====================================

You price policies: how many claims will a driver have in a year, and what will they cost? Policies were
observed for different times, and most have no claim. Poisson and Tweedie losses are made for such data.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import PoissonRegressor, TweedieRegressor
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from tensormachines import TensorMachineRegressor

# %%
# Young drivers have more claims, above all in powerful cars; so do old drivers and people in cities. A claim
# costs more in a powerful car.
rng = np.random.default_rng(0)
n = 12_000
policies = pd.DataFrame(
    {
        "age": rng.uniform(18, 85, n).round(),
        "power": rng.gamma(9, 10, n).clip(30, 250).round(),
        "area": rng.choice(["city", "suburb", "country"], n, p=[0.4, 0.35, 0.25]),
    }
)


def true_rate(age, power, area):
    """Return the claims to expect in a year."""
    young = np.exp(-(age - 18) / 8)
    place = np.select([area == "city", area == "suburb"], [1.4, 1.0], 0.7)
    return 0.25 * place * np.exp(1.2 * young * power / 90 + ((age - 50) / 30) ** 2 / 3)


years = rng.uniform(0.2, 2, n)
claims = rng.poisson(years * true_rate(policies["age"], policies["power"], policies["area"]))
cost = np.array(
    [rng.gamma(2.0, 4.0 * power, k).sum() for k, power in zip(claims, policies["power"], strict=True)]
)
train, test = slice(0, 8000), slice(8000, None)

# %%
# ``exposure`` accounts for the years. scikit-learn's linear models take rates with weights instead, and we
# give them splines of the numbers, as is usual.
columns = make_column_transformer((OneHotEncoder(), ["area"]), (SplineTransformer(), ["age", "power"]))
frequency = TensorMachineRegressor(loss="poisson", random_state=0)
frequency.fit(policies[train], claims[train], exposure=years[train])
linear = make_pipeline(columns, PoissonRegressor(alpha=1e-4, max_iter=1000))
linear.fit(policies[train], claims[train] / years[train], poissonregressor__sample_weight=years[train])

premium = TensorMachineRegressor(loss="tweedie", power=1.5, random_state=0)
premium.fit(policies[train], cost[train], exposure=years[train])
tweedie = make_pipeline(columns, TweedieRegressor(power=1.5, alpha=1e-4, max_iter=1000))
tweedie.fit(policies[train], cost[train] / years[train], tweedieregressor__sample_weight=years[train])

weight, rates, costs = years[test], claims[test] / years[test], cost[test] / years[test]
for name, counts, amounts in (("Tensor Machine", frequency, premium), ("linear, splines", linear, tweedie)):
    count = mean_poisson_deviance(rates, counts.predict(policies[test]), sample_weight=weight)
    amount = mean_tweedie_deviance(costs, amounts.predict(policies[test]), sample_weight=weight, power=1.5)
    print(f"{name}: deviance of claims {count:.4f}, of costs {amount:.2f}")
truth = mean_poisson_deviance(rates, true_rate(**policies[test]), sample_weight=weight)
print(f"truth: deviance of claims {truth:.4f}")

# %%
# The linear model adds functions of age and power on the log scale. So its curves for different cars differ
# only by a shift, and it predicts too few claims for young drivers of powerful cars. For the costs, where
# noise hides the interaction, the linear model is as good or slightly better.
ages = np.arange(18, 86.0)
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, model, name in zip(
    axes, (frequency, linear), ("Tensor Machine", "linear model of splines"), strict=True
):
    for power, colour in ((60, "#1f5fa8"), (100, "#8c6bb1"), (160, "#d9822b")):
        rows = pd.DataFrame({"age": ages, "power": float(power), "area": "suburb"})
        ax.plot(ages, model.predict(rows), color=colour, linewidth=2, label=f"{power} kW")
        ax.plot(ages, true_rate(**rows), "--", color=colour, linewidth=1)
    ax.set(title=name, xlabel="age (years)", yscale="log", yticks=[0.2, 0.5, 1, 2], ylim=(0.15, 4))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("claims a year (dashed: truth)")
axes[0].legend(frameon=False)
plt.show()
