"""TensorFlow Lite's operators of data movement: they move, count, look up and join elements.

Rules are as in `mycel.formats.tflite.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import from_any
from mycel._src.foundation.errors import Unsupported
from mycel.formats.tflite.recurrent import RECURRENT
from mycel.formats.tflite.rules import CONSTANTS as FIRST_CONSTANTS
from mycel.formats.tflite.rules import RULES as FIRST
from mycel.formats.tflite.rules import Rule, active, constant, known, sliced_by, strided
from mycel.formats.tflite.schema import Operator

__all__ = ["CONSTANTS", "RULES", "WHERE_KNOWN"]


def _space_to_depth(o: Operator, x: Any) -> Any:
    n, h, w, c = x.shape
    b = o.option(0, "<i")
    y = ops.transpose(x.reshape((n, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
    return y.reshape((n, h // b, w // b, b * b * c))


def _depth_to_space(o: Operator, x: Any) -> Any:
    n, h, w, c = x.shape
    b = o.option(0, "<i")
    y = ops.transpose(x.reshape((n, h, w, b, b, c // (b * b))), (0, 1, 3, 2, 4, 5))
    return y.reshape((n, h * b, w * b, c // (b * b)))


def _padded(x: Any, pads: Any, value: float = 0.0) -> Any:
    flat = tuple(int(p) for pair in list(pads)[::-1] for p in pair)
    return ops.pad(x, flat, value=value)


def _space_to_batch(o: Operator, x: Any, block: Any, pads: Any) -> Any:
    sizes, rank = known(block), len(np.reshape(block, -1))
    x = _padded(x, [(0, 0), *np.reshape(pads, (-1, 2)).tolist(), *[(0, 0)] * (x.ndim - 1 - rank)])
    shape = x.shape
    parts = [part for d, b in zip(shape[1 : 1 + rank], sizes) for part in (d // b, b)]
    y = x.reshape((shape[0], *parts, *shape[1 + rank :]))
    order = [2 + 2 * k for k in range(rank)] + [0] + [1 + 2 * k for k in range(rank)]
    y = ops.transpose(y, (*order, *range(1 + 2 * rank, y.ndim)))
    return y.reshape((shape[0] * int(np.prod(sizes)), *parts[::2], *shape[1 + rank :]))


def _batch_to_space(o: Operator, x: Any, block: Any, crops: Any) -> Any:
    sizes, rank, shape = known(block), len(np.reshape(block, -1)), x.shape
    batch = shape[0] // int(np.prod(sizes))
    y = x.reshape((*sizes, batch, *shape[1:]))
    order = [rank] + [k for i in range(rank) for k in (rank + 1 + i, i)]
    y = ops.transpose(y, (*order, *range(2 * rank + 1, y.ndim)))
    y = y.reshape((batch, *[d * b for d, b in zip(shape[1:], sizes)], *shape[1 + rank :]))
    cut = [slice(int(a), d - int(b)) for (a, b), d in zip(np.reshape(crops, (-1, 2)), y.shape[1:])]
    return y[tuple([slice(None), *cut])]


def _l2_normalised(o: Operator, x: Any) -> Any:
    return active(o, 0, x / ops.sqrt(ops.maximum((x * x).sum(-1, keepdims=True), 1e-6)))


def _response_normalised(o: Operator, x: Any) -> Any:
    reach, channels = o.option(0, "<i"), x.shape[-1]
    bias, alpha, beta = (o.real(k) for k in (1, 2, 3))
    if not 0 <= reach <= channels:
        reach = channels
    wide = _padded(x * x, [*[(0, 0)] * (x.ndim - 1), (reach, reach)])
    total = sum((wide[..., k : k + channels] for k in range(1, 2 * reach + 1)), wide[..., :channels])
    return x / (bias + alpha * total) ** beta


def _mirrored(o: Operator, x: Any, pads: Any) -> Any:
    mode = "reflect" if o.option(0) == 0 else "symmetric"
    for axis, (a, b) in enumerate(np.reshape(pads, (-1, 2)).tolist()):
        if a or b:
            most = x.shape[axis] - (mode == "reflect")
            if min(a, b) < 0 or max(a, b) > most:
                raise ValueError(f"MIRROR_PAD by {a} and {b} of an axis of {x.shape[axis]}: {most} is the most")
            line: Any = np.arange(x.shape[axis], dtype=np.int32)
            places = np.pad(line, (a, b), "reflect") if mode == "reflect" else np.pad(line, (a, b), "symmetric")
            x = x.take(constant(places), axis)
    return x


def _one_hot(o: Operator, indices: Any, depth: Any, on: Any, off: Any) -> Any:
    axis, count = o.option(0, "<i"), int(np.reshape(depth, -1)[0])
    axis = axis % (indices.ndim + 1)
    form = [count if a == axis else 1 for a in range(indices.ndim + 1)]
    line = constant(np.arange(count, dtype=np.int32).reshape(form))
    return ops.where(ops.expand_dims(indices.astype(D.int32), axis) == line, on, off)


def _top(o: Operator, x: Any, k: Any) -> Any:
    values, places = ops.topk(x, int(np.reshape(k, -1)[0]))
    return values, places.astype(D.int32)


def _summed_up(o: Operator, x: Any, axis: Any) -> Any:
    where, exclusive, back = int(np.reshape(axis, -1)[0]) % x.ndim, o.option(0), o.option(1)
    y = ops.flip(x, (where,)) if back else x
    y = ops.cumsum(y, where)
    if exclusive:
        pads = [(1, 0) if a == where else (0, 0) for a in range(x.ndim)]
        y = _padded(y, pads)[tuple(slice(0, -1) if a == where else slice(None) for a in range(x.ndim))]
    return ops.flip(y, (where,)) if back else y


def _split(o: Operator, x: Any, sizes: Any, axis: Any) -> Any:
    counts, where = list(known(sizes)), int(np.reshape(axis, -1)[0])
    if -1 in counts:
        rest = x.shape[where] - sum(c for c in counts if c != -1)
        counts[counts.index(-1)] = rest
    return ops.split(x, counts, where)


def _filled(o: Operator, dims: Any, value: Any) -> Any:
    return ops.broadcast_to(value, known(dims))


def _diagonal(o: Operator, x: Any) -> Any:
    eye = constant(np.eye(x.shape[-1], dtype=bool))
    return ops.where(eye, ops.expand_dims(x, -1), ops.zeros_like(ops.expand_dims(x, -1)))


def _segments(function: Callable[..., Any]) -> Rule:
    return lambda o, x, ids, count: function(x, ids, int(np.reshape(count, -1)[0]))


def _sorted_segments(o: Operator, x: Any, ids: Any) -> Any:
    count = int(np.max(ids, initial=-1)) + 1
    return ops.unsorted_segment_sum(x, constant(ids), count)


def _updated(o: Operator, x: Any, update: Any, starts: Any) -> Any:
    """Return `x` with a block of it replaced, which begins where it still fits."""
    y, inside = update, None
    for axis, (size, length) in enumerate(zip(x.shape, update.shape)):
        start = ops.clamp(starts[axis].astype(D.int32), 0, size - length)
        form = [size if a == axis else 1 for a in range(x.ndim)]
        at = ops.arange(size).astype(D.int32) - start
        here = ops.logical_and(at >= 0, at < length).reshape(form)
        y = y.take(ops.clamp(at, 0, length - 1), axis)
        inside = here if inside is None else ops.logical_and(inside, here)
    return update if inside is None else ops.where(inside, y, x)


def _conv_3d(o: Operator, x: Any, w: Any, bias: Any = None) -> Any:
    strides = tuple(o.option(k, "<i", 1) for k in (1, 3, 2))
    dilations = tuple(o.option(k, "<i", 1) for k in (5, 7, 6))
    if any(d != 1 for d in dilations):
        raise Unsupported(f"load: the operator {o.name} of TensorFlow Lite with dilations {dilations} is not supported")
    pads = []
    for size, k, s in zip(x.shape[1:4], w.shape[:3], strides):
        total = max((-(-size // s) - 1) * s + k - size, 0) if o.option(0) == 0 else 0
        pads += [total // 2, total - total // 2]
    y = ops.conv3d(
        ops.transpose(x, (0, 4, 1, 2, 3)),
        ops.transpose(w, (4, 3, 0, 1, 2)),
        stride=strides,
        pad_mode="pad",
        padding=tuple(pads),
    )
    y = ops.transpose(y, (0, 2, 3, 4, 1))
    return active(o, 4, y if bias is None else y + bias)


def _part(o: Operator, x: Any, begin: Any, size: Any) -> Any:
    """Return what SLICE gives, also from places that are computed."""
    if isinstance(begin, np.ndarray):
        return sliced_by(o, x, begin, size)
    for axis, length in enumerate(known(size)):
        if length == x.shape[axis]:
            continue
        if isinstance(length, int) and length < 0:
            raise Unsupported(
                "load: SLICE of TensorFlow Lite to the end from a place that is computed is not supported"
            )
        start = ops.clamp(begin[axis].astype(D.int32), 0, x.shape[axis] - length)
        x = x.take(start + ops.arange(length).astype(D.int32), axis)
    return x


def _strided(o: Operator, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Return what STRIDED_SLICE gives, also of single entries whose places are computed."""
    if isinstance(begin, np.ndarray) and isinstance(end, np.ndarray):
        return strided(o, x, begin, end, strides)
    begin_mask, end_mask, ellipsis, new, shrink = [o.option(k, "<i") for k in range(5)]
    count = len(np.reshape(strides, -1))
    single = [k for k in range(count) if shrink >> k & 1]
    if ellipsis or new or any(not (begin_mask >> k & end_mask >> k & 1) for k in range(count) if k not in single):
        raise Unsupported(
            "load: STRIDED_SLICE of TensorFlow Lite from a place that is computed is supported for single entries alone"
        )
    step = [slice(None, None, int(s)) for s in np.reshape(strides, -1)]
    x = x[tuple(slice(None) if k in single else s for k, s in enumerate(step))]
    for axis in reversed(single):
        at = begin[axis].astype(D.int32) if not isinstance(begin, np.ndarray) else int(begin[axis])
        x = x.take(at, axis) if not isinstance(at, int) else x.take(constant(np.int32(at)), axis)
    return x


def _reduced(function: Callable[..., Any]) -> Rule:
    return lambda o, x, axes: function(x, known(axes), bool(o.option(0)))


def _cast(o: Operator, x: Any) -> Any:
    return x.astype(from_any(o.kinds[0]))


RULES: Mapping[int, Rule] = {
    **FIRST,
    **RECURRENT,
    5: _depth_to_space,
    6: lambda o, x: x.astype(D.float32),
    7: lambda o, ids, table: ops.gather(table, ids, 0),
    11: _l2_normalised,
    13: _response_normalised,
    26: _space_to_depth,
    37: _batch_to_space,
    38: _space_to_batch,
    45: _strided,
    48: _top,
    53: _cast,
    56: lambda o, x, axis: ops.argmax(x, int(np.reshape(axis, -1)[0])).astype(from_any(o.kinds[0])),
    65: _part,
    79: lambda o, x, axis: ops.argmin(x, int(np.reshape(axis, -1)[0])).astype(from_any(o.kinds[0])),
    85: _one_hot,
    91: _reduced(lambda x, axes, keep: x.any(axes, keep)),
    93: lambda o, x: ops.zeros_like(x),
    94: _filled,
    100: _mirrored,
    102: _split,
    106: lambda o, *x: ops.addn(list(x)),
    107: lambda o, x, i: ops.gather_nd(x, i),
    109: lambda o, x: ops.nonzero(x),
    112: lambda o, x, lengths: ops.reverse_sequence(x, lengths, o.option(0, "<i"), o.option(1, "<i")),
    113: _diagonal,
    122: lambda o, i, updates, shape: ops.scatter_nd(i, updates, known(shape)),
    125: _sorted_segments,
    128: _summed_up,
    132: _conv_3d,
    140: _reduced(lambda x, axes, keep: x.all(axes, keep)),
    151: _updated,
    152: lambda o, x: ops.clamp(x, 0, 1),
    153: _segments(ops.unsorted_segment_prod),
    154: _segments(ops.unsorted_segment_max),
    155: _segments(ops.unsorted_segment_sum),
    156: lambda o, y, x: ops.atan2(y, x),
    157: _segments(ops.unsorted_segment_min),
    158: lambda o, x: ops.sign(x),
    160: lambda o, x, y: ops.bitwise_xor(x, y),
    161: lambda o, x, y: ops.bitwise_right_shift(x, y),
}
CONSTANTS: Mapping[int, tuple[int, ...]] = {
    **FIRST_CONSTANTS, 45: (3,), 65: (2,), 37: (1, 2), 38: (1, 2), 48: (1,), 79: (1,), 85: (1,), 91: (1,), 94: (0,),
    96: (0, 1, 2), 100: (1,), 102: (1, 2), 122: (2,), 125: (1,), 128: (1,), 140: (1,), 145: (0, 1), 153: (2,),
    154: (2,), 155: (2,), 157: (2,),
}  # fmt: skip
# Inputs that rules take as arrays where they are known, and as tensors where not.
WHERE_KNOWN: Mapping[int, tuple[int, ...]] = {45: (1, 2), 65: (1,)}
