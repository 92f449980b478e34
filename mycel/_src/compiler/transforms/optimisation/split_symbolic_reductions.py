"""Splits long reductions over symbolic sizes in two stages, as `split_reductions` does known sizes.

The outermost reduced axes make the parts where there are `LEAST` to `SHORT` of them and each is
long. Otherwise the outermost reduced axis, of size d, is cut into `PARTS` parts of (d - 1) // PARTS
elements and a tail of one to `PARTS`, which is reduced separately and combined at the end. The cut
is made below the element-wise work that only this reduction uses. The sizes of the call that is
compiled decide whether a reduction is long, and a guard records it, so that long and short
reductions each have suitable code. The parts depend on sizes alone, never on threads.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, use_counts
from mycel._src.compiler.transforms.optimisation.split_reductions import (
    COLUMNS,
    DEEP,
    FEW,
    LEAST,
    LENGTH,
    MANY,
    PARTS,
    SHORT,
    WORK,
)

__all__ = ["split_symbolic"]

_JOIN: dict[Primitive, Primitive] = {
    R.reduce_sum: E.add,
    R.reduce_max: E.maximum,
    R.reduce_min: E.minimum,
    R.reduce_prod: E.mul,
}


def split_symbolic(graph: Graph) -> Graph:
    """Return `graph` with each long reduction over symbolic sizes in two stages.

    Decisions with a hint for each symbol must be in force.
    """

    def start(inner: Graph) -> Visit:
        uses = use_counts(inner)
        single: set[Node] = set()

        def visit(old: Node, new: Node) -> Node:
            if uses[old] == 1:
                single.add(new)
            if new.prim not in _JOIN or not _is_long(new):
                return new
            with at(old.where):
                return _in_stages(new, single)

        return visit

    return rewrite(graph, start)


def _is_long(node: Node) -> bool:
    source = node.inputs[0].type
    if source.is_static:
        return False
    if node.dtype.itemsize <= 2 and not node.dtype.is_integer and node.prim not in (R.reduce_max, R.reduce_min):
        return False
    if not isinstance(node.type.size, int):
        # With a symbolic number of results there are as a rule many, each of them short.
        return False
    few, least = node.type.size, MANY
    if few >= FEW:
        axes = node.params["axes"]
        kept = [a for a in range(source.rank) if a not in axes]
        if few > COLUMNS or min(axes) > max(kept):
            return False
        least = max(MANY, DEEP * few)
    return bool(few) and source.size > least


def _in_stages(node: Node, single: set[Node]) -> Node:
    (x,) = node.inputs
    prim = node.prim
    assert prim is not None
    axes = sorted(node.params["axes"])
    sizes = [hint(x.shape[a]) for a in axes]
    for k in range(1, len(axes)):
        if LEAST <= prod(sizes[:k]) <= SHORT and prod(sizes[k:]) >= LENGTH:
            first = prim.node(x, axes=tuple(axes[k:]), keepdims=False)
            places = [a - sum(b < a for b in axes[k:]) for a in axes[:k]]
            return S.reshape(prim.node(first, axes=tuple(places), keepdims=False), node.shape)
    axis = max(axes, key=lambda a: (hint(x.shape[a]), -a))
    size = x.shape[axis]
    each = (size - 1) // PARTS
    if isinstance(size, Dim) and not isinstance(each, Dim):
        return node
    shape = (*x.shape[:axis], PARTS, each, *x.shape[axis + 1 :])
    parts = _moved(x, single, lambda v: S.reshape(S.slice_axis(v, axis, 0, each * PARTS), shape))
    tail = _moved(x, single, lambda v: S.slice_axis(v, axis, each * PARTS, size))
    later = [a + (a > axis) for a in axes if a != axis]
    first = prim.node(parts, axes=tuple(sorted([axis + 1, *later])), keepdims=False)
    place = axis - sum(a < axis for a in axes if a != axis)
    whole = prim.node(first, axes=(place,), keepdims=False)
    rest = prim.node(tail, axes=tuple(axes), keepdims=False)
    return S.reshape(_JOIN[prim].node(whole, rest), node.shape)


def _moved(x: Node, single: set[Node], view: Callable[[Node], Node]) -> Node:
    """Apply `view` below element-wise work on full tensors and scalars with no other user."""
    size, left = x.shape, WORK

    def moved(node: Node) -> Node:
        nonlocal left
        left -= 1
        works = left >= 0 and node in single and node.prim is not None and node.prim.elementwise
        if not works or any(i.shape not in ((), size) for i in node.inputs):
            return view(node)
        assert node.prim is not None
        with at(node.where):
            return node.prim.node(*[i if i.shape == () else moved(i) for i in node.inputs], **node.params)

    return moved(x)
