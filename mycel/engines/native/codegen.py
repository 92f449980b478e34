"""From a loop nest to a native kernel ``void f(words, begin, end)``.

The last loop's iterations are the lanes of vectors. Where it is parallel, reductions run inside it with a vector of accumulators; where it
is reducing, accumulators are joined across lanes at the end of each row. Iterations that do not fill a vector run under a mask. The
outer parallel loops are one range that threads split; without any, the vector loop itself is.

Code does not depend on sizes: extents, strides, offsets and addresses are read from the argument words, so that one kernel serves every shape of
the same structure. `Kernel.words` lists what a caller puts there: ('pointer', buffer) or ('int', value). Values that do not depend on an inner
loop are computed outside it.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Optional

from mycel import dtype as D
from mycel.dtype import DType
from mycel.engines.native import emit
from mycel.engines.native import math as vector_math
from mycel.engines.native.emit import Emitter, choose, compute_type, extreme, literal, memory_type, suffix
from mycel.engines.native.jit import machine
from mycel.kernel.nest import Access, Affine, Expr, Nest, Reduce, Store

__all__ = ["Kernel", "generate"]

Word = tuple[str, Any]
NAME = "mycel_kernel"
UNROLL_LIMIT = 32
GRAIN_WORK = 24576


@dataclass
class Kernel:
    """A module's text, the argument words, the size of the range that threads split, and its grain."""

    text: str
    words: list[Word]
    extent: int
    grain: int


def generate(nest: Nest) -> Kernel:
    """The kernel of a nest."""
    return _Generator(nest).run()


class _Generator:
    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.vector_loop = len(nest.loops) - 1
        kinds = [loop.kind for loop in nest.loops]
        extent = nest.loops[-1].extent
        widest = max([s.value.dtype.itemsize for s in nest.stores if s.value.dtype.itemsize <= 4], default=4)
        lanes = max(machine().vector_bytes // max(widest, 4), 2)
        scalar = nest.scalar or extent == 1
        self.lanes = 1 if scalar else lanes
        self.wide = not scalar
        self.e = Emitter(self.lanes)
        self.inner = [k for k, kind in enumerate(kinds) if kind != "p"]
        self.across = kinds[-1] == "r"
        parallel = [k for k, kind in enumerate(kinds) if kind == "p"]
        if self.across or kinds[-1] == "s":
            self.rows = parallel
            self.code = parallel + [k for k in self.inner]
            self.row_depth = len(parallel)
        else:
            self.rows = parallel[:-1]
            self.code = parallel + self.inner
            self.row_depth = len(parallel)
        self.depth_of = {k: i + 1 for i, k in enumerate(self.code)}
        self.words: list[Word] = []
        self.word_names: list[str] = []
        self.entry: list[str] = []
        self.pointers: dict[Any, str] = {}
        self.scopes: list[dict[Any, Any]] = [{}]
        self.offsets: list[dict[int, Optional[str]]] = [{}]
        self.position: dict[int, Any] = {}
        self.mask: Optional[str] = None
        self.copies = 1
        self.labels = 0
        self.accesses: list[Access] = []
        self.access_index: dict[Access, int] = {}
        self.depths: dict[int, int] = {}
        self.varies: dict[int, bool] = {}
        self.stages: dict[int, int] = {}
        self.accumulators: dict[Any, list[str]] = {}

    # Analysis.

    def analyse(self, x: Expr) -> None:
        """Depth (how many code loops it lies in), lane dependence and stage of an expression."""
        if id(x) in self.depths:
            return
        if x.kind == "reduced":
            self.analyse(x.args[0])
            self.depths[id(x)] = self.row_depth
            self.varies[id(x)] = self.wide and not self.across
            self.stages[id(x)] = self.stages[id(x.args[0])] + 1
            return
        depth, wide, stage = 0, False, 0
        for a in x.args:
            self.analyse(a)
            depth, wide = max(depth, self.depths[id(a)]), wide or self.varies[id(a)]
            stage = max(stage, self.stages[id(a)])
        places: list[Affine] = []
        if x.kind == "load":
            access = x.data[0]
            self.enter_access(access)
            places = [access.offset, *[g for g, _ in access.guards]]
        elif x.kind == "index":
            places = [x.data]
        elif x.kind == "guard":
            places = [g for g, _ in x.data]
        for place in places:
            for loop, _ in place.terms:
                depth = max(depth, self.depth_of[loop])
                wide = wide or (self.wide and loop == self.vector_loop)
        self.depths[id(x)], self.varies[id(x)], self.stages[id(x)] = depth, wide, stage

    def enter_access(self, access: Access) -> None:
        if access not in self.access_index:
            self.access_index[access] = len(self.accesses)
            self.accesses.append(access)
            for x, _, _ in access.dynamic:
                self.analyse(x)

    # Words.

    def word(self, kind: str, value: Any) -> str:
        """The SSA name of an argument word, loaded at the function's entry."""
        name = f"%w{len(self.words)}"
        index = len(self.words)
        self.words.append((kind, value))
        self.entry.append(f"  {name}p = getelementptr i64, ptr %words, i64 {index}")
        self.entry.append(f"  {name} = load {'ptr' if kind == 'pointer' else 'i64'}, ptr {name}p")
        return name

    def pointer(self, buffer: Any) -> str:
        if id(buffer) not in self.pointers:
            self.pointers[id(buffer)] = self.word("pointer", buffer)
        return self.pointers[id(buffer)]

    # Control.

    def fresh(self, name: str) -> str:
        self.labels += 1
        return f"{name}{self.labels}"

    @contextmanager
    def loop(self, start: str, end: str, step: int) -> Iterator[str]:
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("head", "body", "latch", "leave"))
        e.do(f"br label %{head}")
        before = e.block
        e.label(head)
        iv, following = e.name(), e.name()
        e.do(f"{iv} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt i64 {iv}, {end}')}, label %{body}, label %{leave}")
        e.label(body)
        yield iv
        e.do(f"br label %{latch}")
        e.label(latch)
        e.do(f"{following} = add i64 {iv}, {step}")
        e.do(f"br label %{head}")
        e.label(leave)

    @contextmanager
    def scope(self, loop: Optional[int], position: Any) -> Iterator[None]:
        """Inside one more loop at this position: its offsets and values live until the block ends."""
        self.scopes.append({})
        previous = self.offsets[-1]
        mine = dict(previous)
        if loop is not None:
            self.position[loop] = position
            for i, access in enumerate(self.accesses):
                stride = access.offset.coefficient(loop)
                if stride and position != 0:
                    step = self.stride(i, loop, stride)
                    moved = position if step is None else self.e.put(f"mul i64 {position}, {step}")
                    mine[i] = moved if mine.get(i) is None else self.e.put(f"add i64 {mine[i]}, {moved}")
        self.offsets.append(mine)
        try:
            yield
        finally:
            self.scopes.pop()
            self.offsets.pop()
            if loop is not None:
                self.position.pop(loop)

    def stride(self, access: int, loop: int, value: int) -> Optional[str]:
        """The word of an access's stride; None for the unit stride of the vector loop."""
        if loop == self.vector_loop and value == 1:
            return None
        return self.strides[access, loop]

    # The function.

    def run(self) -> Kernel:
        nest, e = self.nest, self.e
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
        self.strides: dict[tuple[int, int], str] = {}
        for i, access in enumerate(self.accesses):
            for loop, value in access.offset.terms:
                if not (loop == self.vector_loop and value == 1):
                    self.strides[i, loop] = self.word("int", value)
            if access.offset.const:
                self.offsets[0][i] = self.word("int", access.offset.const)
            self.pointer(access.buffer)
        for r in nest.reduces:
            self.declare_accumulators(r)
        last_stage = max(
            [self.stages[id(r.value)] for r in nest.reduces]
            + [self.stages[id(s.value)] for s in nest.stores if s.full],
            default=0,
        )
        self.last_stage = last_stage
        self.begin(0)
        self.enter(0)
        if self.rows:
            with self.loop("%begin", "%end", 1) as p:
                self.decompose(self.rows, p, 0)
            extent = pymath.prod(nest.loops[k].extent for k in self.rows)
        elif not self.across and nest.loops[-1].kind == "p":
            self.vector_range("%begin", "%end", self.row_body)
            extent = nest.loops[-1].extent
        else:
            self.row_body()
            extent = 1
        e.do("ret void")
        work = pymath.prod(loop.extent for loop in nest.loops) * max(1, len(self.depths) // 6)
        grain = 0 if extent == 1 else max(1, -(-GRAIN_WORK * extent // max(work, 1)))
        return Kernel(self.text(), self.words, extent, grain)

    def text(self) -> str:
        e = self.e
        body = "\n".join([*self.entry, *e.lines])
        parts = [f"define void @{NAME}(ptr noalias readonly %words, i64 %begin, i64 %end) #0 {{", "entry:", body, "}"]
        bits = machine().vector_bytes * 8
        parts.append(f'attributes #0 = {{ nounwind "prefer-vector-width"="{bits}" "min-legal-vector-width"="{bits}" }}')
        if e.math:
            parts.append(vector_math.definitions(sorted(e.math)))
        known = "\n".join(parts)
        parts.extend(d for d in sorted(e.declares) if d not in known)
        return "\n".join(parts) + "\n"

    def decompose(self, rows: Sequence[int], p: str, done: int) -> None:
        """Split the flat row number into the positions of the outer loops and go on inside."""
        e = self.e
        positions: dict[int, str] = {}
        rest = p
        for n, k in enumerate(reversed(rows)):
            if n == len(rows) - 1:
                positions[k] = rest
            else:
                positions[k] = e.put(f"urem i64 {rest}, {self.extents[k]}")
                rest = e.put(f"udiv i64 {rest}, {self.extents[k]}")
        self.nested(list(rows), positions)

    def nested(self, rows: list[int], positions: dict[int, str]) -> None:
        if not rows:
            if self.across or self.nest.loops[-1].kind != "p":
                self.row_body()
            else:
                self.vector_range("0", str(self.extents[self.vector_loop]), self.row_body)
            return
        k = rows[0]
        with self.scope(k, positions[k]):
            self.enter(self.depth_of[k])
            self.nested(rows[1:], positions)

    def vector_range(self, start: str, end: str, body: Callable[[], None]) -> None:
        """The vector loop: whole groups of vectors, then single ones under a mask."""
        e, loop = self.e, self.vector_loop
        if not self.wide:
            with self.loop(start, end, 1) as iv, self.scope(loop, iv):
                self.enter(self.depth_of[loop])
                body()
            return
        copies = self.choose_copies()
        group = self.lanes * copies
        room = e.put(f"sub i64 {end}, {start}")
        whole = e.put(f"mul i64 {e.put(f'sdiv i64 {room}, {group}')}, {group}")
        middle = e.put(f"add i64 {start}, {whole}")
        self.copies = copies
        with self.loop(start, middle, group) as iv, self.scope(loop, iv):
            self.enter(self.depth_of[loop])
            body()
        self.copies = 1
        with self.loop(middle, end, self.lanes) as iv, self.scope(loop, iv):
            left = e.put(f"sub i64 {end}, {iv}")
            left32 = e.put(f"trunc i64 {left} to i32")
            kind = e.vector("i32")
            self.mask = e.put(f"icmp slt {kind} {self.iota('i32')}, {e.splat(left32, 'i32')}")
            self.enter(self.depth_of[loop])
            body()
            self.mask = None

    def choose_copies(self) -> int:
        weight = len(self.depths)
        if self.nest.reduces:
            looped = any(not self.nest.loops[k].unroll for k in self.inner)
            if self.across or looped:
                return 4 if len(self.nest.reduces) <= 2 and weight < 16 else 2
            return 1
        return 2 if weight <= 8 and not self.inner else 1

    def iota(self, kind: str, first: int = 0, step: int = 1) -> str:
        return "<" + ", ".join(f"{kind} {first + i * step}" for i in range(self.lanes)) + ">"

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
        """Turn to the statements of one stage: those whose values need the reductions of the stages before, and no other."""
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
            for i in range(self.nest.loops[k].extent):
                with self.scope(k, i):
                    self.enter(self.depth_of[k])
                    self.inner_loops(rest)
        else:
            with self.loop("0", str(self.extents[k]), 1) as iv, self.scope(k, iv):
                self.enter(self.depth_of[k])
                self.inner_loops(rest)

    def needed(self) -> list[Expr]:
        if not self.inner:
            return [s.value for s in self.nest.stores]
        reduces, stores = self.current
        return [x for r in reduces for x in (r.value, r.valid) if x is not None] + [s.value for s in stores]

    def enter(self, depth: int, rows: bool = False) -> None:
        """Compute what the statements inside need and what can be computed at this depth."""
        wanted = [s.value for s in self.nest.stores if not s.full] if rows else self.needed()
        limit = len(self.nest.reduces) + 1 if rows or not self.inner else self.stage
        seen: set[int] = set()

        def visit(x: Expr) -> None:
            if id(x) in seen or x.kind == "reduced":
                return
            seen.add(id(x))
            for a in x.args:
                visit(a)
            if self.depths[id(x)] <= depth and self.stages[id(x)] <= limit and x.kind != "const":
                self.value(x)

        for x in wanted:
            visit(x)

    # Values.

    def value(self, x: Expr) -> list[str]:
        """The SSA values of an expression: one, or one for each copy where it varies over lanes."""
        key = id(x)
        for scope in reversed(self.scopes):
            if key in scope:
                return scope[key]  # type: ignore[no-any-return]
        made = self.make(x)
        self.scopes[-1][key] = made
        return made

    def make(self, x: Expr) -> list[str]:
        e = self.e
        if x.kind == "const":
            return [literal(x.data[0], x.dtype)]
        if x.kind == "load":
            return self.load(x)
        if x.kind == "index":
            return [self.index(x, u) for u in range(self.copies if self.varies[id(x)] else 1)]
        if x.kind == "guard":
            wide = self.varies[id(x)]
            return [
                self.guards(x.data, u, wide) or ("true" if not wide else self.all_true())
                for u in range(self.copies if wide else 1)
            ]
        if x.kind == "reduced":
            return self.accumulators[x.data, "result"]
        wide = self.varies[id(x)]
        types = [a.dtype for a in x.args]
        operands = [self.widened(a, wide) for a in x.args]
        results = []
        for u in range(self.copies if wide else 1):
            values = [o[u if len(o) > 1 else 0] for o in operands]
            if x.data == "cast":
                results.append(emit.cast(e, wide, values[0], types[0], x.dtype))
            else:
                results.append(emit.operation(e, x.data, wide, x.dtype, values, types))
        return results

    def widened(self, x: Expr, wide: bool) -> list[str]:
        """Values as vectors where `wide`."""
        values = self.value(x)
        if not wide or self.varies[id(x)]:
            return values
        kind = compute_type(x.dtype)
        if x.kind == "const":
            return ["<" + ", ".join([f"{kind} {values[0]}"] * self.lanes) + ">"]
        for scope in reversed(self.scopes):
            if ("splat", id(x)) in scope:
                return scope["splat", id(x)]  # type: ignore[no-any-return]
        result = [self.e.splat(values[0], kind)]
        self.scopes[-1]["splat", id(x)] = result
        return result

    def all_true(self) -> str:
        return "<" + ", ".join(["i1 true"] * self.lanes) + ">"

    def place(self, position: Affine, copy: int, bits: int, wide: bool) -> str:
        """An affine position as an integer (a vector of them where `wide`)."""
        e = self.e
        total: Optional[str] = None
        const = position.const
        for loop, c in position.terms:
            at = self.position[loop]
            if isinstance(at, int):
                const += c * at
                continue
            term = at if c == 1 else e.put(f"mul i64 {at}, {c}")
            total = term if total is None else e.put(f"add i64 {total}, {term}")
        step = position.coefficient(self.vector_loop) if wide else 0
        const += step * copy * self.lanes
        if total is None:
            base = str(const)
        else:
            base = e.put(f"add i64 {total}, {const}") if const else total
        kind = f"i{bits}"
        if bits < 64 and total is not None:
            base = e.put(f"trunc i64 {base} to {kind}")
        if not wide:
            return base
        return e.put(f"add {e.vector(kind)} {e.splat(base, kind)}, {self.iota(kind, 0, step)}")

    def index(self, x: Expr, copy: int) -> str:
        wide = self.varies[id(x)]
        bits = 64 if x.dtype.itemsize == 8 else 32
        number = self.place(x.data, copy, bits, wide)
        return emit.cast(self.e, wide, number, D.int64 if bits == 64 else D.int32, x.dtype)

    def guards(self, guards: Any, copy: int, wide: bool) -> Optional[str]:
        """Whether every guard holds; None where there are none."""
        e = self.e
        result: Optional[str] = None
        for position, size in guards:
            lanes = wide and position.coefficient(self.vector_loop) != 0
            at = self.place(position, copy, 32, lanes)
            limit = self.size_word(position, size)
            limit = e.put(f"trunc i64 {limit} to i32")
            if lanes:
                one = e.put(f"icmp ult {e.vector('i32')} {at}, {e.splat(limit, 'i32')}")
            else:
                one = e.put(f"icmp ult i32 {at}, {limit}")
                if wide:
                    one = e.splat(one, "i1")
            result = one if result is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {result}, {one}")
        return result

    def size_word(self, position: Affine, size: int) -> str:
        key = ("size", position, size)
        if key not in self.pointers:  # type: ignore[comparison-overlap]
            self.pointers[key] = self.word("int", size)  # type: ignore[index]
        return self.pointers[key]  # type: ignore[index]

    def dynamic(self, access: Access, copy: int, wide: bool) -> tuple[Optional[str], Optional[str]]:
        """The offset that data-dependent indices add, and whether they are in range."""
        e = self.e
        kind = e.vector("i64") if wide else "i64"
        total: Optional[str] = None
        valid: Optional[str] = None
        for n, (x, stride, size) in enumerate(access.dynamic):
            values = self.widened(x, wide)
            number = emit.cast(e, wide, values[copy if len(values) > 1 else 0], x.dtype, D.int64)
            limit: str = self.word_once(("dynamic", access, n), size)
            step: str = self.word_once(("step", access, n), stride)
            if wide:
                limit, step = e.splat(limit, "i64"), e.splat(step, "i64")
            zero = "zeroinitializer" if wide else "0"
            negative = e.put(f"icmp slt {kind} {number}, {zero}")
            number = choose(e, kind, negative, e.put(f"add {kind} {number}, {limit}"), number)
            inside = e.put(f"icmp ult {kind} {number}, {limit}")
            safe = choose(e, kind, inside, number, zero)
            moved = e.put(f"mul {kind} {safe}, {step}")
            total = moved if total is None else e.put(f"add {kind} {total}, {moved}")
            valid = inside if valid is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {valid}, {inside}")
        return total, valid

    def word_once(self, key: Any, value: int) -> str:
        if key not in self.pointers:
            self.pointers[key] = self.word("int", value)
        return self.pointers[key]

    # Memory.

    def address(self, access: Access, copy: int) -> str:
        """The address of the first lane of a copy, for accesses whose data-dependent part is uniform."""
        e = self.e
        i = self.access_index[access]
        offset = self.offsets[-1].get(i)
        kind = memory_type(access.buffer.dtype)
        step = access.offset.coefficient(self.vector_loop)
        base = self.pointer(access.buffer)
        if offset is not None:
            base = e.put(f"getelementptr {kind}, ptr {base}, i64 {offset}")
        if copy and step:
            if step == 1:
                base = e.put(f"getelementptr {kind}, ptr {base}, i64 {copy * self.lanes}")
            else:
                jump = e.put(f"mul i64 {self.stride(i, self.vector_loop, step)}, {copy * self.lanes}")
                base = e.put(f"getelementptr {kind}, ptr {base}, i64 {jump}")
        return base

    def lanes_addresses(self, access: Access, copy: int, moved: Optional[str], moved_wide: bool) -> str:
        """A vector of addresses, one for each lane."""
        e = self.e
        kind = memory_type(access.buffer.dtype)
        base = self.address(access, copy)
        i = self.access_index[access]
        step = access.offset.coefficient(self.vector_loop)
        steps: Optional[str] = None
        if step:
            if step == 1:
                steps = self.iota("i64")
            else:
                word = self.stride(i, self.vector_loop, step)
                steps = e.put(f"mul {e.vector('i64')} {e.splat(str(word), 'i64')}, {self.iota('i64')}")
        if moved is not None:
            wide = moved if moved_wide else e.splat(moved, "i64")
            steps = wide if steps is None else e.put(f"add {e.vector('i64')} {steps}, {wide}")
        return e.put(f"getelementptr {kind}, ptr {base}, {e.vector('i64')} {steps or 'zeroinitializer'}")

    def whole_mask(self, access: Access, copy: int, valid: Optional[str], valid_wide: bool) -> Optional[str]:
        """The mask of a vector access: lanes that exist, guards and index checks."""
        e = self.e
        parts = [] if self.mask is None else [self.mask]
        guard = self.guards(access.guards, copy, True)
        if guard is not None:
            parts.append(guard)
        if valid is not None:
            parts.append(valid if valid_wide else e.splat(valid, "i1"))
        if not parts:
            return None
        result = parts[0]
        for p in parts[1:]:
            result = e.put(f"and {e.vector('i1')} {result}, {p}")
        return result

    def load(self, x: Expr) -> list[str]:
        access, default = x.data
        wide = self.varies[id(x)]
        return [self.load_one(access, default, u, wide) for u in range(self.copies if wide else 1)]

    def load_one(self, access: Access, default: Any, copy: int, wide: bool) -> str:
        e = self.e
        dtype: DType = access.buffer.dtype
        kind = memory_type(dtype)
        size = dtype.itemsize
        moved_wide = wide and any(self.varies[id(d[0])] for d in access.dynamic)
        moved, valid = self.dynamic(access, copy, moved_wide)
        if not wide:
            pointer = self.address(access, 0)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, i64 {moved}")
            guard = self.guards(access.guards, 0, False)
            if valid is not None:
                guard = valid if guard is None else e.put(f"and i1 {guard}, {valid}")
            if guard is None:
                return self.from_memory(e.put(f"load {kind}, ptr {pointer}, align {size}"), dtype, False)
            safe = e.put(f"select i1 {guard}, ptr {pointer}, ptr {self.pointer(access.buffer)}")
            value = self.from_memory(e.put(f"load {kind}, ptr {safe}, align {size}"), dtype, False)
            return choose(e, compute_type(dtype), guard, value, literal(default, dtype))
        raw = "i16" if kind in ("half", "bfloat") else kind
        vector = e.vector(raw)
        mask = self.whole_mask(access, copy, valid, moved_wide)
        if access.offset.coefficient(self.vector_loop) == 1 and not moved_wide:
            pointer = self.address(access, copy)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, i64 {moved}")
            if mask is None:
                value = e.put(f"load {vector}, ptr {pointer}, align {size}")
            else:
                value = e.intrinsic(vector, f"llvm.masked.load.{suffix(vector)}.p0", ["ptr", "i32", e.vector("i1"), vector],
                                    [pointer, str(size), mask, self.raw_default(default, dtype, raw)])  # fmt: skip
        else:
            pointers = self.lanes_addresses(access, copy, moved, moved_wide)
            value = e.intrinsic(
                vector, f"llvm.masked.gather.{suffix(vector)}.v{self.lanes}p0", [f"<{self.lanes} x ptr>", "i32", e.vector("i1"), vector],
                [pointers, str(size), mask or self.all_true(), self.raw_default(default, dtype, raw)],
            )  # fmt: skip
        if raw != kind:
            value = e.put(f"bitcast {vector} {value} to {e.vector(kind)}")
        return self.from_memory(value, dtype, True)

    def raw_default(self, default: Any, dtype: DType, raw: str) -> str:
        if not default:
            return "zeroinitializer"
        import numpy as np

        if raw in ("float", "double"):
            text = literal(default, dtype)
        else:
            text = str(int(np.asarray(default).astype(dtype.numpy).view(f"u{dtype.itemsize}")))
        return "<" + ", ".join([f"{raw} {text}"] * self.lanes) + ">"

    def from_memory(self, value: str, dtype: DType, wide: bool) -> str:
        e = self.e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"icmp ne {shape('i8')} {value}, {'zeroinitializer' if wide else '0'}")
        if dtype in (D.float16, D.bfloat16):
            return e.put(f"fpext {shape(memory_type(dtype))} {value} to {shape('float')}")
        return value

    def to_memory(self, value: str, dtype: DType, wide: bool) -> str:
        e = self.e
        shape = e.vector if wide else (lambda t: t)
        if dtype is D.bool_:
            return e.put(f"zext {shape('i1')} {value} to {shape('i8')}")
        if dtype in (D.float16, D.bfloat16):
            return e.put(f"fptrunc {shape('float')} {value} to {shape(memory_type(dtype))}")
        return value

    def store(self, s: Store) -> None:
        e, access = self.e, s.target
        dtype: DType = access.buffer.dtype
        step = access.offset.coefficient(self.vector_loop)
        wide = self.wide and (
            self.varies[id(s.value)] or step != 0 or any(self.varies[id(d[0])] for d in access.dynamic)
        )
        wide = wide and (s.full or not self.across)
        values = self.widened(s.value, wide)
        for u in range(self.copies if wide else 1):
            value = values[u if len(values) > 1 else 0]
            if s.mode == "add":
                before = self.load_one(access, 0, u, wide)
                value = emit.operation(e, "add", wide, dtype, [before, value], [dtype, dtype])
            self.store_one(access, value, u, wide)

    def store_one(self, access: Access, value: str, copy: int, wide: bool) -> None:
        e = self.e
        dtype: DType = access.buffer.dtype
        kind, size = memory_type(dtype), dtype.itemsize
        moved_wide = wide and any(self.varies[id(d[0])] for d in access.dynamic)
        moved, valid = self.dynamic(access, copy, moved_wide)
        value = self.to_memory(value, dtype, wide)
        if not wide:
            pointer = self.address(access, 0)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, i64 {moved}")
            guard = self.guards(access.guards, 0, False)
            if valid is not None:
                guard = valid if guard is None else e.put(f"and i1 {guard}, {valid}")
            if guard is None:
                e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
                return
            write, after = self.fresh("write"), self.fresh("after")
            e.do(f"br i1 {guard}, label %{write}, label %{after}")
            e.label(write)
            e.do(f"store {kind} {value}, ptr {pointer}, align {size}")
            e.do(f"br label %{after}")
            e.label(after)
            return
        raw = "i16" if kind in ("half", "bfloat") else kind
        vector = e.vector(raw)
        if raw != kind:
            value = e.put(f"bitcast {e.vector(kind)} {value} to {vector}")
        mask = self.whole_mask(access, copy, valid, moved_wide)
        if access.offset.coefficient(self.vector_loop) == 1 and not moved_wide:
            pointer = self.address(access, copy)
            if moved is not None:
                pointer = e.put(f"getelementptr {kind}, ptr {pointer}, i64 {moved}")
            if mask is None:
                e.do(f"store {vector} {value}, ptr {pointer}, align {size}")
                return
            name = f"llvm.masked.store.{suffix(vector)}.p0"
            e.declares.add(f"declare void @{name}({vector}, ptr, i32, {e.vector('i1')})")
            e.do(f"call void @{name}({vector} {value}, ptr {pointer}, i32 {size}, {e.vector('i1')} {mask})")
            return
        pointers = self.lanes_addresses(access, copy, moved, moved_wide)
        name = f"llvm.masked.scatter.{suffix(vector)}.v{self.lanes}p0"
        e.declares.add(f"declare void @{name}({vector}, <{self.lanes} x ptr>, i32, {e.vector('i1')})")
        e.do(
            f"call void @{name}({vector} {value}, <{self.lanes} x ptr> {pointers}, i32 {size}, {e.vector('i1')} {mask or self.all_true()})"
        )

    # Reductions.

    def declare_accumulators(self, r: Reduce) -> None:
        dtype = r.value.dtype
        wide = self.wide
        kind = self.e.vector(compute_type(dtype)) if wide else compute_type(dtype)
        names = []
        for _ in range(4 if wide else 1):
            name = f"%acc{self.fresh('')}"
            self.entry.append(f"  {name} = alloca {kind}")
            names.append(name)
        self.accumulators[r, "slots"] = names
        if r.position is not None:
            indices = []
            index_kind = self.e.vector("i32") if wide else "i32"
            for name in names:
                self.entry.append(f"  {name}i = alloca {index_kind}")
                indices.append(f"{name}i")
            self.accumulators[r, "indices"] = indices

    def kind_of(self, r: Reduce) -> str:
        kind = compute_type(r.value.dtype)
        return self.e.vector(kind) if self.wide else kind

    def identity(self, r: Reduce) -> str:
        dtype = r.value.dtype
        k = r.kind
        if k in ("sum", "any"):
            value: Any = 0
        elif k in ("prod", "all"):
            value = 1
        else:
            largest = k in ("max", "argmax")
            if dtype.kind == "f":
                value = -pymath.inf if largest else pymath.inf
            elif dtype.kind == "b":
                value = not largest
            else:
                low, high = (
                    (-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)
                    if dtype.kind == "i"
                    else (0, (1 << dtype.bits) - 1)
                )
                value = low if largest else high
        return literal(value, dtype)

    def start(self, r: Reduce) -> None:
        e = self.e
        text = self.identity(r)
        kind = compute_type(r.value.dtype)
        splat = "<" + ", ".join([f"{kind} {text}"] * self.lanes) + ">" if self.wide else text
        for slot in self.accumulators[r, "slots"]:
            e.do(f"store {self.kind_of(r)} {splat}, ptr {slot}")
        if r.position is not None:
            index_kind = e.vector("i32") if self.wide else "i32"
            limit = "<" + ", ".join(["i32 2147483647"] * self.lanes) + ">" if self.wide else "2147483647"
            for slot in self.accumulators[r, "indices"]:
                e.do(f"store {index_kind} {limit}, ptr {slot}")

    def merge(self, r: Reduce, kind: str, x: str, y: str) -> str:
        e, dtype = self.e, r.value.dtype
        if r.kind == "sum":
            return e.put(f"{'fadd' if dtype.kind == 'f' else 'add'} {kind} {x}, {y}")
        if r.kind == "prod":
            return e.put(f"{'fmul' if dtype.kind == 'f' else 'mul'} {kind} {x}, {y}")
        if r.kind in ("any", "all"):
            return e.put(f"{'or' if r.kind == 'any' else 'and'} {kind} {x}, {y}")
        return extreme(e, kind, dtype, x, y, r.kind == "max")

    def join(self, r: Reduce) -> None:
        """Take one iteration's value into the accumulators."""
        e = self.e
        kind = self.kind_of(r)
        values = self.widened(r.value, self.wide)
        slots = self.accumulators[r, "slots"]
        for u in range(self.copies if self.wide else 1):
            value = values[u if len(values) > 1 else 0]
            slot = slots[u]
            before = e.put(f"load {kind}, ptr {slot}")
            if r.position is not None:
                self.join_position(r, kind, value, before, u)
                continue
            after = self.merge(r, kind, before, value)
            if self.mask is not None and self.across:
                after = choose(e, kind, self.mask, after, before)
            e.do(f"store {kind} {after}, ptr {slot}")

    def better(self, r: Reduce, kind: str, new: str, old: str) -> str:
        """Whether `new` beats `old`; NaN beats every number."""
        e, dtype = self.e, r.value.dtype
        largest = r.kind == "argmax"
        mask_kind = kind.replace(compute_type(dtype), "i1") if kind.startswith("<") else "i1"
        if dtype.kind == "f":
            more = e.put(f"fcmp {'ogt' if largest else 'olt'} {kind} {new}, {old}")
            nan = e.put(f"fcmp uno {kind} {new}, {new}")
            known = e.put(f"fcmp ord {kind} {old}, {old}")
            return e.put(f"or {mask_kind} {more}, {e.put(f'and {mask_kind} {nan}, {known}')}")
        op = ("sgt" if largest else "slt") if dtype.kind == "i" else ("ugt" if largest else "ult")
        return e.put(f"icmp {op} {kind} {new}, {old}")

    def join_position(self, r: Reduce, kind: str, value: str, before: str, copy: int) -> None:
        e = self.e
        assert r.position is not None
        slot, index_slot = self.accumulators[r, "slots"][copy], self.accumulators[r, "indices"][copy]
        index_kind = e.vector("i32") if self.wide else "i32"
        lanes = self.wide and r.position.coefficient(self.vector_loop) != 0
        here = self.place(r.position, copy, 32, lanes)
        if self.wide and not lanes:
            here = e.splat(here, "i32")
        old_index = e.put(f"load {index_kind}, ptr {index_slot}")
        take = self.better(r, kind, value, before)
        unset = e.put(
            f"icmp eq {index_kind} {old_index}, {'<' + ', '.join(['i32 2147483647'] * self.lanes) + '>' if self.wide else '2147483647'}"
        )
        take = e.put(f"or {e.vector('i1') if self.wide else 'i1'} {take}, {unset}")
        if r.valid is not None:
            take = e.put(
                f"and {e.vector('i1') if self.wide else 'i1'} {take}, {self.widened(r.valid, self.wide)[copy if self.varies[id(r.valid)] else 0]}"
            )
        if self.mask is not None and self.across:
            take = e.put(f"and {e.vector('i1')} {take}, {self.mask}")
        e.do(f"store {kind} {choose(e, kind, take, value, before)}, ptr {slot}")
        e.do(f"store {index_kind} {choose(e, index_kind, take, here, old_index)}, ptr {index_slot}")

    def finish(self, r: Reduce) -> None:
        """The result of a reduction from its accumulators."""
        e = self.e
        kind = self.kind_of(r)
        slots = self.accumulators[r, "slots"]
        if not self.across:
            source = "indices" if r.position is not None else "slots"
            index_kind = e.vector("i32") if self.wide else "i32"
            result = [
                e.put(f"load {index_kind if source == 'indices' else kind}, ptr {slot}")
                for slot in self.accumulators[r, source][: self.copies if self.wide else 1]
            ]
            self.accumulators[r, "result"] = result
            return
        if r.position is not None:
            self.accumulators[r, "result"] = [self.finish_position(r, kind)]
            return
        total = e.put(f"load {kind}, ptr {slots[0]}")
        for slot in slots[1:]:
            total = self.merge(r, kind, total, e.put(f"load {kind}, ptr {slot}"))
        if not self.wide:
            self.accumulators[r, "result"] = [total]
            return
        width = self.lanes
        while width > 1:
            half = width // 2
            order = ", ".join(f"i32 {half + i if i < half else i}" for i in range(self.lanes))
            turned = e.put(f"shufflevector {kind} {total}, {kind} undef, <{self.lanes} x i32> <{order}>")
            total = self.merge(r, kind, total, turned)
            width = half
        self.accumulators[r, "result"] = [e.put(f"extractelement {kind} {total}, i32 0")]

    def finish_position(self, r: Reduce, kind: str) -> str:
        e = self.e
        element = compute_type(r.value.dtype)
        best: Optional[str] = None
        place = ""
        for slot, index_slot in zip(self.accumulators[r, "slots"], self.accumulators[r, "indices"]):
            values = e.put(f"load {kind}, ptr {slot}")
            indices = e.put(f"load {e.vector('i32') if self.wide else 'i32'}, ptr {index_slot}")
            for lane in range(self.lanes):
                value = e.put(f"extractelement {kind} {values}, i32 {lane}") if self.wide else values
                index = e.put(f"extractelement {e.vector('i32')} {indices}, i32 {lane}") if self.wide else indices
                if best is None:
                    best, place = value, index
                    continue
                wins = self.better(r, element, value, best)
                loses = self.better(r, element, best, value)
                earlier = e.put(f"icmp slt i32 {index}, {place}")
                tie = e.put(f"and i1 {earlier}, {e.put(f'xor i1 {loses}, true')}")
                real = e.put(f"icmp ne i32 {index}, 2147483647")
                take = e.put(f"and i1 {e.put(f'or i1 {wins}, {tie}')}, {real}")
                void = e.put(f"icmp eq i32 {place}, 2147483647")
                take = e.put(f"or i1 {take}, {e.put(f'and i1 {void}, {real}')}")
                best = choose(e, element, take, value, best)
                place = choose(e, "i32", take, index, place)
        return place
