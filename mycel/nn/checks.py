"""Checks of the arguments of layers, losses and optimizers; each error names the class, the argument and its value."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any, Optional

from mycel.cells.cell import Cell
from mycel.core.tensor import Tensor
from mycel.ops._operands import operand

__all__ = ["boolean", "cell", "choice", "integer", "number", "optional_tensor", "sizes", "tensor", "text"]


def integer(owner: str, name: str, value: Any, at_least: Optional[int] = None) -> int:
    """`value` as an int; TypeError for another type, ValueError below `at_least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{owner}: {name} must be an int, not {type(value).__name__}")
    if at_least is not None and value < at_least:
        raise ValueError(f"{owner}: {name} must be at least {at_least}, not {value}")
    return int(value)


def boolean(owner: str, name: str, value: Any) -> bool:
    """`value`, a bool; TypeError otherwise."""
    if not isinstance(value, bool):
        raise TypeError(f"{owner}: {name} must be a bool, not {type(value).__name__}")
    return value


def cell(owner: str, name: str, value: Any) -> Cell:
    """`value`, a Cell; TypeError otherwise."""
    if not isinstance(value, Cell):
        raise TypeError(f"{owner}: {name} must be a Cell, not {type(value).__name__}")
    return value


def text(owner: str, name: str, value: Any) -> str:
    """`value`, a string; TypeError otherwise."""
    if not isinstance(value, str):
        raise TypeError(f"{owner}: {name} must be a string, not {type(value).__name__}")
    return value


def tensor(owner: Any, value: Any) -> Tensor:
    """What a layer is given, as a tensor; TypeError that names the layer for what cannot be one."""
    return value if isinstance(value, Tensor) else operand(type(owner).__name__, value)


def optional_tensor(owner: str, name: str, value: Any) -> Optional[Tensor]:
    """`value`, a tensor or None; TypeError otherwise."""
    if value is not None and not isinstance(value, Tensor):
        raise TypeError(f"{owner}: {name} must be a tensor or None, not {type(value).__name__}")
    return value


def choice(owner: str, name: str, value: Any, allowed: Sequence[str]) -> str:
    """`value`, one of the strings `allowed`; TypeError or ValueError otherwise."""
    text(owner, name, value)
    if value not in allowed:
        raise ValueError(f"{owner}: {name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def number(
    owner: str,
    name: str,
    value: Any,
    at_least: Optional[float] = None,
    above: Optional[float] = None,
    at_most: Optional[float] = None,
    below: Optional[float] = None,
) -> float:
    """`value` as a float within the bounds given; TypeError for another type, ValueError outside."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{owner}: {name} must be a number, not {type(value).__name__}")
    found = float(value)
    for bad, words, bound in (
        (at_least is not None and not found >= at_least, "at least", at_least),
        (above is not None and not found > above, "above", above),
        (at_most is not None and not found <= at_most, "at most", at_most),
        (below is not None and not found < below, "below", below),
    ):
        if bad:
            raise ValueError(f"{owner}: {name} must be {words} {bound}, not {value}")
    return found


def sizes(owner: str, name: str, value: Any, count: int, at_least: int = 1) -> tuple[int, ...]:
    """An int, or `count` of them, as a tuple of `count`; TypeError or ValueError otherwise."""
    if isinstance(value, (tuple, list)):
        if len(value) == 1 and count > 1:
            value = tuple(value) * count
        if len(value) != count:
            raise ValueError(f"{owner}: {name} must be an int or {count} of them, not {tuple(value)}")
        return tuple(integer(owner, f"each of {name}", v, at_least) for v in value)
    return (integer(owner, name, value, at_least),) * count
