"""Save models to files and load them; `load` never runs code from a file.

A file holds the name of the estimator, its settings, its fitted attributes and its machine; see
docs/files.md. `persistence.container` writes bytes, `persistence.values` encodes settings and attributes, and
`persistence.machine` encodes the machine."""

from __future__ import annotations

import warnings
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import is_classifier, is_regressor

from .._data.encoding import Columns
from .._data.files.notation import Notation
from .._model.layout import AnovaLayout
from .._model.machine import Machine
from .._model.spline_basis import SplineBasis
from ..estimators import TensorMachineClassifier, TensorMachineFeatures, TensorMachineRegressor
from ..estimators.intervals import Intervals
from ..estimators.polynomial_model import PolynomialModel
from ..estimators.search import Search
from ..estimators.tensor_machine_cv import TensorMachineClassifierCV, TensorMachineRegressorCV
from .container import ModelFileError, pack, read, require, unpack, write
from .machine import machine_from, machine_to
from .values import Arrays, from_plain, to_plain

__all__ = ["ModelFileError", "load", "save"]

Facts: TypeAlias = dict[str, Any]

INTEGER, NUMBER = (int, np.integer), (float, int, np.floating, np.integer)
LEARNT: dict[str, Any] = {  # saved attributes and their types
    "alpha_": NUMBER,
    "classes_": np.ndarray,
    "feature_names_in_": np.ndarray,
    "n_features_in_": INTEGER,
    "n_iter_": INTEGER,
    "objective_": NUMBER,
    "target_name_": (str, list),
    "_notations": dict,  # by column, the notation of its numbers in the file of the fit
    "_rows_of_fit": np.ndarray,  # the hashes of a RowSketch
    "_known_part": dict,  # the columns of an exposure and an offset in the file of the fit
    "_squeezed": (bool, np.bool_),
    "_target_link": str,  # this and all below are missing in files of earlier versions
    "_largest_outputs": np.ndarray,
    "_mean_outputs": np.ndarray,
    "_mean_parts": np.ndarray,
    "_importances": np.ndarray,
    "_relevance": np.ndarray,
    "_n_rows": INTEGER,
    "_output_names": list,
    "quantiles_": np.ndarray,
    "solver_": str,
    "loss_curve_": np.ndarray,
    "validation_loss_curve_": np.ndarray,
}
LEARNT_BY_SEARCH: dict[str, Any] = {
    "best_index_": INTEGER,
    "best_params_": dict,
    "best_score_": NUMBER,
    "cv_results_": dict,
    "members_": list,
    "n_splits_": INTEGER,
    "refit_time_": NUMBER,
    "subsample_": INTEGER,  # missing in files of earlier versions
}
OUTPUTS = ("default", "pandas", "polars")  # of TensorMachineFeatures.set_output
DAMAGE = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)


def save(model: Any, path: str | PathLike[str]) -> None:
    """Write a fitted model to a file that `load` reads.

    The file is complete before it replaces another one: if anything fails, the older file is unchanged.

    Parameters
    ----------
    model : TensorMachineRegressor, TensorMachineClassifier, TensorMachineFeatures, or one of the searches
        Or one of the factorization machines of `tensormachines.peers`.
    path : str or path-like
        Any name; ".tm" is the usual extension.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "diabetes.tm")
    >>> save(model, path)  # as model.save(path) does
    >>> bool((load(path).predict(X) == model.predict(X)).all())
    True
    """
    if _class_named(type(model).__name__) is not type(model):
        names = ", ".join(_classes(peers=True))
        raise TypeError(
            f"model must be one of {names}, got {type(model).__name__}. Use pickle or skops instead."
        )
    model._require_fit()
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"path must name a file, got the folder {str(path)!r}.")
    if path.exists() and not path.is_file():
        raise ValueError(f"path must name a file, got {str(path)!r}, which is a device or a pipe.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"The folder {str(path.parent)!r} does not exist: create it first.")
    if callable(getattr(model, "loss", None)):
        warnings.warn(
            'Files hold no functions: the loaded model will have loss="squared_error". It predicts the same; '
            "give it your loss again before another fit.",
            UserWarning,
            stacklevel=3,
        )
    arrays: list[np.ndarray] = []
    data = pack(_facts(model, arrays), arrays)
    try:
        _model(*unpack(data))
    except DAMAGE as error:
        raise ValueError(f"This {type(model).__name__} could not be loaded again: {error}.") from error
    write(path, data)


def load(path: str | PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    No code from the file is ever run, but a model from an untrusted source can still predict nonsense.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    model : estimator
        Model of the same class, with the same parameters and fitted attributes; its predictions are identical
        to the bit.

    Raises
    ------
    ModelFileError
        A ValueError, if the file cannot be read, is damaged, is not a model, or comes from a newer version.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from tensormachines import TensorMachineRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = TensorMachineRegressor(degree=2, rank=2, max_iter=5, random_state=0).fit(X, y)
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> path = Path(mkdtemp(), "diabetes.tm")
    >>> model.save(path)
    >>> load(path).degree
    2
    """
    path = Path(path)
    try:
        return _model(*unpack(read(path)))
    except DAMAGE as error:
        why = error if isinstance(error, ModelFileError) else f"it is damaged: {error}"
        raise ModelFileError(f"{str(path)!r} cannot be loaded as a model: {why}.") from error


def _classes(peers: bool) -> dict[str, Any]:
    """Return all classes that can be saved, by name; ``peers`` are slow to import."""
    classes: list[Any] = [
        TensorMachineRegressor,
        TensorMachineClassifier,
        TensorMachineFeatures,
        TensorMachineRegressorCV,
        TensorMachineClassifierCV,
    ]
    if peers:
        from ..peers.factorization import FactorizationMachineClassifier, FactorizationMachineRegressor

        classes += [FactorizationMachineRegressor, FactorizationMachineClassifier]
    return {one.__name__: one for one in classes}


def _class_named(name: str) -> Any:
    return _classes(peers=name.startswith("Factorization")).get(name)


# ---- writing


def _facts(model: PolynomialModel | Search, arrays: list[np.ndarray]) -> Facts:
    from .. import __version__

    settings = _settings(model, arrays)
    facts: Facts = {"library": __version__, "estimator": type(model).__name__, "settings": settings}
    fitted = model.best_estimator_ if isinstance(model, Search) else model
    learnt = {name: vars(fitted)[name] for name in LEARNT if vars(fitted).get(name) is not None}
    if isinstance(model, Search):
        learnt |= {name: vars(model)[name] for name in LEARNT_BY_SEARCH if name in vars(model)}
        facts["best"] = _settings(fitted, arrays)
    facts["learnt"] = _plain(model, learnt, arrays)
    facts["output"] = getattr(model, "_sklearn_output_config", {}).get("transform")
    facts["model"] = machine_to(fitted._machine, fitted._columns, arrays)
    if hasattr(fitted, "_intervals"):
        facts["intervals"] = _intervals_to(fitted._intervals, arrays)
    return facts


def _intervals_to(intervals: Intervals, arrays: list[np.ndarray]) -> Facts:
    return {
        "errors": to_plain(intervals.errors, arrays),
        "n_rows": intervals.n_rows,
        "mean_size": intervals.mean_size,
        "sizes": None if intervals.sizes is None else _facts(intervals.sizes, arrays),
    }


def _settings(model: PolynomialModel | Search, arrays: list[np.ndarray]) -> Facts:
    """Return the settings, without a loss that is a function, because files hold no code."""
    settings = model.get_params(deep=False)
    if callable(settings.get("loss")):
        del settings["loss"]
    return _plain(model, settings, arrays)


def _plain(model: PolynomialModel | Search, attributes: Facts, arrays: list[np.ndarray]) -> Facts:
    plain = {}
    for name, value in attributes.items():
        try:
            plain[name] = to_plain(value, arrays)
        except TypeError as error:
            raise TypeError(
                f"{type(model).__name__} cannot be saved with this {name}: {error}. Change it, or use pickle."
            ) from None
    return plain


# ---- reading


def _model(facts: Any, all_arrays: list[np.ndarray]) -> PolynomialModel | Search:
    arrays = Arrays(all_arrays)
    model = _model_from(facts, arrays)
    arrays.require_all_taken()
    return model


def _model_from(facts: Any, arrays: Arrays) -> PolynomialModel | Search:
    require(isinstance(facts, dict), "it has no facts")
    name = str(facts.get("estimator"))
    estimator = _class_named(name)
    if estimator is None:
        raise ModelFileError(f"it has an estimator {name[:100]!r}, which this version does not know")
    model = _with_settings(estimator, facts.get("settings"), arrays)
    is_search = isinstance(model, Search)
    expected = {"library", "estimator", "settings", "learnt", "output", "model", *(["best"] * is_search)}
    require(set(facts) - {"intervals"} == expected, f"it should have {sorted(expected)}")
    machine, columns = machine_from(facts["model"], arrays)
    learnt = _learnt(facts["learnt"], LEARNT | LEARNT_BY_SEARCH if is_search else LEARNT, arrays)
    _check(model, learnt, machine, columns)
    of_model = {name: value for name, value in learnt.items() if name in LEARNT}
    of_model |= {"_machine": machine, "_columns": columns}
    if "intervals" in facts:
        require(is_regressor(model), "only regressors have intervals")
        of_model["_intervals"] = _intervals_from(facts["intervals"], learnt["n_features_in_"], arrays)
    if isinstance(model, Search):
        best = _with_settings(model._estimator_class, facts["best"], arrays)
        best.__dict__.update(of_model)
        kept = {*LEARNT_BY_SEARCH, "n_features_in_", "feature_names_in_", "target_name_"}
        kept |= {"_notations", "_rows_of_fit", "_known_part"}
        model.__dict__.update({name: value for name, value in learnt.items() if name in kept})
        model.__dict__.update({"_columns": columns, "best_estimator_": best})
    else:
        model.__dict__.update(of_model)
    if facts["output"] is not None:
        require(isinstance(model, TensorMachineFeatures) and facts["output"] in OUTPUTS, "unknown output")
        model.set_output(transform=facts["output"])
    return model


def _intervals_from(facts: Any, n_columns: int, arrays: Arrays) -> Intervals:
    named = isinstance(facts, dict) and set(facts) == {field.name for field in fields(Intervals)}
    require(named, "its intervals are incomplete")
    errors = from_plain(facts["errors"], arrays)
    ordered = isinstance(errors, np.ndarray) and errors.dtype == np.float64 and errors.ndim == 1
    require(ordered and len(errors) > 0 and bool((np.diff(errors) >= 0).all()), "errors are not in order")
    require(type(facts["n_rows"]) is int and facts["n_rows"] > 0, "its intervals are of no rows")
    size = from_plain(facts["mean_size"], arrays)
    require(type(size) is float and 0 < size < np.inf, "its intervals have an impossible size")
    sizes = None
    if facts["sizes"] is not None:
        sizes = _model_from(facts["sizes"], arrays)
        usable = type(sizes) is TensorMachineRegressor and not hasattr(sizes, "_intervals")
        require(usable and sizes.n_features_in_ == n_columns, "its intervals belong to another model")
    return Intervals(errors, facts["n_rows"], size, sizes)


def _with_settings(estimator: Any, settings: Any, arrays: Arrays) -> Any:
    require(isinstance(settings, dict), "it has no settings")
    unknown = ", ".join(sorted(set(settings) - set(estimator._get_param_names())))
    if unknown:
        raise ModelFileError(
            f"{estimator.__name__} of this version has no {unknown[:100]}: upgrade tensormachines"
        )
    model = estimator(**{name: from_plain(value, arrays) for name, value in settings.items()})
    if "shared_factors" not in settings and "shared_factors" in estimator._get_param_names():
        model.set_params(shared_factors=False)  # written by a version without shared factors
    model._validate_params()
    return model


def _learnt(plain: Any, types: dict[str, Any], arrays: Arrays) -> Facts:
    require(isinstance(plain, dict) and set(plain) <= set(types), "unknown attributes")
    learnt = {name: from_plain(value, arrays) for name, value in plain.items()}
    for name, value in learnt.items():
        fits = isinstance(value, types[name]) and (name == "_squeezed" or not isinstance(value, bool))
        require(fits, f"{name} has a wrong type")
    return learnt


def _check(model: PolynomialModel | Search, learnt: Facts, machine: Machine, columns: Columns | None) -> None:
    """Check that all parts belong together."""
    n_columns, n_outputs = machine.basis.n_columns, machine.layout.n_outputs
    needed = {"n_features_in_", "n_iter_", "objective_", "_squeezed"}
    needed |= set(LEARNT_BY_SEARCH if isinstance(model, Search) else ()) - {"subsample_"}
    require(needed <= set(learnt), "attributes are missing")
    n_inputs = n_columns if columns is None else len(columns.columns)
    require(learnt["n_features_in_"] == n_inputs, "n_features_in_ is not the number of columns")
    names = learnt.get("feature_names_in_")
    if names is not None:
        require(names.shape == (n_inputs,) and _are_strings(names), "feature_names_in_ name no columns")
        require(names.dtype == object, "feature_names_in_ has a wrong type")
    if columns is not None:
        require(columns.names == (None if names is None else tuple(names)), "columns have two names")
        require(model._raw_bases != (), "this model takes no categories")
    target = learnt.get("target_name_", "")
    require(_are_strings([target] if isinstance(target, str) else target), "target_name_ is not a name")
    require(isinstance(target, str) or len(target) == n_outputs, "target_name_ does not name the outputs")
    for column, notation in learnt.get("_notations", {}).items():
        require(_are_strings([column, notation]), "_notations are not texts")
        Notation.parse(notation)
    for kind, column in learnt.get("_known_part", {}).items():
        require(kind in ("exposure", "offset") and type(column) is str, "_known_part names no columns")
    hashes = learnt.get("_rows_of_fit", np.empty(0, np.uint64))
    require(hashes.dtype == np.uint64 and hashes.ndim == 1, "_rows_of_fit are not hashes")
    is_anova = isinstance(machine.layout, AnovaLayout)
    layout = model._estimator_class._layout if isinstance(model, Search) else model._layout
    require(is_anova == (layout is AnovaLayout), "its terms are those of another model")
    require(not (is_anova and isinstance(machine.basis, SplineBasis)), "a factorization machine has splines")
    require(not learnt["_squeezed"] or n_outputs == 1, "several outputs are squeezed into one")
    facts = {
        "_mean_outputs": (n_outputs,),
        "_largest_outputs": (n_outputs,),
        "_mean_parts": (n_outputs, n_columns),
        "_importances": (n_columns,),
        "_relevance": (n_columns,),
    }
    for name, shape in facts.items():
        numbers = learnt.get(name, np.zeros(shape))
        require(numbers.shape == shape and numbers.dtype.kind == "f", f"{name} has a wrong shape")
    for name in ("loss_curve_", "validation_loss_curve_"):
        numbers = learnt.get(name, np.zeros(0))
        require(numbers.ndim == 1 and numbers.dtype == np.float64, f"{name} is no curve")
    link = learnt.get("_target_link", "identity")
    own_link = {"log": is_regressor(model), "sigmoid": is_classifier(model)}.get(link, link == "identity")
    require(own_link, "its link is unknown")
    require((link == "log") == ("_largest_outputs" in learnt), "only a log link has largest outputs")
    classes = learnt.get("classes_")
    require(is_classifier(model) == (classes is not None), "only classifiers have classes_")
    if classes is not None:
        distinct = classes.ndim == 1 and 2 <= len(classes) == len(np.unique(classes))
        require(distinct, "classes_ are not distinct labels")
        needed_outputs = 1 if len(classes) == 2 and link != "sigmoid" else len(classes)
        require(n_outputs == needed_outputs, "classes_ do not fit the outputs")
    levels = learnt.get("quantiles_", np.linspace(0.25, 0.75, n_outputs))
    possible = levels.shape == (n_outputs,) and levels.dtype == np.float64 and (np.diff(levels) > 0).all()
    require(bool(possible) and is_regressor(model) >= ("quantiles_" in learnt), "quantiles_ are no levels")
    has_names = "_output_names" in learnt
    require(isinstance(model, TensorMachineFeatures) == has_names, "only features have named outputs")
    outputs = learnt.get("_output_names", [""] * n_outputs)
    require(len(outputs) == n_outputs and _are_strings(outputs), "_output_names do not name the outputs")


def _are_strings(names: Any) -> bool:
    return all(type(name) is str for name in names)
