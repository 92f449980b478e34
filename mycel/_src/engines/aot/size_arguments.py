"""Runtime sizes of a library: arguments with bounds, and the conditions on them.

A `Size` is a whole number between bounds. What a program needs of it, as counts of elements and
ends of loops, are polynomials (`ir/dims.py`), which are computed where the function begins. What a
program was decided by (`Decided`) holds for some sizes only, so all tuples of sizes within the
bounds (`Points`) are looked at: which of them a program serves, and what a value is at most.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import substitute
from mycel._src.compiler.ir.dims import Atom, Dim, DimLike, symbol
from mycel._src.foundation.errors import Unsupported

__all__ = ["MOST_SIZE", "Counts", "Decided", "Points", "Size", "formula", "renamed", "said"]

Array = np.ndarray[Any, Any]
# Conditions as `Decisions` has them: whether a polynomial is 0, or below 0, with the answer.
Decided = Mapping[tuple[Dim, bool], bool]

# Tuples of sizes that are looked at one by one, and what a size is at most.
MOST_POINTS = 1 << 20
MOST_SIZE = 1 << 30
_INT32 = 1 << 31


@dataclass(frozen=True)
class Size:
    """A size that a library's function takes, called `name`.

    It is ``divisor * n + remainder`` for whole n from `low` to `high`; `symbol` is what n is called
    in shapes.
    """

    name: str
    symbol: str
    low: int
    high: int
    divisor: int = 1
    remainder: int = 0

    @property
    def least(self) -> int:
        """The smallest size."""
        return self.low * self.divisor + self.remainder

    @property
    def most(self) -> int:
        """The largest size."""
        return self.high * self.divisor + self.remainder

    @property
    def text(self) -> str:
        """The sizes that there are, in words."""
        step = f" in steps of {self.divisor}" if self.divisor > 1 else ""
        return f"{self.name} from {self.least} to {self.most}{step}"

    def number(self, size: int) -> int:
        """Return n of a size. Raises ValueError for sizes that are out of the bounds."""
        count, rest = divmod(size - self.remainder, self.divisor)
        if rest or not self.low <= count <= self.high:
            raise ValueError(f"the library is for {self.text}, not for {size}")
        return count


def renamed(value: DimLike, sizes: Sequence[Size]) -> DimLike:
    """Return a dimension with the names of sizes in place of symbols.

    >>> from mycel._src.compiler.ir.dims import symbol
    >>> n = symbol("d7")
    >>> renamed(4 * n + 2, [Size("length", "d7", 1, 9, 2, 1)])
    2*length
    """
    names: dict[str, DimLike] = {}
    for s in sizes:
        name = symbol(s.name, s.least, s.most)
        names[s.symbol] = name
        if s.divisor > 1:
            names[s.symbol] = (name - s.remainder) // s.divisor
            whole = isinstance(value, Dim) and all(
                not c % s.divisor or all(atom.name != s.symbol for atom, _ in mono) for mono, c in value.terms.items()
            )
            if whole and isinstance(value, Dim):
                # What is a multiple of the divisor needs no division.
                own = {
                    m: c for m, c in value.terms.items() if len(m) == 1 and m[0][1] == 1 and m[0][0].name == s.symbol
                }
                value = value - sum(c * Dim({m: 1}) for m, c in own.items())
                value = value + sum(c // s.divisor * (name - s.remainder) for c in own.values())
    return substitute(value, names)


def said(decided: Decided, sizes: Sequence[Size]) -> str:
    """Return conditions as text, by the names of sizes."""
    words = {(True, True): "is", (True, False): "is not", (False, True): "is below", (False, False): "is at least"}
    found = []
    for (difference, equal), answer in decided.items():
        value = renamed(difference, sizes)
        constant = value.terms.get((), 0) if isinstance(value, Dim) else 0
        found.append(f"{value - constant} {words[equal, answer]} {-constant}")
    return "; ".join(dict.fromkeys(found))


def formula(value: DimLike, names: Mapping[str, str], larger: str, quotient: str, rest: str) -> str:
    """Return a dimension, `value`, as a formula of C++ or JavaScript.

    `names` are the expressions that symbols have there, and `larger`, `quotient` and `rest` the
    functions of two numbers for the maximum, for division rounded down and for what it leaves.
    """
    if not isinstance(value, Dim):
        return str(value)
    calls = {"max": larger, "//": quotient, "%": rest}

    def text(atom: Atom) -> str:
        if atom.operator == "symbol":
            return names[atom.name]
        left, right = (formula(v, names, larger, quotient, rest) for v in atom.operands)
        return f"{calls[atom.operator]}({left}, {right})"

    parts = []
    for mono, c in value.terms.items():
        factors = [text(atom) for atom, power in mono for _ in range(power)]
        parts.append(" * ".join([str(c), *factors] if c != 1 or not factors else factors))
    return " + ".join(parts).replace("+ -", "- ")


class Points:
    """All tuples of sizes within the bounds.

    Raises Unsupported where there are too many to look at.
    """

    def __init__(self, sizes: Sequence[Size]) -> None:
        self.sizes = tuple(sizes)
        self.count = math.prod(s.high - s.low + 1 for s in sizes)
        if self.count > MOST_POINTS:
            bounds = ", ".join(s.text for s in sizes)
            raise Unsupported(
                f"build: {bounds} are {self.count:,} combinations of sizes; up to {MOST_POINTS:,} can be checked: "
                "give lower bounds, or sizes in steps (Symbol's divisor)"
            )
        grid = np.meshgrid(*[np.arange(s.low, s.high + 1, dtype=np.int64) for s in sizes], indexing="ij")
        self.values = {s.symbol: axis.ravel() for s, axis in zip(sizes, grid)}
        self._found: dict[Dim, Array] = {}

    def at(self, place: int) -> dict[str, int]:
        """Return the sizes of a point by symbol."""
        return {name: int(values[place]) for name, values in self.values.items()}

    def largest(self, left: Array) -> int:
        """Return the point among those `left` whose sizes have the largest product."""
        total = np.ones(self.count)
        for values in self.values.values():
            total *= values
        return int(np.where(left, total, -1.0).argmax())

    def evaluate(self, value: DimLike) -> Array:
        """Return a polynomial at each point. Raises Unsupported beyond 62 bits."""
        if not isinstance(value, Dim):
            return np.full(self.count, value, np.int64)
        found = self._found.get(value)
        if found is None:
            found = np.zeros(self.count, np.int64)
            reach = 0.0
            for mono, c in value.terms.items():
                part = np.full(self.count, c, np.int64)
                most = float(abs(c))
                for atom, power in mono:
                    own = self._atom(atom)
                    most *= float(np.abs(own).max(initial=0)) ** power
                    part = part * own**power
                reach += most
                if reach > 2.0**62:
                    raise Unsupported(f"build: {value} is beyond 62 bits at the bounds; give lower ones")
                found = found + part
            self._found[value] = found
        return found

    def _atom(self, atom: Atom) -> Array:
        if atom.operator == "symbol":
            return self.values[atom.name]
        left, right = (self.evaluate(v) for v in atom.operands)
        if atom.operator == "max":
            return np.maximum(left, right)
        found: Array = left // right if atom.operator == "//" else left % right
        return found

    def hold(self, decided: Decided) -> Array:
        """Return at which points all conditions hold."""
        found = np.ones(self.count, bool)
        for (difference, equal), answer in decided.items():
            values = self.evaluate(difference)
            found &= ((values == 0) if equal else (values < 0)) == answer
        return found

    def most(self, value: DimLike, among: Array) -> int:
        """Return what a value is at most at the points `among`."""
        if not isinstance(value, Dim):
            return value
        return int(self.evaluate(value)[among].max(initial=0))


class Counts:
    """Instructions of LLVM that compute polynomials of sizes, each once, as `lines`.

    `names` are the operands of 64 bits that hold the symbols. Where there is no size, values are
    numbers and there is no line. `mark` begins the names of what is computed.
    """

    def __init__(self, names: Mapping[str, str], mark: str = "%count") -> None:
        self.names, self.mark = dict(names), mark
        self.lines: list[str] = []
        self._known: dict[Any, str] = {}

    def put(self, text: str) -> str:
        """Write an instruction and return its result."""
        if text not in self._known:
            self._known[text] = f"{self.mark}{len(self._known)}"
            self.lines.append(f"  {self._known[text]} = {text}")
        return self._known[text]

    def number(self, value: DimLike) -> str:
        """Return the operand of 64 bits that has a value."""
        if not isinstance(value, Dim):
            return str(int(value))
        known = self._known.get(value)
        if known is None:
            total = ""
            for mono, c in sorted(value.terms.items(), key=lambda e: repr(e[0])):
                part = ""
                for atom, power in mono:
                    for _ in range(power):
                        part = self.put(f"mul i64 {part}, {self.atom(atom)}") if part else self.atom(atom)
                part = str(c) if not part else part if c == 1 else self.put(f"mul i64 {part}, {c}")
                total = self.put(f"add i64 {total}, {part}") if total else part
            known = self._known[value] = total
        return known

    def atom(self, atom: Atom) -> str:
        """Return the operand that has an indeterminate."""
        if atom.operator == "symbol":
            return self.names[atom.name]
        left, right = (self.number(v) for v in atom.operands)
        if atom.operator == "max":
            larger = self.put(f"icmp sgt i64 {left}, {right}")
            return self.put(f"select i1 {larger}, i64 {left}, i64 {right}")
        ends = [v.bounds() if isinstance(v, Dim) else (v, v) for v in atom.operands]
        word = "div" if atom.operator == "//" else "rem"
        if max(abs(e) for pair in ends for e in pair) < _INT32:
            # Small processors divide 32 bits, if any.
            narrow = [self.put(f"trunc i64 {v} to i32") if v[0] == "%" else v for v in (left, right)]
            kind, grow = "i32", "sext i32 {} to i64"
        else:
            narrow, kind, grow = [left, right], "i64", "{}"
        if ends[0][0] >= 0 and ends[1][0] > 0:
            found = self.put(f"u{word} {kind} {narrow[0]}, {narrow[1]}")
        else:
            found = self.floored(kind, narrow[0], narrow[1], word)
        return self.put(grow.format(found)) if kind == "i32" else found

    def floored(self, kind: str, left: str, right: str, word: str) -> str:
        """Return the quotient of `left` and `right` (`word` div) that is rounded down, or the
        remainder that is left, of the type `kind`.
        """
        rest = self.put(f"srem {kind} {left}, {right}")
        signs = self.put(f"xor {kind} {rest}, {right}")
        differ = self.put(f"icmp slt {kind} {signs}, 0")
        uneven = self.put(f"icmp ne {kind} {rest}, 0")
        lower = self.put(f"and i1 {differ}, {uneven}")
        if word == "div":
            quotient = self.put(f"sdiv {kind} {left}, {right}")
            one = self.put(f"zext i1 {lower} to {kind}")
            return self.put(f"sub {kind} {quotient}, {one}")
        more = self.put(f"select i1 {lower}, {kind} {right}, {kind} 0")
        return self.put(f"add {kind} {rest}, {more}")

    def hold(self, decided: Decided) -> str:
        """Return the bit that says whether all conditions hold."""
        found = ""
        for (difference, equal), answer in decided.items():
            words = {(True, True): "eq", (True, False): "ne", (False, True): "slt", (False, False): "sge"}
            one = self.put(f"icmp {words[equal, answer]} i64 {self.number(difference)}, 0")
            found = self.put(f"and i1 {found}, {one}") if found else one
        return found or "true"
