"""`mindspore.parallel._utils`: queries about parallel training, and what programs do with layouts
and batches of several devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import float32
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.inner.parallel._tensor import _load_tensor_by_layout
from mycel.parallel.context import ParallelMode, get_auto_parallel_context

__all__: list[str] = []


def _get_parallel_mode() -> str:
    """Return the parallel mode that was set; it has no effect."""
    return get_auto_parallel_context("parallel_mode")


def _is_in_auto_parallel_mode() -> bool:
    return _get_parallel_mode() in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def _is_in_data_parallel_mode() -> bool:
    return _get_parallel_mode() == ParallelMode.DATA_PARALLEL


def _is_in_hybrid_parallel_mode() -> bool:
    return _get_parallel_mode() == ParallelMode.HYBRID_PARALLEL


def _is_sharding_propagation() -> bool:
    return get_auto_parallel_context("search_mode") == "sharding_propagation" or get_auto_parallel_context(
        "sharding_propagation"
    )


def _get_gradients_mean() -> bool:
    return get_auto_parallel_context("gradients_mean")


def _get_full_batch() -> bool:
    return get_auto_parallel_context("full_batch")


def _get_enable_parallel_optimizer() -> bool:
    return get_auto_parallel_context("enable_parallel_optimizer")


def _get_parameter_broadcast() -> bool:
    return get_auto_parallel_context("parameter_broadcast")


def _get_pipeline_stages() -> int:
    return get_auto_parallel_context("pipeline_stages")


def _get_device_num() -> int:
    return get_auto_parallel_context("device_num")


def _device_number_check(parallel_mode: str, device_number: int) -> None:
    """Raise ValueError for several devices without parallel training."""
    if parallel_mode == ParallelMode.STAND_ALONE and device_number != 1:
        raise ValueError(f"in the mode {parallel_mode!r} the number of devices must be 1, not {device_number}")


def _parameter_broadcast_check(parallel_mode: str, parameter_broadcast: bool) -> None:
    """Raise ValueError if parameters are to be sent to other devices in a mode without that."""
    if parameter_broadcast and parallel_mode not in (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL):
        raise ValueError(f"in the mode {parallel_mode!r} parameters are not broadcast")


def _is_parallel_mode() -> bool:
    """Return False: this process is alone."""
    return False


def _need_to_full() -> bool:
    """Return whether programs are compiled for larger batches than a device has."""
    return _is_in_auto_parallel_mode() and not _get_full_batch()


def _check_full_batch() -> None:
    """Raise RuntimeError where `full_batch` is set in a mode that divides no operators."""
    if _get_full_batch() and not _is_in_auto_parallel_mode():
        raise RuntimeError("full_batch is for the modes semi_auto_parallel and auto_parallel only")


def _get_grad_accumulation_shard() -> bool:
    return bool(get_auto_parallel_context("parallel_optimizer_config").get("gradient_accumulation_shard", False))


def _parallel_mode_map(parallel_mode: str) -> str:
    """Return the parallel mode for a mode of `AutoParallel`; ValueError for another."""
    modes = {"semi_auto": ParallelMode.SEMI_AUTO_PARALLEL}
    modes |= dict.fromkeys(("sharding_propagation", "recursive_programming"), ParallelMode.AUTO_PARALLEL)
    return modes[arguments.one_of("AutoParallel", "parallel_mode", parallel_mode, tuple(modes))]


def _reset_op_id() -> None:
    """Do nothing: operators are counted in each program that is compiled."""


def _to_full_shapes(shapes: Sequence[Sequence[int]], device_num: int) -> list[list[int]]:
    """Return the shapes of the whole batch, of which each device has the part of these shapes."""
    return [[n * device_num if axis == 0 else n for axis, n in enumerate(shape)] for shape in shapes]


def _origin_shapes(shapes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the shapes of a device's part of the batch."""
    count = _get_device_num()
    return [[n // count if axis == 0 else n for axis, n in enumerate(shape)] for shape in shapes]


def _to_full_tensor(
    elem: Any, global_device_num: int, global_rank: int, scaling_sens: float | None = None
) -> tuple[Tensor, ...]:
    """Return tensors of the size of the whole batch, which are zero but for a device's part.

    Args:
        elem: The device's part: a tensor, an array, or a list or tuple of them.
        global_device_num: How many devices have parts.
        global_rank: The number of the device.
        scaling_sens: A number that follows as a tensor, unless it is None.
    """
    made = []
    for part in elem if isinstance(elem, (list, tuple)) else [elem]:
        array = part.asnumpy() if isinstance(part, Tensor) else np.asarray(part)
        whole = np.zeros((array.shape[0] * global_device_num, *array.shape[1:]), array.dtype)
        start = global_rank % global_device_num * array.shape[0]
        whole[start : start + array.shape[0]] = array
        made.append(Tensor(whole))
    if scaling_sens is not None:
        made.append(Tensor(scaling_sens, float32))
    return tuple(made)


def _slice_tensor(tensor: Any, layout: Any, rank_id: int) -> Tensor:
    """Return the part of a tensor that a device has by an entry of `Cell.parameter_layout_dict`."""
    return _load_tensor_by_layout(tensor, layout, rank_id)


def _check_same_layout(tensor_layout1: Any, tensor_layout2: Any) -> bool:
    """Return whether two layouts have one grid and one tensor map."""
    return tuple(tensor_layout1[:2]) == tuple(tensor_layout2[:2])


def _check_rank(cur_rank: int, initial_rank: int, pipeline_stages: int) -> None:
    """Raise ValueError for a rank that is none of a pipeline's stage, from `initial_rank` on."""
    size = _get_device_num() // pipeline_stages
    if not initial_rank <= cur_rank < initial_rank + size:
        raise ValueError(
            f"parameter broadcast: cur_rank is {cur_rank}, and the ranks of the stage are {initial_rank} to "
            f"{initial_rank + size - 1}"
        )


def _grads_divided_by_device_num_if_recomputation(grads: Any) -> Any:
    """Return gradients unchanged: means are taken where they are summed."""
    return grads


def _get_stage_device_num() -> int:
    return _get_device_num() // _get_pipeline_stages()


def _get_global_rank() -> int:
    return get_auto_parallel_context("global_rank")
