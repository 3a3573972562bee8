"""The model in a file: a description (`_model.description`) as JSON and arrays, and from these the machine
again.

    {"terms", "degree", "rank", "n_outputs", "n_columns", "basis", "columns", "present", "values"}

``values`` are intercept, coef and then the factors degree by degree, as `_model.description_form.Portable`
has them, each in C order; where many are 0, these are left out, and ``present`` has a bit for each number.
``columns`` is null where the model was fitted on a matrix of numbers, otherwise {"names", "levels", "rare"}
of the columns of the table. All arrays are numbers in the list of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._data.encoding import Column, Columns
from .._model.basis import AnyBasis, Basis
from .._model.description_form import AffineBasis, Portable, SplineCategory, SplineNumber
from .._model.description_form import SplineBasis as PortableSplineBasis
from .._model.layout import AnovaLayout, Layout
from .._model.machine import Machine
from .._model.spline_basis import CLIP, CONSTANT, LINE, ROUGHNESS, SplineBasis, SplineColumn
from .container import ModelFileError
from .values import Arrays

FEWEST_PRESENT, MOST_PRESENT = (
    1 / 8,
    15 / 16,
)  # shares: with fewer a file could be a small part of what it stands for, with more it gains nothing
MOST_WAVES = 256  # of a column: a table of all of them at all knots is made
SHAPES = {"products": Layout, "anova": AnovaLayout}
CONSTANTS = {"constant": CONSTANT, "roughness": ROUGHNESS, "line": LINE, "line_clip": CLIP}


def model_to(portable: Portable, raw: bool, arrays: list[np.ndarray]) -> dict[str, Any]:
    """``raw``: whether the model reads tables column by column."""

    def keep(array: np.ndarray) -> int:
        arrays.append(array)
        return len(arrays) - 1

    params = np.concatenate(
        [
            portable.intercept,
            portable.coef.ravel(),
            *(factors.ravel() for factors in portable.factors.values()),
        ]
    )
    present = params != 0
    is_sparse = FEWEST_PRESENT <= present.mean() <= MOST_PRESENT
    columns = None
    if raw:
        names = [column.name for column in portable.columns]
        columns = {
            "names": None if isinstance(names[0], int) else names,
            "levels": [None if column.levels is None else list(column.levels) for column in portable.columns],
            "rare": [column.rare for column in portable.columns],
        }
    return {
        "terms": portable.terms,
        "degree": portable.degree,
        "rank": portable.rank,
        "n_outputs": portable.n_outputs,
        "n_columns": len(portable.columns),
        "basis": _affine_to(portable.basis, keep)
        if isinstance(portable.basis, AffineBasis)
        else _spline_to(portable.basis, keep),
        "columns": columns,
        "present": keep(np.packbits(present)) if is_sparse else None,
        "values": keep(params[present] if is_sparse else params),
    }


def _affine_to(basis: AffineBasis, keep: Callable[[np.ndarray], int]) -> dict[str, Any]:
    scaled = {} if basis.name is None else {"center": keep(basis.center), "scale": keep(basis.scale)}
    clip = basis.clip if np.isfinite(basis.clip) else None
    return {
        "name": basis.name,
        **scaled,
        "clip": clip,
        "constant": basis.constant,
        "unit_rows": basis.unit_rows,
    }


def _spline_to(basis: PortableSplineBasis, keep: Callable[[np.ndarray], int]) -> dict[str, Any]:
    """Of each column what cannot be computed from the rest; the knots of numbers, and the means of all
    functions, one after the other.
    """
    knots, counts, waves, references, moments = [np.zeros(0)], [], [], [], []
    for column in basis.columns:
        number = column if isinstance(column, SplineNumber) else None
        of_column = np.zeros(0) if number is None or number.only_missing else number.knots
        knots.append(of_column)
        counts.append(column.n_levels if isinstance(column, SplineCategory) else len(of_column))
        waves.append(number.waves if number else 0)
        references.append(number.reference if number else -1)
        moments.append([number.mean, number.deviation] if number else [0.0, 0.0])
    return {
        "name": basis.name,
        **{name: getattr(basis, name) for name in CONSTANTS},
        "category": keep(np.array([isinstance(column, SplineCategory) for column in basis.columns])),
        "missing": keep(np.array([column.missing for column in basis.columns])),
        "count": keep(np.array(counts, dtype=np.int32)),
        "waves": keep(np.array(waves, dtype=np.int32)),
        "reference": keep(np.array(references, dtype=np.int32)),
        "moments": keep(np.array(moments)),
        "knots": keep(np.concatenate(knots)),
        "center": keep(np.concatenate([column.center for column in basis.columns])),
    }


# ---- and back


class Checked:
    """What is in a JSON object, each piece of the type that it is asked for."""

    def __init__(self, facts: Any, arrays: Arrays):
        require(isinstance(facts, dict), "an object is missing")
        self.facts, self.arrays = facts, arrays

    def __call__(self, name: str, *kinds: type | None) -> Any:
        require(
            name in self.facts and any(type(self.facts[name]) is (kind or type(None)) for kind in kinds),
            f"{name} is of a wrong type",
        )
        return self.facts[name]

    def integer(self, name: str, at_least: int = 1) -> int:
        require(self(name, int) >= at_least, f"{name} is too small")
        return self.facts[name]

    def number(self, name: str) -> float:
        return float(self(name, int, float))

    def array(self, name: str, kinds: str, *shape: int | None) -> np.ndarray:
        """Of one of the dtypes ``kinds``, all finite; None in ``shape`` is any length."""
        array = self.arrays.take(self.integer(name, 0))
        require(array.dtype.str.lstrip("<>|=") in kinds.split(), f"{name} is of a wrong type")
        fits = array.ndim == len(shape) and all(
            wanted in (None, length) for wanted, length in zip(shape, array.shape, strict=True)
        )
        require(fits, f"{name} is of a wrong shape")
        require(bool(np.isfinite(array).all()), f"{name} has numbers that are not finite")
        return array


def model_from(facts: Any, arrays: Arrays) -> tuple[Machine, Columns | None]:
    """The machine, and the columns of a raw table."""
    read = Checked(facts, arrays)
    n_columns = read.integer("n_columns")
    of_basis = Checked(read("basis", dict), arrays)
    basis = (_spline_from if of_basis("name", str, None) == "spline" else _affine_from)(of_basis, n_columns)
    columns = (
        None
        if read("columns", dict, None) is None
        else _columns_from(Checked(facts["columns"], arrays), n_columns)
    )
    _check_levels(basis, columns)
    require(read("terms", str) in SHAPES, "its terms are unknown")
    degree, rank, n_outputs = (read.integer(name) for name in ("degree", "rank", "n_outputs"))
    params = _params(read, facts["terms"] == "anova", degree, rank, n_outputs, basis.width)
    require(params.dtype == _dtype(basis, params.dtype) and rank < 1 << 31, "its numbers are of two types")
    layout = SHAPES[facts["terms"]](basis.width, degree, rank, n_outputs)
    return Machine(basis, layout, _flat(params, layout)), columns


def _dtype(basis: AnyBasis, otherwise: np.dtype) -> np.dtype:
    numbers = basis.center if isinstance(basis, SplineBasis) else basis.shift
    return otherwise if numbers is None else numbers.dtype


def _params(read: Checked, anova: bool, degree: int, rank: int, n_outputs: int, width: int) -> np.ndarray:
    """As many as the shape needs, in the order of the file.

    Sizes are compared before there is a vector of that size.
    """
    projections = 1 + rank * (degree - 1 if anova else degree * (degree + 1) // 2 - 1)
    size = n_outputs * (1 + width * projections)
    values = read.array("values", "f4 f8", None)
    if read("present", int, None) is None:
        require(len(values) == size, "there are not as many parameters as its shape needs")
        return values
    require(size <= len(values) / FEWEST_PRESENT, "there are too few parameters for its shape")
    present = np.unpackbits(read.array("present", "u1", (size + 7) // 8)).astype(bool)
    require(
        not present[size:].any() and np.count_nonzero(present) == len(values),
        "there are not as many parameters as are present",
    )
    params = np.zeros(size, dtype=values.dtype)
    params[present[:size]] = values
    return params


def _flat(params: np.ndarray, layout: Layout) -> np.ndarray:
    """From the order of the file to that of the layout."""
    flat = np.empty_like(params)
    outputs, width = layout.n_outputs, layout.n_features
    layout.bias(flat)[...] = params[:outputs]
    factors = layout.factors(flat)
    factors[:, :, 0] = params[outputs : outputs * (1 + width)].reshape(outputs, width).T
    start = outputs * (1 + width)
    for p, columns in layout.degrees():
        shape = outputs, layout.rank, layout.factors_in_term(p), width
        stop = start + int(np.prod(shape))
        factors[:, :, columns] = (
            params[start:stop].reshape(shape).transpose(3, 0, 2, 1).reshape(width, outputs, -1)
        )
        start = stop
    return flat


def _affine_from(read: Checked, n_columns: int) -> Basis:
    name, constant, unit_rows = read("name", str, None), read.number("constant"), read("unit_rows", bool)
    clip = np.inf if read("clip", int, float, None) is None else read.number("clip")
    require(
        clip > 0 and constant >= 0 and name in (None, "unit", "standard", "sphere"), "its basis is unknown"
    )
    if name is None:
        require(clip == np.inf and constant == 0 and not unit_rows, "its basis is unknown")
        return Basis(n_columns)
    center, scale = (read.array(part, "f4 f8", n_columns) for part in ("center", "scale"))
    require(center.dtype == scale.dtype, "its basis has numbers of two types")
    return Basis(n_columns, center, scale, clip, constant, unit_rows)


def _spline_from(read: Checked, n_columns: int) -> SplineBasis:
    require(
        all(read.number(name) == value for name, value in CONSTANTS.items()),
        "its splines are others than those of this version",
    )
    category, missing = (read.array(name, "b1", n_columns).tolist() for name in ("category", "missing"))
    counts, waves, references = (
        read.array(name, "i4", n_columns).tolist() for name in ("count", "waves", "reference")
    )
    moments = read.array("moments", "f8", n_columns, 2).tolist()
    center = read.array("center", "f4 f8", None)
    numbers = [0 if is_category else count for is_category, count in zip(category, counts, strict=True)]
    n_lines = [moment[1] > 0 for moment in moments]
    widths = [
        count if is_category else wave + line
        for is_category, count, wave, line in zip(category, counts, waves, n_lines, strict=True)
    ]
    require(
        min([*counts, *waves]) >= 0 and sum(widths) + sum(missing) == len(center),
        "its splines are not as many as their means",
    )
    knots = np.split(read.array("knots", "f8", sum(numbers)), np.cumsum(numbers)[:-1])
    columns = []
    for j, of_column in enumerate(knots):
        if category[j]:
            require(
                waves[j] == 0 and references[j] == -1 and moments[j] == [0, 0],
                "a category is described as a number",
            )
            columns.append(
                SplineColumn(np.arange(counts[j], dtype=np.float64), True, missing[j], -1, 0, 0.0, 0.0)
            )
        else:
            columns.append(
                SplineColumn(of_column.copy(), False, missing[j], references[j], waves[j], *moments[j])
            )
            _check_number(columns[-1])
    return SplineBasis(tuple(columns), center)


def _check_number(column: SplineColumn) -> None:
    require(bool((np.diff(0.5 * column.knots) > 0).all()), "knots are not in order")
    require(
        0 <= column.waves <= min(MOST_WAVES, max(0, len(column.knots) - 1)),
        "a column has more waves than knots",
    )
    require(
        column.deviation >= 0 and (column.deviation == 0 or column.waves > 0),
        "a column has a line that cannot be",
    )
    require(-1 <= column.reference < max(column.n_states, 0), "a column has a reference that it has not")


def _columns_from(read: Checked, n_columns: int) -> Columns:
    names, levels, rare = read("names", list, None), read("levels", list), read("rare", list)
    require(
        len(levels) == len(rare) == n_columns and (names is None or len(names) == n_columns),
        "columns are missing",
    )
    require(names is None or all(type(name) is str for name in names), "the name of a column is no string")
    columns = []
    for of_column, pooled in zip(levels, rare, strict=True):
        require(
            type(pooled) is bool and (of_column is not None or not pooled),
            "a column has rare levels that it cannot have",
        )
        if of_column is not None:
            require(
                type(of_column) is list and all(type(level) is str for level in of_column),
                "the levels of a column are no strings",
            )
            require(len(set(of_column)) == len(of_column), "a level stands there twice")
        columns.append(Column(None if of_column is None else tuple(of_column), pooled))
    return Columns(None if names is None else tuple(names), tuple(columns))


def _check_levels(basis: AnyBasis, columns: Columns | None) -> None:
    """What is a category to the columns is one of as many levels to the basis."""
    splines = basis.columns if isinstance(basis, SplineBasis) else ()
    require(columns is None or len(splines) == len(columns.columns), "a raw table is not made of splines")
    expected = [Column()] * len(splines) if columns is None else columns.columns
    for spline, column in zip(splines, expected, strict=True):
        fits = spline.category == (column.levels is not None) and (
            not spline.category or len(spline.knots) == column.n_codes
        )
        require(fits, "the levels of a column are not those of the basis")


def require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ModelFileError(f"it is damaged: {otherwise}")
