"""Reports on programs: their costs, accounts of their steps, and the memory that they need.

The records are the same for every engine. A step is the unit that an engine runs at once: a fused
kernel, a call of a library, one operation in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node, Where
from mycel._src.foundation.readable_sizes import readable

__all__ = [
    "ZERO_COST",
    "Account",
    "Alive",
    "Cost",
    "Footprint",
    "StepAccount",
    "joined",
    "place_of",
    "work",
]


@dataclass(frozen=True)
class Cost:
    """The bytes read, the bytes written and the floating-point operations.

    >>> Cost(8, 4, 1) + Cost(8, 4, 1)
    Cost(read=16, written=8, flops=2)
    >>> Cost(8, 4, 1).bytes
    12
    """

    read: int = 0
    written: int = 0
    flops: int = 0

    @property
    def bytes(self) -> int:
        return self.read + self.written

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.read + other.read, self.written + other.written, self.flops + other.flops)


ZERO_COST = Cost()
# The most lines of an operator's loops in an account.
_MOST_LINES = 100


def work(node: Node, number: Callable[[DimLike], int] = hint) -> int:
    """Return the floating-point operations of a product or a convolution; 0 for other nodes.

    `number` gives dimensions as integers.
    """
    return node.prim.work(node, number) if node.prim is not None and node.prim.work is not None else 0


@dataclass(frozen=True)
class StepAccount:
    """One step: its kind (kernel, dense, host, copy, cond, while, ...), operations and loops.

    It also says which values the step writes and why, which it recomputes, and the user's line.
    `stores` are tuples (operation, type with layout, reason, whether it overwrites an operand). Of
    a user's operator, `listing` has the loops as lines. `code` gives the code of a kernel: that of
    the compiler, or that of the processor where it is given True.
    """

    number: int
    kind: str
    operations: tuple[str, ...]
    cost: Cost
    loops: str
    stores: tuple[tuple[str, str, str, bool], ...]
    again: tuple[str, ...]
    where: Where | None
    listing: tuple[str, ...] = ()
    code: Callable[[bool], str] | None = field(default=None, repr=False, compare=False)

    @property
    def text(self) -> str:
        """The account of the step in a few lines."""
        flops = f"{self.cost.flops:,}".replace(",", " ")
        counted = f"{readable(self.cost.bytes)} moved, {flops} operations"
        head = (
            f"{self.number:4} {self.kind} {joined(self.operations)}: {counted}{'; ' + self.loops if self.loops else ''}"
        )
        lines = [head + (f"; {self.where}" if self.where else "")]
        for name, kind, why, over in self.stores:
            lines.append(f"       writes {name} {kind}{' over what it reads' if over else ''}: {why}")
        if self.again:
            lines.append(f"       computes again {joined(self.again)}: cheaper than reading it")
        lines += [f"       {line}" for line in self.listing[:_MOST_LINES]]
        if len(self.listing) > _MOST_LINES:
            lines.append(f"       ({len(self.listing) - _MOST_LINES} more lines)")
        return "\n".join(lines)


@dataclass
class Account:
    """The steps of a program in the order in which they are run."""

    name: str
    steps: list[StepAccount] = field(default_factory=list)

    @property
    def total(self) -> Cost:
        """The sum over all steps: of a branch its costlier side, of a loop one iteration."""
        return sum((s.cost for s in self.steps), Cost())

    def text(self, most: int = 200) -> str:
        """Return the totals by kind, and the steps; at most `most`, those that move most bytes."""
        by_kind: dict[str, tuple[int, Cost]] = {}
        for s in self.steps:
            count, known = by_kind.get(s.kind, (0, Cost()))
            by_kind[s.kind] = count + 1, known + s.cost
        lines = [f"{self.name} in {len(self.steps)} steps:"]
        lines += [
            f"  {count} {kind}: {readable(c.bytes)} moved, {c.flops / 1e6:.6g} million operations"
            for kind, (count, c) in by_kind.items()
        ]
        shown = self.steps
        if len(shown) > most:
            chosen = {s.number for s in sorted(shown, key=lambda s: -s.cost.bytes)[:most]}
            shown = [s for s in shown if s.number in chosen]
            lines.append(f"  the {most} that move most:")
        return "\n".join([*lines, *[s.text for s in shown]])

    def code(self, assembly: bool = False) -> str:
        """Return the code of the kernels: LLVM's, or the processor's with `assembly`."""
        made = [(s, s.code(assembly)) for s in self.steps if s.code is not None]
        mark = "#" if assembly else ";"
        return "\n".join([f"{mark} {s.text.splitlines()[0].strip()}\n{text}" for s, text in made])


def joined(names: Any, most: int = 12) -> str:
    """Return names in one line; beyond `most` of them only how many there are."""
    names = list(names)
    more = f", {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


@dataclass(frozen=True)
class Alive:
    """A buffer in use at the peak.

    It has the bytes, the value, the user's line, and the first and last step that use it.
    """

    nbytes: int
    what: str
    where: Where | None
    first: int
    last: int


@dataclass
class Footprint:
    """The bytes that a program needs.

    `inputs` has those of each input, `results` those of each result that gets memory of its own.
    `arena` is the memory for intermediate values, of which the dense library uses `scratch` at the
    peak; `bound` is the least that any layout of the arena could need for this order of steps.
    `alive` are the buffers in the arena at its peak, largest first, in step `at` of `steps`.
    """

    name: str
    inputs: list[int]
    results: int
    constants: int
    arena: int
    bound: int
    scratch: int
    steps: int
    at: int
    moment: str
    alive: list[Alive] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All bytes at the peak, inputs included."""
        return sum(self.inputs) + self.results + self.constants + self.arena

    @property
    def own(self) -> int:
        """The bytes that a run needs besides its inputs."""
        return self.total - sum(self.inputs)

    def by_line(self) -> list[tuple[int, str]]:
        """Return the bytes in the arena at its peak, added up by the user's lines."""
        found: dict[str, int] = {}
        for a in self.alive:
            found[place_of(a.where)] = found.get(place_of(a.where), 0) + a.nbytes
        return sorted(((n, line) for line, n in found.items()), key=lambda e: (-e[0], e[1]))

    def text(self, most: int = 12) -> str:
        """Return the figures, and the `most` lines with the most bytes in the arena."""
        lines = [
            f"memory of {self.name} at its peak: {readable(self.total)}",
            f"  inputs {readable(sum(self.inputs))}, results {readable(self.results)}, constants "
            f"{readable(self.constants)}",
            f"  arena {readable(self.arena)} (alive at its fullest {readable(self.bound)}, of it the dense library's "
            f"{readable(self.scratch)})",
        ]
        if self.alive:
            lines.append(f"  fullest in step {self.at} of {self.steps}, {self.moment}, by lines:")
            found = self.by_line()
            lines += [f"    {readable(n):>10}  {line}" for n, line in found[:most]]
            if len(found) > most:
                lines.append(f"    {readable(sum(n for n, _ in found[most:])):>10}  {len(found) - most} other lines")
        return "\n".join(lines)


def place_of(where: Where | None) -> str:
    """Return a place in the user's source as text."""
    if where is None:
        return "library code"
    return f"{where.file}:{where.line}" + (" (derivative)" if where.gradient else "")
