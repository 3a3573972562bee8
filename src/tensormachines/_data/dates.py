"""Dates as numbers: days since 1970, and positions in the year, the week and the day.

A date in a frame is the local date and time where the rows come from: a date with a time zone keeps its
wall-clock time and loses the zone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

DATES = np.dtype("datetime64[us]")  # of a column of dates; NaT where missing
NO_DATE = np.datetime64("NaT", "us")
HOUR, DAY, MONTH = np.timedelta64(1, "h"), np.timedelta64(1, "D"), np.timedelta64(1, "M")
OFFSET = r"(?:Z|[+-]\d{2}(?::?\d{2})?)?"
DATE = re.compile(rf"(\d{{4}}-\d{{2}}-\d{{2}}(?:[ T]\d{{2}}:\d{{2}}(?::\d{{2}}(?:\.\d{{1,6}})?)?)?){OFFSET}")


@dataclass(frozen=True)
class Cycle:
    """A cycle of ``days``, and the position of dates in it."""

    days: int
    place: Callable[[np.ndarray], np.ndarray]


def is_dates(column: Any) -> bool:
    """Tell whether a column of a frame holds dates."""
    return isinstance(column, np.ndarray) and column.dtype.kind == "M"


# ---- numbers of dates


def days(dates: np.ndarray) -> np.ndarray:
    """Return days since the beginning of 1970, including fractions."""
    return (dates - np.datetime64(0, "us")) / DAY


def from_days(numbers: np.ndarray) -> np.ndarray:
    """Return the dates of days since the beginning of 1970."""
    return np.datetime64(0, "us") + np.round(numbers * (DAY / np.timedelta64(1, "us"))).astype("m8[us]")


def _time_of_year(dates: np.ndarray) -> np.ndarray:
    """Return the month, plus 1/31 for each day after its first: 1 for 1 January, 12.97 for 31 December.

    So a day of the year has the same number in every year."""
    of_month, of_year = dates.astype("datetime64[M]"), dates.astype("datetime64[Y]")
    day = (dates.astype("datetime64[D]") - of_month.astype("datetime64[D]")) / DAY
    return 1 + (of_month - of_year.astype("datetime64[M]")) / MONTH + day / 31


def _weekday(dates: np.ndarray) -> np.ndarray:
    """Return 1 for Monday to 7 for Sunday, as ISO 8601 does; 1970 began with a Thursday."""
    return 1 + (np.floor(days(dates)) + 3) % 7


def _time_of_day(dates: np.ndarray) -> np.ndarray:
    """Return hours since midnight."""
    return (dates - dates.astype("datetime64[D]")) / HOUR


CYCLES = {
    "time of year": Cycle(365, _time_of_year),
    "weekday": Cycle(7, _weekday),
    "time of day": Cycle(1, _time_of_day),
}


def parse_dates(texts: Iterable[str]) -> np.ndarray | None:
    """Return dates such as 2024-05-01 or 2024-05-01 13:45:00, without the offset of a time zone.

    Return None if some text is not a date."""
    plain = []
    for text in texts:
        if (match := DATE.fullmatch(text)) is None:
            return None
        plain.append(match.group(1))
    try:
        return np.array(plain, dtype=DATES)
    except ValueError:  # the 30th of February
        return None
