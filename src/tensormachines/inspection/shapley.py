"""A prediction as a sum over columns: every part is shared out equally among the columns that it belongs to.

These are the Shapley values of the game in which a set U of columns wins f(U), the output where only these
have left the reference. A game has 2^columns sets; here none is enumerated. Let column g join with
probability q, all independently. The expectation of a product of forms is a sum over ways to give each factor
to the reference or to a column; a column that is given the set J of factors adds q prod_{j in J} move_jg. So
it is a product over columns of set functions, each 1 for no factor and q prod for a set, multiplied as
polynomials are, but for disjoint sets. A Shapley value is the integral over q of what g adds (Owen 1972); as
a polynomial in q of degree p - 1 it is found exactly at p / 2 points (Gauss). Costs O(rows * columns * rank *
3^p * p)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .displacements import Moves, moves_of
from .forms import check_rows


def column_contributions(
    model: Any, X: Any, *, reference: Any = None, output: Any = None
) -> tuple[list[str], np.ndarray, float]:
    """Split each prediction among the columns: a constant, and one number for each column, which add up to
    it.

    A part that several columns have together (see `contributions`) is shared out equally among them, whatever
    their number: these are the exact Shapley values relative to the reference, in a time that grows with the
    number of columns, not with that of their sets.

    Parameters
    ----------
    model, X, reference, output
        As in `contributions`.

    Returns
    -------
    columns : list of str
    values : ndarray of shape (n_samples, len(columns))
    constant : float
        The output at the reference.
    """
    moves = moves_of(model, output, reference)
    widest = 2 ** max(moves.layout.degree, 1)
    values = moves.map(check_rows(model, X), lambda of_rows: shapley_values(moves, of_rows), copies=widest)
    return list(moves.columns), values, float(moves.outputs(moves.reference))


def shapley_values(moves: Moves, of_rows: np.ndarray) -> np.ndarray:
    """(rows, columns)"""
    values = of_rows[:, :, 0].copy()
    for p, projections in moves.layout.degrees():
        reference = moves.reference[projections].reshape(p, moves.layout.rank)
        of_factors = of_rows[:, :, projections].reshape(*of_rows.shape[:2], p, moves.layout.rank)
        points, weights = np.polynomial.legendre.leggauss((p + 1) // 2)
        for point, weight in zip((points + 1) / 2, weights / 2, strict=True):
            values += weight * _added(reference, of_factors, point)
    return values


def _added(reference: np.ndarray, of_factors: np.ndarray, q: float) -> np.ndarray:
    """(rows, columns): what a column adds to the expected products if the others join with probability q.

    ``reference`` is (p, rank), ``of_factors`` (rows, columns, p, rank).
    """
    p = len(reference)
    at_reference = _products(np.broadcast_to(reference, (len(of_factors), *reference.shape)))
    of_columns = [
        _products(of_factors[:, column]) for column in range(of_factors.shape[1])
    ]  # each (2^p, rows, rank)
    expected = at_reference
    for joining in of_columns:
        expected = expected + q * _over_splits(joining, expected)
    added = np.empty(of_factors.shape[:2])
    full = (1 << p) - 1
    for column, joining in enumerate(of_columns):
        without = (
            expected.copy()
        )  # expected = without + q joining * without, solved from small sets to large ones
        for factors in range(1, full + 1):
            for own in _subsets(factors):
                without[factors] -= q * joining[own] * without[factors ^ own]
        added[:, column] = sum(joining[own] * without[full ^ own] for own in _subsets(full)).sum(axis=1)
    return added


def _products(values: np.ndarray) -> np.ndarray:
    """(2^p, rows, rank): of values (rows, p, rank) the products over each set of factors, sets as bits."""
    rows, p, rank = values.shape
    products = np.ones((1 << p, rows, rank))
    for j in range(p):
        products[1 << j : 2 << j] = products[: 1 << j] * values[:, j]
    return products


def _over_splits(joining: np.ndarray, others: np.ndarray) -> np.ndarray:
    """For each set of factors the sum over splits of it into some, at least one, for the column and the rest
    for the others.
    """
    total = np.zeros_like(others)
    for factors in range(1, len(others)):
        for own in _subsets(factors):
            total[factors] += joining[own] * others[factors ^ own]
    return total


def _subsets(factors: int) -> list[int]:
    """All that are not empty, as bits."""
    found, own = [], factors
    while own:
        found.append(own)
        own = (own - 1) & factors
    return found
