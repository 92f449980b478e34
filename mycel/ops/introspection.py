"""Operations by which a program inspects or directs itself: types, constants, branches by a
condition or an index, derivatives as objects.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims.base import broadcast_shapes
from mycel._src.foundation import arguments, object_types
from mycel._src.foundation.dtype import DType, Type, float32
from mycel._src.foundation.pytree import flatten
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor
from mycel.ops import properties
from mycel.ops._operands import sizes_of
from mycel.ops.python_values import followed

__all__ = [
    "J",
    "SliceGetItem",
    "add_flags",
    "array_to_scalar",
    "broadcast_gradient_args",
    "hastype",
    "is_sequence_shape_unknown",
    "is_sequence_value_unknown",
    "is_tensor_bool_cond",
    "isconstant",
    "scalar_to_array",
    "shape_",
    "switch",
    "switch_layer",
    "typeof",
]


def _exactly(name: str, args: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    if len(args) != count:
        raise TypeError(f"{name}: takes {count} argument{'s' * (count != 1)}, not {len(args)}")
    return args


# Types and constants.


def typeof(*args: Any) -> Type:
    """Return the type of a value: an element type for a number (float32 for Python's floats), a
    `TensorType` for a tensor, `list_` for a list and so on.

    Raises TypeError where the value has none.

    >>> import mycel as ms
    >>> ms.ops.typeof(1), ms.ops.typeof((1, 2)), ms.ops.typeof(ms.Tensor([1.0]))
    (mindspore.int64, mindspore.tuple_, mindspore.tensor[float32])
    """
    (value,) = _exactly("typeof", args, 1)
    if isinstance(value, Tensor):
        return object_types.TensorType(value.dtype)
    if isinstance(value, Dim):
        value = 0
    if type(value) is float:
        return float32
    found = object_types.object_of(value)
    if found is None:
        raise TypeError(f"typeof: a {type(value).__name__} has no type that programs know")
    return found


def hastype(*args: Any) -> bool:
    """Return whether a value is of a type, or of a type that it includes.

    `number` includes all numbers, ``TensorType()`` all tensors and ``Int()`` all signed integers.
    Raises TypeError unless the second argument is a type.

    >>> import mycel as ms
    >>> ms.ops.hastype((1, 2), ms.tuple_), ms.ops.hastype(1, ms.float32)
    (True, False)
    """
    value, kind = _exactly("hastype", args, 2)
    arguments.instance("hastype", "the second argument", kind, Type, "a type such as mycel.int64 or mycel.list_")
    own = typeof(value)
    if own == kind:
        return True
    if isinstance(kind, DType):
        return False
    if isinstance(kind, object_types.TensorType):
        return kind.element_type() is None and isinstance(own, object_types.TensorType)
    return isinstance(kind, (object_types.Number, object_types.Int)) and isinstance(own, type(kind))


def _is_known(value: Any) -> bool:
    staging = eager.local.staging if eager.active else None
    if isinstance(value, Dim):
        return False
    return not isinstance(value, Tensor) or staging is None or bool(staging.node_of(value).is_constant)


def isconstant(x: Any) -> bool:
    """Return whether a value is known when a function is compiled.

    In eager mode every value is known; in compiled functions every value except computed tensors
    and symbolic sizes.

    >>> import mycel as ms
    >>> ms.ops.isconstant(ms.Tensor(1.0)), ms.jit(lambda x: ms.ops.isconstant(x))(ms.Tensor(1.0))
    (True, False)
    """
    return all([_is_known(v) for v in flatten(x)[0]])


def is_sequence_value_unknown(*args: Any) -> bool:
    """Return whether a sequence of numbers, such as a shape, has a member that is not known when a
    function is compiled: a symbolic size, or a tensor.

    >>> import mycel as ms
    >>> ms.ops.is_sequence_value_unknown((2, 3))
    False
    """
    (x,) = _exactly("is_sequence_value_unknown", args, 1)
    arguments.sequence("is_sequence_value_unknown", "the argument", x)
    return not isconstant(x)


def is_sequence_shape_unknown(*args: Any) -> bool:
    """Return False: the length of a sequence is always known when a function is compiled.

    >>> import mycel as ms
    >>> ms.ops.is_sequence_shape_unknown((2, 3))
    False
    """
    (x,) = _exactly("is_sequence_shape_unknown", args, 1)
    arguments.sequence("is_sequence_shape_unknown", "the argument", x)
    return False


def is_tensor_bool_cond(*args: Any) -> bool:
    """Return True for a tensor that can be a condition, because it has one element.

    Raises TypeError unless the argument is a tensor, and ValueError unless its shape is () or (1,).

    >>> import mycel as ms
    >>> ms.ops.is_tensor_bool_cond(ms.Tensor([True]))
    True
    """
    (x,) = _exactly("is_tensor_bool_cond", args, 1)
    arguments.instance("is_tensor_bool_cond", "the argument", x, Tensor)
    if x.shape not in ((), (1,)):
        raise ValueError(f"is_tensor_bool_cond: a condition has shape () or (1,), not {x.shape}")
    return True


# Shapes and numbers.


def shape_(x: Tensor) -> tuple[Any, ...]:
    """Return the shape of a tensor, as `shape`.

    >>> import mycel as ms
    >>> ms.ops.shape_(ms.Tensor([[1.0, 2.0]]))
    (1, 2)
    """
    return properties.shape(x)


def broadcast_gradient_args(*args: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return, for each of two shapes that broadcast, the axes of the result over which its gradient
    is summed.

    They are the axes on which that shape has size 1 or lacks the axis. Equal shapes have none.
    Raises ShapeError where the shapes do not broadcast.

    >>> import mycel as ms
    >>> ms.ops.broadcast_gradient_args((4, 1, 3), (2, 1))
    ((1,), (0, 2))
    """
    x, y = (sizes_of("broadcast_gradient_args", "a shape", s) for s in _exactly("broadcast_gradient_args", args, 2))
    if x == y:
        return (), ()
    rank = max(len(x), len(y))
    wide = [(1,) * (rank - len(s)) + s for s in (x, y)]
    broadcast_shapes(x, y, name="broadcast_gradient_args")
    first, second = (tuple([i for i, n in enumerate(s) if n == 1]) for s in wide)
    return first, second


def scalar_to_array(input_x: Any) -> Tensor:
    """Return a number as a tensor without dimensions: int64, float32, or bool.

    Raises TypeError unless the argument is a bool, int or float.

    >>> import mycel as ms
    >>> ms.ops.scalar_to_array(2.0)
    Tensor(shape=[], dtype=Float32, value= 2)
    """
    arguments.instance("scalar_to_array", "input_x", input_x, (bool, int, float), "a bool, int or float")
    return Tensor(input_x)


def array_to_scalar(*args: Any) -> Any:
    """Return the number that a tensor of one element holds.

    A compiled function goes back to Python for it. Raises TypeError unless the argument is a
    tensor.

    >>> import mycel as ms
    >>> ms.ops.array_to_scalar(ms.Tensor(2.0))
    2.0
    """
    (x,) = _exactly("array_to_scalar", args, 1)
    arguments.instance("array_to_scalar", "the argument", x, Tensor)
    return x.item()


def SliceGetItem(*args: Any) -> Any:
    """Return the "start", "stop" or "step" of a slice.

    Raises AttributeError for other names, and TypeError unless the first argument is a slice.

    >>> import mycel as ms
    >>> ms.ops.SliceGetItem(slice(1, 5, 2), "stop")
    5
    """
    x, name = _exactly("SliceGetItem", args, 2)
    arguments.instance("SliceGetItem", "the first argument", x, slice)
    if name not in ("start", "stop", "step"):
        raise AttributeError(f"SliceGetItem: a slice has start, stop and step, and no {name!r}")
    return getattr(x, name)


# Choosing.


def _switch(condition: Any, true: Any, false: Any) -> Any:
    return true if condition else false


def switch(*args: Any) -> Any:
    """Return the second argument where the first is true, else the third.

    In a compiled function the first argument may be a tensor; the others are then tensors of one
    shape, or functions.

    >>> import mycel as ms
    >>> ms.jit(lambda c, x: ms.ops.switch(c, x, -x))(ms.Tensor(False), ms.Tensor(2.0))
    Tensor(shape=[], dtype=Float32, value= -2)
    """
    return followed(_switch, *_exactly("switch", args, 3))


def _call_chosen(index: Any, layers: Any, args: Any) -> Any:
    if isinstance(index, int) and not -len(layers) <= index < len(layers):
        raise IndexError(f"switch_layer: the index {index} is not in [{-len(layers)}, {len(layers)})")
    for i in range(len(layers) - 1):
        if index == i or index == i - len(layers):
            return layers[i](*args)
    return layers[-1](*args)


class _Chosen:
    """One of several functions, chosen by an index that is read when it is called."""

    def __init__(self, index: Any, layers: tuple[Any, ...]) -> None:
        self.index, self.layers = index, layers

    def __call__(self, *args: Any) -> Any:
        return followed(_call_chosen, self.index, self.layers, args)


def switch_layer(*args: Any) -> Callable[..., Any]:
    """Return the function or Cell at an index of a sequence; the index lies in [-n, n) for n of
    them.

    In a compiled function the index may be a tensor, and all functions must return results of the
    same structure, shapes and types. Raises TypeError where a member cannot be called, ValueError
    where there is none, and outside of compiled functions IndexError for an index out of range.

    >>> import mycel as ms
    >>> layers = (ms.nn.ReLU(), ms.nn.Tanh())
    >>> ms.jit(lambda i, x: ms.ops.switch_layer(i, layers)(x))(ms.Tensor(0), ms.Tensor(-2.0))
    Tensor(shape=[], dtype=Float32, value= 0)
    """
    index, layers = _exactly("switch_layer", args, 2)
    if len(layers) == 0 or not all([callable(f) for f in layers]):
        raise (TypeError if len(layers) else ValueError)(
            "switch_layer: takes a tuple of functions or Cells, at least one"
        )
    if isinstance(index, Tensor) and not (eager.active and eager.local.staging is not None):
        index = int(index)
    return _Chosen(index, tuple(layers))


# Functions.


def J(*args: Any) -> Callable[..., Any]:
    """Return the function that computes a function's value together with its vector-Jacobian
    product, as `mycel.vjp` does for one call.

    B. A. Pearlmutter and J. M. Siskind, Reverse-mode AD in a functional framework (2008). Raises
    TypeError where the argument cannot be called.

    >>> import mycel as ms
    >>> value, back = ms.ops.J(lambda x: x * x)(ms.Tensor(3.0))
    >>> float(value), float(back(ms.Tensor(1.0))[0])
    (9.0, 6.0)
    """
    (function,) = _exactly("J", args, 1)
    arguments.function("J", "the argument", function)
    return functools.partial(vjp, function)


def add_flags(fn: Callable[..., Any] | None = None, **flags: Any) -> Any:
    """Attach named values to a function or Cell, and return it.

    Without `fn` it returns a decorator. The values do not change the results of the function.

    >>> import mycel as ms
    >>> ms.ops.add_flags(ms.nn.ReLU(), has_effect=True).get_flags()["has_effect"]
    True
    """
    if fn is None:
        return functools.partial(add_flags, **flags)
    if isinstance(fn, Cell):
        return fn.add_flags(**flags)
    arguments.function("add_flags", "fn", fn, "a function or a Cell")
    if not hasattr(fn, "__dict__"):
        raise TypeError(f"add_flags: takes a function or a Cell, which can hold them, not a {type(fn).__name__}")
    setattr(fn, "_func_graph_flags", {**getattr(fn, "_func_graph_flags", {}), **flags})  # noqa: B010
    return fn
