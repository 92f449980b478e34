"""Recording eager operations for a gradient.

While a `Recorder` is in force operations still run at once; those that depend on a marked input also become nodes, each remembered with
the tensor that it produced. `pullback` differentiates the recorded nodes with the rules of every graph; recorded values that the rules use
become inputs of the backward graph, which is compiled once for each structure. Inside another recording the
gradient's own operations are recorded in turn, so that gradients nest to any order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Optional

from mycel import eager
from mycel.ir.graph import Graph, Node, input_node, toposort
from mycel.prims.base import GET_ITEM, Primitive, freeze
from mycel.prims.elementwise import identity
from mycel.tensor import Tensor, make
from mycel.transforms.grad import vjp

__all__ = ["Recorder", "current_recorder"]

_backward: dict[Any, tuple[Any, tuple[int, ...], tuple[Optional[int], ...]]] = {}


class Recorder(eager.Context):
    """The tape of one recording; `depth` counts the gradients that are being taken on it."""

    def __init__(self) -> None:
        self.values: dict[Node, Any] = {}
        self.depth = 0

    def node_of(self, t: Tensor) -> Optional[Node]:
        """The node that computes `t` on this tape, if it depends on a marked input."""
        node = t._node
        return node if node is not None and node in self.values else None

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        result = eager.execute(primitive, inputs, params)
        values = self.values
        tracked = False
        for t in inputs:
            if t._node is not None and t._node in values:
                tracked = True
                break
        if not tracked:
            return result
        nodes = []
        for t in inputs:
            node = t._node
            if node is None or node not in values:
                node = Node(None, (), _LEAF, t._type)
                values[node] = t._buf
            nodes.append(node)
        if type(result) is tuple:
            whole = Node(primitive, tuple(nodes), params, tuple([r._type for r in result]))
            for i, r in enumerate(result):
                r._node = Node(GET_ITEM, (whole,), {"index": i}, r._type)
                values[r._node] = r._buf
        else:
            node = Node(primitive, tuple(nodes), params, result._type)
            result._node = node
            values[node] = result._buf
        return result

    def write(self, target: Tensor, new: Tensor) -> None:
        target._buf = new._buf
        if not hasattr(target, "requires_grad"):
            target._node = new._node

    def mark(self, t: Tensor) -> Tensor:
        """A new tensor with the value of `t` whose gradient can be asked for."""
        before = self.node_of(t)
        if t._buf is None:
            t._need_value("differentiation")
        made = make(t._type, t._buf)
        made._node = Node(None, (), _LEAF, t._type) if before is None else Node(identity, (before,), {}, t._type)
        self.values[made._node] = t._buf
        return made

    @contextmanager
    def marked_weights(self, weights: Sequence[Tensor]) -> Iterator[list[Node]]:
        """Mark parameters in place for a block; their nodes."""
        before = [w._node for w in weights]
        nodes = []
        for w in weights:
            node = Node(None, (), _LEAF, w._type) if self.node_of(w) is None else Node(identity, (self.node_of(w),), {}, w._type)  # type: ignore[arg-type]
            self.values[node] = w._buf
            w._node = node
            nodes.append(node)
        try:
            yield nodes
        finally:
            for w, node in zip(weights, before):
                w._node = node

    def invoke(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a user's function while recording."""
        return fn(*args, **kwargs)

    def pullback(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> list[Optional[Tensor]]:
        """The gradients of `outputs` weighted by `cotangents`, by the nodes `wrt`; None where there is no dependence."""
        kept = [(o, c) for o, c in zip(outputs, cotangents) if self.node_of(o) is not None]
        if not kept:
            return [None] * len(wrt)
        roots = [self.node_of(o) for o, _ in kept]
        if self.depth > 1:
            return self._recorded(roots, [c for _, c in kept], wrt)
        return self._compiled(roots, [c for _, c in kept], wrt)

    def _recorded(self, roots: Any, cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> list[Optional[Tensor]]:
        seeds = []
        known: dict[Node, Tensor] = {}
        for c in cotangents:
            seed = self.node_of(c) or input_node(c._type)
            seeds.append(seed)
            known[seed] = c
        grads = vjp(roots, seeds, wrt)
        return [None if g is None else self._replay(g, known) for g in grads]

    def _replay(self, root: Node, known: dict[Node, Any]) -> Tensor:
        """Run the nodes of a gradient as recorded operations."""
        for node in toposort([root], stop=set(self.values) | set(known)):
            if node in known:
                continue
            if node in self.values:
                value = make(node.type, self.values[node])
                value._node = node
                known[node] = value
            elif node.prim is GET_ITEM:
                known[node] = known[node.inputs[0]][node.params["index"]]
            else:
                known[node] = self.emit(node.prim, [known[i] for i in node.inputs], dict(node.params))  # type: ignore[arg-type]
        return known[root]  # type: ignore[no-any-return]

    def _compiled(self, roots: Any, cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> list[Optional[Tensor]]:
        order = toposort(roots, stop=set(wrt))
        position = {node: i for i, node in enumerate(order)}
        key = (
            tuple([(n.prim, freeze(n.params) if n.prim else (), tuple([position[i] for i in n.inputs]) if n.prim else (), n.type) for n in order]),
            tuple([position[r] for r in roots]),
            tuple([position.get(w, -1) for w in wrt]),
        )
        found = _backward.get(key)
        if found is None:
            found = _backward[key] = self._build(order, roots, wrt)
        run, used, results = found
        arguments = [self.values[order[i]] for i in used]
        buffers = run(*arguments, *[c._buf for c in cotangents]) if run is not None else ()
        if run is not None and sum(r is not None for r in results) == 1 and not isinstance(buffers, tuple):
            buffers = (buffers,)
        return [None if r is None else make(w.type, buffers[r]) for r, w in zip(results, wrt)]

    def _build(self, order: list[Node], roots: Any, wrt: Sequence[Node]) -> Any:
        from mycel.engines.select import compile_graph

        seeds = [input_node(r.type, "cotangent") for r in roots]
        grads = vjp(roots, seeds, wrt)
        wanted = [g for g in grads if g is not None]
        available = {n for n in order if n in self.values}
        reached = toposort(wanted, stop=available)
        used = [i for i, n in enumerate(order) if n in available and n in set(reached)]
        from mycel.ir.graph import substitute

        stand_in = {order[i]: input_node(order[i].type, "residual") for i in used}
        outputs = substitute(wanted, stand_in)
        numbers: list[Optional[int]] = []
        for g in grads:
            numbers.append(None if g is None else sum(n is not None for n in numbers))
        if not wanted:
            return None, (), tuple(numbers)
        graph = Graph((*stand_in.values(), *seeds), outputs, "backward")
        return compile_graph(graph), tuple(used), tuple(numbers)


_LEAF = {"name": "leaf"}


def current_recorder() -> Optional[Recorder]:
    context = eager.current_context()
    return context if isinstance(context, Recorder) else None
