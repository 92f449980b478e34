"""Values of random graphs, and what is known of their elements; see `random_graphs`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D

__all__ = ["DIGITS", "MOST", "Skip", "Value", "Values", "unit"]

AXES = (1, 2, 3, 4, 5, 7, 8, 13, 15, 16, 17, 20, 31, 32, 33, 63, 64, 65, 100, 127, 129, 255, 257, 300)
LONG = (1000, 1001, 1023, 1024, 1025, 1031, 1500, 2047, 2049, 4097, 5003)
MOST = 24_000
FLOATS = (D.float32, D.float32, D.float32, D.float64, D.float16, D.bfloat16)
WHOLE = (D.int8, D.int16, D.int32, D.int32, D.int64, D.uint8, D.uint16, D.uint32, D.uint64)
DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
# Errors below this part of a value's bound are worth looking at.
CERTAIN = 0.02


class Skip(Exception):
    """What was drawn cannot be done with the values that were."""


@dataclass(eq=False)
class Value:
    """A node and what is known of its elements: their largest size, the fractional bits of exact
    ones, and the error of others.
    """

    node: Node
    bound: float
    grain: int = 0
    error: float = 0.0

    @property
    def dtype(self) -> D.DType:
        """The element type."""
        return self.node.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.node.shape)

    @property
    def exact(self) -> bool:
        """Whether elements are known to the bit."""
        return self.error == 0.0


def unit(dtype: D.DType) -> float:
    return 2.0 ** (1 - DIGITS[dtype.name])


class Values:
    """A growing pool of values over inputs, drawn from the numbers of a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.inputs: list[Node] = []
        self.arrays: list[Any] = []
        self.pool: list[Value] = []
        # A quarter are made of what has derivatives, of float32 and float64 mostly.
        self.smooth = self.chance(0.25)
        # Some have NaN here and there.
        self.holes = not self.smooth and self.chance(0.15)
        self.with_nan: set[Node] = set()
        self.without_nan: set[Node] = set()
        self.depth = 0
        self.long = int(self.choose(LONG)) if self.chance(0.6) else int(self.choose(AXES[12:]))
        side = [d for d in AXES if d * self.long <= MOST]
        self.short, self.other = int(self.choose(side)), int(self.choose(side[: len(side) // 2 + 1]))
        for _ in range(int(self.rng.integers(2, 6))):
            self.draw_input(self.any_dtype())

    # Drawing.

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choose(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def whole(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def any_dtype(self) -> D.DType:
        kind = self.rng.random()
        if self.smooth and kind < 0.7:
            return D.float64 if kind < 0.2 else D.float32
        return D.bool_ if kind < 0.2 else self.choose(WHOLE if kind < 0.55 else FLOATS)

    def any_shape(self) -> tuple[int, ...]:
        a, b, c = self.long, self.short, self.other
        shapes = [(a,), (a,), (b,), (a, b), (b, a), (a, 1), (1, b), (c, a), (), (a, c)]
        if a * b * c <= MOST:
            shapes += [(a, b, c), (c, b, a), (b, 1, a)]
        return self.choose(shapes)

    def draw_input(self, dtype: D.DType, shape: tuple[int, ...] | None = None) -> Value:
        """A new input, small numbers mostly."""
        shape = self.any_shape() if shape is None else shape
        rng = self.rng
        grain, bound = 0, 8.0
        if dtype is D.bool_:
            array, bound = rng.random(shape) < self.choose((0.5, 0.5, 0.3, 0.02, 1.0, 0.0)), 1.0
        elif dtype.kind == "f":
            grain = self.choose((0, 1, 2))
            array, bound = rng.integers(-8, 9, shape) / 2.0**grain, 8.0 / 2**grain
            if self.holes:
                array = np.where(rng.random(shape) < 0.02, np.nan, array)
        elif self.chance(0.3):
            info = np.iinfo(dtype.numpy)
            array, bound = rng.integers(info.min, info.max, shape, dtype.numpy, endpoint=True), 2.0**dtype.bits
        else:
            array = rng.integers(0 if dtype.kind == "u" else -8, 9, shape)
        node = input_node(tensor_type(shape, dtype), f"x{len(self.inputs)}")
        self.inputs.append(node)
        self.arrays.append(np.array(array, dtype.numpy, order="C"))
        if dtype.kind == "f" and self.holes:
            self.with_nan.add(node)
        value = Value(node, bound, grain)
        self.pool.append(value)
        return value

    def pick(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value, more often a late one."""
        found = [v for v in self.pool if wanted(v)]
        if not found:
            raise Skip
        late = found[-6:] if self.chance(0.6) else found
        return self.choose(late)

    def number(self, kinds: str = "iuf") -> Value:
        return self.pick(lambda v: v.dtype.kind in kinds)

    def certain(self, kinds: str = "iuf") -> Value:
        return self.pick(lambda v: v.dtype.kind in kinds and v.exact)

    def mask(self, shape: tuple[int, ...]) -> Value:
        """A boolean value of a shape; one that is there already, rather."""
        found = [v for v in self.pool if v.dtype is D.bool_ and v.shape == shape]
        if found and self.chance(0.8):
            return self.choose(found)
        return self.fit(self.pick(lambda v: v.dtype is D.bool_), shape)

    # What is known of results.

    def add(self, node: Node, bound: float, grain: int = 0, error: float = 0.0) -> Value:
        """Put a new value into the pool, if it is small and certain enough."""
        size = math.prod(node.shape)
        if size > MOST or node.type.rank > 5:
            raise Skip
        if node.dtype.kind == "f":
            if error == 0.0 and bound * 2.0**grain >= 2.0 ** DIGITS[node.dtype.name]:
                raise Skip
            if error and (not bound < 1e4 or error > CERTAIN * max(bound, 1e-3)):
                raise Skip
        elif node.dtype.kind in "iu":
            bound = min(bound, 2.0**node.dtype.bits)
        value = Value(node, max(bound, 2.0**-8), grain, error)
        self.pool.append(value)
        return value

    def may_be_nan(self, node: Node) -> bool:
        """Whether an element may be NaN."""
        if node in self.without_nan or not (isinstance(node.type, tuple) or node.dtype.kind == "f"):
            return False
        if node not in self.with_nan and any(map(self.may_be_nan, node.inputs)):
            self.with_nan.add(node)
        if node not in self.with_nan:
            self.without_nan.add(node)
        return node in self.with_nan

    def cleaned(self, x: Value) -> Value:
        """The value with 0 in place of NaN."""
        if not self.may_be_nan(x.node):
            return x
        node = E.select(E.is_nan(x.node), 0.0, x.node)
        self.without_nan.add(node)
        return Value(node, x.bound, x.grain, x.error)

    def settled(self, x: Value) -> Value:
        """The value with elements of at most 4 and no NaN, without fractions where it is exact."""
        x = self.cleaned(x)
        if x.dtype.kind != "f" or (x.bound <= 4 and x.grain == 0):
            return x
        if not x.exact and self.smooth:
            raise Skip
        node = E.minimum(E.maximum(x.node, -4.0), 4.0)
        if not x.exact:
            return Value(node, min(x.bound, 4.0), 0, x.error)
        return Value(E.floor(node) if x.grain else node, 4.0)

    def fit(self, x: Value, shape: tuple[int, ...]) -> Value:
        """The value in another shape: broadcast, cut, repeated by index or reshaped."""
        node = x.node
        if x.shape != shape:
            rank = len(shape)
            if node.type.rank > rank:
                node = S.reshape(node, (math.prod(x.shape),))
                node = S.slice_(node, (0,) * node.type.rank, tuple(node.shape)) if rank else S.slice_(node, (0,), (1,))
                node = S.reshape(node, (1,) * (rank - 1) + (node.shape[0],)) if rank else S.reshape(node, ())
            elif node.type.rank < rank:
                node = S.reshape(node, (1,) * (rank - node.type.rank) + tuple(node.shape))
            for axis, (have, want) in enumerate(zip(node.shape, shape)):
                if have == want or have == 1:
                    continue
                if have > want:
                    start = self.whole(0, have - want + 1)
                    node = S.slice_axis(node, axis, start, start + want)
                else:
                    places = S.iota(shape=(want,), axis=0, dtype=D.int32)
                    node = I.take(node, E.mod(places, have), axis=axis)
            node = S.broadcast_to(node, shape) if tuple(node.shape) != shape else node
        return Value(node, x.bound, x.grain, x.error)

    def cast(self, x: Value, dtype: D.DType) -> Value:
        """The value in another element type, exactly."""
        if x.dtype is dtype:
            return x
        if dtype.kind == "f" and x.dtype.kind in "iu" and x.bound >= 2.0 ** DIGITS[dtype.name]:
            x = Value(E.mod(x.node, 13), 13.0)
        elif (
            dtype.kind == "f"
            and x.dtype.kind == "f"
            and x.exact
            and x.bound * 2.0**x.grain >= 2.0 ** DIGITS[dtype.name]
        ):
            x = self.settled(x)
        elif dtype.kind in "iu" and x.dtype.kind == "f":
            if not x.exact:
                raise Skip
            x = self.cleaned(x)
            x = Value(E.abs_(x.node), x.bound, x.grain) if dtype.kind == "u" else x
            if x.bound >= 127:
                x = self.settled(x)
        elif dtype is D.bool_ and not x.exact:
            raise Skip
        node = E.cast(x.node, dtype=dtype)
        if dtype is D.bool_:
            return Value(node, 1.0)
        if dtype.kind in "iu":
            return Value(node, 2.0**dtype.bits if x.dtype.kind in "iu" and x.bound >= 100 else max(x.bound, 1.0))
        error = x.error + unit(dtype) * x.bound if not x.exact else 0.0
        return Value(node, max(x.bound, 1.0), x.grain, error)

    def same(self, x: Value) -> Value:
        """Another value of the same shape, or one that broadcasts to it, and type."""
        found = [v for v in self.pool if v.dtype is x.dtype]
        y = self.pick(lambda v: v.dtype is x.dtype) if found and self.chance(0.8) else self.cast(self.number(), x.dtype)
        if (
            self.chance(0.3)
            and len(y.shape) <= len(x.shape)
            and all(a in (1, b) for a, b in zip(y.shape[::-1], x.shape[::-1]))
        ):
            return y
        return self.fit(y, x.shape)
