"""The writer of random programs: statements and expressions drawn by chance, which mean something
wherever they stand.
"""

from __future__ import annotations

import ast
import itertools
import random


class Writer:
    """Writes one program.

    A variable's first letter is its kind: f, v (scalar and vector), n (whole), p (Python float), b
    (boolean), l, t, d (containers).
    """

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

    def pick(self, scope: set[str], kind: str) -> str | None:
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
