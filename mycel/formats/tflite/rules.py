"""Import rules of TensorFlow Lite's operators, by Mycel's operations.

A rule is given the operator and its inputs: tensors of real numbers, constants that are sizes or
axes as NumPy arrays, None for what is absent. Images are (N, H, W, C).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.foundation.errors import Unsupported
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.tflite.schema import Operator

__all__ = ["CONSTANTS", "RULES", "Rule", "active", "first", "last", "pads_of", "sliced_by", "strided"]

Rule = Callable[..., Any]
_ACTIVATIONS: Mapping[int, Callable[[Any], Any]] = {
    0: lambda x: x,
    1: ops.relu,
    2: lambda x: ops.clamp(x, -1, 1),
    3: ops.relu6,
    4: ops.tanh,
}


def active(o: Operator, field: int, x: Any) -> Any:
    """Return values after the activation that an operator names in a field of its options."""
    code = o.option(field)
    if code not in _ACTIVATIONS:
        raise Unsupported(f"load: the activation {code} of an operator of TensorFlow Lite is not supported")
    return _ACTIVATIONS[code](x)


def _binary(function: Callable[[Any, Any], Any]) -> Rule:
    return lambda o, x, y: active(o, 0, function(x, y))


def _pads(size: int, kernel: int, stride: int, dilation: int, same: bool) -> tuple[int, int]:
    if not same:
        return 0, 0
    total = max((-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def pads_of(o: Operator, x: Any, kernel: Any, strides: Any, dilations: Any) -> tuple[tuple[int, int], ...]:
    """Return the padding of windows of `kernel` over an image `x` of an operator `o`, which are
    apart by `strides` and have `dilations` in them.
    """
    same = o.option(0) == 0
    return tuple(_pads(x.shape[1 + i], kernel[i], strides[i], dilations[i], same) for i in (0, 1))


def first(x: Any) -> Any:
    """Return images with channels in front of their sizes."""
    return ops.transpose(x, (0, 3, 1, 2))


def last(x: Any) -> Any:
    """Return images with channels after their sizes."""
    return ops.transpose(x, (0, 2, 3, 1))


def _convolved(x: Any, w: Any, bias: Any, same: bool, strides: Any, dilations: Any, groups: int) -> Any:
    pads = [p for i in (0, 1) for p in _pads(x.shape[1 + i], w.shape[2 + i], strides[i], dilations[i], same)]
    y = last(
        ops.conv2d(first(x), w, stride=strides, pad_mode="pad", padding=tuple(pads), dilation=dilations, groups=groups)
    )
    return y if bias is None else y + bias


def _conv(o: Operator, x: Any, w: Any, bias: Any = None) -> Any:
    w = ops.transpose(w, (0, 3, 1, 2))
    strides = o.option(2, "<i"), o.option(1, "<i")
    dilations = o.option(5, "<i", 1), o.option(4, "<i", 1)
    return active(o, 3, _convolved(x, w, bias, o.option(0) == 0, strides, dilations, x.shape[3] // w.shape[1]))


def _depthwise(o: Operator, x: Any, w: Any, bias: Any = None) -> Any:
    w = ops.transpose(w, (3, 0, 1, 2))
    strides = o.option(2, "<i"), o.option(1, "<i")
    dilations = o.option(6, "<i", 1), o.option(5, "<i", 1)
    return active(o, 4, _convolved(x, w, bias, o.option(0) == 0, strides, dilations, x.shape[3]))


def _conv_transposed(o: Operator, shape: Any, w: Any, x: Any, bias: Any = None) -> Any:
    size, kernel = [int(d) for d in shape], w.shape[1:3]
    strides = o.option(2, "<i"), o.option(1, "<i")
    pads = [_pads(size[1 + i], kernel[i], strides[i], 1, o.option(0) == 0) for i in (0, 1)]
    # Every element of x at its place among zeros, met by the turned kernel.
    wide = [(x.shape[1 + i] - 1) * strides[i] + 1 for i in (0, 1)]
    spread = _spread(first(x), strides)
    around = []
    for i in (0, 1):
        low = kernel[i] - 1 - pads[i][0]
        around.append((low, size[1 + i] + kernel[i] - 1 - wide[i] - low))
    (a, b), (c, d) = around
    spread = ops.pad(spread, (c, d, a, b))
    turned = ops.flip(ops.transpose(w, (0, 3, 1, 2)), (2, 3))
    y = last(ops.conv2d(spread, turned, pad_mode="valid"))
    return active(o, 3, y if bias is None else y + bias)


def _spread(x: Any, strides: Sequence[int]) -> Any:
    n, c, height, width = x.shape
    x = ops.pad(x.reshape((n, c, height, 1, width, 1)), (0, strides[1] - 1, 0, 0, 0, strides[0] - 1))
    x = x.reshape((n, c, height * strides[0], width * strides[1]))
    return x[:, :, : (height - 1) * strides[0] + 1, : (width - 1) * strides[1] + 1]


def _pool(o: Operator, x: Any, largest: bool) -> Any:
    strides, window = (o.option(2, "<i"), o.option(1, "<i")), (o.option(4, "<i"), o.option(3, "<i"))
    pads = [_pads(x.shape[1 + i], window[i], strides[i], 1, o.option(0) == 0) for i in (0, 1)]
    around = (*pads[1], *pads[0])
    y = first(x)
    if largest:
        y = ops.max_pool2d(ops.pad(y, around, value=-np.inf), window, strides)
    else:
        ones = ops.pad(ops.ones_like(y), around)
        y = ops.avg_pool2d(ops.pad(y, around), window, strides) / ops.avg_pool2d(ones, window, strides)
    return active(o, 5, last(y))


def _fully_connected(o: Operator, x: Any, w: Any, bias: Any = None) -> Any:
    if not o.option(2):
        x = x.reshape((-1, w.shape[1]))
    y = ops.matmul(x, ops.transpose(w, (1, 0)))
    return active(o, 0, y if bias is None else y + bias)


def known(values: Any) -> tuple[Any, ...]:
    """Return known `values` as numbers: ints, and symbols of open sizes."""
    return tuple(int(v) if isinstance(v, (int, np.integer)) else v for v in np.reshape(values, -1))


def _reduced(function: Callable[..., Any]) -> Rule:
    return lambda o, x, axes: function(x, known(axes), bool(o.option(0)))


def _pad(o: Operator, x: Any, pads: Any, value: Any = None) -> Any:
    flat = tuple(int(p) for pair in np.asarray(pads)[::-1] for p in pair)
    return ops.pad(x, flat, value=0.0 if value is None else float(np.asarray(value)))


def strided(o: Operator, x: Any, begin: Any, end: Any, strides: Any) -> Any:
    """Return what STRIDED_SLICE, with the masks of `o`, gives of a tensor or an array `x`: for each
    axis from `begin` to below `end` by `strides`.
    """
    begin_mask, end_mask, ellipsis, new, shrink = [o.option(k, "<i") for k in range(5)]
    index: list[Any] = []
    for i, (a, b, s) in enumerate(zip(*[np.reshape(v, -1).tolist() for v in (begin, end, strides)])):
        if ellipsis >> i & 1:
            index.append(...)
        elif new >> i & 1:
            index.append(None)
        elif shrink >> i & 1:
            index.append(a)
        else:
            index.append(slice(None if begin_mask >> i & 1 else a, None if end_mask >> i & 1 else b, s))
    return x[tuple(index)]


def sliced_by(o: Operator, x: Any, begin: Any, size: Any) -> Any:
    """Return what SLICE, an operator `o`, gives of a tensor or an array `x`: for each axis `size`
    entries from `begin` on, or all with -1.
    """
    pairs = zip(known(begin), known(size), x.shape)
    return x[tuple(slice(a, d if n == -1 else a + n) for a, n, d in pairs)]


def _resize(mode: str) -> Rule:
    def rule(o: Operator, x: Any, size: Any) -> Any:
        field = 2 if mode == "bilinear" else 0
        aligned, half = bool(o.option(field)), bool(o.option(field + 1))
        y = first(x)
        for axis, wanted in zip((2, 3), known(size)):
            y = _resized(y, axis, wanted, mode, aligned, half)
        return last(y)

    return rule


def _resized(x: Any, axis: int, wanted: int, mode: str, aligned: bool, half: bool) -> Any:
    """Return x with `wanted` places along an axis, which are read between those there are."""
    size = x.shape[axis]
    scale = (size - 1) / (wanted - 1) if aligned and wanted > 1 else size / wanted
    at = np.arange(wanted, dtype=np.float64) * scale
    if half:
        at = (np.arange(wanted) + 0.5) * scale - (0.5 if mode == "bilinear" else 0)
    if mode == "nearest":
        places = np.floor(at + 0.5) if aligned else np.floor(at)
        return x.take(_places(places, size), axis)
    low = np.floor(at)
    part = (at - low).astype(np.float32).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    a, b = [x.take(_places(low + k, size), axis) for k in (0, 1)]
    return a + (b - a) * constant(part)


def _places(at: Any, size: int) -> Any:
    return constant(np.clip(at, 0, size - 1).astype(np.int32))


def constant(array: Any) -> Any:
    """Return an array as a tensor."""
    return Tensor(np.asarray(array))


RULES: Mapping[int, Rule] = {
    0: _binary(lambda x, y: x + y),
    1: lambda o, x: _pool(o, x, False),
    2: lambda o, *x: active(o, 1, ops.concat(x, o.option(0, "<i"))),
    3: _conv,
    4: _depthwise,
    6: lambda o, x: x,
    8: lambda o, x: ops.floor(x),
    9: _fully_connected,
    14: lambda o, x: ops.sigmoid(x),
    17: lambda o, x: _pool(o, x, True),
    18: _binary(lambda x, y: x * y),
    19: lambda o, x: ops.relu(x),
    20: lambda o, x: ops.clamp(x, -1, 1),
    21: lambda o, x: ops.relu6(x),
    22: lambda o, x, shape=None: x.reshape(
        known(shape) if shape is not None else tuple(o.options.numbers(0) if o.options is not None else ())
    ),
    23: _resize("bilinear"),
    25: lambda o, x: ops.softmax(x * _real(o, 0), -1),
    28: lambda o, x: ops.tanh(x),
    34: _pad,
    36: lambda o, x, i: ops.gather(x, i, o.option(0, "<i"), o.option(1, "<i")),
    39: lambda o, x, order: ops.transpose(x, known(order)),
    40: _reduced(ops.mean),
    41: _binary(lambda x, y: x - y),
    42: _binary(lambda x, y: x / y),
    43: lambda o, x: x.squeeze(tuple(o.options.numbers(0)) if o.options is not None and o.options.numbers(0) else None),
    45: strided,
    47: lambda o, x: ops.exp(x),
    49: lambda o, axis, x: ops.split(x, x.shape[int(axis)] // o.option(0, "<i"), int(axis)),
    50: lambda o, x: ops.log_softmax(x, -1),
    54: lambda o, x, slope: ops.maximum(x, 0) + slope * ops.minimum(x, 0),
    55: lambda o, x, y: ops.maximum(x, y),
    57: lambda o, x, y: ops.minimum(x, y),
    58: lambda o, x, y: x < y,
    59: lambda o, x: -x,
    60: _pad,
    61: lambda o, x, y: x > y,
    62: lambda o, x, y: x >= y,
    63: lambda o, x, y: x <= y,
    64: lambda o, c, x, y: ops.where(c, x, y),
    65: sliced_by,
    66: lambda o, x: ops.sin(x),
    67: _conv_transposed,
    69: lambda o, x, counts: ops.tile(x, known(counts)),
    70: lambda o, x, axis: ops.expand_dims(x, int(axis)),
    71: lambda o, x, y: x == y,
    72: lambda o, x, y: x != y,
    73: lambda o, x: ops.log(x),
    74: _reduced(lambda x, axes, keep: x.sum(axes, keepdims=keep)),
    75: lambda o, x: ops.sqrt(x),
    76: lambda o, x: ops.rsqrt(x),
    78: lambda o, x, y: x**y,
    81: _reduced(lambda x, axes, keep: ops.prod(x, axes[0], keep)),
    82: _reduced(lambda x, axes, keep: ops.amax(x, axes, keep)),
    83: lambda o, *x: ops.stack(x, o.option(1, "<i")),
    84: lambda o, x, y: ops.logical_or(x, y),
    86: lambda o, x, y: ops.logical_and(x, y),
    87: lambda o, x: ops.logical_not(x),
    88: lambda o, x: ops.unstack(x, o.option(1, "<i")),
    89: _reduced(lambda x, axes, keep: ops.amin(x, axes, keep)),
    90: lambda o, x, y: ops.floor_div(x, y),
    92: lambda o, x: x * x,
    95: lambda o, x, y: ops.floor_mod(x, y),
    97: _resize("nearest"),
    98: lambda o, x: ops.leaky_relu(x, _real(o, 0)),
    99: lambda o, x, y: (x - y) * (x - y),
    101: lambda o, x: ops.abs(x),
    104: lambda o, x: ops.ceil(x),
    105: lambda o, x, axes: ops.flip(x, known(axes)),
    108: lambda o, x: ops.cos(x),
    111: lambda o, x: ops.elu(x),
    114: lambda o, x: x,
    116: lambda o, x: ops.round(x),
    117: lambda o, x: x * ops.relu6(x + 3) / 6,
    123: lambda o, c, x, y: ops.where(c, x, y),
    126: lambda o, x, y: ops.matmul(
        ops.swapaxes(x, -1, -2) if o.option(0) else x, ops.swapaxes(y, -1, -2) if o.option(1) else y
    ),
    130: lambda o, x, shape: ops.broadcast_to(x, known(shape)),
    150: lambda o, x: ops.gelu(x, "tanh" if o.option(0) else "none"),
}
# The inputs of operators, by number, that say sizes, axes or places, and have to be constants.
CONSTANTS: Mapping[int, tuple[int, ...]] = {
    22: (1,), 23: (1,), 34: (1,), 39: (1,), 40: (1,), 45: (1, 2, 3), 49: (0,), 56: (1,), 60: (1, 2), 65: (1, 2),
    67: (0,), 69: (1,), 70: (1,), 74: (1,), 81: (1,), 82: (1,), 89: (1,), 97: (1,), 105: (1,), 130: (1,),
}  # fmt: skip


def _real(o: Operator, field: int) -> float:
    return float(struct.unpack("<f", struct.pack("<i", o.option(field, "<i")))[0])
