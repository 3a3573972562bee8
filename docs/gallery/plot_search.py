"""
A search within a time budget
=============================

Is degree 2 or 3 better for your table, and how strong should the penalty be? ``TensorMachineRegressorCV``
finds out by validation and stops when its time is over. Here the answer is that the choice hardly matters.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tensormachines import TensorMachineRegressor, TensorMachineRegressorCV

# %%
# 442 patients, ten columns: how far has their diabetes progressed after a year?
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X, X_test, y, y_test = train_test_split(X, y, test_size=0.3, random_state=0)

# %%
# By default the search tries degrees, ranks, penalties, smoothness and more for 60 seconds. It begins with
# every second candidate and continues with the neighbours of the best. Here it has a small grid and a limit
# of 20 seconds; it needs only a few.
search = TensorMachineRegressorCV(
    degrees=(1, 2, 3),
    ranks=(5,),
    alphas=(1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1),
    relevances=(0,),
    roughnesses=(3.0,),
    trends=(False,),
    max_iters=(30,),
    time_budget=20,
    random_state=0,
    verbose=0,
).fit(X, y)
best = search.best_params_
print(f"degree {best['degree']}, alpha {best['alpha']:g}; mean of {len(search.members_)} models")

# %%
# ``cv_results_`` has all trials in order. In the last round of the search, candidates that fall behind the
# leader after their first splits are dropped, and their mean score is NaN. All candidates have a score for
# the first split, which the plot shows.
results = pd.DataFrame(search.cv_results_).query("iter == iter.max()").sort_values("param_alpha")
figure, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
for degree, colour, marker in zip((1, 2, 3), ("#666666", "#1f5fa8", "#d9822b"), "so^", strict=True):
    rows = results[results["param_degree"] == degree]
    errors, kept = np.sqrt(-rows["split0_test_score"]), np.isfinite(rows["mean_test_score"])
    ax.plot(
        rows["param_alpha"],
        errors,
        color=colour,
        marker=marker,
        markerfacecolor="white",
        label=f"degree {degree}",
    )
    ax.plot(rows["param_alpha"][kept], errors[kept], marker, color=colour, markersize=9)
ax.set(
    xscale="log",
    xlabel="penalty (alpha)",
    ylabel="error on the first split (score)",
    title="White: given up early",
)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# We compare the search with other models on held-out rows:
models = {
    "search": search,
    "default settings": TensorMachineRegressor(random_state=0).fit(X, y),
    "boosted trees": HistGradientBoostingRegressor(early_stopping=True, random_state=0).fit(X, y),
    "ridge regression": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-2, 4, 13))).fit(X, y),
}
for name, model in models.items():
    print(f"{name}: R2 {model.score(X_test, y_test):.3f}")

# %%
# A linear model is hard to beat here: the effects are nearly linear, and 309 rows say little about
# interactions. The search also shows this: with a strong penalty, all degrees are about equally good. And 133
# test rows say little about which model is best: with other splits of the patients, the order changes.
