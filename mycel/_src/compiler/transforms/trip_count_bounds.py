"""Upper bounds of trip counts: how many iterations a counting loop has at most.

A loop that counts goes on only while a carried number, which grows by a constant each round, is
below a limit that does not change. Other conditions beside this one can only end it earlier. The
limit may be a size.
"""

from __future__ import annotations

from collections.abc import Iterator

from mycel._src.compiler.ir.dims import Dim, DimLike, maximum
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.shape import BROADCAST_TO, SIZE

__all__ = ["most_rounds"]

_BELOW = {E.lt: (0, 1, 0), E.le: (0, 1, 1), E.gt: (1, 0, 0), E.ge: (1, 0, 1)}


def most_rounds(node: Node) -> DimLike | None:
    """Return a number of rounds that a loop, or the loop of a gradient, does not go beyond.

    `node` is a `while_loop` or a `while_grad`. Returns None where its form does not tell.
    """
    test, body, carried = node.params["test"], node.params["body"], node.params["carried"]
    found: list[DimLike] = []
    (goes_on,) = test.outputs
    for condition in _conditions(goes_on):
        rounds = _counted(node, body, _place(test, condition, carried), test, condition, 0)
        if rounds is not None:
            found.append(rounds)
        at = _place(test, condition, carried)
        if at is not None:
            # What a round finds decides about the next one.
            for later in _conditions(body.outputs[at]):
                rounds = _counted(node, body, None, body, later, 1)
                if rounds is not None:
                    found.append(rounds)
    known = [r for r in found if not isinstance(r, Dim)]
    return min(known) if known else found[0] if found else None


def _place(graph: Graph, node: Node, carried: int) -> int | None:
    """Return which carried value a node of a loop's graph is; None for others."""
    return next((k for k, i in enumerate(graph.inputs[:carried]) if i is node), None)


def _conditions(node: Node) -> Iterator[Node]:
    """Yield conditions that all hold where a truth value is true."""
    if node.prim is E.logical_and:
        for i in node.inputs:
            yield from _conditions(i)
    elif node.prim is E.SELECT and _is_false(node.inputs[2]):
        yield from _conditions(node.inputs[0])
        yield from _conditions(node.inputs[1])
    elif node.prim is GET_ITEM and node.inputs[0].prim is control.cond:
        choice = node.inputs[0]
        other = choice.params["false"]
        given = dict(zip(other.inputs, choice.inputs[1:]))
        value = other.outputs[node.params["index"]]
        # Python's `and` gives the first operand where that is false.
        if _is_false(value) or given.get(value) is choice.inputs[0]:
            yield from _conditions(choice.inputs[0])
    else:
        yield node


def _is_false(node: Node) -> bool:
    return node.prim is CONSTANT and not node.value.any()


def _counted(loop: Node, body: Graph, place: int | None, graph: Graph, condition: Node, before: int) -> DimLike | None:
    """Return the most rounds of a `loop` by one `condition` in the test's or the body's `graph`.

    `place` is that of a carried value which the condition is, and so tells nothing itself; `before`
    rounds have run where it is first looked at.
    """
    if place is not None or condition.prim not in _BELOW:
        return None
    low, high, more = _BELOW[condition.prim]
    counter, limit = _uncast(condition.inputs[low]), condition.inputs[high]
    carried, step = loop.params["carried"], 0
    if before and counter.prim is E.add:
        counter, step = _stepped(counter)
    at = _place(graph, counter, carried)
    if at is None:
        return None
    grown, each = _stepped(body.outputs[at])
    if grown is not body.inputs[at] or each < 1 or (before and step != each):
        return None
    first, last = _number(loop.inputs[at]), _number(_outside(loop, graph, limit))
    if not isinstance(first, int) or last is None:
        return None
    rounds: DimLike = -((first - last - more) // each)
    return maximum(rounds, before)


def _stepped(node: Node) -> tuple[Node, int]:
    """Return the value and the constant that a node adds up; 0 where it is no such sum."""
    if node.prim is E.add:
        for value, amount in (node.inputs, node.inputs[::-1]):
            number = _number(amount)
            if isinstance(number, int):
                return value, number
    return node, 0


def _outside(loop: Node, graph: Graph, node: Node) -> Node:
    """Return what a node of a loop's graph is outside, where it does not change in the loop."""
    place = next((k for k, i in enumerate(graph.inputs) if i is node), None)
    return loop.inputs[place] if place is not None and place >= loop.params["carried"] else node


def _uncast(node: Node) -> Node:
    """Return the whole number that was cast to a wider type, or the node."""
    while node.prim is E.cast and node.dtype.is_integer and node.inputs[0].dtype.is_integer:
        if node.inputs[0].dtype.itemsize > node.dtype.itemsize:
            break
        node = node.inputs[0]
    return node


def _number(node: Node) -> DimLike | None:
    """Return the whole number that a node is; None for others."""
    while node.prim is BROADCAST_TO or node.prim is E.cast:
        node = node.inputs[0]
    if node.prim is SIZE:
        found: DimLike = node.params["dim"]
        return found
    if node.prim is CONSTANT and node.value.size == 1 and node.value.dtype.kind in "iu":
        return int(node.value.reshape(-1)[0])
    return None
