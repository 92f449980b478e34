"""Reorders additions so that partial sums of one kind are added before they are all-reduced.

Where derivatives of several uses of a value meet, they are added one after the other, and a term
that is not partial may come between two that are. Then each would be reduced by itself. A tree of
additions that nobody else uses is written anew: the terms by what they have partial, in the order
of the graph, first those with nothing partial.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing.index import scatter_nd
from mycel._src.compiler.transforms.graph_rewriting import use_counts
from mycel._src.compiler.transforms.partition.tensor_sharding import WHOLE, Sharding

__all__ = ["adds_into", "regrouped", "taken_apart", "terms_beside"]

Partial = tuple[tuple[str, str], ...]
Layout = Sharding | tuple[Sharding, ...]


def regrouped(
    graph: Graph, layouts: Mapping[Node, Layout], decided: Container[Node] = ()
) -> tuple[dict[Node, list[list[Node]]], int]:
    """Return the additions to be made in another order, as groups of terms by their root, and how
    many times less values are reduced by that.

    `layouts` has the layout in which each value comes, with what is partial. An addition is named
    where its terms in the present order are reduced more often than there are kinds of them. Those
    that are `decided` stay as they are.
    """
    uses = use_counts(graph)

    def layout_of(node: Node) -> Sharding:
        layout = layouts[node]
        return layout if isinstance(layout, Sharding) else WHOLE

    def partial(node: Node) -> Partial:
        # What several use is reduced for all of them.
        return layout_of(node).partial if uses[node] == 1 else ()

    inner, needless = _inner(graph), 0
    found: dict[Node, list[list[Node]]] = {}
    for root in graph.nodes:
        if root.prim is not E.add or root in inner or root in decided or root.dtype.kind != "f":
            continue
        terms: list[Node] = []
        reduced = _collect(root, layout_of(root).partial, inner, terms, partial)
        groups: dict[Partial, list[Node]] = {(): []}
        for term in terms:
            groups.setdefault(partial(term), []).append(term)
        if reduced > len(groups) - 1 and all(t.type == root.type for t in terms):
            found[root] = [g for g in groups.values() if g]
            needless += reduced - len(groups) + 1
    return found, needless


def terms_beside(graph: Graph) -> dict[Node, int]:
    """Return, for each term of a sum of paddings alone, how many terms the sum has.

    Such a sum puts parts of a tensor together, and is as large as all of them.
    """
    inner, found = _inner(graph), {}
    for root in graph.nodes:
        if root.prim is E.add and root not in inner:
            terms: list[Node] = []
            _collect(root, (), inner, terms, lambda _: ())
            if all(t.prim is S.PAD for t in terms):
                found.update(dict.fromkeys(terms, len(terms)))
    return found


def adds_into(node: Node) -> bool:
    """Return whether a node adds values into its first operand, at indices."""
    return node.prim is scatter_nd and node.params["mode"] == "add"


def taken_apart(node: Node, operands: Sequence[Node]) -> tuple[Node, ...]:
    """Return the sum of what a node adds into and of what it adds, as a tuple of one node."""
    into, *rest = operands
    return (E.add(into, scatter_nd(S.full(into.shape, 0, into.dtype), *rest, **node.params)),)


def _inner(graph: Graph) -> set[Node]:
    """Return the additions that only another addition uses."""
    uses, found = use_counts(graph), set()
    for node in graph.nodes:
        for i in node.inputs if node.prim is E.add else ():
            if i.prim is E.add and uses[i] == 1 and i.type == node.type:
                found.add(i)
    return found


def _collect(
    node: Node, partial: Partial, inner: set[Node], terms: list[Node], partial_of: Callable[[Node], Partial]
) -> int:
    """Put the terms of a sum into a list; return how many of its operands are reduced in it.

    `node` is the sum, `partial` what is partial of it, `inner` are sums in it, and `terms` is the
    list; `partial_of` says what is partial of an operand.
    """
    reduced = 0
    for value in node.inputs:
        own = partial_of(value)
        reduced += bool(own) and own != partial
        if value in inner:
            reduced += _collect(value, own, inner, terms, partial_of)
        else:
            terms.append(value)
    return reduced
