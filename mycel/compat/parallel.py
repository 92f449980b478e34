"""`mindspore.parallel._utils`: queries about parallel training, answered for one process with one
device.
"""

from __future__ import annotations

from mycel.compat.context import ParallelMode, get_auto_parallel_context

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
    """Return False: batches are whole."""
    return False


def _get_stage_device_num() -> int:
    return _get_device_num() // _get_pipeline_stages()


def _get_global_rank() -> int:
    return get_auto_parallel_context("global_rank")
