"""The native engine as the rest of Mycel sees it.

Its modules are loaded when they are first needed, so that importing Mycel stays fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.base import Entry, Repetition, Sized, program_made
from mycel._src.engines.host_engine import HostEngine
from mycel._src.engines.native.llvm.target import host, processor
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.threads import pool
from mycel._src.engines.profile_hook import KnownCode

if TYPE_CHECKING:
    from mycel._src.engines.reports import Account, Footprint
    from mycel._src.engines.trace_records import Trace

__all__ = ["NativeEngine"]


class NativeEngine(HostEngine):
    """The engine of generated code, compiled by LLVM, and a dense library."""

    name: ClassVar[str] = "native"

    # Programs.

    def claims(self, node: Node) -> bool:
        from mycel._src.engines.native.lowering.expand import is_claimed

        return is_claimed(node)

    def prepared(self, graph: Graph) -> Graph:
        from mycel._src.engines.native.program.compiling import prepared

        return prepared(graph)

    def compile(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Entry:
        program_made(self)
        from mycel._src.engines.native.program.compiling import compile_native

        return compile_native(graph, aliases).entry

    def sized(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Sized:
        program_made(self)
        from mycel._src.engines.native.program.symbolic_programs import Instances

        return Instances(graph, aliases)

    def repetition(self, entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
        from mycel._src.engines.native.program.repeat import repetition

        return repetition(entry, carried)

    # Reports.

    def host_steps(self, graph: Graph) -> list[tuple[Node, str]]:
        from mycel._src.engines.native.program.compiling import host_steps

        return host_steps(graph)

    def account(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
        from mycel._src.engines.native.report.account import account

        return account(graph, aliases)

    def footprint(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
        from mycel._src.engines.native.report.footprint import footprint

        return footprint(graph, aliases)

    def tracing(
        self, room: int | None = None, before_run: Callable[[], None] | None = None
    ) -> AbstractContextManager[Trace]:
        from mycel._src.engines.native.report.trace import tracing

        return tracing(room, before_run)

    # Memory.

    def release_arenas(self) -> None:
        from mycel._src.engines.native.program.program import release_arenas

        release_arenas()

    # The machine.

    @property
    def identity(self) -> str:
        return host().identity

    def describe(self) -> dict[str, Any]:
        from mycel._src.engines.native.report.engine_info import facts

        return facts()

    def check_environment(self) -> None:
        processor()

    @property
    def threads(self) -> int:
        return runtime().threads

    def set_threads(self, count: int) -> None:
        runtime().set_threads(count)

    def default_threads(self) -> int:
        return pool.default_threads()

    def sharing(self, count: int) -> Callable[[], Any] | None:
        return runtime().sharing(count)

    def known_code(self) -> KnownCode:
        from mycel._src.engines.native.runtime.profile_hook import KnownCode as NativeKnownCode

        return NativeKnownCode()
