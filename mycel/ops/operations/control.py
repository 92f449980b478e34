"""Loops as objects, over functions of tensors or of any nested values.

They are computed by Python's statements, so in a compiled function a loop whose condition or bounds
are tensors becomes one `while_loop`, and one over Python's own numbers or sequences is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops.operations.primitive import Primitive, operations_of
from mycel.ops.python_values import followed

__all__: list[str] = []


def _need_functions(name: str, *functions: Any) -> None:
    """Raise TypeError unless all are functions."""
    for f in functions:
        arguments.function(name, "each function", f)


def _while(condition: Callable[..., Any], body: Callable[..., Any], value: Any) -> Any:
    while condition(value):
        value = body(value)
    return value


def _fori(lower: Any, upper: Any, body: Callable[..., Any], value: Any) -> Any:
    for i in range(lower, upper):
        value = body(i, value)
    return value


def _scan(body: Callable[..., Any], carry: Any, xs: Any) -> Any:
    ys = []
    for x in xs:
        carry, y = body(carry, x)
        ys.append(y)
    return carry, ys


def while_loop(cond_func: Any, loop_func: Any, init_val: Any) -> Any:
    """Return the result of the operation `WhileLoop`."""
    _need_functions("WhileLoop", cond_func, loop_func)
    return followed(_while, cond_func, loop_func, init_val)


def fori_loop(lower: Any, upper: Any, loop_func: Any, init_val: Any, unroll: bool = True) -> Any:
    """Return the result of the operation `ForiLoop`.

    `lower`, `upper`, `loop_func`, `init_val` and `unroll` are the arguments of its call.
    """
    _need_functions("ForiLoop", loop_func)
    for bound in (lower, upper):
        if isinstance(bound, (bool, float)) or isinstance(bound, Tensor) and not bound.dtype.is_integer:
            raise TypeError(f"ForiLoop: the bounds must be whole numbers, not {bound!r}")
    return followed(_fori, lower, upper, loop_func, init_val)


def scan(loop_func: Any, init: Any, xs: Any, length: Any = None, unroll: bool = True) -> Any:
    """Return the result of the operation `Scan`.

    `loop_func`, `init`, `xs`, `length` and `unroll` are the arguments of its call.
    """
    _need_functions("Scan", loop_func)
    if xs is None:
        arguments.integer("Scan", "without xs the length", length, numpy=False)
        xs = (None,) * length
    elif not isinstance(xs, (tuple, list)):
        raise TypeError(
            f"Scan: xs must be a tuple, a list or None, not a {type(xs).__name__}; list(x) gives the rows of a tensor"
        )
    elif length is not None and length != len(xs):
        raise ValueError(f"Scan: xs has {len(xs)} members, not {length}; leave the length out")
    return followed(_scan, loop_func, init, tuple(xs))


class WhileLoop(Primitive, compute=while_loop, inputs=(object, object, object, object, object)):
    """A while-loop: ``WhileLoop()(cond_func, loop_func, init_val)`` replaces a value by
    ``loop_func(value)`` as long as ``cond_func(value)`` holds.

    Raises TypeError for functions that cannot be called.

    >>> import mycel as ms
    >>> double = ms.jit(lambda x: ms.ops.WhileLoop()(lambda v: v < 100, lambda v: v * 2, x))
    >>> float(double(ms.Tensor(3.0)))
    192.0
    """


class ForiLoop(Primitive, compute=fori_loop, inputs=(object, object, object, object, object)):
    """A loop over whole numbers: ``ForiLoop()(lower, upper, loop_func, init_val)`` computes ``value
    = loop_func(i, value)`` for i from `lower` to below `upper`.

    Bounds are whole numbers or integer tensors. `unroll` has no effect: loops over tensors are
    never unrolled, and others are as far as it pays. Raises TypeError for other bounds and for a
    function that cannot be called.

    >>> import mycel as ms
    >>> float(ms.ops.ForiLoop()(0, 4, lambda i, v: v + i, ms.Tensor(1.0)))
    7.0
    """


class Scan(Primitive, compute=scan, inputs=(object, object, object, object, object)):
    """A loop that carries a value and collects results: ``Scan()(loop_func, init, xs)`` computes
    ``carry, y = loop_func(carry, x)`` for the members of a tuple or list, and returns the last
    carry and the list of the y.

    If `xs` is None, x is None `length` times. `unroll` has no effect. Raises TypeError for another
    `xs` and for a function that cannot be called, ValueError for a `length` that is not that of
    `xs`.

    >>> import mycel as ms
    >>> ms.ops.Scan()(lambda c, x: (c + x, c * x), 1, [1, 2])
    (4, [1, 4])
    """


__all__.extend(operations_of(globals()))
