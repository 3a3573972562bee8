"""The public estimators, and what their docstrings list."""

import inspect
import re

import tensormachines
from tensormachines import peers

ESTIMATORS = [
    *(getattr(tensormachines, name) for name in tensormachines.__all__ if name.startswith("Tensor")),
    *(getattr(peers, name) for name in peers.__all__),
]


def documented(estimator, section):
    """What the docstring of a class lists there: by name, what comes after the colon."""
    listed = re.split(
        r"\n\n(?=\w+\n-+\n)", inspect.getdoc(estimator).partition(f"{section}\n{'-' * len(section)}\n")[2]
    )[0]
    entries = re.findall(r"^((?:\w+, )*\w+) : (.*)$", listed, re.MULTILINE)
    return {name: text for names, text in entries for name in names.split(", ")}
