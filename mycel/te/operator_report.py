"""Reports on operators: their loops, their schedule, and what runs for certain arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.loops.programs import Program
from mycel._src.engines.select import engine
from mycel.te.schedule_text import as_function

if TYPE_CHECKING:
    from mycel._src.engines.reports import Account, Footprint

__all__ = ["OperatorAccount"]


class OperatorAccount:
    """An account of an operator for arguments of certain types and sizes; `text` shows it.

    `program` has the loops as they were written and, as `program.plan`, as they are scheduled.
    `schedule` is the schedule as source, empty without one. `steps` has what runs, with loops,
    bytes and operations, `memory` the memory that it needs; `code` gives the kernels' code.
    """

    def __init__(self, program: Program, graph: Graph) -> None:
        self.program, self._graph = program, graph

    @property
    def schedule(self) -> str:
        """The schedule as the source of a function that can be used in its place."""
        plan = self.program.plan
        return "" if plan is None else as_function(self.program.name, plan.words, plan.reassociate)

    @property
    def steps(self) -> Account:
        """The steps that run."""
        return engine().account(self._graph)

    @property
    def memory(self) -> Footprint:
        """The memory at the peak."""
        return engine().footprint(self._graph)

    def code(self, assembly: bool = False) -> str:
        """Return the code of the kernels: LLVM's, or with `assembly` the processor's."""
        return self.steps.code(assembly)

    @property
    def text(self) -> str:
        """The loops, the schedule, the steps and the memory as readable text."""
        return "\n".join([str(self.program), self.steps.text(), self.memory.text()])

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__
