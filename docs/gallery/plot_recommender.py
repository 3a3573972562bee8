"""
A recommender: a factorization machine on ratings
=================================================

You know a few ratings of every user and want to predict the others. The ratings form a sparse table with one
column per user and per film, and a factorization machine learns a vector for each of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import Ridge
from sklearn.preprocessing import OneHotEncoder

from tensormachines.peers import FactorizationMachineRegressor

# %%
# There are 300 users and 200 films with two hidden tastes: how much action and how much romance. We see an
# eighth of all ratings, from 1 to 5 stars, and predict as many others.
rng = np.random.default_rng(0)
users, films = 300, 200
taste, content = rng.normal(size=(users, 2)), rng.normal(size=(films, 2))
quality, kindness = 0.4 * rng.normal(size=films), 0.3 * rng.normal(size=users)
worth = 3.2 + kindness[:, None] + quality + 0.7 * taste @ content.T
stars = (worth + 0.5 * rng.normal(size=worth.shape)).round().clip(1, 5)
pairs = rng.permutation([(user, film) for user in range(users) for film in range(films)])[:15_000]
encoder = OneHotEncoder(categories=[np.arange(users), np.arange(films)])
X, y = encoder.fit_transform(pairs), stars[pairs[:, 0], pairs[:, 1]]
train, test = slice(0, 7500), slice(7500, None)
print(f"{X.shape[1]} columns, {7500 / users:.0f} ratings by a user, {7500 / films:.1f} of a film")

# %%
# Ridge regression on the same columns only learns that some users are kinder and some films better.
ranks = (1, 2, 3, 4, 6, 8)


def error(model):
    return np.sqrt(np.mean((model.fit(X[train], y[train]).predict(X[test]) - y[test]) ** 2))


additive = error(Ridge(alpha=3.0))
machines = {rank: FactorizationMachineRegressor(rank=rank, alpha=6e-4, random_state=0) for rank in ranks}
errors = [error(machine) for machine in machines.values()]
known = np.sqrt(np.mean((worth[pairs[test, 0], pairs[test, 1]].clip(1, 5) - y[test]) ** 2))
print(f"error in stars: additive {additive:.2f}, rank 2 {errors[1]:.2f}, hidden tastes known {known:.2f}")

# %%
# The rank is the number of tastes. The right plot shows the learned vectors of the films: up to rotation and
# scale, they are the hidden contents, shown by colour.
found = machines[2].factors_[2][0, :, users:].T
figure, (curve, plane) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
curve.plot(ranks, errors, "o-", color="#1f5fa8", linewidth=2, label="factorization machine")
curve.axhline(additive, color="#d9822b", linewidth=2, label="ridge regression")
curve.axhline(known, color="black", linestyle=":", label="hidden tastes known")
curve.set(xlabel="rank", ylabel="root mean square error (stars)", title="7,500 new ratings", ylim=(0.5, None))
curve.legend(frameon=False, loc="center right")
points = plane.scatter(*found.T, c=content[:, 0], cmap="cividis", s=25)
plane.set(xlabel="first learned factor", ylabel="second learned factor", title="200 films")
figure.colorbar(points, ax=plane, label="hidden: how much action")
plt.show()
