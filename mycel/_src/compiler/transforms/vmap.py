"""Vectorisation as a graph transform: a function of one example becomes one of a batch.

A value is *mapped* if it has a batch axis. A value that depends on no mapped value stays unmapped
and is computed once. A primitive is batched by its rule (`Primitive.batch`), through its `expand`,
or by a loop over the examples. Primitives that hold graphs are treated here.

* `cond`: with an unmapped condition it stays a `cond`, of mapped branches. With a mapped one, both
  branches are computed for the batch and the results are selected.
* `while_loop`: with an unmapped test it stays a loop, with a mapped body; a fixpoint of the body
  shows which carried values have to be mapped. With a mapped test it runs as long as any example
  does, and finished examples keep their state.
* `while_grad` goes back through the mapped loop; examples that were finished take no step.
* `call` and `recompute` take the mapped graph, `custom` its mapped derivative. All operands of a
  `recursion` are mapped, and so are the results of `recur` in it.

A branch is also computed for examples that did not take it. Their values must not appear in a
result, trap, loop without end, or spoil a derivative (0 * inf is NaN). So mapped operands of a
branch pass through `select`, whose derivative drops the cotangents of the other examples. Where
that is not enough (unmapped operands, inner loops, integer division, indices), the other examples
get the operands of one that did take the branch, and a branch that no example takes is not computed
at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node, at, input_node, toposort
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM, Cost, Primitive, constant, get_item, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.control_flow.recursion import recur, recursion
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.custom_derivatives import Rule, custom
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.indexing.dynamic_slicing import dynamic_update_slice
from mycel._src.compiler.transforms.grad import expanded
from mycel._src.foundation.dtype import int32
from mycel._src.foundation.errors import VmapError

__all__ = ["RULES", "batch", "batch_graph"]

Value = tuple[Node, int | None]
Values = Value | list[Value]
Flags = tuple[Any, ...]

_LIGHT = 40


def batch(outputs: Sequence[Node], mapped: Mapping[Node, tuple[Node, int]], size: DimLike) -> list[Value]:
    """Return the values of `outputs` for a batch, each a node and its batch axis (None: no batch).

    `mapped` gives, for nodes of one example, the values of all `size` examples and the axis along
    which they lie.
    """
    return _Batch(size).run(outputs, dict(mapped))


def batch_graph(graph: Graph, axes: Sequence[int | None], size: DimLike) -> tuple[Graph, tuple[int | None, ...]]:
    """Return the graph for a batch of `size` examples, and the batch axes of its outputs.

    Input i has its batch at `axes[i]`; None is no batch.
    """
    known: dict[Node, Values] = {}
    inputs = []
    for n, axis in zip(graph.inputs, axes):
        kind = n.type if axis is None else _lifted(n.type, size, axis)
        inputs.append(input_node(kind, str(n.params["name"])))
        known[n] = (inputs[-1], axis)
    found = _Batch(size).run(graph.outputs, known)
    return Graph(inputs, [v for v, _ in found], graph.name), tuple([a for _, a in found])


def _lifted(kind: TensorType, size: DimLike, axis: int = 0) -> TensorType:
    return tensor_type((*kind.shape[:axis], size, *kind.shape[axis:]), kind.dtype)


class _Batch:
    """The vectorisation of nodes for one size of batch."""

    def __init__(self, size: DimLike) -> None:
        self.size = size
        self._known_flags: dict[tuple[Graph, Flags], Flags] = {}
        self._recursions: list[str] = []

    # Nodes.

    def run(self, outputs: Sequence[Node], known: Mapping[Node, Values]) -> list[Any]:
        """Return the values of nodes, given those that are known.

        Nodes that depend on no known value stay as they are.
        """
        image: dict[Node, Values] = dict(known)
        for node in toposort(outputs, stop=known):
            if node not in image:
                image[node] = self._node(node, [image[i] for i in node.inputs])
        return [image[o] for o in outputs]

    def _node(self, node: Node, given: Sequence[Any]) -> Values:
        if node.prim is GET_ITEM and isinstance(given[0], list):
            part: Value = given[0][node.params["index"]]
            return part
        if all(axis is None for _, axis in given) and not self._recurs(node):
            inputs = tuple([v for v, _ in given])
            if all(a is b for a, b in zip(inputs, node.inputs)):
                return node, None
            return Node(node.prim, inputs, node.params, node.type, node.where), None
        with at(node.where):
            result = self._apply(node, given)
        for (value, axis), kind in zip(
            result if isinstance(result, list) else [result],
            node.type if isinstance(node.type, tuple) else [node.type],
        ):
            wanted = kind if axis is None else _lifted(kind, self.size, axis)
            if value.type is not wanted and value.type.is_static:
                raise AssertionError(f"the batch rule of {node.prim} gives {value.type} in place of {wanted}")
        return result

    def _apply(self, node: Node, given: Sequence[Value]) -> Values:
        prim = node.prim
        assert prim is not None
        if prim in RULES:
            return RULES[prim](self, node, given)
        if prim is recursion:
            return self._each(node, given)
        if prim.batch is not None:
            values, axes = prim.batch(self.size, tuple(v for v, _ in given), tuple(a for _, a in given), **node.params)
            if isinstance(node.type, tuple):
                places = axes if isinstance(axes, tuple) else (axes,) * len(values)
                return list(zip(values, places))
            return values, axes
        if prim.expand is not None:
            fresh = [input_node(i.type) for i in node.inputs]
            opened = self.run(expanded(prim, fresh, node.params), dict(zip(fresh, given)))
            return opened if isinstance(node.type, tuple) else opened[0]
        return self._each(node, given)

    def _each(self, node: Node, given: Sequence[Value]) -> Values:
        """Return a primitive without a rule, applied to one example after another."""
        prim = node.prim
        assert prim is not None
        kinds = list(node.type) if isinstance(node.type, tuple) else [node.type]
        operands = [self._front(v) if v[1] is not None else v[0] for v in given]
        start = [constant(0, int32), *[S.full(_lifted(k, self.size).shape, 0, k.dtype) for k in kinds]]
        inputs = [input_node(v.type, "operand") for v in (*start, *operands)]
        i, results = inputs[0], inputs[1 : 1 + len(kinds)]
        one = [
            I.take(v, i, axis=0, bounds="drop") if a is not None else v
            for v, (_, a) in zip(inputs[1 + len(kinds) :], given)
        ]
        made = outputs_of(prim.node(*one, **node.params))
        after = [E.add(i, 1)]
        for whole, part in zip(results, made if isinstance(made, tuple) else (made,)):
            zeros = [constant(0, int32)] * part.type.rank
            after.append(dynamic_update_slice(whole, S.reshape(part, (1, *part.shape)), i, *zeros))
        test_inputs = [input_node(v.type, "operand") for v in inputs]
        test = Graph(test_inputs, [E.lt(test_inputs[0], constant(self.size, int32))], "test")
        body = Graph(inputs, after, f"each_{prim.name}")
        whole = control.while_loop.node(*start, *operands, test=test, body=body, carried=len(start))
        parts: list[Value] = [(get_item(whole, k + 1), 0) for k in range(len(kinds))]
        return parts if isinstance(node.type, tuple) else parts[0]

    # Helpers.

    def _front(self, value: Value) -> Node:
        """Return a value with its batch axis in front; repeat the value where it has none."""
        node, axis = value
        return S.broadcast_to(node, (self.size, *node.shape)) if axis is None else S.move_axis(node, axis, 0)

    def _graph(self, graph: Graph, given: Sequence[bool], wanted: Sequence[bool]) -> Graph:
        """Return a graph of the batch with mapped values in front.

        `wanted` says which outputs are mapped.
        """
        inputs = self._inputs(graph, given)
        found = self.run(graph.outputs, self._entered(graph, inputs, given))
        return Graph(inputs, [self._front(v) if w else v[0] for v, w in zip(found, wanted)], graph.name)

    def _inputs(self, graph: Graph, given: Sequence[bool]) -> list[Node]:
        kinds = [_lifted(n.type, self.size) if g else n.type for n, g in zip(graph.inputs, given)]
        return [input_node(k, str(n.params["name"])) for k, n in zip(kinds, graph.inputs)]

    def _entered(self, graph: Graph, inputs: Sequence[Node], given: Sequence[bool]) -> dict[Node, Value]:
        return {n: (v, 0 if g else None) for n, v, g in zip(graph.inputs, inputs, given)}

    def _aligned(self, chosen: Node, rank: int) -> Node:
        """Return one boolean for each example, shaped to select values of `rank` further axes."""
        return S.reshape(chosen, (self.size, *(1,) * rank))

    def _select(self, chosen: Node, a: Value, b: Value) -> Value:
        if a[1] is None and b[1] is None and a[0] is b[0]:
            return a
        x, y = (v[0] if v[1] is None else self._front(v) for v in (a, b))
        rank = (a if a[1] is None else b)[0].type.rank - (a[1] is not None and b[1] is not None)
        return E.SELECT(self._aligned(chosen, rank), x, y), 0

    def _masked(self, chosen: Node, value: Value, example: Node | None) -> Value:
        """Return an operand whose derivative is zero except for the chosen examples.

        The other examples take the value of `example`, if one is given.
        """
        node, axis = value
        smooth = node.dtype.is_inexact
        if axis is None:
            if not smooth or example is not None or not _is_single(node.type):
                return value
            return self._select(chosen, value, (E.stop_gradient(node), None))
        if example is None:
            return self._select(chosen, value, (E.stop_gradient(node), axis)) if smooth else value
        own = self._front(value)
        other = I.take(own, example, axis=0, bounds="drop")
        return self._select(chosen, (own, 0), (E.stop_gradient(other) if smooth else other, None))

    def _one_of(self, chosen: Node) -> Node | None:
        """Return the number of a chosen example."""
        if isinstance(self.size, int) and self.size == 0:
            return None
        return R.argmax(E.cast(chosen, dtype=int32), axis=0)

    # What is mapped, without making nodes.

    def _flags(self, graph: Graph, given: Flags) -> Flags:
        """Return which outputs of a graph may be mapped when these inputs are."""
        key = (graph, given)
        found = self._known_flags.get(key)
        if found is None:
            flags: dict[Node, Any] = dict(zip(graph.inputs, given))
            for node in graph.nodes:
                flags[node] = self._node_flags(node, tuple([flags.get(i, False) for i in node.inputs]))
            found = self._known_flags[key] = tuple([flags[o] for o in graph.outputs])
        return found

    def _node_flags(self, node: Node, given: Flags) -> Any:
        p = node.params
        if node.prim is GET_ITEM:
            return given[0][p["index"]] if isinstance(given[0], tuple) else given[0]
        if not any(given):
            return self._recurs(node)
        if node.prim is control.cond:
            return self._cond_flags(given, p["true"], p["false"])
        if node.prim is control.while_loop:
            return self._loop_flags(given, **p)[0][: p["carried"]]
        return self._flags(p["graph"], given) if node.prim in (control.call, recompute) else True

    def _recurs(self, node: Node) -> bool:
        """Return whether a node is, or has in its graphs, a `recur` of a mapped recursion."""
        if not self._recursions:
            return False
        if node.prim is recur:
            return node.params["label"] in self._recursions
        return any(self._recurs(n) for g in node.params.values() if isinstance(g, Graph) for n in g.nodes)

    def _cond_flags(self, given: Flags, true: Graph, false: Graph) -> Flags:
        sides = self._flags(true, given[1:]), self._flags(false, given[1:])
        if not given[0]:
            return tuple([a or b for a, b in zip(*sides)])
        pairs = zip(*sides, _passed(true), _passed(false))
        return tuple([a or b or i is None or i != j for a, b, i, j in pairs])

    def _loop_flags(self, given: Flags, test: Graph, body: Graph, carried: int) -> tuple[Flags, bool]:
        """Return which operands of a loop are mapped in its iterations, and whether its test is."""
        kept = [o is i for o, i in zip(body.outputs, body.inputs)]
        while True:
            after = self._flags(body, given)
            is_mapped = bool(self._flags(test, given)[0])
            state = [g or a or (is_mapped and not k) for g, a, k in zip(given, after, kept)]
            now = (*state, *given[carried:])
            if now == given:
                return given, is_mapped
            given = now

    # Primitives that hold graphs.

    def _call(self, node: Node, given: Sequence[Value]) -> Values:
        prim, params = node.prim, dict(node.params)
        assert prim is not None
        graph = control.graph_for_call(params["graph"], [i.type for i in node.inputs])
        flags = tuple([a is not None for _, a in given])
        wanted = self._flags(graph, flags)
        operands = [self._front(v) if f else v[0] for v, f in zip(given, flags)]
        params["graph"] = self._graph(graph, flags, wanted)
        return _parts(prim.node(*operands, **params), wanted)

    def _custom(self, node: Node, given: Sequence[Value]) -> Values:
        p = dict(node.params)
        count, backward = p["count"], p["backward"]
        if backward is None:
            p["rule"] = _without_graph(p["rule"])
            return _parts(custom.node(*map(self._front, given), **p), (True,) * count)
        # A cotangent of each example needs an operand of each example.
        flags = [True] * count + [a is not None or i in p["wanted"] for i, (_, a) in enumerate(given[count:])]
        inner = [*flags[count:], *[True] * (len(backward.inputs) - len(given) + count)]
        p["backward"] = self._graph(backward, inner, (True,) * len(backward.outputs))
        operands = [self._front(v) if f else v[0] for v, f in zip(given, flags)]
        return _parts(custom.node(*operands, **p), (True,) * count)

    def _recursion(self, node: Node, given: Sequence[Value]) -> Values:
        graph, label = node.params["graph"], node.params["label"]
        self._recursions.append(label)
        mapped = self._graph(graph, (True,) * len(given), (True,) * len(graph.outputs))
        self._recursions.pop()
        return _parts(recursion.node(*map(self._front, given), graph=mapped, label=label), (True,) * len(graph.outputs))

    def _recur(self, node: Node, given: Sequence[Value]) -> Values:
        label = node.params["label"]
        if label not in self._recursions:
            return self._each(node, given)
        types = tuple([_lifted(t, self.size) for t in node.params["types"]])
        return _parts(recur.node(*map(self._front, given), label=label, types=types), (True,) * len(types))

    def _cond(self, node: Node, given: Sequence[Value]) -> Values:
        true, false = node.params["true"], node.params["false"]
        pred, operands = given[0], given[1:]
        if pred[1] is None:
            flags = tuple([a is not None for _, a in operands])
            wanted = self._cond_flags((False, *flags), true, false)
            sides = [self._graph(g, flags, wanted) for g in (true, false)]
            values = [self._front(v) if f else v[0] for v, f in zip(operands, flags)]
            return _parts(control.cond.node(pred[0], *values, true=sides[0], false=sides[1]), wanted)
        chosen = self._front(pred)
        taken = self._side(true, chosen, operands)
        others = self._side(false, E.logical_not(chosen), operands)
        return [self._select(chosen, a, b) for a, b in zip(taken, others)]

    def _side(self, graph: Graph, chosen: Node, operands: Sequence[Value]) -> list[Value]:
        """Return the outputs of a branch for the chosen examples; those of others are arbitrary."""
        passed = _passed(graph)
        missing = [k for k, i in enumerate(passed) if i is None]
        wanted = [graph.outputs[k] for k in missing]
        reached = set(toposort(wanted))
        used = {n: v for n, v in zip(graph.inputs, operands) if n in reached}
        if self._is_light(graph, used):
            made = self.run(wanted, {n: self._masked(chosen, v, None) for n, v in used.items()})
        else:
            made = self._guarded(graph.name, wanted, chosen, used)
        computed = iter(made)
        return [next(computed) if i is None else operands[i] for i in passed]

    def _is_light(self, graph: Graph, used: Mapping[Node, Value]) -> bool:
        if isinstance(self.size, int) and self.size == 0:
            return True
        if any(a is None and v.dtype.is_inexact and not _is_single(v.type) for v, a in used.values()):
            return False
        return _weight(graph) <= _LIGHT

    def _guarded(self, name: str, outputs: list[Node], chosen: Node, used: Mapping[Node, Value]) -> list[Values]:
        """Return nodes of one example for the batch, computed if any example is chosen.

        The examples that are not chosen get the operands of one that is.
        """
        operands = [chosen, *[self._front(v) if v[1] is not None else v[0] for v in used.values()]]
        inputs = [input_node(v.type, "operand") for v in operands]
        example = self._one_of(inputs[0])
        entered = [(i, None if v[1] is None else 0) for i, v in zip(inputs[1:], used.values())]
        found = self.run(outputs, {n: self._masked(inputs[0], v, example) for n, v in zip(used, entered)})
        flags = [v[1] is not None for v in found]
        results = [self._front(v) if f else v[0] for v, f in zip(found, flags)]
        empty = [input_node(v.type, "operand") for v in operands]
        whole = control.cond.node(
            R.reduce_any(chosen, axes=(0,), keepdims=False),
            *operands,
            true=Graph(inputs, results, name),
            false=Graph(empty, [S.zeros_like(r) for r in results], f"no_{name}"),
        )
        return list(_parts(whole, flags))

    def _while(self, node: Node, given: Sequence[Value]) -> Values:
        test, body, carried = (node.params[k] for k in ("test", "body", "carried"))
        flags, is_mapped = self._loop_flags(tuple([a is not None for _, a in given]), test, body, carried)
        operands = [self._front(v) if f else v[0] for v, f in zip(given, flags)]
        if is_mapped:
            graphs = self._masked_loop(test, body, flags)
        else:
            graphs = self._graph(test, flags, (False,)), self._graph(body, flags, flags[:carried])
        return _parts(
            control.while_loop.node(*operands, test=graphs[0], body=graphs[1], carried=carried), flags[:carried]
        )

    def _masked_loop(self, test: Graph, body: Graph, flags: Flags) -> tuple[Graph, Graph]:
        """Return a test and a body that continue while any example does.

        The body changes the values of those examples only.
        """
        inputs = self._inputs(test, flags)
        active = self._active(test, inputs, flags)
        any_active = Graph(inputs, [R.reduce_any(active, axes=(0,), keepdims=False)], test.name)
        inputs = self._inputs(body, flags)
        active, found = self._masked_round(test, body, inputs, flags)
        results = []
        for before, now, old, value, flag in zip(body.inputs, body.outputs, inputs, found, flags):
            results.append(old if now is before or not flag else self._select(active, value, (old, 0))[0])
        return any_active, Graph(inputs, results, body.name)

    def _masked_round(self, test: Graph, graph: Graph, inputs: Sequence[Node], flags: Flags) -> tuple[Node, list[Any]]:
        """Return which examples continue, and the outputs of a graph for them.

        The graph takes the loop's operands and possibly more; outputs of other examples are
        arbitrary.
        """
        active = self._active(test, inputs[: len(test.inputs)], flags)
        reached = set(toposort(graph.outputs))
        entered = {n: v for n, v in self._entered(graph, inputs, flags).items() if n in reached}
        unsafe = any(a is None and v.dtype.is_inexact and not _is_single(v.type) for v, a in entered.values())
        example = self._one_of(active) if unsafe or not _is_total(graph) else None
        return active, self.run(graph.outputs, {n: self._masked(active, v, example) for n, v in entered.items()})

    def _while_grad(self, node: Node, given: Sequence[Value]) -> Values:
        p = node.params
        test, body, backward, carried = p["test"], p["body"], p["backward"], p["carried"]
        # Each example has cotangents of its own, also for operands that all share.
        own = {*p["smooth"], *[carried + i for i in p["free"]], *range(len(body.inputs), len(given))}
        known = tuple([a is not None or i in own for i, (_, a) in enumerate(given)])
        loop_flags, is_mapped = self._loop_flags(known[: len(body.inputs)], test, body, carried)
        flags = (*loop_flags, *known[len(body.inputs) :])
        every = (True,) * len(backward.outputs)
        if is_mapped:
            graphs = self._masked_loop(test, body, loop_flags)
            inputs = self._inputs(backward, flags)
            active, found = self._masked_round(test, backward, inputs, flags)
            before: list[Value] = [(n, 0) for n in inputs[len(body.inputs) :]]
            before += [(S.zeros_like(o), None) for o in backward.outputs[len(before) :]]
            back = Graph(inputs, [self._select(active, a, b)[0] for a, b in zip(found, before)], backward.name)
        else:
            graphs = self._graph(test, flags, (False,)), self._graph(body, flags, flags[:carried])
            back = self._graph(backward, flags, every)
        operands = [self._front(v) if f else v[0] for v, f in zip(given, flags)]
        return _parts(
            while_grad.node(*operands, **{**p, "test": graphs[0], "body": graphs[1], "backward": back}), every
        )

    def _active(self, test: Graph, inputs: Sequence[Node], flags: Flags) -> Node:
        """Return, for each example, whether it continues."""
        (found,) = self.run(test.outputs, self._entered(test, inputs, flags))
        return self._front(found)


def _parts(whole: Node, flags: Sequence[bool]) -> list[Value]:
    return [(get_item(whole, i), 0 if f else None) for i, f in enumerate(flags)]


def _passed(graph: Graph) -> list[int | None]:
    """Return, for each output, the number of the input that it is; None where it is computed."""
    place = {n: i for i, n in enumerate(graph.inputs)}
    return [place.get(o) for o in graph.outputs]


def _is_single(kind: TensorType) -> bool:
    return isinstance(kind.size, int) and kind.size <= 1


def _may_trap(node: Node) -> bool:
    """Return whether a node may stop the program for arbitrary operands."""
    return node.prim is not None and node.prim.traps is not None and node.prim.traps(node)


def _is_total(graph: Graph) -> bool:
    """Return whether a graph ends, and does not trap, for all operands."""
    for node in graph.nodes:
        if node.prim in _UNENDING or _may_trap(node):
            return False
        if not all(_is_total(g) for g in node.params.values() if isinstance(g, Graph)):
            return False
    return True


def _without_graph(rule: Rule) -> Rule:
    """Return, for a batch, a program's rule that could not become a graph.

    It refuses, as it cannot be called for all examples at once.
    """

    def refuse(values: Any, cotangents: Any) -> Any:
        raise VmapError(
            "vmap: a derivative that the program gives is no graph, so that it is not known for a batch: "
            f"{rule.refusal}"
        )

    made = Rule(refuse, rule.is_hook)
    made.refusal = rule.refusal
    return made


def _weight(graph: Graph) -> float:
    """Return the number of nodes of a cheap graph that ends; infinity for others."""
    total = 0.0
    for node in graph.nodes:
        prim = node.prim
        assert prim is not None
        if prim is control.cond:
            total += _weight(node.params["true"]) + _weight(node.params["false"])
        elif prim is not CONSTANT and (_may_trap(node) or prim.cost is Cost.HEAVY):
            return float("inf")
        total += 1
    return total


_UNENDING = (control.while_loop, while_grad, recursion, recur)
RULES: dict[Primitive, Callable[[_Batch, Node, Sequence[Value]], Values]] = {
    control.cond: _Batch._cond,
    control.while_loop: _Batch._while,
    control.call: _Batch._call,
    recompute: _Batch._call,
    while_grad: _Batch._while_grad,
    custom: _Batch._custom,
    recursion: _Batch._recursion,
    recur: _Batch._recur,
}
