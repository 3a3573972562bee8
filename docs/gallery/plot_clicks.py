"""
Clicks: sparse hashed columns
=============================

Your log of advertisements has millions of users, pages and words, which you hash into a wide sparse matrix. A
linear model cannot see that an ad suits a page; a model of degree 2 can, and X stays sparse.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction import FeatureHasher
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import RocCurveDisplay, log_loss, roc_auc_score

from tensormachines import TensorMachineClassifier
from tensormachines.peers import FactorizationMachineClassifier

# %%
# Every page and every advertisement has a hidden theme. People click more often if the themes agree, and some
# devices click more often than others.
rng = np.random.default_rng(0)
n, themes, pages, advertisements = 20_000, 5, 200, 60
page, advertisement, device = (rng.integers(0, levels, n) for levels in (pages, advertisements, 5))
of_page, of_advertisement = (rng.integers(0, themes, levels) for levels in (pages, advertisements))
log_odds = -2.5 + 3.0 * (of_page[page] == of_advertisement[advertisement]) + 0.3 * (device - 2)
clicked = rng.random(n) < 1 / (1 + np.exp(-log_odds))
events = [
    [f"page={a}", f"ad={b}", f"device={c}"] for a, b, c in zip(page, advertisement, device, strict=True)
]
X = FeatureHasher(2**12, input_type="string", alternate_sign=False).transform(events)
print(f"{X.shape[0]:,} rows, {X.shape[1]:,} columns, {X.nnz / X.shape[0]:.0f} entries in a row")

# %%
# ``basis=None`` uses the hashed columns unchanged. The Tensor Machine chooses its penalty itself. For the
# factorization machine, the usual model for such data, we use the best of a few penalties.
train, test = slice(0, 15_000), slice(15_000, None)
models = {
    "Tensor Machine, degree 2": TensorMachineClassifier(degree=2, basis=None, random_state=0),
    "factorization machine": FactorizationMachineClassifier(rank=10, alpha=3e-4, random_state=0),
    "logistic regression": LogisticRegression(max_iter=1000),
}
scores = {}
for name, model in models.items():
    scores[name] = model.fit(X[train], clicked[train]).predict_proba(X[test])[:, 1]
    area, loss = roc_auc_score(clicked[test], scores[name]), log_loss(clicked[test], scores[name])
    print(f"{name:26} area {area:.3f}, log-loss {loss:.3f}")
scores["the truth"] = log_odds[test]
print(f"{'the truth':26} area {roc_auc_score(clicked[test], log_odds[test]):.3f}")

# %%
colours = ["#1f5fa8", "#d9822b", "#666666", "black"]
figure, ax = plt.subplots(figsize=(6, 4.6), layout="constrained")
for colour, (name, values) in zip(colours, scores.items(), strict=True):
    style = {"color": colour, "linestyle": ":" if name == "the truth" else "-", "linewidth": 2}
    RocCurveDisplay.from_predictions(clicked[test], values, name=name, curve_kwargs=style, ax=ax)
ax.legend(frameon=False, fontsize=9)
ax.set(xlabel="share of other views shown", ylabel="share of clicks found", title="Finding the clicks")
plt.show()
