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

from mycel._src.compiler.ir.dims import DimLike, is_one, is_zero
from mycel._src.compiler.loops.operation_counts import Count
from mycel._src.engines.native.kernels.deduplication import digest_of
from mycel._src.engines.native.kernels.kernel_text import Text, packed
from mycel._src.engines.native.kernels.loop_nest import Expr, Nest, Reduce, Store
from mycel._src.engines.native.kernels.loop_schedule import column_work, copies, describe, grain
from mycel._src.engines.native.kernels.loop_splitting import GuardedWriter
from mycel._src.engines.native.kernels.value_writer import Word
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.math import function_definitions as vector_math
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


class NestWriter(GuardedWriter):
    """A writer of a kernel's loops, from the range that threads divide to the statements."""

    def run(self) -> Kernel:
        nest, e = self.nest, self.e
        self.enter_nest()
        self.most_copies = self.choose_copies()
        for r in nest.reduces:
            self.declare_accumulators(r)
        self.declare_tiles()
        last_stage = max(
            [self.stages[id(r.value)] for r in nest.reduces]
            + [self.stages[id(s.value)] for s in nest.stores if s.full],
            default=0,
        )
        self.last_stage = last_stage
        self.begin(0)
        first, last = (self.resized(name, "i64", int(self.ix[1:])) for name in ("%begin", "%end"))
        self.enter(0)
        if self.rows:
            counts = {k: nest.loops[k].extent for k in self.rows}
            if self.tile is not None:
                counts[self.tile] = -(-counts[self.tile] // self.lanes)
            named = {k: self.blocks(k, count) for k, count in counts.items()}
            extent: DimLike = pymath.prod(counts.values())
            if target().threads:
                self.row_range(self.rows, named, first, last)
            else:
                extent = counts[self.rows[0]]
                self.row_loops(self.rows, named, first, last)
        elif not self.across and nest.loops[-1].kind == "p":
            self.vector_range(first, last, self.row_body)
            extent = nest.loops[-1].extent
        else:
            self.row_body()
            extent = 1
        e.do("ret void")
        work = pymath.prod(loop.extent for loop in nest.loops) * max(1, len(self.depths) // 6)
        if not self.rows:
            work = column_work(nest, extent, work)
        return Kernel(self.text(), self.words, extent, work, describe(nest, self.lanes, self.most_copies, extent))

    def enter_nest(self) -> None:
        """Find what there is to know of the nest, and load its words."""
        nest = self.nest
        for r in nest.reduces:
            self.analyse(r.value)
            self.analyse(r.result)
            if r.valid is not None:
                self.analyse(r.valid)
        for s in nest.stores:
            self.analyse(s.value)
            self.enter_access(s.target)
        self.extents = {
            k: (loop.extent if loop.unroll else self.word("int", loop.extent)) for k, loop in enumerate(nest.loops)
        }
        for i, access in enumerate(self.accesses):
            for loop, value in access.offset.terms:
                if not (loop == self.vector_loop and is_one(value)):
                    self.strides[i, loop] = self.word("int", value)
            if not is_zero(access.offset.const):
                self.offsets[0][i] = self.word("int", access.offset.const)
            self.pointer(access.buffer)
        self.load_constants()

    def text(self) -> str:
        e = self.e
        body = "\n".join([*self.entry, *e.lines])
        parts = [f"define void @{NAME}(ptr noalias readonly %words, i64 %begin, i64 %end) #0 {{", "entry:", body, "}"]
        bits = target().vector_bytes * 8
        if self.has_sites:
            # What lies outside is code that is not expected to run.
            parts.append('!0 = !{!"branch_weights", i32 1048576, i32 1}')
        parts.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}')
        if e.math:
            parts.append(vector_math.definitions(sorted(e.math)))
        known = "\n".join(parts)
        parts.extend(d for d in sorted(e.declares) if d not in known)
        return "\n".join(parts) + "\n"

    def blocks(self, loop: int, count: DimLike) -> str:
        """Return the number of a loop's iterations, or of blocks of them, that threads divide."""
        return self.word("int", count) if loop == self.tile else str(self.extents[loop])

    def row_loops(self, rows: Sequence[int], counts: dict[int, str], start: str, stop: str) -> None:
        """Write the outer loops one in the other, the first from `start` to `stop`.

        No position is found by division, as it is where threads share all rows. `rows` are the
        loops, of as many iterations as `counts` says.
        """
        k, *inner = rows
        if not inner:
            self.last_rows(k, start, stop)
            return
        with self.loop(start, stop, 1) as p, self.scope(k, p):
            self.enter(self.depth_of[k])
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
        with self.stretches(begin, end, counts[last]) as (rest, start, stop):
            positions: dict[int, str] = {}
            for n, k in enumerate(reversed(outer)):
                if n == len(outer) - 1:
                    positions[k] = rest
                else:
                    positions[k] = e.put(f"urem {self.ix} {rest}, {counts[k]}")
                    rest = e.put(f"udiv {self.ix} {rest}, {counts[k]}")
            self.nested(outer, positions, lambda: self.last_rows(last, start, stop))

    def last_rows(self, k: int, start: str, stop: str) -> None:
        with self.loop(start, stop, 1) as p:
            if k == self.tile:
                self.tile_block(p)
            else:
                self.nested([k], {k: p})

    def tile_block(self, block: str) -> None:
        """Write one block of the tiled loop.

        For each vector it has the tiles and then the block's iterations.
        """
        e = self.e
        assert self.tile is not None
        tile, kind = self.tile, e.vector(self.ix)
        start = self.tile_start = e.put(f"mul {self.ix} {block}, {self.lanes}")
        left = e.put(f"sub {self.ix} {self.extents[tile]}, {start}")
        few = e.put(f"icmp slt {self.ix} {left}, {self.lanes}")
        count = e.put(f"select i1 {few}, {self.ix} {left}, {self.ix} {self.lanes}")
        stop = e.put(f"add {self.ix} {start}, {count}")
        columns = e.put(f"icmp slt {kind} {self.iota(self.ix)}, {e.splat(count, self.ix)}")

        def body() -> None:
            rows = None
            if self.mask is not None:
                rows = e.put(f"sub {self.ix} {self.extents[self.vector_loop]}, {self.position[self.vector_loop]}")
            self.fill_tiles(start, columns, rows)
            with self.loop(start, stop, 1) as t, self.scope(tile, t):
                self.enter(self.depth_of[tile])
                self.row_body()

        self.vector_range("0", str(self.extents[self.vector_loop]), body)

    def nested(self, rows: list[int], positions: dict[int, str], then: Callable[[], None] | None = None) -> None:
        if not rows and then is not None:
            then()
            return
        if not rows:
            if self.across or self.nest.loops[-1].kind != "p":
                self.row_body()
            else:
                self.vector_range("0", str(self.extents[self.vector_loop]), self.row_body)
            return
        k = rows[0]
        with self.scope(k, positions[k]):
            self.enter(self.depth_of[k])
            self.nested(rows[1:], positions, then)

    def vector_range(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write the vector loop: groups of vectors first, then single vectors under a mask."""
        loop = self.vector_loop
        if not self.wide:
            with self.loop(start, end, 1) as iv, self.scope(loop, iv):
                self.enter(self.depth_of[loop])
                body()
            return
        self.split(start, end, lambda a, b: self.groups(a, b, body), lambda a, b: self.single_vectors(a, b, body))

    def groups(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write groups of vectors, and the vectors that are left."""
        e, loop = self.e, self.vector_loop
        copies = self.most_copies
        group = self.lanes * copies
        room = e.put(f"sub {self.ix} {end}, {start}")
        whole = e.put(f"mul {self.ix} {e.put(f'sdiv {self.ix} {room}, {group}')}, {group}")
        middle = e.put(f"add {self.ix} {start}, {whole}")
        self.copies = copies
        with self.loop(start, middle, group) as iv, self.scope(loop, iv):
            self.enter(self.depth_of[loop])
            body()
        self.single_vectors(middle, end, body)

    def single_vectors(self, start: str, end: str, body: Callable[[], None]) -> None:
        """Write vectors one by one, under a mask of the lanes that there are."""
        e, loop = self.e, self.vector_loop
        self.copies = 1
        with self.loop(start, end, self.lanes) as iv, self.scope(loop, iv):
            left = e.put(f"sub {self.ix} {end}, {iv}")
            left32 = self.left = self.resized(left, self.ix, 32)
            kind = e.vector("i32")
            if self.lanes > 1:
                self.mask = e.put(f"icmp slt {kind} {self.iota('i32')}, {e.splat(left32, 'i32')}")
            self.enter(self.depth_of[loop])
            body()
            self.mask = None

    def choose_copies(self) -> int:
        looped = any(not self.nest.loops[k].unroll for k in self.inner)
        return copies(self.nest, self.lanes, len(self.depths), self.across, looped)

    # Rows: everything inside the parallel loops.

    def row_body(self) -> None:
        if not self.inner:
            for s in self.nest.stores:
                self.store(s)
            return
        for stage in range(self.last_stage + 1):
            reduces, stores = self.begin(stage)
            if not reduces and not stores:
                continue
            for r in reduces:
                self.start(r)
            self.enter(self.row_depth)
            self.inner_loops(list(self.inner))
            for r in reduces:
                self.finish(r)
        self.enter(self.row_depth, rows=True)
        for s in self.nest.stores:
            if not s.full:
                self.store(s)
        self.begin(0)

    def begin(self, stage: int) -> tuple[list[Reduce], list[Store]]:
        """Start the statements of one stage, whose values need the reductions of earlier stages."""
        self.stage = stage
        self.current = (
            [r for r in self.nest.reduces if self.stages[id(r.value)] == stage],
            [s for s in self.nest.stores if s.full and self.stages[id(s.value)] == stage],
        )
        return self.current

    def inner_loops(self, loops: list[int]) -> None:
        if not loops:
            reduces, stores = self.current
            for r in reduces:
                self.join(r)
            for s in stores:
                self.store(s)
            return
        k, rest = loops[0], loops[1:]
        if k == self.vector_loop and self.across:
            self.vector_range("0", str(self.extents[k]), lambda: self.inner_loops(rest))
        elif self.nest.loops[k].unroll:
            for i in range(int(self.nest.loops[k].extent)):
                with self.scope(k, i):
                    self.enter(self.depth_of[k])
                    self.inner_loops(rest)
        else:
            reduces, stores = self.current
            start, stop, guards = self.kept(k, [] if stores else reduces)
            with self.loop(start, stop, 1) as iv, self.scope(k, iv), self.holding(guards):
                self.enter(self.depth_of[k])
                self.inner_loops(rest)

    def needed(self) -> list[Expr]:
        if not self.inner:
            return [s.value for s in self.nest.stores]
        reduces, stores = self.current
        return [x for r in reduces for x in (r.value, r.valid) if x is not None] + [s.value for s in stores]

    def enter(self, depth: int, rows: bool = False) -> None:
        """Compute the values that statements inside need and this depth allows."""
        wanted = [s.value for s in self.nest.stores if not s.full] if rows else self.needed()
        limit = len(self.nest.reduces) + 1 if rows or not self.inner else self.stage
        seen: set[int] = set()

        def visit(x: Expr) -> None:
            if id(x) in seen or x.kind == "reduced":
                return
            seen.add(id(x))
            for a in x.args:
                visit(a)
            if (
                id(x) not in self.late
                and self.depths[id(x)] <= depth
                and self.stages[id(x)] <= limit
                and x.kind != "const"
            ):
                self.value(x)

        for x in wanted:
            visit(x)
