"""
Coming from an explainable boosting machine
===========================================

You use an EBM of the package interpret because you can read it: it is a sum of functions of one and two
columns. A Tensor Machine of degree 2 is also such a sum, and its functions are smooth.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingRegressor

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import effect, part_importance

# %%
# .. list-table::
#    :header-rows: 1
#
#    * - EBM
#      - tensormachines
#    * - ``ExplainableBoostingRegressor``, ``...Classifier``
#      - ``TensorMachineRegressor(degree=2)``, ``TensorMachineClassifier(degree=2)``
#    * - ``interactions=0``
#      - ``interaction_cst="no_interactions"``
#    * - ``interactions="3x"``, or a list of pairs
#      - all pairs may interact; ``interaction_cst`` limits them
#    * - ``outer_bags``
#      - ``n_members``; for bands ``inspection.bootstrap``
#    * - ``max_bins``, ``smoothing_rounds``
#      - ``roughness``
#    * - ``feature_types``
#      - ``categorical_features``
#    * - ``monotone_constraints``
#      - ``monotonic_cst``
#    * - ``explain_global()``
#      - ``plots.effect_curve``, ``plots.effect_surface``, ``report.html_report``
#    * - ``explain_local(X)``, ``eval_terms(X)``
#      - ``inspection.explain_row``, ``inspection.contributions``
#    * - ``term_importances()``
#      - ``inspection.part_importance``
#    * - ``init_score``
#      - ``offset``
#
# We generate a sum of known functions, to see which of the two models finds them.
rng = np.random.default_rng(0)
X = pd.DataFrame(rng.uniform(size=(1500, 4)), columns=["wave", "line", "a", "b"])
truth = {
    "wave": lambda rows: 2 * np.sin(2 * np.pi * rows["wave"]),
    "line": lambda rows: 3 * rows["line"],
    "pair": lambda rows: 6 * (rows["a"] - 0.5) * (rows["b"] - 0.5),
}
y = sum(function(X) for function in truth.values()) + rng.normal(0, 0.7, 1500)

# %%
# The EBM has two bags here instead of its default of 14, so that this page builds quickly.
model = TensorMachineRegressor(degree=2, random_state=0).fit(X, y)
ebm = ExplainableBoostingRegressor(outer_bags=2, n_jobs=1, random_state=0).fit(X, y)
new = pd.DataFrame(rng.uniform(size=(2000, 4)), columns=X.columns)
target = sum(function(new) for function in truth.values())
for name, each in (("Tensor Machine", model), ("EBM", ebm)):
    print(f"{name}: error against the truth {np.sqrt(np.mean((each.predict(new) - target) ** 2)):.3f}")

# %%
# Which functions are there? The EBM also has terms for pairs that do not interact; both models show that
# these are small.
shares = part_importance(model, X).largest(4)
print("Tensor Machine:", ", ".join(f"{' & '.join(key)} {share:.1%}" for key, share in shares.items()))
sizes = sorted(zip(ebm.term_importances(), ebm.term_names_, strict=True), reverse=True)[:4]
print("EBM:", ", ".join(f"{name} {size:.2f}" for size, name in sizes))

# %%
# ``effect`` is the counterpart of ``eval_terms`` of an EBM: it returns the value of one function for each
# row. The plot shows the pair at b = 0.9.
terms = dict(zip(ebm.term_names_, range(len(ebm.term_names_)), strict=True))
grid = pd.DataFrame(np.linspace(0.01, 0.99, 300)[:, None].repeat(4, axis=1), columns=X.columns).assign(b=0.9)
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for ax, columns, name in ((axes[0], "wave", "wave"), (axes[1], ("a", "b"), "pair")):
    boosted = ebm.eval_terms(grid)[:, terms[columns if isinstance(columns, str) else "a & b"]]
    across = grid[columns if isinstance(columns, str) else "a"]
    ax.plot(across, boosted, color="#d9822b", linewidth=1.5, label="EBM")
    ax.plot(across, effect(model, columns, grid), color="#1f5fa8", linewidth=2.5, label="Tensor Machine")
    ax.plot(across, truth[name](grid), "--", color="black", label="truth")
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set(title="A wave", xlabel="wave", ylabel="effect")
axes[1].set(title="A pair, at b = 0.9", xlabel="a")
axes[0].legend(frameon=False)
plt.show()
