"""Operator regions: the nodes that each operator of the program became, found by its marks.

Staging marks what goes into an operator and what comes out
(`prims.distributed.sharding_constraint`). The nodes of its region are those on which the
marked results depend, up to the marked inputs and those of the graph, which are not among
them. Regions are found in a graph and in the graphs that its nodes hold. Gradients have marks
of their own, and no regions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mycel._src.compiler.ir.graph import Graph, Node, toposort
from mycel._src.compiler.ir.printer import graphs_in
from mycel._src.compiler.ir.sharding.division import Division
from mycel._src.compiler.prims.distributed.sharding_constraint import INPUT, RESULT, VALUE, Mark, Operator, constrain

__all__ = ["Region", "marks_of", "regions_of", "strategies_of", "unmarked", "values_of", "without_marks"]


@dataclass(frozen=True)
class Region:
    """One operator in a graph.

    `inputs` and `results` are its marks in their order, `nodes` what lies between them, inputs
    before users.
    """

    operator: Operator
    inputs: tuple[Node, ...]
    results: tuple[Node, ...]
    nodes: tuple[Node, ...]

    @property
    def in_strategy(self) -> tuple[Division | None, ...]:
        """How each input is divided; None where the user did not say."""
        return tuple([n.params["mark"].division for n in self.inputs])

    @property
    def out_strategy(self) -> tuple[Division | None, ...]:
        """How each result is divided; None where the user did not say."""
        return tuple([n.params["mark"].division for n in self.results])


def regions_of(graph: Graph) -> list[Region]:
    """Return the regions in a graph and in the graphs that its nodes hold, in the order of nodes.

    An operator whose results nobody uses is not in the graph, and has no region.
    """
    found: list[Region] = []
    for inner in _graphs(graph, set()):
        inputs: dict[Operator, dict[int, Node]] = {}
        results: dict[Operator, dict[int, Node]] = {}
        for node in inner.nodes:
            mark = _mark_of(node)
            if mark is not None and not mark.gradient and mark.role in (INPUT, RESULT):
                table = inputs if mark.role == INPUT else results
                table.setdefault(mark.operator, {})[mark.index] = node
        for operator, marked in results.items():
            ins = inputs.get(operator, {})
            stop = {*ins.values(), *inner.inputs}
            roots = [m.inputs[0] for m in marked.values()]
            between = [n for n in toposort(roots, stop=stop) if n not in stop]
            found.append(Region(operator, _ordered(ins), _ordered(marked), tuple(between)))
    return found


def values_of(graph: Graph) -> list[tuple[Node, Mark]]:
    """Return the values that have a layout of their own, with their marks."""
    marks = [(n, _mark_of(n)) for inner in _graphs(graph, set()) for n in inner.nodes]
    return [(n, m) for n, m in marks if m is not None and m.role == VALUE and not m.gradient]


def marks_of(graph: Graph) -> list[Node]:
    """Return the marks in a graph and in those that its nodes hold, of gradients as well."""
    return [n for inner in _graphs(graph, set()) for n in inner.nodes if n.prim is constrain]


def strategies_of(graph: Graph) -> dict[str, list[list[int]]]:
    """Return the number of parts of each axis of each input, by the names of operators, where the
    user gave them.
    """
    return {
        r.operator.name: [list(d.cuts) for d in r.in_strategy if d is not None]
        for r in regions_of(graph)
        if any(d is not None for d in r.in_strategy)
    }


def unmarked(graph: Graph) -> Graph:
    """Return the graph without marks, in the graphs that its nodes hold as well."""
    return without_marks(graph)[0]


def without_marks(graph: Graph) -> tuple[Graph, dict[Node, Node]]:
    """Return the graph without marks, as `unmarked` does, and what each of its nodes became."""
    image: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs = tuple([image.get(i, i) for i in node.inputs])
        if node.prim is constrain:
            image[node] = inputs[0]
            continue
        params = {k: unmarked(v) if isinstance(v, Graph) else v for k, v in node.params.items()}
        changed = any(params[k] is not v for k, v in node.params.items())
        if changed or any(a is not b for a, b in zip(inputs, node.inputs)):
            image[node] = Node(node.prim, inputs, params, node.type, node.where)
    made = Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name) if image else graph
    return made, {node: image.get(node, node) for node in graph.nodes}


def _mark_of(node: Node) -> Mark | None:
    mark: Mark | None = node.params["mark"] if node.prim is constrain else None
    return mark


def _ordered(marks: dict[int, Node]) -> tuple[Node, ...]:
    return tuple([marks[k] for k in sorted(marks)])


def _graphs(graph: Graph, seen: set[Graph]) -> Iterator[Graph]:
    if graph in seen:
        return
    seen.add(graph)
    yield graph
    for node in graph.nodes:
        for value in node.params.values():
            for inner in graphs_in(value):
                yield from _graphs(inner, seen)
