"""Reverse-mode differentiation as a graph transform.

The sweep goes through the nodes between `wrt` and the outputs in reverse topological order; each
node's cotangent is the sum of those that its users' rules return; a missing cotangent (None) is
zero. The result consists of nodes of the same primitives, so it can be differentiated, batched and
compiled like any other.

    vjp(outputs, cotangents, wrt)[i] = sum_j cotangents[j] * d outputs[j] / d wrt[i]
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, at, toposort
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import GET_ITEM, SERVICES, Primitive, constant, outputs_of
from mycel._src.compiler.prims.complex import conjugate
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.control_flow.while_gradient import loop_vjp
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.shape import broadcast_to, zeros_like
from mycel._src.compiler.transforms.attention_fusion import attention_of, pays_to_differentiate
from mycel._src.foundation.dtype import bool_, int32

__all__ = ["expanded", "gradient_graph", "vjp", "zeros_like"]


def expanded(primitive: Primitive, inputs: Sequence[Node], params: Any) -> tuple[Node, ...]:
    """Return the outputs of a primitive by its definition in simpler primitives."""
    assert primitive.expand is not None
    result = primitive.expand(*inputs, **params)
    return tuple(result) if isinstance(result, tuple) else (result,)


Own = Callable[[Node, Any], Sequence[Node | None] | None]


def vjp(
    outputs: Sequence[Node],
    cotangents: Sequence[Node | None],
    wrt: Sequence[Node],
    own: Own | None = None,
    promoted: bool = False,
) -> list[Node | None]:
    """Return the cotangents of the nodes `wrt`, given those of `outputs`.

    A cotangent is None where the outputs do not depend differentiably on the node. `own(node,
    cotangent)` returns the cotangents of a node's inputs in place of its rule, or None to use the
    rule. With `promoted` the cotangent of an integer that became a float by `promote` may be a
    float; otherwise each has the type of its node.
    """
    stop = set(wrt)
    order = toposort(outputs, stop=stop)
    active: set[Node] = set(stop)
    for node in order:
        if node not in active and any(i in active for i in node.inputs):
            active.add(node)
    ct: dict[Node, Node] = {}
    parts: dict[Node, list[Node | None]] = {}

    def accumulate(node: Node, value: Node | None) -> None:
        if value is None or node not in active:
            return
        if value.type is not node.type and not _is_promoted(value, node):
            raise AssertionError(f"the cotangent of {node} has type {value.type}, not {node.type}")
        if node.prim is GET_ITEM and node not in stop:
            whole = node.inputs[0]
            items = parts.setdefault(whole, [None] * len(whole.type))
            index = node.params["index"]
            before = items[index]
            items[index] = value if before is None else sum_of(before, value)
        else:
            ct[node] = sum_of(ct[node], value) if node in ct else value

    counts: dict[Node, int] = {}

    def uses() -> dict[Node, int]:
        """Return how often each node is used."""
        if not counts:
            for user in (*[i for n in order if n not in stop for i in n.inputs], *outputs):
                counts[user] = counts.get(user, 0) + 1
        return counts

    for output, cotangent in zip(outputs, cotangents):
        accumulate(output, cotangent)
    for node in reversed(order):
        if node in stop or node not in active or node.prim is None:
            continue
        if node.prim is GET_ITEM:
            continue
        value: Any = parts.get(node) if isinstance(node.type, tuple) else ct.get(node)
        if value is None:
            continue
        attended = attention_of(node, lambda n: n not in stop and uses()[n] == 1) if node.prim is matmul else None
        if attended is not None and pays_to_differentiate(attended):
            made = vjp([attended.result], [value], attended.leaves)
            for source, contribution in zip(attended.leaves, made):
                accumulate(source, contribution)
            continue
        with at(node.where and node.where.derivative_of(node.op)):
            found = None if own is None else own(node, value)
            for source, contribution in zip(node.inputs, _apply_rule(node, value, active) if found is None else found):
                accumulate(source, contribution)
    found = [ct.get(w) for w in wrt]
    return found if promoted else [None if c is None else _exactly(c, w) for c, w in zip(found, wrt)]


def _is_promoted(ct: Node, node: Node) -> bool:
    """Return whether the cotangent of an integer is a float."""
    return not node.dtype.is_inexact and ct.dtype.is_inexact and ct.shape == node.shape


def _exactly(ct: Node, node: Node) -> Node:
    return ct if ct.dtype is node.dtype else E.cast(ct, dtype=node.dtype)


def sum_of(x: Node, y: Node) -> Node:
    if x.dtype is not y.dtype:
        kind = y.dtype if x.dtype.is_inexact else x.dtype
        x, y = E.cast(x, dtype=kind), E.cast(y, dtype=kind)
    return (E.logical_or if x.dtype is bool_ else E.add)(x, y)


def _apply_rule(node: Node, ct: Any, active: Container[Node]) -> Sequence[Node | None]:
    prim = node.prim
    assert prim is not None
    if prim is while_loop:
        return loop_vjp(ct, outputs_of(node), *node.inputs, **node.params, active=[i in active for i in node.inputs])
    if type(ct) is Node and type(node.type) is not tuple and _is_promoted(ct, node):
        if prim.vjp is not None and (prim.elementwise or prim.view):
            return _rule_of_promoted(node, ct)
        ct = _exactly(ct, node)
    if prim.vjp is not None:
        if not prim.elementwise and type(ct) is Node and ct.dtype is bool_:
            return _rule_of_booleans(node, ct)
        out = outputs_of(node)
        given = tuple(ct) if isinstance(ct, list) else ct
        conjugates = prim.holomorphic and any(i.dtype.is_complex for i in node.inputs)
        if conjugates:
            given = tuple(map(_conjugate, given)) if isinstance(given, tuple) else _conjugate(given)
        result: Sequence[Node | None] = prim.vjp(given, out, *node.inputs, **node.params)
        return list(map(_conjugate, result)) if conjugates else result
    if prim.expand is None:
        raise NotImplementedError(f"{prim.name} has no derivative")
    fresh = [E.identity(i) for i in node.inputs]
    outputs = expanded(prim, fresh, node.params)
    return vjp(outputs, ct if isinstance(ct, list) else [ct], fresh)


def _rule_of_promoted(node: Node, ct: Node) -> Sequence[Node | None]:
    """Return the cotangents of an operation of integers whose own cotangent is a float.

    They are computed with floats. Those of a movement stay floats.
    """
    assert node.prim is not None and node.prim.vjp is not None
    kind = node.dtype
    inputs = [E.cast(i, dtype=ct.dtype) if i.dtype is kind else i for i in node.inputs]
    found = node.prim.vjp(ct, E.cast(node, dtype=ct.dtype), *inputs, **node.params)
    return [g if g is None or node.prim.view else _exactly(g, i) for g, i in zip(found, node.inputs)]


def _rule_of_booleans(node: Node, ct: Node) -> Sequence[Node | None]:
    """Return the cotangents of what moves booleans, computed with integers, which can be summed."""
    assert node.prim is not None and node.prim.vjp is not None
    inputs = [E.cast(i, dtype=int32) if i.dtype is bool_ else i for i in node.inputs]
    found = node.prim.vjp(E.cast(ct, dtype=int32), E.cast(node, dtype=int32), *inputs, **node.params)
    return [None if g is None else E.cast(g, dtype=i.dtype) for g, i in zip(found, node.inputs)]


def _conjugate(ct: Node | None) -> Node | None:
    return None if ct is None else conjugate(ct)


def gradient_graph(graph: Graph, wrt: Sequence[int], keep_value: bool = True) -> Graph:
    """Return the graph of a function's derivatives by the inputs at the positions `wrt`.

    The first output of `graph` is a scalar and is differentiated; with `keep_value` the new graph
    returns the outputs of `graph` before the derivatives.
    """
    out = graph.outputs[0]
    seed = broadcast_to(constant(1, out.dtype), out.shape)
    chosen = [graph.inputs[i] for i in wrt]
    grads = [g if g is not None else zeros_like(w) for g, w in zip(vjp([out], [seed], chosen), chosen)]
    return Graph(graph.inputs, (*graph.outputs, *grads) if keep_value else grads, f"grad_{graph.name}")


SERVICES.differentiate = vjp
