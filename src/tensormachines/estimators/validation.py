"""The door through which tables come into an estimator: what X may be, and what is remembered of it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_X_y, validate_data

from .._data.dataframes import as_table, target_name, why_not_numbers
from .._data.encoding import Columns, learn_columns
from .._data.frame import Frame
from .._model.basis import RAW_BASES
from .._model.block import canonical
from .sklearn_private import check_sample_weight


class TakesTables(BaseEstimator):
    """An estimator with a parameter ``basis``: numbers come in as a matrix, raw tables as well where the
    basis is one of ``_raw_bases``.
    """

    basis: str | None
    _raw_bases: ClassVar[tuple[str, ...]] = RAW_BASES
    _columns: Columns | None = (
        None  # of the raw table that the model was fitted on; None for a matrix of numbers
    )
    _kinds: tuple[str, ...] | None = (
        None  # of the columns; of a fit within a search, which has seen more rows
    )

    def _takes_raw_columns(self) -> bool:
        """Whether X may have categories and missing values."""
        return self.basis in self._raw_bases

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, **options: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        if self._takes_raw_columns():
            X = as_table(X)
        if reset:
            # Set at once, like the names of the columns, and undone if the fit fails: callbacks evaluate
            # models on the way.
            self._columns = self._learn_columns(X, sample_weight)
        X, y = self._check_data(X, y, reset=reset, accept_large_sparse=True, **options)
        X = canonical(X)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            require_some_weight(sample_weight, "sample_weight")
        return X, y, sample_weight

    def _learn_columns(self, X: Any, sample_weight: Any) -> Columns | None:
        if not self._takes_raw_columns():
            return None
        return learn_columns(
            X,
            None if sample_weight is None else check_sample_weight(sample_weight, X, dtype=np.float64),
            self._kinds,
        )

    def _check_data(self, X: Any, *y: Any, reset: bool, **options: Any) -> Any:
        """X, or X and y, as arrays of numbers: the door through which all tables in memory come in."""
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None}
        options["ensure_all_finite"] = "allow-nan" if self._takes_raw_columns() else True
        if isinstance(X, Frame):
            X = self._check_frame(X, reset)
            return (
                check_X_y(X, *y, estimator=self, **options)
                if y
                else check_array(X, estimator=self, input_name="X", **options)
            )
        if self._columns is not None:
            X = as_table(X)
            validate_data(
                self, X, *y, reset=reset, skip_check_array=True
            )  # the names and number of the columns
            X = self._columns.encode(X)
            return (
                check_X_y(X, *y, estimator=self, **options)
                if y
                else check_array(X, estimator=self, input_name="X", **options)
            )
        try:
            checked = validate_data(self, X, *y, reset=reset, **options)
        except (TypeError, ValueError):
            self._explain(X)
            raise
        matrix = checked[0] if y else checked
        if sparse.issparse(matrix) and np.isnan(matrix.data).any():
            raise ValueError(
                "X is sparse and has NaN: give dense rows, where a missing value is a state of its own, or put numbers in its place."
            )
        return checked

    def _check_frame(self, X: Frame, reset: bool) -> np.ndarray:
        """The matrix of a frame whose columns scikit-learn knows no names of."""
        if reset:
            self._name_columns(X.shape[1], list(X.names))
        elif (
            X.names != (names := tuple(getattr(self, "feature_names_in_", X.names)))
            or X.shape[1] != self.n_features_in_
        ):
            raise ValueError(
                f"The columns should be named as in the fit, {list(names)}, in that order; got {list(X.names)}."
            )
        if self._columns is not None:
            return self._columns.encode(X)
        self._explain(X)
        return np.asarray(X)

    def _explain(self, X: Any) -> None:
        """Say it clearly where X is not the matrix of numbers that it should be."""
        given, instead = self._basis_in_words()
        if self._takes_raw_columns():
            reason, hint = why_not_numbers(X, missing_allowed=True), "In the fit all columns were numbers."
        else:
            reason = why_not_numbers(X)
            hint = (
                f"Use {instead}, which encodes categories and missing values."
                if self._raw_bases
                else "Use OneHotEncoder and SimpleImputer of scikit-learn before it."
            )
        if reason is not None:
            raise ValueError(f"{given} needs numbers: {reason}. {hint}") from None

    def _basis_in_words(self) -> tuple[str, str]:
        """The parameter as it is, and as it takes any table."""
        return f'basis="{self.basis}"' if isinstance(
            self.basis, str
        ) else f"basis={self.basis}", 'basis="auto"'

    def _name_columns(self, n_columns: int, names: list[str] | None) -> None:
        """What scikit-learn's own check sets for arrays and frames."""
        self.n_features_in_ = n_columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _name_target(self, y: Any) -> None:
        """Remember what y is called, if it has a name."""
        name = target_name(y)
        if name is not None:
            self.target_name_ = name
        elif hasattr(self, "target_name_"):
            del self.target_name_

    def _is_plain(self, X: Any) -> bool:
        """Whether nothing can be wrong with X, which is seen in a tenth of the time that all checks take: for
        single rows that counts.
        """
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and not hasattr(self, "feature_names_in_")
            and self._columns is None
            and bool(np.isfinite(X).all())
        )


def require_some_weight(weight: np.ndarray, name: str) -> None:
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(
            f"{name} must give every row a finite weight that is not negative, and some row a positive one."
        )
