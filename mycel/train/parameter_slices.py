"""Parameter slices: the part of a sharded parameter that a rank saves, and its strategy-file entry.

A strategy file says which mesh axes cut which axis of a parameter into equal parts. A layout that
it cannot say (unequal parts, a stretch inside of an axis) is saved whole by every rank.

What ranks save whole they join while the file is written, one tensor at a time, all in the same
order. A rank that cannot write goes on joining until the others have what they need.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import Sharding, local_shape, local_type
from mycel._src.compiler.transforms.partition.tensor_sharding import static
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines import buffers
from mycel._src.engines.base import Spread
from mycel._src.foundation.python_runtime.reference_counts import ONE_OWNER
from mycel._src.foundation.settings.parallel_settings import ParallelSettings, current
from mycel._src.foundation.system import locks
from mycel._src.staging.distributed import parallel_modes
from mycel._src.staging.distributed.rank_executors import OfDevices, OfRanks
from mycel._src.staging.distributed.sharded_tensors import Held, held, hold, whole_value
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Declared, Parameter, reserve
from mycel._src.tensors.core.tensor import Tensor, make
from mycel.train.checkpoint_format import Later, Saved
from mycel.train.stored_values import StoredValues
from mycel.train.strategies import Dims, ParallelLayouts, write_strategy

__all__ = [
    "entry_of",
    "fits_part",
    "layout_entry",
    "is_parallel",
    "put_part",
    "take_values",
    "write_layouts",
    "written_together",
]

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
    if layout.partial or mesh.devices != tuple(range(mesh.size)):
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


class _Joined:
    """A tensor that ranks have apart, to be joined; or one to be drawn, which takes nothing."""

    def __init__(self, tensor: Tensor, join: Callable[[Tensor], Array]) -> None:
        self.tensor, self.join = tensor, join
        self.is_done = self.is_joined = False

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.tensor.dtype.numpy

    @property
    def nbytes(self) -> int:
        return int(self.tensor._type.nbytes)

    def array(self) -> Array:
        self.is_done = True
        found = self.join(self.tensor)
        self.is_joined = True
        return found


def _drawn(tensor: Tensor) -> Array:
    assert isinstance(tensor, Declared) and tensor.reserved is not None
    made = np.empty(tensor.shape, tensor.dtype.numpy)
    tensor.reserved.fill(made)
    return made


def entry_of(tensor: Tensor, whole: bool) -> Array | Later:
    """Return what a rank saves of a tensor: all of it, which all ranks join when it is written, or
    its part.

    The tensor stays divided, and one that is only declared stays so.
    """
    own = None if whole else _part(tensor)
    if own is not None:
        return buffers.to_array(own.piece, local_type(tensor._type, own.layout))
    if held(tensor) is not None:
        return _Joined(tensor, whole_value)
    if isinstance(tensor, Declared) and tensor.reserved is not None:
        return _Joined(tensor, _drawn)
    return tensor.asnumpy()


def written_together(write: Callable[[], Any], entries: Mapping[str, Saved], order: Sequence[str]) -> None:
    """Run `write`, which asks for the values of entries in an `order`; where it fails, join those
    that are left, for which the other ranks wait.
    """
    try:
        write()
    except Exception:
        # Where joining itself has failed, nobody waits.
        left = [entry for entry in map(entries.get, order) if isinstance(entry, _Joined) and entry.join is whole_value]
        if not any(entry.is_done and not entry.is_joined for entry in left):
            for entry in left:
                if not entry.is_done:
                    entry.array()
        raise


def fits_part(parameter: Parameter, shape: tuple[int, ...]) -> bool:
    """Return whether this rank's part of a parameter, as the ranks have it now, has a shape."""
    own = _part(parameter)
    return own is not None and shape == local_shape(tuple(parameter.shape), own.layout)


def put_part(parameter: Parameter, value: Array) -> None:
    """Make an array this rank's part of a parameter that the ranks have apart."""
    own = held(parameter)
    assert own is not None
    hold(parameter, own._replace(piece=buffers.from_array(value)))


def take_values(parameter: Parameter, values: StoredValues) -> None:
    """Give a parameter values that lie in files, which have its shape or that of its part.

    A rank reads its part of a parameter that is divided. One that has no values yet reserves these
    where there are several ranks, and reads its part when the layout is known. Others are read
    whole, into their memory if nothing else refers to it.
    """
    own = held(parameter)
    if own is not None and not own.copies:
        if own.piece is not None:
            hold(parameter, own._replace(piece=_read_piece(parameter, own, values)))
    elif own is None and isinstance(parameter, Declared) and is_parallel():
        reserve(parameter, values)
    elif not _read_in_place(parameter, values):
        made = buffers.empty(int(parameter._type.nbytes))
        values.fill(buffers.to_array(made, parameter._type))
        parameter._replace(make(parameter._type, made))


def is_parallel() -> bool:
    """Return whether parameters may be divided among several ranks or devices."""
    return current().dividing is not None or transport().size > 1


def _read_piece(parameter: Parameter, own: Held, values: StoredValues) -> Any:
    type = local_type(parameter._type, own.layout)
    if isinstance(own.piece, Spread):
        return OfDevices(own.mesh).drawn(parameter._type, values, own.layout)
    if values.shape != static(type) or static(type) == static(parameter._type):
        return OfRanks(own.mesh).drawn(parameter._type, values, own.layout)
    made = buffers.empty(int(type.nbytes))
    values.fill(buffers.to_array(made, type))
    return made


def _read_in_place(parameter: Parameter, values: StoredValues) -> bool:
    """Read values into the memory that a parameter has, and return whether that was done: not where
    arrays, views or recordings refer to it.
    """
    if isinstance(parameter, Declared) or held(parameter) is not None or eager.active:
        return False
    buffer = parameter._buf
    if buffer is None or parameter._view is not None or parameter._views is not None:
        return False
    if sys.getrefcount(buffer) > ONE_OWNER or not buffers.is_own(buffer) or buffers.is_shared(buffer):
        return False
    values.fill(buffers.to_array(buffer, parameter._type))
    return True


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
