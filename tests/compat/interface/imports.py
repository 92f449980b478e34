"""Write `mycel/compat/imports.json` from the tables here: which names of MindSpore's modules are
imported, and from where.

    python imports.py
"""

from __future__ import annotations

import json
from pathlib import Path

# Homes of objects that do not say where they are from.
HOMES = {
    "_pynative_executor _cell_graph_executor _no_grad cells_compile_cache flops_collection": "mindspore.common.api",
    "tensor_operator_registry": "mindspore.common._register_for_tensor",
    "RowTensorInner": "mindspore.common.sparse_tensor",
    "hifloat8 qint4x2 _null _NullType": "mindspore.common.dtype",
    "np_dtype_valid": "mindspore.common.dtype",
    "_DEFAULT_JIT_CONFIG ARG_SPECIFIED TOTAL_ARG_LEN": "mindspore.common.api",
    "create_amp_strategy push_amp_strategy pop_amp_strategy get_curr_amp_strategy": "mindspore._c_expression.amp",
    "_framework_profiler_step_start _framework_profiler_step_end reset_op_id": "mindspore._c_expression",
    "is_reboot_node get_clock_syscnt init_pipeline finalize_hccl clean_tdt_channel": "mindspore._c_expression",
    "_get_optimzer_timestamps _get_snapshot_params _is_snapshot_valid set_is_arf": "mindspore._c_expression",
    "_reset_error_state _is_cipher_file init_exec_dataset _wait_pipeline": "mindspore._c_expression",
    "init_cluster init_hccl _init_cluster_with_store _init_hccl_with_store": "mindspore._c_expression",
    "split_mindir split_dynamic_mindir dump_func_graph _set_dataset_mode_config": "mindspore._c_expression",
    "update_func_graph_hyper_params set_cluster_exit_with_exception": "mindspore._c_expression",
    "reciprocal grad_scale shard_grad_scale tensor_grad_scale_pipeline": "mindspore.nn.wrap.loss_scale",
    "tensor_shard_grad_scale_pipeline": "mindspore.nn.wrap.loss_scale",
    "cell_attr_register": "mindspore.nn.cell",
    "twice": "mindspore._checkparam",
    "jit": "mindspore",
    "jit_class": "mindspore",
    "Layout": "mindspore.parallel",
    "_is_role_sched DEVICE_TO_BACKEND": "mindspore.communication._comm_helper",
    "_create_group_helper _destroy_group_helper _get_comm_name_helper": "mindspore.communication._comm_helper",
    "_get_group_rank_from_world_rank_helper _get_group_ranks": "mindspore.communication._comm_helper",
    "_get_group_rank_from_world_rank_from_cache_helper": "mindspore.communication._comm_helper",
    "_get_local_rank_helper _get_local_size_helper _get_rank_helper": "mindspore.communication._comm_helper",
    "_get_size_helper _get_world_rank_from_group_rank_helper": "mindspore.communication._comm_helper",
    "is_initialized": "mindspore.context",
    "is_shape_unknown get_func load_lib": "mindspore.common._utils",
    "PluginEnum": "mindspore.train.summary.enums",
    "_check_prefix": "mindspore.train.serialization",
}
HERE = Path(__file__).resolve().parent
TARGET = HERE.parents[2] / "mycel" / "compat" / "imports.json"


def tables() -> dict[str, dict[str, list[str]]]:
    """All modules of all tables."""
    return {m: names for path in sorted(HERE.glob("*.json")) for m, names in json.loads(path.read_text()).items()}


def content() -> str:
    """The text of the file."""
    found: dict[str, dict[str, list[str]]] = {}
    known = {name: f"{home}.{name}" for names, home in HOMES.items() for name in names.split()}
    known["_executor"] = "mindspore.common.api._cell_graph_executor"
    for module, names in sorted(tables().items()):
        for name, (kind, _, home) in sorted(names.items()):
            home = home or known.get(name, "")
            if home and home.rpartition(".")[0] != module:
                owner, _, there = ("", "", home) if kind == "module" else home.rpartition(".")
                entry = name if there == name else f"{name}={there}"
                found.setdefault(module, {}).setdefault(owner, []).append(entry)
    joined = {module: {home: " ".join(n) for home, n in homes.items()} for module, homes in found.items()}
    return json.dumps(joined, indent=0, sort_keys=True) + "\n"


if __name__ == "__main__":
    TARGET.write_text(content())
