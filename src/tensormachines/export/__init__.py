"""Fitted models in other languages: each function takes a model and returns text."""

from .c import to_c
from .json import to_json
from .python import to_python
from .sql import to_sql

__all__ = ["to_c", "to_json", "to_python", "to_sql"]
