"""Symbolic dimensions: integer expressions over named sizes, kept in a canonical form so that equality is structural.

A `Dim` is a polynomial with integer coefficients. Its indeterminates (`Atom`) are symbols and the opaque results of
``//``, ``%``, ``max`` and ``min``. Every symbol is at least its lower bound (1 unless stated); comparisons are decided by the
bounds of the difference, and one that stays open raises `InconclusiveDimension`. A constant never stays a `Dim`: `make`
returns a Python int instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Union

from mycel.errors import ShapeError

__all__ = ["Dim", "DimLike", "InconclusiveDimension", "Symbol", "evaluate", "product", "symbol"]

DimLike = Union[int, "Dim"]


class InconclusiveDimension(ShapeError):
    """A comparison of symbolic dimensions that their bounds do not decide."""


class Atom:
    """An indeterminate: a symbol, or ``op(left, right)`` of dimensions."""

    __slots__ = ("name", "operator", "operands", "low", "high", "key")

    def __init__(self, name: str, operator: str, operands: tuple[DimLike, ...], low: float, high: float) -> None:
        self.name, self.operator, self.operands, self.low, self.high = name, operator, operands, low, high
        self.key = (operator, name, operands)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Atom) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        if self.operator == "symbol":
            return self.name
        left, right = self.operands
        if self.operator not in ("//", "%"):
            return f"{self.operator}({left}, {right})"
        texts = [f"({v})" if isinstance(v, Dim) and len(v.terms) > 1 else str(v) for v in (left, right)]
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
        return isinstance(other, Dim) and self.terms == other.terms

    def __add__(self, other: DimLike) -> DimLike:
        terms = dict(self.terms)
        for mono, c in _terms(other).items():
            terms[mono] = terms.get(mono, 0) + c
        return make(terms)

    __radd__ = __add__

    def __neg__(self) -> DimLike:
        return make({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: DimLike) -> DimLike:
        return self + (-other)

    def __rsub__(self, other: DimLike) -> DimLike:
        return (-self) + other

    def __mul__(self, other: DimLike) -> DimLike:
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms.items():
            for m2, c2 in _terms(other).items():
                powers: dict[Atom, int] = dict(m1)
                for a, p in m2:
                    powers[a] = powers.get(a, 0) + p
                mono = tuple(sorted(powers.items(), key=lambda e: repr(e[0])))
                terms[mono] = terms.get(mono, 0) + c1 * c2
        return make(terms)

    __rmul__ = __mul__

    def __floordiv__(self, other: DimLike) -> DimLike:
        return _divide(self, other)[0]

    def __rfloordiv__(self, other: DimLike) -> DimLike:
        return _divide(other, self)[0]

    def __mod__(self, other: DimLike) -> DimLike:
        return _divide(self, other)[1]

    def __rmod__(self, other: DimLike) -> DimLike:
        return _divide(other, self)[1]

    def bounds(self) -> tuple[float, float]:
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
        return low, high

    def _sign(self, other: DimLike, text: str) -> tuple[float, float]:
        difference = self - other
        return difference.bounds() if isinstance(difference, Dim) else (difference, difference)

    def __lt__(self, other: DimLike) -> bool:
        low, high = self._sign(other, "<")
        if high < 0:
            return True
        if low >= 0:
            return False
        raise InconclusiveDimension(f"whether {self} < {other} depends on sizes that are not known while compiling")

    def __ge__(self, other: DimLike) -> bool:
        return not self < other

    def __gt__(self, other: DimLike) -> bool:
        low, high = self._sign(other, ">")
        if low > 0:
            return True
        if high <= 0:
            return False
        raise InconclusiveDimension(f"whether {self} > {other} depends on sizes that are not known while compiling")

    def __le__(self, other: DimLike) -> bool:
        return not self > other

    def __bool__(self) -> bool:
        low, high = self.bounds()
        if low > 0 or high < 0:
            return True
        raise InconclusiveDimension(f"whether {self} is zero is not known while compiling")

    def __index__(self) -> int:
        raise InconclusiveDimension(f"the size {self} is not known while compiling")

    def __repr__(self) -> str:
        parts = []
        for mono, c in sorted(self.terms.items(), key=lambda e: (-len(e[0]), repr(e[0]))):
            factors = [repr(a) if p == 1 else f"{a!r}**{p}" for a, p in mono]
            if c != 1 or not factors:
                factors.insert(0, str(c))
            parts.append("*".join(factors))
        return " + ".join(parts).replace("+ -", "- ")


Symbol = Dim


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _terms(value: DimLike) -> dict[Monomial, int]:
    if isinstance(value, Dim):
        return value.terms
    return {(): int(value)} if value else {}


def make(terms: dict[Monomial, int]) -> DimLike:
    """The canonical dimension with these terms; an int where no indeterminate is left."""
    kept = {m: c for m, c in terms.items() if c}
    if not kept:
        return 0
    if len(kept) == 1 and () in kept:
        return kept[()]
    return Dim(kept)


def symbol(name: str, low: int = 1, high: float = math.inf) -> Dim:
    """A new named size of at least `low`; two symbols with one name are the same size."""
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
    # The remainder has the sign of the divisor; a divisor that may be close to 0 on either side bounds no quotient.
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
    """The larger of two dimensions, symbolic where their order is open."""
    try:
        return left if left >= right else right
    except InconclusiveDimension:
        bounds = [v.bounds() if isinstance(v, Dim) else (v, v) for v in (left, right)]
        return _atom("max", left, right, max(b[0] for b in bounds), max(b[1] for b in bounds))


def product(values: Any) -> DimLike:
    """The product of dimensions; 1 for none."""
    result: DimLike = 1
    for v in values:
        result = result * v
    return result


def evaluate(value: DimLike, sizes: Mapping[str, int]) -> int:
    """The value of a dimension where each symbol's size is given; KeyError names one that is not."""
    if not isinstance(value, Dim):
        return int(value)
    total = 0
    for mono, c in value.terms.items():
        for atom, power in mono:
            c *= _evaluate_atom(atom, sizes) ** power
        total += c
    return total


def _evaluate_atom(atom: Atom, sizes: Mapping[str, int]) -> int:
    if atom.operator == "symbol":
        return sizes[atom.name]
    left, right = (evaluate(v, sizes) for v in atom.operands)
    if atom.operator == "max":
        return max(left, right)
    return left // right if atom.operator == "//" else left % right
