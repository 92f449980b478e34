"""`mindspore.common._decorator`: marks of what a later release lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Optional, TypeVar

from mycel._src.foundation.log import logger

__all__ = ["deprecated"]

F = TypeVar("F", bound=Callable[..., Any])


def deprecated(
    version: str, substitute: str | None, use_substitute_name: bool = False, module_prefix: str = ""
) -> Callable[[F], Callable[..., Any]]:
    """Return a decorator of functions which are gone after a version: each call warns in the log.

    `substitute` is what to use instead, and `module_prefix` stands before the function's name.
    `use_substitute_name` gives what is called as a method the attribute `substitute_name`, as
    MindSpore does for the class of the first argument.
    """

    def mark(function: F) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            name = f"{module_prefix}{function.__name__}"
            text = f"'{name}' is deprecated from version {version} and will be removed in a future version"
            logger.warning("%s", text + (f", use '{substitute}' instead." if substitute else "."))
            found = function(*args, **named)
            if use_substitute_name and substitute and args:
                type(args[0]).substitute_name = substitute
            return found

        return call

    return mark
