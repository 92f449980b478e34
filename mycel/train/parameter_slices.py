"""Parameter slices: the part of a sharded parameter that a rank saves, and its strategy-file entry.

A strategy file says which mesh axes cut which axis of a parameter into equal parts. A layout that
it cannot say (unequal parts, a stretch inside of an axis) is saved whole by every rank.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import Sharding, local_shape, local_type
from mycel._src.engines import buffers
from mycel._src.engines.base import Spread
from mycel._src.foundation.settings.parallel_settings import ParallelSettings
from mycel._src.foundation.system import locks
from mycel._src.staging.distributed import parallel_modes
from mycel._src.staging.distributed.sharded_tensors import Held, held, hold, whole_value
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.train.strategies import Dims, ParallelLayouts, write_strategy

__all__ = ["entry_of", "fits_part", "layout_entry", "put_part", "write_layouts"]

Array = np.ndarray[Any, Any]

_lock = locks.reentrant()
_written: dict[tuple[ParallelSettings, str], dict[str, ParallelLayouts]] = {}


def layout_entry(shape: tuple[int, ...], layout: Sharding, mesh: Mesh) -> ParallelLayouts | None:
    """Return a layout as strategy files have it; None where they cannot say it.

    `shape` is the whole tensor's, and `layout` its layout on `mesh`.

    >>> from mycel._src.compiler.transforms.partition import sharding
    >>> mesh = Mesh((2, 3), ("x", "y"))
    >>> layout_entry((6, 4), sharding(mesh, (6, 4), (("x", "y"),)), mesh).tensor_map
    [Dims(dim=[1, 0]), Dims(dim=[-1])]
    >>> layout_entry((5,), sharding(mesh, (5,), ("x",)), mesh) is None
    True
    """
    if layout.pending or mesh.devices != tuple(range(mesh.size)):
        return None
    axes: list[list[int]] = [[] for _ in shape]
    reached = [1] * len(shape)
    for part in layout.parts:
        if not part.is_even or part.size != part.count or part.before != reached[part.axis]:
            return None
        reached[part.axis] *= part.size
        axes[part.axis] += [len(mesh.names) - 1 - mesh.names.index(name) for name in part.mesh_axes]
    if all(len(a) < 2 for a in axes):
        maps = [Dims([a[0] if a else -1 for a in axes])]
    else:
        # A tensor of one axis has a second, empty list, by which readers see that these are nested.
        maps = [Dims(a or [-1]) for a in axes] + ([Dims([])] if len(axes) == 1 else [])
    return ParallelLayouts([Dims(list(mesh.sizes))], maps)


def _part(tensor: Tensor) -> Held | None:
    own = held(tensor)
    if own is None or isinstance(own.piece, Spread) or layout_entry(tuple(tensor.shape), own.layout, own.mesh) is None:
        return None
    return own


def entry_of(tensor: Tensor, whole: bool) -> Array:
    """Return what a rank saves of a tensor: all of it, for which all ranks join it, or its part.

    The tensor stays divided.
    """
    own = None if whole else _part(tensor)
    return whole_value(tensor) if own is None else buffers.to_array(own.piece, local_type(tensor._type, own.layout))


def fits_part(parameter: Parameter, value: Array) -> bool:
    """Return whether an array is this rank's part of a parameter as the ranks have it now."""
    own = _part(parameter)
    return own is not None and value.shape == local_shape(tuple(parameter.shape), own.layout)


def put_part(parameter: Parameter, value: Array) -> None:
    """Make an array this rank's part of a parameter that the ranks have apart."""
    own = held(parameter)
    assert own is not None
    hold(parameter, Held(buffers.from_array(value), own.layout, own.mesh))


def write_layouts(settings: ParallelSettings, parameters: Mapping[str, tuple[Parameter, Sharding]], mesh: Mesh) -> None:
    """Write the strategy file that the settings ask for, with the layouts of a program's
    parameters by name.

    With "only_trainable_params" of `strategy_ckpt_config`, which is the default, it has those that
    want a gradient, and all that are divided. Programs of the same settings share the file.
    """
    path = settings.strategy_ckpt_config.get("save_file") or settings.strategy_ckpt_save_file
    if not path:
        return
    with _lock:
        entries = _written.setdefault((settings, path), {})
    for name, (parameter, layout) in parameters.items():
        found = layout_entry(tuple(parameter.shape), layout, mesh)
        if found is None:
            found = layout_entry(tuple(parameter.shape), Sharding(), mesh)
        wanted = parameter.requires_grad or layout.parts or not settings.strategy_ckpt_config["only_trainable_params"]
        if found is not None and parameter.ndim and wanted:
            entries[name] = found
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with _lock:
        write_strategy(path, entries)


parallel_modes.saving.write = write_layouts
