"""MindSpore's marks on functions and classes for its graph compiler.

Mycel interprets all of Python: functions of constants are computed while a function is compiled,
classes need no mark, and the compiler itself decides which functions a graph calls or contains. So
the marks are checked and kept, but none of them changes what a program computes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager

__all__ = ["constexpr", "jit_class", "lazy_inline", "no_inline"]


class _Marked:
    """A function as an operator object, which compiled functions can call."""

    function: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        context = eager.local.context if eager.active else None
        if context is not None and context.is_staging:
            return context.invoke(type(self).function, args, kwargs)
        return type(self).function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _operator(what: str, function: Any, get_instance: bool, name: str | None) -> Any:
    arguments.function(what, "fn", function)
    title = str(name or getattr(function, "__name__", type(function).__name__))
    members = {"function": staticmethod(function), "__doc__": function.__doc__, "__module__": __name__}
    kind = type(title, (_Marked,), members)
    return kind() if get_instance else kind


def constexpr(
    fn: Callable[..., Any] | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
    check: bool = True,
) -> Any:
    """Mark a function of constants, which a compiled function computes while it is compiled.

    Args:
        fn (Callable[..., Any] | None): The function; None to get a decorator. Default: None.
        get_instance (bool): Whether the result is an operator object, instead of a class of such
            objects. Default: True.
        name (str | None): The name of that class. Default: None.
        reuse_result (bool): Has no effect: values that the function reads are guarded, and it also
            works with tensors. Default: True.
        check (bool): Has no effect: values that the function reads are guarded, and it also works
            with tensors. Default: True.

    Returns:
        Any: The operator object, the class, or the decorator.

    Raises:
        TypeError: Unless `fn` can be called.

    Examples:
        >>> import mycel as ms
        >>> @ms.constexpr
        ... def half(shape):
        ...     return tuple(n // 2 for n in shape)
        >>> ms.jit(lambda x: x.reshape(half(x.shape) + (4,)))(ms.ops.zeros((2, 2))).shape
        (1, 1, 4)
    """
    if fn is None:
        return lambda function: _operator("constexpr", function, get_instance, name)
    return _operator("constexpr", fn, get_instance, name)


def _primexpr(
    fn: Callable[..., Any] | None = None,
    get_instance: bool = True,
    name: str | None = None,
    reuse_result: bool = True,
) -> Any:
    """Mark a function `fn` of shapes and numbers, which may be constant or variable.

    `get_instance`, `name` and `reuse_result` are those of `constexpr`.
    """
    if fn is None:
        return lambda function: _operator("_primexpr", function, get_instance, name)
    return _operator("_primexpr", fn, get_instance, name)


def jit_class(cls: type) -> type:
    """Mark a class whose objects compiled functions may make and use, and return it with
    `__ms_class__` set.

    It has no other effect: compiled functions follow every class. Raises TypeError for anything but
    a class, and for Cells.

    >>> import mycel as ms
    >>> @ms.jit_class
    ... class Scale:
    ...     def __init__(self, k):
    ...         self.k = k
    ...     def __call__(self, x):
    ...         return x * self.k
    >>> float(ms.jit(lambda x: Scale(3)(x))(ms.Tensor(2.0)))
    6.0
    """
    if not inspect.isclass(cls):
        raise TypeError(f"jit_class: takes a class, not {type(cls).__name__} ({cls!r})")
    if issubclass(cls, Cell):
        raise TypeError(f"jit_class: {cls.__name__} is a Cell, which needs no mark")
    setattr(cls, "__ms_class__", True)  # noqa: B010
    return cls


def lazy_inline(fn: Callable[..., Any] | None = None, attrs: Any = None, policy: Any = None) -> Any:
    """Mark the `__init__` of a Cell that occurs many times in a network, and return it.

    It has no effect: how often a Cell's operations appear in a graph is the compiler's choice.
    Raises TypeError unless `fn` can be called.

    >>> import mycel as ms
    >>> class Block(ms.nn.Cell):
    ...     @ms.lazy_inline
    ...     def __init__(self):
    ...         super().__init__()
    """
    return _keep("lazy_inline", fn, None)


def no_inline(fn: Callable[..., Any] | None = None) -> Any:
    """Mark a function that should stay a call in the graph, and return it with `no_inline` set.

    It has no other effect: the compiler decides which functions become calls. Raises TypeError
    unless `fn` can be called.

    >>> import mycel as ms
    >>> @ms.no_inline
    ... def double(x):
    ...     return x + x
    >>> float(ms.jit(lambda x: double(x))(ms.Tensor(2.0)))
    4.0
    """
    return _keep("no_inline", fn, "no_inline")


def _keep(what: str, fn: Any, mark: str | None) -> Any:
    def keep(function: Any) -> Any:
        arguments.function(what, "fn", function)
        logger.info("%s has no effect on %s: the compiler decides what becomes a call", what, _title(function))
        if mark is not None:
            setattr(getattr(function, "__func__", function), mark, True)
        return function

    return keep if fn is None else keep(fn)


def _title(function: Any) -> str:
    return getattr(function, "__qualname__", type(function).__name__)
