"""Multilabel targets: the target of a classifier is a matrix of 0 and 1, with a column for each label."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.multiclass import is_multilabel

from .._data.files.source import Source
from .validation import as_columns


def is_label_matrix(y: Any) -> bool:
    """Tell whether y is a matrix of 0 and 1, or of booleans, with two columns or more."""
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) == 2 and shape[1] > 1 and bool(is_multilabel(y)) and _entries(y) <= {0, 1}


def _entries(y: Any) -> set[Any]:
    return set(np.unique(y.data if sparse.issparse(y) else np.asarray(y)).tolist())


def n_labels_elsewhere(X: Any, y: Any) -> int:
    """Return the number of target columns of a Dask collection or a source; 1 for a source without target
    names, where only a pass over the rows would tell.
    """
    if isinstance(X, Source):
        return len(X.target_name) if isinstance(X.target_name, list) else 1
    return 1 if y.ndim == 1 else int(y.shape[1])


def like_columns(
    targets: np.ndarray, y: Any, weight: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the label matrix of held-out rows as a target; it must have the labels of the training rows."""
    if not is_label_matrix(y) or y.shape[1] != targets.shape[1]:
        raise ValueError(
            f"y must be a matrix of 0 and 1 with {targets.shape[1]} columns, the labels of the training "
            f"rows, got an array of shape {y.shape}."
        )
    return as_columns(y), weight


def refuse_class_weight(class_weight: Any) -> None:
    """Refuse class weights, which would differ from label to label."""
    if class_weight is not None:
        raise ValueError(
            "class_weight needs one label for each row, got a matrix of labels: set class_weight=None, or "
            "fit a model for each label by sklearn.multioutput.MultiOutputClassifier."
        )


def refuse_label_matrix(y: Any) -> None:
    """Refuse multilabel targets in `partial_fit`."""
    if is_label_matrix(y):
        raise ValueError(
            "partial_fit takes one label for each row, got a matrix of labels: use fit with all rows, or "
            "sklearn.multioutput.MultiOutputClassifier, which has a partial_fit."
        )
