"""Random graphs over the primitives that the rules know, full of the constants and movements that
they rewrite.

Sines now and then keep the values moderate. One seed gives the same graph in float32 and in
float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, Where, at, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.foundation.dtype import DType, bool_, float32, float64, int32

Shape = tuple[int, ...]
SHAPES: tuple[Shape, ...] = ((), (4,), (3, 4), (2, 3, 4), (1, 4), (3, 1), (12,), (2, 1, 4))
FACTORS = (0, 1, -1, 2, 3, -5, 8)


class Generator:
    """Draws one graph of about `size` operations."""

    def __init__(self, seed: int, dtype: DType, size: int = 25) -> None:
        self.rng = np.random.default_rng([seed, ord(dtype.kind)])
        self.dtype = dtype
        self.inputs = [input_node(tensor_type(s, dtype), f"x{i}") for i, s in enumerate(SHAPES[:5])]
        self.pool: list[Node] = list(self.inputs)
        self.size = size
        exact: list[Callable[[], Node]] = [
            self.binary,
            self.binary,
            self.scaled,
            self.scaled,
            self.shifted,
            self.negated,
            self.reshaped,
            self.transposed,
            self.broadcast,
            self.sliced,
            self.padded,
            self.joined,
            self.reversed,
            self.summed,
            self.summed,
            self.extreme,
            self.chosen,
            self.converted,
            self.copied,
            self.repeated,
            self.literal,
            self.powered,
            self.negated_twice,
            self.reshaped_sum,
            self.full_value,
        ]
        self.operations = exact if dtype.is_integer else [*exact, self.smooth, self.smooth, self.quotient]

    def graph(self) -> Graph:
        for k in range(self.size):
            with at(Where("random.py", k + 1)):
                made = self.operations[self.draw(len(self.operations))]()
                self.pool.append(self.tamed(made))
        return Graph(self.inputs, self.pool[-4:], "random")

    def draw(self, high: int, low: int = 0) -> int:
        return int(self.rng.integers(low, high))

    def pick(self) -> Node:
        return self.pool[-1 - min(int(self.rng.exponential(4.0)), len(self.pool) - 1)]

    def tamed(self, x: Node) -> Node:
        """A value of moderate size; nothing is done to integers, which wrap."""
        return x if self.dtype.is_integer or self.draw(3) else E.sin(x)

    def factor(self) -> Any:
        return FACTORS[self.draw(len(FACTORS))] * (1 if self.dtype.is_integer or self.draw(2) else 0.3)

    def binary(self) -> Node:
        x, y = self.pick(), self.pick()
        fits = all(a == b or 1 in (a, b) for a, b in zip(x.shape[::-1], y.shape[::-1]))
        prim = (E.add, E.sub, E.mul, E.maximum, E.minimum)[self.draw(5)]
        return prim(x, y if fits else x)

    def scaled(self) -> Node:
        x, value = self.pick(), constant(self.factor(), self.dtype)
        return x * value if self.draw(2) else S.broadcast_to(value, x.shape) * x

    def shifted(self) -> Node:
        x, value = self.pick(), self.factor()
        return (x + value, value + x, x - value, value - x)[self.draw(4)]

    def negated(self) -> Node:
        return E.neg(self.pick())

    def negated_twice(self) -> Node:
        x = E.neg(self.pick())
        return E.neg(x - 1) if self.draw(2) else E.neg(x)

    def reshaped(self) -> Node:
        x = self.pick()
        shapes = {1: ((), (1, 1)), 4: ((2, 2), (4, 1), (1, 4)), 12: ((3, 4), (2, 6), (12,)), 24: ((2, 3, 4), (4, 6))}
        choices = shapes.get(int(x.type.size), (x.shape,))
        return S.RESHAPE(x, shape=choices[self.draw(len(choices))])

    def transposed(self) -> Node:
        x = self.pick()
        order = tuple(int(i) for i in self.rng.permutation(x.type.rank))
        y = S.TRANSPOSE(x, permutation=order)
        if self.draw(2):
            return y
        return S.TRANSPOSE(E.add(y, 1), permutation=tuple(int(i) for i in np.argsort(order)))

    def broadcast(self) -> Node:
        x = self.pick()
        shape = tuple(3 if d == 1 and self.draw(2) else d for d in x.shape)
        return S.BROADCAST_TO(x, shape=(2, *shape) if x.type.rank < 3 else shape)

    def sliced(self) -> Node:
        x = self.pick()
        starts = tuple(self.draw(max(d, 1)) if self.draw(2) else 0 for d in x.shape)
        steps = tuple(self.draw(3, 1) for _ in x.shape)
        return S.SLICE(x, starts=starts, stops=x.shape, steps=steps)

    def padded(self) -> Node:
        x = self.pick()
        low = tuple(self.draw(2) for _ in x.shape)
        high = tuple(self.draw(2, -1) if d > 1 else 0 for d in x.shape)
        y = S.PAD(x, constant(self.draw(2), self.dtype), low=low, high=high, interior=(0,) * x.type.rank)
        return S.slice_(y, low, tuple(min(a + d, e) for a, d, e in zip(low, x.shape, y.shape))) if self.draw(2) else y

    def joined(self) -> Node:
        x = self.pick()
        if not x.type.rank:
            return S.concat([S.reshape(x, (1,)), S.reshape(x, (1,))], 0)
        parts = [x, E.neg(x)][: self.draw(3, 1)]
        y = S.CONCAT(*parts, axis=0)
        return S.slice_axis(y, 0, 0, x.shape[0]) if self.draw(2) else y

    def reversed(self) -> Node:
        x = self.pick()
        return S.reverse(x, axes=tuple(a for a in range(x.type.rank) if self.draw(2)))

    def axes(self, x: Node) -> tuple[int, ...]:
        return tuple(a for a in range(x.type.rank) if self.draw(2))

    def summed(self) -> Node:
        x = self.pick()
        return R.reduce_sum(x, axes=self.axes(x), keepdims=bool(self.draw(2)))

    def reshaped_sum(self) -> Node:
        x = self.pick()
        flat = S.RESHAPE(x, shape=(x.type.size,))
        return R.reduce_sum(flat * self.factor(), axes=(0,), keepdims=False)

    def extreme(self) -> Node:
        x = self.pick()
        prim = (R.reduce_max, R.reduce_min)[self.draw(2)]
        return prim(prim(x, axes=self.axes(x), keepdims=True), axes=self.axes(x), keepdims=bool(self.draw(2)))

    def chosen(self) -> Node:
        x = self.pick()
        condition = constant(bool(self.draw(2)), bool_) if self.draw(2) else E.logical_not(E.gt(x, -2))
        return E.select(condition, x, E.neg(x))

    def converted(self) -> Node:
        x = self.pick()
        wide = {"float32": float64, "float64": float64, "int32": float64}[self.dtype.name]
        return E.cast(E.cast(x, dtype=wide), dtype=self.dtype)

    def copied(self) -> Node:
        return (E.identity, E.stop_gradient)[self.draw(2)](self.pick())

    def repeated(self) -> Node:
        x = self.pick()
        return E.maximum(x * 3, x * 3)

    def literal(self) -> Node:
        shape = SHAPES[self.draw(len(SHAPES))]
        value = self.rng.integers(-2, 3, shape) if self.draw(2) else np.full(shape, self.draw(3))
        return E.add(constant(value, self.dtype), constant(1, self.dtype))

    def powered(self) -> Node:
        return E.pow_(self.pick(), (0, 1, 2)[self.draw(3)])

    def full_value(self) -> Node:
        return S.full(SHAPES[self.draw(len(SHAPES))], self.draw(3), self.dtype)

    def smooth(self) -> Node:
        return (E.tanh, E.sin, E.sigmoid, E.cos)[self.draw(4)](self.pick())

    def quotient(self) -> Node:
        return E.div(self.pick(), (1.0, -1.0, 4.0, 3.0)[self.draw(4)])


KINDS = (float64, float32, int32)
