"""Fitted models in other languages: each function takes a model and returns text."""

from .python import to_python

__all__ = ["to_python"]
