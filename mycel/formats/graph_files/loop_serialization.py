"""Serialisation of loop programs in graph files, and their validation when read.

A program is an object with the names and shapes of its arrays, its formulas as a list in which each
names earlier ones by number, and its statements as nested lists. Schedules are not part of it: the
program that is read runs by rules, as what a schedule proves would have to be proved again.

Nothing in a file is believed (`mycel.formats.graph_files.validation`). Code leaves out the test of
a place that is proved to be inside of its array, so that what proofs rest on is checked here:
indices and sizes are not negative, an index is used inside of its loop, and an array inside of the
loop that it is private to. Arrays that nothing fills are filled with zeros, so that none shows what
was in memory before. Operations are element-wise primitives, whose types are inferred anew, and
inputs are not written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.formulas import Formula, Term
from mycel._src.compiler.loops.legality import is_never_negative
from mycel._src.compiler.loops.programs import COMBINES, Agreement, Array, For, If, Program, Set, Statement, statements
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.validation import DEEPEST, FORMS, MOST, MOST_TERMS, Refusal, check_terms

__all__ = ["form_of", "program_of"]

_NAME = re.compile(r"[A-Za-z_'][A-Za-z0-9_'~]{0,199}")
_MODES = ("set", *COMBINES)
_KINDS = ("serial", "parallel", "vectorize", "reduce", "unroll")
_MOST_PARTS = 1 << 16
_MOST_FACTOR = 1 << 31
# Forms of further values, as graph files write and read them: sizes and numbers.
Writes = Callable[[Any], Any]
Reads = Callable[[Any], Any]


def form_of(program: Program, value: Writes) -> dict[str, Any]:
    """Return a program as objects of JSON; `value` writes a number or a dimension.

    Raises Unsupported for one that could not be read.
    """
    plain = replace(program, plan=None)
    form = _Writer(value).program(plain)
    try:
        _check(plain)
    except Refusal as error:
        raise Unsupported(f"the operator {program.name} has no form in a file: {error}") from None
    return form


class _Writer:
    """The writer of one program, whose formulas get numbers."""

    def __init__(self, value: Writes) -> None:
        self.value = value
        self.numbers: dict[Formula, int] = {}
        self.formulas: list[Any] = []

    def program(self, program: Program) -> dict[str, Any]:
        body = self.block(program.body)
        agreements = [[self.value(a.left), self.value(a.right), a.text] for a in program.agreements]
        derivative = None if program.derivative is None else _Writer(self.value).program(program.derivative)
        arrays = [list(map(self.array, part)) for part in (program.inputs, program.outputs, program.locals)]
        return {
            "name": program.name,
            "arrays": arrays,
            "formulas": self.formulas,
            "body": body,
            "agreements": agreements,
            "derivative": derivative,
            "reassociate": program.reassociate,
        }

    def array(self, a: Array) -> list[Any]:
        return [a.name, a.dtype.name, [self.value(d) for d in a.shape], self.value(a.fill)]

    def block(self, body: Sequence[Statement]) -> list[Any]:
        made: list[Any] = []
        for s in body:
            if isinstance(s, Set):
                made.append(["set", s.array, s.mode, [self.term(t) for t in s.place], self.formula(s.value)])
            elif isinstance(s, If):
                made.append(["if", self.formula(s.condition), self.block(s.body), self.block(s.other)])
            else:
                bounds = [self.value(s.start), self.value(s.stop)]
                private = [self.array(a) for a in s.private]
                made.append(["for", s.index, *bounds, s.kind, s.backward, private, self.block(s.body)])
        return made

    def term(self, t: Term) -> Any:
        return {"formula": self.formula(t)} if isinstance(t, Formula) else self.value(t)

    def formula(self, f: Formula) -> int:
        found = self.numbers.get(f)
        if found is None:
            args = [self.formula(a) for a in f.args]
            place = [self.term(t) for t in f.place]
            data = self.value(f.data)
            found = self.numbers[f] = len(self.formulas)
            self.formulas.append([f.kind, f.dtype.name, args, data, place])
        return found


# Reading.


def program_of(form: Any, value: Reads) -> Program:
    """Return the program of a form; `value` reads a number or a dimension.

    Raises Refusal for what no program may have.
    """
    return _check(_read(form, value, 0))


def _read(form: Any, value: Reads, depth: int) -> Program:
    keys = {"name", "arrays", "formulas", "body", "agreements", "derivative", "reassociate"}
    if type(form) is not dict or set(form) != keys or type(form["name"]) is not str or depth > 4:
        raise Refusal("an operator has not the parts that it needs")
    reader = _Reader(value)
    arrays = _list(form["arrays"], 3)
    inputs, outputs, inner = (tuple([reader.array(a, k > 0) for a in _list(part)]) for k, part in enumerate(arrays))
    for f in _list(form["formulas"]):
        reader.formula(f)
    agreements = []
    for row in _list(form["agreements"]):
        left, right, text = _list(row, 3)
        agreements.append(Agreement(reader.dim(left), reader.dim(right), str(text)[:200], ("", 0)))
    derivative = None if form["derivative"] is None else _check(_read(form["derivative"], value, depth + 1))
    body = reader.block(form["body"], 0)
    flag = form["reassociate"]
    if type(flag) is not bool:
        raise Refusal("an operator says neither that sums may be reassociated nor that they may not")
    return Program(form["name"][:200], inputs, outputs, inner, body, derivative, tuple(agreements), None, flag)


def _list(value: Any, count: int | None = None) -> list[Any]:
    if type(value) is not list or count is not None and len(value) != count or len(value) > _MOST_PARTS:
        raise Refusal(f"an operator has {value!r:.100} in the place of a list")
    return value


class _Reader:
    """The reader of one program."""

    def __init__(self, value: Reads) -> None:
        self.value = value
        self.formulas: list[Formula] = []

    def dim(self, form: Any) -> DimLike:
        found = self.value(form)
        if type(found) is int and -MOST <= found <= MOST:
            return found
        if not isinstance(found, Dim):
            raise Refusal(f"an operator has {found!r:.100} in the place of a size")
        check_terms(found, "an operator")
        return found

    def name(self, form: Any) -> str:
        if type(form) is not str or _NAME.fullmatch(form) is None:
            raise Refusal(f"{form!r:.100} is no name of an array or of an index")
        return form

    def array(self, form: Any, made: bool) -> Array:
        name, kind, shape, fill = _list(form, 4)
        dims = tuple([self.dim(d) for d in _list(shape)])
        filled = self.value(fill)
        if filled is not None and type(filled) not in (int, float):
            raise Refusal(f"an array is filled with {filled!r:.100}")
        return Array(self.name(name), from_any(str(kind)), dims, 0.0 if made and filled is None else filled)

    def block(self, form: Any, depth: int) -> tuple[Statement, ...]:
        if depth > DEEPEST:
            raise Refusal("the loops of an operator nest too deep")
        return tuple([self.statement(s, depth) for s in _list(form)])

    def statement(self, form: Any, depth: int) -> Statement:
        what, *parts = _list(form) or [None]
        if what == "set":
            array, mode, place, value = _list(parts, 4)
            return Set(self.name(array), tuple(map(self.term, _list(place))), self.numbered(value), str(mode))
        if what == "if":
            test, body, other = _list(parts, 3)
            return If(self.numbered(test), self.block(body, depth + 1), self.block(other, depth + 1))
        if what != "for":
            raise Refusal(f"an operator has the unknown statement {what!r:.100}")
        index, start, stop, kind, backward, private, body = _list(parts, 7)
        own = tuple([self.array(a, True) for a in _list(private)])
        bounds = self.dim(start), self.dim(stop)
        return For(self.name(index), *bounds, self.block(body, depth + 1), str(kind), backward is True, own)

    def term(self, form: Any) -> Term:
        if type(form) is dict and set(form) == {"formula"}:
            return self.numbered(form["formula"])
        return self.dim(form)

    def numbered(self, number: Any) -> Formula:
        if type(number) is not int or not 0 <= number < len(self.formulas):
            raise Refusal(f"an operator has no formula {number!r:.100}")
        return self.formulas[number]

    def formula(self, form: Any) -> None:
        kind, name, args, data, place = _list(form, 5)
        dtype = from_any(str(name))
        operands = tuple(map(self.numbered, _list(args)))
        if kind == "const":
            found = self.value(data)
            if type(found) not in (bool, int, float):
                raise Refusal(f"an operator has the number {found!r:.100}")
            made = formulas.constant(found, dtype)
        elif kind == "index":
            made = Formula("index", D.int64, (), self.dim(data))
        elif kind == "read":
            made = Formula("read", dtype, (), self.name(data), tuple(map(self.term, _list(place))))
        elif kind == "op" and type(data) is str:
            made = Formula("op", dtype, operands, data)
        else:
            raise Refusal(f"an operator has a formula of the unknown kind {kind!r:.100}")
        self.formulas.append(made)


# Checks.


def _check(program: Program) -> Program:
    """Return a program whose parts fit each other; raise Refusal for another."""
    known: dict[str, Array] = {}
    for a in (*program.inputs, *program.outputs, *program.locals):
        if a.name in known:
            raise Refusal(f"an operator has two arrays {a.name}")
        known[a.name] = a
    if not program.outputs or sum(1 for _ in statements(program.body)) > _MOST_PARTS:
        raise Refusal("an operator has no result, or too many statements")
    sizes = {f"{a.name}.{k}" for a in program.inputs for k in range(len(a.shape))}
    checker = _Checker({a.name for a in program.inputs}, known)
    for a in known.values():
        checker.shape(a, sizes)
    for agreement in program.agreements:
        checker.dim(agreement.left, sizes)
        checker.dim(agreement.right, sizes)
    checker.block(program.body, sizes, known)
    return program


class _Checker:
    """The checks of a program's statements; `inputs` are the arrays that none may write."""

    def __init__(self, inputs: set[str], arrays: Mapping[str, Array]) -> None:
        self.inputs = inputs
        # Every array by its name, also of loops that are left: code knows arrays by their names.
        self.declared = dict(arrays)
        self.loops: list[For] = []
        self.right: set[tuple[Formula, frozenset[str], frozenset[str]]] = set()

    def dim(self, d: DimLike, symbols: set[str]) -> None:
        if not _is_moderate(d):
            raise Refusal(f"{str(d)!r:.100} is no size that code computes with 64 bits")
        for name, atom in symbols_in(d).items():
            if name not in symbols:
                raise Refusal(f"{name!r:.100} is no index of a loop around, and no size of an input")
            if (atom.low, atom.high) != (0, math.inf):
                raise Refusal(f"{name!r:.100} has bounds of its own")

    def shape(self, a: Array, symbols: set[str]) -> None:
        for d in a.shape:
            self.dim(d, symbols)
            if not isinstance(d, Dim) and d < 0:
                raise Refusal(f"the array {a.name} has the size {d}")

    def block(self, body: Sequence[Statement], symbols: set[str], arrays: Mapping[str, Array]) -> None:
        for s in body:
            if isinstance(s, Set):
                self.write(s, symbols, arrays)
            elif isinstance(s, If):
                self.formula(s.condition, symbols, arrays)
                if s.condition.dtype is not D.bool_:
                    raise Refusal("a condition of an operator is no truth value")
                # What holds in a branch is not made use of: loops there have bounds of their own.
                self.block(s.body, symbols, arrays)
                self.block(s.other, symbols, arrays)
            else:
                self.loop(s, symbols, arrays)

    def loop(self, s: For, symbols: set[str], arrays: Mapping[str, Array]) -> None:
        if s.index in symbols or s.kind not in _KINDS or s.mark:
            raise Refusal(f"{s.index} is no index of a loop of its own")
        self.dim(s.start, symbols)
        self.dim(s.stop, symbols)
        if not is_never_negative(s.start, self.loops, ()):
            raise Refusal(f"the loop over {s.index} begins at {s.start}, which may be negative")
        inner = {**arrays}
        for a in s.private:
            before = self.declared.setdefault(a.name, a)
            if a.name in arrays or before is not a and (before != a or symbols_in(a.shape)):
                raise Refusal(f"an operator has two arrays {a.name}")
            self.shape(a, symbols)
            inner[a.name] = a
        self.loops.append(s)
        self.block(s.body, symbols | {s.index}, inner)
        self.loops.pop()

    def write(self, s: Set, symbols: set[str], arrays: Mapping[str, Array]) -> None:
        self.place(s.array, s.place, symbols, arrays)
        self.formula(s.value, symbols, arrays)
        array = arrays[s.array]
        if s.array in self.inputs or s.mode not in _MODES or s.value.dtype is not array.dtype:
            raise Refusal(f"an operator writes {s.value.dtype.name} to {s.array} by {s.mode!r:.100}")

    def place(self, name: str, place: Sequence[Term], symbols: set[str], arrays: Mapping[str, Array]) -> None:
        """Check a `place` in the array `name`, where `symbols` and `arrays` are known."""
        array = arrays.get(name)
        if array is None or len(place) != len(array.shape):
            raise Refusal(f"an operator has no array {name} of {len(place)} axes here")
        for t in place:
            if isinstance(t, Formula):
                self.formula(t, symbols, arrays)
                if t.dtype is not D.int64:
                    raise Refusal(f"an index of {name} is {t.dtype.name}")
            else:
                self.dim(t, symbols)

    def formula(self, root: Formula, symbols: set[str], arrays: Mapping[str, Array]) -> None:
        """Check a formula where `symbols` and `arrays` are known."""
        here = frozenset(symbols), frozenset(arrays)
        stack = [root]
        while stack:
            f = stack.pop()
            if (f, *here) in self.right:
                continue
            self.right.add((f, *here))
            if f.kind == "index":
                self.dim(f.data, symbols)
            elif f.kind == "read":
                self.place(f.data, f.place, symbols, arrays)
                if arrays[f.data].dtype is not f.dtype:
                    raise Refusal(f"an element of {f.data} is no {f.dtype.name}")
            elif f.kind == "op":
                _check_operation(f)
                stack += f.args


def _is_moderate(d: DimLike) -> bool:
    """Return whether a dimension has so few and so small parts that none of them overflows."""
    if not isinstance(d, Dim):
        return abs(d) <= _MOST_FACTOR
    if len(d.terms) > MOST_TERMS or any(abs(c) > _MOST_FACTOR for c in d.terms.values()):
        return False
    powers = all(sum(power for _, power in mono) <= 4 for mono in d.terms)
    return powers and all(_is_moderate(v) for mono in d.terms for atom, _ in mono for v in atom.operands)


def _check_operation(f: Formula) -> None:
    prim = REGISTRY.get(f.data)
    if f.data == "cast" and len(f.args) == 1:
        return
    if prim is None or prim.effect or f.data in FORMS or prim.reference is None or not f.args:
        raise Refusal(f"{f.data!r:.100} is no operation on elements")
    found = prim.type_of(*[tensor_type((), a.dtype) for a in f.args])
    if found != tensor_type((), f.dtype):
        raise Refusal(f"{f.data} of {[a.dtype.name for a in f.args]} is no {f.dtype.name}")
