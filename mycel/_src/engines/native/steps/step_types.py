"""Step types: the actions of a native program, one after another, as data.

Lowering makes them, `program` orders them and encodes them for the runtime, and `report` estimates
their cost. The action of a step is an object of one of the classes in `Action`, by which code
distinguishes steps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Buffer, Nest
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.onednn.dense_call import DenseCall

__all__ = [
    "Action",
    "Batch",
    "Call",
    "Copy",
    "HostCall",
    "Lowered",
    "Nested",
    "Poison",
    "Step",
    "Tape",
    "flat",
    "touched",
]


@dataclass
class Copy:
    """The copy of a value, in row-major order, into a separate buffer."""

    target: View
    source: View


@dataclass
class HostCall:
    """A node that the reference engine computes, on memory in row-major order.

    An exchange with other ranks may be two steps, of one `number`: one with the `phase` BEGIN,
    which hands over what is sent, and one with the phase END, which waits for what comes.
    """

    node: Node
    reads: list[View]
    writes: list[View]
    phase: str = ""
    number: int = -1

    BEGIN: ClassVar[str] = "begin"
    END: ClassVar[str] = "end"


@dataclass
class Nested:
    """Two lists of steps and a predicate.

    In a loop (`loops`), `second` is repeated while `first` computes true in the predicate; in a
    branch, one of the two is run.
    """

    predicate: View
    first: list[Step]
    second: list[Step]
    loops: bool


@dataclass
class Call:
    """A call of the recursive function `label`; the outermost call has its body in `graph`."""

    label: str
    graph: Graph | None
    reads: list[View]
    writes: list[View]


@dataclass
class Tape:
    """An operation on a tape: "begin", "push", "pop" or "count".

    `states` are the buffers that are pushed or popped; `predicate` receives whether there was a
    state to pop. A tape with `root` keeps about the square root of the number of pushed states.
    Where the most states are known and memory cannot be asked for, they lie behind the header,
    `entry` bytes each; it is None for others.
    """

    operation: str
    header: Buffer
    states: Sequence[Buffer] = ()
    root: bool = False
    predicate: Buffer | None = None
    entry: DimLike | None = None


@dataclass
class Batch:
    """Independent kernels, run as one parallel step."""

    members: tuple[Step, ...]


@dataclass
class Poison:
    """Memory to be filled with wrong values where accesses are checked, as nothing may read it."""


Action = Nest | Kernel | DenseCall | HostCall | Copy | Nested | Call | Tape | Batch | Poison


@dataclass
class Step:
    """One action of a program.

    `node` is the node that it runs for, `members` are all nodes that a kernel computes. Steps with
    the same `batch` number are neighbours and run at the same time.
    """

    data: Action
    reads: list[Buffer]
    writes: list[Buffer]
    node: Node | None = None
    members: tuple[Node, ...] = ()
    batch: int | None = None

    _KINDS: ClassVar[dict[type, str]] = {
        Nest: "kernel",
        Kernel: "kernel",
        DenseCall: "dense",
        HostCall: "host",
        Copy: "copy",
        Call: "call",
        Tape: "tape",
        Batch: "batch",
        Poison: "poison",
    }

    @property
    def kind(self) -> str:
        """The kind of action, as reports name it: that of `_KINDS`, "while" or "cond"."""
        data = self.data
        if isinstance(data, Nested):
            return "while" if data.loops else "cond"
        return self._KINDS[type(data)]

    @property
    def title(self) -> str:
        """The name of a kernel's nest; for other steps their kind."""
        return self.data.name if isinstance(self.data, Nest) else self.kind


@dataclass
class Lowered:
    """The steps of a graph and the places of its inputs and outputs.

    `constants` are the buffers of constants with their values, by identity of the buffer;
    `fallbacks` are the nodes that run in the reference engine, each with the reason.
    """

    steps: list[Step]
    inputs: list[Buffer]
    outputs: list[View]
    constants: dict[int, tuple[Buffer, np.ndarray[Any, Any]]] = field(default_factory=dict)
    fallbacks: list[tuple[Node, str]] = field(default_factory=list)


def flat(steps: Iterable[Step]) -> Iterator[Step]:
    """Yield every step, each before the steps inside it."""
    for step in steps:
        yield step
        if isinstance(step.data, Nested):
            yield from flat(step.data.first)
            yield from flat(step.data.second)


def touched(steps: Sequence[Step]) -> tuple[list[Buffer], list[Buffer]]:
    """Return the buffers that steps read, and those that they write, each once."""
    reads = {id(b): b for s in steps for b in s.reads}
    writes = {id(b): b for s in steps for b in s.writes}
    return list(reads.values()), list(writes.values())
