"""
An interactive report for people who do not code
================================================

A colleague without Python asks what your model does. ``html_report`` writes one HTML file in which the model
itself runs, with sliders for each column, contributions to a prediction, effects, errors, and baselines.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import bootstrap, explain_row
from tensormachines.plots import effect_curve
from tensormachines.report import html_report

# %%
# The target is how far diabetes has progressed after a year. There are 442 patients and ten numeric columns
# in their original units.
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X, X_test, y, y_test = train_test_split(X, y, random_state=0)
model = TensorMachineRegressor(random_state=0).fit(X, y)
members = bootstrap(model, X, y, n_members=8, random_state=0)

# %%
# The page needs no server and no network: send it by mail and open it in any browser. ``members`` puts bands
# around its curves; ``X_train`` lets it compare the model with a linear model and with boosted trees.
page = html_report(
    model, X_test, y_test, X_train=X, y_train=y, target="progression", members=members, title="Diabetes"
)
with TemporaryDirectory() as folder:
    file = Path(folder, "diabetes.html")
    file.write_text(page, encoding="utf-8")
    print(f"{file.name}: {file.stat().st_size / 1e6:.1f} MB")

# %%
# A notebook shows it as well. This is the page itself: move the sliders.
page

# %%
# At its top, the page shows each prediction as a sum: the average prediction of the training rows, plus the
# contribution of each column and each pair. This figure shows the same for one patient:
parts = explain_row(model, X_test[:1])
constant = parts[()]
largest = {" and ".join(key): part for key, part in parts.largest(8).items() if key}
rest = sum(parts.values()) - constant - sum(largest.values())
names, steps = [*largest, "all others"], np.array([*largest.values(), rest])
ends = constant + np.cumsum(steps)
figure, (fall, curve) = plt.subplots(1, 2, figsize=(8.6, 4.2), layout="constrained", width_ratios=[1.2, 1])
fall.barh(names, steps, left=ends - steps, color=np.where(steps > 0, "#d9822b", "#1f5fa8"), height=0.7)
for name, end, step in zip(names, ends, steps, strict=True):
    fall.text(min(end, end - step) - 1, name, f"{step:+.0f}", va="center", ha="right", fontsize=9)
fall.axvline(constant, color="#666666", linestyle=":", label=f"average {constant:.0f}")
fall.axvline(ends[-1], color="black", linewidth=1, label=f"prediction {ends[-1]:.0f}")
fall.invert_yaxis()
fall.set_xlim(min(constant, *ends) - 12, max(constant, *ends) + 15)
fall.set(xlabel="progression (score)", title="One patient")
fall.spines[["top", "right"]].set_visible(False)
fall.legend(frameon=False, loc="lower left")
effect_curve(model, "bmi", X, members=members, ax=curve)
curve.set(xlabel="body mass index (kg/m²)", ylabel="change of the score", title="All patients")
plt.show()
