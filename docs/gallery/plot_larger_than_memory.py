"""
Larger than memory: fit a folder of Parquet files
=================================================

Your table is larger than the memory of your machine and is stored in many files. A source of blocks reads a
part of it at a time, and the model is the same as if all rows were in memory.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tensormachines import TensorMachineRegressor, blocks
from tensormachines.plots import effect_curve

# %%
# We write taxi trips to twelve files, one per month; here they are small.
folder = TemporaryDirectory()
rng = np.random.default_rng(0)
for month in range(1, 13):
    n = 4000
    trips = pd.DataFrame(
        {
            "distance": rng.gamma(2, 3, n),
            "hour": rng.uniform(0, 24, n),
            "zone": rng.choice(["airport", "centre", "suburb"], n, p=[0.1, 0.6, 0.3]),
        }
    )
    traffic = 1 + np.exp(-((trips["hour"] - 8) ** 2) / 4) + np.exp(-((trips["hour"] - 17.5) ** 2) / 6)
    pace = np.where(trips["zone"] == "centre", 3.0, 1.6)
    trips["minutes"] = 4 + pace * traffic * trips["distance"] ** 0.9 + rng.normal(0, 3, n)
    trips.to_parquet(Path(folder.name, f"trips-{month:02}.parquet"))

# %%
# A source knows which column is the target. The fit reads it twice, a block at a time: once to learn levels
# and knots, once to assign the rows at random to parts in a scratch file. So the files may be sorted by time.
# We fit eleven months; ``score`` reads the twelfth, also block by block.
files = sorted(Path(folder.name).glob("*.parquet"))
source = blocks.parquet(files[:11], target="minutes")
december = blocks.parquet(files[11], target="minutes")
model = TensorMachineRegressor(random_state=0).fit(source)
print(f"R2 in December {model.score(december):.4f}")

# %%
# The same rows in memory give the same model, up to rounding.
table = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
rows, minutes = table.drop(columns="minutes"), table["minutes"]
in_memory = TensorMachineRegressor(random_state=0).fit(rows[:44_000], minutes[:44_000])
difference = np.abs(model.predict(december) - in_memory.predict(rows[44_000:])).max()
print(f"predictions differ by at most {difference:.1e} minutes")

# %%
figure, (curve, errors) = plt.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
effect_curve(model, "hour", rows[44_000:], ax=curve)
curve.set(xlabel="hour of the day", ylabel="change of the trip (minutes)", title="Learned from files")
errors.hist2d(
    model.predict(december), minutes[44_000:], bins=80, range=[[0, 80], [0, 80]], cmap="Blues", norm="log"
)
errors.axline((0, 0), slope=1, color="black", linewidth=1)
errors.set(xlabel="predicted (minutes)", ylabel="duration (minutes)", title="4,000 trips in December")
plt.show()
folder.cleanup()

# %%
# CSV, Arrow, NumPy and svmlight files work the same way (``blocks.csv`` and so on), as does anything that
# gives blocks of rows each time you iterate over it (``blocks.iterable``). With ``checkpoint="state.npz"`` a
# killed fit resumes from its last state.
