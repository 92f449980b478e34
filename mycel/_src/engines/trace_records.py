"""The records of a trace: runs of steps and of programs, and memory taken and given back.

They are the same for every engine.

Times are nanoseconds of the monotonic clock, as `time.monotonic_ns` gives them; threads are named
by `threading.get_ident`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.reports import ZERO_COST, Cost

__all__ = ["NESTING", "ArenaPart", "Event", "Move", "Part", "Run", "Trace", "TracedProgram", "TracedStep"]

# The kinds of steps that run others, which have events of their own.
NESTING = frozenset(("cond", "while", "call"))


class TracedStep:
    """The unit that a program runs at once; all its events share one object.

    `kind` is "kernel" (generated code), "dense" (a library's call), "host" (NumPy), "copy", "cond",
    "while", "call", "tape" or "batch" (several kernels at once); `nodes` are those that it
    computes. `called` is the function of a library that it calls, `title` its name where no node
    gives one; `alone` says that it is its program's only step.
    """

    program: TracedProgram
    kind: str
    nodes: tuple[Node, ...] = ()
    called: str = ""
    title: str = ""
    alone: bool = False

    @property
    def cost(self) -> Cost:
        """The bytes and operations of one run; zero for a step that runs other steps."""
        return ZERO_COST

    @property
    def threads(self) -> int:
        """The number of threads that a library's call uses.

        It is 1 for steps that the engine itself divides among threads, which are recorded as parts.
        """
        return 1

    @property
    def schedule(self) -> str:
        """The order and vectors of a kernel's loops; empty for other steps."""
        return ""


class ArenaPart(NamedTuple):
    """A value or scratch memory in an arena, with its bytes.

    The step is the one that writes the value, or that uses the scratch memory.
    """

    nbytes: int
    step: TracedStep
    scratch: bool


class TracedProgram:
    """A program; all its runs share one object."""

    name: str

    @property
    def results(self) -> Sequence[Node]:
        """The outputs that get memory of their own, in the order of allocation."""
        return ()

    def arena(self) -> list[ArenaPart]:
        """Return the values in the program's arena at the step of its peak, largest first."""
        return []


class Event(NamedTuple):
    """One run of one step; `inner` marks one inside another step's run in its thread."""

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
    """The share of one thread in a step that threads divided.

    `step` is None where its program is gone.
    """

    step: TracedStep | None
    begin: int
    end: int
    thread: int


class Move(NamedTuple):
    """A block of memory that was taken or given back.

    `node` is the one whose value it holds, where known. The size of a block given back may be
    missing.
    """

    taken: bool
    block: int
    time: int
    nbytes: int
    thread: int
    node: Node | None = None


class Trace:
    """The records of a trace, complete when it has ended; the base class has none."""

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
        """The shares of threads in the steps that they divided."""
        return ()

    @property
    def moves(self) -> Sequence[Move]:
        """The blocks of memory taken and given back."""
        return ()

    @property
    def missed(self) -> int:
        """The number of records without room, and of steps whose programs are gone."""
        return 0

    @property
    def threads(self) -> Sequence[int]:
        """The threads with records."""
        return ()

    @property
    def held(self) -> Sequence[tuple[TracedProgram, int]]:
        """The programs with memory of their own when the trace began, and its bytes."""
        return ()
