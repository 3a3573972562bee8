"""
Churn: who leaves, and how sure are we?
=======================================

You want to call the customers who are about to leave, and each call costs money, so predicted probabilities
must be calibrated. We look at calibration, at the confusion matrix, and at how many customers to call.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import CalibrationDisplay
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import ConfusionMatrixDisplay, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tensormachines import TensorMachineClassifier

# %%
# We generate customers of a telephone company. New customers leave most often, but rarely with a two-year
# contract. Many calls to support are a bad sign, above all with a high bill.
rng = np.random.default_rng(1)
n = 6000
customers = pd.DataFrame(
    {
        "months": rng.gamma(1.5, 16, n).clip(1, 90).round(),
        "contract": rng.choice(["monthly", "one year", "two years"], n, p=[0.55, 0.25, 0.2]),
        "bill": rng.normal(60, 20, n).clip(15, 130).round(2),
        "support_calls": rng.poisson(1.2, n),
        "payment": rng.choice(["card", "invoice", "transfer"], n),
    }
)
bound = customers["contract"].map({"monthly": 0.0, "one year": 1.0, "two years": 2.5})
log_odds = 1.5 * np.exp(-customers["months"] / 8) * (2 - bound) - 0.8 * bound - 2.2
log_odds += 0.4 * customers["support_calls"] * (customers["bill"] - 35) / 25
leaves = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), "leaves", "stays")
X, X_test, y, y_test = train_test_split(customers, leaves, test_size=0.4, random_state=0)

# %%
# The trees need pandas categories, and logistic regression needs one-hot encoding.
X, X_test = (table.astype({"contract": "category", "payment": "category"}) for table in (X, X_test))
encoded = make_column_transformer((OneHotEncoder(), ["contract", "payment"]), remainder=StandardScaler())
models = {
    "Tensor Machine": TensorMachineClassifier(random_state=0),
    "boosted trees": HistGradientBoostingClassifier(early_stopping=True, random_state=0),
    "logistic regression": make_pipeline(encoded, LogisticRegression()),
}
chance = {}
for name, model in models.items():
    chance[name] = model.fit(X, y).predict_proba(X_test)[:, 0]
    loss, area = log_loss(y_test == "leaves", chance[name]), roc_auc_score(y_test == "leaves", chance[name])
    print(f"{name:20} log-loss {loss:.3f}, area under the ROC curve {area:.3f}")

# %%
# The left plot shows whether predicted probabilities are calibrated: do 30 % of the customers with a
# predicted probability of 30 % leave? The right plot shows the confusion matrix if you call everybody with a
# probability above 30 %.
colours = {"Tensor Machine": "#1f5fa8", "boosted trees": "#d9822b", "logistic regression": "#666666"}
figure, (curves, matrix) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for name, values in chance.items():
    CalibrationDisplay.from_predictions(
        y_test == "leaves", values, n_bins=8, strategy="quantile", name=name, color=colours[name], ax=curves
    )
curves.set(xlabel="predicted chance to leave", ylabel="share that left", title="Calibration")
curves.set(xlim=(0, 0.75), ylim=(0, 0.75))
curves.legend(frameon=False, loc="upper left")
called = np.where(chance["Tensor Machine"] > 0.3, "leaves", "stays")
ConfusionMatrixDisplay.from_predictions(
    y_test, called, normalize="true", values_format=".0%", cmap="Blues", colorbar=False, ax=matrix
)
matrix.set(xlabel="predicted", ylabel="observed", title="Call above 30 %")
plt.show()

# %%
# Suppose that a call costs 20 euros and keeps half of the customers who would leave, and that each of these
# is worth 150 euros. How many customers should you call?
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for name, values in chance.items():
    order = np.argsort(-values)
    gain = np.cumsum(0.5 * 150 * (y_test[order] == "leaves") - 20)
    ax.plot(np.arange(1, len(gain) + 1), gain, color=colours[name], linewidth=2, label=name)
ax.set(xlabel="customers called, the likeliest first", ylabel="gain (euros)", title="How many calls pay")
ax.set(xlim=(0, 1500), ylim=(0, None))
ax.legend(frameon=False)
ax.spines[["top", "right"]].set_visible(False)
plt.show()
