"""What a stage does for derivatives: marking, pulling back, pushing forward, and rules that the
program gives.

Marks are `identity` nodes; a derivative is more nodes of the same graph. After a push-forward the
outputs are new tensors where values and tangents come out of one piece of control flow.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Optional

from mycel.base.errors import CompileError
from mycel.base.tree import flatten, unflatten
from mycel.core.context import Context, Differentiating, Following, Optionals
from mycel.core.hooks import TensorHooks
from mycel.core.replay import along_units
from mycel.core.tensor import Tensor, make_staged
from mycel.ir.graph import Graph, Node, current_where, input_node, substitute, toposort
from mycel.prims.base import GET_ITEM, outputs_of
from mycel.prims.custom import Rule, cotangents_of, custom
from mycel.prims.elementwise import identity
from mycel.prims.recompute import recompute
from mycel.transforms import jacobian
from mycel.transforms.grad import vjp
from mycel.transforms.jvp import jvp

if TYPE_CHECKING:
    from mycel.frontend.stage import Scope

__all__ = ["StagedDerivatives"]


class StagedDerivatives(Following, Differentiating):
    """The part of a `Stage` that takes derivatives.

    What it needs to know of the nodes that are being staged is abstract here.
    """

    scope: Scope
    current: dict[int, Node]
    outer: Optional[Context] = None  # what was in force where a live stage began

    @abstractmethod
    def set_node(self, t: Tensor, node: Node) -> None:
        """Make a node a tensor's present value, without journaling."""

    @abstractmethod
    def adopt(self, roots: Sequence[Node]) -> None:
        """Enter nodes that rules made, and all behind them that are not known yet, into the present
        scope.
        """

    @abstractmethod
    def knows(self, node: Node) -> bool:
        """Return whether a node was made in a scope that is still open."""

    def mark(self, t: Tensor) -> Tensor:
        """Return a new tensor with the value of `t` whose gradient can be asked for."""
        node = self.node_of(t)
        made = Node(identity, (node,), {}, node.type)
        self.scope.own.add(made)
        return make_staged(made)

    @contextmanager
    def marked_weights(self, weights: Sequence[Tensor]) -> Iterator[list[Node]]:
        """Mark parameters in place for a block; their nodes.

        What the block writes to them stays.
        """
        before = [self.node_of(w) for w in weights]
        marked = []
        for w, node in zip(weights, before):
            made = Node(identity, (node,), {}, node.type)
            self.scope.own.add(made)
            self.set_node(w, made)
            marked.append(made)
        try:
            yield marked
        finally:
            for w, node, made in zip(weights, before, marked):
                if self.node_of(w) is made:
                    self.set_node(w, node)

    def pullback(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> Optionals:
        """Return the gradients of `outputs` weighted by `cotangents`, by the nodes `wrt`.

        None where there is no dependence.
        """
        roots, given = [self.node_of(o) for o in outputs], [self.node_of(c) for c in cotangents]
        return _staged(self, vjp(roots, given, wrt, _own(self, [*roots, *wrt])))

    def pushforward(
        self, outputs: Sequence[Tensor], wrt: Sequence[Node], tangents: Sequence[Tensor]
    ) -> tuple[Sequence[Tensor], Optionals]:
        """Return `outputs`, and how they move when the nodes `wrt` move by `tangents`.

        None where one does not depend on them.
        """
        roots = [self.node_of(o) for o in outputs]
        _known(self, [*roots, *wrt])
        values, moved = jvp(roots, wrt, [self.node_of(t) for t in tangents])
        self.adopt(values)
        return [o if v is r else make_staged(v) for o, r, v in zip(outputs, roots, values)], _staged(self, moved)

    def rows(self, output: Tensor, wrt: Sequence[Node]) -> Optionals:
        """Return the Jacobians of an output by the nodes `wrt`, of shape (output's, node's).

        None where there is no dependence.
        """
        root = self.node_of(output)
        if any(n.prim is custom and n.params["backward"] is None for n in toposort([root], stop=set(wrt))):
            pull = lambda unit: self.pullback([output], [self.literal(unit)], wrt)
            return along_units(pull, root.type, False, len(wrt))
        return _staged(self, jacobian.rows(root, wrt, _own(self, [root, *wrt])))

    def columns(self, outputs: Sequence[Tensor], by: Node) -> Optionals:
        """Return the Jacobians of outputs by one node, of shape (output's, node's).

        None where there is no dependence.
        """
        roots = [self.node_of(o) for o in outputs]
        _known(self, [*roots, by])
        return _staged(self, jacobian.columns(roots, by))

    def recompute(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function as a region whose values are not kept for a gradient."""
        own = self.scope.own
        before = set(own)
        out = fn(*args, **kwargs)
        if own is not self.scope.own:
            return out
        leaves, structure = flatten(out)
        nodes = [self.node_of(t) if isinstance(t, Tensor) else None for t in leaves]
        results = list(dict.fromkeys([n for n in nodes if n is not None and n in own and n not in before and n.prim]))
        if not results:
            return out
        operands = _boundary(results, own, before)
        given = {self.node_of(t) for t in flatten((args, kwargs))[0] if isinstance(t, Tensor)}
        fresh = tuple([i for i, n in enumerate(operands) if n in given]) or tuple(range(len(operands)))
        stand_in = {n: input_node(n.type, "operand") for n in operands}
        graph = Graph(stand_in.values(), substitute(results, stand_in), "region")
        node = recompute.node(*operands, graph=graph, fresh=fresh)
        own.add(node)
        items = outputs_of(node)
        own.update(items)
        by_node = dict(zip(results, items))
        return unflatten(structure, [make_staged(by_node[n]) if n in by_node else t for t, n in zip(leaves, nodes)])

    def attach_hook(self, t: Tensor, rule: Rule, table: TensorHooks) -> bool:
        """Let `rule` see the gradient by a tensor from its uses after this one.

        Whether it was computed here.
        """
        if t._buf is not None and not (id(t) in self.current and self.current[id(t)].prim is not None):
            return self.outer is not None and self.outer.differentiating.attach_hook(t, rule, table)
        base: Node = table.base if isinstance(table.base, Node) and self.knows(table.base) else self.node_of(t)
        before = make_staged(base)
        if base.prim is None or base not in self.scope.own or base.is_constant:
            self.write(t, self.attach([before], [before], table.chain())[0])
            return True
        attached = self.attach([before], [before], rule)[0]
        if attached is before:
            return True
        if attached._buf is not None:
            assert self.outer is not None
            return self.outer.differentiating.attach_hook(t, rule, table)
        item: Any = attached._node
        whole = item.inputs[0]
        captured = whole.inputs[2:]
        if base in toposort(captured):
            self.write(t, make_staged(item))
            return True
        # What has used the node already is to be seen by the hook too.
        inner = Node(base.prim, base.inputs, base.params, base.type, base.where)
        whole.inputs = (inner, inner, *captured)
        base.prim, base.inputs, base.params = GET_ITEM, (whole,), {"index": 0}
        self.scope.own.add(inner)
        table.base = inner
        return True


def _staged(stage: StagedDerivatives, nodes: Sequence[Optional[Node]]) -> Optionals:
    stage.adopt([n for n in nodes if n is not None])
    return [None if n is None else make_staged(n) for n in nodes]


def _boundary(outputs: Sequence[Node], own: set[Node], before: set[Node]) -> list[Node]:
    """Return what nodes need that was there before, or lies outside of this scope."""
    found: dict[Node, None] = {}
    seen: set[Node] = set()
    stack = list(reversed(outputs))
    while stack:
        node = stack.pop()
        if node in seen or node.is_constant:
            continue
        seen.add(node)
        if node.prim is None or node in before or node not in own:
            found[node] = None
        else:
            stack.extend(reversed(node.inputs))
    return list(found)


def _own(stage: StagedDerivatives, nodes: Sequence[Node]) -> Any:
    _known(stage, nodes)
    return _own_rule(stage)


def _known(stage: StagedDerivatives, nodes: Sequence[Node]) -> None:
    if not all(stage.knows(n) or n.is_constant for n in nodes):
        raise CompileError(
            f"{current_where()}: a derivative is taken of what another branch, or another call of a compiled function, "
            "computed; "
            "call the function that vjp or linearize gave where it was made"
        )


def _own_rule(stage: StagedDerivatives) -> Any:
    """Return what `vjp` asks for the nodes whose rule is no graph: the rule itself is called, if
    its variables are at hand.
    """

    def own(node: Node, ct: Any) -> Optional[Sequence[Optional[Node]]]:
        if node.prim is not custom or node.params["backward"] is not None or not stage.knows(node):
            return None
        count, rule = node.params["count"], node.params["rule"]
        if rule.removed:
            return None
        cts = cotangents_of(node.inputs[:count], ct)
        items = outputs_of(node)
        stage.adopt([*cts, *items])
        found = rule.function(tuple(map(make_staged, items)), [make_staged(c) for c in cts])
        result: list[Optional[Node]] = [None] * len(node.inputs)
        for i, f in enumerate(found):
            result[count + i] = None if f is None else stage.node_of(f)
        return result

    return own
