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

from mycel import config, eager
from mycel.engines import nonfinite
from mycel.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel.prims.base import GET_ITEM, Primitive, freeze
from mycel.prims.elementwise import identity
from mycel.tensor import Tensor, make
from mycel.transforms.grad import vjp

__all__ = ["Recorder", "current_recorder"]

MOST_GRAPHS = 1024
_backward: dict[Any, tuple[Any, tuple[int, ...], tuple[Optional[int], ...]]] = {}
config.listeners.append(lambda options: _backward.clear() if "check_nan" in options else None)


class Recorded(Node):
    """A node with the value that it computed, on the recording `tape`."""

    __slots__ = ("buffer", "tape")

    def __init__(
        self, prim: Optional[Primitive], inputs: tuple[Node, ...], params: Any, type: Any, buffer: Any, tape: Any
    ) -> None:
        self.prim = prim
        self.inputs = inputs
        self.params = params
        self.type = type
        self.where = nonfinite.place_now()
        self.buffer = buffer
        self.tape = tape


class Recorder(eager.Context):
    """One recording; `depth` counts the gradients that are being taken on it.

    Nodes are kept alive by the tensors and nodes that need them, so what is not needed is freed while recording.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.written: list[Tensor] = []
        self.differentiated: list[Node] = []

    def holds(self, node: Any) -> bool:
        """Whether a node has its value on this recording."""
        return type(node) is Recorded and node.tape is self

    def node_of(self, t: Tensor) -> Optional[Node]:
        """The node that computes `t` on this recording, if it depends on a marked input."""
        node = t._node
        return node if type(node) is Recorded and node.tape is self else None

    def emit(self, primitive: Primitive, inputs: Sequence[Tensor], params: dict[str, Any]) -> Any:
        result = eager.execute(primitive, inputs, params)
        for t in inputs:
            node = t._node
            if type(node) is Recorded and node.tape is self:
                break
        else:
            return result
        nodes = []
        for t in inputs:
            node = t._node
            if type(node) is not Recorded or node.tape is not self:
                node = Recorded(None, (), _LEAF, t._type, t._buf, self)
            nodes.append(node)
        if type(result) is tuple:
            whole = Recorded(primitive, tuple(nodes), params, tuple([r._type for r in result]), None, self)
            for i, r in enumerate(result):
                r._node = Recorded(GET_ITEM, (whole,), {"index": i}, r._type, r._buf, self)
        else:
            result._node = Recorded(primitive, tuple(nodes), params, result._type, result._buf, self)
        return result

    def write(self, target: Tensor, new: Tensor) -> None:
        target._buf = new._buf
        target._node = self.node_of(new)
        self.written.append(target)

    def finish(self) -> None:
        """Free the recording: what results and written tensors hold of it would keep every value alive."""
        for t in self.written:
            t._node = None
        self.written.clear()
        for node in self.differentiated:
            if self.holds(node):
                node.inputs, node.buffer = (), None  # type: ignore[attr-defined]
        self.differentiated.clear()

    def _marked(self, t: Tensor) -> Recorded:
        before = self.node_of(t)
        if before is None:
            return Recorded(None, (), _LEAF, t._type, t._buf, self)
        return Recorded(identity, (before,), {}, t._type, t._buf, self)

    def mark(self, t: Tensor) -> Tensor:
        """A new tensor with the value of `t` whose gradient can be asked for."""
        if t._buf is None:
            t._need_value("differentiation")
        made = make(t._type, t._buf)
        made._node = self._marked(t)
        return made

    @contextmanager
    def marked_weights(self, weights: Sequence[Tensor]) -> Iterator[list[Node]]:
        """Mark parameters in place for a block; their nodes. What the block writes to them stays."""
        before = [w._node for w in weights]
        nodes: list[Node] = []
        for w in weights:
            w._node = self._marked(w)
            nodes.append(w._node)
        try:
            yield nodes
        finally:
            for w, node, marked in zip(weights, before, nodes):
                if w._node is marked:
                    w._node = node

    def invoke(self, fn: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a user's function while recording."""
        return fn(*args, **kwargs)

    def pullback(
        self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[Node]
    ) -> list[Optional[Tensor]]:
        """The gradients of `outputs` weighted by `cotangents`, by the nodes `wrt`; None where there is no dependence."""
        kept = [(o, c) for o, c in zip(outputs, cotangents) if self.node_of(o) is not None]
        if not kept:
            return [None] * len(wrt)
        roots: Any = [self.node_of(o) for o, _ in kept]
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
        self.differentiated += toposort(roots, stop=set(wrt))
        grads = vjp(roots, seeds, wrt)
        return [None if g is None else self._replay(g, known) for g in grads]

    def _replay(self, root: Node, known: dict[Node, Any]) -> Tensor:
        """Run the nodes of a gradient as recorded operations."""
        for node in toposort([root], stop=_Valued(self, known)):
            if node in known:
                continue
            if self.holds(node) and node.buffer is not None:  # type: ignore[attr-defined]
                value = make(node.type, node.buffer)  # type: ignore[attr-defined]
                value._node = node
                known[node] = value
            elif node.prim is GET_ITEM:
                known[node] = known[node.inputs[0]][node.params["index"]]
            else:
                known[node] = self.emit(node.prim, [known[i] for i in node.inputs], dict(node.params))  # type: ignore[arg-type]
        return known[root]  # type: ignore[no-any-return]

    def _compiled(self, roots: Any, cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> list[Optional[Tensor]]:
        order = toposort(roots, stop=set(wrt))
        self.differentiated += order
        position = {node: i for i, node in enumerate(order)}
        key = (
            tuple(
                [
                    (
                        n.prim,
                        freeze(n.params) if n.prim else (),
                        tuple([position[i] for i in n.inputs]) if n.prim else (),
                        n.type,
                        n.where,
                    )
                    for n in order
                ]
            ),
            tuple([position[r] for r in roots]),
            tuple([position.get(w, -1) for w in wrt]),
        )
        found = _backward.get(key)
        if found is None:
            if len(_backward) >= MOST_GRAPHS:
                _backward.clear()
            found = _backward[key] = self._build(order, roots, wrt)
        run, used, results = found
        arguments = [order[i].buffer for i in used]  # type: ignore[attr-defined]
        buffers = run(*arguments, *[c._buf for c in cotangents]) if run is not None else ()
        if run is not None and sum(r is not None for r in results) == 1 and not isinstance(buffers, tuple):
            buffers = (buffers,)
        return [None if r is None else make(w.type, buffers[r]) for r, w in zip(results, wrt)]

    def _build(self, order: list[Node], roots: Any, wrt: Sequence[Node]) -> Any:
        from mycel.engines.select import compile_graph

        seeds = [input_node(r.type, "cotangent") for r in roots]
        grads = vjp(roots, seeds, wrt)
        wanted = [g for g in grads if g is not None]
        available = {n for n in order if self.holds(n) and n.buffer is not None}  # type: ignore[attr-defined]
        reached = set(toposort(wanted, stop=available))
        used = [i for i, n in enumerate(order) if n in available and n in reached]
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


class _Valued:
    """The nodes behind which a replay need not look: those with a value."""

    def __init__(self, recorder: Recorder, known: dict[Node, Any]) -> None:
        self._recorder, self._known = recorder, known

    def __contains__(self, node: object) -> bool:
        return node in self._known or (self._recorder.holds(node) and node.buffer is not None)  # type: ignore[attr-defined]


def current_recorder() -> Optional[Recorder]:
    context = eager.current_context()
    return context if isinstance(context, Recorder) else None
