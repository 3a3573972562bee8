"""The identity of a fit, by which a checkpoint recognises it."""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any
from zlib import crc32

import numpy as np

from .._fit.fit import data_in_words
from .._fit.problem import Problem
from .._model.block import Block
from .._model.losses import Loss
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
    if callable(settings.get("loss")):  # two functions may have the same name
        (losses,) = problem.sample.total(partial(_sums_of_losses, loss=problem.loss))
        digits = " ".join(f"{each:.6g}" for each in losses)  # the last ones depend on the processor
        settings["loss"] = f"{_as_text(settings['loss'])}, checksum {crc32(digits.encode()):08x}"
    texts = {name: _as_text(value) for name, value in settings.items()}
    return {"estimator": type(estimator).__name__, **texts, **data_in_words(problem)}


def _as_text(setting: Any) -> Any:
    """Return the same text for equal settings: 1 and 1.0, dicts and sets in any order, functions at any
    address."""
    if isinstance(setting, dict):
        return sorted(f"{key}: {_as_text(value)}" for key, value in setting.items())
    if isinstance(setting, set | frozenset):  # whose order differs between processes
        return sorted(str(_as_text(each)) for each in setting)
    if isinstance(setting, np.ndarray):  # whose own text leaves out most entries of long arrays
        setting = setting.tolist()
    if isinstance(setting, list | tuple):
        return [_as_text(each) for each in setting]
    if callable(setting):  # without its memory address
        return getattr(setting, "__qualname__", type(setting).__qualname__)
    return str(
        float(setting) if isinstance(setting, Real) and str(setting) not in ("True", "False") else setting
    )


def _sums_of_losses(block: Block, loss: Loss) -> tuple[np.ndarray]:
    """Return sums of the losses of the rows at three outputs."""
    present = block.row_weights > 0  # other rows may overflow
    targets = block.targets[present]
    return (np.array([loss.pointwise(targets, np.full_like(targets, z))[0].sum() for z in (-1, 0, 1)]),)
