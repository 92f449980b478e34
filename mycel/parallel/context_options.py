"""The values that options of `set_auto_parallel_context` take beyond their types, with MindSpore's
errors for others, and the form in which they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.sharding.layout import Layout

__all__ = ["FLAGS", "check_value"]

# Options of which any value is taken for its truth.
FLAGS = ("dump_local_norm", "dump_device_local_norm", "init_param_in_compile", "auto_parallel_new_interface")
_MOST_RANK = 4095
_SCHEDULERS = ("1f1b", "gpipe", "seqpipe", "seqvpp", "seqsmartvpp", "zero_bubble_v")
_OPTIMIZER = (
    "gradient_accumulation_shard",
    "parallel_optimizer_threshold",
    "optimizer_weight_shard_size",
    "optimizer_level",
)
_FILES = ("load_file", "save_file", "only_trainable_params")
_FUSED = ("allreduce", "allgather", "reducescatter")


def check_value(function: str, name: str, value: Any) -> Any:
    """Return the value of an option as it is kept; raise what MindSpore raises for others.

    `function` and `name` are the function and its option in errors.
    """
    check = _CHECKS.get(name)
    if check is not None:
        check(f"{function}: {name}", value)
    if name in FLAGS:
        return bool(value)
    if name == "optimizer_weight_shard_size":
        return value if value > 1 else -1
    return int(value) if name in ("device_num", "global_rank") else value


def _at_least_one(what: str, value: int) -> None:
    if value < 1:
        raise ValueError(f"{what} must be at least 1, not {value}")


def _rank(what: str, value: int) -> None:
    if not 0 <= value <= _MOST_RANK:
        raise ValueError(f"{what} must be in [0, {_MOST_RANK}], not {value}")


def _steps(what: str, value: int) -> None:
    _at_least_one(what, value)
    if value > 1:
        raise ValueError(f"{what} must be 1, not {value}: nn.GradAccumulationCell accumulates gradients")


def _known(what: str, given: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in given:
        if name not in names:
            raise ValueError(f"{what} has no entry {name!r}; its entries are {', '.join(names)}")


def _of_type(what: str, name: str, given: Mapping[str, Any], kind: type) -> None:
    value = given.get(name)
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool) and kind is not bool):
        raise TypeError(f"{what}[{name!r}] must be of type {kind.__name__}, not {value!r}")


def _pipeline(what: str, value: Mapping[str, Any]) -> None:
    _known(what, value, ("pipeline_interleave", "pipeline_scheduler"))
    _of_type(what, "pipeline_interleave", value, bool)
    for key in ("pipeline_interleave", "pipeline_scheduler"):
        if key not in value:
            raise KeyError(f"{what} lacks {key!r}")
    scheduler = value["pipeline_scheduler"]
    if scheduler not in _SCHEDULERS:
        raise ValueError(f"{what}['pipeline_scheduler'] must be one of {', '.join(_SCHEDULERS)}, not {scheduler!r}")
    if not value.get("pipeline_interleave") and scheduler != "1f1b":
        raise TypeError(f"{what}: without 'pipeline_interleave' the scheduler must be '1f1b', not {scheduler!r}")


def _optimizer(what: str, value: Mapping[str, Any]) -> None:
    _known(what, value, _OPTIMIZER)
    _of_type(what, "gradient_accumulation_shard", value, bool)
    _of_type(what, "parallel_optimizer_threshold", value, int)
    _of_type(what, "optimizer_weight_shard_size", value, int)
    size = value.get("optimizer_weight_shard_size", -1)
    if size < 1 and size != -1:
        raise ValueError(f"{what}['optimizer_weight_shard_size'] must be above 0, not {size}")
    if value.get("parallel_optimizer_threshold", 0) < 0:
        raise ValueError(f"{what}['parallel_optimizer_threshold'] must be at least 0")
    if value.get("optimizer_level", "level1") not in ("level1", "level2", "level3"):
        raise ValueError(f"{what}['optimizer_level'] must be 'level1', 'level2' or 'level3'")


def _files(what: str, value: Mapping[str, Any]) -> None:
    _known(what, value, _FILES)
    _of_type(what, "load_file", value, str)
    _of_type(what, "save_file", value, str)
    _of_type(what, "only_trainable_params", value, bool)


def _fusion(what: str, value: Mapping[str, Any]) -> None:
    for name, part in value.items():
        if name == "openstate":
            _of_type(what, name, value, bool)
            continue
        if name not in _FUSED:
            raise KeyError(f"{what} has no entry {name!r}; its entries are openstate, {', '.join(_FUSED)}")
        if not isinstance(part, dict):
            raise TypeError(f"{what}[{name!r}] must be a dict, not {part!r}")
        for key in ("mode", "config"):
            if key not in part:
                raise KeyError(f"{what}[{name!r}] lacks {key!r}")
        modes = ("auto", "size", "index") if name == "allreduce" else ("auto", "size")
        if part["mode"] not in modes:
            raise KeyError(f"{what}[{name!r}]['mode'] must be one of {', '.join(modes)}, not {part['mode']!r}")
        config = part["config"]
        if part["mode"] == "index":
            if not isinstance(config, list):
                raise TypeError(f"{what}[{name!r}]['config'] must be a list of indices, not {config!r}")
            _indices(f"{what}[{name!r}]['config']", config)
        elif part["mode"] == "size":
            if not isinstance(config, int):
                raise TypeError(f"{what}[{name!r}]['config'] must be an int, the size in MB, not {config!r}")
            if config <= 0:
                raise ValueError(f"{what}[{name!r}]['config'] must be above 0, not {config}")


def _batches(what: str, value: Any) -> None:
    if isinstance(value, str):
        if value not in ("full_batch", "data_parallel"):
            raise ValueError(f"{what} must be 'full_batch', 'data_parallel' or a tuple, not {value!r}")
        return
    if not isinstance(value, tuple):
        raise TypeError(f"{what} must be a str or a tuple, not {value!r}")
    layouts = bool(value) and isinstance(value[0], Layout)
    for strategy in value:
        if isinstance(strategy, Layout) is not layouts:
            raise TypeError(f"{what} must have tuples of integers only, or layouts only, not {value!r}")
        if not layouts and (not isinstance(strategy, tuple) or not all(isinstance(n, int) for n in strategy)):
            raise TypeError(f"{what}: each strategy must be a tuple of integers, not {strategy!r}")


def _indices(what: str, value: list[Any]) -> None:
    if not value:
        raise ValueError(f"{what} must not be empty")
    for index in value:
        if isinstance(index, bool) or not isinstance(index, int) or index < 0:
            raise TypeError(f"{what} must be a list of integers from 0 on, not {value!r}")
    if len(set(value)) != len(value):
        raise ValueError(f"{what} has an index twice: {value!r}")
    if sorted(value) != value:
        raise ValueError(f"{what} must be in ascending order, not {value!r}")


_CHECKS: dict[str, Callable[[str, Any], None]] = {
    "device_num": _at_least_one,
    "global_rank": _rank,
    "pipeline_stages": _at_least_one,
    "pipeline_segments": _at_least_one,
    "grad_accumulation_step": _steps,
    "pipeline_config": _pipeline,
    "parallel_optimizer_config": _optimizer,
    "strategy_ckpt_config": _files,
    "comm_fusion": _fusion,
    "dataset_strategy": _batches,
    "all_reduce_fusion_config": _indices,
}
