"""Pipeline stage assignment: the stage and micro-batch of each node of a training step.

Marks (`prims.distributed.sharding_constraint`) stand around the operators of the program, with the
micro-batch that each works on and the stage that the user gave. An operator without one belongs to
the last of the stages whose values it uses, and what depends on the batch and on parameters but on
no stage yet, to the first. So stages never decrease along the forward pass. The marks around
gradients name the same operators, which says where the backward pass computes.

A node is computed in a *unit*: forward or backward of one micro-batch in one stage, or the update
after all of them. Marks have the units of their operators; other nodes join those of their
operands:

- of one micro-batch: the last stage going forwards, the first one going backwards;
- of several: the last micro-batch of those, as sums of losses and gradients;
- of an update: where the most bytes are.

What depends on the batch alone, or on parameters alone, as labels and masks, has no unit: every
stage that uses it computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.ir.source_locations import excerpt
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.distributed.sharding_constraint import INPUT, Mark, Operator, constrain
from mycel._src.foundation.errors import ShapeError

__all__ = ["Assignment", "Kind", "Unit", "assign"]

StageOf = Callable[[Operator], int | None]


class Kind(IntEnum):
    """What a unit does: forward, backward, or the update after all of them."""

    FORWARD = 0
    BACKWARD = 1
    UPDATE = 2


class Unit(NamedTuple):
    """A part of the work of a pipeline: `micro` is the micro-batch, 0 for the update."""

    kind: Kind
    stage: int
    micro: int


@dataclass(frozen=True)
class Assignment:
    """The unit of each node that has one, and the stage of each operator that has one.

    `data` are the nodes without unit that depend on the batch.
    """

    units: dict[Node, Unit]
    stages: dict[Operator, int]
    data: frozenset[Node]


def assign(graph: Graph, batch: Collection[Node], stage_of: StageOf, stages: int) -> Assignment:
    """Return the units of a graph's nodes.

    `batch` are the inputs that hold the batch. `stage_of` gives the stage that is asked for an
    operator, None where it follows from others; stages are below `stages`. Raises ShapeError for
    a stage that is not, and where one uses values of a later one, with the operator and its line.
    """
    made = _Assigner(graph, frozenset(batch), stage_of, stages)
    while made.run():
        pass
    return Assignment(made.units, made.stages, frozenset(made.data - set(made.units)))


class _Assigner:
    """Assigns units in passes over the graph, until the stages of operators stay."""

    def __init__(self, graph: Graph, batch: frozenset[Node], stage_of: StageOf, count: int) -> None:
        """Begin without any unit; `graph`, `batch` and `stage_of` are those of `assign`, `count` is
        the number of stages.
        """
        self.graph, self.batch, self.stage_of, self.count = graph, batch, stage_of, count
        self.stages: dict[Operator, int] = {}
        self.units: dict[Node, Unit] = {}
        self.data: set[Node] = set()
        self.parameters: set[Node] = set()
        self.changed = False

    def run(self) -> bool:
        """Assign units once; returns whether the stage of an operator has changed."""
        self.units, self.changed = {}, False
        for node in self.graph.inputs:
            (self.data if node in self.batch else self.parameters).add(node)
        for node in self.graph.nodes:
            for known in (self.data, self.parameters):
                if any(i in known for i in node.inputs):
                    known.add(node)
            unit = self.unit(node)
            if unit is not None:
                self.units[node] = unit
        return self.changed

    def unit(self, node: Node) -> Unit | None:
        below = [(i, self.units[i]) for i in node.inputs if i in self.units]
        if node.prim is GET_ITEM:
            return below[0][1] if below else None
        inner = [m for m in _marks_in(node) if m.operator.micro >= 0]
        if inner:
            return self.marked(node, inner, [u for _, u in below])
        if not below:
            return None
        mark = node.params["mark"] if node.prim is constrain else None
        after = any(u.kind is not Kind.FORWARD for _, u in below)
        if any(u.kind is Kind.UPDATE for _, u in below) or (mark is not None and not mark.gradient and after):
            return Unit(Kind.UPDATE, _heaviest(below), 0)
        return _joined([u for _, u in below])

    def marked(self, node: Node, marks: Sequence[Mark], below: Sequence[Unit]) -> Unit | None:
        """Return the unit of a mark, or of a node that holds graphs with marks."""
        found: list[Unit] = []
        for mark in marks:
            operator = mark.operator
            if not mark.gradient:
                self.meet(node, mark, below)
            stage = self.stages.get(operator)
            if stage is not None and mark.gradient:
                found.append(Unit(Kind.BACKWARD, stage, operator.micro))
            elif stage is not None:
                micro = max([operator.micro, *[u.micro for u in below if u.kind is Kind.FORWARD]])
                found.append(Unit(Kind.FORWARD, stage, micro))
        if not found:
            return _joined(below) if below else None
        kind = max(u.kind for u in found)
        return _joined([u for u in found if u.kind is kind])

    def meet(self, node: Node, mark: Mark, below: Sequence[Unit]) -> None:
        """Take what an operand says of its operator's stage."""
        operator = mark.operator
        asked = self.stage_of(operator)
        least = max((u.stage for u in below if u.kind is Kind.FORWARD), default=-1)
        if asked is None:
            if least < 0 and node in self.data and node in self.parameters:
                least = 0
            asked = max(least, self.stages.get(operator, -1))
        elif asked >= self.count:
            raise _error(operator, f"it is to be in stage {asked}, and there are {self.count}")
        elif mark.role == INPUT and least > asked:
            raise _error(operator, f"it is in stage {asked}, and uses a value of stage {least}, which comes later")
        if asked >= 0 and self.stages.get(operator) != asked:
            self.stages[operator] = asked
            self.changed = True


def _error(operator: Operator, reason: str) -> ShapeError:
    line = "" if operator.where is None else f"\n{excerpt(operator.where)}"
    return ShapeError(f"the pipeline cannot be cut at {operator.name}: {reason}{line}")


def _marks_in(node: Node) -> Iterator[Mark]:
    if node.prim is constrain:
        yield node.params["mark"]
        return
    left = [g for v in node.params.values() for g in graphs_in(v)]
    seen: set[int] = set()
    while left:
        graph = left.pop()
        if id(graph) not in seen:
            seen.add(id(graph))
            for inner in graph.nodes:
                if inner.prim is constrain:
                    yield inner.params["mark"]
                else:
                    left += [g for v in inner.params.values() for g in graphs_in(v)]


def _joined(units: Sequence[Unit]) -> Unit:
    """Return the unit of a node that uses values of several."""
    kind = max(u.kind for u in units)
    own = [u for u in units if u.kind is kind]
    if kind is Kind.FORWARD:
        return Unit(kind, max(u.stage for u in own), max(u.micro for u in own))
    return Unit(kind, min(u.stage for u in own), max(u.micro for u in own))


def _heaviest(below: Sequence[tuple[Node, Unit]]) -> int:
    """Return the stage of the operands with the most bytes, the first of equals."""
    weight: dict[int, int] = {}
    for node, unit in below:
        size = int(node.type.nbytes) if isinstance(node.type, TensorType) else 0
        weight[unit.stage] = weight.get(unit.stage, 0) + size
    return min(weight, key=lambda s: (-weight[s], s))
