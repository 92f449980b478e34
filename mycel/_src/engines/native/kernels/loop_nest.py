"""Loop nests over strided memory, which fusion builds and code generation turns into kernels.

A nest has loops, each parallel (its iterations are independent), reducing, or sequential, and
statements over scalar expressions. Positions are affine in the loop variables; sizes, coefficients
and offsets may be symbolic dimensions. An expression is a DAG of `Expr` that are unique by
structure, so that equal work is done once:

    load      a buffer at an `Access`, or `default` where a guard fails
    const     a literal
    index     an affine position as a number
    op        a primitive by name on operands of given element types
    check     an index, reported where it is out of range
    reduced   the result of a `Reduce` statement
    scanned   the value of a running reduction after each iteration

`Reduce` combines the values of an expression over all reducing loops; `Store` writes a value, in
every iteration ("full") or once for each iteration of the other loops ("row"). Statements that use
a reduced value run after the loops that made it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from mycel._src.compiler.ir.dims import DimLike, is_zero, same
from mycel._src.foundation.dtype import DType

__all__ = [
    "FAR",
    "Access",
    "Affine",
    "Buffer",
    "Expr",
    "Loop",
    "Nest",
    "Reduce",
    "Site",
    "Store",
    "affine",
    "reaches_far",
]


class Affine:
    """``const + sum(coefficient * loop)``, loops named by small ints."""

    __slots__ = ("terms", "const")

    def __init__(self, terms: tuple[tuple[int, DimLike], ...], const: DimLike) -> None:
        self.terms, self.const = terms, const

    def __add__(self, other: Affine) -> Affine:
        if not other.terms and is_zero(other.const):
            return self
        merged = dict(self.terms)
        for loop, c in other.terms:
            merged[loop] = merged.get(loop, 0) + c
        return Affine(
            tuple(sorted(((k, c) for k, c in merged.items() if not is_zero(c)), key=_loop)), self.const + other.const
        )

    def scale(self, factor: DimLike) -> Affine:
        if is_zero(factor):
            return ZERO
        return Affine(tuple((k, c * factor) for k, c in self.terms), self.const * factor)

    def shift(self, amount: DimLike) -> Affine:
        return self if is_zero(amount) else Affine(self.terms, self.const + amount)

    def coefficient(self, loop: int) -> DimLike:
        for k, c in self.terms:
            if k == loop:
                return c
        return 0

    def __eq__(self, other: object) -> bool:
        """Return whether two positions are the same for all sizes; hints are not consulted."""
        return isinstance(other, Affine) and same(self.const, other.const) and same(self.terms, other.terms)

    def __hash__(self) -> int:
        return hash((self.terms, self.const))

    def __repr__(self) -> str:
        return " + ".join([f"{c}*i{k}" for k, c in self.terms] + [str(self.const)])


def _loop(term: tuple[int, DimLike]) -> int:
    return term[0]


ZERO = Affine((), 0)


def affine(loop: int) -> Affine:
    """Return the position of one loop."""
    return Affine(((loop, 1),), 0)


@dataclass(eq=False)
class Buffer:
    """Memory that nests read and write: `size` elements of a type.

    The planner assigns its place.
    """

    dtype: DType
    size: DimLike
    name: str = ""
    place: Any = None


@dataclass(eq=False)
class Site:
    """A place where a kernel checks an index, for an axis in the operation of `node`.

    The axis has the number `axis` and the size `size`; negative indices count from its end if the
    site `wraps`.
    """

    node: Any
    axis: int
    size: DimLike
    wraps: bool = True


Guard = tuple[Affine, DimLike]


@dataclass(frozen=True)
class Access:
    """Element ``offset + sum(dynamic index * stride)`` of a buffer, guarded.

    It is accessed only where every guard ``0 <= position < size`` holds. `dynamic` has tuples
    (integer expression, stride, size, site); an index out of range counts as a failing guard, and
    is reported at its `Site`, if it has one.
    """

    buffer: Buffer
    offset: Affine
    guards: tuple[Guard, ...] = ()
    dynamic: tuple[tuple[Expr, DimLike, DimLike, Site | None], ...] = ()


class Expr:
    """A scalar expression; the functions of `Builder` make them.

    `kind` is one of those in the module's description, `dtype` the element type, `args` are the
    operands and `data` the rest: an access, a literal, a position or a statement.
    """

    __slots__ = ("kind", "dtype", "args", "data", "__weakref__")

    def __init__(self, kind: str, dtype: DType, args: tuple[Expr, ...], data: Any) -> None:
        self.kind, self.dtype, self.args, self.data = kind, dtype, args, data

    def __repr__(self) -> str:
        return f"{self.kind}:{self.data}({', '.join(map(repr, self.args))})"


@dataclass
class Loop:
    """A loop of `extent` iterations, of kind 'p' parallel, 'r' reducing or 's' sequential.

    A small loop of fixed extent may be unrolled.
    """

    extent: DimLike
    kind: str
    unroll: bool = False


@dataclass(eq=False)
class Reduce:
    """The reduction of `value` over the reducing loops.

    Its kind is sum, prod, max, min, any, all, argmax or argmin. The last two give the index
    `position` of the first extreme among the iterations where `valid` holds. A running one (`scan`)
    combines the values in the order of the one sequential loop, and has a result in each iteration.
    """

    kind: str
    value: Expr
    result: Expr = None  # type: ignore[assignment]
    position: Affine | None = None
    valid: Expr | None = None
    scan: bool = False


@dataclass(eq=False)
class Store:
    """The statement that writes `value` to `target`, or combines it with what is there by a mode of
    `loops.programs.COMBINES`.
    """

    target: Access
    value: Expr
    full: bool
    mode: str = "set"


@dataclass
class Nest:
    """Loops, outermost first, and statements.

    The iterations of the last loop are the vector lanes. `turned` are the loads that are contiguous
    along the loop `tile`, the one before the last; that loop then runs in blocks, so that these
    loads are read as transposed tiles.
    """

    loops: list[Loop]
    reduces: list[Reduce] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    name: str = "kernel"
    scalar: bool = False
    tile: int | None = None
    turned: frozenset[Access] = frozenset()


FAR = 1 << 30


def reaches_far(nest: Nest) -> bool:
    """Return whether positions take 64 bits: one may be larger than `FAR` by the sizes known.

    Otherwise 32 bits are enough.
    """
    sizes: list[Any] = [loop.extent for loop in nest.loops]
    accesses = [s.target for s in nest.stores]
    pending = [e for r in nest.reduces for e in (r.value, r.valid) if e is not None] + [s.value for s in nest.stores]
    pending += [d[0] for a in accesses for d in a.dynamic]
    seen: set[int] = set()
    places = [r.position for r in nest.reduces if r.position is not None]
    guards = [g for a in accesses for g in a.guards]
    while pending:
        x = pending.pop()
        if id(x) in seen:
            continue
        seen.add(id(x))
        pending += x.args
        if x.kind == "load":
            guards += x.data[0].guards
        elif x.kind == "guard":
            guards += x.data
        elif x.kind == "index":
            places.append(x.data)
    sizes += [size for _, size in guards]
    for place in (*places, *[position for position, _ in guards]):
        reach = [
            abs(c) * nest.loops[k].extent
            for k, c in place.terms
            if type(c) is int and type(nest.loops[k].extent) is int
        ]
        sizes.append(sum(reach) + (abs(place.const) if type(place.const) is int else 0))
    return any(type(size) is int and size > FAR for size in sizes)


class Builder:
    """A maker of expressions: one object for each distinct structure."""

    def __init__(self) -> None:
        self._known: dict[Any, Expr] = {}

    def _make(self, kind: str, dtype: DType, args: tuple[Expr, ...], data: Any) -> Expr:
        key = (kind, dtype, tuple(map(id, args)), data)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = Expr(kind, dtype, args, data)
        return found

    def load(self, access: Access, default: Any = 0) -> Expr:
        return self._make("load", access.buffer.dtype, tuple(d[0] for d in access.dynamic), (access, default))

    def const(self, value: Any, dtype: DType) -> Expr:
        return self._make("const", dtype, (), (value, str(value)))

    def index(self, position: Affine, dtype: DType) -> Expr:
        return self._make("index", dtype, (), position)

    def guard(self, guards: Iterable[Guard], dtype: DType) -> Expr:
        return self._make("guard", dtype, (), tuple(guards))

    def op(self, name: str, dtype: DType, *args: Expr) -> Expr:
        return self._make("op", dtype, args, name)

    def check(self, value: Expr, site: Site) -> Expr:
        return self._make("check", value.dtype, (value,), site)

    def reduce(
        self, kind: str, value: Expr, dtype: DType, position: Affine | None = None, scan: bool = False
    ) -> Reduce:
        """Return the statement that reduces `value` by `kind`; its `result` has type `dtype`.

        `position` is the index that argmax and argmin give; with `scan` the reduction is running.
        """
        statement = Reduce(kind, value, position=position, scan=scan)
        statement.result = Expr("scanned" if scan else "reduced", dtype, (value,), statement)
        return statement
