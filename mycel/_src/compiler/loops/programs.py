"""The IR of loop programs: arrays, statements and programs.

    For    a loop of an index from `start` up to `stop`, with arrays private to each iteration
    If     statements under a condition
    Set    writes one element, or combines it with a value by add, mul, max or min

An input's size along an axis is the symbol that `size_of` gives. Loops and sizes are dimensions;
conditions and values are formulas. Programs are immutable and equal by structure; where they stand
in the user's source is not compared.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import Dim, DimLike, symbol
from mycel._src.compiler.loops.formulas import Formula, Place, Term, replaced
from mycel._src.foundation.dtype import DType

__all__ = [
    "COMBINES",
    "NEUTRAL",
    "Agreement",
    "Array",
    "For",
    "If",
    "Instance",
    "Program",
    "Set",
    "Statement",
    "Where",
    "called",
    "each_element",
    "index_of",
    "listed",
    "mapped",
    "size_of",
    "statements",
    "with_sizes",
    "written",
]

Where = tuple[str, int]
# The primitive by which each mode of a `Set` combines, and what leaves the other operand as it is.
COMBINES = {"add": "add", "mul": "mul", "max": "maximum", "min": "minimum"}
NEUTRAL = {"add": 0.0, "mul": 1.0, "max": float("-inf"), "min": float("inf")}


def size_of(name: str, axis: int) -> Dim:
    """Return the symbol of an input's size."""
    return symbol(f"{name}.{axis}", 0)


def index_of(name: str) -> Dim:
    """Return the symbol of a loop's index, which is not negative."""
    return symbol(name, 0)


def called(name: str) -> str:
    """Return what the user's source calls an array; a number follows it in programs."""
    head, _, number = name.removeprefix("v_").rpartition("_")
    return head if head and number.isdigit() else name


@dataclass(frozen=True)
class Array:
    """Memory of a program: its name, element type and shape, and what fills it first."""

    name: str
    dtype: DType
    shape: tuple[DimLike, ...]
    fill: float | None = None


# A statement before a schedule, by its number, and the iteration in which it ran.
Instance = tuple[int, tuple[DimLike, ...]]


@dataclass(frozen=True)
class Set:
    """Writes `value` to an element, or combines them by `mode`: set, add, mul, max or min."""

    array: str
    place: Place
    value: Formula
    mode: str = "set"
    where: Where | None = field(default=None, compare=False)
    instance: Instance | None = field(default=None, compare=False)


@dataclass(frozen=True)
class If:
    """Runs `body` where the condition holds, else `other`."""

    condition: Formula
    body: tuple[Statement, ...]
    other: tuple[Statement, ...] = ()
    where: Where | None = field(default=None, compare=False)
    instance: Instance | None = field(default=None, compare=False)


@dataclass(frozen=True)
class For:
    """Runs `body` for an index from `start` up to `stop`, downwards where `backward`.

    `kind` is "serial", "parallel", "vectorize", "reduce" or "unroll", as the user declared it.
    `private` are arrays that each iteration has for itself. `mark` is what a schedule found to be
    right and wants of the code: "parallel", "vectorize", "unroll" or nothing.
    """

    index: str
    start: DimLike
    stop: DimLike
    body: tuple[Statement, ...]
    kind: str = "serial"
    backward: bool = False
    private: tuple[Array, ...] = ()
    where: Where | None = field(default=None, compare=False)
    mark: str = ""


Statement = For | If | Set


@dataclass(frozen=True)
class Agreement:
    """Two sizes that must be equal, and what is wrong where they are not."""

    left: DimLike
    right: DimLike
    text: str
    where: Where = field(compare=False)


@dataclass(frozen=True)
class Program:
    """Computes `outputs` from `inputs`, with `locals` as memory of the whole run.

    `name` is shown in messages and plans. `derivative` computes, where the user gave one, the
    cotangents of the inputs from the inputs, the outputs and the outputs' cotangents. `agreements`
    are asked for when sizes are known. `plan` computes the same with its loops in another order, by
    a schedule, whose `words` it has: engines run it, while derivatives are those of the program
    itself. With `reassociate`, sums and products of floats may be associated in another way.
    """

    name: str
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    locals: tuple[Array, ...]
    body: tuple[Statement, ...]
    derivative: Program | None = None
    agreements: tuple[Agreement, ...] = ()
    plan: Program | None = None
    reassociate: bool = False
    words: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "_hash", hash((self.name, self.inputs, self.outputs, self.locals, self.body, self.plan))
        )

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined,no-any-return]

    @functools.cached_property
    def lasting_text(self) -> str:
        """The program as text that is the same in every process, and that determines it."""
        return "\n".join(_Writer().program(self))

    @property
    def arrays(self) -> dict[str, Array]:
        """Every array by its name, private ones too."""
        found = {a.name: a for a in (*self.inputs, *self.outputs, *self.locals)}
        for s in statements(self.body):
            if isinstance(s, For):
                found.update({a.name: a for a in s.private})
        return found

    def __repr__(self) -> str:
        return f"<program {self.name}>"

    def __str__(self) -> str:
        return "\n".join(self.listing())

    def listing(self) -> list[str]:
        """Return the program's lines as text."""
        lines = [f"{self.name}({', '.join(map(_declared, self.inputs))}) -> {', '.join(map(_declared, self.outputs))}"]
        lines += [f"    {_declared(a)}" for a in self.locals]
        lines += _lines(self.body, 1)
        if self.plan is not None:
            allowed = ", which may reassociate" if self.plan.reassociate else ""
            lines += [f"  as scheduled{allowed}:", *[f"    {w}" for w in self.plan.words or ("nothing",)]]
        return lines


def _declared(array: Array) -> str:
    filled = "" if array.fill is None else f" = {array.fill:g}"
    return f"{array.name}: {array.dtype.name}[{', '.join(map(str, array.shape))}]{filled}"


_SIGNS = {"set": "=", "add": "+=", "mul": "*=", "max": "max=", "min": "min="}


def _lines(body: Sequence[Statement], depth: int) -> Iterator[str]:
    pad = "    " * depth
    for s in body:
        if isinstance(s, Set):
            yield f"{pad}{s.array}[{', '.join(map(repr, s.place))}] {_SIGNS[s.mode]} {s.value!r}"
        elif isinstance(s, If):
            yield f"{pad}if {s.condition!r}:"
            yield from _lines(s.body, depth + 1)
            if s.other:
                yield f"{pad}else:"
                yield from _lines(s.other, depth + 1)
        else:
            kind = "".join([f" {word}" for word in dict.fromkeys((s.kind, s.mark)) if word not in ("serial", "")])
            order = " downwards" if s.backward else ""
            yield f"{pad}for{kind} {s.index} in {s.start}..{s.stop}{order}:"
            yield from [f"{pad}    {_declared(a)}" for a in s.private]
            yield from _lines(s.body, depth + 1)


def listed(s: Statement) -> list[str]:
    """Return a statement as lines of text, with its place in the user's source."""
    first, *rest = _lines((s,), 0)
    return [first if s.where is None else f"{first}  # {s.where[0]}:{s.where[1]}", *rest]


def each_element(array: Array, name: str, write: Callable[[Place], Set]) -> Statement:
    """Return the loops that write each element of an array, by the `Set` that `write` makes of its
    place.

    The indices are called after `name`.
    """
    names = [f"{name}_{k}" for k in range(len(array.shape))]
    made: Statement = write(tuple([index_of(n) for n in names]))
    for n, extent in reversed(list(zip(names, array.shape))):
        made = For(n, 0, extent, (made,))
    return made


def statements(body: Sequence[Statement]) -> Iterator[Statement]:
    """Yield every statement, each before those inside it."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from statements(s.body)
        elif isinstance(s, If):
            yield from statements((*s.body, *s.other))


def written(body: Sequence[Statement]) -> set[str]:
    """Return the names of the arrays that statements write."""
    return {s.array for s in statements(body) if isinstance(s, Set)}


def mapped(
    body: Sequence[Statement],
    position: Callable[[DimLike], DimLike],
    element: Callable[[Formula], Formula] | None = None,
    target: Callable[[Set], Set] | None = None,
) -> tuple[Statement, ...]:
    """Return statements with every dimension and every read replaced, as `replaced` does.

    `body` are the statements; `position` gets each dimension and `element` each read. `target` gets
    each `Set` whose formulas are replaced already.
    """
    known: dict[Formula, Formula] = {}

    def formula(f: Formula) -> Formula:
        return replaced(f, position, element, known)

    def term(t: Term) -> Term:
        return formula(t) if isinstance(t, Formula) else position(t)

    def instance(found: Instance | None) -> Instance | None:
        return None if found is None else (found[0], tuple([position(d) for d in found[1]]))

    made: list[Statement] = []
    for s in body:
        if isinstance(s, Set):
            place = tuple([term(t) for t in s.place])
            new = replace(s, place=place, value=formula(s.value), instance=instance(s.instance))
            made.append(new if target is None else target(new))
        elif isinstance(s, If):
            inner = [mapped(b, position, element, target) for b in (s.body, s.other)]
            test, held = formula(s.condition), instance(s.instance)
            made.append(replace(s, condition=test, body=inner[0], other=inner[1], instance=held))
        else:
            private = tuple([replace(a, shape=tuple([position(d) for d in a.shape])) for a in s.private])
            made.append(
                replace(
                    s,
                    start=position(s.start),
                    stop=position(s.stop),
                    body=mapped(s.body, position, element, target),
                    private=private,
                )
            )
    return tuple(made)


def with_sizes(program: Program, sizes: dict[str, DimLike]) -> Program:
    """Return a program with dimensions in place of its inputs' sizes, by name."""

    def position(d: DimLike) -> DimLike:
        return substitute(d, sizes)

    def array(a: Array) -> Array:
        return replace(a, shape=tuple([position(d) for d in a.shape]))

    return replace(
        program,
        inputs=tuple(map(array, program.inputs)),
        outputs=tuple(map(array, program.outputs)),
        locals=tuple(map(array, program.locals)),
        body=mapped(program.body, position),
        agreements=tuple([replace(a, left=position(a.left), right=position(a.right)) for a in program.agreements]),
        plan=None if program.plan is None else with_sizes(program.plan, sizes),
    )


class _Writer:
    """A writer of programs as text, in which a formula that occurs often has a number."""

    def __init__(self) -> None:
        self.number: dict[Formula, int] = {}
        self.lines: list[str] = []

    def program(self, program: Program) -> Iterator[str]:
        yield f"program {program.name!r} {program.reassociate}"
        for what, arrays in (("in", program.inputs), ("out", program.outputs), ("local", program.locals)):
            yield from [f"{what} {_array(a)}" for a in arrays]
        yield from [f"agree {a.left!r} {a.right!r} {a.text!r}" for a in program.agreements]
        self.block(program.body)
        yield from self.lines
        for what, other in (("derivative", program.derivative), ("plan", program.plan)):
            if other is not None:
                yield what
                yield from _Writer().program(other)
        yield "end"

    def block(self, body: Sequence[Statement]) -> None:
        for s in body:
            if isinstance(s, Set):
                value = self.formula(s.value)
                place = " ".join([self.term(t) for t in s.place])
                self.lines.append(f"set {s.array} [{place}] {s.mode} {value}")
            elif isinstance(s, If):
                self.lines.append(f"if {self.formula(s.condition)}")
                self.block(s.body)
                self.lines.append("else")
                self.block(s.other)
                self.lines.append("end")
            else:
                self.lines.append(f"for {s.index} {s.start!r} {s.stop!r} {s.kind} {s.backward} {s.mark}")
                self.lines += [f"private {_array(a)}" for a in s.private]
                self.block(s.body)
                self.lines.append("end")

    def term(self, t: Term) -> str:
        return f"%{self.formula(t)}" if isinstance(t, Formula) else repr(t).replace(" ", "")

    def formula(self, f: Formula) -> int:
        found = self.number.get(f)
        if found is None:
            operands = [f"%{self.formula(a)}" for a in f.args]
            place = [self.term(t) for t in f.place]
            found = self.number[f] = len(self.number)
            data = repr(f.data).replace(" ", "")
            self.lines.append(f"%{found} {f.kind} {f.dtype.name} {data} {' '.join(operands)} [{' '.join(place)}]")
        return found


def _array(a: Array) -> str:
    return f"{a.name} {a.dtype.name} {a.shape!r} {a.fill!r}"
