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
):
    """What the elements of a kernel read at each place of `x` (N, C, H, W): (N, C, H_out kh, W_out
    kw), the kernel's elements side by side (Dai et al., 2017; Zhu et al., 2018).

    It is called with (x, offsets). `offsets` (N, 3 deformable_groups kh kw, H_out, W_out) holds the
    shifts along x, those along y, and the factors of the values read, each for every one of the
    groups of channels and every element of the kernel.

    Args:
        strides (tuple[int, int, int, int]): The step of the kernel, for each of the axes (N, C, H,
            W); 1 for N and C.
        pads (tuple[int, int, int, int]): The zeros at (top, bottom, left, right).
        ksize (tuple[int, int]): The size of the kernel, (kh, kw).
        dilations (tuple[int, int, int, int]): The distance of its elements, for each of the axes
            (N, C, H, W); 1 for N and C. Default: (1, 1, 1, 1).
        data_format (str): Must be "NCHW". Default: "NCHW".
        deformable_groups (int): The number of groups of channels with shifts of their own. Default:
            1.
        modulated (bool): Must be True. Default: True.

    Examples:
        >>> import mycel as ms
        >>> read = ms.ops.DeformableOffsets((1, 1, 1, 1), (0, 0, 0, 0), (1, 1))
        >>> offsets = ms.Tensor([[[[0.5, 0.0]], [[0.0, 0.0]], [[1.0, 2.0]]]])
        >>> read(ms.Tensor([[[[1.0, 3.0]]]]), offsets).tolist()
        [[[[2.0, 6.0]]]]
    """


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
):
    """The features (N, C, H, W) of regions at one size: (R, C, pooled_height, pooled_width) (He et
    al., "Mask R-CNN", 2017).

    It is called with the features and the regions (R, 5), rows (image, x0, y0, x1, y1). A region is
    divided into bins; each result is the mean of positions spread evenly over a bin.

    Args:
        pooled_height (int): The number of bins along y.
        pooled_width (int): The number of bins along x.
        spatial_scale (float): What the coordinates of regions are multiplied by.
        sample_num (int): The number of positions along each axis of a bin; 0 for as many as it has
            elements, rounded up. Default: 2.
        roi_end_mode (int): 1 if regions end behind their last pixel; with 0 they are at least one
            element wide. Default: 1.

    Examples:
        >>> import mycel as ms
        >>> roi = ms.Tensor([[0.0, 0.2, 0.3, 0.2, 0.3]])
        >>> ms.ops.ROIAlign(1, 1, 0.5)(ms.Tensor([[[[1.0, 2.0], [3.0, 4.0]]]]), roi).shape
        (1, 1, 1, 1)
    """


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
):
    """Windows out of images `x` (N, H, W, C), one for each, centred at `offsets` (N, 2) of (y, x).

    It is called with (x, size, offsets), where `size` is that of the windows, (height, width). The
    position of a window's first element is truncated to a whole number.

    Args:
        centered (bool): Whether offsets are halved and count from the image's centre, else from its
            corner. Default: True.
        normalized (bool): Whether offsets are in sizes of the image, else in elements. Default:
            True.
        uniform_noise (bool): Must be False for another `noise` than "uniform". Default: True.
        noise (str): What there is outside of the image: "uniform" between -1 and 1, "gaussian"
            (standard normal, where MindSpore has a mean of 10) or "zero". Default: "uniform".

    Examples:
        >>> import mycel as ms
        >>> image, offsets = ms.ops.arange(9.0).reshape((1, 3, 3, 1)), ms.Tensor([[1.0, 1.0]])
        >>> glimpse = ms.ops.ExtractGlimpse(False, False, False, "zero")
        >>> glimpse(image, (2, 2), offsets).flatten().tolist()
        [0.0, 1.0, 3.0, 4.0]
    """


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
):
    """A random part of an image: where it begins (y, x, 0), its size (height, width, -1), and its
    box (1, 1, 4) of (y0, x0, y1, x1) from 0 to 1 (Szegedy et al., 2015).

    It is called with the size of the image (height, width, channels), boxes (batch, N, 4) and the
    share of one of these that the part covers at least. All attempts are drawn at once, and the
    first that fits is taken, or the whole image.

    Args:
        seed (int): A seed of the random numbers, to which `seed2` is added; 0 for the default
            generator. Default: 0.
        seed2 (int): What is added to `seed`. Default: 0.
        aspect_ratio_range (tuple[float, float] | list[float]): The least and the largest width over
            height of the part. Default: (0.75, 1.33).
        area_range (tuple[float, float] | list[float]): The least and the largest area of the part,
            as shares of the image's. Default: (0.05, 1.0).
        max_attempts (int): The number of attempts, at least 1. Default: 100.
        use_image_if_no_bounding_boxes (bool): Whether without boxes the image is one, else that is
            a ValueError of the call. Default: False.

    Examples:
        >>> import mycel as ms
        >>> draw = ms.ops.SampleDistortedBoundingBoxV2(seed=1)
        >>> boxes = ms.Tensor([[[0.2, 0.2, 0.8, 0.8]]])
        >>> begin, size, box = draw(ms.Tensor([60, 40, 3], ms.int32), boxes, ms.Tensor(0.5))
        >>> begin.shape, size.tolist()[2], box.shape
        ((3,), -1, (1, 1, 4))
    """


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
