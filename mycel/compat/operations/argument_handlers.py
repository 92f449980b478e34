"""MindSpore's handlers of arguments of generated operations: pairs of sizes, conversions between
numbers, tuples, lists and tensors.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.numpy_utils import to_tensor

__all__ = ["NAMES"]

_SCALARS = {1: bool, 2: int, 3: float, 4: (int, float)}


def _invalid(op_name: str, arg_name: str, arg_val: Any) -> str:
    return f"For '{op_name}', the value of '{arg_name}' is invalid: '{arg_val}'."


def _pair(op_name: str, arg_name: str, arg_val: Any) -> Any:
    """Return two of a number, or several numbers as they are."""
    if isinstance(arg_val, (int, float)):
        return arg_val, arg_val
    if isinstance(arg_val, (list, tuple)):
        return arg_val
    raise ValueError(_invalid(op_name, arg_name, arg_val))


def _last_two(op_name: str, arg_name: str, value: Any) -> Any:
    """Return two of a number, and of four numbers the last two."""
    found = _pair(op_name, arg_name, value)
    return (found[2], found[3]) if len(found) == 4 else found


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, Tensor) else x


def _numbers(op_name: str, arg_name: str, data: Any, to_tuple: bool = True) -> Any:
    if isinstance(data, (tuple, list)):
        found = [_number(v) for v in data]
        return tuple(found) if isinstance(data, tuple) else found
    return data


def _generator_handler(op_name: str, arg_name: str, inputs: Any) -> Any:
    return tuple(inputs)


def _is_instance_of(data: Any, type_id: int) -> bool:
    """Return whether data is of a type that a number stands for: 1 to 5, 8 to 21 or 22."""
    if type_id == 5:
        return isinstance(data, Tensor)
    if type_id in _SCALARS:
        kinds: Any = _SCALARS[type_id]
        return isinstance(data, kinds) and (type_id == 1 or not isinstance(data, bool))
    return isinstance(data, tuple if type_id < 15 else list) and type_id != 22


def _cast(data: Any, dst_type: int) -> Any:
    """Return data as the type that a number stands for."""
    if _is_instance_of(data, dst_type):
        return data
    if dst_type == 3:
        return float(_number(data))
    if dst_type in (2, 4):
        return _number(data)
    if dst_type == 5:
        return to_tensor(data)
    if 8 <= dst_type <= 14:
        return tuple(data.tolist()) if isinstance(data, Tensor) else tuple(data) if isinstance(data, list) else (data,)
    if 15 <= dst_type <= 21:
        return list(data.tolist() if isinstance(data, Tensor) else data)
    raise TypeError(f"{type(data).__name__} has no conversion to the type number {dst_type}")


def _type_it(op_name: str, arg_name: str, data: Any, src_type: Any, dst_type: int) -> Any:
    """Return an argument as a type, which a number stands for, if it is of a type that is allowed.

    `op_name` and `arg_name` are named in the error, `src_type` is a number or several.
    """
    allowed = src_type if isinstance(src_type, (tuple, list)) else (src_type,)
    if not any(_is_instance_of(data, kind) for kind in (*allowed, dst_type)):
        raise TypeError(f"For '{op_name}', the type of '{arg_name}' is not allowed: {type(data).__name__}.")
    return _cast(data, dst_type)


NAMES: dict[str, Any] = {
    "_normalize_int_sequence": _numbers,
    "_scalar_tensor_to_float": lambda op_name, arg_name, x: _number(x),
    "_scalar_tensor_to_int": lambda op_name, arg_name, x: _number(x),
    "_scalar_tensor_to_scalar": lambda op_name, arg_name, x: _number(x),
    "arg_invalid_info": _invalid,
    "do_type_cast": lambda data, dst_type, op_name: _cast(data, dst_type),
    "generator_handler": _generator_handler,
    "int_to_float": float,
    "is_floating_point_mstype": lambda dtype: dtype in (D.float16, D.float32, D.float64, D.bfloat16),
    "is_instance_in": lambda data, type_id: any(_is_instance_of(data, kind) for kind in type_id),
    "is_instance_of": _is_instance_of,
    "is_integral_mstype": lambda dtype: str(dtype).lower().startswith(("int", "uint", "bool")),
    "is_list": lambda type_id: type_id in range(15, 22),
    "is_number": lambda type_id: type_id in range(1, 5),
    "is_tuple": lambda type_id: type_id in range(8, 15),
    "list_to_tensor": to_tensor,
    "normalize_int_sequence": _numbers,
    "normalize_int_tensor": lambda op_name, arg_name, data: data.astype(D.int64),
    "scalar_to_tensor": to_tensor,
    "scalar_to_tuple": lambda data: (data,),
    "tensor_to_number": lambda data, dst_type, op_name: _number(data),
    "tensor_to_tuple": lambda data: tuple(data.tolist()),
    "to_2d_paddings": _pair,
    "to_dilations": _last_two,
    "to_kernel_size": _last_two,
    "to_output_padding": _last_two,
    "to_pair": _pair,
    "to_rates": _last_two,
    "to_strides": _last_two,
    "tuple_to_tensor": to_tensor,
    "type_it": _type_it,
}
