"""Reading feature maps at positions that the network chooses: deformable convolution and attention,
and regions of interest.

A position between elements is read by bilinear interpolation, so that derivatives by positions
exist wherever they lie inside a cell. Deformable convolution and attention read zeros outside of
the map; `roi_align` reads the border up to one element outside and nothing beyond.
"""

from __future__ import annotations

import itertools
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.compiler.prims.neural.image_sampling import sample
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.fused import fused, graph_of
from mycel._src.tensors.core.tensor import Tensor, cast, scalar
from mycel.ops import gather_scatter, reduction
from mycel.ops._operands import (
    broadcast,
    constant_like,
    floating,
    iota,
    operand,
    permuted,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
    wide,
)
from mycel.ops.convolution import conv2d
from mycel.ops.creation import full, zeros

__all__ = ["deformable_conv2d", "deformable_offsets", "multi_scale_deformable_attn_function", "roi_align"]


def _ints(name: str, parameter: str, value: Any, count: int) -> tuple[int, ...]:
    """Return `count` ints of a tuple or list."""
    found = tuple(value) if isinstance(value, (tuple, list)) else ()
    if len(found) != count or not all(isinstance(v, int) for v in found):
        raise ValueError(f"{name}: {parameter} must be {count} ints, not {value!r}")
    return found


@fused
def deformable_offsets(
    x: Any,
    offsets: Any,
    strides: Any,
    pads: Any,
    ksize: Any,
    dilations: Any = (1, 1, 1, 1),
    data_format: str = "NCHW",
    deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:
    """Return what the elements of a kernel read at each place of `x` (N, C, H, W): (N, C, H_out kh,
    W_out kw), the kernel's elements side by side.

    `offsets` (N, 3 groups kh kw, H_out, W_out) holds the shifts along x, those along y, and the
    factors of the values read, each for every one of `deformable_groups` groups of channels and
    every element of the kernel. `ksize` is (kh, kw), `strides` and `dilations` are those of (N, C,
    H, W), and `pads` is (top, bottom, left, right). `data_format` must be "NCHW", and `modulated`
    True. Dai et al., 2017; Zhu et al., 2018.

    >>> import mycel as ms
    >>> read = ms.ops.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (1, 1))
    >>> offsets = ms.Tensor([[[[0.5, 0.0]], [[0.0, 0.0]], [[1.0, 2.0]]]])
    >>> read(ms.Tensor([[[[1.0, 3.0]]]]), offsets).tolist()
    [[[[2.0, 6.0]]]]
    """
    name = "deformable_offsets"
    given, shift = floating(name, x), floating(name, offsets)
    # 16-bit floats do not tell neighbouring positions apart.
    value = wide(given)
    stride, step = _ints(name, "strides", strides, 4), _ints(name, "dilations", dilations, 4)
    (top, bottom, left, right), (kh, kw) = _ints(name, "pads", pads, 4), _ints(name, "ksize", ksize, 2)
    if data_format != "NCHW" or not modulated:
        raise ValueError(f"{name}: supports data_format 'NCHW' and modulated=True, not {data_format!r} and {modulated}")
    if size_of(name, deformable_groups) < 1:
        raise ValueError(f"{name}: deformable_groups must be at least 1, not {deformable_groups}")
    if value.ndim != 4 or stride[:2] != (1, 1) or step[:2] != (1, 1) or int(value.shape[1]) % deformable_groups:
        raise ShapeError(
            f"{name}: takes (N, C, H, W) with C in {deformable_groups} groups, and strides and dilations of 1 along N "
            f"and C, not {value._type}, {stride} and {step}"
        )
    n, c, h, w = (int(d) for d in value.shape)
    rows_out = (h + top + bottom - (kh - 1) * step[2] - 1) // stride[2] + 1
    columns_out = (w + left + right - (kw - 1) * step[3] - 1) // stride[3] + 1
    if shift.shape != (n, 3 * deformable_groups * kh * kw, rows_out, columns_out):
        raise ShapeError(
            f"{name}: offsets must be {(n, 3 * deformable_groups * kh * kw, rows_out, columns_out)} for {value._type}, "
            f"not {shift._type}"
        )
    shift = cast(shift, value.dtype)
    parts = reshaped(shift, (n, 3, deformable_groups, kh, kw, rows_out, columns_out))
    parts = permuted(parts, (1, 0, 2, 5, 3, 6, 4))
    points = rows_out * kh * columns_out * kw
    inner = (n * deformable_groups, rows_out, kh, columns_out, kw)
    across, down, factor = (reshaped(take_slice(parts, 0, k, k + 1), inner) for k in range(3))
    down = down + (
        iota(inner, 1, value.dtype) * float(stride[2]) + iota(inner, 2, value.dtype) * float(step[2]) - float(top)
    )
    across = across + (
        iota(inner, 3, value.dtype) * float(stride[3]) + iota(inner, 4, value.dtype) * float(step[3]) - float(left)
    )
    rows = n * deformable_groups
    planes = reshaped(value, (rows, c // deformable_groups, h, w))
    found = run(sample, planes, reshaped(down, (rows, points)), reshaped(across, (rows, points)), linear=True)
    found = found * reshaped(factor, (rows, 1, points))
    return cast(reshaped(found, (n, c, rows_out * kh, columns_out * kw)), given.dtype)


def deformable_conv2d(
    x: Any,
    weight: Any,
    offsets: Any,
    kernel_size: Any,
    strides: Any,
    padding: Any,
    bias: Any | None = None,
    dilations: Any = (1, 1, 1, 1),
    groups: int = 1,
    deformable_groups: int = 1,
    modulated: bool = True,
) -> Tensor:
    """Return a convolution whose kernel's elements read at shifted positions (Dai et al., 2017; Zhu
    et al., 2018).

    Args:
        x (Tensor): (N, C, H, W).
        weight (Tensor): (O, C / groups, *kernel_size).
        offsets (Tensor): (N, 3 deformable_groups kh kw, H_out, W_out): shifts along x, along y, and
            factors.
        kernel_size (tuple[int, int]): The size of the kernel.
        strides (tuple[int, int, int, int]): The step of the kernel, for each of the axes (N, C, H,
            W).
        padding (tuple[int, int, int, int]): The zeros at (top, bottom, left, right).
        bias (Tensor | None): (O,) or None. Default: None.
        dilations (tuple[int, int, int, int]): The distance of its elements, for each of the axes
            (N, C, H, W). Default: (1, 1, 1, 1).
        groups (int): The number of groups of channels. Default: 1.
        deformable_groups (int): The number of groups of channels with shifts of their own. Default:
            1.
        modulated (bool): Must be True. Default: True.

    Returns:
        Tensor: (N, O, H_out, W_out).

    Raises:
        ValueError, ShapeError: For arguments that do not fit.

    Examples:
        >>> import mycel as ms
        >>> x, offsets = ms.ops.ones((1, 1, 3, 3)), ms.ops.zeros((1, 12, 2, 2)) + 0.5
        >>> sizes = {"kernel_size": (2, 2), "strides": (1, 1, 1, 1), "padding": (0, 0, 0, 0)}
        >>> ms.ops.deformable_conv2d(x, ms.ops.ones((1, 1, 2, 2)), offsets, **sizes).tolist()[0][0]
        [[2.0, 1.5], [1.5, 1.125]]
    """
    name = "deformable_conv2d"
    kernel, w = _ints(name, "kernel_size", kernel_size, 2), operand(name, weight)
    if w.ndim != 4 or w.shape[2:] != kernel:
        raise ShapeError(f"{name}: the weight must be (O, C / groups, {kernel[0]}, {kernel[1]}), not {w._type}")
    read = deformable_offsets(x, offsets, strides, padding, kernel, dilations, "NCHW", deformable_groups, modulated)
    return conv2d(read, w, bias, kernel, "valid", 0, 1, groups)


def multi_scale_deformable_attn_function(value: Any, shape: Any, offset: Any, locations: Any, weight: Any) -> Tensor:
    """Return for each query the weighted sum of what its points read in the feature maps of several
    levels (Zhu et al., "Deformable DETR", 2021).

    Args:
        value (Tensor): The maps one after the other, (B, keys, heads, dims).
        shape (Tensor): The size (H, W) of the map of each level, (levels, 2).
        offset (Tensor): The key at which the map of each level begins, (levels,).
        locations (Tensor): (x, y), 0 to 1 from border to border, (B, queries, heads, levels,
            points, 2).
        weight (Tensor): (B, queries, heads, levels, points).

    Returns:
        Tensor: (B, queries, heads dims).

    Examples:
        >>> import mycel as ms
        >>> value, shape = ms.Tensor([1.0, 3.0]).reshape((1, 2, 1, 1)), ms.Tensor([[1, 2]])
        >>> where = ms.Tensor([0.5, 0.5]).reshape((1, 1, 1, 1, 1, 2))
        >>> weight = ms.ops.ones((1, 1, 1, 1, 1))
        >>> read = ms.ops.multi_scale_deformable_attn_function
        >>> read(value, shape, ms.Tensor([0]), where, weight).tolist()
        [[[2.0]]]
    """
    name = "multi_scale_deformable_attn_function"
    given, place, factor = floating(name, value), wide(floating(name, locations)), wide(floating(name, weight))
    x = wide(given)
    sizes, begins = operand(name, shape), operand(name, offset)
    fits = x.ndim == 4 and place.ndim == 6 and place.shape[-1] == 2 and factor.shape == place.shape[:-1]
    if (
        not fits
        or sizes.shape != (place.shape[3], 2)
        or begins.shape != (place.shape[3],)
        or place.shape[0] != x.shape[0]
        or place.shape[2] != x.shape[2]
    ):
        raise ShapeError(
            f"{name}: takes (B, keys, heads, dims), (levels, 2), (levels,), (B, queries, heads, levels, points, 2) and "
            f"(B, queries, heads, levels, points), not {x._type}, {sizes._type}, {begins._type}, {place._type} and "
            f"{factor._type}"
        )
    batch, keys, heads, dims = x.shape
    queries, levels, points = place.shape[1], place.shape[3], place.shape[4]
    across, down = (reshaped(take_slice(place, 5, k, k + 1), place.shape[:-1]) for k in range(2))
    per_level = (1, 1, 1, levels, 1)
    height, width = (reshaped(take_slice(sizes, 1, k, k + 1), per_level) for k in range(2))
    across = across * cast(width, across.dtype) - 0.5
    down = down * cast(height, down.dtype) - 0.5
    lows = [run(E.floor, at) for at in (down, across)]
    parts = [at - low for at, low in zip((down, across), lows)]
    columns = reshaped(permuted(x, (0, 2, 1, 3)), (batch * heads, keys, dims))
    first, height, width = (cast(reshaped(t, per_level), D.int64) for t in (begins, height, width))
    total: Tensor | None = None
    for corner in itertools.product((0, 1), repeat=2):
        row, column = (cast(low + float(k), D.int64) for low, k in zip(lows, corner))
        inside = run(E.logical_and, run(E.ge, row, constant_like(0, row)), run(E.lt, row, height))
        inside = run(
            E.logical_and,
            inside,
            run(E.logical_and, run(E.ge, column, constant_like(0, column)), run(E.lt, column, width)),
        )
        at = select(inside, first + row * width + column, 0)
        share = factor
        for k, part in zip(corner, parts):
            share = share * (part if k else 1.0 - part)
        share = select(inside, share, 0.0)
        # Heads before queries, as in the columns.
        at, share = (
            reshaped(permuted(t, (0, 2, 1, 3, 4)), (batch * heads, queries * levels * points)) for t in (at, share)
        )
        read = gather_scatter.gather(columns, at, 1, 1) * cast(reshaped(share, (*share.shape, 1)), x.dtype)
        total = read if total is None else total + read
    assert total is not None
    total = run(
        R.reduce_sum, reshaped(total, (batch, heads, queries, levels * points, dims)), axes=(3,), keepdims=False
    )
    return cast(reshaped(permuted(total, (0, 2, 1, 3)), (batch, queries, heads * dims)), given.dtype)


def _bilinear(
    columns: Tensor, base: Tensor, sizes: tuple[int, int], places: tuple[Tensor, Tensor], largest: bool = False
) -> Tensor:
    """Return (points, C) read at positions of maps whose columns (S, C) begin at `base`.

    `sizes` are those of a map, and `places` the positions along each axis; those more than 1
    outside of a map read 0. With `largest` it is the largest weighted corner, not their sum.
    """
    inside: Tensor | None = None
    ends = []
    for at, size in zip(places, sizes):
        here = run(E.logical_and, at >= -1.0, at <= float(size))
        inside = here if inside is None else run(E.logical_and, inside, here)
        at = run(E.minimum, run(E.maximum, at, constant_like(0.0, at)), constant_like(float(size - 1), at))
        low = run(E.floor, select(here, at, 0.0))
        high = run(E.minimum, low + 1.0, constant_like(float(size - 1), low))
        ends.append(((cast(low, D.int32), 1.0 - (at - low)), (cast(high, D.int32), at - low)))
    assert inside is not None
    total: Tensor | None = None
    for (row, down), (column, across) in itertools.product(*ends):
        read = run(I.take, columns, base + row * sizes[1] + column, axis=0)
        term = read * reshaped(select(inside, down * across, 0.0), (*row.shape, 1))
        total = term if total is None else run(E.maximum, total, term) if largest else total + term
    assert total is not None
    return total


@fused
def roi_align(
    features: Any,
    rois: Any,
    pooled_height: int,
    pooled_width: int,
    spatial_scale: float,
    sample_num: int = 2,
    roi_end_mode: int = 1,
) -> Tensor:
    """Return the features (N, C, H, W) of regions at one size: (R, C, pooled_height, pooled_width).

    `rois` (R, 5) has rows (image, x0, y0, x1, y1), whose coordinates are multiplied by
    `spatial_scale`. A region is divided into `pooled_height` by `pooled_width` bins; each result is
    the mean of sample_num^2 positions spread evenly over a bin. With `sample_num` 0 there are as
    many positions along an axis as the bin has elements, rounded up. With `roi_end_mode` 1 regions
    end behind their last pixel; with 0 they are at least one element wide. He et al., "Mask R-CNN",
    2017.

    >>> import mycel as ms
    >>> roi = ms.Tensor([[0.0, 0.2, 0.3, 0.2, 0.3]])
    >>> ms.ops.ROIAlign(1, 1, 0.5)(ms.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), roi).shape
    (1, 1, 1, 1)
    """
    name = "roi_align"
    given = floating(name, features)
    x = wide(given)
    regions = cast(floating(name, rois), x.dtype)
    if x.ndim != 4 or regions.ndim != 2 or regions.shape[1] != 5:
        raise ShapeError(f"{name}: takes features (N, C, H, W) and regions (R, 5), not {x._type} and {regions._type}")
    if pooled_height < 1 or pooled_width < 1 or roi_end_mode not in (0, 1):
        raise ValueError(
            f"{name}: takes positive sizes and a roi_end_mode of 0 or 1, not {pooled_height}, {pooled_width} and "
            f"{roi_end_mode}"
        )
    n, c, h, w = (int(d) for d in x.shape)
    count = regions.shape[0]
    image, *sides = (reshaped(take_slice(regions, 1, k, k + 1), (count, 1, 1)) for k in range(5))
    starts, spans = [], []
    for k in (1, 0):
        start = sides[k] * spatial_scale
        span = (sides[k + 2] + float(roi_end_mode)) * spatial_scale - start
        if not roi_end_mode:
            span = run(E.maximum, span, constant_like(1.0, span))
        starts.append(start)
        spans.append(span)
    return cast(sampled_regions(x, image, starts, spans, (pooled_height, pooled_width), sample_num), given.dtype)


def sampled_regions(
    x: Tensor,
    image: Tensor,
    starts: list[Tensor],
    spans: list[Tensor],
    pooled: tuple[int, int],
    sample_num: int,
    largest: bool = False,
    least: float = 1.0,
) -> Tensor:
    """Return the features `x` (N, C, H, W) of regions at one size: (R, C, *pooled).

    `image` (R, 1, 1) says of which map each region is, `starts` and `spans`, (R, 1, 1) each, where
    it begins along y and x and how long it is. Its bins are read at `sample_num` positions along
    each axis; with 0 at as many as a bin has elements, rounded up, but `least`. A result is their
    mean, or with `largest` the largest weighted corner of any; without positions it is 0.
    """
    n, c, h, w = (int(d) for d in x.shape)
    count = image.shape[0]
    columns = reshaped(permuted(x, (0, 2, 3, 1)), (n * h * w, c))
    base = run(I.checked, cast(image, D.int32), axis=0, size=n, bounds="front") * (h * w)
    bins = [span / float(number) for span, number in zip(spans, pooled)]
    shape = (count, *pooled)
    if sample_num > 0:
        grid = (count, pooled[0], sample_num, pooled[1], sample_num)
        places = []
        for k, (start, size) in enumerate(zip(starts, bins)):
            bin_at, sample = iota(grid, 1 + 2 * k, x.dtype), iota(grid, 2 + 2 * k, x.dtype)
            lead = (count, 1, 1, 1, 1)
            places.append(reshaped(start, lead) + reshaped(size, lead) * (bin_at + (sample + 0.5) / float(sample_num)))
        where = broadcast(reshaped(base, (count, 1, 1, 1, 1)), grid)
        found = _bilinear(columns, where, (h, w), (places[0], places[1]), largest)
        found = reduction.amax(found, (2, 4)) if largest else reduction.mean(found, (2, 4))
        return permuted(found, (0, 3, 1, 2))
    grids = [run(E.maximum, run(E.ceil, size), constant_like(least, size)) for size in bins]
    total = _adaptive(columns, broadcast(base, shape), (h, w), starts, bins, grids, largest)
    whole = reshaped(grids[0] * grids[1], (count, 1, 1, 1))
    if largest:
        total = select(broadcast(run(E.lt, whole, constant_like(0.5, whole)), total.shape), 0.0, total)
    else:
        total = total / run(E.maximum, whole, constant_like(1.0, whole))
    return permuted(total, (0, 3, 1, 2))


def _adaptive(
    columns: Tensor,
    base: Tensor,
    sizes: tuple[int, int],
    starts: list[Tensor],
    bins: list[Tensor],
    grids: list[Tensor],
    largest: bool,
) -> Tensor:
    """Return the sums over as many positions in each bin as `grids` says for its region.

    `columns`, `base`, `sizes` and `largest` are those of `_bilinear`, and `starts` and `bins` say
    where regions begin and how large their bins are. Step k of a loop reads sample k of all bins.
    """
    shape, kind = base.shape, columns.dtype
    low = -float("inf")
    most = cast(run(R.reduce_max, grids[0] * grids[1], axes=(0, 1, 2), keepdims=False), D.int64)

    def body(
        k: Tensor,
        total: Tensor,
        columns: Tensor,
        base: Tensor,
        y: Tensor,
        x: Tensor,
        height: Tensor,
        width: Tensor,
        rows: Tensor,
        across: Tensor,
        most: Tensor,
    ) -> Any:
        number = cast(k, kind)
        row = run(E.floor, (number + 0.5) / across)
        column = number - row * across
        down = y + height * (iota(shape, 1, kind) + (row + 0.5) / rows)
        right = x + width * (iota(shape, 2, kind) + (column + 0.5) / across)
        valid = broadcast(run(E.lt, number, rows * across), shape)
        read = _bilinear(columns, base, sizes, (select(valid, down, -2.0), right), largest)
        if largest:
            read = select(broadcast(reshaped(valid, (*shape, 1)), read.shape), read, low)
            return k + scalar(1, D.int64), run(E.maximum, total, read)
        return k + scalar(1, D.int64), total + read

    def test(k: Tensor, *rest: Tensor) -> Any:
        return (k < rest[-1],)

    operands = (
        zeros((), D.int64),
        full((*shape, columns.shape[1]), low if largest else 0.0, dtype=kind),
        columns,
        base,
        *starts,
        *bins,
        *grids,
        most,
    )
    types = [t._type for t in operands]
    graphs = {"test": graph_of(test, types), "body": graph_of(body, types)}
    done: Any = eager.apply(control.while_loop, *operands, **graphs, carried=2)
    return done[1]
