"""Parameters that name columns of X: categories, interactions, monotonic effects and periods.

Except for periods, names and meanings are those of scikit-learn's HistGradientBoosting."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from .._data.frame import column_label
from .._data.open import is_in_memory
from .._data.summary import TrainingSample
from .._data.training import TrainingRows
from .._fit.constraints import Constraints
from .._model.spline_learning import start_of_period
from .sklearn_private import HasMethods, StrOptions

Names = Sequence[str] | None


class Periods(HasMethods):
    """The constraint of ``periodic_features``, a dict; scikit-learn's messages show its text."""

    def __init__(self) -> None:
        super().__init__("items")

    def is_satisfied_by(self, val: Any) -> bool:
        return isinstance(val, dict)

    def __str__(self) -> str:
        return "a mapping {column: period}, such as {'hour': 24},"


COLUMN_PARAMETERS: dict[str, list[Any]] = {
    "categorical_features": [StrOptions({"auto", "from_dtype"}), "array-like", None],
    "periodic_features": [Periods(), None],
    "monotonic_cst": ["array-like", dict, None],
    "interaction_cst": [StrOptions({"pairwise", "no_interactions"}), list, tuple, None],
}
ALLOWED_SOLVERS = {
    "interaction_cst": ("adam", "lbfgs", "sfo"),
    "monotonic_cst": ("adam",),
}
HIGHEST_DEGREES = {"pairwise": 2, "no_interactions": 1}


def highest_degree(interaction_cst: Any) -> int | None:
    """Return the largest allowed degree; None if any degree is allowed."""
    return HIGHEST_DEGREES.get(interaction_cst) if isinstance(interaction_cst, str) else None


def allowed_degree(degree: int | str, interaction_cst: Any) -> int | str:
    """Return the degree of a model or "auto"; if interaction_cst is a string, it determines "auto"."""
    most = highest_degree(interaction_cst)
    if isinstance(degree, str):
        return degree if most is None else most
    if most is not None and degree > most:
        raise ValueError(
            f"interaction_cst={interaction_cst!r} allows a degree of at most {most}, got {degree}: "
            "terms of higher degree are interactions of more columns."
        )
    return int(degree)


def check_constraints(model: Any) -> None:
    """Refuse settings that are incompatible with the constraints of an estimator."""
    for name, solvers in ALLOWED_SOLVERS.items():
        if getattr(model, name) is None:
            continue
        if model.solver not in solvers or model.max_norm is not None or model.init != "random":
            raise ValueError(
                f'{name} needs solver={" or ".join(map(repr, solvers))}, init="random" and no max_norm, got '
                f"solver={model.solver!r}, init={model.init!r}, max_norm={model.max_norm}."
            )
        if model.basis in ("sphere", "unit"):
            raise ValueError(
                f"basis={model.basis!r} divides each row by its norm, which makes all columns interact: use "
                f"another basis with {name}."
            )
    for name in ("trend", "jumps"):
        if model.monotonic_cst is not None and getattr(model, name) is True:
            raise ValueError(f"monotonic_cst cannot be combined with {name}=True: leave {name} out.")


def declared_kinds(categorical_features: Any, n_columns: int, names: Names) -> list[str | None] | None:
    """Return "category" for each declared category and None for other columns; None if none is declared."""
    if categorical_features is None or isinstance(categorical_features, str):
        return None
    given = list(categorical_features)
    if given and all(isinstance(each, bool | np.bool_) for each in given):
        if len(given) != n_columns:
            raise ValueError(
                f"categorical_features is a mask of {len(given)} columns, but X has {n_columns}."
            )
        given = np.flatnonzero(given).tolist()
    chosen = set(_numbers(given, n_columns, names, "categorical_features"))
    return ["category" if j in chosen else None for j in range(n_columns)] if chosen else None


def refuse_other_categories(model: Any, X: Any) -> None:
    """Refuse categorical_features for rows that are not in memory: their sources know the categories."""
    declared = model.categorical_features
    if declared is None or isinstance(declared, str) or is_in_memory(X):
        return
    raise ValueError(
        "categorical_features needs X in memory: give the categories of a file to its source, such as "
        "blocks.csv(..., category=[...])."
    )


def n_meetings(interaction_cst: Any, n_columns: int, names: Names) -> int:
    """Return the number of sets of columns that may interact: each needs a term."""
    return len(_meetings(interaction_cst, n_columns, names) or [None])


def require_terms(name: str, fewest: int, given: Any, n_sets: int) -> None:
    """Refuse a parameter that allows fewer terms than there are sets of columns that may interact."""
    if fewest < n_sets:
        raise ValueError(
            f"interaction_cst makes {n_sets} sets of columns (columns in no set form one), and each needs at "
            f"least one term: {name} must be {n_sets} or more, got {given!r}."
        )


def periods_of(estimator: Any, training: TrainingRows, sample: TrainingSample | None) -> dict[int, float]:
    """Return the periods of encoded columns; if these become splines, there is a ``sample`` of them."""
    given = estimator.periodic_features
    if not given:
        return {}
    names, sources = _names_and_sources(estimator, training)
    columns = _numbers(given, max(sources) + 1, names, "periodic_features")
    signs = _signs(estimator.monotonic_cst, max(sources) + 1, names)
    found = {}
    for j, period in zip(columns, given.values(), strict=True):
        label = column_label(names, j)
        length = float(period) if isinstance(period, Real) else np.nan
        if not 0 < length < np.inf:
            raise ValueError(f"periodic_features must have positive periods, got {period!r} for {label}.")
        if sample is None:
            raise ValueError('periodic_features needs splines: basis="auto" or "spline", and dense rows.')
        if training.columns is not None and training.columns.kinds[j] != "number":
            raise ValueError(f"periodic_features has a period for {label}, which does not hold numbers.")
        if signs[j]:
            raise ValueError(f"periodic_features and monotonic_cst both name {label}: leave it out of one.")
        place = sources.index(j)
        values = sample.X[:, place]
        least, most = np.nanmin(values, initial=np.inf), np.nanmax(values, initial=-np.inf)
        if least <= most and start_of_period(least, most, length) is None:
            raise ValueError(
                f"periodic_features has a period of {length:g} for {label}, whose numbers span more than "
                f"that, from {least:g} to {most:g}: take them modulo {length:g} first."
            )
        found[place] = length
    return found


def _names_and_sources(estimator: Any, training: TrainingRows) -> tuple[list[str] | None, list[int]]:
    """Return the names of the columns of X, and the column of X that each encoded column comes from."""
    names = training.feature_names or getattr(estimator, "feature_names_in_", None)
    encoded = training.columns
    sources = list(range(training.n_columns)) if encoded is None else encoded.sources
    return None if names is None else list(names), sources


def constraints_of(estimator: Any, training: TrainingRows) -> Constraints | None:
    """Return the constraints of an estimator, which knows the names of rows in memory; None if none."""
    given, sources = _names_and_sources(estimator, training)
    encoded = training.columns
    for j in {} if encoded is None else encoded.categories:
        if _signs(estimator.monotonic_cst, max(sources) + 1, given)[j]:
            label = column_label(given, j)
            raise ValueError(f"monotonic_cst has a sign for {label}, which is a category.")
    return find_constraints(estimator.interaction_cst, estimator.monotonic_cst, sources, given)


def find_constraints(
    interaction_cst: Any, monotonic_cst: Any, sources: Sequence[int], names: Names
) -> Constraints | None:
    """Return the constraints by index of encoded column; None if there are none.

    ``sources`` are the columns of X that encoded columns come from. A date has several, and cannot be
    monotonic."""
    n_columns = max(sources, default=-1) + 1
    signs = _signs(monotonic_cst, n_columns, names)
    meetings = _meetings(interaction_cst, n_columns, names)
    if meetings is None and not any(signs):
        return None
    for columns in _sets(interaction_cst, n_columns, names):
        bound = sorted(j for j in columns if signs[j])
        if bound and len(columns) > 1:
            label = column_label(names, bound[0])
            raise ValueError(
                f"interaction_cst has a set that contains {label}, which has a sign in monotonic_cst. A "
                "monotonic column cannot interact: remove it from one of the two."
            )
    for j, sign in enumerate(signs):
        if sign and list(sources).count(j) > 1:
            label = column_label(names, j)
            raise ValueError(
                f"monotonic_cst has a sign for {label}, which holds dates. Their position in the year, week "
                "and day is cyclic, so the column cannot be monotonic."
            )
    if meetings is not None:
        meetings = tuple(
            frozenset(k for k, source in enumerate(sources) if source in columns) for columns in meetings
        )
    return Constraints(meetings, tuple(signs[source] for source in sources))


def _signs(monotonic_cst: Any, n_columns: int, names: Names) -> tuple[int, ...]:
    if monotonic_cst is None:
        return (0,) * n_columns
    if isinstance(monotonic_cst, dict):
        columns = _numbers(monotonic_cst, n_columns, names, "monotonic_cst")
        given = dict(zip(columns, monotonic_cst.values(), strict=True))
        signs = [given.get(j, 0) for j in range(n_columns)]
    else:
        signs = list(monotonic_cst)
        if len(signs) != n_columns:
            raise ValueError(
                f"monotonic_cst has {len(signs)} entries, but X has {n_columns} columns: give one for each, "
                "or a dict by the names of columns."
            )
    for sign in signs:
        if sign not in (-1, 0, 1):
            raise ValueError(f"monotonic_cst must hold -1, 0 or 1, got {sign!r}.")
    return tuple(int(sign) for sign in signs)


def _meetings(interaction_cst: Any, n_columns: int, names: Names) -> tuple[frozenset[int], ...] | None:
    """Return the sets of columns that may interact; columns in no set form one more, as in scikit-learn."""
    if interaction_cst is None or isinstance(interaction_cst, str):
        return None  # the degree expresses the constraint
    sets = _sets(interaction_cst, n_columns, names)
    rest = frozenset(range(n_columns)).difference(*sets)
    return tuple(dict.fromkeys([each for each in [*sets, rest] if each]))


def _sets(interaction_cst: Any, n_columns: int, names: Names) -> list[frozenset[int]]:
    """Return the sets of columns given by the user; none if interaction_cst is a string or None."""
    if interaction_cst is None or isinstance(interaction_cst, str):
        return []
    for columns in interaction_cst:
        if isinstance(columns, str) or not isinstance(columns, Iterable):
            raise ValueError(f"interaction_cst must hold sets of columns, got {columns!r} among them.")
    return [frozenset(_numbers(columns, n_columns, names, "interaction_cst")) for columns in interaction_cst]


def _numbers(columns: Iterable[Any], n_columns: int, names: Names, parameter: str) -> list[int]:
    """Return the indices of columns that are given by index or by name."""
    numbers = []
    for column in columns:
        if isinstance(column, str):
            if names is None:
                raise ValueError(
                    f"{parameter} names the column {column!r}, but the columns of X have no names."
                )
            if column not in names:
                raise ValueError(f"{parameter} names the column {column!r}, which X does not have.")
            numbers.append(list(names).index(column))
        elif isinstance(column, Integral) and 0 <= int(column) < n_columns:
            numbers.append(int(column))
        else:
            raise ValueError(
                f"{parameter} must give columns by name or by number from 0 to {n_columns - 1}, got "
                f"{column!r}."
            )
        if isinstance(columns, dict) and numbers[-1] in numbers[:-1]:
            raise ValueError(f"{parameter} names {column_label(names, numbers[-1])} twice.")
    return numbers
