"""
Constraints: monotonic effects and limited interactions
=======================================================

A loan must never cost more because the income is higher, and a regulator wants to see each effect on its own.
Two constraints ensure this: ``monotonic_cst`` and ``interaction_cst``, as in scikit-learn's trees.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import part_importance

# %%
# The true interest rate falls with income and rises with debt, and debt matters more for young people. There
# is much noise, and there are few rows.
rng = np.random.default_rng(2)


def draw(n):
    loans = pd.DataFrame(
        {"income": rng.gamma(4, 10, n), "debt": rng.uniform(0, 1, n), "age": rng.uniform(20, 70, n)}
    )
    mean = 3 + 40 / (8 + loans["income"]) + 2.5 * loans["debt"] * np.exp((40 - loans["age"]) / 20)
    return loans, mean, mean + rng.normal(0, 1.5, n)


loans, _, interest = draw(300)
new, mean, _ = draw(5000)

# %%
# In ``monotonic_cst``, -1 means that predictions may only fall as the column rises. In a Tensor Machine such
# a column takes no part in interactions; trees have no such limit. ``interaction_cst`` names the columns that
# may interact: only debt and age.
constraints = {"monotonic_cst": {"income": -1}, "interaction_cst": [{"debt", "age"}, {"income"}]}
models = {
    "free": TensorMachineRegressor(random_state=0),
    "constrained": TensorMachineRegressor(**constraints, random_state=0),
    "trees, constrained": HistGradientBoostingRegressor(
        monotonic_cst={"income": -1}, interaction_cst=[{1, 2}, {0}], early_stopping=True, random_state=0
    ),
}
for name, model in models.items():
    error = np.sqrt(np.mean((model.fit(loans, interest).predict(new) - mean) ** 2))
    print(f"{name}: off the true mean by {error:.2f} percentage points")

# %%
# The plot shows the mean prediction for 100 people if all of them had the same income. The unconstrained
# curve may rise again where there are few rows; the other two cannot.
incomes = np.linspace(5, 100, 200)
figure, ax = plt.subplots(figsize=(6.2, 4), layout="constrained")
for (name, model), colour in zip(models.items(), ("#8c6bb1", "#1f5fa8", "#d9822b"), strict=True):
    curve = [model.predict(new[:100].assign(income=income)).mean() for income in incomes]
    ax.plot(incomes, curve, color=colour, linewidth=2, label=name)
others = (mean - 40 / (8 + new["income"]))[:100].mean()
ax.plot(incomes, 40 / (8 + incomes) + others, "--", color="black", label="truth")
ax.set(xlabel="income (thousand euros a year)", ylabel="interest (%)", title="Interest by income")
ax.set_xlim(5, 100)
ax.spines[["top", "right"]].set_visible(False)
ax.legend(frameon=False)
plt.show()

# %%
# Parts that the constraints exclude are 0, up to rounding. The output lists the other parts, with their
# shares of the variance:
for name in ("free", "constrained"):
    shares = part_importance(models[name], loans, order=3).largest(8)
    parts = [f"{' and '.join(key)} {share:.1%}" for key, share in shares.items() if share > 1e-9]
    print(f"{name}: {', '.join(parts)}")
