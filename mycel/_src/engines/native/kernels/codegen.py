"""Code generation: from a loop nest to a native kernel ``void f(words, begin, end)``.

The iterations of the last loop are the lanes of vectors. Where that loop is parallel, reductions
run inside it with a vector of accumulators; where it reduces, the lanes of an accumulator are
combined at the end of each row. Iterations that do not fill a vector run under a mask. The outer
parallel loops are one range that threads split; without any, the vector loop itself is.

Code does not depend on sizes: extents, strides, offsets and addresses are read from the argument
words, so that one kernel serves every shape of the same structure. `Kernel.words` lists the words
that a caller provides: ('pointer', buffer), ('int', value), or ('site', site), the address of a
site's record. Kernels with very long rows also have ('status', 0) and ('listen', 0): the address of
the program's status, and the function that says whether the run is to end. Values that do not
depend on an inner loop are computed outside it.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.loops.operation_counts import Count
from mycel._src.engines.native.kernels.deduplication import digest_of
from mycel._src.engines.native.kernels.kernel_function import Word
from mycel._src.engines.native.kernels.kernel_text import Text, packed
from mycel._src.engines.native.kernels.kernel_writer import KernelWriter
from mycel._src.engines.native.kernels.loop_nest import Expr, Nest, Reduce, Store
from mycel._src.engines.native.kernels.loop_schedule import column_work, copies, describe, grain
from mycel._src.engines.native.kernels.loop_splitting import LoopSplitter
from mycel._src.engines.native.kernels.reductions import ReductionWriter
from mycel._src.engines.native.kernels.scans import ScanWriter
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.spans import timed

__all__ = ["Kernel", "NestWriter", "generate", "grain"]

NAME = "mycel_kernel"
OBJECTS = ("pointer", "site")
# The address of the first element of a view: in programs without a runtime only.
PLACE = "place"


@dataclass
class Kernel:
    """The text of a module and facts about its kernel.

    `source` is the text, which is packed. The facts are its argument words, the size of the range
    that threads divide, the work of the whole range, and a description of its loops. Of a statement
    of a user's operator they are also its loops as lines of text, and how often each of its
    operations runs.
    """

    source: str | Text
    words: list[Word]
    extent: DimLike
    work: DimLike
    schedule: str = ""
    listing: tuple[str, ...] = ()
    counts: tuple[Count, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.source, str):
            self.source = packed(self.source)

    @property
    def text(self) -> str:
        """The text of the module."""
        return str(self.source)

    @property
    def digest(self) -> bytes:
        """The hash that identifies the text."""
        assert isinstance(self.source, Text)
        return self.source.digest


@timed("code generation", lambda nest: nest.name)
def generate(nest: Nest) -> Kernel:
    """Return the kernel of a nest.

    Where an earlier nest differs in its buffers only, its kernel is used with the buffers replaced.
    """
    key, buffers = digest_of(nest, target().identity)
    if key is None:
        return NestWriter(nest).run()
    found = _written.get(key)
    if found is None:
        made = NestWriter(nest).run()
        numbers = {id(b): k for k, b in enumerate(buffers)}
        words = [(kind, numbers[id(value)] if kind in OBJECTS else value) for kind, value in made.words]
        _written.enter(key, replace(made, words=words))
        return made
    words = [(kind, buffers[value] if kind in OBJECTS else value) for kind, value in found.words]
    return replace(found, words=words)


# Kernels with the numbers of buffers in place of buffers, by what their nests are.
_written = Remembered[bytes, Kernel]("kernels", MANY)


class NestWriter:
    """A writer of a kernel's loops, from the range that threads divide to the statements.

    What is inside of them is written by the parts of a `KernelWriter`.
    """

    def __init__(self, nest: Nest) -> None:
        parts = KernelWriter(nest)
        self.form, self.facts, self.function, self.loops = parts.form, parts.facts, parts.function, parts.loops
        self.values, self.tiles = parts.values, parts.tiles
        self.e, self.ix = self.function.e, self.function.ix
        looped = any(not nest.loops[k].unroll for k in self.form.inner)
        self.copies = copies(nest, self.form.lanes, len(self.facts.depths), self.form.across, looped)
        self.splitter = LoopSplitter(self.form, self.facts, self.function, self.loops)
        self.reductions = ReductionWriter(self.form, self.function, self.loops, self.values, self.copies)
        self.scans = ScanWriter(self.form, self.function, self.loops, self.values, self.reductions)
        stages = self.facts.stages
        found = [stages[id(r.value)] for r in nest.reduces] + [stages[id(s.value)] for s in nest.stores if s.full]
        self.last_stage = max(found, default=0)
        self.begin(0)

    def run(self) -> Kernel:
        """Return the kernel."""
        form, nest = self.form, self.form.nest
        for r in nest.reduces:
            self.accumulating(r).declare(r)
        self.tiles.declare(access for access in self.facts.accesses if access in nest.turned)
        first, last = self.function.range()
        self.enter(0)
        if form.rows:
            counts = {k: nest.loops[k].extent for k in form.rows}
            if form.tile is not None:
                counts[form.tile] = -(-counts[form.tile] // form.lanes)
            named = {k: self.blocks(k, count) for k, count in counts.items()}
            extent: DimLike = pymath.prod(counts.values())
            if target().threads:
                self.row_range(form.rows, named, first, last)
            else:
                extent = counts[form.rows[0]]
                self.row_loops(form.rows, named, first, last)
        elif not form.across and nest.loops[-1].kind == "p":
            self.vector_range(first, last, self.row_body)
            extent = nest.loops[-1].extent
        else:
            self.row_body()
            extent = 1
        self.e.do("ret void")
        work = pymath.prod(loop.extent for loop in nest.loops) * max(1, len(self.facts.depths) // 6)
        if not form.rows:
            work = column_work(nest, extent, work)
        schedule = describe(nest, form.lanes, self.copies, extent)
        return Kernel(self.function.text(NAME), self.function.words, extent, work, schedule)

    def accumulating(self, r: Reduce) -> ReductionWriter | ScanWriter:
        """Return the writer of a reduction."""
        return self.scans if r.scan else self.reductions

    def blocks(self, loop: int, count: DimLike) -> str:
        """Return the number of a loop's iterations, or of blocks of them, that threads divide."""
        return self.function.word("int", count) if loop == self.form.tile else str(self.loops.extents[loop])

    def row_loops(self, rows: Sequence[int], counts: dict[int, str], start: str, stop: str) -> None:
        """Write the outer loops one in the other, the first from `start` to `stop`.

        No position is found by division, as it is where threads share all rows. `rows` are the
        loops, of as many iterations as `counts` says.
        """
        k, *inner = rows
        if not inner:
            self.last_rows(k, start, stop)
            return
        with self.function.loop(start, stop, 1) as p, self.loops.scope(k, p):
            self.enter(self.form.depth_of[k])
            self.row_loops(inner, counts, "0", counts[inner[0]])

    def row_range(self, rows: Sequence[int], counts: dict[int, str], begin: str, end: str) -> None:
        """Write the outer loops over the rows from `begin` to `end`.

        They are two loops: one over the innermost of the loops `rows`, the other over all outside
        it. `counts` has their iterations.
        """
        e = self.e
        *outer, last = rows
        if not outer:
            self.last_rows(last, begin, end)
            return
        with self.function.stretches(begin, end, counts[last]) as (rest, start, stop):
            positions: dict[int, str] = {}
            for n, k in enumerate(reversed(outer)):
                if n == len(outer) - 1:
                    positions[k] = rest
                else:
                    positions[k] = e.put(f"urem {self.ix} {rest}, {counts[k]}")
                    rest = e.put(f"udiv {self.ix} {rest}, {counts[k]}")
            self.nested(outer, positions, lambda: self.last_rows(last, start, stop))

    def last_rows(self, k: int, start: str, stop: str) -> None:
        with self.function.loop(start, stop, 1) as p:
            if k == self.form.tile:
                self.tile_block(p)
            else:
                self.nested([k], {k: p})

    def tile_block(self, block: str) -> None:
        """Write one block of the tiled loop.

        For each vector it has the tiles and then the block's iterations.
        """
        e = self.e
        assert self.form.tile is not None
        tile, lanes, kind = self.form.tile, self.form.vector_loop, e.vector(self.ix)
        start = e.put(f"mul {self.ix} {block}, {self.form.lanes}")
        left = e.put(f"sub {self.ix} {self.loops.extents[tile]}, {start}")
        few = e.put(f"icmp slt {self.ix} {left}, {self.form.lanes}")
        count = e.put(f"select i1 {few}, {self.ix} {left}, {self.ix} {self.form.lanes}")
        stop = e.put(f"add {self.ix} {start}, {count}")
        columns = e.put(f"icmp slt {kind} {self.function.iota(self.ix)}, {e.splat(count, self.ix)}")

        def body() -> None:
            rows = None
            if self.loops.mask is not None:
                rows = e.put(f"sub {self.ix} {self.loops.extents[lanes]}, {self.loops.position[lanes]}")
            self.tiles.fill(start, columns, rows)
            with self.function.loop(start, stop, 1) as t, self.loops.scope(tile, t):
                self.enter(self.form.depth_of[tile])
                self.row_body()

        self.vector_range("0", str(self.loops.extents[lanes]), body)

    def nested(self, rows: list[int], positions: dict[int, str], then: Callable[[], None] | None = None) -> None:
        if not rows and then is not None:
            then()
            return
        if not rows:
            if self.form.across or self.form.nest.loops[-1].kind != "p":
                self.row_body()
            else:
                self.vector_range("0", str(self.loops.extents[self.form.vector_loop]), self.row_body)
            return
        k = rows[0]
        with self.loops.scope(k, positions[k]):
            self.enter(self.form.depth_of[k])
            self.nested(rows[1:], positions, then)

    def vector_range(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write the vector loop: groups of vectors first, then single vectors under a mask."""
        loop = self.form.vector_loop
        if not self.form.wide:
            with self.function.loop(start, end, 1) as iv, self.loops.scope(loop, iv):
                self.enter(self.form.depth_of[loop])
                body()
            return
        whole, edge = (partial(write, body=body) for write in (self.groups, self.single_vectors))
        self.splitter.split(start, end, whole, edge)

    def groups(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write groups of vectors, and the vectors that are left."""
        e, loop = self.e, self.form.vector_loop
        group = self.form.lanes * self.copies
        room = e.put(f"sub {self.ix} {end}, {start}")
        whole = e.put(f"mul {self.ix} {e.put(f'sdiv {self.ix} {room}, {group}')}, {group}")
        middle = e.put(f"add {self.ix} {start}, {whole}")
        self.loops.copies = self.copies
        with self.function.loop(start, middle, group) as iv, self.loops.scope(loop, iv):
            self.enter(self.form.depth_of[loop])
            body()
        self.single_vectors(middle, end, body)

    def single_vectors(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write vectors one by one, under a mask of the lanes that there are."""
        e, loop = self.e, self.form.vector_loop
        self.loops.copies = 1
        with self.function.loop(start, end, self.form.lanes) as iv, self.loops.scope(loop, iv):
            left = e.put(f"sub {self.ix} {end}, {iv}")
            left32 = self.loops.left = self.function.resized(left, self.ix, 32)
            kind = e.vector("i32")
            if self.form.lanes > 1:
                self.loops.mask = e.put(f"icmp slt {kind} {self.function.iota('i32')}, {e.splat(left32, 'i32')}")
            self.enter(self.form.depth_of[loop])
            body()
            self.loops.mask = None

    # Rows: everything inside the parallel loops.

    def row_body(self) -> None:
        if not self.form.inner:
            for s in self.form.nest.stores:
                self.values.store(s)
            return
        for stage in range(self.last_stage + 1):
            reduces, stores = self.begin(stage)
            if not reduces and not stores:
                continue
            for r in reduces:
                self.accumulating(r).start(r)
            self.enter(self.form.row_depth)
            self.inner_loops(list(self.form.inner))
            for r in reduces:
                self.accumulating(r).finish(r)
        self.enter(self.form.row_depth, rows=True)
        for s in self.form.nest.stores:
            if not s.full:
                self.values.store(s)
        self.begin(0)

    def begin(self, stage: int) -> tuple[list[Reduce], list[Store]]:
        """Start the statements of one stage, whose values need the reductions of earlier stages."""
        self.stage = stage
        self.current = (
            [r for r in self.form.nest.reduces if self.facts.stages[id(r.value)] == stage],
            [s for s in self.form.nest.stores if s.full and self.facts.stages[id(s.value)] == stage],
        )
        return self.current

    def inner_loops(self, loops: list[int]) -> None:
        if not loops:
            reduces, stores = self.current
            for r in reduces:
                self.accumulating(r).join(r)
            for s in stores:
                self.values.store(s)
            return
        k, rest = loops[0], loops[1:]
        if k == self.form.vector_loop and self.form.across:
            self.vector_range("0", str(self.loops.extents[k]), lambda: self.inner_loops(rest))
        elif self.form.nest.loops[k].unroll:
            for i in range(int(self.form.nest.loops[k].extent)):
                with self.loops.scope(k, i):
                    self.enter(self.form.depth_of[k])
                    self.inner_loops(rest)
        else:
            reduces, stores = self.current
            start, stop, guards = self.splitter.kept(k, [] if stores else reduces)
            with self.function.loop(start, stop, 1) as iv, self.loops.scope(k, iv), self.loops.holding(guards):
                self.enter(self.form.depth_of[k])
                self.inner_loops(rest)

    def needed(self) -> list[Expr]:
        if not self.form.inner:
            return [s.value for s in self.form.nest.stores]
        reduces, stores = self.current
        return [x for r in reduces for x in (r.value, r.valid) if x is not None] + [s.value for s in stores]

    def enter(self, depth: int, rows: bool = False) -> None:
        """Compute the values that statements inside need and this depth allows."""
        nest = self.form.nest
        wanted = [s.value for s in nest.stores if not s.full] if rows else self.needed()
        self.values.hoist(wanted, depth, len(nest.reduces) + 1 if rows or not self.form.inner else self.stage)
