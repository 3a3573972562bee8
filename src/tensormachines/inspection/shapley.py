"""Exact Shapley values: a prediction as a sum over columns, each part shared equally among its columns.

In the game, a set U of columns wins f(U), the output if only these columns are displaced from the reference.
The game has 2^columns sets, which are not enumerated here. Let each column join with probability q,
independently. The expectation of a product of forms is a sum over all ways to assign each factor to the
reference or to a column; a column g that is assigned the set J of factors contributes q prod_{j in J} d_jg,
where d_jg is its displacement of factor j. So the expectation is a product over columns of set functions,
each 1 for the empty set and q prod for any other, multiplied like polynomials, but over disjoint sets. A
Shapley value is the integral over q of the contribution of g (Owen 1972); as a polynomial in q of degree p -
1 it is integrated exactly by p / 2 points (Gauss). The cost is O(rows * columns * rank * 3^p * p)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .displacements import ColumnForms, column_forms
from .forms import check_rows, framed


def column_contributions(
    model: Any, X: Any, *, reference: Any = None, output: Any = None
) -> tuple[list[str], Any, float]:
    """Split each prediction into the mean prediction and one number per column: exact Shapley values.

    Each part of several columns (see `contributions`) is shared equally among them. The time grows with the
    number of columns, not with the number of their sets.

    Parameters
    ----------
    model, X, reference, output
        As in `contributions`.

    Returns
    -------
    columns : list of str
    values : ndarray of shape (n_samples, len(columns)), or DataFrame
        A DataFrame if X is a pandas DataFrame.
    constant : float
        The mean output of the training rows, or of the reference.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> columns, values, constant = column_contributions(model, X)
    >>> bool(abs(constant + values.sum(axis=1) - model.predict(X)).max() < 1e-6)
    True
    """
    forms = column_forms(model, output, reference)
    widest = 2 ** max(forms.layout.degree, 1)
    values = forms.map(
        check_rows(model, X), lambda displaced: shapley_values(forms, displaced), copies=widest
    )
    return list(forms.columns), framed(X, values - forms.means, forms.columns), forms.mean_output


def shapley_values(forms: ColumnForms, displaced: np.ndarray) -> np.ndarray:
    """Return the Shapley values (rows, columns) of displacements."""
    values = displaced[:, :, 0].copy()
    for p, columns in forms.layout.degrees():
        reference = forms.reference[1:][columns].reshape(p, forms.layout.rank)
        of_factors = displaced[:, :, 1:][:, :, columns].reshape(*displaced.shape[:2], p, forms.layout.rank)
        points, weights = np.polynomial.legendre.leggauss((p + 1) // 2)
        for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
            values += weight * _added(reference, of_factors, point)
    return values


def _added(reference: np.ndarray, of_factors: np.ndarray, q: float) -> np.ndarray:
    """Return what each column adds to the expected products if the others join with probability q.

    ``reference`` is (p, rank), ``of_factors`` (rows, columns, p, rank), the result (rows, columns).
    """
    p = len(reference)
    at_reference = _products(np.broadcast_to(reference, (len(of_factors), *reference.shape)))
    # Each (2^p, rows, rank).
    of_columns = [_products(of_factors[:, column]) for column in range(of_factors.shape[1])]
    expected = at_reference
    for joining in of_columns:
        expected = expected + q * _over_splits(joining, expected)
    added = np.empty(of_factors.shape[:2])
    full = (1 << p) - 1
    for column, joining in enumerate(of_columns):
        without = expected.copy()  # expected = without + q joining * without, solved from small to large sets
        for factors in range(1, full + 1):
            for own in _subsets(factors):
                without[factors] -= q * joining[own] * without[factors ^ own]
        added[:, column] = sum(joining[own] * without[full ^ own] for own in _subsets(full)).sum(axis=1)
    return added


def _products(values: np.ndarray) -> np.ndarray:
    """Return products of values (rows, p, rank) over each set of factors: (2^p, rows, rank), sets as bits."""
    rows, p, rank = values.shape
    products = np.ones((1 << p, rows, rank))
    for j in range(p):
        products[1 << j : 2 << j] = products[: 1 << j] * values[:, j]
    return products


def _over_splits(joining: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return for each set of factors the sum over all splits into a non-empty set for the column and the rest
    for the other columns.
    """
    total = np.zeros_like(others)
    for factors in range(1, len(others)):
        for own in _subsets(factors):
            total[factors] += joining[own] * others[factors ^ own]
    return total


def _subsets(factors: int) -> list[int]:
    """Return all non-empty subsets of a set of factors, as bits."""
    found, own = [], factors
    while own:
        found.append(own)
        own = (own - 1) & factors
    return found
