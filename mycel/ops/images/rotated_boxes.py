"""The overlap of rotated rectangles, by Green's theorem.

Take the edges a to b of two convex polygons, counter-clockwise, and of each edge the part that lies
inside of the other polygon. The area that both polygons share is half the sum of cross(a, b) of
these parts. An edge is cut by the four lines of the other rectangle: with distances d0 and d1 of
its ends from a line, the part inside runs to or from d0 / (d0 - d1). Where edges of both lie on one
line they count once, and only if they run the same way. There is no sorting of corners, so the
result is smooth where the edges cross.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import constant_like, floating, reshaped, run, select, take_slice, wide
from mycel.ops.array import stack

__all__ = ["rotated_iou"]

Points = tuple[Tensor, Tensor]


def _cross(a: Points, b: Points) -> Tensor:
    """Return the cross product of vectors in the plane."""
    return a[0] * b[1] - a[1] * b[0]


def _rectangle(x: Tensor, corners: bool) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Return the centre, the size and the angle in radians of rectangles (..., 5)."""
    parts = [reshaped(take_slice(x, x.ndim - 1, k, k + 1), x.shape[:-1]) for k in range(5)]
    angle = parts[4] * (math.pi / 180)
    if corners:
        a, b, c, d = parts[:4]
        return (a + c) * 0.5, (b + d) * 0.5, run(E.abs_, c - a), run(E.abs_, d - b), angle
    return parts[0], parts[1], run(E.abs_, parts[2]), run(E.abs_, parts[3]), angle


def _outline(x: Tensor, y: Tensor, width: Tensor, height: Tensor, angle: Tensor) -> tuple[Points, Points]:
    """Return the corners (..., 4) of rectangles, counter-clockwise, and the edges that
    start there.
    """
    cos, sin = run(E.cos, angle) * 0.5, run(E.sin, angle) * 0.5
    across, down = [], []
    for s, t in ((-1, -1), (1, -1), (1, 1), (-1, 1)):
        across.append(x + width * cos * float(s) - height * sin * float(t))
        down.append(y + width * sin * float(s) + height * cos * float(t))
    edges = [[p[(k + 1) % 4] - p[k] for k in range(4)] for p in (across, down)]
    return (stack(across, -1), stack(down, -1)), (stack(edges[0], -1), stack(edges[1], -1))


def _clipped(start: Points, edge: Points, other: Points, lines: Points, near: Tensor, shared: bool) -> Tensor:
    """Return twice the area that the edges of one polygon contribute.

    `start` and `edge` are its corners and edges, `other` and `lines` those of the other polygon.
    Distances up to `near` count as 0, and `shared` says whether edges on a line of the other count.
    """
    one: Points = (_spread(start[0], -1), _spread(start[1], -1))
    way: Points = (_spread(edge[0], -1), _spread(edge[1], -1))
    two: Points = (_spread(other[0], -2), _spread(other[1], -2))
    line: Points = (_spread(lines[0], -2), _spread(lines[1], -2))
    squared = line[0] * line[0] + line[1] * line[1]
    length = run(E.sqrt, select(squared > 0.0, squared, 1.0))
    begin = _cross(line, (one[0] - two[0], one[1] - two[1])) / length
    end = begin + _cross(line, way) / length
    zero = constant_like(0.0, begin)
    limit = reshaped(near, (*near.shape, 1, 1))
    begin, end = (select(run(E.le, run(E.abs_, d), limit), zero, d) for d in (begin, end))
    out, into = run(E.lt, begin, zero), run(E.lt, end, zero)
    crossing = run(E.ne, out, into)
    cut = begin / select(crossing, begin - end, 1.0)
    on_line = run(E.logical_and, run(E.eq, begin, zero), run(E.eq, end, zero))
    with_it = line[0] * way[0] + line[1] * way[1] > 0.0
    allowed = with_it if shared else run(E.lt, squared, zero)
    gone = run(E.logical_or, run(E.logical_and, out, into), run(E.logical_and, on_line, run(E.logical_not, allowed)))
    first = select(gone, 1.0, select(run(E.logical_and, crossing, out), cut, zero))
    last = select(gone, 0.0, select(run(E.logical_and, crossing, into), cut, constant_like(1.0, cut)))
    axis = (begin.ndim - 1,)
    first, last = (
        run(R.reduce_max, first, axes=axis, keepdims=False),
        run(R.reduce_min, last, axes=axis, keepdims=False),
    )
    part = run(E.maximum, last - first, constant_like(0.0, last))
    return run(R.reduce_sum, part * _cross(start, edge), axes=(part.ndim - 1,), keepdims=False)


def _spread(x: Tensor, axis: int) -> Tensor:
    """Return `x` with a new axis of size 1 at -1 or -2."""
    return reshaped(x, (*x.shape, 1) if axis == -1 else (*x.shape[:-1], 1, x.shape[-1]))


@fused
def rotated_iou(
    boxes: Any,
    query_boxes: Any,
    trans: bool = False,
    mode: int = 0,
    is_cross: bool = True,
    v_threshold: float = 0.0,
    e_threshold: float = 0.0,
) -> Tensor:
    """Return the overlap of rotated rectangles.

    Args:
        boxes (Tensor): (B, N, 5).
        query_boxes (Tensor): (B, K, 5).
        trans (bool): Whether a rectangle is (x0, y0, x1, y1, angle) instead of (x, y, width,
            height, angle); it is turned about its centre by an angle in degrees from the x to the y
            axis. Default: False.
        mode (int): 0 is the shared area over that of the union, 1 over that of `boxes`. Default: 0.
        is_cross (bool): Whether every box meets every query box, instead of one to one, where N =
            K. Default: True.
        v_threshold (float): The distance below which a point lies on a line, at least the rounding
            error. Default: 0.0.
        e_threshold (float): The distance below which a point lies on a line, at least the rounding
            error. Default: 0.0.

    Returns:
        Tensor: (B, N, K), or (B, N) one to one.

    Raises:
        ShapeError: For other shapes.

    Examples:
        >>> import mycel as ms
        >>> box = ms.Tensor([[[0.0, 0.0, 2.0, 2.0, 0.0]]])
        >>> round(ms.ops.rotated_iou(box, ms.Tensor([[[0.0, 0.0, 2.0, 2.0, 45.0]]])).item(), 4)
        0.7071
    """
    name = "rotated_iou"
    a, b = floating(name, boxes), floating(name, query_boxes)
    if a.ndim != 3 or b.ndim != 3 or a.shape[-1] != 5 or b.shape[-1] != 5 or a.shape[0] != b.shape[0]:
        raise ShapeError(f"{name}: takes (B, N, 5) and (B, K, 5), not {a._type} and {b._type}")
    if mode not in (0, 1) or (not is_cross and a.shape != b.shape):
        raise ValueError(
            f"{name}: mode is 0 or 1, and one to one needs as many boxes as query boxes; got {mode}, {a._type} and "
            f"{b._type}"
        )
    kind = a.dtype
    one, two = wide(a), cast(wide(b), wide(a).dtype)
    if is_cross:
        one = reshaped(one, (one.shape[0], one.shape[1], 1, 5))
        two = reshaped(two, (two.shape[0], 1, two.shape[1], 5))
    ax, ay, aw, ah, at = _rectangle(one, trans)
    bx, by, bw, bh, bt = _rectangle(two, trans)
    nothing = (ax + bx) * 0.0
    # From the first rectangle's centre, so that far away rectangles lose no digits.
    first, first_edges = _outline(nothing, nothing, aw + nothing, ah + nothing, at + nothing)
    second, second_edges = _outline(bx - ax, by - ay, bw + nothing, bh + nothing, bt + nothing)
    scale = aw + ah + bw + bh
    rounding = 16.0 * float(np.finfo(one.dtype.numpy).eps)
    near = run(E.maximum, scale * rounding, constant_like(float(max(v_threshold, e_threshold)), scale))
    shared = _clipped(first, first_edges, second, second_edges, near, True)
    shared = (shared + _clipped(second, second_edges, first, first_edges, near, False)) * 0.5
    own, other = aw * ah + nothing, bw * bh + nothing
    real = run(E.logical_and, own > 0.0, other > 0.0)
    shared = run(E.maximum, select(real, shared, 0.0), constant_like(0.0, shared))
    whole = own if mode else own + other - shared
    return cast(shared / select(whole > 0.0, whole, 1.0), kind)
