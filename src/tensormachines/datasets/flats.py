"""Synthetic flats and their rents: an example with categories, booleans, missing values and interactions."""

from __future__ import annotations

from typing import Any

import numpy as np

ROWS, NEW_ROWS = 3000, 1000
DISTRICTS = {
    "Harbour": 1.25,
    "Old Town": 1.35,
    "University": 1.1,
    "Parkside": 1.0,
    "Mill Quarter": 0.85,
    "Station": 0.8,
}
HEATING = {"district": 0.0, "gas": -10.0, "electric": -45.0, "heat pump": 30.0}
CONDITIONS = ["needs work", "fair", "good", "renovated"]


def flats(n_rows: int, seed: int) -> dict[str, list[Any]]:
    """Return columns by name, as in a CSV file: an empty string is missing.

    The price per square metre depends on the combination of district and condition. A balcony is worth more
    on high floors, and high floors are worth more with a lift and less without one."""
    rng = np.random.default_rng(seed)
    district = rng.choice(list(DISTRICTS), n_rows, p=[0.12, 0.15, 0.2, 0.25, 0.16, 0.12])
    size = np.round(np.clip(rng.gamma(7.0, 10.0, n_rows), 18, 180), 1)
    rooms = np.clip(np.round(size / 27 + rng.normal(0, 0.6, n_rows)), 1, 7).astype(int)
    floor = rng.integers(0, 9, n_rows)
    lift = rng.random(n_rows) < np.where(floor > 3, 0.75, 0.3)
    balcony = rng.random(n_rows) < 0.45
    built = np.round(np.clip(rng.normal(1968, 32, n_rows), 1880, 2024)).astype(int)
    condition = np.clip(np.round((built - 1900) / 45 + rng.normal(0, 0.9, n_rows)), 0, 3).astype(int)
    heating = rng.choice(list(HEATING), n_rows, p=[0.4, 0.35, 0.15, 0.1])
    metre = (
        9.5 * np.array([DISTRICTS[name] for name in district]) * np.array([0.82, 0.95, 1.05, 1.22])[condition]
    )
    rent = (
        120
        + metre * size * (size / 60) ** -0.15
        + balcony * (15 + 14 * floor)
        + np.where(lift, 18 * floor, -38 * np.maximum(floor - 1, 0))
    )
    rent += (
        np.array([HEATING[name] for name in heating])
        + 0.012 * (built - 1955) ** 2
        + rng.normal(0, 35, n_rows)
    )
    columns: dict[str, list[Any]] = {
        "id": [f"F{seed}{number:05d}" for number in range(n_rows)],
        "district": district.tolist(),
        "size": size.tolist(),
        "rooms": rooms.tolist(),
        "floor": floor.tolist(),
        "lift": lift.tolist(),
        "balcony": balcony.tolist(),
        "built": built.tolist(),
        "condition": [CONDITIONS[code] for code in condition],
        "heating": heating.tolist(),
        "rent": np.round(rent).astype(int).tolist(),
    }
    for name, share in (("built", 0.08), ("condition", 0.06), ("lift", 0.03), ("heating", 0.05)):
        columns[name] = [
            "" if gone else value
            for gone, value in zip(rng.random(n_rows) < share, columns[name], strict=True)
        ]
    return columns
