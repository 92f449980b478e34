"""How often loops run, where that is known without running them.

A loop counts where a carried whole number starts from a constant, each round adds a constant to it,
and the test compares it with a constant. `known_rounds` reads that from the graph; of any other
loop only data decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

from mycel.ir.graph import Graph, Node
from mycel.prims import elementwise as E
from mycel.prims.control import while_loop
from mycel.prims.loop_gradient import while_grad

__all__ = ["known_rounds"]

_TURNED = {E.lt: E.gt, E.gt: E.lt, E.le: E.ge, E.ge: E.le}


def known_rounds(node: Node) -> Optional[int]:
    """Return how often the body of a loop, or of its gradient, runs; None where data decide.

    >>> import numpy as np
    >>> from mycel.base.dtype import int64
    >>> from mycel.ir.graph import input_node
    >>> from mycel.ir.types import tensor_type
    >>> from mycel.prims.base import constant
    >>> i = input_node(tensor_type((), int64))
    >>> test, body = Graph([i], [E.lt(i, 7)]), Graph([i], [E.add(i, 2)])
    >>> known_rounds(while_loop.node(constant(0, int64), test=test, body=body, carried=1))
    4
    """
    if node.prim not in (while_loop, while_grad):
        return None
    test, body, carried = node.params["test"], node.params["body"], node.params["carried"]
    (end,) = test.outputs
    if end.prim not in _TURNED:
        return None
    for number, limit, compare in ((*end.inputs, end.prim), (*reversed(end.inputs), _TURNED[end.prim])):
        at = _position(number, test)
        if at is None or at >= carried or number.dtype.kind not in "iu":
            continue
        found = (_value(node.inputs[at]), _step(body, at), _value(_outside(limit, test, node.inputs, carried)))
        start, step, last = found
        if start is not None and step is not None and last is not None:
            return _count(start, step, last, compare)
    return None


def _position(value: Node, graph: Graph) -> Optional[int]:
    return next((k for k, n in enumerate(graph.inputs) if n is value), None)


def _value(node: Node) -> Optional[int]:
    """Return the whole number that a node is, None where it is not known."""
    if not node.is_constant or node.type.rank or node.dtype.kind not in "iu":
        return None
    return int(node.value)


def _outside(value: Node, graph: Graph, operands: Sequence[Node], carried: int) -> Node:
    """Return what a fixed operand is outside of a loop, or the value itself."""
    at = _position(value, graph)
    return value if at is None or at < carried else operands[at]


def _step(body: Graph, at: int) -> Optional[int]:
    """Return what a round adds to a carried number."""
    new, old = body.outputs[at], body.inputs[at]
    if new.prim not in (E.add, E.sub):
        return None
    one, two = new.inputs
    if one is old and (by := _value(two)) is not None:
        return by if new.prim is E.add else -by
    return _value(one) if two is old and new.prim is E.add else None


def _count(start: int, step: int, last: int, compare: object) -> Optional[int]:
    """Return how many of start, start + step, ... compare with `last` before one does not."""
    way = 1 if compare in (E.lt, E.le) else -1
    distance = (last - start) * way + (compare in (E.le, E.ge))
    if distance <= 0:
        return 0
    return -(-distance // (step * way)) if step * way > 0 else None
