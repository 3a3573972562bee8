"""
Validation rows, loss curves and early stopping
===============================================

Did the fit stop too early or too late? Pass validation rows, such as those of the last months, and look at
the losses after each iteration.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_friedman1
from sklearn.metrics import root_mean_squared_error

from tensormachines import TensorMachineRegressor
from tensormachines.plots import loss_curves

# %%
# The table has few rows, much noise and many columns, so a long fit learns the noise. We choose the
# validation rows ourselves: the last of the training rows, as if rows came in order of time.
X, y = make_friedman1(4000, n_features=15, noise=2, random_state=0)
X, X_val, X_test = X[:400], X[400:600], X[600:]
y, y_val, y_test = y[:400], y[400:600], y[600:]

# %%
# With ``early_stopping`` the fit ends ten iterations after the lowest validation loss and returns the model
# of the best iteration. Without it, the fit only records the loss. We make the penalty far too small on
# purpose, to show what early stopping can do.
settings = {"basis": "standard", "alpha": 1e-5, "solver": "lbfgs", "tol": 1e-3, "random_state": 0}
models = {
    "early stopping": TensorMachineRegressor(**settings, early_stopping=True),
    "to the end": TensorMachineRegressor(**settings),
}
figure, axes = plt.subplots(1, 2, figsize=(8, 4.2), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X, y, X_val=X_val, y_val=y_val)
    loss_curves(model, ax=ax)
    error = root_mean_squared_error(y_test, model.predict(X_test))
    ax.set_title(f"{name}: test error {error:.2f}")
plt.show()

# %%
# The default solver, Adam, does not need early stopping. It makes a fixed number of passes with a decaying
# learning rate, and the penalty, chosen on held-out rows, keeps it from learning the noise. The validation
# loss falls and stays there.
model = TensorMachineRegressor(random_state=0).fit(X, y, X_val=X_val, y_val=y_val)
error = root_mean_squared_error(y_test, model.predict(X_test))
ax = loss_curves(model)
ax.set_title(f"default settings: test error {error:.2f}")
plt.show()

# %%
# Losses are in the units of the objective: for squared error, half the mean squared error divided by the
# variance of the training targets. So we know the lowest possible loss: the noise has a standard deviation
# of 2.
print(f"noise alone {4 / y.var() / 2:.3f}; default settings {model.validation_loss_curve_[-1]:.3f}")
print(f"with early stopping {models['early stopping'].validation_loss_curve_.min():.3f}")
