"""Checks of arguments that may be tensors of one element, for the functions of `mint`."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops._operands import certainly

__all__ = ["number", "real", "whole"]


def number(name: str, parameter: str, value: Any) -> Any:
    """Check that `value` is a number, a symbolic size or a tensor of one element, and return it.

    Raises TypeError for anything else, booleans too. `name` and `parameter` are for the message.
    """
    return _one(name, parameter, value, (int, float, np.number, Dim), "a number")


def whole(name: str, parameter: str, value: Any) -> Any:
    """Check that `value` is an int, a symbolic size or a tensor of one element, and return it.

    Raises TypeError for anything else, booleans too. `name` and `parameter` are for the message.
    """
    return value if type(value) is int else _one(name, parameter, value, (int, np.integer, Dim), "an int")


def real(name: str, parameter: str, value: Any) -> Any:
    """Check that `value` is a float or a tensor of one element, and return it.

    Raises TypeError for anything else, ints too. `name` and `parameter` are for the message.
    """
    return value if type(value) is float else _one(name, parameter, value, (float, np.floating), "a float")


def _one(name: str, parameter: str, value: Any, kinds: tuple[type, ...], what: str) -> Any:
    if isinstance(value, Tensor):
        if certainly(lambda: value.size != 1):
            raise arguments.wrong_type(name, parameter, f"{what} or a tensor of one element", value)
    elif isinstance(value, bool) or not isinstance(value, kinds):
        raise arguments.wrong_type(name, parameter, what, value)
    return value
