"""The derivative of a recorded tape as one graph to compile, with its cache key.

The inputs of such a graph are the recorded values that the rules use, and the cotangents or
tangents that are given. Gradients by tables of which few rows were read are given as rows
(`core.autograd.sparse_gradient`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.custom_derivatives import kept_call
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.tensors.core.autograd.per_operation_gradient import opened
from mycel._src.tensors.core.autograd.replay import nodes_of
from mycel._src.tensors.core.autograd.sparse_gradient import RowGradient, Rows, may_be_rows, row_nodes
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["Derived", "Place", "derivative_key", "derived", "reached", "result_at"]

_serial = attrgetter("serial")


class Place(NamedTuple):
    """The number of a derivative among the results, and its type.

    For rows `rows` has the types of the rows and of their indices, which are the next result, and
    their parameters.
    """

    number: int
    type: TensorType
    rows: tuple[TensorType, TensorType, Any] | None = None


class Derived(NamedTuple):
    """The graph of a derivative, None where nothing depends on what it is taken by.

    `used` has the place in the recording of each value that it takes: of a node, and of one of its
    results or -1. `places` has the place of each derivative among the results, or None.
    """

    graph: Graph | None
    used: tuple[tuple[int, int], ...]
    places: tuple[Place | None, ...]


class _Values:
    """The set of the nodes that have one value, as `has_value` says."""

    def __init__(self, has_value: Callable[[Node], bool]) -> None:
        self._has_value = has_value

    def __contains__(self, node: Any) -> bool:
        return self._has_value(node)


def derived(
    kind: str,
    order: Sequence[Node],
    roots: Sequence[Node],
    given: Sequence[TensorType],
    wrt: Sequence[Node],
    has_value: Callable[[Node], bool],
    by_rows: bool = True,
) -> Derived:
    """Return the derivative of recorded nodes as a graph.

    `kind`, `roots` and `wrt` are those of `nodes_of`, `order` are the nodes that the roots depend
    on, and `given` the types of the cotangents or tangents. `has_value` says whether a node has its
    value; with `by_rows` gradients may be rows.
    """
    seeds = [input_node(t, "cotangent" if kind == "pull" else "tangent") for t in given]
    found = nodes_of(kind, roots, seeds, wrt)
    valued: Container[Node] = _Values(has_value)
    by_rows = by_rows and kind == "pull"
    if by_rows and any(n is not None and n.prim is GET_ITEM and may_be_rows(n.type) for n in found):
        again = iter(opened([n for n in found if n is not None], valued))
        found = [None if n is None else next(again) for n in found]
    wanted: list[Node] = []
    places: list[Place | None] = []
    for n in found:
        rows = row_nodes(n) if n is not None and by_rows else None
        if n is None:
            places.append(None)
        elif rows is None:
            places.append(Place(len(wanted), n.type))
            wanted.append(n)
        else:
            places.append(Place(len(wanted), n.type, (rows.rows.type, rows.indices.type, rows.params)))
            wanted += [identity(rows.rows), identity(rows.indices)]
    if not wanted:
        return Derived(None, (), tuple(places))
    position = {node: i for i, node in enumerate(order)}
    stand_in: dict[Node, Node] = {}
    used = []
    for node in toposort(wanted, stop=valued):
        if has_value(node):
            own = position.get(node)
            used.append((position[node.inputs[0]], node.params["index"]) if own is None else (own, -1))
            stand_in[node] = input_node(node.type, "residual")
    outputs = substitute(wanted, stand_in)
    return Derived(Graph((*stand_in.values(), *seeds), outputs, "derivative"), tuple(used), tuple(places))


def result_at(place: Place, values: Sequence[Any]) -> Tensor:
    """Return the derivative at a place of the buffers that a program gave."""
    number, kind, rows = place
    if rows is None:
        return make(kind, values[number])
    parts = make(rows[0], values[number]), make(rows[1], values[number + 1])
    return RowGradient.of(kind, Rows(*parts, rows[2]))


def reached(roots: Sequence[Any], stop: set[Any]) -> list[Any]:
    """Return the recorded nodes that `roots` depend on, inputs before users, where each was made
    after its inputs; the inputs of the nodes in `stop` are not followed.
    """
    found = set(roots)
    pending = list(found)
    take, put, add = pending.pop, pending.append, found.add
    while pending:
        node = take()
        if node not in stop:
            for i in node.inputs:
                if i not in found:
                    add(i)
                    put(i)
    return sorted(found, key=_serial)


def derivative_key(
    kind: str, order: Sequence[Any], roots: Sequence[Any], wrt: Sequence[Node]
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the structure of a derivative as a key, and the parameters of the nodes in `order` as
    parts of keys; `kind`, `roots` and `wrt` are those of `nodes_of`.
    """
    ends = {w for w in wrt if w.inputs}
    parts: list[Any] = [kind]
    known: list[Any] = []
    for place, n in enumerate(order):
        n.place = place
        prim, params, inputs = n.prim, n.params, n.inputs
        if ends and n in ends:
            prim, inputs = None, ()
        frozen = None if prim is None or not params else params["link"] if prim is kept_call else tuple(params.items())
        known.append(frozen)
        kept = n.buffer is not None
        if len(inputs) == 2:
            parts += (prim, n.type, frozen, kept, inputs[0].place, inputs[1].place)
        elif len(inputs) == 1:
            parts += (prim, n.type, frozen, kept, inputs[0].place)
        else:
            parts += (prim, n.type, frozen, kept, *[i.place for i in inputs])
        if n.where is not None:
            parts.append(n.where)
    key = (*parts, "roots", *[r.place for r in roots], "wrt", *[_place_in(order, w) for w in wrt])
    return key, known


def _place_in(order: Sequence[Node], node: Node) -> int:
    """Return the place of a recorded node in `order`, -1 where it is not there."""
    place: int = getattr(node, "place", -1)
    return place if 0 <= place < len(order) and order[place] is node else -1
