"""Factorization machines of any degree, with the objective, solvers and input of Tensor Machines."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

from .._fit.pose import Bases
from .._fit.settings import DEFAULT_TOL
from .._model.basis import BASES
from .._model.layout import AnovaLayout
from ..estimators.classification import Classification
from ..estimators.docstrings import COLUMNS, LOSS, documentation
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.regression import Regression
from ..estimators.sklearn_private import Interval, StrOptions

DEFAULT_ALPHA = 1e-4
DEFAULT_MAX_ITER = 1000

_MODEL = """
With x the row in its basis, each output is

    f(x) = intercept + <coef, x> + sum over degree p = 2..degree, rank i of  A_p(factors[p][i], x)
    A_p(v, x) = sum over t1 < ... < tp of  v_t1 x_t1 * ... * v_tp x_tp

and the objective is the weighted mean of the loss plus alpha / 2 times the sum of all squared coefficients
(without the intercept). In regression, the target is standardised for the fit. Computing A_p takes time
proportional to p and to the number of non-zeros of the row.

S. Rendle, "Factorization Machines" (2010); M. Blondel et al., "Higher-Order Factorization Machines" (2016).
"""
_NOT_OFFERED = (
    "init",
    "relevance",
    "roughness",
    "trend",
    "jumps",
    "history",
    *COLUMNS,
    "n_restarts",
    "n_members",
    "max_norm",
    "checkpoint",
    "checkpoint_every",
    "task",
    *LOSS,
)
_INSTEAD = {
    "degree": """degree : int, default=2
    Largest number of features that interact, at least 1.""",
    "rank": """rank : int, default=10
    Number of factors for each degree from 2 on.""",
    "shared_factors": """shared_factors : bool, default=False
    Whether all outputs share one set of factors, and each output has its own weights of the terms.""",
    "alpha": f"""alpha : float, default={DEFAULT_ALPHA}
    Strength of the penalty.""",
    "basis": """basis : {"auto", "standard", "scaled", "sphere", "unit", None}, default="auto"
    Transformation of X. "auto" leaves a sparse X unchanged, which suits one-hot columns, and standardises a
    dense X; for the others see `TensorMachineRegressor`. With "standard", "scaled" and "sphere", a row of a
    sparse X costs as much as a dense row.""",
    "max_iter": f"""max_iter : int, default={DEFAULT_MAX_ITER}
    Maximum number of iterations; for "adam" and "sfo" each is a pass over the rows. "adam" always makes all
    passes; about 30 are enough.""",
    "factors_": """factors_ : dict
    For each degree p from 2 on, an array of shape (n_outputs, rank, n_basis_features), or
    (1, rank, n_basis_features) with shared factors.""",
}


class FactorizationMachine(PolynomialModel):
    """Layout, bases and parameters, shared by the regressor and the classifier."""

    _layout = AnovaLayout
    _raw_bases: ClassVar[tuple[str, ...]] = ()  # "auto" has a different meaning here
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **{
            name: allowed
            for name, allowed in PolynomialModel._parameter_constraints.items()
            if name not in _NOT_OFFERED
        },
        "degree": [Interval(Integral, 1, None, closed="left")],
        "rank": [Interval(Integral, 1, None, closed="left")],
        "shared_factors": ["boolean"],
        "basis": [StrOptions({"auto", *BASES}), None],
    }

    def _bases(self) -> Bases:
        return Bases("standard", None) if self.basis == "auto" else super()._bases()


class FactorizationMachineRegressor(FactorizationMachine, Regression):
    __doc__ = documentation(
        "Regression by a factorization machine of any degree.",
        """
        >>> import numpy as np
        >>> from sklearn.preprocessing import OneHotEncoder
        >>> from tensormachines.peers import FactorizationMachineRegressor
        >>> users_and_items = np.random.default_rng(0).integers(0, 20, size=(2000, 2))
        >>> rating = np.cos(users_and_items[:, 0]) * np.cos(users_and_items[:, 1])
        >>> X = OneHotEncoder().fit_transform(users_and_items)
        >>> model = FactorizationMachineRegressor(rank=2, random_state=0).fit(X, rating)
        >>> round(model.score(X, rating), 1)
        1.0
        """,
        model=_MODEL,
        leave_out=(*_NOT_OFFERED, "class_weight", "classes_"),
        instead=_INSTEAD,
        defaults={"solver": "lbfgs"},
    )

    def __init__(
        self,
        degree: int = 2,
        rank: int = 10,
        alpha: float = DEFAULT_ALPHA,
        *,
        shared_factors: bool = False,
        basis: str | None = "auto",
        solver: str = "lbfgs",
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree,
            rank,
            alpha,
            shared_factors=shared_factors,
            basis=basis,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            init_scale=init_scale,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )


class FactorizationMachineClassifier(FactorizationMachine, Classification):
    __doc__ = documentation(
        "Classification by a factorization machine of any degree, with logistic or multinomial loss.",
        """
        >>> from sklearn.datasets import load_iris
        >>> from tensormachines.peers import FactorizationMachineClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = FactorizationMachineClassifier(random_state=0).fit(X, y)
        >>> round(model.score(X, y), 1)
        1.0
        """,
        model=_MODEL,
        leave_out=_NOT_OFFERED,
        instead=_INSTEAD,
        defaults={"solver": "lbfgs"},
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FactorizationMachine._parameter_constraints,
        "class_weight": Classification._parameter_constraints["class_weight"],
    }

    def __init__(
        self,
        degree: int = 2,
        rank: int = 10,
        alpha: float = DEFAULT_ALPHA,
        *,
        shared_factors: bool = False,
        basis: str | None = "auto",
        solver: str = "lbfgs",
        max_iter: int = DEFAULT_MAX_ITER,
        tol: float = DEFAULT_TOL,
        init_scale: float | str = "auto",
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        class_weight: Any = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        super().__init__(
            degree,
            rank,
            alpha,
            shared_factors=shared_factors,
            basis=basis,
            solver=solver,
            max_iter=max_iter,
            tol=tol,
            init_scale=init_scale,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            warm_start=warm_start,
            class_weight=class_weight,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )
