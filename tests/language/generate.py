"""Random programs that must mean the same everywhere.

`source(seed)` writes a program: a function of two scalars, a vector and a whole number, made of nested branches, loops, early returns, local functions
and containers, about half of them decided by tensors. `check_seed` runs it in plain Python over `Watched` arrays of float64, which is the oracle of values and,
by central differences, of gradients; eagerly; compiled; and under the eager and the compiled gradient. A `Watched` array notes how near its
comparisons come to their thresholds, so that inputs at which differences would step over a discontinuity are left out. `shrink` cuts a failing program down.

    python -m tests.language.generate FIRST COUNT      checks many seeds and prints the programs that fail, cut down
"""

from __future__ import annotations

import ast
import itertools
import linecache
import logging
import random
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any, Optional

import numpy as np

import mycel as ms
from mycel.base.tree import flatten
from tests.language.harness import F, differences, same

__all__ = ["Watched", "check_seed", "define", "shrink", "source"]

NEAR = 1e-4
LARGE = 1e3
MOST_STEPS = 4000


class Decisions:
    """What the comparisons of a run of the oracle came to."""

    def __init__(self) -> None:
        self.nearest, self.largest, self.steps = np.inf, 0.0, 0


seen = Decisions()


class Watched(np.ndarray):
    """An array that stays one at every operation and notes how near comparisons come to deciding otherwise."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        plain = [np.asarray(v) if isinstance(v, np.ndarray) else v for v in inputs]
        kwargs.pop("out", None)
        seen.steps += 1
        if seen.steps > MOST_STEPS:
            raise OverflowError("the program is too long")
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*plain, **kwargs)
        name = ufunc.__name__
        if name in ("less", "greater", "less_equal", "greater_equal", "equal", "not_equal", "maximum", "minimum"):
            if method == "__call__" and any(np.asarray(p).dtype.kind == "f" for p in plain):
                near(np.subtract(*plain, dtype=float))
        elif name in ("absolute", "sign"):
            near(plain[0])
        elif np.asarray(result).dtype.kind == "f":
            top = np.max(np.abs(result), initial=0)
            seen.largest = max(seen.largest, float(top) if np.isfinite(top) else np.inf)
        return watched(result)

    def __array_function__(self, fn: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        return watched(fn(*map(bare, args), **{k: bare(v) for k, v in kwargs.items()}))

    def __getitem__(self, index: Any) -> Any:
        return watched(np.asarray(self)[bare(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        np.asarray(self)[bare(index)] = bare(value)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        if self.dtype.kind == "f":
            near(np.asarray(self))
        return bool(np.asarray(self))

    def __iadd__(self, other: Any) -> Any:
        return self + other

    def __isub__(self, other: Any) -> Any:
        return self - other

    def __imul__(self, other: Any) -> Any:
        return self * other


def near(distance: Any) -> None:
    seen.nearest = min(seen.nearest, float(np.min(np.abs(distance), initial=np.inf)))


def watched(value: Any) -> Any:
    return np.array(value).view(Watched) if isinstance(value, (np.ndarray, np.generic)) else value


def bare(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(bare, value))
    return np.asarray(value) if isinstance(value, Watched) else value


class Writer:
    """Writes one program. A variable's first letter is its kind: f, v (scalar and vector), n (whole), p (Python float), b (boolean), l, t, d (containers)."""

    def __init__(self, seed: int, size: int = 26) -> None:
        self.random = random.Random(seed)
        self.left = size
        self.count = itertools.count()
        self.result = self.random.choice(["f", "f", "fv", "fnf", "df"])
        self.counters = {"n0", "v0"}

    def program(self) -> str:
        lines = ["def program(f0, f1, v0, n0):"]
        scope = {"f0", "f1", "v0", "n0"}
        for _ in range(self.random.randint(0, 2)):
            name = f"g{next(self.count)}"
            lines += self.function(name, {*scope}, 1)
        while self.left > 0:
            made, ends = self.statement(scope, 1, 0, True)
            lines += made
            if ends:
                return "\n".join(lines) + "\n"
        return "\n".join([*lines, "    " + self.finish(scope)]) + "\n"

    # Expressions.

    def pick(self, scope: set[str], kind: str) -> Optional[str]:
        found = sorted(n for n in scope if n[0] == kind)
        return self.random.choice(found) if found else None

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def f(self, scope: set[str], depth: int = 2) -> str:
        """A scalar that is a tensor."""
        r = self.random
        name = self.pick(scope, "f") or "f0"
        if depth <= 0 or self.chance(0.15):
            return name
        d = depth - 1
        if self.pick(scope, "g") and self.chance(0.12):
            return self.call(scope, d)
        kind = r.randrange(20)
        if kind < 5:
            return f"({self.f(scope, d)} {r.choice('+-*')} {self.f(scope, d)})"
        if kind < 8:
            return f"F.{r.choice(['sin', 'cos', 'tanh'])}({self.f(scope, d)})"
        if kind == 8:
            return f"({self.f(scope, d)} {r.choice('+-*')} {self.p(scope, d)})"
        if kind == 9:
            return f"({self.f(scope, d)} / ({self.f(scope, 0)} * {self.f(scope, 0)} + 1.5))"
        if kind == 10:
            return f"({self.f(scope, d)} if {self.test(scope, 0)} else {self.f(scope, d)})"
        if kind == 11 and self.pick(scope, "v"):
            return f"F.{r.choice(['sum', 'mean'])}({self.v(scope, d)})"
        if kind == 12 and self.pick(scope, "v"):
            return f"{self.pick(scope, 'v')}[{self.index(scope)}]"
        if kind == 13 and self.pick(scope, "l"):
            return f"{self.pick(scope, 'l')}[{self.index(scope)}]"
        if kind == 14 and self.pick(scope, "d"):
            return f'{self.pick(scope, "d")}["{r.choice("ab")}"]'
        if kind == 15 and self.pick(scope, "g"):
            return self.call(scope, d)
        if kind == 16:
            return f"{r.choice(['max', 'min'])}({self.f(scope, d)}, {self.f(scope, d)})"
        if kind == 17:
            return f"(-{self.f(scope, d)})"
        if kind == 18 and self.pick(scope, "t"):
            return f"{self.pick(scope, 't')}[{r.choice([0, 1, -1])}]"
        if kind == 19:
            return f"({self.f(scope, 0)} * {self.n(scope, 1)} * 0.25)"
        return f"abs({self.f(scope, d)})"

    def call(self, scope: set[str], depth: int) -> str:
        name = self.pick(scope, "g") or ""
        given = [self.f(scope, depth), self.n(scope, 0)]
        if self.chance(0.3):
            given[1] = "k=" + given[1]
        return f"{name}({', '.join(given)})"

    def v(self, scope: set[str], depth: int = 2) -> str:
        r = self.random
        name = self.pick(scope, "v") or "v0"
        if depth <= 0 or self.chance(0.15):
            return name
        d = depth - 1
        kind = r.randrange(8)
        if kind < 2:
            return f"({self.v(scope, d)} {r.choice('+-*')} {self.v(scope, d)})"
        if kind < 4:
            return f"({self.v(scope, d)} {r.choice('+-*')} {self.f(scope, d)})"
        if kind == 4:
            return f"F.{r.choice(['sin', 'tanh'])}({self.v(scope, d)})"
        if kind == 5:
            return f"F.where({name} {r.choice('<>')} {self.threshold()}, {self.v(scope, d)}, {self.v(scope, d)})"
        if kind == 6:
            return f"F.stack([{self.f(scope, d)}, {self.f(scope, d)}, {self.f(scope, d)}])"
        return f"({self.v(scope, d)} if {self.test(scope, 0)} else {self.v(scope, d)})"

    def n(self, scope: set[str], depth: int = 1) -> str:
        r = self.random
        name = self.pick(scope, "n")
        if depth <= 0 or name is None or self.chance(0.3):
            return name if name is not None and self.chance(0.7) else str(r.randint(0, 4))
        kind = r.randrange(5)
        if kind == 0:
            return f"({name} + {self.n(scope, depth - 1)}) % {r.randint(2, 6)}"
        if kind == 1:
            return f"({self.n(scope, depth - 1)} if {self.test(scope, 0)} else {self.n(scope, depth - 1)})"
        if kind == 2:
            return f"{name} // {r.randint(2, 3)}"
        if kind == 3:
            return f"({name} * {r.randint(1, 3)} - 1) % 5"
        return f"abs({name} - {r.randint(0, 4)})"

    def index(self, scope: set[str]) -> str:
        return self.random.choice(["0", "1", "2", "-1", f"({self.n(scope, 0)}) % 3"])

    def p(self, scope: set[str], depth: int = 1) -> str:
        name = self.pick(scope, "p")
        number = str(self.random.randint(-6, 6) / 4)
        if depth <= 0 or name is None or self.chance(0.4):
            return name if name is not None and self.chance(0.6) else number
        kind = self.random.randrange(3)
        if kind == 0:
            return f"({name} * 0.5 {self.random.choice('+-')} {number})"
        if kind == 1:
            return f"({self.p(scope, 0)} if {self.test(scope, 0)} else {self.p(scope, 0)})"
        return f"-{name}"

    def threshold(self) -> str:
        return str(round(self.random.uniform(-1.2, 1.2), 3))

    def test(self, scope: set[str], depth: int = 2) -> str:
        r = self.random
        kind = r.randrange(12)
        if kind < 4 or depth <= 0:
            return f"{self.f(scope, min(depth, 1))} {r.choice(['<', '>', '<=', '>='])} {self.threshold()}"
        if kind == 4:
            return f"{self.n(scope, 1)} {r.choice(['<', '>', '==', '!='])} {r.randint(0, 4)}"
        if kind == 5:
            return f"-{r.choice([0.31, 0.77])} < {self.f(scope, 1)} {r.choice(['<', '<='])} {self.f(scope, 1)} + 0.513"
        if kind < 8:
            return f"({self.test(scope, depth - 1)} {r.choice(['and', 'or'])} {self.test(scope, depth - 1)})"
        if kind == 8:
            return f"not ({self.test(scope, depth - 1)})"
        if kind == 9 and self.pick(scope, "b"):
            return str(self.pick(scope, "b"))
        if kind == 10:
            return f"{self.n(scope, 1)}"
        if kind == 11:
            return f"{self.p(scope, 0)} < {r.randint(-3, 3) / 2 + 0.125}"
        return f"{self.f(scope, 1)} > {self.f(scope, 1)}"

    def calm(self, text: str, scope: set[str]) -> str:
        """An expression kept in bounds."""
        kind = self.random.randrange(4)
        return (f"F.sin({text})", f"F.tanh({text})", text, f"({text}) * 0.5")[kind]

    def finish(self, scope: set[str]) -> str:
        parts = self.random.sample(
            sorted(n for n in scope if n[0] in "fp" and n != "fx"),
            k=len([n for n in scope if n[0] in "fp" and n != "fx"]),
        )
        f, v = " + ".join([self.f(scope, 2), *parts[:4]]), self.v(scope, 1)
        return {
            "f": f"return {f}",
            "fv": f"return {f}, {v}",
            "fnf": f"return [{f}, {self.n(scope)}, {self.f(scope, 1)}]",
            "df": f'return {{"first": {f}, "second": {v}}}',
        }[self.result]

    # Statements: the lines, and whether the block ends with them.

    def statement(self, scope: set[str], level: int, loops: int, returns: bool) -> tuple[list[str], bool]:
        self.left -= 1
        pad = "    " * level
        r = self.random
        kind = r.randrange(30) if self.left > 0 and level < 5 else r.randrange(13)
        if kind < 4:
            return self.assign(scope, pad, "f", self.calm(self.f(scope), scope)), False
        if kind == 4:
            return self.assign(scope, pad, "v", self.calm(self.v(scope), scope)), False
        if kind == 5:
            return self.assign(scope, pad, "n", self.n(scope)), False
        if kind == 6:
            return self.assign(scope, pad, "p", self.p(scope)), False
        if kind == 7:
            return self.assign(scope, pad, "b", f"bool_({self.test(scope)})"), False
        if kind < 10:
            name = self.pick(scope, "f") or "f0"
            return [pad + f"{name} {r.choice(['+=', '-=', '*='])} {self.calm(self.f(scope, 1), scope)}"], False
        if kind == 10:
            return self.container(scope, pad)
        if kind == 11:
            a, b = self.pick(scope, "f"), self.pick(scope, "f")
            return [pad + f"{a}, {b} = {self.f(scope, 1)}, {self.f(scope, 1)}"], False
        if kind == 12:
            made = [n for n in sorted(scope) if n[0] == "v" and n != "v0"]
            if made and level == 1:
                return [pad + f"{r.choice(made)}[{self.index(scope)}] = {self.calm(self.f(scope, 1), scope)}"], False
            return self.assign(scope, pad, "f", self.f(scope)), False
        if kind == 13 and level < 4:
            name = f"g{next(self.count)}"
            lines = self.function(name, scope, level)
            scope.add(name)
            return lines, False
        if kind == 14 and len([n for n in scope if n[0] == "g"]) > 1:
            a, b = self.pick(scope, "g"), self.pick(scope, "g")
            text = (
                f"{a} if {self.test(scope, 0)} else {b}" if self.chance(0.5) else f"[{a}, {b}][{self.n(scope, 0)} % 2]"
            )
            return self.assign(scope, pad, "g", text), False
        if kind == 15 and loops and level > 2:
            return [pad + r.choice(["break", "continue"])], True
        if kind == 16 and returns and level > 1 and self.chance(0.6):
            return [pad + self.finish(scope)], True
        if kind < 23:
            return self.branches(scope, level, loops, returns)
        return self.loop(scope, level, loops, returns)

    def assign(self, scope: set[str], pad: str, kind: str, text: str) -> list[str]:
        """An assignment to an old variable, or to a new one."""
        own = [n for n in scope if n[0] == kind and n not in self.counters]
        old = own and kind != "g" and self.chance(0.6)
        name = self.random.choice(sorted(own)) if old else f"{kind}{next(self.count) + 2}"
        scope.add(name)
        return [pad + f"{name} = {text}"]

    def container(self, scope: set[str], pad: str) -> tuple[list[str], bool]:
        r = self.random
        kind = r.choice("ltd")
        name = self.pick(scope, kind)
        if name is None or self.chance(0.3):
            made = {"l": "[{}, {}, {}]", "t": "({}, {})", "d": '{{"a": {}, "b": {}}}'}[kind]
            text = made.format(*[self.f(scope, 1) for _ in range(3)])
            name = f"{kind}{next(self.count)}"
            scope.add(name)
            return [pad + f"{name} = {text}"], False
        if kind == "t":
            return [pad + f"{name} = ({self.f(scope, 1)}, {name}[0])"], False
        key = r.choice(['"a"', '"b"']) if kind == "d" else r.choice(["0", "1", "-1"])
        if kind == "l" and self.chance(0.3):
            return [pad + f"{name} = [*{name}[1:], {self.f(scope, 1)}]"], False
        return [pad + f"{name}[{key}] {r.choice(['=', '=', '+='])} {self.calm(self.f(scope, 1), scope)}"], False

    def block(self, scope: set[str], level: int, loops: int, returns: bool) -> tuple[list[str], bool]:
        lines: list[str] = []
        for _ in range(self.random.randint(1, 3)):
            made, ends = self.statement(scope, level, loops, returns)
            lines += made
            if ends:
                return lines, True
        return lines, False

    def branches(self, scope: set[str], level: int, loops: int, returns: bool) -> tuple[list[str], bool]:
        pad = "    " * level
        lines: list[str] = []
        after: list[set[str]] = []
        word = "if"
        for _ in range(self.random.choice([1, 1, 1, 2, 3])):
            inner = set(scope)
            lines.append(pad + f"{word} {self.test(scope)}:")
            made, ends = self.block(inner, level + 1, loops, returns)
            lines += made
            if not ends:
                after.append(inner)
            word = "elif"
        if self.chance(0.6):
            inner = set(scope)
            lines.append(pad + "else:")
            made, ends = self.block(inner, level + 1, loops, returns)
            lines += made
            if not ends:
                after.append(inner)
        else:
            after.append(set(scope))
        if not after:
            return lines, True
        kept = set.intersection(*after)
        scope.clear()
        scope.update(kept)
        return lines, False

    def loop(self, scope: set[str], level: int, loops: int, returns: bool) -> tuple[list[str], bool]:
        pad, r = "    " * level, self.random
        inner = set(scope)
        kind = r.randrange(7)
        i = f"n{next(self.count) + 2}"
        if kind < 2:
            lines = [
                pad + f"{i} = 0",
                pad + f"while {i} < {r.randint(1, 5)} and {self.test(scope, 1)}:",
                pad + f"    {i} += 1",
            ]
            self.counters.add(i)
            scope.add(i)
            inner = set(scope)
        elif kind == 2:
            lines = [pad + f"for {i} in range({self.n(scope)}):"]
            inner.add(i)
        elif kind == 3:
            lines = [pad + f"for {i} in range({r.randint(1, 4)}):"]
            inner.add(i)
        elif kind == 4:
            item = f"f{next(self.count) + 2}"
            lines = [pad + f"for {item} in {self.pick(scope, 'l') or self.v(scope, 1)}:"]
            inner.add(item)
        elif kind == 5:
            item = f"f{next(self.count) + 2}"
            lines = [pad + f"for {i}, {item} in enumerate({self.v(scope, 1)}):"]
            inner |= {i, item}
        else:
            a, b = f"f{next(self.count) + 2}", f"f{next(self.count) + 2}"
            lines = [pad + f"for {a}, {b} in zip({self.v(scope, 1)}, {self.v(scope, 1)}):"]
            inner |= {a, b}
        before = set(inner)
        made, _ = self.block(inner, level + 1, loops + 1, returns)
        lines += made
        if self.chance(0.25):
            rest = set(scope & before)
            lines.append(pad + "else:")
            made, _ = self.block(rest, level + 1, loops, returns)
            lines += made
        return lines, False

    def function(self, name: str, scope: set[str], level: int) -> list[str]:
        pad, r = "    " * level, self.random
        if self.chance(0.3):
            return [pad + f"{name} = lambda x, k=1: {self.f({*scope, 'f0'}, 2).replace('f0', 'x')} * (k % 3)"]
        inner = {n for n in scope if n[0] in "fvnpgltd"} | {"fx", "nk"}
        made = ["fx = fx * 1.0"]
        if self.chance(0.3):
            target = r.choice([n for n in sorted(scope) if n[0] == "f" and n != "fx"] or ["f0"])
            made = [f"nonlocal {target}", f"{target} = {self.calm(self.f(inner, 1), inner)}"]
        lines = [pad + f"def {name}(fx, k={r.randint(0, 3)}):", pad + "    nk = k % 5"]
        lines += [pad + "    " + m for m in made]
        keep, self.result = self.result, "f"
        written = {n for n in inner if n[0] in "fvnp" and n not in ("fx", "nk")}
        local = {"fx", "nk", *[n for n in inner if n[0] in "g"]}
        body: list[str] = []
        for _ in range(r.randint(1, 3)):
            text, ends = self.statement(local, level + 1, 0, True)
            body += text
            if ends:
                break
        else:
            extra = self.pick(written, "f") if self.chance(0.5) else None
            assigned = {
                t.id
                for t in ast.walk(ast.parse("\n".join(b[4 * (level + 1) :] for b in body)))
                if isinstance(t, ast.Name) and isinstance(t.ctx, ast.Store)
            }
            if extra and extra not in assigned:
                local.add(extra)
            body.append(pad + "    " + self.finish(local))
        self.result = keep
        return lines + body


def source(seed: int) -> str:
    """The program of a seed."""
    return Writer(seed).program()


_numbers = itertools.count()


def bool_(value: Any) -> Any:
    """A truth value as it is, so that it can be kept in a variable of one type."""
    return value != 0


def define(text: str) -> Callable[..., Any]:
    """The function `program` of a source, known to `linecache` as the sources of a notebook are."""
    filename = f"<program {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    namespace: dict[str, Any] = {"F": F, "bool_": bool_, "__name__": "generated"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace["program"]


INPUTS = (
    (0.7, -0.4, (0.3, -0.9, 1.1), 3),
    (-0.35, 1.2, (-1.3, 0.8, 0.45), 1),
    (0.15, 0.55, (0.9, 0.2, -0.6), 4),
    (-1.1, -0.8, (-0.2, -0.5, 0.6), 0),
)


def weighted(values: Any) -> Any:
    """A number that depends on every float of a result."""
    result: Any = None
    for k, leaf in enumerate(flatten(values)[0]):
        if isinstance(leaf, ms.Tensor):
            part = ms.ops.sum(leaf) * (1 + 0.37 * k) if leaf.dtype.is_differentiable else None
        else:
            array = np.asarray(leaf)
            part = float(array.sum()) * (1 + 0.37 * k) if array.dtype.kind == "f" else None
        if part is not None:
            result = part if result is None else result + part
    return result


class Case:
    """Inputs with what the oracle says of them."""

    def __init__(self, fn: Any, given: Any) -> None:
        self.arrays = [watched(np.array(g, np.float64 if i < 3 else np.int64)) for i, g in enumerate(given)]
        self.usable = False
        seen.__init__()
        try:
            self.expected = fn(*[a.copy() for a in self.arrays])
            if seen.nearest < NEAR or seen.largest > LARGE or _poor(self.expected):
                return
            function = lambda *a: float(weighted(fn(*[watched(x) for x in a])))
            plain = [np.asarray(a) for a in self.arrays]
            seen.steps = -(10**9)
            self.gradients = [differences(function, plain, k) for k in range(3)]
        except OverflowError:
            return
        self.usable = all(np.abs(g).max() < LARGE for g in self.gradients)

    def tensors(self) -> list[Any]:
        return [ms.Tensor(np.asarray(a)) for a in self.arrays]


def _poor(values: Any) -> bool:
    return any(not np.all(np.isfinite(np.asarray(v, dtype=float))) for v in flatten(values)[0])


def check_source(text: str, gradients: bool = True, inputs: Any = INPUTS) -> int:
    """Assert that a program means the same everywhere; the number of inputs for which it was checked."""
    fn = define(text)
    cases = [c for c in (Case(fn, given) for given in inputs) if c.usable]
    jitted = ms.jit(fn)

    def value(*args: Any) -> Any:
        return weighted(fn(*args))

    backward = ms.jit(ms.grad(value, (0, 1, 2)))
    for c in cases:
        same(fn(*c.tensors()), _plain(c.expected), 1e-6, "eager")
        same(jitted(*c.tensors()), _plain(c.expected), 1e-6, "compiled")
    if cases:
        account = ms.explain(jitted, *cases[0].tensors())
        assert not account.breaks, f"a break: {account.breaks[0]}"
    if gradients:
        for c in cases:
            for what, run in (("the eager gradient", ms.grad(value, (0, 1, 2))), ("the compiled gradient", backward)):
                for k, (found, wanted) in enumerate(zip(run(*c.tensors()), c.gradients)):
                    same(found, wanted, 1e-4, f"{what} by argument {k}")
    return len(cases)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_plain(v) for v in value)
    return np.asarray(value)


def check_seed(seed: int) -> int:
    """Check the program of a seed; the number of inputs for which it was checked."""
    return check_source(source(seed))


# Cutting down.


def shrink(text: str, fails: Callable[[str], bool], seconds: float = 60.0) -> str:
    """A shorter program that fails too, by taking away statements and putting parts in place of wholes."""
    end = time.perf_counter() + seconds
    for change in (_without_statement, _with_body, _with_part, _without_statement):
        place = 0
        while time.perf_counter() < end:
            tree = ast.parse(text)
            made = change(tree, place)
            if made is None:
                break
            candidate = ast.unparse(ast.fix_missing_locations(tree)) + "\n" if made else text
            if made and candidate != text and fails(candidate):
                text = candidate
            else:
                place += 1
    return text


def _bodies(tree: ast.AST) -> list[list[ast.stmt]]:
    found = [getattr(n, f, None) for n in ast.walk(tree) for f in ("body", "orelse", "finalbody")]
    return [b for b in found if isinstance(b, list) and b]


def _without_statement(tree: ast.AST, place: int) -> Optional[bool]:
    """Take away the statement of this number, from the outside in; None where there is none."""
    places = [(b, k) for b in _bodies(tree)[1:] for k in range(len(b))]
    if place >= len(places):
        return None
    body, k = places[place]
    if len(body) == 1:
        body[k] = ast.Pass()
    else:
        del body[k]
    return True


def _with_body(tree: ast.AST, place: int) -> Optional[bool]:
    """Put the body of a compound statement in its place."""
    places = [
        (b, k) for b in _bodies(tree)[1:] for k in range(len(b)) if isinstance(b[k], (ast.If, ast.For, ast.While))
    ]
    places = [(b, k, f) for b, k in places for f in ("body", "orelse")]
    if place >= len(places):
        return None
    body, k, name = places[place]
    inner = getattr(body[k], name)
    body[k : k + 1] = inner or [ast.Pass()]
    return True


def _with_part(tree: ast.AST, place: int) -> Optional[bool]:
    """Put a part of an expression in its place."""
    places = [
        (node, field, child)
        for node in ast.walk(tree)
        for field, value in ast.iter_fields(node)
        if isinstance(value, ast.expr) and not isinstance(value, (ast.Name, ast.Constant))
        for child in ast.iter_child_nodes(value)
        if isinstance(child, ast.expr) and not isinstance(child, ast.Attribute)
    ]
    if place >= len(places):
        return None
    node, field, child = places[place]
    setattr(node, field, child)
    return True


def fault(text: str) -> str:
    """How a program fails; empty where it does not, or fails in plain Python too."""
    try:
        fn = define(text)
        for given in INPUTS:
            Case(fn, given)
    except Exception:
        return ""
    try:
        check_source(text)
    except Exception as error:
        return type(error).__name__ + re.sub(r"[^a-z ]|<program", "", str(error))[:60]
    return ""


def _fails_like(kind: str) -> Callable[[str], bool]:
    return lambda text: kind != "" and fault(text) == kind


def main(first: int, count: int) -> None:
    warnings.simplefilter("error")
    used = failed = 0
    worst: list[tuple[float, int]] = []
    logging.disable(logging.WARNING)
    for seed in range(first, first + count):
        begin = time.perf_counter()
        try:
            used += check_seed(seed) > 0
        except Exception as error:
            failed += 1
            print(f"--- seed {seed}: {type(error).__name__}: {str(error)[:600]}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc(limit=-3, file=sys.stdout)
            print(shrink(source(seed), _fails_like(fault(source(seed)))), flush=True)
        worst.append((time.perf_counter() - begin, seed))
        if len(worst) % 100 == 0:
            print(
                f"{len(worst)} programs, {used} with usable inputs, {failed} failed; slowest {max(worst)}", flush=True
            )
    worst.sort(reverse=True)
    print(f"{count} programs, {used} with usable inputs, {failed} failed; slowest {worst[:3]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
