"""Cost model of kernels: the fused kernels of a graph, their work and traffic, their time.

An engine fuses. Here it is taken into account roughly, for any device:

* What gives an operand at other positions (`Primitive.view`) and numbers take nothing.
* Products, convolutions and other costly nodes are a kernel each.
* Arithmetic, elementary functions and reductions join the last kernel of their operands if they
  pass over as many elements and need nothing out of its reductions. The kernels of their other
  operands join as well, if nothing in between needs them.
* A kernel reads once what it takes from outside, and writes what is used outside. What gathers
  elements by indices reads as much as it gives.

A node that calls a graph is the nodes of that graph. Of a branch the costlier side counts, of a
loop one round. Where an engine accounts for its own steps, `seconds_of` takes these instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, Node, Where
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM, REGISTRY, Cost, Primitive
from mycel._src.compiler.prims.control_flow import control
from mycel._src.engines.reports import Account, joined, work
from mycel._src.foundation.errors import CompileError
from mycel._src.planner.communication_volume import Exchange, exchange_of
from mycel._src.planner.topology import Device

__all__ = ["ELEMENTWISE", "Place", "Task", "nbytes_of", "seconds_of", "tasks_of"]

# Operations an element: of arithmetic, and of elementary functions.
_ARITHMETIC, _ELEMENTARY = 1, 16
# The kind of kernels of arithmetic, in front of an element type.
ELEMENTWISE = "elementwise"
Place = tuple[int, int]


@dataclass
class Task:
    """One kernel or one collective of a graph.

    `kind` says the rate at which a device computes it. `results` has the bytes of each value that
    it computes, and `stored` which of them lie in memory, as other tasks or the graph's outputs
    have them. `uses` has the bytes that it reads of each value, by the place of the task that
    computed it and the value's number there; -1 is the place of the graph's inputs. `moved` are
    bytes read and written besides.
    """

    names: list[str]
    flops: int = 0
    kind: str = "float32"
    exchange: Exchange | None = None
    where: Where | None = None
    moved: int = 0
    results: list[int] = field(default_factory=list)
    stored: set[int] = field(default_factory=set)
    uses: dict[Place, int] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list, repr=False)

    @property
    def name(self) -> str:
        """The names of the operations."""
        return joined(self.names, 6)

    @property
    def needs(self) -> set[int]:
        """The places of the tasks that this one waits for."""
        return {place for place, _ in self.uses if place >= 0}

    @property
    def read(self) -> int:
        """The bytes that the task reads."""
        return sum(self.uses.values())

    @property
    def written(self) -> int:
        """The bytes that the task writes."""
        return sum(self.results[k] for k in self.stored)

    def seconds(self, device: Device) -> float:
        """Return what a kernel takes on a device; 0 for a collective."""
        if self.exchange is not None:
            return 0.0
        return device.seconds(self.flops, self.read + self.written + self.moved, self.kind)


def nbytes_of(type: Any) -> int:
    """Return the bytes of a value, those of all its parts for a tuple; 0 for a token."""
    if isinstance(type, tuple):
        return sum(nbytes_of(t) for t in type)
    return hint(type.nbytes) if isinstance(type, TensorType) else 0


def seconds_of(found: Graph | Account, device: Device) -> float:
    """Return what the kernels of a graph take on a device, one after the other.

    An engine's `Account` has its own steps, at the rate of the product or convolution in them, or
    of arithmetic ("elementwise float32").
    """
    if isinstance(found, Account):
        return sum(
            device.seconds(s.cost.flops, s.cost.bytes, _kind(s.operations))
            for s in found.steps
            if s.cost.bytes or s.cost.flops
        )
    return sum(t.seconds(device) for t in tasks_of(found)[0])


def _kind(operations: Sequence[str]) -> str:
    products = [n for n in operations if n in REGISTRY and REGISTRY[n].work is not None]
    return f"{products[0] if products else ELEMENTWISE} float32"


def tasks_of(graph: Graph) -> tuple[list[Task], list[Place]]:
    """Return the kernels and collectives of a graph in its order, and where its outputs lie.

    An output that is no task's value, as a number, lies in task -2. Raises CompileError for
    collectives in branches and loops.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> from mycel._src.compiler.prims.matrix_product import matmul
    >>> x = input_node(tensor_type((64, 64), float32))
    >>> y = matmul(E.exp(x) * 2.0 + x, x)
    >>> [(t.name, t.flops, t.read, t.written) for t in tasks_of(Graph([x], [y]))[0]]
    [('exp, mul, add', 73728, 16384, 16384), ('matmul', 524288, 32768, 16384)]
    """
    walk = _Walk()
    for k, node in enumerate(graph.inputs):
        walk.values[node] = _Value(_INPUT, k, nbytes_of(node.type))
    walk.nodes(graph.nodes)
    return walk.finish(graph.outputs)


@dataclass
class _Value:
    """Where a value lies: it is a task's value `number`, and a reader of it moves `nbytes`.

    `parts` are those of a tuple.
    """

    task: int
    number: int
    nbytes: int
    parts: Sequence[_Value] | None = None

    def leaves(self) -> Iterator[_Value]:
        if self.parts is None:
            yield self
        else:
            for part in self.parts:
                yield from part.leaves()


# The tasks of the graph's inputs, and of constants, which are nowhere.
_INPUT, _FREE = -1, -2


class _Walk:
    """The tasks made so far, and where each value lies.

    `elements` has what each task passes over, 0 where nothing may join; `readers` the tasks that
    read what a task computes; `merged` the later task of one that has joined it, and the number
    there of its first value. `reduced` are the results of reductions, and views of them.
    """

    def __init__(self) -> None:
        self.tasks: list[Task | None] = []
        self.values: dict[Node, _Value] = {}
        self.elements: list[int] = []
        self.readers: list[set[int]] = []
        self.merged: dict[int, Place] = {}
        self.reduced: set[Node] = set()

    def nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node not in self.values:
                self.node(node)

    def node(self, node: Node) -> None:
        prim = node.prim
        assert prim is not None
        graphs = [v for v in node.params.values() if isinstance(v, Graph)]
        if prim is GET_ITEM:
            whole = self.values[node.inputs[0]]
            self.values[node] = whole if whole.parts is None else whole.parts[node.params["index"]]
        elif not node.inputs and prim.cost is Cost.LIGHT:
            self.values[node] = _Value(_FREE, 0, 0)
        elif prim.view and len(node.inputs) == 1:
            operand = self.values[node.inputs[0]]
            self.values[node] = _Value(operand.task, operand.number, min(operand.nbytes, nbytes_of(node.type)))
            if node.inputs[0] in self.reduced:
                self.reduced.add(node)
        elif graphs:
            self.holder(node, graphs)
        elif (found := exchange_of(node)) is not None:
            self.new(node, Task([node.op], exchange=found, where=node.where), 0)
        elif prim.cost is Cost.HEAVY or isinstance(node.type, tuple):
            kind = f"{node.op} {node.inputs[0].dtype.name}" if prim.work is not None else "float32"
            self.new(node, Task([node.op], work(node), kind, where=node.where), 0)
        else:
            self.fused(node, prim)

    def fused(self, node: Node, prim: Primitive) -> None:
        """Have the kernel of an operand compute the node too, or a new one."""
        own = _elements(node)
        elements = max([own, *[_elements(i) for i in node.inputs]])
        each = _ELEMENTARY if prim.cost is Cost.PASS and prim.elementwise else _ARITHMETIC
        flops = elements * each if node.dtype.kind in "fc" else 0
        homes = {self.place(i) for i in node.inputs}
        home = max(homes, default=_FREE)
        if home >= 0 and self.may_join(node, home, elements):
            task = self.task(home)
            task.names.append(node.op)
            task.flops += flops
            self.enter(node, home)
        else:
            home = len(self.tasks)
            self.new(node, Task([node.op], flops, f"{ELEMENTWISE} {node.dtype.name}", where=node.where), elements)
        for other in sorted((h for h in homes if 0 <= h < home), reverse=True):
            if self.may_join(node, other, elements) and all(self.now(r) >= home for r in self.readers[other]):
                self.merge(other, home)
        if own != elements:
            self.reduced.add(node)

    def may_join(self, node: Node, home: int, elements: int) -> bool:
        return self.elements[home] == elements and not any(
            i in self.reduced and self.place(i) == home for i in node.inputs
        )

    def merge(self, other: int, home: int) -> None:
        """Have a later kernel do the work of an earlier one as well."""
        task, into = self.task(other), self.task(home)
        self.merged[other] = (home, len(into.results))
        into.names[:0] = task.names
        into.nodes[:0] = task.nodes
        into.results += task.results
        into.flops += task.flops
        for place, nbytes in task.uses.items():
            into.uses[place] = max(nbytes, into.uses.get(place, 0))
        self.readers[home] |= self.readers[other]
        self.tasks[other] = None

    def holder(self, node: Node, graphs: list[Graph]) -> None:
        """Enter a node that holds graphs: as their nodes where it calls one, else as one task."""
        if len(graphs) == 1 and len(graphs[0].inputs) == len(node.inputs) and node.prim is not control.while_loop:
            inner = graphs[0]
            own = [*inner.inputs, *inner.nodes]
            before = {n: self.values.pop(n) for n in own if n in self.values}
            for n, operand in zip(inner.inputs, node.inputs):
                self.values[n] = self.values[operand] if operand in self.values else before[operand]
            self.nodes(inner.nodes)
            found = [self.values[o] for o in inner.outputs]
            for n in own:
                self.values.pop(n, None)
            self.values.update(before)
            self.values[node] = _Value(_FREE, 0, 0, found) if isinstance(node.type, tuple) else found[0]
            return
        sides = [tasks_of(g)[0] for g in graphs]
        if any(t.exchange is not None for side in sides for t in side):
            raise CompileError(
                f"{node.op} holds collectives, and data decide how often they run: nothing can be said of them before"
            )
        sums = [(sum(t.read + t.written + t.moved for t in s), sum(t.flops for t in s)) for s in sides]
        moved, flops = max(sums) if node.prim is control.cond else (sum(m for m, _ in sums), sum(f for _, f in sums))
        self.new(node, Task([node.op], flops, moved=moved, where=node.where), 0)

    def new(self, node: Node, task: Task, elements: int) -> None:
        self.tasks.append(task)
        self.elements.append(elements)
        self.readers.append(set())
        self.enter(node, len(self.tasks) - 1)

    def enter(self, node: Node, place: int) -> None:
        """Note what a task reads for a node, and that it computes the node's results."""
        task = self.task(place)
        task.nodes.append(node)
        gathers = _gathers(node)
        for operand in node.inputs:
            for value in self.values[operand].leaves():
                if value.task == _FREE or self.now(value.task) == place:
                    continue
                key = (value.task, value.number)
                nbytes = nbytes_of(node.type) if gathers and operand is node.inputs[0] else value.nbytes
                task.uses[key] = max(nbytes, task.uses.get(key, 0))
                if value.task >= 0:
                    self.readers[self.now(value.task)].add(place)
        self.values[node] = self.placed(task, place, node.type)

    def placed(self, task: Task, place: int, type: Any) -> _Value:
        if isinstance(type, tuple):
            return _Value(_FREE, 0, 0, [self.placed(task, place, t) for t in type])
        task.results.append(nbytes_of(type))
        return _Value(place, len(task.results) - 1, task.results[-1])

    def now(self, place: int) -> int:
        """Return the task that does the work of a task now."""
        while place in self.merged:
            place = self.merged[place][0]
        return place

    def place(self, node: Node) -> int:
        """Return the last task that computes some of a node."""
        return max((self.now(v.task) for v in self.values[node].leaves()), default=_FREE)

    def task(self, place: int) -> Task:
        found = self.tasks[place]
        assert found is not None
        return found

    def finish(self, outputs: Sequence[Node]) -> tuple[list[Task], list[Place]]:
        """Number the tasks that are left, and find out what is stored."""
        numbers = {old: new for new, old in enumerate(k for k, t in enumerate(self.tasks) if t is not None)}

        def final(key: Place) -> Place:
            place, number = key
            while place in self.merged:
                place, first = self.merged[place]
                number += first
            return (numbers[place], number) if place >= 0 else (place, number)

        tasks = [t for t in self.tasks if t is not None]
        for own, task in enumerate(tasks):
            uses: dict[Place, int] = {}
            for key, nbytes in task.uses.items():
                found = final(key)
                if found[0] != own:
                    uses[found] = max(nbytes, uses.get(found, 0))
            task.uses = uses
        ends = [final((v.task, v.number)) for o in outputs for v in self.values[o].leaves()]
        for place, number in [key for t in tasks for key in t.uses] + ends:
            if place >= 0:
                tasks[place].stored.add(number)
        return tasks, ends


def _gathers(node: Node) -> bool:
    """Return whether a node takes a few elements of its first operand, which indices choose."""
    if node.prim is None or node.prim.cost is not Cost.HEAVY or node.prim.work is not None or len(node.inputs) < 2:
        return False
    indices = [i.type.dtype.kind in "iu" for i in node.inputs[1:] if isinstance(i.type, TensorType)]
    return any(indices) and nbytes_of(node.type) < nbytes_of(node.inputs[0].type)


def _elements(node: Node) -> int:
    return hint(node.type.size) if isinstance(node.type, TensorType) else 0
