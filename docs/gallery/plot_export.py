"""
Run a model in SQL and in C
===========================

You need predictions where there is no Python: in a database, or on a device. A fitted model is a formula, so
you can export it as one SQL query or as a C file that needs nothing else.
"""

import ctypes
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor
from tensormachines.export import to_c, to_sql

# %%
# The target is the price of houses on a map; a lake raises it and a motorway lowers it. Some sizes are
# missing.
rng = np.random.default_rng(0)
houses = pd.DataFrame({"east": rng.uniform(0, 10, 3000), "north": rng.uniform(0, 10, 3000)})
houses["size"] = np.where(rng.random(3000) < 0.1, np.nan, rng.gamma(9, 13, 3000))
houses["kind"] = rng.choice(["flat", "house", "villa"], 3000)
lake = np.exp(-((houses["east"] - 3) ** 2 + (houses["north"] - 6) ** 2) / 4)
motorway = np.exp(-((houses["east"] + houses["north"] - 14) ** 2) / 2)
metre = 3 + 2 * lake - 1.2 * motorway + houses["kind"].map({"flat": 0.0, "house": 0.5, "villa": 1.5})
price = (metre * houses["size"].fillna(120) + rng.normal(0, 20, 3000)).rename("price")
model = TensorMachineRegressor(random_state=0).fit(houses, price)

# %%
# The query reads a table with the columns of the fit by name. Here is how it begins:
query = to_sql(model, "houses", keep=["east", "north"])
print(f"{len(query):,} characters:\n{query[:400]} ...")

# %%
# DuckDB runs it directly on a data frame. A table in any database would also work.
with duckdb.connect() as database:
    database.register("houses", houses)
    in_sql = database.execute(query).df()
    grid = np.linspace(0, 10, 60)
    lots = pd.DataFrame([(x, y, 120.0, "house") for y in grid for x in grid], columns=houses.columns)
    database.register("lots", lots)
    values = database.execute(to_sql(model, "lots")).df()["prediction"].to_numpy().reshape(60, 60)
differences = {"SQL": np.abs(in_sql["prediction"] - model.predict(houses))}

# %%
# The C file has a function that takes the numbers and the categories of one row. We compile it, if there is a
# compiler, and call it from Python.
folder = TemporaryDirectory()
source, library = Path(folder.name, "price.c"), Path(folder.name, "price.so")
source.write_text(to_c(model, "price"))
if compiler := shutil.which("cc"):
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", source, "-o", library, "-lm"], check=True)
    predict, result = ctypes.CDLL(str(library)).price_predict, ctypes.c_double()
    in_c = []
    for east, north, size, kind in houses.itertuples(index=False):
        numbers, categories = (ctypes.c_double * 3)(east, north, size), (ctypes.c_char_p * 1)(kind.encode())
        predict(numbers, categories, ctypes.byref(result))
        in_c.append(result.value)
    differences["C"] = np.abs(in_c - model.predict(houses))
folder.cleanup()
for name, difference in differences.items():
    print(f"{name}: largest difference {difference.max():.1e} of prices up to {price.max():.0f}")

# %%
# The database alone computed the map below.
figure, (plane, bars) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained", width_ratios=[1.1, 1])
image = plane.contourf(grid, grid, values, levels=20, cmap="cividis")
plane.set(xlabel="east (km)", ylabel="north (km)", title="Price of a house of 120 m², in SQL", aspect="equal")
figure.colorbar(image, ax=plane, label="thousand euros")
bars.hist(
    [difference.clip(1e-15) for difference in differences.values()],
    bins=np.logspace(-15, -11, 17),
    color=["#1f5fa8", "#d9822b"][: len(differences)],
    label=list(differences),
)
bars.set(xlabel="difference from predict (thousand euros)", ylabel="rows", title="The same to rounding")
bars.set_xscale("log")
bars.legend(frameon=False)
plt.show()
