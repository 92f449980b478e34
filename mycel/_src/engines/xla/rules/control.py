"""XLA rules of control flow: conditionals and loops over the graphs that the primitives hold.

What stops a program is noted as a pair of numbers (see `Scope`). It leaves a branch as one more
result, and is carried by a loop, which ends at it. A loop that exchanges values ends on all devices
together, so in one that runs on several each round tells all of them of a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.custom_derivatives import all_nodes
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES
from mycel._src.engines.xla.binding import jnp, lax
from mycel._src.engines.xla.rules.collectives import AXIS

__all__ = ["RULES"]


def _cond(scope: Any, node: Node, chosen: Any, *operands: Any, true: Graph, false: Graph) -> tuple[Any, ...]:
    stops = scope.may_stop(true) or scope.may_stop(false)

    def branch(graph: Graph) -> Callable[..., tuple[Any, ...]]:
        def run(*given: Any) -> tuple[Any, ...]:
            values, stop = scope.inner(graph, given)
            return (*values, stop) if stops else tuple(values)

        return run

    found = lax.cond(chosen, branch(true), branch(false), *operands)
    if stops:
        scope.note(found[-1])
        found = found[:-1]
    return tuple(found)


def _while_loop(scope: Any, node: Node, *operands: Any, test: Graph, body: Graph, carried: int) -> tuple[Any, ...]:
    fixed = operands[carried:]
    if not (scope.may_stop(test) or scope.may_stop(body)):
        return tuple(
            lax.while_loop(
                lambda state: scope.inner(test, (*state, *fixed))[0][0],
                lambda state: tuple(scope.inner(body, (*state, *fixed))[0]),
                tuple(operands[:carried]),
            )
        )

    shared = bool(scope.ranks) and any(n.prim in COLLECTIVES for g in (test, body) for n in all_nodes(g))

    def asked(state: Any, before: Any) -> tuple[Any, Any]:
        (going,), stop = scope.inner(test, (*state, *fixed))
        stop = scope.first(before, stop)
        if shared:
            notes = lax.all_gather(stop, AXIS)
            stop = notes[jnp.argmax(notes[:, 0] != 0)]
        return going & (stop[0] == 0), stop

    def step(all_of_it: Any) -> Any:
        state, _, _ = all_of_it
        values, stop = scope.inner(body, (*state, *fixed))
        return tuple(values), *asked(values, stop)

    start = tuple(operands[:carried])
    none = jnp.zeros(2, jnp.int64)
    state, _, stop = lax.while_loop(lambda found: found[1], step, (start, *asked(start, none)))
    scope.note(stop)
    return tuple(state)


RULES: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
