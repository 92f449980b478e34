"""Convolution in 1 to 3 spatial dimensions, and its two derivatives.

With x (N, C, *spatial), w (O, C / groups, *kernel), and y (N, O, *out), as cross-correlation:

    y[n, o, p] = sum_{c, k}  x[n, c, p * stride + k * dilation - low] * w[o, c, k]

where c runs over the channels of the group of o and x is 0 outside. `conv` is linear in x and in w;
`conv_grad_input` and `conv_grad_weight` are its transposes in one with the other fixed. Each is
bilinear in its operands, so the derivatives of each are the other two, to any order. 16-bit floats
accumulate in float32. Batching needs no new operation: a batched image axis folds into N, a batched
weight axis into the groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product as positions_of
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike, InconclusiveDimension, product
from mycel._src.compiler.ir.graph import Node, Number
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, constant, need_kind, register, same_dtype
from mycel._src.compiler.prims.convolution.conv_factors import (
    conv_factors,
    conv_grad_input_factors,
    conv_grad_weight_factors,
)
from mycel._src.compiler.prims.elementwise_records import FLOATS
from mycel._src.compiler.prims.matrix_product import matmul, swap_last
from mycel._src.foundation.errors import ShapeError

__all__ = ["conv", "conv_grad_input", "conv_grad_weight", "window_output"]

Shape = tuple[DimLike, ...]
Padding = tuple[tuple[DimLike, DimLike], ...]

_ALL = (slice(None), slice(None))


def window_output(
    name: str,
    spatial: Shape,
    window: Shape,
    strides: tuple[int, ...],
    padding: Padding,
    dilation: tuple[int, ...] | None = None,
) -> Shape:
    """Return how many positions a window takes along each spatial axis.

    `spatial` and `window` are the sizes of the input and of the window, `strides` and `dilation`
    (None: 1) the steps between positions and within the window, `padding` the (low, high) amounts,
    all one entry for each spatial axis. Raises ShapeError, with the operation's `name` in front,
    where there is no position.
    """
    rank = len(spatial)
    dilation = (1,) * rank if dilation is None else dilation
    for word, given in (("window", window), ("strides", strides), ("padding", padding), ("dilation", dilation)):
        if len(given) != rank:
            raise ShapeError(f"{name}: {word} {given} has {len(given)} entries for {rank} spatial dimensions")
    result = []
    for axis, (d, k, s, pads, step) in enumerate(zip(spatial, window, strides, padding, dilation)):
        if s < 1 or step < 1:
            raise ShapeError(f"{name}: stride {s} and dilation {step} of spatial axis {axis} must be at least 1")
        if len(pads) != 2 or _below(pads[0], 0) or _below(pads[1], 0):
            raise ShapeError(
                f"{name}: padding {pads} of spatial axis {axis} must be two sizes (low, high) that are not negative"
            )
        if _below(k, 1):
            raise ShapeError(f"{name}: the window {window} must have at least 1 position on spatial axis {axis}")
        span, room = (k - 1) * step + 1, d + pads[0] + pads[1]
        if _below(room, span):
            raise ShapeError(
                f"{name}: a window that spans {span} does not fit in spatial axis {axis} of size {d} with padding "
                f"{pads}"
            )
        result.append((room - span) // s + 1)
    return tuple(result)


def _below(value: DimLike, limit: DimLike) -> bool:
    try:
        return bool(value < limit)
    except InconclusiveDimension:
        return False


def _check(
    name: str, x: TensorType, w: TensorType, strides: Any, padding: Any, dilation: Any, groups: DimLike
) -> TensorType:
    """Return the type of the convolution of `x` with `w`."""
    need_kind(name, "f", x, w)
    dtype = same_dtype(name, x, w)
    if not 3 <= x.rank <= 5:
        raise ShapeError(f"{name}: the input {x} must be (N, C, *spatial) with 1 to 3 spatial dimensions")
    if w.rank != x.rank:
        raise ShapeError(
            f"{name}: the weight {w} must have {x.rank} dimensions (O, C / groups, *kernel), as the input {x}"
        )
    if _below(groups, 1):
        raise ShapeError(f"{name}: groups must be at least 1, not {groups}")
    if _differs(w.shape[1] * groups, x.shape[1]):
        # Convolutions of one dimension come as those of two, with a height of 1.
        flat = x.rank == 4 and x.shape[2] == w.shape[2] == 1
        order = (0, 2, 1) if flat else (0, x.rank - 1, *range(1, x.rank - 1))
        last = not _differs(w.shape[1] * groups, x.shape[-1])
        raise ShapeError(
            f"{name}: {x.shape[1]} input channels in {groups} groups need a weight of shape (O, C / groups, *kernel), "
            f"not {w}" + (f"; the channels of the input seem to be last: transpose it by {order}" if last else "")
        )
    if isinstance(groups, int) and _differs(w.shape[0] % groups, 0):
        raise ShapeError(f"{name}: {w.shape[0]} output channels do not divide into {groups} groups")
    return tensor_type(
        (x.shape[0], w.shape[0], *window_output(name, x.shape[2:], w.shape[2:], strides, padding, dilation)), dtype
    )


def _differs(a: DimLike, b: DimLike) -> bool:
    """Return whether two sizes are different for certain."""
    try:
        return bool(a < b) or bool(a > b)
    except InconclusiveDimension:
        return False


def _check_cotangent(name: str, ct: TensorType, wanted: TensorType) -> None:
    same = ct.rank == wanted.rank and not any(_differs(a, b) for a, b in zip(ct.shape, wanted.shape))
    if not same or ct.dtype is not wanted.dtype:
        raise ShapeError(f"{name}: the cotangent is {ct}, but the convolution gives {wanted}")


def _infer(
    x: TensorType, w: TensorType, *, strides: Any, padding: Padding, dilation: Any, groups: DimLike
) -> TensorType:
    return _check("conv", x, w, strides, padding, dilation, groups)


def _grad_input_infer(
    ct: TensorType, w: TensorType, *, input_shape: Shape, strides: Any, padding: Padding, dilation: Any, groups: DimLike
) -> TensorType:
    x = tensor_type(tuple(input_shape), w.dtype)
    _check_cotangent("conv_grad_input", ct, _check("conv_grad_input", x, w, strides, padding, dilation, groups))
    return x


def _grad_weight_infer(
    x: TensorType,
    ct: TensorType,
    *,
    weight_shape: Shape,
    strides: Any,
    padding: Padding,
    dilation: Any,
    groups: DimLike,
) -> TensorType:
    w = tensor_type(tuple(weight_shape), x.dtype)
    _check_cotangent("conv_grad_weight", ct, _check("conv_grad_weight", x, w, strides, padding, dilation, groups))
    return w


# NumPy references: one matrix product for each position of the kernel, summed.


def _wide(a: Any) -> Any:
    return a.astype(np.float32) if a.dtype.itemsize == 2 else a


def _taps(kernel: Any, out: Any, strides: Any, dilation: Any) -> Any:
    """Return, for each kernel position, the slices of the padded input that it meets."""
    for k in np.ndindex(*kernel):
        yield k, tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, n, s, d in zip(k, out, strides, dilation))


def _padded(x: Any, padding: Any) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *padding))


def _grouped(a: Any, groups: int) -> Any:
    """Return (N, G * C, *spatial) as (N, G, C, positions)."""
    return a.reshape(a.shape[0], groups, a.shape[1] // groups, -1 if a.size else math.prod(a.shape[2:]))


def _weights(w: Any, groups: int, k: Any) -> Any:
    return w[_ALL + k].reshape(groups, w.shape[0] // groups, w.shape[1])


def _reference(x: Any, w: Any, *, strides: Any, padding: Any, dilation: Any, groups: int) -> Any:
    kind = x.dtype
    out = window_output("conv", x.shape[2:], w.shape[2:], strides, padding, dilation)
    wide, weight = _padded(_wide(x), padding), _wide(w)
    total = np.zeros((x.shape[0], groups, w.shape[0] // groups, int(product(out))), wide.dtype)
    for k, where in _taps(w.shape[2:], out, strides, dilation):
        total += np.matmul(_weights(weight, groups, k), _grouped(wide[_ALL + where], groups))
    return total.reshape(x.shape[0], w.shape[0], *out).astype(kind)


def _grad_input_reference(
    ct: Any, w: Any, *, input_shape: Any, strides: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    kind = ct.dtype
    flat, weight = _grouped(_wide(ct), groups), _wide(w)
    total = _padded(np.zeros(input_shape, flat.dtype), padding)
    for k, where in _taps(w.shape[2:], ct.shape[2:], strides, dilation):
        part = np.matmul(np.swapaxes(_weights(weight, groups, k), 1, 2), flat)
        total[_ALL + where] += part.reshape(ct.shape[0], input_shape[1], *ct.shape[2:])
    inner = tuple(slice(lo, lo + d) for (lo, _), d in zip(padding, input_shape[2:]))
    return total[_ALL + inner].astype(kind)


def _grad_weight_reference(
    x: Any, ct: Any, *, weight_shape: Any, strides: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    kind = x.dtype
    wide, flat = _padded(_wide(x), padding), _grouped(_wide(ct), groups)
    total = np.zeros(weight_shape, wide.dtype)
    for k, where in _taps(weight_shape[2:], ct.shape[2:], strides, dilation):
        patch = _grouped(wide[_ALL + where], groups)
        part = np.matmul(flat, np.swapaxes(patch, 2, 3)).sum(axis=0)
        total[_ALL + k] = part.reshape(weight_shape[0], weight_shape[1])
    return total.astype(kind)


# Derivatives.


def _vjp(ct: Node, out: Node, x: Node, w: Node, **p: Any) -> tuple[Node, Node]:
    return conv_grad_input(ct, w, input_shape=x.shape, **p), conv_grad_weight(x, ct, weight_shape=w.shape, **p)


def _grad_input_vjp(c: Node, out: Node, ct: Node, w: Node, *, input_shape: Shape, **p: Any) -> tuple[Node, Node]:
    return conv(c, w, **p), conv_grad_weight(c, ct, weight_shape=w.shape, **p)


def _grad_weight_vjp(c: Node, out: Node, x: Node, ct: Node, *, weight_shape: Shape, **p: Any) -> tuple[Node, Node]:
    return conv_grad_input(ct, c, input_shape=x.shape, **p), conv(x, c, **p)


# Batching. An image is (N, C, *spatial), a weight (G * O, C, *kernel); `axis` is where the batch
# lies.


def _fold_images(x: Node, axis: int) -> Node:
    """Return `x` with its batch axis joined with N."""
    x = S.move_axis(x, axis, 0)
    return S.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))


def _unfold_images(y: Node, size: DimLike) -> Node:
    return S.reshape(y, (size, y.shape[0] // size, *y.shape[1:]))


def _fold_channels(x: Node, axis: int, groups: DimLike, outer: bool) -> Node:
    """Return (B, N, G * C, ...) with the batch joined with the channels.

    The result is (N, B * G * C, ...) where `outer`, else (N, G * B * C, ...).
    """
    x = S.move_axis(x, axis, 0)
    size, n, c, rest = x.shape[0], x.shape[1], x.shape[2], tuple(x.shape[3:])
    if outer:
        return S.reshape(S.move_axis(x, 0, 1), (n, size * c, *rest))
    x = S.reshape(x, (size, n, groups, c // groups, *rest))
    return S.reshape(S.move_axis(x, 0, 2), (n, size * c, *rest))


def _unfold_channels(y: Node, size: DimLike, groups: DimLike, outer: bool) -> Node:
    n, c, rest = y.shape[0], y.shape[1] // size, tuple(y.shape[2:])
    if outer:
        return S.move_axis(S.reshape(y, (n, size, c, *rest)), 1, 0)
    y = S.move_axis(S.reshape(y, (n, groups, size, c // groups, *rest)), 2, 0)
    return S.reshape(y, (size, n, c, *rest))


def _fold_weight_outputs(w: Node, axis: int, groups: DimLike, outer: bool) -> Node:
    """Return (B, G * O, C, *kernel) with the batch joined with the output channels.

    The first axis is B * G * O where `outer`, else G * B * O.
    """
    w = S.move_axis(w, axis, 0)
    size, o, rest = w.shape[0], w.shape[1], tuple(w.shape[2:])
    if not outer:
        w = S.move_axis(S.reshape(w, (size, groups, o // groups, *rest)), 0, 1)
    return S.reshape(w, (size * o, *rest))


def _unfold_weight_outputs(w: Node, size: DimLike, groups: DimLike, outer: bool) -> Node:
    o, rest = w.shape[0] // size, tuple(w.shape[1:])
    if outer:
        return S.reshape(w, (size, o, *rest))
    return S.reshape(S.move_axis(S.reshape(w, (groups, size, o // groups, *rest)), 1, 0), (size, o, *rest))


def _batch(size: DimLike, values: Sequence[Node], axes: Any, *, groups: DimLike, **p: Any) -> tuple[Node, int]:
    (x, w), (ax, aw) = values, axes
    if aw is None:
        return _unfold_images(conv(_fold_images(x, ax), w, groups=groups, **p), size), 0
    both = ax is not None
    x = _fold_channels(x, ax, groups, True) if both else x
    y = conv(x, _fold_weight_outputs(w, aw, groups, both), groups=size * groups if both else groups, **p)
    return _unfold_channels(y, size, groups, both), 0


def _grad_input_batch(
    size: DimLike, values: Sequence[Node], axes: Any, *, input_shape: Shape, groups: DimLike, **p: Any
) -> tuple[Node, int]:
    (ct, w), (ac, aw) = values, axes
    n, c, spatial = input_shape[0], input_shape[1], tuple(input_shape[2:])
    if aw is None:
        dx = conv_grad_input(_fold_images(ct, ac), w, input_shape=(size * n, c, *spatial), groups=groups, **p)
        return _unfold_images(dx, size), 0
    if ac is None:
        w = S.move_axis(w, aw, 1)
        w = S.reshape(w, (w.shape[0], size * w.shape[2], *w.shape[3:]))
        dx = conv_grad_input(ct, w, input_shape=(n, size * c, *spatial), groups=groups, **p)
        return _unfold_channels(dx, size, groups, False), 0
    ct, w = _fold_channels(ct, ac, groups, True), _fold_weight_outputs(w, aw, groups, True)
    dx = conv_grad_input(ct, w, input_shape=(n, size * c, *spatial), groups=size * groups, **p)
    return _unfold_channels(dx, size, groups, True), 0


def _grad_weight_batch(
    size: DimLike, values: Sequence[Node], axes: Any, *, weight_shape: Shape, groups: DimLike, **p: Any
) -> tuple[Node, int]:
    (x, ct), (ax, ac) = values, axes
    o, c, kernel = weight_shape[0], weight_shape[1], tuple(weight_shape[2:])
    if ac is None:
        x = _fold_channels(x, ax, groups, False)
        dw = conv_grad_weight(x, ct, weight_shape=(o, size * c, *kernel), groups=groups, **p)
        return S.reshape(dw, (o, size, c, *kernel)), 1
    both = ax is not None
    x = _fold_channels(x, ax, groups, True) if both else x
    ct = _fold_channels(ct, ac, groups, both)
    dw = conv_grad_weight(x, ct, weight_shape=(size * o, c, *kernel), groups=size * groups if both else groups, **p)
    return _unfold_weight_outputs(dw, size, groups, both), 0


# Expansions into one matrix product over patches, for engines without convolutions.


def _corners(kernel: Shape, out: Shape, strides: Any, dilation: Any) -> list[tuple[Shape, Shape]]:
    """Return, for each kernel position, where the patch it meets starts and stops when padded."""
    found = []
    for k in positions_of(*[range(int(n)) for n in kernel]):
        starts = tuple(i * d for i, d in zip(k, dilation))
        found.append((starts, tuple(a + (n - 1) * s + 1 for a, n, s in zip(starts, out, strides))))
    return found


def _patches(x: Node, kernel: Shape, out: Shape, strides: Any, padding: Any, dilation: Any, groups: DimLike) -> Node:
    """Return the patches that the kernel positions meet, joined.

    The shape is (N, G, C / G * kernel, positions).
    """
    low, high = (0, 0, *(a for a, _ in padding)), (0, 0, *(b for _, b in padding))
    wide, n, c = S.pad(x, 0, low, high), x.shape[0], x.shape[1]
    steps = (1, 1, *strides)
    parts = [
        S.reshape(S.slice_(wide, (0, 0, *a), (n, c, *b), steps), (n, groups, c // groups, 1, product(out)))
        for a, b in _corners(kernel, out, strides, dilation)
    ]
    return S.reshape(S.concat(parts, 3), (n, groups, (c // groups) * len(parts), product(out)))


def _matrix(w: Node, groups: DimLike) -> Node:
    return S.reshape(w, (groups, w.shape[0] // groups, product(w.shape[1:])))


def _expand(x: Node, w: Node, *, strides: Any, padding: Any, dilation: Any, groups: DimLike) -> Node:
    out = window_output("conv", x.shape[2:], w.shape[2:], strides, padding, dilation)
    patches = _patches(x, w.shape[2:], out, strides, padding, dilation, groups)
    return S.reshape(matmul(_matrix(w, groups), patches), (x.shape[0], w.shape[0], *out))


def _grad_input_expand(
    ct: Node, w: Node, *, input_shape: Shape, strides: Any, padding: Any, dilation: Any, groups: DimLike
) -> Node:
    n, c, out, kernel = input_shape[0], input_shape[1], tuple(ct.shape[2:]), tuple(w.shape[2:])
    flat = S.reshape(ct, (n, groups, w.shape[0] // groups, product(out)))
    columns = matmul(swap_last(_matrix(w, groups)), flat)
    corners = _corners(kernel, out, strides, dilation)
    columns = S.reshape(columns, (n, c, len(corners), *out))
    interior = (0, 0, *(s - 1 for s in strides))
    total: Node | None = None
    for i, (a, b) in enumerate(corners):
        part = S.reshape(S.slice_axis(columns, 2, i, i + 1), (n, c, *out))
        low = (0, 0, *(start - lo for start, (lo, _) in zip(a, padding)))
        high = (0, 0, *(d + lo - stop for d, (lo, _), stop in zip(input_shape[2:], padding, b)))
        part = S.pad(part, 0, low, high, interior)
        total = part if total is None else E.add(total, part)
    assert total is not None
    return total


def _grad_weight_expand(
    x: Node, ct: Node, *, weight_shape: Shape, strides: Any, padding: Any, dilation: Any, groups: DimLike
) -> Node:
    out = tuple(ct.shape[2:])
    if any(isinstance(d, int) and d == 0 for d in (x.shape[0], *weight_shape)):
        return S.broadcast_to(constant(0, x.dtype), tuple(weight_shape))
    patches = _patches(x, tuple(weight_shape[2:]), out, strides, padding, dilation, groups)
    flat = S.reshape(ct, (ct.shape[0], groups, ct.shape[1] // groups, product(out)))
    products = matmul(flat, swap_last(patches))
    return S.reshape(R.reduce_sum(products, axes=(0,), keepdims=False), tuple(weight_shape))


def _case(x: Shape, w: Shape, s: Any, p: Any, d: Any, g: int) -> tuple[Shape, Shape, Shape, dict[str, Any]]:
    rank = len(x) - 2
    strides, dilation = (s,) * rank, (d,) * rank
    padding = p if isinstance(p, tuple) else ((p, p),) * rank
    out = window_output("conv", x[2:], w[2:], strides, padding, dilation)
    return x, w, (x[0], w[0], *out), {"strides": strides, "padding": padding, "dilation": dilation, "groups": g}


_CASES = (
    _case((2, 3, 5), (4, 3, 3), 1, 1, 1, 1),
    _case((1, 4, 7), (6, 2, 2), 2, ((0, 1),), 2, 2),
    _case((2, 2, 5, 6), (3, 2, 3, 2), 2, ((1, 0), (2, 1)), 1, 1),
    _case((2, 4, 6, 5), (4, 1, 3, 3), 1, 1, 1, 4),
    _case((1, 4, 7, 7), (4, 2, 2, 3), 2, 2, 2, 2),
    _case((1, 2, 3, 4, 3), (2, 2, 2, 2, 2), 1, ((0, 1), (1, 0), (0, 0)), 1, 1),
    _case((1, 3, 4, 4), (2, 3, 1, 1), 3, 0, 1, 1),
    _case((0, 2, 4), (2, 2, 3), 1, 0, 1, 1),
)


def _work(image: TensorType, weights: TensorType, number: Number) -> int:
    """Return the number of floating-point operations of a convolution.

    Every weight meets every position of the image that has its output channel.
    """
    return 2 * number(weights.size) * number(image.size) // number(image.shape[1])


conv: Primitive = register(
    Primitive(
        "conv",
        _infer,
        _reference,
        _vjp,
        _batch,
        _expand,
        samples=tuple(Sample((x, w), p) for x, w, _, p in _CASES),
        dtypes=FLOATS,
        rounding=Rounding.ONCE,
        work=lambda node, number: _work(node.type, node.inputs[1].type, number),
        factors=conv_factors,
        doc="Cross-correlation of (N, C, *spatial) with (O, C / groups, *kernel).",
    )
)
conv_grad_input: Primitive = register(
    Primitive(
        "conv_grad_input",
        _grad_input_infer,
        _grad_input_reference,
        _grad_input_vjp,
        _grad_input_batch,
        _grad_input_expand,
        samples=tuple(Sample((y, w), {"input_shape": x, **p}) for x, w, y, p in _CASES),
        dtypes=FLOATS,
        rounding=Rounding.ONCE,
        work=lambda node, number: _work(node.inputs[0].type, node.inputs[1].type, number),
        factors=conv_grad_input_factors,
        doc="The transpose of conv in its input: a transposed convolution of the cotangent with the weight.",
    )
)
conv_grad_weight: Primitive = register(
    Primitive(
        "conv_grad_weight",
        _grad_weight_infer,
        _grad_weight_reference,
        _grad_weight_vjp,
        _grad_weight_batch,
        _grad_weight_expand,
        samples=tuple(Sample((x, y), {"weight_shape": w, **p}) for x, w, y, p in _CASES),
        dtypes=FLOATS,
        rounding=Rounding.ONCE,
        work=lambda node, number: _work(node.inputs[1].type, node.type, number),
        factors=conv_grad_weight_factors,
        doc="The transpose of conv in its weight: the correlation of the input with the cotangent.",
    )
)
