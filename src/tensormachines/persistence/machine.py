"""A machine and its columns in a file, as JSON and arrays.

    {"terms", "shared", "degree", "rank", "n_outputs", "n_columns", "basis", "columns", "present", "values"}

``values`` are the intercepts, the linear coefficients (n_outputs, width) and then, degree by degree, the
factors (n_outputs, rank, p, width), each in C order. If ``shared``, which older files lack, the weights
(n_outputs, degree - 1, rank) follow the linear coefficients, and the factors are (1, rank, p, width). If many
values are 0, the zeros are left out, and ``present`` has a bit for each value. ``columns`` is null if the
model was fitted to a matrix of numbers, and otherwise {"names", "levels", "rare"} of the columns of the
frame. A spline basis also has ``trends``, for each column the sum of `SplineColumn.trend` and ``outer``;
``jumps``, the concatenated jumps of all columns, with ``n_jumps`` per column; and ``periodic``, which columns
are periodic. Older files lack ``trends`` and ``periodic``. Arrays are given by their indices in the list of
arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from .._data.dates import CYCLES
from .._data.encoding import Column, Columns
from .._model.affine_basis import AffineBasis
from .._model.basis import BASES, Basis
from .._model.description import basis_name
from .._model.layout import AnovaLayout, Layout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from .._model.spline_column import SplineColumn, SplineShape
from .container import require
from .values import Arrays

# Zeros are left out if the share of non-zero parameters is between these bounds: with fewer, a small file
# could expand to a huge model; with more, nothing is gained.
FEWEST_PRESENT, MOST_PRESENT = 1 / 8, 15 / 16
MOST_WAVES = 256  # of a column: they are tabulated at all knots
LAYOUTS = {"products": Layout, "anova": AnovaLayout}


def machine_to(machine: Machine, columns: Columns | None, arrays: list[np.ndarray]) -> dict[str, Any]:
    """Return the facts about a machine; its arrays are appended to ``arrays``."""

    def keep(array: np.ndarray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    layout, basis = machine.layout, machine.basis
    params = _in_order(machine.params, layout)
    present = params != 0
    is_sparse = FEWEST_PRESENT <= present.mean() <= MOST_PRESENT
    return {
        "terms": "anova" if isinstance(layout, AnovaLayout) else "products",
        "shared": layout.shared,
        "degree": layout.degree,
        "rank": layout.rank,
        "n_outputs": layout.n_outputs,
        "n_columns": basis.n_columns,
        "basis": _spline_to(basis, keep) if isinstance(basis, SplineBasis) else _affine_to(basis, keep),
        "columns": None if columns is None else _columns_to(columns),
        "present": keep(np.packbits(present)) if is_sparse else None,
        "values": keep(params[present] if is_sparse else params),
    }


def _affine_to(basis: Basis, keep: Callable[[np.ndarray], int]) -> dict[str, Any]:
    scaled = {}
    if basis.shift is not None and basis.scale is not None:
        scaled = {"center": keep(basis.shift), "scale": keep(basis.scale)}
    return {
        "name": basis_name(basis),
        **scaled,
        "clip": float(basis.clip) if np.isfinite(basis.clip) else None,
        "constant": float(basis.constant),
        "unit_rows": basis.unit_rows,
    }


def _spline_to(basis: SplineBasis, keep: Callable[[np.ndarray], int]) -> dict[str, Any]:
    """Keep what cannot be computed from the rest; knots of numeric columns and means are concatenated."""
    columns = basis.columns
    knots = [np.zeros(0), *(column.knots for column in columns if not column.category)]
    return {
        "name": "spline",
        **asdict(basis.shape),
        "category": keep(np.array([column.category for column in columns])),
        "missing": keep(np.array([column.missing for column in columns])),
        "count": keep(np.array([len(column.knots) for column in columns], dtype=np.int32)),
        "waves": keep(np.array([column.waves for column in columns], dtype=np.int32)),
        "reference": keep(np.array([column.reference for column in columns], dtype=np.int32)),
        "moments": keep(np.array([[column.mean, column.deviation] for column in columns])),
        "knots": keep(np.concatenate(knots)),
        "center": keep(basis.center),
        "trends": keep(np.array([column.trend + column.outer for column in columns], dtype=np.uint8)),
        "n_jumps": keep(np.array([len(column.jumps) for column in columns], dtype=np.int32)),
        "jumps": keep(np.array([knot for column in columns for knot in column.jumps], dtype=np.int32)),
        "periodic": keep(np.array([column.periodic for column in columns])),
    }


def _columns_to(columns: Columns) -> dict[str, Any]:
    return {
        "names": None if columns.names is None else list(columns.names),
        "levels": [None if column.levels is None else list(column.levels) for column in columns.columns],
        "rare": [column.pooled for column in columns.columns],
        "cycles": [None if column.cycles is None else list(column.cycles) for column in columns.columns],
    }


# ---- reading


class Facts:
    """A JSON object whose entries are checked when they are read."""

    def __init__(self, facts: Any, arrays: Arrays):
        require(isinstance(facts, dict), "an object is missing")
        self.facts, self.arrays = facts, arrays

    def __call__(self, name: str, *kinds: type | None) -> Any:
        """Return an entry of one of these types; None stands for null."""
        known = name in self.facts and any(type(self.facts[name]) is (kind or type(None)) for kind in kinds)
        require(known, f"{name} is missing or has a wrong type")
        return self.facts[name]

    def integer(self, name: str, at_least: int = 1) -> int:
        require(self(name, int) >= at_least, f"{name} is too small")
        return self.facts[name]

    def number(self, name: str) -> float:
        return float(self(name, int, float))

    def array(self, name: str, dtypes: str, *shape: int | None) -> np.ndarray:
        """Return a finite array of one of the ``dtypes``; None in ``shape`` is any length."""
        array = self.arrays.take(self.integer(name, 0))
        require(array.dtype.str.lstrip("<>|=") in dtypes.split(), f"{name} has a wrong type")
        fits = array.ndim == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        require(fits, f"{name} has a wrong shape")
        require(bool(np.isfinite(array).all()), f"{name} has numbers that are not finite")
        return array


def machine_from(facts: Any, arrays: Arrays) -> tuple[Machine, Columns | None]:
    """Return the machine, and the columns if the model reads frames."""
    read = Facts(facts, arrays)
    n_columns = read.integer("n_columns")
    of_basis = Facts(read("basis", dict), arrays)
    basis = (_spline_from if of_basis("name", str, None) == "spline" else _affine_from)(of_basis, n_columns)
    of_columns = read("columns", dict, None)
    columns = None if of_columns is None else _columns_from(Facts(of_columns, arrays), n_columns)
    _check_levels(basis, columns)
    require(read("terms", str) in LAYOUTS, "its terms are unknown")
    degree, rank, n_outputs = (read.integer(name) for name in ("degree", "rank", "n_outputs"))
    shared = read("shared", bool) if "shared" in facts else False
    layout = LAYOUTS[facts["terms"]](basis.width, degree, rank, n_outputs, shared)
    params = _params(read, layout)
    numbers = basis.center if isinstance(basis, SplineBasis) else basis.shift
    same_type = numbers is None or numbers.dtype == params.dtype
    require(same_type and rank < 1 << 31, "its numbers are of two types")
    flat = np.empty_like(params)
    flat[_in_order(np.arange(layout.size), layout)] = params
    return Machine(basis, layout, flat), columns


def _params(read: Facts, layout: Layout) -> np.ndarray:
    """Return all parameters in the order of the file; sizes are compared before anything is allocated."""
    size = layout.size
    values = read.array("values", "f4 f8", None)
    if read("present", int, None) is None:
        require(len(values) == size, "the number of parameters does not fit its shape")
        return values
    require(size <= len(values) / FEWEST_PRESENT, "there are too few parameters for its shape")
    present = np.unpackbits(read.array("present", "u1", (size + 7) // 8)).astype(bool)
    fits = not present[size:].any() and np.count_nonzero(present) == len(values)
    require(fits, "the number of parameters differs from the number of bits that are set")
    params = np.zeros(size, dtype=values.dtype)
    params[present[:size]] = values
    return params


def _in_order(params: np.ndarray, layout: Layout) -> np.ndarray:
    """Return parameters in the order of the file."""
    linear, factors = layout.linear(params).T, layout.factors_by_degree(params).values()
    each = [layout.bias(params), linear, layout.weights(params), *factors]
    return np.concatenate([array.ravel() for array in each])


def _affine_from(read: Facts, n_columns: int) -> AffineBasis:
    name, constant, unit_rows = read("name", str, None), read.number("constant"), read("unit_rows", bool)
    clip = np.inf if read("clip", int, float, None) is None else read.number("clip")
    known = clip > 0 and constant >= 0 and (name is None or name in BASES)
    require(known, "its basis is unknown")
    if name is None:
        require(clip == np.inf and constant == 0 and not unit_rows, "its basis is unknown")
        return AffineBasis(n_columns)
    center, scale = (read.array(part, "f4 f8", n_columns) for part in ("center", "scale"))
    require(center.dtype == scale.dtype, "its basis has numbers of two types")
    return AffineBasis(n_columns, center, scale, clip, constant, unit_rows)


def _spline_from(read: Facts, n_columns: int) -> SplineBasis:
    shape = SplineShape(**{field.name: read.number(field.name) for field in fields(SplineShape)})
    possible = all(0 < number < np.inf for number in asdict(shape).values())
    require(possible, "its splines have an impossible shape")
    category, missing = (read.array(name, "b1", n_columns).tolist() for name in ("category", "missing"))
    counts, waves, references = (
        read.array(name, "i4", n_columns).tolist() for name in ("count", "waves", "reference")
    )
    moments = read.array("moments", "f8", n_columns, 2).tolist()
    trends = read.array("trends", "u1", n_columns).tolist() if "trends" in read.facts else [0] * n_columns
    jumps = _jumps(read, n_columns)
    known = "periodic" in read.facts
    periodic = read.array("periodic", "b1", n_columns).tolist() if known else [False] * n_columns
    center = read.array("center", "f4 f8", None)
    shapes = zip(category, counts, waves, moments, trends, jumps, strict=True)
    width = sum(
        count if is_category else wave + (line > 0) + (trend > 0) + len(of_column)
        for is_category, count, wave, (_, line), trend, of_column in shapes
    )
    fits = min([*counts, *waves]) >= 0 and width + sum(missing) == len(center)
    require(fits, "the number of its splines differs from that of their means")
    numbers = [0 if is_category else count for is_category, count in zip(category, counts, strict=True)]
    knots = np.split(read.array("knots", "f8", sum(numbers)), np.cumsum(numbers)[:-1])
    columns = []
    for j, of_column in enumerate(knots):
        of_column = np.arange(counts[j], dtype=np.float64) if category[j] else of_column.copy()
        mean, deviation = moments[j]
        facts = category[j], missing[j], references[j], waves[j], mean, deviation
        others = trends[j] > 0, trends[j] > 1, tuple(jumps[j].tolist()), periodic[j]
        column = SplineColumn(of_column, *facts, *others)
        _check_spline(column)
        columns.append(column)
    return SplineBasis(tuple(columns), center, shape)


def _jumps(read: Facts, n_columns: int) -> list[np.ndarray]:
    """Return the jumps of each column; older files have none."""
    if "n_jumps" not in read.facts:
        return [np.zeros(0, np.int32)] * n_columns
    numbers = read.array("n_jumps", "i4", n_columns).astype(np.int64)
    require(bool((numbers >= 0).all()), "a column has an impossible number of jumps")
    return np.split(read.array("jumps", "i4", int(numbers.sum())), np.cumsum(numbers)[:-1])


def _check_spline(column: SplineColumn) -> None:
    waves, line, n_knots = column.waves, column.deviation, len(column.knots)
    if column.category:
        plain = waves == 0 and column.reference == -1 and column.mean == line == 0
        plain = plain and not (column.trend or column.jumps or column.periodic)
        require(plain, "a category is described as a number")
        return
    require(bool((np.diff(0.5 * column.knots) > 0).all()), "knots are not in order")
    require(0 <= waves <= min(MOST_WAVES, max(0, n_knots - 1)), "a column has more waves than knots")
    require(line == 0 or (line > 0 and waves > 0), "a column has an impossible line")
    require(not column.periodic or (line == 0 and not column.jumps), "a periodic column has other functions")
    possible = line > 0 and (n_knots > 4 or not column.outer)
    require(possible or not column.trend, "a column has an impossible trend")
    require(-1 <= column.reference < column.n_states, "a column has an impossible reference")
    ordered = bool((np.diff(column.jumps, prepend=-1, append=n_knots - 1) > 0).all())
    require(ordered or not column.jumps, "a column has impossible jumps")


def _columns_from(read: Facts, n_columns: int) -> Columns:
    names, levels, rare = read("names", list, None), read("levels", list), read("rare", list)
    cycles = read("cycles", list) if "cycles" in read.facts else [None] * len(levels)  # older files have none
    complete = len(levels) == len(rare) == len(cycles) and (names is None or len(names) == len(levels))
    require(complete, "columns are missing")
    require(names is None or all(type(name) is str for name in names), "the name of a column is not a string")
    columns = []
    for of_column, pooled, of_dates in zip(levels, rare, cycles, strict=True):
        require(type(pooled) is bool and (of_column is not None or not pooled), "a number has rare levels")
        if of_column is not None:
            strings = type(of_column) is list and all(type(level) is str for level in of_column)
            require(strings, "the levels of a column are not strings")
            require(len(set(of_column)) == len(of_column), "duplicate level")
        if of_dates is not None:
            known = (
                of_column is None
                and type(of_dates) is list
                and of_dates == [c for c in CYCLES if c in of_dates]
            )
            require(known, "the cycles of dates are unknown")
        of_dates = None if of_dates is None else tuple(of_dates)
        columns.append(Column(None if of_column is None else tuple(of_column), pooled, of_dates))
    found = Columns(None if names is None else tuple(names), tuple(columns))
    require(len(found.encoded) == n_columns, "columns are missing")
    return found


def _check_levels(basis: Basis, columns: Columns | None) -> None:
    """Check that columns and basis agree on which columns are categories, and on their numbers of levels."""
    splines = basis.columns if isinstance(basis, SplineBasis) else ()
    require(columns is None or len(splines) == len(columns.encoded), "only splines take frames")
    expected = [Column()] * len(splines) if columns is None else columns.encoded
    for spline, column in zip(splines, expected, strict=True):
        n_codes = len(spline.knots) if spline.category else None
        require(n_codes == (None if column.levels is None else column.n_codes), "levels and basis differ")
