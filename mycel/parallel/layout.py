"""Descriptions of how tensors are divided over a grid of devices.

A `Layout` only describes which axis of a tensor is divided along which axis of the grid. On the one
device of this process every part is the whole. So functions that would divide a tensor or the work
of a function check the description and return their argument, which computes the same numbers.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any, Optional, Union

from mycel.base import arguments
from mycel.cells.cell import Cell
from mycel.core.tensor import Tensor

__all__ = ["Layout", "parameter_broadcast", "reshard", "shard", "sync_pipeline_shared_parameters"]

_COPIES = "interleaved_parallel"
_NONE = "None"


class Layout:
    """A grid of devices whose axes have names.

    A call with the names of grid axes returns the layout of a tensor divided along them.

    `device_matrix` has the sizes of the grid and `alias_name` the names of its axes; `rank_list`
    numbers the devices, in row-major order. A call takes, for each axis of the tensor, the name of
    a grid axis, a tuple of several names, or "None" for an axis that is not divided. Raises
    TypeError for arguments of other types, ValueError for names that are empty, "None" or repeated,
    for lengths that do not agree, and in a call for unknown or repeated names.

    >>> from mycel import Layout
    >>> layout = Layout((2, 2, 2), ("dp", "sp", "mp"))
    >>> layout("dp", "mp").to_dict()["tensor_map"]
    (2, 0)
    """

    def __init__(
        self, device_matrix: tuple[int, ...], alias_name: tuple[str, ...], rank_list: Optional[list[int]] = None
    ) -> None:
        for name, value in (("device_matrix", device_matrix), ("alias_name", alias_name)):
            arguments.instance("Layout", name, value, tuple)
        if len(device_matrix) != len(alias_name):
            raise ValueError(f"Layout: {len(device_matrix)} axes have {len(alias_name)} names; give each one")
        for size in device_matrix:
            arguments.integer("Layout", "each of device_matrix", size, 1, numpy=False)
        for name in alias_name:
            arguments.text("Layout", "each of alias_name", name)
            if name in ("", _NONE):
                raise ValueError(f"Layout: {name!r} is no name for an axis; 'None' stands for axes that are whole")
        if len(set(alias_name)) != len(alias_name):
            raise ValueError(f"Layout: the names in alias_name must differ, not {alias_name}")
        if _COPIES in alias_name[:-1]:
            raise ValueError(f"Layout: {_COPIES!r} must be the last of the names, not {alias_name}")
        devices = math.prod(device_matrix)
        if devices > 1 << 24:
            raise ValueError(f"Layout: device_matrix has {devices} devices, more than the 2**24 that are possible")
        if rank_list is not None:
            arguments.instance("Layout", "rank_list", rank_list, list)
            for rank in rank_list:
                arguments.integer("Layout", "each of rank_list", rank, numpy=False)
            if len(rank_list) != devices or len(set(rank_list)) != devices:
                raise ValueError(f"Layout: rank_list must number each of {devices} devices once, not {rank_list}")
        self.device_matrix, self.alias_name = device_matrix, alias_name
        self.rank_list = list(range(devices)) if rank_list is None else list(rank_list)
        self._axes: Optional[tuple[Any, ...]] = None

    def __call__(self, *tensor_map: Union[str, tuple[str, ...]]) -> Layout:
        """Return the layout of a tensor."""
        used: set[str] = set()

        def place(name: Any) -> int:
            if not isinstance(name, str):
                raise ValueError(f"Layout: the name of an axis is a string, not {name!r:.80}")
            if name == _NONE:
                return -1
            if name not in self.alias_name:
                raise ValueError(f"Layout: there is no axis {name!r}; the names are {', '.join(self.alias_name)}")
            if name in used:
                raise ValueError(f"Layout: the axis {name!r} is used more than once; it divides one axis of a tensor")
            used.add(name)
            return len(self.alias_name) - 1 - self.alias_name.index(name)

        made = copy.copy(self)
        made._axes = tuple(
            [tuple([place(n) for n in axis]) if isinstance(axis, tuple) else place(axis) for axis in tensor_map]
        )
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return all properties by name.

        "tensor_map" has, for each axis of the tensor, the axis of the grid counted from the last,
        or -1 for an axis that is not divided. Raises ValueError for a layout without a tensor.
        """
        if self._axes is None:
            raise ValueError("Layout: says nothing of a tensor yet; call it with a name for each axis")
        return {
            "device_matrix": self.device_matrix,
            "tensor_map": self._axes,
            "interleaved_parallel": _COPIES in self.alias_name,
            "alias_name": self.alias_name,
            "rank_list": list(self.rank_list),
        }

    def __repr__(self) -> str:
        axes = "" if self._axes is None else f", tensor_map={self._axes}"
        return f"Layout(device_matrix={self.device_matrix}, alias_name={self.alias_name}{axes})"


def _check_strategies(name: str, value: Any) -> None:
    arguments.instance("shard", name, value, tuple, "a tuple with an element for each tensor")
    for one in value:
        _check_strategy(name, one)


def _check_strategy(name: str, value: Any) -> None:
    if value is None or isinstance(value, Layout):
        return
    if not isinstance(value, tuple) or not all(
        isinstance(n, Layout) or (isinstance(n, int) and not isinstance(n, bool)) for n in value
    ):
        raise TypeError(f"shard: {name} must say how a tensor is divided by a tuple of ints or a Layout, not {value!r}")


def shard(
    fn: Callable[..., Any],
    in_strategy: Any,
    out_strategy: Any = None,
    parameter_plan: Optional[Mapping[str, Any]] = None,
) -> Callable[..., Any]:
    """Return `fn`, a function or Cell, whose work would be divided as the strategies say.

    As there is one device, the result is `fn` itself. `in_strategy` and `out_strategy` have a tuple
    of numbers of parts, or a layout, for each input and output; `parameter_plan` has the same for
    parameters by name. Raises TypeError for invalid strategies, and unless `fn` can be called.

    >>> import mycel as ms
    >>> float(ms.shard(lambda x: x * 2, in_strategy=((1,),))(ms.Tensor(2.0)))
    4.0
    """
    arguments.function("shard", "fn", fn, "a function or a Cell")
    _check_strategies("in_strategy", in_strategy)
    if out_strategy is not None:
        _check_strategies("out_strategy", out_strategy)
    if parameter_plan is not None:
        if not isinstance(parameter_plan, dict) or not all(isinstance(name, str) for name in parameter_plan):
            raise TypeError(f"shard: parameter_plan must be a dict by names of parameters, not {parameter_plan!r}")
        for value in parameter_plan.values():
            _check_strategy("parameter_plan", value)
    return fn


def reshard(tensor: Tensor, layout: Layout) -> Tensor:
    """Return a tensor in another layout; as there is one device, it is the tensor itself.

    Raises TypeError for other arguments.

    >>> import mycel as ms
    >>> x = ms.Tensor([1.0, 2.0])
    >>> ms.reshard(x, ms.Layout((1,), ("dp",))("dp")) is x
    True
    """
    arguments.instance("reshard", "tensor", tensor, Tensor)
    arguments.instance("reshard", "layout", layout, Layout)
    return tensor


def parameter_broadcast(net: Cell, layout: Mapping[str, Any], cur_rank: int = 0, initial_rank: int = 0) -> None:
    """Send the parameters of `net` to the other processes that have the same part of them.

    There are no other processes, so the parameters stay as they are. `layout` is a dict by names of
    parameters; `cur_rank` and `initial_rank`, this process and the first one, must be 0. Raises
    TypeError for anything but a Cell and a dict, ValueError for other ranks and for names that
    `net` does not have.
    """
    arguments.instance("parameter_broadcast", "net", net, Cell)
    arguments.mapping("parameter_broadcast", "layout", layout)
    for name, rank in (("cur_rank", cur_rank), ("initial_rank", initial_rank)):
        if rank != 0 or isinstance(rank, bool):
            raise ValueError(f"parameter_broadcast: {name} must be 0, the number of this one process, not {rank!r}")
    known = net.parameters_dict()
    missing = sorted(name for name in layout if name not in known)
    if missing:
        raise ValueError(f"parameter_broadcast: the network has no parameter {missing[0]!r}")


def sync_pipeline_shared_parameters(net: Cell) -> None:
    """Synchronize parameters that several stages of a pipeline share.

    In one process they are always the same. Raises TypeError unless `net` is a Cell.
    """
    arguments.instance("sync_pipeline_shared_parameters", "net", net, Cell)
