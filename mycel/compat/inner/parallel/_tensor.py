"""`mindspore.parallel._tensor`: which part of a tensor a device has.

The devices are a grid of shape `dev_mat`, numbered row by row. `tensor_map` has for each axis of
the tensor the axis of the grid that cuts it, counted from the last, or -1 for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional

import numpy as np

from mycel._src.tensors.core.tensor import Tensor

__all__: list[str] = []

_ENTRIES = 7


def _axes(dev_mat: Sequence[int], tensor_map: Sequence[int]) -> list[int | None]:
    """Return the axis of the grid that cuts each axis of a tensor; IndexError for another."""
    found: list[int | None] = []
    for number in tensor_map:
        if number >= len(dev_mat):
            raise IndexError(f"the tensor map {list(tensor_map)} names axis {number} of the grid {list(dev_mat)}")
        found.append(None if number == -1 else len(dev_mat) - 1 - number)
    return found


def _get_tensor_strategy(dev_mat: Sequence[int], tensor_map: Sequence[int]) -> list[int]:
    """Return the number of parts of each axis of a tensor."""
    return [1 if a is None else dev_mat[a] for a in _axes(dev_mat, tensor_map)]


def _rank_to_coordinate(rank_index: int, device_arrangement: Sequence[int]) -> list[int]:
    """Return the place of a device in the grid."""
    return [int(n) for n in np.unravel_index(rank_index, tuple(device_arrangement))]


def _coordinate_to_rank(device_coordinate: Sequence[int], device_arrangement: Sequence[int]) -> int:
    """Return the number of the device at a place of the grid."""
    return int(np.ravel_multi_index(tuple(int(n) for n in device_coordinate), tuple(device_arrangement)))


def _get_tensor_slice_index(
    device_arrangement: Sequence[int], tensor_strategy: Sequence[int], tensor_map: Sequence[int], rank_index: int
) -> int:
    """Return the number of the part that a device has, row by row.

    Args:
        device_arrangement: The grid of devices.
        tensor_strategy: The number of parts of each axis.
        tensor_map: The axes of the grid that cut the tensor.
        rank_index: The number of the device.
    """
    at = _rank_to_coordinate(rank_index, device_arrangement)
    places = [0 if a is None else at[a] for a in _axes(device_arrangement, tensor_map)]
    return int(np.ravel_multi_index(tuple(places), tuple(tensor_strategy)))


def _load_tensor_shape(
    dev_mat: Sequence[int], tensor_map: Sequence[int], full_shape: Sequence[int] | None = None, rank_id: int = -1
) -> tuple[slice, ...]:
    """Return the stretch of each axis that a device has.

    Args:
        dev_mat: The grid of devices.
        tensor_map: The axes of the grid that cut the tensor.
        full_shape: The shape of the whole tensor.
        rank_id: The number of the device.
    """
    assert full_shape is not None
    strategy = _get_tensor_strategy(dev_mat, tensor_map)
    at = _rank_to_coordinate(rank_id, dev_mat)
    found = []
    for size, parts, axis in zip(full_shape, strategy, _axes(dev_mat, tensor_map)):
        if size % parts:
            raise ValueError(f"an axis of size {size} is not cut into {parts} equal parts")
        place = 0 if axis is None else at[axis]
        found.append(slice(place * (size // parts), (place + 1) * (size // parts), None))
    return tuple(found)


def _count_tensor_shape(
    dev_mat: Sequence[int], tensor_map: Sequence[int], full_shape: Sequence[int] | None = None, rank_id: int = -1
) -> list[int]:
    """Return the shape of the part that a device has; the arguments are those of
    `_load_tensor_shape`.
    """
    assert full_shape is not None
    return [s.stop - s.start for s in _load_tensor_shape(dev_mat, tensor_map, full_shape, max(rank_id, 0))]


def _load_tensor(
    tensor: Any,
    dev_mat: Sequence[int],
    tensor_map: Sequence[int],
    full_shape: Sequence[int] | None = None,
    rank_id: int = -1,
) -> Tensor:
    """Return the part of a tensor that a device has.

    Raises ValueError where an axis is not a multiple of its parts.

    Args:
        tensor: The whole tensor.
        dev_mat: The grid of devices.
        tensor_map: The axes of the grid that cut the tensor.
        full_shape: Its shape, where the tensor has another.
        rank_id: The number of the device.
    """
    array = tensor.asnumpy() if isinstance(tensor, Tensor) else np.asarray(tensor)
    array = array if full_shape is None else array.reshape(tuple(full_shape))
    place = _load_tensor_shape(dev_mat, tensor_map, array.shape, rank_id)
    return Tensor(np.ascontiguousarray(array[place]))


def _checked(layout: Any) -> tuple[Any, ...]:
    if not isinstance(layout, tuple):
        raise TypeError(f"a layout must be a tuple, not {layout!r}")
    if len(layout) < _ENTRIES:
        raise ValueError(f"a layout has {_ENTRIES} entries or more, not {len(layout)}: {layout!r}")
    return layout


def _load_tensor_by_layout(tensor: Any, layout: Any, rank_id: int) -> Tensor:
    """Return the part of a tensor that a device has by an entry of `Cell.parameter_layout_dict`.

    Raises TypeError for a layout that is no tuple, ValueError for one of less than seven entries.
    """
    known = _checked(layout)
    return _load_tensor(tensor, known[0], known[1], known[6] or None, rank_id)


def _load_tensor_shape_by_layout(tensor: Any, layout: Any, rank_id: int) -> tuple[slice, ...]:
    """Return the stretch of each axis that a device has; the arguments and errors are those of
    `_load_tensor_by_layout`.
    """
    known = _checked(layout)
    return _load_tensor_shape(known[0], known[1], known[6] or tuple(tensor.shape), rank_id)


def _chunk_tensor_by_strategy(np_tensor: Any, strategy: Sequence[int]) -> list[Any]:
    """Return the parts of an array, row by row; ValueError where it is not cut into equal parts."""
    if len(strategy) != np.ndim(np_tensor):
        raise ValueError(f"an array of {np.ndim(np_tensor)} axes has no parts {list(strategy)}")
    return _chunk_tensor(np_tensor, strategy, len(strategy))


def _chunk_tensor(np_tensor: Any, strategy: Sequence[int], depth: int) -> list[Any]:
    """Return the parts of an array of which the last `depth` axes are cut, row by row."""
    array = np.asarray(np_tensor)
    axis = array.ndim - depth
    if array.shape[axis] % strategy[-depth]:
        raise ValueError(f"an axis of size {array.shape[axis]} is not cut into {strategy[-depth]} equal parts")
    parts = np.split(array, strategy[-depth], axis)
    return parts if depth == 1 else [inner for part in parts for inner in _chunk_tensor(part, strategy, depth - 1)]


def _chunk_shape_by_strategy(full_shape: Sequence[int], strategy: Sequence[int]) -> list[list[list[int]]]:
    """Return where the parts of a tensor begin and end along each axis, row by row."""
    found: list[list[list[int]]] = [[]]
    for size, parts in zip(full_shape, strategy):
        step = size // parts
        found = [[*known, [k * step, (k + 1) * step]] for known in found for k in range(parts)]
    return found


def _reshape_param_data(param_data: Any, dev_mat: Sequence[int], tensor_map: Sequence[int]) -> Tensor:
    """Return a tensor whose parts, which lie one behind the other, are put at their places."""
    strategy = _get_tensor_strategy(dev_mat, tensor_map)
    parts = np.split(param_data.asnumpy(), int(np.prod(strategy)), 0)
    whole = np.empty(tuple(strategy), object)
    for place, part in zip(np.ndindex(*strategy), parts):
        whole[place] = part
    for axis in reversed(range(len(strategy))):
        joined = np.empty(whole.shape[:-1], object)
        for place in np.ndindex(*whole.shape[:-1]):
            joined[place] = np.concatenate(list(whole[place]), axis)
        whole = joined
    return Tensor(np.ascontiguousarray(whole[()]))


def _extract_layout_item(layout_item: Sequence[Any]) -> tuple[Any, ...]:
    """Return the grid, the tensor map, whether parts are equal, and the optimizer's group."""
    return layout_item[0], layout_item[1], layout_item[4], layout_item[5]
