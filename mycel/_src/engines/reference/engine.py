"""The reference engine as the rest of Mycel sees it: NumPy, one operation at a time.

Its modules are loaded when they are first needed. It implements the whole interface of engines, so
that all code above engines can be tested with it. It computes on one thread, fuses nothing and
keeps nothing in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.base import Entry, Repetition, Sized, program_made
from mycel._src.engines.host_engine import HostEngine
from mycel._src.engines.profile_hook import KnownCode
from mycel._src.engines.size_specialization import Specialized

if TYPE_CHECKING:
    from mycel._src.engines.reports import Account, Footprint
    from mycel._src.engines.trace_records import Trace

__all__ = ["ReferenceEngine"]


class ReferenceEngine(HostEngine):
    """NumPy, one operation at a time: the oracle of the tests."""

    name: ClassVar[str] = "reference"

    # Programs.

    def claims(self, node: Node) -> bool:
        return node.prim is not None and node.prim.reference is not None

    def prepared(self, graph: Graph) -> Graph:
        return graph

    def compile(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Entry:
        program_made(self)
        from mycel._src.engines.reference.program import Program

        return Program(graph, aliases or {}).entry

    def sized(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Sized:
        program_made(self)
        return Specialized(self, graph, aliases)

    def repetition(self, entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
        from mycel._src.engines.reference.program import repetition

        return repetition(entry, carried)

    # Reports.

    def host_steps(self, graph: Graph) -> list[tuple[Node, str]]:
        """Return an empty list, as all programs of this engine run in NumPy."""
        return []

    def account(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Account:
        from mycel._src.engines.reference.reports import account

        return account(graph)

    def footprint(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
        from mycel._src.engines.reference.reports import footprint

        return footprint(graph, aliases)

    def tracing(
        self, room: int | None = None, before_run: Callable[[], None] | None = None
    ) -> AbstractContextManager[Trace]:
        from mycel._src.engines.reference.trace import tracing

        return tracing(room, before_run)

    # The machine.

    @property
    def identity(self) -> str:
        return f"numpy {np.__version__}"

    def describe(self) -> dict[str, Any]:
        return {"uses": f"numpy {np.__version__}"}

    @property
    def threads(self) -> int:
        return 1

    def set_threads(self, count: int) -> None:
        """Raise ValueError for more than one thread."""
        if count > 1:
            raise ValueError(
                f"the reference engine computes on one thread, not on {count}; the native engine does on many"
            )

    def default_threads(self) -> int:
        return 1

    def sharing(self, count: int) -> Callable[[], Any] | None:
        return None

    def known_code(self) -> KnownCode:
        return KnownCode()
