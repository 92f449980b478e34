"""Scalar code of loop programs whose statements have an order: loops, branches and elements.

Nests without an order become vector code elsewhere; here a statement of a program, with all that is
inside it, becomes one kernel of scalar code, which LLVM's own passes move and vectorise. Pointers
are arguments that do not overlap. A place that is not proved to be inside of its array is tested,
and ends the kernel with a report. Where the outermost loop's iterations do not meet, threads share
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, is_one, product
from mycel._src.compiler.loops import legality
from mycel._src.compiler.loops.access_analysis import highest
from mycel._src.compiler.loops.formulas import Formula, Place
from mycel._src.compiler.loops.operation_counts import counted
from mycel._src.compiler.loops.programs import COMBINES, Array, For, If, Set, Statement, listed, statements
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.codegen import NAME, Kernel
from mycel._src.engines.native.kernels.instruction_emitter import Emitter, choose, compute_type, literal, memory_type
from mycel._src.engines.native.kernels.kernel_function import TICKS
from mycel._src.engines.native.kernels.loop_nest import Site
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.llvm.half_conversion import narrow, widen
from mycel._src.engines.native.llvm.jit import LOOPS_MARK
from mycel._src.engines.native.math import function_definitions as vector_math
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = ["LoopWriter", "Round", "is_shared", "longest_of"]


class Round(NamedTuple):
    """One round of a loop that is run as steps, and where its number from 0 lies."""

    loop: For
    number: View


class LoopWriter:
    """The writer of a statement's kernel.

    `views` are the places of the arrays that are not private, `arrays` all arrays by name. `site`
    returns where an index out of range is reported, for an array, an axis and its size. With
    `reassociate`, sums and products of floats may be associated in another way.
    """

    def __init__(
        self,
        views: Mapping[str, View],
        arrays: Mapping[str, Array],
        site: Callable[[str, int, DimLike], Site],
        reassociate: bool,
    ) -> None:
        self.views, self.arrays, self.site, self.reassociate = views, arrays, site, reassociate
        self.e = Emitter(1)
        self.words: list[tuple[str, object]] = []
        self.parameters: list[tuple[str, str]] = []
        self.known_words: dict[object, str] = {}
        self.position: dict[str, str] = {}
        self.local: dict[str, str] = {}
        # Private arrays with an element for each lane of vectors.
        self.wide_arrays: set[str] = set()
        self.loops: list[For] = []
        self.conditions: list[Formula] = []
        self.entry: list[str] = []
        self.labels = 0
        self.listens = False

    def run(self, statement: Statement, around: Round | None = None) -> Kernel:
        """Return the kernel of a statement, which may be part of a round of a loop around it."""
        extent: DimLike = 1
        longest: DimLike | None = None
        if around is not None:
            self.enter_round(around)
            longest = longest_of(statement, around.loop)
        if longest is not None and isinstance(statement, For):
            extent = longest
            start, stop = self.dimension(statement.start), self.dimension(statement.stop)
            first = choose(self.e, "i64", self.e.put(f"icmp sgt i64 {start}, %begin"), start, "%begin")
            last = choose(self.e, "i64", self.e.put(f"icmp slt i64 {stop}, %end"), stop, "%end")
            self.plain_loop(statement, first, last)
        elif around is None and isinstance(statement, For) and is_shared(statement):
            extent = statement.stop - statement.start
            start = self.dimension(statement.start)
            first = self.e.put(f"add i64 %begin, {start}")
            last = self.e.put(f"add i64 %end, {start}")
            self.plain_loop(statement, first, last)
        else:
            self.block((statement,))
        self.e.do("ret void")
        around_it = () if around is None else (around.loop,)
        counts, listing = tuple(counted(statement, self.arrays, around_it)), tuple(listed(statement))
        work = _work(statement, frozenset([x.index for x in around_it]))
        return Kernel(self.text(), self.words, extent, work, "one by one", listing, counts)

    def enter_round(self, around: Round) -> None:
        """Read the index of a loop around the statement from where its rounds are counted."""
        s, e = around.loop, self.e
        pointer = self.word("pointer", around.number.buffer, id(around.number.buffer))
        count = e.put(f"load i64, ptr {pointer}")
        if s.backward:
            self.position[s.index] = e.put(f"sub nsw i64 {self.dimension(s.stop - 1)}, {count}")
        else:
            self.position[s.index] = e.put(f"add nsw i64 {self.dimension(s.start)}, {count}")
        self.loops.append(s)

    def text(self) -> str:
        types = ", ".join(f"{kind} {name}" for name, kind in self.parameters)
        loads, given = [], []
        for k, (name, kind) in enumerate(self.parameters):
            plain = kind.split()[0]
            loads.append(f"  {name}p = getelementptr i64, ptr %words, i64 {k}")
            loads.append(f"  {name} = load {plain}, ptr {name}p")
            given.append(f"{plain} {name}")
        comma = ", " if given else ""
        parts = [
            LOOPS_MARK,
            f"define internal void @body({types}{comma}i64 %begin, i64 %end) alwaysinline nounwind {{",
            "entry:",
            *self.entry,
            *self.e.lines,
            "}",
            f"define void @{NAME}(ptr noalias readonly %words, i64 %begin, i64 %end) nounwind {{",
            "entry:",
            *loads,
            f"  call void @body({', '.join(given)}{comma}i64 %begin, i64 %end)",
            "  ret void",
            "}",
        ]
        if self.e.math:
            parts.append(vector_math.definitions(sorted(self.e.math)))
        known = "\n".join(parts)
        parts.extend(d for d in sorted(self.e.declares) if d not in known)
        return "\n".join(parts) + "\n"

    # Words.

    def word(self, kind: str, value: object, key: object) -> str:
        found = self.known_words.get(key)
        if found is None:
            found = self.known_words[key] = f"%w{len(self.words)}"
            self.words.append((kind, value))
            self.parameters.append((found, "i64" if kind == "int" else "ptr noalias" if kind == "pointer" else "ptr"))
        return found

    def fresh(self, name: str) -> str:
        self.labels += 1
        return f"{name}{self.labels}"

    # Dimensions.

    def dimension(self, value: DimLike) -> str:
        """Return a dimension as an integer: a word where it has no index, else arithmetic."""
        if not isinstance(value, Dim):
            return str(value)
        if not any(n in self.position for n in symbols_in(value)):
            return self.word("int", value, ("int", value))
        e = self.e
        total = ""
        for mono, c in value.terms.items():
            fixed: DimLike = c
            factors = []
            for atom, power in mono:
                single = Dim({((atom, 1),): 1})
                if any(n in self.position for n in symbols_in(single)):
                    if atom.operator == "symbol":
                        factors += [self.position[atom.name]] * power
                    else:
                        factors += [self.quotient(atom.operator, *atom.operands)] * power
                else:
                    fixed = fixed * product([single] * power)
            part = "" if is_one(fixed) and factors else self.dimension(fixed)
            for f in factors:
                part = f if not part else e.put(f"mul nsw i64 {part}, {f}")
            total = part if not total else e.put(f"add nsw i64 {total}, {part}")
        return total

    def quotient(self, operator: str, left: DimLike, right: DimLike) -> str:
        x, y = self.dimension(left), self.dimension(right)
        if operator == "max":
            return choose(self.e, "i64", self.e.put(f"icmp sgt i64 {x}, {y}"), x, y)
        name = "floor_div" if operator == "//" else "mod"
        return instruction_emitter.operation(self.e, name, False, D.int64, [x, y], [D.int64, D.int64])

    def wide_integer(self, name: str, x: str, y: str) -> str:
        """Return an operation on vectors of integers."""
        return instruction_emitter.operation(self.e, name, True, D.int64, [x, y], [D.int64, D.int64])

    # Statements.

    def block(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Set):
                self.set(s)
            elif isinstance(s, If):
                self.branch(s)
            else:
                self.loop(s, self.dimension(s.start), self.dimension(s.stop))

    def loop(self, s: For, start: str, stop: str) -> None:
        if type(s.start) is type(s.stop) is int and s.stop - s.start == 1:
            # Its body alone, with what is private to it.
            self.position[s.index] = start
            self.loops.append(s)
            self.run_once(s)
            self.loops.pop()
            del self.position[s.index]
        elif not (s.mark == "vectorize" and self.lane_loop(s, start, stop)):
            self.plain_loop(s, start, stop)

    def lane_loop(self, s: For, start: str, stop: str) -> bool:
        """Write a loop with its iterations as lanes of vectors; return whether that can be."""
        return False

    def is_flat(self, s: For) -> bool:
        """Return whether a loop is written without a loop."""
        return False

    def plain_loop(self, s: For, start: str, stop: str) -> None:
        self.counted(s, start, stop, self.run_once)
        innermost = all(self.is_flat(x) for x in statements(s.body) if isinstance(x, For))
        if self.loops and innermost and not self.is_flat(s):
            self.listen(self.e.put(f"sub i64 {stop}, {start}"))

    def run_once(self, s: For) -> None:
        for a in s.private:
            self.declare(a)
        self.block(s.body)

    def counted(self, s: For, start: str, stop: str, run: Callable[[For], None]) -> None:
        """Write the loop `s`, whose iterations, one by one, `run` writes.

        `start` and `stop` are its bounds as they are now.
        """
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("head", "body", "latch", "leave"))
        before = e.block
        e.do(f"br label %{head}")
        e.label(head)
        count, following = e.name(), e.name()
        e.do(f"{count} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"br i1 {e.put(f'icmp slt i64 {count}, {stop}')}, label %{body}, label %{leave}")
        e.label(body)
        at = count
        if s.backward:
            last = e.put(f"sub nsw i64 {e.put(f'add nsw i64 {start}, {stop}')}, 1")
            at = e.put(f"sub nsw i64 {last}, {count}")
        self.position[s.index] = at
        self.loops.append(s)
        run(s)
        self.loops.pop()
        del self.position[s.index]
        e.do(f"br label %{latch}")
        e.label(latch)
        e.do(f"{following} = add nsw i64 {count}, 1")
        e.do(f"br label %{head}")
        e.label(leave)

    def listen(self, rounds: str) -> None:
        """Write, behind an innermost loop, a test whether the run is to end.

        It runs from time to time, as the numbers of `rounds` add up, and ends the kernel.
        """
        e = self.e
        if not self.listens:
            self.listens = True
            self.entry += ["  %ticks = alloca i64", f"  store i64 {TICKS}, ptr %ticks"]
        left = e.put(f"sub i64 {e.put('load i64, ptr %ticks')}, {rounds}")
        e.do(f"store i64 {left}, ptr %ticks")
        ask, stop, on = (self.fresh(n) for n in ("ask", "stop", "on"))
        e.do(f"br i1 {e.put(f'icmp sgt i64 {left}, 0')}, label %{on}, label %{ask}")
        e.label(ask)
        e.do(f"store i64 {TICKS}, ptr %ticks")
        asks, status = self.word("listen", 0, "listen"), self.word("status", 0, "status")
        e.do(f"br i1 {e.put(f'call i1 {asks}(ptr {status})')}, label %{stop}, label %{on}")
        e.label(stop)
        e.do("ret void")
        e.label(on)

    def declare(self, array: Array) -> None:
        """Give a private array of known size a place on the stack, and fill it."""
        if array.name in self.views:
            return
        kind = memory_type(array.dtype)
        size = product(array.shape)
        self.local[array.name] = f"%m{len(self.entry)}"
        self.entry.append(f"  {self.local[array.name]} = alloca [{size} x {kind}], align 64")
        if array.fill is not None:
            value = self.to_memory(literal(array.fill, array.dtype), array.dtype)
            for k in range(int(size)):
                pointer = self.e.put(f"getelementptr {kind}, ptr {self.local[array.name]}, i64 {k}")
                self.e.do(f"store {kind} {value}, ptr {pointer}")

    def branch(self, s: If) -> None:
        self.branched(s, self.value(s.condition), self.block)

    def branched(self, s: If, test: str, run: Callable[[Sequence[Statement]], None]) -> None:
        """Write a condition whose value is `test`, and its branches as `run` writes them."""
        e = self.e
        then, other, after = (self.fresh(n) for n in ("then", "else", "after"))
        e.do(f"br i1 {test}, label %{then}, label %{other if s.other else after}")
        e.label(then)
        with self.under(legality.conjuncts(s.condition)):
            run(s.body)
        e.do(f"br label %{after}")
        if s.other:
            e.label(other)
            with self.under([legality.opposite(s.condition)]):
                run(s.other)
            e.do(f"br label %{after}")
        e.label(after)

    @contextmanager
    def under(self, conditions: Sequence[Formula]) -> Iterator[None]:
        self.conditions += conditions
        yield
        del self.conditions[len(self.conditions) - len(conditions) :]

    def set(self, s: Set) -> None:
        e, dtype = self.e, self.arrays[s.array].dtype
        value = self.value(s.value)
        pointer = self.address(s.array, s.place)
        kind = memory_type(dtype)
        if s.mode != "set":
            before = self.from_memory(e.put(f"load {kind}, ptr {pointer}, align {dtype.itemsize}"), dtype)
            value = instruction_emitter.operation(e, COMBINES[s.mode], False, dtype, [before, value], [dtype, dtype])
            self.loosen(dtype)
        e.do(f"store {kind} {self.to_memory(value, dtype)}, ptr {pointer}, align {dtype.itemsize}")

    def loosen(self, dtype: DType) -> None:
        """Let the last instruction, where it is a sum or a product of floats, be reassociated."""
        if not self.reassociate or dtype.kind != "f":
            return
        line = self.e.lines[-1]
        for name in ("fadd", "fsub", "fmul"):
            if f"= {name} " in line:
                self.e.lines[-1] = line.replace(f"= {name} ", f"= {name} reassoc contract ")

    # Elements.

    def element(self, name: str, place: Place) -> legality.Element:
        return legality.Element(name, place, tuple(self.loops), tuple(self.conditions), None)

    def base(self, name: str) -> tuple[str, str]:
        """Return where an array begins: a pointer, and a number of elements behind it."""
        if name in self.local:
            return self.local[name], "0"
        view = self.views[name]
        return self.word("pointer", view.buffer, id(view.buffer)), self.dimension(view.offset)

    def address(self, name: str, place: Place) -> str:
        array, e = self.arrays[name], self.e
        kind = memory_type(array.dtype)
        inside = legality.is_inside(self.element(name, place), array)
        numbers = [self.value(t) if isinstance(t, Formula) else self.dimension(t) for t in place]
        for axis, (proved, number) in enumerate(zip(inside, numbers)):
            if not proved:
                self.test(name, axis, number, array.shape[axis])
        strides = contiguous_strides(array.shape) if name in self.local else self.views[name].strides
        base, total = self.base(name)
        for number, stride in zip(numbers, strides):
            moved = number if is_one(stride) else e.put(f"mul nsw i64 {number}, {self.dimension(stride)}")
            total = moved if total == "0" else e.put(f"add nsw i64 {total}, {moved}")
        return e.put(f"getelementptr {kind}, ptr {base}, i64 {total}")

    def test(self, name: str, axis: int, number: str, size: DimLike) -> None:
        """Write a test of an index, which reports one out of range and ends the kernel.

        `number` is the index on the axis numbered `axis`, of `size`, of the array `name`.
        """
        e = self.e
        site = self.site(name, axis, size)
        record = self.word("site", site, id(site))
        bad, note, out, on = (self.fresh(n) for n in ("outside", "note", "out", "on"))
        e.do(f"br i1 {e.put(f'icmp ult i64 {number}, {self.dimension(size)}')}, label %{on}, label %{bad}")
        e.label(bad)
        status = e.put(f"load ptr, ptr {e.put(f'getelementptr i64, ptr {record}, i64 1')}")
        before = e.put(f"load atomic i64, ptr {status} monotonic, align 8")
        e.do(f"br i1 {e.put(f'icmp eq i64 {before}, 0')}, label %{note}, label %{out}")
        e.label(note)
        e.do(f"store i64 {number}, ptr {record}")
        e.do(f"store atomic i64 {e.put(f'ptrtoint ptr {record} to i64')}, ptr {status} monotonic, align 8")
        e.do(f"br label %{out}")
        e.label(out)
        e.do("ret void")
        e.label(on)

    def from_memory(self, value: str, dtype: DType) -> str:
        if dtype is D.bool_:
            return self.e.put(f"icmp ne i8 {value}, 0")
        return widen(self.e, False, value, dtype) if self.is_short(dtype) else value

    def to_memory(self, value: str, dtype: DType) -> str:
        if dtype is D.bool_:
            return self.e.put(f"zext i1 {value} to i8")
        return narrow(self.e, False, value, dtype) if self.is_short(dtype) else value

    def is_short(self, dtype: DType) -> bool:
        return dtype in (D.float16, D.bfloat16)

    # Values.

    def value(self, f: Formula) -> str:
        e = self.e
        if f.kind == "const":
            return literal(f.data, f.dtype)
        if f.kind == "index":
            return self.dimension(f.data)
        if f.kind == "read":
            kind = memory_type(f.dtype)
            pointer = self.address(f.data, f.place)
            return self.from_memory(e.put(f"load {kind}, ptr {pointer}, align {f.dtype.itemsize}"), f.dtype)
        if f.data == "cast":
            return instruction_emitter.cast(e, False, self.value(f.args[0]), f.args[0].dtype, f.dtype)
        if f.data in ("select", "logical_and", "logical_or") and any(_has_reads(a) for a in f.args[1:]):
            return self.lazy(f)
        values = [self.value(a) for a in f.args]
        made = instruction_emitter.operation(e, f.data, False, f.dtype, values, [a.dtype for a in f.args])
        if f.data in ("add", "sub", "mul"):
            self.loosen(f.dtype)
        return made

    def lazy(self, f: Formula) -> str:
        """Return a choice of which only the side that is chosen is computed."""
        e = self.e
        test = self.value(f.args[0])
        then, other, after = (self.fresh(n) for n in ("then", "else", "after"))
        e.do(f"br i1 {test}, label %{then}, label %{other}")
        ends = []
        sides = {
            "select": f.args[1:],
            "logical_and": (f.args[-1], False),
            "logical_or": (True, f.args[-1]),
        }[f.data]
        held = (legality.conjuncts(f.args[0]), [legality.opposite(f.args[0])])
        for label, side, conditions in zip((then, other), sides, held):
            e.label(label)
            with self.under(conditions):
                made = literal(side, D.bool_) if isinstance(side, bool) else self.value(side)
            ends.append((made, e.block))
            e.do(f"br label %{after}")
        e.label(after)
        kind = compute_type(f.dtype)
        return e.put(f"phi {kind} " + ", ".join(f"[ {v}, %{b} ]" for v, b in ends))


def longest_of(statement: Statement, around: For) -> DimLike | None:
    """Return the end of a loop that threads share in the longest round of a loop around it.

    None where they do not, or the end is not known.
    """
    if not isinstance(statement, For) or not is_shared(statement):
        return None
    found = highest(statement, (around,))
    return None if found is None or isinstance(found, Dim) and around.index in symbols_in(found) else found


def is_shared(loop: For) -> bool:
    """Return whether threads share a loop's iterations."""
    return not loop.backward and (loop.mark == "parallel" or legality.is_parallel(loop))


def _has_reads(f: Formula) -> bool:
    return f.kind == "read" or any(map(_has_reads, f.args))


def _work(s: Statement, around: frozenset[str] = frozenset()) -> DimLike:
    """Return a guess of the number of statements run; `around` are the indices of the loops around.

    A loop whose length depends on these is taken for a short one.
    """
    if isinstance(s, Set):
        return 1
    if isinstance(s, If):
        return sum([_work(x, around) for x in s.body or s.other], 0)
    inner = sum([_work(x, around | {s.index}) for x in s.body], 0)
    count = s.stop - s.start
    if isinstance(count, Dim) and around & set(symbols_in(count)):
        count = 16
    return inner * count
