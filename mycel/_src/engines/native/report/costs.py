"""The cost of a step: bytes of distinct memory read and written, and floating-point operations.

Explanations and profiles take their numbers from here. They are those of the code that runs, not of
the graph it came from.

* Memory is counted once for each step, however often its loops return to it: of each buffer, the
  elements that its accesses can reach. Accesses that differ in their constant offset only (the taps
  of a window) are taken together. Indices from data (a gather) count as if no two were equal.
* An addition, subtraction, multiplication, division, remainder, root, rounding, maximum or minimum
  of floats is one operation, a fused multiply-add two; comparisons, choices, conversions, negations
  and integers are none. Elementary functions count the operations of their polynomials. A value
  that does not depend on a loop is computed outside of it, and counted so. A reduction is one
  operation for each value that it combines.
* Of loops in a user's operator whose length depends on others, the length in the middle of these
  counts, and conditions hold.
* A product of (m, k) by (k, n) is 2mnk; a convolution meets each weight at each position of its
  output's image. oneDNN's own algorithms may do other work.

Sizes may be symbolic: `number` gives each dimension's value (by default, its hint).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.engines.native.kernels import instruction_emitter
from mycel._src.engines.native.kernels.codegen import Kernel
from mycel._src.engines.native.kernels.loop_nest import Access, Affine, Buffer, Expr, Nest, Reduce
from mycel._src.engines.native.kernels.strided_view import View
from mycel._src.engines.native.math import function_definitions as vector_math
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.steps.step_types import Batch, Call, Copy, Nested, Step, Tape
from mycel._src.engines.reports import ZERO_COST, Cost, work
from mycel._src.foundation.dtype import DType

__all__ = ["cost", "nest_cost", "operations", "plan_costs", "total"]

Number = Callable[[DimLike], int]


def cost(step: Step, number: Number = hint) -> Cost:
    """Return the cost of one run of a step.

    For a branch it is that of the costlier side, for a loop that of one iteration. `number` gives
    dimensions as integers.
    """
    data = step.data
    if isinstance(data, Nest):
        return nest_cost(data, number)
    if isinstance(data, Nested):
        sides = [total(data.first, number), total(data.second, number)]
        return sides[0] + sides[1] if data.loops else max(sides, key=lambda c: (c.bytes, c.flops))
    if isinstance(data, DenseCall):
        read = sum(_view_bytes(v, number) for v in data.inputs)
        return Cost(read, _view_bytes(data.out, number), work(data.node, number))
    if isinstance(data, Tape):
        moved = sum(_buffer_bytes(b, number) for b in data.states)
        return Cost(moved, moved) if data.operation in ("push", "pop") else ZERO_COST
    if isinstance(data, Call):
        return Cost(sum(_view_bytes(v, number) for v in data.reads), sum(_view_bytes(v, number) for v in data.writes))
    if isinstance(data, Batch):
        return total(data.members, number)
    if isinstance(data, Copy):
        return Cost(_view_bytes(data.source, number), _view_bytes(data.target, number))
    read, written = (sum(_buffer_bytes(b, number) for b in side) for side in (step.reads, step.writes))
    if isinstance(data, Kernel) and data.counts:
        return Cost(read, written, sum(operations(n, t, ts) * number(times) for n, t, ts, times in data.counts))
    # A product that is computed together with what follows it is among the members.
    nodes = step.members or (() if step.node is None else (step.node,))
    return Cost(read, written, sum(work(node, number) for node in nodes))


def total(steps: Iterable[Step], number: Number = hint) -> Cost:
    """Return the cost of all steps together."""
    return sum((cost(s, number) for s in steps), ZERO_COST)


def plan_costs(call: DenseCall, plan: dense.Plan, number: Number = hint) -> list[Cost]:
    """Return the cost of each primitive of a dense step's plan.

    The reorders that the library needs move bytes as well.
    """
    own = [k for k, c in enumerate(plan.calls) if not c.description.startswith("reorder")]
    found = []
    for k, made in enumerate(plan.calls):
        sizes = [_named_bytes(name, plan) for name in made.buffers if name != "scratch"]
        if k not in own:
            found.append(Cost(sizes[0], sizes[-1]))
            continue
        written = _view_bytes(call.out, number) // len(own)
        found.append(Cost(max(sum(sizes) - written, 0), written, work(call.node, number) // len(own)))
    return found


def _named_bytes(name: str, plan: dense.Plan) -> int:
    if name in plan.temporaries:
        return int(plan.temporaries[name])
    operand = plan.operands[name]
    size = _ITEM.get(operand.dtype, 4)
    for d, s in zip(operand.shape, operand.strides):
        size *= d if s else 1
    return int(size)


_ITEM = {"float32": 4, "float16": 2, "bfloat16": 2, "int32": 4, "int8": 1, "uint8": 1, "float64": 8}


def _buffer_bytes(buffer: Buffer, number: Number) -> int:
    return int(number(buffer.size) * buffer.dtype.itemsize)


def _view_bytes(view: View, number: Number) -> int:
    """Return the distinct bytes of a view; elements repeated by a stride of zero count once."""
    count = 1
    for d, s in zip(view.shape, view.strides):
        count *= number(d) if number(s) else 1
    return int(count * view.buffer.dtype.itemsize)


# Kernels.


def nest_cost(nest: Nest, number: Number = hint) -> Cost:
    """Return the cost of a kernel."""
    return _NestCost(nest, number).run()


class _NestCost:
    def __init__(self, nest: Nest, number: Number) -> None:
        self.nest, self.number = nest, number
        self.extents = [number(loop.extent) for loop in nest.loops]
        self.reducing = frozenset(k for k, loop in enumerate(nest.loops) if loop.kind == "r")
        self.loops: dict[int, frozenset[int]] = {}
        self.order: list[Expr] = []
        self.reads: dict[int, tuple[Buffer, list[Access]]] = {}
        self.writes: dict[int, tuple[Buffer, list[Access]]] = {}

    def run(self) -> Cost:
        for r in self.nest.reduces:
            self.visit(r.value)
            if r.valid is not None:
                self.visit(r.valid)
        for s in self.nest.stores:
            self.visit(s.value)
            for x, *_ in s.target.dynamic:
                self.visit(x)
            self.note(self.writes, s.target)
            if s.mode == "add":
                self.note(self.reads, s.target)
        flops = sum(
            operations(x.data, x.dtype, [a.dtype for a in x.args]) * self.times(self.loops[id(x)])
            for x in self.order
            if x.kind == "op"
        )
        flops += sum(self.times(self.loops[id(r.value)] | self.reducing) for r in self.nest.reduces if _is_float(r))
        flops += sum(self.reached([s.target]) for s in self.nest.stores if s.mode == "add" and _kind(s.value) == "f")
        return Cost(self.bytes(self.reads), self.bytes(self.writes), flops)

    def visit(self, root: Expr) -> None:
        """Find the loops on which each expression depends, operands first."""
        stack = [(root, False)]
        while stack:
            x, ready = stack.pop()
            if id(x) in self.loops:
                continue
            if not ready:
                stack.append((x, True))
                stack.extend((a, False) for a in x.args)
                continue
            found = frozenset().union(*[self.loops[id(a)] for a in x.args]) if x.args else frozenset()
            if x.kind == "load":
                access = x.data[0]
                self.note(self.reads, access)
                found |= _along(access.offset)
                for g, _ in access.guards:
                    found |= _along(g)
            elif x.kind == "index":
                found |= _along(x.data)
            elif x.kind == "guard":
                for g, _ in x.data:
                    found |= _along(g)
            elif x.kind == "reduced":
                found -= self.reducing
            self.loops[id(x)] = found
            self.order.append(x)

    def note(self, table: dict[int, tuple[Buffer, list[Access]]], access: Access) -> None:
        table.setdefault(id(access.buffer), (access.buffer, []))[1].append(access)

    def times(self, loops: Iterable[int]) -> int:
        count = 1
        for k in loops:
            count *= self.extents[k]
        return count

    def bytes(self, table: dict[int, tuple[Buffer, list[Access]]]) -> int:
        return sum(
            min(self.reached(accesses), self.number(b.size)) * b.dtype.itemsize for b, accesses in table.values()
        )

    def reached(self, accesses: Sequence[Access]) -> int:
        """Return how many elements of one buffer the accesses can reach."""
        groups: dict[Any, list[tuple[int, int, int]]] = {}
        for access in accesses:
            extents = self.guarded(access)
            steps = [(k, self.number(c)) for k, c in access.offset.terms]
            count, low, high = 1, self.number(access.offset.const), self.number(access.offset.const)
            for k, c in steps:
                count *= extents[k]
                reach = (extents[k] - 1) * c
                low, high = low + min(reach, 0), high + max(reach, 0)
            if access.dynamic:
                chosen = frozenset().union(*[self.loops[id(x)] for x, *_ in access.dynamic])
                for k in chosen - {k for k, _ in steps}:
                    count *= extents[k]
                groups[id(access)] = [(count, 0, count)]
                continue
            if count:
                groups.setdefault(tuple(steps), []).append((count, low, high))
        result = 0
        for key, found in groups.items():
            span = max(h for _, _, h in found) - min(low for _, low, _ in found) + 1
            distinct = {(low, high): count for count, low, high in found}
            # Positions that all lie on multiples of one stride are so much fewer.
            step = min((abs(c) for _, c in key), default=1) if isinstance(key, tuple) and len(distinct) == 1 else 1
            result += min(sum(distinct.values()), -(-span // max(step, 1)))
        return result

    def guarded(self, access: Access) -> list[int]:
        """Return the loops' extents, limited by an access's guards along single loops."""
        extents = self.extents
        for position, size in access.guards:
            if len(position.terms) != 1:
                continue
            (k, c), first, end = position.terms[0], self.number(position.const), self.number(size)
            step = self.number(c)
            if step > 0:
                start, stop = max(0, -(first // step)), max(0, -((first - end) // step))
                if extents is self.extents:
                    extents = list(extents)
                extents[k] = max(0, min(extents[k], stop) - min(extents[k], start))
        return extents


def _along(position: Affine) -> frozenset[int]:
    return frozenset(k for k, _ in position.terms)


def _kind(x: Expr) -> str:
    return x.dtype.kind


def _is_float(r: Reduce) -> bool:
    return _kind(r.value) == "f" and r.kind in ("sum", "prod", "max", "min", "argmax", "argmin")


# Scalar operations.

_ONE = frozenset(("maximum", "minimum"))
_ARITHMETIC = re.compile(r"= (?:fast |contract )*(fadd|fsub|fmul|fdiv|frem)\b")
_CALL = re.compile(r"@(llvm\.[a-z]+)[\w.]*\(")
_CALLS = {
    "llvm.fma": 2,
    "llvm.fmuladd": 2,
    "llvm.sqrt": 1,
    "llvm.floor": 1,
    "llvm.ceil": 1,
    "llvm.trunc": 1,
    "llvm.rint": 1,
}


def operations(name: str, dtype: DType, types: Sequence[DType]) -> int:
    """Return the floating-point operations of an element-wise primitive for each element.

    `types` are the element types of its operands.

    >>> from mycel._src.foundation.dtype import float32, int32
    >>> operations("add", float32, [float32, float32]), operations("add", int32, [int32, int32])
    (1, 0)
    >>> operations("exp", float32, [float32]) > 5
    True
    """
    if not any(t.kind == "f" for t in types):
        return 0
    return _counted(name, dtype, tuple(types))


@functools.cache
def _counted(name: str, dtype: DType, types: tuple[DType, ...]) -> int:
    if name in _ONE:
        return 1
    if name == "cast" or not instruction_emitter.is_supported(name):
        return 0
    e = instruction_emitter.Emitter(1)
    instruction_emitter.operation(e, name, False, dtype, [f"%a{k}" for k in range(len(types))], list(types))
    count = sum(_in_line(line) for line in e.lines)
    return count + sum(_in_function(*f) for f in e.math)


def _in_line(line: str) -> int:
    if _ARITHMETIC.search(line):
        return 1
    called = _CALL.search(line)
    return _CALLS.get(called.group(1), 0) if called else 0


@functools.cache
def _in_function(name: str, element: str, lanes: int) -> int:
    # The first of the definitions is what runs for all but large arguments.
    text = vector_math.definition(name, element, lanes).partition("\n}\n")[0]
    return sum(_in_line(line) for line in text.splitlines() if " = " in line)
