"""The backward pass of a tape one operation at a time, with cached programs per operation.

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

from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from mycel._src.compiler.ir.graph import Graph, Node, at, input_node, substitute, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM, outputs_of
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.prims.indexing.index import take_add
from mycel._src.compiler.transforms.grad import sum_of, vjp
from mycel._src.engines.select import compile_small
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.python_runtime import garbage_collection
from mycel._src.foundation.settings import config
from mycel._src.foundation.spans import timed
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.replay import Replay
from mycel._src.tensors.core.autograd.sparse_gradient import SHARE, Rows, joined, row_nodes, whole
from mycel._src.tensors.core.tensor import make

if TYPE_CHECKING:
    from mycel._src.tensors.core.autograd.recorded_node import Recorded

__all__ = ["opened", "pulled"]

OFTEN = 4  # uses of a node from which on its cotangents are computed together
TOGETHER = (64, 16, 4, 1)  # operations whose cotangents are one program
SMALL = 12  # operations of a piece that may be computed for some of its operands at a time
TERMS = 8  # cotangents that are added by one program
LARGE = 1 << 20  # bytes from which on cotangents are added at once, and do not wait in large values
WAITING = 1 << 22  # bytes from which on operations that wait are computed, as many as are one program

# A cotangent: its type, which is another one than its node's where integers became floats, and its
# buffer, or its rows.
_Cotangent = tuple[TensorType, Any]
_Key = tuple[Any, ...]


class _Piece:
    """The derivative of one operation as a program.

    `used` are the places of the values that it takes before the cotangents: i for operand i,
    -1 - k for result k. `results` has the operand and the type of each cotangent that it gives.
    `is_small` says that little is computed, so that it may be computed in parts.
    """

    __slots__ = ("graph", "run", "used", "results", "is_small", "rows", "_many", "_run_rows")

    def __init__(self, graph: Graph | None, used: Sequence[int], wanted: Sequence[int]) -> None:
        self.graph, self.used = graph, tuple(used)
        self.run: Callable[..., Any] | None = None
        self.results: tuple[tuple[int, TensorType], ...] = ()
        self._many: dict[int, Callable[..., Any]] = {}
        nodes = () if graph is None else graph.nodes
        self.is_small = len(nodes) <= SMALL and not any(
            [isinstance(v, Graph) for n in nodes for v in n.params.values()]
        )
        self.rows = row_nodes(graph.outputs[0]) if graph is not None and len(graph.outputs) == 1 else None
        self._run_rows: Callable[..., Any] | None = None
        if graph is not None:
            self.results = tuple([(i, o.type) for i, o in zip(wanted, graph.outputs)])

    def made(self) -> Callable[..., Any]:
        """Return the program, which is compiled when it is first needed."""
        assert self.graph is not None
        self.run = run = _compiled(self.graph)
        return run

    def in_rows(self, values: Sequence[Any]) -> Rows:
        """Return the cotangent for the `values` that the program takes, where it is `rows`."""
        assert self.graph is not None and self.rows is not None
        nodes, params = self.rows[:2], self.rows.params
        if self._run_rows is None:
            outputs = [identity(n) if n.prim is None else n for n in nodes]
            self._run_rows = _compiled(Graph(self.graph.inputs, outputs, self.graph.name))
        rows, indices = self._run_rows(*values)
        return Rows(make(nodes[0].type, rows), make(nodes[1].type, indices), params)

    def many(self, count: int) -> Callable[..., Any]:
        """Return the program of the sums of the cotangents that `count` operations give."""
        found = self._many.get(count)
        if found is None:
            assert self.graph is not None
            found = self._many[count] = _group(self.graph, count)
        return found


_pieces = Remembered[_Key, _Piece]("derivatives of operations", MANY, config.COMPILED_ANEW)
_sums = Remembered[_Key, tuple[Callable[..., Any], TensorType]]("sums of cotangents", MANY, config.COMPILED_ANEW)
_copies = Remembered[TensorType, Callable[..., Any]]("copies of cotangents", MANY, config.COMPILED_ANEW)


def _compiled(graph: Graph) -> Callable[..., Any]:
    return compile_small(graph)


@timed("differentiation", lambda node, *_: node.op)
def _piece(node: Node, types: Sequence[Any], mask: int, given: Sequence[Any]) -> _Piece:
    """Return the derivative of the operation of a recorded node, with operands of these `types`.

    It gives cotangents of the operands in `mask`; `given` are the types of those of the results,
    None for results without one.
    """
    primitive, params = node.prim, node.params
    assert primitive is not None
    active = [i for i in range(len(types)) if mask >> i & 1]
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
        results = opened([g for _, g in wanted])
    places = {n: i for i, n in enumerate(inputs)}
    stand_in: dict[Node, Node] = {}
    kept: dict[int, Node] = {}
    for node in toposort(results, stop={whole, *inputs, *outputs}):
        if node.prim is GET_ITEM and node.inputs[0] is whole:
            place = -1 - node.params["index"]
        elif node is whole and whole is found:
            place = -1
        elif node in places:
            place = places[node]
        else:
            continue
        stand_in[node] = kept.setdefault(place, input_node(node.type, "residual"))
    results = substitute(results, stand_in)
    graph = Graph((*kept.values(), *[s for _, s in present]), results, f"grad_{primitive.name}")
    return _Piece(graph, tuple(kept), [i for i, _ in wanted])


def pulled(
    order: Sequence[Recorded],
    known: Sequence[Any],
    roots: Sequence[Node],
    given: Sequence[_Cotangent],
    wrt: Sequence[Node],
) -> list[_Cotangent | None]:
    """Return the gradients by the nodes `wrt`, each with its type, or None where there is none.

    `order` are the recorded nodes that the nodes `roots` depend on, inputs first, `known` their
    parameters as keys, and `given` the cotangents of the roots.
    """
    with garbage_collection.left_alone():
        pull = _Pull(order, known, wrt)
        for node, ct in zip(roots, given):
            pull.cotangents.setdefault(node, []).append(ct)
        pull.run()
        return pull.gradients(wrt, {id(b) for _, b in given})


class _Pull:
    """The cotangents of one recording on their way back, until they are used up.

    Sets of operands are masks: bit i stands for operand i.
    """

    def __init__(self, order: Sequence[Recorded], known: Sequence[Any], wrt: Sequence[Node]) -> None:
        self.order, self.known, self.stop = order, known, set(wrt)
        self.cotangents: dict[Node, list[_Cotangent]] = {}
        # By kind of operation and by what the cotangents are of: the operands of each operation.
        self.groups: dict[_Key, tuple[_Piece, dict[int, Node], list[Sequence[Any]]]] = {}
        self.masks, self.often = self._masks()

    def _masks(self) -> tuple[list[int], set[Node]]:
        """Return for each node the operands that cotangents pass to, and the nodes of `stop` that
        are used often.
        """
        active = set(self.stop)
        uses = dict.fromkeys(active, 0)
        masks = []
        for node in self.order:
            mask = 0
            if node not in uses:
                bit = 1
                for i in node.inputs:
                    if i in active:
                        mask += bit
                        if i in uses:
                            uses[i] += 1
                    bit += bit
                if mask:
                    active.add(node)
            masks.append(mask)
        return masks, {n for n, count in uses.items() if count >= OFTEN}

    def run(self) -> None:
        """Pass all cotangents back to the nodes of `stop`."""
        cotangents, masks, known, often = self.cotangents, self.masks, self.known, self.often
        parts: dict[Node, list[_Cotangent | None]] = {}
        cts: Sequence[_Cotangent | None]
        place = len(masks)
        for node in reversed(self.order):
            place -= 1
            mask = masks[place]
            if not mask:
                continue
            kind = node.type
            if type(kind) is tuple:
                found = parts.pop(node, None)
                if found is None:
                    continue
                cts = found
            else:
                given = cotangents.pop(node, None)
                if given is None:
                    continue
                if len(given) > 1:
                    given = [_total(given)]
                if node.prim is GET_ITEM:
                    whole = node.inputs[0]
                    items = parts.get(whole)
                    if items is None:
                        items = parts[whole] = [None] * len(whole.type)
                    index = node.params["index"]
                    before = items[index]
                    items[index] = given[0] if before is None else _total([before, given[0]])
                    continue
                cts = given
            if often and not often.isdisjoint(node.inputs):
                mask = self._later(node, known[place], mask, cts)
                if not mask:
                    continue
            piece = _found(node, known[place], mask, cts)
            if piece.rows is not None and node.inputs[piece.results[0][0]] in self.stop:
                self._add_rows(node.inputs[piece.results[0][0]], piece, _arguments(piece, node, cts))
            elif piece.results:
                values = (piece.run or piece.made())(*_arguments(piece, node, cts))
                inputs = node.inputs
                for (i, kind), value in zip(piece.results, values if type(values) is tuple else (values,)):
                    target = inputs[i]
                    if target not in cotangents:
                        cotangents[target] = [(kind, value)]
                    elif kind.nbytes < LARGE:
                        cotangents[target].append((kind, value))
                    else:
                        cotangents[target] = [_total([*cotangents[target], (kind, value)])]
        for piece, targets, many in self.groups.values():
            self._together(piece, targets, many)

    def _later(self, node: Recorded, known: Any, mask: int, cts: Sequence[_Cotangent | None]) -> int:
        """Put off the cotangents of an operation by operands that are used often, and return the
        other operands in `mask`.

        Where much would be computed twice nothing is put off, and neither where large values would
        wait.
        """
        if not _found(node, known, mask, cts).is_small:
            return mask
        targets = {i: n for i, n in enumerate(node.inputs) if n in self.often}
        later = sum([1 << i for i in targets])
        piece = _found(node, known, later, cts)
        size = _waiting(piece, node, cts)
        if size >= max([LARGE, *[t.nbytes for _, t in piece.results]]):
            return mask
        if piece.results:
            key: _Key = (piece, *targets.values())
            group = self.groups.get(key)
            if group is None:
                group = self.groups[key] = piece, targets, []
            many = group[2]
            many.append(_arguments(piece, node, cts))
            if len(many) in TOGETHER and len(many) * size >= WAITING:
                self._together(*group)
                many.clear()
        return mask - later

    def _together(self, piece: _Piece, targets: Mapping[int, Node], many: Sequence[Sequence[Any]]) -> None:
        """Give the cotangents of operations of one kind, computed many at a time.

        `targets` has the node of each operand, and `many` the values that the piece takes for each
        operation.
        """
        if piece.rows is not None:
            target = targets[piece.results[0][0]]
            for one in many:
                self._add_rows(target, piece, one)
            return
        start = 0
        for count in TOGETHER:
            while len(many) - start >= count:
                values = [v for one in many[start : start + count] for v in one]
                start += count
                run = (piece.run or piece.made()) if count == 1 else piece.many(count)
                found = run(*values)
                for (i, kind), value in zip(piece.results, found if type(found) is tuple else (found,)):
                    self.cotangents.setdefault(targets[i], []).append((kind, value))

    def _add_rows(self, target: Node, piece: _Piece, values: Sequence[Any]) -> None:
        self.cotangents.setdefault(target, []).append((piece.results[0][1], piece.in_rows(values)))

    def gradients(self, wrt: Sequence[Node], shared: set[int]) -> list[_Cotangent | None]:
        """Return the cotangents of the nodes `wrt`, in memory that is not in `shared` and that no
        two of them share.
        """
        result: list[_Cotangent | None] = []
        for node in wrt:
            known = self.cotangents.get(node)
            if known is None:
                result.append(None)
                continue
            kind, value = _total_with_rows(known)
            if type(value) is Rows:
                pass
            elif id(value) in shared:
                value = _copies.recall(kind, partial(_copy, kind))(value)
            shared.add(id(value))
            self.cotangents[node] = [(kind, value)]
            result.append((kind, value))
        return result


def _found(node: Node, known: Any, mask: int, cts: Sequence[_Cotangent | None]) -> _Piece:
    """Return the piece of an operation; `known` are its parameters as a key."""
    types = tuple([i.type for i in node.inputs])
    key: _Key = (node.prim, known, types, mask, *[None if c is None else c[0] for c in cts])
    found = _pieces.recent.get(key)
    return _pieces.recall(key, partial(_piece, node, types, mask, key[4:])) if found is None else found


def _arguments(piece: _Piece, node: Recorded, cts: Sequence[_Cotangent | None]) -> list[Any]:
    """Return the buffers that the program of a piece takes."""
    inputs: Any = node.inputs
    whole = node.buffer
    if type(node.type) is tuple:
        values = [inputs[i].buffer if i >= 0 else whole[-1 - i] for i in piece.used]
    else:
        values = [inputs[i].buffer if i >= 0 else whole for i in piece.used]
    if None in values:
        values = [_again(node, i) if v is None else v for i, v in zip(piece.used, values)]
    values += [c[1] for c in cts if c is not None]
    return values


def _waiting(piece: _Piece, node: Recorded, cts: Sequence[_Cotangent | None]) -> int:
    """Return the bytes of the values that the program of a piece takes."""
    if not piece.results:
        return 0
    kinds: Any = node.type if type(node.type) is tuple else (node.type,)
    taken = [node.inputs[i].type if i >= 0 else kinds[-1 - i] for i in piece.used]
    return sum([int(t.nbytes) for t in [*taken, *[c[0] for c in cts if c is not None]]])


def _again(node: Recorded, place: int) -> Any:
    """Return the value of an operand or a result that was not kept, computed again."""
    with eager.use_context(None):
        replay = Replay(node.tape, eager.execute, False)
        if place >= 0:
            return replay.value(node.inputs[place])._buf
        found: Any = replay.value(node)
        return found[-1 - place]._buf if type(node.type) is tuple else found._buf


def _total(cts: Sequence[_Cotangent]) -> _Cotangent:
    """Return the sum of cotangents of one value."""
    while len(cts) > 1:
        first, rest = cts[:TERMS], cts[TERMS:]
        types = tuple([t for t, _ in first])
        run, kind = _sums.recent.get(types) or _sums.recall(types, partial(_sum, types))
        cts = [(kind, run(*[b for _, b in first])), *rest]
    return cts[0]


def _total_with_rows(cts: Sequence[_Cotangent]) -> _Cotangent:
    """Return the sum of cotangents some of which may be rows: rows, where all are and where they
    are few.
    """
    by_params: dict[Any, list[Rows]] = {}
    for _, value in cts:
        if type(value) is Rows:
            by_params.setdefault(value.params, []).append(value)
    if not by_params:
        return _total(cts)
    kind = cts[0][0]
    others = [c for c in cts if type(c[1]) is not Rows]
    sums = [joined(parts) for parts in by_params.values()]
    if not others and len(sums) == 1 and (sums[0].rows.nbytes + sums[0].indices.nbytes) * SHARE <= kind.nbytes:
        return kind, sums[0]
    return _total([*others, *[(kind, whole(r)._buf) for r in sums]])


def _sum(types: Sequence[TensorType]) -> tuple[Callable[..., Any], TensorType]:
    """Return the program that adds values of these types, and the type of the sum."""
    terms = [input_node(t, "cotangent") for t in types]
    total = terms[0]
    for term in terms[1:]:
        total = sum_of(total, term)
    return _compiled(Graph(terms, (total,), "sum_of_cotangents")), total.type


def _copy(kind: TensorType) -> Callable[..., Any]:
    value = input_node(kind, "cotangent")
    return _compiled(Graph((value,), (identity(value),), "copy"))


def _group(graph: Graph, count: int) -> Callable[..., Any]:
    copies = []
    inputs: list[Node] = []
    for _ in range(count):
        fresh = {n: input_node(n.type, "operand") for n in graph.inputs}
        inputs += fresh.values()
        copies.append(substitute(graph.outputs, fresh))
    outputs = [_joined([c[k] for c in copies]) for k in range(len(graph.outputs))]
    return _compiled(Graph(inputs, outputs, graph.name))


def _joined(terms: Sequence[Node]) -> Node:
    """Return the sum of nodes of the same structure: for products of matrices and rows that are
    added at indices, one such operation of all operands.
    """
    first = terms[0]
    if first.prim in (S.TRANSPOSE, S.RESHAPE):
        assert first.prim is not None
        return first.prim(_joined([t.inputs[0] for t in terms]), **first.params)
    if first.prim is matrix_product.matmul and len(first.shape) == 2:
        left = S.concat([t.inputs[0] for t in terms], 1)
        return matrix_product.matmul(left, S.concat([t.inputs[1] for t in terms], 0))
    if first.prim is take_add and first.params["axis"] == 0 and len(first.inputs[1].shape) == 1:
        rows = S.concat([t.inputs[0] for t in terms], 0)
        return take_add(rows, S.concat([t.inputs[1] for t in terms], 0), **first.params)
    total = first
    for term in terms[1:]:
        total = sum_of(total, term)
    return total


def opened(outputs: Sequence[Node], stop: Container[Node] = ()) -> list[Node]:
    """Return `outputs` with the graphs that they call in place of the calls, down to the nodes in
    `stop`.
    """
    results: dict[Node, Sequence[Node]] = {}
    image: dict[Node, Node] = {}
    for node in toposort(outputs, stop=stop):
        if node.prim is GET_ITEM and node.inputs[0] in results:
            image[node] = results[node.inputs[0]][node.params["index"]]
            continue
        inputs = tuple([image.get(i, i) for i in node.inputs])
        if (
            node.prim is control.call
            and type(node.type) is tuple
            and all(t.is_static for t in node.params["graph"].input_types)
        ):
            results[node] = control.inline(node.params["graph"], inputs)
        elif any(a is not b for a, b in zip(inputs, node.inputs)):
            image[node] = Node(node.prim, inputs, node.params, node.type, node.where)
    return [image.get(o, o) for o in outputs]
