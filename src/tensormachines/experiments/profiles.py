"""How much of the protocol is run: all of it, as much as a few hours allow, or a little of it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """Numbers of folds, trials and rows (None: all rows), and limits of time."""

    name: str
    folds: int
    most_folds: int  # where a set has so few rows that all are used to choose the minor parameters
    trials: int
    grids: str  # "full", "short" or "two"
    select_rows: int | None  # fewest rows on which the minor parameters are chosen
    most_select_rows: int  # and most, where there are few columns
    rows: int | None
    generated_rows: int | None  # of ebay_like, which can have any number
    test_rows: int | None
    kernel_rows: int
    kernel_trials: int  # trials of KRR differ only in their rows; one is run where it has all of them
    rungs: int  # most values of the major parameter
    rung_seconds: float  # the major parameter is not raised where a fit is expected to take longer
    limit_seconds: float  # of one fit, or one search over a grid
    ranks: tuple[int, ...]
    rank_trials: int
    scaling_rows: tuple[int, ...]
    scaling_epochs: int
    scaling_features: int
    bound_rows: tuple[int, ...]
    starts: int
    download: bool = True


PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "paper",
            folds=10,
            most_folds=10,
            trials=3,
            grids="full",
            select_rows=None,
            most_select_rows=0,
            rows=None,
            generated_rows=500_000,
            test_rows=None,
            kernel_rows=40_000,
            kernel_trials=3,
            rungs=20,
            rung_seconds=8 * 3600,
            limit_seconds=24 * 3600,
            ranks=(1, 2, 3, 4, 5, 6, 7, 8),
            rank_trials=3,
            scaling_rows=(10_000, 50_000, 100_000, 200_000, 400_000, 800_000, 1_100_000),
            scaling_epochs=50,
            scaling_features=800,
            bound_rows=(1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000),
            starts=10,
        ),
        Profile(
            "standard",
            folds=5,
            most_folds=10,
            trials=3,
            grids="short",
            select_rows=5000,
            most_select_rows=20_000,
            rows=None,
            generated_rows=20_000,
            test_rows=None,
            kernel_rows=40_000,
            kernel_trials=1,
            rungs=20,
            rung_seconds=100,
            limit_seconds=1800,
            ranks=(1, 2, 3, 4, 5, 6, 8),
            rank_trials=3,
            scaling_rows=(12_500, 25_000, 50_000, 100_000, 200_000, 400_000),
            scaling_epochs=50,
            scaling_features=800,
            bound_rows=(1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000),
            starts=10,
        ),
        Profile(
            "quick",
            folds=3,
            most_folds=3,
            trials=2,
            grids="two",
            select_rows=500,
            most_select_rows=500,
            rows=1500,
            generated_rows=1500,
            test_rows=2000,
            kernel_rows=1500,
            kernel_trials=1,
            rungs=4,
            rung_seconds=5,
            limit_seconds=60,
            ranks=(1, 2, 4),
            rank_trials=2,
            scaling_rows=(1000, 2000, 4000),
            scaling_epochs=10,
            scaling_features=200,
            bound_rows=(250, 500, 1000, 2000),
            starts=5,
            download=False,
        ),
    )
}
