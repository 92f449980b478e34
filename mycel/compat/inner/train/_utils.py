"""`mindspore.train._utils`: small parts of training loops and checkpoints."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.inner.train import mind_ir_pb2
from mycel.train.strategies import build_searched_strategy

__all__: list[str] = []

Redundancy = dict[str, tuple[tuple[int, ...], ...]]


def _make_directory(path: str, arg_name: str = "path") -> str:
    """Make a directory with those above it, and return its real path.

    `arg_name` names the argument in errors. Raises TypeError unless it is text, ValueError if it is
    blank.
    """
    if not isinstance(path, str):
        raise TypeError(f"the {arg_name} must be a string, not {path!r}")
    if not path.strip():
        raise ValueError(f"the {arg_name} must not be blank")
    real = os.path.realpath(path)
    os.makedirs(real, mode=0o700, exist_ok=True)
    return real


def check_value_type(arg_name: str, arg_value: Any, valid_types: Any) -> None:
    """Raise TypeError unless a value is of one of the types; a bool is no int."""
    kinds = tuple(valid_types) if isinstance(valid_types, (list, tuple)) else (valid_types,)
    if isinstance(arg_value, kinds) and not (isinstance(arg_value, bool) and bool not in kinds):
        return
    names = ", ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{arg_name} must be of type {names}, not {type(arg_value).__name__}")


def check_summary_param(summary_name: str, tag: str, tensor: Any) -> None:
    """Raise TypeError unless a name is text and a value a tensor."""
    if not isinstance(summary_name, str):
        raise TypeError(f"the name of a summary must be a string, not {summary_name!r}")
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{summary_name}: the value must be a Tensor, not {type(tensor).__name__}")


def _convert_type(types: Iterable[Any]) -> list[Any]:
    """Return the types of a data set's columns as element types."""
    return [D.from_any(np.dtype(kind)) for kind in types]


def _get_types_and_shapes(dataset: Any) -> tuple[list[Any], Any]:
    """Return the element types and the shapes of a data set's columns."""
    return _convert_type(dataset.output_types()), dataset.output_shapes()


def _construct_tensor_list(types: Sequence[Any], shapes: Sequence[Any], batch_expand_num: int = 1) -> list[Tensor]:
    """Return zeros of these types and shapes, the first axis `batch_expand_num` times as long.

    Raises ValueError unless there are as many types as shapes.
    """
    if len(types) != len(shapes):
        raise ValueError(f"there are {len(types)} types and {len(shapes)} shapes")
    made = []
    for kind, shape in zip(types, shapes):
        sizes = tuple(shape)
        sizes = (sizes[0] * batch_expand_num, *sizes[1:]) if sizes else sizes
        made.append(Tensor(np.zeros(sizes, kind.numpy)))
    return made


def _to_tensor(elem: Any, scaling_sens: Any = None) -> Any:
    """Return arrays as tensors: one, or a tuple for several, with `scaling_sens` as a last one.

    Numbers and other values stay as they are, in a tuple.
    """
    several = list(elem) if isinstance(elem, (list, tuple)) else [elem]
    made: list[Any] = [Tensor(e) if isinstance(e, np.ndarray) else e for e in several]
    if scaling_sens is not None:
        made.append(Tensor(scaling_sens, D.float32))
    return made[0] if len(made) == 1 and isinstance(made[0], Tensor) else tuple(made)


def _check_to_numpy(plugin: str, tensor: Tensor, prim: Any = None) -> np.ndarray[Any, Any]:
    """Return the values of a tensor that a summary of the kind `plugin` takes, as an array."""
    return tensor.asnumpy()


def _rotate_list_elements(i: int, input_list: list[Any]) -> list[Any]:
    """Return a list that begins at its element `i` and goes round."""
    turn = i % len(input_list)
    return input_list[turn:] + input_list[:turn]


def _progress_bar(iterable: Iterable[Any], total: int | None = None) -> Iterator[Any]:
    """Yield elements, and print which part of them is done."""
    elements = list(iterable) if total is None else iterable
    count = len(elements) if isinstance(elements, list) else total or 1
    for done, element in enumerate(elements, 1):
        yield element
        filled = 40 * done // count
        print(f"\r{done / count:6.1%}|{'█' * filled}{'-' * (40 - filled)}|", end="", flush=True)
    print()


def _mstx_range_decorator(message: str, stream: Any = None, domain: str = "default") -> Callable[..., Any]:
    """Return a decorator that leaves functions unchanged: marks are for profiles of other devices.

    `message`, `stream` and `domain` describe the mark.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(function)(lambda *args, **named: function(*args, **named))

    return decorate


def enable_data_broadcast() -> bool:
    """Return False: batches are not sent to other processes."""
    return False


def get_parameter_redundancy(layout_obj: Any, initial_rank: int | None = None) -> Redundancy:
    """Return, for each parameter, the groups of ranks that hold the same part of it.

    `layout_obj` has for each parameter the shape of the devices, which axis of the devices divides
    each axis of the tensor (counted from the last one, -1 for none), and its shape. `initial_rank`
    is the lowest rank, 0 if it is None.
    """
    start = initial_rank or 0
    return {name: _groups(layout[0], layout[1], start) for name, layout in layout_obj.items()}


def _groups(devices: Sequence[int], tensor_map: Sequence[Any], start: int) -> tuple[tuple[int, ...], ...]:
    used = [axis for entry in tensor_map for axis in (entry if isinstance(entry, (list, tuple)) else (entry,))]
    count = int(np.prod(devices))
    parts: dict[tuple[int, ...], list[int]] = {}
    for rank in range(count):
        place = np.unravel_index(rank, tuple(devices))[::-1]
        parts.setdefault(tuple(int(place[axis]) for axis in used if axis >= 0), []).append(start + rank)
    return tuple(tuple(ranks) for ranks in parts.values())


def remove_param_redundancy(param_redundancy_dict: Mapping[str, Any], keep_redundancy: int = 1) -> dict[int, set[str]]:
    """Return which parameters each rank saves, so that each part is saved `keep_redundancy` times.

    `param_redundancy_dict` is what `get_parameter_redundancy` gives. Parts go to the ranks with the
    fewest parameters so far.
    """
    saved: dict[int, set[str]] = {
        rank: set() for groups in param_redundancy_dict.values() for group in groups for rank in group
    }
    for name, groups in param_redundancy_dict.items():
        for group in groups:
            for rank in sorted(group, key=lambda r: (len(saved[r]), r))[:keep_redundancy]:
                saved[rank].add(name)
    return saved


def parse_strategy_ckpt(file_name: str) -> Any:
    """Return the layouts in a file of strategies, by parameters; OSError for a file not there."""
    if not os.path.exists(file_name):
        raise FileNotFoundError(f"there is no file {file_name!r}")
    return build_searched_strategy(file_name)


def parse_hccl_file(hccl_file_path: str) -> dict[int, str]:
    """Return the address of the server of each rank in a table of ranks of a cluster."""
    with open(hccl_file_path, encoding="utf-8") as file:
        servers = json.load(file)["server_list"]
    return {int(device["rank_id"]): server["server_id"] for server in servers for device in server["device"]}


def read_proto(file_name: str, proto_format: str = "MINDIR", display_data: bool = False) -> Any:
    """Return the message that a MindIR file holds.

    With `display_data` it is printed too. Raises ValueError for a file that is not there or holds
    no message, or another `proto_format`.
    """
    if proto_format != "MINDIR":
        raise ValueError(f"read_proto: proto_format must be 'MINDIR', not {proto_format!r}")
    model = vars(mind_ir_pb2)["ModelProto"]()
    try:
        with open(file_name, "rb") as file:
            model.ParseFromString(file.read())
    except (OSError, ValueError) as error:
        raise ValueError(f"read_proto: {file_name!r} cannot be read as {proto_format}: {error}") from None
    if display_data:
        print(model, file=sys.stdout)
    return model
