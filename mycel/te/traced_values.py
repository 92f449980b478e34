"""Symbolic values of the operator tracer: arrays, elements, and numbers computed from them.

A `Tracer` collects statements in frames, one for the function and one for each open loop. Numbers
are Python's own, dimensions (indices and sizes) and formulas; what can be computed at once is.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim, DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.formulas import Formula, Place
from mycel._src.compiler.loops.programs import COMBINES, Agreement, Array, Set, Statement, Where
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType, promote
from mycel.te.captured_variables import Reads
from mycel.te.language import Made

__all__ = ["BINARY", "Frame", "Number", "Reference", "Tracer", "shown"]

Number = bool | int | float | Dim | Formula


class Reference:
    """An array of the program as the function sees it: it has a shape and a type, and elements."""

    def __init__(self, tracer: Tracer, array: Array) -> None:
        self._tracer, self.array = tracer, array

    @property
    def shape(self) -> tuple[DimLike, ...]:
        return self.array.shape

    @property
    def dtype(self) -> DType:
        return self.array.dtype

    @property
    def ndim(self) -> int:
        return len(self.array.shape)

    def __len__(self) -> Any:
        return self.array.shape[0]


@dataclass
class Frame:
    """A loop, or the function's own body, while it is traced."""

    body: list[Statement] = field(default_factory=list)
    private: list[Array] = field(default_factory=list)


BINARY: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Add: ("add", operator.add),
    ast.Sub: ("sub", operator.sub),
    ast.Mult: ("mul", operator.mul),
    ast.Div: ("div", operator.truediv),
    ast.FloorDiv: ("floor_div", operator.floordiv),
    ast.Mod: ("mod", operator.mod),
    ast.Pow: ("pow", operator.pow),
    ast.BitAnd: ("bitwise_and", operator.and_),
    ast.BitOr: ("bitwise_or", operator.or_),
    ast.BitXor: ("bitwise_xor", operator.xor),
    ast.LShift: ("shift_left", operator.lshift),
    ast.RShift: ("shift_right", operator.rshift),
}
_COMPARE: dict[type, tuple[str, Callable[[Any, Any], Any]]] = {
    ast.Lt: ("lt", operator.lt),
    ast.LtE: ("le", operator.le),
    ast.Gt: ("gt", operator.gt),
    ast.GtE: ("ge", operator.ge),
    ast.Eq: ("eq", operator.eq),
    ast.NotEq: ("ne", operator.ne),
}


class Tracer:
    """The state of one function's interpretation.

    `kinds` are the element types of variables as an earlier round found them, by their order.
    `reads` notes what was read from outside.
    """

    def __init__(self, title: str, kinds: Sequence[DType], reads: Reads) -> None:
        self.title, self.reads = title, reads
        self.known_kinds = kinds
        self.kinds: list[DType] = []
        self.variables: dict[str, int] = {}
        self.frames: list[Frame] = [Frame()]
        self.locals: list[Array] = []
        self.arrays: dict[str, Array] = {}
        self.agreements: list[Agreement] = []
        self.count = 0
        self.default: DType = D.float32
        self.where: Where = ("", 0)
        self.told: Exception | None = None

    # Names and memory.

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def array(self, made: Made, name: str = "") -> Reference:
        """Make an array that the function asked for, private to the present iteration."""
        shape = tuple([self.extent(d, "a size") for d in made.shape])
        array = Array(self.fresh(name or "t"), made.dtype or self.default, shape, made.fill)
        return self.placed(array)

    def placed(self, array: Array) -> Reference:
        self.arrays[array.name] = array
        (self.locals if len(self.frames) == 1 else self.frames[-1].private).append(array)
        return Reference(self, array)

    def extent(self, value: Any, what: str) -> DimLike:
        """Return a size or a loop's bound, which must be an integer made of sizes and indices."""
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, Dim):
            return value
        if isinstance(value, Formula) and value.kind == "index":
            dim: Dim = value.data
            return dim
        raise TypeError(f"{what} must be an integer made of sizes and indices, not {shown(value)}")

    # Numbers.

    def formula(self, value: Any, like: DType | None = None) -> Formula:
        """Return a number as a formula; a Python number takes the type `like` if it may."""
        if isinstance(value, Reference):
            value = self.element(value)
        if isinstance(value, Formula):
            return value
        if isinstance(value, Dim):
            made = formulas.index(value)
            return made if like is None or like.kind in "iub" else formulas.cast(made, like)
        if isinstance(value, (bool, np.bool_)):
            return formulas.constant(value, D.bool_)
        if isinstance(value, (int, np.integer)):
            return formulas.constant(value, like if like is not None and like.kind != "b" else D.int64)
        if isinstance(value, (float, np.floating)):
            return formulas.constant(value, like if like is not None and like.kind == "f" else self.default)
        raise TypeError(f"a number is wanted here, not {shown(value)}")

    def element(self, value: Any) -> Any:
        """Return an array of no axes as its element; anything else as it is."""
        if isinstance(value, Reference) and not value.shape:
            return formulas.read(value.array.name, (), value.dtype)
        return value

    def together(self, left: Any, right: Any) -> tuple[Formula, Formula]:
        """Return two numbers as formulas of one element type."""
        left, right = self.element(left), self.element(right)
        x = self.formula(left, right.dtype if isinstance(right, Formula) else None)
        y = self.formula(right, left.dtype if isinstance(left, Formula) else None)
        if x.dtype is y.dtype:
            return x, y
        weak = [isinstance(v, (int, float, Dim)) and not isinstance(v, bool) for v in (left, right)]
        if weak[0] and not weak[1] and x.dtype.kind == y.dtype.kind:
            return formulas.cast(x, y.dtype), y
        if weak[1] and not weak[0] and x.dtype.kind == y.dtype.kind:
            return x, formulas.cast(y, x.dtype)
        dtype = promote(x.dtype, y.dtype)
        return formulas.cast(x, dtype), formulas.cast(y, dtype)

    def floating(self, value: Any) -> Formula:
        """Return a number as a formula of a floating type."""
        made = self.formula(self.element(value))
        return made if made.dtype.kind == "f" else formulas.cast(made, self.default)

    def truth(self, value: Any) -> bool | Formula:
        """Return a condition: a bool where it is known, else a formula of type bool."""
        value = self.element(value)
        if isinstance(value, Dim):
            value = formulas.index(value)
        if not isinstance(value, Formula):
            return bool(value)
        if value.kind == "const":
            return bool(value.data)
        return (
            value
            if value.dtype is D.bool_
            else formulas.operation("ne", D.bool_, value, formulas.constant(0, value.dtype))
        )

    def binary(self, op: type, left: Any, right: Any) -> Any:
        name, python = BINARY[op]
        left, right = self.element(left), self.element(right)
        if not isinstance(left, Formula) and not isinstance(right, Formula):
            if not (isinstance(left, Dim) or isinstance(right, Dim)) or op in _EXACT and _whole(left) and _whole(right):
                return python(left, right)
        if name == "div":
            x, y = self.together(left, right)
            if x.dtype.kind != "f":
                x, y = formulas.cast(x, self.default), formulas.cast(y, self.default)
            return formulas.operation("div", x.dtype, x, y)
        if name == "pow" and type(right) is int and 0 <= right <= 4 and isinstance(left, Formula):
            made = formulas.constant(1, left.dtype)
            for _ in range(right):
                made = formulas.operation("mul", left.dtype, made, left)
            return made
        x, y = self.together(left, right)
        if x.dtype is D.bool_ and not name.startswith("bitwise"):
            x, y = formulas.cast(x, D.int64), formulas.cast(y, D.int64)
        elif x.dtype is D.bool_:
            name = "logical" + name[len("bitwise") :]
        elif name.startswith(("bitwise", "shift")) and x.dtype.kind == "f":
            raise TypeError(f"{name} takes integers, not {x.dtype.name}")
        return formulas.operation(name, x.dtype, x, y)

    def compared(self, op: type, left: Any, right: Any) -> Any:
        if op in (ast.Is, ast.IsNot, ast.In, ast.NotIn):
            found = left is right if op in (ast.Is, ast.IsNot) else left in right
            return found if op in (ast.Is, ast.In) else not found
        name, python = _COMPARE[op]
        left, right = self.element(left), self.element(right)
        if not isinstance(left, Formula) and not isinstance(right, Formula):
            if isinstance(left, Dim) or isinstance(right, Dim):
                return self.compared_sizes(name, left, right)
            return python(left, right)
        x, y = self.together(left, right)
        return formulas.operation(name, D.bool_, x, y)

    def compared_sizes(self, name: str, left: Any, right: Any) -> Any:
        """Return how two dimensions compare: a bool where that holds for all sizes."""
        difference = left - right
        low, high = difference.bounds() if isinstance(difference, Dim) else (difference, difference)
        known = {
            "lt": (high < 0, low >= 0),
            "le": (high <= 0, low > 0),
            "gt": (low > 0, high <= 0),
            "ge": (low >= 0, high < 0),
            "eq": (low == high == 0, low > 0 or high < 0),
            "ne": (low > 0 or high < 0, low == high == 0),
        }[name]
        if any(known):
            return known[0]
        return formulas.operation(name, D.bool_, formulas.index(left), formulas.index(right))

    def chosen(self, condition: Formula, x: Any, y: Any) -> Formula:
        a, b = self.together(x, y)
        return formulas.operation("select", a.dtype, condition, a, b)

    def applied(self, name: str, args: Sequence[Any]) -> Any:
        """Return a function of elements, by its primitive's name, of numbers."""
        args = [self.element(a) for a in args]
        if name in ("maximum", "minimum", "pow", "fmod", "atan2"):
            if len(args) != 2:
                raise TypeError(f"{name} takes 2 numbers, not {len(args)}")
            if name == "pow":
                return self.binary(ast.Pow, *args)
            x, y = self.together(*args)
            if name == "atan2" and x.dtype.kind != "f":
                x, y = formulas.cast(x, self.default), formulas.cast(y, self.default)
            return formulas.operation(name, x.dtype, x, y)
        if len(args) != 1:
            raise TypeError(f"{name} takes 1 number, not {len(args)}")
        x = self.formula(args[0]) if name in ("abs", "sign") else self.floating(args[0])
        return formulas.operation(name, x.dtype, x)

    # Elements and statements.

    def read(self, reference: Reference, indices: Sequence[Any]) -> Formula:
        place = self.place(reference, indices)
        return formulas.read(reference.array.name, place, reference.dtype)

    def place(self, reference: Reference, indices: Sequence[Any]) -> Place:
        """Return a place in an array; a negative number counts from the end of its axis."""
        if len(indices) != reference.ndim:
            raise IndexError(
                f"{reference.array.name} has {reference.ndim} axes and {len(indices)} indices; operators take elements"
            )
        place: list[formulas.Term] = []
        for i, size in zip(indices, reference.shape):
            i = self.element(i)
            if isinstance(i, slice):
                raise TypeError("operators take elements, not slices; write the loop")
            if isinstance(i, bool) or not isinstance(i, (int, np.integer, Dim, Formula)):
                raise TypeError(f"an index must be an integer, not {shown(i)}")
            if isinstance(i, Formula) and i.dtype.kind not in "iu":
                raise TypeError(f"an index must be an integer, not a number of type {i.dtype.name}")
            if isinstance(i, (int, np.integer)):
                i = int(i) + size if i < 0 else int(i)
            elif isinstance(i, Formula):
                i = formulas.cast(i, D.int64)
            place.append(i)
        return tuple(place)

    def emit(self, statement: Statement) -> None:
        self.frames[-1].body.append(statement)

    def set(self, reference: Reference, place: Place, value: Any, mode: str = "set") -> None:
        """Add the statement that writes `value` at a place of an array, or combines them by `mode`.

        `reference` is the array and `place` the place.
        """
        array = reference.array
        if array.name not in self.own():
            raise TypeError(f"{array.name} is an input; write to an array that zeros, full or empty make")
        formula = formulas.cast(self.formula(self.element(value), array.dtype), array.dtype)
        if mode == "set":
            mode, formula = _mode_of(array.name, place, formula)
        self.emit(Set(array.name, place, formula, mode, self.where))

    def own(self) -> frozenset[str]:
        """Return the names of the arrays that the program may write."""
        return frozenset(a.name for a in (*self.locals, *[p for f in self.frames for p in f.private]))

    def variable(self, name: str, value: Any, held: Any) -> Reference:
        """Set a variable to a number, and return its array: `held` if it has one already."""
        formula = self.formula(self.element(value))
        weak = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not isinstance(held, Reference) or held.shape or not held.array.name.startswith("v"):
            number = len(self.kinds)
            known = self.known_kinds[number] if number < len(self.known_kinds) else None
            self.kinds.append(D.int64 if weak and formula.dtype.kind == "i" else formula.dtype)
            held = self.placed(Array(self.fresh(f"v_{name}_"), known or self.kinds[-1], ()))
            self.variables[held.array.name] = number
        else:
            self.widen(held, formula, weak)
        self.set(held, (), formulas.cast(formula, held.dtype))
        reference: Reference = held
        return reference

    def widen(self, held: Reference, formula: Formula, weak: bool) -> None:
        """Note the type of a value that a variable is set to, for the next round."""
        number = self.variables[held.array.name]
        if not (weak and formula.dtype.kind == "f" and self.kinds[number].kind == "f"):
            self.kinds[number] = promote(self.kinds[number], formula.dtype)


_EXACT = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


def _whole(value: Any) -> bool:
    return isinstance(value, (int, Dim)) and not isinstance(value, bool)


def shown(value: Any) -> str:
    if isinstance(value, Formula):
        return f"a number of type {value.dtype.name}"
    return "an array" if isinstance(value, Reference) else type(value).__name__


_MODES = {primitive: mode for mode, primitive in COMBINES.items()}


def _mode_of(array: str, place: Place, value: Formula) -> tuple[str, Formula]:
    """Return (mode, value) of a write whose value combines the element itself with something."""
    if value.kind == "op" and value.data in _MODES and len(value.args) == 2:
        for mine, other in (value.args, value.args[::-1]):
            if mine.kind == "read" and mine.data == array and mine.place == place:
                if all(r.data != array for r in formulas.reads_of(other)):
                    return _MODES[value.data], other
    if value.kind == "op" and value.data == "sub":
        mine, other = value.args
        if mine.kind == "read" and mine.data == array and mine.place == place:
            if all(r.data != array for r in formulas.reads_of(other)):
                return "add", formulas.operation("neg", other.dtype, other)
    return "set", value
