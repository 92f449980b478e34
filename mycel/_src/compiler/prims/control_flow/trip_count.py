"""Trip counts: how many iterations a loop has, where its graph tells without running it.

A loop counts where a carried whole number starts from a constant, each round adds a constant to it,
and it is compared with a constant: by the test, or by the body, which carries what it found to the
test. `known_rounds` reads that from the graph; of any other loop only data decide.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad

__all__ = ["known_rounds"]

_TURNED = {E.lt: E.gt, E.gt: E.lt, E.le: E.ge, E.ge: E.le}
_HOLDS = {E.lt: operator.lt, E.gt: operator.gt, E.le: operator.le, E.ge: operator.ge}


def known_rounds(node: Node) -> int | None:
    """Return how often the body of a loop, or of its gradient, runs; None where data decide.

    >>> from mycel._src.foundation.dtype import int64
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims.base import constant
    >>> i = input_node(tensor_type((), int64))
    >>> test, body = Graph([i], [E.lt(i, 7)]), Graph([i], [E.add(i, 2)])
    >>> known_rounds(while_loop.node(constant(0, int64), test=test, body=body, carried=1))
    4
    """
    if node.prim not in (while_loop, while_grad):
        return None
    test, body, carried = node.params["test"], node.params["body"], node.params["carried"]
    (end,) = test.outputs
    known = _position(end, test.inputs)
    if known is None:
        return _counted(end, test, test.inputs[:carried], node, False)
    # A carried boolean, which each round finds for the next one.
    first = _truth(node.inputs[known]) if known < carried else None
    if first is None or not first:
        return None if first is None else 0
    later = _counted(body.outputs[known], body, body.outputs, node, True)
    return None if later is None else later + 1


def _counted(end: Node, graph: Graph, carried: Sequence[Node], node: Node, after: bool) -> int | None:
    """Return for how many values of a counter, one a round of the loop `node`, a comparison holds.

    `end` is the comparison, in `graph`, where `carried` are the carried values: as they begin the
    round, or `after` it.
    """
    if end.prim not in _TURNED:
        return None
    one, two = end.inputs
    for number, limit, compare in ((one, two, end.prim), (two, one, _TURNED[end.prim])):
        at = _position(number, carried)
        if at is None or number.dtype.kind not in "iu":
            continue
        fixed = _position(limit, graph.inputs)
        if fixed is not None:
            limit = node.inputs[fixed] if fixed >= len(carried) else limit
        start, step, last = _value(node.inputs[at]), _step(node.params["body"], at), _value(limit)
        if start is not None and step is not None and last is not None:
            return _count(start + step if after else start, step, last, compare)
    return None


def _position(value: Node, among: Sequence[Node]) -> int | None:
    return next((k for k, n in enumerate(among) if n is value), None)


def _truth(value: Node) -> bool | None:
    """Return a boolean that is known, also a comparison of known numbers."""
    if value.is_constant:
        return bool(value.value) if not value.type.rank else None
    if value.prim not in _TURNED:
        return None
    one, two = map(_value, value.inputs)
    return None if one is None or two is None else _HOLDS[value.prim](one, two)


def _value(node: Node) -> int | None:
    """Return the whole number that a node is, None where it is not known."""
    if not node.is_constant or node.type.rank or node.dtype.kind not in "iu":
        return None
    return int(node.value)


def _step(body: Graph, at: int) -> int | None:
    """Return what a round adds to a carried number."""
    new, old = body.outputs[at], body.inputs[at]
    if new.prim not in (E.add, E.sub):
        return None
    one, two = new.inputs
    if one is old and (by := _value(two)) is not None:
        return by if new.prim is E.add else -by
    return _value(one) if two is old and new.prim is E.add else None


def _count(start: int, step: int, last: int, compare: object) -> int | None:
    """Return how many of start, start + step, ... compare with `last` before one does not."""
    way = 1 if compare in (E.lt, E.le) else -1
    distance = (last - start) * way + (compare in (E.le, E.ge))
    if distance <= 0:
        return 0
    return -(-distance // (step * way)) if step * way > 0 else None
