"""Forward-mode differentiation as a graph transform, by transposing each primitive twice.

The derivative rule of a primitive is linear in the cotangent `u`, so that its own derivative by
`u`, taken along the inputs' tangents, is the push-forward:

    g(u) = J^T u,        tangent of the output = J t = d <g(u), t> / d u.

The dummy `u` itself does not appear in the result. Control flow carries its tangents along: a
`cond` gives values and tangents from the same branch, a `while_loop` updates both in the same
iteration, so that nothing is recorded on a tape. A missing tangent (None) is zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, at, input_node, substitute, toposort
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import GET_ITEM, SERVICES, get_item, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.control_flow.recursion import bind, derived_label, differentiable, recur, recursion
from mycel._src.compiler.prims.control_flow.while_gradient import push_while_grad, tangent_loop, while_grad
from mycel._src.compiler.prims.custom_derivatives import custom, kept_call
from mycel._src.compiler.prims.shape import zeros_like
from mycel._src.compiler.transforms.grad import expanded, vjp
from mycel._src.foundation.bounded_caches import MANY, RememberedOf

__all__ = ["jvp", "tangent_graph"]

Tangents = Sequence[Node | None]
Rule = Callable[[Node, Tangents], Tangents | None]


def jvp(
    outputs: Sequence[Node], wrt: Sequence[Node], tangents: Tangents, own: Rule | None = None
) -> tuple[list[Node], list[Node | None]]:
    """Return the outputs, and their tangents when the nodes `wrt` have the given `tangents`.

    The outputs are new nodes where one piece of control flow computes values and tangents together.
    `own(node, tangents)` returns the tangents of a node in place of its rule, and leaves the values
    as they are; it returns None to use the rule.
    """
    given = dict(zip(wrt, tangents))
    image: dict[Node, Node] = {}
    moved: dict[Node, Node | None] = {}
    items: dict[Node, tuple[Sequence[Node] | None, Tangents]] = {}
    for node in toposort(outputs, stop=given):
        if node in given:
            image[node], moved[node] = node, given[node]
            continue
        if node.prim is GET_ITEM and node.inputs[0] in items:
            values, changes = items[node.inputs[0]]
            index = node.params["index"]
            image[node], moved[node] = node if values is None else values[index], changes[index]
            continue
        changes = [moved[i] for i in node.inputs]
        if own is not None and any(t is not None for t in changes) and (found := own(node, changes)) is not None:
            image[node], moved[node], items[node] = node, None, (None, found)
            continue
        image[node], moved[node] = _again(node, image), None
        if all(t is None for t in changes):
            continue
        with at(node.where and node.where.derivative_of(node.op)):
            values, changes = _push(image[node], changes, own)
        if isinstance(node.type, tuple):
            items[node] = values, changes
        else:
            image[node], moved[node] = values[0], changes[0]
    return [image[o] for o in outputs], [moved[o] for o in outputs]


def tangent_graph(graph: Graph, active: Sequence[int], keep: Sequence[int] | None = None) -> tuple[Graph, list[int]]:
    """Return a graph of the outputs of `graph` and their tangents, and a list of positions.

    Its inputs are those of `graph` and the tangents of the inputs at `active`. The list says which
    outputs the tangents belong to: those at `keep`, or by default those that depend on `active`.
    The result is remembered as long as `graph` lives.
    """
    key = (tuple(active), None if keep is None else tuple(keep))
    known = _graphs.of(graph, dict)
    if key not in known:
        known[key] = _tangent_graph(graph, active, keep)
    return known[key]


_graphs = RememberedOf[dict[Any, tuple[Graph, list[int]]]]("tangents of graphs", MANY)


def _tangent_graph(graph: Graph, active: Sequence[int], keep: Sequence[int] | None) -> tuple[Graph, list[int]]:
    changes = [input_node(graph.inputs[i].type, "tangent") for i in active]
    values, moved = jvp(graph.outputs, [graph.inputs[i] for i in active], changes)
    kept = [i for i, t in enumerate(moved) if t is not None] if keep is None else list(keep)
    results = [_or_zeros(moved[i], values[i]) for i in kept]
    return Graph((*graph.inputs, *changes), (*values, *results), f"jvp_{graph.name}"), kept


def _or_zeros(value: Node | None, like: Node) -> Node:
    return zeros_like(like) if value is None else value


def _again(node: Node, image: dict[Node, Node]) -> Node:
    inputs = tuple([image[i] for i in node.inputs])
    if all(a is b for a, b in zip(inputs, node.inputs)):
        return node
    return Node(node.prim, inputs, node.params, node.type, node.where)


def _push(node: Node, tangents: Tangents, own: Rule | None) -> tuple[Sequence[Node], Tangents]:
    """Return the values of a node and their tangents."""
    prim = node.prim
    assert prim is not None
    rule = _RULES.get(prim)
    if rule is not None:
        return rule(node, tangents)
    outs = outputs_of(node)
    outs = outs if isinstance(outs, tuple) else (outs,)
    if prim.vjp is None:
        if prim.expand is None:
            raise NotImplementedError(f"{prim.name} has no derivative")
        fresh = [_free(i) for i in node.inputs]
        active = [(f, t) for f, t in zip(fresh, tangents) if t is not None]
        _, moved = jvp(expanded(prim, fresh, node.params), [f for f, _ in active], [t for _, t in active], own)
        back = dict(zip(fresh, node.inputs))
        present = iter(substitute([m for m in moved if m is not None], back))
        return outs, [None if m is None else next(present) for m in moved]
    return outs, _twice_transposed(node, outs, tangents)


def _free(node: Node) -> Node:
    return input_node(node.type, "operand")


def _twice_transposed(node: Node, outs: Sequence[Node], tangents: Tangents) -> Tangents:
    prim = node.prim
    assert prim is not None and prim.vjp is not None
    seeds = [input_node(o.type, "cotangent") if o.dtype.is_differentiable else None for o in outs]
    dummies = [s for s in seeds if s is not None]
    if not dummies:
        return [None] * len(outs)
    several = isinstance(node.type, tuple)
    ct: Any = tuple(seeds) if several else seeds[0]
    grads = prim.vjp(ct, tuple(outs) if several else outs[0], *node.inputs, **node.params)
    pairs = [(g, t) for g, t in zip(grads, tangents) if g is not None and t is not None]
    moving = [t if t.dtype is g.dtype else E.cast(t, dtype=g.dtype) for g, t in pairs]
    found = vjp([g for g, _ in pairs], moving, dummies)
    present = [f for f in found if f is not None]
    reached = set(toposort(present)) & set(dummies)
    # What is linear in a dummy does not depend on where its derivative is taken.
    present = substitute(present, {d: zeros_like(d) for d in reached}) if reached else present
    results = iter(present)
    by_seed = {d: None if f is None else next(results) for d, f in zip(dummies, found)}
    return [None if s is None else by_seed[s] for s in seeds]


def _items(whole: Node, start: int, count: int) -> list[Node]:
    return [get_item(whole, i) for i in range(start, start + count)]


def _push_cond(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    operands, changes = node.inputs[1:], tangents[1:]
    active = [i for i, t in enumerate(changes) if t is not None]
    true, false = node.params["true"], node.params["false"]
    kept = sorted({i for g in (true, false) for i in tangent_graph(g, active)[1]})
    branches = [tangent_graph(g, active, kept)[0] for g in (true, false)]
    given = [t for t in changes if t is not None]
    whole = control.cond.node(node.inputs[0], *operands, *given, true=branches[0], false=branches[1])
    return _split(whole, len(node.type), kept)


def _push_call(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    active = [i for i, t in enumerate(tangents) if t is not None]
    graph, kept = tangent_graph(control.graph_for_call(node.params["graph"], [i.type for i in node.inputs]), active)
    whole = control.call.node(*node.inputs, *[t for t in tangents if t is not None], graph=graph)
    return _split(whole, len(node.type), kept)


def _split(whole: Node, count: int, kept: Sequence[int]) -> tuple[Sequence[Node], Tangents]:
    moved: list[Node | None] = [None] * count
    for place, i in enumerate(kept):
        moved[i] = get_item(whole, count + place)
    return _items(whole, 0, count), moved


def _push_loop(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    carried = node.params["carried"]
    body = node.params["body"]
    fixed = [i for i in range(carried, len(node.inputs)) if tangents[i] is not None]
    moving = [i for i in range(carried) if tangents[i] is not None]
    while True:
        grown = sorted({*moving, *tangent_graph(body, [*moving, *fixed])[1]})
        if grown == moving:
            break
        moving = grown
    if not moving:
        return _items(node, 0, carried), [None] * carried
    start = [_or_zeros(tangents[i], node.inputs[i]) for i in moving]
    params = tangent_loop(node.params["test"], body, carried, moving, fixed)
    values, rest = node.inputs[:carried], node.inputs[carried:]
    drift = [t for t in tangents[carried:] if t is not None]
    whole = control.while_loop.node(*values, *start, *rest, *drift, **params)
    return _split(whole, carried, moving)


def _push_recursion(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    graph, label = node.params["graph"], derived_label("jvp", node.params["label"])
    active, kept = differentiable(graph.input_types), differentiable(graph.output_types)
    pushed = bind(tangent_graph(graph, active, kept)[0], node.params["label"], graph)
    given = [_or_zeros(tangents[i], node.inputs[i]) for i in active]
    return _split(recursion.node(*node.inputs, *given, graph=pushed, label=label), len(node.type), kept)


def _push_recur(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    label, types = derived_label("jvp", node.params["label"]), node.params["types"]
    kept = differentiable(types)
    given = [_or_zeros(tangents[i], node.inputs[i]) for i in differentiable([n.type for n in node.inputs])]
    whole = recur.node(*node.inputs, *given, label=label, types=(*types, *[types[i] for i in kept]))
    return _split(whole, len(types), kept)


def _push_custom(node: Node, tangents: Tangents) -> tuple[Sequence[Node], Tangents]:
    count, rule = node.params["count"], node.params["rule"]
    if rule is not None and rule.is_hook:
        return outputs_of(node), tangents[count:][:count]
    return outputs_of(node), _twice_transposed(node, outputs_of(node), tangents)


_RULES: dict[Any, Callable[[Node, Tangents], tuple[Sequence[Node], Tangents]]] = {
    control.cond: _push_cond,
    control.call: _push_call,
    custom: _push_custom,
    kept_call: _push_call,
    recompute: _push_call,
    recursion: _push_recursion,
    recur: _push_recur,
    control.while_loop: _push_loop,
    while_grad: push_while_grad,
}

SERVICES.push_forward = jvp
