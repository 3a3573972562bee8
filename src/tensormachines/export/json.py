"""A model as JSON: its description as it is, for readers in any language."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

from .._model.description_form import AffineBasis, Portable
from .._model.linear_forms import plan


def to_json(model: Any, indent: int | None = None) -> str:
    """The description of a model as one JSON object, from which it can be evaluated in any language.

    Its fields are explained in docs/export.md. Numbers have all their digits: read as float64, they are the
    numbers of the model.

    Parameters
    ----------
    model : fitted regressor or classifier
    indent : int, optional
        Spaces an inner line is indented by; None writes all in one line.
    """
    planned = plan(model)
    description = _plain(planned.portable)
    description["classes"] = None if planned.portable.classes is None else planned.labels
    return json.dumps(description, indent=indent, allow_nan=False)


def _plain(portable: Portable) -> dict[str, Any]:
    description = _lists(asdict(portable))
    description["basis"]["name"] = portable.basis.name
    for column, described in zip(portable.columns, description["columns"], strict=True):
        described["kind"] = column.kind
    if isinstance(portable.basis, AffineBasis) and np.isinf(portable.basis.clip):
        description["basis"]["clip"] = None  # JSON has no infinity
    return description


def _lists(value: Any) -> Any:
    """Arrays in dicts and lists as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _lists(inner) for name, inner in value.items()}
    return [_lists(inner) for inner in value] if isinstance(value, list | tuple) else value
