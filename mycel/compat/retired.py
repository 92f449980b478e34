"""Names of releases before 2.0, and the decorators of constructors that libraries import from
inside MindSpore.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Optional

from mycel.common.markers import jit_class as ms_class
from mycel.compiled.jit import jit as ms_function

__all__ = ["cell_attr_register", "ms_class", "ms_function", "opt_init_args_register"]


def _given(constructor: Callable[..., Any], self: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    bound = inspect.signature(constructor).bind(self, *args, **kwargs)
    bound.apply_defaults()
    return dict(list(bound.arguments.items())[1:])


def opt_init_args_register(fn: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor of an optimizer unchanged.

    Every optimizer keeps its arguments in `init_params`, `init_learning_rate` and `init_args` by
    itself.
    """
    return fn


def cell_attr_register(fn: Optional[Callable[..., None]] = None, attrs: Any = None) -> Callable[..., Any]:
    """Return a constructor that keeps a layer's arguments: as text in `cell_init_args`, and those
    that `attrs` names as attributes.
    """
    if fn is None:
        return functools.partial(cell_attr_register, attrs=attrs)
    named = [attrs] if isinstance(attrs, str) else list(attrs or ())
    decorated: Callable[..., None] = fn

    @functools.wraps(decorated)
    def constructor(self: Any, *args: Any, **kwargs: Any) -> None:
        given = _given(decorated, self, args, kwargs)
        decorated(self, *args, **kwargs)
        object.__setattr__(self, "cell_init_args", f"{type(self).__name__}{given}")
        for name in named:
            if not hasattr(self, name):
                setattr(self, name, given[name])

    return constructor
