"""The identity of a fit, by which a checkpoint recognises it."""

from __future__ import annotations

from numbers import Real
from typing import Any
from zlib import crc32

import numpy as np

from .._fit.fit import data_in_words
from .._fit.problem import Problem
from .warm_start import continues

NOT_IN_THE_IDENTITY = {"n_jobs", "verbose", "checkpoint", "checkpoint_every"}  # they do not change a fit


def identity(estimator: Any, problem: Problem) -> dict[str, Any]:
    """Return the class, settings, data and start of a fit, as text."""
    settings = {
        name: value
        for name, value in estimator.get_params(deep=False).items()
        if name not in NOT_IN_THE_IDENTITY
    }
    if isinstance(estimator.random_state, np.random.RandomState):
        settings["random_state"] = crc32(repr(estimator.random_state.get_state()).encode())
    if continues(estimator):
        settings["start"] = crc32(estimator._machine.params.tobytes())
    texts = {name: _as_text(value) for name, value in settings.items()}
    return {"estimator": type(estimator).__name__, **texts, **data_in_words(problem)}


def _as_text(setting: Any) -> Any:
    """Return the same text for equal settings: 1 and 1.0, dicts and sets in any order, functions at any
    address."""
    if isinstance(setting, dict):
        return sorted(f"{key}: {_as_text(value)}" for key, value in setting.items())
    if isinstance(setting, set | frozenset):  # whose order differs between processes
        return sorted(str(_as_text(each)) for each in setting)
    if isinstance(setting, list | tuple):
        return [_as_text(each) for each in setting]
    if callable(setting):  # without its memory address
        return getattr(setting, "__qualname__", type(setting).__qualname__)
    return str(
        float(setting) if isinstance(setting, Real) and str(setting) not in ("True", "False") else setting
    )
