"""`mindspore.dataset.core.validator_helpers`: checks of arguments that programs import.

Ranges of numbers are in `_RANGES`, from which the functions `check_int32` and their like are made.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = [
    "check_2tuple",
    "check_columns",
    "check_dataset_num_shards_shard_id",
    "check_dict",
    "check_dir",
    "check_file",
    "check_filename",
    "check_list_same_size",
    "check_num_parallel_workers",
    "check_num_samples",
    "check_odd",
    "check_positive",
    "check_range",
    "check_sampler_shuffle_shard_options",
    "check_tensor_op",
    "check_valid_detype",
    "check_valid_str",
    "check_value",
    "check_value_cutoff",
    "check_value_normalize_std",
    "check_value_ratio",
    "is_iterable",
    "pad_arg_name",
    "parse_user_args",
    "replace_none",
    "type_check",
    "type_check_list",
    "validate_dataset_param_value",
]

POS_INT_MIN = 1
UINT8_MIN, UINT8_MAX = 0, 2**8 - 1
UINT32_MIN, UINT32_MAX = 0, 2**32 - 1
UINT64_MIN, UINT64_MAX = 0, 2**64 - 1
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
FLOAT_MIN_INTEGER, FLOAT_MAX_INTEGER = -(2**24), 2**24
DOUBLE_MIN_INTEGER, DOUBLE_MAX_INTEGER = -(2**53), 2**53
valid_detype = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "string"),
]


def pad_arg_name(arg_name: str) -> str:
    """Return the name of an argument with a space after it; an empty name stays empty."""
    return f"{arg_name} " if arg_name else arg_name


def is_iterable(obj: Any) -> bool:
    """Return whether one can iterate over a value."""
    return isinstance(obj, Iterable)


def replace_none(value: Any, default: Any) -> Any:
    """Return the default for None, and any other value itself."""
    return default if value is None else value


def type_check(arg: Any, types: Sequence[Any], arg_name: str) -> None:
    """Raise TypeError unless a value has one of these types; a bool is no number."""
    known = tuple(types)
    if not isinstance(arg, known) or (isinstance(arg, bool) and bool not in known):
        listed = ", ".join(str(kind) for kind in known)
        raise TypeError(f"Argument {arg_name} with value {arg!r} is not of type [{listed}], but got {type(arg)}.")


def type_check_list(args: Sequence[Any], types: Sequence[Any], arg_names: Any) -> None:
    """Raise TypeError unless all values have one of these types."""
    type_check(args, (list, tuple), "args" if isinstance(arg_names, (list, tuple)) else arg_names)
    names = arg_names if isinstance(arg_names, (list, tuple)) else [f"{arg_names}[{i}]" for i in range(len(args))]
    if len(names) != len(args):
        raise ValueError(f"List of arguments is of length {len(args)}, but there are {len(names)} names.")
    for arg, name in zip(args, names):
        type_check(arg, types, name)


def check_value(
    value: Any,
    valid_range: Sequence[Any],
    arg_name: str = "",
    left_open_interval: bool = False,
    right_open_interval: bool = False,
) -> None:
    """Raise ValueError for a value out of a range.

    * `value`: the value; NaN passes.
    * `valid_range`: the two ends.
    * `arg_name`: what messages call the value.
    * `left_open_interval`, `right_open_interval`: whether an end itself is out of the range.
    """
    low, high = valid_range
    below = value <= low if left_open_interval else value < low
    above = value >= high if right_open_interval else value > high
    if below or above:
        ends = f"{'(' if left_open_interval else '['}{low}, {high}{')' if right_open_interval else ']'}"
        raise ValueError(f"Input {pad_arg_name(arg_name)}is not within the required interval of {ends}.")


def check_value_cutoff(value: Any, valid_range: Sequence[Any], arg_name: str = "") -> None:
    """Raise ValueError for a value out of the range [low, high)."""
    check_value(value, valid_range, arg_name, right_open_interval=True)


def check_value_ratio(value: Any, valid_range: Sequence[Any], arg_name: str = "") -> None:
    """Raise ValueError for a value out of the range (low, high]."""
    check_value(value, valid_range, arg_name, left_open_interval=True)


def check_value_normalize_std(value: Any, valid_range: Sequence[Any], arg_name: str = "") -> None:
    """Raise ValueError for a value out of the range (low, high]."""
    check_value(value, valid_range, arg_name, left_open_interval=True)


def check_range(values: Sequence[Any], valid_range: Sequence[Any], arg_name: str = "") -> None:
    """Raise ValueError unless two ends are in order and within a range."""
    low, high = values[0], values[1]
    if not valid_range[0] <= low <= high <= valid_range[1]:
        raise ValueError(
            f"Input {pad_arg_name(arg_name)}range is not valid: it must be within {list(valid_range)}, "
            "with the first value not above the second."
        )


def check_positive(value: Any, arg_name: str = "") -> None:
    """Raise ValueError unless a number is positive."""
    if value <= 0:
        raise ValueError(f"Input {pad_arg_name(arg_name)}must be greater than 0.")


def check_odd(value: Any, arg_name: str = "") -> None:
    """Raise ValueError unless a number is odd."""
    if value % 2 != 1:
        raise ValueError(f"Input {pad_arg_name(arg_name)}is not an odd value.")


def check_2tuple(value: Any, arg_name: str = "") -> None:
    """Raise ValueError for anything but a tuple of two."""
    if not isinstance(value, tuple) or len(value) != 2:
        raise ValueError(f"Value {pad_arg_name(arg_name)}needs to be a 2-tuple.")


_NUMBERS = (int, float)
_RANGES: dict[str, tuple[Any, Any, Any, bool]] = {
    "int32": ((int,), INT32_MIN, INT32_MAX, False),
    "int32_not_zero": ((int,), INT32_MIN, INT32_MAX, True),
    "uint8": ((int,), UINT8_MIN, UINT8_MAX, False),
    "uint32": ((int,), UINT32_MIN, UINT32_MAX, False),
    "pos_uint32": ((int,), POS_INT_MIN, UINT32_MAX, False),
    "pos_int32": ((int,), POS_INT_MIN, INT32_MAX, False),
    "non_negative_int32": ((int,), 0, INT32_MAX, False),
    "uint64": ((int,), UINT64_MIN, UINT64_MAX, False),
    "pos_int64": ((int,), POS_INT_MIN, INT64_MAX, False),
    "float32": (_NUMBERS, FLOAT_MIN_INTEGER, FLOAT_MAX_INTEGER, False),
    "float32_not_zero": (_NUMBERS, FLOAT_MIN_INTEGER, FLOAT_MAX_INTEGER, True),
    "pos_float32": (_NUMBERS, 0, FLOAT_MAX_INTEGER, True),
    "non_negative_float32": (_NUMBERS, 0, FLOAT_MAX_INTEGER, False),
    "float64": (_NUMBERS, DOUBLE_MIN_INTEGER, DOUBLE_MAX_INTEGER, False),
    "pos_float64": (_NUMBERS, 0, DOUBLE_MAX_INTEGER, True),
    "non_negative_float64": (_NUMBERS, 0, DOUBLE_MAX_INTEGER, False),
}


def _of_range(name: str) -> Callable[..., None]:
    types, low, high, without_zero = _RANGES[name]

    def check(value: Any, arg_name: str = "") -> None:
        type_check(value, types, arg_name)
        check_value(value, (low, high), arg_name)
        if without_zero and value == 0:
            raise ValueError(f"Input {pad_arg_name(arg_name)}must not be 0.")

    check.__name__ = check.__qualname__ = f"check_{name}"
    check.__doc__ = f"Raise TypeError or ValueError unless a value is a number of the range `{name}`."
    return check


globals().update({f"check_{name}": _of_range(name) for name in _RANGES})


def check_valid_detype(type_: Any) -> bool:
    """Return True for the name of a type of columns; raise TypeError otherwise."""
    if type_ not in valid_detype:
        raise TypeError(f"Unknown column type {type_!r}; the types are {valid_detype}.")
    return True


def check_valid_str(value: Any, valid_strings: Sequence[str], arg_name: str = "") -> None:
    """Raise TypeError or ValueError unless a value is one of these texts."""
    type_check(value, (str,), arg_name)
    if value not in valid_strings:
        raise ValueError(f"Input {pad_arg_name(arg_name)}is not within the valid set of {list(valid_strings)}.")


def check_columns(columns: Any, name: str) -> None:
    """Raise TypeError or ValueError unless a value is the name of a column, or several."""
    type_check(columns, (str, list), name)
    listed = [columns] if isinstance(columns, str) else columns
    if not listed:
        raise ValueError(f"{name} should not be empty")
    type_check_list(listed, (str,), [f"{name}[{place}]" for place in range(len(listed))])
    if "" in listed:
        raise ValueError(f"{name} should not be empty")
    if len(set(listed)) != len(listed):
        raise ValueError(f"Every column name should not be same with others in {name}.")


def check_filename(path: Any) -> None:
    """Raise TypeError or ValueError for a path that no file can have."""
    if not isinstance(path, str):
        raise TypeError(f"path: {path!r} is not a string.")
    if "\0" in path:
        raise ValueError("filename should not contain a zero character")


def check_dir(dataset_dir: Any) -> None:
    """Raise TypeError or ValueError unless there is such a folder that can be read."""
    type_check(dataset_dir, (str,), "dataset_dir")
    if not os.path.isdir(dataset_dir) or not os.access(dataset_dir, os.R_OK):
        raise ValueError(f"The folder {dataset_dir} does not exist or is not a directory or permission denied!")


def check_file(dataset_file: Any) -> None:
    """Raise TypeError or ValueError unless there is such a file that can be read."""
    type_check(dataset_file, (str,), "dataset_file")
    if not os.path.isfile(dataset_file) or not os.access(dataset_file, os.R_OK):
        raise ValueError(f"The file {dataset_file} does not exist or permission denied!")


def check_list_same_size(list1: Any, list2: Any, list1_name: str = "", list2_name: str = "") -> None:
    """Raise ValueError unless `list1` and `list2` have the same length.

    `list1_name` and `list2_name` are what messages call them.
    """
    if len(list1) != len(list2):
        raise ValueError(f"The size of {list1_name} should be the same as that of {list2_name}.")


def check_num_parallel_workers(value: Any) -> None:
    """Raise TypeError or ValueError unless a value is a number of workers of this machine."""
    type_check(value, (int,), "num_parallel_workers")
    check_value(value, (1, os.cpu_count() or 1), "num_parallel_workers")


def check_num_samples(value: Any) -> None:
    """Raise TypeError or ValueError unless a value is a number of samples."""
    type_check(value, (int,), "num_samples")
    check_value(value, (0, INT64_MAX), "num_samples")


def check_dataset_num_shards_shard_id(num_shards: Any, shard_id: Any) -> None:
    """Raise TypeError or ValueError unless a number of shards and a shard fit."""
    if (num_shards is None) != (shard_id is None):
        raise ValueError("num_shards and shard_id need to be passed in together.")
    if num_shards is not None:
        type_check(num_shards, (int,), "num_shards")
        check_value(num_shards, (1, INT32_MAX), "num_shards")
        type_check(shard_id, (int,), "shard_id")
        check_value(shard_id, (0, num_shards - 1), "shard_id")


def check_sampler_shuffle_shard_options(param_dict: dict[str, Any]) -> None:
    """Raise RuntimeError or ValueError where the options of a source contradict each other."""
    sampler = param_dict.get("sampler")
    for name in ("shuffle", "num_shards", "num_samples"):
        if sampler is not None and param_dict.get(name) is not None:
            raise RuntimeError(f"sampler and {name} cannot be specified at the same time.")
    num_shards, shard_id = param_dict.get("num_shards"), param_dict.get("shard_id")
    if num_shards is not None:
        if shard_id is None:
            raise RuntimeError("num_shards is specified and currently requires shard_id as well.")
        check_dataset_num_shards_shard_id(num_shards, shard_id)
    elif shard_id is not None:
        raise RuntimeError("shard_id is specified but num_shards is not.")


def check_tensor_op(param: Any, param_name: str) -> None:
    """Raise TypeError for anything but an operation on rows."""
    if not callable(param):
        raise TypeError(f"{param_name} is neither a transforms op (TensorOperation) nor a callable pyfunc.")


def check_dict(data: Any, key_type: Any, value_type: Any, param_name: str) -> None:
    """Raise TypeError unless `data` is None or a dictionary.

    Its keys must have the type `key_type` and its values `value_type`; `param_name` is what
    messages call it.
    """
    if data is None:
        return
    type_check(data, (dict,), param_name)
    for key, value in data.items():
        type_check(key, (key_type,), f"key in {param_name}")
        type_check(value, (value_type,), f"value in {param_name}")


def parse_user_args(method: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a call's arguments after the first, and all of them by name."""
    bound = inspect.signature(method).bind(*args, **kwargs)
    bound.apply_defaults()
    named = dict(bound.arguments)
    named.update(named.pop("kwargs", {}))
    return list(named.values())[1:] if "self" in named else list(named.values()), named


def validate_dataset_param_value(param_list: Sequence[str], param_dict: dict[str, Any], param_type: Any) -> None:
    """Raise TypeError unless those of the named arguments that are given have a type."""
    for name in param_list:
        if param_dict.get(name) is not None:
            type_check(param_dict[name], (param_type,), name)
