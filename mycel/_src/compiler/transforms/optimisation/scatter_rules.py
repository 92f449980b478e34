"""Simplification of ``x + s * take_add(rows, indices)``: rows are added into x, not into zeros.

The transpose of reading rows of a table is a table of zeros with rows added in. A sum with it, as a
step of gradient descent takes or as the gradients of two uses of one table make, needs no such
table: the rows, scaled, are added to the other operand where they belong. Where that one is used no
more, nothing else of it is touched. Only wide floats are added in another order.
"""

from __future__ import annotations

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing.index import scatter_nd, take_add
from mycel._src.compiler.transforms.optimisation.rewrite_rules import Context, rule, uniform

__all__: list[str] = []


def _rows(node: Node, context: Context) -> tuple[Node, Node] | None:
    """Return the transposed read in a product with scalars, and the rows that it adds, scaled; None
    for anything else, and for what has another user.
    """
    if not context.is_single(node):
        return None
    if node.prim is take_add:
        return (node, node.inputs[0]) if node.params["axis"] == 0 else None
    if node.prim is E.neg:
        found = _rows(node.inputs[0], context)
        return None if found is None else (found[0], context.make(E.neg, found[1]))
    if node.prim is not E.mul:
        return None
    for table, scale in (node.inputs, reversed(node.inputs)):
        number = _number(scale)
        if number is not None and table.shape == node.shape and (found := _rows(table, context)) is not None:
            return found[0], context.make(E.mul, found[1], number)
    return None


def _number(node: Node) -> Node | None:
    """Return the scalar that a node is or repeats everywhere."""
    if not node.type.rank or uniform(node) is not None:
        return node if not node.type.rank else None
    return node.inputs[0] if node.prim is S.BROADCAST_TO and not node.inputs[0].type.rank else None


def _written(x: Node, table: Node, negative: bool, context: Context) -> Node | None:
    if x.shape != table.shape or table.dtype.kind != "f" or table.dtype.itemsize < 4:
        return None
    found = _rows(table, context)
    if found is None:
        return None
    read, rows = found
    indices = read.inputs[1]
    places = context.reshape(indices, (*indices.shape, 1))
    outside = {name: value for name, value in read.params.items() if name == "bounds"}
    return scatter_nd.node(x, places, context.make(E.neg, rows) if negative else rows, mode="add", **outside)


@rule(E.sub)
def _minus_rows(node: Node, context: Context) -> Node | None:
    x, y = node.inputs
    return _written(x, y, True, context)


@rule(E.add)
def _plus_rows(node: Node, context: Context) -> Node | None:
    x, y = node.inputs
    return _written(x, y, False, context) or _written(y, x, False, context)
