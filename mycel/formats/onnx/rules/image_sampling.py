"""ONNX's image sampling: regions of interest, deformable convolution, bicubic samples, decoding."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.foundation import dtype as D
from mycel._src.tensors.core.tensor import Tensor
from mycel.formats.onnx.operation import (
    Array,
    Operation,
    apply,
    as_type,
    reshaped,
    rule,
    scalar,
    select,
    sliced,
)
from mycel.ops.images.deformable import deformable_offsets, sampled_regions
from mycel.ops.images.resize import mirrored

__all__ = ["cubic_samples"]

_KEYS = -0.75  # the parameter of the cubic kernel


@rule("RoiAlign")
def _roi_align(op: Operation, x: Tensor, rois: Tensor, batch_indices: Tensor) -> Tensor:
    # Operator set 10 knows the older rule alone.
    where = op.get("coordinate_transformation_mode", "half_pixel" if op.version >= 16 else "output_half_pixel")
    mode, samples = op.get("mode", "avg"), op.get("sampling_ratio", 0)
    pooled = op.get("output_height", 1), op.get("output_width", 1)
    if where not in ("half_pixel", "output_half_pixel") or mode not in ("avg", "max"):
        raise op.refused(
            f"the mode {mode!r} with coordinates {where!r}; 'avg' and 'max' with 'half_pixel' and 'output_half_pixel' "
            "are supported"
        )
    if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 4 or batch_indices.ndim != 1 or min(*pooled, samples + 1) < 1:
        raise op.wrong(
            f"it takes (N, C, H, W), (R, 4) and (R,), positive sizes and a sampling_ratio of at least 0, not "
            f"{x._type}, {rois._type}, {batch_indices._type}, {pooled} and {samples}"
        )
    wide = as_type(x, D.float32) if x.dtype.itemsize < 4 else x
    count, half = rois.shape[0], where == "half_pixel"
    scale = op.get("spatial_scale", 1.0)
    ends = [reshaped(sliced(as_type(rois, wide.dtype), 1, k, k + 1), (count, 1, 1)) * scale for k in range(4)]
    starts = [ends[k] - 0.5 if half else ends[k] for k in (1, 0)]
    spans = [ends[k + 2] - ends[k] for k in (1, 0)]
    if not half:
        spans = [apply(E.maximum, span, scalar(1, span)) for span in spans]
    image = reshaped(batch_indices, (count, 1, 1))
    return as_type(sampled_regions(wide, image, starts, spans, pooled, samples, mode == "max", 0.0), x.dtype)


@rule("DeformConv")
def _deform_conv(op: Operation, x: Tensor, w: Tensor, offset: Tensor, bias: Any = None, mask: Any = None) -> Tensor:
    if x.ndim != 4 or w.ndim != 4 or offset.ndim != 4:
        raise op.refused(f"images of 2 axes and their offsets are supported, not {x._type} with {offset._type}")
    kernel = tuple(op.get("kernel_shape") or w.shape[2:])
    strides, dilations = (tuple(op.get(name) or (1, 1)) for name in ("strides", "dilations"))
    pads, groups = op.get("pads") or [0, 0, 0, 0], op.get("offset_group", 1)
    n, rows, columns = offset.shape[0], *offset.shape[2:]
    places = kernel[0] * kernel[1]
    if kernel != tuple(w.shape[2:]) or len(pads) != 4 or groups < 1 or offset.shape[1] != 2 * groups * places:
        raise op.wrong(
            f"kernel {kernel}, pads {pads} and offset_group {groups} do not fit weights {w._type} and {offset._type}"
        )
    parts = reshaped(offset, (n, groups * places, 2, rows, columns))
    down, across = (reshaped(sliced(parts, 2, k, k + 1), (n, groups * places, rows, columns)) for k in (0, 1))
    factor = mask if mask is not None else ops.ones_like(down)
    read = deformable_offsets(
        x,
        apply(S.CONCAT, across, down, factor, axis=1),
        (1, 1, *strides),
        (pads[0], pads[2], pads[1], pads[3]),
        kernel,
        (1, 1, *dilations),
        deformable_groups=groups,
    )
    found: Tensor = ops.conv2d(read, w, bias, stride=kernel, groups=op.get("group", 1))
    return found


def cubic_samples(x: Tensor, grid: Tensor, padding: str, align: bool) -> Tensor:
    """Return images `x` (N, C, ...) read by cubic convolution at `grid` (N, ..., rank).

    Positions are those of `ops.grid_sample`. Of the four neighbours along each axis those outside
    are, by `padding`, zeros, the border (as in PyTorch and ONNX Runtime; the package onnx moves
    positions there instead), or what is mirrored at the ends, which are the centres of the outer
    elements with `align`. Keys, 1981.
    """
    rank = x.ndim - 2
    n, channels, sizes, out = x.shape[0], x.shape[1], [int(d) for d in x.shape[2:]], grid.shape[1:-1]
    points = int(np.prod(out))
    wide = as_type(x, D.float32) if x.dtype.itemsize < 4 else x
    grid = as_type(grid, wide.dtype)
    axes = []
    for axis, size in enumerate(sizes):
        at = reshaped(sliced(grid, rank + 1, rank - 1 - axis, rank - axis), (n, points))
        at = (at + 1.0) * ((size - 1) / 2) if align else ((at + 1.0) * float(size) - 1.0) * 0.5
        axes.append(_neighbours(at, size, padding, align))
    flat = reshaped(wide, (n, channels, int(np.prod(sizes))))
    total: Any = None
    for corner in itertools.product(range(4), repeat=rank):
        place, weight = axes[0][corner[0]]
        for size, neighbours, k in zip(sizes[1:], axes[1:], corner[1:]):
            place, weight = place * size + neighbours[k][0], weight * neighbours[k][1]
        index = ops.broadcast_to(reshaped(place, (n, 1, points)), (n, channels, points))
        term = ops.gather_elements(flat, 2, index) * reshaped(weight, (n, 1, points))
        total = term if total is None else total + term
    return as_type(reshaped(total, (n, channels, *out)), x.dtype)


def _neighbours(at: Tensor, size: int, padding: str, align: bool) -> list[tuple[Tensor, Tensor]]:
    """Return the four neighbours of positions along an axis, and their weights."""
    low = apply(E.floor, at)
    part = at - low
    found = []
    for k in range(-1, 3):
        place, far = low + float(k), apply(E.abs_, part - float(k))
        if k in (0, 1):
            weight = ((_KEYS + 2) * far - (_KEYS + 3)) * far * far + 1.0
        else:
            weight = (((far - 5.0) * far + 8.0) * far - 4.0) * _KEYS
        if padding == "reflection":
            place = mirrored(place, size, align)
        inside = apply(E.logical_and, place >= 0.0, place <= float(size - 1))
        if padding == "zeros":
            weight = select(inside, weight, scalar(0, weight))
        place = _within(place, size)
        # What is not finite reads an element that is there.
        place = select(apply(E.is_finite, place), place, scalar(0, place))
        found.append((as_type(place, D.int64), weight))
    return found


def _within(at: Tensor, size: int) -> Tensor:
    return apply(E.minimum, apply(E.maximum, at, scalar(0, at)), scalar(size - 1, at))


@rule("ImageDecoder", known=(0,))
def _image_decoder(op: Operation, encoded: Array) -> Any:
    from mycel.dataset.vision.codecs.image_io import decode_image
    from mycel.dataset.vision.enums import ImageReadMode

    form = op.get("pixel_format", "RGB")
    if form not in ("RGB", "BGR", "Grayscale"):
        raise op.refused(f"the pixel_format {form!r}; 'RGB', 'BGR' and 'Grayscale' are supported")
    if encoded.dtype != np.uint8 or encoded.ndim != 1:
        raise op.wrong(f"it takes the bytes of a file, uint8 of one axis, not {encoded.dtype} of {encoded.shape}")
    mode = ImageReadMode.GRAYSCALE if form == "Grayscale" else ImageReadMode.COLOR
    found = decode_image(encoded.tobytes(), op.label, mode)
    return found[:, :, ::-1].copy() if form == "BGR" else found
