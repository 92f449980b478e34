"""Profilers: `mycel.profile`, the machine's limits, and MindSpore's profilers.

`mycel.profile` is `mycel.profiler.profiled.profile`; `profile` here is MindSpore's, which records
by steps.
"""

from __future__ import annotations

from mycel._src.foundation.public_names import listing as _listing
from mycel.profiler.limits import Machine as Machine
from mycel.profiler.limits import machine as machine
from mycel.profiler.mark import mstx as mstx
from mycel.profiler.monitor import DynamicProfilerMonitor as DynamicProfilerMonitor
from mycel.profiler.options import AicoreMetrics as AicoreMetrics
from mycel.profiler.options import ExportType as ExportType
from mycel.profiler.options import HostSystem as HostSystem
from mycel.profiler.options import ProfilerActivity as ProfilerActivity
from mycel.profiler.options import ProfilerLevel as ProfilerLevel
from mycel.profiler.options import _ExperimentalConfig as _ExperimentalConfig
from mycel.profiler.schedules import ProfilerAction as ProfilerAction
from mycel.profiler.schedules import schedule as schedule
from mycel.profiler.session import EnvProfiler as EnvProfiler
from mycel.profiler.session import Profiler as Profiler
from mycel.profiler.session import analyse as analyse
from mycel.profiler.session import profile as profile
from mycel.profiler.session import tensorboard_trace_handler as tensorboard_trace_handler

__dir__ = _listing(__name__)
