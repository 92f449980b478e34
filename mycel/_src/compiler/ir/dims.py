"""Symbolic dimensions: integer expressions over named sizes, in a canonical form.

A `Dim` is a polynomial with integer coefficients. Its indeterminates (`Atom`) are symbols and the
opaque results of ``//``, ``%`` and ``max``. The form is canonical, so equal expressions are
structurally equal. Every symbol is at least its lower bound (1 unless stated); comparisons are
decided by the bounds of the difference, and an undecided one raises `InconclusiveDimension`. A
constant never stays a `Dim`: `make` returns a Python int instead.

While decisions are in force in a thread (`ir.dimension_guards`), comparisons that the bounds leave
open are decided by the sizes that these hold.
"""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol, Union

from mycel._src.foundation.errors import ShapeError

__all__ = [
    "Deciding",
    "Dim",
    "DimLike",
    "InconclusiveDimension",
    "Symbol",
    "in_force",
    "is_one",
    "is_zero",
    "product",
    "same",
    "symbol",
]

DimLike = Union[int, "Dim"]


class InconclusiveDimension(ShapeError):
    """A comparison of symbolic dimensions that their bounds do not decide."""


class Atom:
    """An indeterminate: a symbol, or ``op(left, right)`` of dimensions.

    `operator` is "symbol", "//", "%" or "max"; `name` is that of a symbol, `operands` are the two
    dimensions that another operator takes. `low` and `high` are bounds of the value.
    """

    __slots__ = ("name", "operator", "operands", "low", "high", "key", "_text")

    def __init__(self, name: str, operator: str, operands: tuple[DimLike, ...], low: float, high: float) -> None:
        self.name, self.operator, self.operands, self.low, self.high = name, operator, operands, low, high
        # A name that two files, or a file and a program, give to sizes of other bounds is not one
        # size: types are interned.
        self.key = (operator, name, operands, low, high) if operator == "symbol" else (operator, name, operands)
        self._text = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        if self.operator == "symbol":
            return self.name
        if not self._text:
            # Kept, as terms are in the order of their texts: else each level would write the one
            # below twice.
            self._text = self._written()
        return self._text

    def _written(self) -> str:
        left, right = self.operands
        if self.operator not in ("//", "%"):
            return f"{self.operator}({left!r}, {right!r})"
        texts = [f"({v!r})" if isinstance(v, Dim) and len(v.terms) > 1 else repr(v) for v in (left, right)]
        return f"({texts[0]} {self.operator} {texts[1]})"


Monomial = tuple[tuple[Atom, int], ...]


class Dim:
    """A non-constant symbolic dimension."""

    __slots__ = ("terms", "_hash")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._hash = hash(frozenset(terms.items()))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim) and self.terms == other.terms:
            return True
        found = in_force.decisions
        if found is None or not isinstance(other, (int, Dim)):
            return False
        return found.are_equal(self, other)

    def __add__(self, other: Any) -> Any:
        value = _operand(other)
        if value is None:
            return _beyond(self, other, operator.add)
        terms = dict(self.terms)
        for mono, c in _terms(value).items():
            terms[mono] = terms.get(mono, 0) + c
        return make(terms)

    def __radd__(self, other: Any) -> Any:
        return self + other if _operand(other) is not None else _beyond(self, other, operator.add, True)

    def __neg__(self) -> DimLike:
        return make({m: -c for m, c in self.terms.items()})

    def __pos__(self) -> Dim:
        return self

    def __sub__(self, other: Any) -> Any:
        value = _operand(other)
        return self + (-value) if value is not None else _beyond(self, other, operator.sub)

    def __rsub__(self, other: Any) -> Any:
        return (-self) + other if _operand(other) is not None else _beyond(self, other, operator.sub, True)

    def __mul__(self, other: Any) -> Any:
        value = _operand(other)
        if value is None:
            if isinstance(other, (tuple, list, str, bytes)):
                return int(self) * other
            return _beyond(self, other, operator.mul)
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in _terms(value).items():
                powers: dict[Atom, int] = dict(m1)
                for a, p in m2:
                    powers[a] = powers.get(a, 0) + p
                mono = tuple(sorted(powers.items(), key=lambda e: repr(e[0])))
                terms[mono] = terms.get(mono, 0) + c1 * c2
        return make(terms)

    def __rmul__(self, other: Any) -> Any:
        if _operand(other) is not None or isinstance(other, (tuple, list, str, bytes)):
            return self * other
        return _beyond(self, other, operator.mul, True)

    def __floordiv__(self, other: Any) -> Any:
        value = _operand(other)
        return _divide(self, value)[0] if value is not None else _beyond(self, other, operator.floordiv)

    def __rfloordiv__(self, other: Any) -> Any:
        value = _operand(other)
        return _divide(value, self)[0] if value is not None else _beyond(self, other, operator.floordiv, True)

    def __mod__(self, other: Any) -> Any:
        value = _operand(other)
        return _divide(self, value)[1] if value is not None else _beyond(self, other, operator.mod)

    def __rmod__(self, other: Any) -> Any:
        value = _operand(other)
        if value is not None:
            return _divide(value, self)[1]
        return other % int(self) if isinstance(other, str) else _beyond(self, other, operator.mod, True)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and 0 <= other <= 8:
            return product([self] * other)
        return _beyond(self, other, operator.pow)

    def __rpow__(self, other: Any) -> Any:
        return _beyond(self, other, operator.pow, True)

    def __truediv__(self, other: Any) -> Any:
        return _beyond(self, other, operator.truediv)

    def __rtruediv__(self, other: Any) -> Any:
        return _beyond(self, other, operator.truediv, True)

    def __abs__(self) -> DimLike:
        return self if self >= 0 else -self

    def __and__(self, other: Any) -> Any:
        return int(self) & other

    def __rand__(self, other: Any) -> Any:
        return other & int(self)

    def __or__(self, other: Any) -> Any:
        return int(self) | other

    def __ror__(self, other: Any) -> Any:
        return other | int(self)

    def __xor__(self, other: Any) -> Any:
        return int(self) ^ other

    def __rxor__(self, other: Any) -> Any:
        return other ^ int(self)

    def __lshift__(self, other: Any) -> Any:
        return self * (1 << other) if type(other) is int else int(self) << other

    def __rlshift__(self, other: Any) -> Any:
        return other << int(self)

    def __rshift__(self, other: Any) -> Any:
        return self // (1 << other) if type(other) is int else int(self) >> other

    def __rrshift__(self, other: Any) -> Any:
        return other >> int(self)

    def __invert__(self) -> DimLike:
        return -self - 1

    def __round__(self, digits: int | None = None) -> Any:
        return self if digits is None else round(int(self), digits)

    def __trunc__(self) -> Any:
        return self

    __floor__ = __ceil__ = __trunc__

    def __float__(self) -> float:
        return float(int(self))

    def __complex__(self) -> complex:
        return complex(int(self))

    def bit_length(self) -> int:
        """Return the number of bits, as of an int."""
        return int(self).bit_length()

    def __copy__(self) -> Dim:
        return self

    def __deepcopy__(self, memo: Any) -> Dim:
        return self

    def bounds(self) -> tuple[float, float]:
        """Return an interval that contains the value for all sizes."""
        low = high = 0.0
        for mono, c in self.terms.items():
            a, b = 1.0, 1.0
            for atom, power in mono:
                ends = sorted((atom.low**power, atom.high**power))
                if power % 2 == 0 and atom.low < 0 < atom.high:
                    ends[0] = 0.0
                corners = [_times(x, y) for x in (a, b) for y in ends]
                a, b = min(corners), max(corners)
            scaled = (_times(a, c), _times(b, c))
            low, high = low + min(scaled), high + max(scaled)
        if low == -math.inf or high == math.inf:
            below, above = _shifted_bounds(self.terms)
            low, high = max(low, below), min(high, above)
        return low, high

    def _sign(self, other: DimLike) -> tuple[float, float]:
        difference = self - other
        return difference.bounds() if isinstance(difference, Dim) else (difference, difference)

    def __lt__(self, other: Any) -> bool:
        value = _operand(other)
        if value is None:
            return _compared(self, other, operator.lt)
        low, high = self._sign(value)
        if high < 0:
            return True
        if low >= 0:
            return False
        if in_force.decisions is not None:
            return in_force.decisions.is_negative(self - value)
        raise InconclusiveDimension(f"whether {self!r} < {value!r} depends on sizes that are not known while compiling")

    def __ge__(self, other: Any) -> bool:
        if _operand(other) is None:
            return _compared(self, other, operator.ge)
        return _not(self < other)

    def __gt__(self, other: Any) -> bool:
        value = _operand(other)
        if value is None:
            return _compared(self, other, operator.gt)
        low, high = self._sign(value)
        if low > 0:
            return True
        if high <= 0:
            return False
        if in_force.decisions is not None:
            return in_force.decisions.is_negative(value - self)
        raise InconclusiveDimension(f"whether {self!r} > {value!r} depends on sizes that are not known while compiling")

    def __le__(self, other: Any) -> bool:
        if _operand(other) is None:
            return _compared(self, other, operator.le)
        return _not(self > other)

    def __bool__(self) -> bool:
        low, high = self.bounds()
        if low > 0 or high < 0:
            return True
        if in_force.decisions is not None:
            return not in_force.decisions.are_equal(self, 0)
        raise InconclusiveDimension(f"whether {self!r} is zero is not known while compiling")

    def __index__(self) -> int:
        if in_force.decisions is not None:
            return in_force.decisions.value(self)
        raise InconclusiveDimension(f"the size {self!r} is not known while compiling")

    __int__ = __index__

    def __str__(self) -> str:
        found = in_force.decisions
        return str(found.value(self)) if found is not None and found.shows_values else repr(self)

    def __format__(self, spec: str) -> str:
        found = in_force.decisions
        if found is not None and found.shows_values:
            return format(found.value(self), spec)
        return format(repr(self), spec)

    def __repr__(self) -> str:
        parts = []
        for mono, c in sorted(self.terms.items(), key=lambda e: (-len(e[0]), repr(e[0]))):
            factors = [repr(a) if p == 1 else f"{a!r}**{p}" for a, p in mono]
            if c != 1 or not factors:
                factors.insert(0, str(c))
            parts.append("*".join(factors))
        return " + ".join(parts).replace("+ -", "- ")


Symbol = Dim


def _not(value: Any) -> bool:
    """Return the negation of a comparison, which may be a stand-in for a bool."""
    negated: bool = not value if type(value) is bool else ~value
    return negated


def _operand(value: Any) -> DimLike | None:
    """Return a dimension or a whole number as an operand of dimensions; None for anything else."""
    kind = type(value)
    if kind is int or kind is Dim:
        known: DimLike = value
        return known
    if isinstance(value, int):
        return int(value)
    # NumPy's integers; tensors have an __index__ too, and operators of their own.
    return (
        int(value)
        if kind.__module__ == "numpy" and hasattr(kind, "__index__") and not hasattr(kind, "__len__")
        else None
    )


def _beyond(dim: Dim, other: Any, apply: Callable[[Any, Any], Any], reflected: bool = False) -> Any:
    """Apply an operation that dimensions do not have, such as division, to the dimension's number.

    `apply` takes `dim` and `other`, in exchanged order where `reflected`.
    """
    found = in_force.decisions
    if not isinstance(other, (int, float, complex, Dim)):
        return NotImplemented
    if found is not None and isinstance(other, float) and apply in _COMPARISONS:
        return _COMPARISONS[apply](dim, other) if math.isfinite(other) else apply(0.0, other)
    if found is not None and found.as_number is not None and apply in _INEXACT:
        number = found.as_number(dim)
        other = found.as_number(other) if isinstance(other, Dim) else other
        return apply(other, number) if reflected else apply(number, other)
    if isinstance(other, Dim):
        other = int(other)
    if found is None:
        raise InconclusiveDimension(f"the size {dim!r} is not known while compiling")
    return apply(other, int(dim)) if reflected else apply(int(dim), other)


def _compared(dim: Dim, other: Any, apply: Callable[[Any, Any], Any]) -> bool:
    """Return `_beyond` for a comparison; NotImplemented passes through to the interpreter."""
    found: bool = _beyond(dim, other, apply)
    return found


_INEXACT = frozenset((operator.add, operator.sub, operator.mul, operator.truediv, operator.pow))
_COMPARISONS: dict[Any, Callable[[Dim, float], bool]] = {
    operator.lt: lambda dim, x: dim < math.ceil(x),
    operator.le: lambda dim, x: dim <= math.floor(x),
    operator.gt: lambda dim, x: dim > math.floor(x),
    operator.ge: lambda dim, x: dim >= math.ceil(x),
}


def _shifted_bounds(terms: Mapping[Monomial, int]) -> tuple[float, float]:
    """Return bounds of a polynomial whose coefficients, after a shift, have one sign.

    Each indeterminate is written as its lower bound plus an excess that is not negative. If all
    coefficients in the excesses have one sign, the constant term is a bound.
    """
    shifted: dict[Monomial, int] = {}
    for mono, c in terms.items():
        parts: dict[Monomial, int] = {(): c}
        for atom, power in mono:
            if not math.isfinite(atom.low) or atom.low != int(atom.low):
                return -math.inf, math.inf
            for _ in range(power):
                grown: dict[Monomial, int] = {}
                for m, k in parts.items():
                    powers = dict(m)
                    powers[atom] = powers.get(atom, 0) + 1
                    longer = tuple(sorted(powers.items(), key=lambda e: repr(e[0])))
                    grown[longer] = grown.get(longer, 0) + k
                    grown[m] = grown.get(m, 0) + k * int(atom.low)
                parts = grown
        for m, k in parts.items():
            shifted[m] = shifted.get(m, 0) + k
    constant = shifted.pop((), 0)
    low = float(constant) if all(k >= 0 for k in shifted.values()) else -math.inf
    high = float(constant) if all(k <= 0 for k in shifted.values()) else math.inf
    return low, high


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _terms(value: DimLike) -> dict[Monomial, int]:
    if isinstance(value, Dim):
        return value.terms
    return {(): int(value)} if value else {}


def make(terms: dict[Monomial, int]) -> DimLike:
    """Return the canonical dimension with these terms; an int where no indeterminate is left."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Dim(kept)


def symbol(name: str, low: int = 1, high: float = math.inf) -> Dim:
    """Return a new named size of at least `low`.

    Two symbols with one name and the same bounds are the same size.
    """
    return Dim({((Atom(name, "symbol", (), low, high), 1),): 1})


def _atom(operator: str, left: DimLike, right: DimLike, low: float, high: float) -> DimLike:
    return Dim({((Atom("", operator, (left, right), low, high), 1),): 1})


def _divide(left: DimLike, right: DimLike) -> tuple[DimLike, DimLike]:
    if isinstance(right, int) and right == 0:
        raise ZeroDivisionError(f"dimension {left} divided by zero")
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    divisor = _terms(right)
    if len(divisor) == 1:
        ((dm, dc),) = divisor.items()
        for mono, c in _terms(left).items():
            powers = dict(mono)
            if c % dc == 0 and all(powers.get(a, 0) >= p for a, p in dm):
                for a, p in dm:
                    powers[a] -= p
                quotient[tuple((a, p) for a, p in sorted(powers.items(), key=lambda e: repr(e[0])) if p)] = c // dc
            else:
                rest[mono] = c
    elif left == right:
        quotient = {(): 1}
    else:
        rest = dict(_terms(left))
    whole, remainder = make(quotient), make(rest)
    if isinstance(remainder, int) and isinstance(right, int):
        return whole + remainder // right, remainder % right
    if isinstance(remainder, int) and remainder == 0:
        return whole, 0
    low_r, high_r = remainder.bounds() if isinstance(remainder, Dim) else (remainder, remainder)
    low_d, high_d = right.bounds() if isinstance(right, Dim) else (right, right)
    if low_r >= 0 and high_r < low_d:
        return whole, remainder
    # The remainder has the sign of the divisor; a divisor that may be close to 0 on either side
    # bounds no quotient.
    low_m, high_m = min(low_d + 1, 0), max(high_d - 1, 0)
    if low_d <= 0 <= high_d:
        low_q, high_q = -math.inf, math.inf
    else:
        corners = [x / y for x in (low_r, high_r) for y in (low_d, high_d) if not (math.isinf(x) and math.isinf(y))]
        if math.isinf(high_d) or math.isinf(low_d):
            corners += [0.0, -0.0] if low_r >= 0 and low_d > 0 else [0.0, -1.0]
        low_q, high_q = (math.floor(v) if math.isfinite(v) else v for v in (min(corners), max(corners)))
    return whole + _atom("//", remainder, right, low_q, high_q), _atom("%", remainder, right, low_m, high_m)


def maximum(left: DimLike, right: DimLike) -> DimLike:
    """Return the larger of two dimensions, symbolic where their order is open."""
    low, high = left._sign(right) if isinstance(left, Dim) else (-math.inf, math.inf)
    if not isinstance(left, Dim):
        low, high = (
            (-b for b in reversed(right._sign(left))) if isinstance(right, Dim) else (left - right, left - right)
        )
    if low >= 0:
        return left
    if high <= 0:
        return right
    bounds = [v.bounds() if isinstance(v, Dim) else (v, v) for v in (left, right)]
    return _atom("max", left, right, max(b[0] for b in bounds), max(b[1] for b in bounds))


def product(values: Any) -> DimLike:
    """Return the product of dimensions; 1 where there are none."""
    result: DimLike = 1
    for v in values:
        result = result * v
    return result


def is_zero(size: DimLike) -> bool:
    """Return whether a dimension is 0 for all sizes; hints are not consulted."""
    return type(size) is int and size == 0


def is_one(size: DimLike) -> bool:
    """Return whether a dimension is 1 for all sizes; hints are not consulted."""
    return type(size) is int and size == 1


def same(left: Any, right: Any) -> bool:
    """Return whether two dimensions, or two shapes, are the same expression.

    Hints are not consulted.
    """
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, Dim) and isinstance(right, Dim):
        return left.terms == right.terms
    return not isinstance(left, Dim) and not isinstance(right, Dim) and bool(left == right)


class Deciding(Protocol):
    """The sizes that decide where bounds do not; `ir.dimension_guards.Decisions` are such.

    With `shows_values` the text of a size is its number, and with `settles_orders` they decide in
    which order is added up. `as_number`, if given, returns a stand-in for a dimension whose
    arithmetic leaves the whole numbers.
    """

    sizes: dict[str, int]
    shows_values: bool
    settles_orders: bool
    as_number: Callable[[Dim], Any] | None

    def are_equal(self, left: DimLike, right: DimLike) -> bool:
        """Return whether two dimensions are equal."""

    def is_negative(self, value: Dim) -> bool:
        """Return whether a dimension is negative."""

    def value(self, dim: Dim) -> int:
        """Return the size of a dimension."""


class _InForce(threading.local):
    decisions: Deciding | None = None


in_force = _InForce()
