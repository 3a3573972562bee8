"""
Dates and periodic columns
==========================

Demand depends on the hour, the weekday and the season, and all you have is a timestamp. Pass the date
unchanged; or, if predictions must join smoothly at midnight, make a column of hours and declare its period.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.dates import DateFormatter

from tensormachines import TensorMachineRegressor
from tensormachines.plots import term_importance

# %%
# The target is the number of bicycles hired in an hour. It has two rush hours on workdays, one peak at
# weekends, a season, and a trend.
rng = np.random.default_rng(0)
when = pd.Series(pd.Timestamp("2023-01-02") + pd.to_timedelta(rng.integers(0, 24 * 728, 5000), unit="h"))


def mean(when):
    hour, workday = when.dt.hour, when.dt.day_of_week < 5
    rushes = 90 * np.exp(-((hour - 8) ** 2) / 5) + 110 * np.exp(-((hour - 17) ** 2) / 8)
    day = np.where(workday, rushes, 80 * np.exp(-((hour - 14) ** 2) / 20))
    season = 1 - 0.5 * np.cos(2 * np.pi * when.dt.day_of_year / 365)
    return (15 + day) * season * (1 + (when - when.min()).dt.days / 2000)


hired = mean(when) + rng.normal(0, 8, len(when))
rides = pd.DataFrame({"when": when})

# %%
# A date becomes the day, the time of the year, the weekday and the hour, and the model finds their products.
by_date = TensorMachineRegressor(random_state=0).fit(rides, hired)
week = pd.Series(pd.date_range("2024-06-10", periods=7 * 24, freq="h"))
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
predicted = by_date.predict(pd.DataFrame({"when": week}))
truth = mean(pd.concat([pd.Series([when.min()]), week], ignore_index=True))[1:]
ax.fill_between(week, truth, color="#bbbbbb", linewidth=0, label="truth")
ax.plot(week, predicted, color="#1f5fa8", linewidth=2, label="predicted from the timestamp alone")
ax.xaxis.set_major_formatter(DateFormatter("%a"))
ax.set(ylabel="bicycles an hour", title="A week in June", ylim=(0, 290))
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False, loc="upper right", ncols=2)
plt.show()

# %%
# What are predictions made of? Pairs and triples of these numbers matter as much as the single numbers.
term_importance(by_date, rides, k=8)
plt.show()

# %%
# If a column is a plain number, predictions may jump where a cycle ends and begins again. With
# ``periodic_features`` they join smoothly, which helps most if there are few rows. Here we predict the power
# of a turbine from 300 wind directions.
direction = rng.uniform(0, 360, 300)


def true_power(angle):
    return 2 + np.cos(np.deg2rad(angle - 20)) + 0.5 * np.cos(2 * np.deg2rad(angle - 40))


power = true_power(direction) + rng.normal(0, 0.8, 300)
grid = np.linspace(0, 360, 200)
figure, ax = plt.subplots(figsize=(6.5, 4.4), subplot_kw={"projection": "polar"}, layout="constrained")
ax.plot(np.deg2rad(grid), true_power(grid), "--", color="black", label="truth")
for name, periods, colour in (("plain number", None, "#d9822b"), ("period of 360°", {0: 360}, "#1f5fa8")):
    model = TensorMachineRegressor(periodic_features=periods, random_state=0).fit(direction[:, None], power)
    predicted = model.predict(grid[:, None])
    ax.plot(np.deg2rad(grid), predicted, color=colour, linewidth=2, label=name)
    error = np.sqrt(np.mean((predicted - true_power(grid)) ** 2))
    print(f"{name}: error {error:.3f} MW, step at north {abs(predicted[0] - predicted[-1]):.3f} MW")
ax.set(
    title="Power by direction of the wind (MW)",
    theta_zero_location="N",
    theta_direction=-1,
    rticks=[1, 2, 3, 4],
)
ax.legend(frameon=False, loc="lower left", bbox_to_anchor=(1.02, 0))
plt.show()
