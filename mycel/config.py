"""Process-wide settings: the context that `set_context` changes, and where the compiled-object cache lives."""

from __future__ import annotations

import os
import pathlib
import threading
from typing import Any

__all__ = [
    "GRAPH_MODE",
    "PYNATIVE_MODE",
    "STRICT",
    "COMPATIBLE",
    "LAX",
    "cache_directory",
    "get_context",
    "set_context",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT = 0
COMPATIBLE = 1
LAX = 2

_DEFAULTS: dict[str, Any] = {
    "mode": PYNATIVE_MODE,
    "device_target": "CPU",
    "device_id": 0,
    "jit_syntax_level": LAX,
    "max_call_depth": 1000,
    "runtime_num_threads": 0,
    "check_nan": False,
    "deterministic": "ON",
    "enable_graph_kernel": True,
    "save_graphs": False,
    "save_graphs_path": ".",
    "pynative_synchronize": True,
    "precompile_only": False,
    "enable_compile_cache": True,
    "compile_cache_path": "",
    "jit_config": {},
    "jit_enable_inplace_ops": True,
}
_NO_EFFECT = {
    "max_device_memory": "memory is taken from the system as needed",
    "variable_memory_max_size": "memory is taken from the system as needed",
    "mempool_block_size": "memory is taken from the system as needed",
    "memory_optimize_level": "buffers are always planned by liveness",
    "memory_offload": "there is one memory",
    "enable_dump": "there is no Ascend device to dump from",
    "save_dump_path": "there is no Ascend device to dump from",
    "env_config_path": "there is no Ascend runtime",
    "enable_reduce_precision": "types are kept as written",
    "ascend_config": "there is no Ascend device",
    "gpu_config": "this engine runs on the CPU",
    "aoe_tune_mode": "there is no Ascend device",
    "aoe_config": "there is no Ascend device",
    "auto_tune_mode": "there is no Ascend device",
    "check_bprop": "gradients are checked by construction",
    "grad_for_scalar": "gradients of scalars are always given",
    "graph_kernel_flags": "fusion is chosen by the compiler",
    "inter_op_parallel_num": "operations of a graph run in order, each on all threads",
    "disable_format_transform": "layouts are the compiler's choice",
    "op_timeout": "operations on the CPU are not timed out",
    "debug_level": "errors always show the user's source",
    "conv_allow_tf32": "this engine computes in the types as written",
    "matmul_allow_tf32": "this engine computes in the types as written",
    "exec_order": "operations run in program order",
    "support_binary": "source is read from the functions themselves",
}
_context: dict[str, Any] = dict(_DEFAULTS)
_lock = threading.Lock()
listeners: list[Any] = []


def set_context(**options: Any) -> None:
    """Change settings of the process, such as ``mode=GRAPH_MODE``.

    Options that exist in MindSpore for other hardware are accepted and logged as having no effect here.
    Raises ValueError for a name or value that does not exist.

    >>> import mycel as ms
    >>> ms.set_context(mode=ms.PYNATIVE_MODE)
    """
    from mycel.log import logger

    for name, value in options.items():
        if name in _NO_EFFECT:
            logger.info("set_context(%s=%r) has no effect: %s", name, value, _NO_EFFECT[name])
            _context[name] = value
            continue
        if name not in _DEFAULTS:
            known = ", ".join(sorted((*_DEFAULTS, *_NO_EFFECT)))
            raise ValueError(f"set_context: there is no option {name!r}; the options are {known}")
        if name == "mode" and value not in (GRAPH_MODE, PYNATIVE_MODE):
            raise ValueError(f"set_context: mode must be GRAPH_MODE (0) or PYNATIVE_MODE (1), not {value!r}")
        if name == "device_target" and value != "CPU":
            raise ValueError(f"set_context: device_target {value!r} is not available in this build; it runs on 'CPU'")
        if name == "jit_syntax_level" and value not in (STRICT, COMPATIBLE, LAX):
            raise ValueError(
                f"set_context: jit_syntax_level must be STRICT (0), COMPATIBLE (1) or LAX (2), not {value!r}"
            )
        if name == "runtime_num_threads" and (not isinstance(value, int) or value < 0):
            raise ValueError(f"set_context: runtime_num_threads must be a whole number, 0 for all cores, not {value!r}")
        with _lock:
            _context[name] = value
    for listener in listeners:
        listener(options)


def get_context(attr_key: str) -> Any:
    """The value of one setting; ValueError for a name that does not exist.

    >>> import mycel as ms
    >>> ms.get_context("device_target")
    'CPU'
    """
    if attr_key in _context:
        return _context[attr_key]
    if attr_key in _NO_EFFECT:
        return None
    raise ValueError(f"get_context: there is no option {attr_key!r}; the options are {', '.join(sorted(_DEFAULTS))}")


def cache_directory() -> pathlib.Path:
    """Where compiled objects are kept: MYCEL_CACHE, the `compile_cache_path` option, or the user's cache folder."""
    chosen = os.environ.get("MYCEL_CACHE") or _context["compile_cache_path"]
    if chosen:
        return pathlib.Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "mycel"
