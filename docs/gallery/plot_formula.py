"""
A formula, read aloud
=====================

Somebody has to sign for your model, and wants to know what it computes. A Tensor Machine can be written as a
few functions of one and two columns, or as a short polynomial, and both say how much of the model they are.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor
from tensormachines.inspection import distil, formula
from tensormachines.plots import effect_curve, effect_surface

# %%
# The price of sending a parcel, in euros. Here is the rule that the model should find: a basic price that
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
# ``formula`` lists the functions that the model consists of, the largest first, by their values at a few
# points.
found = formula(model, parcels)
print(found)

# %%
# ``distil`` fits a small polynomial to what the model predicts. Thresholds become brackets, which are 1 where
# they hold and 0 elsewhere; the root, which is no polynomial, has become a parabola.
small = distil(model, parcels, terms=6)
print(small)
print(small.formula(digits=2))

# %%
# The two functions that are hardest to guess, drawn next to the truth.
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
