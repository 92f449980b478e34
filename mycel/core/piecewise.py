"""Gradients of recordings operation by operation.

A recording whose structure is new is not compiled as a whole. Its cotangents are passed from
operation to operation by *pieces*: programs of the derivative of one operation, found again by its
primitive, types, parameters, and by the operands that a gradient is wanted of. A piece takes what
the rule uses of the recorded operands and results, and the cotangents of the results. So a
structure that never comes again compiles nothing that another one has compiled.

Parameters are used by many operations of such a recording. Their cotangents are not added up one
after the other: those that one kind of operation gives are computed at the end, many operations at
a time. Where they are products of matrices they are one product then, of the operands put one
below the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Optional

from mycel.base import config
from mycel.base.remembered import MANY, Remembered
from mycel.base.spans import timed
from mycel.ir.graph import Graph, Node, at, input_node, substitute, toposort
from mycel.ir.types import TensorType
from mycel.prims import control as C
from mycel.prims import linalg as L
from mycel.prims import shape as S
from mycel.prims.base import GET_ITEM, Primitive, freeze, outputs_of
from mycel.prims.custom import kept_call
from mycel.prims.elementwise import identity
from mycel.prims.index import take_add
from mycel.transforms.grad import sum_of, vjp

if TYPE_CHECKING:
    from mycel.core.recording import Recorded

__all__ = ["pulled"]

OFTEN = 4  # uses of a node from which on its cotangents are computed together
TOGETHER = (64, 16, 4, 1)  # operations whose cotangents are one program
TERMS = 8  # cotangents that are added by one program

# A cotangent: its type, which is another one than its node's where integers became floats, and its
# buffer.
_Cotangent = tuple[TensorType, Any]
_Key = tuple[Any, ...]


class _Piece:
    """The derivative of one operation as a program.

    `used` are the places of the values that it takes before the cotangents: i for operand i,
    -1 - k for result k. `results` has the operand and the type of each cotangent that it gives.
    """

    __slots__ = ("graph", "run", "used", "results")

    def __init__(self, graph: Optional[Graph], used: Sequence[int], wanted: Sequence[int]) -> None:
        self.graph, self.used = graph, tuple(used)
        self.run: Optional[Callable[..., Any]] = None
        self.results: tuple[tuple[int, TensorType], ...] = ()
        if graph is not None:
            self.results = tuple([(i, o.type) for i, o in zip(wanted, graph.outputs)])

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        run = self.run
        if run is None:
            assert self.graph is not None
            run = self.run = _compiled(self.graph)
        found = run(*values)
        return found if type(found) is tuple else (found,)


_pieces = Remembered[_Key, _Piece]("derivatives of operations", MANY, config.COMPILED_ANEW)
_sums = Remembered[_Key, Callable[..., Any]]("sums of cotangents", MANY, config.COMPILED_ANEW)
_copies = Remembered[TensorType, Callable[..., Any]]("copies of cotangents", MANY, config.COMPILED_ANEW)
_grouped = Remembered[_Key, Callable[..., Any]]("derivatives of many operations", MANY, config.COMPILED_ANEW)


def _compiled(graph: Graph) -> Callable[..., Any]:
    from mycel.engines.select import compile_graph

    return compile_graph(graph)


@timed("differentiation", lambda primitive, *_: primitive.name)
def _piece(
    primitive: Primitive, params: Any, types: Sequence[Any], active: Sequence[int], given: Sequence[Any]
) -> _Piece:
    """Return the derivative of a `primitive` of operands of these `types` and of `params`.

    `active` are the operands of which it gives cotangents. `given` are the types of the cotangents
    of the results, None for results without one.
    """
    with at(None):
        inputs = [input_node(t, "operand") for t in types]
        whole = primitive.node(*inputs, **params)
        found = outputs_of(whole)
        outputs = found if isinstance(found, tuple) else (found,)
        seeds = [None if t is None else input_node(t, "cotangent") for t in given]
        present = [(o, s) for o, s in zip(outputs, seeds) if s is not None]
        gradients = vjp([o for o, _ in present], [s for _, s in present], [inputs[i] for i in active], promoted=True)
        wanted = [(i, g) for i, g in zip(active, gradients) if g is not None]
        if not wanted:
            return _Piece(None, (), ())
        opened = _opened([g for _, g in wanted])
    places = {n: i for i, n in enumerate(inputs)}
    stand_in: dict[Node, Node] = {}
    kept: dict[int, Node] = {}
    for node in toposort(opened, stop={whole, *inputs, *outputs}):
        if node.prim is GET_ITEM and node.inputs[0] is whole:
            place = -1 - node.params["index"]
        elif node is whole and whole is found:
            place = -1
        elif node in places:
            place = places[node]
        else:
            continue
        stand_in[node] = kept.setdefault(place, input_node(node.type, "residual"))
    results = substitute(opened, stand_in)
    graph = Graph((*kept.values(), *[s for _, s in present]), results, f"grad_{primitive.name}")
    return _Piece(graph, tuple(kept), [i for i, _ in wanted])


def pulled(
    order: Sequence[Recorded], roots: Sequence[Node], given: Sequence[_Cotangent], wrt: Sequence[Node]
) -> list[Optional[_Cotangent]]:
    """Return the gradients by the nodes `wrt`, each with its type, or None where there is none.

    `order` are the recorded nodes that the nodes `roots` depend on, inputs first, and `given` the
    cotangents of the roots.
    """
    pull = _Pull(order, wrt)
    for node, ct in zip(roots, given):
        if node in pull.active:
            pull.give(node, ct)
    pull.run()
    return pull.gradients(wrt, {id(b) for _, b in given})


class _Pull:
    """The cotangents of one recording on their way back, until they are used up."""

    def __init__(self, order: Sequence[Recorded], wrt: Sequence[Node]) -> None:
        self.order, self.stop = order, set(wrt)
        self.cotangents: dict[Node, list[_Cotangent]] = {}
        self.parts: dict[Node, list[Optional[list[_Cotangent]]]] = {}
        # By kind of operation and by what the cotangents are of: the operands of each operation.
        self.groups: dict[_Key, tuple[_Piece, tuple[Node, ...], list[Sequence[Any]]]] = {}
        self.active, self.often = self._active()

    def _active(self) -> tuple[set[Node], set[Node]]:
        """Return the nodes that cotangents pass through, and those of `stop` that are used often."""
        stop, active = self.stop, set(self.stop)
        uses = dict.fromkeys(stop, 0)
        for node in self.order:
            if node in stop:
                continue
            for i in node.inputs:
                if i in active:
                    active.add(node)
                    if i in uses:
                        uses[i] += 1
        return active, {n for n, count in uses.items() if count >= OFTEN}

    def give(self, node: Node, ct: _Cotangent) -> None:
        """Add to the cotangent of a node."""
        if node.prim is GET_ITEM and node not in self.stop:
            whole = node.inputs[0]
            items = self.parts.get(whole)
            if items is None:
                items = self.parts[whole] = [None] * len(whole.type)
            index = node.params["index"]
            before = items[index]
            if before is None:
                items[index] = [ct]
            else:
                before.append(ct)
        else:
            known = self.cotangents.get(node)
            if known is None:
                self.cotangents[node] = [ct]
            else:
                known.append(ct)

    def run(self) -> None:
        """Pass all cotangents back to the nodes of `stop`."""
        stop, active = self.stop, self.active
        for node in reversed(self.order):
            prim = node.prim
            if prim is None or prim is GET_ITEM or node in stop or node not in active:
                continue
            if type(node.type) is tuple:
                found: Any = self.parts.pop(node, None)
                if found is not None:
                    self._pass(node, [None if c is None else _total(c) for c in found])
            else:
                found = self.cotangents.pop(node, None)
                if found is not None:
                    self._pass(node, (found[0] if len(found) == 1 else _total(found),))
        for key, (piece, targets, many) in self.groups.items():
            self._together(key, piece, targets, many)

    def gradients(self, wrt: Sequence[Node], shared: set[int]) -> list[Optional[_Cotangent]]:
        """Return the cotangents of the nodes `wrt`, in memory that is not in `shared` and that no
        two of them share.
        """
        result: list[Optional[_Cotangent]] = []
        for node in wrt:
            known = self.cotangents.get(node)
            if known is None:
                result.append(None)
                continue
            kind, value = _total(known)
            if id(value) in shared:
                value = _copies.recall(kind, partial(_copy, kind))(value)
            shared.add(id(value))
            self.cotangents[node] = [(kind, value)]
            result.append((kind, value))
        return result

    def _pass(self, node: Recorded, cts: Sequence[Optional[_Cotangent]]) -> None:
        """Pass the cotangents of an operation's results on to its operands."""
        now, later = [], []
        active, often = self.active, self.often
        for i, n in enumerate(node.inputs):
            if n in often:
                later.append(i)
            elif n in active:
                now.append(i)
        if later:
            targets = tuple([node.inputs[i] for i in later])
            piece, key = _found(node, tuple(later), cts)
            if piece.results:
                group = self.groups.get((key, targets))
                if group is None:
                    group = self.groups[key, targets] = piece, targets, []
                group[2].append(_arguments(piece, node, cts))
        if now:
            piece, _ = _found(node, tuple(now), cts)
            if piece.results:
                values = piece(_arguments(piece, node, cts))
                for (i, kind), value in zip(piece.results, values):
                    self.give(node.inputs[i], (kind, value))

    def _together(self, key: _Key, piece: _Piece, targets: tuple[Node, ...], many: Sequence[Sequence[Any]]) -> None:
        """Give the cotangents of operations of one kind, computed many at a time."""
        start = 0
        where = {i: t for (i, _), t in zip(piece.results, targets)}
        for count in TOGETHER:
            while len(many) - start >= count:
                values = [v for one in many[start : start + count] for v in one]
                start += count
                if count == 1:
                    found: Any = piece(values)
                else:
                    run = _grouped.recall((key[0], count), partial(_group, piece, count))
                    found = run(*values)
                for (i, kind), value in zip(piece.results, found if type(found) is tuple else (found,)):
                    self.give(where[i], (kind, value))


def _found(node: Recorded, active: tuple[int, ...], cts: Sequence[Optional[_Cotangent]]) -> tuple[_Piece, _Key]:
    """Return the piece of an operation and its key."""
    prim, params = node.prim, node.params
    assert prim is not None
    types = tuple([i.type for i in node.inputs])
    known = params["link"] if prim is kept_call else freeze(params) if params else None
    key: _Key = (prim, known, types, active, *[None if c is None else c[0] for c in cts])
    found = _pieces.recent.get(key)
    if found is None:
        given = [None if c is None else c[0] for c in cts]
        found = _pieces.recall(key, partial(_piece, prim, params, types, active, given))
    return found, key


def _arguments(piece: _Piece, node: Any, cts: Sequence[Optional[_Cotangent]]) -> list[Any]:
    inputs, whole = node.inputs, node.buffer
    several = type(node.type) is tuple
    values = [inputs[i].buffer if i >= 0 else whole[-1 - i] if several else whole for i in piece.used]
    values += [c[1] for c in cts if c is not None]
    return values


def _total(cts: Sequence[_Cotangent]) -> _Cotangent:
    """Return the sum of cotangents of one value."""
    while len(cts) > 1:
        first, rest = cts[:TERMS], cts[TERMS:]
        types = tuple([t for t, _ in first])
        run = _sums.recent.get(types)
        if run is None:
            run = _sums.recall(types, partial(_sum, types))
        kind = types[0]
        for t in types:
            if t.dtype.is_inexact:
                kind = t
        cts = [(kind, run(*[b for _, b in first])), *rest]
    return cts[0]


def _sum(types: Sequence[TensorType]) -> Callable[..., Any]:
    terms = [input_node(t, "cotangent") for t in types]
    total = terms[0]
    for term in terms[1:]:
        total = sum_of(total, term)
    return _compiled(Graph(terms, (total,), "sum_of_cotangents"))


def _copy(kind: TensorType) -> Callable[..., Any]:
    value = input_node(kind, "cotangent")
    return _compiled(Graph((value,), (identity(value),), "copy"))


def _group(piece: _Piece, count: int) -> Callable[..., Any]:
    """Return the program of the sums of the cotangents that `count` calls of a piece give."""
    assert piece.graph is not None
    copies = []
    inputs: list[Node] = []
    for _ in range(count):
        fresh = {n: input_node(n.type, "operand") for n in piece.graph.inputs}
        inputs += fresh.values()
        copies.append(substitute(piece.graph.outputs, fresh))
    outputs = [_joined([c[k] for c in copies]) for k in range(len(piece.graph.outputs))]
    return _compiled(Graph(inputs, outputs, piece.graph.name))


def _joined(terms: Sequence[Node]) -> Node:
    """Return the sum of nodes of the same structure: for products of matrices and rows that are
    added at indices, one such operation of all operands.
    """
    first = terms[0]
    if first.prim in (S.TRANSPOSE, S.RESHAPE):
        assert first.prim is not None
        return first.prim(_joined([t.inputs[0] for t in terms]), **first.params)
    if first.prim is L.matmul and len(first.shape) == 2:
        left = S.concat([t.inputs[0] for t in terms], 1)
        return L.matmul(left, S.concat([t.inputs[1] for t in terms], 0))
    if first.prim is take_add and first.params["axis"] == 0 and len(first.inputs[1].shape) == 1:
        rows = S.concat([t.inputs[0] for t in terms], 0)
        return take_add(rows, S.concat([t.inputs[1] for t in terms], 0), **first.params)
    total = first
    for term in terms[1:]:
        total = sum_of(total, term)
    return total


def _opened(outputs: Sequence[Node]) -> list[Node]:
    """Return `outputs` with the graphs that they call in place of the calls."""
    results: dict[Node, Sequence[Node]] = {}
    image: dict[Node, Node] = {}
    for node in toposort(outputs):
        if node.prim is GET_ITEM and node.inputs[0] in results:
            image[node] = results[node.inputs[0]][node.params["index"]]
            continue
        inputs = tuple([image.get(i, i) for i in node.inputs])
        if node.prim is C.call and type(node.type) is tuple and all(t.is_static for t in node.params["graph"].input_types):
            results[node] = C.inline(node.params["graph"], inputs)
        elif any(a is not b for a, b in zip(inputs, node.inputs)):
            image[node] = Node(node.prim, inputs, node.params, node.type, node.where)
    return [image.get(o, o) for o in outputs]
