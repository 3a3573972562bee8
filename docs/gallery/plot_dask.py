"""
A Dask cluster
==============

Your rows are spread over the machines of a cluster and should stay there. The same estimators accept Dask
dataframes: only parameters travel, rows do not.
"""

import dask.dataframe as dd
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from tensormachines import TensorMachineRegressor
from tensormachines.plots import loss_curves

# %%
# The target is the energy that buildings use in a day. Here a cluster of two threads in this process stands
# in for a cluster of many machines. For a real cluster, change only the client:
# ``Client("scheduler:8786")``.
cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None)
client = Client(cluster)
rng = np.random.default_rng(0)
n = 6000
table = pd.DataFrame(
    {
        "outside": rng.uniform(-15, 35, n),
        "floor_space": rng.gamma(4, 200, n),
        "use": rng.choice(["office", "school", "shop"], n),
    }
)
heating, cooling = np.maximum(16 - table["outside"], 0), np.maximum(table["outside"] - 23, 0)
per_metre = (
    0.1 + 0.02 * heating + 0.05 * cooling * (table["use"] != "school") + 0.15 * (table["use"] == "shop")
)
table["energy"] = table["floor_space"] * per_metre + rng.normal(0, 20, n)
rows = dd.from_pandas(table[:5000], npartitions=3).persist()

# %%
# One pass over the partitions learns levels and knots. Short fits on the client choose penalty and degree.
# Then each worker takes steps on its own rows, and after every epoch all workers continue from the mean of
# their models.
X, y = rows.drop(columns="energy"), rows["energy"]
on_cluster = TensorMachineRegressor(random_state=0).fit(X, y)
in_memory = TensorMachineRegressor(random_state=0).fit(
    table[:5000].drop(columns="energy"), table["energy"][:5000]
)
X_test, y_test = table[5000:].drop(columns="energy"), table["energy"][5000:]
for name, model in (("cluster", on_cluster), ("in memory", in_memory)):
    print(f"{name}: solver {model.solver_}, {model.n_iter_} iterations, R2 {model.score(X_test, y_test):.4f}")

# %%
# On a Dask dataframe, ``predict`` is lazy: nothing happens until you compute the result or write it to files.
predicted = on_cluster.predict(X)
print(predicted)

# %%
# Both models find that schools have no cooling. They differ a little, because their minibatches differ.
weather = np.linspace(-15, 35, 200)
colours = {"office": "#1f5fa8", "school": "#d9822b", "shop": "#8c6bb1"}
figure, (curves, losses) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
for use, colour in colours.items():
    building = pd.DataFrame({"outside": weather, "floor_space": 800.0, "use": use})
    curves.plot(weather, on_cluster.predict(building), color=colour, linewidth=2, label=use)
    curves.plot(weather, in_memory.predict(building), ":", color="black", linewidth=1.2)
curves.plot([], [], ":", color="black", label="fitted in memory")
curves.set(xlabel="outside (°C)", ylabel="energy (kWh a day)", title="A building of 800 m²")
curves.legend(frameon=False)
loss_curves(on_cluster, ax=losses)
losses.set(xlabel="epoch: one pass over the cluster", title="The fit on the cluster")
plt.show()

# %%
client.close()
cluster.close()
