"""Emits the values of a kernel: positions, guards and operations on vectors and scalars.

A `KernelWriter` knows a nest's accesses and the state of the code so far: the open loops, their
positions, and how many copies of each vector are computed side by side. A value that varies over
lanes is a list with one vector for each copy, any other a list of one scalar. Values are remembered
in the scope of the loop in which they were computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, is_one, is_zero
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.instruction_emitter import Emitter, choose, compute_type, literal
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Expr, Guard, Nest, Site, reaches_far
from mycel._src.engines.native.kernels.loop_schedule import row_work
from mycel._src.engines.native.llvm.target import target
from mycel._src.foundation import dtype as D

__all__ = ["TICKS", "KernelWriter", "Word"]

Word = tuple[str, Any]
# A row of so many iterations, some 20 milliseconds at least, is worth a question on the way;
# `TICKS` iterations of its loops pass between two.
LONG, TICKS = 1 << 26, 1 << 20
# So many constants of a kernel are argument words; multiples of one over `SIMPLE` up to it are not.
MOST_CONSTANTS, SIMPLE = 4, 64


class KernelWriter:
    """A writer of a kernel's values, with the state of its text."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.vector_loop = len(nest.loops) - 1
        kinds = [loop.kind for loop in nest.loops]
        extent = nest.loops[-1].extent
        widest = max([s.value.dtype.itemsize for s in nest.stores if s.value.dtype.itemsize <= 4], default=4)
        lanes = 1 if target().scalar else max(target().vector_bytes // max(widest, 4), 2)
        scalar = nest.scalar or is_one(extent)
        self.lanes = 1 if scalar else lanes
        self.wide = not scalar
        self.e = Emitter(self.lanes)
        self.inner = [k for k, kind in enumerate(kinds) if kind != "p"]
        self.across = kinds[-1] == "r" or (self.wide and kinds[-1] == "s")
        parallel = [k for k, kind in enumerate(kinds) if kind == "p"]
        if self.across or kinds[-1] == "s":
            self.rows = parallel
            self.code = parallel + [k for k in self.inner]
            self.row_depth = len(parallel)
        else:
            self.rows = parallel[:-1]
            self.code = parallel + self.inner
            self.row_depth = len(parallel)
        self.tile = nest.tile
        self.tiles: dict[Access, str] = {}
        self.tile_start = ""
        if self.tile is not None:
            self.code = [k for k in parallel if k != self.tile] + [self.tile]
        self.depth_of = {k: i + 1 for i, k in enumerate(self.code)}
        self.words: list[Word] = []
        self.entry: list[str] = []
        self.pointers: dict[Any, str] = {}
        # The type of positions, and the bits of those that guards and vectors of lanes compare.
        self.ix = f"i{target().index_bits}"
        self.near = 64 if reaches_far(nest) else 32
        self.scopes: list[dict[Any, Any]] = [{}]
        self.offsets: list[dict[int, str | None]] = [{}]
        self.position: dict[int, Any] = {}
        self.mask: str | None = None
        # The guards that are known to hold.
        self.held: frozenset[Guard] | set[Guard] = frozenset()
        self.left = ""
        self.copies = self.most_copies = 1
        self.labels = 0
        self.strides: dict[tuple[int, int], str] = {}
        self.extents: dict[int, Any] = {}
        self.accesses: list[Access] = []
        self.access_index: dict[Access, int] = {}
        self.depths: dict[int, int] = {}
        self.varies: dict[int, bool] = {}
        self.stages: dict[int, int] = {}
        self.late: set[int] = set()
        self.accumulators: dict[Any, list[str]] = {}
        # Constants, None for those that are part of the text, and the names of those loaded.
        self.constants: dict[int, Expr | None] = {}
        self.loaded: dict[int, str] = {}
        self.has_sites = False
        self.listens = row_work(nest, self.rows or ([] if self.across else parallel)) >= LONG

    # Analysis.

    def analyse(self, x: Expr) -> None:
        """Find the depth, lane dependence and stage of an expression.

        The depth is the number of loops in the code around it.
        """
        if id(x) in self.depths:
            return
        if x.kind == "scanned":
            self.analyse(x.args[0])
            self.late.add(id(x))
            self.depths[id(x)] = max(self.depth_of.values())
            self.varies[id(x)] = self.wide
            self.stages[id(x)] = self.stages[id(x.args[0])]
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
            if a.kind == "const":
                self.note_constant(a, x.data if x.kind == "op" else "")
            depth, wide = max(depth, self.depths[id(a)]), wide or self.varies[id(a)]
            stage = max(stage, self.stages[id(a)])
        if any(id(a) in self.late for a in x.args):
            self.late.add(id(x))
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
            for x, *_ in access.dynamic:
                self.analyse(x)

    # Words.

    def note_constant(self, x: Expr, operation: str) -> None:
        """Note a constant that an operation uses."""
        known = self.constants.get(id(x))
        if known is None or known:
            fits = x.dtype is D.float32 and operation in ("mul", "div") and _is_of_sizes(x.data[0], operation)
            self.constants[id(x)] = x if fits else None

    def load_constants(self) -> None:
        """Load constants that follow from sizes from argument words, so that the text is without
        them.
        """
        found = [x for x in self.constants.values() if x is not None]
        for x in found if len(found) <= MOST_CONSTANTS else ():
            bits = int(np.float32(x.data[0]).view(np.uint32))
            word = self.word("int", bits)
            if self.ix == "i64":
                self.entry.append(f"  {word}t = trunc i64 {word} to i32")
            bits_of = f"{word}t" if self.ix == "i64" else word
            self.entry.append(f"  {word}f = bitcast i32 {bits_of} to float")
            self.loaded[id(x)] = f"{word}f"
            if self.wide:
                kind = f"<{self.lanes} x float>"
                self.entry.append(f"  {word}i = insertelement {kind} undef, float {word}f, i32 0")
                zeros = f"<{self.lanes} x i32> zeroinitializer"
                self.entry.append(f"  {word}v = shufflevector {kind} {word}i, {kind} undef, {zeros}")

    def word(self, kind: str, value: Any) -> str:
        """Return the SSA name of an argument word, loaded at the function's entry."""
        name = f"%w{len(self.words)}"
        index = len(self.words)
        self.words.append((kind, value))
        self.entry.append(f"  {name}p = getelementptr i64, ptr %words, i64 {index}")
        if kind != "int" or self.ix == "i64":
            self.entry.append(f"  {name} = load {'i64' if kind == 'int' else 'ptr'}, ptr {name}p")
        else:
            self.entry += [f"  {name}l = load i64, ptr {name}p", f"  {name} = trunc i64 {name}l to {self.ix}"]
        return name

    def resized(self, value: str, kind: str, bits: int, wide: bool = False) -> str:
        """Return `value`, an index of type `kind`, in `bits` bits; vectors where `wide`."""
        other, e = f"i{bits}", self.e
        if other == kind:
            return value
        how = "trunc" if bits < int(kind[1:]) else "sext"
        return e.put(f"{how} {e.vector(kind) if wide else kind} {value} to {e.vector(other) if wide else other}")

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
        e.do(f"{iv} = phi {self.ix} [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt {self.ix} {iv}, {end}')}, label %{body}, label %{leave}")
        e.label(body)
        yield iv
        if self.listens:
            self.listen()
        e.do(f"br label %{latch}")
        e.label(latch)
        e.do(f"{following} = add {self.ix} {iv}, {step}")
        e.do(f"br label %{head}")
        e.label(leave)

    def listen(self) -> None:
        """Write, at the end of an iteration of very long rows, a test whether the run is to end.

        The test runs from time to time, and ends the kernel.
        """
        e = self.e
        if "ticks" not in self.pointers:
            self.pointers["ticks"] = "%ticks"
            self.entry += ["  %ticks = alloca i64", f"  store i64 {TICKS}, ptr %ticks"]
        ask, stop, on = (self.fresh(n) for n in ("ask", "stop", "on"))
        left = e.put(f"sub i64 {e.put('load i64, ptr %ticks')}, 1")
        e.do(f"store i64 {left}, ptr %ticks")
        e.do(f"br i1 {e.put(f'icmp sgt i64 {left}, 0')}, label %{on}, label %{ask}")
        e.label(ask)
        e.do(f"store i64 {TICKS}, ptr %ticks")
        asks, status = self.word_once("listen", 0, "listen"), self.word_once("status", 0, "status")
        e.do(f"br i1 {e.put(f'call i1 {asks}(ptr {status})')}, label %{stop}, label %{on}")
        e.label(stop)
        e.do("ret void")
        e.label(on)

    @contextmanager
    def stretches(self, start: str, end: str, extent: str) -> Iterator[tuple[str, str, str]]:
        """Write a loop over a flat range of rows by the number of the outer iteration.

        Yields that number, and where its rows begin and end.
        """
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("head", "body", "latch", "leave"))
        e.do(f"br label %{head}")
        before = e.block
        e.label(head)
        p, following = e.name(), e.name()
        e.do(f"{p} = phi {self.ix} [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt {self.ix} {p}, {end}')}, label %{body}, label %{leave}")
        e.label(body)
        number = e.put(f"udiv {self.ix} {p}, {extent}")
        first = e.put(f"sub {self.ix} {p}, {e.put(f'mul {self.ix} {number}, {extent}')}")
        reach = e.put(f"add {self.ix} {first}, {e.put(f'sub {self.ix} {end}, {p}')}")
        less = e.put(f"icmp slt {self.ix} {reach}, {extent}")
        stop = e.put(f"select i1 {less}, {self.ix} {reach}, {self.ix} {extent}")
        yield number, first, stop
        e.do(f"br label %{latch}")
        e.label(latch)
        done = e.put(f"sub {self.ix} {stop}, {first}")
        e.do(f"{following} = add {self.ix} {p}, {done}")
        e.do(f"br label %{head}")
        e.label(leave)

    @contextmanager
    def scope(self, loop: int | None, position: Any) -> Iterator[None]:
        """Write code inside one more loop at a position.

        Offsets and values computed in it are forgotten when the block ends.
        """
        self.scopes.append({})
        previous = self.offsets[-1]
        mine = dict(previous)
        if loop is not None:
            self.position[loop] = position
            for i, access in enumerate(self.accesses):
                stride = access.offset.coefficient(loop)
                if not is_zero(stride) and position != 0:
                    step = self.stride(i, loop, stride)
                    moved = position if step is None else self.e.put(f"mul {self.ix} {position}, {step}")
                    mine[i] = moved if mine.get(i) is None else self.e.put(f"add {self.ix} {mine[i]}, {moved}")
        self.offsets.append(mine)
        try:
            yield
        finally:
            self.scopes.pop()
            self.offsets.pop()
            if loop is not None:
                self.position.pop(loop)

    def stride(self, access: int, loop: int, value: Any) -> str | None:
        """Return the word of an access's stride; None for the unit stride of the vector loop."""
        if loop == self.vector_loop and is_one(value):
            return None
        return self.strides[access, loop]

    def iota(self, kind: str, first: int = 0, step: int = 1) -> str:
        return "<" + ", ".join(f"{kind} {first + i * step}" for i in range(self.lanes)) + ">"

    # Values.

    def value(self, x: Expr) -> list[str]:
        """Return the SSA values of an expression.

        There is one for each copy where it varies over lanes, else one.
        """
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
            return [self.loaded.get(id(x)) or literal(x.data[0], x.dtype)]
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
        if x.kind == "check":
            return self.check(x)
        if x.kind in ("reduced", "scanned"):
            return self.accumulators[x.data, "result"]
        wide = self.varies[id(x)]
        types = [a.dtype for a in x.args]
        operands = [self.widened(a, wide) for a in x.args]
        results = []
        for u in range(self.copies if wide else 1):
            values = [o[u if len(o) > 1 else 0] for o in operands]
            if x.data == "cast":
                results.append(instruction_emitter.cast(e, wide, values[0], types[0], x.dtype))
            else:
                results.append(instruction_emitter.operation(e, x.data, wide, x.dtype, values, types))
        return results

    def widened(self, x: Expr, wide: bool) -> list[str]:
        """Return the values of an expression, as vectors where `wide`."""
        values = self.value(x)
        if not wide or self.varies[id(x)]:
            return values
        kind = compute_type(x.dtype)
        if id(x) in self.loaded:
            return [self.loaded[id(x)][:-1] + "v"]
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
        """Return an affine position as an integer of `bits` bits, a vector where `wide`.

        `copy` is the number of the vector among those computed side by side.
        """
        e = self.e
        total: str | None = None
        const: Any = position.const
        for loop, c in position.terms:
            at = self.position[loop]
            if isinstance(at, int):
                const = const + c * at
                continue
            term = at if is_one(c) else e.put(f"mul {self.ix} {at}, {self.number(c)}")
            total = term if total is None else e.put(f"add {self.ix} {total}, {term}")
        step: Any = position.coefficient(self.vector_loop) if wide else 0
        const = const + step * copy * self.lanes
        if total is None:
            base = total = self.number(const)
            narrow_known = not isinstance(const, Dim)
        else:
            base = total if is_zero(const) else e.put(f"add {self.ix} {total}, {self.number(const)}")
            narrow_known = False
        kind = f"i{bits}"
        if not narrow_known:
            base = self.resized(base, self.ix, bits)
        if not wide:
            return base
        if not isinstance(step, Dim):
            return e.put(f"add {e.vector(kind)} {e.splat(base, kind)}, {self.iota(kind, 0, step)}")
        word = self.resized(self.number(step), self.ix, bits)
        lanes = e.put(f"mul {e.vector(kind)} {e.splat(word, kind)}, {self.iota(kind)}")
        return e.put(f"add {e.vector(kind)} {e.splat(base, kind)}, {lanes}")

    def number(self, value: Any) -> str:
        """Return a number as a literal, or the word of one that a symbolic size decides."""
        return self.word_once(("number", value), value) if isinstance(value, Dim) else str(value)

    def index(self, x: Expr, copy: int) -> str:
        wide = self.varies[id(x)]
        bits = 64 if x.dtype.itemsize == 8 else self.near
        number = self.place(x.data, copy, bits, wide)
        return instruction_emitter.cast(self.e, wide, number, D.int64 if bits == 64 else D.int32, x.dtype)

    def guards(self, guards: Any, copy: int, wide: bool) -> str | None:
        """Return whether every guard holds; None where there are none."""
        e = self.e
        result: str | None = None
        for position, size in guards:
            if (position, size) in self.held:
                continue
            lanes = wide and not is_zero(position.coefficient(self.vector_loop))
            kind = f"i{self.near}"
            at = self.place(position, copy, self.near, lanes)
            limit = self.limit(position, size)
            if lanes:
                one = e.put(f"icmp ult {e.vector(kind)} {at}, {e.splat(limit, kind)}")
            else:
                one = e.put(f"icmp ult {kind} {at}, {limit}")
                if wide:
                    one = e.splat(one, "i1")
            result = one if result is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {result}, {one}")
        return result

    def limit(self, position: Affine, size: Any) -> str:
        """Return the size that a guard compares with, in the type of positions."""
        word = self.size_word(position, size)
        return self.resized(word, self.ix, self.near)

    def size_word(self, position: Affine, size: Any) -> str:
        key = ("size", position, size)
        if key not in self.pointers:
            self.pointers[key] = self.word("int", size)
        return self.pointers[key]

    def dynamic(self, access: Access, copy: int, wide: bool, reports: bool = True) -> tuple[str | None, str | None]:
        """Return the offset that data-dependent indices add, and whether they are in range.

        They are those of `access`; both results are vectors where `wide`. `copy` is the number of
        the vector among those computed side by side; an index out of range is reported where it
        `reports`.
        """
        e = self.e
        kind = e.vector("i64") if wide else "i64"
        total: str | None = None
        valid: str | None = None
        for n, (x, stride, size, site) in enumerate(access.dynamic):
            values = self.widened(x, wide)
            number = instruction_emitter.cast(e, wide, values[copy if len(values) > 1 else 0], x.dtype, D.int64)
            limit: str = self.resized(self.word_once(("dynamic", access, n), size), self.ix, 64)
            step: str = self.resized(self.word_once(("step", access, n), stride), self.ix, 64)
            if wide:
                limit, step = e.splat(limit, "i64"), e.splat(step, "i64")
            zero = "zeroinitializer" if wide else "0"
            given = number
            if site is None or site.wraps:
                negative = e.put(f"icmp slt {kind} {number}, {zero}")
                number = choose(e, kind, negative, e.put(f"add {kind} {number}, {limit}"), number)
            inside = e.put(f"icmp ult {kind} {number}, {limit}")
            if site is not None and reports:
                self.report(site, given, inside, wide)
            safe = choose(e, kind, inside, number, zero)
            moved = e.put(f"mul {kind} {safe}, {step}")
            total = moved if total is None else e.put(f"add {kind} {total}, {moved}")
            valid = inside if valid is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {valid}, {inside}")
        return None if total is None else self.resized(total, "i64", int(self.ix[1:]), wide), valid

    def check(self, x: Expr) -> list[str]:
        """Return the values of an index, and report those out of range."""
        e, site, wide = self.e, x.data, self.varies[id(x)]
        values = self.widened(x.args[0], wide)
        kind = e.vector("i64") if wide else "i64"
        limit: str = self.resized(self.word_once(("limit", id(site)), site.size), self.ix, 64)
        if wide:
            limit = e.splat(limit, "i64")
        for value in values:
            number = given = instruction_emitter.cast(e, wide, value, x.dtype, D.int64)
            if site.wraps and x.dtype.kind == "i":
                negative = e.put(f"icmp slt {kind} {number}, {'zeroinitializer' if wide else '0'}")
                number = choose(e, kind, negative, e.put(f"add {kind} {number}, {limit}"), number)
            self.report(site, given, e.put(f"icmp ult {kind} {number}, {limit}"), wide)
        return values

    def report(self, site: Site, number: str, inside: str, wide: bool) -> None:
        """Write code that reports an index out of range.

        Where an existing lane is not `inside`, the first such index of `number` is stored in the
        record of `site`, and the record's address in the program's status, if that is free.
        `number` and `inside` are vectors where `wide`.
        """
        e = self.e
        record = self.word_once(("site", id(site)), site, "site")
        if wide:
            kind, bits = e.vector("i1"), f"i{self.lanes}"
            if self.mask is not None:
                inside = e.put(f"or {kind} {inside}, {e.put(f'xor {kind} {self.mask}, {self.all_true()}')}")
            lanes = e.put(f"bitcast {kind} {inside} to {bits}")
            passes = e.put(f"icmp eq {bits} {lanes}, -1")
        else:
            passes = inside
        outside, note, on = (self.fresh(n) for n in ("outside", "note", "on"))
        e.do(f"br i1 {passes}, label %{on}, label %{outside}, !prof !0")
        e.label(outside)
        status = e.put(f"load ptr, ptr {e.put(f'getelementptr i64, ptr {record}, i64 1')}")
        before = e.put(f"load atomic i64, ptr {status} monotonic, align 8")
        e.do(f"br i1 {e.put(f'icmp eq i64 {before}, 0')}, label %{note}, label %{on}")
        e.label(note)
        if wide:
            first = e.intrinsic(bits, f"llvm.cttz.{bits}", [bits, "i1"], [e.put(f"xor {bits} {lanes}, -1"), "true"])
            place = (
                first if self.lanes == 32 else e.put(f"{'zext' if self.lanes < 32 else 'trunc'} {bits} {first} to i32")
            )
            number = e.put(f"extractelement {e.vector('i64')} {number}, i32 {place}")
        e.do(f"store i64 {number}, ptr {record}")
        e.do(f"store atomic i64 {e.put(f'ptrtoint ptr {record} to i64')}, ptr {status} monotonic, align 8")
        e.do(f"br label %{on}")
        e.label(on)
        self.has_sites = True

    def word_once(self, key: Any, value: Any, kind: str = "int") -> str:
        if key not in self.pointers:
            self.pointers[key] = self.word(kind, value)
        return self.pointers[key]

    def load(self, x: Expr) -> list[str]:
        """Return the vectors or the scalar of a load, which `MemoryWriter` writes."""
        raise NotImplementedError


def _is_of_sizes(value: float, operation: str) -> bool:
    """Return whether a factor or divisor is likely to differ between layers, as one over the number
    of elements does, and is not turned into something quicker by LLVM.
    """
    if not math.isfinite(value) or value == 0:
        return False
    if operation == "div" and math.frexp(value)[0] in (0.5, -0.5):
        return False
    return abs(value) > SIMPLE or not float(value * SIMPLE).is_integer()
