"""Constraints on columns of X: which may interact, and with which outputs may only rise or fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._model.basis import Basis
from .._model.layout import Layout
from .._model.spline_basis import SplineBasis


@dataclass(frozen=True)
class Constraints:
    """Constraints on the columns of X, which are given by index.

    ``meetings`` are sets of columns: terms take the sets in turn, and a term depends only on the columns of
    its set. None means that all columns may interact. ``signs`` (n_columns) are 1 where outputs may only rise
    with a column, -1 where they may only fall, and 0 elsewhere. A column with a sign is in no term, and its
    own function is monotonic: a sum of ramps (see `learn_splines`) or a straight line, with coefficients of
    this sign."""

    meetings: tuple[frozenset[int], ...] | None
    signs: tuple[int, ...]

    @property
    def monotonic(self) -> frozenset[int]:
        """Return the columns that have a sign."""
        return frozenset(j for j, sign in enumerate(self.signs) if sign)

    @property
    def n_meetings(self) -> int:
        return 1 if self.meetings is None else len(self.meetings)

    def free(self, layout: Layout, basis: Basis) -> np.ndarray:
        """Return a mask of the params that may differ from 0."""
        free = np.ones(layout.size, dtype=bool)
        terms = layout.terms(free)
        for _, columns in layout.degrees():
            of_degree = terms[:, :, columns].reshape(layout.n_features, layout.n_sets, -1, layout.rank)
            of_degree &= self._of_terms(basis, layout.rank)[:, None, None]
            terms[:, :, columns] = of_degree.reshape(terms[:, :, columns].shape)
        return free

    def _of_terms(self, basis: Basis, rank: int) -> np.ndarray:
        """Return for each feature and term index whether the term may depend on the feature."""
        meetings = (frozenset(range(basis.n_columns)),) if self.meetings is None else self.meetings
        allowed = np.zeros((basis.n_columns + 1, len(meetings)), dtype=bool)
        allowed[-1] = True  # group -1, the constant
        for number, columns in enumerate(meetings):
            allowed[list(columns - self.monotonic), number] = True
        return allowed[basis.groups][:, np.arange(rank) % len(meetings)]

    def project(self, params: np.ndarray, layout: Layout, basis: Basis) -> np.ndarray:
        """Return the nearest params whose linear parts have the signs."""
        signs = np.append(self.signs, 0)[basis.groups]
        if isinstance(basis, SplineBasis):
            signs = signs * basis.is_ramp  # missing values may have any effect
        projected = params.copy()
        linear = layout.linear(projected)
        linear[signs[:, None] * linear < 0] = 0
        return projected
