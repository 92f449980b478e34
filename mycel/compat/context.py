"""`mindspore.context`: the settings of the process, and those of parallel training, which here runs
on one device.

Parallel settings are checked, kept and returned, so that programs written for clusters run
unchanged on one device; a mode that would distribute work is logged as having no effect. Numbers of
devices or stages that one device cannot have are errors.
"""

from __future__ import annotations

import copy
import difflib
from typing import Any

from mycel.base import arguments
from mycel.base.config import COMPATIBLE, GRAPH_MODE, LAX, PYNATIVE_MODE, STRICT, get_context, set_context
from mycel.base.log import logger
from mycel.base.notes import without_effect
from mycel.compat.parallel_values import check_value

__all__ = [
    "COMPATIBLE",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "STRICT",
    "ParallelMode",
    "get_algo_parameters",
    "get_auto_parallel_context",
    "get_context",
    "reset_algo_parameters",
    "reset_auto_parallel_context",
    "set_algo_parameters",
    "set_auto_parallel_context",
    "set_context",
]


class ParallelMode:
    """The ways to distribute training over devices.

    >>> ParallelMode.AUTO_PARALLEL
    'auto_parallel'
    """

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_SEARCH_MODES = ("recursive_programming", "dynamic_programming", "sharding_propagation")
_COMMUNICATION_MODES = ("all_group_parallel", "same_server_group_parallel", "no_group_parallel")
_fusion = {"mode": "auto", "config": None}
_DEFAULTS: dict[str, Any] = {
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "loss_repeated_mean": True,
    "pipeline_stages": 1,
    "auto_pipeline": False,
    "pipeline_result_broadcast": False,
    "pipeline_segments": 1,
    "auto_parallel_new_interface": False,
    "init_param_in_compile": True,
    "pipeline_config": {"pipeline_interleave": False, "pipeline_scheduler": "1f1b"},
    "parallel_mode": ParallelMode.STAND_ALONE,
    "search_mode": "recursive_programming",
    "auto_parallel_search_mode": "recursive_programming",
    "parameter_broadcast": False,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "group_ckpt_save_file": "",
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "force_fp32_communication": False,
    "parallel_optimizer_config": {},
    "grad_accumulation_step": 1,
    "all_reduce_fusion_config": [],
    "communi_parallel_mode": "all_group_parallel",
    "optimizer_weight_shard_size": -1,
    "optimizer_weight_shard_aggregated_save": False,
    "sharding_propagation": False,
    "enable_alltoall": False,
    "strategy_ckpt_config": {"load_file": "", "save_file": "", "only_trainable_params": True},
    "comm_fusion": {"openstate": True, "allreduce": _fusion, "allgather": _fusion, "reducescatter": _fusion},
    "dump_local_norm": False,
    "dump_local_norm_path": "",
    "dump_device_local_norm": False,
}
_ONE_DEVICE = {"device_num": 1, "global_rank": 0, "pipeline_stages": 1}
_CHOICES: dict[str, tuple[str, ...]] = {
    "parallel_mode": tuple(ParallelMode.MODE_LIST),
    "search_mode": _SEARCH_MODES,
    "auto_parallel_search_mode": _SEARCH_MODES,
    "communi_parallel_mode": _COMMUNICATION_MODES,
}
_ANY_KIND = ("dataset_strategy", "dump_local_norm")
_ALGORITHM: dict[str, Any] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}

_settings = copy.deepcopy(_DEFAULTS)
_algorithm = dict(_ALGORITHM)


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set options of parallel training, such as ``parallel_mode=ParallelMode.AUTO_PARALLEL``.

    They are kept but have no effect: work runs on one device.

    Raises ValueError for unknown names and values, and for counts that one device cannot have,
    TypeError for values of a wrong kind.

    >>> set_auto_parallel_context(parallel_mode=ParallelMode.AUTO_PARALLEL)
    >>> get_auto_parallel_context("parallel_mode")
    'auto_parallel'
    >>> reset_auto_parallel_context()
    """
    function = "set_auto_parallel_context"
    for name, value in kwargs.items():
        _check(function, _DEFAULTS, name, value)
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(f"{function}: {name} must be one of {', '.join(map(repr, _CHOICES[name]))}, not {value!r}")
        if name in _ONE_DEVICE and value != _ONE_DEVICE[name]:
            raise ValueError(
                f"{function}: {name}={value} is not possible: this process is alone, with one device; leave it out"
            )
        if name == "grad_accumulation_step" and value < 1:
            raise ValueError(f"{function}: grad_accumulation_step must be at least 1, not {value}")
        check_value(function, name, value)
        if name != "parallel_mode" and value != _DEFAULTS[name]:
            without_effect(f"{function}({name}=...)", "work runs on one device")
    _settings.update(copy.deepcopy(kwargs))
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode != ParallelMode.STAND_ALONE:
        logger.warning("set_auto_parallel_context: parallel_mode %r is remembered, and work runs on one device", mode)


def names() -> list[str]:
    """Return the names of the settings of parallel training."""
    return list(_DEFAULTS)


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return the value of one option of parallel training.

    Raises ValueError for an unknown name.
    """
    if attr_key in _DEFAULTS["pipeline_config"]:
        return _settings["pipeline_config"].get(attr_key, _DEFAULTS["pipeline_config"][attr_key])
    _check_name("get_auto_parallel_context", _DEFAULTS, attr_key)
    return copy.deepcopy(_settings[attr_key])


def reset_auto_parallel_context() -> None:
    """Reset all options of parallel training to their defaults."""
    _settings.update(copy.deepcopy(_DEFAULTS))


def set_algo_parameters(**kwargs: Any) -> None:
    """Set parameters of the search for parallel strategies, which one device does not need."""
    function = "set_algo_parameters"
    for name, value in kwargs.items():
        _check(function, _ALGORITHM, name, value)
        if name == "algo_approxi_epsilon" and not 0 < value <= 1:
            raise RuntimeError(f"{function}: algo_approxi_epsilon must be above 0 and at most 1, not {value!r}")
        if name == "tensor_slice_align_size":
            arguments.integer(function, name, value, 1, 1024)
        if value != _ALGORITHM[name]:
            without_effect(f"{function}({name}=...)", "there is one device to search strategies for")
    _algorithm.update(kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """Return one parameter of the search for parallel strategies.

    Raises ValueError for an unknown name.
    """
    _check_name("get_algo_parameters", _ALGORITHM, attr_key)
    return _algorithm[attr_key]


def reset_algo_parameters() -> None:
    """Reset the parameters of the search for parallel strategies to their defaults."""
    _algorithm.update(_ALGORITHM)


def _check_name(function: str, known: dict[str, Any], name: str) -> None:
    if name not in known:
        close = difflib.get_close_matches(str(name), known, n=3)
        advice = (
            f"did you mean {' or '.join(map(repr, close))}?" if close else f"the names are {', '.join(sorted(known))}"
        )
        raise ValueError(f"{function}: there is no setting {name!r}; {advice}")


def _check(function: str, known: dict[str, Any], name: str, value: Any) -> None:
    _check_name(function, known, name)
    kind = type(known[name])
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is float:
        fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    if name not in _ANY_KIND and not fits:
        raise TypeError(
            f"{function}: {name} must be of type {kind.__name__}, not {value!r} of type {type(value).__name__}"
        )
