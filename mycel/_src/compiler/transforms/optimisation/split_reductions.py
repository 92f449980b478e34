"""Splits long reductions to few elements into two stages, so that threads can share the work.

The outermost reduced axes make the parts, each of which is reduced separately; a second, short
reduction combines their results. Where whole axes do not give `LEAST` to `SHORT` parts, or leave
each fewer than `LENGTH` elements, one axis of size d is cut into (g, d / g), so that there are
about `parts`. The cut is made below the element-wise work that only this reduction uses, which
stays next to it. The parts, and so the rounding of the result, depend on the shape alone, never on
the number of threads. Columns of many rows are cut into parts of about `PART` elements, which stay
in a cache while one group of columns after another is reduced.

`simplify` joins the stages again and the same choice is made anew, so that optimizing an optimized
graph gives the same stages. A reduction whose only users reduce further in the same way is a first
stage and stays.
"""

from __future__ import annotations

from math import prod

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, use_counts

__all__ = ["FEW", "LEAST", "LENGTH", "MANY", "PARTS", "SHORT", "split_reductions"]

PARTS = 32
LEAST = 8
LENGTH = 64
SHORT = 4096
WORK = 64
FEW = 64
MANY = 65536
COLUMNS = 4096
DEEP = 1024
PART = 32768
_SPLIT = frozenset({R.reduce_sum, R.reduce_max, R.reduce_min, R.reduce_prod})


def split_reductions(graph: Graph, parts: int = PARTS) -> Graph:
    """Return `graph` with long reductions to few elements in two stages.

    These reduce more than `MANY` elements to fewer than `FEW`, in about `parts` parts.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((64, 2000), float32), "x")
    >>> split = split_reductions(Graph([x], [R.reduce_sum(x, axes=(0, 1), keepdims=False)]))
    >>> [n.type.shape for n in split.nodes]
    [(64,), ()]
    """

    def start(inner: Graph) -> Visit:
        later = _later_users(inner)
        uses = use_counts(inner)
        single: set[Node] = set()

        def visit(old: Node, new: Node) -> Node:
            if uses[old] == 1:
                single.add(new)
            if new.prim not in _SPLIT or not _is_long(new) or later.get(old) == {new.prim}:
                return new
            with at(old.where):
                return _in_stages(new, parts, single) or new

        return visit

    return rewrite(graph, start)


def _later_users(graph: Graph) -> dict[Node, set[Primitive | None]]:
    """Return the primitives that use each reduction; None is among them for an output."""
    users: dict[Node, set[Primitive | None]] = {}
    for node in graph.nodes:
        for i in node.inputs:
            if i.prim in _SPLIT:
                users.setdefault(i, set()).add(node.prim)
    for o in graph.outputs:
        users.setdefault(o, set()).add(None)
    return users


def _is_long(node: Node) -> bool:
    source: TensorType = node.inputs[0].type
    if not source.is_static or source.size <= MANY or not node.type.size:
        return False
    if node.type.size >= FEW:
        # Columns: few results beside each other in memory, each from many rows. Results that lie
        # apart are rows to share already.
        axes = node.params["axes"]
        kept = [a for a in range(source.rank) if a not in axes]
        if node.type.size > COLUMNS or source.size < DEEP * node.type.size or min(axes) > max(kept):
            return False
    # A 16-bit sum rounds once, at the end; its parts would round as well.
    return node.dtype.itemsize > 2 or node.dtype.is_integer or node.prim in (R.reduce_max, R.reduce_min)


def _in_stages(node: Node, parts: int, single: set[Node]) -> Node | None:
    """Return a reduction in two stages; None where the sizes do not divide into parts."""
    (x,) = node.inputs
    prim = node.prim
    assert prim is not None
    axes = sorted(node.params["axes"])
    least = LEAST
    if node.type.size >= FEW:
        least = min(max(LEAST, x.type.size // PART), SHORT)
    outer, cut = _choose([x.shape[a] for a in axes], max(parts, least), least)
    if not outer and cut is None:
        return None
    first = axes[len(outer) :]
    last = axes[: len(outer)]
    if cut is not None:
        at_axis = axes[len(outer)]
        x = _reshaped(x, x.shape[:at_axis] + (cut, x.shape[at_axis] // cut) + x.shape[at_axis + 1 :], single)
        first = [a + 1 for a in first]
        last = [*last, at_axis]
    stage = prim.node(x, axes=tuple(first), keepdims=False)
    places = [a - sum(b < a for b in first) for a in last]
    return S.reshape(prim.node(stage, axes=tuple(places), keepdims=False), node.shape)


def _reshaped(x: Node, shape: tuple[DimLike, ...], single: set[Node]) -> Node:
    """Return `x` in another shape, reshaped below element-wise work where that has no other user.

    This holds for work on full tensors and scalars.
    """
    size, left = x.shape, WORK

    def moved(node: Node) -> Node:
        nonlocal left
        left -= 1
        works = left >= 0 and node in single and node.prim is not None and node.prim.elementwise
        if not works or any(i.shape not in ((), size) for i in node.inputs):
            return S.reshape(node, shape)
        assert node.prim is not None
        with at(node.where):
            return node.prim.node(*[i if i.shape == () else moved(i) for i in node.inputs], **node.params)

    return moved(x)


def _choose(sizes: list[int], parts: int, least: int) -> tuple[list[int], int | None]:
    """Return the sizes of the outermost axes that are parts as a whole, and a number of parts.

    The next axis is cut into that number of parts; None leaves it whole.
    """
    outer: list[int] = []
    total = 1
    for k, d in enumerate(sizes):
        if total >= least:
            return outer, None
        if total * d <= 2 * parts or (total * d <= SHORT and prod(sizes[k + 1 :]) >= LENGTH):
            outer.append(d)
            total *= d
            continue
        cut = _divisor(d, total, parts, least)
        return (outer, cut) if cut is not None else ([], None)
    return [], None


def _divisor(d: int, total: int, parts: int, least: int) -> int | None:
    """Return the divisor g of d for which ``total * g`` is nearest to `parts`.

    It is neither 1 nor d, and the larger of two that are equally near; None where there is none.
    """
    found = [g for g in range(2, min(d - 1, 2 * parts // total) + 1) if d % g == 0 and total * g >= min(least, LEAST)]
    return min(found, key=lambda g: (abs(total * g - parts), -g), default=None)
