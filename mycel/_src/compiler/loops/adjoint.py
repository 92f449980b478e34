"""The adjoint of a loop program: its reverse-mode derivative, which is again a loop program.

It takes the inputs, the outputs and the cotangents of the outputs of floating types, and gives the
cotangents of the inputs of floating types. Statements are passed in reverse order, loops in the
opposite direction; each `Set` gives to the cotangent of what it read its own cotangent times the
derivative of its value.

Values that derivatives need must be those of the time when they were read. Inputs and settled
arrays (`access_analysis`) have them at any time. Memory of the program itself is computed again in
front of the scope it belongs to. An array that changes after it was read has each old element
recorded in front of the statement that writes it, and restored on the way back.

The elements that attain a maximum or minimum share its cotangent equally.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.access_analysis import is_overwritten, is_settled, reads_in
from mycel._src.compiler.loops.array_expansion import extents, spread
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.legality import opposite
from mycel._src.compiler.loops.programs import (
    COMBINES,
    Array,
    For,
    If,
    Program,
    Set,
    Statement,
    each_element,
    index_of,
    mapped,
    statements,
    written,
)
from mycel._src.compiler.loops.scatter_to_gather import tidied
from mycel._src.foundation import dtype as D
from mycel._src.foundation.bounded_caches import MANY, RememberedOf

__all__ = ["adjoint"]

Partials = Callable[[Formula], list[Formula | None]]
# A read, and the conditions under which it is made.
_Taken = tuple[Formula, tuple[Formula, ...]]


def adjoint(program: Program, partials: Partials) -> Program:
    """Return the derivative of a program.

    `partials` returns the derivative of an element-wise operation by each operand, or None.
    """
    return _adjoints.of(program, lambda: tidied(_Adjoint(_spread(_plain(program)), partials).run()))


_adjoints = RememberedOf[Program]("derivatives of operators", MANY)


def _plain(program: Program) -> Program:
    """Return a program that sets products, and keeps conditions that may change.

    Extremes are set too, but for those of arrays that nothing else happens to.
    """
    extremes = _extremes(program)

    def target(s: Set) -> Set:
        if s.mode in ("set", "add") or s.mode != "mul" and s.array in extremes:
            return s
        dtype = s.value.dtype
        element = formulas.read(s.array, s.place, dtype)
        return replace(s, mode="set", value=formulas.operation(COMBINES[s.mode], dtype, element, s.value))

    body = mapped(program.body, lambda d: d, None, target)
    changing = written(body)
    count = 0
    mark = "'" * max([len(n) - len(n.lstrip("'")) for n in program.arrays], default=0)
    made: list[Array] = []

    def kept(body: Sequence[Statement], private: list[Array]) -> tuple[Statement, ...]:
        nonlocal count
        result: list[Statement] = []
        for s in body:
            if isinstance(s, For):
                own: list[Array] = list(s.private)
                s = replace(s, body=kept(s.body, own))
                s = replace(s, private=tuple(own))
            elif isinstance(s, If):
                if any(r.data in changing for r in formulas.reads_of(s.condition)):
                    count += 1
                    held = Array(f"{mark}if{count}", D.bool_, ())
                    private.append(held)
                    result.append(Set(held.name, (), s.condition, "set", s.where))
                    s = replace(s, condition=formulas.read(held.name, (), D.bool_))
                s = replace(s, body=kept(s.body, private), other=kept(s.other, private))
            result.append(s)
        return tuple(result)

    body = kept(body, made)
    return replace(program, body=body, locals=(*program.locals, *made))


def _extremes(program: Program) -> set[str]:
    """Return the arrays of maxima or minima alone, which are read when they are complete.

    What they are of is settled, so that it may be compared with them later.
    """
    scopes = [(program.body, (*program.outputs, *program.locals))]
    scopes += [(s.body, s.private) for s in statements(program.body) if isinstance(s, For)]
    changing = {a.name for body, declared in scopes for a in declared if not is_settled(a, body)}
    found = set()
    for body, declared in scopes:
        for a in declared:
            writes = [s for s in statements(body) if isinstance(s, Set) and s.array == a.name]
            modes = [s.mode for s in writes]
            if any(r.data in changing for s in writes for r in formulas.reads_of(s.value)):
                continue
            kinds = set(modes) - {"set"}
            single = kinds in ({"max"}, {"min"}) and a.name not in changing and not is_overwritten(a.name, body)
            if single and "set" not in modes[1:]:
                found.add(a.name)
    return found


def _spread(program: Program) -> Program:
    """Return a program without private arrays, where these depend on memory that changes later.

    Each becomes memory of the whole run, with an element for each iteration.
    """
    if not _crosses(program.body, (*program.outputs, *program.locals), set()):
        return program
    body, found = spread(program.body, lambda a: True, lambda loops: loops, program.name)
    return replace(program, body=body, locals=(*program.locals, *found))


def _crosses(body: Sequence[Statement], declared: Sequence[Array], changing: set[str]) -> bool:
    """Return whether a loop with private arrays writes memory around it that changes later.

    `declared` are the arrays of the scope `body`, `changing` are such arrays of scopes around it.
    """
    changing = changing | {a.name for a in declared if not is_settled(a, body)}
    for s in statements(body):
        if isinstance(s, For) and s.private and (written(s.body) & changing or _crosses(s.body, s.private, changing)):
            return True
    return False


@dataclass
class _Scope:
    """The memory of a scope on the way back.

    `changing` are the arrays whose elements are recorded before they are overwritten, `records` the
    arrays for that, and `marks` says to which the old element of a `Set` goes, by its identity.
    """

    changing: set[str]
    records: list[Array] = field(default_factory=list)
    marks: dict[int, Array] = field(default_factory=dict)


class _Adjoint:
    """The writer of one derivative."""

    def __init__(self, program: Program, partials: Partials) -> None:
        self.program, self.partials = program, partials
        self.arrays = program.arrays
        self.smooth = {a.name for a in self.arrays.values() if a.dtype.is_differentiable}
        self.count = 0
        # Each derivative of a derivative has names of its own.
        self.order = 1 + max([len(n) - len(n.lstrip("'")) for n in self.arrays], default=0)
        self.extremes = {s.array for s in statements(program.body) if isinstance(s, Set) and s.mode in ("max", "min")}
        # Outputs that are overwritten, or read while they still change, are computed again under
        # another name.
        self.again = {
            a.name for a in program.outputs if is_overwritten(a.name, program.body) or not is_settled(a, program.body)
        }
        self.overwritten: set[str] = set()
        # Of the value that is gone back through: the reads that are made in any case.
        self.certain: frozenset[Formula] = frozenset()
        # The cotangents of outputs that are read grow on the way back; they are copied.
        read = reads_in(program.body)
        self.growing = {a.name for a in program.outputs if a.name in read and a.name not in self.again}

    def run(self) -> Program:
        p = self.program
        given = [Array(self.named("d", a.name), a.dtype, a.shape) for a in p.outputs if a.name in self.smooth]
        made = [self.cotangent_of(a) for a in p.inputs if a.name in self.smooth]
        inputs = [*p.inputs, *p.outputs, *given]
        body = p.body
        declared = list(p.locals)
        names: dict[str, str] = {}
        if self.again:
            names = {n: self.named("now", n) for n in self.again}
            body = _renamed(body, names)
            declared += [replace(a, name=names[a.name]) for a in p.outputs if a.name in self.again]
            self.arrays.update({a.name: a for a in declared})
            self.smooth |= {names[n] for n in self.again & self.smooth}
            self.extremes |= {names[n] for n in self.extremes & self.again}
        held = [self.cotangent_of(a) for a in declared if a.name in self.smooth]
        copies = sorted((self.again | self.growing) & self.smooth)
        held += [replace(self.arrays[n], name=self.named("sum", n), fill=None) for n in copies if n in self.growing]
        first = [self.copied(self.named("d", n), self.cotangent(names.get(n, n)), self.arrays[n]) for n in copies]
        forward, extra, backward = self.scope(body, declared)
        for a in p.outputs:
            if a.name in self.extremes and a.name not in self.again:
                forward += self.counted(body, a, extra)
        program = Program(
            f"{p.name} backward",
            tuple(inputs),
            tuple(made),
            (*declared, *held, *extra),
            (*first, *forward, *backward),
        )
        return program

    def named(self, kind: str, name: str) -> str:
        """Return the name of an array of a kind that belongs to another one."""
        return "'" * self.order + f"{kind}_{name}"

    def cotangent(self, name: str) -> str:
        """Return the name of an array's cotangent."""
        return self.named("sum" if name in self.growing else "d", name)

    def cotangent_of(self, a: Array) -> Array:
        """Return the array for an array's cotangent, which begins with zeros."""
        return Array(self.named("d", a.name), a.dtype, a.shape, 0.0)

    def copied(self, source: str, target: str, array: Array) -> Statement:
        """Return the loops that copy an array into another one of its shape."""
        return each_element(array, target, lambda place: Set(target, place, formulas.read(source, place, array.dtype)))

    # Scopes.

    def scope(
        self, body: Sequence[Statement], declared: Sequence[Array]
    ) -> tuple[list[Statement], list[Array], list[Statement]]:
        """Return what computes a scope's memory again, what it records with, and the way back."""
        names = {a.name for a in declared}
        changing = {a.name for a in declared if not is_settled(a, body)}
        self.overwritten |= {n for n in names if is_overwritten(n, body)}
        scope = _Scope(changing)
        backward = self.reversed(body, scope, ())
        again = self.recomputed(body, names, scope, ())
        counts = [s for a in declared if a.name in self.extremes for s in self.counted(body, a, scope.records)]
        return [*again, *counts], scope.records, backward

    def recomputed(
        self,
        body: Sequence[Statement],
        names: set[str],
        scope: _Scope,
        loops: tuple[For, ...],
    ) -> list[Statement]:
        """Return the statements in `body`, inside of `loops`, that write the arrays `names`.

        What they overwrite is recorded as `scope` says.
        """
        # What these statements need of arrays of inner loops is written by others of them.
        loops_inside = [s for s in statements(body) if isinstance(s, For) and written(s.body) & names]
        wanted = names | {a.name for s in loops_inside for a in s.private}
        made: list[Statement] = []
        for s in body:
            if isinstance(s, Set):
                if s.array in wanted:
                    mark = scope.marks.get(id(s))
                    if mark is not None:
                        place = tuple([index_of(loop.index) for loop in loops])
                        made.append(Set(mark.name, place, formulas.read(s.array, s.place, mark.dtype)))
                    made.append(s)
            elif isinstance(s, If):
                parts = [self.recomputed(b, wanted, scope, loops) for b in (s.body, s.other)]
                if any(parts):
                    made.append(replace(s, body=tuple(parts[0]), other=tuple(parts[1])))
            elif written(s.body) & wanted:
                inner = self.recomputed(s.body, wanted, scope, (*loops, s))
                made.append(replace(s, body=tuple(inner)))
        return made

    def counted(self, body: Sequence[Statement], array: Array, records: list[Array]) -> list[Statement]:
        """Return the statements that count, for each element of an extreme, what attains it."""
        count = Array(self.named("n", array.name), array.dtype, array.shape, 0.0)
        records.append(count)
        one, none = formulas.constant(1, array.dtype), formulas.constant(0, array.dtype)

        def target(s: Set) -> Set:
            if s.array != array.name:
                return s
            final = formulas.read(array.name, s.place, array.dtype)
            same = formulas.operation("eq", D.bool_, s.value, final)
            return replace(
                s, array=count.name, mode="add", value=formulas.operation("select", array.dtype, same, one, none)
            )

        return list(_only(mapped(body, lambda d: d, None, target), count.name))

    # The way back.

    def reversed(
        self,
        body: Sequence[Statement],
        scope: _Scope,
        loops: tuple[For, ...],
    ) -> list[Statement]:
        """Return the way back through statements of a scope that are inside of `loops`."""
        made: list[Statement] = []
        for s in reversed(body):
            if isinstance(s, Set):
                made += self.passed(s, scope, loops)
            elif isinstance(s, If):
                parts = [self.reversed(b, scope, loops) for b in (s.body, s.other)]
                if any(parts):
                    made.append(replace(s, body=tuple(parts[0]), other=tuple(parts[1])))
            else:
                inner, private = self.round(s, scope, loops)
                if inner:
                    made.append(replace(s, body=tuple(inner), backward=not s.backward, private=tuple(private)))
        return made

    def round(self, s: For, scope: _Scope, loops: tuple[For, ...]) -> tuple[list[Statement], list[Array]]:
        """Return the way back through one iteration of a loop, and what is private to it."""
        if not s.private:
            return self.reversed(s.body, scope, (*loops, s)), []
        if scope.changing & written(s.body):
            raise AssertionError("private arrays beside memory that changes were spread")
        forward, extra, inner = self.scope(s.body, s.private)
        cotangents = [self.cotangent_of(a) for a in s.private if a.name in self.smooth]
        return [*forward, *inner] if inner else [], [*s.private, *cotangents, *extra]

    def passed(self, s: Set, scope: _Scope, loops: tuple[For, ...]) -> list[Statement]:
        """Return what one `Set` does on the way back."""
        made: list[Statement] = []
        if s.array in scope.changing:
            self.count += 1
            mark = Array(
                self.named("old", str(self.count)), self.arrays[s.array].dtype, tuple(extents(loops, self.program.name))
            )
            scope.records.append(mark)
            scope.marks[id(s)] = mark
            place = tuple([index_of(loop.index) for loop in loops])
            made.append(replace(s, mode="set", value=formulas.read(mark.name, place, mark.dtype)))
        if s.array not in self.smooth:
            return made
        dtype = s.value.dtype
        mine = formulas.read(self.cotangent(s.array), s.place, dtype)
        reads_itself = any(r.data == s.array for r in formulas.reads_of(s.value))
        again = s.array in self.overwritten or reads_itself
        clears = s.mode == "set" and s.array not in self.extremes and again
        if clears and reads_itself:
            # The element's own cotangent is taken out before anything is given to it.
            self.count += 1
            held = Array(self.named("own", str(self.count)), dtype, ())
            taken = formulas.read(held.name, (), dtype)
            inner = self.given(s, taken)
            zero = Set(self.cotangent(s.array), s.place, formulas.constant(0, dtype))
            once = For(
                self.named("once", str(self.count)),
                0,
                1,
                (Set(held.name, (), mine), zero, *inner),
                "serial",
                False,
                (held,),
                s.where,
            )
            return [*made, once]
        made += self.given(s, mine)
        if clears:
            made.append(Set(self.cotangent(s.array), s.place, formulas.constant(0, dtype)))
        return made

    def given(self, s: Set, cotangent: Formula) -> list[Statement]:
        """Return the statements that give the cotangent of a `Set` to what its value reads."""
        dtype = s.value.dtype
        if s.array in self.extremes:
            final = formulas.read(s.array, s.place, dtype)
            attains = formulas.operation("eq", D.bool_, s.value, final)
            share = formulas.operation("div", dtype, cotangent, formulas.read(self.named("n", s.array), s.place, dtype))
            cotangent = formulas.operation("select", dtype, attains, share, formulas.constant(0, dtype))
        found: dict[_Taken, Formula] = {}
        self.certain = _certain(s.value, {})
        self.walk(s.value, cotangent, found, ())
        made: list[Statement] = []
        for (r, held), c in found.items():
            if r.data in self.smooth:
                one: Statement = Set(self.cotangent(r.data), r.place, formulas.cast(c, r.dtype), "add", s.where)
                # Where a side is not chosen, its elements may be outside of their arrays.
                for test in reversed(held):
                    one = If(test, (one,), (), s.where)
                made.append(one)
        return made

    def walk(self, f: Formula, cotangent: Formula, found: dict[_Taken, Formula], held: tuple[Formula, ...]) -> None:
        """Add to `found` what a formula `f` gives to each read in it where conditions `held` hold.

        `cotangent` is that of the formula.
        """
        if not f.dtype.is_differentiable or f.kind in ("const", "index"):
            return
        if f.kind == "read":
            held = () if f in self.certain else held
            before = found.get((f, held))
            found[f, held] = cotangent if before is None else formulas.operation("add", f.dtype, before, cotangent)
            return
        if f.data == "select":
            zero, (test, one, other) = formulas.constant(0, f.dtype), f.args
            self.walk(one, formulas.operation("select", f.dtype, test, cotangent, zero), found, (*held, test))
            self.walk(
                other, formulas.operation("select", f.dtype, test, zero, cotangent), found, (*held, opposite(test))
            )
            return
        if not any(r.data in self.smooth for r in formulas.reads_of(f)):
            return
        for a, partial in zip(f.args, self.partials(f)):
            if partial is not None and a.dtype.is_differentiable:
                given = formulas.cast(cotangent, partial.dtype) if f.data == "cast" else cotangent
                self.walk(a, formulas.operation("mul", a.dtype, given, partial), found, held)


def _certain(f: Formula, known: dict[Formula, frozenset[Formula]]) -> frozenset[Formula]:
    """Return the reads in a formula that are made whatever its conditions are.

    `known` has those of formulas that were asked for before.
    """
    found = known.get(f)
    if found is None:
        parts = [_certain(a, known) for a in f.args]
        if f.kind == "read":
            found = frozenset((f,))
        elif f.data == "select":
            found = parts[0] | parts[1] & parts[2]
        elif f.data in ("logical_and", "logical_or"):
            found = parts[0]
        else:
            found = frozenset().union(*parts)
        known[f] = found
    return found


def _renamed(body: Sequence[Statement], names: dict[str, str]) -> tuple[Statement, ...]:
    """Return statements with other names for arrays."""

    def element(f: Formula) -> Formula:
        return formulas.read(names.get(f.data, f.data), f.place, f.dtype)

    def target(s: Set) -> Set:
        return replace(s, array=names.get(s.array, s.array))

    return mapped(body, lambda d: d, element, target)


def _only(body: Sequence[Statement], name: str) -> list[Statement]:
    """Return the statements that write one array."""
    made: list[Statement] = []
    for s in body:
        if isinstance(s, Set):
            if s.array == name:
                made.append(s)
        elif isinstance(s, If):
            parts = [_only(b, name) for b in (s.body, s.other)]
            if any(parts):
                made.append(replace(s, body=tuple(parts[0]), other=tuple(parts[1])))
        elif inner := _only(s.body, name):
            made.append(replace(s, body=tuple(inner)))
    return made
