"""Write the golden files of the current version of the format: once, when it is new. They are never written
again.

python tests/persistence/golden/make.py
"""

import json
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from tensormachines import TensorMachineClassifier, TensorMachineRegressor
from tensormachines.persistence.container import VERSION

FOLDER = Path(__file__).parent


def write(name, model, rows, columns=None):
    path = FOLDER / f"{name}_{VERSION}.tm"
    if path.exists():
        raise SystemExit(f"{path} is there already.")
    table = rows if columns is None else pd.DataFrame(rows, columns=columns, dtype=object)
    facts = {"estimator": type(model).__name__, "columns": columns, "rows": rows}
    if hasattr(model, "classes_"):
        facts |= {"classes": model.classes_.tolist(), "outputs": model.predict_proba(table).tolist()}
    else:
        facts["outputs"] = model.predict(table).tolist()
    model.save(path)
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n")


def main():
    warnings.filterwarnings("ignore", message=".*stopped at max_iter")
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 3)) * [1, 20, 0.1] + [5, 0, 0]
    y = 100 + X[:, 0] * X[:, 1] + 30 * X[:, 2]
    model = TensorMachineRegressor(
        degree=3, rank=2, basis="standard", alpha=1e-4, solver="lbfgs", random_state=0
    ).fit(X, y)
    write("regressor_standard", model, [*X[:4].tolist(), [0, 0, 0], [100.0, -200.0, 3.0]])

    district = random.choice(["north", "south", "harbour"], 300).astype(object)
    district[:2], district[2:20] = ["mill", "castle"], None
    table = pd.DataFrame(
        {
            "area": random.lognormal(4, 0.5, 300).round(),
            "floor": random.integers(0, 4, 300),
            "district": district,
            "lift": district == "south",
        }
    )
    price = table.area * np.where(district == "harbour", 3.0, 2.0) + np.where(table.lift, 4, -6) * table.floor
    table.loc[random.random(300) < 0.1, "area"] = np.nan
    label = np.array(["cheap", "usual", "dear"])[np.searchsorted([110, 170], price)]
    settings = {
        "degree": 2,
        "rank": 2,
        "solver": "lbfgs",
        "max_iter": 30,
        "class_weight": {"cheap": 1, "usual": 1.5, "dear": 2.0},
    }
    rows = [
        [60.0, 2, "north", False],
        [None, 0, "harbour", True],
        [80.0, 1, None, False],
        [1e9, 3, "mill", True],
        [-5.0, 7, "a new one", None],
        [55.5, None, "south", 1],
        [None, None, None, None],
    ]
    write(
        "classifier_spline",
        TensorMachineClassifier(**settings, random_state=0).fit(table, label),
        rows,
        list(table),
    )


if __name__ == "__main__":
    main()
