"""Pooling over rows and columns cut at random, and boxes drawn at random.

An axis of size d is cut into n cells of floor(d / n) elements or one more (Graham, "Fractional
Max-Pooling", 2014), in random order. If pseudo-random, cell i ends at ceil(alpha (i + u)) - 1
instead, where alpha = d / n and u is drawn once for the axis, as small as keeps all cells at these
sizes. The cuts are tensors, but the width of the widest cell is known: each cell is gathered at
this width, with its last element repeated. Windows are products of rows and columns, so axes are
pooled one after the other.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import random as random_prims
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, scalar
from mycel.common.generator import seeded_generator
from mycel.ops import gather_scatter, random, reduction
from mycel.ops._operands import constant_like, floating, numbers, operand, reshaped, run, select, take_slice
from mycel.ops.array import concat, stack
from mycel.ops.sorting import cumsum

__all__ = ["distorted_box", "fractional_pool"]


def _cuts(size: int, count: int, pseudo: bool, fixed: Any) -> Tensor:
    """Return where the cells of an axis begin and where the last one ends: (count + 1,) of int64.

    `fixed` is NumPy's generator of a choice that seeds decide, or None.
    """
    least, extra = divmod(size, count)
    if not extra:
        return as_tensor(numbers(count + 1) * least)
    if pseudo:
        alpha = size / count
        most = min((least + 2) / alpha - 1, (size + 1 - least) / alpha - (count - 1))
        place = numbers(count, np.float64)[1:]
        if fixed is not None:
            inner = as_tensor(np.ceil(alpha * (place + fixed.uniform() * most)).astype(np.int64) - 1)
        else:
            u = random.rand(1, dtype=D.float64) * most
            inner = cast(run(E.ceil, (as_tensor(place, D.float64) + u) * alpha), D.int64) - 1
        return concat([as_tensor(np.zeros(1, np.int64)), inner, as_tensor(np.full(1, size, np.int64))], 0)
    order = as_tensor(fixed.permutation(count)) if fixed is not None else random.randperm(count)
    sizes = cast(run(E.lt, cast(order, D.int64), constant_like(extra, scalar(0, D.int64))), D.int64) + least
    return concat([as_tensor(np.zeros(1, np.int64)), cumsum(sizes, 0)], 0)


def fractional_pool(
    name: str,
    x: Any,
    pooling_ratio: Any,
    pseudo_random: bool,
    overlapping: bool,
    deterministic: bool,
    seed: int,
    seed2: int,
    mean: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return images `x` (N, H, W, C) pooled over random cells to floor(size / ratio), and the int64
    cuts of rows and of columns.

    `pooling_ratio` is (1, a, b, 1), each at least 1. Cells are `pseudo_random` as the module
    describes; `overlapping` cells share their borders. `deterministic` cells depend on `seed` and
    `seed2` alone; without it these must be 0, as in MindSpore, and cells come from the default
    generator. `mean` takes the mean of a cell, cut off to a whole number for integers, instead of
    its maximum. `name` is the operation, for errors.

    >>> import mycel as ms
    >>> x = ms.ops.arange(16.0).reshape((1, 4, 4, 1))
    >>> found, rows, columns = ms.ops.FractionalMaxPool([1.0, 2.0, 2.0, 1.0])(x)
    >>> found.flatten().tolist(), rows.tolist()
    ([5.0, 7.0, 13.0, 15.0], [0, 2, 4])
    """
    value = operand(name, x)
    ratios = tuple(float(r) for r in pooling_ratio)
    if value.ndim != 4 or len(ratios) != 4 or ratios[0] != 1 or ratios[3] != 1 or min(ratios) < 1:
        raise ValueError(
            f"{name}: takes (N, H, W, C) and ratios (1, a, b, 1) of at least 1, not {value._type} and {ratios}"
        )
    if not deterministic and (seed or seed2):
        raise ValueError(f"{name}: seed {seed} and seed2 {seed2} go with deterministic=True")
    fixed = np.random.default_rng(seed * 2**31 + seed2) if deterministic else None
    cuts = []
    kind = value.dtype
    if mean and kind.is_integer:
        value = cast(value, D.float64)
    for axis in (1, 2):
        size = int(value.shape[axis])
        count = math.floor(size / ratios[axis])
        if count < 1:
            raise ValueError(f"{name}: a ratio of {ratios[axis]} leaves nothing of the size {size}")
        cut = _cuts(size, count, pseudo_random, fixed)
        cuts.append(cut)
        begin = reshaped(take_slice(cut, 0, 0, count), (count, 1))
        last = reshaped(take_slice(cut, 0, 1, count + 1), (count, 1))
        last = run(E.minimum, last, constant_like(size - 1, last)) if overlapping else last - 1
        width = -(-size // count) + overlapping
        at = begin + as_tensor(numbers(width)[None])
        shape = (count, width, *(1,) * (3 - axis))
        inside = reshaped(run(E.le, at, last), shape)
        parts = gather_scatter.gather(value, run(E.minimum, at, last), axis)
        if mean:
            whole = reshaped(cast(last - begin + 1, value.dtype), (count, *(1,) * (3 - axis)))
            value = reduction.sum(select(inside, parts, 0.0), axis + 1) / whole
        else:
            value = run(R.reduce_max, parts, axes=(axis + 1,), keepdims=False)
    return cast(run(E.trunc, value), kind) if value.dtype is not kind else value, cuts[0], cuts[1]


def _drawn_parts(
    high: Tensor, wide: Tensor, ratios: tuple[float, ...], areas: tuple[float, ...], count: int, generator: Any
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return random parts of an image, as top, left, height and width, and which of them lie inside
    and have an area within `areas`.
    """
    drawn = random.draw(random_prims.uniform, (4, count), generator, dtype=D.float64)
    aspect, u, v, t = (reshaped(take_slice(drawn, 0, k, k + 1), (count,)) for k in range(4))
    aspect = aspect * (ratios[1] - ratios[0]) + ratios[0]
    least, most = high * wide * areas[0], high * wide * areas[1]
    zero = constant_like(0.0, aspect)
    # The heights between those of the least and the largest area, as far as the image is wide and
    # high enough.
    shortest = run(E.rint, run(E.sqrt, least / aspect))
    tallest = run(E.rint, run(E.sqrt, most / aspect))
    fitting = run(E.floor, (wide + (0.5 - 1e-7)) / aspect)
    fitting = fitting - cast(run(E.gt, run(E.rint, fitting * aspect), wide), D.float64)
    tallest = select(run(E.gt, run(E.rint, tallest * aspect), wide), fitting, tallest)
    tallest = run(E.minimum, tallest, high)
    shortest = run(E.minimum, shortest, tallest)
    height = run(E.minimum, shortest + run(E.floor, u * (tallest - shortest + 1.0)), tallest)
    width = run(E.rint, height * aspect)
    height = height + cast(run(E.lt, width * height, least), D.float64)
    width = run(E.rint, height * aspect)
    height = height - cast(run(E.gt, width * height, most), D.float64)
    width = run(E.rint, height * aspect)
    area = width * height
    good = run(E.logical_and, run(E.ge, area, least), run(E.le, area, most))
    for side, limit in ((width, wide), (height, high)):
        good = run(E.logical_and, good, run(E.logical_and, side > 0.0, run(E.le, side, limit)))
    top = run(E.maximum, run(E.floor, v * (high - height)), zero)
    left = run(E.maximum, run(E.floor, t * (wide - width)), zero)
    return top, left, height, width, good


def _covering(
    boxes: Tensor, covered: Tensor, high: Tensor, wide: Tensor, top: Tensor, left: Tensor, height: Tensor, width: Tensor
) -> Tensor:
    """Return which parts of an image cover at least the share `covered` of one of the boxes."""
    rows = reshaped(cast(boxes, D.float64), (-1 if not isinstance(boxes.size, int) else boxes.size // 4, 4))
    y0, x0, y1, x1 = (
        run(E.trunc, reshaped(take_slice(rows, 1, k, k + 1), (1, rows.shape[0])) * (wide if k % 2 else high))
        for k in range(4)
    )
    column = (top.shape[0], 1)
    shared = constant_like(1.0, covered)
    for a, b, first, length in ((y0, y1, top, height), (x0, x1, left, width)):
        begin, end = reshaped(first, column), reshaped(first + length, column)
        shared = shared * run(E.maximum, run(E.minimum, b, end) - run(E.maximum, a, begin), constant_like(0.0, covered))
    objects = (y1 - y0) * (x1 - x0)
    enough = run(E.logical_and, objects >= 1.0, run(E.ge, shared / select(objects >= 1.0, objects, 1.0), covered))
    return run(R.reduce_any, enough, axes=(1,), keepdims=False)


def distorted_box(
    image_size: Any,
    bounding_boxes: Any,
    min_object_covered: Any,
    seed: Any = None,
    aspect_ratio_range: Any = (0.75, 1.33),
    area_range: Any = (0.05, 1.0),
    max_attempts: int = 100,
    use_image_if_no_bounding_boxes: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return a random part of an image: where it begins (y, x, 0), its size (height, width, -1),
    and its box (1, 1, 4) of (y0, x0, y1, x1) from 0 to 1.

    `image_size` is (height, width, channels). The area of the part is a share of the image's from
    `area_range`, its width over its height is from `aspect_ratio_range`, and it covers at least
    `min_object_covered` of one of the `bounding_boxes` (batch, N, 4). Without boxes the image is
    one with `use_image_if_no_bounding_boxes`, else that is an error. All `max_attempts` are drawn
    at once, from the generator or the seed `seed`, and the first that fits is taken, or the whole
    image. Szegedy et al., 2015.

    >>> import mycel as ms
    >>> draw = ms.ops.SampleDistortedBoundingBoxV2(seed=1)
    >>> boxes = ms.Tensor([[[0.2, 0.2, 0.8, 0.8]]])
    >>> begin, size, box = draw(ms.Tensor([60, 40, 3], ms.int32), boxes, ms.Tensor(0.5))
    >>> begin.shape, size.tolist()[2], box.shape
    ((3,), -1, (1, 1, 4))
    """
    name = "distorted_box"
    image, boxes = operand(name, image_size), floating(name, bounding_boxes)
    covered = reshaped(cast(floating(name, min_object_covered), D.float64), (1, 1))
    ratios, areas = (tuple(float(v) for v in r) for r in (aspect_ratio_range, area_range))
    if image.shape != (3,) or not image.dtype.is_integer or boxes.ndim != 3 or boxes.shape[2] != 4:
        raise ShapeError(
            f"{name}: takes an integer image_size (3,) and boxes (batch, N, 4), not {image._type} and {boxes._type}"
        )
    if not 0 < ratios[0] <= ratios[1] or not 0 < areas[0] <= areas[1] <= 1 or max_attempts < 1:
        raise ValueError(
            f"{name}: ranges {ratios} and {areas} must be positive and rise, areas be at most 1, and max_attempts "
            f"{max_attempts} positive"
        )
    if not boxes.size:
        if not use_image_if_no_bounding_boxes:
            raise ValueError(
                f"{name}: there are no bounding boxes; set use_image_if_no_bounding_boxes to take the image"
            )
        boxes = as_tensor(np.array([[[0.0, 0.0, 1.0, 1.0]]], np.float32))
    full = cast(image, D.float64)
    high, wide = (reshaped(take_slice(full, 0, k, k + 1), (1,)) for k in range(2))
    generator = seeded_generator(seed)
    top, left, height, width, good = _drawn_parts(high, wide, ratios, areas, max_attempts, generator)
    good = run(E.logical_and, good, _covering(boxes, covered, high, wide, top, left, height, width))
    first = reduction.argmax(cast(good, D.int32), 0, True)
    found = run(R.reduce_any, good, axes=(0,), keepdims=True)
    chosen = []
    for value, otherwise in ((top, high * 0.0), (left, wide * 0.0), (height, high), (width, wide)):
        chosen.append(select(found, gather_scatter.gather(value, first, 0), otherwise))
    top, left, height, width = chosen
    begin = cast(concat([top, left, top * 0.0], 0), image.dtype)
    size = concat([cast(height, image.dtype), cast(width, image.dtype), cast(as_tensor([-1], D.int64), image.dtype)], 0)
    corners = stack([top / high, left / wide, (top + height) / high, (left + width) / wide], -1)
    return begin, size, cast(reshaped(corners, (1, 1, 4)), D.float32)
