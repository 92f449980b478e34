"""The common base of NHWC kernel writers (`channels_last_kernel`, `depthwise_channels_last_*`).

A nest's last loop is that of channels, the one before it that of the positions of a line. Sums of
a tile, positions by vectors of channels, are in registers; what the nest stores is computed from
them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.engines.native.kernels.codegen import NestWriter
from mycel._src.engines.native.kernels.instruction_emitter import Emitter
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Nest

__all__ = ["SumWriter"]


class SumWriter(NestWriter):
    """A writer of tiles of sums; `lanes` elements of a `vector` are channels."""

    def __init__(self, nest: Nest, element: str, lanes: int = 0) -> None:
        super().__init__(nest)
        if lanes:
            self.lanes, self.e = lanes, Emitter(lanes)
        self.line = self.vector_loop - 1
        # Channels are a loop outside of a tile's positions.
        self.code = [k for k in self.code if k != self.line] + [self.line]
        self.depth_of = {k: i + 1 for i, k in enumerate(self.code)}
        self.last_masked = False
        self.vector = f"<{self.lanes} x {element}>"

    def whole_mask(self, access: Access, copy: int, valid: str | None, valid_wide: bool) -> str | None:
        """Return the mask of a vector that `access` reads: only the last `copy` is cut by the end.

        `valid` and `valid_wide` are as for the writer of any nest.
        """
        if not self.last_masked or copy == self.copies - 1:
            return super().whole_mask(access, copy, valid, valid_wide)
        mask, self.mask = self.mask, None
        try:
            return super().whole_mask(access, copy, valid, valid_wide)
        finally:
            self.mask = mask

    def amount(self, size: DimLike) -> str:
        """Return a size as a literal where it is known, else as a word."""
        return str(size) if type(size) is int else self.word("int", size)

    @contextmanager
    def opened(self, outer: list[int], number: str, count: str) -> Iterator[str]:
        """Open the outer loops at the position of tile `number`; yield the tile in its line.

        A line has `count` tiles.
        """
        e = self.e
        if not outer:
            yield number
            return
        block, rest = e.put(f"urem {self.ix} {number}, {count}"), e.put(f"udiv {self.ix} {number}, {count}")
        found = {}
        for n, k in enumerate(reversed(outer)):
            size = self.amount(self.nest.loops[k].extent)
            found[k] = rest if n == len(outer) - 1 else e.put(f"urem {self.ix} {rest}, {size}")
            rest = e.put(f"udiv {self.ix} {rest}, {size}") if n < len(outer) - 1 else rest
        with self.scopes_of([(k, found[k]) for k in outer]):
            yield block

    @contextmanager
    def scopes_of(self, loops: list[tuple[int, str]]) -> Iterator[None]:
        if not loops:
            yield
            return
        with self.scope(*loops[0]):
            self.enter(self.depth_of[loops[0][0]])
            with self.scopes_of(loops[1:]):
                yield

    def mask_last(self, lanes: int) -> None:
        """Mask the last vector of channels to so many lanes, 0 for all."""
        self.mask, self.last_masked, self.left = None, bool(lanes), str(lanes)
        if lanes:
            self.mask = "<" + ", ".join(f"i1 {'true' if k < lanes else 'false'}" for k in range(self.lanes)) + ">"

    def byte(self, base: str, offset: str) -> str:
        return base if offset == "0" else self.e.put(f"getelementptr i8, ptr {base}, {self.ix} {offset}")

    def finish_tile(self, channel: str, places: list[str], sums: list[list[str]]) -> None:
        """Write what the nest stores, of the `sums` at each of `places` from `channel` on."""
        (r,) = self.nest.reduces
        with self.scope(self.vector_loop, channel):
            self.enter(self.depth_of[self.vector_loop])
            for place, found in zip(places, sums):
                self.accumulators[r, "result"] = found
                with self.scope(self.line, place):
                    for s in self.nest.stores:
                        self.store(s)

    def slot(self, kind: str, value: str) -> str:
        name = f"%sum{self.fresh('')}"
        self.entry.append(f"  {name} = alloca {kind}")
        self.e.do(f"store {kind} {value}, ptr {name}")
        return name

    def offset_at(self, position: Affine, place: str) -> str:
        """Return an affine number at a position of the line."""
        with self.scope(self.line, place):
            return self.place(position, 0, int(self.ix[1:]), False)
