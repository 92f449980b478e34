"""What the settings of devices have in common: each is checked, and has no effect here."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel.compat.unserved import signature_of

__all__ = ["setting"]


def setting(device: str, name: str, kind: type, choices: Sequence[Any] | None = None, title: str = "value") -> Any:
    """Return the function that makes a setting of a device that is not here.

    `name` is the function's, and `title` that of its argument, which must be of the type `kind` and
    one of `choices`, if there are any: otherwise the function raises TypeError or ValueError.
    """

    def put(value: Any) -> None:
        if not isinstance(value, kind) or isinstance(value, bool) and kind is not bool:
            raise TypeError(f"{name}: {title} must be of type {kind.__name__}, not {value!r}")
        if choices is not None and value not in choices:
            raise ValueError(f"{name}: {title} must be one of {', '.join(map(repr, choices))}, not {value!r}")
        without_effect(f"{name}({value!r})", f"there is no {device} device")

    put.__name__ = put.__qualname__ = name
    put.__doc__ = f"Set `{name}` of {device} devices, which has no effect: there is none."
    return _with_parameter(put, title)


def _with_parameter(put: Callable[[Any], None], title: str) -> Any:
    @functools.wraps(put)
    def named(*args: Any, **kwargs: Any) -> None:
        put(*signature.bind(*args, **kwargs).args)

    signature: inspect.Signature = signature_of(f"({title})")
    vars(named)["__signature__"] = signature
    return named
