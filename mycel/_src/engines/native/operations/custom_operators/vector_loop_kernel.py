"""Vector code of loops in loop programs: iterations are lanes, as schedules ask for.

Inside of such a loop a value is wide if it differs from lane to lane: what depends on the loop's
index, what is read at a place that does, and private arrays. Elements side by side are moved as
vectors, others are gathered; conditions that differ from lane to lane become masks. A short loop of
known length is written without a loop, so that what it keeps in private arrays stays in registers.
Iterations that do not fill a vector, and loops that cannot be written so, run one by one; so do
sums over the loop itself, which LLVM turns into vectors where they may be reassociated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, product
from mycel._src.compiler.loops import legality
from mycel._src.compiler.loops.access_analysis import sites, step_of
from mycel._src.compiler.loops.formulas import Formula, Place, reads_of
from mycel._src.compiler.loops.programs import COMBINES, Array, For, If, Set, Statement, statements
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.instruction_emitter import compute_type, literal, memory_type, suffix
from mycel._src.engines.native.kernels.loop_nest import Site
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides
from mycel._src.engines.native.llvm.half_conversion import narrow, widen
from mycel._src.engines.native.llvm.target import target
from mycel._src.engines.native.operations.custom_operators.scalar_loop_kernel import LoopWriter, Round
from mycel._src.foundation.dtype import DType

__all__ = ["write_loops"]

# The most vectors of a loop that is written without a loop.
MOST_VECTORS = 8


def write_loops(
    statement: Statement,
    views: Mapping[str, View],
    arrays: Mapping[str, Array],
    site: Callable[[str, int, DimLike], Site],
    reassociate: bool = False,
    around: Round | None = None,
) -> Kernel:
    """Return the kernel of a statement.

    `views` are the places of the arrays that are not private, `arrays` all arrays by name. `site`
    returns where an index out of range is reported, for an array, an axis and its size. With
    `reassociate`, sums and products of floats may be associated in another way. `around` is the
    round of a loop that the statement is part of.
    """
    return _VectorWriter(views, arrays, site, reassociate).run(statement, around)


class _NotLanes(Exception):
    """A loop's iterations cannot be written as lanes."""


class _VectorWriter(LoopWriter):
    lane: For | None = None
    lanes = 1
    mask: str | None = None

    def lane_loop(self, s: For, start: str, stop: str) -> bool:
        """Write a loop with its iterations as lanes; return whether that can be."""
        lanes = self._lanes(s)
        if lanes < 2 or self.lane is not None or s.backward or not self._can_be(s):
            return False
        e = self.e
        kept = (len(e.lines), e.block, len(self.entry), dict(self.local))
        self.lane, self.lanes, e.lanes = s, lanes, lanes
        try:
            rest = self._straight(s) if self.is_flat(s) else self._looped(s, start, stop)
        except _NotLanes:
            del e.lines[kept[0] :]
            del self.entry[kept[2] :]
            e.block, self.local = kept[1], kept[3]
            rest = None
        finally:
            self.lane, self.lanes, e.lanes = None, 1, 1
            self.mask = None
            self.position.pop(s.index, None)
        if rest is None:
            return False
        if rest != stop:
            self.plain_loop(s, rest, stop)
        return True

    def _lanes(self, s: For) -> int:
        """Return the number of lanes: of the widest element, and dividing a short loop's length."""
        sizes = [self.arrays[x.array].dtype.itemsize for x in statements(s.body) if isinstance(x, Set)]
        sizes += [x.read.dtype.itemsize for x in sites(s.body) if x.read is not None]
        lanes = target().vector_bytes // max([4, *sizes])
        if type(s.start) is type(s.stop) is int:
            length = s.stop - s.start
            while lanes > 2 and length % lanes and length < MOST_VECTORS * lanes:
                lanes //= 2
        return lanes

    def is_flat(self, s: For) -> bool:
        if s.mark != "vectorize" or not (type(s.start) is type(s.stop) is int):
            return False
        lanes = self._lanes(s)
        length = s.stop - s.start
        return length % lanes == 0 and 0 < length <= MOST_VECTORS * lanes

    def _can_be(self, s: For) -> bool:
        """Return whether each statement writes elements that differ from lane to lane."""
        own = {a.name for x in statements((s,)) if isinstance(x, For) for a in x.private}
        for x in statements(s.body):
            if isinstance(x, Set) and x.array not in own:
                if not any(isinstance(t, Formula) or isinstance(t, Dim) and s.index in symbols_in(t) for t in x.place):
                    return False
        return True

    def _straight(self, s: For) -> str | None:
        assert type(s.start) is type(s.stop) is int
        for first in range(s.start, s.stop, self.lanes):
            self.position[s.index] = str(first)
            self._lane_body(s)
        return self.dimension(s.stop)

    def _looped(self, s: For, start: str, stop: str) -> str:
        e = self.e
        head, body, latch, leave = (self.fresh(n) for n in ("vhead", "vbody", "vlatch", "vleave"))
        before = e.block
        e.do(f"br label %{head}")
        e.label(head)
        count, following = e.name(), e.name()
        e.do(f"{count} = phi i64 [ {start}, %{before} ], [ {following}, %{latch} ]")
        e.do(f"{following} = add nsw i64 {count}, {self.lanes}")
        e.do(f"br i1 {e.put(f'icmp sle i64 {following}, {stop}')}, label %{body}, label %{leave}")
        e.label(body)
        self.position[s.index] = count
        self._lane_body(s)
        e.do(f"br label %{latch}")
        e.label(latch)
        e.do(f"br label %{head}")
        e.label(leave)
        return count

    def _lane_body(self, s: For) -> None:
        self.loops.append(s)
        self._declare_wide(s)
        self.wide_block(s.body)
        self.loops.pop()

    def _declare_wide(self, s: For) -> None:
        """Give the private arrays of a loop inside of lanes a place with an element for each."""
        for a in s.private:
            size = product(a.shape)
            if a.name in self.views or isinstance(size, Dim):
                raise _NotLanes
            kind = f"<{self.lanes} x {memory_type(a.dtype)}>"
            self.local[a.name] = f"%m{len(self.entry)}"
            self.wide_arrays.add(a.name)
            self.entry.append(f"  {self.local[a.name]} = alloca [{size} x {kind}], align 64")
            if a.fill is not None:
                value = self._narrowed(self._splat(literal(a.fill, a.dtype), compute_type(a.dtype)), a.dtype)
                for k in range(size):
                    pointer = self.e.put(f"getelementptr {kind}, ptr {self.local[a.name]}, i64 {k}")
                    self._store(kind, value, pointer, a.dtype)

    # Statements.

    def wide_block(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Set):
                self._wide_set(s)
            elif isinstance(s, If):
                self._wide_branch(s)
            elif self._differs(s.start) or self._differs(s.stop):
                raise _NotLanes
            else:
                self.counted(s, self.dimension(s.start), self.dimension(s.stop), self._inner)

    def _inner(self, s: For) -> None:
        self._declare_wide(s)
        self.wide_block(s.body)

    def _wide_branch(self, s: If) -> None:
        test, wide = self.lane_value(s.condition)
        if wide:
            outer, e = self.mask, self.e
            kind = e.vector("i1")
            ones = f"<{', '.join(['i1 true'] * self.lanes)}>"
            turned = e.put(f"xor {kind} {test}, {ones}")
            for side, body, held in (
                (test, s.body, legality.conjuncts(s.condition)),
                (turned, s.other, [legality.opposite(s.condition)]),
            ):
                if body:
                    self.mask = side if outer is None else e.put(f"and {kind} {outer}, {side}")
                    with self.under(held):
                        self.wide_block(body)
            self.mask = outer
            return
        self.branched(s, test, self.wide_block)

    def _wide_set(self, s: Set) -> None:
        e, dtype = self.e, self.arrays[s.array].dtype
        value = self._wide(s.value)
        if s.mode != "set":
            before = self._wide_element(s.array, s.place, dtype)
            value = instruction_emitter.operation(e, COMBINES[s.mode], True, dtype, [before, value], [dtype, dtype])
            self.loosen(dtype)
        kind = memory_type(dtype)
        vector = e.vector(kind)
        narrowed = self._narrowed(value, dtype)
        if s.array in self.wide_arrays:
            pointer = self._own(s.array, s.place, vector)
            if self.mask is not None:
                old = e.put(f"load {vector}, ptr {pointer}, align {dtype.itemsize}")
                narrowed = e.put(f"select {e.vector('i1')} {self.mask}, {vector} {narrowed}, {vector} {old}")
            self._store(vector, narrowed, pointer, dtype)
            return
        step = self._step(s.array, s.place)
        if step == 0:
            raise _NotLanes
        if step == 1:
            pointer = self._first(s.array, s.place)
            if self.mask is None:
                self._store(vector, narrowed, pointer, dtype)
            else:
                name = f"llvm.masked.store.{suffix(vector)}.p0"
                self._call(name, [vector, "ptr"], [narrowed, pointer], dtype)
            return
        pointers = self._pointers(s.array, s.place)
        name = f"llvm.masked.scatter.{suffix(vector)}.v{self.lanes}p0"
        self._call(name, [vector, e.vector("ptr")], [narrowed, pointers], dtype)

    def _call(self, name: str, types: Sequence[str], values: Sequence[str], dtype: DType) -> None:
        """Write a call of a function that stores elements under the mask in force.

        `types` and `values` are those of what it stores and of where, and `dtype` is the element
        type.
        """
        kinds = [*types, "i32", self.e.vector("i1")]
        given = [f"{t} {v}" for t, v in zip(kinds, [*values, str(dtype.itemsize), self._held()])]
        self.e.declares.add(f"declare void @{name}({', '.join(kinds)})")
        self.e.do(f"call void @{name}({', '.join(given)})")

    # Elements.

    def _differs(self, t: DimLike | Formula) -> bool:
        assert self.lane is not None
        if isinstance(t, Formula):
            return self._is_wide(t)
        return isinstance(t, Dim) and self.lane.index in symbols_in(t)

    def _is_wide(self, f: Formula) -> bool:
        if f.kind == "index":
            return self._differs(f.data)
        if f.kind == "read":
            return f.data in self.wide_arrays or any(self._differs(t) for t in f.place)
        return any(self._is_wide(a) for a in f.args)

    def _strides(self, name: str) -> Sequence[DimLike]:
        return contiguous_strides(self.arrays[name].shape) if name in self.local else self.views[name].strides

    def _step(self, name: str, place: Place) -> int | None:
        """Return how far apart the elements of two lanes are; None where that is no number."""
        assert self.lane is not None
        total: DimLike = 0
        for t, stride in zip(place, self._strides(name)):
            if isinstance(t, Formula):
                if self._is_wide(t):
                    return None
                continue
            step = step_of(t, self.lane.index)
            if step is None:
                return None
            total = total + step * stride
        return total if type(total) is int else None

    def _first(self, name: str, place: Place) -> str:
        """Return the address of the first lane's element."""
        self._certain(name, place)
        return self.address(name, place)

    def _certain(self, name: str, place: Place) -> None:
        if not all(legality.is_inside(self.element(name, place), self.arrays[name])):
            raise _NotLanes

    def _own(self, name: str, place: Place, vector: str) -> str:
        """Return the address of the elements of an array that is private to each lane."""
        if any(self._differs(t) for t in place):
            raise _NotLanes
        self._certain(name, place)
        total = "0"
        for t, stride in zip(place, contiguous_strides(self.arrays[name].shape)):
            number = self.value(t) if isinstance(t, Formula) else self.dimension(t)
            moved = self.e.put(f"mul nsw i64 {number}, {self.dimension(stride)}")
            total = self.e.put(f"add nsw i64 {total}, {moved}")
        return self.e.put(f"getelementptr {vector}, ptr {self.local[name]}, i64 {total}")

    def _pointers(self, name: str, place: Place) -> str:
        """Return the addresses of the lanes' elements."""
        self._certain(name, place)
        e = self.e
        vector = e.vector("i64")
        base, offset = self.base(name)
        total = self._splat(offset, "i64")
        for t, stride in zip(place, self._strides(name)):
            at = self._wide(t) if isinstance(t, Formula) else self._wide_dimension(t)
            factor = self._splat(self.dimension(stride), "i64")
            total = e.put(f"add {vector} {total}, {e.put(f'mul {vector} {at}, {factor}')}")
        return e.put(f"getelementptr {memory_type(self.arrays[name].dtype)}, ptr {base}, {vector} {total}")

    def _held(self) -> str:
        return self.mask or f"<{', '.join(['i1 true'] * self.lanes)}>"

    def _wide_element(self, name: str, place: Place, dtype: DType) -> str:
        """Return the elements of an array in the lanes, in the type in which they are computed."""
        e = self.e
        kind = memory_type(dtype)
        vector = e.vector(kind)
        if name in self.wide_arrays:
            pointer = self._own(name, place, vector)
            return self._widened(e.put(f"load {vector}, ptr {pointer}, align {dtype.itemsize}"), dtype)
        step = self._step(name, place)
        if step == 0:
            self._certain(name, place)
            loaded = e.put(f"load {kind}, ptr {self.address(name, place)}, align {dtype.itemsize}")
            return self._splat(self.from_memory(loaded, dtype), compute_type(dtype))
        if step == 1 and self.mask is None:
            pointer = self._first(name, place)
            return self._widened(e.put(f"load {vector}, ptr {pointer}, align {dtype.itemsize}"), dtype)
        zero = f"{vector} zeroinitializer"
        if step == 1:
            pointer = self._first(name, place)
            function = f"llvm.masked.load.{suffix(vector)}.p0"
            types, values = ["ptr", "i32"], [pointer, str(dtype.itemsize)]
        else:
            pointers = self._pointers(name, place)
            function = f"llvm.masked.gather.{suffix(vector)}.v{self.lanes}p0"
            types, values = [e.vector("ptr"), "i32"], [pointers, str(dtype.itemsize)]
        e.declares.add(f"declare {vector} @{function}({', '.join([*types, e.vector('i1'), vector])})")
        given = [f"{t} {v}" for t, v in zip([*types, e.vector("i1")], [*values, self._held()])]
        return self._widened(e.put(f"call {vector} @{function}({', '.join([*given, zero])})"), dtype)

    def _store(self, kind: str, value: str, pointer: str, dtype: DType) -> None:
        self.e.do(f"store {kind} {value}, ptr {pointer}, align {dtype.itemsize}")

    def _widened(self, value: str, dtype: DType) -> str:
        if dtype.kind == "b":
            zeros = f"<{', '.join(['i8 0'] * self.lanes)}>"
            return self.e.put(f"icmp ne {self.e.vector('i8')} {value}, {zeros}")
        return widen(self.e, True, value, dtype) if self.is_short(dtype) else value

    def _narrowed(self, value: str, dtype: DType) -> str:
        if dtype.kind == "b":
            return self.e.put(f"zext {self.e.vector('i1')} {value} to {self.e.vector('i8')}")
        return narrow(self.e, True, value, dtype) if self.is_short(dtype) else value

    # Values.

    def _splat(self, value: str, kind: str) -> str:
        return self.e.splat(value, kind)

    def _wide(self, f: Formula) -> str:
        value, wide = self.lane_value(f)
        return value if wide else self._splat(value, compute_type(f.dtype))

    def lane_value(self, f: Formula) -> tuple[str, bool]:
        """Return a formula's value, and whether it differs from lane to lane."""
        e = self.e
        if not self._is_wide(f):
            for r in reads_of(f):
                self._certain(r.data, r.place)
            return self.value(f), False
        if f.kind == "index":
            return self._wide_dimension(f.data), True
        if f.kind == "read":
            return self._wide_element(f.data, f.place, f.dtype), True
        if f.data == "cast":
            return instruction_emitter.cast(e, True, self._wide(f.args[0]), f.args[0].dtype, f.dtype), True
        if f.data in ("select", "logical_and", "logical_or"):
            return self._wide_choice(f), True
        values = [self._wide(a) for a in f.args]
        made = instruction_emitter.operation(e, f.data, True, f.dtype, values, [a.dtype for a in f.args])
        if f.data in ("add", "sub", "mul"):
            self.loosen(f.dtype)
        return made, True

    def _wide_choice(self, f: Formula) -> str:
        """Return a choice of which each lane reads the side that it takes."""
        e = self.e
        test = self._wide(f.args[0])
        kind = e.vector("i1")
        ones = f"<{', '.join(['i1 true'] * self.lanes)}>"
        turned = e.put(f"xor {kind} {test}, {ones}")
        held = (legality.conjuncts(f.args[0]), [legality.opposite(f.args[0])])
        sides = (f.args[1], f.args[2]) if f.data == "select" else (f.args[1], None)
        order = ((test, held[0]), (turned, held[1]))
        if f.data == "logical_or":
            order = (order[1], order[0])
        values = []
        for side, (lanes, conditions) in zip(sides, order):
            if side is not None:
                with self._under_mask(lanes), self.under(conditions):
                    values.append(self._wide(side))
        if f.data == "select":
            shape = e.vector(compute_type(f.dtype))
            return e.put(f"select {kind} {test}, {shape} {values[0]}, {shape} {values[1]}")
        return e.put(f"{'and' if f.data == 'logical_and' else 'or'} {kind} {test}, {values[0]}")

    @contextmanager
    def _under_mask(self, lanes: str) -> Iterator[None]:
        outer = self.mask
        self.mask = lanes if outer is None else self.e.put(f"and {self.e.vector('i1')} {outer}, {lanes}")
        yield
        self.mask = outer

    def _wide_dimension(self, value: DimLike) -> str:
        """Return a dimension in the lanes, as integers."""
        assert self.lane is not None
        e, index = self.e, self.lane.index
        step = step_of(value, index)
        if isinstance(value, Dim) and step is None:
            return self._by_parts(value)
        first = self._splat(self.dimension(value), "i64")
        if type(step) is int and not step:
            return first
        assert step is not None
        vector = e.vector("i64")
        numbers = f"<{', '.join([f'i64 {k}' for k in range(self.lanes)])}>"
        moved = e.put(f"mul {vector} {numbers}, {self._splat(self.dimension(step), 'i64')}")
        return e.put(f"add {vector} {first}, {moved}")

    def _by_parts(self, value: Dim) -> str:
        """Return a dimension in which the index is in quotients, remainders or products."""
        e = self.e
        vector = e.vector("i64")
        total = ""
        for mono, c in value.terms.items():
            part = self._splat(str(c), "i64")
            for atom, power in mono:
                single = Dim({((atom, 1),): 1})
                if atom.operator == "symbol" or not self._differs(single):
                    factor = self._wide_dimension(single)
                else:
                    x, y = (self._wide_dimension(d) for d in atom.operands)
                    name = {"max": "maximum", "//": "floor_div", "%": "mod"}[atom.operator]
                    factor = self.wide_integer(name, x, y)
                for _ in range(power):
                    part = e.put(f"mul {vector} {part}, {factor}")
            total = part if not total else e.put(f"add {vector} {total}, {part}")
        return total
