"""Constructors and fits that carry the name of the class that was called."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeVar

from .sklearn_private import fit_context

Class = TypeVar("Class", bound=type)


def own_names(cls: Class) -> Class:
    """Give a public class a constructor and a fit under its own name, although it inherits the code.

    Python's errors name a function after the class that defines it:
    ``PolynomialModel.__init__() got an unexpected keyword argument`` would mean nothing to the user of a
    TensorMachineRegressor."""
    written: Any = cls.__init__  # type: ignore[misc]
    type.__setattr__(cls, "__init__", _renamed(cls, written))
    # The function inside scikit-learn's parameter checks.
    inherited = None if "fit" in vars(cls) else getattr(getattr(cls, "fit", None), "__wrapped__", None)
    if inherited is not None:
        own = _renamed(cls, inherited)
        type.__setattr__(cls, "fit", fit_context(prefer_skip_nested_validation=True)(own))
    return cls


def _renamed(cls: type, written: Any) -> FunctionType:
    own = FunctionType(
        written.__code__, written.__globals__, written.__name__, written.__defaults__, written.__closure__
    )
    own.__kwdefaults__ = written.__kwdefaults__
    own.__annotations__ = written.__annotations__
    own.__doc__ = written.__doc__
    own.__module__ = cls.__module__
    own.__qualname__ = f"{cls.__qualname__}.{written.__name__}"
    return own
