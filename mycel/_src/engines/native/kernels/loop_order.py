"""The order of a nest's loops: outer loops, merged loops, and the loop of vector lanes.

Loops are sorted by the strides of a reference value, the largest stride outermost. Two neighbours
of one kind become one loop when every position in the nest moves along them as along one longer
loop, for all sizes. The last loop is the vector loop: the one of the smallest stride, unless it
reduces and is short while a parallel one is long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mycel._src.compiler.ir.dim_values import hint, settled_below
from mycel._src.compiler.ir.dims import DimLike, is_one, same
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Builder, Expr, Loop, Nest, Reduce, Store
from mycel._src.engines.native.kernels.loop_schedule import better_lanes, is_transposed, tile_of, transposable

__all__ = ["arrange", "merges", "positions_of", "rewritten"]

SHORT = 8


def arrange(nest: Nest, like: Sequence[DimLike]) -> Nest:
    """Return the nest with its loops ordered by the strides `like` and merged.

    Loops of one iteration are removed.
    """
    steps = [hint(s) for s in like]
    order = sorted(range(len(nest.loops)), key=lambda k: (-steps[k] if steps[k] else -(1 << 60), k))
    order = [k for k in order if not is_one(nest.loops[k].extent)]
    parallel = [k for k in order if nest.loops[k].kind == "p"]
    inner = [k for k in order if nest.loops[k].kind != "p"]
    free = [k for k in inner if nest.loops[k].kind in _carrying(nest) and not nest.loops[k].unroll]
    positions = list(positions_of(nest))
    vector = None
    if free and (not parallel or order.index(free[-1]) > order.index(parallel[-1])):
        vector = free[-1]
        if parallel:
            length = _merged_extent(nest, positions, inner[: inner.index(vector) + 1])
            vector = None if _is_short(length, _merged_extent(nest, positions, parallel)) else vector
    if vector is None and parallel:
        extents = [nest.loops[k].extent for k in parallel]
        if len(parallel) > 1 and better_lanes(extents, [p.coefficient(parallel[-2]) for p in positions]):
            parallel[-2:] = parallel[:-3:-1]
        vector = parallel[-1]
    scalar = nest.scalar
    loops: list[Loop] = []
    mapping: dict[int, int] = {}

    def place(sequence: list[int]) -> None:
        last = None
        for k in sequence:
            loop = nest.loops[k]
            if (
                last is not None
                and not loop.unroll
                and not nest.loops[last].unroll
                and merges(positions, last, k, loop.extent)
            ):
                merged = loops[mapping[last]]
                loops[mapping[last]] = Loop(merged.extent * loop.extent, merged.kind)
                mapping[k] = mapping[last]
                dropped.add(last)
            else:
                mapping[k] = len(loops)
                loops.append(Loop(loop.extent, loop.kind, loop.unroll))
            last = k

    dropped: set[int] = set()
    if vector is not None and nest.loops[vector].kind == "p":
        place([k for k in inner])
        count = len(loops)
        place(parallel)
        ordered = list(range(count, len(loops) - 1)) + list(range(count)) + [len(loops) - 1]
    else:
        place(parallel)
        place([k for k in inner if k != vector] + ([vector] if vector is not None else []))
        ordered = list(range(len(loops)))
        if vector is None and loops:
            scalar = True
    if not loops:
        loops, ordered = [Loop(1, "p")], [0]
    renumber = {old: new for new, old in enumerate(ordered)}
    final = {k: renumber[m] for k, m in mapping.items() if k not in dropped}

    def move(place: Affine) -> Affine:
        return Affine(
            tuple(sorted(((final[k], c) for k, c in place.terms if k in final), key=lambda t: t[0])), place.const
        )

    made = rewritten(nest, move, any(loop.kind in _carrying(nest) for loop in loops))
    made.loops = [loops[k] for k in ordered]
    made.scalar = scalar
    return _tiled(made)


def _is_short(length: DimLike, width: DimLike) -> bool:
    """Return whether sums of `length` are so short that their number, `width`, is the lanes.

    The order of the sums depends on it. What is known is asked first, as the rest makes guards.
    """
    if isinstance(width, int):
        return width >= SHORT and settled_below(length, SHORT)
    return settled_below(length, SHORT) and not settled_below(width, SHORT)


def _merged_extent(nest: Nest, positions: Sequence[Affine], loops: Sequence[int]) -> DimLike:
    """Return the extent of the last of these loops with those before it that it merges with."""
    extent: DimLike = 1
    for k, outer in zip(reversed(loops), [*reversed(loops[:-1]), None]):
        extent = nest.loops[k].extent * extent
        if outer is None or nest.loops[outer].unroll or not merges(positions, outer, k, nest.loops[k].extent):
            break
    return extent


def _tiled(nest: Nest) -> Nest:
    """Return the nest with the tiled loop before the last.

    It is the loop along which most of the transposed loads are contiguous; without such loads the
    nest stays as it is.
    """
    tile = tile_of(nest, loads_of(nest))
    if tile is None:
        return nest
    last = len(nest.loops) - 1
    order = [k for k in range(last) if k != tile] + [tile, last]
    final = {k: n for n, k in enumerate(order)}

    def move(place: Affine) -> Affine:
        return Affine(tuple(sorted(((final[k], c) for k, c in place.terms), key=lambda t: t[0])), place.const)

    made = rewritten(nest, move, False)
    made.loops = [nest.loops[k] for k in order]
    made.tile = last - 1
    made.turned = frozenset(a for a in transposable(made, loads_of(made)) if is_transposed(a, last - 1, last))
    return made


def loads_of(nest: Nest) -> list[Access]:
    """Return the accesses that a nest reads, each once."""
    found: dict[Access, None] = {}
    seen: set[int] = set()
    stack = [r.value for r in nest.reduces] + [s.value for s in nest.stores]
    stack.extend(x for s in nest.stores for x, *_ in s.target.dynamic)
    while stack:
        x = stack.pop()
        if id(x) not in seen:
            seen.add(id(x))
            stack.extend(x.args)
            if x.kind == "load":
                found[x.data[0]] = None
    return list(found)


def _carrying(nest: Nest) -> str:
    """Return the kinds of the loops over which a nest's reductions run."""
    return "rs" if any(r.scan for r in nest.reduces) else "r"


def merges(positions: Sequence[Affine], outer: int, inner: int, extent: DimLike) -> bool:
    """Return whether two loops can be one: `outer` steps over `extent` of `inner` everywhere.

    `positions` are all that are read or written.
    """
    return all(same(p.coefficient(outer), p.coefficient(inner) * extent) for p in positions)


def positions_of(nest: Nest) -> Iterator[Affine]:
    seen: set[int] = set()
    stack = [r.value for r in nest.reduces] + [s.value for s in nest.stores]
    for r in nest.reduces:
        if r.position is not None:
            yield r.position
        if r.valid is not None:
            stack.append(r.valid)
    for s in nest.stores:
        yield s.target.offset
        yield from (g for g, _ in s.target.guards)
        stack.extend(x for x, *_ in s.target.dynamic)
    while stack:
        x = stack.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        stack.extend(x.args)
        if x.kind == "load":
            yield x.data[0].offset
            yield from (g for g, _ in x.data[0].guards)
        elif x.kind == "index":
            yield x.data
        elif x.kind == "guard":
            yield from (g for g, _ in x.data)


def rewritten(nest: Nest, move: Callable[[Affine], Affine], reducing: bool) -> Nest:
    """Return a copy of a nest with every position replaced by `move`.

    Unless `reducing`, no loop reduces and each reduction becomes its single value.
    """
    builder = Builder()
    image: dict[int, Expr] = {}
    reduces: dict[int, Reduce] = {}

    def access(a: Access) -> Access:
        return Access(
            a.buffer,
            move(a.offset),
            tuple((move(g), n) for g, n in a.guards),
            tuple((walk(x), s, n, site) for x, s, n, site in a.dynamic),
        )

    def reduce(r: Reduce) -> Reduce:
        if id(r) not in reduces:
            position = None if r.position is None else move(r.position)
            made = builder.reduce(r.kind, walk(r.value), r.result.dtype, position, r.scan)
            made.valid = None if r.valid is None else walk(r.valid)
            reduces[id(r)] = made
        return reduces[id(r)]

    def walk(x: Expr) -> Expr:
        found = image.get(id(x))
        if found is not None:
            return found
        if x.kind == "load":
            made = builder.load(access(x.data[0]), x.data[1])
        elif x.kind == "index":
            made = builder.index(move(x.data), x.dtype)
        elif x.kind == "guard":
            made = builder.guard(((move(g), n) for g, n in x.data), x.dtype)
        elif x.kind in ("reduced", "scanned") and not reducing:
            made = walk(x.data.value) if x.data.position is None else builder.index(move(x.data.position), x.dtype)
        elif x.kind in ("reduced", "scanned"):
            made = reduce(x.data).result
        elif x.kind == "const":
            made = builder.const(x.data[0], x.dtype)
        elif x.kind == "check":
            made = builder.check(walk(x.args[0]), x.data)
        else:
            made = builder.op(x.data, x.dtype, *[walk(a) for a in x.args])
        image[id(x)] = made
        return made

    stores = [Store(access(s.target), walk(s.value), s.full, s.mode) for s in nest.stores]
    return Nest(nest.loops, [reduce(r) for r in nest.reduces] if reducing else [], stores, nest.name, nest.scalar)
