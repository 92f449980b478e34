"""The tape: records eager operations for a gradient.

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
from typing import Any, TypeGuard

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM, Primitive, freeze
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.custom_derivatives import Rule, custom, kept_call, refusal
from mycel._src.compiler.prims.elementwise import identity, stop_gradient
from mycel._src.compiler.prims.parameter_assignment import assigned
from mycel._src.compiler.prims.saved_for_backward import SAVED, SAVED_ALONE
from mycel._src.compiler.transforms.residuals import link
from mycel._src.engines import buffers
from mycel._src.engines.select import compile_graph
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.foundation.pytree import flatten
from mycel._src.foundation.settings import config
from mycel._src.foundation.spans import timed
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.compile_threshold import LONG, history_of, key_of
from mycel._src.tensors.core.autograd.derivative_graph import Place, derivative_key, derived, reached, result_at
from mycel._src.tensors.core.autograd.per_operation_gradient import pulled
from mycel._src.tensors.core.autograd.recomputed_regions import region
from mycel._src.tensors.core.autograd.recorded_node import BRIDGE, LEAF, MARK, NO_PARAMETERS, Recorded, Tape, item_at
from mycel._src.tensors.core.autograd.replay import Replay, along_units
from mycel._src.tensors.core.autograd.sparse_gradient import RowGradient, Rows
from mycel._src.tensors.core.execution_context import HookTable, Optionals, Recording
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make
from mycel._src.tensors.core.views import outdate

__all__ = ["Recorder", "current_recorder", "recorders"]

_settings = config._context
_operations = eager.operations
_Derived = tuple[Any, tuple[tuple[int, int], ...], tuple[Place | None, ...]]
_derived = Remembered[Any, _Derived]("derivatives of recordings", SOME, config.COMPILED_ANEW)
_inner = Remembered[Any, _Derived]("derivatives inside of recordings", SOME)


class Recorder(Recording, Tape):
    """One recording; `depth` counts the gradients that are being taken on it.

    Nodes are kept alive only by the tensors and nodes that need them, so that others are freed
    while recording; and so are values that no derivative uses.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.owner: Tensor | None = None
        self.is_finished = False
        self.count = 0
        # Leaves by their buffers, which they keep alive.
        self.numbers: dict[int, Recorded] = {}
        # Whether each node was made after its inputs.
        self.is_ordered = True
        self.region: list[Recorded] | None = None
        self.written: list[Tensor] = []
        # The nodes of the parameters that are marked, by their identity.
        self.parameters: dict[int, Recorded] = {}
        self.differentiated: list[Node] = []

    @property
    def context(self) -> Recorder:
        return self

    @property
    def differentiating(self) -> Recorder:
        return self

    def holds(self, node: object) -> TypeGuard[Recorded]:
        return type(node) is Recorded and node.tape is self

    def node_of(self, t: Tensor) -> Node | None:
        """Return the node that computes `t` on this recording, if it depends on a marked input."""
        node = t._node
        return node if type(node) is Recorded and node.tape is self else None

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if len(inputs) == 1 and type(self) is Recorder:
            x = inputs[0]
            entry = _operations.get((primitive, (x._type,), freeze(params)) if params else (primitive, (x._type,)))
            if entry is not None and type(entry[1]) is TensorType and x._buf is not None:
                try:
                    made = make(entry[1], entry[0](x._buf))
                except MemoryError:
                    return self._executed(primitive, inputs, params)
                node = x._node
                if type(node) is Recorded and node.tape is self and primitive is not stop_gradient:
                    saved = SAVED.get(primitive.name) if self.region is None else None
                    if saved is None or 0 in saved:
                        node.buffer = x._buf
                    value = made._buf if saved is None or -1 in saved else None
                    made._node = Recorded(primitive, (node,), params, made._type, value, self)
                return made
        return self._executed(primitive, inputs, params)

    def _executed(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        if primitive is control.call:
            return self._call(inputs, params["graph"])
        result = eager.execute(primitive, inputs, params)
        self.enter(primitive, inputs, params, result)
        return result

    def enter(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any], result: Any) -> None:
        """Record the `result` (a tensor or a tuple) of a primitive applied to `inputs` and
        `params`, if it depends on a marked input and may have a gradient.
        """
        if primitive is stop_gradient:
            return
        for t in inputs:
            node = t._node
            if type(node) is Recorded and node.tape is self:
                break
        else:
            return
        nodes = self._nodes(inputs)
        saved = None
        if self.region is None:
            saved = SAVED.get(primitive.name)
            if len(nodes) == 2 and primitive.name in SAVED_ALONE and (nodes[0].prim is None or nodes[1].prim is None):
                saved = self._saved_alone(primitive, nodes, inputs)
        for i in range(len(nodes)) if saved is None else saved:
            if i >= 0:
                nodes[i].buffer = inputs[i]._buf
        if type(result) is tuple:
            self._enter(primitive, nodes, params, result)
        else:
            value = result._buf if saved is None or -1 in saved else None
            result._node = Recorded(primitive, nodes, params, result._type, value, self)

    def _saved_alone(
        self, primitive: Primitive, nodes: Sequence[Node], inputs: Sequence[Tensor]
    ) -> tuple[int, ...] | None:
        """Return what is kept of an application to two `inputs`, one of which may be no node
        here.
        """
        for i in (0, 1):
            if nodes[i] is not inputs[i]._node:
                return SAVED_ALONE[primitive.name][1 - i]
        return SAVED.get(primitive.name)

    def enter_pair(self, primitive: Primitive, x: Tensor, y: Tensor, result: Tensor) -> None:
        """Record the `result` of a primitive without parameters applied to `x` and `y`, if it
        depends on a marked input.
        """
        a, b = x._node, y._node
        if type(a) is not Recorded or a.tape is not self:
            if type(b) is not Recorded or b.tape is not self:
                return
            a = self._constant(x)
            kept = primitive.kept_of_pair[2]
        elif type(b) is not Recorded or b.tape is not self:
            b = self._constant(y)
            kept = primitive.kept_of_pair[1]
        else:
            kept = primitive.kept_of_pair[0]
        value = None
        if kept or self.region is not None:
            if self.region is not None or kept & 1:
                a.buffer = x._buf
            if self.region is not None or kept & 2:
                b.buffer = y._buf
            if self.region is not None or kept & 4:
                value = result._buf
        result._node = Recorded(primitive, (a, b), NO_PARAMETERS, result._type, value, self)

    def _nodes(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        nodes: list[Any] = []
        for t in tensors:
            node = t._node
            if type(node) is not Recorded or node.tape is not self:
                node = self._constant(t)
            nodes.append(node)
        return tuple(nodes)

    def _saved(self, tensors: Sequence[Tensor]) -> tuple[Any, ...]:
        """Return the nodes of tensors whose values are kept."""
        nodes = self._nodes(tensors)
        for node, t in zip(nodes, tensors):
            node.buffer = t._buf
        return nodes

    def _enter(self, primitive: Primitive, nodes: tuple[Node, ...], params: Any, results: Sequence[Tensor]) -> None:
        types, values = tuple([r._type for r in results]), tuple([r._buf for r in results])
        whole = Recorded(primitive, nodes, params, types, values, self)
        for r, item in zip(results, whole.items()):
            r._node = item

    def enter_call(
        self,
        inputs: Sequence[Tensor],
        nodes: Sequence[Node | None],
        params: dict[str, Any],
        types: tuple[Any, ...],
        values: tuple[Any, ...],
    ) -> list[Tensor]:
        """Record a `kept_call` of `inputs` and `params` that has run, and return its results.

        `nodes` are the nodes of the inputs on this recording. `types` and `values` are those of the
        results and of what its derivative uses.
        """
        given: list[Any] = []
        used = params["link"].operands if self.region is None else range(len(inputs))
        for i, (t, n) in enumerate(zip(inputs, nodes)):
            if n is None:
                given.append(self._constant(t))
                continue
            given.append(n)
            if i in used:
                given[i].buffer = t._buf
        places = params["link"].places if self.region is None else range(len(values))
        kept = tuple([v if i in places else None for i, v in enumerate(values)])
        whole = Recorded(kept_call, tuple(given), params, types, kept, self)
        made = []
        for i in range(params["count"]):
            result = make(types[i], values[i])
            result._node = Recorded(GET_ITEM, (whole,), item_at(i), types[i], kept[i], self)
            made.append(result)
        return made

    def _call(self, inputs: Sequence[Tensor], graph: Graph) -> Any:
        """Call a graph and keep the values that its derivative needs."""
        active = [i for i, t in enumerate(inputs) if self.node_of(t) is not None and t.dtype.is_differentiable]
        if not active:
            return eager.execute(control.call, inputs, {"graph": graph})
        if refusal(graph):
            return self._opened(inputs, graph)
        known = link(graph, active, control.sizes_in_call(graph, [t._type for t in inputs]))
        params = {"graph": known.graph, "count": known.count, "link": known}
        results = eager.execute(kept_call, inputs, params)
        self._enter(kept_call, self._saved(inputs), params, results)
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
        leaves = tuple([Recorded(None, (), LEAF, v._type, v._buf, self) for v in values])
        made = [make(v._type, v._buf) for v in values]
        params = {"count": len(values), "backward": None, "wanted": (), "rule": rule}
        self._enter(custom, (*leaves, *self._nodes(operands)), params, made)
        return made

    def write(self, target: Tensor, new: Tensor) -> None:
        target._buf = new._buf
        target._node = self._assigned(target, new) if isinstance(target, Parameter) else self.node_of(new)
        self.written.append(target)

    def _assigned(self, target: Parameter, new: Tensor) -> Recorded | None:
        """Return the node of a parameter to which `new` is assigned."""
        marked = self.parameters.get(id(target))
        if marked is None or not new._type.dtype.is_differentiable:
            return None
        before = self.node_of(new) or self.leaf(new)
        return Recorded(assigned, (before, marked), NO_PARAMETERS, new._type, new._buf, self)

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
        found = region(nodes, inside) if results else None
        if found is None:
            return out
        graph, operands = found
        given = {self.node_of(t) for t in flatten((args, kwargs))[0] if isinstance(t, Tensor)}
        fresh = tuple([i for i, n in enumerate(operands) if n in given]) or tuple(range(len(operands)))
        self._enter(recompute, tuple(operands), {"graph": graph, "fresh": fresh}, results)
        return out

    def attach_hook(self, t: Tensor, rule: Rule, table: HookTable) -> bool:
        """Call `rule` with the complete gradient by `t`, a tensor that was computed here.

        `table` holds the tensor's hooks. Returns False where `t` was not computed here.
        """
        node: Any = table.base if self.holds(table.base) else self.node_of(t)
        if node is not None and node.params is BRIDGE:
            node = node.inputs[0]
        if node is None or node.prim is None or node.params is MARK:
            return False
        inner = Recorded(node.prim, node.inputs, node.params, node.type, t._buf, self)
        leaf = Recorded(None, (), LEAF, node.type, t._buf, self)
        params = {"count": 1, "backward": None, "wanted": (), "rule": rule}
        whole = Recorded(custom, (leaf, inner), params, (node.type,), (t._buf,), self)
        node.prim, node.inputs, node.params = GET_ITEM, (whole,), {"index": 0}
        self.is_ordered = False
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
        self.numbers.clear()
        for node in self.differentiated:
            if self.holds(node):
                node.inputs, node.buffer = (), None
        self.differentiated.clear()

    def leaf(self, t: Tensor) -> Recorded:
        """Return a node for the present value of a tensor, which depends on nothing."""
        return Recorded(None, (), LEAF, t._type, t._buf, self)

    def _constant(self, t: Tensor) -> Recorded:
        """Return a leaf that no gradient is asked by; numbers, which programs use again and again,
        have one each.
        """
        buffer = t._buf
        if t._type.shape:
            return Recorded(None, (), LEAF, t._type, buffer, self)
        known = self.numbers.get(id(buffer))
        if known is None or known.type is not t._type:
            known = self.numbers[id(buffer)] = Recorded(None, (), LEAF, t._type, buffer, self)
        return known

    def _marked(self, t: Tensor) -> Recorded:
        before = self.node_of(t)
        if before is None:
            return self.leaf(t)
        return Recorded(identity, (before,), MARK, t._type, t._buf, self)

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
        outer = self.parameters
        self.parameters = dict(outer)
        nodes: list[Node] = []
        for w in weights:
            w._node = self.parameters[id(w)] = self._marked(w)
            nodes.append(w._node)
            outdate(w)
        try:
            yield nodes
        finally:
            self.parameters = outer
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
        order = reached(roots, set(wrt)) if self.is_ordered else toposort(roots, stop=set(wrt))
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
        is_plain = not any([n.prim is custom or _is_symbolic(n) for n in order])
        if now is self and self.depth > 1:
            found = self._called(kind, order, roots, given, wrt) if is_plain and type(self) is Recorder else None
            return Replay(self, self.emit, True).run(kind, roots, given, wrt) if found is None else found
        if not is_plain:
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
        self, kind: str, order: list[Any], roots: Sequence[Any], given: Sequence[Tensor], wrt: Sequence[Node]
    ) -> Optionals:
        history = history_of(self.owner)
        if kind == "pull" and len(order) > LONG and history.has_new_length(order):
            return self._pulled(order, [key_of(n) for n in order], roots, given, wrt)
        key, known = derivative_key(kind, order, roots, wrt)
        found = history.ready.recent.get(key)
        if found is None:
            found = history.ready.get(key)
        if found is None:
            if kind == "pull" and history.is_new(key, order):
                return self._pulled(order, known, roots, given, wrt)
            found = _derived.recall(key, partial(self._build, kind, order, roots, given, wrt))
            history.ready.replace(key, found)
        run, used, results = found
        if run is None:
            return [None] * len(results)
        arguments = [order[i].buffer if k < 0 else order[i].buffer[k] for i, k in used]
        values = run(*arguments, *[c._buf for c in given])
        if not isinstance(values, tuple):
            values = (values,)
        return [None if r is None else result_at(r, values) for r in results]

    def _called(
        self, kind: str, order: list[Any], roots: Sequence[Any], given: Sequence[Tensor], wrt: Sequence[Node]
    ) -> Optionals | None:
        """Return a derivative inside of another as a call of its graph, which is recorded.

        Returns None where the structure is new, so that its graph would not repay being compiled.
        """
        key, _ = derivative_key(kind, order, roots, wrt)
        found = _inner.get(key)
        if found is None:
            if history_of(self.owner).is_new(("inner", *key), order):
                return None
            types = [g._type for g in given]
            found = derived(kind, order, roots, types, wrt, partial(_has_value, self), by_rows=False)
            found = _inner.enter(key, found)
        graph, used, places = found
        if graph is None:
            return [None] * len(places)
        values = [_linked(order[i] if k < 0 else order[i].items()[k]) for i, k in used]
        results = self.emit(control.call, [*values, *given], {"graph": graph})
        return [None if p is None else results[p.number] for p in places]

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
        return [None if c is None else (RowGradient.of if type(c[1]) is Rows else make)(*c) for c in found]

    @timed("differentiation", lambda _, kind, *__: kind)
    def _build(
        self, kind: str, order: Sequence[Node], roots: Sequence[Node], given: Sequence[Tensor], wrt: Sequence[Node]
    ) -> _Derived:
        graph, used, places = derived(kind, order, roots, [g._type for g in given], wrt, partial(_has_value, self))
        return None if graph is None else compile_graph(graph), used, places


def _is_symbolic(node: Node) -> bool:
    """Return whether a node calls a graph with symbolic sizes, which is compiled by itself."""
    if node.prim is not kept_call:
        return False
    link = node.params["link"]
    if link.symbolic is None:
        link.symbolic = any(isinstance(t, TensorType) and not t.is_static for t in link.graph.input_types)
    return bool(link.symbolic)


def _linked(node: Recorded) -> Tensor:
    """Return a tensor with the value of a recorded node, and with that node."""
    value = make(node.type, node.buffer)
    value._node = node
    return value


def _has_value(recorder: Recorder, node: Any) -> bool:
    return recorder.holds(node) and node.buffer is not None and type(node.type) is not tuple


class _Recorders:
    """The function that begins a recording; hooks on saved values set one of their own.

    `are_large` says that there was a recording of very many operations.
    """

    kind: Callable[[], Recorder] = Recorder
    are_large = False


recorders = _Recorders()


def current_recorder() -> Recorder | None:
    context = eager.current_context()
    return context if isinstance(context, Recorder) else None
