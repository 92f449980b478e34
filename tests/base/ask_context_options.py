"""Store which values of options MindSpore's `set_context` takes: context_options.txt.

    python ask_context_options.py

Run with an interpreter that has MindSpore 2.10, in a folder that may be written to. Each line is a
call, and "taken" or the built-in class of the error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

VALUES: dict[str, list[Any]] = {
    "mode": [0, 1, 2, "x", True],
    "device_target": ["CPU", "x", 3],
    "device_id": [0, "a", -1, 5000],
    "save_graphs": [True, False, 0, 1, 3, 4, "x"],
    "save_graphs_path": ["graphs", 3],
    "enable_profiling": [True, 3],
    "profiling_options": ["training_trace", 3],
    "print_file_path": ["print", 3],
    "env_config_path": ["none", 3],
    "check_bprop": [True, 3, "x"],
    "max_device_memory": ["2GB", "x", 3],
    "variable_memory_max_size": ["2GB", "x", 3],
    "mempool_block_size": ["2GB", "x", 3],
    "enable_graph_kernel": [True, 3],
    "graph_kernel_flags": ["--opt_level=2", 3],
    "enable_reduce_precision": [True, 3],
    "enable_sparse": [True],
    "enable_auto_mixed_precision": [True],
    "enable_compile_cache": [False, True, 3, "x"],
    "compile_cache_path": ["kept", 3],
    "auto_tune_mode": ["NO_TUNE", "GA", "x"],
    "reserve_class_name_in_scope": [True, 3],
    "max_call_depth": [1000, 0, -1, "x", True],
    "pynative_synchronize": [True, 3],
    "runtime_num_threads": [1, 0, -1, "x"],
    "inter_op_parallel_num": [1, -1, "x"],
    "memory_optimize_level": ["O0", "O1", "x", 0],
    "deterministic": ["ON", "OFF", "x", True],
    "ascend_config": [{}, {"precision_mode": "force_fp16"}, {"x": 1}, 3],
    "gpu_config": [{}, {"conv_fprop_algo": "normal"}, {"x": 1}, 3],
    "jit_config": [{}, {"jit_level": "O0"}, {"jit_level": "x"}, {"x": 1}, {"infer_boost": "on"}, 3],
    "jit_syntax_level": [0, 1, 2, 3, "x"],
    "jit_level": ["O0"],
    "infer_boost": ["on"],
    "precompile_only": [True],
    "grad_for_scalar": [True],
    "enable_dump": [True],
    "save_dump_path": ["x"],
    "memory_offload": ["ON"],
    "exec_order": ["bfs", "dfs", "x", 3],
    "aoe_tune_mode": ["online", "offline", "x", 3],
    "aoe_config": [{}, {"job_type": "1"}, {"x": 1}, 3],
    "op_timeout": [900, -1, "x"],
    "support_binary": [True, 3],
    "conv_allow_tf32": [True, 3],
    "matmul_allow_tf32": [True, 3],
    "debug_level": [0, 1, 2, "x"],
    "disable_format_transform": [True, 3],
    "topo_order": [""],
    "foo": [1],
}


def outcome(ms: Any, name: str, value: Any) -> str:
    """What becomes of a call."""
    try:
        ms.set_context(**{name: value})
    except Exception as error:
        return next(kind.__name__ for kind in type(error).__mro__ if kind.__module__ == "builtins")
    return "taken"


if __name__ == "__main__":
    import mindspore

    lines = [
        f"set_context({name}={value!r}) -> {outcome(mindspore, name, value)}\n"
        for name, values in VALUES.items()
        for value in values
    ]
    Path(__file__).with_name("context_options.txt").write_text("".join(lines), encoding="utf-8")
