"""What memory a program needs, found without making it: its graph is lowered and its arena laid out, but no code is generated and nothing is run.

At the peak there are its inputs (arguments, and the parameters that it reads), the results that are not written over inputs, its constants, and the arena. Of the arena it is known
which values are alive at its fullest moment, and which line of the user's program each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Optional

from mycel.engines.failures import readable
from mycel.engines.native.program import arena as memory
from mycel.engines.native.program.liveness import Liveness
from mycel.engines.native.program.program import Template
from mycel.ir.dims import hint
from mycel.ir.graph import Graph, Where
from mycel.ir.types import TensorType

__all__ = ["Alive", "Footprint", "footprint"]


@dataclass(frozen=True)
class Alive:
    """A buffer at the fullest moment: its bytes, what it holds, the user's line, and the first and last step that use it."""

    nbytes: int
    what: str
    where: Optional[Where]
    first: int
    last: int


@dataclass
class Footprint:
    """The bytes that a program needs.

    `inputs` by input; `results` are those that get memory of their own; `arena` what the program keeps for values in between, of which `scratch` belongs to the dense library
    at the peak; `bound` is the least that any layout of the arena could need for this order of steps. `alive` is what the arena holds at its peak, largest first, in step `at` of `steps`.
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
        """The bytes that a run needs beside its inputs."""
        return self.total - sum(self.inputs)

    def by_line(self) -> list[tuple[int, str]]:
        """What is alive in the arena at its peak, added up by the user's lines."""
        found: dict[str, int] = {}
        for a in self.alive:
            found[_line(a.where)] = found.get(_line(a.where), 0) + a.nbytes
        return sorted(((n, line) for line, n in found.items()), key=lambda e: (-e[0], e[1]))

    def text(self, most: int = 12) -> str:
        """The figures, and of what is alive the lines with most bytes."""
        lines = [
            f"memory of {self.name} at its peak: {readable(self.total)}",
            f"  inputs {readable(sum(self.inputs))}, results {readable(self.results)}, constants {readable(self.constants)}",
            f"  arena {readable(self.arena)} (alive at its fullest {readable(self.bound)}, of it the dense library's {readable(self.scratch)})",
        ]
        if self.alive:
            lines.append(f"  fullest in step {self.at} of {self.steps}, {self.moment}, by lines:")
            found = self.by_line()
            lines += [f"    {readable(n):>10}  {line}" for n, line in found[:most]]
            if len(found) > most:
                lines.append(f"    {readable(sum(n for n, _ in found[most:])):>10}  {len(found) - most} other lines")
        return "\n".join(lines)


def footprint(graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Footprint:
    """What the program of a graph of static types will need; `aliases` says which outputs are written into which inputs' memory."""
    from mycel.engines.native.engine import prepared

    template = Template.__new__(Template)
    template.arrange(prepared(graph), dict(aliases or {}))
    calls = {id(s): s.data.plan(hint) for s in template.all_steps if s.kind == "dense"}
    live = Liveness(template.steps, calls, template.takes)
    groups, members = memory.joined(live.lives(hint), live.taking)
    _, arena = memory.plan(live.lives(hint), live.taking)
    at = memory.fullest(groups)
    own = {id(v.buffer) for _, views in calls.values() for v in views.values()}
    given = {id(b) for s in template.all_steps for b in (*s.reads, *s.writes)}
    alive = []
    scratch = 0
    for key, nbytes, first, last in groups:
        if first <= at <= last:
            # Of those that share a place, the one that is there at that time.
            here = max((k for k in members[key] if live.first[k] <= at), key=lambda k: live.first[k])
            step, buffer = live.makers[here], live.buffers[here]
            temporary = here in own and here not in given
            scratch += nbytes if temporary else 0
            node = step.node
            name = "scratch of " + node.prim.name if temporary and node is not None and node.prim else buffer.name
            kind = "" if node is None or not isinstance(node.type, TensorType) or temporary else f" {buffer.dtype.name}"
            alive.append(Alive(nbytes, name + kind, None if node is None else node.where, first, last))
    step_at = live.times.get(at)
    moment = "" if step_at is None else _describe(step_at)
    outputs = graph.output_types
    return Footprint(
        graph.name,
        [_bytes(i.type) for i in graph.inputs],
        sum(_bytes(t) for j, t in enumerate(outputs) if j not in template.aliases),
        sum(a.nbytes for _, a in template.lowered.constants.values()),
        arena,
        memory.bound(groups),
        scratch,
        live.clock,
        at,
        moment,
        sorted(alive, key=lambda a: -a.nbytes),
    )


def _bytes(kind: object) -> int:
    return int(kind.nbytes) if isinstance(kind, TensorType) else 0


def _line(where: Optional[Where]) -> str:
    if where is None:
        return "library code"
    return f"{where.file}:{where.line}" + (" (derivative)" if where.gradient else "")


def _describe(step: object) -> str:
    node = getattr(step, "node", None)
    kind = getattr(step, "kind", "")
    if node is None or node.prim is None:
        return str(kind)
    return f"{node.prim.name}" + (f" from {_line(node.where)}" if node.where is not None else "")
