"""A prediction as a sum of parts: the mean, a part for each column, one for each pair of columns, and so on.

In terms of displacements from the reference, the part of a set U of columns is the sum of all monomials with
a factor from each column of U and from no other column:

    part_U = sum over subsets S of U of  (-1)^|U - S|  f(S),        f(x) = sum over all sets U of part_U

where f(S) is the output if only the columns in S are displaced from the reference (`displacements`). The part
of the empty set is the output at the reference; the part of one column is the change if only this column is
displaced. Sets of more columns than the degree have no part.

The mean output differs from the output at the reference. The mean parts of the columns (`_model.mean_parts`)
add up to this difference. They are added to the constant, which becomes the mean output, and subtracted from
the parts of the columns, which become deviations from the mean output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from .._data.dataframes import as_frame
from .._data.frame import all_different
from .._data.plain_text import plain
from .._data.raw_columns import is_a
from .._model.machine import Machine
from .displacements import ColumnForms, column_forms
from .forms import check_rows, column_names, fitted_machine
from .ranked import Ranked

MOST_PARTS = 10_000
REMAINDER = "remainder"

Columns = tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Contributions:
    """Parts of predictions.

    Attributes
    ----------
    parts : list of tuples of str
        Columns of each part; () is the constant, the mean prediction.
    values : ndarray of shape (n_samples, len(parts))
    remainder : ndarray of shape (n_samples,)
        Sum of the parts that are not listed.
    index : pandas Index or None
        The index of X, if it was a pandas DataFrame.
    """

    parts: list[Columns]
    values: np.ndarray
    remainder: np.ndarray
    index: Any = None

    @property
    def outputs(self) -> np.ndarray:
        """Return the sum of all parts: the predictions of the model."""
        return self.values.sum(axis=1) + self.remainder

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a column for each part, named "constant", "a", "a & b", ..., and one
        for the remainder. It has the index of X, if X was a pandas DataFrame.
        """
        import pandas

        names = [title_of(columns) for columns in self.parts]
        values = np.column_stack([self.values, self.remainder])
        return pandas.DataFrame(values, self.index, [*names, *remainder_key(names)])

    def __repr__(self) -> str:
        rows, *_ = self.values.shape
        some = ", ".join(map(title_of, self.parts[:8])) + (", ..." if len(self.parts) > 8 else "")
        return plain(
            f"Contributions of {rows:,} rows in {len(self.parts):,} parts: {some}; .to_frame() has all"
        )

    def _repr_html_(self) -> str:
        """Return the table that notebooks show."""
        return self.to_frame()._repr_html_()

    def __getitem__(self, part: str | Columns) -> np.ndarray:
        """Return the part (n_samples,) of these columns, in any order."""
        names = {part} if isinstance(part, str) else set(part)
        places = [place for place, columns in enumerate(self.parts) if set(columns) == names]
        if not places:
            raise KeyError(
                f"There is no part of {', '.join(sorted(repr(str(name)) for name in names))}: see .parts."
            )
        return self.values[:, places[0]]


def contributions(
    model: Any,
    X: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Contributions:
    """Split each prediction into parts of up to ``order`` columns.

    The parts and the remainder add up to the prediction. The constant is the mean prediction of the training
    rows; all other parts are deviations from it. For a classifier, decision_function is split; for the losses
    "poisson", "gamma" and "tweedie", the logarithm of the prediction is split.

    Parameters
    ----------
    model : fitted Tensor Machine
    X : array-like or sparse matrix of shape (n_samples, n_features), or dataframe
    order : int
        Maximum number of columns of a part, 0 or more; the remainder holds parts of more columns.
    columns : iterable of names or numbers, optional
        Columns to consider, all by default; the remainder holds parts with other columns.
    reference : array-like, sparse matrix or dataframe, optional
        Reference rows: their mean prediction is the constant, and parts are relative to their mean in the
        basis of the model. The default is the training rows; the bases "standard" and "spline" know their
        mean.
    output
        As in `polynomial`.
    max_parts : int
        Raise an error if there are more parts.

    Notes
    -----
    With rows of unit norm (bases "unit" and "sphere"), columns are those of the normalised row, which all
    change when one column of X changes. The parts of p columns cost O(n_samples * sets * (projections +
    2^p)), where sets is the number of sets of p columns.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import contributions
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=3, rank=2, random_state=0).fit(X, y)
    >>> split = contributions(model, X[:5])
    >>> len(split.parts), split["bmi", "bp"].shape
    (56, (5,))
    >>> bool(abs(split.outputs - model.predict(X[:5])).max() < 1e-9)
    True
    """
    forms = column_forms(model, output, reference)
    sets = sets_of_columns(forms, order, columns, max_parts)
    values = forms.map(
        check_rows(model, X), lambda displaced: parts_of_rows(forms, displaced, sets), copies=2
    )
    values += _centring(forms, sets)
    return Contributions(
        [tuple(forms.columns[g] for g in part) for part in sets],
        values[:, :-1],
        values[:, -1],
        X.index if is_a("pandas", X) else None,
    )


def explain_row(
    model: Any,
    x: Any,
    *,
    order: int = 2,
    columns: Iterable[Any] | None = None,
    reference: Any = None,
    output: Any = None,
    max_parts: int = MOST_PARTS,
) -> Ranked:
    """Split one prediction into parts that add up to it: see `contributions`.

    Parameters
    ----------
    model : fitted Tensor Machine
    x : array-like of shape (n_features,) or (1, n_features), dataframe of one row, or series
    order, columns, reference, output, max_parts
        As in `contributions`.

    Returns
    -------
    Ranked
        Parts by columns, () for the constant; ("remainder",) is the sum of all other parts, if there are any.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> parts = explain_row(model, X[:1])
    >>> bool(abs(sum(parts.values()) - model.predict(X[:1])[0]) < 1e-6)
    True
    """
    rows = _one_row(x)
    if rows.shape[0] != 1:
        raise ValueError(f"x must be one row, got {rows.shape[0]}: use contributions for several rows.")
    split = contributions(
        model, rows, order=order, columns=columns, reference=reference, output=output, max_parts=max_parts
    )
    entries: dict[Any, float] = dict(zip(split.parts, split.values[0].tolist(), strict=True))
    if columns is not None or order < fitted_machine(model).layout.degree:
        entries[remainder_key(column_names(model))] = float(split.remainder[0])
    return Ranked(entries, f"parts of the output {split.outputs[0]:.5g}")


def remainder_key(names: Iterable[str]) -> Columns:
    """Return the key of the remainder, a tuple like the keys of the parts, given the column names."""
    return (all_different([*names, REMAINDER])[-1],)


def title_of(columns: Iterable[str]) -> str:
    """Return the name of the part of these columns."""
    return " & ".join(columns) or "constant"


def _one_row(x: Any) -> Any:
    """Return a row, or a table of one row, as a table."""
    if isinstance(x, Mapping):
        raise TypeError(
            "x must be a row of values in the order of the columns, or a table of one row, got a mapping: "
            "give pd.DataFrame([x])."
        )
    if hasattr(x, "to_frame"):
        return x.to_frame().T
    if np.ndim(x) != 1:
        return as_frame(x)
    return as_frame([x]) if isinstance(x, list | tuple) else np.reshape(x, (1, -1))


def effect_on(forms: ColumnForms, columns: Sequence[int], rows: np.ndarray) -> np.ndarray:
    """Return the part of these columns for checked rows."""
    refuse_unit_rows(forms.machine)
    chosen = tuple(sorted(set(columns)))
    mean = forms.means[chosen[0]] if len(chosen) == 1 else 0.0
    return forms.map(rows, lambda displaced: _part(forms, displaced, chosen, {}) - mean)


def effect_at(forms: ColumnForms, values: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return the part of columns at given values."""
    refuse_unit_rows(forms.machine)
    rows = np.zeros((len(next(iter(values.values()))), forms.machine.basis.n_columns))
    for column, of_column in values.items():
        rows[:, column] = of_column
    return effect_on(forms, list(values), rows)


def refuse_unit_rows(machine: Machine) -> None:
    if machine.basis.unit_rows:
        raise ValueError(
            "A column has no effect of its own where rows are divided by their norm: "
            "use a basis other than unit and sphere."
        )


def sets_of_columns(
    forms: ColumnForms, order: int, columns: Iterable[Any] | None, max_parts: int
) -> list[tuple[int, ...]]:
    """Return all sets of up to ``order`` of the columns, smaller sets first."""
    if order < 0:
        raise ValueError(f"order must be 0 or more, got {order!r}.")
    chosen = (
        range(len(forms.columns)) if columns is None else sorted({forms.column(name) for name in columns})
    )
    order = min(order, forms.layout.degree)
    count = sum(comb(len(chosen), p) for p in range(order + 1))
    if count > max_parts:
        hint = "Lower order, choose columns, or raise max_parts."
        raise ValueError(
            f"There are {count:,} parts of up to {order} columns, max_parts is {max_parts:,}. {hint}"
        )
    return [part for p in range(order + 1) for part in combinations(chosen, p)]


def parts_of_rows(forms: ColumnForms, displaced: np.ndarray, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the parts of sets, each after all of its subsets, and the remainder: (rows, sets + 1)."""
    values = np.empty((len(displaced), len(sets) + 1))
    known: dict[tuple[int, ...], np.ndarray] = {}
    for place, columns in enumerate(sets):
        values[:, place] = _part(forms, displaced, columns, known)
    values[:, -1] = forms.displaced_outputs(displaced) - values[:, :-1].sum(axis=1)
    return values


def _centring(forms: ColumnForms, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Return the shifts that make parts of sets and the remainder deviations from the mean, (sets + 1)."""
    centring = np.zeros(len(sets) + 1)
    for place, columns in enumerate(sets):
        if len(columns) == 1:
            centring[place] = -forms.means[columns[0]]
    centring[0] = forms.means.sum()  # the empty set
    centring[-1] = -centring.sum()
    return centring


def _part(
    forms: ColumnForms,
    displaced: np.ndarray,
    columns: tuple[int, ...],
    known: dict[tuple[int, ...], np.ndarray],
) -> np.ndarray:
    """Return the joint effect of these columns minus the parts of their subsets."""
    if columns not in known:
        together = forms.displaced_outputs(displaced[:, list(columns)])
        fewer = (subset for p in range(len(columns)) for subset in combinations(columns, p))
        known[columns] = together - sum(_part(forms, displaced, subset, known) for subset in fewer)
    return known[columns]
