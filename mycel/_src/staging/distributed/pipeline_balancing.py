"""Pipeline balancing: cuts a program into stages by the cost of its operators, in their order.

The operators of one micro-batch, in the order of the program, are blocks with the seconds of their
nodes and the bytes that live at each place between two of them. `planner.pipeline_stages.cut` finds
the best places. Operators of other micro-batches are those of the first one in the same order.
"""

from __future__ import annotations

from collections.abc import Collection

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.distributed.sharding_constraint import Operator, constrain
from mycel._src.compiler.transforms.pipeline_parallel import Assignment, Kind, assign
from mycel._src.foundation.errors import CompileError
from mycel._src.planner.pipeline_stages import cut

__all__ = ["balanced"]

# What a core does in a second: floating-point operations, bytes read or written, bytes passed on.
# Only their ratios matter.
FLOPS, MEMORY, LINK, LATENCY = 2e10, 1e10, 2e9, 2e-5
BOTH_WAYS = 3  # the work of forward and backward, of which backward is twice forward


def balanced(graph: Graph, batch: Collection[Node], stages: int) -> dict[Operator, int]:
    """Return the stage of each operator of a training step over micro-batches.

    `batch` are the inputs that hold the batch. Raises CompileError where there are fewer operators
    than `stages`, or where micro-batches have different ones.
    """
    made = assign(graph, batch, lambda operator: None, 1)
    lines: dict[int, list[Operator]] = {}
    for operator in sorted(made.stages, key=_number):
        lines.setdefault(operator.micro, []).append(operator)
    first = lines.get(0, [])
    if len(first) < stages:
        raise CompileError(
            f"{graph.name}: {len(first)} operators cannot be cut into {stages} stages; take a gradient of a batch with "
            "as many"
        )
    if any([o.kind for o in line] != [o.kind for o in first] for line in lines.values()):
        raise CompileError(f"{graph.name}: micro-batches have different operators; name the Cells to cut at in `cuts`")
    seconds, moved = _costs(graph, made, {o: k for k, o in enumerate(first)})
    starts = cut(seconds, stages, moved).starts
    stage = [sum(s <= k for s in starts) - 1 for k in range(len(first))]
    return {o: stage[k] for line in lines.values() for k, o in enumerate(line)}


def _number(operator: Operator) -> int:
    return int(operator.name.rpartition("-op")[2])


def _costs(graph: Graph, made: Assignment, place: dict[Operator, int]) -> tuple[list[float], list[float]]:
    """Return the seconds of each operator of a micro-batch, and those of passing on what lives
    behind it.
    """
    seconds = [0.0] * len(place)
    owner: dict[Node, int] = {}
    last: dict[Node, int] = {}
    for node in graph.nodes:
        unit = made.units.get(node)
        if unit is None or unit.kind is not Kind.FORWARD or unit.micro:
            continue
        own = place.get(node.params["mark"].operator) if node.prim is constrain else None
        below = [owner[i] for i in node.inputs if i in owner]
        at = own if own is not None else max(below, default=0)
        owner[node] = at
        for i in node.inputs:
            if i in owner:
                last[i] = max(at, last.get(i, at))
        if isinstance(node.type, TensorType) and node.prim is not None and not node.prim.view:
            work = 0 if node.prim.work is None else node.prim.work(node, int)
            seconds[at] += BOTH_WAYS * (work / FLOPS + float(node.type.nbytes) / MEMORY)
    moved = [LATENCY] * len(place)
    for node, end in last.items():
        if isinstance(node.type, TensorType):
            for k in range(owner[node], end):
                moved[k] += 2 * float(node.type.nbytes) / LINK
    return seconds, moved
