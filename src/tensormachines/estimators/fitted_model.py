"""What a fitted model offers: its learned attributes, and its outputs for new rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs
from sklearn.utils.validation import check_is_fitted

from .._data.encoding import Column, Columns
from .._data.files.source import Chunk, Source
from .._data.frame import all_different, column_label
from .._data.read_ahead import ahead
from .._fit.settings import FEWEST_ROWS_FOR_THREADS
from .._model.block import canonical
from .._model.compiled import Compiled, compiled
from .._model.description import Description
from .._model.machine import Machine
from .validation import TakesFrames, all_finite


class FittedModel(TakesFrames):
    """A model that evaluates new rows with its ``_machine``, and derives its public attributes from it.

    ``_squeezed``: whether a single output has scikit-learn's shapes for a one-dimensional y.
    ``_target_link``: "identity" if numeric predictions are the outputs; "log" if they are exponentials of the
    outputs, at most those of ``_largest_outputs``, the largest target of the fit; "sigmoid" if the outputs
    are the log-odds of several labels.
    ``_mean_outputs``, ``_mean_parts`` and ``_importances``: set by `fit`, see `training_facts`.
    ``_relevance``: set if a race has weighed the columns; a warm start reuses it.
    """

    n_jobs: int | None
    _machine: Machine
    _squeezed: bool
    _target_link: Literal["identity", "log", "sigmoid"] = "identity"
    _largest_outputs: np.ndarray | None = None
    _mean_outputs: np.ndarray
    _mean_parts: np.ndarray
    _importances: np.ndarray
    _relevance: np.ndarray

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_machine")

    def _require_fit(self) -> None:
        if not hasattr(self, "_machine"):  # scikit-learn's check takes as long as predicting a row
            check_is_fitted(self)

    @property
    def intercept_(self) -> Any:
        bias = self._learnt_machine("intercept_").layout.bias(self._machine.params)
        return bias[0] if self._squeezed else bias.copy()

    @property
    def linear_(self) -> np.ndarray:
        linear = self._learnt_machine("linear_").layout.linear(self._machine.params)
        return np.ascontiguousarray(linear[:, 0] if self._squeezed else linear.T)

    @property
    def coef_(self) -> np.ndarray:
        machine = self._learnt_machine("coef_")
        if machine.layout.degree > 1 or machine.basis.width != self.n_features_in_:
            # scikit-learn assumes that coef_ tells everything about the columns of X, and prefers it to
            # feature_importances_.
            raise AttributeError(
                f"{type(self).__name__} has no coef_: only models of degree 1 with one coefficient for each "
                "column of X have, as with degree=1 and basis=None. linear_ is the linear part, "
                "feature_importances_ has a number per column."
            )
        return self.linear_

    @property
    def feature_importances_(self) -> np.ndarray:
        self._learnt_machine("feature_importances_")
        if not hasattr(self, "_importances"):
            raise AttributeError(
                f"{type(self).__name__} has no feature_importances_: they are found by fit, and this model "
                "comes from partial_fit or from an older version. Use inspection.importance(model, X)."
            )
        return self._of_inputs(self._importances.copy())

    @property
    def factors_(self) -> dict[int, np.ndarray]:
        by_degree = self._learnt_machine("factors_").layout.factors_by_degree(self._machine.params)
        return {p: np.ascontiguousarray(factors) for p, factors in by_degree.items()}

    @property
    def term_weights_(self) -> dict[int, np.ndarray]:
        layout = self._learnt_machine("term_weights_").layout
        shape = layout.n_outputs, layout.degree - 1, layout.rank
        weights = layout.weights(self._machine.params) if layout.shared else np.ones(shape)
        return {p: weights[:, p - 2].copy() for p, _ in layout.degrees()}

    @property
    def n_parameters_(self) -> int:
        return self._learnt_machine("n_parameters_").layout.size

    @property
    def basis_features_(self) -> np.ndarray:
        basis, described = self._learnt_machine("basis_features_").basis, self._description()
        levels = [column.level_names for column in described.columns]
        return np.array(all_different(basis.names(described.names, levels)), dtype=object)

    @property
    def jumps_(self) -> dict[str, np.ndarray]:
        thresholds = self._learnt_machine("jumps_").thresholds
        pairs = zip(self._description().names, thresholds, strict=False)  # there are none without splines
        return {name: of_column for name, of_column in pairs if len(of_column)}

    def _of_inputs(self, encoded: np.ndarray) -> np.ndarray:
        """Sum numbers of matrix columns (last axis) to numbers of columns of X: dates have several."""
        return encoded if self._columns is None else self._columns.sums(encoded)

    def _learnt_machine(self, attribute: str) -> Machine:
        if not hasattr(self, "_machine"):
            raise AttributeError(f"{type(self).__name__} has no {attribute}: it is not fitted yet.")
        return self._machine

    def _description(self) -> Description:
        self._require_fit()
        machine, names = self._machine, getattr(self, "feature_names_in_", None)
        columns = self._columns or Columns(
            None if names is None else tuple(map(str, names)), (Column(),) * machine.basis.n_columns
        )
        classes = None if self._target_link == "sigmoid" else getattr(self, "classes_", None)
        return Description(
            machine,
            columns.encoded,
            columns.encoded_names,
            classes,
            bool(self._squeezed),
            self._target_link,
            self._largest_outputs,
            getattr(self, "quantiles_", None),
            self._target_names() if classes is None else None,
        )

    def _target_names(self) -> tuple[str, ...] | None:
        """Return the names of the targets or labels, one for each output; None if y had no names."""
        given = getattr(self, "target_name_", None)
        names = (given,) if isinstance(given, str) else tuple(given or ())
        return names if len(names) == self._machine.layout.n_outputs else None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file, which `tensormachines.load` reads.

        See `tensormachines.persistence.save`.
        """
        from ..persistence import save  # imports all estimators

        save(self, path)

    def compiled(self) -> Compiled:
        """Return the fitted model as a plain function of numbers, for predicting single rows without delay.

        The function takes one row (n_features,) or rows (n_samples, n_features) of float64, with columns in
        the order of the fit; NumPy converts anything else. It returns what `predict` returns, or
        `predict_proba` for a classifier; for one row, the result is a float or has one axis less. Neither
        names nor numbers are checked; NaN is a missing value if the basis accepts missing values. The
        function can be pickled, and later fits do not change it.

        Returns
        -------
        function : callable
            Predicting a row of 50 columns takes 3 to 4 microseconds, about a third of the time of `predict`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from tensormachines import TensorMachineRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = TensorMachineRegressor(degree=2, rank=2, random_state=0).fit(X, y)
        >>> function = model.compiled()
        >>> abs(function(X[0]) - model.predict(X[:1])[0]) < 1e-9
        True
        """
        self._require_fit()
        if not hasattr(self, "predict"):
            raise AttributeError(f"{type(self).__name__} has no compiled model: it does not predict.")
        columns = self._columns
        for j, kind in enumerate(() if columns is None else columns.kinds):
            if kind != "number":
                label = column_label(getattr(columns, "names", None), j)
                raise ValueError(
                    f"compiled() takes numbers only, and {label} holds a {kind}: use predict, or "
                    "tensormachines.export."
                )
        return compiled(self._machine, self._link(), bool(self._squeezed), self._largest_outputs)

    def _link(self) -> str:
        """Return the link that turns outputs into predictions: see `_model.compiled`."""
        return self._description().link

    # ---- new rows

    def _check_rows(self, X: Any) -> Any:
        """Return new rows as a matrix for the kernel."""
        self._require_fit()
        if self._is_plain(X):
            return X
        if (rows := self._few_plain_rows(X)) is not None:
            return rows
        return canonical(self._check_data(X, reset=False))

    def _outputs(self, X: Any) -> np.ndarray:
        """Return f of every row, (rows, n_outputs)."""
        return self._on_rows(X, self._outputs_in_memory)

    def _on_rows(self, X: Any, function: Callable[[Any], np.ndarray]) -> np.ndarray:
        """Return ``function`` of the rows of X, which may be a source of blocks."""
        if not isinstance(X, Source):
            return function(self._check_rows(X))
        with closing(self._chunks(X)) as chunks:
            return np.concatenate([function(chunk.X) for chunk in chunks])

    def _chunks(self, source: Source, targets: bool = False) -> Generator[Chunk, None, None]:
        """Yield the rows of a source as matrices for the kernel, with their targets if asked for."""
        self._require_fit()
        found = (
            source.for_model(list(self.feature_names_in_)) if hasattr(self, "feature_names_in_") else source
        )
        if hasattr(self, "_notations"):  # in another file, 1,234 or 5 % may mean something else
            found = found.in_notations(self._notations)
        if found.n_columns is not None:  # otherwise it is known only after the first block
            self._check_width(repr(source), found.n_columns)
        classes, first = self._names_of_classes() if targets else None, 0
        encoded = found.encoded(self._columns, self._takes_raw_columns(), classes)
        with closing(ahead(encoded)) as chunks:
            for chunk in chunks:
                if self._columns is None:  # otherwise the columns have been compared already
                    self._check_width(chunk.place, chunk.X.shape[1])
                if targets and chunk.y is None:
                    raise ValueError(f"{source!r} has no targets: name them where the source is made.")
                yield replace(chunk, X=canonical(chunk.X), first=first)
                first += chunk.X.shape[0]
        if not first:
            raise ValueError(f"{source!r}: there are no rows.")

    def _names_of_classes(self) -> frozenset[str]:
        """Return the classes if they are text; empty if the classes or predictions are numbers."""
        classes = getattr(self, "classes_", np.empty(0))
        return frozenset(map(str, classes)) if classes.dtype.kind in "USO" else frozenset()

    def _check_width(self, place: str, n_columns: int) -> None:
        if n_columns != self.n_features_in_:
            raise ValueError(
                f"{place}: X has {n_columns} columns, but the model was fitted on {self.n_features_in_}."
            )

    def _outputs_in_memory(self, X: Any) -> np.ndarray:
        outputs = self._machine.outputs(X, self._threads(X.shape[0]))
        if not all_finite(outputs):
            warnings.warn(
                f"{type(self).__name__}: some outputs overflow, because these rows have very large numbers "
                "or lie far outside of the training data.",
                RuntimeWarning,
                stacklevel=3,
            )
        return outputs

    def _bounded(self, outputs: np.ndarray) -> np.ndarray:
        """Return outputs; with a log link, clip them at the logarithm of the largest target."""
        if self._largest_outputs is None:
            return outputs
        return np.minimum(outputs, self._largest_outputs.astype(outputs.dtype))

    def _threads(self, n_rows: int) -> int:
        """Return the number of threads: 1 for few rows, which take less time than asking joblib."""
        return effective_n_jobs(self.n_jobs) if n_rows >= FEWEST_ROWS_FOR_THREADS else 1
