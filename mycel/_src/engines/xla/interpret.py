"""Traces a graph as a jax function: each node by its rule, in the graph's order.

The graph is prepared: every node has a rule, or is a *host step*, which only the program may run.

XLA knows no errors. What would stop a program, as an index out of range, is *noted*: a pair of
int64 numbers, the site and the offending index, where sites count from 1 in the order of tracing
and 0 is none. Of several notes the first counts. They are a further result of the function, and the
program raises the error for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.engines.xla.binding import jax, jnp
from mycel._src.engines.xla.rules import RULES, SCOPED

__all__ = ["Scope", "Site", "evaluate", "may_stop"]


class Site(NamedTuple):
    """Where a program may stop: the operation, and the axis that an index is for."""

    node: Node
    axis: int
    size: int
    wraps: bool


class Scope:
    """What rules that are no plain functions of arrays need: nested graphs and notes.

    `sites` are shared with the scopes of nested graphs; `notes` are those of this one. `ranks` has
    the ranks of a program for several devices, in the order of their places.
    """

    def __init__(self, sites: list[Site], ranks: Sequence[int] = ()) -> None:
        self.sites, self.ranks = sites, ranks
        self.notes: list[Any] = []

    def check(self, node: Node, valid: Any, indices: Any, axis: int, size: int, wraps: bool) -> None:
        """Note the first of `indices` that is not valid.

        `node` is the operation, which indexes `axis` of `size`; with `wraps`, negative indices
        count from the end.
        """
        if not valid.size:
            return
        self.sites.append(Site(node, axis, size, wraps))
        first = jnp.argmin(valid.ravel())
        index = indices.ravel()[first].astype(jnp.int64)
        site = jnp.int64(len(self.sites))
        self.note(jnp.where(valid.all(), jnp.zeros(2, jnp.int64), jnp.stack([site, index])))

    def note(self, note: Any) -> None:
        self.notes.append(note)

    @staticmethod
    def first(one: Any, other: Any) -> Any:
        """Return the first of two notes that is one."""
        return jnp.where(one[0] != 0, one, other)

    def noted(self) -> Any:
        """Return the first note."""
        result = jnp.zeros(2, jnp.int64)
        for note in reversed(self.notes):
            result = self.first(note, result)
        return result

    def inner(self, graph: Graph, arrays: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the outputs of a nested graph, and its first note."""
        scope = Scope(self.sites, self.ranks)
        return evaluate(graph, arrays, scope), scope.noted()

    @staticmethod
    def may_stop(graph: Graph) -> bool:
        """Return whether a graph, or one nested in it, may stop the program."""
        return may_stop(graph)


def may_stop(graph: Graph) -> bool:
    """Return whether a graph has operations that may stop a program, also in nested graphs."""
    return any(
        (n.prim is not None and n.prim.traps is not None and n.prim.traps(n))
        or any(isinstance(v, Graph) and may_stop(v) for v in n.params.values())
        for n in graph.nodes
    )


def evaluate(graph: Graph, arrays: Sequence[Any], scope: Scope) -> list[Any]:
    """Return jax's arrays of a prepared graph's outputs."""
    values: dict[Node, Any] = dict(zip(graph.inputs, arrays))
    for node in graph.nodes:
        assert node.prim is not None
        given = [values[i] for i in node.inputs]
        if node.prim is GET_ITEM:
            values[node] = given[0][node.params["index"]]
            continue
        with jax.named_scope(node.prim.name):
            scoped = SCOPED.get(node.prim.name)
            if scoped is not None:
                values[node] = scoped(scope, node, *given, **node.params)
            else:
                values[node] = RULES[node.prim.name](*given, **node.params)
    return [values[o] for o in graph.outputs]
