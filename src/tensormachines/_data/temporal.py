"""Convert dates, durations and times of the day of other libraries to dates (`dates`), seconds and hours.

A date with a time zone keeps its wall-clock time and loses the zone."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from typing import Any

import numpy as np

from .dates import DATES, HOUR, NO_DATE

SECOND, NO_DURATION = np.timedelta64(1, "s"), np.timedelta64("NaT", "us")
NANOSECONDS_OF_HOUR = 3_600_000_000_000
CLASSES: dict[str, tuple[type, ...]] = {
    "date": (date, np.datetime64),
    "duration": (timedelta, np.timedelta64),
    "time": (time,),
}
# Kinds of NumPy and pandas, types of polars, types of pyarrow.
TYPES = {
    "date": ("M", "Date", "Datetime", "date32", "date64", "timestamp"),
    "duration": ("m", "Duration", "duration"),
    "time": ("Time", "time32", "time64"),
}


def what_holds(type_: Any) -> str | None:
    """Return "date", "duration" or "time" for a name in TYPES, None for others."""
    return next((what for what, types in TYPES.items() if type_ in types), None)


def of_objects(what: str, objects: Iterable[Any]) -> np.ndarray:
    """Convert Python objects of the classes of a key of CLASSES, with None for missing ones."""
    if what == "date":
        return np.array([NO_DATE if each is None else _wall_clock(each) for each in objects], dtype=DATES)
    as_span = _since_midnight if what == "time" else np.timedelta64
    spans = [NO_DURATION if each is None else as_span(each) for each in objects]
    return np.array(spans, dtype="timedelta64[us]") / (HOUR if what == "time" else SECOND)


def _wall_clock(moment: Any) -> Any:
    return moment.replace(tzinfo=None) if isinstance(moment, datetime) else moment


def _since_midnight(clock: time) -> np.timedelta64:
    hours, minutes, seconds = clock.hour, clock.minute, clock.second
    since = timedelta(hours=hours, minutes=minutes, seconds=seconds, microseconds=clock.microsecond)
    return np.timedelta64(since)


def of_numpy(values: np.ndarray) -> np.ndarray:
    """Convert an array of datetime64 or timedelta64."""
    return values.astype(DATES) if values.dtype.kind == "M" else values / SECOND


def of_pandas(series: Any) -> np.ndarray:
    """Convert a series of datetime64, perhaps with a time zone, or of timedelta64."""
    return of_numpy((series if series.dtype.kind == "m" else series.dt.tz_localize(None)).to_numpy())


def of_polars(series: Any) -> np.ndarray:
    """Convert a series of a temporal type."""
    import polars

    if series.dtype == polars.Time:
        return series.to_physical().to_numpy() / NANOSECONDS_OF_HOUR
    if series.dtype == polars.Duration:
        return of_numpy(series.to_numpy())
    if series.dtype == polars.Datetime:
        series = series.dt.replace_time_zone(None)
    return of_numpy(series.cast(polars.Datetime("us")).to_numpy())


def dates_of_arrow(array: Any) -> np.ndarray:
    """Convert an array of dates or timestamps."""
    import pyarrow
    from pyarrow import compute

    zone = getattr(array.type, "tz", None)
    moments = array.cast(pyarrow.timestamp("us", zone), safe=False)
    moments = moments if zone is None else compute.local_timestamp(moments)
    return of_numpy(moments.to_numpy(zero_copy_only=False))


def span_of_arrow(array: Any) -> np.ndarray:
    """Convert an array of durations or of times of the day."""
    import pyarrow

    if pyarrow.types.is_duration(array.type):
        return of_numpy(array.to_numpy(zero_copy_only=False))
    counts = array.cast(pyarrow.time64("ns")).cast(pyarrow.int64())
    return counts.to_numpy(zero_copy_only=False) / NANOSECONDS_OF_HOUR
