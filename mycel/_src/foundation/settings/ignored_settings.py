"""Log messages, each once, about settings of a program that have no effect here.

Most have the level "info".
"""

from __future__ import annotations

from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

__all__ = ["asked_for_host", "unused", "without_effect"]

_said: set[str] = set()


def without_effect(what: str, why: str, aloud: bool = False) -> None:
    """Log that something has no effect, and why; the first time only. `aloud` is as a warning."""
    if what not in _said:
        _said.add(what)
        (logger.warning if aloud else logger.info)("%s has no effect: %s", what, why)


def unused(function: str, why: str, **given: tuple[object, object]) -> None:
    """Log the arguments that have no effect and are not their defaults.

    `given` has the value and the default of each; `function` and `why` are the function and the
    reason in the message.
    """
    for name, (value, default) in given.items():
        if value is not default and value != default:
            without_effect(f"{function}({name}={value!r})", why)


def asked_for_host(what: str) -> None:
    """Log once that a setting `what`, which wants values in the host's memory, has no effect."""
    if config.get_context("device_target") == "CPU":
        without_effect(what, "all values are in the host's memory")
        return
    without_effect(
        what,
        "values stay in the memory of the GPU; where they do not fit, divide them among devices, by optimizer "
        "parallelism for instance",
        aloud=True,
    )
