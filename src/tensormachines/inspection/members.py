"""Bootstrap members: a model refitted to bootstrap samples of its rows, and bands from the members' spread.

A bootstrap sample contains only 63 % of the distinct rows, some of them several times. So members are
smoother than the model, just as the model is smoother than the truth. The distance between the members' mean
and the model therefore indicates the bias of the model, which is larger. Let c be the curve of the model, m
the mean of the members' curves and s their standard deviation, all at one point. A band is

    c plus and minus  t sqrt(s^2 + (2 (m - c))^2)

where t is a quantile of Student's distribution. Bands between quantiles of the members' curves contained the
truth far less often than intended: see benchmarks/bands.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student
from sklearn.utils import check_random_state

from .._data.open import is_in_memory
from ..estimators.refit import refitted
from ..estimators.sklearn_private import check_sample_weight
from .decomposition import effect_at
from .displacements import ColumnForms
from .effects import Effects, Scale, effects_of, effects_of_member
from .forms import check_rows, column_names, fitted_machine, output_keys

FEWEST_MEMBERS = 2
COVERAGE = 0.9
BIAS = 2.0  # bias of the model, in units of its distance from the members' mean


def bootstrap(
    model: Any, X: Any, y: Any, *, sample_weight: Any = None, n_members: int = 20, random_state: Any = None
) -> list[Any]:
    """Refit a model to bootstrap samples of its training rows.

    Each member has the settings of the model, and repeats the choices that these leave open
    (alpha, degree, trend, jumps) on rows drawn with replacement; the weight of a row is its number of draws.
    Differences between members show what other rows and another random start would change in the model. The
    members of a search have the settings that it chose.

    Parameters
    ----------
    model : fitted Tensor Machine, or a search of these
    X, y, sample_weight
        The rows that the model was fitted to, in memory. If the fit had an ``exposure``, pass
        ``y / exposure`` and ``sample_weight * exposure``.
    n_members : int, default=20
        Number of members, at least 2. Each takes about as long as the fit of the model.
    random_state : int, RandomState instance or None

    Returns
    -------
    list of fitted models
        For `effect_band`, `coefficient_spread`, `plots.effect_curve` and `report.html_report`.

    Examples
    --------
    >>> import numpy as np
    >>> from tensormachines import TensorMachineRegressor
    >>> from tensormachines.inspection import bootstrap, coefficient_spread
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> y = X[:, 0] * X[:, 1] + rng.normal(size=500)
    >>> model = TensorMachineRegressor(degree=2, rank=1, basis="standard", solver="kfac", alpha=0).fit(X, y)
    >>> members = bootstrap(model, X, y, n_members=5, random_state=0)
    >>> mean, deviation = coefficient_spread(model, [("x0", "x1")], members=members)["x0", "x1"]
    >>> 0.8 < mean < 1.2, 0.01 < deviation < 0.1
    (True, True)
    """
    fitted_machine(model)
    if not is_in_memory(X):
        raise TypeError("A bootstrap needs X and y in memory: fit a model to a sample of the rows first.")
    if n_members < FEWEST_MEMBERS:
        raise ValueError(f"n_members must be {FEWEST_MEMBERS} or more, got {n_members!r}.")
    n_rows = np.shape(y)[0]
    weight = np.ones(n_rows) if sample_weight is None else check_sample_weight(sample_weight, X, dtype=float)
    random, present = check_random_state(random_state), np.flatnonzero(weight)
    members = []
    for _ in range(n_members):
        drawn = np.bincount(random.choice(present, len(present)), minlength=n_rows)
        members.append(refitted(model, X, y, weight * drawn, random.randint(1 << 31)))
    return members


def effect_band(
    model: Any,
    columns: Any,
    X: Any,
    members: Sequence[Any],
    *,
    coverage: float = COVERAGE,
    reference: Any = None,
    output: Any = None,
    scale: Scale = "link",
) -> np.ndarray:
    """Return a confidence band around the effect of one column, or of several together, for rows of X.

    The band should contain the true effect with probability ``coverage`` at each point, not everywhere at
    once. docs/explain.md lists the measured coverage.

    Parameters
    ----------
    model, columns, X, reference, output, scale
        As in `effect`. On the scale of the target, the band is the same in other units: it reflects uncertain
        effects about the mean output of the model, not an uncertain mean output.
    members : list of models
        Members from `bootstrap`.
    coverage : float, default=0.9
        Between 0 and 1, both excluded.

    Returns
    -------
    ndarray of shape (n_samples, 2)
        Lower and upper end of the band.
    """
    found = effects_of(model, output, reference, scale)
    numbers, rows = found.numbers(columns), check_rows(model, X)
    return np.column_stack(
        band_of(model, found, members, reference, coverage, lambda each: each.on(numbers, rows))
    )


def band_of(
    model: Any,
    of_model: Effects,
    members: Sequence[Any],
    reference: Any,
    coverage: float,
    heights: Callable[[Effects], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Return the lower and upper ends of the band around effects; ``heights`` maps a model to its effects."""
    check_members(model, members)
    of_members = [heights(effects_of_member(each, of_model, reference)) for each in members]
    middle = heights(of_model)
    half = half_width(middle, of_members, coverage)
    return of_model.scale.shown(middle - half), of_model.scale.shown(middle + half)


def half_width(of_model: np.ndarray, of_members: Sequence[np.ndarray], coverage: float) -> np.ndarray:
    """Return half the width of a band around values of the model, from the same values of the members."""
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be a number between 0 and 1, got {coverage!r}.")
    curves = np.asarray(of_members)
    bias = BIAS * (curves.mean(axis=0) - of_model)
    return student.ppf((1 + coverage) / 2, len(curves) - 1) * np.hypot(curves.std(axis=0, ddof=1), bias)


def half_width_at(
    of_model: ColumnForms,
    of_members: Sequence[ColumnForms],
    values: Mapping[int, np.ndarray],
    coverage: float = COVERAGE,
) -> np.ndarray:
    """Return half the width of the band around the effect of columns at given values."""
    return half_width(effect_at(of_model, values), [effect_at(each, values) for each in of_members], coverage)


def check_members(model: Any, members: Sequence[Any]) -> None:
    """Refuse anything that is not a list of members of the model."""

    def shape(each: Any) -> tuple[Any, ...]:
        fitted_machine(each)
        return column_names(each), each._description().columns, output_keys(each)

    if len(members) < FEWEST_MEMBERS or any(shape(each) != shape(model) for each in members):
        raise ValueError(
            f"members must be {FEWEST_MEMBERS} or more models with the columns and outputs of the model: "
            "give what inspection.bootstrap(model, X, y) returns."
        )
