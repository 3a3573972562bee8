"""Draw docs/friedman.png, the picture of the README: python docs/readme_picture.py."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.model_selection import train_test_split

from tensormachines import TensorMachineRegressor
from tensormachines.plots import effect_curve, effect_surface, term_importance

X, X_test, y, y_test = train_test_split(*make_friedman1(5000, noise=0.5, random_state=0), random_state=0)
model = TensorMachineRegressor(random_state=0).fit(X, y)

plt.rcParams.update({"font.size": 9, "axes.titlesize": 10, "axes.titleweight": "bold"})
figure, (shares, curve, surface) = plt.subplots(1, 3, figsize=(10.5, 3.1), layout="constrained")

term_importance(model, X_test, k=8, ax=shares)
shares.set_title("What matters")

effect_curve(model, "x2", X_test, ax=curve)
values = np.linspace(0.01, 0.99, 100)
truth = 20 * (values - 0.5) ** 2 - 20 * np.mean((X[:, 2] - 0.5) ** 2)
(dashed,) = curve.plot(values, truth, "--", color="black", linewidth=1.2)
fitted = next(line for line in curve.get_lines() if len(line.get_xdata()) > 100)
curve.legend([fitted, dashed], ["fitted", "true: 20 (x2 - 0.5)²"], frameon=False, loc="upper center")
curve.set_title("One column")

effect_surface(model, ("x0", "x1"), X_test, ax=surface)
surface.get_lines()[0].remove()
surface.set_title("A pair, beyond each alone")

figure.savefig(Path(__file__).parent / "friedman.png", dpi=110)
