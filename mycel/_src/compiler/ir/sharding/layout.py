"""MindSpore's `Layout`: how tensors are divided over a grid of devices.

A `Layout` only describes: the grid has named axes, and each axis of a tensor is divided along some
of them. `ir.sharding.division` has what a layout means for a tensor.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from mycel._src.foundation import arguments

__all__ = ["Layout"]

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
        self, device_matrix: tuple[int, ...], alias_name: tuple[str, ...], rank_list: list[int] | None = None
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
        self._axes: tuple[Any, ...] | None = None

    def __call__(self, *tensor_map: str | tuple[str, ...]) -> Layout:
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
