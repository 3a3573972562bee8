"""
A model as a short formula
==========================

Somebody has to approve your model and wants to know what it computes. You can write a Tensor Machine as a few
functions of one and two columns, or as a short polynomial. Both report how much of the model they explain.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import distil, formula
from tensormachines.plots import effect_curve, effect_surface

# %%
# The target is the price of sending a parcel, in euros. The model should find this rule: a basic price that
# depends on the zone, a surcharge above 20 kg, a price per kilometre that is higher for heavy parcels, and a
# discount for volume that levels off.
rng = np.random.default_rng(0)
parcels = pd.DataFrame(
    {
        "weight": rng.uniform(0.5, 30, 3000),
        "distance": rng.uniform(10, 900, 3000),
        "zone": rng.choice(["home", "abroad"], 3000, p=[0.7, 0.3]),
        "yearly": rng.uniform(1, 400, 3000),
    }
)
price = 4 + 6 * (parcels["zone"] == "abroad") + 5 * (parcels["weight"] > 20)
price += 0.0006 * parcels["distance"] * parcels["weight"] - 0.15 * np.sqrt(parcels["yearly"])
price = (price + rng.normal(0, 0.3, 3000)).rename("price")
model = TensorMachineRegressor(random_state=0).fit(parcels, price)

# %%
# ``formula`` lists the functions that make up the model, largest first, with their values at a few points.
found = formula(model, parcels)
print(found)

# %%
# ``distil`` fits a small polynomial to the predictions of the model. Thresholds become brackets, which are 1
# where the condition holds and 0 elsewhere. The root, which is not a polynomial, becomes a parabola.
small = distil(model, parcels, terms=6)
print(small)
print(small.formula(digits=2))

# %%
# These are the two functions that are hardest to guess, next to the truth.
figure, (curve, surface) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
effect_curve(model, "yearly", parcels, ax=curve)
values = np.linspace(4, 396, 100)
curve.plot(
    values, -0.15 * (np.sqrt(values) - np.sqrt(parcels["yearly"]).mean()), "--", color="black", label="truth"
)
curve.set(xlabel="parcels a year", ylabel="change of the price (euros)", title="Discount for volume")
curve.lines[1].set_label("fitted")
curve.legend(frameon=False)
effect_surface(model, ("distance", "weight"), parcels, ax=surface)
surface.get_lines()[0].remove()
surface.set(xlabel="distance (km)", ylabel="weight (kg)", title="Distance times weight")
plt.show()
