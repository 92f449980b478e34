"""Settings of parallel training, as one immutable record that all modules read.

`PROCESS.settings` are those of `set_auto_parallel_context`. A network under `AutoParallel` has its
own, which are in force while it is called or compiled (`in_force`). Records never change: a setting
is changed by putting another record in its place. What was compiled is good for one `plan`: the
record in force where operators are divided among devices, and None elsewhere.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AUTO",
    "DATA",
    "HYBRID",
    "PROCESS",
    "SEMI_AUTO",
    "STAND_ALONE",
    "ParallelSettings",
    "current",
    "in_force",
    "plan",
]

STAND_ALONE, DATA, HYBRID = "stand_alone", "data_parallel", "hybrid_parallel"
SEMI_AUTO, AUTO = "semi_auto_parallel", "auto_parallel"


def _fusion() -> dict[str, Any]:
    kinds = ("allreduce", "allgather", "reducescatter")
    return {"openstate": True, **{k: {"mode": "auto", "config": None} for k in kinds}}


def _files() -> dict[str, Any]:
    return {"load_file": "", "save_file": "", "only_trainable_params": True}


def _pipeline() -> dict[str, Any]:
    return {"pipeline_interleave": False, "pipeline_scheduler": "1f1b"}


@dataclass(frozen=True)
class ParallelSettings:
    """The options of parallel training under MindSpore's names, with its defaults.

    `operator_strategy_load` and `operator_strategy_save` are the files of
    `set_op_strategy_config`.

    >>> ParallelSettings(parallel_mode=SEMI_AUTO, device_num=8).dividing
    8
    """

    parallel_mode: str = STAND_ALONE
    device_num: int = 1
    global_rank: int = 0
    gradients_mean: bool = False
    gradient_fp32_sync: bool = True
    loss_repeated_mean: bool = True
    pipeline_stages: int = 1
    auto_pipeline: bool = False
    pipeline_result_broadcast: bool = False
    pipeline_segments: int = 1
    pipeline_config: Mapping[str, Any] = field(default_factory=_pipeline)
    search_mode: str = "recursive_programming"
    sharding_propagation: bool = False
    parameter_broadcast: bool = False
    strategy_ckpt_load_file: str = ""
    strategy_ckpt_save_file: str = ""
    strategy_ckpt_config: Mapping[str, Any] = field(default_factory=_files)
    group_ckpt_save_file: str = ""
    full_batch: bool = False
    dataset_strategy: Any = DATA
    enable_parallel_optimizer: bool = False
    parallel_optimizer_config: Mapping[str, Any] = field(default_factory=dict)
    optimizer_weight_shard_size: int = -1
    optimizer_weight_shard_aggregated_save: bool = False
    force_fp32_communication: bool = False
    grad_accumulation_step: int = 1
    all_reduce_fusion_config: tuple[int, ...] = ()
    comm_fusion: Mapping[str, Any] = field(default_factory=_fusion)
    communi_parallel_mode: str = "all_group_parallel"
    enable_alltoall: bool = False
    auto_parallel_new_interface: bool = False
    init_param_in_compile: bool = True
    dump_local_norm: bool = False
    dump_local_norm_path: str = ""
    dump_device_local_norm: bool = False
    transformer_opt: str | None = None
    operator_strategy_load: str = ""
    operator_strategy_save: str = ""

    def __hash__(self) -> int:
        return hash((self.parallel_mode, self.device_num, self.global_rank, self.pipeline_stages))

    @property
    def dividing(self) -> int | None:
        """The number of devices among which operators are divided; None where they are whole, which
        they are on one device.
        """
        return self.device_num if self.parallel_mode in (SEMI_AUTO, AUTO) and self.device_num > 1 else None

    def replaced(self, **changes: Any) -> ParallelSettings:
        """Return a record with other values; this one where nothing changes."""
        made = dataclasses.replace(self, **changes)
        return self if made == self else made


class _Process:
    """The settings of the process, with their plan; `given` are the names that the program set."""

    given: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.settings = ParallelSettings()

    @property
    def settings(self) -> ParallelSettings:
        return self._settings

    @settings.setter
    def settings(self, value: ParallelSettings) -> None:
        self._settings = value
        self.plan = None if value.dividing is None else value


class _Local(threading.local):
    settings: ParallelSettings | None = None


PROCESS = _Process()
_local = _Local()


def current() -> ParallelSettings:
    """Return the settings in force in this thread."""
    return _local.settings or PROCESS.settings


def plan() -> ParallelSettings | None:
    """Return the settings in force in this thread if operators are divided by them, else None."""
    own = _local.settings
    if own is None:
        return PROCESS.plan
    return None if own.dividing is None else own


@contextmanager
def in_force(settings: ParallelSettings | None) -> Iterator[None]:
    """Put settings in force in this thread for a block; None for those of the process."""
    before, _local.settings = _local.settings, settings
    try:
        yield
    finally:
        _local.settings = before
