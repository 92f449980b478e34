"""Names of releases before 2.0, and the decorators of constructors that libraries import from
inside MindSpore.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.ignored_settings import asked_for_host
from mycel._src.staging.compiled.jit import jit as ms_function
from mycel.common.markers import jit_class as ms_class

__all__ = [
    "cell_attr_register",
    "get_offload_context",
    "ms_class",
    "ms_function",
    "opt_init_args_register",
    "set_offload_context",
]

_OFFLOAD: dict[str, Any] = {
    "offload_path": "./offload",
    "offload_cpu_size": "0GB",
    "offload_disk_size": "0GB",
    "offload_param": "",
    "offload_checkpoint": "",
    "auto_offload": True,
    "host_mem_block_size": "1GB",
    "hbm_ratio": 1.0,
    "cpu_ratio": 1.0,
    "enable_aio": True,
    "enable_pinned_mem": True,
    "aio_block_size": "",
    "aio_queue_depth": 0,
}
_offload: dict[str, Any] = dict(_OFFLOAD)


def set_offload_context(offload_config: dict[str, Any]) -> None:
    """Set where parameters are kept that a device has no room for, which has no effect.

    Values stay in the memory of the engine, which says so once. Raises TypeError unless the
    settings are a dict of values of their types, ValueError for a setting that there is not.

    >>> set_offload_context({"hbm_ratio": 0.5})
    >>> get_offload_context()["hbm_ratio"]
    0.5
    """
    function = "set_offload_context"
    for name, value in arguments.instance(function, "offload_config", offload_config, dict).items():
        if name not in _OFFLOAD:
            raise ValueError(f"{function}: there is no setting {name!r}; the names are {', '.join(_OFFLOAD)}")
        kind = type(_OFFLOAD[name])
        arguments.instance(function, name, value, (int, float) if kind is float else kind)
        asked_for_host(f"{function}({name}=...)")
    _offload.update(offload_config)


def get_offload_context() -> dict[str, Any]:
    """Return the settings of `set_offload_context`."""
    return dict(_offload)


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


def cell_attr_register(fn: Callable[..., None] | None = None, attrs: Any = None) -> Callable[..., Any]:
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
