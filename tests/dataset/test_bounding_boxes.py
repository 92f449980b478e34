"""Images with boxes: the boxes that MindSpore 2.10 gives, and images that carry their boxes with
them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mycel.dataset import vision
from mycel.dataset.vision import Inter

IMAGE = np.arange(6 * 8 * 3, dtype=np.uint8).reshape(6, 8, 3)
BOXES = np.array([[1, 2, 3, 2], [0, 0, 8, 6]], np.float32)


@pytest.mark.parametrize(
    "transform, expected, shape",
    [
        # MindSpore 2.10 for the same image and boxes.
        (vision.RandomHorizontalFlipWithBBox(1.0), [[4, 2, 3, 2], [0, 0, 8, 6]], (6, 8, 3)),
        (vision.RandomVerticalFlipWithBBox(1.0), [[1, 2, 3, 2], [0, 0, 8, 6]], (6, 8, 3)),
        (vision.ResizeWithBBox((3, 4)), [[0.5, 1, 1.5, 1], [0, 0, 4, 3]], (3, 4, 3)),
        (vision.ResizeWithBBox(12, Inter.NEAREST), [[2, 4, 6, 4], [0, 0, 16, 12]], (12, 16, 3)),
        (vision.RandomResizeWithBBox(3), [[0.5, 1, 1.5, 1], [0, 0, 4, 3]], (3, 4, 3)),
        (vision.RandomCropWithBBox((6, 8)), [[1, 2, 3, 2], [0, 0, 8, 6]], (6, 8, 3)),
        (vision.RandomCropWithBBox((8, 10), [1, 1, 1, 1]), [[2, 3, 3, 2], [1, 1, 8, 6]], (8, 10, 3)),
        (
            vision.RandomResizedCropWithBBox(3, (1.0, 1.0), (8 / 6, 8 / 6)),
            [[0.375, 1, 1.125, 1], [0, 0, 3, 3]],
            (3, 3, 3),
        ),
        (vision.BoundingBoxAugment(lambda x: x, 1.0), BOXES.tolist(), (6, 8, 3)),
    ],
)
def test_boxes_are_those_of_mindspore(transform: Any, expected: Any, shape: tuple[int, ...]) -> None:
    boxes = BOXES.copy()
    image, found = transform(IMAGE.copy(), boxes)
    assert image.shape == shape and found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert np.array_equal(boxes, BOXES)


def marked() -> tuple[np.ndarray, np.ndarray]:
    """An image whose only bright pixels are those of its box; the box has a label behind it."""
    image = np.zeros((10, 12), np.uint8)
    image[3:7, 2:8] = 255
    return image, np.array([[2, 3, 6, 4, 77]], np.float32)


@pytest.mark.parametrize("size", [5, (4, 9), (10, 12)])
def test_crops_keep_what_is_in_them(size: Any) -> None:
    crop = vision.RandomCropWithBBox(size)
    for _ in range(20):
        image, boxes = crop(*marked())
        if not len(boxes):
            assert not image.any()
            continue
        left, top, width, height, label = boxes[0].astype(int)
        inside = np.zeros_like(image)
        inside[top : top + height, left : left + width] = 255
        assert np.array_equal(image, inside) and label == 77
    padded, boxes = vision.RandomCropWithBBox((14, 12), pad_if_needed=True)(*marked())
    left, top, width, height, _ = boxes[0].astype(int)
    assert (padded[top : top + height, left : left + width] == 255).all() and (padded == 255).sum() == width * height


def test_resized_crops_and_chances() -> None:
    for _ in range(10):
        image, boxes = vision.RandomResizedCropWithBBox((40, 48), (0.5, 1.0), interpolation=Inter.NEAREST)(*marked())
        left, top, width, height, _ = boxes[0]
        assert abs(int((image == 255).sum()) - width * height) <= 2 * (width + height)
    image, boxes = vision.RandomHorizontalFlipWithBBox(0.0)(*marked())
    assert np.array_equal(image, marked()[0]) and np.array_equal(boxes, marked()[1])
    inverted, _ = vision.BoundingBoxAugment(vision.Invert(), 1.0)(*marked())
    assert not inverted.any()
    same, _ = vision.BoundingBoxAugment(vision.Invert(), 0.0)(*marked())
    assert np.array_equal(same, marked()[0])


def test_what_is_refused() -> None:
    for inputs, message in (
        ((IMAGE,), "must be an image and its boxes, not 1 columns"),
        ((IMAGE, BOXES[0]), r"boxes must be numbers \[N, 4 or more\]"),
        ((IMAGE, BOXES + 1), "a box is not inside the image of 6x8"),
        ((IMAGE[None], BOXES), r"the image must be \[H, W\]"),
    ):
        with pytest.raises(ValueError, match=message):
            vision.RandomHorizontalFlipWithBBox()(*inputs)
    with pytest.raises(ValueError, match="is smaller than size"):
        vision.RandomCropWithBBox(9)(IMAGE, BOXES)
