"""What the paper prints: Yang and Gittens, Tensor machines for learning target-specific polynomial features,
2015, Tables 1 and 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

SATURATED = 0.02  # a method has saturated when what it still gains is less than this share of an error


@dataclass(frozen=True)
class Printed:
    """A cell of Table 2: test error, seconds of training, and the rank of a Tensor Machine or the number of
    features of CRAFTMaps.
    """

    error: float
    seconds: float
    size: int | None = None

    def reached_by(self, error: float) -> bool:
        """At the three digits that the paper gives; as in `beaten_by`."""
        return float(f"{error:.3g}") <= self.error

    def beaten_by(self, error: float) -> bool:
        return float(f"{error:.3g}") < self.error

    def relative_error(self, baseline: Printed) -> float:
        return (self.error - baseline.error) / baseline.error

    def relative_time(self, baseline: Printed) -> float:
        return self.seconds / baseline.seconds

    def time_gain(self, baseline: Printed, relative_time: float) -> float:
        """How many times smaller than the printed one such a time relative to the baseline is."""
        return self.relative_time(baseline) / relative_time if relative_time > 0 else inf


METHODS = ("krr", "tm-batch", "tm-sfo", "craftmaps", "basis-learner", "apple")
_TABLE_2: dict[str, tuple[tuple[float, ...], ...]] = {
    "indoor": (
        (0.00961, 50),
        (0.00802, 3.2, 4),
        (0.0182, 3.9, 4),
        (0.00559, 2.7, 300),
        (0.00241, 97),
        (0.00712, 6.5),
    ),
    "year": (
        (0.00485, 310),
        (0.00565, 85, 5),
        (0.00484, 74, 5),
        (0.00494, 39, 200),
        (0.00496, 67),
        (0.00489, 60),
    ),
    "census": (
        (0.0667, 46),
        (0.0774, 12, 5),
        (0.0802, 45, 5),
        (0.0767, 7.3, 1000),
        (0.0788, 8.1),
        (0.0950, 7.3),
    ),
    "slice": (
        (0.0118, 441),
        (0.0229, 80, 3),
        (0.0213, 73, 3),
        (0.0465, 707, 7000),
        (0.0501, 1034),
        (0.0788, 46),
    ),
    "buzz": (
        (0.407, 624),
        (0.407, 568, 2),
        (0.409, 440, 2),
        (0.408, 2105, 1200),
        (0.373, 2472),
        (0.496, 325),
    ),
    "gisette": (
        (0.027, 6.6),
        (0.0266, 16, 4),
        (0.0254, 29, 4),
        (0.0300, 63, 11500),
        (0.0270, 62),
        (0.0240, 32),
    ),
    "adult": ((0.150, 182), (0.149, 0.9, 4), (0.151, 2.0, 4), (0.154, 17, 700), (0.149, 30), (0.150, 0.8)),
    "forest": (
        (0.148, 361),
        (0.184, 657, 5),
        (0.178, 569, 5),
        (0.196, 1023, 750),
        (0.180, 3494),
        (0.219, 14),
    ),
    "ebay": ((0.197, 446), (0.197, 612, 5), (0.192, 349, 5), (0.281, 1054, 800), (0.281, 1642), (0.269, 122)),
    "cod_rna": (
        (0.0446, 423),
        (0.0453, 8.4, 3),
        (0.0489, 7.2, 3),
        (0.0462, 19, 200),
        (0.0493, 1.7),
        (0.0489, 4.2),
    ),
}
PRINTED: dict[str, dict[str, Printed]] = {
    name: {
        method: Printed(cell[0], cell[1], int(cell[2]) if len(cell) > 2 else None)
        for method, cell in zip(METHODS, cells, strict=True)
    }
    for name, cells in _TABLE_2.items()
}


@dataclass(frozen=True)
class Shape:
    """A row of Table 1: rows for training and for testing, columns, task and the degree q."""

    rows: int
    test_rows: int
    columns: int
    task: str
    degree: int


SHAPES: dict[str, Shape] = {
    "indoor": Shape(19_937, 11_114, 520, "regression", 3),
    "year": Shape(463_715, 51_630, 90, "regression", 2),
    "census": Shape(18_186, 2_273, 119, "regression", 2),
    "slice": Shape(42_291, 10_626, 384, "regression", 5),
    "buzz": Shape(466_600, 116_650, 77, "regression", 3),
    "gisette": Shape(6_000, 1_000, 5_000, "binary", 3),
    "adult": Shape(32_561, 16_281, 122, "binary", 3),
    "forest": Shape(522_910, 58_102, 54, "binary", 4),
    "ebay": Shape(500_000, 100_000, 478, "binary", 3),
    "cod_rna": Shape(59_535, 157_413, 8, "binary", 4),
}
