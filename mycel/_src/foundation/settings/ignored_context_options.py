"""Options of MindSpore's `set_context` that are checked and have no effect here, and why.

They are those of MindSpore 2.10 and of releases from 1.5 on. A value of another type or out of
range raises what MindSpore raises.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from mycel._src.foundation import arguments

__all__ = ["OPTIONS", "Option", "checked"]


class Option(NamedTuple):
    """An option: its value before one is set, why it has no effect, and the values it takes.

    `kinds` are types, none of them for any; `choices` are values; `low` and `high` are bounds.
    `keys` are the entries of a dict with their values. `wrong` is raised for another type. `file`
    says that the value names a file that must be there.
    """

    default: Any
    why: str
    kinds: tuple[type, ...] = ()
    choices: tuple[Any, ...] = ()
    low: int | None = None
    high: int | None = None
    keys: Mapping[str, tuple[Any, ...]] | None = None
    wrong: type[Exception] = TypeError
    file: bool = False


_BOOL, _INT, _TEXT, _DICT = (bool,), (int,), (str,), (dict,)
_NO_ASCEND = "there is no Ascend device"
_CPU = "this engine runs on the CPU"
_MEMORY = "memory is taken from the system as needed"
_PROFILE = "profile with mycel.profile, or the command mycel profile"
_GRAPHS = "look at graphs with mycel.explain"
_LEVELS = {"jit_level": ("", "O0", "O1", "O2"), "infer_boost": ("on", "off")}
_OLDER_LEVELS = {
    "exc_mode": ("auto", "sink", "no_sink"),
    "jit_syntax_level": ("", "STRICT", "COMPATIBLE", "LAX"),
    "debug_level": ("RELEASE", "DEBUG"),
}

OPTIONS: dict[str, Option] = {
    "device_id": Option(0, "there is one device", _INT, low=0, high=4095),
    "max_call_depth": Option(1000, "calls nest as deep as Python's own", _INT, low=1),
    "deterministic": Option("ON", "results are always the same for the same inputs and threads", _TEXT, ("ON", "OFF")),
    "enable_graph_kernel": Option(True, "fusion is always on", _BOOL),
    "graph_kernel_flags": Option("", "fusion is chosen by the compiler", _TEXT),
    "save_graphs": Option(False, _GRAPHS, (bool, int), low=0, high=3),
    "save_graphs_path": Option(".", _GRAPHS, _TEXT),
    "pynative_synchronize": Option(True, "eager operations always run at once", _BOOL),
    "precompile_only": Option(False, "compile a cell without running it by its compile method", _BOOL),
    "jit_config": Option(
        {},
        "of its options only jit_syntax_level is used; the compiler needs no choice of the others",
        _DICT,
        keys={**_LEVELS, **_OLDER_LEVELS},
    ),
    "jit_level": Option("", "the compiler needs no choice of a level", _TEXT, wrong=RuntimeError),
    "infer_boost": Option("off", "the compiler needs no choice here", _TEXT, wrong=RuntimeError),
    "jit_enable_inplace_ops": Option(False, "x += y makes a new tensor in every mode", _BOOL),
    "variable_memory_max_size": Option(None, _MEMORY, _TEXT),
    "graph_memory_max_size": Option(None, _MEMORY, _TEXT),
    "mempool_block_size": Option(None, _MEMORY, _TEXT),
    "memory_optimize_level": Option(
        None, "buffers are always planned by liveness", _TEXT, ("O0", "O1"), wrong=ValueError
    ),
    "memory_offload": Option(
        None, "values stay in the engine's memory, mostly the host's", _TEXT, ("ON", "OFF"), wrong=ValueError
    ),
    "enable_dump": Option(False, "there is no Ascend device to dump from", _BOOL),
    "save_dump_path": Option(None, "there is no Ascend device to dump from", _TEXT),
    "env_config_path": Option("", "there is no Ascend runtime", _TEXT, file=True),
    "enable_reduce_precision": Option(None, "types are kept as written", _BOOL),
    "enable_auto_mixed_precision": Option(False, "networks are converted by amp.auto_mixed_precision", _BOOL),
    "enable_sparse": Option(False, "sparse tensors are always there", _BOOL),
    "ascend_config": Option({}, _NO_ASCEND, _DICT),
    "gpu_config": Option({}, _CPU, _DICT),
    "aoe_tune_mode": Option("", _NO_ASCEND, _TEXT, ("online", "offline")),
    "aoe_config": Option({}, _NO_ASCEND, _DICT, keys={"job_type": ("1", "2")}),
    "check_bprop": Option(False, "gradients are checked by construction", _BOOL),
    "grad_for_scalar": Option(None, "gradients of scalars are always given", _BOOL),
    "inter_op_parallel_num": Option(0, "operations of a graph run in order, each on all threads", _INT, low=0),
    "disable_format_transform": Option(False, "layouts are the compiler's choice", _BOOL),
    "op_timeout": Option(None, "operations on the CPU are not timed out", _INT, low=0),
    "debug_level": Option(None, "errors always show the user's source", _INT, (0, 1)),
    "conv_allow_tf32": Option(False, "this engine computes in the types as written", _BOOL, wrong=RuntimeError),
    "matmul_allow_tf32": Option(False, "this engine computes in the types as written", _BOOL, wrong=RuntimeError),
    "exec_order": Option(None, "operations run in program order", _TEXT, ("bfs", "dfs"), wrong=ValueError),
    "support_binary": Option(False, "source is read from the functions themselves", _BOOL),
    "enable_profiling": Option(False, _PROFILE, _BOOL, wrong=RuntimeError),
    "profiling_options": Option("", _PROFILE, _TEXT),
    "print_file_path": Option("", "what a program prints goes to standard output", _TEXT),
    "reserve_class_name_in_scope": Option(True, "names of nodes come from the user's source", _BOOL),
    "save_compile_cache": Option(False, "what is compiled is always kept", _BOOL),
    "load_compile_cache": Option(False, "what was compiled before is always used", _BOOL),
    "enable_parallel_split": Option(False, "there is one device", _BOOL, wrong=RuntimeError),
}
# Choices of the compiler for Ascend devices and clusters, which MindSpore takes with any value.
_COMPILER: dict[str, Any] = {
    "aoe_job_type": "2",
    "conv_fprop_algo": "normal",
    "conv_dgrad_algo": "normal",
    "conv_wgrad_algo": "normal",
    "recompute_comm_overlap": "",
    "matmul_grad_comm_overlap": "",
    "pp_1f1b_overlap": "",
    "recompute_allgather_overlap_fagrad": False,
    "enable_task_opt": False,
    "enable_grad_comm_opt": False,
    "enable_opt_shard_comm_opt": False,
    "compute_communicate_fusion_level": 0,
    "dataset_broadcast_opt_level": 0,
    "interleaved_matmul_comm": False,
    "interleaved_layernorm_comm": False,
    "bias_add_comm_swap": False,
    "enable_begin_end_inline_opt": False,
    "enable_concat_eliminate_opt": False,
    "enable_fused_cast_add_opt": False,
    "topo_order": "",
    "hccl_watchdog": True,
    "enable_flash_attention_load_balance": False,
    "enable_allreduce_slice_to_reducescatter": False,
    "enable_interleave_split_concat_branch": False,
    "enable_interleave_parallel_branch": False,
    "enable_offloading_packed_experts": True,
}
for _name, _value in _COMPILER.items():
    OPTIONS[_name] = Option(_value, "it is of the compiler for other devices")


def checked(name: str, value: Any) -> Any:
    """Return the value of an option, as `get_context` gives it.

    Raises TypeError or ValueError, or what MindSpore raises, for one that the option does not take.
    """
    option = OPTIONS[name]
    if name == "jit_config" and hasattr(value, "jit_config_dict"):
        return value
    if option.kinds and not isinstance(value, option.kinds):
        kinds = " or ".join(kind.__name__ for kind in option.kinds)
        raise arguments.wrong_type("set_context", name, f"of type {kinds}", value, option.wrong)
    if option.choices and value not in option.choices:
        wanted = f"one of {', '.join(map(repr, option.choices))}"
        raise arguments.wrong_value("set_context", name, wanted, value, ValueError)
    if option.low is not None:
        arguments.integer("set_context", name, value, option.low, option.high, flags=True, error=ValueError)
    for key, entry in (value if option.keys else {}).items():
        _check_entry(name, key, entry, option.keys or {})
    if option.file and value and not os.path.isfile(value):
        raise ValueError(f"set_context: {name}: there is no file {value!r}")
    return {True: 2, False: 0}.get(value, value) if name == "save_graphs" and isinstance(value, bool) else value


def _check_entry(name: str, key: str, entry: Any, keys: Mapping[str, tuple[Any, ...]]) -> None:
    if key not in keys:
        raise ValueError(f"set_context: {name} has no entry {key!r}; its entries are {', '.join(keys)}")
    if entry not in keys[key]:
        raise ValueError(
            f"set_context: {name}[{key!r}] must be one of {', '.join(map(repr, keys[key]))}, not {entry!r}"
        )
