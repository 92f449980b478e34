"""ONNX's image operators: resizing, grid sampling, and boxes.

`Resize` goes axis by axis: positions of the result in the input, and weights of the entries around
them, are computed by NumPy, so an axis is one product with a matrix, or a choice of entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    as_type,
    moved,
    number,
    pad,
    reshaped,
    rule,
    same,
    scalar,
    select,
    shape_values,
    sliced,
)
from mycel.formats.onnx.rules.data_movement import axis_of
from mycel.formats.onnx.rules.image_sampling import cubic_samples

__all__: list[str] = []


@rule("Upsample", known=(1,))
def _upsample(op: Operation, x: Tensor, scales: Array) -> Tensor:
    op.attributes.setdefault("coordinate_transformation_mode", "asymmetric")
    op.attributes.setdefault("nearest_mode", "floor")
    found: Tensor = _resize(op, x, None, scales)
    return found


@rule("Resize", known=(1, 2, 3))
def _resize(op: Operation, x: Tensor, roi: Any = None, scales: Any = None, sizes: Any = None) -> Tensor:
    axes = [axis_of(op, a, x.ndim) for a in op.get("axes") or range(x.ndim)]
    where = op.get("coordinate_transformation_mode", "half_pixel")
    crops = where == "tf_crop_and_resize"
    edges = [0.0] * len(axes) + [1.0] * len(axes) if roi is None or not roi.size else shape_values(roi)
    given = shape_values(sizes) if sizes is not None and sizes.size else None
    factors = [1.0] * len(axes) if given is not None else [float(s) for s in shape_values(scales)]
    if given is not None and not all(_same(n, x.shape[a]) for n, a in zip(given, axes) if _open(n, x.shape[a])):
        raise op.refused("another size of an axis of open size is not supported")
    lengths: list[Any] = []
    policy = op.get("keep_aspect_ratio_policy", "stretch")
    if given is not None:
        factors = [1.0 if _open(n, x.shape[a]) else n / x.shape[a] for n, a in zip(given, axes)]
        lengths = list(given)
        if policy != "stretch":
            factor = (min if policy == "not_larger" else max)(factors)
            factors = [factor] * len(axes)
            lengths = [int(math.floor(factor * x.shape[a] + 0.5)) for a in axes]
    for i, axis in enumerate(axes):
        size, factor = x.shape[axis], factors[i]
        start, end = (edges[i], edges[len(axes) + i]) if crops else (0.0, 1.0)
        if given is not None and _open(given[i], size):
            continue
        if given is None and factor == 1.0 and (start, end) == (0.0, 1.0):
            continue
        if isinstance(size, Dim):
            raise op.refused("another size of an axis of open size is not supported")
        length = lengths[i] if lengths else int(math.floor(size * (end - start) * np.float32(factor)))
        if (length, start, end, factor) == (size, 0.0, 1.0, 1.0):
            continue
        x = _along(op, x, axis, _positions(op, where, size, length, factor, (start, end)), factor)
    return x


def _open(a: Any, b: Any) -> bool:
    return isinstance(a, Dim) or isinstance(b, Dim)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b)


def _positions(op: Operation, where: str, size: int, length: int, factor: float, crop: tuple[float, float]) -> Array:
    """Return where the entries of a result lie in the input.

    `where` names the rule, `size` and `length` are those of the input and the result, `factor` the
    scale, and `crop` the part of the axis that is wanted.
    """
    at = np.arange(length, dtype=np.float64)
    whole = (at + 0.5) / factor - 0.5
    rules: dict[str, Callable[[], Array]] = {
        "half_pixel": lambda: whole,
        "pytorch_half_pixel": lambda: whole if length > 1 else at * 0,
        "half_pixel_symmetric": lambda: size / 2 * (1 - length / (factor * size)) + whole,
        "align_corners": lambda: at * (size - 1) / (factor * size - 1) if length > 1 else at * 0,
        "asymmetric": lambda: at / factor,
        "tf_crop_and_resize": lambda: (
            crop[0] * (size - 1) + at * (crop[1] - crop[0]) * (size - 1) / (length - 1)
            if length > 1
            else at * 0 + 0.5 * (crop[0] + crop[1]) * (size - 1)
        ),
    }
    if where not in rules:
        raise op.refused(f"coordinate_transformation_mode {where!r}; {sorted(rules)} are supported")
    return rules[where]()


_NEAREST: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda at: np.ceil(at - 0.5),
    "round_prefer_ceil": lambda at: np.floor(at + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _along(op: Operation, x: Tensor, axis: int, at: Array, factor: float) -> Tensor:
    """Return a tensor with the entries at positions of an axis."""
    size, mode = x.shape[axis], op.get("mode", "nearest")
    if mode == "nearest":
        places = _NEAREST[op.get("nearest_mode", "round_prefer_floor")](at).clip(0, size - 1)
        found = apply(I.take, x, same(places, D.int64), axis=axis)
    else:
        weights = _weights(op, mode, at, size, factor)
        wide = as_type(x, D.float32) if x.dtype.itemsize < 4 or not x.dtype.is_floating else x
        made = ops.matmul(moved(wide, axis, -1), same(weights.T, wide.dtype))
        found = as_type(moved(made, -1, axis), x.dtype)
    if op.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        outside = (at < 0) | (at > size - 1)
        if outside.any():
            form = [len(at) if i == axis else 1 for i in range(x.ndim)]
            mask = same(outside.reshape(form), D.bool_)
            found = select(mask, scalar(op.get("extrapolation_value", 0.0), found), found)
    return found


def _weights(op: Operation, mode: str, at: Array, size: int, factor: float) -> Array:
    """Return the weight of each entry of an axis (columns) in each position (rows)."""
    if mode not in ("linear", "cubic"):
        raise op.refused(f"the mode {mode!r}; 'nearest', 'linear' and 'cubic' are supported")
    narrow = min(factor, 1.0) if op.get("antialias", 0) else 1.0
    reach = (1 if mode == "linear" else 2) / narrow
    first = int(math.floor(-reach)) + 1
    offsets = np.arange(first, 2 - first)
    places = np.floor(at)[:, None] + offsets
    far = np.abs((places - at[:, None]) * narrow)
    if mode == "linear":
        weights = np.maximum(1 - far, 0)
    else:
        a = op.get("cubic_coeff_a", -0.75)
        near = ((a + 2) * far - (a + 3)) * far * far + 1
        rest = (((far - 5) * far + 8) * far - 4) * a
        weights = np.where(far <= 1, near, np.where(far < 2, rest, 0))
    if op.get("exclude_outside", 0):
        weights = np.where((places < 0) | (places >= size), 0, weights)
    weights = weights / weights.sum(1, keepdims=True)
    out = np.zeros((len(at), size))
    np.add.at(out, (np.arange(len(at))[:, None], places.clip(0, size - 1).astype(np.int64)), weights)
    return out


@rule("GridSample")
def _grid_sample(op: Operation, x: Tensor, grid: Tensor) -> Tensor:
    modes = {
        "linear": "bilinear",
        "bilinear": "bilinear",
        "nearest": "nearest",
        "cubic": "bicubic",
        "bicubic": "bicubic",
    }
    mode = modes.get(op.get("mode", "linear"))
    padding, align = op.get("padding_mode", "zeros"), bool(op.get("align_corners", 0))
    if mode is None or padding not in ("zeros", "border", "reflection"):
        raise op.refused(f"the mode {op.get('mode')!r} with padding {padding!r}")
    if grid.ndim != x.ndim or grid.shape[-1] != x.ndim - 2:
        raise op.wrong(f"a grid {grid._type} does not fit the images {x._type}")
    if mode == "bicubic":
        return cubic_samples(x, grid, padding, align)
    found: Tensor = ops.grid_sample(x, as_type(grid, x.dtype), mode, padding, align)
    return found


@rule("AffineGrid", known=(1,))
def _affine_grid(op: Operation, theta: Tensor, size: Array) -> Tensor:
    found: Tensor = ops.affine_grid(theta, tuple(shape_values(size)), bool(op.get("align_corners", 0)))
    return found


@rule("NonMaxSuppression", known=(0, 1, 2, 3, 4))
def _non_max_suppression(
    op: Operation, boxes: Array, scores: Array, most: Any = None, overlap: Any = None, least: Any = None
) -> Any:
    limit = int(number(most)) if most is not None and most.size else 0
    ratio = float(number(overlap)) if overlap is not None and overlap.size else 0.0
    floor = float(number(least)) if least is not None and least.size else -math.inf
    if op.get("center_point_box", 0):
        middle, half = boxes[..., :2][..., ::-1], boxes[..., 2:][..., ::-1] / 2
        low, high = middle - half, middle + half
    else:
        low, high = np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])
    areas = (high - low).prod(-1)
    found = []
    for b in range(scores.shape[0]):
        for c in range(scores.shape[1]):
            kept: list[int] = []
            for i in np.argsort(-scores[b, c], kind="stable"):
                if len(kept) >= limit or scores[b, c, i] <= floor:
                    break
                common = np.maximum(np.minimum(high[b, i], high[b, kept]) - np.maximum(low[b, i], low[b, kept]), 0)
                common = common.prod(-1)
                union = areas[b, i] + areas[b, kept] - common
                if not (common > ratio * union).any():
                    kept.append(int(i))
            found += [(b, c, i) for i in kept]
    return np.array(found, np.int64).reshape(-1, 3)


@rule("Col2Im", known=(1, 2))
def _col2im(op: Operation, x: Tensor, image: Array, block: Array) -> Tensor:
    sizes, kernel = shape_values(image), shape_values(block)
    rank = len(sizes)
    strides = op.get("strides") or [1] * rank
    dilations = op.get("dilations") or [1] * rank
    pads = op.get("pads") or [0] * 2 * rank
    wide = [n + pads[i] + pads[rank + i] for i, n in enumerate(sizes)]
    counts = [(n - (k - 1) * d - 1) // s + 1 for n, k, d, s in zip(wide, kernel, dilations, strides)]
    n, columns = x.shape[0], x.shape[1] // math.prod(kernel)
    parts = reshaped(x, (n, columns, math.prod(kernel), *counts))
    total: Any = None
    for number_, place in enumerate(np.ndindex(*kernel)):
        part = reshaped(sliced(parts, 2, number_, number_ + 1), (n, columns, *counts))
        low = [p * d for p, d in zip(place, dilations)]
        inner = [s - 1 for s in strides]
        high = [w - a - ((c - 1) * s + 1) for w, a, c, s in zip(wide, low, counts, strides)]
        spread = apply(S.PAD, part, scalar(0, x), low=(0, 0, *low), high=(0, 0, *high), interior=(0, 0, *inner))
        total = spread if total is None else apply(E.add, total, spread)
    return pad(total, (0, 0, *[-p for p in pads[:rank]]), (0, 0, *[-p for p in pads[rank:]]))
