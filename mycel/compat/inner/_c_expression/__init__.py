"""`mindspore._c_expression`: what programs take from MindSpore's core.

The core itself, and its kernels one by one, are not here.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from mycel._src.devices.machine import ms_memory_recycle as _ms_memory_recycle
from mycel._src.devices.runtime import synchronize
from mycel._src.devices.stream import (
    Event,
    Stream,
    communication_stream,
    current_stream,
    default_stream,
    set_cur_stream,
)
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.tensors.cells.cell import Cell as Cell_
from mycel._src.tensors.core.storage import frombuffer as _tensor_of
from mycel._src.tensors.core.tensor import Tensor as TensorPy
from mycel.common.initializer import _truncated
from mycel.communication.groups import release
from mycel.communication.groups import release as _finalize_comm
from mycel.communication.groups import release as finalize_hccl
from mycel.communication.steps import CommHandle
from mycel.compat.inner._c_expression.parameters import ParamInfo
from mycel.compat.inner._c_expression.settings import MSContext, ms_ctx_param
from mycel.compat.unserved import Group, served_on_request
from mycel.formats.encryption import is_encrypted
from mycel.mint.creation import empty as _empty_instance
from mycel.ops.operations.primitive import Primitive as Primitive_

__all__: list[str] = []

# Releases before 2.6 had this name for it.
Tensor = TensorPy

_PROFILES = "profiles are made by mindspore.profiler.profile"
_NO_CLUSTER = "belongs to the recovery of clusters of Ascend devices; there is one process on the CPU"
_COMPILER = "belongs to MindSpore's compiler of graphs; use mindspore.jit and mycel.explain"
_FAULTS = "watches the arithmetic of Ascend devices; use set_context(check_nan=True)"


def _framework_profiler_step_start() -> None:
    """Note that a step begins, which has no effect."""
    without_effect("_framework_profiler_step_start", _PROFILES)


def _framework_profiler_step_end() -> None:
    """Note that a step ended, which has no effect."""
    without_effect("_framework_profiler_step_end", _PROFILES)


def disable_multi_thread() -> None:
    """Keep MindSpore's core from using threads, which has no effect."""
    without_effect("disable_multi_thread", "set_context(runtime_num_threads=1) chooses the threads of kernels")


def update_pijit_default_config(**kwargs: Any) -> None:
    """Set options of the compiler of bytecode, which has no effect."""
    without_effect("update_pijit_default_config", "functions are compiled from their source")


def init_pipeline() -> None:
    """Prepare the compiler, which is always ready."""
    without_effect("init_pipeline", "the compiler is always ready")


def _wait_pipeline() -> None:
    """Wait for what runs in the background."""
    synchronize()


def reset_op_id() -> None:
    """Begin the numbers of operations in names of nodes anew, which has no effect."""
    without_effect("reset_op_id", "names of nodes come from the user's source")


def is_reboot_node() -> bool:
    """Return False: no cluster started this process again."""
    return False


def get_reboot_type() -> str:
    """Return "": no cluster started this process again."""
    return ""


def check_is_arf() -> bool:
    """Return False: no cluster recovers this process."""
    return False


def is_silent_detect_enable() -> bool:
    """Return False: nothing watches for silent faults of devices."""
    return False


def frombuffer(buffer: Any, dtype: Any, count: int = -1, offset: int = 0) -> TensorPy:
    """Return the numbers in a buffer as a tensor.

    `dtype` is their type, `count` how many to take (-1 for all) after `offset` bytes.
    """
    return _tensor_of(buffer, dtype=dtype, count=count, offset=offset)


def get_clock_time() -> int:
    """Return the time in nanoseconds."""
    return time.time_ns()


def get_clock_syscnt() -> int:
    """Return a counter of the machine in nanoseconds."""
    return time.perf_counter_ns()


def function_id(arg0: Any) -> int:
    """Return the identity of a function or object."""
    return id(arg0)


def current_stream_id() -> int:
    """Return the number of the current stream."""
    return int(current_stream().id)


def get_code_extra(arg0: Any) -> None:
    """Return None: nothing is compiled from bytecode."""


def jit_mode_pi_enable() -> bool:
    """Return False: functions are compiled from their source, not from bytecode."""
    return False


def jit_mode_pi_disable() -> bool:
    """Return False: functions are compiled from their source, not from bytecode."""
    return False


def get_hccl_rank_id() -> int:
    """Return the rank of this process: 0."""
    return 0


def get_hccl_rank_size() -> int:
    """Return the number of processes: 1."""
    return 1


def _is_cipher_file(arg0: str) -> bool:
    """Return whether a file is an encrypted checkpoint."""
    with open(arg0, "rb") as file:
        return is_encrypted(file)


def _random_normal(arg0: int, arg1: Any, arg2: float, arg3: float) -> None:
    """Fill an array with normal numbers: a seed, the array, the mean, the deviation."""
    arg1[...] = np.random.default_rng(arg0).normal(arg2, arg3, arg1.shape)


def _random_uniform(arg0: int, arg1: Any, arg2: float, arg3: float) -> None:
    """Fill an array with uniform numbers: a seed, the array, the lower and the upper bound."""
    arg1[...] = np.random.default_rng(arg0).uniform(arg2, arg3, arg1.shape)


def _truncated_normal(arg0: int, arg1: Any, arg2: float, arg3: float, arg4: float, arg5: float) -> None:
    """Fill an array with normal numbers between bounds.

    The arguments are a seed, the array, the lower and the upper bound, the mean, the deviation.
    """
    low, high = (arg2 - arg4) / arg5, (arg3 - arg4) / arg5
    drawn = _truncated(np.random.default_rng(arg0), arg1.size, low, high)
    arg1[...] = np.clip(drawn * arg5 + arg4, arg2, arg3).reshape(arg1.shape)


__getattr__ = served_on_request(
    "mindspore._c_expression",
    (
        Group(
            "copies blocks of a cache of attention between a device and the host; all memory is the host's",
            functions=("swap_cache(host, device, block_mapping, is_device_to_host)",),
        ),
        Group(
            "sets up a queue of batches on a device; iterate over the dataset, or use mindspore.data_sink",
            functions=("init_exec_dataset", "_set_dataset_mode_config(arg0)"),
        ),
        Group(
            _NO_CLUSTER,
            functions=(
                "_clear_snapshot_saving_flag()",
                "_get_optimzer_timestamps",
                "_get_snapshot_params",
                "_get_uce_mem_info",
                "_get_uce_process_strategy",
                "_is_snapshot_valid",
                "_pre_launch_send_recv",
                "_rebuild_group",
                "_reg_snapshot_params",
                "_repair_device",
                "_reset_error_state",
                "_reset_opt_event_info",
                "_reset_snapshot_state",
                "_set_init_iter",
                "_stop_device",
                "_tft_finish_record_threads",
                "_tft_sem_enable",
                "_tft_sem_post",
                "_tft_start_record_threads",
                "clean_tdt_channel",
                "set_is_arf",
                "set_is_reboot_node",
                "set_reboot_type",
                "send_recv",
                "tft_register_config",
                "set_cluster_exit_with_exception",
                "init_cluster",
                "init_hccl",
                "_init_cluster_with_store",
                "_init_hccl_with_store",
                "direct_copy_to_host",
            ),
            classes=("CollectiveManager()", "ParallelCommManager()", "TCPStoreClient()"),
        ),
        Group(
            _FAULTS,
            functions=(
                "get_sdc_detect_result()",
                "sdc_detect_start()",
                "sdc_detect_stop()",
                "stress_detect",
                "get_silent_detect_config",
                "get_silent_detect_feature_name",
                "is_silent_detect_with_checksum",
            ),
        ),
        Group(
            _COMPILER,
            functions=(
                "split_mindir",
                "split_dynamic_mindir",
                "update_func_graph_hyper_params",
                "dump_func_graph",
                "register_custom_pass",
                "register_custom_backend",
                "pi_jit_set_context",
            ),
            classes=("GraphExecutor_()", "JitExecutor_()", "PyNativeExecutor_()", "FuncGraph()", "CNode()"),
        ),
    ),
)
