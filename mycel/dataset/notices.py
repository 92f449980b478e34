"""Warnings that are given once, mostly that an argument has no effect."""

from __future__ import annotations

from typing import Any

from mycel.base.log import logger

_said: set[tuple[Any, ...]] = set()


def say_once(*key: Any, message: str, arguments: tuple[Any, ...] = ()) -> None:
    """Log a warning the first time it is requested with this key."""
    if key not in _said:
        _said.add(key)
        logger.warning(message, *arguments)


def no_effect(operation: str, argument: str, value: Any, why: str) -> None:
    """Warn once that `value` for this argument of this operation has no effect, and say `why`."""
    say_once(operation, argument, message="%s: %s=%r has no effect: %s", arguments=(operation, argument, value, why))
