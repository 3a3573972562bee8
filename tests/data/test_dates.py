"""Dates, durations and times of the day: what they become, from whatever library they come."""

from datetime import date, datetime, time, timedelta, timezone

import numpy as np
import pytest

from row_blocks import fails
from tensormachines import blocks
from tensormachines._data import encoding
from tensormachines._data.column_counts import count_columns
from tensormachines._data.dataframes import read_frame
from tensormachines._data.dates import DATES, parse_dates
from tensormachines._data.encoding import Column, Columns, columns_of
from tensormachines._data.files.source import ReadAgainError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

pyarrow = pytest.importorskip("pyarrow")

EVERY_CYCLE = ("time of year", "weekday", "time of day")
MOMENTS = [
    datetime(2024, 2, 29, 13, 45, 30, 250_000),
    datetime(1969, 12, 31, 23, 59, 59),
    datetime(2023, 12, 31, 0, 0, 1),
    None,
    datetime(1970, 1, 1),
]
IN_BERLIN = pd.Series(pd.to_datetime(["2024-03-31 00:30", "2024-03-31 01:30", None])).dt.tz_localize("UTC")


def encoded(X, cycles=EVERY_CYCLE):
    return Columns(None, (Column(cycles=cycles),)).encode(read_frame(X, ["date"]))


def expected(moments):
    """The numbers of dates, by Python's own calendar."""
    return [
        [np.nan] * 4
        if moment is None
        else [
            (moment - datetime(1970, 1, 1)) / timedelta(days=1),
            moment.month + (moment.day - 1) / 31,
            moment.isoweekday(),
            (moment - datetime.combine(moment, time())) / timedelta(hours=1),
        ]
        for moment in moments
    ]


def forms_of(values):
    """One column as every library has it."""
    yield pd.DataFrame({"t": pd.Series(values, dtype="datetime64[us]")})
    yield pd.DataFrame({"t": pd.Series(values, dtype="datetime64[ns]")})
    yield pd.DataFrame({"t": pd.Series(values, dtype=object)})
    yield pd.DataFrame({"t": pd.Series(values, dtype=pd.ArrowDtype(pyarrow.timestamp("us")))})
    yield pl.DataFrame({"t": pl.Series(values, dtype=pl.Datetime("us"))})
    yield pl.DataFrame({"t": pl.Series(values, dtype=pl.Datetime("ns"))})
    yield pyarrow.table({"t": pyarrow.array(values, pyarrow.timestamp("us"))})
    yield np.array(values, dtype="datetime64[us]")[:, None]
    yield np.array(values, dtype=object)[:, None]
    yield [[value] for value in values]
    yield [{"t": value} for value in values]
    yield pd.DataFrame({"t": [None if value is None else value.isoformat() for value in values]})


@pytest.mark.parametrize("number", range(12))
def test_dates_are_days_and_places_in_cycles(number):
    form = list(forms_of(MOMENTS))[number]
    np.testing.assert_allclose(encoded(form), expected(MOMENTS), rtol=0, atol=1e-9)


def test_days_without_time():
    days = [date(2024, 2, 29), None, date(2023, 12, 31)]
    midnights = [None if day is None else datetime.combine(day, time()) for day in days]
    forms = [
        pd.DataFrame({"t": days}),
        pl.DataFrame({"t": days}),
        pyarrow.table({"t": pyarrow.array(days, pyarrow.date32())}),
        pyarrow.table({"t": pyarrow.array(days, pyarrow.date64())}),
        pd.DataFrame({"t": ["2024-02-29", None, "2023-12-31"]}),
        pd.DataFrame({"t": pd.Series([days[0], None, midnights[2]], dtype=object)}),
    ]
    for form in forms:
        np.testing.assert_allclose(encoded(form), expected(midnights), rtol=0, atol=1e-9)


def test_a_day_of_the_year_has_the_same_number_in_every_year():
    numbers = [encoded(pd.DataFrame({"t": pd.to_datetime([f"{y}-12-24 18:00"])}))[0, 1] for y in (2023, 2024)]
    assert numbers[0] == numbers[1] == 12 + 23 / 31


def test_dates_in_a_time_zone_are_those_of_its_wall_clock():
    local = IN_BERLIN.dt.tz_convert("Europe/Berlin")  # summer time began between the two
    wall_clock = expected([datetime(2024, 3, 31, 1, 30), datetime(2024, 3, 31, 3, 30), None])
    in_utc = expected([datetime(2024, 3, 31, 0, 30), datetime(2024, 3, 31, 1, 30), None])
    frame = pd.DataFrame({"t": local})
    for form in (
        frame,
        pl.from_pandas(frame),
        pyarrow.Table.from_pandas(frame),
        frame.astype(object),
        frame.astype(str).replace("NaT", None),
    ):
        np.testing.assert_allclose(encoded(form), wall_clock, rtol=0, atol=1e-9)
    np.testing.assert_allclose(encoded(pd.DataFrame({"t": IN_BERLIN})), in_utc, rtol=0, atol=1e-9)
    west = [datetime(2024, 3, 30, 19, 30, tzinfo=timezone(timedelta(hours=-5)))]
    np.testing.assert_allclose(encoded([west]), expected([west[0].replace(tzinfo=None)]), rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("values", "types", "numbers"),
    [
        (
            [timedelta(hours=1, microseconds=500), None, timedelta(days=-2)],
            ("timedelta64[ns]", pl.Duration("us"), pyarrow.duration("us")),
            [3600.0005, np.nan, -172_800],
        ),
        (
            [time(13, 45), None, time(0, 0, 36), time(23, 59, 59, 999_999)],
            (object, pl.Time, pyarrow.time64("us")),
            [13.75, np.nan, 0.01, 24 - 1e-6 / 3600],
        ),
    ],
)
def test_durations_are_seconds_and_times_of_the_day_are_hours(values, types, numbers):
    in_pandas, in_polars, in_arrow = types
    for form in (
        pd.DataFrame({"t": pd.Series(values, dtype=in_pandas)}),
        pd.DataFrame({"t": pd.Series(values, dtype=object)}),
        pl.DataFrame({"t": pl.Series(values, dtype=in_polars)}),
        pyarrow.table({"t": pyarrow.array(values, in_arrow)}),
        [[value] for value in values],
    ):
        columns = encoding.learn_columns(read_frame(form))
        assert columns.kinds == ("number",)
        np.testing.assert_allclose(columns.encode(read_frame(form))[:, 0], numbers, rtol=1e-15)
    assert read_frame(np.array([[90]], dtype="timedelta64[m]")).columns[0].tolist() == [5400.0]


# ---- which cycles


@pytest.mark.parametrize(
    ("moments", "cycles"),
    [
        (pd.date_range("2020-01-01", periods=800, freq="7h"), ("weekday", "time of day")),
        (pd.date_range("2020-01-01", periods=800, freq="29h"), EVERY_CYCLE),
        (pd.date_range("2020-01-01", periods=800, freq="D"), ("time of year", "weekday")),
        (pd.date_range("2020-01-06", periods=800, freq="7D"), ("time of year",)),
        (pd.date_range("2020-01-01", periods=24, freq="MS"), ("time of year", "weekday")),
        (pd.date_range("2020-01-01", periods=6, freq="D"), ()),
        (pd.date_range("2020-01-01", periods=6, freq="h"), ()),
        (pd.date_range("2020-01-01 12:00", periods=6, freq="20h"), ("time of day",)),
        (pd.DatetimeIndex(["2020-01-01"] * 3), ()),
        (pd.DatetimeIndex([None, None]), ()),
    ],
)
def test_cycles_are_those_that_the_rows_have_been_through(moments, cycles):
    frame = read_frame(pd.DataFrame({"t": moments}))
    columns = encoding.learn_columns(frame)
    assert columns.columns == (Column(cycles=cycles),)
    assert columns.encoded_names == ("t: days", *(f"t: {cycle}" for cycle in cycles))
    assert columns.n_codes == (None,) * len(columns.encoded)
    pieces = count_columns(frame[:1]) + count_columns(frame[1:])
    assert columns_of(("t",), pieces) == columns
    doubled = read_frame(pd.DataFrame({"t": [*moments, pd.Timestamp("1950-05-05 05:05")]}))
    weight = np.append(np.ones(len(moments)), 0)
    assert encoding.learn_columns(doubled, weight) == columns


def test_columns_next_to_dates_keep_their_places():
    frame = pd.DataFrame(
        {
            "kind": ["a", "b"] * 10,
            "t": pd.date_range("2020-01-01", periods=20, freq="D"),
            "t: weekday": np.arange(20.0),
        }
    )
    columns = encoding.learn_columns(read_frame(frame))
    assert columns.kinds == ("category", "date", "number")
    assert columns.encoded_names == ("kind", "t: days", "t: weekday", "t: weekday (2)")
    assert columns.n_codes == (2, None, None, None)
    assert columns.starts.tolist() == [0, 1, 3]
    np.testing.assert_array_equal(columns.sums(np.array([[1.0, 2, 3, 4]])), [[1, 5, 4]])
    matrix = columns.encode(read_frame(frame))
    np.testing.assert_array_equal(matrix[:, 3], frame["t: weekday"])
    np.testing.assert_array_equal(matrix[:, 0], [0.0, 1.0] * 10)
    unnamed = encoding.learn_columns(read_frame(frame.to_numpy()))
    assert unnamed.encoded_names == ("x0", "x1: days", "x1: weekday", "x2")
    small = encoding.learn_columns(read_frame(frame)).encode(read_frame(frame.astype({"t: weekday": "f4"})))
    assert small.dtype == np.float64


# ---- refused


def test_other_kinds_than_in_the_fit_are_refused():
    def changed(fitted, given, message):
        columns = encoding.learn_columns(read_frame(pd.DataFrame({"t": fitted})))
        with pytest.raises(ValueError, match=message):
            columns.encode(read_frame(pd.DataFrame({"t": given}), columns.kinds))

    dates = pd.date_range("2020-01-01", periods=3)
    changed(dates, [1.0, 2.0, 3.0], "column 't' held dates in the fit, now it holds numbers")
    changed(dates, ["2020-01-01", "soon", None], "held dates in the fit, now it holds strings such as 'soon'")
    changed([1.0, 2.0, 3.0], dates, "held numbers in the fit, now it holds dates")
    changed(["a", "b", "a"], dates, "held strings in the fit, now it holds dates")
    missing = encoded(pd.DataFrame({"t": [None, None]})), encoded(pd.DataFrame({"t": [np.nan, np.nan]}))
    assert np.isnan(missing).all()
    with pytest.raises(ValueError, match="column 't' holds dates, not numbers"):
        np.asarray(read_frame(pd.DataFrame({"t": dates})))


@pytest.mark.parametrize(
    ("text", "is_date"),
    [
        ("2024-05-01", True),
        ("2024-05-01 13:45", True),
        ("2024-05-01T13:45:00.5", True),
        ("2024-05-01T13:45:00Z", True),
        ("2024-05-01 13:45:00+0200", True),
        ("2024-02-30", False),
        ("2024-05", False),
        ("01.05.2024", False),
        ("2024-05-01 24:30", False),
        ("2024-05-01 soon", False),
        ("20240501", False),
    ],
)
def test_texts_that_are_dates(text, is_date):
    dates = parse_dates([text, "2000-01-01"])
    assert (dates is not None) == is_date
    if dates is not None:
        assert dates.dtype == DATES
        assert dates[0] == np.datetime64(text[:19].replace("Z", "")) + np.timedelta64(
            500 * text.count(".5"), "ms"
        )


# ---- files

ROWS = 50
HOURS = pd.date_range("2024-01-01", periods=ROWS, freq="5h")
TABLE = pd.DataFrame({"when": HOURS, "x": np.arange(ROWS) / 2, "y": np.arange(ROWS)})


def columns_of_file(source):
    """The columns that all chunks together give, and the frame."""
    chunks = list(source.first_pass())
    counts = [count_columns(chunk.X) for chunk in chunks]
    total = counts[0]
    for each in counts[1:]:
        total = total + each
    return columns_of(source.feature_names, total), np.concatenate(
        [chunk.X.column("when") for chunk in chunks]
    )


def test_dates_in_csv(tmp_path):
    path = tmp_path / "t.csv"
    TABLE.to_csv(path, index=False)
    columns, when = columns_of_file(blocks.csv(path, "y", rows=7))
    assert columns.kinds == ("date", "number")
    assert columns.columns[0].cycles == ("weekday", "time of day")
    np.testing.assert_array_equal(when, HOURS.to_numpy())
    TABLE.assign(when=HOURS.where(HOURS[20] < HOURS)).to_csv(path, index=False)  # missing at first
    source = blocks.csv(path, "y", rows=7)
    with pytest.raises(ReadAgainError):
        columns_of_file(source)
    np.testing.assert_array_equal(columns_of_file(source)[1], HOURS.where(HOURS[20] < HOURS).to_numpy())
    texts = TABLE.assign(when=[*HOURS.astype(str)[:-1], "later"])
    texts.to_csv(path, index=False)
    chunks = list(blocks.csv(path, "y", rows=7))
    assert chunks[-1].X.column("when").names[-1] == "later"  # a category after all
    fails(lambda: blocks.csv(path, "y", number=["when"]), "data row 1", "'2024-01-01 00:00:00'", "a number")
    assert next(iter(blocks.csv(path, "when"))).y[0] == "2024-01-01 00:00:00"  # classes are text


def test_dates_in_parquet(tmp_path):
    table = TABLE.assign(
        day=HOURS.date,
        local=HOURS.tz_localize("UTC").tz_convert("Asia/Tokyo"),
        lasted=HOURS - HOURS[0],
        clock=HOURS.time,
    )
    table.loc[3, ["when", "day", "local", "lasted", "clock"]] = None
    table.to_parquet(tmp_path / "t.parquet")
    source = blocks.parquet(tmp_path / "t.parquet", "y", rows=7)
    columns, _ = columns_of_file(source)
    assert columns == encoding.learn_columns(read_frame(table.drop(columns="y")))
    assert columns.kinds == ("date", "number", "date", "date", "number", "number")
    matrix = np.concatenate([chunk.X for chunk in source.encoded(columns, missing=True)])
    np.testing.assert_array_equal(matrix, columns.encode(read_frame(table.drop(columns="y"))))
    fails(lambda: blocks.parquet(tmp_path / "t.parquet", "when"), "column 'when'", "numbers or text needed")
    fails(lambda: blocks.parquet(tmp_path / "t.parquet", "y", "when"), "column 'when'", "numbers needed")
    TABLE.assign(when=1.0).to_parquet(tmp_path / "u.parquet")
    both = [tmp_path / "t.parquet", tmp_path / "u.parquet"]
    fails(lambda: blocks.parquet(both, "y", columns=["when"]), "u.parquet", "column 'when'", "double")
