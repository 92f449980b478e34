"""Integer feasibility: whether linear equations and inequalities have a solution in integers.

A system is in variables that have names. Equations are eliminated exactly, with the test by the
greatest common divisor and substitution (W. Pugh, The Omega test, 1991), inequalities by
Fourier-Motzkin elimination, each tightened to whole numbers. So "empty" is proved; "not empty" may
be wrong, where only fractions satisfy a system.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from mycel._src.compiler.ir.dims import Atom, Dim, DimLike

__all__ = ["Linear", "System", "demands", "without"]

# Coefficients by the variable's name; the constant is that of "".
Linear = dict[str, int]
# Systems that grow beyond are not decided.
_MOST = 600


def demands(value: DimLike) -> list[DimLike]:
    """Return dimensions that are all not negative where, and only where, `value` is not.

    They have no maxima and no quotients by numbers, but for those with the other sign.
    """
    if not isinstance(value, Dim):
        return [value]
    for mono, c in value.terms.items():
        if len(mono) != 1 or mono[0][1] != 1 or mono[0][0].operator == "symbol":
            continue
        atom = mono[0][0]
        rest = value - Dim({mono: c})
        left, right = atom.operands
        if atom.operator == "max" and c < 0:
            return [d for operand in atom.operands for d in demands(rest + c * operand)]
        if atom.operator == "//" and type(right) is int and right > 0 and abs(c) == 1:
            return demands(right * rest + left if c > 0 else right * rest + right - 1 - left)
    return [value]


class System:
    """Equations and inequalities; dimensions enter by their symbols, quotients and products."""

    def __init__(self) -> None:
        self.zero: list[Linear] = []
        self.positive: list[Linear] = []
        # What each variable stands for.
        self.defined: dict[str, Dim] = {}

    def copy(self) -> System:
        made = System()
        made.zero, made.positive, made.defined = list(self.zero), list(self.positive), dict(self.defined)
        return made

    # Dimensions.

    def add_positive(self, value: DimLike) -> None:
        """Add the inequality that a dimension is not negative."""
        self.positive += [self.linear(d) for d in demands(value)]

    def add_zero(self, value: DimLike) -> None:
        """Add the equation that a dimension is 0."""
        self.zero.append(self.linear(value))

    def linear(self, value: DimLike) -> Linear:
        """Return a dimension as a linear form of variables, and add what is known of these."""
        if not isinstance(value, Dim):
            return {"": value} if value else {}
        total: Linear = {}
        for mono, c in value.terms.items():
            if not mono:
                part = {"": 1}
            elif len(mono) == 1 and mono[0][1] == 1:
                part = {self.atom(mono[0][0]): 1}
            else:
                part = {self.opaque(mono): 1}
            for name, k in part.items():
                total[name] = total.get(name, 0) + c * k
        return total

    def atom(self, atom: Atom) -> str:
        name = atom.name if atom.operator == "symbol" else repr(atom)
        if name in self.defined:
            return name
        self.defined[name] = Dim({((atom, 1),): 1})
        if math.isfinite(atom.low):
            self.positive.append({name: 1, "": -int(atom.low)})
        if math.isfinite(atom.high):
            self.positive.append({name: -1, "": int(atom.high)})
        if atom.operator == "max":
            for operand in atom.operands:
                self.positive.append(_sum({name: 1}, self.linear(operand), -1))
        elif atom.operator in ("//", "%") and type(atom.operands[1]) is int and atom.operands[1] > 0:
            left, right = self.linear(atom.operands[0]), atom.operands[1]
            atoms = [Atom("", op, atom.operands, -math.inf, math.inf) for op in ("//", "%")]
            quotient, rest = map(repr, atoms)
            self.defined |= {repr(a): Dim({((a, 1),): 1}) for a in atoms}
            self.zero.append(_sum(_sum(left, {quotient: right}, -1), {rest: 1}, -1))
            self.positive += [{rest: 1}, {rest: -1, "": right - 1}]
        return name

    def opaque(self, mono: tuple[tuple[Atom, int], ...]) -> str:
        """Return the variable that stands for a product of symbols."""
        name = "*".join(f"{a!r}^{p}" for a, p in mono)
        if name not in self.defined:
            self.defined[name] = Dim({mono: 1})
            low, high = self.defined[name].bounds()
            if math.isfinite(low):
                self.positive.append({name: 1, "": -int(low)})
            if math.isfinite(high):
                self.positive.append({name: -1, "": int(high)})
        return name

    def dimension(self, form: Linear) -> DimLike:
        """Return a linear form of the system's variables as a dimension."""
        return sum([self.defined[n] * c if n else c for n, c in form.items()], 0)

    # The answer.

    def says(self, value: DimLike) -> bool:
        """Return whether it is proved that a dimension is not negative where the system holds."""
        tried = self.copy()
        tried.add_positive(-value - 1)
        return tried.is_empty()

    def is_empty(self) -> bool:
        """Return whether it is proved that no whole numbers satisfy the system."""
        reduced = _without_equations(self.zero, self.positive)
        return reduced is None or _is_empty(reduced)


def _sum(one: Mapping[str, int], other: Mapping[str, int], factor: int = 1) -> Linear:
    made = dict(one)
    for name, c in other.items():
        made[name] = made.get(name, 0) + factor * c
    return {name: c for name, c in made.items() if c}


def _without_equations(zero: Iterable[Linear], positive: Iterable[Linear]) -> list[Linear] | None:
    """Return inequalities that say the same as a system; None where the equations cannot hold."""
    equations = [{n: c for n, c in e.items() if c} for e in zero]
    rest = [dict(p) for p in positive]
    fresh = 0
    while equations:
        equation = min(equations, key=lambda e: min((abs(c) for n, c in e.items() if n), default=0))
        equations.remove(equation)
        names = [n for n in equation if n]
        constant = equation.get("", 0)
        if not names:
            if constant:
                return None
            continue
        divisor = math.gcd(*[equation[n] for n in names])
        if constant % divisor:
            return None
        equation = {n: c // divisor for n, c in equation.items()}
        name = min(names, key=lambda n: abs(equation[n]))
        size = abs(equation[name])
        if size > 1:
            # Another variable takes the place of one, so that coefficients become smaller.
            fresh += 1
            value = {n: -_rounded(c, size) for n, c in equation.items() if n != name}
            sign = 1 if equation[name] > 0 else -1
            value = {n: sign * c for n, c in value.items() if c}
            value[f"?{fresh}"] = 1
            equations.append(_put(equation, name, value))
        else:
            factor = -equation[name]
            value = {n: c * factor for n, c in equation.items() if n != name}
        equations = [_put(e, name, value) for e in equations]
        rest = [_put(p, name, value) for p in rest]
    return rest


def _rounded(value: int, by: int) -> int:
    return (2 * value + by) // (2 * by)


def _put(target: Linear, name: str, value: Linear) -> Linear:
    """Return a linear form with another one in place of a variable."""
    factor = target.get(name, 0)
    if not factor:
        return target
    made = dict(target)
    del made[name]
    return _sum(made, value, factor)


Form = tuple[tuple[str, int], ...]


def _tightened(forms: Iterable[Linear]) -> dict[Form, int] | None:
    """Return inequalities by their coefficients, with the least constant of each.

    Coefficients have no common divisor. None where one of them never holds.
    """
    kept: dict[Form, int] = {}
    for form in forms:
        constant = form.get("", 0)
        names = sorted(n for n, c in form.items() if n and c)
        if not names:
            if constant < 0:
                return None
            continue
        divisor = math.gcd(*[form[n] for n in names])
        key = tuple([(n, form[n] // divisor) for n in names])
        constant //= divisor
        if kept.get(key, constant) >= constant:
            kept[key] = constant
            opposite = kept.get(tuple([(n, -c) for n, c in key]))
            if opposite is not None and constant + opposite < 0:
                return None
    return kept


def without(forms: Iterable[Linear], name: str) -> list[Linear]:
    """Return inequalities that follow from others and do not have a variable.

    They hold for all fractions that a value of the variable completes.
    """
    forms = list(forms)
    made = [f for f in forms if not f.get(name, 0)]
    for below in forms:
        for above in forms:
            a, b = below.get(name, 0), -above.get(name, 0)
            if a > 0 and b > 0:
                made.append(_sum({n: c * b for n, c in below.items()}, above, a))
    return made


def _is_empty(forms: Iterable[Linear]) -> bool:
    """Return whether inequalities are proved not to hold together."""
    kept = _tightened(forms)
    while kept is not None:
        low: dict[str, list[Form]] = {}
        high: dict[str, list[Form]] = {}
        for form in kept:
            for name, c in form:
                (low if c > 0 else high).setdefault(name, []).append(form)
        names = low.keys() | high.keys()
        if not names:
            return False
        name = min(names, key=lambda n: (len(low.get(n, ())) * len(high.get(n, ())), n))
        touched = {*low.get(name, ()), *high.get(name, ())}
        made: list[Linear] = [{**dict(form), "": c} for form, c in kept.items() if form not in touched]
        for below in low.get(name, ()):
            a = dict(below)[name]
            first = {**dict(below), "": kept[below]}
            for above in high.get(name, ()):
                b = -dict(above)[name]
                second = {**dict(above), "": kept[above]}
                made.append(_sum({n: c * b for n, c in first.items()}, second, a))
        if len(made) > _MOST:
            return False
        kept = _tightened(made)
    return True
