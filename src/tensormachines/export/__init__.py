"""Fitted models in other languages: each function takes a model and returns text or an ONNX model."""

from .c import to_c
from .json import to_json
from .onnx import register_onnx_converters, to_onnx
from .python import to_python
from .sql import to_sql

__all__ = ["register_onnx_converters", "to_c", "to_json", "to_onnx", "to_python", "to_sql"]
