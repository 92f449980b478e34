"""`mindspore.context`: the settings of the process, and those of parallel training.

Parallel settings are checked as MindSpore checks them, and kept in one record
(`foundation.settings.parallel_settings`), so that programs written for clusters run on one device
too, where what has no effect is logged once.
"""

from __future__ import annotations

import copy
import dataclasses
import difflib
from typing import Any

from mycel._src.compiler.ir.sharding.layout import Layout
from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import parallel_settings
from mycel._src.foundation.settings.config import (
    COMPATIBLE,
    GRAPH_MODE,
    LAX,
    PYNATIVE_MODE,
    STRICT,
    get_context,
    set_context,
)
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import PROCESS, ParallelSettings
from mycel._src.staging.distributed.parallel_modes import WITH_EFFECT, begin, device_count
from mycel.parallel.context_options import FLAGS, check_value
from mycel.train import parameter_slices as _rank_parts  # noqa: F401  which writes strategy files

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

    STAND_ALONE = parallel_settings.STAND_ALONE
    DATA_PARALLEL = parallel_settings.DATA
    HYBRID_PARALLEL = parallel_settings.HYBRID
    SEMI_AUTO_PARALLEL = parallel_settings.SEMI_AUTO
    AUTO_PARALLEL = parallel_settings.AUTO
    MODE_LIST = [STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL]


_SEARCH_MODES = ("recursive_programming", "dynamic_programming", "sharding_propagation")
_COMMUNICATION_MODES = ("all_group_parallel", "same_server_group_parallel", "no_group_parallel")
_KNOWN = {
    field.name: getattr(ParallelSettings(), field.name)
    for field in dataclasses.fields(ParallelSettings)
    if field.name not in ("transformer_opt", "operator_strategy_load", "operator_strategy_save")
}
_DEFAULTS: dict[str, Any] = {**_KNOWN, "auto_parallel_search_mode": "recursive_programming"}
_DEFAULTS["all_reduce_fusion_config"] = []
_CHOICES: dict[str, tuple[str, ...]] = {
    "parallel_mode": tuple(ParallelMode.MODE_LIST),
    "search_mode": _SEARCH_MODES,
    "auto_parallel_search_mode": _SEARCH_MODES,
    "communi_parallel_mode": _COMMUNICATION_MODES,
}
_ANY_KIND = ("dataset_strategy", *FLAGS)
_INTEGERS = ("device_num", "global_rank")  # of which True is one
_ALGORITHM: dict[str, Any] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}

_algorithm = dict(_ALGORITHM)


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set options of parallel training, such as ``parallel_mode=ParallelMode.AUTO_PARALLEL``.

    With a `device_num` above 1 and the mode "semi_auto_parallel" or "auto_parallel" graphs that are
    compiled record which operators are divided how. Raises ValueError for unknown names and values,
    TypeError for values of a wrong kind, KeyError for entries that are missing.

    >>> set_auto_parallel_context(parallel_mode=ParallelMode.AUTO_PARALLEL)
    >>> get_auto_parallel_context("parallel_mode")
    'auto_parallel'
    >>> reset_auto_parallel_context()
    """
    # Other programs need not load what divides.
    from mycel._src.staging.distributed import cell_partition  # noqa: F401  which tells how Cells are divided

    function = "set_auto_parallel_context"
    changes: dict[str, Any] = {}
    for name, value in kwargs.items():
        _check(function, _DEFAULTS, name, value)
        if name in _CHOICES and value not in _CHOICES[name]:
            raise ValueError(f"{function}: {name} must be one of {', '.join(map(repr, _CHOICES[name]))}, not {value!r}")
        checked = check_value(function, name, value)
        if name != "parallel_mode" and checked != _DEFAULTS[name] and not (name in WITH_EFFECT and device_count() > 1):
            without_effect(f"{function}({name}=...)", "work runs on one device")
        _enter(changes, name, copy.deepcopy(checked))
    PROCESS.given = PROCESS.given | set(kwargs)
    if "device_num" not in PROCESS.given:
        changes["device_num"] = device_count()
    PROCESS.settings = PROCESS.settings.replaced(**changes)
    if PROCESS.settings.dividing is not None:
        begin()
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode != ParallelMode.STAND_ALONE and device_count() == 1:
        logger.warning("set_auto_parallel_context: parallel_mode %r is remembered, and work runs on one device", mode)


def _enter(changes: dict[str, Any], name: str, value: Any) -> None:
    """Enter the changes of the record that setting an option makes."""
    known = PROCESS.settings
    if name == "auto_parallel_search_mode":
        name = "search_mode"
    elif name == "full_batch":
        changes["dataset_strategy"] = "full_batch" if value else "data_parallel"
    elif name == "dataset_strategy":
        changes["full_batch"] = value == "full_batch"
    elif name in ("comm_fusion", "strategy_ckpt_config"):
        value = {**getattr(known, name), **value}
    elif name == "all_reduce_fusion_config":
        value = tuple(value)
    if name == "parallel_optimizer_config" and "optimizer_weight_shard_size" in value:
        changes["optimizer_weight_shard_size"] = value["optimizer_weight_shard_size"]
    changes[name] = value


def names() -> list[str]:
    """Return the names of the settings of parallel training."""
    return list(_DEFAULTS)


def get_auto_parallel_context(attr_key: str) -> Any:
    """Return the value of one option of parallel training.

    Raises ValueError for an unknown name.
    """
    pipeline = _KNOWN["pipeline_config"]
    if attr_key in pipeline:
        return PROCESS.settings.pipeline_config.get(attr_key, pipeline[attr_key])
    _check_name("get_auto_parallel_context", _DEFAULTS, attr_key)
    name = "search_mode" if attr_key == "auto_parallel_search_mode" else attr_key
    value = getattr(PROCESS.settings, name)
    if name == "all_reduce_fusion_config":
        return list(value)
    if name == "dataset_strategy" and isinstance(value, tuple) and not any(isinstance(v, Layout) for v in value):
        return [list(map(int, v)) for v in value]
    return copy.deepcopy(value)


def reset_auto_parallel_context() -> None:
    """Reset all options of parallel training to their defaults."""
    PROCESS.settings = PROCESS.settings.replaced(**{k: v for k, v in vars(ParallelSettings()).items()})
    PROCESS.given = frozenset()


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
    if name in _INTEGERS:
        fits = isinstance(value, int)
    if name not in _ANY_KIND and not fits:
        raise TypeError(
            f"{function}: {name} must be of type {kind.__name__}, not {value!r} of type {type(value).__name__}"
        )
