"""Memory estimates: what a program needs, found without making the program.

The graph is lowered and its arena laid out, but no code is generated and nothing is run. At the
peak there are the inputs (arguments, and the parameters that it reads), the results that do not
overwrite inputs, the constants, and the arena. For the arena, the values alive at its peak are
known, and the line of the user's program that each comes from.
"""

from __future__ import annotations

from collections.abc import Mapping

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines.native.program import arena as memory
from mycel._src.engines.native.program.compiling import prepared
from mycel._src.engines.native.program.liveness import Liveness
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.reports import Alive, Footprint, place_of

__all__ = ["footprint"]


def footprint(graph: Graph, aliases: Mapping[int, int] | None = None) -> Footprint:
    """Return the memory that the program of a graph of static types will need.

    `aliases` maps outputs to the inputs into whose memory they are written.
    """
    template = Template.__new__(Template)
    template.arrange(prepared(graph), dict(aliases or {}))
    calls = template.plans(hint)
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
            name = "scratch of " + node.op if temporary and node is not None and node.prim else buffer.name
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


def _describe(step: object) -> str:
    node = getattr(step, "node", None)
    kind = getattr(step, "kind", "")
    if node is None or node.prim is None:
        return str(kind)
    return f"{node.op}" + (f" from {place_of(node.where)}" if node.where is not None else "")
