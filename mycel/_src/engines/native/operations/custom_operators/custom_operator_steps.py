"""Lowering of loop programs (`mycel.te` operators) to steps.

Each statement of the program becomes a kernel. One that is a perfect nest without an order, which
adds up or writes each element once, becomes a nest of vector code; any other is written loop by
loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mycel._src.compiler.ir.dim_values import hint, substitute, symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike, is_zero, maximum, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.loops import legality
from mycel._src.compiler.loops.access_analysis import extremes, highest, lone_indices, reads_in, step_of
from mycel._src.compiler.loops.array_expansion import spread
from mycel._src.compiler.loops.formulas import Formula, Term, reads_of
from mycel._src.compiler.loops.loop_distribution import distributed
from mycel._src.compiler.loops.programs import (
    COMBINES,
    NEUTRAL,
    Array,
    For,
    If,
    Program,
    Statement,
    with_sizes,
    written,
)
from mycel._src.compiler.loops.scatter_to_gather import Perfect, perfect
from mycel._src.compiler.prims.loops import sizes_of
from mycel._src.engines.native.kernels.loop_nest import (
    Access,
    Affine,
    Buffer,
    Builder,
    Expr,
    Guard,
    Loop,
    Nest,
    Reduce,
    Site,
    Store,
    affine,
)
from mycel._src.engines.native.kernels.strided_view import View, element_count, row_major
from mycel._src.engines.native.operations.control_flow.loop_steps import rounds_step
from mycel._src.engines.native.operations.custom_operators.scalar_loop_kernel import Round, is_shared, longest_of
from mycel._src.engines.native.operations.custom_operators.vector_loop_kernel import write_loops
from mycel._src.engines.native.steps.fill_and_copy import fill_zeros
from mycel._src.engines.native.steps.step_builder import StepBuilder, result_types
from mycel._src.engines.native.steps.step_types import Step
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.errors import Unsupported

__all__ = ["operator_step"]

# The most bytes of a private array on the stack.
STACK = 4096
_REDUCES = {"add": "sum", "mul": "prod", "max": "max", "min": "min"}


def operator_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernels of a node that runs a loop program."""
    program = node.params["program"]
    program = with_sizes(program, sizes_of(program, [i.type for i in node.inputs]))
    by_hand = frozenset[Statement]()
    if program.plan is None:
        program = distributed(program)
    else:
        by_hand = frozenset(program.plan.body) - frozenset(program.body)
        program = program.plan
    writer = _Writer(steps, node, program, by_hand)
    writer.run()
    steps.bind(node, [writer.views[a.name] for a in program.outputs])


class _NotANest(Exception):
    """A statement is not one that vector code can be made of."""


class _Writer:
    """The writer of the kernels of a `program`, which `node` runs, as steps of `steps`.

    Statements in `by_hand` keep their loops.
    """

    def __init__(self, steps: StepBuilder, node: Node, program: Program, by_hand: frozenset[Statement]) -> None:
        self.by_hand = by_hand
        self.steps, self.node, self.program = steps, node, program
        self.arrays = program.arrays
        self.views: dict[str, View] = {a.name: steps.view(i) for a, i in zip(program.inputs, node.inputs)}
        for a, t in zip(program.outputs, result_types(node)):
            self.views[a.name] = row_major(Buffer(t.dtype, t.size, a.name), t.shape)
        for a in program.locals:
            self.views[a.name] = row_major(Buffer(a.dtype, element_count(a.shape), a.name), a.shape)
        self.fresh = {a.name for a in (*program.outputs, *program.locals)}
        self.sites: dict[tuple[str, int], Site] = {}

    def run(self) -> None:
        for s in self.program.body:
            self.statement(s)
        for a in self.program.outputs:
            self.fill(a.name)

    def fill(self, name: str) -> None:
        """Fill an array that nothing was written to so far."""
        if name in self.fresh:
            self.fresh.discard(name)
            array = self.arrays[name]
            if array.fill is not None:
                value = array.fill
                self.steps.fill(self.views[name], lambda b: b.const(value, array.dtype), "fill")

    def statement(self, s: Statement) -> None:
        if isinstance(s, If) and s.condition.kind == "const":
            for x in s.body if s.condition.data else s.other:
                self.statement(x)
            return
        for name in reads_in((s,)):
            self.fill(name)
        if not written((s,)) & set(self.views):
            return
        nest = None if s in self.by_hand else perfect(s)
        if nest is not None:
            try:
                made, like = _NestMaker(self, nest).run()
            except _NotANest:
                pass
            else:
                self.steps.kernel(made, like, self.node, (self.node,))
                return
        self.in_order(s)

    def in_order(self, s: Statement) -> None:
        """Add the kernel of a statement that is written loop by loop."""
        for name in sorted(written((s,)) & set(self.views)):
            self.fill(name)
        if not (isinstance(s, For) and _runs_in_rounds(s) and self.in_rounds(s)):
            self.steps.add(self.step(self.placed(s)))

    def step(self, s: Statement, around: Round | None = None) -> Step:
        """Return the step that runs a statement, which may be part of a round of a loop around."""
        kernel = write_loops(s, self.views, self.arrays, self.site, self.program.reassociate, around)
        touched = reads_in((s,)) | written((s,))
        reads = [self.views[n].buffer for n in sorted(touched & set(self.views))]
        reads += [] if around is None else [around.number.buffer]
        writes = [self.views[n].buffer for n in sorted(written((s,)) & set(self.views))]
        return Step(kernel, reads, writes, self.node, (self.node,))

    def in_rounds(self, s: For) -> bool:
        """Add the steps of a loop each round of which has loops that threads share.

        Returns whether the memory that its rounds need has a size that is known.
        """
        try:
            placed = self.placed(s, True)
        except Unsupported:
            return False
        assert isinstance(placed, For)
        s = placed
        number = row_major(Buffer(D.int64, 1, "number"), ())
        fill_zeros(self.steps, number)
        around = Round(s, number)
        body = [self.step(x, around) for x in s.body]
        rounds = s.stop - s.start
        assert isinstance(rounds, int)
        writes = list({id(b): b for x in body for b in x.writes}.values())
        rounds_step(self.steps, number, rounds, body, writes, self.node)
        return True

    def placed(self, s: Statement, rounds: bool = False) -> Statement:
        """Give private arrays that are large, or of open size, memory of the run.

        Where threads share the outermost loop, each of its iterations has its own. With `rounds`,
        so do those of the outermost loop itself, whose statements are apart, and threads share
        loops right inside of it.
        """
        own = {a.name for a in s.private} if rounds and isinstance(s, For) else set[str]()

        def shared(loops: tuple[For, ...]) -> tuple[For, ...]:
            inside = loops[1:] if rounds else loops
            return inside[:1] if inside and is_shared(inside[0]) else ()

        (made,), found = spread((s,), lambda a: a.name in own or _is_large(a), shared, self.program.name)
        for a in found:
            self.views[a.name] = row_major(Buffer(a.dtype, element_count(a.shape), a.name), a.shape)
            self.arrays[a.name] = a
        return made

    def site(self, name: str, axis: int, size: DimLike) -> Site:
        key = (name, axis)
        found = self.sites.get(key)
        if found is None:
            found = self.sites[key] = Site(self.node, axis, size, False)
        return found


class _NestMaker:
    """The maker of a nest of vector code from a perfect nest."""

    def __init__(self, writer: _Writer, nest: Perfect) -> None:
        self.w, self.nest, self.write = writer, nest, nest.write
        self.b = Builder()
        self.loops: list[Loop] = []
        self.position: dict[str, Affine] = {}
        self.guards: list[Guard] = []
        self.tests: list[Formula] = []
        self.memo: dict[Formula, Expr] = {}

    def run(self) -> tuple[Nest, tuple[int, ...]]:
        s, nest = self.write, self.nest
        alone = lone_indices(s.place, nest.loops)
        used = {n for t in s.place if isinstance(t, Dim) for n in symbols_in(t)}
        rows = set()
        for k, loop in enumerate(nest.loops):
            row = loop.index in alone
            if not row and (loop.index in used or s.mode == "set"):
                raise _NotANest
            if row:
                rows.add(k)
            self.enter(k, loop, row)
        if any(isinstance(t, Formula) for t in s.place):
            raise _NotANest
        for c in self.held():
            guard = self.guard_of(c)
            if guard is None:
                self.tests.append(c)
            else:
                self.guards.append(guard)
        place = self.place_of(s.array, s.place, True)
        outer = [g for g in self.guards if all(k in rows for k, _ in g[0].terms)]
        inner = [g for g in self.guards if g not in outer]
        target = Access(place.buffer, place.offset, tuple(outer))
        value = self.guarded(self.value(s.value), inner)
        covers = self.covers(rows, outer)
        return self.made(target, value, rows, covers)

    def enter(self, k: int, loop: For, row: bool) -> None:
        """Make a loop that counts from 0 and whose length does not depend on the others."""
        names = {x.index for x in self.nest.loops}
        if names & set(symbols_in(loop.start, loop.stop)):
            extent = highest(loop, self.nest.loops[:k])
            if extent is None:
                raise _NotANest
            self.position[loop.index] = affine(k)
            self.loops.append(Loop(_count(extent), "p" if row else "r"))
            first = self.affine(loop.start)
            last = self.affine(loop.stop)
            if first is None or last is None:
                raise _NotANest
            # As start <= index < stop, with no end to one side.
            at = affine(k)
            if not is_zero(loop.start):
                self.guards.append((at + first.scale(-1), extent))
            self.guards.append((last + at.scale(-1) + Affine((), -1), extent))
            return
        count = _count(loop.stop - loop.start)
        self.position[loop.index] = affine(k).shift(loop.start)
        self.loops.append(Loop(count, "p" if row else "r"))

    def affine(self, value: DimLike) -> Affine | None:
        """Return a dimension as a position; None where it is not linear in the indices."""
        if not isinstance(value, Dim):
            return Affine((), value)
        made = Affine((), substitute(value, dict.fromkeys(self.position, 0)))
        for name, at in self.position.items():
            step = step_of(value, name)
            if step is None or isinstance(step, Dim) and set(symbols_in(step)) & set(self.position):
                return None
            made = made + at.scale(step)
        return made

    def guard_of(self, c: Formula) -> Guard | None:
        """Return a comparison of positions as a guard; None for other conditions."""
        known = legality.known(c)
        if c.data == "eq" or len(known) != 1:
            return None
        position, ends = self.affine(known[0]), extremes(known[0], self.nest.loops)
        return None if position is None or ends is None else (position, maximum(ends[1] + 1, 1))

    def place_of(self, name: str, place: Sequence[Term], writes: bool = False) -> Access:
        """Return the access of an element, tested where it is not proved to be inside."""
        view, array = self.w.views[name], self.w.arrays[name]
        element = legality.Element(name, tuple(place), tuple(self.nest.loops), tuple(self.held()), None)
        always = all(legality.is_inside(replace(element, conditions=()), array))
        offset = Affine((), view.offset)
        dynamic = []
        for axis, (t, inside) in enumerate(zip(place, legality.is_inside(element, array))):
            position = None if isinstance(t, Formula) else self.affine(t)
            if position is not None and inside:
                offset = offset + position.scale(view.strides[axis])
                continue
            if writes or self.tests or self.guards:
                raise _NotANest
            index = self.value(t) if isinstance(t, Formula) else self.number(t)
            site = None if inside else self.w.site(name, axis, array.shape[axis])
            dynamic.append((index, view.strides[axis], array.shape[axis], site))
        # Elements that a condition keeps inside are read under the condition alone.
        return Access(view.buffer, offset, () if always or writes else tuple(self.guards), tuple(dynamic))

    def held(self) -> list[Formula]:
        return [x for c in self.nest.conditions for x in legality.conjuncts(c)]

    def number(self, value: DimLike) -> Expr:
        """Return a dimension as a number, by arithmetic where it is not linear."""
        position = self.affine(value)
        if position is not None:
            return self.b.index(position, D.int64)
        assert isinstance(value, Dim)
        total: Expr | None = None
        for mono, c in value.terms.items():
            part: Expr | None = None
            for atom, power in mono:
                if atom.operator == "symbol":
                    one = self.number(Dim({((atom, 1),): 1}))
                elif atom.operator == "max":
                    one = self.b.op("maximum", D.int64, *map(self.number, atom.operands))
                else:
                    name = "floor_div" if atom.operator == "//" else "mod"
                    one = self.b.op(name, D.int64, *map(self.number, atom.operands))
                for _ in range(power):
                    part = one if part is None else self.b.op("mul", D.int64, part, one)
            factor = self.b.const(c, D.int64)
            part = factor if part is None else part if c == 1 else self.b.op("mul", D.int64, part, factor)
            total = part if total is None else self.b.op("add", D.int64, total, part)
        assert total is not None
        return total

    def value(self, f: Formula) -> Expr:
        found = self.memo.get(f)
        if found is None:
            found = self.memo[f] = self.expression(f)
        return found

    def expression(self, f: Formula) -> Expr:
        if f.kind == "const":
            return self.b.const(f.data, f.dtype)
        if f.kind == "index":
            return self.number(f.data)
        if f.kind == "read":
            return self.b.load(self.place_of(f.data, f.place))
        if f.data == "select" and any(self.needs_test(a) for a in f.args[1:]):
            raise _NotANest
        return self.b.op(f.data, f.dtype, *map(self.value, f.args))

    def needs_test(self, f: Formula) -> bool:
        """Return whether a formula reads an element that is not proved to be inside."""
        for r in reads_of(f):
            element = legality.Element(r.data, r.place, tuple(self.nest.loops), tuple(self.held()), None)
            if not all(legality.is_inside(element, self.w.arrays[r.data])):
                return True
        return False

    def guarded(self, value: Expr, guards: Sequence[Guard]) -> Expr:
        """Return a value that takes no part where a condition fails."""
        tests = [self.value(t) for t in self.tests]
        if guards:
            tests.append(self.b.guard(guards, D.bool_))
        if not tests:
            return value
        if self.write.mode == "set":
            other = self.before(value.dtype)
        else:
            other = self.b.const(_neutral(self.write.mode, value.dtype), value.dtype)
        for t in tests:
            value = self.b.op("select", value.dtype, t, value, other)
        return value

    def before(self, dtype: DType) -> Expr:
        """Return the element before the write."""
        self.w.fill(self.write.array)
        return self.b.load(self.place_of(self.write.array, self.write.place, True))

    def covers(self, rows: set[int], outer: Sequence[Guard]) -> bool:
        """Return whether the nest writes every element of its array."""
        if outer or self.tests and self.write.mode == "set":
            return False
        shape = self.w.arrays[self.write.array].shape
        if len(rows) != len(shape):
            return False
        for t, size in zip(self.write.place, shape):
            position = self.affine(t) if not isinstance(t, Formula) else None
            if position is None or len(position.terms) != 1 or not is_zero(position.const):
                return False
            ((k, step),) = position.terms
            if step != 1 or not same(self.loops[k].extent, size):
                return False
        return True

    def made(self, target: Access, value: Expr, rows: set[int], covers: bool) -> tuple[Nest, tuple[int, ...]]:
        """Return the nest that combines `value` into `target`, and the order of its loops.

        `rows` are the loops that do not reduce; `covers` says whether every element is written.
        """
        s, dtype = self.write, self.w.arrays[self.write.array].dtype
        first = self.w.arrays[s.array].fill if s.array in self.w.fresh else None
        if s.array in self.w.fresh and covers:
            self.w.fresh.discard(s.array)
        else:
            self.w.fill(s.array)
            first = None
        reducing = len(rows) < len(self.loops)
        result = value
        reduces: list[Reduce] = []
        if reducing:
            reduces = [self.b.reduce(_REDUCES[s.mode], value, dtype)]
            result = reduces[0].result
        if s.mode != "set":
            if first is None:
                result = self.b.op(COMBINES[s.mode], dtype, self.b.load(target), result)
            elif first != NEUTRAL[s.mode]:
                result = self.b.op(COMBINES[s.mode], dtype, self.b.const(first, dtype), result)
        nest = Nest(self.loops, reduces, [Store(target, result, not reducing)], s.array)
        return nest, self.order(target, rows)

    def order(self, target: Access, rows: set[int]) -> tuple[int, ...]:
        """Return the strides by which the loops are ordered: the largest that an access has."""
        accesses = [target, *[e.data[0] for e in self.memo.values() if e.kind == "load"]]
        like = [max([abs(hint(a.offset.coefficient(k))) for a in accesses]) or 1 for k in range(len(self.loops))]
        if any(like[k] == 1 for k in rows):
            like = [2 if c == 1 and k not in rows else c for k, c in enumerate(like)]
        return tuple(like)


def _runs_in_rounds(s: For) -> bool:
    """Return whether a loop is run as steps: its rounds in order, with shared loops in each."""
    known = type(s.start) is type(s.stop) is int and s.stop - s.start > 1
    shared = [x for x in s.body if isinstance(x, For) and x.mark == "parallel"]
    return known and not s.mark and any(longest_of(x, s) is not None for x in shared)


def _is_large(array: Array) -> bool:
    """Return whether an array is no array for the stack."""
    size = product(array.shape)
    return isinstance(size, Dim) or size * array.dtype.itemsize > STACK


def _neutral(mode: str, dtype: DType) -> float:
    value = NEUTRAL[mode]
    if dtype.kind in "iu" and mode in ("max", "min"):
        bits = dtype.bits - (dtype.kind == "i")
        return (1 << bits) - 1 if mode == "min" else -(1 << bits) if dtype.kind == "i" else 0
    return value


def _count(extent: DimLike) -> DimLike:
    """Return a loop's length, which is not negative."""
    if isinstance(extent, Dim):
        return extent if extent.bounds()[0] >= 0 else maximum(extent, 0)
    return max(extent, 0)
