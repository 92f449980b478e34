"""Register tiles: the innermost loops of matrix products, in LLVM IR.

A tile is `height` rows by `vectors` vectors of the result, held in registers while the loop over
the common axis runs. Each of its steps reads `vectors` vectors of the right factor and one number
for each row of the left one, and does height * vectors multiply-adds: so few reads that the
arithmetic units are what limits it. Factors are read where they lie: `rows` and `columns` give the
left one's numbers, `panel` and `lines` the right one's vectors.

`accumulate` takes a pair of these and slots of the stack for the sums, which become registers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mycel._src.engines.native.llvm.function_builder import Code
from mycel._src.engines.native.llvm.target import target

__all__ = ["Tile", "accumulate", "columns", "lines", "panel", "rows", "tile_for"]

# Steps of the common axis in one round of the loop.
UNROLL = 4
# What a step gives: of the left factor the number for (step, row), of the right one the vector for
# (step, vector).
Numbers = Callable[[int, int], str]
# Where reading begins: at a position of the common axis.
Factor = Callable[[str], Numbers]


@dataclass(frozen=True)
class Tile:
    """A register tile: rows, vectors of a row, lanes of a vector, and LLVM's element type."""

    height: int
    vectors: int
    lanes: int
    element: str = "float"

    @property
    def width(self) -> int:
        """Columns of the tile."""
        return self.vectors * self.lanes

    @property
    def vector(self) -> str:
        """LLVM's type of one vector."""
        return f"<{self.lanes} x {self.element}>"

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return {"float": 4, "double": 8}[self.element]


def _shapes(registers: int) -> list[tuple[int, int]]:
    """Return the largest (height, vectors) that leave registers for the factors."""
    found = []
    for vectors in (4, 3, 2, 1):
        height = (registers - 1 - vectors) // vectors
        found.append((min(height, 12 if vectors == 1 else 8), vectors))
    return found


def tile_for(height: int | None, width: int | None, element: str = "float") -> Tile:
    """Return the tile for results of `height` rows and `width` columns; None: not known.

    It is the one whose multiply-adds and reads take the fewest cycles, counted with what the last
    tiles of rows and columns waste. `element` is LLVM's element type.
    """
    lanes = target().vector_bytes // (4 if element == "float" else 8)
    registers = 32 if target().vector_bytes == 64 or not target().is_family("x86") else 16
    best: tuple[float, Tile] | None = None
    for most, vectors in _shapes(registers):
        across = 1.0 if width is None else math.ceil(width / (vectors * lanes)) * vectors * lanes / width
        tall = most if height is None else math.ceil(height / math.ceil(height / most))
        down = 1.0 if height is None else math.ceil(height / tall) * tall / height
        # Two multiply-adds, or two reads, are done in a cycle; chains shorter than latency wait.
        cycles = max(tall * vectors, tall + vectors + 1, 8) / (tall * vectors)
        cost = across * down * cycles
        if best is None or cost < best[0] * 0.98:
            best = cost, Tile(tall, vectors, lanes, element)
    assert best is not None
    return best[1]


def accumulate(c: Code, tile: Tile, slots: Sequence[Sequence[str]], count: str, left: Factor, right: Factor) -> None:
    """Add the products of `count` steps of the common axis to the `slots`.

    `c` and `tile` are the code and shape; `left` and `right` read the factors.
    """
    bulk = c.op("and i64", count, str(-UNROLL))
    for start, end, steps in (("0", bulk, UNROLL), (bulk, count, 1)):
        with c.loop(start, end, steps) as k:
            number, vector = left(k), right(k)
            for u in range(steps):
                # Keeps reads of later steps from moving up, where they would take registers.
                c.do('call void asm sideeffect "", "~{memory}"()')
                factors = [vector(u, v) for v in range(tile.vectors)]
                for m in range(tile.height):
                    value = splat(c, tile, number(u, m))
                    for v, factor in enumerate(factors):
                        product = c.put(f"fmul contract {tile.vector} {value}, {factor}")
                        total = c.load(tile.vector, slots[m][v])
                        c.store(tile.vector, c.put(f"fadd contract {tile.vector} {total}, {product}"), slots[m][v])


def splat(c: Code, tile: Tile, value: str) -> str:
    """Return a vector of one number."""
    first = c.put(f"insertelement {tile.vector} poison, {tile.element} {value}, i32 0")
    zeros = f"<{tile.lanes} x i32> zeroinitializer"
    return c.put(f"shufflevector {tile.vector} {first}, {tile.vector} poison, {zeros}")


def rows(c: Code, tile: Tile, pointers: Sequence[str]) -> Factor:
    """Return the left factor whose rows begin at `pointers` and are contiguous."""

    def begin(k: str) -> Numbers:
        places = [c.at(tile.element, p, k) for p in pointers]
        return lambda u, m: c.load(tile.element, places[m], str(u))

    return begin


def columns(c: Code, tile: Tile, base: str, stride: str, places: Sequence[str]) -> Factor:
    """Return the left factor whose columns are contiguous, from `base` on, `stride` elements apart.

    `c` and `tile` are the code and shape; the tile's rows lie at `places` in a column.
    """

    def begin(k: str) -> Numbers:
        at = _each(c, tile, base, k, stride)
        return lambda u, m: c.load(tile.element, at(u), places[m])

    return begin


def panel(c: Code, tile: Tile, base: str) -> Factor:
    """Return the right factor as a packed panel, whose steps are as wide as the tile."""
    align = min(16, tile.lanes * tile.bytes)  # as memory is that callers of a library give

    def begin(k: str) -> Numbers:
        place = c.at(tile.element, base, c.op("mul i64", k, tile.width))
        return lambda u, v: c.load(tile.vector, place, str(u * tile.width + v * tile.lanes), tile.element, align)

    return begin


def lines(c: Code, tile: Tile, base: str, stride: str, masks: Sequence[str] = ()) -> Factor:
    """Return the right factor whose rows are contiguous, from `base` on, `stride` elements apart.

    `c` and `tile` are the code and shape; of each vector the lanes of `masks` exist (none: all).
    """

    def begin(k: str) -> Numbers:
        places = _each(c, tile, base, k, stride)

        def vector(u: int, v: int) -> str:
            place = c.at(tile.element, places(u), str(v * tile.lanes))
            if masks:
                return masked_load(c, tile, place, masks[v])
            return c.load(tile.vector, place, align=tile.bytes)

        return vector

    return begin


def _each(c: Code, tile: Tile, base: str, k: str, stride: str) -> Callable[[int], str]:
    """Return a function that gives the address of step k + u, each made once."""
    known: dict[int, str] = {}

    def place(u: int) -> str:
        if u not in known:
            if u == 0:
                known[u] = c.at(tile.element, base, c.op("mul i64", k, stride))
            else:
                known[u] = c.at(tile.element, place(u - 1), stride)
        return known[u]

    return place


def masked_load(c: Code, tile: Tile, place: str, mask: str) -> str:
    """Return the elements at `place` whose lanes are in the `mask`, else zeros.

    `c` and `tile` are the code and shape.
    """
    kind = f"v{tile.lanes}f{tile.bytes * 8}"
    return c.put(
        f"call {tile.vector} @llvm.masked.load.{kind}.p0(ptr {place}, i32 {tile.bytes}, <{tile.lanes} x i1> {mask}, "
        f"{tile.vector} zeroinitializer)"
    )


def masked_store(c: Code, tile: Tile, value: str, place: str, mask: str) -> None:
    """Write the lanes of the vector `value` that are in the `mask` to `place`.

    `c` and `tile` are the code and shape.
    """
    kind = f"v{tile.lanes}f{tile.bytes * 8}"
    c.do(
        f"call void @llvm.masked.store.{kind}.p0({tile.vector} {value}, ptr {place}, i32 {tile.bytes}, "
        f"<{tile.lanes} x i1> {mask})"
    )


def lanes_below(c: Code, tile: Tile, count: str, v: int) -> str:
    """Return the mask of the lanes of vector `v` of a tile whose columns are below `count`.

    `c` and `tile` are the code and shape.
    """
    kind = f"<{tile.lanes} x i64>"
    numbers = ", ".join(f"i64 {v * tile.lanes + k}" for k in range(tile.lanes))
    first = c.put(f"insertelement {kind} poison, i64 {count}, i32 0")
    limit = c.put(f"shufflevector {kind} {first}, {kind} poison, <{tile.lanes} x i32> zeroinitializer")
    return c.put(f"icmp slt {kind} <{numbers}>, {limit}")


def declarations(tile: Tile) -> str:
    """Return the declarations and attributes that code of tiles needs."""
    kind, mask, bits = f"v{tile.lanes}f{tile.bytes * 8}", f"<{tile.lanes} x i1>", tile.lanes * tile.bytes * 8
    return (
        f"declare {tile.vector} @llvm.masked.load.{kind}.p0(ptr, i32, {mask}, {tile.vector})\n"
        f"declare void @llvm.masked.store.{kind}.p0({tile.vector}, ptr, i32, {mask})\n"
        f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}\n'
    )
