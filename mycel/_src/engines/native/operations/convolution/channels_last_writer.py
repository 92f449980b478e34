"""What NHWC kernels have in common (`channels_last_kernel`, `depthwise_channels_last_*`).

A nest's last loop is that of channels, the one before it that of the positions of a line. Sums of
a tile, positions by vectors of channels, are in registers; what the nest stores is computed from
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from mycel._src.compiler.ir.dims import DimLike, product
from mycel._src.engines.native.kernels.codegen import NAME, Kernel
from mycel._src.engines.native.kernels.kernel_writer import KernelWriter
from mycel._src.engines.native.kernels.loop_nest import Affine, Nest

__all__ = ["SumWriter"]


class SumWriter:
    """A writer of tiles of sums; `lanes` elements of a `vector` are channels.

    `outer` are the loops around a line, and `line` is that of its positions. `parts` write what
    the nest stores.
    """

    def __init__(self, nest: Nest, element: str, lanes: int = 0) -> None:
        self.nest, self.line = nest, len(nest.loops) - 2
        # Channels are a loop outside of a tile's positions.
        self.parts = KernelWriter(nest, lanes, innermost=self.line)
        self.function, self.loops, self.values = self.parts.function, self.parts.loops, self.parts.values
        self.e, self.ix, self.lanes = self.function.e, self.function.ix, self.parts.form.lanes
        self.outer = self.parts.form.rows[:-1]
        self.vector = f"<{self.lanes} x {element}>"

    def kernel(self, work: DimLike, schedule: str, tiles: DimLike = 1) -> Kernel:
        """Return the kernel whose text is complete; threads share the `tiles` of all lines."""
        self.e.do("ret void")
        extent = product([self.nest.loops[k].extent for k in self.outer]) * tiles
        return Kernel(self.function.text(NAME), self.function.words, extent, work, schedule)

    def amount(self, size: DimLike) -> str:
        """Return a size as a literal where it is known, else as a word."""
        return str(size) if type(size) is int else self.function.word("int", size)

    @contextmanager
    def opened(self, number: str, count: str) -> Iterator[str]:
        """Open the outer loops at the position of tile `number`; yield the tile in its line.

        A line has `count` tiles.
        """
        e, outer = self.e, self.outer
        if not outer:
            yield number
            return
        block, rest = e.put(f"urem {self.ix} {number}, {count}"), e.put(f"udiv {self.ix} {number}, {count}")
        found = {}
        for n, k in enumerate(reversed(outer)):
            size = self.amount(self.nest.loops[k].extent)
            found[k] = rest if n == len(outer) - 1 else e.put(f"urem {self.ix} {rest}, {size}")
            rest = e.put(f"udiv {self.ix} {rest}, {size}") if n < len(outer) - 1 else rest
        with ExitStack() as scopes:
            for k in outer:
                scopes.enter_context(self.loops.scope(k, found[k]))
                self._enter(k)
            yield block

    def _enter(self, loop: int) -> None:
        """Compute what the stores need and the loops up to `loop` allow."""
        stored = [s.value for s in self.nest.stores]
        self.values.hoist(stored, self.parts.form.depth_of[loop], len(self.nest.reduces) + 1)

    def mask_last(self, lanes: int) -> None:
        """Mask the last vector of channels to so many lanes, 0 for all."""
        loops = self.loops
        loops.mask, loops.last_masked, loops.left = None, bool(lanes), str(lanes)
        if lanes:
            loops.mask = "<" + ", ".join(f"i1 {'true' if k < lanes else 'false'}" for k in range(self.lanes)) + ">"

    def byte(self, base: str, offset: str) -> str:
        """Return the address `offset` bytes behind another."""
        return base if offset == "0" else self.e.put(f"getelementptr i8, ptr {base}, {self.ix} {offset}")

    def finish_tile(
        self, channel: str, places: list[str], sums: list[list[str]], finish: Callable[[], None] | None = None
    ) -> None:
        """Write what the nest stores, of the `sums` at each of `places` from `channel` on.

        At each of them `finish` writes it, if that is given.
        """
        (r,) = self.nest.reduces
        channels = self.parts.form.vector_loop
        with self.loops.scope(channels, channel):
            self._enter(channels)
            for place, found in zip(places, sums):
                self.values.results[r] = found
                with self.loops.scope(self.line, place):
                    if finish is not None:
                        finish()
                        continue
                    for s in self.nest.stores:
                        self.values.store(s)

    def slot(self, value: str) -> str:
        """Return a place on the stack that has a vector's value."""
        name = f"%sum{self.function.fresh('')}"
        self.function.entry.append(f"  {name} = alloca {self.vector}")
        self.e.do(f"store {self.vector} {value}, ptr {name}")
        return name

    def offset_at(self, position: Affine, place: str) -> str:
        """Return an affine number at a position of the line."""
        with self.loops.scope(self.line, place):
            return self.loops.place(position, 0, self.function.bits, False)
