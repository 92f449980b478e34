"""Resizing of images by the older conventions of where pixels lie, by areas, and by a filter with a
scale and a shift.

Output position i of an axis from d to n elements lies at i d / n; at (i + 1/2) d / n - 1/2 with
half-pixel centres; at i (d - 1) / (n - 1) with aligned corners. Cubic weights are Keys' (1981) with
a = -3/4 and the edge repeated, or a = -1/2 without the neighbours outside where centres are half
pixels. `resize_area` weighs each element by how much of it lies in [i s, (i + 1) s], s being the
step. `scale_and_translate` reads at (i + 1/2 - shift) / scale - 1/2 by a filter whose weights add
up to 1. With antialiasing the filter is stretched by 1 / scale where that is more than 1. Positions
outside of the image give 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import gather_scatter, reduction
from mycel.ops._operands import (
    constant_like,
    floating,
    iota,
    numbers,
    operand,
    permuted,
    reshaped,
    run,
    select,
    shape_of,
    take_slice,
)
from mycel.ops.algebra import linalg
from mycel.ops.images.resize import blend, cubic_weights, interpolate

__all__ = [
    "resize_area",
    "resize_bicubic",
    "resize_bilinear",
    "resize_linear",
    "resize_nearest",
    "scale_and_translate",
    "upsample_volume",
]


def _sizes(name: str, x: Tensor, size: Any, rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the new sizes of `axes` after checking them."""
    found = tuple(int(d) for d in shape_of(name, size))
    if x.ndim != rank or len(found) != len(axes) or any(n < 1 for n in found):
        raise ShapeError(f"{name}: takes {rank} dimensions and {len(axes)} positive sizes, not {x._type} and {found}")
    if any(int(x.shape[a]) < 1 for a in axes):
        raise ShapeError(f"{name}: {x._type} has nothing to read from")
    return found


def _one_convention(name: str, align_corners: bool, half_pixel_centers: bool) -> None:
    """Raise ValueError for two conventions of positions at once."""
    if align_corners and half_pixel_centers:
        raise ValueError(f"{name}: half_pixel_centers must be False where align_corners is True")


def _places(size: int, out: int, align: bool, half: bool) -> Any:
    """Return where the output positions of an axis lie in the input."""
    place = numbers(out, np.float64)
    if align and out > 1:
        return place * (size - 1) / (out - 1)
    return (place + 0.5) * size / out - 0.5 if half else place * size / out


@fused
def resize_nearest(x: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Return images `x` (N, C, H, W) at another `size` (height, width), where each element is the
    nearest one.

    Positions are with `align_corners` or `half_pixel_centers`, or neither (see the module); with
    aligned corners halves are rounded up.

    >>> import mycel as ms
    >>> ms.ops.ResizeNearestNeighborV2()(ms.Tensor([[[[1.0, 2.0]]]]), (1, 4)).flatten().tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    name = "resize_nearest"
    value = operand(name, x)
    _one_convention(name, align_corners, half_pixel_centers)
    for axis, out in zip((2, 3), _sizes(name, value, size, 4, (2, 3))):
        d, place = int(value.shape[axis]), numbers(out)
        if align_corners and out > 1:
            at = (2 * place * (d - 1) + out - 1) // (2 * (out - 1))
        else:
            at = (2 * place + 1) * d // (2 * out) if half_pixel_centers else place * d // out
        value = gather_scatter.gather(value, as_tensor(np.minimum(at, d - 1).astype(np.int32)), axis)
    return value


@fused
def resize_bilinear(x: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Return images `x` (N, C, H, W) at another `size` (height, width), by linear interpolation
    along both axes.

    Positions are with `align_corners` or `half_pixel_centers`, or neither (see the module).

    >>> import mycel as ms
    >>> ms.ops.ResizeBilinearV2()(ms.Tensor([[[[1.0, 2.0]]]]), (1, 4)).flatten().tolist()
    [1.0, 1.5, 2.0, 2.0]
    """
    name = "resize_bilinear"
    value = floating(name, x)
    _one_convention(name, align_corners, half_pixel_centers)
    for axis, out in zip((2, 3), _sizes(name, value, size, 4, (2, 3))):
        d = int(value.shape[axis])
        at = np.maximum(_places(d, out, align_corners, half_pixel_centers), 0.0)
        low = np.minimum(np.floor(at), d - 1)
        weight = np.minimum(at - low, 1.0)
        value = blend(value, axis, (low, np.minimum(low + 1, d - 1)), (1 - weight, weight))
    return value


@fused
def resize_bicubic(images: Any, size: Any, align_corners: bool = False, half_pixel_centers: bool = False) -> Tensor:
    """Return images (N, C, H, W) at another `size` (height, width) by cubic convolution.

    Positions are with `align_corners` or `half_pixel_centers`, or neither (see the module).
    MindSpore takes its weights from a table of 1024 rows; these are exact.

    >>> import mycel as ms
    >>> ms.ops.ResizeBicubic()(ms.Tensor([[[[1.0, 2.0]]]]), (1, 4)).flatten().tolist()
    [1.0, 1.5, 2.0, 2.09375]
    """
    name = "resize_bicubic"
    value = floating(name, images)
    _one_convention(name, align_corners, half_pixel_centers)
    for axis, out in zip((2, 3), _sizes(name, value, size, 4, (2, 3))):
        d = int(value.shape[axis])
        at = _places(d, out, align_corners, half_pixel_centers)
        low = np.floor(at)
        neighbours = [low + k for k in (-1, 0, 1, 2)]
        weights = cubic_weights(at - low, -0.5 if half_pixel_centers else -0.75)
        if half_pixel_centers:
            weights = [np.where((p < 0) | (p >= d), 0.0, w) for p, w in zip(neighbours, weights)]
            whole = sum(weights)
            weights = [w / whole for w in weights]
        value = blend(value, axis, [np.clip(p, 0, d - 1) for p in neighbours], weights)
    return value


@fused
def resize_area(images: Any, size: Any, align_corners: bool = False) -> Tensor:
    """Return images (N, H, W, C) at another `size` (height, width), where each element is the mean
    over its area of the input.

    The result is float32, or float64 for float64.

    >>> import mycel as ms
    >>> image = ms.Tensor([[[[2.0], [4.0], [6.0], [8.0]]]])
    >>> ms.ops.ResizeArea()(image, ms.Tensor([1, 2])).flatten().tolist()
    [3.0, 7.0]
    """
    name = "resize_area"
    value = operand(name, images)
    value = value if value.dtype is D.float64 else cast(value, D.float32)
    for axis, out in zip((1, 2), _sizes(name, value, size, 4, (1, 2))):
        d = int(value.shape[axis])
        step = (d - 1) / (out - 1) if align_corners and out > 1 else d / out
        begin = numbers(out) * step
        first = np.floor(begin).astype(np.int64)
        count = max(int(np.max(np.ceil(begin + step - 1e-9).astype(np.int64) - first)), 1)
        at = first[:, None] + numbers(count)
        inside = np.minimum(at + 1, (begin + step)[:, None]) - np.maximum(at, begin[:, None])
        weights = np.maximum(inside, 0.0) / step if step else np.ones((out, 1))
        parts = gather_scatter.gather(value, as_tensor(np.minimum(at, d - 1).astype(np.int32)), axis)
        shape = (out, count, *(1,) * (value.ndim - axis - 1))
        value = reduction.sum(parts * as_tensor(weights.reshape(shape), value.dtype), axis + 1)
    return value


def resize_linear(x: Any, size: Any, coordinate_transformation_mode: str = "align_corners") -> Tensor:
    """Return signals (N, C, W) at another width by linear interpolation.

    Corners are aligned, or centres are half pixels with 'half_pixel'.

    >>> import mycel as ms
    >>> ms.ops.ResizeLinear1D()(ms.Tensor([[[1.0, 3.0]]]), (3,)).tolist()
    [[[1.0, 2.0, 3.0]]]
    """
    arguments.one_of(
        "resize_linear",
        "coordinate_transformation_mode",
        coordinate_transformation_mode,
        ("align_corners", "half_pixel"),
    )
    value = floating("resize_linear", x)
    (out,) = _sizes("resize_linear", value, size, 3, (2,))
    return interpolate(value, out, mode="linear", align_corners=coordinate_transformation_mode == "align_corners")


def upsample_volume(x: Any, output_size: Any, scales: Any, mode: str, align_corners: Any = None) -> Tensor:
    """Return a volume `x` (N, C, D, H, W) at another size.

    The size is `output_size`, or the scales of the three axes are `scales`; the other one is None.
    `mode` is 'nearest' or 'trilinear', for which corners may be aligned by `align_corners`.

    >>> import mycel as ms
    >>> ms.ops.UpsampleNearest3D()(ms.ops.ones((1, 1, 1, 1, 1)), (2, 2, 2), None).shape
    (1, 1, 2, 2, 2)
    """
    size = None if output_size is None else tuple(output_size)
    return interpolate(x, size, None if scales is None else tuple(scales), mode, align_corners)


# Filters: how far they reach, and their value at a distance.

_RADIUS = {
    "lanczos1": 1.0,
    "lanczos3": 3.0,
    "lanczos5": 5.0,
    "gaussian": 1.5,
    "box": 0.5,
    "triangle": 1.0,
    "keyscubic": 2.0,
    "mitchellcubic": 2.0,
}


def _filter(kind: str, distance: Tensor) -> Tensor:
    """Return the value of a filter at distances from its centre."""
    radius = _RADIUS[kind]
    if kind.startswith("lanczos"):
        near = run(E.lt, distance, constant_like(1e-3, distance))
        angle = select(near, 1.0, distance) * math.pi
        # Close to 0 the quotient cancels; there its series is exact in float32 and 1e-13 away in
        # float64.
        series = 1.0 - distance * distance * (math.pi**2 / 6 * (1 + 1 / radius**2))
        wave = run(E.sin, angle) * run(E.sin, angle / radius) * radius / (angle * angle)
        value = select(near, series, wave)
    elif kind == "gaussian":
        value = run(E.exp, distance * distance * (-0.5 * (3.0 / radius) ** 2))
    elif kind == "box":
        half = run(E.eq, distance, constant_like(0.5, distance))
        return select(distance < 0.5, 1.0, select(half, 0.5, constant_like(0.0, distance)))
    elif kind == "triangle":
        value = 1.0 - distance
    else:
        b, c = (0.0, 0.5) if kind == "keyscubic" else (1 / 3, 1 / 3)
        inner = ((2 - 1.5 * b - c) * distance + (-3 + 2 * b + c)) * distance * distance + (1 - b / 3)
        outer = (((-b / 6 - c) * distance + (b + 5 * c)) * distance + (-2 * b - 8 * c)) * distance + (4 * b / 3 + 4 * c)
        value = select(distance < 1.0, inner, outer)
    return select(run(E.lt, distance, constant_like(radius, distance)), value, 0.0)


def scale_and_translate(
    images: Any, size: Any, scale: Any, translation: Any, kernel_type: str = "lanczos3", antialias: bool = True
) -> Tensor:
    """Return images (N, H, W, C) scaled by `scale` (height, width), then moved by `translation`,
    and cut at `size`.

    `kernel_type` is the filter: "lanczos1", "lanczos3", "lanczos5", "gaussian", "box", "triangle",
    "keyscubic" or "mitchellcubic". With `antialias` it is stretched where images shrink. The result
    is float32, or float64 for float64.

    >>> import mycel as ms
    >>> image = ms.Tensor([[[[9.0], [5.0]], [[6.0], [1.0]]]])
    >>> scale, shift = ms.Tensor([1.0, 1.0]), ms.Tensor([0.0, 1.0])
    >>> ms.ops.ScaleAndTranslate()(image, ms.Tensor([2, 2]), scale, shift).flatten().tolist()
    [0.0, 9.0, 0.0, 6.0]
    """
    name = "scale_and_translate"
    arguments.one_of(name, "kernel_type", kernel_type, tuple(_RADIUS))
    x = operand(name, images)
    x = x if x.dtype is D.float64 else cast(x, D.float32)
    factors, shifts = (cast(floating(name, v), x.dtype) for v in (scale, translation))
    if factors.shape != (2,) or shifts.shape != (2,):
        raise ShapeError(f"{name}: scale and translation must be (2,), not {factors._type} and {shifts._type}")
    for axis, out in zip((1, 2), _sizes(name, x, size, 4, (1, 2))):
        d = int(x.shape[axis])
        factor, shift = (reshaped(take_slice(v, 0, axis - 1, axis), ()) for v in (factors, shifts))
        step = 1.0 / factor
        at = (iota((out, 1), 0, x.dtype) + 0.5) * step - shift * step
        reach = run(E.maximum, step, constant_like(1.0, step)) if antialias else constant_like(1.0, step)
        weights = _filter(kernel_type, run(E.abs_, iota((out, d), 1, x.dtype) + 0.5 - at) / reach)
        whole = reduction.sum(weights, 1, keepdim=True)
        inside = run(E.logical_and, at >= 0.0, at <= float(d))
        solid = run(E.logical_and, inside, run(E.abs_, whole) > 1e-30)
        weights = select(solid, weights / select(solid, whole, 1.0), 0.0)
        # The resized axis comes last out of the product, and returns to its place.
        order = [a for a in range(4) if a != axis] + [axis]
        made = linalg.matmul(permuted(x, tuple(order)), permuted(weights, (1, 0)))
        x = permuted(made, tuple(order.index(a) for a in range(4)))
    return x
