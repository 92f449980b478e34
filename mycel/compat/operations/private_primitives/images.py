"""MindSpore's private primitives on images: resizing, regions of interest, contrast."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mycel import ops
from mycel._src.staging.derivatives import vjp
from mycel._src.tensors.core.tensor import Tensor
from mycel.compat.operations.private_primitives.gradients import cotangents
from mycel.ops._operands import shape_of

__all__ = ["IMAGES"]

Work = Callable[..., Any]


def _nearest(length: int, wanted: int, mode: str) -> list[int]:
    """Return which pixel of a row each pixel of the resized row is."""
    if mode == "align_corners" and wanted > 1:
        return [min(int(i * (length - 1) / (wanted - 1) + 0.5), length - 1) for i in range(wanted)]
    return [min(int(i * length / wanted), length - 1) for i in range(wanted)]


def _resized(p: Any, x: Any, sizes: Sequence[int]) -> Any:
    """Resize rows and columns of (batches, channels, rows, columns)."""
    mode = p.coordinate_transformation_mode
    aligned = mode == "align_corners"
    if p.mode == "nearest":
        for axis, (length, wanted) in enumerate(zip(x.shape[2:], sizes), 2):
            x = ops.gather(x, Tensor(_nearest(length, wanted, mode)), axis)
        return x
    if p.mode == "linear":
        return ops.interpolate(x.squeeze(2), (sizes[1],), None, "linear", aligned).expand_dims(2)
    for axis, wanted in zip((2, 3), sizes):
        weights = Tensor(_cubic_weights(x.shape[axis], wanted, mode)).astype(x.dtype)
        x = ops.matmul(weights, x) if axis == 2 else ops.matmul(x, weights.swapaxes(0, 1))
    return x


def _cubic(distance: float) -> float:
    """Return the weight of a pixel at a distance; Keys' kernel (1981) with -0.75."""
    t = abs(distance)
    if t <= 1:
        return ((1.25 * t) - 2.25) * t * t + 1
    return -0.75 * (((t - 5) * t + 8) * t - 4) if t < 2 else 0.0


def _cubic_weights(length: int, wanted: int, mode: str) -> list[list[float]]:
    """Return what share each pixel of a row has in each pixel of the resized row."""
    table = [[0.0] * length for _ in range(wanted)]
    for i, row in enumerate(table):
        if mode == "align_corners":
            centre = i * (length - 1) / (wanted - 1) if wanted > 1 else 0.0
        else:
            centre = (i + 0.5) * length / wanted - 0.5 if mode == "half_pixel" else i * length / wanted
        first = math.floor(centre) - 1
        for place in range(first, first + 4):
            row[min(max(place, 0), length - 1)] += _cubic(centre - place)
    return table


def _resize(p: Any, x: Any, roi: Any, scales: Any, sizes: Any) -> Any:
    return _resized(p, x, shape_of(p.name, sizes)[2:])


def _resize_grad(p: Any, dy: Any, roi: Any, scales: Any, size: Any) -> Any:
    x = ops.zeros(shape_of(p.name, size), dy.dtype)
    return cotangents(lambda v: _resized(p, v, dy.shape[2:]), [x], dy)


def _nearest_to(p: Any, x: Any, size: Any) -> Any:
    for axis, wanted in zip((2, 3), shape_of(p.name, size)):
        x = ops.gather(x, Tensor(_nearest(x.shape[axis], wanted, "align_corners" if p.align_corners else "")), axis)
    return x


def _inside(starts: Any, steps: Any, count: int, size: int) -> Any:
    """Return which of `size` pixels each of `count` bins of each region has."""
    numbers = ops.arange(count).astype(starts.dtype).reshape((1, count, 1))
    starts, steps = starts.reshape((-1, 1, 1)), steps.reshape((-1, 1, 1))
    low = ops.clip(ops.floor(numbers * steps + starts), 0, size)
    high = ops.clip(ops.ceil((numbers + 1) * steps + starts), 0, size)
    places = ops.arange(size).astype(starts.dtype).reshape((1, 1, size))
    return ops.logical_and(places >= low, places < high).astype(starts.dtype)


def _pooled(
    x: Any, rois: Any, scale: float, channels: int, groups: int, bins: tuple[int, int], last: float = 0.0
) -> Any:
    """Return the means of the bins of regions, each bin in a channel of its own.

    Follows "R-FCN: Object detection via region-based fully convolutional networks" (2016): `rois`
    has a row for each region, the number of the image and its corners, of which the second lies
    `last` pixels further on.
    """
    begins = [ops.round(rois[:, 1 + i]) * scale for i in (0, 1)]
    ends = [(ops.round(rois[:, 3 + i]) + last) * scale for i in (0, 1)]
    wide, high = (ops.clip(e - b, 0.1, None) for b, e in zip(begins, ends))
    rows = _inside(begins[1], high / bins[0], bins[0], x.shape[2])
    columns = _inside(begins[0], wide / bins[1], bins[1], x.shape[3])
    images = ops.gather(x, rois[:, 0].astype("int32"), 0)
    parts = images.reshape((rois.shape[0], channels, groups, groups, *x.shape[2:]))
    if bins != (groups, groups):
        chosen = [Tensor([min(i * groups // n, groups - 1) for i in range(n)]) for n in bins]
        parts = ops.gather(ops.gather(parts, chosen[0], 2), chosen[1], 3)
    total = ops.einsum("ncpqhw,nph,nqw->ncpq", parts, rows, columns)
    counts = ops.expand_dims(ops.einsum("nph,nqw->npq", rows, columns), 1)
    return ops.where(counts > 0, total / ops.clip(counts, 1, None), ops.zeros_like(total))


def _rows(rois: Any) -> Any:
    """Return regions of each image (images, 5, count) as rows."""
    return rois.swapaxes(1, 2).reshape((-1, 5))


def _psroi(p: Any, x: Any, rois: Any) -> Any:
    return _pooled(x, _rows(rois), p.spatial_scale, p.output_dim, p.group_size, (p.group_size, p.group_size))


def _psroi_grad(p: Any, dy: Any, rois: Any) -> Any:
    regions = _rows(rois)
    channels = p.output_dim * p.group_size * p.group_size
    x = ops.zeros((rois.shape[0], channels, *p.input_size), dy.dtype)
    bins = (p.group_size, p.group_size)
    return cotangents(lambda v: _pooled(v, regions, p.spatial_scale, p.output_dim, p.group_size, bins), [x], dy)


def _ps_roi_grad(p: Any, dy: Any, rois: Any, channels: Any) -> Any:
    """Return the gradient of `_ps_roi`, of which the channels of bins tell the number of groups."""
    groups = p.channels // p.out_dim
    side = math.isqrt(groups)
    x = ops.zeros((p.batch_size, p.channels, p.height, p.width), dy.dtype)
    bins = (p.pooled_height, p.pooled_width)
    return cotangents(lambda v: _pooled(v, rois, p.spatial_scale, p.out_dim, side, bins, 1.0), [x], dy)


def _channel_map(p: Any, count: int, groups: int) -> Any:
    """Return the channel that each bin of a result is from."""
    rows = ops.arange(p.pooled_height) * groups // p.pooled_height
    columns = ops.arange(p.pooled_width) * groups // p.pooled_width
    bins = rows.reshape((-1, 1)) * groups + columns.reshape((1, -1))
    channels = ops.arange(p.out_dim).reshape((1, -1, 1, 1)) * groups * groups + bins
    return ops.broadcast_to(channels, (count, p.out_dim, p.pooled_height, p.pooled_width)).astype("int32")


def _ps_roi(p: Any, x: Any, rois: Any) -> Any:
    bins = (p.pooled_height, p.pooled_width)
    found = _pooled(x, rois, p.spatial_scale, p.out_dim, p.group_size, bins, 1.0)
    return found, _channel_map(p, rois.shape[0], p.group_size)


def _crop(p: Any, image: Any, boxes: Any, numbers: Any, size: tuple[Any, ...]) -> Any:
    return ops.CropAndResize(p.method)(image, boxes, numbers, size)


def _crop_image_grad(p: Any, dy: Any, boxes: Any, numbers: Any, size: Any) -> Any:
    image = ops.zeros(shape_of(p.name, size), dy.dtype)
    found = cotangents(lambda v: _crop(p, v, boxes, numbers, dy.shape[1:3]), [image], dy)
    return found.astype(p.T)


def _crop_boxes_grad(p: Any, dy: Any, image: Any, boxes: Any, numbers: Any) -> Any:
    return cotangents(lambda v: _crop(p, image.astype(dy.dtype), v, numbers, dy.shape[1:3]), [boxes], dy)


def _contrast(p: Any, image: Any, factor: Any) -> Any:
    mean = image.mean((-3, -2), keep_dims=True)
    return (image - mean) * factor + mean


def _scale_and_translate(p: Any, dy: Any, image: Any, scale: Any, translation: Any) -> Any:
    size = Tensor(list(dy.shape[1:3])).astype("int32")
    op = ops.ScaleAndTranslate(p.kernel_type, p.antialias)
    return vjp(lambda v: op(v, size, scale, translation), image)[1](dy)[0]


IMAGES: dict[str, Work] = {
    "AdjustContrastv2": _contrast,
    "CropAndResizeGradBoxes": _crop_boxes_grad,
    "CropAndResizeGradImage": _crop_image_grad,
    "DynamicResizeNearestNeighbor": _nearest_to,
    "PSROIPooling": _psroi,
    "PSROIPoolingGrad": _psroi_grad,
    "PsROIPooling": _ps_roi,
    "PsROIPoolingGrad": _ps_roi_grad,
    "ResizeV2": _resize,
    "ResizeV2Grad": _resize_grad,
    "ScaleAndTranslateGrad": _scale_and_translate,
}
