"""`mindspore._checkparam`: checks of axes, shapes and arguments of particular operations.

The general ones are in `mycel.compat.checkparam`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np

from mycel._src.foundation import dtype as D
from mycel.compat import checkparam as C

__all__: list[str] = []

Axes = int | Sequence[int]
_FILE_NAMES = r"^[0-9a-zA-Z@\_\-\.\:\/\\]+$"
_INDEX_TYPES = (D.int16, D.int32, D.int64)


def _expand_tuple(n_dimensions: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives an int as a tuple of `n_dimensions`, and checks a tuple."""

    def expand(m: Any) -> tuple[Any, ...]:
        if isinstance(m, tuple):
            if len(m) != n_dimensions or not all(isinstance(v, int) for v in m):
                raise TypeError(f"a tuple of {n_dimensions} integers is expected, not {m}")
            return m
        if isinstance(m, bool) or not isinstance(m, int):
            raise TypeError(f"an integer or a tuple of {n_dimensions} is expected, not {type(m).__name__}")
        return (m,) * n_dimensions

    return expand


def _expand_sequence_to_tuple(n_dimensions: int) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that gives an int or a sequence as a tuple of `n_dimensions`."""
    expand = _expand_tuple(n_dimensions)
    return lambda m: expand(tuple(m) if isinstance(m, list) else m)


once_sequence = _expand_sequence_to_tuple(1)
twice_sequence = _expand_sequence_to_tuple(2)
triple_sequence = _expand_sequence_to_tuple(3)


def _check_3d_int_or_tuple(
    arg_name: str,
    arg_value: Any,
    prim_name: str,
    allow_five: bool = False,
    ret_five: bool = False,
    greater_zero: bool = True,
    third_one: bool = False,
    three_input: bool = False,
    pad_value: int = 1,
) -> tuple[int, ...]:
    """Return a size of three dimensions, or of five with `ret_five`, from an int or a tuple.

    `arg_name` and `prim_name` are the argument and the operation in errors, `arg_value` is the
    value. With `allow_five` a tuple may have five entries, of which the first two are `pad_value`;
    with `greater_zero` entries are positive, else not negative; with `third_one` the first of the
    three is 1. `three_input` has no effect. Raises ValueError for other values.
    """
    found = (arg_value,) * 3 if isinstance(arg_value, int) and not isinstance(arg_value, bool) else arg_value
    if isinstance(found, tuple) and allow_five and len(found) == 5 and found[:2] == (pad_value, pad_value):
        found = found[2:]
    least = 1 if greater_zero else 0
    good = isinstance(found, tuple) and len(found) == 3
    if not good or not all(isinstance(v, int) and not isinstance(v, bool) and v >= least for v in found):
        wanted = "positive integer" if greater_zero else "integer that is not negative"
        raise ValueError(f"For '{prim_name}', '{arg_name}' must be a {wanted} or a tuple of three, but got {arg_value}")
    if third_one and found[0] != 1:
        raise ValueError(f"For '{prim_name}', the depth of '{arg_name}' must be 1, but got {found[0]}")
    return (pad_value, pad_value, *found) if ret_five else found


def _check_binary_rel(val1: Any, val2: Any, rel: int) -> bool:
    """Return whether a relation holds between two values."""
    try:
        C.check("", val1, "", val2, rel)
    except ValueError:
        return False
    return True


def _check_inc_rel(val: Any, lower: Any, upper: Any, rel: int) -> bool:
    """Return whether a value is within a range whose ends are in it as a relation says."""
    return _check_binary_rel(val, [lower, upper], rel)


def _check_number(
    arg_value: Any, value: Any, rel: int, arg_type: type = int, arg_name: str | None = None, prim_name: Any = None
) -> Any:
    """Return a number of a type for which a relation to another one holds.

    `arg_value` is the number, `value` the other, `rel` the relation, `arg_type` the type, int or
    float; `arg_name` and `prim_name` are the argument and the operation in errors. Raises TypeError
    for another type, ValueError where the relation does not hold.
    """
    checks: dict[type, Any] = {int: C.check_int, float: C.check_float}
    return checks[arg_type](arg_value, value, rel, arg_name, prim_name)


def _check_int_sequence_len(sequence: Any, valid_len: int) -> bool:
    """Return whether something is a sequence of so many integers."""
    return (
        isinstance(sequence, (list, tuple))
        and len(sequence) == valid_len
        and all(isinstance(v, int) and not isinstance(v, bool) for v in sequence)
    )


# Axes.


def check_axis_in_range(axis: int, ndim: int) -> int:
    """Return an axis counted from the front.

    Raises TypeError unless it is an int, ValueError out of range.
    """
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise TypeError(f"an axis must be an integer, not {type(axis).__name__}")
    if not -ndim <= axis < ndim:
        raise ValueError(f"The 'axis' must be in the range of [{-ndim}, {ndim}), but got {axis}.")
    return axis % ndim


def _check_dup(axes: Sequence[int]) -> None:
    """Raise ValueError if an axis is there twice."""
    if len(set(axes)) != len(axes):
        raise ValueError(f"The element of parameter 'axis' can not be duplicate, but got {axes}.")


def check_and_canonicalize_axes(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return one axis or several, counted from the front, as a tuple.

    Raises TypeError unless they are integers, ValueError out of range or twice.
    """
    given = tuple(axes) if isinstance(axes, (tuple, list)) else (axes,)
    found = tuple(check_axis_in_range(axis, ndim) for axis in given)
    _check_dup(found)
    return found


def check_axis_valid(axes: Any, ndim: int) -> tuple[int, ...]:
    """Return axes counted from the front as a tuple, all of them for None."""
    return tuple(range(ndim)) if axes is None else check_and_canonicalize_axes(axes, ndim)


def check_axis_type(axis: Any, type_int: bool = True, type_tuple: bool = True, type_list: bool = True) -> bool:
    """Return True if `axis` is of a type that is allowed; TypeError otherwise.

    `type_int`, `type_tuple` and `type_list` allow an int, a tuple and a list of them.
    """
    if isinstance(axis, int) and not isinstance(axis, bool) and type_int:
        return True
    if isinstance(axis, tuple) and type_tuple or isinstance(axis, list) and type_list:
        for one in axis:
            if not isinstance(one, int):
                raise TypeError(f"each axis must be an integer, not {type(one).__name__} in {axis}")
        return True
    allowed = [name for name, good in (("int", type_int), ("tuple", type_tuple), ("list", type_list)) if good]
    raise TypeError(f"the axis must be {', '.join(allowed)}, not {type(axis).__name__}")


def check_swapaxes_axis(axes: Any, ndim: int) -> Any:
    """Return an axis, or a sequence of them as a tuple, counted from the front."""
    if isinstance(axes, (tuple, list)):
        return tuple(check_axis_in_range(axis, ndim) for axis in axes)
    return check_axis_in_range(axes, ndim)


def check_transpose_axis(axes: Sequence[Any], ndim: int) -> tuple[int, ...]:
    """Return the order of axes that the arguments of a transposition mean: none, None, one tuple or
    list, or the axes themselves.

    Raises ValueError unless there are as many as dimensions.
    """
    order: Any = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
    if not axes or order is None:
        return tuple(reversed(range(ndim)))
    if len(order) != ndim:
        raise ValueError(f"there are {len(order)} axes for {ndim} dimensions")
    return tuple(order)


# Shapes.


def check_reshape_shp(shp: Sequence[Any]) -> Any:
    """Return the shape that the arguments of a reshaping mean."""
    if len(shp) == 1 and isinstance(shp[0], (tuple, list)):
        return tuple(shp[0])
    return shp


def expanded_shape(ndim: int, axis_size: int, axis: int) -> tuple[int, ...]:
    """Return a shape of ones with one other size."""
    return tuple(axis_size if i == axis else 1 for i in range(ndim))


def infer_out_shape(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape to which shapes are broadcast; ValueError where they cannot be."""
    if not shapes:
        raise ValueError("there are no shapes to broadcast")
    return tuple(np.broadcast_shapes(*map(tuple, shapes)))


def prepare_shape_for_squeeze(shape: Sequence[int], axes: Any) -> tuple[int, ...]:
    """Return a shape without some axes of length 1.

    Raises TypeError unless the axes are integers, ValueError for other lengths.
    """
    if not isinstance(axes, (int, tuple, list)):
        raise TypeError(f"axes must be an int, a tuple or a list, not {type(axes).__name__}")
    gone = check_and_canonicalize_axes(axes, len(shape))
    for axis in gone:
        if shape[axis] != 1:
            raise ValueError(f"axis {axis} has length {shape[axis]}, not 1")
    return tuple(size for axis, size in enumerate(shape) if axis not in gone)


def tuple_slice(tup: Sequence[Any], start: int | None, end: int | None) -> Sequence[Any]:
    """Return a part of a tuple."""
    return tup[start:end]


def max_(*args: Any) -> Any:
    """Return the largest of several values."""
    return max(*args)


def min_(*args: Any) -> Any:
    """Return the smallest of several values."""
    return min(*args)


# Types.


def check_astype_dtype(dtype: Any) -> Any:
    """Return the element type that a type or a name means; TypeError for another."""
    if isinstance(dtype, str):
        found = getattr(D, "bool_" if dtype.lower() == "bool" else dtype.lower(), None)
        if not isinstance(found, D.DType):
            raise TypeError(f"there is no element type {dtype!r}")
        return found
    return D.from_any(dtype)


def check_type_support(dtype: Any, device: str, supported_dtypes: Iterable[Any]) -> bool:
    """Return whether a type is among those of a device; True on other devices than this."""
    return device != "CPU" or dtype in supported_dtypes


def check_coo_tensor_dtype(indices_dtype: Any) -> None:
    """Raise TypeError unless a type is one of the indices of a COOTensor."""
    if indices_dtype not in _INDEX_TYPES:
        raise TypeError(f"For COOTensor, indices must be int16, int32 or int64, but got {indices_dtype}.")


def check_csr_tensor_dtype(indptr_dtype: Any, indices_dtype: Any) -> None:
    """Raise TypeError unless types are those of the indices of a CSRTensor."""
    for name, kind in (("indptr", indptr_dtype), ("indices", indices_dtype)):
        if kind not in _INDEX_TYPES:
            raise TypeError(f"For CSRTensor, {name} must be int16, int32 or int64, but got {kind}.")


def check_scalar_or_tensor_types_same(
    args: Mapping[str, Any], valid_values: Iterable[Any], prim_name: str, allow_mix: bool = False
) -> None:
    """Raise TypeError unless types are equal and among those allowed.

    `args` are the types by arguments, `valid_values` those allowed, `prim_name` is the operation in
    errors; with `allow_mix` types of tensors count as those of their elements.
    """
    C.check_types_same_and_valid(dict(args), list(valid_values), prim_name)


# What is in containers.


def check_element_type_of_iterable(arg_name: str, arg_value: Any, valid_types: Any, prim_name: Any = None) -> None:
    """Raise TypeError unless every element of `arg_value` is of one of `valid_types`.

    `arg_name` and `prim_name` are the argument and the operation in errors.
    """
    for element in arg_value:
        C.check_value_type(arg_name, element, valid_types, prim_name)


def check_element_type_of_dict(
    arg_name: str, arg_value: Any, key_types: Any, value_types: Any, prim_name: Any = None
) -> None:
    """Raise TypeError unless something is a dict with keys and values of some types.

    `arg_name` and `prim_name` are the argument and the operation in errors, `arg_value` is the
    dict, `key_types` and `value_types` are the types.
    """
    C.check_value_type(arg_name, arg_value, dict, prim_name)
    check_element_type_of_iterable(arg_name, arg_value.keys(), key_types, prim_name)
    check_element_type_of_iterable(arg_name, arg_value.values(), value_types, prim_name)


def check_size_and_element_type_of_tuple(
    arg_name: str, arg_value: Any, expect_size: int, expect_element_type: Any, prim_name: Any = None
) -> None:
    """Raise ValueError unless a tuple has a size, TypeError for elements of another type.

    `arg_name` and `prim_name` are the argument and the operation in errors, `arg_value` is the
    tuple, `expect_size` and `expect_element_type` say what it must be.
    """
    C.check_value_type(arg_name, arg_value, [tuple], prim_name)
    C.check_equal_int(len(arg_value), expect_size, f"{arg_name} size", prim_name)
    check_element_type_of_iterable(arg_name, arg_value, [expect_element_type], prim_name)


def check_input_data(*data: Any, data_class: Any) -> None:
    """Raise TypeError unless inputs are of a class, or sequences or dicts of such."""
    kinds = data_class if isinstance(data_class, tuple) else (data_class,)
    for value in data:
        inside = value.values() if isinstance(value, Mapping) else value if isinstance(value, (tuple, list)) else None
        for one in (value,) if inside is None else inside:
            if not isinstance(one, (tuple, list)) and not isinstance(one, kinds):
                names = ", ".join(kind.__name__ for kind in kinds)
                raise TypeError(f"inputs must be {names}, or tuples, lists or dicts of them, not {type(one).__name__}")


def check_input_dataset(*dataset: Any, dataset_type: Any) -> bool:
    """Return whether there is something, and all of it is of a class."""
    return bool(dataset) and all(isinstance(value, dataset_type) for value in dataset)


def check_output_data(data: Any) -> None:
    """Raise RuntimeError for a result that is None."""
    if data is None:
        raise RuntimeError("the result is None; look at the network and its inputs")


def is_stub_tensor(tensor: Any) -> bool:
    """Return False: tensors are never placeholders of results to come."""
    return False


# Text and modes.


def check_file_name_by_regular(target: str, reg: str | None = None, prim_name: str | None = None) -> bool:
    """Return True for a name of a file of letters, digits and ``@_-.:/\\``; ValueError for others.

    `reg` is another pattern, `prim_name` the operation in errors.
    """
    return _match(target, reg or _FILE_NAMES, re.ASCII, prim_name)


def check_str_by_regular(
    target: str, reg: str | None = None, flag: re.RegexFlag = re.ASCII, prim_name: str | None = None
) -> bool:
    """Return True if `target` is a name of letters, digits, ``_`` and ``.``; ValueError otherwise.

    `reg` is another pattern with flags `flag`, `prim_name` the operation in errors.
    """
    return _match(target, reg or r"^\w+[0-9a-zA-Z\_\.]*$", flag, prim_name)


def check_str_and_none_by_regular(
    target: str, reg: str | None = None, flag: re.RegexFlag = re.ASCII, prim_name: str | None = None
) -> bool:
    """Return True if `target` has letters, digits, ``_``, ``.`` and ``-`` only; else ValueError.

    `reg` is another pattern with flags `flag`, `prim_name` the operation in errors.
    """
    return _match(target, reg or r"^\w*[0-9a-zA-Z\_\.\-]*$", flag, prim_name)


def _match(target: str, pattern: str, flag: int, operation: str | None) -> bool:
    if re.match(pattern, target, flag) is None:
        subject = f"For '{operation}', the " if operation else "The "
        raise ValueError(f"{subject}'{target}' is illegal, it must match {pattern!r}.")
    return True


def check_flatten_order(order: str) -> None:
    """Raise TypeError unless an order is text, ValueError unless it is "C" or "F"."""
    if not isinstance(order, str):
        raise TypeError(f"the order must be a string, not {type(order).__name__}")
    if order not in ("C", "F"):
        raise ValueError(f"the order must be 'C' or 'F', not {order!r}")


def check_hook_fn(hook_fn: Any) -> None:
    """Raise TypeError unless a hook can be called."""
    if not callable(hook_fn):
        raise TypeError(f"a hook must be a function, not {type(hook_fn).__name__}")


def check_input_format(input_param: str) -> str:
    """Return "NCHW"; ValueError for another format."""
    if input_param != "NCHW":
        raise ValueError(f"The data format must be NCHW, but got {input_param}.")
    return input_param


def check_pad_value_by_mode(pad_mode: str, padding: Any, prim_name: str) -> Any:
    """Return the padding; ValueError if there is one in a mode other than "pad"."""
    if pad_mode != "pad" and padding != 0:
        raise ValueError(f"For '{prim_name}', padding must be zero when pad_mode is '{pad_mode}', but got {padding}.")
    return padding
