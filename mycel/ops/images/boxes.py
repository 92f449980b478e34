"""Bounding boxes (x0, y0, x1, y1) of detectors: overlap, offsets to anchors, and choices.

Offsets follow R-CNN (Girshick et al., 2014): the centre's shift in units of the anchor's size, and
the logarithm of the ratio of sizes, each less a mean and over a standard deviation. There sizes
count both border pixels: x1 - x0 + 1.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.ops import random
from mycel.ops._operands import (
    check_sizes,
    constant_like,
    flat,
    floating,
    iota,
    numbers,
    operand,
    reshaped,
    run,
    select,
    size_of,
    take_slice,
)
from mycel.ops.array import stack
from mycel.ops.sorting import argsort

__all__ = ["bounding_box_decode", "bounding_box_encode", "check_valid", "choice_with_mask", "iou"]


def _boxes(name: str, what: str, value: Any) -> Tensor:
    """Return boxes (boxes, 4) of a floating type."""
    x = floating(name, value)
    if x.ndim != 2 or x.shape[1] != 4:
        raise ShapeError(f"{name}: {what} must be (boxes, 4), not {x._type}")
    return x


def _sides(x: Tensor) -> list[Tensor]:
    """Return the four coordinates of boxes (boxes, 4), each (boxes,)."""
    return [reshaped(take_slice(x, 1, k, k + 1), (x.shape[0],)) for k in range(4)]


def iou(anchor_boxes: Any, gt_boxes: Any, mode: str = "iou") -> Tensor:
    """Return the overlap of each pair of boxes: (ground truths, anchors).

    It is the area that the boxes share over the area of their union, or, with `mode` "iof", over
    the area of the box of `gt_boxes`.

    >>> import mycel as ms
    >>> ms.ops.iou(ms.Tensor([[0.0, 0.0, 2.0, 2.0]]), ms.Tensor([[0.0, 1.0, 2.0, 3.0]])).shape
    (1, 1)
    """
    arguments.one_of("iou", "mode", mode, ("iou", "iof"))
    a, g = _boxes("iou", "anchor_boxes", anchor_boxes), _boxes("iou", "gt_boxes", gt_boxes)
    ax0, ay0, ax1, ay1 = (reshaped(s, (1, a.shape[0])) for s in _sides(a))
    gx0, gy0, gx1, gy1 = (reshaped(s, (g.shape[0], 1)) for s in _sides(g))
    zero = constant_like(0.0, a)
    width = run(E.maximum, run(E.minimum, ax1, gx1) - run(E.maximum, ax0, gx0) + 1.0, zero)
    height = run(E.maximum, run(E.minimum, ay1, gy1) - run(E.maximum, ay0, gy0) + 1.0, zero)
    shared = width * height
    own, truth = (ax1 - ax0 + 1.0) * (ay1 - ay0 + 1.0), (gx1 - gx0 + 1.0) * (gy1 - gy0 + 1.0)
    return shared / (truth if mode == "iof" else own + truth - shared)


def _centred(x: Tensor) -> tuple[Tensor, ...]:
    """Return boxes as the coordinates of their centres, widths and heights."""
    x0, y0, x1, y1 = _sides(x)
    return (x0 + x1) * 0.5, (y0 + y1) * 0.5, x1 - x0 + 1.0, y1 - y0 + 1.0


def _four(name: str, what: str, value: Any) -> tuple[float, ...]:
    """Return four numbers of an argument that is four or one for all."""
    if isinstance(value, float):
        return (value,) * 4
    found = tuple([arguments.number(name, f"each of {what}", v) for v in arguments.sequence(name, what, value)])
    if len(found) != 4:
        raise ValueError(f"{name}: {what} must be 4 numbers, not {value}")
    return found


def bounding_box_encode(
    anchor_box: Any, groundtruth_box: Any, means: Any = (0.0, 0.0, 0.0, 0.0), stds: Any = (1.0, 1.0, 1.0, 1.0)
) -> Tensor:
    """Return the offsets that take each box of `anchor_box` to that of `groundtruth_box`.

    `means` are subtracted from the offsets, which are then divided by `stds`.

    Args:
        anchor_box (Tensor): The boxes (boxes, 4) that offsets are relative to.
        groundtruth_box (Tensor): The boxes, (boxes, 4).
        means (float | Sequence[float]): The means of the offsets, one number or four. Default:
            (0.0, 0.0, 0.0, 0.0).
        stds (float | Sequence[float]): The scales of the offsets, one number or four. Default:
            (1.0, 1.0, 1.0, 1.0).

    Returns:
        Tensor: (boxes, 4).

    Examples:
        >>> import mycel as ms
        >>> box = ms.Tensor([[2.0, 2.0, 5.0, 5.0]])
        >>> ms.ops.bounding_box_encode(box, box + 2).tolist()
        [[0.5, 0.5, 0.0, 0.0]]
    """
    name = "bounding_box_encode"
    a, g = _boxes(name, "anchor_box", anchor_box), _boxes(name, "groundtruth_box", groundtruth_box)
    ax, ay, aw, ah = _centred(a)
    gx, gy, gw, gh = _centred(g)
    deltas = ((gx - ax) / aw, (gy - ay) / ah, run(E.log, gw / aw), run(E.log, gh / ah))
    scaled = [(d - m) / s for d, m, s in zip(deltas, _four(name, "means", means), _four(name, "stds", stds))]
    return stack(scaled, -1)


def bounding_box_decode(
    anchor_box: Any,
    deltas: Any,
    max_shape: Any,
    means: Any = (0.0, 0.0, 0.0, 0.0),
    stds: Any = (1.0, 1.0, 1.0, 1.0),
    wh_ratio_clip: float = 0.016,
) -> Tensor:
    """Return the boxes to which offsets take other boxes, cut at an image of `max_shape`.

    Offsets are multiplied by `stds`, and `means` are added.

    Args:
        anchor_box (Tensor): The boxes (boxes, 4) that offsets are relative to.
        deltas (Tensor): The offsets, (boxes, 4).
        max_shape (tuple[int, int]): The size of the image, (height, width).
        means (float | Sequence[float]): The means of the offsets, one number or four. Default:
            (0.0, 0.0, 0.0, 0.0).
        stds (float | Sequence[float]): The scales of the offsets, one number or four. Default:
            (1.0, 1.0, 1.0, 1.0).
        wh_ratio_clip (float): Sizes change by a factor of 1 / wh_ratio_clip at most. Default:
            0.016.

    Returns:
        Tensor: (boxes, 4).

    Examples:
        >>> import mycel as ms
        >>> anchor, offsets = ms.Tensor([[2.0, 2.0, 5.0, 5.0]]), ms.Tensor([[0.5, 0.5, 0.0, 0.0]])
        >>> ms.ops.bounding_box_decode(anchor, offsets, (20, 20)).tolist()
        [[4.0, 4.0, 7.0, 7.0]]
    """
    arguments.instance("bounding_box_decode", "wh_ratio_clip", wh_ratio_clip, float)
    name = "bounding_box_decode"
    a, d = _boxes(name, "anchor_box", anchor_box), _boxes(name, "deltas", deltas)
    ax, ay, aw, ah = _centred(a)
    dx, dy, dw, dh = (x * s + m for x, m, s in zip(_sides(d), _four(name, "means", means), _four(name, "stds", stds)))
    most = abs(math.log(wh_ratio_clip))
    limit, least = constant_like(most, a), constant_like(-most, a)
    gw = aw * run(E.exp, run(E.maximum, run(E.minimum, dw, limit), least))
    gh = ah * run(E.exp, run(E.maximum, run(E.minimum, dh, limit), least))
    gx, gy = ax + aw * dx, ay + ah * dy
    height, width = (
        arguments.number(name, "each of max_shape", v) for v in arguments.sequence(name, "max_shape", max_shape)[:2]
    )
    corners = []
    for value, size in (
        (gx - gw * 0.5 + 0.5, width),
        (gy - gh * 0.5 + 0.5, height),
        (gx + gw * 0.5 - 0.5, width),
        (gy + gh * 0.5 - 0.5, height),
    ):
        corners.append(run(E.maximum, run(E.minimum, value, constant_like(size, a)), constant_like(0.0, a)))
    return stack(corners, -1)


def check_valid(bboxes: Any, img_metas: Any) -> Tensor:
    """Return whether each box lies in an image (height, width, ratio) scaled by its ratio.

    >>> import mycel as ms
    >>> boxes = ms.Tensor([[0.0, 0.0, 2.0, 2.0], [0.0, 0.0, 9.0, 2.0]])
    >>> ms.ops.check_valid(boxes, ms.Tensor([4.0, 5.0, 1.0])).tolist()
    [True, False]
    """
    name = "check_valid"
    x, meta = _boxes(name, "bboxes", bboxes), floating(name, img_metas)
    if meta.shape != (3,):
        raise ShapeError(f"{name}: img_metas must be (height, width, ratio), not {meta._type}")
    height, width, ratio = (reshaped(take_slice(meta, 0, k, k + 1), ()) for k in range(3))
    x0, y0, x1, y1 = _sides(x)
    low = run(E.logical_and, x0 >= 0.0, y0 >= 0.0)
    high = run(E.logical_and, run(E.le, x1, width * ratio - 1.0), run(E.le, y1, height * ratio - 1.0))
    return run(E.logical_and, low, high)


def choice_with_mask(input_x: Any, count: int = 256, seed: int | None = None) -> tuple[Tensor, Tensor]:
    """Return the positions of `count` true elements in random order, and which of them there are.

    The positions are int32 (count, dimensions); where there are fewer true elements the rest are 0.

    >>> import mycel as ms
    >>> index, mask = ms.ops.choice_with_mask(ms.Tensor([False, True]), 2)
    >>> index.tolist(), mask.tolist()
    ([[1], [0]], [True, False])
    """
    name = "choice_with_mask"
    x = operand(name, input_x)
    if x.dtype is not D.bool_:
        raise TypeError(f"{name}: input_x must be boolean, not {x.dtype.name}")
    line = flat(x)
    keys = select(line, random.rand(*line.shape, seed=seed), 2.0)
    order = argsort(keys, 0)
    size, count = int(line.shape[0]), check_sizes(name, (size_of(name, count),))[0]
    places = as_tensor(np.minimum(numbers(count), max(size - 1, 0)).astype(np.int32))
    chosen = run(I.take, order, places, axis=0)
    true = run(R.reduce_sum, cast(line, D.int32), axes=(0,), keepdims=False)
    valid = run(E.lt, iota((count,), 0, D.int32), true)
    columns, rest = [], cast(chosen, D.int32)
    for d in reversed(x.shape):
        columns.append(select(valid, run(E.mod, rest, constant_like(int(d), rest)), 0))
        rest = run(E.floor_div, rest, constant_like(int(d), rest))
    return stack(columns[::-1], -1), valid
