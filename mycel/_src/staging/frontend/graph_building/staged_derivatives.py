"""Derivatives during staging: marked inputs, pull-backs, push-forwards, and user-defined rules.

Marks are `identity` nodes, and a derivative consists of further nodes of the same graph. A
push-forward gives new tensors for outputs whose values and tangents come out of the same control
flow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, current_where, input_node, substitute, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM, outputs_of
from mycel._src.compiler.prims.control_flow.recompute import recompute
from mycel._src.compiler.prims.custom_derivatives import Rule, cotangents_of, custom
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.prims.parameter_assignment import assigned
from mycel._src.compiler.transforms import jacobian
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.compiler.transforms.jvp import jvp
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.staging.frontend.graph_building.forward_reuse import earlier_call
from mycel._src.staging.frontend.graph_building.stage_state import StageState
from mycel._src.tensors.core.autograd.replay import along_units
from mycel._src.tensors.core.execution_context import Context, Differentiating, EarlierCall, HookTable, Optionals
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["StagedDerivatives", "assigned_node"]


class StagedDerivatives(Differentiating):
    """Derivatives of what a `stage` made: nodes of the graph that it makes."""

    def __init__(self, stage: StageState) -> None:
        self.stage = stage

    @property
    def context(self) -> Context:
        return self.stage.context

    def node_of(self, t: Tensor) -> Node:
        """Return the node of a tensor's present value."""
        return self.stage.node_of(t)

    def mark(self, t: Tensor) -> Tensor:
        """Return a new tensor with the value of `t` whose gradient can be asked for."""
        node = self.stage.node_of(t)
        made = Node(identity, (node,), {}, node.type)
        self.stage.scope.own.add(made)
        return make_staged(made)

    @contextmanager
    def marked_weights(self, weights: Sequence[Tensor]) -> Iterator[list[Node]]:
        """Return a context manager that marks parameters in place and gives their nodes.

        What is written to the parameters within it stays.
        """
        before = [self.stage.node_of(w) for w in weights]
        outer = self.stage.parameters
        self.stage.parameters = dict(outer)
        marked = []
        for w, node in zip(weights, before):
            made = Node(identity, (node,), {}, node.type)
            self.stage.scope.own.add(made)
            self.stage.set_node(w, made)
            self.stage.parameters[id(w)] = made
            marked.append(made)
        try:
            yield marked
        finally:
            self.stage.parameters = outer
            for w, node, made in zip(weights, before, marked):
                if self.stage.node_of(w) is made:
                    self.stage.set_node(w, node)

    def pullback(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], wrt: Sequence[Node]) -> Optionals:
        """Return the gradients of `outputs`, weighted by `cotangents`, by the nodes `wrt`.

        A gradient is None where no output depends on the node.
        """
        roots, given = [self.stage.node_of(o) for o in outputs], [self.stage.node_of(c) for c in cotangents]
        return _staged(self.stage, vjp(roots, given, wrt, _own(self.stage, [*roots, *wrt]), promoted=True))

    def pushforward(
        self, outputs: Sequence[Tensor], wrt: Sequence[Node], tangents: Sequence[Tensor]
    ) -> tuple[Sequence[Tensor], Optionals]:
        """Return `outputs` and their tangents for the tangents of the nodes `wrt`.

        The tangent of an output that depends on none of the nodes is None.
        """
        roots = [self.stage.node_of(o) for o in outputs]
        _known(self.stage, [*roots, *wrt])
        values, moved = jvp(roots, wrt, [self.stage.node_of(t) for t in tangents])
        self.stage.adopt(values)
        return [o if v is r else make_staged(v) for o, r, v in zip(outputs, roots, values)], _staged(self.stage, moved)

    def rows(self, output: Tensor, wrt: Sequence[Node]) -> Optionals:
        """Return the Jacobian of an output by each of the nodes `wrt`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """
        root = self.stage.node_of(output)
        if any(n.prim is custom and n.params["backward"] is None for n in toposort([root], stop=set(wrt))):
            pull = lambda unit: self.pullback([output], [self.stage.literal(unit)], wrt)
            return along_units(pull, root.type, False, len(wrt))
        return _staged(self.stage, jacobian.rows(root, wrt, _own(self.stage, [root, *wrt])))

    def columns(self, outputs: Sequence[Tensor], by: Node) -> Optionals:
        """Return the Jacobian of each output by the node `by`.

        Its shape is the output's followed by the node's; None where the output does not depend on
        the node.
        """
        roots = [self.stage.node_of(o) for o in outputs]
        _known(self.stage, [*roots, by])
        return _staged(self.stage, jacobian.columns(roots, by))

    def recompute(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function as a region whose values a gradient computes anew instead of keeping."""
        own = self.stage.scope.own
        before = set(own)
        out = fn(*args, **kwargs)
        if own is not self.stage.scope.own:
            return out
        leaves, structure = flatten(out)
        nodes = [self.stage.node_of(t) if isinstance(t, Tensor) else None for t in leaves]
        results = list(dict.fromkeys([n for n in nodes if n is not None and n in own and n not in before and n.prim]))
        if not results:
            return out
        operands = _boundary(results, own, before)
        given = {self.stage.node_of(t) for t in flatten((args, kwargs))[0] if isinstance(t, Tensor)}
        fresh = tuple([i for i, n in enumerate(operands) if n in given]) or tuple(range(len(operands)))
        stand_in = {n: input_node(n.type, "operand") for n in operands}
        graph = Graph(stand_in.values(), substitute(results, stand_in), "region")
        node = recompute.node(*operands, graph=graph, fresh=fresh)
        own.add(node)
        items = outputs_of(node)
        own.update(items)
        by_node = dict(zip(results, items))
        return unflatten(structure, [make_staged(by_node[n]) if n in by_node else t for t, n in zip(leaves, nodes)])

    def attach(self, values: Sequence[Tensor], operands: Sequence[Tensor], rule: Rule) -> Sequence[Tensor]:
        """Return copies of `values` whose derivative by `operands` is `rule`, the program's own."""
        return self.stage.with_rule(values, operands, rule)

    def earlier_call(self, cell: Any, args: tuple[Any, ...], weights: Sequence[Tensor]) -> EarlierCall | None:
        """Return the last call of a Cell, if it was made with `args` here and a gradient by these
        and `weights` can go back through it; else None.
        """
        return earlier_call(self.stage, cell, args, weights)

    def _rewrite(self, t: Tensor, new: Tensor) -> None:
        """Write into a tensor what has its value and another derivative."""
        if isinstance(t, Parameter):
            self.stage.parameters[id(t)] = self.stage.node_of(new)
        self.stage.write(t, new)

    def attach_hook(self, t: Tensor, rule: Rule, table: HookTable) -> bool:
        """Call `rule` with the gradient by `t` that comes from its uses after this point.

        `table` holds the tensor's hooks. Returns False where `t` was not computed here.
        """
        if t._buf is not None and not (id(t) in self.stage.current and self.stage.current[id(t)].prim is not None):
            return self.stage.outer is not None and self.stage.outer.differentiating.attach_hook(t, rule, table)
        base: Node = (
            table.base if isinstance(table.base, Node) and self.stage.knows(table.base) else self.stage.node_of(t)
        )
        before = make_staged(base)
        if base.prim is None or base not in self.stage.scope.own or base.is_constant:
            self._rewrite(t, self.attach([before], [before], table.chain())[0])
            return True
        attached = self.attach([before], [before], rule)[0]
        if attached is before:
            return True
        if attached._buf is not None:
            assert self.stage.outer is not None
            return self.stage.outer.differentiating.attach_hook(t, rule, table)
        item: Any = attached._node
        whole = item.inputs[0]
        captured = whole.inputs[2:]
        if base in toposort(captured):
            self._rewrite(t, make_staged(item))
            return True
        # The hook sees gradients from earlier uses of the node too.
        inner = Node(base.prim, base.inputs, base.params, base.type, base.where)
        whole.inputs = (inner, inner, *captured)
        base.prim, base.inputs, base.params = GET_ITEM, (whole,), {"index": 0}
        self.stage.scope.own.add(inner)
        table.base = inner
        return True


def assigned_node(stage: StageState, t: Tensor, node: Node) -> Node:
    """Return the node of a tensor of `stage` to which the value of `node` is assigned.

    A parameter stays a variable of derivatives.
    """
    if not isinstance(t, Parameter) or not isinstance(node.type, TensorType) or not node.dtype.is_differentiable:
        return node
    captured = stage.captures.get(id(t))
    marked = stage.parameters.get(id(t), None if captured is None else captured.node)
    if marked is None or marked.type is not node.type:
        return node
    made = assigned.node(node, marked)
    stage.scope.own.add(made)
    return made


def _staged(stage: StageState, nodes: Sequence[Node | None]) -> Optionals:
    stage.adopt([n for n in nodes if n is not None])
    return [None if n is None else make_staged(n) for n in nodes]


def _boundary(outputs: Sequence[Node], own: set[Node], before: set[Node]) -> list[Node]:
    """Return the nodes on which `outputs` depend that were made before or outside of this scope."""
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


def _own(stage: StageState, nodes: Sequence[Node]) -> Any:
    _known(stage, nodes)
    return _own_rule(stage)


def _known(stage: StageState, nodes: Sequence[Node]) -> None:
    if not all(stage.knows(n) or n.is_constant for n in nodes):
        raise CompileError(
            f"{current_where()}: a derivative is taken of what another branch, or another call of a compiled function, "
            "computed; "
            "call the function that vjp or linearize gave where it was made"
        )


def _own_rule(stage: StageState) -> Any:
    """Return the rule that `vjp` uses for nodes of the program's own derivatives that are no graph.

    It calls the program's rule itself, if its variables are available.
    """

    def own(node: Node, ct: Any) -> Sequence[Node | None] | None:
        if node.prim is not custom or node.params["backward"] is not None or not stage.knows(node):
            return None
        count, rule = node.params["count"], node.params["rule"]
        if rule.removed:
            return None
        cts = cotangents_of(node.inputs[:count], ct)
        items = outputs_of(node)
        stage.adopt([*cts, *items])
        found = rule.function(tuple(map(make_staged, items)), [make_staged(c) for c in cts])
        result: list[Node | None] = [None] * len(node.inputs)
        for i, f in enumerate(found):
            result[count + i] = None if f is None else stage.node_of(f)
        return result

    return own
