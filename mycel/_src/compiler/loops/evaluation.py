"""A NumPy evaluator of loop programs, element by element, with which engines are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import evaluate
from mycel._src.compiler.loops.formulas import Formula, Term
from mycel._src.compiler.loops.programs import COMBINES, Array, For, If, Program, Set, Statement

__all__ = ["run"]

Arrays = dict[str, np.ndarray[Any, Any]]
Operation = Callable[..., Any]


def run(program: Program, inputs: Sequence[Any], operation: Callable[[str], Operation]) -> tuple[Any, ...]:
    """Return the outputs of a program for arrays; `operation` gives a primitive's NumPy function.

    Raises IndexError where a place is not in its array.
    """
    sizes = {f"{a.name}.{k}": n for a, v in zip(program.inputs, inputs) for k, n in enumerate(v.shape)}
    runner = _Runner(operation)
    runner.arrays.update({a.name: v for a, v in zip(program.inputs, inputs)})
    for a in (*program.outputs, *program.locals):
        runner.make(a, sizes)
    with np.errstate(all="ignore"):
        runner.block(program.body, sizes)
    return tuple([runner.arrays[a.name] for a in program.outputs])


class _Runner:
    def __init__(self, operation: Callable[[str], Operation]) -> None:
        self.operation = operation
        self.arrays: Arrays = {}

    def make(self, array: Array, names: Mapping[str, int]) -> None:
        shape = tuple([max(evaluate(d, names), 0) for d in array.shape])
        self.arrays[array.name] = np.full(shape, 0 if array.fill is None else array.fill, array.dtype.numpy)

    def block(self, body: Sequence[Statement], names: dict[str, int]) -> None:
        for s in body:
            if isinstance(s, Set):
                self.set(s, names)
            elif isinstance(s, If):
                self.block(s.body if self.value(s.condition, names) else s.other, names)
            else:
                self.loop(s, names)

    def loop(self, s: For, names: dict[str, int]) -> None:
        over = range(evaluate(s.start, names), evaluate(s.stop, names))
        for i in reversed(over) if s.backward else over:
            names[s.index] = i
            for a in s.private:
                self.make(a, names)
            self.block(s.body, names)
        names.pop(s.index, None)

    def set(self, s: Set, names: Mapping[str, int]) -> None:
        array = self.arrays[s.array]
        place = self.place(s.array, s.place, names)
        value = self.value(s.value, names)
        if s.mode != "set":
            value = self.operation(COMBINES[s.mode])(array[place], value)
        array[place] = value

    def place(self, name: str, place: Sequence[Term], names: Mapping[str, int]) -> tuple[int, ...]:
        array = self.arrays[name]
        found = tuple([self.term(t, names) for t in place])
        for i, size in zip(found, array.shape):
            if not 0 <= i < size:
                raise IndexError(f"{name}: index {i} is out of range for an axis of size {size}")
        return found

    def term(self, term: Term, names: Mapping[str, int]) -> int:
        return int(self.value(term, names)) if isinstance(term, Formula) else evaluate(term, names)

    def value(self, f: Formula, names: Mapping[str, int]) -> Any:
        if f.kind == "const":
            return f.dtype.numpy.type(f.data)
        if f.kind == "index":
            return np.int64(evaluate(f.data, names))
        if f.kind == "read":
            return self.arrays[f.data][self.place(f.data, f.place, names)]
        if f.data == "select":
            # Only the side that is chosen is computed: the other may read outside of its arrays.
            return self.value(f.args[1] if self.value(f.args[0], names) else f.args[2], names)
        if f.data in ("logical_and", "logical_or"):
            first = bool(self.value(f.args[0], names))
            decided = first is (f.data == "logical_or")
            return np.bool_(first if decided else self.value(f.args[1], names))
        args = [self.value(a, names) for a in f.args]
        if f.data == "cast":
            return np.asarray(args[0]).astype(f.dtype.numpy)[()]
        return np.asarray(self.operation(f.data)(*args)).astype(f.dtype.numpy)[()]
