"""Forward reuse in staged functions: a gradient reuses an earlier call of the same Cell.

A derivative consists of further nodes of the same graph, so after ``loss = self.net(x)`` the
gradient ``grad(self.net, weights)(x)`` needs no second call: it is the derivative of the nodes that
are there. `remember` notes what such a call read and gave; `earlier_call` returns it to a gradient
if the arguments are the same and every parameter has the value that it had when the call ended.

A call marks nothing, as a derivative's own call does. So it is taken only where its outputs depend
on its inputs, the parameters and what the call itself computed, and on no other node computed
before. Calls are remembered of the outermost Cell, of Cells that it calls, and of those for which
`set_grad` announced a gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Node, toposort
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.staging.frontend.graph_building.stage_state import StagedCall, StageState
from mycel._src.tensors.core.autograd.forward_reuse import same_arguments
from mycel._src.tensors.core.execution_context import EarlierCall
from mycel._src.tensors.core.tensor import Tensor, make_staged

__all__ = ["earlier_call", "remember"]

_DEEP = 2


def remember(stage: StageState, cell: Any, call: Callable[[], Any], args: tuple[Any, ...]) -> Any:
    """Return ``call()``, the call of `cell` with `args`, which `stage` remembers for a gradient."""
    depth = stage.cells_open
    if stage.depth or stage.taken or stage.is_live or (depth >= _DEEP and not cell.requires_grad):
        return call()
    made = StagedCall(stage, args, list(cell.get_parameters()))
    stage.cells_open = depth + 1
    try:
        out = call()
    finally:
        stage.cells_open = depth
    made.end(stage, out)
    stage.earlier[id(cell)] = made
    return out


def earlier_call(stage: StageState, cell: Any, args: tuple[Any, ...], weights: Sequence[Tensor]) -> EarlierCall | None:
    """Return the last call of `cell` in `stage`, if it was made with `args` here and a gradient by
    these and `weights` can go back through it; else None.
    """
    call = stage.earlier.pop(id(cell), None)
    if call is None or call.scope is not stage.scope or not same_arguments(call.args, args):
        return None
    tensors = [t for t in flatten(args)[0] if isinstance(t, Tensor)]
    known = {id(p): node for p, node in call.parameters}
    if (
        any(stage.node_of(t) is not node for t, node in zip(tensors, call.given))
        or any(stage.current.get(id(p)) is not node for (p, _), node in zip(call.parameters, call.after))
        or any(id(w) not in known for w in weights)
    ):
        return None
    nodes: dict[int, Node] = {id(t): node for t, node in zip(tensors, call.given)}
    for w in weights:
        before = known[id(w)]
        stage.node_of(w)
        nodes[id(w)] = stage.captures[id(w)].node if before is None and id(w) in stage.captures else stage.node_of(w)
        if before is not None:
            nodes[id(w)] = before
    if len(set(nodes.values())) != len(tensors) + len(weights) or not _is_closed(call, set(nodes.values())):
        return None
    leaves, structure = flatten(call.out)
    results = iter(call.results)
    out = [make_staged(next(results)) if isinstance(v, Tensor) else v for v in leaves]
    return EarlierCall(stage.differentiating, unflatten(structure, out), nodes, call.given)


def _is_closed(call: StagedCall, known: set[Node]) -> bool:
    """Return whether the outputs of a call depend on no node computed before it but `known`."""
    found = toposort(call.results, stop=known)
    return not any(n.prim is not None and not n.is_constant and n in call.before and n not in known for n in found)
