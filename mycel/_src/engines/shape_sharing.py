"""Shape sharing: small graphs that differ only in sizes run as one program with symbolic sizes.

An operation that is called with ever new sizes is not lowered for each of them. The first `ALONE`
graphs of one structure are compiled for themselves. Then the numbers that differ, in the types of
the inputs and among the parameters that are sizes, become symbols; those that were equal to each
other so far share one. The graph is made again of the same primitives with these symbols, under
decisions that are its guards (`ir.dimension_guards`), so that it is the given graph for every tuple
of sizes that fits. From then on a graph is an instance of it, which takes no lowering.

Numbers below 2 stay what they are, as sizes of 0 and 1 broadcast or leave nothing to do. A constant
that counts elements, as the divisor of a mean does, is a further operand where it differs. Graphs
share programs where their extents are alike as well, since what is chosen by the sizes at hand may
not be good for others. Sums are added up in the order of a graph that is compiled for itself: what
ran before in a process must not show in the bits of a result.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions, deciding
from mycel._src.compiler.ir.dims import Dim, DimLike, symbol
from mycel._src.compiler.ir.graph import Graph, Node, at, input_node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims.base import CONSTANT, Literal
from mycel._src.compiler.transforms.specialize import concrete
from mycel._src.engines import buffers
from mycel._src.engines.base import Entry
from mycel._src.engines.size_specialization import programs_of
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.log import logger
from mycel._src.foundation.settings import config

__all__ = ["shared_program"]

ALONE = 2  # graphs of a structure that are compiled for themselves
ATTEMPTS = 4  # graphs with symbols for one structure, and attempts that may fail
NODES = 48  # of larger graphs each is compiled for itself
EXTENT = 3  # bits of the number of elements in which graphs that share a program may differ
FAR = 1 << 28  # elements from which on types of positions may depend on the size
SIZES = frozenset(("high", "low", "shape", "size", "starts", "stops"))  # parameters that are sizes

_numbers = itertools.count()
_Number = int | Literal
_Guard = Callable[[Mapping[str, int]], bool]


class _Structure:
    """A structure of graphs and the graphs with symbols that were made for it."""

    __slots__ = ("seen", "made", "refusals")

    def __init__(self) -> None:
        self.seen: list[tuple[_Number, ...]] = []
        # For each: a number or a symbol's name for each number, the guards, and the graph.
        self.made: list[tuple[tuple[Any, ...], _Guard, Graph]] = []
        self.refusals = 0

    def program(self, graph: Graph, numbers: tuple[_Number, ...]) -> Entry | None:
        """Return a program for a graph of this structure with these numbers.

        Returns None where it is to be compiled for itself.
        """
        for pattern, holds, known in self.made:
            sizes = _bound(pattern, numbers)
            if sizes is not None and holds(sizes):
                return _with_counts(_entry(known, sizes), pattern, numbers)
        if numbers not in self.seen and len(self.seen) < 2 * ATTEMPTS:
            self.seen.append(numbers)
        if len(self.seen) <= ALONE or self.refusals >= ATTEMPTS or len(self.made) >= ATTEMPTS:
            return None
        values, pattern, sizes = _varied(numbers, self.seen)
        if not sizes:
            return None
        decisions = Decisions(sizes)
        try:
            with deciding(decisions), at(None):
                made = _again(graph, values, sizes)
            entry = None if made is None else _entry(made, sizes)
        except Exception as error:
            logger.debug("%s is compiled for each size: %s", graph.name, error)
            entry = made = None
        if made is None or any([_pins(*guard) for guard in decisions.guards.items()]):
            self.refusals += 1
            return None if entry is None else _with_counts(entry, pattern, numbers)
        self.made.insert(0, (pattern, decisions.condition(), made))
        return None if entry is None else _with_counts(entry, pattern, numbers)


def _entry(graph: Graph, sizes: Mapping[str, int]) -> Entry:
    """Return the program of a graph with symbols for some sizes, with the bits of one for these."""
    with deciding(Decisions(sizes, settles_orders=True)):
        return programs_of(graph).entry(sizes)


_structures = Remembered[Any, _Structure]("structures of small graphs", MANY, config.COMPILED_ANEW)


def shared_program(graph: Graph) -> Entry | None:
    """Return a program that a graph shares with others of its structure.

    Returns None where it is to be compiled for itself.
    """
    nodes = graph.nodes
    if len(nodes) > NODES or not all([type(i.type) is TensorType and i.type.is_static for i in graph.inputs]):
        return None
    place: dict[Node, int] = {n: i for i, n in enumerate(graph.inputs)}
    numbers: list[_Number] = []
    key: list[Any] = []
    extent = 0
    for i in graph.inputs:
        key += (i.type.dtype, i.type.rank)
        numbers += i.type.shape
        extent = max(extent, i.type.size)
    for node in nodes:
        place[node] = len(place)
        key.append(node.prim)
        if _is_count(node, graph):
            key.append(node.type)
            numbers.append(node.params["value"])
            continue
        key += [place.get(i) for i in node.inputs]
        for name, value in node.params.items():
            if isinstance(value, Graph):
                return None
            key.append(name)
            if _is_size(name, value):
                numbers += value if type(value) is tuple else (value,)
                key.append(len(value) if type(value) is tuple else None)
            else:
                key.append(value)
    if extent >= FAR:
        return None
    key += ("outputs", *[place[o] for o in graph.outputs], extent.bit_length() // EXTENT)
    structure = _structures.recall(tuple(key), _Structure)
    return structure.program(graph, tuple(numbers))


def _is_count(node: Node, graph: Graph) -> bool:
    """Return whether a node is a constant that may be a number of elements of what the graph takes
    or gives, or one less.
    """
    if node.prim is not CONSTANT or node.type.rank or node.type.dtype.kind != "f":
        return False
    value = node.params["value"].array.item()
    if not 2 <= value < FAR or value != int(value):
        return False
    sizes = [n.type.size for n in (*graph.inputs, *graph.outputs) if type(n.type) is TensorType]
    return any(size % (value + k) == 0 for size in sizes for k in (0, 1) if size >= value)


def _with_counts(entry: Entry, pattern: Sequence[Any], numbers: Sequence[_Number]) -> Entry:
    """Return an entry without the constants that are further operands, which are `numbers`."""
    counts = [n.array for known, n in zip(pattern, numbers) if known is None and isinstance(n, Literal)]
    if not counts:
        return entry
    return partial(_run_with, entry, [buffers.from_array(c) for c in counts])


def _run_with(entry: Entry, counts: Sequence[Any], *given: Any) -> Any:
    return entry(*given, *counts)


def _pins(question: tuple[Dim, bool], answer: bool) -> bool:
    """Return whether a decision leaves one size only of a symbol."""
    difference, equal = question
    return equal and answer and len(symbols_in(difference)) == 1


def _is_size(name: str, value: Any) -> bool:
    return name in SIZES and (type(value) is int or type(value) is tuple and all([type(v) is int for v in value]))


def _bound(pattern: Sequence[Any], numbers: Sequence[_Number]) -> dict[str, int] | None:
    """Return the sizes of symbols with which a pattern gives these numbers, or None."""
    sizes: dict[str, int] = {}
    for known, number in zip(pattern, numbers):
        if isinstance(number, Literal):
            if known is not None and known != number:
                return None
        elif type(known) is int:
            if known != number:
                return None
        elif number < 2 or sizes.setdefault(known, number) != number:
            return None
    return sizes


def _varied(
    numbers: Sequence[_Number], seen: Sequence[Sequence[_Number]]
) -> tuple[list[Any], tuple[Any, ...], dict[str, int]]:
    """Return numbers with symbols in place of those that differ from those `seen` before, as
    dimensions and as a pattern, and the sizes of the symbols.

    None stands for constants that differ.
    """
    symbols: dict[tuple[_Number, ...], Any] = {}
    values: list[Any] = []
    sizes: dict[str, int] = {}
    for k, number in enumerate(numbers):
        column = (*[s[k] for s in seen], number)
        if isinstance(number, Literal):
            values.append(number if len(set(column)) == 1 else None)
            continue
        if number < 2 or len(set(column)) == 1:
            values.append(number)
            continue
        if column not in symbols:
            symbols[column] = symbol(f"n{next(_numbers)}", 2)
            sizes[repr(symbols[column])] = number
        values.append(symbols[column])
    return values, tuple([v if type(v) is int or type(v) is Literal or v is None else repr(v) for v in values]), sizes


def _again(graph: Graph, values: Sequence[Any], sizes: Mapping[str, int]) -> Graph | None:
    """Return a graph with other numbers, or None where it is not the given one for `sizes`."""
    rest = iter(values)
    image: dict[Node, Node] = {}
    for i in graph.inputs:
        image[i] = input_node(tensor_type(tuple([next(rest) for _ in i.type.shape]), i.type.dtype), "operand")
    counts = []
    for node in graph.nodes:
        if _is_count(node, graph):
            image[node] = node
            if next(rest) is None:
                image[node] = input_node(node.type, "count")
                counts.append(image[node])
            continue
        params = {name: _renumbered(name, value, rest) for name, value in node.params.items()}
        assert node.prim is not None
        made = image[node] = node.prim.node(*[image[i] for i in node.inputs], **params)
        if concrete(made.type, sizes) != node.type:
            return None
    return Graph([*[image[i] for i in graph.inputs], *counts], [image[o] for o in graph.outputs], graph.name)


def _renumbered(name: str, value: Any, rest: Iterator[DimLike]) -> Any:
    if not _is_size(name, value):
        return value
    return tuple([next(rest) for _ in value]) if type(value) is tuple else next(rest)
