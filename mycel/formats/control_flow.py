"""Branches and loops of imported models, traced as if the user had written them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel.ops.python_values import followed

__all__ = ["either", "repeated"]


def either(condition: Any, true: Callable[[], Any], false: Callable[[], Any]) -> Any:
    """Return what `true` gives where the condition, of no axes, holds, else what `false` gives.

    >>> either(False, lambda: 1, lambda: 2)
    2
    """
    return followed(_either, condition, true, false)


def repeated(going: Callable[[Any], Any], step: Callable[[Any], Any], value: Any) -> Any:
    """Return a value after as many steps as `going` asks for, of the value before each.

    >>> repeated(lambda n: n < 100, lambda n: 2 * n, 3)
    192
    """
    return followed(_repeated, going, step, value)


def _either(condition: Any, true: Callable[[], Any], false: Callable[[], Any]) -> Any:
    if condition:
        found = true()
    else:
        found = false()
    return found


def _repeated(going: Callable[[Any], Any], step: Callable[[Any], Any], value: Any) -> Any:
    while going(value):
        value = step(value)
    return value
