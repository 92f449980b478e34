"""Control flow: XLA's conditionals and loops over the graphs that the primitives hold.

What stops a program is noted as a pair of numbers (see `Scope`). It leaves a branch as one more
result, and is carried by a loop, which ends at it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel.engines.xla.binding import lax
from mycel.ir.graph import Graph, Node

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

    def asked(state: Any) -> tuple[Any, Any]:
        (going,), stop = scope.inner(test, (*state, *fixed))
        return going & (stop[0] == 0), stop

    def step(all_of_it: Any) -> Any:
        state, _, _ = all_of_it
        values, stop = scope.inner(body, (*state, *fixed))
        going, other = asked(values)
        first = scope.first(stop, other)
        return tuple(values), going & (first[0] == 0), first

    start = tuple(operands[:carried])
    state, _, stop = lax.while_loop(lambda found: found[1], step, (start, *asked(start)))
    scope.note(stop)
    return tuple(state)


RULES: dict[str, Callable[..., Any]] = {"cond": _cond, "while_loop": _while_loop}
