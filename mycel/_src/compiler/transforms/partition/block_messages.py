"""Gathers large parameters, and scatters their gradients, block by block.

A parameter of which each rank has rows is gathered for a product, and the product that is its
gradient is summed and scattered to those who have the rows. Either way the whole is in memory, once
or twice. Here the products are taken apart: of the rows of each rank a block is gathered and
multiplied, then the next; of the gradient a block is computed and scattered, then the next. A block
begins when the one before the last is done, so that one message goes while another block is
computed.

With n ranks of R rows each, cut into B blocks of r rows, a block has the rows ``k R + b r + i`` of
all ranks k (i < r). For the whole weight W and its block W_b

    x W      = the sum over b of x_b W_b, where x_b are the columns of x at the block's rows,
    x W'     = the columns x W_b' at the block's rows, side by side,
    dW = L y = the rows L_b y at the block's rows, of which each rank gets its own.

A value counts as the weight, or as the gradient, as long as its elements keep their order (in
reshapes, marks and casts) and where it is cut, what lies before the axis is one. Sums over blocks
are those of the product in another order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from mycel._src.compiler.ir.graph import Graph, Node, at, users_of
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.control_flow.recompute import after
from mycel._src.compiler.prims.distributed.collectives import all_gather, reduce_scatter
from mycel._src.compiler.prims.distributed.sharding_constraint import constrain
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.partition.parameter_gathering import element_of

__all__ = ["MOST_BYTES", "in_blocks"]

# How many bytes a block has, unless that makes more blocks than so many.
MOST_BYTES, MOST_BLOCKS = 32 << 20, 64
# What does nothing, and what leaves the elements of a matrix in their order.
_NOTHING = (E.identity, constrain)
_SAME = (*_NOTHING, S.RESHAPE, after, E.cast)


class _Scattered(NamedTuple):
    """A product whose sum over ranks is scattered as `message` says, transposed or as it is."""

    message: _Message
    product: Node
    is_turned: bool


class _Step(NamedTuple):
    """What is done to a matrix without a change of its elements' order."""

    prim: Primitive
    params: Mapping[str, Any]
    operands: tuple[Node | None, ...]

    def mapped(self, of: Callable[[Node], Node]) -> _Step:
        """Return the same with other operands."""
        return self._replace(operands=tuple([None if o is None else of(o) for o in self.operands]))

    def __call__(self, value: Node) -> Node:
        return self.prim(*[value if o is None else o for o in self.operands], **self.params)


class _Message(NamedTuple):
    """How a matrix of (ranks * rows, columns) lies on the ranks: by `rows` of each.

    `before` and `behind` are what is done before the message and after it, in order, and so to each
    block: a primitive, its parameters, and its operands, None for the value.
    """

    mesh: Mesh
    axes: tuple[str, ...]
    ranks: int
    rows: int
    blocks: int
    before: tuple[_Step, ...]
    behind: tuple[_Step, ...]

    def mapped(self, of: Callable[[Node], Node]) -> _Message:
        """Return the same of nodes that `of` gives for those of steps."""
        before, behind = ([s.mapped(of) for s in steps] for steps in (self.before, self.behind))
        return self._replace(before=tuple(before), behind=tuple(behind))


def in_blocks(graph: Graph, inputs: Collection[Node]) -> Graph:
    """Return a rank's graph in which large matrices are gathered and scattered block by block.

    Gathered are the `inputs`, where all that uses them are products; scattered is every product
    that nobody else uses.
    """
    users = users_of(graph)
    last = set(graph.outputs)
    found: dict[Node, tuple[_Message, Node, bool]] = {}
    for node in graph.nodes:
        if node.prim is all_gather and _root(node) in inputs:
            found.update(_gathered(node, users, last))
    scattered: dict[Node, _Scattered] = {}
    for node in graph.nodes:
        if node.prim is reduce_scatter:
            made = _scattered(node, users, last)
            if made is not None:
                scattered[node] = made
    if not found and not scattered:
        return graph
    image: dict[Node, Node] = {}

    def of(node: Node) -> Node:
        return image.get(node, node)

    for node in graph.nodes:
        if node in found:
            message, part, is_turned = found[node]
            with at(node.where):
                image[node] = _product(of(node.inputs[0]), of(part), message.mapped(of), is_turned)
        elif node in scattered:
            message, product, is_turned = scattered[node]
            left, right = map(of, product.inputs)
            with at(product.where):
                if is_turned:
                    left, right = _turned(right), _turned(left)
                image[node] = S.reshape(_gradient(left, right, message.mapped(of)), node.shape)
        elif any(i in image for i in node.inputs):
            image[node] = Node(node.prim, tuple(map(of, node.inputs)), node.params, node.type, node.where)
    return Graph(graph.inputs, [of(o) for o in graph.outputs], graph.name)


def _root(node: Node) -> Node:
    """Return what a value is made of without a change of its elements' order."""
    while node.prim in _SAME or node.prim is all_gather:
        node = node.inputs[0]
    return node


def _is_matrix(node: Node) -> bool:
    type = node.type
    return isinstance(type, TensorType) and type.rank == 2 and all(isinstance(d, int) for d in type.shape)


def _is_turn(node: Node) -> bool:
    return node.prim is S.TRANSPOSE and node.params["permutation"] == (1, 0)


def _turned(matrix: Node) -> Node:
    return matrix.inputs[0] if _is_turn(matrix) else S.transpose(matrix, (1, 0))


def _blocks(rows: int, nbytes: int) -> int:
    """Return into how many blocks a matrix of `nbytes` is cut, whose ranks have `rows`; 1 where it
    is small, or where no number fits.
    """
    least = min(-(-nbytes // MOST_BYTES), MOST_BLOCKS)
    return next((b for b in range(least, min(rows, MOST_BLOCKS) + 1) if rows % b == 0), 1)


def _gathered(
    node: Node, users: dict[Node, list[Node]], last: Collection[Node]
) -> dict[Node, tuple[_Message, Node, bool]]:
    """Return the products with a matrix that `node` gathers: how it lies, the part of a rank, and
    whether it is transposed in the product. Empty where other nodes use it.
    """
    if math.prod(node.inputs[0].shape[: node.params["axis"] + 1]) != 1:
        return {}
    before, part = [], node.inputs[0]
    while part.prim in _SAME:
        before += _steps(part)
        part = part.inputs[0]
    behind, whole = [], node
    while whole not in last and len(users.get(whole, ())) == 1 and users[whole][0].prim in _SAME:
        whole = users[whole][0]
        behind += _steps(whole)
    mesh, axes = node.params["mesh"], tuple(node.params["axes"])
    count = mesh.count(axes)
    if whole in last or not _is_matrix(part) or whole.shape != (count * part.shape[0], part.shape[1]):
        return {}
    blocks = _blocks(part.shape[0], whole.type.nbytes)
    if blocks == 1:
        return {}
    message = _Message(mesh, axes, count, part.shape[0], blocks, tuple(reversed(before)), tuple(behind))
    found = {}
    factors = [(whole, False)]
    for factor, is_turned in factors:
        if factor in last:
            return {}
        for user in users.get(factor, ()):
            if _is_turn(user) or user.prim in _NOTHING:
                factors.append((user, is_turned ^ _is_turn(user)))
            elif user.prim is matmul and user.inputs[1] is factor and user.inputs[0] is not factor:
                found[user] = (message, part, is_turned)
            else:
                return {}
    return found


def _scattered(node: Node, users: dict[Node, list[Node]], last: Collection[Node]) -> _Scattered | None:
    """Return what product `node` scatters the sum of; None for others, and where `node` is not the
    last to scatter it.
    """
    if any(user.prim is reduce_scatter for user in _ends(node, users)):
        return None
    mesh = node.params["mesh"]
    behind: list[_Step] = []
    axes: tuple[str, ...] = ()
    value, is_turned = node, False
    while value.prim is not matmul:
        inner = _operand(value)
        if value.prim is reduce_scatter:
            lead = math.prod(value.inputs[0].shape[: value.params["axis"]])
            if lead != 1 or value.params["op"] != "sum" or value.params["mesh"] != mesh or behind or is_turned:
                return None
            axes, inner = (*value.params["axes"], *axes), value.inputs[0]
        elif _is_turn(value):
            is_turned, inner = not is_turned, value.inputs[0]
        elif inner is None or (is_turned and value.prim is S.RESHAPE):
            return None
        else:
            behind += _steps(value)
        value = inner
        if len(users[value]) != 1 or value in last:
            return None
    count = mesh.count(axes)
    if not _is_matrix(value) or value.shape[is_turned] % count or node.type.size * count != value.type.size:
        return None
    rows = value.shape[is_turned] // count
    blocks = _blocks(rows, value.type.nbytes)
    if blocks == 1:
        return None
    return _Scattered(_Message(mesh, axes, count, rows, blocks, tuple(reversed(behind)), ()), value, is_turned)


def _ends(node: Node, users: dict[Node, list[Node]]) -> list[Node]:
    """Return the users of a value and of what `_operand` nodes alone make of it."""
    found = list(users.get(node, []))
    while len(found) == 1 and _operand(found[0]) is not None:
        found = list(users.get(found[0], []))
    return found


def _operand(node: Node) -> Node | None:
    """Return the value of which a node keeps the elements in their order, or multiplies them by a
    number; None for other nodes.
    """
    if node.prim in _SAME:
        return node.inputs[0]
    if node.prim not in (E.mul, E.div):
        return None
    x, y = node.inputs
    if y.type.shape == ():
        return x
    return y if node.prim is E.mul and x.type.shape == () else None


def _steps(node: Node) -> list[_Step]:
    """Return what a node does to its operand, whatever its shape; nothing for a view."""
    if node.prim in (*_NOTHING, S.RESHAPE):
        return []
    assert node.prim is not None
    value = _operand(node)
    return [_Step(node.prim, node.params, tuple([None if i is value else i for i in node.inputs]))]


def _done(value: Node, steps: Sequence[_Step]) -> Node:
    """Return what `steps` make of a block."""
    for step in steps:
        value = step(value)
    return value


def _late(value: Node, done: Sequence[Node]) -> Node:
    """Return a value that is there when all of `done` but the last is."""
    return value if len(done) < 2 else after(value, element_of(done[-2]))


def _columns(x: Node, b: int, m: _Message) -> Node:
    """Return the columns of `x` at the rows of block `b`."""
    lead, size = x.shape[:-1], m.rows // m.blocks
    apart = S.reshape(x, (*lead, m.ranks, m.rows))
    return S.reshape(S.slice_axis(apart, len(lead) + 1, b * size, (b + 1) * size), (*lead, m.ranks * size))


def _product(x: Node, part: Node, m: _Message, is_turned: bool) -> Node:
    """Return the product of `x` with the matrix of which this rank has `part`."""
    size, columns = m.rows // m.blocks, part.shape[1]
    done: list[Node] = []
    total: Node | None = None
    for b in range(m.blocks):
        block = _late(S.slice_axis(part, 0, b * size, (b + 1) * size), done)
        block = _done(block, m.before)
        block = all_gather(S.reshape(block, (1, size, columns)), mesh=m.mesh, axes=m.axes, axis=0)
        block = _done(S.reshape(block, (m.ranks * size, columns)), m.behind)
        if is_turned:
            done.append(matmul(x, S.transpose(block, (1, 0))))
        else:
            one = matmul(_columns(x, b, m), block)
            total = one if total is None else E.add(total, one)
            done.append(total)
    if total is not None:
        return total
    lead = x.shape[:-1]
    apart = S.concat([S.reshape(y, (*lead, m.ranks, size)) for y in done], len(lead) + 1)
    return S.reshape(apart, (*lead, m.ranks * m.rows))


def _gradient(left: Node, right: Node, m: _Message) -> Node:
    """Return this rank's part of the sum over ranks of a product."""
    size, columns = m.rows // m.blocks, right.shape[1]
    turned = left.inputs[0] if _is_turn(left) else None
    done: list[Node] = []
    for b in range(m.blocks):
        if turned is None:
            apart = S.reshape(left, (m.ranks, m.rows, left.shape[1]))
            rows = S.reshape(S.slice_axis(apart, 1, b * size, (b + 1) * size), (m.ranks * size, left.shape[1]))
            rows = _late(rows, done)
        else:
            rows = S.transpose(_late(_columns(turned, b, m), done), (1, 0))
        block = _done(matmul(rows, right), m.before)
        block = reduce_scatter(S.reshape(block, (m.ranks, size, columns)), mesh=m.mesh, axes=m.axes, axis=0, op="sum")
        done.append(S.reshape(block, (size, columns)))
    return S.concat(done, 0)
