"""In-register transposes of tiles, for loads that are contiguous along another loop than the lanes.

Where stores are contiguous along a nest's vector loop V, and a load along a loop T instead, T runs
in blocks of as many positions as there are lanes. For each block and each vector of V, the load's
tile, one row along T for each lane of V, is read by whole vectors, transposed (log2(lanes) steps of
shuffles) and kept on the stack, where the iterations of T inside the block find their vectors. So
no element is gathered, whatever else the kernel computes. Tiles that cross an edge are read under
masks.
"""

from __future__ import annotations

from collections.abc import Iterable

from mycel._src.engines.native.kernels.instruction_emitter import memory_type, suffix
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Access
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.foundation.dtype import DType

__all__ = ["TileWriter", "raw_type"]


def raw_type(dtype: DType) -> str:
    """Return the LLVM type in which an element is moved."""
    kind = memory_type(dtype)
    return "i16" if kind in ("half", "bfloat") else kind


class TileWriter:
    """A writer of tiles, which lie on the stack of the `function`, inside of `loops`.

    `names` has the tile of each transposed load.
    """

    def __init__(self, function: KernelFunction, loops: OpenLoops) -> None:
        self.names: dict[Access, str] = {}
        self._function, self._loops = function, loops
        self._e, self._ix, self._lanes = function.e, function.ix, function.lanes
        self._start = ""

    def declare(self, accesses: Iterable[Access]) -> None:
        """Reserve stack memory for the tile of each of the `accesses`, transposed loads."""
        for access in accesses:
            name = f"%tile{len(self.names)}"
            self.names[access] = name
            size = f"[{self._lanes * self._lanes} x {raw_type(access.buffer.dtype)}]"
            self._function.entry.append(f"  {name} = alloca {size}, align 64")

    def fill(self, start: str, columns: str, rows: str | None) -> None:
        """Read the tiles at the current positions.

        They begin at `start` along T, under the mask `columns`, and have `rows` lanes (None: all).
        """
        e, lanes = self._e, self._lanes
        loops, tile = self._loops, self._loops.form.tile
        assert tile is not None
        self._start = start
        for access, name in self.names.items():
            kind, size = raw_type(access.buffer.dtype), access.buffer.dtype.itemsize
            vector, mask = e.vector(kind), e.vector("i1")
            with loops.scope(tile, start):
                pointer = loops.address(access, 0)
            step = loops.lane_stride(access)
            values = []
            for lane in range(lanes):
                here = columns
                if lane:
                    pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self._ix} {step}")
                    if rows is not None:
                        there = e.splat(e.put(f"icmp sgt {self._ix} {rows}, {lane}"), "i1")
                        here = e.put(f"and {mask} {columns}, {there}")
                values.append(
                    e.intrinsic(
                        vector,
                        f"llvm.masked.load.{suffix(vector)}.p0",
                        ["ptr", "i32", mask, vector],
                        [pointer, str(size), here, "zeroinitializer"],
                    )
                )
            for k, value in enumerate(self._transposed(vector, values)):
                at = e.put(f"getelementptr {kind}, ptr {name}, {self._ix} {k * lanes}")
                e.do(f"store {vector} {value}, ptr {at}, align {min(64, size * lanes)}")

    def _transposed(self, vector: str, values: list[str]) -> list[str]:
        """Return a tile transposed: lane j of result k is lane k of value j.

        Blocks of 1, 2, 4 ... lanes off the diagonal change places.
        """
        e, lanes = self._e, self._lanes
        half = 1
        while half < lanes:
            low = ", ".join(f"i32 {k + lanes - half if k & half else k}" for k in range(lanes))
            high = ", ".join(f"i32 {k + lanes if k & half else k + half}" for k in range(lanes))
            turned = list(values)
            for k in range(lanes):
                if not k & half:
                    pair = f"{vector} {values[k]}, {vector} {values[k + half]}"
                    turned[k] = e.put(f"shufflevector {pair}, <{lanes} x i32> <{low}>")
                    turned[k + half] = e.put(f"shufflevector {pair}, <{lanes} x i32> <{high}>")
            values = turned
            half *= 2
        return values

    def load(self, access: Access) -> str:
        """Return the vector of V at the current position of T, in memory's type."""
        e, tile = self._e, self._loops.form.tile
        assert tile is not None
        kind, size = raw_type(access.buffer.dtype), access.buffer.dtype.itemsize
        row = e.put(f"sub {self._ix} {self._loops.position[tile]}, {self._start}")
        row = e.put(f"mul {self._ix} {row}, {self._lanes}")
        at = e.put(f"getelementptr {kind}, ptr {self.names[access]}, {self._ix} {row}")
        return e.put(f"load {e.vector(kind)}, ptr {at}, align {min(64, size * self._lanes)}")
