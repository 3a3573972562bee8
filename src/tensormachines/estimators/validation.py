"""Validation of X in an estimator: what X may be, and what is remembered of it.

Raw input becomes a Frame here, once. Frames are encoded, and scikit-learn checks everything else."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_array, check_X_y, validate_data

from .._data.column_notes import (
    FIRST_ROWS,
    ColumnWarning,
    category_note,
    in_words,
    number_note,
    text_note,
)
from .._data.dataframes import (
    boolean_columns,
    declares_category,
    is_raw,
    numbers_of,
    read_frame,
    refuse_empty,
    refuse_infinite,
    temporal_columns,
    text_of,
    why_not_numbers,
    without_lists,
)
from .._data.encoding import Column, Columns, learn_columns
from .._data.few_rows import read_few_rows
from .._data.files.source import Source
from .._data.frame import Frame, column_label
from .._data.masked import is_masked, refuse_masked
from .._data.open import is_in_memory
from .._data.raw_columns import column_names
from .._data.target_values import (
    refuse_missing_targets,
    refuse_other_targets,
    refuse_several_labels,
    target_name,
)
from .._model.basis import RAW_BASES
from .._model.block import canonical
from .column_parameters import declared_kinds
from .sklearn_private import check_sample_weight

FEW_NUMBERS = 1000  # so few that BLAS starts no threads


class TakesFrames(BaseEstimator):
    """An estimator with a parameter ``basis`` that accepts a matrix of numbers, and also raw frames if the
    basis is one of ``_raw_bases``.

    ``_columns`` are the columns of the frame that the model was fitted to; None for a matrix of numbers.
    ``_kinds`` are the kinds of columns in a fit within a search, which has seen more rows. ``_known_columns``
    are the columns of a model that is refitted to its rows.
    """

    basis: str | None
    categorical_features: Any = "auto"
    _raw_bases: ClassVar[tuple[str, ...]] = RAW_BASES
    _columns: Columns | None = None
    _kinds: tuple[str, ...] | None = None
    _known_columns: Columns | None = None

    def _takes_raw_columns(self) -> bool:
        """Tell whether X may have categories and missing values."""
        return self.basis in self._raw_bases

    def _check_training_data(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, **options: Any
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        """Return X as a matrix for the kernel, y and weights; learn the ``_columns`` of a raw X."""
        X, frame = self._enter(X), None
        refuse_empty(X)
        refuse_missing_targets(y)
        refuse_masked(sample_weight, "sample_weight")
        if options.get("y_numeric"):
            refuse_other_targets(y, type(self).__name__)
        if is_classifier(self) and not options.get("multi_output"):
            refuse_several_labels(y, type(self).__name__)
        if reset:
            # Set at once, like the names of the columns, because callbacks evaluate models during the fit;
            # undone if the fit fails.
            self._columns = None
            kinds = self._kinds_of(X)
            if self._takes_raw_columns() and (is_raw(X) or kinds is not None):
                frame = read_frame(X, kinds).with_categories(kinds)
                weight = sample_weight
                if weight is not None:
                    weight = check_sample_weight(sample_weight, frame, dtype=np.float64)
                self._columns = self._known_columns or learn_columns(frame, weight)
        X, y = self._check_data(X, y, reset=reset, frame=frame, accept_large_sparse=True, **options)
        X = canonical(X)
        if sample_weight is not None:
            sample_weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
            require_some_weight(sample_weight, "sample_weight")
        return X, y, sample_weight

    def _kinds_of(self, X: Any) -> Sequence[str | None] | None:
        """Return the kinds of columns of training rows, None for unknown kinds; None if none is known."""
        if self._kinds is not None or len(X.shape) != 2:
            return self._kinds
        kinds = declared_kinds(self.categorical_features, X.shape[1], column_names(X))
        if kinds is not None:  # booleans are 0 and 1, whatever their type
            booleans = boolean_columns(X)
            kinds = [None if j in booleans else kind for j, kind in enumerate(kinds)]
        if kinds is not None and (sparse.issparse(X) or not self._takes_raw_columns()):
            given, instead = self._basis_in_words()
            raise ValueError(
                f"categorical_features needs dense rows and {instead}, got {type(X).__name__} and {given}."
            )
        return kinds

    def _notice_columns(self, X: Any, stacklevel: int) -> None:
        """Warn of columns of the training rows that the model may misinterpret."""
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else names.tolist()
        in_memory = is_in_memory(X)
        of_user = in_memory and not isinstance(X, Frame)  # the source of a Frame knows what its columns are
        X = without_lists(X) if in_memory else X
        n_columns, notes = self.n_features_in_, []
        declared = declared_kinds(self.categorical_features, n_columns, names) or [None] * n_columns
        for j in range(n_columns):
            column = None if self._columns is None else self._columns.columns[j]
            name = None if names is None else names[j]
            if column is not None and column.levels is not None:
                note = category_note(column, X.shape[0] if in_memory else None)
                if of_user and declared[j] is None and not declares_category(X, j):
                    note = _note_on_text(X, j, name, column) or note
            else:
                numbers = numbers_of(X, j) if in_memory and n_columns > 1 else None
                note = None if numbers is None else number_note(name, numbers)
            if note is not None:
                notes.append((note, column_label(names, j)))
        if notes:
            warnings.warn(in_words(notes), ColumnWarning, stacklevel=stacklevel)

    def _check_data(self, X: Any, *y: Any, reset: bool, frame: Frame | None = None, **options: Any) -> Any:
        """Return X, or X and y, as arrays of numbers; ``frame`` is X if its columns have been read."""
        options |= {"accept_sparse": "csr", "dtype": [np.float64, np.float32], "order": None}
        options["ensure_all_finite"] = "allow-nan" if self._takes_raw_columns() else True
        X = self._enter(X)
        refuse_empty(X)
        if self._columns is not None or isinstance(X, Frame):
            if isinstance(X, Frame):
                self._check_names(X, reset)
            else:
                validate_data(self, X, *y, reset=reset, skip_check_array=True)  # names and number of columns
            matrix = self._matrix(X if frame is None else frame)
            try:
                if y:
                    return check_X_y(matrix, *y, estimator=self, **options)
                return check_array(matrix, estimator=self, input_name="X", **options)
            except ValueError:
                refuse_infinite(matrix, column_names(X), self._takes_raw_columns())
                raise
        text = isinstance(X, np.ndarray) and X.dtype.kind in "UST"  # scikit-learn reads what spells numbers
        if temporal_columns(X) or (text and not self._takes_raw_columns()):
            self._refuse_if_not_numbers(X)
        try:
            checked = validate_data(self, X, *y, reset=reset, **options)
        except (TypeError, ValueError):
            self._refuse_if_not_numbers(X)
            refuse_infinite(X, column_names(X), self._takes_raw_columns())
            raise
        rows = checked[0] if y else checked
        if sparse.issparse(rows) and np.isnan(rows.data).any():
            raise ValueError(
                "X is sparse and contains NaN: give dense rows, which may have missing values, or impute "
                "them first."
            )
        return checked

    def _enter(self, X: Any) -> Any:
        """Return X without lists and masks; refuse masked entries if values may not be missing."""
        if is_masked(X) and not self._takes_raw_columns():
            self._refuse_rows("X has masked entries, which are missing values")
        return without_lists(X)

    def _check_names(self, frame: Frame, reset: bool) -> None:
        """Check the names of a Frame as scikit-learn checks those of the dataframes that it knows."""
        names = None if frame.names is None else list(frame.names)
        if reset:
            self._name_columns(frame.shape[1], names)
            return
        before = getattr(self, "feature_names_in_", None)
        if names is None and before is not None:
            warnings.warn(
                f"X does not have valid feature names, but {type(self).__name__} was fitted with feature "
                "names",
                UserWarning,
                stacklevel=2,
            )
        elif frame.shape[1] != self.n_features_in_ or (before is not None and names != list(before)):
            raise ValueError(
                f"The columns should be named as in the fit, {list(() if before is None else before)}, in "
                f"that order; got {names}."
            )

    def _matrix(self, X: Any) -> np.ndarray:
        """Return raw X as a matrix of numbers, encoded by the columns of the fit."""
        if self._columns is not None:
            return self._columns.encode(read_frame(X, self._columns.kinds))
        self._refuse_if_not_numbers(X)
        return np.asarray(X)

    def _refuse_if_not_numbers(self, X: Any) -> None:
        """Raise an error that says which column is not numeric; return if all are."""
        if (reason := why_not_numbers(X, self._takes_raw_columns())) is not None:
            self._refuse_rows(reason)

    def _refuse_rows(self, reason: str) -> NoReturn:
        """Refuse rows that are not all numbers, and say what accepts them."""
        given, instead = self._basis_in_words()
        if self._takes_raw_columns():
            hint = "In the fit all columns were numbers or booleans."
        elif self._raw_bases:
            hint = f"Use {instead}, which encodes categories, dates and missing values."
        else:
            hint = "Use OneHotEncoder and SimpleImputer of scikit-learn before it."
        raise ValueError(f"{given} needs numbers: {reason}. {hint}") from None

    def _basis_in_words(self) -> tuple[str, str]:
        """Return the basis parameter as given, and the value that accepts raw frames."""
        given = f'basis="{self.basis}"' if isinstance(self.basis, str) else f"basis={self.basis}"
        return given, 'basis="auto"'

    def _name_columns(self, n_columns: int, names: list[str] | None) -> None:
        """Set what scikit-learn's own check sets for arrays and frames."""
        self.n_features_in_ = n_columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _name_target(self, X: Any, y: Any) -> None:
        """Remember the name of y, if it has one; a source of blocks provides y itself."""
        name = X.target_name if isinstance(X, Source) else target_name(y)
        if name is not None:
            self.target_name_ = name
        elif hasattr(self, "target_name_"):
            del self.target_name_
        for of_file in ("_notations", "_rows_of_fit", "_known_part"):  # left over from an earlier fit
            self.__dict__.pop(of_file, None)
        if isinstance(X, Source) and (notations := X.notations()):
            self._notations = notations

    def _is_plain(self, X: Any) -> bool:
        """Tell whether X needs no checks: ten times as fast as checking, for predicting single rows."""
        return (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and X.flags.aligned
            and not hasattr(self, "feature_names_in_")
            and self._columns is None
            and self._has_allowed_numbers(X)
        )

    def _few_plain_rows(self, X: Any) -> np.ndarray | None:
        """Return a few rows of a frame with the columns of the fit as a matrix; None if X needs checks."""
        names = getattr(self, "feature_names_in_", None)
        if names is None:
            return None
        if self._columns is not None and self._columns.has_dates:
            return None
        rows = read_few_rows(X, names.tolist(), {} if self._columns is None else self._columns.categories)
        return rows if rows is not None and self._has_allowed_numbers(rows) else None

    def _has_allowed_numbers(self, X: np.ndarray) -> bool:
        return all_finite(X) or (self._takes_raw_columns() and not np.isinf(X).any())


def _note_on_text(X: Any, j: int, name: str | None, column: Column) -> str | None:
    """Return a note on a category in memory if its levels look like dates or numbers."""
    if not column.pooled:
        return text_note(name, column.levels or (), X.shape[0])
    some = X[:FIRST_ROWS]  # pooled levels are not known: the first rows show what they are
    return text_note(name, text_of(some, j), some.shape[0])


def all_finite(numbers: np.ndarray) -> bool:
    """Tell whether all numbers are finite; for few numbers in half the time that NumPy takes."""
    few = numbers.size <= FEW_NUMBERS and isfinite(np.vdot(numbers, numbers))  # which may overflow
    return few or bool(np.isfinite(numbers).all())


def as_columns(y: Any) -> np.ndarray:
    """Return checked targets, which may be a sparse label matrix, with an axis of outputs."""
    y = y.toarray() if sparse.issparse(y) else y
    return y.astype(np.float64, copy=False).reshape(len(y), -1)


def require_some_weight(weight: np.ndarray, name: str) -> None:
    """Refuse weights that are negative or not finite, or all 0."""
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError(f"{name} must be finite and non-negative, with at least one positive weight.")
