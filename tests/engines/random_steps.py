"""Steps of random graphs: each adds what one kind of work makes of values that are there; see
`random_graphs`.
"""

from __future__ import annotations

import math
from typing import Any

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product, sort_and_scan
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import conv
from mycel._src.compiler.prims.convolution import window as window_prims
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural import normalization
from mycel._src.foundation import dtype as D
from tests.engines.random_values import DIGITS, Skip, Value, Values, unit

__all__ = ["Steps"]


class Steps(Values):
    """What can be done with values, by name."""

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
            error += unit(x.dtype) * bound
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
        rounding = 8 * unit(x.dtype)
        name = self.choose(("tanh", "sin", "cos", "sigmoid", "exp", "atan", "erf", "square", "root", "log", "ratio"))
        if name == "exp":
            self.add(E.exp(E.minimum(x.node, 2.0)), 8.0, 0, 8 * x.error + 8 * rounding)
        elif name == "square":
            self.add(
                E.mul(x.node, x.node),
                x.bound**2,
                2 * x.grain,
                0 if x.exact else 2 * x.bound * x.error + rounding * x.bound**2,
            )
        elif name in ("root", "log"):
            positive = E.add(E.mul(x.node, x.node), 1.0)
            if not x.exact and x.dtype.itemsize == 2:
                raise Skip
            self.add(
                (E.sqrt if name == "root" else E.log)(positive),
                x.bound + 1,
                0,
                2 * x.error + (x.bound + 1) * rounding * 4,
            )
        elif name == "ratio":
            self.add(
                E.div(x.node, E.add(E.mul(x.node, x.node), 1.0)), 1.0, 0, 4 * x.error + rounding * (x.bound**2 + 1)
            )
        else:
            self.add(getattr(E, name)(x.node), 1.6, 0, 1.2 * x.error + rounding)

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
        running = self.add(sort_and_scan.cumsum(number.node, axis=axis, reverse=self.chance(0.3)), float(n))
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
            self.add(
                sort_and_scan.sort(E.select(m.node, place, E.neg(place)), axis=axis, descending=self.chance(0.5))[0],
                float(n),
            )

    def counts(self) -> None:
        """Several reductions of one kind over one domain, of masks that are made of one value and
        of each other.
        """
        x = self.pick(lambda v: v.exact and v.dtype.kind in "iuf" and v.shape != ())
        masks = [E.gt(x.node, 0), E.eq(x.node, 1), E.le(x.node, 2)][: self.whole(1, 4)]
        masks += [E.logical_not(masks[0]), E.logical_and(masks[0], masks[-1])][: self.whole(1, 3)]
        rank = len(x.shape)
        axes = (rank - 1,) if self.chance(0.6) else tuple(range(rank))
        dtype = self.choose((D.int32, D.int32, D.int32, D.int64, D.int16, D.uint32))
        name = self.choose(("reduce_sum", "reduce_sum", "reduce_max", "reduce_any", "argmax"))
        for m in masks:
            number = E.cast(m, dtype=dtype)
            if name == "reduce_any":
                self.add(R.reduce_any(m, axes=axes, keepdims=False), 1.0)
            elif name == "argmax":
                self.add(R.argmax(number, axis=rank - 1), float(x.shape[-1]))
            else:
                self.add(getattr(R, name)(number, axes=axes, keepdims=False), float(math.prod(x.shape)))

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
            error = n * x.error + unit(x.dtype) * n * x.bound if x.error else 0.0
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
            self.add(
                sort_and_scan.cumprod(x.node, axis=axis, reverse=reverse), 2.0**64 if x.dtype.kind in "iu" else 1.0
            )
        elif name == "cumsum":
            x = self.settled(x)
            self.add(sort_and_scan.cumsum(x.node, axis=axis, reverse=reverse), x.bound * x.shape[axis], x.grain)
        else:
            self.add(getattr(sort_and_scan, name)(x.node, axis=axis, reverse=reverse), x.bound, x.grain)

    def order(self) -> None:
        x = self.pick(lambda v: v.exact and v.shape != ())
        axis = self.whole(0, len(x.shape))
        n = x.shape[axis]
        if self.chance(0.5):
            pair = sort_and_scan.sort(x.node, axis=axis, descending=self.chance(0.5))
        else:
            pair = sort_and_scan.top_k(x.node, k=self.whole(1, n + 1), axis=axis, largest=self.chance(0.5))
        self.add(pair[0], x.bound, x.grain)
        self.add(pair[1], float(n))

    def search(self) -> None:
        x = self.certain()
        if not x.shape:
            raise Skip
        y = self.same(x)
        if not y.exact or y.shape != x.shape:
            raise Skip
        rows = sort_and_scan.sort(x.node, axis=len(x.shape) - 1, descending=False)[0]
        self.add(sort_and_scan.search_sorted(rows, y.node, side=self.choose(("left", "right"))), float(x.shape[-1]))

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
        return self.choose(choices)

    def places(self, shape: tuple[int, ...], size: int) -> Node:
        """Indices into `size` elements, computed from a value or random, also from the end."""
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
        self.add(node, bound, max(x.grain, updates.grain), error and error + unit(x.dtype) * bound)

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
            self.add(window_prims.window_sum(x.node, **p), n * x.bound, x.grain)
        elif name == "window_max":
            self.add(window_prims.window_max(x.node, **p), x.bound, x.grain)
        elif name == "window_argmax":
            self.add(window_prims.window_argmax(x.node, **p), float(n))
        else:
            index = window_prims.window_argmax(x.node, **p)
            if name == "window_gather":
                self.add(window_prims.window_gather(x.node, index, **p), x.bound, x.grain)
            else:
                ct = self.fit(self.settled(self.same(x)), tuple(index.shape))
                if not ct.exact:
                    raise Skip
                self.add(window_prims.window_scatter(ct.node, index, input_shape=x.shape, **p), n * ct.bound, ct.grain)

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
        self.add(matrix_product.matmul(left, b.node), bound, a.grain + b.grain, error and error + unit(x.dtype) * bound)

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
            "strides": (self.whole(1, 3), self.whole(1, 3)),
            "dilation": (1, self.whole(1, 3)),
            "groups": groups,
            "padding": tuple((self.whole(0, k), self.whole(0, k)) for k in kernel),
        }
        n = math.prod(kernel) * channels // groups
        bound = n * image.bound * weights.bound
        error = n * (image.error * weights.bound + weights.error * image.bound)
        self.add(
            conv.conv(image.node, weights.node, **p),
            bound,
            image.grain + weights.grain,
            error and error + unit(x.dtype) * bound,
        )

    def normalize(self) -> None:
        x = self.settled(self.number("f"))
        if not x.shape or x.dtype.itemsize == 2:
            raise Skip
        axis, rounding = self.whole(0, len(x.shape)), unit(x.dtype)
        kind = self.whole(0, 3)
        if kind == 0:
            self.add(normalization.softmax(x.node, axis=axis), 1.0, 0, 2 * x.error + 40 * rounding)
        elif kind == 1:
            self.add(normalization.log_softmax(x.node, axis=axis), 20.0, 0, 2 * x.error + 200 * rounding)
        else:
            if x.shape[axis] == 1:
                raise Skip
            mean, variance = normalization.moments(x.node, axes=(axis,))
            shape = tuple(1 if k == axis else d for k, d in enumerate(x.shape))
            centred = E.sub(x.node, S.reshape(mean, shape))
            scaled = E.div(centred, E.sqrt(E.add(S.reshape(variance, shape), 1.0)))
            self.add(scaled, 8.0, 0, 8 * x.error + 400 * rounding)
