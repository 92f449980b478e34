"""Parallel-training settings of a parameter, checked where they are set.

A setting is an attribute of the parameter. Its value lies in the parameter's own dictionary under
the setting's name, so that what makes parameters may put it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import numpy as np

from mycel._src.foundation import arguments

__all__ = ["Mark", "fusion", "is_flag", "sizes", "whole_number"]

T = TypeVar("T")


class Mark(Generic[T]):
    """An attribute of parameters whose values are checked where they are set.

    `check` takes the mark's name and a value, and returns what is kept, or raises TypeError or
    ValueError; `default` is the value of a parameter of which nothing is noted.
    """

    def __init__(self, check: Callable[[str, Any], T], default: T) -> None:
        self.check, self.default = check, default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, parameter: None, owner: type) -> Mark[T]: ...

    @overload
    def __get__(self, parameter: object, owner: type) -> T: ...

    def __get__(self, parameter: Any, owner: type) -> Any:
        return self if parameter is None else parameter.__dict__.get(self.name, self.default)

    def __set__(self, parameter: Any, value: Any) -> None:
        parameter.__dict__[self.name] = self.check(self.name, value)


def is_flag(name: str, value: Any) -> bool:
    """Return a flag; TypeError for anything but a bool."""
    return bool(arguments.instance("Parameter", name, value, (bool, np.bool_), "a bool"))


def fusion(name: str, value: Any) -> int:
    """Return the number of a group of messages that are joined; TypeError for no int, ValueError
    for one below 0.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise arguments.wrong_type("Parameter", name, "an int of at least 0", value)
    if value < 0:
        raise arguments.wrong_value("Parameter", name, "an int of at least 0", value)
    return value


def whole_number(name: str, value: Any) -> int:
    """Return an int; TypeError for anything else."""
    return int(arguments.instance("Parameter", name, value, int, "an int"))


def sizes(name: str, value: Any) -> list[int]:
    """Return sizes as a list; TypeError for what is no list or tuple."""
    return list(arguments.instance("Parameter", name, value, (list, tuple), "a list or tuple"))
