"""A model as a sum of a few functions of one and of two columns, small enough to read.

The functions are the parts of columns and pairs (`contributions`), given by their values at some points. A
function of a number is linear between points, and constant beyond them. It has the same mean as its part. The
constant is the mean output of the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import sparse

from .._data.plain_text import plain
from .._model.spline_basis import SplineBasis
from .decomposition import effect_at, parts_of_rows, refuse_unit_rows
from .displacements import ColumnForms, forms_about_mean
from .drawn_rows import rows_to_inspect
from .forms import check_rows, column_names, fitted_machine, level_names, output_name, output_number
from .importances import NO_VARIANCE, column_importances

MOST_ROWS = 2000
FIDELITY = 0.99
MOST_ALONE, MOST_IN_PAIRS = 50, 16  # maximum number of columns to make functions of
MOST_POINTS, POINTS_OF_PAIRS, JUMPS_OF_PAIRS = 8, 6, 2
CLOSE = 0.02  # maximum distance of a curve from its straight lines between points, as a share of its range
CANDIDATES = 200  # values of a number from which points are chosen
MOST_SHOWN = 8  # levels
WIDEST = 14  # characters of a level
MOST_ROUNDED = 200  # points are rounded to steps of at most the range divided by this


@dataclass(frozen=True)
class Axis:
    """The points of a column and their names: increasing numbers, or codes of ``levels``, followed by a point
    for missing values if there are any.
    """

    name: str
    points: np.ndarray
    labels: list[str]
    levels: bool
    missing: bool

    def weights(self, values: np.ndarray) -> np.ndarray:
        """Return the interpolation weight of each point for values of the column, (rows, points)."""
        shares = np.zeros((len(values), len(self.labels)))
        rows = np.flatnonzero(~np.isnan(values))
        known, last = values[rows], len(self.points) - 1
        if self.levels or last == 0:
            places = np.clip(np.searchsorted(self.points, known), 0, last)
            shares[rows, places] = 1.0
        else:
            places = np.interp(known, self.points, np.arange(last + 1.0))
            below = np.minimum(places.astype(np.intp), last - 1)
            shares[rows, below] = 1 - (places - below)
            shares[rows, below + 1] = places - below
        if self.missing:
            shares[np.isnan(values), -1] = 1.0
        return shares


@dataclass(frozen=True)
class Function:
    """A function of one or two columns, given by its values at points.

    Attributes
    ----------
    columns : tuple of str
    share : float
        Share of the function in the variances of all parts, see `part_importance`.
    axes : tuple of Axis
        The points of each column.
    values : ndarray of shape (points,) or (points, points)
    """

    columns: tuple[str, ...]
    share: float
    axes: tuple[Axis, ...]
    values: np.ndarray
    frequencies: tuple[np.ndarray, ...] = field(repr=False)

    def at(self, values: Sequence[np.ndarray]) -> np.ndarray:
        """Return the function for values of its columns, with levels as codes."""
        weights = [axis.weights(each) for axis, each in zip(self.axes, values, strict=True)]
        product = weights[0] @ self.values
        return product if len(weights) == 1 else (product * weights[1]).sum(axis=1)

    def to_frame(self) -> Any:
        """Return the values by point as a pandas Series for one column, or as a DataFrame for two columns."""
        import pandas

        indices = [pandas.Index(axis.labels, name=axis.name) for axis in self.axes]
        if len(indices) == 1:
            return pandas.Series(self.values, indices[0], name="value")
        return pandas.DataFrame(self.values, *indices)

    def shown(self) -> tuple[list[str], list[str], np.ndarray]:
        """Return the contents of a table: row labels (none for one column), column labels, and the values.

        If there are many levels, only the most frequent ones are shown."""
        places = [_shown(axis, count) for axis, count in zip(self.axes, self.frequencies, strict=True)]
        labels = [[axis.labels[i] for i in some] for axis, some in zip(self.axes, places, strict=True)]
        cells = self.values[np.ix_(*places)].reshape(-1, len(labels[-1]))
        return labels[0] if len(labels) == 2 else [], labels[-1], cells

    def lines(self) -> Iterator[str]:
        """Yield the lines of a table of the function."""
        down, across, cells = self.shown()
        names, header = [_short(label) for label in down] or [""], [_short(label) for label in across]
        left = max(map(len, names)) + 2
        texts = [[_signed(value) for value in row] for row in cells.tolist()]
        wide = [max(len(text) for text in column) for column in zip(header, *texts, strict=True)]
        for name, row in zip(["", *names], [header, *texts], strict=True):
            cells_of_row = "  ".join(f"{text:>{width}}" for text, width in zip(row, wide, strict=True))
            yield f"  {name:<{left}}{cells_of_row}"
        for axis in self.axes:
            if axis.levels and len(axis.labels) > MOST_SHOWN:
                yield f"  and {len(axis.labels) - MOST_SHOWN} more of {axis.name}"


@dataclass(frozen=True)
class Formula:
    """A model as a constant and a sum of functions of one and two columns; print it to read it.

    Attributes
    ----------
    constant : float
        Mean output of the training rows, or of X if the model does not know it.
    functions : list of Function
        Functions, the largest first.
    fidelity : float
        R2 of the formula as printed, except for rounding, against the model's own outputs.
    n_rows : int
        Number of rows that the formula was made from and measured on.
    """

    constant: float
    functions: list[Function]
    fidelity: float
    n_rows: int
    model: Any = field(repr=False)
    name: str = "output"

    def __call__(self, X: Any) -> np.ndarray:
        """Return the output of the formula (n_samples,) for rows of X."""
        rows, names = check_rows(self.model, X), column_names(self.model)
        total = np.full(rows.shape[0], self.constant)
        for function in self.functions:
            total += function.at([values_of(rows, names.index(name)) for name in function.columns])
        return total

    def __str__(self) -> str:
        count = (
            "1 function: it is" if len(self.functions) == 1 else f"{len(self.functions)} functions: they are"
        )
        lines = [
            f"{self.name} = {self.constant:.5g} + {count} {100 * self.fidelity:.1f} % of the model",
            f"(R2 against its own outputs on {self.n_rows:,} rows; straight lines between the points)",
        ]
        for function in self.functions:
            lines += [
                "",
                f"{' & '.join(function.columns)}, {100 * function.share:.1f} % of the variance of parts",
            ]
            lines += function.lines()
        return "\n".join(map(plain, lines))

    __repr__ = __str__


def formula(
    model: Any, X: Any, *, fidelity: float = FIDELITY, max_functions: int = 20, output: Any = None
) -> Formula:
    """Return a model as a sum of a few functions of one and of two columns, which can be printed and read.

    The functions are the parts of columns and pairs (`contributions`) with the largest variance on X.
    Functions are added until the formula reaches ``fidelity``, or until there are ``max_functions``. Smaller
    functions are left out, and so are interactions of three or more columns; `Formula.fidelity` tells how
    much of the model remains.

    Parameters
    ----------
    model : fitted Tensor Machine
        The bases "unit" and "sphere" are not supported, because columns have no separate functions in them.
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        Rows from whose values the points are chosen, and on which fidelity and variances are measured; at
        most 2,000 of them are used.
    fidelity : float
        R2 against the model's own outputs at which no more functions are added.
    max_functions : int
    output
        As in `polynomial`.

    Returns
    -------
    Formula

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import formula
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(500, 3))
    >>> model = TensorMachineRegressor(random_state=0).fit(X, 5 * X[:, 0] + 3 * np.abs(X[:, 1]))
    >>> found = formula(model, X)
    >>> [function.columns for function in found.functions], found.fidelity > 0.98
    ([('x0',), ('x1',)], True)
    """
    if max_functions < 1:
        raise ValueError(f"max_functions must be 1 or more, got {max_functions!r}.")
    output_number(model, output)
    refuse_unit_rows(fitted_machine(model))
    return formula_on(model, *rows_to_inspect(model, X), fidelity, max_functions, output)


def formula_on(
    model: Any, all_rows: Any, booleans: set[int], fidelity: float, max_functions: int, output: Any
) -> Formula:
    """Return the `formula` for checked rows, some columns of which are boolean."""
    machine, number = fitted_machine(model), output_number(model, output)
    rows = all_rows[some_places(all_rows.shape[0], MOST_ROWS)]
    forms = forms_about_mean(model, output, rows)
    order = np.argsort(-column_importances(machine, rows)[number], kind="stable")
    sets = _sets(order.tolist(), forms.layout.degree)
    parts = forms.map(rows, lambda displaced: parts_of_rows(forms, displaced, sets), copies=2)
    outputs = parts.sum(axis=1)
    variances = parts.var(axis=0)
    variances[0] = 0.0  # the constant has none, except for rounding
    if not outputs.var() > 0:
        raise ValueError(NO_VARIANCE)
    maker = _Maker(model, forms, rows, booleans)
    found: list[Function] = []
    total, reached = np.full(len(outputs), forms.mean_output), 0.0
    for place in np.argsort(-variances[:-1], kind="stable")[:max_functions].tolist():
        if reached >= fidelity or not variances[place] > 0:
            break
        made = maker.function(sets[place], float(variances[place] / variances.sum()), parts[:, place].mean())
        found.append(made)
        total += made.at([values_of(rows, j) for j in sets[place]])
        reached = 1 - float(((outputs - total) ** 2).mean() / outputs.var())
    return Formula(forms.mean_output, found, reached, len(outputs), model, output_name(model, number))


def _sets(order: Sequence[int], degree: int) -> list[tuple[int, ...]]:
    """Return the empty set, the most important columns, and pairs of the most important ones among them."""
    pairs = combinations(sorted(order[:MOST_IN_PAIRS]), 2) if degree > 1 else ()
    return [(), *((column,) for column in order[:MOST_ALONE]), *pairs]


@dataclass(frozen=True)
class _Maker:
    """Make functions from the parts of a model on checked rows, some columns of which are boolean."""

    model: Any
    forms: ColumnForms
    rows: Any
    booleans: set[int]

    def function(self, columns: tuple[int, ...], share: float, mean: float) -> Function:
        """Return the function of columns whose part has this mean on the rows before it is centred."""
        axes = tuple(self._axis(j, len(columns) == 1) for j in columns)
        grids = np.meshgrid(*(_points(axis) for axis in axes), indexing="ij")
        values = self._effect(columns, [grid.ravel() for grid in grids]).reshape(grids[0].shape)
        names = tuple(self.forms.columns[j] for j in columns)
        of_rows = [values_of(self.rows, j) for j in columns]
        frequencies = tuple(axis.weights(each).sum(axis=0) for axis, each in zip(axes, of_rows, strict=True))
        made = Function(names, share, axes, values, frequencies)
        mean -= self.forms.means[columns[0]] if len(columns) == 1 else 0.0
        return replace(made, values=values + (mean - made.at(of_rows).mean()))

    def _effect(self, columns: tuple[int, ...], values: Sequence[np.ndarray]) -> np.ndarray:
        return effect_at(self.forms, dict(zip(columns, values, strict=True)))

    def _axis(self, column: int, alone: bool) -> Axis:
        values = values_of(self.rows, column)
        known, basis = np.unique(values[~np.isnan(values)]), fitted_machine(self.model).basis
        missing = bool(np.isnan(values).any()) or (
            isinstance(basis, SplineBasis) and basis.columns[column].missing
        )
        name, levels = self.forms.columns[column], level_names(self.model, column)
        if levels is None and column in self.booleans and set(known) <= {0.0, 1.0}:
            levels = ["false", "true"]
        if levels is not None:
            points, labels = np.arange(float(len(levels))), list(levels)
        else:
            points = known if len(known) else np.zeros(1)
            if len(points) > MOST_POINTS:
                points = self._turns(column, values) if alone else self._points_of_pair(column, values)
            labels = _in_few_digits(points)
        return Axis(name, points, labels + ["missing"] * missing, levels is not None, missing)

    def _turns(self, column: int, values: np.ndarray) -> np.ndarray:
        """Return a few values of a number between which its function is nearly straight."""
        candidates = np.union1d(_quantiles(values, CANDIDATES), self._sides_of_jumps(column))
        curve = self._effect((column,), [candidates])
        chosen = [0, len(candidates) - 1]
        while len(chosen) < min(MOST_POINTS, len(candidates)):
            error = np.abs(curve - np.interp(candidates, candidates[chosen], curve[chosen]))
            if error.max() <= CLOSE * np.ptp(curve):
                break
            chosen = sorted([*chosen, int(error.argmax())])
        return candidates[chosen]

    def _points_of_pair(self, column: int, values: np.ndarray) -> np.ndarray:
        """Return a few quantiles, and both sides of the largest jumps of the single column."""
        sides, quantiles = self._sides_of_jumps(column).reshape(-1, 2), _quantiles(values, POINTS_OF_PAIRS)
        if not len(sides):
            return quantiles
        rise = np.abs(np.diff(self._effect((column,), [sides.ravel()]).reshape(-1, 2), axis=1))[:, 0]
        largest = sides[np.argsort(-rise, kind="stable")[:JUMPS_OF_PAIRS]]
        return np.union1d(quantiles, largest.ravel())

    def _sides_of_jumps(self, column: int) -> np.ndarray:
        """Return the last number below and the first one above each jump of a column."""
        basis = self.model._machine.basis
        if not isinstance(basis, SplineBasis):
            return np.zeros(0)
        spline = basis.columns[column]
        return spline.knots[[knot + side for knot in spline.jumps for side in (0, 1)]]


def _in_few_digits(points: np.ndarray) -> list[str]:
    """Return the points as distinct texts of few digits; sides of jumps may need more than quantiles."""
    for digits in range(5, 17):
        texts = [f"{point:.10g}" for point in points]
        pairs = zip(texts, points, strict=True)
        texts = [text if len(text) <= 8 else f"{point:.{digits}g}" for text, point in pairs]
        if len(set(texts)) == len(texts):
            return texts
    return [repr(point) for point in points.tolist()]


def _quantiles(values: np.ndarray, count: int) -> np.ndarray:
    """Return about ``count`` quantiles, from the lowest to the highest value, rounded to few digits."""
    found = np.nanquantile(values, np.linspace(0, 1, count), method="nearest")
    step = np.ptp(found) / MOST_ROUNDED
    return np.unique(np.round(found, int(np.clip(-np.floor(np.log10(step)), -300, 300))))


def _points(axis: Axis) -> np.ndarray:
    return np.append(axis.points, [np.nan] * axis.missing)


def some_places(count: int, most: int) -> np.ndarray:
    """Return at most ``most`` evenly spaced positions among ``count``."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.intp)


def values_of(rows: Any, column: int) -> np.ndarray:
    """Return a column of checked rows."""
    return rows[:, [column]].toarray().ravel() if sparse.issparse(rows) else rows[:, column]


def _shown(axis: Axis, frequencies: np.ndarray) -> list[int]:
    """Return the positions of the printed points: all of a number, or the most frequent of many levels."""
    if not axis.levels:
        return list(range(len(axis.labels)))
    return sorted(np.argsort(-frequencies, kind="stable")[:MOST_SHOWN].tolist())


def _short(label: str) -> str:
    return label if len(label) <= WIDEST else label[: WIDEST - 1] + "…"


def _signed(value: float) -> str:
    return f"{value:+.3g}" if abs(value) < 1000 else f"{value:+,.0f}"
