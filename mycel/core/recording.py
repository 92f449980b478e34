"""Recording eager operations for a gradient.

While a `Recorder` is in force operations still run at once; those that depend on a marked input
also become nodes, each remembered with the tensor that it produced. `pullback` and `pushforward`
differentiate the recorded nodes with the rules of every graph; recorded values that the rules use
become inputs of the derivative's graph, which is compiled once for each structure. Inside another
recording, or where another function is being staged, the derivative's own operations are applied
one by one in that context, so that derivatives nest to any order. The same is done where the
program defines derivatives of its own (`attach`), which are called with values.

A call of a compiled function is one node, which returns, beside the results, the values that its
derivative will use (`transforms.residuals`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Optional, TypeGuard

import numpy as np

from mycel.base import config
from mycel.base.remembered import SOME, Remembered
from mycel.base.spans import timed
from mycel.base.tree import flatten
from mycel.core import eager
from mycel.core.context import Optionals, Recording
from mycel.core.piecewise import pulled
from mycel.core.replay import Replay, along_units, nodes_of
from mycel.core.structures import LONG, history_of, key_of
from mycel.core.tensor import Tensor, make
from mycel.core.views import outdate
from mycel.engines import buffers, nonfinite
from mycel.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel.ir.hash import structural_hash
from mycel.ir.types import TensorType
from mycel.prims import control as C
from mycel.prims.base import GET_ITEM, Primitive
from mycel.prims.custom import Rule, custom, kept_call, refusal
from mycel.prims.elementwise import identity
from mycel.prims.recompute import recompute
from mycel.transforms.residuals import link

__all__ = ["BRIDGE", "CONSTANT", "Recorded", "Recorder", "current_recorder", "recorders"]

_settings = config._context
_Derived = tuple[Any, tuple[tuple[int, int], ...], tuple[Optional[tuple[int, Any]], ...]]
_derived = Remembered[Any, _Derived]("derivatives of recordings", SOME, config.COMPILED_ANEW)


class Recorded(Node):
    """A node with the value that it computed, on the recording `tape`.

    `prim` is the primitive (None for a leaf), `inputs` are its nodes and `params` its parameters.
    `type` and `buffer` are those of the result; a node of several results has tuples of both.
    """

    __slots__ = ("buffer", "tape")

    def __init__(
        self, prim: Optional[Primitive], inputs: tuple[Node, ...], params: Any, type: Any, buffer: Any, tape: Any
    ) -> None:
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.type = type
        self.where = None if _settings["check_nan"] is False else nonfinite.place_now()
        self.buffer = buffer
        self.tape = tape
        if tape.region is not None:
            tape.region.append(self)

    def items(self) -> tuple[Recorded, ...]:
        """Return a node for each value of a node of several values."""
        buffers = self.buffer or (None,) * len(self.type)
        pairs = enumerate(zip(self.type, buffers))
        return tuple([Recorded(GET_ITEM, (self,), _item(i), t, b, self.tape) for i, (t, b) in pairs])


class Recorder(Recording):
    """One recording; `depth` counts the gradients that are being taken on it.

    Nodes are kept alive only by the tensors and nodes that need them, so that others are freed
    while recording.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.owner: Optional[Tensor] = None
        self.is_finished = False
        self.region: Optional[list[Recorded]] = None
        self.written: list[Tensor] = []
        self.differentiated: list[Node] = []

    def holds(self, node: object) -> TypeGuard[Recorded]:
        """Return whether a node has its value on this recording."""
        return type(node) is Recorded and node.tape is self

    def node_of(self, t: Tensor) -> Optional[Node]:
        """Return the node that computes `t` on this recording, if it depends on a marked input."""
        node = t._node
        return node if type(node) is Recorded and node.tape is self else None

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if primitive is C.call:
            return self._call(inputs, params["graph"])
        result = eager.execute(primitive, inputs, params)
        self.enter(primitive, inputs, params, result)
        return result

    def enter(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any], result: Any) -> None:
        """Record the `result` (a tensor or a tuple) of a primitive applied to `inputs` and
        `params`, if it depends on a marked input.
        """
        for t in inputs:
            node = t._node
            if type(node) is Recorded and node.tape is self:
                break
        else:
            return
        nodes = self._nodes(inputs)
        if type(result) is tuple:
            self._enter(primitive, nodes, params, result)
        else:
            result._node = Recorded(primitive, nodes, params, result._type, result._buf, self)

    def enter_pair(self, primitive: Primitive, x: Tensor, y: Tensor, result: Tensor) -> None:
        """Record the `result` of a primitive without parameters applied to `x` and `y`, if it
        depends on a marked input.
        """
        a, b = x._node, y._node
        if type(a) is not Recorded or a.tape is not self:
            if type(b) is not Recorded or b.tape is not self:
                return
            a = Recorded(None, (), _LEAF, x._type, x._buf, self)
        elif type(b) is not Recorded or b.tape is not self:
            b = Recorded(None, (), _LEAF, y._type, y._buf, self)
        result._node = Recorded(primitive, (a, b), _NO_PARAMETERS, result._type, result._buf, self)

    def _nodes(self, tensors: Sequence[Tensor]) -> tuple[Node, ...]:
        nodes = []
        for t in tensors:
            node = t._node
            if type(node) is not Recorded or node.tape is not self:
                node = Recorded(None, (), _LEAF, t._type, t._buf, self)
            nodes.append(node)
        return tuple(nodes)

    def _enter(self, primitive: Primitive, nodes: tuple[Node, ...], params: Any, results: Sequence[Tensor]) -> None:
        types, values = tuple([r._type for r in results]), tuple([r._buf for r in results])
        whole = Recorded(primitive, nodes, params, types, values, self)
        for r, item in zip(results, whole.items()):
            r._node = item

    def enter_call(
        self,
        inputs: Sequence[Tensor],
        nodes: Sequence[Optional[Node]],
        params: dict[str, Any],
        types: tuple[Any, ...],
        values: tuple[Any, ...],
    ) -> list[Tensor]:
        """Record a `kept_call` of `inputs` and `params` that has run, and return its results.

        `nodes` are the nodes of the inputs on this recording. `types` and `values` are those of the
        results and of what its derivative uses.
        """
        given = tuple(
            [Recorded(None, (), _LEAF, t._type, t._buf, self) if n is None else n for t, n in zip(inputs, nodes)]
        )
        whole = Recorded(kept_call, given, params, types, values, self)
        made = []
        for i in range(params["count"]):
            result = make(types[i], values[i])
            result._node = Recorded(GET_ITEM, (whole,), _item(i), types[i], values[i], self)
            made.append(result)
        return made

    def _call(self, inputs: Sequence[Tensor], graph: Graph) -> Any:
        """Call a graph and keep the values that its derivative needs."""
        active = [i for i, t in enumerate(inputs) if self.node_of(t) is not None and t.dtype.is_differentiable]
        if not active:
            return eager.execute(C.call, inputs, {"graph": graph})
        if refusal(graph):
            return self._opened(inputs, graph)
        known = link(graph, active, C.sizes_in_call(graph, [t._type for t in inputs]))
        params = {"graph": known.graph, "count": known.count, "link": known}
        results = eager.execute(kept_call, inputs, params)
        self._enter(kept_call, self._nodes(inputs), params, results)
        return results[: known.count]

    def _opened(self, inputs: Sequence[Tensor], graph: Graph) -> Sequence[Tensor]:
        """Call a graph node by node, because it has derivatives of the program's own, which are
        called with values.
        """
        known: dict[Node, Any] = dict(zip(graph.inputs, inputs))
        for node in graph.nodes:
            given = [known[i] for i in node.inputs]
            if node.prim is GET_ITEM:
                known[node] = given[0][node.params["index"]]
            elif node.prim is custom and node.params["backward"] is None:
                count = node.params["count"]
                known[node] = self.attach(given[:count], given[count:], node.params["rule"])
            else:
                assert node.prim is not None
                known[node] = self.emit(node.prim, given, dict(node.params))
        return [known[o] for o in graph.outputs]

    def attach(self, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> Sequence[Tensor]:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""
        if all(self.node_of(t) is None for t in operands):
            return values
        leaves = tuple([Recorded(None, (), _LEAF, v._type, v._buf, self) for v in values])
        made = [make(v._type, v._buf) for v in values]
        params = {"count": len(values), "backward": None, "wanted": (), "rule": rule}
        self._enter(custom, (*leaves, *self._nodes(operands)), params, made)
        return made

    def write(self, target: Tensor, new: Tensor) -> None:
        target._buf = new._buf
        target._node = self.node_of(new)
        self.written.append(target)

    def recompute(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function as a region whose values a gradient computes anew instead of keeping."""
        outer, self.region = self.region, []
        try:
            out = fn(*args, **kwargs)
            inside = set(self.region)
        finally:
            if outer is not None:
                outer += self.region
            self.region = outer
        leaves = [t for t in flatten(out)[0] if isinstance(t, Tensor) and self.node_of(t) in inside]
        results = list({id(t): t for t in leaves}.values())
        nodes: list[Any] = [self.node_of(t) for t in results]
        own = toposort(nodes, stop=_Not(inside))
        if not results or any(n.prim is custom for n in own):
            return out
        stand_in, operands = _stand_ins(own, inside)
        graph = _interned(Graph([stand_in[n] for n in operands], _plain(nodes, stand_in), "region"))
        given = {self.node_of(t) for t in flatten((args, kwargs))[0] if isinstance(t, Tensor)}
        fresh = tuple([i for i, n in enumerate(operands) if n in given]) or tuple(range(len(operands)))
        self._enter(recompute, tuple(operands), {"graph": graph, "fresh": fresh}, results)
        return out

    def attach_hook(self, t: Tensor, rule: Rule, table: Any) -> bool:
        """Call `rule` with the complete gradient by `t`, a tensor that was computed here.

        `table` holds the tensor's hooks. Returns False where `t` was not computed here.
        """
        node: Any = table.base if self.holds(table.base) else self.node_of(t)
        if node is not None and node.params is BRIDGE:
            node = node.inputs[0]
        if node is None or node.prim is None or node.params is _MARK:
            return False
        inner = Recorded(node.prim, node.inputs, node.params, node.type, t._buf, self)
        leaf = Recorded(None, (), _LEAF, node.type, t._buf, self)
        params = {"count": 1, "backward": None, "wanted": (), "rule": rule}
        whole = Recorded(custom, (leaf, inner), params, (node.type,), (t._buf,), self)
        node.prim, node.inputs, node.params = GET_ITEM, (whole,), {"index": 0}
        table.base = inner
        return True

    def release(self) -> None:
        """Let go of written tensors, which outlive the recording."""
        for t in self.written:
            t._node = None
        self.written.clear()

    def finish(self) -> None:
        """Free the recording, whose values would else live as long as its results and the written
        tensors.
        """
        self.release()
        self.is_finished = True
        for node in self.differentiated:
            if self.holds(node):
                node.inputs, node.buffer = (), None
        self.differentiated.clear()

    def leaf(self, t: Tensor) -> Recorded:
        """Return a node for the present value of a tensor, which depends on nothing."""
        return Recorded(None, (), _LEAF, t._type, t._buf, self)

    def _marked(self, t: Tensor) -> Recorded:
        before = self.node_of(t)
        if before is None:
            return self.leaf(t)
        return Recorded(identity, (before,), _MARK, t._type, t._buf, self)

    def mark(self, t: Tensor) -> Tensor:
        """Return a new tensor with the value of `t` whose gradient can be asked for."""
        if t._buf is None:
            t._need_value("differentiation")
        made = make(t._type, t._buf)
        made._node = self._marked(t)
        return made

    @contextmanager
    def marked_weights(self, weights: Sequence[Tensor]) -> Iterator[list[Node]]:
        """Return a context manager that marks parameters in place and gives their nodes.

        What is written to the parameters within it stays.
        """
        if weights and self.owner is None:
            self.owner = weights[0]
        before = [w._node for w in weights]
        nodes: list[Node] = []
        for w in weights:
            w._node = self._marked(w)
            nodes.append(w._node)
            outdate(w)
        try:
            yield nodes
        finally:
            for w, node, marked in zip(weights, before, nodes):
                if w._node is marked:
                    w._node = node
                    outdate(w)

    # Derivatives.

    def pullback(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> Optionals:
        """Return the gradients of `outputs`, weighted by `cotangents`, by the nodes `wrt`.

        A gradient is None where no output depends on the node.
        """
        kept = [(node, c) for o, c in zip(outputs, cotangents) if (node := self.node_of(o)) is not None]
        if not kept:
            return [None] * len(wrt)
        return self._derive("pull", [node for node, _ in kept], [c for _, c in kept], wrt)

    def pushforward(
        self, outputs: Sequence[Tensor], wrt: Sequence[Node], tangents: Sequence[Tensor]
    ) -> tuple[Sequence[Tensor], Optionals]:
        """Return `outputs` and their tangents for the tangents of the nodes `wrt`.

        The tangent of an output that depends on none of the nodes is None.
        """
        kept = [i for i, o in enumerate(outputs) if self.node_of(o) is not None and o.dtype.is_differentiable]
        result: Optionals = [None] * len(outputs)
        if kept:
            roots: Any = [self.node_of(outputs[i]) for i in kept]
            for i, t in zip(kept, self._derive("push", roots, tangents, wrt)):
                result[i] = t
        return outputs, result

    def rows(self, output: Tensor, wrt: Sequence[Node]) -> Optionals:
        """Return the Jacobian of an output by each of the nodes `wrt`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """
        root = self.node_of(output)
        if root is None:
            return [None] * len(wrt)
        return self._derive("rows", [root], (), wrt)

    def columns(self, outputs: Sequence[Tensor], by: Node) -> Optionals:
        """Return the Jacobian of each output by the node `by`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """
        kept = [i for i, o in enumerate(outputs) if self.node_of(o) is not None and o.dtype.is_differentiable]
        result: Optionals = [None] * len(outputs)
        if kept:
            roots: Any = [self.node_of(outputs[i]) for i in kept]
            for i, t in zip(kept, self._derive("columns", roots, (), [by])):
                result[i] = t
        return result

    def _derive(self, kind: str, roots: Sequence[Node], given: Sequence[Tensor], wrt: Sequence[Node]) -> Optionals:
        order = toposort(roots, stop=set(wrt))
        if kind in ("rows", "columns") and any(n.prim is custom for n in order):
            return self._one_by_one(kind, roots, wrt)
        self.differentiated += order
        now = eager.current_context()
        if self.is_finished:
            raise RuntimeError(
                "a function that vjp or linearize gave is called after the gradient inside which it was made has "
                "ended; call it inside"
            )
        if now is not self and now is not None:
            return Replay(self, lambda p, inputs, params: eager.apply(p, *inputs, **params), False).run(
                kind, roots, given, wrt
            )
        if now is self and self.depth > 1:
            return Replay(self, self.emit, True).run(kind, roots, given, wrt)
        if any([n.prim is custom or _is_symbolic(n) for n in order]):
            with eager.use_context(None):
                return Replay(self, eager.execute, False).run(kind, roots, given, wrt)
        return self._compiled(kind, order, roots, given, wrt)

    def _one_by_one(self, kind: str, roots: Sequence[Node], wrt: Sequence[Node]) -> Optionals:
        """Return a Jacobian computed for one unit vector after another, because the program's own
        derivatives are called with values.
        """
        direction = roots[0].type if kind == "rows" else wrt[0].type

        def along(unit: np.ndarray[Any, Any]) -> Optionals:
            given = make(direction, buffers.from_array(unit))
            return self._derive("pull" if kind == "rows" else "push", roots, [given], wrt)

        return along_units(along, direction, kind == "columns", len(wrt if kind == "rows" else roots))

    def _compiled(
        self, kind: str, order: list[Node], roots: Sequence[Node], given: Sequence[Tensor], wrt: Sequence[Node]
    ) -> Optionals:
        history = history_of(self.owner)
        if kind == "pull" and len(order) > LONG and history.has_new_length(order):
            return self._pulled(order, [key_of(n) for n in order], roots, given, wrt)
        position = {node: i for i, node in enumerate(order)}
        parts: list[Any] = [kind]
        known: list[Any] = []
        for n in order:
            prim = n.prim
            if prim is None:
                parts += (None, n.type, n.where)
                known.append(None)
                continue
            params = n.params
            frozen = None if not params else params["link"] if prim is kept_call else tuple(params.items())
            known.append(frozen)
            parts += (prim, n.type, n.where, frozen)
            parts += [position[i] for i in n.inputs]
        key = (*parts, "roots", *[position[r] for r in roots], "wrt", *[position.get(w, -1) for w in wrt])
        found = history.ready.recent.get(key)
        if found is None:
            found = history.ready.get(key)
        if found is None:
            if kind == "pull" and history.is_new(key, order):
                return self._pulled(order, known, roots, given, wrt)
            found = _derived.recall(key, partial(self._build, kind, position, roots, given, wrt))
            history.ready.replace(key, found)
        run, used, results = found
        if run is None:
            return [None] * len(results)
        arguments = [order[i].buffer if k < 0 else order[i].buffer[k] for i, k in used]  # type: ignore[attr-defined]
        values = run(*arguments, *[c._buf for c in given])
        if not isinstance(values, tuple):
            values = (values,)
        return [None if r is None else make(r[1], values[r[0]]) for r in results]

    def _pulled(
        self,
        order: list[Any],
        known: Sequence[Any],
        roots: Sequence[Node],
        given: Sequence[Tensor],
        wrt: Sequence[Node],
    ) -> Optionals:
        recorders.are_large = recorders.are_large or len(order) > LONG
        found = pulled(order, known, roots, [(c._type, c._buf) for c in given], wrt)
        return [None if c is None else make(*c) for c in found]

    @timed("differentiation", lambda _, kind, *__: kind)
    def _build(
        self, kind: str, position: dict[Node, int], roots: Sequence[Node], given: Sequence[Tensor], wrt: Sequence[Node]
    ) -> Any:
        from mycel.engines.select import compile_graph

        seeds = [input_node(g._type, "cotangent" if kind == "pull" else "tangent") for g in given]
        derived = nodes_of(kind, roots, seeds, wrt)
        wanted = [n for n in derived if n is not None]
        numbers: list[Optional[tuple[int, Any]]] = []
        for n in derived:
            numbers.append(None if n is None else (sum(k is not None for k in numbers), n.type))
        if not wanted:
            return None, (), tuple(numbers)
        stand_in: dict[Node, Node] = {}
        used = []
        for node in toposort(wanted, stop=_Values(self)):
            if _has_value(self, node):
                used.append((position[node], -1) if node in position else _place_of_item(node, position))
                stand_in[node] = input_node(node.type, "residual")
        outputs = substitute(wanted, stand_in)
        return compile_graph(Graph((*stand_in.values(), *seeds), outputs, "derivative")), tuple(used), tuple(numbers)


_LEAF = {"name": "leaf"}
CONSTANT = {
    "name": "constant"
}  # of the leaves, where hooks on saved values tell them from marked tensors: see mycel.core.saved_tensors
BRIDGE: dict[str, Any] = {}  # of a node that has the value of one without
_NO_PARAMETERS: dict[str, Any] = {}
_MARK: dict[str, Any] = {}
_ITEMS: list[dict[str, int]] = []


def _item(index: int) -> dict[str, int]:
    """Return the parameters of a `get_item`, which nodes share."""
    while index >= len(_ITEMS):
        _ITEMS.append({"index": len(_ITEMS)})
    return _ITEMS[index]


def _is_symbolic(node: Node) -> bool:
    """Return whether a node calls a graph with symbolic sizes, which is compiled by itself."""
    if node.prim is not kept_call:
        return False
    link = node.params["link"]
    if link.symbolic is None:
        link.symbolic = any(isinstance(t, TensorType) and not t.is_static for t in link.graph.input_types)
    return bool(link.symbolic)


def _place_of_item(node: Node, position: dict[Node, int]) -> tuple[int, int]:
    return position[node.inputs[0]], node.params["index"]


def _has_value(recorder: Recorder, node: Any) -> bool:
    return recorder.holds(node) and node.buffer is not None and type(node.type) is not tuple


class _Not:
    """The complement of a set."""

    def __init__(self, members: set[Any]) -> None:
        self._members = members

    def __contains__(self, node: object) -> bool:
        return node not in self._members


def _stand_ins(own: Sequence[Any], inside: set[Any]) -> tuple[dict[Node, Node], list[Node]]:
    """Return graph inputs that stand for the nodes that a region uses from outside, and these
    nodes.

    Leaves with the same buffer share one graph input.
    """
    stand_in: dict[Node, Node] = {}
    operands: list[Node] = []
    by_buffer: dict[int, Node] = {}
    for node in own:
        if node.prim is None and node in inside and id(node.buffer) in by_buffer:
            stand_in[node] = by_buffer[id(node.buffer)]
        elif node.prim is None or node not in inside:
            stand_in[node] = input_node(node.type, "operand")
            operands.append(node)
            if node.prim is None and node in inside:
                by_buffer[id(node.buffer)] = stand_in[node]
    return stand_in, operands


def _plain(outputs: Sequence[Node], stand_in: dict[Node, Node]) -> list[Node]:
    """Return copies of recorded nodes as nodes of a graph, without their values."""
    image = dict(stand_in)
    for node in toposort(outputs, stop=stand_in):
        if node in image:
            continue
        prim, params = node.prim, node.params
        if prim is kept_call:
            prim, params = C.call, {"graph": params["graph"]}
        image[node] = Node(prim, tuple([image[i] for i in node.inputs]), params, node.type, node.where)
    return [image[o] for o in outputs]


_regions = Remembered[str, Graph]("recomputed regions", SOME)


def _interned(graph: Graph) -> Graph:
    """Return the known graph of this structure, so that what was compiled for it is found."""
    return _regions.enter(structural_hash(graph), graph)


class _Values:
    """The set of the nodes that have one value on a recording."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __contains__(self, node: object) -> bool:
        return _has_value(self._recorder, node)


class _Recorders:
    """The function that begins a recording; hooks on saved values set one of their own.

    `are_large` says that there was a recording of very many operations.
    """

    kind: Callable[[], Recorder] = Recorder
    are_large = False


recorders = _Recorders()


def current_recorder() -> Optional[Recorder]:
    context = eager.current_context()
    return context if isinstance(context, Recorder) else None
