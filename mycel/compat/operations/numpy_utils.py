"""The helpers of MindSpore's `numpy`: checks of axes and shapes, conversions, element types."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["NAMES"]


def raising(error: type[Exception]) -> Callable[..., NoReturn]:
    """Return a function that raises an error of a text and of what follows it."""

    def fail(info: Any, param: Any = None) -> NoReturn:
        raise error(f"{info}{param if param is not None else ''}")

    return fail


def _type_error(info: Any, param: Any = None) -> NoReturn:
    raise TypeError(info if param is None else f"{info}{type(param)}")


def _axis_in_range(axis: int, ndim: int) -> int:
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def _axes_in_range(axes: Any, ndim: int) -> Any:
    return (
        tuple(_axis_in_range(a, ndim) for a in axes) if isinstance(axes, (tuple, list)) else _axis_in_range(axes, ndim)
    )


def _canonical(axis: Any, ndim: int) -> Any:
    found = _axes_in_range(axis, ndim)
    if isinstance(found, tuple) and len(set(found)) != len(found):
        raise ValueError(f"duplicate axes in {axis}")
    return found


def _axes(axes: Any, ndim: int) -> tuple[int, ...]:
    if axes is None:
        return tuple(range(ndim))
    found = _canonical(axes, ndim)
    return found if isinstance(found, tuple) else (found,)


def _axis_type(axis: Any, type_int: bool = True, type_tuple: bool = True, type_list: bool = True) -> bool:
    kinds = [k for k, wanted in ((int, type_int), (tuple, type_tuple), (list, type_list)) if wanted]
    if not isinstance(axis, tuple(kinds)):
        raise TypeError(f"the axis should be {', '.join(k.__name__ for k in kinds)}, but got {type(axis)}")
    return True


_NAMES: dict[str, DType] = {
    "int": D.int32,
    "uint": D.uint32,
    "float": D.float32,
    "bool": D.bool_,
    **{n: getattr(D, n) for n in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")},
    **{n: getattr(D, n) for n in ("float16", "float32", "float64")},
}
_TABLE_ORDER = "int int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 float float16 float32 float64 bool"
_DTYPES = {name: _NAMES[name] for name in _TABLE_ORDER.split()}


def _dtype(dtype: Any) -> DType:
    if isinstance(dtype, DType):
        return dtype
    name = dtype.lower() if isinstance(dtype, str) else getattr(dtype, "__name__", "")
    if name not in _NAMES:
        raise TypeError(f"unsupported element type {dtype!r}")
    return _NAMES[name]


def _element_int(values: Sequence[Any]) -> bool:
    for value in values:
        if not isinstance(value, int):
            raise TypeError(f"Each element in {values} should be integer, but got {type(value)}.")
    return True


def _shape(shape: Any) -> tuple[int, ...]:
    if not isinstance(shape, (int, tuple, list)):
        raise TypeError(f"only int, tuple and list are allowed for shape, but got {type(shape)}")
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _aligned(shape1: Sequence[int], shape2: Sequence[int]) -> None:
    if shape1[-1] != shape2[-1]:
        raise ValueError(f"shapes {shape1} {shape2} not aligned: {shape1[-1]} (dim 0) != {shape2[-1]} (dim 0)")


def _start(start: int, ndim: int) -> int:
    if not -ndim <= start <= ndim:
        raise ValueError(f"For rollaxis, start {start} is out of bounds. Ranging from {-ndim} to {ndim} is allowed.")
    return start + ndim if start < 0 else start


def _broadcast_tuples(tup1: Any, tup2: Any) -> Any:
    first, second = ((v,) if isinstance(v, int) else tuple(v) for v in (tup1, tup2))
    if len(first) != len(second):
        if len(first) != 1 and len(second) != 1:
            raise ValueError("shape mismatch: objects cannot be broadcast to a single shape")
        longest = max(len(first), len(second))
        first, second = (v * longest if len(v) == 1 else v for v in (first, second))
    return first, second


def _can_broadcast(*shapes: Any) -> bool:
    try:
        np.broadcast_shapes(*shapes)
    except ValueError:
        return False
    return True


def _infer_out_shape(*shapes: Any) -> tuple[int, ...]:
    return tuple(np.broadcast_shapes(*shapes))


def _numbers(dtype: Any, num: int, increasing: bool = True) -> Tensor:
    found = ops.arange(num)
    return (found if increasing else num - 1 - found).astype(dtype)


def _comprehended(obj: Any, item: Any = None, return_tuple: bool = False, make_none: bool = False) -> Any:
    """Return a list or tuple of numbers, of the elements, or of one item as often."""
    elements = range(obj) if isinstance(obj, int) else obj
    found = [None if make_none else item if item is not None else v for v in elements]
    return tuple(found) if return_tuple else found


_FLOATS = (D.float16, D.float32, D.float64)
_ORDER = (
    *(D.bool_, D.uint8, D.uint16, D.uint32, D.uint64, D.int8, D.int16, D.int32, D.int64),
    *_FLOATS,
)


def _promoted(dtype1: DType, dtype2: DType) -> DType:
    """Return the type of a result: the wider float, or what NumPy has for integers."""
    floats = [d for d in (dtype1, dtype2) if d in _FLOATS]
    if floats:
        return max(floats, key=_FLOATS.index)
    if dtype1 == dtype2:
        return dtype1
    names = ["bool" if d == D.bool_ else str(d).lower() for d in (dtype1, dtype2)]
    return _NAMES[str(np.result_type(*names))]


def _trigonometric(dtype: DType) -> DType:
    if dtype in (D.float16, D.float32, D.float64):
        return dtype
    return D.float16 if dtype in (D.int8, D.uint8, D.bool_) else D.float32


def _unit_axes(shape: Sequence[int], ndim: int, append: bool = False) -> tuple[int, ...]:
    ones = (1,) * (ndim - len(shape))
    return tuple(shape) + ones if append else ones + tuple(shape)


def _broadcast_to(x: Any, shape_cur: Sequence[int], shape_to: Sequence[int], ndim_to: int) -> Any:
    sizes = _tiles(shape_cur, shape_to, ndim_to)
    return ops.tile(x, sizes)


def _tiles(shape: Sequence[int], out_shape: Sequence[int], ndim: int) -> tuple[int, ...]:
    own = [1] * (ndim - len(shape)) + list(shape)
    return tuple(b if a != b else 1 for a, b in zip(own, out_shape))


def _input_for_array(array_like: Any) -> None:
    if not isinstance(array_like, (int, float, bool, Tensor, list, tuple, np.ndarray)):
        raise TypeError(
            f"input data must be `int`, `float`, `bool`, `Tensor`, `list`, `tuple`, but got {type(array_like)}"
        )


def _input_tensors(*tensors: Any) -> bool:
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expect Tensor, but got {type(tensor)}")
    return True


def _narrowed(tensor: Any) -> Any:
    """Return a tensor of 64 bits in 32."""
    return tensor.astype({D.float64: D.float32, D.int64: D.int32}.get(tensor.dtype, tensor.dtype))


def _counted(tensor: Any) -> Any:
    return tensor.astype(D.int32) if tensor.dtype == D.bool_ else tensor


def _lists(array_like: Any) -> Any:
    return [_lists(v) for v in array_like] if isinstance(array_like, (list, tuple)) else array_like


def _arrays(array_like: Any) -> Any:
    if isinstance(array_like, Tensor):
        return array_like.asnumpy()
    return [_arrays(v) for v in array_like] if isinstance(array_like, (list, tuple)) else array_like


def _expanded(x: Any, ndim: int, axis: int = 0) -> Any:
    while x.ndim < ndim:
        x = ops.expand_dims(x, axis)
    return x


def _scalar_dtype(*input_numbers: Any) -> DType:
    if all(isinstance(v, bool) for v in input_numbers):
        return D.bool_
    return D.float32 if any(isinstance(v, float) for v in input_numbers) else D.int32


def _size(x: Any, axis: Any = None) -> int:
    return reduce(operator.mul, (x.shape[a] for a in _axes(axis, x.ndim)), 1)


def _along(f: Any, axis: int, slice_start: int, slice_end: int) -> Any:
    return f[tuple(slice(slice_start, slice_end) if i == axis % f.ndim else slice(None) for i in range(f.ndim))]


def _tensor(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value
    found = Tensor(value)
    return _narrowed(found)


def to_tensor(*args: Any) -> Any:
    """Return a tensor of one operand, or a tuple of tensors, numbers as int32 and float32."""
    found = tuple(_tensor(v) for v in args)
    return found[0] if len(found) == 1 else found


def _to_tensor_as_is(*args: Any) -> Any:
    found = [v if isinstance(v, Tensor) else Tensor(v) for v in args]
    return found[0] if len(found) == 1 else found


def _replaced(tup: Any, idx: int, value: Any) -> Any:
    parts = list(tup)
    parts[idx] = value
    return tuple(parts)


def _size_1d(in_shape: Sequence[int]) -> tuple[int]:
    return (reduce(operator.mul, in_shape, 1),)


def _broadcast_shape(
    x_shape: Sequence[int], y_shape: Sequence[int], prim_name: str, arg_name1: str = "x", arg_name2: str = "y"
) -> list[int]:
    try:
        return list(np.broadcast_shapes(tuple(x_shape), tuple(y_shape)))
    except ValueError:
        raise ValueError(
            f"For '{prim_name}', {arg_name1}.shape and {arg_name2}.shape need to broadcast, but got {x_shape} and "
            f"{y_shape}"
        ) from None


_NUMPY_NAMES = "int_ int8 int16 int32 int64 uint uint8 uint16 uint32 uint64 float64 float16 float32 float64 bool_"
NAMES: dict[str, Any] = {
    "_abs": abs,
    "_add_unit_axes": _unit_axes,
    "_broadcast_to": _broadcast_to,
    "_broadcast_to_shape": lambda x, shape: ops.broadcast_to(x, tuple(shape)),
    "_broadcast_tuples": _broadcast_tuples,
    "_callable": lambda tensor, obj: callable(obj),
    "_callable_const": callable,
    "_can_broadcast": _can_broadcast,
    "_canonicalize_axis": _canonical,
    "_ceil": math.ceil,
    "_check_axes_range": _axes_in_range,
    "_check_axis_in_range": _axis_in_range,
    "_check_axis_type": _axis_type,
    "_check_axis_valid": _axes,
    "_check_dtype": _dtype,
    "_check_element_int": _element_int,
    "_check_input_for_asarray": _input_for_array,
    "_check_input_tensor": _input_tensors,
    "_check_is_float": lambda dtype: dtype in (D.float16, D.float32, D.float64),
    "_check_is_inf": lambda x, negative=False: x == (-math.inf if negative else math.inf),
    "_check_is_int": lambda dtype: str(dtype).lower().startswith("int"),
    "_check_same_type": operator.eq,
    "_check_shape": _shape,
    "_check_shape_aligned": _aligned,
    "_check_start_normalize": _start,
    "_convert_64_to_32": _narrowed,
    "_convert_bool_to_int": _counted,
    "_convert_list_tensor_to_tuple_tensor": lambda tensors: tuple(tensors) if isinstance(tensors, list) else tensors,
    "_cumprod": lambda x: tuple(accumulate(x, operator.mul)),
    "_deep_list": _lists,
    "_deep_tensor_to_nparray": _arrays,
    "_empty": lambda dtype, shape: ops.zeros(tuple(shape), dtype),
    "_expand": _expanded,
    "_expanded_shape": lambda ndim, size, axis: tuple(size if i == axis % ndim else 1 for i in range(ndim)),
    "_get_device": lambda: "CPU",
    "_get_dtype_from_scalar": _scalar_dtype,
    "_get_size": _size,
    "_in": lambda x, y: x in y,
    "_infer_out_shape": _infer_out_shape,
    "_iota": _numbers,
    "_is_scalar": lambda shape: tuple(shape) in ((), (1,)),
    "_is_shape_empty": lambda shape: any(size == 0 for size in shape),
    "_isnan": lambda x: ops.isnan(x),
    "_isscalar": lambda x: isinstance(x, (bool, int, float, complex, str, bytes, np.generic)),
    "_list_comprehensions": _comprehended,
    "_make_tensor": lambda value, dtype: Tensor(value, dtype=dtype),
    "_max": max,
    "_min": min,
    "_promote": _promoted,
    "_promote_for_trigonometric": _trigonometric,
    "_raise_runtime_error": raising(RuntimeError),
    "_raise_type_error": _type_error,
    "_raise_unimplemented_error": raising(NotImplementedError),
    "_raise_value_error": raising(ValueError),
    "_seq_prod": lambda seq1, seq2: tuple(a * b for a, b in zip(seq1, seq2)),
    "_slice_along_axis": _along,
    "_tile_size": _tiles,
    "_to_tensor": to_tensor,
    "_to_tensor_origin_dtype": _to_tensor_as_is,
    "_tuple_setitem": _replaced,
    "_tuple_slice": lambda tup, start, end: tup[start:end],
    "_type_convert": lambda force, obj: force(obj),
    "all_types": [f"np.{name}" for name in _NUMPY_NAMES.split()],
    "dim_not_equal": lambda dim1, dim2: dim1 != dim2 and dim1 >= 0 and dim2 >= 0,
    "dtype_map": _DTYPES,
    "dtype_tuple": tuple(_DTYPES.values()),
    "get_1d_shape": _size_1d,
    "get_broadcast_shape": _broadcast_shape,
    "ms_arrange": lambda x: list(range(x)),
    "promotion_rule": {(a, b): _promoted(a, b) for i, a in enumerate(_ORDER) for b in _ORDER[i + 1 :]},
    "range_op": lambda start, limit, delta, dtype: ops.arange(start, limit, delta).astype(dtype),
    "rule_for_trigonometric": {dtype: _trigonometric(dtype) for dtype in dict.fromkeys(_DTYPES.values())},
}
