"""`enable_dynamic`: compiled functions with arguments declared to vary in size."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.staging.compiled.jit import Jit
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["enable_dynamic"]


class _Dynamic(Jit):
    """A function compiled for all sizes, which checks its arguments against their declarations."""

    def __init__(self, compiled: Jit, declared: dict[str, Any]) -> None:
        super().__init__(compiled.__wrapped__, compiled.fullgraph, **{**compiled.options, "dynamic": 1})
        self.declared = declared
        self.signature = _signature(self.__wrapped__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not eager.active or eager.local.context is None:
            bound = self.signature.bind(*args, **kwargs).arguments
            for name, declared in self.declared.items():
                if name in bound:
                    _compare(name, bound[name], declared)
        return super().__call__(*args, **kwargs)


def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(getattr(function, "construct", function))


def _compare(name: str, given: Any, declared: Any) -> None:
    if not isinstance(declared, Tensor):
        if not isinstance(given, (tuple, list)) or len(given) != len(declared):
            raise TypeError(f"enable_dynamic: {name} is declared as {len(declared)} tensors, not {given!r:.80}")
        for i, (g, d) in enumerate(zip(given, declared)):
            _compare(f"{name}[{i}]", g, d)
        return
    if not isinstance(given, Tensor):
        raise TypeError(f"enable_dynamic: {name} is declared as a tensor, not {type(given).__name__}")
    if given.dtype is not declared.dtype:
        raise TypeError(f"enable_dynamic: {name} is declared with type {declared.dtype.name}, not {given.dtype.name}")
    sizes = declared.__dict__["_declared_shape"]
    if sizes is None:
        return
    if len(sizes) != given.ndim or any(type(d) is int and d >= 0 and d != n for d, n in zip(sizes, given.shape)):
        raise ValueError(f"enable_dynamic: {name} is declared with shape {tuple(sizes)}, not {given.shape}")


def _check(name: str, declared: Any) -> None:
    if isinstance(declared, (tuple, list)) and declared:
        for value in declared:
            _check(name, value)
        return
    arguments.instance("enable_dynamic", name, declared, Tensor, "a Tensor, or a tuple or list of such")
    sizes = declared.__dict__.get("_declared_shape", declared.shape)
    if sizes is not None and all(type(d) is int and d >= 0 for d in sizes):
        raise TypeError(f"enable_dynamic: the shape {tuple(sizes)} of {name} has no None, so nothing of it varies")


def enable_dynamic(**kwargs: Any) -> Callable[[Any], Any]:
    """Return a decorator of a compiled function, which declares that arguments vary in size, so
    that it is compiled once for all sizes.

    Arguments are declared by name, as tensors with None for sizes that vary or None as the whole
    shape. A call with an argument of another shape raises ValueError, and of another type
    TypeError. A function that is not compiled is returned as it is. Raises ValueError without
    arguments and for names that are no parameters of the function, and TypeError for what is no
    tensor, or a tensor all of whose sizes are given.

    >>> import mycel as ms
    >>> @ms.enable_dynamic(x=ms.Tensor(shape=[None, 2], dtype=ms.float32))
    ... @ms.jit
    ... def double(x):
    ...     return x * 2
    >>> double(ms.ops.ones((3, 2))).shape, double(ms.ops.ones((5, 2))).shape
    ((3, 2), (5, 2))
    """
    if not kwargs:
        raise ValueError("enable_dynamic: say of at least one argument how it varies")
    for name, declared in kwargs.items():
        _check(name, declared)

    def decorate(function: Any) -> Any:
        target = function.__wrapped__ if isinstance(function, Jit) else function
        known = _signature(target).parameters
        for name in kwargs:
            if name not in known:
                raise ValueError(f"enable_dynamic: the function has no argument {name!r}; it has {', '.join(known)}")
        return _Dynamic(function, dict(kwargs)) if isinstance(function, Jit) else function

    return decorate
