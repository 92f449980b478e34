"""Transforms of an image together with its bounding boxes.

They take two columns, an image [H, W] or [H, W, C] and boxes [N, 4 or more]. The first four numbers
of a box are left, top, width and height in pixels; further ones stay. Boxes are never changed in
place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import InputValueError
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.transforms.base import Transform, check_probability
from mycel.dataset.vision.border_padding import (
    pad_image,
)
from mycel.dataset.vision.enums import Border, Inter
from mycel.dataset.vision.geometry import (
    HorizontalFlip,
    RandomCrop,
    RandomResizedCrop,
    VerticalFlip,
    crop,
    draw_rectangle,
)
from mycel.dataset.vision.resize import Resize, resize


def check_pair(operation: str, size: Any) -> tuple[Any, Any]:
    """Return height and width of `size`; raise TypeError if it is not a pair."""
    if not isinstance(size, (tuple, list)) or len(size) != 2:
        raise TypeError(f"{operation}: size must be an int or two of them, not {size!r:.80}")
    return size[0], size[1]


class _WithBoxes(Transform):
    """The base class of transforms that take and return an image and its boxes."""

    random = True

    def __call__(self, *inputs: Any) -> Any:
        kind = type(self).__name__
        if len(inputs) != 2:
            raise InputValueError(f"{kind}: the input must be an image and its boxes, not {len(inputs)} columns")
        image, boxes = as_array(inputs[0]), as_array(inputs[1])
        if image.ndim not in (2, 3):
            raise ValueError(f"{kind}: the image must be [H, W] or [H, W, C], not of shape {image.shape}")
        if boxes.ndim != 2 or boxes.shape[1] < 4 or boxes.dtype.kind not in "iuf":
            raise ValueError(f"{kind}: boxes must be numbers [N, 4 or more], not {boxes.dtype} of shape {boxes.shape}")
        height, width = image.shape[:2]
        sides = boxes[:, :4].astype(np.float64)
        if (sides < 0).any() or (sides[:, 0] + sides[:, 2] > width).any() or (sides[:, 1] + sides[:, 3] > height).any():
            raise ValueError(f"{kind}: a box is not inside the image of {height}x{width}: {boxes[:, :4].tolist()}")
        return self._apply(image, boxes.copy())

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        raise NotImplementedError(f"{type(self).__name__} must define _apply")


class RandomHorizontalFlipWithBBox(_WithBoxes):
    """A horizontal flip of an image and its boxes with probability `prob`.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> flip = vision.RandomHorizontalFlipWithBBox(1.0)
    >>> image, boxes = flip(np.zeros((6, 8), np.uint8), np.array([[1.0, 2, 3, 2]]))
    >>> boxes.tolist()
    [[4.0, 2.0, 3.0, 2.0]]
    """

    _axis = 1

    def __init__(self, prob: float = 0.5) -> None:
        self.prob = check_probability(type(self).__name__, prob)

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        if current_stream().uniform() >= self.prob:
            return image, boxes
        start = 1 - self._axis
        boxes[:, start] = image.shape[self._axis] - boxes[:, start] - boxes[:, start + 2]
        flip = HorizontalFlip() if self._axis else VerticalFlip()
        return flip.compute(image, 0), boxes


class RandomVerticalFlipWithBBox(RandomHorizontalFlipWithBBox):
    """A vertical flip of an image and its boxes with probability `prob`."""

    _axis = 0


def _scaled(boxes: Array, before: Sequence[int], after: Sequence[int]) -> Array:
    down, across = after[0] / before[0], after[1] / before[1]
    boxes[:, :4] = boxes[:, :4] * np.array([across, down, across, down])
    return boxes


class ResizeWithBBox(_WithBoxes):
    """`Resize` of an image, and of its boxes along with it."""

    random = False

    def __init__(self, size: int | Sequence[int], interpolation: Inter = Inter.BILINEAR) -> None:
        self._resize = Resize(size if isinstance(size, int) else check_pair(type(self).__name__, size), interpolation)

    def _kind(self) -> Inter:
        return self._resize.interpolation

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        result = resize(image, self._resize.target(*image.shape[:2]), self._kind(), 0)
        return result, _scaled(boxes, image.shape, result.shape)


class RandomResizeWithBBox(ResizeWithBBox):
    """`ResizeWithBBox` with a random interpolation."""

    random = True

    def __init__(self, size: int | Sequence[int]) -> None:
        super().__init__(size)

    def _kind(self) -> Inter:
        kind: Inter = current_stream().choice((Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA))
        return kind


def _cut(boxes: Array, top: int, left: int, height: int, width: int) -> Array:
    """Return the parts of boxes within a rectangle, relative to its corner.

    Boxes that have no part in it are left out.
    """
    sides = boxes[:, :4].astype(np.float64)
    start = np.maximum(sides[:, :2], [left, top])
    stop = np.minimum(sides[:, :2] + sides[:, 2:], [left + width, top + height])
    kept = (stop > start).all(1)
    result: Array = boxes[kept]
    result[:, :2] = start[kept] - [left, top]
    result[:, 2:4] = stop[kept] - start[kept]
    return result


class RandomCropWithBBox(_WithBoxes):
    """`RandomCrop` of an image, and the parts of its boxes that it keeps.

    Args:
        size (int | Sequence[int]): The (height, width) of the part, or one number for both.
        padding (int | Sequence[int] | None): The padding of the image before the crop, as in `Pad`.
            Default: None.
        pad_if_needed (bool): Whether to pad a smaller image to at least `size`. Default: False.
        fill_value (float): The value of the padding for the border CONSTANT. Default: 0.
        padding_mode (Border): The border.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        padding: int | Sequence[int] | None = None,
        pad_if_needed: bool = False,
        fill_value: Any = 0,
        padding_mode: Border = Border.CONSTANT,
    ) -> None:
        self._crop = RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        rule = self._crop
        sides = [rule.padding] if rule.padding is not None else []
        if rule.pad_if_needed:
            before = rule.padding or (0, 0, 0, 0)
            down = max(0, rule.size[0] - image.shape[0] - before[1] - before[3])
            across = max(0, rule.size[1] - image.shape[1] - before[0] - before[2])
            sides.append((across, down, across, down))
        for left, top, right, bottom in sides:
            image = pad_image(image, (left, top, right, bottom), rule.fill_value, rule.padding_mode, 0)
            boxes[:, :2] += np.array([left, top], boxes.dtype)
        spare = image.shape[0] - rule.size[0], image.shape[1] - rule.size[1]
        if min(spare) < 0:
            raise ValueError(
                f"RandomCropWithBBox: the image of {image.shape[0]}x{image.shape[1]} is smaller than size "
                f"{rule.size}; set padding or pad_if_needed"
            )
        stream = current_stream()
        top, left = stream.integer(0, spare[0]), stream.integer(0, spare[1])
        return crop(image, top, left, *rule.size, 0), _cut(boxes, top, left, *rule.size)


class RandomResizedCropWithBBox(_WithBoxes):
    """`RandomResizedCrop` of an image, and the parts of its boxes that it keeps.

    Args:
        size (int | Sequence[int]): The size of the result.
        scale (Sequence[float]): The range of the part's fraction of the area. Default: (0.08, 1.0).
        ratio (Sequence[float]): The range of its aspect ratio. Default: (0.75, 1.3333333333333333).
        interpolation (Inter): The interpolation.
        max_attempts (int): After this many rectangles that do not fit, the part is the largest one
            in the middle whose aspect ratio is within `ratio`. Default: 10.
    """

    def __init__(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = (0.08, 1.0),
        ratio: Sequence[float] = (3.0 / 4.0, 4.0 / 3.0),
        interpolation: Inter = Inter.BILINEAR,
        max_attempts: int = 10,
    ) -> None:
        self._crop = RandomResizedCrop(size, scale, ratio, interpolation, max_attempts)

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        rule = self._crop
        height, width = image.shape[:2]
        found = draw_rectangle(height, width, rule.scale, rule.ratio, rule.max_attempts)
        if found is None:
            aspect = min(max(width / height, rule.ratio[0]), rule.ratio[1])
            h, w = min(height, round(width / aspect)), min(width, round(height * aspect))
            found = ((height - h) // 2, (width - w) // 2, h, w)
        part = resize(crop(image, *found, 0), rule.size, rule.interpolation, 0)
        return part, _scaled(_cut(boxes, *found), found[2:], rule.size)


class BoundingBoxAugment(_WithBoxes):
    """A transform of the part of an image within each box, applied with probability `ratio`.

    Results of another size are resized to the box.
    """

    def __init__(self, transform: Callable[..., Any], ratio: float = 0.3) -> None:
        arguments.function("BoundingBoxAugment", "transform", transform, "a transform")
        self.transform = transform
        self.ratio = check_probability("BoundingBoxAugment", ratio)

    def _apply(self, image: Array, boxes: Array) -> tuple[Array, Array]:
        result = image.copy()
        stream = current_stream()
        for left, top, width, height in boxes[:, :4].astype(np.int64).tolist():
            if stream.uniform() >= self.ratio or not width or not height:
                continue
            part = as_array(self.transform(crop(result, top, left, height, width, 0)))
            if part.shape[:2] != (height, width):
                part = resize(part, (height, width), Inter.BILINEAR, 0)
            result[top : top + height, left : left + width] = part
        return result, boxes
