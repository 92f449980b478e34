"""Large products that one element-wise group reads, computed and read a block of rows at a time,
and parts that it reads one below the other.

The gradient of a large weight is read once, by the optimizer's update of that weight. So it need
not be in memory as a whole: a block of its rows is computed, and the group goes over the same rows
of all that it reads and writes while the block is in a cache. An input that a result of the group
replaces is overwritten where it lies; nothing reads it later. A gradient that comes in parts, as
from other ranks, is not put together: the group goes over the rows of each part when that is there.

The steps of a block are those of a small graph of its own, lowered over slices of the operands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.shape import CONCAT
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.lowering.fusion import Fusion, Unit
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target
from mycel._src.engines.native.steps.view_rules import NUMBERS, is_index, root_of

__all__ = ["Blocked", "blocked_products"]

# From how many bytes on a product is not kept as a whole, and how many a block has, about.
LEAST = 32 << 20
BLOCK = 8 << 20
# From how many bytes on parts are not put together.
LEAST_PART = 1 << 20
# Rows of a block are a multiple of this, but for those of the last one.
ROWS = 64


@dataclass
class Blocked:
    """A group and what is computed with it: products, and parts below each other (`joined`)."""

    group: Unit
    products: list[Node] = field(default_factory=list)
    joined: list[Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[Node]:
        """The products and what parts would be put together to."""
        return [*self.products, *self.joined]

    def add_node(self, node: Node) -> None:
        """Add a node that only the group reads."""
        (self.joined if node.prim is CONCAT else self.products).append(node)

    def heights(self) -> list[int]:
        """Return the numbers of rows of the blocks."""
        if self.joined:
            return _heights(self.joined[0])
        rows, length = int(self.products[0].type.shape[0]), _length(self.products[0])
        return [min(length, rows - first) for first in range(0, rows, length)]

    def add(self, fusion: Fusion, steps: StepBuilder) -> None:
        """Add the steps of all blocks, and set the places of the group's results."""
        stored = [node for node in self.group.members if node in fusion.stored]
        places = [_place(steps, node) for node in stored]
        rows = int(self.nodes[0].type.shape[0])
        operands = self._operands()
        whole = {m.inputs[1] for m in self.products}
        cut = {i: _is_cut(i, rows) and i not in whole for i in operands} | dict.fromkeys(self.joined, True)
        graphs: dict[int, Graph] = {}
        first = 0
        for number, count in enumerate(self.heights()):
            if count not in graphs:
                graphs[count] = self._graph(cut, stored, count)
            given = [_rows(steps.view(i), first, count) if cut[i] else steps.view(i) for i in operands]
            given += [steps.view(node.inputs[number]) for node in self.joined]
            steps.over_slices(graphs[count], given, [_rows(v, first, count) for v in places])
            first += count
        for node, place in zip(stored, places):
            steps.bind(node, [place])

    def _operands(self) -> list[Node]:
        """Return what the group and its products read from memory."""
        found: dict[Node, None] = {}
        for node in [*self.products, *self.group.members]:
            for i in node.inputs:
                if i not in self.group.members and i not in self.nodes and not _is_number(i):
                    found[i] = None
        return list(found)

    def _graph(self, cut: Mapping[Node, bool], stored: Sequence[Node], count: int) -> Graph:
        """Return the graph of a block of `count` rows; `cut` says which operands have so many."""
        kinds = [i.type.with_shape((count, *i.type.shape[1:])) if cut[i] else i.type for i in cut]
        inputs = [input_node(kind) for kind in kinds]
        made: dict[Node, Node] = dict(zip(cut, inputs))
        for node in [*self.products, *self.group.members]:
            assert node.prim is not None
            made[node] = node.prim(*[made.get(i, i) for i in node.inputs], **node.params)
        return Graph(inputs, [made[node] for node in stored], "rows of a product")


def blocked_products(fusion: Fusion, steps: StepBuilder, order: Sequence[Unit]) -> dict[int, Blocked]:
    """Return the groups that are to be computed by blocks of rows with the products that only they
    read, by the number of the group's unit.
    """
    found: dict[int, Blocked] = {}
    if not target().threads or steps.is_sliced:
        return found
    large = [
        u.node
        for u in order
        if u.node is not None and (_is_large(u.node) or _is_in_parts(u.node)) and u.node not in fusion.results
    ]
    if not large:
        return found
    readers: dict[Node, set[int]] = {node: set() for node in large}
    for node, number in fusion.reads(order):
        if node in readers:
            readers[node].add(number)
    for node, numbers in readers.items():
        units = [order[number] for number in numbers]
        if len(units) == 1 and units[0].domain is not None:
            found.setdefault(units[0].number, Blocked(units[0])).add_node(node)
    for b in found.values():
        # The parts of others are put together.
        b.joined = [] if b.products else [node for node in b.joined if _heights(node) == b.heights()]
    return {number: b for number, b in found.items() if _suits(fusion, steps, b)}


def _is_large(node: Node) -> bool:
    kind = node.type
    return (
        node.prim is matmul
        and isinstance(kind, TensorType)
        and kind.rank == 2
        and kind.is_static
        and int(kind.nbytes) >= LEAST
    )


def _is_in_parts(node: Node) -> bool:
    """Return whether a node puts large matrices below each other."""
    return (
        node.prim is CONCAT
        and node.params["axis"] == 0
        and node.type.rank == 2
        and node.type.is_static
        and all(part.type.nbytes >= LEAST_PART for part in node.inputs)
    )


def _heights(joined: Node) -> list[int]:
    return [int(part.type.shape[0]) for part in joined.inputs]


def _length(product: Node) -> int:
    """Return how many rows a block has."""
    width = int(product.type.shape[1]) * int(product.dtype.itemsize)
    return max(BLOCK // width // ROWS, 1) * ROWS


def _suits(fusion: Fusion, steps: StepBuilder, blocked: Blocked) -> bool:
    """Return whether a group replaces inputs, as an update of weights does, and each row of its
    results depends on that row of what it reads alone.
    """
    group, products, nodes = blocked.group, blocked.products, blocked.nodes
    domain = group.domain
    assert domain is not None
    if domain.axes or domain.kind != "map" or any(m.type.shape != domain.shape for m in nodes):
        return False
    if not any(node in steps.over for node in group.members):
        return False
    if products and 2 * _length(products[0]) > int(products[0].type.shape[0]):
        return False
    full, members = domain.full_position(), group.members
    for node, position in members.items():
        if node.prim is None or not node.prim.elementwise or node.type.shape != domain.shape or position != full:
            return False
        for i in node.inputs:
            if i in members or i in nodes or _is_number(i):
                continue
            root = root_of(i)
            if root in members or root in nodes or root in fusion.again or is_index(i) or root.op in NUMBERS:
                return False
            if not _is_cut(i, domain.shape[0]) and i.type.rank == len(domain.shape) and i.type.shape[0] != 1:
                return False
    # The right factor of a product is read as a whole.
    left = {i for m in products for i in m.inputs[:1]} | {i for node in members for i in node.inputs}
    if any(m.inputs[1] in left for m in products):
        return False
    # What products read is read later than it would be, and nothing may have taken its place.
    return not any(root_of(i) in steps.own for m in nodes for i in m.inputs)


def _is_number(node: Node) -> bool:
    return node.is_constant and node.value.size == 1


def _is_cut(node: Node, rows: object) -> bool:
    """Return whether a block has only some rows of an operand."""
    return bool(node.type.rank == 2 and node.type.shape[0] == rows)


def _rows(view: View, first: int, count: int) -> View:
    """Return the place of some rows of a value."""
    return View(view.buffer, (count, view.shape[1]), view.strides, view.offset + first * view.strides[0])


def _place(steps: StepBuilder, node: Node) -> View:
    """Return where a result of a group is to be: in the input that it replaces, if that is free."""
    source = steps.over.get(node)
    if source is None or source in steps.results or steps.last_readers.get(source, 0) > steps.unit:
        return new_target(node)
    view = steps.view(source)
    return view if view.is_row_major() and source.type == node.type else new_target(node)
