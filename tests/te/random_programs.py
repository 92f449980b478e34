"""Loop programs drawn at random, within bounds."""

from __future__ import annotations

import random

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.loops import formulas
from mycel._src.compiler.loops.formulas import Formula
from mycel._src.compiler.loops.programs import Array, For, If, Program, Set, Statement, index_of, size_of
from mycel._src.foundation import dtype as D

__all__ = ["SIZE", "drawn"]

SIZE = 5
KIND = D.float64


class _Draw:
    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.count = 0
        n, m = size_of("a", 0), size_of("a", 1)
        self.inputs = (Array("a", KIND, (n, m)), Array("x", KIND, (size_of("x", 0),)))
        self.outputs = (Array("y", KIND, (n,), 0.5), Array("z", KIND, (n, m), 0.0))
        self.locals = (Array("t", KIND, (n,), 1.0), Array("u", KIND, (), 0.0))
        self.readable = [*self.inputs, *self.outputs, *self.locals]
        self.writable = [*self.outputs, *self.locals]

    def position(self, indices: dict[str, DimLike], size: DimLike) -> DimLike:
        """Return a position below `size`: all sizes and extents are the same."""
        if not indices:
            return self.r.choice([0, size - 1])
        i = index_of(self.r.choice(list(indices)))
        kind = self.r.randrange(8)
        if kind < 4:
            return i
        if kind == 4:
            return size - 1 - i
        if kind == 5:
            return (i + self.r.randrange(1, 4)) % size
        if kind == 6 and len(indices) > 1:
            return (i + index_of(self.r.choice(list(indices)))) // 2
        return i // 2

    def place(self, array: Array, indices: dict[str, DimLike]) -> tuple[DimLike, ...]:
        return tuple([self.position(indices, d) for d in array.shape])

    def value(self, indices: dict[str, DimLike], depth: int, arrays: list[Array]) -> Formula:
        kind = self.r.randrange(9) if depth else 0
        if kind < 3:
            array = self.r.choice(arrays)
            return formulas.read(array.name, self.place(array, indices), KIND)
        if kind == 3:
            return formulas.constant(self.r.choice([0.5, -1.5, 2.0]), KIND)
        args = [self.value(indices, depth - 1, arrays) for _ in range(2)]
        if kind == 4:
            return formulas.operation("tanh", KIND, args[0])
        if kind == 5:
            test = formulas.operation("lt", D.bool_, *args)
            return formulas.operation("select", KIND, test, args[1], formulas.operation("neg", KIND, args[0]))
        return formulas.operation(("add", "sub", "mul")[kind - 6], KIND, *args)

    def set(self, indices: dict[str, DimLike], arrays: list[Array], targets: list[Array]) -> Set:
        target = self.r.choice(targets)
        mode = self.r.choice(["set", "set", "add", "add", "add", "mul", "max"])
        value = self.value(indices, 2, arrays)
        if mode == "mul":
            value = formulas.operation("tanh", KIND, value)
        place = self.place(target, indices)
        if mode != "set" and any(r.data == target.name for r in formulas.reads_of(value)):
            mode = "set"
        return Set(target.name, place, formulas.operation("tanh", KIND, value), mode)

    def block(
        self, indices: dict[str, DimLike], depth: int, arrays: list[Array], targets: list[Array]
    ) -> tuple[Statement, ...]:
        made: list[Statement] = []
        for _ in range(self.r.randrange(1, 4)):
            kind = self.r.randrange(6)
            if depth and kind < 3:
                self.count += 1
                name = f"i{self.count}"
                stop: DimLike = self.r.choice([size_of("a", 0), size_of("a", 1)])
                start: DimLike = 0
                if indices and self.r.random() < 0.25:
                    other = index_of(self.r.choice(list(indices)))
                    start, stop = self.r.choice([(0, other + 1), (other, stop)])
                private = []
                if self.r.random() < 0.4:
                    private = [Array(f"p{self.count}", KIND, (), 0.25)]
                inner = {**indices, name: stop}
                body = self.block(inner, depth - 1, [*arrays, *private], [*targets, *private])
                made.append(For(name, start, stop, body, "serial", False, tuple(private)))
            elif kind == 3 and depth:
                test = formulas.operation("lt", D.bool_, self.value(indices, 1, arrays), self.value(indices, 0, arrays))
                first = self.block(indices, depth - 1, arrays, targets)
                other_body = self.block(indices, 0, arrays, targets) if self.r.random() < 0.5 else ()
                made.append(If(test, first, other_body))
            else:
                made.append(self.set(indices, arrays, targets))
        return tuple(made)

    def program(self, seed: int) -> Program:
        body = self.block({}, 3, list(self.readable), list(self.writable))
        return Program(f"drawn {seed}", self.inputs, self.outputs, self.locals, body)


def drawn(seed: int) -> Program:
    """Return the program of a seed: it takes a matrix and a vector, all of whose sizes are one."""
    return _Draw(seed).program(seed)
