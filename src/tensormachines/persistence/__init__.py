"""Models in files: `save` and `load`, which runs no code that a file brings.

A file has the name of the estimator, its settings, what it learnt, and the description of its model
(`_model.description`); docs/files.md tells more. `persistence.container` is the container,
`persistence.values` the settings in it, `persistence.machine` the model."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier

from .._data.encoding import Columns
from .._model.description import describe_machine
from .._model.layout import AnovaLayout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from ..estimators import (
    TensorMachineClassifier,
    TensorMachineFeatures,
    TensorMachineRegressor,
)
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.search import Search, TensorMachineClassifierCV, TensorMachineRegressorCV
from .container import ModelFileError, pack, read, unpack, write
from .machine import model_from, model_to, require
from .values import Arrays, from_plain, to_plain

__all__ = ["ModelFileError", "load", "save"]

Facts: TypeAlias = dict[str, Any]

INTEGER, NUMBER = (int, np.integer), (float, int, np.floating, np.integer)
LEARNT: dict[str, Any] = {  # attributes that are kept, and their types
    "classes_": np.ndarray,
    "feature_names_in_": np.ndarray,
    "n_features_in_": INTEGER,
    "n_iter_": INTEGER,
    "objective_": NUMBER,
    "target_name_": (str, list),
    "_squeezed": (bool, np.bool_),
    "_output_names": list,
}
LEARNT_BY_SEARCH: dict[str, Any] = {
    "best_index_": INTEGER,
    "best_params_": dict,
    "best_score_": NUMBER,
    "cv_results_": dict,
    "n_splits_": INTEGER,
    "refit_time_": NUMBER,
}
DAMAGE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file, which `load` reads.

    The file is complete before it takes the place of another one: if anything fails, an older file stays as
    it was.

    Parameters
    ----------
    model : TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures, or one of the searches
        Or one of the factorization machines of `tensormachines.peers`.
    path : str or path-like
        Any name will do; ".tm" is usual.
    """
    if _class_named(type(model).__name__) is not type(model):
        raise TypeError(
            f"save knows {', '.join(_classes(peers=True))}, got {type(model).__name__}. For another model use pickle or skops."
        )
    model._require_fit()
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"save needs the name of a file, got the folder {str(path)!r}.")
    if path.exists() and not path.is_file():
        raise ValueError(
            f"save needs the name of a file, got {str(path)!r}, which is a device or a pipe: a file would take its place."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(path.parent)!r} to save the model in: make it first."
        )
    arrays: list[np.ndarray] = []
    facts = _facts(model, arrays)
    data = pack(facts, arrays)
    try:
        _model(*unpack(data))
    except DAMAGE as error:
        raise ValueError(
            f"{type(model).__name__} is in no state that could be loaded again: {error}."
        ) from error
    write(path, data)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    No code of the file is run, whatever it holds; but a model from a stranger can still predict nonsense.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    model : estimator
        Of the same class, with the same parameters and fitted attributes; it predicts the same to the bit.

    Raises
    ------
    ModelFileError
        A ValueError, if the file cannot be read, is damaged, is something else, or comes from a newer
        version.
    """
    path = Path(path)
    try:
        return _model(*unpack(read(path)))
    except ModelFileError as error:
        raise ModelFileError(f"{str(path)!r} cannot be loaded as a model: {error}.") from error
    except DAMAGE as error:
        raise ModelFileError(f"{str(path)!r} cannot be loaded as a model: it is damaged: {error}.") from error


def _classes(peers: bool) -> dict[str, Any]:
    """All that can be in a file, by name; ``peers`` take a while to be imported."""
    classes: list[Any] = [
        TensorMachineRegressor,
        TensorMachineClassifier,
        TensorMachineFeatures,
    ]
    classes += [TensorMachineRegressorCV, TensorMachineClassifierCV]
    if peers:
        from ..peers.factorization import FactorizationMachineClassifier, FactorizationMachineRegressor

        classes += [FactorizationMachineRegressor, FactorizationMachineClassifier]
    return {one.__name__: one for one in classes}


def _class_named(name: str) -> Any:
    return _classes(peers=name.startswith("Factorization")).get(name)


# ---- to facts


def _facts(model: PolynomialModel, arrays: list[np.ndarray]) -> Facts:
    from .. import __version__

    facts: Facts = {
        "library": __version__,
        "estimator": type(model).__name__,
        "settings": _settings(model, arrays),
    }
    learnt = {name: vars(model)[name] for name in LEARNT if name in vars(model)}
    if isinstance(model, Search):
        best = model.best_estimator_
        learnt = {name: vars(best)[name] for name in LEARNT if name in vars(best)}
        learnt |= {name: vars(model)[name] for name in LEARNT_BY_SEARCH}
        facts["best"] = _settings(best, arrays)
    facts["learnt"] = _plain(model, learnt, arrays)
    facts["output"] = getattr(model, "_sklearn_output_config", {}).get("transform")
    facts["model"] = model_to(describe_machine(model), model._columns is not None, arrays)
    return facts


def _settings(model: PolynomialModel, arrays: list[np.ndarray]) -> Facts:
    return _plain(model, model.get_params(deep=False), arrays)


def _plain(model: PolynomialModel, attributes: Facts, arrays: list[np.ndarray]) -> Facts:
    plain = {}
    for name, value in attributes.items():
        try:
            plain[name] = to_plain(value, arrays)
        except TypeError as error:
            raise TypeError(
                f"{type(model).__name__} cannot be saved with this {name}: {error}. Set another, or use pickle."
            ) from None
    return plain


# ---- from facts


def _model(facts: Any, all_arrays: list[np.ndarray]) -> PolynomialModel:
    arrays = Arrays(all_arrays)
    require(isinstance(facts, dict), "it holds no facts")
    name = str(facts.get("estimator"))
    estimator = _class_named(name)
    if estimator is None:
        raise ModelFileError(
            f"it holds an estimator {name[:100]!r}, which this version of tensormachines has not"
        )
    model = _with_settings(estimator, facts.get("settings"), arrays)
    is_search = isinstance(model, Search)
    expected = {"library", "estimator", "settings", "learnt", "output", "model"} | (
        {"best"} if is_search else set()
    )
    require(set(facts) == expected, f"it should hold {sorted(expected)}")
    machine, columns = model_from(facts["model"], arrays)
    learnt = _learnt(facts["learnt"], LEARNT | LEARNT_BY_SEARCH if is_search else LEARNT, arrays)
    _check(model, learnt, machine, columns)
    of_model = {name: value for name, value in learnt.items() if name in LEARNT}
    of_model |= {"_machine": machine, "_columns": columns}
    if isinstance(model, Search):
        best = _with_settings(model._estimator_class, facts["best"], arrays)
        best.__dict__.update(of_model)
        kept = {*LEARNT_BY_SEARCH, "n_features_in_", "feature_names_in_", "target_name_"}
        model.__dict__.update({name: value for name, value in learnt.items() if name in kept})
        model.__dict__.update({"_columns": columns, "best_estimator_": best})
    else:
        model.__dict__.update(of_model)
    if facts["output"] is not None:
        require(
            isinstance(model, TensorMachineFeatures) and facts["output"] in ("default", "pandas", "polars"),
            "it has a strange output",
        )
        model.set_output(transform=facts["output"])
    arrays.require_all_taken()
    return model


def _with_settings(estimator: type[PolynomialModel], settings: Any, arrays: Arrays) -> PolynomialModel:
    require(isinstance(settings, dict), "it holds no settings")
    unknown = sorted(set(settings) - set(estimator._get_param_names()))
    if unknown:
        raise ModelFileError(
            f"{estimator.__name__} of this version has no setting {', '.join(unknown)[:100]}: upgrade tensormachines"
        )
    model = estimator(**{name: from_plain(value, arrays) for name, value in settings.items()})
    model._validate_params()
    return model


def _learnt(plain: Any, types: dict[str, Any], arrays: Arrays) -> Facts:
    require(isinstance(plain, dict) and set(plain) <= set(types), "it holds attributes that are none")
    learnt = {name: from_plain(value, arrays) for name, value in plain.items()}
    for name, value in learnt.items():
        require(
            isinstance(value, types[name]) and not (isinstance(value, bool) and name != "_squeezed"),
            f"{name} is of a wrong type",
        )
    return learnt


def _check(model: PolynomialModel, learnt: Facts, machine: Machine, columns: Columns | None) -> None:
    """That all parts belong together."""
    n_columns, n_outputs = machine.basis.n_columns, machine.layout.n_outputs
    require({"n_features_in_", "n_iter_", "objective_", "_squeezed"} <= set(learnt), "attributes are missing")
    require(
        not isinstance(model, Search) or set(LEARNT_BY_SEARCH) <= set(learnt),
        "attributes of a search are missing",
    )
    require(learnt["n_features_in_"] == n_columns, "n_features_in_ is not the number of columns")
    names = learnt.get("feature_names_in_")
    if names is not None:
        require(
            names.shape == (n_columns,) and names.dtype == object,
            "feature_names_in_ does not name the columns",
        )
        require(all(type(name) is str for name in names), "feature_names_in_ does not hold strings")
    target = learnt.get("target_name_", "")
    require(
        all(type(name) is str for name in ([target] if isinstance(target, str) else target)),
        "target_name_ is no name",
    )
    require(isinstance(target, str) or len(target) == n_outputs, "target_name_ does not name the outputs")
    require(
        columns is None or columns.names == (None if names is None else tuple(names)),
        "the columns have two names",
    )
    require(columns is None or model._raw_bases != (), "categories are in a model that takes none")
    is_anova = isinstance(machine.layout, AnovaLayout)
    of_terms = model._estimator_class._layout if isinstance(model, Search) else model._layout
    require(is_anova == (of_terms is AnovaLayout), "its terms are those of another model")
    require(
        not (is_anova and isinstance(machine.basis, SplineBasis)), "a factorization machine has no splines"
    )
    require(not learnt["_squeezed"] or n_outputs == 1, "several outputs are shown as one")
    require(is_classifier(model) == ("classes_" in learnt), "only a classifier has classes")
    if is_classifier(model):
        classes = learnt["classes_"]
        require(
            classes.ndim == 1 and len(classes) >= 2 and len(np.unique(classes)) == len(classes),
            "classes_ are not different labels",
        )
        require(
            n_outputs == (1 if len(classes) == 2 else len(classes)),
            "there are not as many outputs as classes_ need",
        )
    require(
        isinstance(model, TensorMachineFeatures) == ("_output_names" in learnt),
        "only features have named outputs",
    )
    outputs = learnt.get("_output_names", [""] * n_outputs)
    require(
        len(outputs) == n_outputs and all(type(name) is str for name in outputs),
        "there are not as many names as outputs",
    )
