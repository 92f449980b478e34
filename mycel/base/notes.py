"""What is said once, at the level "info", of settings that a program makes and that change nothing
here.
"""

from __future__ import annotations

from mycel.base.log import logger

__all__ = ["unused", "without_effect"]

_said: set[str] = set()


def without_effect(what: str, why: str) -> None:
    """Log that something has no effect, and why; the first time only."""
    if what not in _said:
        _said.add(what)
        logger.info("%s has no effect: %s", what, why)


def unused(function: str, why: str, **given: tuple[object, object]) -> None:
    """Log the arguments that have no effect and are not their defaults.

    `given` has the value and the default of each; `function` and `why` are the function and the
    reason in the message.
    """
    for name, (value, default) in given.items():
        if value is not default and value != default:
            without_effect(f"{function}({name}={value!r})", why)
