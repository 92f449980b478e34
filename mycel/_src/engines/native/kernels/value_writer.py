"""Emits the values of a kernel's expressions, and the statements that store them.

A value that varies over lanes is a list with one vector for each copy that is computed side by
side, any other a list of one scalar. Values are remembered in the scope of the loop in which they
were computed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from mycel._src.compiler.loops.programs import COMBINES
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.half_rounding import is_rounded
from mycel._src.engines.native.kernels.instruction_emitter import choose, compute_type, literal
from mycel._src.engines.native.kernels.kernel_form import Facts, Form
from mycel._src.engines.native.kernels.kernel_function import KernelFunction
from mycel._src.engines.native.kernels.loop_nest import Access, Expr, Reduce, Site, Store
from mycel._src.engines.native.kernels.memory_access import NOT_MOVED, MemoryWriter, Moved
from mycel._src.engines.native.kernels.open_loops import OpenLoops
from mycel._src.engines.native.llvm.half_conversion import ANY, EXACT
from mycel._src.foundation import dtype as D

__all__ = ["ValueWriter"]

# So many constants of a kernel are argument words.
MOST_CONSTANTS = 4


class ValueWriter:
    """A writer of values and stores, which reads and writes by the writer `memory`.

    `results` has the values of reductions that are known. The nest has the form `form` and `facts`;
    `function` is what is written, inside of `loops`. Constants that follow from sizes are loaded
    when it is made.
    """

    def __init__(
        self, form: Form, facts: Facts, function: KernelFunction, loops: OpenLoops, memory: MemoryWriter
    ) -> None:
        self.memory = memory
        self.results: dict[Reduce, list[str]] = {}
        self._form, self._function, self._loops = form, function, loops
        self._depths, self._varies, self._stages, self._late = facts.depths, facts.varies, facts.stages, facts.late
        self._e = function.e
        self._loaded: dict[int, str] = {}
        found = [x for x in facts.constants.values() if x is not None]
        for x in found if len(found) <= MOST_CONSTANTS else ():
            self._load_constant(x)

    def _load_constant(self, x: Expr) -> None:
        """Load a constant from an argument word, so that the text is without it."""
        function = self._function
        word = function.word("int", int(np.float32(x.data[0]).view(np.uint32)))
        if function.ix == "i64":
            function.entry.append(f"  {word}t = trunc i64 {word} to i32")
        bits_of = f"{word}t" if function.ix == "i64" else word
        function.entry.append(f"  {word}f = bitcast i32 {bits_of} to float")
        self._loaded[id(x)] = f"{word}f"
        if self._form.wide:
            kind = f"<{self._form.lanes} x float>"
            function.entry.append(f"  {word}i = insertelement {kind} undef, float {word}f, i32 0")
            zeros = f"<{self._form.lanes} x i32> zeroinitializer"
            function.entry.append(f"  {word}v = shufflevector {kind} {word}i, {kind} undef, {zeros}")

    # Values.

    def value(self, x: Expr) -> list[str]:
        """Return the SSA values of an expression.

        There is one for each copy where it varies over lanes, else one.
        """
        found = self._loops.known(id(x))
        if found is None:
            found = self._made(x)
            self._loops.remember(id(x), found)
        return found

    def widened(self, x: Expr, wide: bool) -> list[str]:
        """Return the values of an expression, as vectors where `wide`."""
        values = self.value(x)
        if not wide or self._varies[id(x)]:
            return values
        kind = compute_type(x.dtype)
        if id(x) in self._loaded:
            return [self._loaded[id(x)][:-1] + "v"]
        if x.kind == "const":
            return [self._function.repeated(kind, values[0])]
        found = self._loops.known(("splat", id(x)))
        if found is None:
            found = [self._e.splat(values[0], kind)]
            self._loops.remember(("splat", id(x)), found)
        return found

    def hoist(self, wanted: Iterable[Expr], depth: int, stage: int) -> None:
        """Compute what of the expressions `wanted` can be: outside of deeper loops than `depth`.

        Reductions up to `stage` have a result.
        """
        seen: set[int] = set()

        def visit(x: Expr) -> None:
            if id(x) in seen or x.kind == "reduced":
                return
            seen.add(id(x))
            for a in x.args:
                visit(a)
            if (
                id(x) not in self._late
                and self._depths[id(x)] <= depth
                and self._stages[id(x)] <= stage
                and x.kind != "const"
            ):
                self.value(x)

        for x in wanted:
            visit(x)

    def _made(self, x: Expr) -> list[str]:
        e, loops = self._e, self._loops
        if x.kind == "const":
            return [self._loaded.get(id(x)) or literal(x.data[0], x.dtype)]
        if x.kind in ("reduced", "scanned"):
            return self.results[x.data]
        wide = self._varies[id(x)]
        copies = range(loops.copies if wide else 1)
        if x.kind == "load":
            access, default = x.data
            return [self.memory.load(access, default, u, wide, self._moved(access, u, wide)) for u in copies]
        if x.kind == "index":
            return [self._index(x, u) for u in copies]
        if x.kind == "guard":
            true = self._function.all_true() if wide else "true"
            return [loops.guards(x.data, u, wide) or true for u in copies]
        if x.kind == "check":
            return self._checked(x)
        types = [a.dtype for a in x.args]
        operands = [self.widened(a, wide) for a in x.args]
        results = []
        for u in copies:
            values = [o[u if len(o) > 1 else 0] for o in operands]
            if x.data == "cast":
                results.append(instruction_emitter.cast(e, wide, values[0], types[0], x.dtype))
            else:
                results.append(instruction_emitter.operation(e, x.data, wide, x.dtype, values, types))
        return results

    def _index(self, x: Expr, copy: int) -> str:
        wide = self._varies[id(x)]
        bits = 64 if x.dtype.itemsize == 8 else self._form.near
        number = self._loops.place(x.data, copy, bits, wide)
        return instruction_emitter.cast(self._e, wide, number, D.int64 if bits == 64 else D.int32, x.dtype)

    # Stores.

    def store(self, s: Store) -> None:
        """Write the statement `s`."""
        access, dtype, loops = s.target, s.target.buffer.dtype, self._loops
        step = access.offset.coefficient(self._form.vector_loop)
        wide = self._form.wide and (self._varies[id(s.value)] or step != 0 or self._is_scattered(access))
        wide = wide and (s.full or not self._form.across)
        values = self.widened(s.value, wide)
        for u in range(loops.copies if wide else 1):
            value = values[u if len(values) > 1 else 0]
            known = EXACT if s.mode == "set" and is_rounded(s.value) else ANY
            if s.mode != "set":
                before = self.memory.load(access, 0, u, wide, self._moved(access, u, wide, reports=False))
                value = instruction_emitter.operation(
                    self._e, COMBINES[s.mode], wide, dtype, [before, value], [dtype, dtype]
                )
            self.memory.store(access, value, u, wide, self._moved(access, u, wide), known)

    # Indices that are data.

    def _is_scattered(self, access: Access) -> bool:
        """Return whether the indices of an access differ between lanes."""
        return any(self._varies[id(d[0])] for d in access.dynamic)

    def _moved(self, access: Access, copy: int, wide: bool, reports: bool = True) -> Moved:
        """Return what the data-dependent indices of an access add to its place.

        `wide` says whether the access is one of vectors. `copy` is the number of the vector among
        those computed side by side; an index out of range is reported where it `reports`.
        """
        if not access.dynamic:
            return NOT_MOVED
        e, function = self._e, self._function
        wide = wide and self._is_scattered(access)
        kind = e.vector("i64") if wide else "i64"
        total: str | None = None
        valid: str | None = None
        for n, (x, stride, size, site) in enumerate(access.dynamic):
            values = self.widened(x, wide)
            number = instruction_emitter.cast(e, wide, values[copy if len(values) > 1 else 0], x.dtype, D.int64)
            limit: str = function.resized(function.word_once(("dynamic", access, n), size), function.ix, 64)
            step: str = function.resized(function.word_once(("step", access, n), stride), function.ix, 64)
            if wide:
                limit, step = e.splat(limit, "i64"), e.splat(step, "i64")
            zero = "zeroinitializer" if wide else "0"
            given = number
            if site is None or site.wraps:
                negative = e.put(f"icmp slt {kind} {number}, {zero}")
                number = choose(e, kind, negative, e.put(f"add {kind} {number}, {limit}"), number)
            inside = e.put(f"icmp ult {kind} {number}, {limit}")
            if site is not None and reports:
                self._report(site, given, inside, wide)
            safe = choose(e, kind, inside, number, zero)
            moved = e.put(f"mul {kind} {safe}, {step}")
            total = moved if total is None else e.put(f"add {kind} {total}, {moved}")
            valid = inside if valid is None else e.put(f"and {e.vector('i1') if wide else 'i1'} {valid}, {inside}")
        assert total is not None and valid is not None
        return Moved(function.resized(total, "i64", function.bits, wide), valid, wide)

    def _checked(self, x: Expr) -> list[str]:
        """Return the values of an index, and report those out of range."""
        e, function, site, wide = self._e, self._function, x.data, self._varies[id(x)]
        values = self.widened(x.args[0], wide)
        kind = e.vector("i64") if wide else "i64"
        limit: str = function.resized(function.word_once(("limit", id(site)), site.size), function.ix, 64)
        if wide:
            limit = e.splat(limit, "i64")
        for value in values:
            number = given = instruction_emitter.cast(e, wide, value, x.dtype, D.int64)
            if site.wraps and x.dtype.kind == "i":
                negative = e.put(f"icmp slt {kind} {number}, {'zeroinitializer' if wide else '0'}")
                number = choose(e, kind, negative, e.put(f"add {kind} {number}, {limit}"), number)
            self._report(site, given, e.put(f"icmp ult {kind} {number}, {limit}"), wide)
        return values

    def _report(self, site: Site, number: str, inside: str, wide: bool) -> None:
        """Write code that reports an index out of range.

        Where an existing lane is not `inside`, the first such index of `number` is stored in the
        record of `site`, and the record's address in the program's status, if that is free.
        `number` and `inside` are vectors where `wide`.
        """
        e, function, lanes = self._e, self._function, self._form.lanes
        record = function.word_once(("site", id(site)), site, "site")
        if wide:
            kind, bits = e.vector("i1"), f"i{lanes}"
            if self._loops.mask is not None:
                absent = e.put(f"xor {kind} {self._loops.mask}, {function.all_true()}")
                inside = e.put(f"or {kind} {inside}, {absent}")
            flags = e.put(f"bitcast {kind} {inside} to {bits}")
            passes = e.put(f"icmp eq {bits} {flags}, -1")
        else:
            passes = inside
        outside, note, on = (function.fresh(n) for n in ("outside", "note", "on"))
        e.do(f"br i1 {passes}, label %{on}, label %{outside}, !prof !0")
        e.label(outside)
        status = e.put(f"load ptr, ptr {e.put(f'getelementptr i64, ptr {record}, i64 1')}")
        before = e.put(f"load atomic i64, ptr {status} monotonic, align 8")
        e.do(f"br i1 {e.put(f'icmp eq i64 {before}, 0')}, label %{note}, label %{on}")
        e.label(note)
        if wide:
            first = e.intrinsic(bits, f"llvm.cttz.{bits}", [bits, "i1"], [e.put(f"xor {bits} {flags}, -1"), "true"])
            place = first if lanes == 32 else e.put(f"{'zext' if lanes < 32 else 'trunc'} {bits} {first} to i32")
            number = e.put(f"extractelement {e.vector('i64')} {number}, i32 {place}")
        e.do(f"store i64 {number}, ptr {record}")
        e.do(f"store atomic i64 {e.put(f'ptrtoint ptr {record} to i64')}, ptr {status} monotonic, align 8")
        e.do(f"br label %{on}")
        e.label(on)
        function.has_sites = True
