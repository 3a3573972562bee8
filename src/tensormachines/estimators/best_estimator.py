"""The part of a search that its best estimator does: predictions, attributes, files and exports."""

from __future__ import annotations

from os import PathLike
from typing import Any, ClassVar

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted

from .._data.open import is_in_memory
from .._model.compiled import Compiled
from .._model.description import Description
from .fold import scored
from .polynomial_model import PolynomialModel


def of_best_estimator(name: str) -> Any:
    """Return a property that reads an attribute of the best estimator."""
    return property(lambda self: getattr(self._best(name), name), doc=f"The {name} of ``best_estimator_``.")


class HasBestEstimator:
    """Delegate to ``best_estimator_``, which a fitted search has unless ``refit`` is False."""

    _estimator_class: ClassVar[type[PolynomialModel]]
    best_estimator_: PolynomialModel
    scoring: Any

    intercept_ = of_best_estimator("intercept_")
    coef_ = of_best_estimator("coef_")
    linear_ = of_best_estimator("linear_")
    feature_importances_ = of_best_estimator("feature_importances_")
    factors_ = of_best_estimator("factors_")
    term_weights_ = of_best_estimator("term_weights_")
    n_parameters_ = of_best_estimator("n_parameters_")
    basis_features_ = of_best_estimator("basis_features_")
    jumps_ = of_best_estimator("jumps_")
    alpha_ = of_best_estimator("alpha_")
    n_iter_ = of_best_estimator("n_iter_")
    objective_ = of_best_estimator("objective_")
    loss_curve_ = of_best_estimator("loss_curve_")
    # The attributes of a fitted model that inspection, exports and files read.
    _machine = of_best_estimator("_machine")
    _squeezed = of_best_estimator("_squeezed")
    _target_link = of_best_estimator("_target_link")
    _largest_outputs = of_best_estimator("_largest_outputs")
    _mean_outputs = of_best_estimator("_mean_outputs")
    _mean_parts = of_best_estimator("_mean_parts")
    _check_rows = of_best_estimator("_check_rows")
    _names_of_classes = of_best_estimator("_names_of_classes")

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def _best(self, name: str) -> PolynomialModel:
        """Return the best estimator; raise an AttributeError for the attribute ``name`` if there is none."""
        if not hasattr(self, "best_estimator_"):
            raise AttributeError(f"{type(self).__name__} has no {name}: {self._why_not_fitted()}")
        return self.best_estimator_

    def _fitted(self) -> PolynomialModel:
        """Return the best estimator; raise a NotFittedError if there is none."""
        self._require_fit()
        return self.best_estimator_

    def _require_fit(self) -> None:
        check_is_fitted(self, msg=self._why_not_fitted() if hasattr(self, "best_params_") else None)

    def _why_not_fitted(self) -> str:
        if not hasattr(self, "best_params_"):
            return "it is not fitted yet."
        name = self._estimator_class.__name__
        return f"refit=False leaves no model: set refit=True, or fit {name}(**best_params_) to all rows."

    def _description(self) -> Description:
        return self._fitted()._description()

    def predict(self, X: Any) -> np.ndarray:
        """Predict with the best estimator."""
        return self._fitted().predict(X)

    def _score_by_scoring(self, X: Any, y: Any, sample_weight: Any) -> float:
        """Return the score of the best estimator by ``scoring``."""
        if not is_in_memory(X):
            raise ValueError(
                f"scoring={self.scoring!r} needs X and y in memory. best_estimator_.score does not."
            )
        best = self._fitted()
        return scored(check_scoring(best, self.scoring), best, X, y, sample_weight)

    def compiled(self) -> Compiled:
        """Return the best estimator as a plain function, see `TensorMachineRegressor.compiled`."""
        return self._fitted().compiled()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted search to a file, which `tensormachines.load` reads.

        See `tensormachines.persistence.save`.
        """
        from ..persistence import save  # imports all estimators

        save(self, path)
