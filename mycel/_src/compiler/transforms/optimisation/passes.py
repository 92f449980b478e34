"""The pass pipeline: the order of the optimisation passes over a graph.

First common subexpressions are eliminated. Then simplification, constant folding and elimination
repeat until nothing changes, at most `ROUNDS` times. Last, long reductions are split in two stages.

Rules simplify a node completely when they reach it, so a second round finds only the chances that
folded constants and joined nodes opened. Where the environment variable MYCEL_VERIFY is set to
anything but 0, the graph is verified before the first pass and after each.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.verify import verify
from mycel._src.compiler.transforms.optimisation.constant_folding import fold_constants
from mycel._src.compiler.transforms.optimisation.cse import eliminate_common_subexpressions
from mycel._src.compiler.transforms.optimisation.simplify import simplify
from mycel._src.compiler.transforms.optimisation.split_reductions import split_reductions
from mycel._src.foundation.errors import VerifyError
from mycel._src.foundation.spans import timed

__all__ = ["ROUNDS", "optimize"]

ROUNDS = 3
ROUND: tuple[Callable[[Graph], Graph], ...] = (simplify, fold_constants, eliminate_common_subexpressions)


@timed("passes", lambda graph: graph.name)
def optimize(graph: Graph) -> Graph:
    """Return a graph that computes the same function, and its derivatives, with less work.

    Optimizing the result again gives the same structure.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.printer import to_text
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> x = input_node(tensor_type((2,), float32), "x")
    >>> print(to_text(optimize(Graph([x], [E.exp(x * 1.0) - E.neg(E.exp(x) * 2.0) * 4.0], "f"))))
    def f(x: float32[2]) -> float32[2]:
        v0: float32[2] = exp(x)
        v1: float32[2] = mul(v0, -8.0)
        v2: float32[2] = sub(v0, v1)
        return v2
    """
    checking = os.environ.get("MYCEL_VERIFY", "0") not in ("", "0")
    if checking:
        verify(graph)

    def apply(function: Callable[[Graph], Graph], before: Graph) -> Graph:
        after = function(before)
        if checking and after is not before:
            _verify_after(function, after)
        return after

    graph = apply(eliminate_common_subexpressions, graph)
    for _ in range(ROUNDS):
        before = graph
        for function in ROUND:
            graph = apply(function, graph)
        if graph is before:
            break
    return apply(split_reductions, graph)


def _verify_after(function: Callable[[Graph], Graph], graph: Graph) -> None:
    try:
        verify(graph)
    except VerifyError as error:
        raise VerifyError(f"{function.__name__} gave a graph that breaks an invariant: {error}") from error
