"""The options of MindSpore's profiler.

Options of other hardware are accepted, and logged as having no effect here; most of the others ask
for things that are always noted.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger

__all__ = ["AicoreMetrics", "ExportType", "HostSystem", "ProfilerActivity", "ProfilerLevel", "told"]


class ProfilerLevel(Enum):
    """The amount to note; every level notes everything here."""

    LevelNone = "LevelNone"
    Level0 = "Level0"
    Level1 = "Level1"
    Level2 = "Level2"


class ProfilerActivity(Enum):
    """The devices to profile; here there is a CPU."""

    NPU = "NPU"
    GPU = "GPU"
    CPU = "CPU"


class AicoreMetrics(Enum):
    """The counters of an Ascend core, which do not exist here."""

    PipeUtilization = "PipeUtilization"
    ArithmeticUtilization = "ArithmeticUtilization"
    Memory = "Memory"
    MemoryL0 = "MemoryL0"
    MemoryUB = "MemoryUB"
    ResourceConflictRatio = "ResourceConflictRatio"
    L2Cache = "L2Cache"
    MemoryAccess = "MemoryAccess"
    AiCoreNone = "None"


class ExportType(Enum):
    """The form of the written files: text, which is always written, or a database, which is not."""

    Db = "db"
    Text = "text"


class HostSystem(Enum):
    """The parts of the system that MindSpore can watch on Ascend hosts."""

    CPU = "cpu"
    MEM = "mem"
    DISK = "disk"
    NETWORK = "network"
    OSRT = "osrt"


class _ExperimentalConfig:
    """Further options of `profile`; none has an effect here.

    `mstx` marks are noted in any case, and those of all domains (`mstx_domain_include`,
    `mstx_domain_exclude`). `profiler_level`, `data_simplification` and `export_type` choose details
    of Ascend profiles; `aic_metrics`, `l2_cache`, `sys_io`, `sys_interconnection` and `host_sys`
    counters of Ascend hardware.
    """

    def __init__(
        self,
        profiler_level: ProfilerLevel = ProfilerLevel.Level0,
        aic_metrics: AicoreMetrics = AicoreMetrics.AiCoreNone,
        l2_cache: bool = False,
        mstx: bool = False,
        data_simplification: bool = True,
        export_type: list[ExportType] | None = None,
        mstx_domain_include: list[str] | None = None,
        mstx_domain_exclude: list[str] | None = None,
        sys_io: bool = False,
        sys_interconnection: bool = False,
        host_sys: list[HostSystem] | None = None,
    ) -> None:
        self.profiler_level, self.aic_metrics, self.l2_cache, self.mstx = profiler_level, aic_metrics, l2_cache, mstx
        self.data_simplification, self.export_type = data_simplification, export_type
        self.mstx_domain_include, self.mstx_domain_exclude = mstx_domain_include, mstx_domain_exclude
        self.sys_io, self.sys_interconnection, self.host_sys = sys_io, sys_interconnection, host_sys


_CONFIG = tuple(_ExperimentalConfig().__dict__)
_NO_EFFECT: dict[str, str] = {
    "hbm_ddr": "there is no HBM of an Ascend device",
    "pcie": "there is no device behind PCIe",
    "parallel_strategy": "one process computes everything",
    "l2_cache": (
        "there is no L2 cache of an Ascend device; kernels are compared with the bandwidth of this machine's "
        "caches and memory instead"
    ),
    "hccl": "there is no communication between devices",
    "sys_io": "there are no network cards of an Ascend host",
    "sys_interconnection": "there is no interconnection of devices",
    "host_sys": "the host's counters are read by tools such as perf; what this process does is noted in any case",
    "mstx_domain_include": "marks of all domains are noted",
    "mstx_domain_exclude": "marks of all domains are noted",
}
_ALWAYS: dict[str, str] = {
    "with_stack": "the source line of every kernel is always noted",
    "profile_memory": "memory is always noted",
    "data_process": "waiting for data is always noted",
    "record_shapes": "what a kernel moves is always noted",
    "mstx": "marks are always noted",
    "profile_framework": "the phases of compilation are always noted",
    "timeline_limit": "",
    "op_time": "",
    "ascend_job_id": "",
    "data_simplification": "",
    "sync_enable": "",
    "profile_communication": "",
}
KNOWN = frozenset(
    (
        "activities",
        "profiler_level",
        "aic_metrics",
        "aicore_metrics",
        "export_type",
        "output_path",
        "start_profile",
        "schedule",
        "on_trace_ready",
        "experimental_config",
        *_NO_EFFECT,
        *_ALWAYS,
    )
)


def told(what: str, options: dict[str, Any], config: _ExperimentalConfig | None = None) -> None:
    """Check options and log which of them have no effect here, and why.

    Raises TypeError for one that does not exist or is of a wrong type.
    """
    given = dict(options)
    if config is not None:
        arguments.instance(what, "experimental_config", config, _ExperimentalConfig)
        given.update({name: getattr(config, name) for name in _CONFIG})
    unknown = sorted(set(given) - KNOWN)
    if unknown:
        raise TypeError(f"{what}: there is no option {unknown[0]!r}; the options are {', '.join(sorted(KNOWN))}")
    for activity in _members(what, "activities", given.get("activities"), ProfilerActivity):
        if activity is not ProfilerActivity.CPU:
            logger.warning("%s: ProfilerActivity.%s has no effect: this engine runs on the CPU", what, activity.name)
    metrics = given.get("aic_metrics", given.get("aicore_metrics"))
    if metrics not in (None, AicoreMetrics.AiCoreNone, -1):
        logger.warning("%s: aic_metrics has no effect: there is no Ascend core to count in", what)
    for kind in _members(what, "export_type", given.get("export_type"), ExportType):
        if kind is ExportType.Db:
            logger.warning("%s: ExportType.Db has no effect: results are written as JSON, CSV and HTML", what)
    for name, why in _NO_EFFECT.items():
        if given.get(name):
            logger.warning("%s: %s has no effect: %s", what, name, why)
    for name, why in _ALWAYS.items():
        if why and given.get(name):
            logger.info("%s: %s changes nothing: %s", what, name, why)


def _members(what: str, name: str, value: Any, kind: Any) -> Iterable[Any]:
    if value is None:
        return ()
    found = list(value) if isinstance(value, Iterable) else [value]
    for member in found:
        if not isinstance(member, kind):
            raise TypeError(f"{what}: {name} must hold members of {kind.__name__}, not {member!r}")
    return found
