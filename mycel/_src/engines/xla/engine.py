"""The XLA engine as the rest of Mycel sees it: programs of jax, for processors and GPUs.

Its modules are loaded when they are first needed, and jax with them. The class itself may be made
where jax is not installed; what needs jax says then what to install.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines import buffers
from mycel._src.engines.base import Entry, MemoryAccount, Repetition, Sized, Spread, Stages, Together, program_made
from mycel._src.engines.host_engine import HostEngine
from mycel._src.engines.profile_hook import KnownCode
from mycel._src.engines.size_specialization import Specialized
from mycel._src.engines.xla import binding
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

if TYPE_CHECKING:
    from mycel._src.compiler.ir.sharding.mesh import Mesh
    from mycel._src.engines.reports import Account, Footprint
    from mycel._src.engines.trace_records import Trace

__all__ = ["XlaEngine"]


# Options of programs and threads of the native engine.
_WITHOUT_EFFECT = ("auto_tune_mode", "matrix_units", "max_device_memory", "runtime_num_threads", "winograd")
_said: set[tuple[str, str]] = set()


def _on_settings(options: Mapping[str, Any]) -> None:
    """Say once of each value of an option that it has no effect here."""
    for name in _WITHOUT_EFFECT:
        if name in options and (name, repr(options[name])) not in _said:
            _said.add((name, repr(options[name])))
            logger.warning("set_context(%s=%r) has no effect on the XLA engine's programs", name, options[name])


class XlaEngine(HostEngine):
    """Programs that XLA compiles for one kind of device, which jax knows."""

    name: ClassVar[str] = "xla"

    # Whether it is in force.

    def enter(self) -> None:
        """Raise ImportError without jax; make new buffers those of this engine."""
        if binding.version() is None:
            raise ImportError(binding.MISSING)
        from mycel._src.engines.xla.device_buffers import Held

        buffers.wrapping(Held)
        if _on_settings not in config.listeners:
            config.listeners.append(_on_settings)

    def use(self, target: str) -> None:
        """Compute on "CPU" or "GPU"; raise ImportError or RuntimeError where that cannot be."""
        binding.use(target)

    def leave(self) -> None:
        buffers.wrapping(None)
        config.listeners.remove(_on_settings)

    # Programs.

    def claims(self, node: Node) -> bool:
        from mycel._src.engines.xla.preparing import is_claimed

        return is_claimed(node)

    def prepared(self, graph: Graph) -> Graph:
        from mycel._src.engines.xla.preparing import prepared

        return prepared(graph)

    def compile(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Entry:
        program_made(self)
        from mycel._src.engines.xla.program import Program

        return Program(graph, aliases or {}).entry

    def sized(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Sized:
        program_made(self)
        return Specialized(self, graph, aliases)

    def repetition(self, entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
        from mycel._src.engines.xla.program import repetition

        return repetition(entry, carried)

    def synchronize(self) -> None:
        """Wait until all programs that were started are complete."""
        from mycel._src.engines.xla.device_buffers import wait

        wait()

    # Several devices.

    def meet(self, address: str) -> None:
        from mycel._src.engines.xla.multi_process import meet

        meet(address)

    def device_count(self) -> int:
        from mycel._src.engines.xla.multi_process import every

        return len(every())

    def own_devices(self) -> range:
        from mycel._src.engines.xla.multi_process import own

        return own()

    def together(self, graph: Graph, mesh: Mesh, aliases: Mapping[int, int] | None = None) -> Together:
        from mycel._src.engines.xla.spmd_programs import DeviceTogether

        program_made(self)
        return DeviceTogether(graph, mesh, aliases or {})

    def stages(self, stages: Sequence[tuple[Graph, Mesh, Mapping[int, int]]]) -> Stages:
        from mycel._src.engines.xla.stage_programs import DeviceStages

        program_made(self)
        return DeviceStages(stages)

    def spread(self, mesh: Mesh, parts: Sequence[Any]) -> Spread:
        from mycel._src.engines.xla.spmd_programs import spread

        return spread(mesh, parts)

    # Reports.

    def host_steps(self, graph: Graph) -> list[tuple[Node, str]]:
        from mycel._src.engines.xla.reports import host_steps

        return host_steps(graph)

    def account(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
        from mycel._src.engines.xla.reports import account

        return account(graph, aliases)

    def footprint(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
        from mycel._src.engines.xla.reports import footprint

        return footprint(graph, aliases)

    def tracing(
        self, room: int | None = None, before_run: Callable[[], None] | None = None
    ) -> AbstractContextManager[Trace]:
        from mycel._src.engines.reference.trace import tracing

        return tracing(room, before_run)

    # Memory.

    def memory(self) -> MemoryAccount:
        from mycel._src.engines.xla.device_buffers import account

        return account()

    def reset_peak(self, *, allocated: bool = False, reserved: bool = False) -> None:
        from mycel._src.engines.xla.device_buffers import reset_peak

        super().reset_peak(allocated=allocated, reserved=reserved)
        if allocated:
            reset_peak()

    # The machine.

    @property
    def identity(self) -> str:
        return f"jax {binding.version()} on {binding.target()}"

    def describe(self) -> dict[str, Any]:
        found = binding.version()
        return {"uses": binding.MISSING if found is None else f"jax {found} on {binding.target()}"}

    @property
    def threads(self) -> int:
        return self.default_threads()

    def set_threads(self, count: int) -> None:
        """Raise ValueError for another number than XLA's own, which is fixed when it starts."""
        if count not in (0, self.default_threads()):
            raise ValueError(
                f"XLA computes on {self.default_threads()} threads from its start on, not on {count}; "
                "start the process on so many processors, as with taskset"
            )

    def default_threads(self) -> int:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

    def sharing(self, count: int) -> Callable[[], Any] | None:
        return None

    def known_code(self) -> KnownCode:
        return KnownCode()
