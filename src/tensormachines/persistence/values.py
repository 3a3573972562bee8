"""Convert settings and attributes to JSON and arrays, and back: a closed list of types, preserved exactly.

None, bool, int, float, str and lists stand for themselves. Other values are objects with one key, the type:

    {"float": "nan" | "inf" | "-inf"}   {"tuple": [...]}   {"set" | "frozenset": [...]}
    {"dict": [[key, value], ...]}   {"path": text}
    {"scalar": [dtype, value]}   {"array": number among the arrays}   {"objects": [shape, [...]]}
    {"masked": [data, mask]}   {"random_state": [name, keys, ...]}
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
SCALARS = {name: np.dtype(name) for name in ("bool", *INTEGERS, "float16", "float32", "float64", "str")}
KEEPABLE = "biufUS"  # kinds of arrays


class Arrays:
    """The arrays of a file; each can be taken once."""

    def __init__(self, arrays: list[np.ndarray]):
        self._left = dict(enumerate(arrays))

    def take(self, number: int) -> np.ndarray:
        if number not in self._left:
            raise ValueError(f"array {number} does not exist or is used twice")
        return self._left.pop(number)

    def require_all_taken(self) -> None:
        if self._left:
            raise ValueError("it has arrays that are not used")


def to_plain(value: Any, arrays: list[np.ndarray]) -> Any:
    """Encode ``value``, appending its arrays to ``arrays``; raise TypeError for any other type."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind in (list, tuple):
        plain = [to_plain(item, arrays) for item in value]
        return plain if kind is list else {"tuple": plain}
    if kind in (set, frozenset):
        return {kind.__name__: [to_plain(item, arrays) for item in sorted(value, key=str)]}
    if isinstance(value, dict):
        return {"dict": [[to_plain(key, arrays), to_plain(item, arrays)] for key, item in value.items()]}
    if isinstance(value, np.generic):
        name = "str" if isinstance(value, np.str_) else value.dtype.name
        if name in SCALARS:
            return {"scalar": [name, to_plain(value.item(), arrays)]}
    if isinstance(value, np.ndarray):
        return _plain_array(value, arrays)
    if isinstance(value, np.random.RandomState):
        return {"random_state": [to_plain(part, arrays) for part in value.get_state(legacy=True)]}
    if isinstance(value, os.PathLike):
        return {"path": os.fsdecode(value)}
    raise TypeError(f"{value!r}: cannot save a value of type {kind.__name__}")


def _plain_array(value: np.ndarray, arrays: list[np.ndarray]) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        return {"masked": [to_plain(value.data, arrays), to_plain(np.ma.getmaskarray(value), arrays)]}
    if value.dtype.kind == "O":
        return {"objects": [list(value.shape), [to_plain(item, arrays) for item in value.ravel().tolist()]]}
    if value.dtype.kind not in KEEPABLE or value.dtype.itemsize == 0:
        raise TypeError(f"cannot save an array of dtype {value.dtype}")
    arrays.append(value)
    return {"array": len(arrays) - 1}


def from_plain(plain: Any, arrays: Arrays) -> Any:
    """Decode a value; raise ValueError if the encoding is unknown."""
    if plain is None or type(plain) in (bool, int, float, str):
        return plain
    if isinstance(plain, list):
        return [from_plain(item, arrays) for item in plain]
    match plain if len(plain) == 1 else None:
        case {"float": "nan" | "inf" | "-inf" as text}:
            return float(text)
        case {"tuple": list(items)}:
            return tuple(from_plain(item, arrays) for item in items)
        case {"set": list(items)}:
            return set(_hashable(from_plain(items, arrays)))
        case {"frozenset": list(items)}:
            return frozenset(_hashable(from_plain(items, arrays)))
        case {"dict": list(pairs)}:
            return _dict(from_plain(pairs, arrays))
        case {"scalar": [str(name), value]} if name in SCALARS:
            return _scalar(SCALARS[name], from_plain(value, arrays))
        case {"array": int(number)}:
            return arrays.take(number)
        case {"objects": [list(shape), list(items)]}:
            return _objects(shape, from_plain(items, arrays))
        case {"masked": [data, mask]}:
            return _masked(from_plain(data, arrays), from_plain(mask, arrays))
        case {"random_state": list(parts)}:
            return _random_state(from_plain(parts, arrays))
        case {"path": str(text)} if "\0" not in text:
            return Path(text)
    raise ValueError(f"unknown encoding {str(plain)[:100]}")


def _hashable(items: list[Any]) -> list[Any]:
    if any(isinstance(item, list | dict | set | np.ndarray) for item in items):
        raise ValueError("the items of a set are not hashable")
    return items


def _dict(pairs: list[Any]) -> dict[Any, Any]:
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise ValueError("a dict is not made of pairs")
    try:
        return dict(pairs)
    except TypeError:
        raise ValueError("dict keys are not hashable") from None


def _scalar(dtype: np.dtype, value: Any) -> Any:
    allowed = {"b": bool, "i": int, "u": int, "f": float, "U": str}[dtype.kind]
    if type(value) is not allowed:
        raise ValueError(f"{value!r} is not of type {dtype}")
    with np.errstate(over="ignore"):
        scalar = dtype.type(value)  # OverflowError if an integer is too large
    if scalar != value and value == value:
        raise ValueError(f"{value!r} is too large for {dtype}")
    return scalar


def _objects(shape: list[Any], items: list[Any]) -> np.ndarray:
    possible = len(shape) <= 8 and all(type(length) is int and 0 <= length <= len(items) for length in shape)
    if not possible or math.prod(shape) != len(items):
        raise ValueError(f"an array of shape {shape} does not have {len(items)} entries")
    array = np.empty(len(items), dtype=object)
    for place, item in enumerate(items):  # one by one, because NumPy would unpack nested items
        array[place] = item
    return array.reshape(shape)


def _masked(data: Any, mask: Any) -> np.ma.MaskedArray:
    arrays = isinstance(data, np.ndarray) and isinstance(mask, np.ndarray)
    if not arrays or mask.dtype != bool or mask.shape != data.shape:
        raise ValueError("a masked array has no mask of its shape")
    return np.ma.MaskedArray(data, mask=mask)


def _random_state(parts: list[Any]) -> np.random.RandomState:
    types = [type(part) for part in parts]
    if types != [str, np.ndarray, int, int, float] or parts[0] != "MT19937":
        raise ValueError("invalid RandomState")
    _, keys, position, has_gauss, gauss = parts
    if keys.dtype != np.uint32 or keys.shape != (624,) or not 0 <= position <= 624 or has_gauss not in (0, 1):
        raise ValueError("invalid state of a RandomState")
    random_state = np.random.RandomState(0)
    random_state.set_state(("MT19937", keys, position, has_gauss, gauss))
    return random_state
