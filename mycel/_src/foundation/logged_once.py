"""Messages logged once: warnings, and notes that an argument has no effect."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation.log import logger

_said: set[tuple[Any, ...]] = set()


def say_once(*key: Any, message: str, arguments: tuple[Any, ...] = ()) -> None:
    """Log a warning the first time it is requested with this key."""
    if key not in _said:
        _said.add(key)
        logger.warning(message, *arguments)


def no_effect(operation: str, argument: str, value: Any, why: str, warns: bool = False) -> None:
    """Say once that an argument has no effect, at the level "info".

    * `operation`, `argument`, `value`: whose argument it is, its name, and what was given.
    * `why`: the reason.
    * `warns`: whether it is a warning, as for what is given only for its effect.
    """
    if (operation, argument) not in _said:
        _said.add((operation, argument))
        say = logger.warning if warns else logger.info
        say("%s: %s=%r has no effect: %s", operation, argument, value, why)
