"""In-register transposes of tiles, for loads that are contiguous along another loop than the lanes.

Where stores are contiguous along a nest's vector loop V, and a load along a loop T instead, T runs
in blocks of as many positions as there are lanes. For each block and each vector of V, the load's
tile, one row along T for each lane of V, is read by whole vectors, transposed (log2(lanes) steps of
shuffles) and kept on the stack, where the iterations of T inside the block find their vectors. So
no element is gathered, whatever else the kernel computes. Tiles that cross an edge are read under
masks.
"""

from __future__ import annotations

from mycel._src.engines.native.kernels.instruction_emitter import memory_type, suffix
from mycel._src.engines.native.kernels.loop_nest import Access
from mycel._src.engines.native.kernels.memory_access import MemoryWriter

__all__ = ["TileWriter"]


class TileWriter(MemoryWriter):
    """A writer of tiles, which lie on the stack."""

    def declare_tiles(self) -> None:
        """Reserve stack memory for the tile of each transposed load."""
        for access in self.accesses:
            if access in self.nest.turned:
                name = f"%tile{len(self.tiles)}"
                self.tiles[access] = name
                kind = self.raw_type(access)
                self.entry.append(f"  {name} = alloca [{self.lanes * self.lanes} x {kind}], align 64")

    def raw_type(self, access: Access) -> str:
        """Return the LLVM type in which an element is moved."""
        kind = memory_type(access.buffer.dtype)
        return "i16" if kind in ("half", "bfloat") else kind

    def fill_tiles(self, start: str, columns: str, rows: str | None) -> None:
        """Read the tiles at the current positions.

        They begin at `start` along T, under the mask `columns`, and have `rows` lanes (None: all).
        """
        e, lanes = self.e, self.lanes
        assert self.tile is not None
        for access, name in self.tiles.items():
            kind, size = self.raw_type(access), access.buffer.dtype.itemsize
            vector, mask = e.vector(kind), e.vector("i1")
            with self.scope(self.tile, start):
                pointer = self.address(access, 0)
            step = self.strides[self.access_index[access], self.vector_loop]
            values = []
            for lane in range(lanes):
                here = columns
                if lane:
                    pointer = e.put(f"getelementptr {kind}, ptr {pointer}, {self.ix} {step}")
                    if rows is not None:
                        there = e.splat(e.put(f"icmp sgt {self.ix} {rows}, {lane}"), "i1")
                        here = e.put(f"and {mask} {columns}, {there}")
                values.append(
                    e.intrinsic(
                        vector,
                        f"llvm.masked.load.{suffix(vector)}.p0",
                        ["ptr", "i32", mask, vector],
                        [pointer, str(size), here, "zeroinitializer"],
                    )
                )
            for k, value in enumerate(self.transposed(vector, values)):
                at = e.put(f"getelementptr {kind}, ptr {name}, {self.ix} {k * lanes}")
                e.do(f"store {vector} {value}, ptr {at}, align {min(64, size * lanes)}")

    def transposed(self, vector: str, values: list[str]) -> list[str]:
        """Return a tile transposed: lane j of result k is lane k of value j.

        Blocks of 1, 2, 4 ... lanes off the diagonal change places.
        """
        e, lanes = self.e, self.lanes
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

    def load_tile(self, access: Access) -> str:
        """Return the vector of V at the current position of T, in memory's type."""
        e = self.e
        assert self.tile is not None
        kind, size = self.raw_type(access), access.buffer.dtype.itemsize
        row = e.put(f"sub {self.ix} {self.position[self.tile]}, {self.tile_start}")
        row = e.put(f"mul {self.ix} {row}, {self.lanes}")
        at = e.put(f"getelementptr {kind}, ptr {self.tiles[access]}, {self.ix} {row}")
        return e.put(f"load {e.vector(kind)}, ptr {at}, align {min(64, size * self.lanes)}")
