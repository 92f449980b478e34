"""Random graphs of every kind of work, element type and size, which the native engine must compute as the reference does.

`RandomGraph(seed)` has a graph and arrays for its inputs. Sizes are odd, powers of two and their neighbours, and often above 1,000; masks are read several times; steps
are element-wise work, casts, reductions of every kind, running ones, sorting, gathers and scatters, padding, slices, reversals, windows, products, soft-maxes, branches and
loops; some graphs have gradients of what they compute, some write over their inputs.

*What is exact is compared exactly.* Integers and booleans are. So are floats as long as a value is a small whole number times a power of two that its type, and every sum on the way
to it, can hold: each value has a bound and a number of fractional bits, which decide what may be done with it. Only such values are compared, sorted, rounded and
chosen by. Everything else has an estimate of its error, which operations pass on, and what has become too uncertain is used no more.

    python -m tests.engines.random_graphs FIRST COUNT [LEVEL ...]

checks many seeds, each level of `MYCEL_CPU` in a process of its own (`all`: every one that this processor has), and prints the graphs that fail, cut down. With
MYCEL_CHECK=bounds in the environment every access is checked as well.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from mycel import dtype as D
from mycel.engines import buffers
from mycel.engines.native.engine import compile_native
from mycel.engines.reference.evaluate import evaluate
from mycel.ir.graph import Graph, Node, input_node, toposort
from mycel.ir.printer import to_text
from mycel.ir.types import tensor_type
from mycel.prims import control as C
from mycel.prims import conv as V
from mycel.prims import elementwise as E
from mycel.prims import index as I
from mycel.prims import linalg as L
from mycel.prims import normalization as N
from mycel.prims import ordered as O
from mycel.prims import reduce as R
from mycel.prims import shape as S
from mycel.prims import window as W
from mycel.prims.base import get_item
from mycel.transforms.grad import vjp

__all__ = ["RandomGraph", "check_seed", "levels"]

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
    """A node and what is known of its elements: their largest size, the fractional bits of exact ones, and the error of others."""

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
        return tuple(self.node.shape)  # type: ignore[arg-type]

    @property
    def exact(self) -> bool:
        """Whether elements are known to the bit."""
        return self.error == 0.0


def _unit(dtype: D.DType) -> float:
    return 2.0 ** (1 - DIGITS[dtype.name])


class RandomGraph:
    """A graph that a seed decides, the arrays of its inputs, which outputs may replace inputs, and what is known of each output."""

    def __init__(self, seed: int, steps: Optional[int] = None) -> None:
        self.rng = np.random.default_rng([seed, 7])
        self.inputs: list[Node] = []
        self.arrays: list[Any] = []
        self.pool: list[Value] = []
        # A quarter are made of what has derivatives, of float32 and float64 mostly.
        self.smooth = self.chance(0.25)
        self.depth = 0
        self.long = int(self.choose(LONG)) if self.chance(0.6) else int(self.choose(AXES[12:]))
        side = [d for d in AXES if d * self.long <= MOST]
        self.short, self.other = int(self.choose(side)), int(self.choose(side[: len(side) // 2 + 1]))
        for _ in range(int(self.rng.integers(2, 6))):
            self.draw_input(self.any_dtype())
        for _ in range(steps if steps is not None else int(self.rng.integers(4, 14))):
            self.step()
        outputs = self.outputs()
        if self.smooth:
            outputs += self.gradients()
        self.graph = Graph(self.inputs, [v.node for v in outputs], f"random {seed}")
        self.known = outputs
        self.aliases = self.replaced(outputs) if self.chance(0.15) else {}

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
        return D.bool_ if kind < 0.2 else self.choose(WHOLE if kind < 0.55 else FLOATS)  # type: ignore[no-any-return]

    def any_shape(self) -> tuple[int, ...]:
        a, b, c = self.long, self.short, self.other
        shapes = [(a,), (a,), (b,), (a, b), (b, a), (a, 1), (1, b), (c, a), (), (a, c)]
        if a * b * c <= MOST:
            shapes += [(a, b, c), (c, b, a), (b, 1, a)]
        return self.choose(shapes)  # type: ignore[no-any-return]

    def draw_input(self, dtype: D.DType, shape: Optional[tuple[int, ...]] = None) -> Value:
        """A new input, small numbers mostly."""
        shape = self.any_shape() if shape is None else shape
        rng = self.rng
        grain, bound = 0, 8.0
        if dtype is D.bool_:
            array, bound = rng.random(shape) < self.choose((0.5, 0.5, 0.3, 0.02, 1.0, 0.0)), 1.0
        elif dtype.kind == "f":
            grain = self.choose((0, 1, 2))
            array, bound = rng.integers(-8, 9, shape) / 2.0**grain, 8.0 / 2**grain
        elif self.chance(0.3):
            info = np.iinfo(dtype.numpy)
            array, bound = rng.integers(info.min, info.max, shape, dtype.numpy, endpoint=True), 2.0**dtype.bits
        else:
            array = rng.integers(0 if dtype.kind == "u" else -8, 9, shape)
        node = input_node(tensor_type(shape, dtype), f"x{len(self.inputs)}")
        self.inputs.append(node)
        self.arrays.append(np.array(array, dtype.numpy, order="C"))
        value = Value(node, bound, grain)
        self.pool.append(value)
        return value

    def pick(self, wanted: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value, more often a late one."""
        found = [v for v in self.pool if wanted(v)]
        if not found:
            raise Skip
        late = found[-6:] if self.chance(0.6) else found
        return self.choose(late)  # type: ignore[no-any-return]

    def number(self, kinds: str = "iuf") -> Value:
        return self.pick(lambda v: v.dtype.kind in kinds)

    def certain(self, kinds: str = "iuf") -> Value:
        return self.pick(lambda v: v.dtype.kind in kinds and v.exact)

    def mask(self, shape: tuple[int, ...]) -> Value:
        """A boolean value of a shape; one that is there already, rather."""
        found = [v for v in self.pool if v.dtype is D.bool_ and v.shape == shape]
        if found and self.chance(0.8):
            return self.choose(found)  # type: ignore[no-any-return]
        return self.fit(self.pick(lambda v: v.dtype is D.bool_), shape)

    # What is known of results.

    def add(self, node: Node, bound: float, grain: int = 0, error: float = 0.0) -> Value:
        """Put a new value into the pool, if it is small and certain enough."""
        size = math.prod(node.shape)  # type: ignore[arg-type]
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

    def settled(self, x: Value) -> Value:
        """The value with elements of at most 4, without fractions where it is exact."""
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
                    start = self.whole(0, have - want + 1)  # type: ignore[operator]
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
        error = x.error + _unit(dtype) * x.bound if not x.exact else 0.0
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

    # Steps.

    def step(self) -> None:
        """Add a value; what does not fit is drawn again."""
        kinds = [k for k, weight in STEPS for _ in range(weight if not self.smooth or k in SMOOTH else weight // 4)]
        for _ in range(12):
            before = len(self.pool), len(self.inputs)
            try:
                getattr(self, self.choose(kinds))()
                return
            except Skip:
                del self.pool[before[0] :]
                del self.inputs[before[1] :], self.arrays[before[1] :]

    def arithmetic(self) -> None:
        x = self.number()
        y = self.same(x)
        name = self.choose(("add", "sub", "mul", "maximum", "minimum", "add", "mul"))
        if name == "mul":
            x, y = self.settled(x), self.settled(y)
            error = x.error * y.bound + y.error * x.bound
            bound, grain = x.bound * y.bound, x.grain + y.grain
        elif name in ("maximum", "minimum"):
            if self.smooth and not (x.exact and y.exact):
                raise Skip
            bound, grain, error = max(x.bound, y.bound), max(x.grain, y.grain), x.error + y.error
        else:
            bound, grain, error = x.bound + y.bound, max(x.grain, y.grain), x.error + y.error
        if error:
            error += _unit(x.dtype) * bound
        self.add(getattr(E, name)(x.node, y.node), bound, grain, error)

    def whole_arithmetic(self) -> None:
        x = self.number("iu")
        y = self.same(x)
        name = self.choose(
            ("floor_div", "mod", "bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right")
        )
        wide = 2.0**x.dtype.bits
        if name.startswith("shift"):
            self.add(getattr(E, name)(x.node, E.bitwise_and(y.node, x.dtype.bits - 1)), wide)
        elif name in ("floor_div", "mod"):
            divisor = E.maximum(E.mod(y.node, 11), 1)
            self.add(getattr(E, name)(x.node, divisor), 11.0 if name == "mod" else x.bound + 1)
        else:
            self.add(getattr(E, name)(x.node, y.node), wide)

    def single(self) -> None:
        x = self.number()
        if x.dtype.kind == "f" and x.exact and self.chance(0.3) and not self.smooth:
            self.add(getattr(E, self.choose(("floor", "ceil", "trunc", "rint")))(x.node), x.bound + 1)
        elif x.exact and self.chance(0.3):
            self.add(E.sign(x.node), 1.0)
        elif x.dtype.kind in "iu" and self.chance(0.3):
            self.add(E.bitwise_not(x.node), 2.0**x.dtype.bits)
        elif x.exact or not self.smooth:
            self.add(getattr(E, self.choose(("neg", "abs_")))(x.node), x.bound, x.grain, x.error)
        else:
            raise Skip

    def curve(self) -> None:
        x = self.settled(self.number("f"))
        unit = 8 * _unit(x.dtype)
        name = self.choose(("tanh", "sin", "cos", "sigmoid", "exp", "atan", "erf", "square", "root", "log", "ratio"))
        if name == "exp":
            self.add(E.exp(E.minimum(x.node, 2.0)), 8.0, 0, 8 * x.error + 8 * unit)
        elif name == "square":
            self.add(
                E.mul(x.node, x.node),
                x.bound**2,
                2 * x.grain,
                0 if x.exact else 2 * x.bound * x.error + unit * x.bound**2,
            )
        elif name in ("root", "log"):
            positive = E.add(E.mul(x.node, x.node), 1.0)
            if not x.exact and x.dtype.itemsize == 2:
                raise Skip
            self.add(
                (E.sqrt if name == "root" else E.log)(positive), x.bound + 1, 0, 2 * x.error + (x.bound + 1) * unit * 4
            )
        elif name == "ratio":
            self.add(E.div(x.node, E.add(E.mul(x.node, x.node), 1.0)), 1.0, 0, 4 * x.error + unit * (x.bound**2 + 1))
        else:
            self.add(getattr(E, name)(x.node), 1.6, 0, 1.2 * x.error + unit)

    def compare(self) -> None:
        x = self.certain()
        y = self.same(x)
        if not y.exact:
            raise Skip
        name = self.choose(("lt", "le", "gt", "ge", "eq", "ne"))
        other = (
            y.node
            if self.chance(0.5)
            else S.constant_like(self.whole(-2, 4) if x.dtype.kind != "u" else self.whole(0, 4), x.node)
        )
        self.add(getattr(E, name)(x.node, other), 1.0)

    def logic(self) -> None:
        x = self.pick(lambda v: v.dtype is D.bool_)
        if self.chance(0.25):
            self.add(E.logical_not(x.node), 1.0)
        else:
            self.add(
                getattr(E, self.choose(("logical_and", "logical_or", "logical_xor")))(x.node, self.mask(x.shape).node),
                1.0,
            )

    def select(self) -> None:
        x = self.pick()
        y = self.same(x) if x.dtype is not D.bool_ else self.mask(x.shape)
        self.add(
            E.select(self.mask(x.shape).node, x.node, y.node),
            max(x.bound, y.bound),
            max(x.grain, y.grain),
            x.error + y.error,
        )

    def convert(self) -> None:
        x = self.pick()
        made = self.cast(x, self.any_dtype() if self.chance(0.7) else self.choose((D.int32, D.float32, D.int64)))
        if made is x:
            raise Skip
        self.add(made.node, made.bound, made.grain, made.error)

    def masked(self) -> None:
        """One mask with several readers: counted, as numbers, as places, as a choice."""
        m = self.pick(lambda v: v.dtype is D.bool_ and v.shape != ())
        number = self.cast(m, self.choose((D.int32, D.int32, D.int64, D.float32, D.int8, D.uint8)))
        axis = self.whole(0, len(m.shape))
        n = m.shape[axis]
        exact = number.dtype.kind == "f" and n >= 2 ** DIGITS[number.dtype.name]
        if exact:
            raise Skip
        running = self.add(O.cumsum(number.node, axis=axis, reverse=self.chance(0.3)), float(n))
        self.add(R.reduce_sum(number.node, axes=(axis,), keepdims=self.chance(0.5)), float(n))
        place = (
            S.iota(shape=m.shape, axis=axis, dtype=number.dtype)
            if n < min(2 ** (number.dtype.bits - 2), 2**20)
            else running.node
        )
        self.add(E.select(m.node, place, S.constant_like(0, place)), float(n))
        if self.chance(0.5):
            self.add(E.select(E.logical_not(m.node), S.constant_like(1, running.node), running.node), float(n))
        if self.chance(0.5) and number.dtype.kind == "i":
            self.add(O.sort(E.select(m.node, place, E.neg(place)), axis=axis, descending=self.chance(0.5))[0], float(n))

    def reduce(self) -> None:
        x = self.pick(lambda v: v.shape != ())
        rank = len(x.shape)
        axes = tuple(sorted(int(a) for a in self.rng.permutation(rank)[: self.whole(1, rank + 1)]))
        keep = self.chance(0.4)
        n = math.prod(x.shape[a] for a in axes)
        if x.dtype is D.bool_:
            name = self.choose(("reduce_any", "reduce_all", "reduce_max", "reduce_min"))
            self.add(getattr(R, name)(x.node, axes=axes, keepdims=keep), 1.0)
        elif self.chance(0.25) and x.exact:
            name = self.choose(("argmax", "argmin"))
            self.add(getattr(R, name)(x.node, axis=axes[0]), float(x.shape[axes[0]]))
        elif self.chance(0.4):
            if self.smooth and not x.exact:
                raise Skip
            name = self.choose(("reduce_max", "reduce_min"))
            self.add(getattr(R, name)(x.node, axes=axes, keepdims=keep), x.bound, x.grain, x.error)
        elif x.dtype.kind in "iu" and self.chance(0.2):
            self.add(R.reduce_prod(x.node, axes=axes, keepdims=keep), 2.0**64)
        else:
            x = x if x.bound * n < 1000 else self.settled(x)
            error = n * x.error + _unit(x.dtype) * n * x.bound if x.error else 0.0
            self.add(R.reduce_sum(x.node, axes=axes, keepdims=keep), n * x.bound, x.grain, error)

    def running(self) -> None:
        x = self.certain()
        if not x.shape:
            raise Skip
        axis, reverse = self.whole(0, len(x.shape)), self.chance(0.4)
        name = self.choose(("cumsum", "cumsum", "cummax", "cummin", "cumprod"))
        if name == "cumprod":
            if x.dtype.kind == "f":
                x = Value(E.sub(E.mul(E.cast(E.gt(x.node, 0), dtype=x.dtype), 2.0), 1.0), 1.0)
            self.add(O.cumprod(x.node, axis=axis, reverse=reverse), 2.0**64 if x.dtype.kind in "iu" else 1.0)
        elif name == "cumsum":
            x = self.settled(x)
            self.add(O.cumsum(x.node, axis=axis, reverse=reverse), x.bound * x.shape[axis], x.grain)
        else:
            self.add(getattr(O, name)(x.node, axis=axis, reverse=reverse), x.bound, x.grain)

    def order(self) -> None:
        x = self.pick(lambda v: v.exact and v.shape != ())
        axis = self.whole(0, len(x.shape))
        n = x.shape[axis]
        if self.chance(0.5):
            pair = O.sort(x.node, axis=axis, descending=self.chance(0.5))
        else:
            pair = O.top_k(x.node, k=self.whole(1, n + 1), axis=axis, largest=self.chance(0.5))
        self.add(pair[0], x.bound, x.grain)
        self.add(pair[1], float(n))

    def search(self) -> None:
        x = self.certain()
        if not x.shape:
            raise Skip
        y = self.same(x)
        if not y.exact or y.shape != x.shape:
            raise Skip
        rows = O.sort(x.node, axis=len(x.shape) - 1, descending=False)[0]
        self.add(O.search_sorted(rows, y.node, side=self.choose(("left", "right"))), float(x.shape[-1]))

    def move(self) -> None:
        x = self.pick(lambda v: v.shape != ())
        rank = len(x.shape)
        name = self.choose(("transpose", "reshape", "slice", "reverse", "broadcast", "pad", "pad", "concat"))
        if name == "transpose":
            node = S.transpose(x.node, tuple(int(p) for p in self.rng.permutation(rank)))
        elif name == "reshape":
            node = S.reshape(x.node, self.regrouped(x.shape))
        elif name == "slice":
            starts = [self.whole(0, max(d // 2, 1)) for d in x.shape]
            stops = [self.whole(a + 1, d + 1) for a, d in zip(starts, x.shape)]
            node = S.slice_(
                x.node, tuple(starts), tuple(stops), tuple(self.choose((1, 1, 2, 3, 4, 5)) for _ in x.shape)
            )
        elif name == "reverse":
            node = S.reverse(x.node, axes=tuple(a for a in range(rank) if self.chance(0.5)) or (rank - 1,))
        elif name == "broadcast":
            node = S.broadcast_to(S.reshape(x.node, (1, *x.shape)), (self.whole(1, 4), *x.shape))
        elif name == "concat":
            y = self.fit(self.cast(self.pick(lambda v: v.dtype is x.dtype), x.dtype), x.shape)
            node = S.concat([x.node, y.node, x.node][: self.whole(2, 4)], self.whole(0, rank))
            x = Value(node, max(x.bound, y.bound), max(x.grain, y.grain), max(x.error, y.error))
        else:
            low = tuple(self.whole(-1, 3) if d > 4 else self.whole(0, 2) for d in x.shape)
            high = tuple(self.whole(-1, 3) if d > 4 else self.whole(0, 2) for d in x.shape)
            inside = tuple(self.choose((0, 0, 0, 1, 2)) for _ in x.shape) if self.chance(0.3) else None
            node = S.pad(x.node, True if x.dtype is D.bool_ else 2, low, high, inside)
            x = Value(node, max(x.bound, 2.0), x.grain, x.error)
        self.add(node, x.bound, x.grain, x.error)

    def regrouped(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        total = math.prod(shape)
        factors = [f for f in (2, 3, 4, 5, 7, 8, 16) if total % f == 0]
        choices = [(total,), (1, total), (total, 1)]
        choices += [(f, total // f) for f in factors] + [(total // f, f) for f in factors]
        return self.choose(choices)  # type: ignore[no-any-return]

    def places(self, shape: tuple[int, ...], size: int) -> Node:
        """Indices into `size` elements: computed from a value, or random, both also from the end."""
        dtype = self.choose((D.int32, D.int32, D.int64))
        numbers = [v for v in self.pool if v.dtype.kind in "iu" and v.exact]
        if numbers and self.chance(0.7):
            made = self.cast(self.fit(self.choose(numbers), shape), dtype).node
            made = E.mod(made, size)
        else:
            drawn = self.draw_input(dtype, shape)
            self.arrays[-1] = self.rng.integers(0, size, shape).astype(dtype.numpy)
            drawn.bound, made = float(size), drawn.node
        return E.sub(made, size) if self.chance(0.2) else made

    def gather(self) -> None:
        x = self.pick(lambda v: v.shape != ())
        rank = len(x.shape)
        axis, kind = self.whole(0, rank), self.whole(0, 3)
        if kind == 0:
            shape = self.choose(((self.long,), (self.short,), (3, 5), (), (self.other, 2)))
            node = I.take(x.node, self.places(shape, x.shape[axis]), axis=axis)
        elif kind == 1:
            shape = (*x.shape[:axis], self.choose((1, 5, self.short, x.shape[axis])), *x.shape[axis + 1 :])
            node = I.take_along(x.node, self.places(shape, x.shape[axis]), axis=axis)
        else:
            depth = self.whole(1, rank + 1)
            columns = [S.reshape(self.places((self.long,), d), (self.long, 1)) for d in x.shape[:depth]]
            node = I.gather_nd(x.node, S.concat([E.cast(c, dtype=D.int32) for c in columns], 1))
        self.add(node, x.bound, x.grain, x.error)

    def scatter(self) -> None:
        x = self.settled(self.pick(lambda v: v.shape != ()))
        rank = len(x.shape)
        axis, kind = self.whole(0, rank), self.whole(0, 3)
        mode = self.choose(("add", "set")) if x.dtype is not D.bool_ else "set"
        y = self.settled(self.same(x)) if x.dtype is not D.bool_ else self.mask(x.shape)
        updates = self.fit(y, x.shape) if y.shape != x.shape else y
        count = x.shape[axis]
        if kind == 0:
            node = I.put_along(x.node, self.places(x.shape, x.shape[axis]), updates.node, axis=axis, mode=mode)
        elif kind == 1:
            depth = self.whole(1, rank + 1)
            n = self.choose((self.short, self.other, 40))
            columns = [S.reshape(E.cast(self.places((n,), d), dtype=D.int32), (n, 1)) for d in x.shape[:depth]]
            updates, count = self.fit(updates, (n, *x.shape[depth:])), n
            node = I.scatter_nd(x.node, S.concat(columns, 1), updates.node, mode=mode)
        else:
            if x.dtype is D.bool_:
                raise Skip
            mode, size = "add", self.choose((5, self.short, self.long))
            node = I.take_add(x.node, self.places((x.shape[axis],), size), axis=axis, size=size)
        many = count + 1 if mode == "add" else 1
        bound = max(x.bound, updates.bound) * many
        error = (x.error + updates.error) * many
        self.add(node, bound, max(x.grain, updates.grain), error and error + _unit(x.dtype) * bound)

    def window(self) -> None:
        x = self.number()
        if not x.exact:
            raise Skip
        x = self.settled(x)
        height = self.choose((9, 17, 30))
        width = self.choose((8, 15, 33))
        channels = self.choose((1, 3, 5))
        x = self.fit(x, (self.choose((1, 2)), channels, height, width))
        window = (self.whole(1, 4), self.whole(1, 4))
        p: dict[str, Any] = {
            "window": window,
            "strides": (self.whole(1, 4), self.whole(1, 4)),
            "padding": tuple((self.whole(0, k), self.whole(0, k)) for k in window),
        }
        name = self.choose(("window_max", "window_sum", "window_argmax", "window_scatter", "window_gather"))
        if self.smooth and name == "window_max":
            raise Skip
        n = math.prod(window)
        if name == "window_sum":
            self.add(W.window_sum(x.node, **p), n * x.bound, x.grain)
        elif name == "window_max":
            self.add(W.window_max(x.node, **p), x.bound, x.grain)
        elif name == "window_argmax":
            self.add(W.window_argmax(x.node, **p), float(n))
        else:
            index = W.window_argmax(x.node, **p)
            if name == "window_gather":
                self.add(W.window_gather(x.node, index, **p), x.bound, x.grain)
            else:
                ct = self.fit(self.settled(self.same(x)), tuple(index.shape))  # type: ignore[arg-type]
                if not ct.exact:
                    raise Skip
                self.add(W.window_scatter(ct.node, index, input_shape=x.shape, **p), n * ct.bound, ct.grain)

    def product(self) -> None:
        x = self.settled(self.number())
        if x.dtype.kind in "iu" and x.dtype.itemsize == 8 and self.chance(0.5):
            raise Skip
        k = self.choose((1, 3, self.short, self.other, 17))
        a = self.fit(x, (self.choose((1, self.other, 16, 5)), k))
        b = self.fit(self.settled(self.same(x)), (k, self.choose((1, self.short, 33))))
        lead = self.choose(((), (), (3,)))
        if lead:
            a = self.fit(a, (*lead, *a.shape))
            b = self.fit(b, (*lead, *b.shape)) if self.chance(0.5) else b
        left = a.node if self.chance(0.7) else S.transpose(S.transpose(a.node, self.turned(a)), self.turned(a))
        bound = k * a.bound * b.bound
        error = k * (a.error * b.bound + b.error * a.bound)
        self.add(L.matmul(left, b.node), bound, a.grain + b.grain, error and error + _unit(x.dtype) * bound)

    def turned(self, a: Value) -> tuple[int, ...]:
        rank = len(a.shape)
        return (*range(rank - 2), rank - 1, rank - 2)

    def convolve(self) -> None:
        x = self.settled(self.number("f"))
        groups = self.choose((1, 1, 3))
        channels, outputs = self.choose((1, 3)) * groups if groups == 1 else 3, self.choose((1, 2, 4)) * groups
        image = self.fit(x, (self.choose((1, 2)), channels, self.choose((7, 12)), self.choose((9, 33))))
        kernel = (self.whole(1, 4), self.whole(1, 4))
        weights = self.fit(self.settled(self.same(x)), (outputs, channels // groups, *kernel))
        p = {
            "strides": (self.whole(1, 3), self.whole(1, 3)), "dilation": (1, self.whole(1, 3)), "groups": groups,
            "padding": tuple((self.whole(0, k), self.whole(0, k)) for k in kernel),
        }  # fmt: skip
        n = math.prod(kernel) * channels // groups
        bound = n * image.bound * weights.bound
        error = n * (image.error * weights.bound + weights.error * image.bound)
        self.add(
            V.conv(image.node, weights.node, **p),
            bound,
            image.grain + weights.grain,
            error and error + _unit(x.dtype) * bound,
        )

    def normalize(self) -> None:
        x = self.settled(self.number("f"))
        if not x.shape or x.dtype.itemsize == 2:
            raise Skip
        axis, unit = self.whole(0, len(x.shape)), _unit(x.dtype)
        kind = self.whole(0, 3)
        if kind == 0:
            self.add(N.softmax(x.node, axis=axis), 1.0, 0, 2 * x.error + 40 * unit)
        elif kind == 1:
            self.add(N.log_softmax(x.node, axis=axis), 20.0, 0, 2 * x.error + 200 * unit)
        else:
            if x.shape[axis] == 1:
                raise Skip
            mean, variance = N.moments(x.node, axes=(axis,))
            shape = tuple(1 if k == axis else d for k, d in enumerate(x.shape))
            centred = E.sub(x.node, S.reshape(mean, shape))
            scaled = E.div(centred, E.sqrt(E.add(S.reshape(variance, shape), 1.0)))
            self.add(scaled, 8.0, 0, 8 * x.error + 400 * unit)

    # Control flow.

    def inner(self, given: Sequence[Value], result: Value, name: str) -> Graph:
        """A graph of a few steps over values like those given, whose last is like `result`, within -4 and 4."""
        outside = self.inputs, self.arrays, self.pool
        inputs = [input_node(v.node.type, f"i{k}") for k, v in enumerate(given)]
        self.pool = [Value(node, v.bound, v.grain, v.error) for node, v in zip(inputs, given)]
        self.depth += 1
        try:
            for _ in range(self.whole(1, 4)):
                drawn = len(outside[0])
                kind = self.choose(
                    ("arithmetic", "single", "select", "reduce", "running", "move", "compare", "order", "gather")
                )
                kept = list(self.pool)
                try:
                    getattr(self, kind)()
                    if len(self.inputs) != drawn:
                        raise Skip
                except Skip:
                    self.pool = kept
                    del self.inputs[drawn:], self.arrays[drawn:]
            found = [v for v in self.pool if v.exact and v.dtype.kind in "iuf"]
            if not found:
                raise Skip
            last = self.fit(self.settled(self.cast(found[-1], result.dtype)), result.shape)
            if last.dtype.kind in "iu":
                last = Value(E.mod(last.node, 5), 5.0)
            return Graph(inputs, [last.node], name)
        finally:
            self.depth -= 1
            self.inputs, self.arrays, self.pool = outside

    def carried(self) -> Value:
        x = self.certain()
        x = self.settled(x)
        return Value(E.mod(x.node, 5), 5.0) if x.dtype.kind in "iu" else x

    def branch(self) -> None:
        if self.depth:
            raise Skip
        x = self.carried()
        others = [self.pick(lambda v: v.exact) for _ in range(2)]
        flag = self.pick(lambda v: v.dtype is D.bool_)
        condition = R.reduce_any(flag.node, axes=tuple(range(len(flag.shape))), keepdims=False)
        true, false = (self.inner([x, *others], x, name) for name in ("true", "false"))
        made = C.cond.node(condition, x.node, *[v.node for v in others], true=true, false=false)
        self.add(get_item(made, 0), 5.0)

    def loop(self) -> None:
        if self.depth:
            raise Skip
        x = self.carried()
        other = self.pick(lambda v: v.exact)
        body = self.inner([x, other], x, "body")
        counter = input_node(tensor_type((), D.int32), "n")
        rounds = self.whole(0, 5)
        test = Graph([counter, *body.inputs], [E.lt(counter, rounds)], "test")
        whole = Graph([counter, *body.inputs], [E.add(counter, 1), *body.outputs], "body")
        start = S.full((), 0, D.int32)
        made = C.while_loop.node(start, x.node, other.node, test=test, body=whole, carried=2)
        self.add(get_item(made, 1), 5.0)

    # Results.

    def outputs(self) -> list[Value]:
        last = self.pool[len(self.inputs) :][-self.whole(2, 6) :] or self.pool[-1:]
        others = [v for v in self.pool if v not in last]
        return [*last, *[v for v in others if self.chance(0.15)]]

    def gradients(self) -> list[Value]:
        """What the sum of a float value is worth to each float input; a value's own size is all that is known of its error."""
        wanted = [i for i in self.inputs if i.dtype in (D.float32, D.float64)]
        found = [
            v
            for v in self.pool
            if v.dtype in (D.float32, D.float64) and v.node not in self.inputs and is_smooth(v.node)
        ]
        for v in reversed(found[-4:] if wanted else ()):
            grads = [g for g in vjp([v.node], [self.cotangent(v)], wanted) if g is not None and not g.is_constant]
            if grads:
                return [Value(g, math.nan, 0, math.nan) for g in grads]
        return []

    def cotangent(self, v: Value) -> Node:
        """Ones, or small numbers that differ."""
        if self.chance(0.3) or not v.shape:
            return S.full(v.shape, 1, v.dtype)
        place = S.iota(shape=v.shape, axis=self.whole(0, len(v.shape)), dtype=D.int32)
        return E.sub(E.cast(E.mod(place, 7), dtype=v.dtype), 2.0)

    def replaced(self, outputs: Sequence[Value]) -> dict[int, int]:
        """Outputs that are written over an input of their type."""
        found: dict[int, int] = {}
        for j, v in enumerate(outputs):
            for i, x in enumerate(self.inputs):
                if i not in found.values() and x.type == v.node.type and v.node is not x and self.chance(0.7):
                    found[j] = i
                    break
        return found


STEPS = (
    ("arithmetic", 8), ("whole_arithmetic", 3), ("single", 3), ("curve", 3), ("compare", 5), ("logic", 3), ("select", 4), ("convert", 4), ("masked", 4),
    ("reduce", 7), ("running", 4), ("order", 2), ("search", 1), ("move", 8), ("gather", 4), ("scatter", 3), ("window", 2), ("product", 2), ("convolve", 1),
    ("normalize", 2), ("branch", 1), ("loop", 1),
)  # fmt: skip


# Steps that have derivatives, what makes values that are known to some digits only, and what asks which of its operands is larger.
SMOOTH = {
    "arithmetic",
    "curve",
    "select",
    "masked",
    "reduce",
    "running",
    "move",
    "gather",
    "scatter",
    "window",
    "product",
    "convolve",
    "normalize",
    "convert",
}
INEXACT = {
    "tanh", "sin", "cos", "sigmoid", "exp", "atan", "erf", "sqrt", "log", "div", "softmax", "log_softmax", "moments",
}  # fmt: skip
CHOOSING = {
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_min",
    "abs",
    "cummax",
    "cummin",
    "mod",
    "cumprod",
    "while_loop",
    "cond",
}


def is_smooth(node: Node) -> bool:
    """Whether no rounding decides which way a derivative goes, as it would where inexact values are compared."""
    inexact: set[Node] = set()
    for n in toposort([node]):
        if n.prim is not None and (n.prim.name in INEXACT or any(i in inexact for i in n.inputs)):
            if n.prim.name in CHOOSING:
                return False
            inexact.add(n)
    return True


# Checking.


def run(graph: Graph, arrays: Sequence[Any], aliases: Optional[dict[int, int]] = None) -> list[Any]:
    """What the native engine gives."""
    program = compile_native(graph, aliases or {})
    got = program.entry(*[buffers.from_array(a) for a in arrays])
    got = got if isinstance(got, tuple) else (got,)
    return [buffers.to_array(g, t) for g, t in zip(got, graph.output_types)]  # type: ignore[arg-type]


def difference(value: Value, got: Any, want: Any) -> str:
    """How a result differs from the reference's; empty where it does not."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{got.shape} instead of {want.dtype}{want.shape}"
    if value.exact:
        wrong = np.asarray(~((got == want) | ((got != got) & (want != want))))
        allowed = 0.0
    else:
        a, b = got.astype(np.float64), want.astype(np.float64)
        scale = max(float(np.max(np.abs(b[np.isfinite(b)]), initial=0.0)), 1e-6)
        allowed = 4 * value.error if value.error == value.error else 2e-3 * scale + 1e-5
        with np.errstate(invalid="ignore"):
            wrong = np.asarray(~((np.abs(a - b) <= allowed) | (a == b) | ((a != a) & (b != b))))
    if not wrong.any():
        return ""
    where = tuple(int(k[0]) for k in np.nonzero(np.atleast_1d(wrong)))
    first = where if wrong.ndim else ()
    return f"{int(wrong.sum())} of {wrong.size} differ, the first at {list(first)}: {got[first]} instead of {want[first]} (allowed {allowed:.2g})"


def check_graph(made: RandomGraph) -> str:
    """What is wrong with a graph's results; empty where nothing is."""
    want = evaluate(made.graph, made.arrays)
    try:
        got = run(made.graph, made.arrays, made.aliases)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    found = [(k, d) for k, (v, g, w) in enumerate(zip(made.known, got, want)) if (d := difference(v, g, w))]
    return "; ".join(f"output {k}: {d}" for k, d in found)


def shrink(made: RandomGraph) -> None:
    """Leave out outputs, and stand in inputs for nodes, as long as the graph fails."""

    def fails(keep: Sequence[int]) -> bool:
        before = made.graph, made.known, made.aliases
        made.graph = Graph(made.inputs, [before[0].outputs[k] for k in keep], before[0].name)
        made.known, made.aliases = [before[1][k] for k in keep], {}
        if check_graph(made):
            return True
        made.graph, made.known, made.aliases = before
        return False

    changed = True
    while changed and len(made.known) > 1:
        changed = False
        for k in range(len(made.known)):
            if fails([j for j in range(len(made.known)) if j != k]):
                changed = True
                break


def check_seed(seed: int) -> str:
    """What is wrong with the graph of a seed, and the graph; empty where nothing is."""
    made = RandomGraph(seed)
    with np.errstate(all="ignore"):
        wrong = check_graph(made)
        if not wrong:
            return ""
        shrink(made)
        return f"seed {seed}: {wrong}\n{check_graph(made)}\n{to_text(made.graph)}\n"


def levels() -> list[str]:
    """The levels of `MYCEL_CPU` that this processor has."""
    from mycel.engines.native import jit

    found, before = [], os.environ.get("MYCEL_CPU")
    for level in jit._LEVELS:
        os.environ["MYCEL_CPU"] = level
        try:
            jit.processor()
        except ValueError:
            break
        finally:
            if before is None:
                os.environ.pop("MYCEL_CPU")
            else:
                os.environ["MYCEL_CPU"] = before
        found.append(level)
    return found


def main(arguments: Sequence[str]) -> int:
    """Check seeds; the number of those that fail, at most 100."""
    first, count, *wanted = arguments
    if wanted:
        failed = 0
        for level in levels() if wanted == ["all"] else wanted:
            command = [sys.executable, "-m", "tests.engines.random_graphs", first, count]
            failed += subprocess.run(command, env={**os.environ, "MYCEL_CPU": level}, check=False).returncode
        return min(failed, 100)
    begun, failed = time.monotonic(), 0
    for seed in range(int(first), int(first) + int(count)):
        wrong = check_seed(seed)
        if wrong:
            failed += 1
            print(wrong, flush=True)
    setting = f"{os.environ.get('MYCEL_CPU') or 'this processor'} {os.environ.get('MYCEL_CHECK', '')}".strip()
    print(f"{setting}: {count} graphs from {first}, {failed} failed, {time.monotonic() - begun:.0f} s", flush=True)
    return min(failed, 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
