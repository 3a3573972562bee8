"""A generated table of mixed columns, of any number of rows, as Parquet files: 40 columns of numbers, 10 of
text with 2 to 100,000 levels, and gaps. The target is a number.

The first rows are the same whatever their number, because every file of 250,000 rows has a seed of its own.
The truth has curves, a step, products of numbers, effects of levels, slopes that differ by level, an effect
of a gap, and noise with a standard deviation of 0.5, which is the least root mean squared error."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

TARGET, NOISE = "target", 0.5
NUMBERS, LEVELS = 40, (2, 3, 5, 8, 12, 30, 100, 1000, 5000, 100_000)
ROWS_PER_FILE, TEST_ROWS = 250_000, 200_000
GAPS, SHARE_OF_GAPS = 12, 0.05  # in the last so many columns of numbers, and in every third one of text
TRAINING, TESTING = 1, 2  # streams of random numbers


def write_rows(folder: Path, rows: int) -> Path:
    """Return a folder with the first so many rows, in files that are linked to, or written once."""
    found = folder / f"rows-{rows}"
    found.mkdir(parents=True, exist_ok=True)
    for number in range(-(-rows // ROWS_PER_FILE)):
        n_rows = min(ROWS_PER_FILE, rows - number * ROWS_PER_FILE)
        name = f"{number:04d}.parquet"
        if (found / name).exists():
            continue
        if n_rows < ROWS_PER_FILE:
            write(found / name, TRAINING, number, n_rows)
            continue
        shared = folder / "all" / name
        shared.parent.mkdir(exist_ok=True)
        if not shared.exists():
            write(shared, TRAINING, number, n_rows)
        (found / name).hardlink_to(shared)
    return found


def write_test_rows(folder: Path, rows: int = TEST_ROWS) -> Path:
    """Return a file of rows to test on, none of which is among the others."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"test-{rows}.parquet"
    if not path.exists():
        write(path, TESTING, 0, rows)
    return path


def write(path: Path, stream: int, number: int, rows: int) -> None:
    """Write a file, which appears when it is complete."""
    scratch = path.with_suffix(".part")
    text = [name for name in names() if name.startswith("text")]
    parquet.write_table(generated(stream, number, rows), scratch, row_group_size=50_000, use_dictionary=text)
    scratch.rename(path)


def names() -> list[str]:
    """Return the names of all columns but the target."""
    return [f"number{j:02d}" for j in range(NUMBERS)] + [f"text{j}" for j in range(len(LEVELS))]


def generated(stream: int, number: int, rows: int) -> pa.Table:
    """Return the first rows of a file."""
    rng = np.random.default_rng([stream, number])
    numbers = rng.standard_normal((NUMBERS, ROWS_PER_FILE))
    numbers[30:34] = np.exp(numbers[30:34])  # heavy tails
    numbers[34:37] = np.round(3 * numbers[34:37])  # whole numbers
    codes = [_levels(rng, n_levels) for n_levels in LEVELS]
    gaps = rng.random((GAPS, ROWS_PER_FILE)) < SHARE_OF_GAPS
    target = truth(numbers, codes) + 0.5 * gaps[0] + NOISE * rng.standard_normal(ROWS_PER_FILE)
    columns = [
        pa.array(each[:rows], mask=gaps[j - NUMBERS + GAPS, :rows] if j >= NUMBERS - GAPS else None)
        for j, each in enumerate(numbers)
    ]
    for j, (each, n_levels) in enumerate(zip(codes, LEVELS, strict=True)):
        level_names = pa.array([f"level {level}" for level in range(n_levels)])
        indices = pa.array(each[:rows], mask=gaps[j, :rows] if j % 3 == 0 else None)
        columns.append(pa.DictionaryArray.from_arrays(indices, level_names).cast(pa.string()))
    return pa.table([*columns, pa.array(target[:rows])], [*names(), TARGET])


def _levels(rng: np.random.Generator, n_levels: int) -> np.ndarray:
    """Return levels of which the k-th is drawn about as often as 1 / k."""
    return ((n_levels + 1) ** rng.random(ROWS_PER_FILE) - 1).astype(np.int32).clip(max=n_levels - 1)


def truth(numbers: np.ndarray, codes: list[np.ndarray]) -> np.ndarray:
    """Return the expected target, but for the effect of a gap."""
    rng = np.random.default_rng(0)
    effects = [rng.standard_normal(n_levels) for n_levels in LEVELS]
    slopes = rng.standard_normal(LEVELS[6])
    n = numbers
    curves = np.sin(2 * n[0]) + np.abs(n[1]) + np.tanh(n[30] - 1) + 0.2 * n[34] + (n[2] > 0.5)
    products = 0.7 * n[3] * n[4] + 0.5 * n[5] * np.tanh(n[6]) + 0.5 * n[7] * slopes[codes[6]]
    levels = 0.5 * effects[9][codes[9]] + 0.4 * effects[8][codes[8]] + 0.4 * effects[5][codes[5]]
    pairs = 0.4 * effects[3][codes[3]] * effects[4][codes[4]]
    return curves + products + levels + pairs
