"""Guards on symbolic dimensions: what is decided by the sizes that a program is compiled for.

While `Decisions` are in force in a thread, a comparison that the bounds leave open is decided by
the sizes that they hold (the *hints*), and recorded as a guard: the result is valid for all sizes
for which the guards hold. So code that needs a number gets one, and is specialised to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.dim_values import evaluate, symbols_in
from mycel._src.compiler.ir.dims import Atom, Dim, DimLike, InconclusiveDimension, in_force

__all__ = ["Decisions", "current_decisions", "deciding", "evaluator"]


class Decisions:
    """The sizes that a compilation is made for, by symbol, and the guards recorded with them.

    With `settles_orders` results have the bits of programs for these sizes alone: the order in
    which a size is added up is decided as well, though any is correct (`settled_below`).
    `as_number`, where given, returns a stand-in for a dimension whose arithmetic leaves the whole
    numbers; `compare` returns a stand-in for "is negative" where a comparison may stay open.
    """

    def __init__(self, sizes: Mapping[str, int], shows_values: bool = False, settles_orders: bool = False) -> None:
        self.sizes = dict(sizes)
        self.shows_values, self.settles_orders = shows_values, settles_orders
        self.guards: dict[tuple[Dim, bool], bool] = {}
        self.as_number: Callable[[Dim], Any] | None = None
        self.compare: Callable[[Dim], Any] | None = None
        self._known: dict[tuple[frozenset[Any], bool], bool] = {}
        self._condition: tuple[int, Callable[[Mapping[str, int]], bool]] | None = None

    def _decide(self, difference: Dim, equal: bool) -> bool:
        key = (frozenset(difference.terms.items()), equal)
        answer = self._known.get(key)
        if answer is None:
            try:
                number = evaluate(difference, self.sizes)
            except KeyError as name:
                raise InconclusiveDimension(
                    f"{difference!r} depends on the size {name.args[0]}, which the program computes as it runs"
                ) from None
            answer = self._known[key] = number == 0 if equal else number < 0
            self.guards[difference, equal] = answer
        return answer

    def are_equal(self, left: DimLike, right: DimLike) -> bool:
        difference = left - right
        if not isinstance(difference, Dim):
            return difference == 0
        low, high = difference.bounds()
        return False if low > 0 or high < 0 else self._decide(difference, True)

    def is_negative(self, value: Dim) -> bool:
        if self.compare is not None:
            found: bool = self.compare(value)
            return found
        return self._decide(value, False)

    def value(self, dim: Dim) -> int:
        """Return the size of a dimension under the hints.

        The guard recorded is that the dimension has this size.
        """
        try:
            number = evaluate(dim, self.sizes)
        except KeyError as name:
            raise InconclusiveDimension(
                f"{dim!r} depends on the size {name.args[0]}, which the program computes as it runs"
            ) from None
        self.are_equal(dim, number)
        return number

    def rewind(self, count: int) -> None:
        """Drop the guards after the first `count`, as the work that needed them was given up."""
        self._condition = None
        while len(self.guards) > count:
            difference, equal = self.guards.popitem()[0]
            self._known.pop((frozenset(difference.terms.items()), equal), None)

    def condition(self) -> Callable[[Mapping[str, int]], bool]:
        """Return a function that says whether all guards hold for other sizes."""
        guards = list(self.guards.items())
        if self._condition is not None and self._condition[0] == len(guards):
            return self._condition[1]
        names = tuple(symbols_in(*[d for (d, _), _ in guards]))
        if not guards:
            return lambda sizes: True
        values = evaluator([d for (d, _), _ in guards], names)

        def holds(sizes: Mapping[str, int]) -> bool:
            found = values(*[sizes[n] for n in names])
            return all([((v == 0) if equal else (v < 0)) is answer for v, ((_, equal), answer) in zip(found, guards)])

        self._condition = (len(guards), holds)
        return holds

    def describe(self) -> list[str]:
        """List the guards as text, one line each."""
        words = {(True, True): "==", (True, False): "!=", (False, True): "<", (False, False): ">="}
        return [f"{d!r} {words[equal, answer]} 0" for (d, equal), answer in self.guards.items()]


def current_decisions() -> Decisions | None:
    """Return the decisions in force in this thread."""
    found = in_force.decisions
    return found if isinstance(found, Decisions) else None


@contextmanager
def deciding(decisions: Decisions | None) -> Iterator[Decisions | None]:
    """Put decisions in force in this thread for a block; None puts none in force."""
    previous, in_force.decisions = in_force.decisions, decisions
    try:
        yield decisions
    finally:
        in_force.decisions = previous


def evaluator(values: Sequence[DimLike], names: Sequence[str]) -> Callable[..., tuple[int, ...]]:
    """Return a function from the sizes of the named symbols to the values of dimensions.

    >>> from mycel._src.compiler.ir.dims import symbol
    >>> n = symbol("n")
    >>> evaluator([n * n + 1, n // 2, 3], ["n"])(5)
    (26, 2, 3)
    """
    number = {name: f"s{i}" for i, name in enumerate(names)}
    shared: dict[Atom, str] = {}
    lines: list[str] = []

    def atom_text(atom: Atom) -> str:
        if atom.operator == "symbol":
            return number[atom.name]
        found = shared.get(atom)
        if found is None:
            left, right = (text(v) for v in atom.operands)
            lines.append(f"max({left}, {right})" if atom.operator == "max" else f"({left}) {atom.operator} ({right})")
            found = shared[atom] = f"a{len(lines) - 1}"
        return found

    def text(value: DimLike) -> str:
        if not isinstance(value, Dim):
            return str(int(value))
        parts = []
        for mono, c in value.terms.items():
            factors = [atom_text(a) if p == 1 else f"{atom_text(a)}**{p}" for a, p in mono]
            parts.append("*".join([f"({c})", *factors] if c != 1 or not factors else factors))
        return " + ".join(parts)

    results = [text(v) for v in values]
    body = [f"    a{i} = {line}" for i, line in enumerate(lines)] + [
        f"    return ({' '.join(r + ',' for r in results)})"
    ]
    source = f"def run({', '.join(number.values())}):\n" + "\n".join(body)
    scope: dict[str, Any] = {}
    exec(compile(source, __file__, "exec"), scope)
    run: Callable[..., tuple[int, ...]] = scope["run"]
    return run
