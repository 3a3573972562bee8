"""
Coming from LightGBM
====================

You have a LightGBM model and want to know whether a Tensor Machine would be more accurate, smaller, or easier
to explain. This page compares both, translates the parameters, and shows where trees stay ahead.
"""

import lightgbm
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor

# %%
# .. list-table::
#    :header-rows: 1
#
#    * - LightGBM
#      - tensormachines
#    * - ``LGBMRegressor``, ``LGBMClassifier``
#      - ``TensorMachineRegressor``, ``TensorMachineClassifier``
#    * - ``n_estimators``, ``learning_rate``
#      - ``max_iter``; the learning rate decays to 0
#    * - ``num_leaves``, ``max_depth``
#      - ``degree`` (columns that interact at a time) and ``rank`` (number of terms)
#    * - ``reg_lambda``, ``reg_alpha``, ``min_child_samples``
#      - ``alpha``; by default it is chosen on held-out rows
#    * - ``objective="poisson"``, ``"quantile"``, a function
#      - ``loss``
#    * - ``categorical_feature``
#      - text needs nothing; ``categorical_features`` for codes
#    * - ``monotone_constraints``
#      - ``monotonic_cst``; such columns take no part in interactions
#    * - ``interaction_constraints``
#      - ``interaction_cst``
#    * - ``eval_set``, ``early_stopping``
#      - ``fit(X, y, X_val=..., y_val=...)``, ``early_stopping=True``
#    * - ``init_score``
#      - ``fit(X, y, offset=...)``
#    * - ``predict(X, pred_contrib=True)``
#      - ``inspection.contributions``, ``inspection.column_contributions``
#    * - a search with another package
#      - ``TensorMachineRegressorCV(time_budget=60)``
#    * - ranking, GPUs
#      - not available
#
# We generate two tables of six columns, one with a smooth target, one with a target of steps:
rng = np.random.default_rng(0)
names = [f"x{k}" for k in range(6)]


def smooth(x):
    return 10 * np.sin(np.pi * x["x0"] * x["x1"]) + 20 * (x["x2"] - 0.5) ** 2 + 10 * x["x3"]


def steps(x):
    tariff = np.floor(4 * x["x0"]) * np.floor(3 * x["x1"]) + 3 * (np.floor(8 * x["x2"]) % 2)
    return tariff + 4 * (x["x3"] > 0.7) * (x["x4"] > 0.3)


# %%
# The calls are the same. These two tables are extremes; the benchmarks show what to expect on others.
sizes, errors = (250, 1000, 4000), {}
new = pd.DataFrame(rng.uniform(size=(3000, 6)), columns=names)
for size in sizes:
    X = pd.DataFrame(rng.uniform(size=(size, 6)), columns=names)
    for truth in (smooth, steps):
        y = truth(X) + rng.normal(0, 0.5, size)
        trees = lightgbm.LGBMRegressor(n_jobs=1, random_state=0, verbose=-1)
        for model in (TensorMachineRegressor(random_state=0), trees):
            error = np.sqrt(np.mean((model.fit(X, y).predict(new) - truth(new)) ** 2))
            errors.setdefault((truth.__name__, type(model).__name__), []).append(error)

# %%
# The Tensor Machine finds the steps (``jumps_`` has its thresholds), but trees need fewer rows for them. On
# the smooth target, the Tensor Machine needs far fewer rows than trees.
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for (target, name), values in errors.items():
    ax, colour = axes[int(target == "steps")], "#d9822b" if name.startswith("LGBM") else "#1f5fa8"
    ax.loglog(sizes, values, "o-", color=colour, linewidth=2, label=name)
    ax.set(title=f"a target of {target}" if target == "steps" else "a smooth target", xlabel="training rows")
    ax.set_xticks(sizes, [f"{size:,}" for size in sizes])
    ax.minorticks_off()
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_yticks([0.1, 0.2, 0.5, 1, 2], ["0.1", "0.2", "0.5", "1", "2"])
axes[0].set_ylabel("error against the truth")
axes[0].legend(frameon=False)
plt.show()
