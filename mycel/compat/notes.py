"""What is said once, at the level "info", of settings that a program makes and that change nothing
here.
"""

from __future__ import annotations

from mycel.base.log import logger

__all__ = ["without_effect"]

_said: set[str] = set()


def without_effect(what: str, why: str) -> None:
    """Log that something has no effect, and why; the first time only."""
    if what not in _said:
        _said.add(what)
        logger.info("%s has no effect: %s", what, why)
