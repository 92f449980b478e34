"""Residuals: the forward values that a called graph keeps for its derivative.

The derivative of a graph uses values of the forward graph. Inputs are available anyway. Of the
other values, the called graph returns those that are expensive to compute, as further outputs; the
derivative is then a graph of the operands, the kept values and the cotangents. Cheap values are
computed again from those available: constants, movements of data, and arithmetic without elementary
functions. In place of a broadcast value its source is kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel._src.compiler.prims.base import GET_ITEM, Cost
from mycel._src.compiler.prims.shape import BROADCAST_TO
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.foundation.bounded_caches import MANY, RememberedOf

__all__ = ["Link", "link"]


class Link:
    """A graph that returns the values to keep as well, and its derivatives.

    `graph` is that graph; its first `count` outputs are the function's, and `places` says which
    outputs are the kept values. `active` are the inputs by which it is differentiated. With
    symbolic sizes, `decisions` holds the guards under which the derivatives are valid.
    """

    def __init__(self, graph: Graph, active: Sequence[int], decisions: Decisions | None = None) -> None:
        self.active, self.decisions = tuple(active), decisions
        self.symbolic: bool | None = None
        self._operands: frozenset[int] | None = None
        self.count = len(graph.outputs)
        self._inputs, self._outputs = graph.inputs, graph.outputs
        self._backward: dict[tuple[bool, ...], tuple[Graph | None, tuple[int, ...]]] = {}
        smooth = [o.dtype.is_differentiable for o in graph.outputs]
        self._seeds = [input_node(o.type, "cotangent") if s else None for o, s in zip(graph.outputs, smooth)]
        self.kept = _worth_keeping(graph, [g for g in self._gradients(tuple(smooth)) if g is not None])
        own = [n for n in self.kept if n not in graph.outputs]
        self.graph = Graph(graph.inputs, (*graph.outputs, *own), graph.name)
        self.places = tuple([self.graph.outputs.index(n) for n in self.kept])

    def _gradients(self, present: tuple[bool, ...]) -> list[Node | None]:
        pairs = [(o, s) for o, s, p in zip(self._outputs, self._seeds, present) if p and s is not None]
        return vjp([o for o, _ in pairs], [s for _, s in pairs], [self._inputs[i] for i in self.active], promoted=True)

    def backward(self, present: tuple[bool, ...]) -> tuple[Graph | None, tuple[int, ...]]:
        """Return the derivative, and the positions of the inputs that it has cotangents for.

        It is a graph of the inputs, the kept values and the cotangents of the outputs that
        `present` marks; None where no input has a cotangent.
        """
        found = self._backward.get(present)
        if found is None:
            with deciding(self.decisions):
                found = self._backward[present] = self._build(present)
        return found

    @property
    def operands(self) -> frozenset[int]:
        """The inputs whose values the derivative uses."""
        if self._operands is None:
            graph, _ = self.backward(tuple([s is not None for s in self._seeds]))
            used = set() if graph is None else set(toposort(graph.outputs))
            places = enumerate(() if graph is None else graph.inputs[: len(self._inputs)])
            self._operands = frozenset([i for i, n in places if n in used])
        return self._operands

    def _build(self, present: tuple[bool, ...]) -> tuple[Graph | None, tuple[int, ...]]:
        grads = self._gradients(present)
        wanted = tuple([i for i, g in zip(self.active, grads) if g is not None])
        if not wanted:
            return None, ()
        inputs = {n: input_node(n.type, "operand") for n in self._inputs}
        residuals = {n: input_node(n.type, "residual") for n in self.kept}
        seeds = {s: input_node(s.type, "cotangent") for s, p in zip(self._seeds, present) if p and s is not None}
        outputs = _replaced([g for g in grads if g is not None], {**inputs, **residuals, **seeds})
        return Graph(
            (*inputs.values(), *residuals.values(), *seeds.values()), outputs, f"grad_{self.graph.name}"
        ), wanted


def _replaced(outputs: list[Node], replacement: dict[Node, Node]) -> list[Node]:
    """Return the result of `substitute`.

    An item of a forward node counts as replaced also where a rule made a new node for it.
    """
    items = {(n.inputs[0], n.params["index"]): m for n, m in replacement.items() if n.prim is GET_ITEM}
    for node in toposort(outputs, stop=replacement):
        if node.prim is GET_ITEM and node not in replacement:
            known = items.get((node.inputs[0], node.params["index"]))
            if known is not None:
                replacement[node] = known
    return substitute(outputs, replacement)


def _worth_keeping(graph: Graph, grads: Sequence[Node]) -> list[Node]:
    forward = {n for n in graph.nodes if not isinstance(n.type, tuple)}
    whole = {n for n in graph.nodes if isinstance(n.type, tuple)}
    known = {(n.inputs[0], n.params["index"]): n for n in forward if n.prim is GET_ITEM}
    stop = forward | set(graph.inputs)
    needed: set[Node] = set()
    pending = list(grads)
    for node in toposort(pending, stop=stop | whole):
        if node in forward:
            needed.add(_source(node))
        elif node.prim is GET_ITEM and node.inputs[0] in whole:
            # A rule has named the item anew.
            needed.add(known.setdefault((node.inputs[0], node.params["index"]), node))
    order = {n: i for i, n in enumerate(toposort([*graph.outputs, *needed]))}
    at_hand = set(graph.inputs)
    kept: list[Node] = []
    for node in sorted(needed, key=order.__getitem__):
        if node in at_hand or _is_light(node, at_hand):
            at_hand.add(node)
        else:
            kept.append(node)
            at_hand.add(node)
    return kept


def _source(node: Node) -> Node:
    while node.prim is BROADCAST_TO:
        node = node.inputs[0]
    return node


def _is_light(node: Node, at_hand: set[Node], depth: int = 4) -> bool:
    """Return whether a node is cheap to compute from the nodes `at_hand`."""
    if node in at_hand:
        return True
    if node.prim is None or depth == 0 or node.prim.cost is not Cost.LIGHT:
        return False
    return all(_is_light(i, at_hand, depth - 1) for i in node.inputs)


_links = RememberedOf[dict[tuple[int, ...], list[Link]]]("calls that keep residuals", MANY)


def link(graph: Graph, active: Sequence[int], sizes: Mapping[str, int] | None = None) -> Link:
    """Return the `Link` of a graph that is differentiated by its inputs `active`.

    `sizes` are those of its symbols. The link is remembered as long as the graph lives.
    """
    key = tuple(active)
    known = _links.of(graph, dict).setdefault(key, [])
    for found in known:
        if found.decisions is None or found.decisions.condition()(sizes or {}):
            return found
    decisions = Decisions(sizes) if sizes else None
    with deciding(decisions):
        known.append(Link(graph, key, decisions))
    return known[-1]
