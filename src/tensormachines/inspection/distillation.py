"""A small polynomial of the columns themselves that approximates a model.

Monomials are chosen one at a time: the next one has the largest correlation with the residual of the model's
outputs (orthogonal matching pursuit). Coefficients are fitted by least squares."""

from __future__ import annotations

import warnings
from itertools import chain, combinations_with_replacement, islice
from typing import Any

import numpy as np
from sklearn.linear_model import orthogonal_mp

from .._data.frame import all_different
from .drawn_rows import rows_to_inspect
from .forms import check_rows, column_names, fitted_machine, level_names, output_number
from .functions import MOST_ROWS, some_places, values_of
from .importances import NO_VARIANCE, column_importances
from .monomials import Monomial, Polynomial

MOST_COLUMNS = 20
FEWEST_COLUMNS = 10  # if the others have too many levels; MOST_LEVELS of each are 4,600 monomials of degree 2
MOST_LEVELS = 10  # the most frequent ones of a category
MOST_THRESHOLDS = 4  # of a number
MOST_MONOMIALS = 5000
NUMBER, LEVEL, ABOVE = "number", "level", "above"
SIMPLER = 0.98  # factor of the correlation per variable of a monomial: x times a year is almost x


class Distilled(Polynomial):
    """A polynomial of columns, and of 0/1 indicators of levels and thresholds, that approximates a model.

    Attributes
    ----------
    fidelity : float
        R2 against the model's own outputs.
    n_rows : int
        Number of rows that the polynomial was fitted to and measured on.
    """

    def __init__(self, model: Any, entries: dict[Monomial, float], variables: _Variables, fidelity: float):
        what = "columns in their own units; a level or threshold is 0 or 1, a missing number its mean"
        super().__init__(entries, tuple(variables.names), what)
        self.model, self.variables = model, variables
        self.fidelity, self.n_rows = fidelity, variables.n_rows
        self.title = (
            f"polynomial of {what}.\nIt is {100 * fidelity:.1f} % of the model "
            f"(R2 against its own outputs on {self.n_rows:,} rows)"
        )

    def predict(self, X: Any) -> np.ndarray:
        """Return the polynomial (n_samples,) for rows of X."""
        return self(self.variables.of(check_rows(self.model, X)))


def distil(model: Any, X: Any, *, terms: int = 8, degree: int = 2, output: Any = None) -> Distilled:
    """Return a small polynomial of the columns of X that approximates a model on these rows.

    The result is an approximation for any basis of the model; `Distilled.fidelity` tells how good it is.
    `polynomial` returns the exact polynomial, which has too many monomials to read if the basis is "spline".

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), dataframe, source or Dask collection
        Rows on which the polynomial approximates the model; at most 2,000 of them are used. Monomials are
        chosen from the 20 most important columns, or from fewer, but at least 10, if there would be more than
        5,000 monomials, as with many categories.
    terms : int
        Number of monomials besides the constant.
    degree : int
        Maximum degree of a monomial.
    output
        As in `polynomial`.

    Returns
    -------
    Distilled

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import distil
    >>> X = np.random.default_rng(0).uniform(0, 1, size=(1000, 4))
    >>> y = 1 + 2 * X[:, 0] - 3 * X[:, 1] * X[:, 2]
    >>> model = TensorMachineRegressor(random_state=0).fit(X, y)
    >>> small = distil(model, X, terms=2)
    >>> print(small.formula(digits=2))
    -3 x1 x2 + 2 x0 + 1
    >>> small.fidelity > 0.99
    True
    """
    if terms < 1 or degree < 1:
        raise ValueError(f"terms and degree must be 1 or more, got terms={terms!r} and degree={degree!r}.")
    machine, number = fitted_machine(model), output_number(model, output)
    rows, _ = rows_to_inspect(model, X)
    rows = rows[some_places(rows.shape[0], MOST_ROWS)]
    outputs = machine.outputs(rows)[:, number].astype(np.float64)
    if not outputs.var() > 0:
        raise ValueError(NO_VARIANCE)
    shares = column_importances(machine, rows)[number][: machine.basis.n_columns]
    variables, monomials = _candidates(model, rows, np.argsort(-shares, kind="stable").tolist(), degree)
    values = variables.of(rows)
    products = np.column_stack([values[:, list(monomial)].prod(axis=1) for monomial in monomials])
    mean, deviation = products.mean(axis=0), products.std(axis=0)
    varies = np.flatnonzero(deviation > 1e-9 * np.abs(mean))
    standard = (products[:, varies] - mean[varies]) / deviation[varies]
    centred = outputs - outputs.mean()
    liked = standard * np.array([SIMPLER ** len(monomials[place]) for place in varies.tolist()])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "\\s*Orthogonal matching pursuit ended prematurely", RuntimeWarning)
        found = np.flatnonzero(orthogonal_mp(liked, centred, n_nonzero_coefs=min(terms, len(varies))))
    weights = np.linalg.lstsq(standard[:, found], centred, rcond=None)[0]
    chosen, coefficients = varies[found], weights / deviation[varies[found]]
    entries: dict[Monomial, float] = {(): float(outputs.mean() - coefficients @ mean[chosen])}
    for place, coefficient in zip(chosen.tolist(), coefficients.tolist(), strict=True):
        entries[tuple(variables.names[v] for v in monomials[place])] = coefficient
    rest = centred - standard[:, found] @ weights
    return Distilled(model, entries, variables, 1 - float((rest**2).mean() / outputs.var()))


def _candidates(
    model: Any, rows: Any, columns: list[int], degree: int
) -> tuple[_Variables, list[tuple[int, ...]]]:
    """Return variables and their monomials, of so many of the first columns that there are not too many."""
    most, fewest = (min(number, len(columns)) for number in (MOST_COLUMNS, FEWEST_COLUMNS))
    for n_columns in range(most, fewest - 1, -1):
        variables = _Variables(model, rows, sorted(columns[:n_columns]))
        monomials = variables.monomials(degree)
        if len(monomials) <= MOST_MONOMIALS:
            return variables, monomials
    raise ValueError(
        f"There are more than {MOST_MONOMIALS:,} monomials of degree {degree} to choose from: lower degree."
    )


class _Variables:
    """Numeric columns with missing values replaced by the mean, indicators of numbers above the thresholds of
    the model, and indicators of the most frequent levels."""

    def __init__(self, model: Any, rows: Any, columns: list[int]):
        names, labels = column_names(model), []
        self.n_rows = rows.shape[0]
        # The column, and the mean of a number, the code of a level, or a threshold.
        self.places: list[tuple[int, float]] = []
        self.kinds: list[str] = []
        thresholds = fitted_machine(model).thresholds
        for column in columns:
            values, levels = values_of(rows, column), level_names(model, column)
            known = values[~np.isnan(values)]
            if levels is None:
                self._add(column, float(known.mean()) if len(known) else 0.0, NUMBER)
                labels.append(names[column])
                for threshold in thresholds[column][:MOST_THRESHOLDS].tolist() if thresholds else ():
                    self._add(column, threshold, ABOVE)
                    labels.append(f"{names[column]} > {threshold:.15g}")
                continue
            counts = np.bincount(known.astype(np.intp), minlength=len(levels))
            for code in np.argsort(-counts, kind="stable")[:MOST_LEVELS].tolist():
                self._add(column, float(code), LEVEL)
                labels.append(f"{names[column]} = {levels[code]}")
        self.names = all_different(labels)

    def _add(self, column: int, number: float, kind: str) -> None:
        self.places.append((column, number))
        self.kinds.append(kind)

    def of(self, rows: Any) -> np.ndarray:
        """Return the variables (rows, variables) of checked rows."""
        found = np.empty((rows.shape[0], len(self.places)))
        for v, (column, number) in enumerate(self.places):
            values = values_of(rows, column)
            if self.kinds[v] == NUMBER:
                found[:, v] = np.where(np.isnan(values), number, values)
            else:
                found[:, v] = values == number if self.kinds[v] == LEVEL else values > number
        return found

    def monomials(self, degree: int) -> list[tuple[int, ...]]:
        """Return products of variables, without powers or products of indicators of one column; if there are
        too many, one more than MOST_MONOMIALS."""
        sizes = (combinations_with_replacement(range(len(self.places)), p) for p in range(1, degree + 1))
        allowed = (each for each in chain.from_iterable(sizes) if self._is_allowed(each))
        return list(islice(allowed, MOST_MONOMIALS + 1))

    def _is_allowed(self, monomial: tuple[int, ...]) -> bool:
        columns = [self.places[v][0] for v in monomial if self.kinds[v] != NUMBER]
        return len(set(columns)) == len(columns)
