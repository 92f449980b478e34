"""What a trace holds: the steps of programs that ran, their runs, and the memory that was taken and
given back, whatever engine ran them.

Times are nanoseconds of the monotonic clock, as `time.monotonic_ns` gives them; threads are named
by `threading.get_ident`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

from mycel.engines.reports import ZERO_COST, Cost
from mycel.ir.graph import Node

__all__ = ["NESTING", "ArenaPart", "Event", "Move", "Part", "Run", "Trace", "TracedProgram", "TracedStep"]

# The kinds of steps that run others, which have events of their own.
NESTING = frozenset(("cond", "while", "call"))


class TracedStep:
    """What a program does at one go, the same object for all its events.

    `kind` is "kernel" (generated code), "dense" (a library's call), "host" (NumPy), "copy", "cond",
    "while", "call", "tape" or "batch" (several kernels at once); `nodes` are those that it
    computes; `called` is what it asks of a library, `title` what it is called where no node tells;
    `alone` says that its program does nothing else.
    """

    program: TracedProgram
    kind: str
    nodes: tuple[Node, ...] = ()
    called: str = ""
    title: str = ""
    alone: bool = False

    @property
    def cost(self) -> Cost:
        """What one run moves and computes itself; nothing for what runs other steps."""
        return ZERO_COST

    @property
    def threads(self) -> int:
        """The threads that a library's call is given.

        1 for what an engine shares out itself, whose threads are noted as parts.
        """
        return 1

    @property
    def schedule(self) -> str:
        """How the loops of a kernel run; empty for what is no kernel of loops."""
        return ""


class ArenaPart(NamedTuple):
    """What lies in an arena: its bytes, and the step that writes it; where it is scratch memory,
    the step that uses it.
    """

    nbytes: int
    step: TracedStep
    scratch: bool


class TracedProgram:
    """A program, the same object for all its runs."""

    name: str

    @property
    def results(self) -> Sequence[Node]:
        """The outputs that get memory of their own, in the order in which it is taken."""
        return ()

    def arena(self) -> list[ArenaPart]:
        """Return what lies in the program's arena at the step when most of it is in use, the
        largest first.
        """
        return []


class Event(NamedTuple):
    """One run of one step; `inner` says that it ran inside of another one of its thread."""

    step: TracedStep
    begin: int
    end: int
    inner: bool = False
    thread: int = 0


class Run(NamedTuple):
    """One run of one program."""

    program: TracedProgram
    begin: int
    end: int
    thread: int


class Part(NamedTuple):
    """What one thread did of a step that was shared out.

    `step` is None where its program is gone.
    """

    step: Optional[TracedStep]
    begin: int
    end: int
    thread: int


class Move(NamedTuple):
    """A block of memory that was taken or given back.

    `node` is whose value it holds, where that is known. A block that is given back may have no
    size.
    """

    taken: bool
    block: int
    time: int
    nbytes: int
    thread: int
    node: Optional[Node] = None


class Trace:
    """What was noted, complete when the trace has ended; this one is empty."""

    @property
    def events(self) -> Sequence[Event]:
        """The runs of steps, in order of their end."""
        return ()

    @property
    def runs(self) -> Sequence[Run]:
        """The runs of programs, in order of their end."""
        return ()

    @property
    def parts(self) -> Sequence[Part]:
        """What threads did of steps that were shared out."""
        return ()

    @property
    def moves(self) -> Sequence[Move]:
        """The memory that was taken and given back."""
        return ()

    @property
    def missed(self) -> int:
        """The records for which there was no room, and the steps whose programs are gone."""
        return 0

    @property
    def threads(self) -> Sequence[int]:
        """The threads that anything was noted of."""
        return ()

    @property
    def held(self) -> Sequence[tuple[TracedProgram, int]]:
        """The programs that had memory of their own when the trace began, and its bytes."""
        return ()
