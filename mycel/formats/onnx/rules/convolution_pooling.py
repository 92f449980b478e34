"""ONNX's convolutions and pooling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as corners
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim, product
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import conv, window
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    broadcast,
    pad,
    reshaped,
    rule,
    same,
    scalar,
    shape_values,
)
from mycel.formats.onnx.rules.reductions import limits_of, mean
from mycel.ops.vector_norms import power, root, vector_norm

__all__ = ["Windows", "convolved", "windows_of"]


class Windows(NamedTuple):
    """Where windows lie on the spatial axes: sizes, steps, steps within a window, and padding."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[Any, ...]
    high: tuple[Any, ...]
    out: tuple[Any, ...]

    @property
    def padding(self) -> tuple[tuple[Any, Any], ...]:
        """The padding of each axis as a pair."""
        return tuple(zip(self.low, self.high))


def windows_of(op: Operation, spatial: Sequence[Any], kernel: Sequence[int]) -> Windows:
    """Return where the windows of a node lie.

    In ceiling mode the padding at the end is what the last window takes, more or less than given.
    """
    rank = len(spatial)
    strides = tuple(op.get("strides") or (1,) * rank)
    dilations = tuple(op.get("dilations") or (1,) * rank)
    pads = list(op.get("pads") or (0,) * 2 * rank)
    mode = op.get("auto_pad", "NOTSET")
    if not len(kernel) == len(strides) == len(dilations) == rank == len(pads) // 2:
        raise op.wrong(f"kernel {list(kernel)}, strides {strides}, dilations {dilations}, pads {pads} for {rank} axes")
    if min((*kernel, *strides, *dilations), default=1) < 1:
        raise op.wrong(f"kernel {list(kernel)}, strides {strides} and dilations {dilations} must be at least 1")
    low, high, out = [], [], []
    for i, (n, k, s, d) in enumerate(zip(spatial, kernel, strides, dilations)):
        span = (k - 1) * d + 1
        a, b = pads[i], pads[rank + i]
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            count = -(-n // s)
            whole = (count - 1) * s + span - n
            whole = max(whole, 0) if isinstance(whole, int) else whole
            a = whole // 2 if mode == "SAME_UPPER" else whole - whole // 2
            b = whole - a
        elif mode == "VALID":
            a = b = 0
        room = n + a + b - span
        count = room // s + 1
        if op.get("ceil_mode", 0):
            if isinstance(room, Dim):
                raise op.refused("ceiling mode over an axis of open size is not supported")
            count = -(-room // s) + 1
            if (count - 1) * s >= n + a:
                count -= 1
            b = (count - 1) * s + span - n - a
        low.append(a)
        high.append(b)
        out.append(count)
    return Windows(tuple(kernel), strides, dilations, tuple(low), tuple(high), tuple(out))


def _kernel(op: Operation) -> list[int]:
    given = op.get("kernel_shape")
    if not given:
        raise op.wrong("it has no kernel_shape")
    return list(given)


def convolved(op: Operation, x: Tensor, w: Tensor) -> Tensor:
    """Return the convolution of a node."""
    if x.ndim > 5:
        raise op.refused(f"convolutions have 1 to 3 spatial axes, not {x.ndim - 2}")
    at = windows_of(op, x.shape[2:], w.shape[2:])
    padding = at.padding
    if any(isinstance(p, int) and p < 0 for pair in padding for p in pair):
        x = pad(x, (0, 0, *at.low), (0, 0, *at.high))
        padding = ((0, 0),) * len(padding)
    return apply(conv.conv, x, w, strides=at.strides, padding=padding, dilation=at.dilations, groups=op.get("group", 1))


def _biased(x: Tensor, bias: Any) -> Tensor:
    return x if bias is None else apply(E.add, x, reshaped(bias, (bias.shape[0], *[1] * (x.ndim - 2))))


@rule("Conv")
def _conv(op: Operation, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    return _biased(convolved(op, x, w), bias)


@rule("ConvTranspose")
def _conv_transpose(op: Operation, x: Tensor, w: Tensor, bias: Any = None) -> Tensor:
    rank, groups = x.ndim - 2, op.get("group", 1)
    strides = tuple(op.get("strides") or (1,) * rank)
    dilations = tuple(op.get("dilations") or (1,) * rank)
    extra = tuple(op.get("output_padding") or (0,) * rank)
    pads = list(op.get("pads") or (0,) * 2 * rank)
    wanted, mode = op.get("output_shape"), op.get("auto_pad", "NOTSET")
    whole, low, high = [], [], []
    for i, (n, k, s, d) in enumerate(zip(x.shape[2:], w.shape[2:], strides, dilations)):
        full = s * (n - 1) + (k - 1) * d + 1
        a, b = pads[i], pads[rank + i]
        if wanted or mode in ("SAME_UPPER", "SAME_LOWER"):
            total = full + extra[i] - (wanted[-rank:][i] if wanted else n * s)
            # What is missing is added at the end.
            a = 0 if total < 0 else total // 2 if mode == "SAME_UPPER" else total - total // 2
            b = total - a
        whole.append(full)
        low.append(-a)
        high.append(extra[i] - b)
    shape = (x.shape[0], w.shape[1] * groups, *whole)
    found = apply(
        conv.conv_grad_input,
        x,
        w,
        input_shape=shape,
        strides=strides,
        padding=((0, 0),) * rank,
        dilation=dilations,
        groups=groups,
    )
    return _biased(pad(found, (0, 0, *low), (0, 0, *high)), bias)


# Pools.


def _parts(x: Tensor, at: Windows, fill: Any) -> list[Tensor]:
    """Return for each place of a window the entries at that place, of all windows."""
    wide = pad(x, (0, 0, *at.low), (0, 0, *at.high), fill)
    found = []
    for place in corners(*map(range, at.kernel)):
        starts = [p * d for p, d in zip(place, at.dilations)]
        stops = [a + (n - 1) * s + 1 for a, n, s in zip(starts, at.out, at.strides)]
        found.append(
            apply(
                S.SLICE,
                wide,
                starts=(0, 0, *starts),
                stops=(*x.shape[:2], *stops),
                steps=(1, 1, *at.strides),
            )
        )
    return found


def _dense(at: Windows) -> bool:
    """Return whether windows have no gaps and their padding is less than they are."""
    return all(d == 1 for d in at.dilations) and all(
        isinstance(p, int) and 0 <= p < k for pair, k in zip(at.padding, at.kernel) for p in pair
    )


@rule("MaxPool")
def _max_pool(op: Operation, x: Tensor) -> Any:
    at = windows_of(op, x.shape[2:], _kernel(op))
    least = limits_of(x)[0]
    if op.count == 1:
        if _dense(at):
            return apply(window.window_max, x, window=at.kernel, strides=at.strides, padding=at.padding)
        parts = _parts(x, at, least)
        found = parts[0]
        for part in parts[1:]:
            found = apply(E.maximum, found, part)
        return found
    joined = apply(S.CONCAT, *[reshaped(p, (1, *p.shape)) for p in _parts(x, at, least)], axis=0)
    order = same(_places(x, at, bool(op.get("storage_order", 0))), D.int64)
    order = broadcast(order, joined.shape)
    best = apply(R.argmax, joined, axis=0)
    best = reshaped(best, (1, *best.shape))
    values = apply(I.take_along, joined, best, axis=0)
    indices = apply(I.take_along, order, best, axis=0)
    shape = tuple(joined.shape[1:])
    lead = np.arange(int(product(x.shape[:2]))).reshape(*x.shape[:2], *[1] * len(at.kernel))
    offset = same(lead * product(x.shape[2:]), D.int64)
    return reshaped(values, shape), apply(E.add, reshaped(indices, shape), offset)


def _places(x: Tensor, at: Windows, by_column: bool) -> Array:
    """Return for each place of a window, and each window, its number in an image."""
    sizes = x.shape[2:]
    steps = [math.prod(sizes[:i]) if by_column else math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    found = []
    for place in corners(*map(range, at.kernel)):
        total: Any = 0
        for i, (p, d, s, n, a) in enumerate(zip(place, at.dilations, at.strides, at.out, at.low)):
            line = (np.arange(n) * s + p * d - a) * steps[i]
            total = total + line.reshape([n if j == i else 1 for j in range(len(sizes))])
        found.append(total[None, None])
    return np.stack(found)


def _window_sums(x: Tensor, at: Windows) -> Tensor:
    if _dense(at):
        return apply(window.window_sum, x, window=at.kernel, strides=at.strides, padding=at.padding)
    parts = _parts(x, at, 0)
    found = parts[0]
    for part in parts[1:]:
        found = apply(E.add, found, part)
    return found


@rule("AveragePool")
def _average_pool(op: Operation, x: Tensor) -> Tensor:
    at = windows_of(op, x.shape[2:], _kernel(op))
    counts = _counts(op, x, at)
    return apply(E.div, _window_sums(x, at), same(counts, x.dtype))


def _counts(op: Operation, x: Tensor, at: Windows) -> Any:
    """Return how many entries each window averages over."""
    inside = op.get("count_include_pad", 0)
    whole = math.prod(at.kernel)
    if inside and not op.get("ceil_mode", 0):
        return whole
    if all(isinstance(p, int) and p == 0 for pair in at.padding for p in pair):
        return whole
    if any(isinstance(n, Dim) for n in x.shape[2:]):
        raise op.refused("averages over an axis of open size with padding that does not count are not supported")
    counts: Any = np.ones((1, 1, *[1] * len(at.kernel)))
    rank = len(at.kernel)
    pads = op.get("pads") or (0,) * 2 * rank
    for i, (n, k, s, d, a, count) in enumerate(zip(x.shape[2:], at.kernel, at.strides, at.dilations, at.low, at.out)):
        first, end = (-a, n + pads[rank + i]) if inside else (0, n)
        places = np.arange(count)[:, None] * s - a + np.arange(k) * d
        line = ((places >= first) & (places < end)).sum(1)
        counts = counts * line.reshape([count if j == i + 2 else 1 for j in range(rank + 2)])
    return counts


@rule("LpPool")
def _lp_pool(op: Operation, x: Tensor) -> Tensor:
    p = op.get("p", 2)
    at = windows_of(op, x.shape[2:], _kernel(op))
    return root(_window_sums(power(apply(E.abs_, x), p), at), p)


@rule("GlobalAveragePool")
def _global_average(op: Operation, x: Tensor) -> Tensor:
    return mean(x, tuple(range(2, x.ndim)))


@rule("GlobalMaxPool")
def _global_max(op: Operation, x: Tensor) -> Tensor:
    return apply(R.reduce_max, x, axes=tuple(range(2, x.ndim)), keepdims=True)


@rule("GlobalLpPool")
def _global_lp(op: Operation, x: Tensor) -> Tensor:
    p = op.get("p", 2)
    return vector_norm(x, p, tuple(range(2, x.ndim)), True)


@rule("MaxUnpool", known=(2,))
def _max_unpool(op: Operation, x: Tensor, places: Tensor, shape: Any = None) -> Tensor:
    kernel = _kernel(op)
    strides = op.get("strides") or [1] * len(kernel)
    pads = op.get("pads") or [0] * 2 * len(kernel)
    sizes = [
        (n - 1) * s - pads[i] - pads[len(kernel) + i] + k
        for i, (n, s, k) in enumerate(zip(x.shape[2:], strides, kernel))
    ]
    wanted = (*x.shape[:2], *sizes)
    out = wanted if shape is None else tuple(shape_values(shape))
    zeros = apply(S.BROADCAST_TO, scalar(0, x), shape=(product(wanted),))
    flat = apply(
        I.scatter_nd,
        zeros,
        reshaped(places, (product(places.shape), 1)),
        reshaped(x, (product(x.shape),)),
        mode="set",
    )
    found = reshaped(flat, wanted)
    if shape is None or out == wanted:
        return found
    return pad(found, [0] * found.ndim, [o - w for o, w in zip(out, wanted)])
