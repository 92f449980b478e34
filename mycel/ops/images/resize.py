"""Images and signals at other sizes, and read at arbitrary positions.

`interpolate` works axis by axis: output position i lies at (i + 1/2) s - 1/2 of the input, with s =
1 / the scale given, or d / n; or at i (d - 1) / (n - 1) where corners are aligned. The neighbours
there are read with fixed weights. Cubic weights are Keys' (1981): with a = -1/2, and without the
neighbours outside of the input, or with a = -3/4 and the edge repeated where corners are aligned.
`grid_sample` and `crop_and_resize` have positions that are tensors: the corners around each are
gathered from the flattened image and blended, so that derivatives by the positions exist wherever
the blend is smooth.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.neural.image_sampling import sample
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.ops import adaptive_pooling, gather_scatter
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    need_room,
    number_of,
    numbers,
    operand,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    sizes_of,
    take_slice,
    wide,
)
from mycel.ops.algebra import linalg

__all__ = ["affine_grid", "crop_and_resize", "grid_sample", "interpolate", "upsample"]

_RANKS = {
    "nearest": (1, 2, 3),
    "nearest-exact": (1, 2, 3),
    "linear": (1,),
    "bilinear": (2,),
    "bicubic": (2,),
    "trilinear": (3,),
    "area": (1, 2, 3),
}
_CORNERS = ("linear", "bilinear", "bicubic", "trilinear")


def per_axis(name: str, parameter: str, value: Any, rank: int) -> list[Any]:
    """Return one value for each of `rank` spatial axes, from one for all or a sequence.

    `name` and `parameter` are for errors.
    """
    values = list(value) if isinstance(value, (tuple, list)) else [value] * rank
    if len(values) != rank:
        raise ValueError(
            f"{name}: {parameter} {tuple(values)} must have {rank} entries, one for each spatial dimension"
        )
    return values


def _sources(size: int, out: int, scale: float | None, align: bool) -> Any:
    """Return where the output positions of an axis lie in the input."""
    place = numbers(out, np.float64)
    if align:
        return place * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (place + 0.5) * (1 / scale if scale else size / out) - 0.5


def blend(x: Tensor, axis: int, at: Any, weights: Any) -> Tensor:
    """Return the sum over k of weights[k] times the parts of `x` at positions at[k] along
    an axis.
    """
    total: Tensor | None = None
    shape = (-1, *(1,) * (x.ndim - 1 - axis))
    for places, weight in zip(at, weights):
        part = gather_scatter.gather(x, as_tensor(np.asarray(places, np.int32)), axis)
        part = part * as_tensor(weight.reshape(shape), x.dtype)
        total = part if total is None else total + part
    assert total is not None
    return total


def _nearest(x: Tensor, axis: int, out: int, scale: float | None, exact: bool) -> Tensor:
    """Return `x` with an axis of `out` elements, each the nearest one."""
    size = int(x.shape[axis])
    place = numbers(out)
    if scale:
        found = np.floor((place + (0.5 if exact else 0.0)) / scale).astype(np.int64)
    else:
        found = (2 * place + 1) * size // (2 * out) if exact else place * size // out
    return gather_scatter.gather(x, as_tensor(np.minimum(found, size - 1).astype(np.int32)), axis)


def _linear(x: Tensor, axis: int, out: int, scale: float | None, align: bool, single: bool) -> Tensor:
    """Return `x` with an axis of `out` elements by linear interpolation."""
    size = int(x.shape[axis])
    at = np.zeros(1) if single and out == 1 else np.maximum(_sources(size, out, scale, align), 0.0)
    low = np.minimum(np.floor(at), size - 1)
    high = np.minimum(low + 1, size - 1)
    weight = np.minimum(at - low, 1.0)
    return blend(x, axis, (low, high), (1 - weight, weight))


def cubic_weights(t: Any, a: float) -> list[Any]:
    """Return Keys' weights of the neighbours at -1, 0, 1 and 2 for a position t of [0, 1)."""

    def inner(u: Any) -> Any:
        return ((a + 2) * u - (a + 3)) * u * u + 1

    def outer(u: Any) -> Any:
        return ((a * u - 5 * a) * u + 8 * a) * u - 4 * a

    return [outer(t + 1), inner(t), inner(1 - t), outer(2 - t)]


def _cubic(x: Tensor, axis: int, out: int, scale: float | None, align: bool) -> Tensor:
    """Return `x` with an axis of `out` elements by cubic convolution."""
    size = int(x.shape[axis])
    at = _sources(size, out, scale, align)
    low = np.floor(at)
    places = [np.clip(low + k, 0, size - 1) for k in (-1, 0, 1, 2)]
    weights = cubic_weights(at - low, -0.75 if align else -0.5)
    if not align:
        weights = [np.where((low + k < 0) | (low + k >= size), 0.0, w) for k, w in zip((-1, 0, 1, 2), weights)]
        whole = sum(weights)
        weights = [w / whole for w in weights]
    return blend(x, axis, places, weights)


def wanted(
    name: str, x: Tensor, size: Any, scale_factor: Any, recompute_scale_factor: Any
) -> tuple[list[int], list[float] | None]:
    """Return the spatial sizes of the result, and the scales where those were given.

    `x` is the input, and `size`, `scale_factor` and `recompute_scale_factor` are those of
    `interpolate`. `name` is the operation, for errors. Raises ValueError for sizes below 1 and
    scales that are not finite.
    """
    if (size is None) == (scale_factor is None):
        raise ValueError(f"{name}: give exactly one of size and scale_factor, not {size} and {scale_factor}")
    rank, scales = x.ndim - 2, None
    if size is not None:
        if recompute_scale_factor:
            raise ValueError(f"{name}: recompute_scale_factor needs a scale_factor instead of a size")
        sizes = [size_of(name, d) for d in per_axis(name, "size", size, rank)]
    else:
        scales = [float(number_of(name, "scale_factor", s)) for s in per_axis(name, "scale_factor", scale_factor, rank)]
        reached = [int(d) * s for d, s in zip(x.shape[2:], scales)]
        if not all(0 <= n < math.inf for n in (*scales, *reached)):
            raise ValueError(f"{name}: scale_factor must be positive and finite, not {scale_factor}")
        sizes = [size_of(name, math.floor(n)) for n in reached]
    if any(d < 1 for d in (*sizes, *(int(d) for d in x.shape[2:]))):
        raise ValueError(f"{name}: sizes must be at least 1; {tuple(x.shape[2:])} cannot become {tuple(sizes)}")
    return sizes, scales


@fused
def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Return an input (N, C, *spatial) of 1 to 3 spatial dimensions at another size.

    Exactly one of `size` and `scale_factor` is given. An axis that keeps its size keeps its
    elements. As in MindSpore, "linear" to size 1 without aligned corners reads the first element.

    Args:
        input (Tensor): (N, C, *spatial), with 1 to 3 spatial axes.
        size (int | tuple[int, ...] | None): The new size: a number, or one for each spatial axis.
            Default: None.
        scale_factor (float | tuple[float, ...] | None): The factor: a number, or one for each
            spatial axis, which gives the size floor(d * scale). Default: None.
        mode (str): "nearest" (position floor(i s)), "nearest-exact" (floor((i + 1/2) s)), "linear"
            for one axis, "bilinear" and "bicubic" for two, "trilinear" for three, or "area",
            adaptive means. Default: "nearest".
        align_corners (bool | None): Whether corner elements stay in place, for the linear and cubic
            modes. Default: None.
        recompute_scale_factor (bool | None): Whether the step between positions follows from the
            sizes instead of the factor itself. Default: None.

    Returns:
        Tensor: (N, C, *size), in the type of the input.

    Raises:
        ValueError: For arguments that do not fit together.

    Examples:
        >>> import mycel as ms
        >>> x = ms.Tensor([[[1.0, 3.0]]])
        >>> ms.ops.interpolate(x, size=3, mode="linear", align_corners=True).tolist()
        [[[1.0, 2.0, 3.0]]]
    """
    arguments.optional("interpolate", "align_corners", align_corners, bool)
    arguments.optional("interpolate", "recompute_scale_factor", recompute_scale_factor, bool)
    name = "interpolate"
    x = operand(name, input)
    rank = x.ndim - 2
    arguments.one_of(name, "mode", mode, tuple(_RANKS))
    if rank not in _RANKS[mode]:
        takes = " or ".join(f"{r + 2}" for r in _RANKS[mode])
        raise ValueError(f"{name}: mode {mode!r} takes tensors of {takes} dimensions, not {x._type}")
    if align_corners is not None and mode not in _CORNERS:
        raise ValueError(f"{name}: align_corners is for the modes {', '.join(_CORNERS)}, not for {mode!r}")
    sizes, given = wanted(name, x, size, scale_factor, recompute_scale_factor)
    scales: list[float | None] = [None] * rank
    if given is not None and not recompute_scale_factor:
        scales = [None if n == int(d) else s for n, d, s in zip(sizes, x.shape[2:], given)]
    align = bool(align_corners)
    if mode == "area":
        pool = (
            adaptive_pooling.adaptive_avg_pool1d,
            adaptive_pooling.adaptive_avg_pool2d,
            adaptive_pooling.adaptive_avg_pool3d,
        )[rank - 1]
        return pool(x, sizes[0] if rank == 1 else tuple(sizes))
    if not mode.startswith("nearest"):
        x = floating(name, x)
    for axis, (out, scale) in enumerate(zip(sizes, scales), 2):
        if mode.startswith("nearest"):
            x = _nearest(x, axis, out, scale, mode == "nearest-exact")
        elif mode == "bicubic":
            x = _cubic(x, axis, out, scale, align)
        else:
            x = _linear(x, axis, out, scale, align, mode == "linear" and not align)
    return x


def upsample(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Tensor:
    """Return `interpolate` of the same arguments.

    Args:
        input (Tensor): (N, C, *spatial), with 1 to 3 spatial axes.
        size (int | tuple[int, ...] | None): The new size: a number, or one for each spatial axis.
            Default: None.
        scale_factor (float | tuple[float, ...] | None): The factor: a number, or one for each
            spatial axis, which gives the size floor(d * scale). Default: None.
        mode (str): "nearest" (position floor(i s)), "nearest-exact" (floor((i + 1/2) s)), "linear"
            for one axis, "bilinear" and "bicubic" for two, "trilinear" for three, or "area",
            adaptive means. Default: "nearest".
        align_corners (bool | None): Whether corner elements stay in place, for the linear and cubic
            modes. Default: None.
        recompute_scale_factor (bool | None): Whether the step between positions follows from the
            sizes instead of the factor itself. Default: None.

    Returns:
        Tensor: (N, C, *size), in the type of the input.

    Examples:
        >>> import mycel as ms
        >>> ms.ops.upsample(ms.Tensor([[[1.0, 3.0]]]), size=4).tolist()
        [[[1.0, 1.0, 3.0, 3.0]]]
    """
    return interpolate(input, size, scale_factor, mode, align_corners, recompute_scale_factor)


# Positions that are tensors.


def _clipped(at: Tensor, high: float) -> Tensor:
    """Return positions cut off at 0 and `high`, with derivative 0 at both ends and beyond.

    A position at the end has no neighbour on one side, so its slope is not that of the image.
    """
    first, end = constant_like(0.0, at), constant_like(high, at)
    return select(run(E.le, at, first), first, select(run(E.ge, at, end), end, at))


def mirrored(at: Tensor, size: int, align: bool) -> Tensor:
    """Return positions mirrored at both ends until they lie inside."""
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if span == 0.0:
        return at * 0.0
    away = run(E.abs_, at - low)
    turns = run(E.floor, away / span)
    extra = away - turns * span
    odd = run(E.ne, turns - 2.0 * run(E.floor, turns * 0.5), constant_like(0.0, turns))
    return select(odd, span - extra, extra) + low


def _read(columns: Tensor, sizes: tuple[int, ...], places: list[Tensor]) -> tuple[Tensor, Tensor]:
    """Return the elements (N, P, C) at whole positions of images (N, S, C), and which positions are
    inside, (N, P).
    """
    inside: Tensor | None = None
    flat: Tensor | None = None
    for at, size in zip(places, sizes):
        here = run(E.logical_and, at >= 0.0, at <= float(size - 1))
        inside = here if inside is None else run(E.logical_and, inside, here)
        # NaN is outside, and reads position 0.
        whole = cast(select(here, at, 0.0), D.int32)
        flat = whole if flat is None else flat * size + whole
    assert flat is not None and inside is not None
    return gather_scatter.gather(columns, flat, 1, 1), inside


@fused
def grid_sample(
    input: Any, grid: Any, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Return an input at the positions of a grid (Jaderberg et al., "Spatial Transformer Networks",
    2015).

    Args:
        input (Tensor): (N, C, [D,] H, W).
        grid (Tensor): The positions x, y(, z), from -1 to 1, (N, [D',] H', W', 2 or 3).
        mode (str): "bilinear" (trilinear in three dimensions) or "nearest", with halves to the even
            side. Default: "bilinear".
        padding_mode (str): What positions outside read: "zeros" 0, "border" its border,
            "reflection" its mirror image; with these two the derivative by a position at an end is
            0. Default: "zeros".
        align_corners (bool): Whether -1 and 1 are the centres of the first and last element,
            instead of their outer borders. Default: None.

    Returns:
        Tensor: (N, C, [D',] H', W').

    Examples:
        >>> import mycel as ms
        >>> image, grid = ms.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), ms.Tensor([[[[0.0, 0.0]]]])
        >>> ms.ops.grid_sample(image, grid).item()
        2.5
    """
    arguments.optional("grid_sample", "align_corners", align_corners, bool)
    name = "grid_sample"
    x, g = floating(name, input), floating(name, grid)
    rank = x.ndim - 2
    if rank not in (2, 3) or g.ndim != x.ndim or g.shape[-1] != rank or g.shape[0] != x.shape[0]:
        raise ShapeError(f"{name}: takes (N, C, [D,] H, W) and (N, [D,] H, W, 2 or 3), not {x._type} and {g._type}")
    arguments.choice(name, "mode", mode, ("bilinear", "nearest"))
    arguments.choice(name, "padding_mode", padding_mode, ("zeros", "border", "reflection"))
    align = bool(align_corners)
    n, c, sizes = x.shape[0], x.shape[1], tuple(int(d) for d in x.shape[2:])
    out = g.shape[1:-1]
    points = math.prod(out)
    given, x, g = x.dtype, wide(x), wide(g)
    places = []
    for k, size in enumerate(sizes):
        at = reshaped(take_slice(g, rank + 1, rank - 1 - k, rank - k), (n, points))
        at = (at + 1.0) * ((size - 1) / 2) if align else ((at + 1.0) * float(size) - 1.0) * 0.5
        if padding_mode == "reflection":
            at = mirrored(at, size, align)
        places.append(at if padding_mode == "zeros" else _clipped(at, float(size - 1)))
    places = [cast(at if mode == "bilinear" else run(E.rint, at), x.dtype) for at in places]
    total = cast(run(sample, x, *places, linear=mode == "bilinear"), given)
    return reshaped(total, (n, c, *out))


def multilinear(columns: Tensor, sizes: tuple[int, ...], places: list[Tensor]) -> Tensor:
    """Return the elements at positions between those of images.

    Images (`columns`) are (N, S, C) and elements (N, P, C). `sizes` are those of the axes that S
    joins, and `places` has the positions (N, P) along each. Corners around a position are weighted
    by the volumes opposite; those outside read 0.
    """
    n, points = places[0].shape
    lows = [run(E.floor, at) for at in places]
    parts = [at - low for at, low in zip(places, lows)]
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=len(sizes)):
        values, inside = _read(columns, sizes, [low + float(k) for low, k in zip(lows, corner)])
        weight: Any = None
        for k, part in zip(corner, parts):
            side = part if k else 1.0 - part
            weight = side if weight is None else weight * side
        weight = select(inside, weight, 0.0)
        term = values * reshaped(cast(weight, columns.dtype), (n, points, 1))
        total = term if total is None else total + term
    assert total is not None
    return total


@fused
def affine_grid(theta: Any, size: Any, align_corners: bool = False) -> Tensor:
    """Return positions for `grid_sample`: those of an output (N, C, [D,] H, W) of shape `size`,
    taken to others by matrices.

    `theta` has the matrices, (N, 2, 3) or (N, 3, 4). With `align_corners` -1 and 1 are the centres
    of the first and last elements, else their outer borders.

    >>> import mycel as ms
    >>> ms.ops.affine_grid(ms.Tensor([[[1.0, 0.0, 0.5], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2)).tolist()
    [[[[0.0, 0.0], [1.0, 0.0]]]]
    """
    arguments.flag("affine_grid", "align_corners", align_corners)
    matrix = floating("affine_grid", theta)
    shape = sizes_of("affine_grid", "size", size)
    rank = len(shape) - 2
    if rank not in (2, 3) or matrix.ndim != 3 or matrix.shape[1:] != (rank, rank + 1):
        raise ShapeError(
            f"affine_grid: takes (N, 2, 3) with a size of 4 or (N, 3, 4) with one of 5, not {matrix._type} and {shape}"
        )
    if matrix.shape[0] != shape[0]:
        raise ShapeError(f"affine_grid: {matrix.shape[0]} matrices do not fit the size {shape}")
    lines = []
    for d in shape[2:]:
        need_room("affine_grid", (size_of("affine_grid", d),), D.float64)
        line = np.linspace(-1.0, 1.0, d) if d > 1 else np.zeros(d)
        lines.append(line if align_corners or d < 1 else line * ((d - 1) / d))
    need_room("affine_grid", (*shape[2:], rank + 1), D.float64)
    points = np.stack([*np.meshgrid(*lines, indexing="ij")[::-1], np.ones(shape[2:])], -1).reshape(-1, rank + 1)
    found = linalg.matmul(as_tensor(points, matrix.dtype), permuted(matrix, (0, 2, 1)))
    return reshaped(found, (shape[0], *shape[2:], rank))


@fused
def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
) -> Tensor:
    """Return boxes cut out of images (N, H, W, C) and resized to `crop_size`: (boxes, height,
    width, C).

    Args:
        image (Tensor): (N, H, W, C).
        boxes (Tensor): (boxes, 4): y1, x1, y2, x2, where 0 and 1 are the centres of the first and
            last pixels; a box may be turned over.
        box_indices (Tensor): Which image each box is cut from, (boxes,).
        crop_size (tuple[int, int]): The size of the results, (height, width).
        method (str): 'bilinear', 'nearest', or 'bilinear_v2', which cuts boxes at whole pixels of
            the image's size, resizes from border to border, and repeats the image's edge. Default:
            "bilinear".
        extrapolation_value (float): The value of places outside of the image. Default: 0.0.

    Returns:
        Tensor: (boxes, height, width, C), float32.

    Examples:
        >>> import mycel as ms
        >>> image = ms.Tensor([[[[1.0], [2.0]], [[3.0], [4.0]]]])
        >>> boxes = ms.Tensor([[0.0, 0.0, 1.0, 1.0]])
        >>> ms.ops.crop_and_resize(image, boxes, ms.Tensor([0], ms.int32), (1, 1)).item()
        2.5
    """
    name = "crop_and_resize"
    x, box = floating(name, image), floating(name, boxes)
    which = operand(name, box_indices)
    arguments.one_of(name, "method", method, ("bilinear", "nearest", "bilinear_v2"))
    if x.ndim != 4 or box.ndim != 2 or box.shape[1] != 4 or which.ndim != 1:
        raise ShapeError(
            f"{name}: takes (N, H, W, C), (boxes, 4) and (boxes,), not {x._type}, {box._type}, {which._type}"
        )
    count, (height, width) = box.shape[0], (int(d) for d in crop_size)
    n, h, w, c = x.shape
    sizes = (int(h), int(w))
    kind = x.dtype if x.dtype.is_floating and x.dtype.itemsize > 2 else D.float32
    x, box = cast(x, kind), cast(box, kind)
    columns = gather_scatter.gather(reshaped(x, (n, sizes[0] * sizes[1], c)), gather_scatter.inside(name, which, n), 0)
    lines = []
    for k, (size, steps) in enumerate(zip(sizes, (height, width))):
        first, last = (reshaped(gather_scatter.gather(box, scalar(j, D.int64), 1), (count, 1)) for j in (k, k + 2))
        place = as_tensor(numbers(steps).reshape(1, steps), kind)
        if method == "bilinear_v2":
            first, last = run(E.trunc, first * float(size)), run(E.trunc, last * float(size))
            end = run(E.maximum, first, last)
            at = first + (place + 0.5) * ((end - first + 1.0) / float(steps)) - 0.5
            at = _clipped(run(E.minimum, run(E.maximum, at, first), end), float(size - 1))
        elif steps == 1:
            at = (first + last) * (0.5 * (size - 1))
        else:
            at = first * float(size - 1) + place * ((last - first) * ((size - 1) / (steps - 1)))
        lines.append(at)
    rows = reshaped(lines[0], (count, height, 1))
    rows = reshaped(broadcast(rows, (count, height, width)), (count, height * width))
    across = reshaped(lines[1], (count, 1, width))
    across = reshaped(broadcast(across, (count, height, width)), (count, height * width))
    places = [rows, across]
    whole = None
    for at, size in zip(places, sizes):
        here = run(E.logical_and, at >= 0.0, at <= float(size - 1))
        whole = here if whole is None else run(E.logical_and, whole, here)
    if method == "nearest":
        found = _read(columns, sizes, [run(E.floor, at + 0.5) for at in places])[0]
    else:
        found = multilinear(columns, sizes, places)
    assert whole is not None
    found = select(reshaped(whole, (count, height * width, 1)), found, float(extrapolation_value))
    return reshaped(found, (count, height, width, c))
