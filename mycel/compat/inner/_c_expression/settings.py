"""`MSContext`: the settings of the process by the numbers that MindSpore's core gives them."""

from __future__ import annotations

import enum
from typing import Any

from mycel._src.foundation.settings import config

__all__ = ["MSContext", "ms_ctx_param"]

ms_ctx_param = enum.IntEnum(
    "ms_ctx_param",
    """
    check_bprop enable_graph_kernel enable_reduce_precision enable_profiling save_graphs
    enable_parallel_split max_device_memory mempool_block_size mode device_target
    inter_op_parallel_num runtime_num_threads _graph_memory_max_size print_file_path
    profiling_options deterministic precision_mode jit_compile atomic_clean_policy matmul_allow_hf32
    conv_allow_hf32 op_precision_mode ge_options save_graphs_path enable_compile_cache
    compile_cache_path variable_memory_max_size device_id aoe_tune_mode aoe_job_type max_call_depth
    env_config_path graph_kernel_flags pynative_synchronize disable_format_transform
    memory_optimize_level op_timeout jit_syntax_level conv_fprop_algo conv_dgrad_algo
    conv_wgrad_algo conv_allow_tf32 recompute_comm_overlap matmul_grad_comm_overlap pp_1f1b_overlap
    recompute_allgather_overlap_fagrad matmul_allow_tf32 jit_level infer_boost enable_task_opt
    enable_grad_comm_opt enable_opt_shard_comm_opt compute_communicate_fusion_level
    dataset_broadcast_opt_level debug_level interleaved_matmul_comm interleaved_layernorm_comm
    bias_add_comm_swap enable_begin_end_inline_opt enable_concat_eliminate_opt
    enable_fused_cast_add_opt host_scheduling_max_threshold topo_order exec_order cur_step_num
    need_ckpt save_checkpoint_steps last_triggered_step hccl_watchdog
    enable_flash_attention_load_balance enable_allreduce_slice_to_reducescatter
    enable_interleave_split_concat_branch enable_interleave_parallel_branch
    enable_offloading_packed_experts op_debug_option
    """,
    start=0,
)
_STATE = ("cur_step_num", "need_ckpt", "save_checkpoint_steps", "last_triggered_step")
_state: dict[str, Any] = dict.fromkeys(_STATE, 0)


class MSContext:
    """The settings of the process: `set_context` and `get_context` by numbers of `ms_ctx_param`."""

    @staticmethod
    def get_instance() -> MSContext:
        """Return the one object with the settings."""
        return _CONTEXT

    def get_param(self, param: int) -> Any:
        """Return a setting; ValueError for one that only other devices have."""
        name = ms_ctx_param(param).name
        return _state[name] if name in _state else config.get_context(name)

    def set_param(self, param: int, value: Any) -> None:
        """Set a setting; ValueError for one that only other devices have, or for a wrong value."""
        name = ms_ctx_param(param).name
        if name in _state:
            _state[name] = value
        else:
            config.set_context(**{name: value})

    def set_device_target_inner(self, device_target: str) -> None:
        """Set the device that computes, as `set_context(device_target=...)` does."""
        config.set_context(device_target=device_target)

    def is_pkg_support_device(self, device_target: str) -> bool:
        """Return whether computations can run on a kind of device: on "CPU" only."""
        return device_target == "CPU"

    def get_ascend_soc_version(self) -> str:
        """Return "": there is no Ascend processor."""
        return ""

    def is_ascend_plugin_loaded(self) -> bool:
        """Return False: there is no Ascend processor."""
        return False

    def ascend_soc_supports_feature(self, feature: str) -> bool:
        """Return False: there is no Ascend processor."""
        return False

    def load_plugin_error(self) -> str:
        """Return "": there are no plugins for devices, so none failed to load."""
        return ""

    def get_backend_policy(self) -> str:
        """Return the name of what runs graphs: "ms"."""
        return "ms"

    def enable_dump_ir(self) -> bool:
        """Return True: graphs can be looked at, with `mycel.explain`."""
        return True


_CONTEXT = MSContext()
