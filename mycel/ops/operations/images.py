"""Operations as objects over images: colours, sizes, regions, boxes, and the order of axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import dtype as D
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.tensor import Tensor, as_tensor, scalar
from mycel.ops import blocks, gather_scatter
from mycel.ops._operands import operand, run, shape_of
from mycel.ops.arrange import pad
from mycel.ops.images import colours, deformable, fractional_pooling, legacy_resize, patches, suppression
from mycel.ops.operations.attributes import integer, integers, numbers, one_of, pairs, real, word
from mycel.ops.operations.inputs import NUMBER, SIZES
from mycel.ops.operations.primitive import Primitive, need_dimensions, operations_of
from mycel.ops.operations.seeded_random import Drawing, numbers_of_object

__all__: list[str] = []


class AdjustHue(Primitive, compute=colours.adjust_hue): ...


class AdjustSaturation(Primitive, compute=colours.adjust_saturation): ...


def _coloured(x: Any) -> Tensor:
    need_dimensions("HSVToRGB", 4, x=x)
    return colours.hsv_to_rgb(x)


class HSVToRGB(Primitive, compute=_coloured): ...


class RGBToHSV(Primitive, compute=colours.rgb_to_hsv): ...


def _suppressed(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: Any, score_threshold: Any) -> Tensor:
    need_dimensions("NonMaxSuppressionV3", 0, max_output_size=max_output_size, iou_threshold=iou_threshold)
    need_dimensions("NonMaxSuppressionV3", 0, score_threshold=score_threshold)
    return suppression.non_max_suppression(boxes, scores, max_output_size, iou_threshold, score_threshold)


class NonMaxSuppressionV3(Primitive, compute=_suppressed): ...


class NonMaxSuppressionWithOverlaps(
    Primitive, compute=suppression.non_max_suppression_with_overlaps, inputs=(Tensor, Tensor, NUMBER, NUMBER, NUMBER)
): ...


class NMSWithMask(
    Primitive, compute=lambda p, boxes: suppression.nms_with_mask(boxes, p.iou_threshold), iou_threshold=0.5
): ...


def _combined(p: Any, boxes: Any, scores: Any, each: Any, total: Any, overlap: Any, score: Any) -> tuple[Tensor, ...]:
    need_dimensions(p.name, 0, each=each, total=total, overlap=overlap, score=score)
    return suppression.combined_non_max_suppression(
        boxes, scores, each, total, overlap, score, p.pad_per_class, p.clip_boxes
    )


class CombinedNonMaxSuppression(
    Primitive,
    compute=_combined,
    pad_per_class=False,
    clip_boxes=True,
): ...


class BatchToSpace(
    Primitive,
    compute=lambda p, x: blocks.batch_to_space_nd(x, p.block_size, p.crops),
    block_size=integer(at_least=1),
    crops=pairs(2),
): ...


def _blocks(p: Any, x: Any) -> Tensor:
    need_dimensions(p.name, 4, x=x)
    return blocks.space_to_batch_nd(x, p.block_size, p.paddings)


class SpaceToBatch(
    Primitive,
    compute=_blocks,
    block_size=integer(at_least=1),
    paddings=pairs(2, error=ValueError),
): ...


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, Tensor) else value


class BatchToSpaceNDV2(
    Primitive,
    compute=lambda x, block, crops: blocks.batch_to_space_nd(x, _listed(block), _listed(crops)),
    inputs=(Tensor, SIZES, SIZES),
): ...


def _formats(source: str, target: str) -> list[int]:
    """Return for each axis of the target format its number in the source format."""
    return [source.index(axis) for axis in target]


def _dim_map(p: Any, value: Any) -> Tensor:
    x = operand(p.name, value)
    if not x.dtype.is_integer:
        raise TypeError(f"{p.name}: takes integer axes, not {x.dtype.name}")
    table = np.asarray(_formats(p.src_format, p.dst_format))
    return gather_scatter.gather(as_tensor(table, x.dtype), run(E.mod, x, scalar(4, x.dtype)), 0)


def _vec_permute(p: Any, value: Any) -> Tensor:
    x = operand(p.name, value)
    if x.dtype not in (D.int32, D.int64):
        raise TypeError(f"{p.name}: takes int32 or int64, not {x.dtype.name}")
    if x.shape not in ((4,), (4, 2)):
        raise ShapeError(f"{p.name}: takes the shapes (4,) and (4, 2), not {x.shape}")
    order = np.asarray(_formats(p.src_format, p.dst_format), np.int32)
    return gather_scatter.gather(x, as_tensor(order), 0)


class DataFormatDimMap(
    Primitive, compute=_dim_map, src_format=one_of("NHWC", "NCHW"), dst_format=one_of("NCHW", "NHWC")
):
    """The axis of the source format that the target format has at each of the given axes, -4 to 3,
    as in MindSpore.
    """


class DataFormatVecPermute(
    Primitive, compute=_vec_permute, src_format=one_of("NHWC", "NCHW"), dst_format=one_of("NCHW", "NHWC")
):
    """Values that belong to the axes of one format, in the order of another format."""


class DeformableOffsets(
    Primitive,
    compute=lambda p, x, offsets: deformable.deformable_offsets(
        x, offsets, p.strides, p.pads, p.ksize, p.dilations, p.data_format, p.deformable_groups, p.modulated
    ),
    strides=integers(alone=False),
    pads=integers(alone=False),
    ksize=integers(alone=False),
    dilations=integers((1, 1, 1, 1), alone=False),
    data_format="NCHW",
    deformable_groups=1,
    modulated=True,
): ...


class ROIAlign(
    Primitive,
    compute=lambda p, x, rois: deformable.roi_align(
        x, rois, p.pooled_height, p.pooled_width, p.spatial_scale, p.sample_num, p.roi_end_mode
    ),
    pooled_height=integer(),
    pooled_width=integer(),
    spatial_scale=real(),
    sample_num=2,
    roi_end_mode=integer(1, 0, 1),
): ...


class ExtractGlimpse(
    Primitive,
    compute=lambda p, x, size, at: patches.extract_glimpse(
        x, size, at, p.centered, p.normalized, p.uniform_noise, p.noise
    ),
    centered=True,
    normalized=True,
    uniform_noise=True,
    noise=word("uniform", "gaussian", "zero"),
    inputs=(Tensor, SIZES, Tensor),
): ...


class ResizeArea(
    Primitive,
    compute=lambda p, x, size: legacy_resize.resize_area(x, size, p.align_corners),
    align_corners=False,
): ...


class ResizeBicubic(
    Primitive,
    compute=lambda p, x, size: legacy_resize.resize_bicubic(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
    inputs=(Tensor, SIZES),
): ...


class ResizeBilinearV2(
    Primitive,
    compute=lambda p, x, size: legacy_resize.resize_bilinear(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
    inputs=(Tensor, SIZES),
): ...


class ResizeLinear1D(
    Primitive,
    compute=lambda p, x, size: legacy_resize.resize_linear(x, size, p.coordinate_transformation_mode),
    coordinate_transformation_mode=word("align_corners", "half_pixel", "asymmetric"),
    inputs=(Tensor, SIZES),
): ...


class ResizeNearestNeighbor(
    Primitive,
    compute=lambda p, x: legacy_resize.resize_nearest(x, p.size, p.align_corners, p.half_pixel_centers),
    size=integers(alone=False, kinds=(tuple, list)),
    align_corners=False,
    half_pixel_centers=False,
): ...


class ResizeNearestNeighborV2(
    Primitive,
    compute=lambda p, x, size: legacy_resize.resize_nearest(x, size, p.align_corners, p.half_pixel_centers),
    align_corners=False,
    half_pixel_centers=False,
    inputs=(Tensor, SIZES),
): ...


class UpsampleNearest3D(
    Primitive,
    compute=lambda x, output_size=None, scales=None: legacy_resize.upsample_volume(x, output_size, scales, "nearest"),
    inputs=(Tensor, SIZES, SIZES),
): ...


class UpsampleTrilinear3D(
    Primitive,
    compute=lambda p, x, output_size=None, scales=None: legacy_resize.upsample_volume(
        x, output_size, scales, "trilinear", p.align_corners
    ),
    align_corners=False,
    inputs=(Tensor, SIZES, SIZES),
): ...


class ScaleAndTranslate(
    Primitive,
    compute=lambda p, x, size, scale, shift: legacy_resize.scale_and_translate(
        x, size, scale, shift, p.kernel_type, p.antialias
    ),
    kernel_type=word("lanczos3", "lanczos1", "lanczos5", "gaussian", "box", "triangle", "keyscubic", "mitchellcubic"),
    antialias=True,
    inputs=(Tensor, Tensor, Tensor, Tensor),
): ...


class SampleDistortedBoundingBoxV2(
    Drawing,
    compute=lambda p, size, boxes, covered: fractional_pooling.distorted_box(
        size,
        boxes,
        covered,
        numbers_of_object(p, p.seed + p.seed2),
        p.aspect_ratio_range,
        p.area_range,
        p.max_attempts,
        p.use_image_if_no_bounding_boxes,
    ),
    seed=0,
    seed2=0,
    aspect_ratio_range=numbers((0.75, 1.33), 2, kinds=(tuple, list)),
    area_range=numbers((0.05, 1.0), 2, kinds=(tuple, list)),
    max_attempts=integer(100, at_least=1),
    use_image_if_no_bounding_boxes=False,
): ...


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "circular": "circular"}


def _pad(p: Any, x: Any, paddings: Any, constant_value: Any = None) -> Tensor:
    amounts = shape_of(p.name, paddings)
    half = len(amounts) // 2
    if not p.paddings_contiguous:
        amounts = tuple(v for k in range(half) for v in (amounts[k], amounts[half + k]))
    return pad(x, amounts, _MODES[p.mode], constant_value if p.mode == "constant" else None)


class PadV3(
    Primitive,
    compute=_pad,
    mode=one_of("constant", "reflect", "edge", "circular"),
    paddings_contiguous=True,
    inputs=(Tensor, SIZES, NUMBER),
):
    """A tensor padded along its last axes: pairs (begin, end), the last axis first, or all begins
    before all ends.
    """


__all__.extend(operations_of(globals()))
