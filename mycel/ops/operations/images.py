"""Operations as objects over images: colours, sizes, regions, boxes, and the order of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel.base import arguments
from mycel.base import dtype as D
from mycel.base.errors import ShapeError
from mycel.core.tensor import Tensor, as_tensor, scalar
from mycel.ops import blocks, indexed
from mycel.ops._operands import operand, run, shape_of
from mycel.ops.arrange import pad
from mycel.ops.images import colours, deformable, fractional, patches, resampling, suppression
from mycel.ops.operations.primitive import NEEDED, Primitive, operations_of
from mycel.prims import elementwise as E

__all__: list[str] = []


class AdjustHue(Primitive, compute=colours.adjust_hue): ...


class AdjustSaturation(Primitive, compute=colours.adjust_saturation): ...


class HSVToRGB(Primitive, compute=colours.hsv_to_rgb): ...


class RGBToHSV(Primitive, compute=colours.rgb_to_hsv): ...


class NonMaxSuppressionV3(Primitive, compute=suppression.non_max_suppression): ...


class NonMaxSuppressionWithOverlaps(Primitive, compute=suppression.non_max_suppression_with_overlaps): ...


class NMSWithMask(
    Primitive, compute=lambda p, boxes: suppression.nms_with_mask(boxes, p.iou_threshold), iou_threshold=0.5
): ...


class CombinedNonMaxSuppression(
    Primitive,
    compute=lambda p, boxes, scores, each, total, overlap, score: suppression.combined_non_max_suppression(
        boxes, scores, each, total, overlap, score, p.pad_per_class, p.clip_boxes
    ),
    pad_per_class=False,
    clip_boxes=True,
): ...


class BatchToSpace(
    Primitive, compute=lambda p, x: blocks.batch_to_space_nd(x, p.block_size, p.crops), block_size=NEEDED, crops=NEEDED
): ...


class SpaceToBatch(
    Primitive,
    compute=lambda p, x: blocks.space_to_batch_nd(x, p.block_size, p.paddings),
    block_size=NEEDED,
    paddings=NEEDED,
): ...


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


class BatchToSpaceNDV2(
    Primitive, compute=lambda x, block, crops: blocks.batch_to_space_nd(x, _listed(block), _listed(crops))
): ...


def _formats(name: str, source: str, target: str) -> list[int]:
    """Return for each axis of the target format its number in the source format."""
    for given in (source, target):
        if given not in ("NHWC", "NCHW"):
            raise ValueError(f"{name}: formats are 'NHWC' and 'NCHW', not {given!r}")
    return [source.index(axis) for axis in target]


def _dim_map(p: Any, value: Any) -> Tensor:
    x = operand(p.name, value)
    if not x.dtype.is_integer:
        raise TypeError(f"{p.name}: takes integer axes, not {x.dtype.name}")
    table = np.asarray(_formats(p.name, p.src_format, p.dst_format))
    return indexed.gather(as_tensor(table, x.dtype), run(E.mod, x, scalar(4, x.dtype)), 0)


def _vec_permute(p: Any, value: Any) -> Tensor:
    x = operand(p.name, value)
    if x.dtype not in (D.int32, D.int64) or x.shape not in ((4,), (4, 2)):
        raise ShapeError(f"{p.name}: takes int32 or int64 of the shape (4,) or (4, 2), not {x._type}")
    order = np.asarray(_formats(p.name, p.src_format, p.dst_format), np.int32)
    return indexed.gather(x, as_tensor(order), 0)


class DataFormatDimMap(Primitive, compute=_dim_map, src_format="NHWC", dst_format="NCHW"):
    """The axis of the source format that the target format has at each of the given axes, -4 to 3,
    as in MindSpore.
    """


class DataFormatVecPermute(Primitive, compute=_vec_permute, src_format="NHWC", dst_format="NCHW"):
    """Values that belong to the axes of one format, in the order of another format."""


class DeformableOffsets(
    Primitive,
    compute=lambda p, x, offsets: deformable.deformable_offsets(
        x, offsets, p.strides, p.pads, p.ksize, p.dilations, p.data_format, p.deformable_groups, p.modulated
    ),
    strides=NEEDED,
    pads=NEEDED,
    ksize=NEEDED,
    dilations=(1, 1, 1, 1),
    data_format="NCHW",
    deformable_groups=1,
    modulated=True,
): ...


class ROIAlign(
    Primitive,
    compute=lambda p, x, rois: deformable.roi_align(
        x, rois, p.pooled_height, p.pooled_width, p.spatial_scale, p.sample_num, p.roi_end_mode
    ),
    pooled_height=NEEDED,
    pooled_width=NEEDED,
    spatial_scale=NEEDED,
    sample_num=2,
    roi_end_mode=1,
): ...


class ExtractGlimpse(
    Primitive,
    compute=lambda p, x, size, at: patches.extract_glimpse(
        x, size, at, p.centered, p.normalized, p.uniform_noise, p.noise
    ),
    centered=True,
    normalized=True,
    uniform_noise=True,
    noise="uniform",
): ...


class ResizeArea(
    Primitive, compute=lambda p, x, size: resampling.resize_area(x, size, p.align_corners), align_corners=False
): ...


class ResizeBicubic(
    Primitive,
    compute=lambda p, x, size: resampling.resize_bicubic(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
): ...


class ResizeBilinearV2(
    Primitive,
    compute=lambda p, x, size: resampling.resize_bilinear(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
): ...


class ResizeLinear1D(
    Primitive,
    compute=lambda p, x, size: resampling.resize_linear(x, size, p.coordinate_transformation_mode),
    coordinate_transformation_mode="align_corners",
): ...


class ResizeNearestNeighbor(
    Primitive,
    compute=lambda p, x: resampling.resize_nearest(x, p.size, p.align_corners, p.half_pixel_centers),
    size=NEEDED,
    align_corners=False,
    half_pixel_centers=False,
): ...


class ResizeNearestNeighborV2(
    Primitive,
    compute=lambda p, x, size: resampling.resize_nearest(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
): ...


class UpsampleNearest3D(
    Primitive,
    compute=lambda x, output_size=None, scales=None: resampling.upsample_volume(x, output_size, scales, "nearest"),
): ...


class UpsampleTrilinear3D(
    Primitive,
    compute=lambda p, x, output_size=None, scales=None: resampling.upsample_volume(
        x, output_size, scales, "trilinear", p.align_corners
    ),
    align_corners=False,
): ...


class ScaleAndTranslate(
    Primitive,
    compute=lambda p, x, size, scale, shift: resampling.scale_and_translate(
        x, size, scale, shift, p.kernel_type, p.antialias
    ),
    kernel_type="lanczos3",
    antialias=True,
): ...


class SampleDistortedBoundingBoxV2(
    Primitive,
    compute=lambda p, size, boxes, covered: fractional.distorted_box(
        size,
        boxes,
        covered,
        p.seed,
        p.seed2,
        p.aspect_ratio_range,
        p.area_range,
        p.max_attempts,
        p.use_image_if_no_bounding_boxes,
    ),
    seed=0,
    seed2=0,
    aspect_ratio_range=(0.75, 1.33),
    area_range=(0.05, 1.0),
    max_attempts=100,
    use_image_if_no_bounding_boxes=False,
): ...


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "circular": "circular"}


def _pad(p: Any, x: Any, paddings: Any, constant_value: Any = None) -> Tensor:
    arguments.one_of(p.name, "mode", p.mode, _MODES)
    amounts = shape_of(p.name, paddings)
    half = len(amounts) // 2
    if not p.paddings_contiguous:
        amounts = tuple(v for k in range(half) for v in (amounts[k], amounts[half + k]))
    return pad(x, amounts, _MODES[p.mode], constant_value if p.mode == "constant" else None)


class PadV3(Primitive, compute=_pad, mode="constant", paddings_contiguous=True):
    """A tensor padded along its last axes: pairs (begin, end), the last axis first, or all begins
    before all ends.
    """


__all__.extend(operations_of(globals()))
