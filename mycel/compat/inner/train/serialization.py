"""`mindspore.train.serialization`: steps of saving and loading, for programs of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Optional, Union

import ml_dtypes
import numpy as np

from mycel import dtype as D
from mycel._src.foundation import arguments
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.inner.common.dtype import qint4x2
from mycel.compat.inner.train import checkpoint_pb2
from mycel.train.checkpoint_format import read_ckpt
from mycel.train.parameter_loading import FLOATS, INTEGERS, fitted
from mycel.train.parameter_slices import take_values
from mycel.train.serialization import (
    _appended,
    _collected,
    _wanted,
    load_param_into_net,
    save_checkpoint,
)

__all__: list[str] = []

INT_64_MAX = 2**63 - 1
SLICE_SIZE = 512 * 1024
PROTO_LIMIT_SIZE = 2 * 1024**2
TOTAL_SAVE = 1024**2
PARAMETER_SPLIT_SIZE = 1024**3
ENCRYPT_BLOCK_SIZE = 64 * 1024

_tensor_to_np_type: dict[str, Any] = {
    **{str(kind): kind.numpy.type for kind in (D.bool_, *D.int_type, *D.uint_type)},
    "Float16": np.float16,
    "Float32": np.float32,
    "Float64": np.float64,
    "BFloat16": ml_dtypes.bfloat16,
    "str": "U",
}
tensor_to_ms_type: dict[str, Any] = {
    **{str(kind): kind for kind in (D.bool_, *D.int_type, *D.uint_type)},
    "Float16": D.float16,
    "Float32": D.float32,
    "Float64": D.float64,
    "str": D.string,
    "BFloat16": D.bfloat16,
    "Int4": qint4x2,
}
np_type_convert = {"int32": np.int32, "float32": np.float32, "float16": np.float16, "float64": np.float64}
mindir_to_tensor_type = {
    1: D.float32, 2: D.uint8, 3: D.int8, 4: D.uint16, 5: D.int16, 6: D.int32, 7: D.int64, 10: D.float16,
    11: D.float64, 12: D.uint32, 13: D.uint64,
}  # fmt: skip


def tensor_to_np_type(tensor_type_str: str) -> Any:
    """Return NumPy's type of a type's name in checkpoints, None for another name."""
    return _tensor_to_np_type.get(tensor_type_str)


def _update_param(param: Parameter, new_param: Any, strict_load: bool) -> None:
    """Write the values of a loaded parameter or tensor into a parameter of a network.

    With `strict_load` the types must be equal. Raises RuntimeError where shapes or types do not
    fit.
    """
    if not isinstance(new_param, Tensor):
        raise TypeError(f"{param.name}: the new value must be a parameter or a tensor, not {new_param!r}")
    if new_param.size == 1 and param.ndim == 0:
        new_param = new_param.reshape(())
    value = fitted(param, new_param, strict_load)
    if isinstance(value, np.ndarray):
        param.set_data(Tensor(value, param.dtype))
    else:
        take_values(param, value)


def _type_convert(param: Parameter, new_param: Parameter, strict_load: bool) -> bool:
    """Return whether values of the type of one parameter go into another one."""
    pair = {param.dtype.name, new_param.dtype.name}
    return not strict_load and (pair <= set(FLOATS) or pair <= {*INTEGERS, "int8", "int16"})


def _special_process_par(par: Parameter, new_par: Parameter) -> bool:
    """Put values with further axes of length 1 into a parameter, and return whether they fit."""
    shape, wanted = tuple(new_par.shape), tuple(par.shape)
    if len(shape) <= len(wanted) or shape[: len(wanted)] != wanted or set(shape[len(wanted) :]) != {1}:
        return False
    par.set_data(Tensor(new_par.asnumpy().reshape(wanted), par.dtype))
    return True


def _load_dismatch_prefix_params(
    net: Any, parameter_dict: Mapping[str, Any], param_not_load: Sequence[str], strict_load: bool
) -> None:
    """Load the parameters of a checkpoint whose names have a prefix that a network's lack.

    `param_not_load` are the network's names that are still missing; with `strict_load` types must
    be equal.
    """
    names = {name: parameter for name, parameter in parameter_dict.items() if isinstance(parameter, Tensor)}
    if param_not_load:
        load_param_into_net(net, names, strict_load)


def _exec_save(
    ckpt_file_name: str,
    data_list: Mapping[str, Any],
    enc_key: bytes | None = None,
    enc_mode: str = "AES-GCM",
    map_param_inc: bool = False,
    crc_check: bool = False,
    format: str = "ckpt",
    remove_redundancy: bool | None = None,
) -> None:
    """Save values as a checkpoint.

    `data_list` has for each name its shape, the name of its type, and its values: an array, bytes
    or a tensor. `ckpt_file_name`, `enc_key`, `enc_mode`, `crc_check` and `format` are those of
    `save_checkpoint`; `map_param_inc` and `remove_redundancy` have no effect on one device.
    """
    values = [{"name": name, "data": _tensor(*facts)} for name, facts in data_list.items()]
    save_checkpoint(values, ckpt_file_name, enc_key=enc_key, enc_mode=enc_mode, crc_check=crc_check, format=format)


def _tensor(dims: Sequence[int], title: str, content: Any) -> Tensor:
    if isinstance(content, Tensor):
        return content
    kind = tensor_to_ms_type[title]
    flat = np.frombuffer(content, kind.numpy) if isinstance(content, bytes) else np.asarray(content)
    return Tensor(flat.reshape(() if list(dims) == [0] else tuple(dims)), kind)


def _parse_ckpt_proto(ckpt_file_name: str, dec_key: bytes | None, dec_mode: str, crc_check: bool) -> Any:
    """Return the message that a ckpt file holds, decrypted with `dec_key` in `dec_mode`.

    With `crc_check` the file's checksum is compared. Raises CheckpointError for a damaged file.
    """
    entries = (
        read_ckpt(ckpt_file_name, verify=crc_check, key=dec_key, mode=dec_mode)
        if dec_key
        else read_ckpt(ckpt_file_name, verify=crc_check)
    )
    found = vars(checkpoint_pb2)["Checkpoint"]()
    for name, entry in entries.items():
        value = found.value.add()
        value.tag = name
        if isinstance(entry, str):
            value.tensor.tensor_type, value.tensor.tensor_content = "str", entry.encode()
            continue
        value.tensor.dims.extend(entry.shape)
        value.tensor.tensor_type, value.tensor.tensor_content = str(D.from_any(entry.dtype)), entry.tobytes()
    return found


def _convert_save_obj_to_param_list(
    save_obj: Any,
    integrated_save: bool,
    append_dict: Mapping[str, Any] | None,
    choice_func: Callable[[str], bool] | None,
) -> list[dict[str, Any]]:
    """Return what is to be saved as a list of names and data.

    `save_obj`, `append_dict` and `choice_func` are those of `save_checkpoint`; `integrated_save`
    has no effect on one device.
    """
    found = [{"name": n, "data": t} for n, t in _collected(save_obj).items() if choice_func is None or choice_func(n)]
    return [*found, *({"name": n, "data": _parameter(_appended(n, v), n)} for n, v in (append_dict or {}).items())]


def _parameter(entry: Any, name: str) -> Any:
    return entry if isinstance(entry, str) else Tensor(entry)


def _convert_cell_to_param_list(
    save_obj: Any, integrated_save: bool, append_dict: Any, choice_func: Any
) -> list[dict[str, Any]]:
    """Return a Cell's parameters as a list of names and data; see `_convert_save_obj_to_param_list`
    for `save_obj`, `integrated_save`, `append_dict` and `choice_func`.
    """
    return _convert_save_obj_to_param_list(save_obj, integrated_save, append_dict, choice_func)


def _convert_list_to_param_list(save_obj: Any, choice_func: Any) -> list[dict[str, Any]]:
    """Return a list of parameters, or of names and data, as a list of names and data."""
    return _convert_save_obj_to_param_list(save_obj, True, None, choice_func)


def _convert_dict_to_param_dict(save_obj: Any, choice_func: Any) -> list[dict[str, Any]]:
    """Return a dict of parameters as a list of names and data."""
    return _convert_save_obj_to_param_list(save_obj, True, None, choice_func)


def _check_append_dict(append_dict: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what is to be saved beside parameters; TypeError for what cannot be."""
    if append_dict is None:
        return None
    arguments.instance("save_checkpoint", "append_dict", append_dict, dict)
    for name, value in append_dict.items():
        _appended(name, value)
    return append_dict


def _check_prefix(prefix: Any) -> Any:
    """Return prefixes of names as a sequence, None for None.

    Raises TypeError for anything but text or a sequence of it, ValueError for "".
    """
    several = prefix if isinstance(prefix, (list, tuple)) else (prefix,)
    if prefix is None:
        return None
    for one in several:
        if not isinstance(one, str):
            raise TypeError(f"a prefix must be a string, or a list or tuple of strings, not {prefix!r}")
        if not one:
            raise ValueError("a prefix must not be empty")
    return several


def _whether_load_param(specify_prefix: Any, filter_prefix: Any, param_name: str) -> bool:
    """Return whether prefixes to keep and to drop let a name be loaded."""
    kept, dropped = (tuple(p) if p else None for p in map(_check_prefix, (specify_prefix, filter_prefix)))
    wanted = _wanted(kept, dropped, None)
    return bool(wanted(param_name))


def _is_auto_parallel_mode(save_obj: Any) -> bool:
    """Return False: a network is not divided over devices."""
    return False


def _get_merged_param_data(
    net: Any, parameter_layout_dict: Mapping[str, Any], param_name: str, param_data: Tensor, integrated_save: bool
) -> Tensor | Parameter:
    """Return the whole of a parameter that is divided over devices, which on one it is already.

    `net` is the network, `parameter_layout_dict` how its parameters are divided, `param_name` and
    `param_data` the parameter; `integrated_save` asks for the whole.
    """
    return param_data
