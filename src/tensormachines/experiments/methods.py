"""The methods of the comparison: their estimators, and the grids of their parameters.

All of them get rows in the paper's scaling and a regression target of mean 0 and variance 1, so none scales
anything itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV

from ..estimators import TensorMachineClassifier, TensorMachineRegressor
from ..estimators.candidates import ALPHA_POWER
from ..estimators.tensor_machine_cv import TensorMachineClassifierCV, TensorMachineRegressorCV
from ..peers import (
    AppleClassifier,
    AppleRegressor,
    BasisLearnerClassifier,
    BasisLearnerRegressor,
    CRAFTMapsClassifier,
    CRAFTMapsRegressor,
    FactorizationMachineClassifier,
    FactorizationMachineRegressor,
    PolynomialKernelRidge,
    PolynomialKernelRidgeClassifier,
)

Params = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
Splits = Sequence[tuple[np.ndarray, np.ndarray]]  # rows to fit and rows to validate on, for every fold
REGRESSION = "regression"


@dataclass(frozen=True)
class Method:
    """A method of the comparison.

    ``ladder`` has the values of the ``major`` parameter, which is raised until the error no longer falls;
    ``select_at`` is the value at which the minor parameters are chosen from a grid. ``per_row`` names a
    penalty that is added to a *mean* loss: one chosen on fewer rows is lowered, as `TensorMachineRegressorCV`
    does. The penalty of KRR is added to a *sum* over rows and kept, which lowers it per row as 1 / rows; it
    is chosen on half of all rows, or more. ``dtype`` is float64 where float32 has too few digits.
    """

    name: str
    title: str
    regressor: Callable[..., Any]
    classifier: Callable[..., Any]
    grid: Grid
    short_grid: Grid
    major: str | None = None
    ladder: tuple[float, ...] = ()
    select_at: float | None = None
    fixed: Params = field(default_factory=dict)
    per_row: str | None = None
    dtype: type[np.floating[Any]] = np.float32

    def estimator(self, task: str, degree: int, seed: int, params: Params, major: float | None) -> Any:
        make = self.regressor if task == REGRESSION else self.classifier
        settings = {"degree": degree, **self.fixed, **params}
        if self.major:
            settings[self.major] = self.select_at if major is None else major
        if "random_state" in signature(make).parameters:
            settings["random_state"] = seed
        return make(**settings)

    def searches(self, task: str, degree: int, grid: Grid, splits: Splits) -> list[tuple[Params, Any]]:
        """Return unfitted searches over a grid, each with the parameters that do not vary in it."""
        scoring = "neg_root_mean_squared_error" if task == REGRESSION else "accuracy"
        model = self.estimator(task, degree, 0, {}, None)
        if isinstance(model, TensorMachineRegressor | TensorMachineClassifier):
            return [
                ({"init_scale": init_scale}, _shared_search(model, task, grid, splits, scoring, init_scale))
                for init_scale in grid["init_scale"]
            ]
        values = {name: list(values) for name, values in grid.items()}
        return [({}, GridSearchCV(model, values, cv=splits, scoring=scoring, refit=False))]

    def grid_of(self, size: str) -> Grid:
        """Return the "full" or "short" grid, or for "two", two penalties and one value of each other
        parameter from "short".

        These values come from the middle of their lists.
        """
        if size != "two":
            return {"full": self.grid, "short": self.short_grid}[size]
        return {
            name: values[(len(values) - 2) // 2 :][:2] if name == "alpha" else values[len(values) // 2 :][:1]
            for name, values in self.short_grid.items()
        }

    def carried_over(self, params: Params, rows_before: int, rows: int) -> Params:
        """Return the chosen parameters for another number of rows."""
        if self.per_row is None or self.per_row not in params:
            return params
        return {**params, self.per_row: params[self.per_row] * (rows_before / rows) ** ALPHA_POWER}


def _shared_search(model: Any, task: str, grid: Grid, splits: Splits, scoring: str, init_scale: float) -> Any:
    """Return a search of Tensor Machines, whose candidates share their passes over the rows."""
    make = TensorMachineRegressorCV if task == REGRESSION else TensorMachineClassifierCV
    return make(
        degrees=grid.get("degree", (model.degree,)),
        ranks=grid["rank"],
        alphas=grid["alpha"],
        bases=(model.basis,),
        relevances=grid.get("relevance", (0,)),
        roughnesses=(3.0,),
        max_iters=(model.max_iter,),
        cv=splits,
        scoring=scoring,
        halving=False,
        time_budget=None,
        refit=False,
        shared_factors=model.shared_factors,
        solver=model.solver,
        tol=model.tol,
        init_scale=init_scale,
        random_state=0,
    )


def candidates(search: Any, also: Params, grid: Grid) -> list[tuple[Params, float, float]]:
    """Return parameters, mean error over the folds and its deviation, for candidates that did not fail."""
    results = search.cv_results_
    errors = 1 - results["mean_test_score"] if search.scoring == "accuracy" else -results["mean_test_score"]
    chosen = [{name: {**params, **also}[name] for name in grid} for params in results["params"]]
    found = zip(chosen, errors.tolist(), results["std_test_score"].tolist(), strict=True)
    return [(params, error, spread) for params, error, spread in found if math.isfinite(error)]


def n_parameters(model: Any) -> int:
    """Count the numbers in a fitted model; a random feature has d for each factor, as in the paper."""
    if hasattr(model, "n_parameters_"):
        return int(model.n_parameters_)
    if hasattr(model, "dual_coef_"):
        return int(np.size(model.dual_coef_) + np.prod(model.X_fit_.shape))
    outputs = int(np.size(model.coef_) + np.size(model.intercept_))
    if hasattr(model, "n_components"):
        return outputs + int(model.degree * model.n_components * model.n_features_in_)
    if hasattr(model, "network_"):
        network = model.network_
        parts = ("left", "right", "overlap", "triangle")
        nodes = sum(getattr(batch, part).size for batch in network.batches for part in parts)
        return outputs + int(network.directions.size + network.mean.size + nodes)
    return outputs + sum(len(monomial) for monomial in model.monomials_)


MACHINE_SETTINGS: Params = {"shared_factors": False, "basis": None, "tol": 0.0}
PENALTIES = tuple(10.0**power for power in range(-9, 0))
# As wide as the range of choices: Cod-rna and Buzz take the smallest ones, Year takes the largest.
SHORT_PENALTIES = (1e-8, 1e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-2)
RANKS = (1, 2, 3, 4, 5)
# Half decades where one of the sets has its best penalty on half of the rows: Forest at 1e-5, Adult at 10.
KERNEL_PENALTIES = (1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 1e-2, 1e-1, 1.0, 3.0, 10.0, 30.0, 100.0)
RANDOM_FEATURE_PENALTIES = tuple(10.0**power for power in range(-15, -1))
# What the other Tensor Machines do not choose: they have the paper's q, and no relevance.
FREE: Grid = {"degree": (2, 3, 4, 5), "relevance": (0, 1)}
FREE_PENALTIES = (1e-8, 1e-6, 3e-6, 1e-5, 1e-4, 3e-4, 1e-3)
APPLE_RATES = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
# Not in the paper: L-BFGS from a better start, with steps scaled by the curvature.
KFAC = Method(
    "tm-kfac",
    "TM-kfac",
    TensorMachineRegressor,
    TensorMachineClassifier,
    grid={"rank": RANKS, "alpha": PENALTIES, "init_scale": (0.1, 0.5, 1.0, 2.0)},
    short_grid={"rank": RANKS, "alpha": SHORT_PENALTIES, "init_scale": (0.1, 1.0, 2.0)},
    major="max_iter",
    ladder=(5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560),
    select_at=40,
    fixed={**MACHINE_SETTINGS, "solver": "kfac"},
    per_row="alpha",
)
METHODS = {
    method.name: method
    for method in (
        Method(
            "krr",
            "KRR",
            PolynomialKernelRidge,
            PolynomialKernelRidgeClassifier,
            grid={"alpha": tuple(10.0 ** (power / 4) for power in range(-32, 13))},
            short_grid={"alpha": KERNEL_PENALTIES},
            fixed={"gamma": 1.0},  # rows have norm 1, and so the same weight as the constant
            dtype=np.float64,
        ),
        Method(
            "tm-batch",
            "TM-Batch",
            TensorMachineRegressor,
            TensorMachineClassifier,
            grid={"rank": RANKS, "alpha": PENALTIES, "init_scale": (0.01, 0.1, 0.5, 1.0, 2.0)},
            short_grid={
                "rank": RANKS,
                "alpha": SHORT_PENALTIES,
                "init_scale": (0.1, 0.5, 2.0),
            },
            major="max_iter",
            ladder=(5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120),
            select_at=160,
            fixed={**MACHINE_SETTINGS, "solver": "lbfgs"},
            per_row="alpha",
        ),
        Method(
            "tm-sfo",
            "TM-SFO",
            TensorMachineRegressor,
            TensorMachineClassifier,
            grid={"rank": RANKS, "alpha": PENALTIES, "init_scale": (0.01, 0.1, 0.5, 1.0, 2.0)},
            short_grid={
                "rank": RANKS,
                "alpha": SHORT_PENALTIES,
                "init_scale": (0.1, 1.0),
            },
            major="max_iter",
            ladder=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
            select_at=16,
            fixed={**MACHINE_SETTINGS, "solver": "sfo"},
            per_row="alpha",
        ),
        KFAC,
        replace(
            KFAC,
            name="tm-free",
            title="TM-free",
            grid={**KFAC.grid, **FREE},
            short_grid={"rank": RANKS, "alpha": FREE_PENALTIES, "init_scale": (1.0,), **FREE},
        ),
        Method(
            "craftmaps",
            "CRAFTMaps",
            CRAFTMapsRegressor,
            CRAFTMapsClassifier,
            grid={"alpha": RANDOM_FEATURE_PENALTIES, "coef0": (0.1, 1.0)},
            short_grid={"alpha": (1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-4, 1e-3, 1e-2)},
            fixed={"gamma": 1.0},
            major="n_components",
            ladder=(50, 100, 200, 400, 800, 1600, 3200, 6400, 11_500),  # the paper's most
            select_at=400,
            per_row="alpha",
        ),
        Method(
            "basis-learner",
            "Basis Learner",
            BasisLearnerRegressor,
            BasisLearnerClassifier,
            grid={"alpha": (*PENALTIES, 1.0), "center": (False, True)},
            short_grid={"alpha": (1e-5, 1e-3, 1e-2, 1e-1, 1.0), "center": (False, True)},
            major="width",
            ladder=(10, 20, 40, 80, 160, 320, 640),
            select_at=40,
            per_row="alpha",
        ),
        Method(
            "apple",
            "Apple",
            AppleRegressor,
            AppleClassifier,
            grid={
                "learning_rate": APPLE_RATES,
                "n_expansions": (2, 5, 10),
                "max_iter": (20, 50),
            },
            short_grid={"learning_rate": APPLE_RATES, "n_expansions": (2, 5, 10)},
            major="expansion",
            ladder=(0.25, 0.5, 0.75, 1.0, 1.25),
            select_at=0.25,  # at 0.5, hundreds of dense columns take five times as long
        ),
        Method(
            "fm",
            "FM",
            FactorizationMachineRegressor,
            FactorizationMachineClassifier,
            grid={"rank": RANKS, "alpha": PENALTIES},
            short_grid={"rank": RANKS, "alpha": (1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)},
            major="max_iter",
            ladder=(10, 20, 40, 80, 160, 320, 640, 1280, 2560),
            select_at=160,
            fixed={**MACHINE_SETTINGS, "solver": "lbfgs"},
            per_row="alpha",
        ),
    )
}
