"""Windows that slide over the spatial axes of (N, C, *spatial): sums, extremes and their positions.

Window position p covers the input positions ``p * stride - low + k`` for 0 <= k < window. In
`window_sum` padding counts as 0; in `window_max` it is lower than every value, and each window must
meet the input, so padding is smaller than the window. `window_argmax` numbers the places of a
window in row-major order. With that index fixed, `window_gather`, which reads the named place, and
`window_scatter`, which adds to it, are linear and each other's transposes; so all derivatives of
`window_max` consist of them. A place in the padding reads 0 and ignores additions. The derivative
of a sum is again a sum, over the cotangent with zeros between its elements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType, tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import Primitive, Rounding, Sample, need_kind, register
from mycel._src.compiler.prims.convolution.conv import (
    _ALL,
    _corners,
    _differs,
    _fold_images,
    _taps,
    _unfold_images,
    window_output,
)
from mycel._src.compiler.prims.convolution.conv_factors import window_factors
from mycel._src.compiler.prims.elementwise_records import NUMBERS
from mycel._src.foundation.dtype import DType, bool_, float32, int32
from mycel._src.foundation.errors import ShapeError

__all__ = ["window_argmax", "window_gather", "window_max", "window_scatter", "window_spread", "window_sum"]

Shape = tuple[DimLike, ...]
Padding = tuple[tuple[DimLike, DimLike], ...]


def _output(name: str, x: Shape, window: Any, strides: Any, padding: Padding, inside: bool) -> Shape:
    if len(x) < 3:
        raise ShapeError(f"{name}: the input must be (N, C, *spatial), not of shape {list(x)}")
    out = window_output(name, x[2:], window, strides, padding)
    for axis, (k, pads) in enumerate(zip(window, padding)):
        if inside and any(isinstance(p, int) and p >= k for p in pads):
            raise ShapeError(f"{name}: padding {pads} of spatial axis {axis} must be smaller than the window, {k}")
    return (x[0], x[1], *out)


def lowest(dtype: DType) -> Any:
    """Return the lowest value of an element type."""
    if dtype.is_floating:
        return -np.inf
    return int(np.iinfo(dtype.numpy).min)


def _padded(x: Any, padding: Any, value: Any) -> Any:
    return np.pad(x, ((0, 0), (0, 0), *padding), constant_values=value)


def _views(x: Any, window: Any, strides: Any, padding: Any, value: Any) -> Any:
    """Return (places of the window, N, C, *out): the elements that each place meets."""
    out = window_output("window", x.shape[2:], window, strides, padding)
    wide = _padded(x, padding, value)
    taps = _taps(window, out, strides, (1,) * len(window))
    return np.stack([wide[_ALL + where] for _, where in taps])


def _parts(x: Node, window: Any, strides: Any, padding: Padding, value: Any) -> list[Node]:
    """Return the elements that each place of the window meets, in one node for each place."""
    out = window_output("window", x.shape[2:], window, strides, padding)
    wide = S.pad(x, value, (0, 0, *(a for a, _ in padding)), (0, 0, *(b for _, b in padding)))
    corners = _corners(window, out, strides, (1,) * len(window))
    return [S.slice_(wide, (0, 0, *a), (*x.shape[:2], *b), (1, 1, *strides)) for a, b in corners]


# Sums.


def _sum_infer(x: TensorType, *, window: Any, strides: Any, padding: Padding) -> TensorType:
    need_kind("window_sum", "fiu", x)
    return x.with_shape(_output("window_sum", x.shape, window, strides, padding, False))


def _sum_reference(x: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    wide = x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
    with np.errstate(all="ignore"):
        return _views(wide, window, strides, padding, 0).sum(axis=0, dtype=wide.dtype).astype(x.dtype)


def _sum_expand(x: Node, *, window: Any, strides: Any, padding: Padding) -> Node:
    wide = E.cast(x, dtype=float32) if x.dtype.is_floating and x.dtype.itemsize == 2 else x
    total = _fold(E.add, _parts(wide, window, strides, padding, 0))
    return total if total.dtype is x.dtype else E.cast(total, dtype=x.dtype)


def _fold(function: Callable[..., Node], parts: Sequence[Node]) -> Node:
    total = parts[0]
    for part in parts[1:]:
        total = function(total, part)
    return total


def window_spread(ct: Node, *, input_shape: Shape, window: Any, strides: Any, padding: Padding) -> Node:
    """Return the transpose of `window_sum`.

    Each value of `ct` is added to every position of an input of `input_shape` that its `window`
    covers; `strides` and `padding` are those of the sum.
    """
    sizes = list(zip(input_shape[2:], ct.shape[2:], window, strides, padding))
    low = (0, 0, *(k - 1 - lo for _, _, k, _, (lo, _) in sizes))
    high = (0, 0, *(d - 1 + lo - (n - 1) * s for d, n, _, s, (lo, _) in sizes))
    wide = S.pad(ct, 0, low, high, (0, 0, *(s - 1 for s in strides)))
    rank = len(strides)
    return window_sum(wide, window=window, strides=(1,) * rank, padding=((0, 0),) * rank)


def _sum_vjp(ct: Node, out: Node, x: Node, **p: Any) -> tuple[Node | None]:
    return (window_spread(ct, input_shape=x.shape, **p),)


# Extremes.


def _max_infer(x: TensorType, *, window: Any, strides: Any, padding: Padding) -> TensorType:
    need_kind("window_max", "fiu", x)
    return x.with_shape(_output("window_max", x.shape, window, strides, padding, True))


def _argmax_infer(x: TensorType, *, window: Any, strides: Any, padding: Padding) -> TensorType:
    need_kind("window_argmax", "fiu", x)
    if all(type(k) is int for k in window) and math.prod(window) > S.FAR:
        raise ShapeError(f"window_argmax: a window of {window} has more than {S.FAR} places")
    return tensor_type(_output("window_argmax", x.shape, window, strides, padding, True), int32)


def _max_reference(x: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    return _views(x, window, strides, padding, _lowest_of(x)).max(axis=0)


def _lowest_of(x: Any) -> Any:
    return np.iinfo(x.dtype).min if x.dtype.kind in "iu" else x.dtype.type(-np.inf)


def _argmax_reference(x: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    views = _views(x, window, strides, padding, _lowest_of(x))
    # An input may be as low as padding, so what is padding is asked of a mask.
    real = _views(np.ones(x.shape, np.bool_), window, strides, padding, False)
    best = np.where(real, views == views.max(axis=0), False) | (views != views)
    return best.argmax(axis=0).astype(np.int32)


def _max_expand(x: Node, *, window: Any, strides: Any, padding: Padding) -> Node:
    return _fold(E.maximum, _parts(x, window, strides, padding, lowest(x.dtype)))


def _argmax_expand(x: Node, *, window: Any, strides: Any, padding: Padding) -> Node:
    parts = _parts(x, window, strides, padding, lowest(x.dtype))
    ones = S.full((1, 1, *x.shape[2:]), 1, bool_)
    real = _parts(ones, window, strides, padding, False)
    best, found = parts[0], S.full(parts[0].shape, 0, int32)
    known = S.broadcast_to(real[0], best.shape)
    for i, (part, inside) in enumerate(zip(parts[1:], real[1:]), start=1):
        better = E.logical_or(E.gt(part, best), E.logical_not(known))
        if x.dtype.is_floating:
            better = E.logical_or(better, E.logical_and(E.is_nan(part), E.logical_not(E.is_nan(best))))
        better = E.logical_and(better, inside)
        best, found = E.select(better, part, best), E.select(better, i, found)
        known = E.logical_or(known, inside)
    return found


def _max_vjp(ct: Node, out: Node, x: Node, **p: Any) -> tuple[Node | None]:
    return (window_scatter(ct, window_argmax(x, **p), input_shape=x.shape, **p),)


# Moves along the index of an extreme.


def _index_check(name: str, index: TensorType, out: Shape) -> None:
    if index.dtype is not int32:
        raise TypeError(f"{name}: the index must be int32, as window_argmax gives it, not {index.dtype.name}")
    if index.rank != len(out) or any(_differs(a, b) for a, b in zip(index.shape, out)):
        raise ShapeError(f"{name}: the index is {index}, but the windows are {list(out)}")


def _scatter_infer(
    ct: TensorType, index: TensorType, *, input_shape: Shape, window: Any, strides: Any, padding: Padding
) -> TensorType:
    need_kind("window_scatter", "fiuc", ct)
    out = _output("window_scatter", tuple(input_shape), window, strides, padding, True)
    _index_check("window_scatter", index, out)
    if ct.rank != len(out) or any(_differs(a, b) for a, b in zip(ct.shape, out)):
        raise ShapeError(f"window_scatter: the cotangent is {ct}, but the windows are {list(out)}")
    return ct.with_shape(tuple(input_shape))


def _gather_infer(x: TensorType, index: TensorType, *, window: Any, strides: Any, padding: Padding) -> TensorType:
    out = _output("window_gather", x.shape, window, strides, padding, True)
    _index_check("window_gather", index, out)
    return x.with_shape(out)


def _scatter_reference(ct: Any, index: Any, *, input_shape: Any, window: Any, strides: Any, padding: Any) -> Any:
    wide = ct.astype(np.float32) if ct.dtype.itemsize == 2 and ct.dtype.kind not in "iu" else ct
    total = _padded(np.zeros(input_shape, wide.dtype), padding, 0)
    for i, (_, where) in enumerate(_taps(window, ct.shape[2:], strides, (1,) * len(window))):
        total[_ALL + where] += np.where(index == i, wide, 0).astype(wide.dtype)
    inner = tuple(slice(lo, lo + d) for (lo, _), d in zip(padding, input_shape[2:]))
    return total[_ALL + inner].astype(ct.dtype)


def _gather_reference(x: Any, index: Any, *, window: Any, strides: Any, padding: Any) -> Any:
    views = _views(x, window, strides, padding, 0)
    return np.take_along_axis(views, index[None].astype(np.int64), axis=0)[0]


def _scatter_expand(ct: Node, index: Node, *, input_shape: Shape, window: Any, strides: Any, padding: Padding) -> Node:
    wide = E.cast(ct, dtype=float32) if ct.dtype.is_floating and ct.dtype.itemsize == 2 else ct
    corners = _corners(window, tuple(ct.shape[2:]), strides, (1,) * len(window))
    parts = []
    for i, (a, b) in enumerate(corners):
        low = (0, 0, *(start - lo for start, (lo, _) in zip(a, padding)))
        high = (0, 0, *(d + lo - stop for d, (lo, _), stop in zip(input_shape[2:], padding, b)))
        parts.append(S.pad(E.select(E.eq(index, i), wide, 0), 0, low, high, (0, 0, *(s - 1 for s in strides))))
    total = _fold(E.add, parts)
    return total if total.dtype is ct.dtype else E.cast(total, dtype=ct.dtype)


def _gather_expand(x: Node, index: Node, *, window: Any, strides: Any, padding: Padding) -> Node:
    parts = _parts(x, window, strides, padding, 0)
    result = parts[0]
    for i, part in enumerate(parts[1:], start=1):
        result = E.select(E.eq(index, i), part, result)
    return result


def _scatter_vjp(
    c: Node, out: Node, ct: Node, index: Node, *, input_shape: Shape, **p: Any
) -> tuple[Node | None, None]:
    return window_gather(c, index, **p), None


def _gather_vjp(ct: Node, out: Node, x: Node, index: Node, **p: Any) -> tuple[Node | None, None]:
    return window_scatter(ct, index, input_shape=x.shape, **p), None


# Batching: everything folds into N.


def _batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def rule(size: DimLike, values: Sequence[Node], axes: Any, *, input_shape: Shape | None = None, **p: Any) -> Any:
        folded = [_fold_images(*_batched(v, a, size)) for v, a in zip(values, axes)]
        if input_shape is not None:
            p["input_shape"] = (size * input_shape[0], *input_shape[1:])
        return _unfold_images(primitive()(*folded, **p), size), 0

    return rule


def _batched(value: Node, axis: int | None, size: DimLike) -> tuple[Node, int]:
    return (S.broadcast_to(value, (size, *value.shape)), 0) if axis is None else (value, axis)


def _case(x: Shape, k: Any, s: Any, p: Any) -> tuple[Shape, Shape, dict[str, Any]]:
    return x, _output("sample", x, k, s, p, True), {"window": k, "strides": s, "padding": p}


_CASES = (
    _case((2, 2, 6), (3,), (2,), ((1, 1),)),
    _case((1, 2, 5, 6), (2, 3), (2, 1), ((0, 1), (2, 0))),
    _case((2, 1, 4, 4), (2, 2), (2, 2), ((0, 0), (0, 0))),
    _case((1, 2, 7, 5), (2, 2), (3, 3), ((0, 0), (1, 1))),
    _case((1, 1, 3, 4, 3), (2, 2, 2), (1, 2, 1), ((1, 0), (0, 0), (1, 1))),
    _case((0, 2, 4), (2,), (1,), ((0, 0),)),
)
_PLACES = [int(np.prod(p["window"])) for _, _, p in _CASES]

window_sum: Primitive = register(
    Primitive(
        "window_sum",
        _sum_infer,
        _sum_reference,
        _sum_vjp,
        _batch(lambda: window_sum),
        _sum_expand,
        samples=(
            *(Sample((x,), p) for x, _, p in _CASES),
            Sample(((1, 1, 2),), _case((1, 1, 2), (1,), (1,), ((0, 0),))[2]),
        ),
        dtypes=NUMBERS,
        linear=True,
        rounding=Rounding.ONCE,
        factors=window_factors,
        doc="The sum over each window; padding counts as 0, and integers wrap.",
    )
)
window_max: Primitive = register(
    Primitive(
        "window_max",
        _max_infer,
        _max_reference,
        _max_vjp,
        _batch(lambda: window_max),
        _max_expand,
        samples=tuple(Sample((x,), p, integers=(0, 100)) for x, _, p in _CASES),
        dtypes=NUMBERS,
        factors=window_factors,
        doc="The largest in each window, padding excluded; NaN wins; the first of equal extremes takes the derivative.",
    )
)
window_argmax: Primitive = register(
    Primitive(
        "window_argmax",
        _argmax_infer,
        _argmax_reference,
        lambda ct, out, x, **_: (None,),
        _batch(lambda: window_argmax),
        _argmax_expand,
        samples=tuple(Sample((x,), p, integers=(0, 3)) for x, _, p in _CASES),
        dtypes=NUMBERS,
        factors=window_factors,
        doc="The int32 row-major place of the first largest of each window, never in the padding; the first NaN wins.",
    )
)
window_scatter: Primitive = register(
    Primitive(
        "window_scatter",
        _scatter_infer,
        _scatter_reference,
        _scatter_vjp,
        _batch(lambda: window_scatter),
        _scatter_expand,
        samples=tuple(
            Sample((out, out), {"input_shape": x, **p}, integers=(0, n), dtypes=("*", "int32"))
            for (x, out, p), n in zip(_CASES, _PLACES)
        ),
        dtypes=NUMBERS,
        rounding=Rounding.IN_PLACE,
        factors=window_factors,
        doc="Each value added to the input position that its index names in its window.",
    )
)
window_gather: Primitive = register(
    Primitive(
        "window_gather",
        _gather_infer,
        _gather_reference,
        _gather_vjp,
        _batch(lambda: window_gather),
        _gather_expand,
        samples=tuple(
            Sample((x, out), p, integers=(0, n), dtypes=("*", "int32")) for (x, out, p), n in zip(_CASES, _PLACES)
        ),
        dtypes=NUMBERS,
        factors=window_factors,
        doc="The value of each window at the place that its index names.",
    )
)
