"""Constructors that bear the name of the class that was called."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

Class = TypeVar("Class", bound=type)


def own_constructor(cls: Class) -> Class:
    """Give a public class a constructor of its own name, although it inherits the code.

    Python names a function in its errors by where it was written: ``PolynomialModel.__init__() got an
    unexpected keyword argument`` would tell the user of a TensorMachineRegressor nothing."""
    written: Any = cls.__init__  # type: ignore[misc]
    own = FunctionType(
        written.__code__, written.__globals__, written.__name__, written.__defaults__, written.__closure__
    )
    own.__kwdefaults__ = written.__kwdefaults__
    own.__annotations__ = written.__annotations__
    own.__doc__ = written.__doc__
    own.__module__ = cls.__module__
    own.__qualname__ = f"{cls.__qualname__}.__init__"
    type.__setattr__(cls, "__init__", own)
    return cls
