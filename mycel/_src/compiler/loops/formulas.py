"""Scalar expressions of loop programs: immutable trees, simplified when made, equal by structure.

A place in an array is a tuple of indices. An index that is a polynomial in the loops' variables and
the inputs' sizes is a dimension (`ir.dims`), which is canonical; one that data decide is a
formula of an integer type. The kinds of formulas:

    const    a number
    index    a dimension as a number of type int64
    read     an element of an array
    op       an element-wise primitive by name

The makers simplify: constants are folded, neutral elements vanish, and integer arithmetic on
indices becomes a dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType

__all__ = [
    "Formula",
    "Place",
    "Term",
    "cast",
    "constant",
    "index",
    "is_constant",
    "operation",
    "places_of",
    "read",
    "reads_of",
    "replaced",
    "substituted",
]

Term = Union[int, Dim, "Formula"]
Place = tuple[Term, ...]


class Formula:
    """A scalar expression; `kind` is one of those in the module's description.

    `dtype` is the element type and `args` are the operands. `data` is the number, the dimension,
    the name of the array, or the name of the primitive; `place` is where an array is read.
    """

    __slots__ = ("kind", "dtype", "args", "data", "place", "_hash")

    def __init__(self, kind: str, dtype: DType, args: tuple[Formula, ...], data: Any, place: Place = ()) -> None:
        self.kind, self.dtype, self.args, self.data, self.place = kind, dtype, args, data, place
        self._hash = hash((kind, dtype.name, args, str(data) if kind == "const" else data, place))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Formula)
            and self._hash == other._hash
            and (self.kind, self.dtype, self.args, self.place) == (other.kind, other.dtype, other.args, other.place)
            and (str(self.data) == str(other.data) if self.kind == "const" else self.data == other.data)
        )

    def __repr__(self) -> str:
        if self.kind in ("const", "index"):
            return str(self.data) if self.kind == "const" else repr(self.data)
        if self.kind == "read":
            return f"{self.data}[{', '.join(map(repr, self.place))}]"
        if self.data in _SIGNS and len(self.args) == 2:
            return f"({self.args[0]!r} {_SIGNS[self.data]} {self.args[1]!r})"
        name = self.dtype.name if self.data == "cast" else self.data
        return f"{name}({', '.join(map(repr, self.args))})"


_SIGNS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "div": "/",
    "floor_div": "//",
    "mod": "%",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "logical_and": "and",
    "logical_or": "or",
}


def constant(value: Any, dtype: DType) -> Formula:
    """Return a number of an element type."""
    if dtype.kind in "iu":
        value = int(value)
    elif dtype.kind == "f":
        value = float(value)
    else:
        value = bool(value)
    return Formula("const", dtype, (), value)


def index(position: DimLike) -> Formula:
    """Return a position, or any other polynomial of indices and sizes, as a number."""
    return Formula("index", D.int64, (), position) if isinstance(position, Dim) else constant(position, D.int64)


def read(array: str, place: Place, dtype: DType) -> Formula:
    """Return the element of an array, by its name, at a place."""
    return Formula("read", dtype, (), array, tuple([_term(t) for t in place]))


def _term(value: Term) -> Term:
    """Return an index in its simplest form, a dimension where it is one."""
    if isinstance(value, Formula):
        if value.kind == "index":
            return value.data  # type: ignore[no-any-return]
        if value.kind == "const":
            return int(value.data)
        if value.data == "cast" and value.args[0].kind in ("index", "const") and value.dtype.kind == "i":
            return _term(value.args[0])
    return value


def is_constant(formula: Formula, value: float) -> bool:
    """Return whether a formula is the number `value`."""
    return formula.kind == "const" and formula.data is not True and formula.data == value


def cast(formula: Formula, dtype: DType) -> Formula:
    """Return a formula converted to an element type."""
    if formula.dtype is dtype:
        return formula
    if formula.kind == "const" and not (formula.dtype.kind == "f" and dtype.kind != "f"):
        return constant(formula.data, dtype)
    return Formula("op", dtype, (formula,), "cast")


def _whole(x: Formula) -> DimLike | None:
    """Return the dimension that a formula of type int64 is; None if it is none."""
    return x.data if x.dtype is D.int64 and x.kind in ("index", "const") else None


_DIMENSIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
}


def operation(name: str, dtype: DType, *args: Formula) -> Formula:
    """Return an element-wise primitive, by its name, of operands; the result has type `dtype`."""
    if name == "cast":
        return cast(args[0], dtype)
    if dtype is D.int64 and len(args) == 2:
        x, y = map(_whole, args)
        if x is not None and y is not None:
            if name in _DIMENSIONS:
                return index(_DIMENSIONS[name](x, y))
            if name in ("floor_div", "mod") and isinstance(y, int) and y > 0:
                return index(x // y if name == "floor_div" else x % y)
    if name == "neg" and dtype is D.int64 and (x := _whole(args[0])) is not None:
        return index(-x)
    found = _simpler(name, args)
    return Formula("op", dtype, args, name) if found is None else found


def _simpler(name: str, args: tuple[Formula, ...]) -> Formula | None:
    """Return an operation with a neutral element, or of a known condition, simplified."""
    if name == "add":
        return args[1] if is_constant(args[0], 0) else args[0] if is_constant(args[1], 0) else None
    if name == "sub":
        return args[0] if is_constant(args[1], 0) else None
    if name == "mul":
        return _product(*args)
    if name in ("div", "floor_div", "pow"):
        return args[0] if is_constant(args[1], 1) and args[0].dtype is not D.bool_ else None
    if name == "neg" and args[0].kind == "op" and args[0].data == "neg":
        return args[0].args[0]
    if name == "neg" and args[0].kind == "const" and args[0].dtype.kind in "if":
        return constant(-args[0].data, args[0].dtype)
    if name == "select":
        if args[0].kind == "const":
            return args[1] if args[0].data else args[2]
        return args[1] if args[1] == args[2] else None
    if name == "logical_and":
        for x, y in (args, args[::-1]):
            if x.kind == "const":
                return y if x.data else x
    if name == "logical_or":
        for x, y in (args, args[::-1]):
            if x.kind == "const":
                return x if x.data else y
    return None


def _product(x: Formula, y: Formula) -> Formula | None:
    """Return a product with 1, -1 or a reciprocal in its simplest form; None for others."""
    for one, other in ((x, y), (y, x)):
        if is_constant(one, 1):
            return other
        if is_constant(one, -1):
            return operation("neg", other.dtype, other)
        if one.kind == "op" and one.data == "div" and is_constant(one.args[0], 1):
            return operation("div", other.dtype, other, one.args[1])
    return None


def places_of(formula: Formula) -> Iterator[Formula]:
    """Yield every read in a formula, with those that decide places, inner ones first."""
    for a in formula.args:
        yield from places_of(a)
    for t in formula.place:
        if isinstance(t, Formula):
            yield from places_of(t)
    if formula.kind == "read":
        yield formula


def reads_of(*formulas: Formula) -> list[Formula]:
    """Return the reads in formulas, each once."""
    return list(dict.fromkeys(r for f in formulas for r in places_of(f)))


def replaced(
    formula: Formula,
    position: Callable[[DimLike], DimLike],
    element: Callable[[Formula], Formula] | None = None,
    known: dict[Formula, Formula] | None = None,
) -> Formula:
    """Return a formula with every dimension replaced by `position` and every read by `element`.

    `element` gets the read with its place replaced already. `known` has results of earlier calls.
    """
    known = {} if known is None else known
    found = known.get(formula)
    if found is not None:
        return found

    def term(t: Term) -> Term:
        return replaced(t, position, element, known) if isinstance(t, Formula) else position(t)

    if formula.kind == "const":
        made = formula
    elif formula.kind == "index":
        made = index(position(formula.data))
    elif formula.kind == "read":
        made = read(formula.data, tuple([term(t) for t in formula.place]), formula.dtype)
        if element is not None:
            made = element(made)
    else:
        made = operation(formula.data, formula.dtype, *[replaced(a, position, element, known) for a in formula.args])
    known[formula] = made
    return made


def substituted(formula: Formula, values: Mapping[str, DimLike]) -> Formula:
    """Return a formula with dimensions in place of indices and sizes, by name."""
    return replaced(formula, lambda d: substitute(d, values))
