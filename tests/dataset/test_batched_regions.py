"""Blocks of small images, of which parts are taken at once, are what operations give one by one."""

import numpy as np
import pytest

from mycel._src.engines.routines import are_on
from mycel.dataset import transforms, vision
from mycel.dataset.execution.threaded_stages import Broken
from mycel.dataset.nodes.map_execution import Applied
from mycel.dataset.random_numbers.random_streams import Stream, drawn_integers, operation_keys, row_keys, using
from mycel.dataset.rows.column_blocks import Block
from mycel.dataset.vision.batched_regions import Windows
from mycel.dataset.vision.fused_transforms import Chain

BORDER = vision.Border
VALUES = [vision.Rescale(1 / 255.0, 0.0), vision.Normalize([0.5] * 3, [0.25] * 3), vision.HWC2CHW()]
CHAINS = [
    [vision.RandomCrop(32, 4), vision.RandomHorizontalFlip(), *VALUES],
    [vision.RandomCrop((20, 25), (1, 2, 3, 40), fill_value=(9, 8, 7)), vision.RandomVerticalFlip(), *VALUES],
    [vision.RandomHorizontalFlip(), vision.RandomCrop(32, 4, fill_value=200), vision.RandomVerticalFlip(0.3)],
    [vision.RandomCrop(20), vision.RandomCrop((22, 21), 3, fill_value=5), vision.Invert()],
    [vision.RandomVerticalFlip(), vision.RandomHorizontalFlip(), vision.Crop((2, 3), (20, 10)), vision.CenterCrop(7)],
    [vision.HorizontalFlip(), vision.VerticalFlip(), vision.RandomCrop((5, 9)), vision.HWC2CHW()],
    [vision.RandomHorizontalFlip(), vision.Resize((9, 12)), vision.RandomCrop(9, 1), *VALUES],
    [vision.Resize((16, 16)), *VALUES],
    [vision.RandomCrop(16), vision.ToTensor(), transforms.TypeCast(np.float64)],
    [vision.RandomCrop(32, 32), vision.RandomCrop(31), vision.AdjustBrightness(1.5), vision.ToType(np.int32)],
]
LEFT = [
    [vision.RandomCrop(32, 4, padding_mode=BORDER.REFLECT), vision.RandomHorizontalFlip(), vision.HWC2CHW()],
    [vision.RandomCrop(40, None, True), vision.RandomHorizontalFlip()],
    [vision.CenterCrop(40), vision.HWC2CHW()],
    [vision.RandomResizedCrop(16), vision.RandomHorizontalFlip(), *VALUES],
]


def images(count=40, shape=(32, 32, 3), seed=0):
    return np.random.default_rng(seed).integers(0, 256, (count, *shape), dtype=np.uint8)


def applied(operations, column, start=3, key=5):
    made = Applied(operations, ["image"], ["image"], [0], [0])
    return made.through(Block([column], len(column)), start, key, False).columns[0]


def one_by_one(operations, rows, start=3, key=5):
    keys, found = row_keys(key, start, len(rows)), []
    for number, image in enumerate(rows):
        for place, operation in enumerate(operations):
            with using(Stream(int(operation_keys(keys, place)[number]))):
                image = operation(image.copy())
        found.append(image)
    return np.stack(found)


def check(operations, column, monkeypatch, at_once):
    answers, before = [], Chain.at_once

    def noted(self, *arguments):
        answers.append(before(self, *arguments))
        return answers[-1]

    right = one_by_one(operations, column)
    with monkeypatch.context() as patch:
        patch.setattr(Chain, "at_once", noted)
        found = np.stack(list(applied(operations, column)))
    assert [answer is not None for answer in answers] == [at_once] * len(answers) and answers or not are_on()
    assert found.dtype == right.dtype and found.shape == right.shape
    np.testing.assert_array_equal(found, right)


@pytest.mark.parametrize("operations", CHAINS, ids=str)
def test_parts_at_once_are_those_one_by_one(monkeypatch, operations):
    block = images()
    before = block.copy()
    check(operations, block, monkeypatch, True)
    check(operations, list(block), monkeypatch, True)
    check(operations, np.asfortranarray(block[:9]), monkeypatch, block[0].flags.f_contiguous)
    np.testing.assert_array_equal(block, before)
    if not any(isinstance(operation, vision.Normalize) for operation in operations):
        for shape in ((33, 41, 1), (32, 35, 4)):
            if shape[2] == 1 or not any(isinstance(getattr(o, "fill_value", 0), tuple) for o in operations):
                check(operations, images(12, shape), monkeypatch, True)


@pytest.mark.parametrize("operations", LEFT, ids=str)
def test_what_windows_do_not_say_is_left(monkeypatch, operations):
    check(operations, images(), monkeypatch, False)


@pytest.mark.parametrize("block", [images(7), images(9, (80, 60, 3)), images(12).astype(np.float32)], ids=str)
def test_few_large_and_other_images_are_left(monkeypatch, block):
    check([vision.RandomCrop(32, 4), vision.RandomHorizontalFlip()], block, monkeypatch, False)


def test_images_of_several_sizes_are_left(monkeypatch):
    rows = [image for size in (32, 33, 34) for image in images(6, (size, size, 3))]
    check([vision.RandomCrop(32, 4), *VALUES], rows, monkeypatch, False)


def test_errors_name_the_row():
    rows = images(20, (20, 20, 3))
    with pytest.raises(Broken) as caught:
        applied([vision.RandomCrop(24, 1), vision.RandomHorizontalFlip()], rows)
    assert "row 3" in str(caught.value.error) and "smaller than size (24, 24)" in str(caught.value.error)


def test_places_are_drawn_as_streams_draw_them():
    keys = row_keys(99, 0, 500)
    most = (0, 1, 7, 255, 2**31 - 1, 2**32 - 1)
    columns = drawn_integers(keys, most)
    for number, key in enumerate(keys.tolist()):
        stream = Stream(key)
        assert [int(column[number]) for column in columns] == [stream.integer(0, last) for last in most]


def test_parts_of_parts_of_flipped_images():
    rng, block = np.random.default_rng(1), images(10, (13, 17, 2))
    for _ in range(40):
        parts, right = Windows(block), list(block)
        for _ in range(rng.integers(1, 6)):
            rows, columns = rng.integers(1, parts.rows + 1), rng.integers(1, parts.columns + 1)
            tops = rng.integers(0, parts.rows - rows + 1, 10)
            lefts = rng.integers(0, parts.columns - columns + 1, 10)
            chosen = rng.random(10) < 0.5
            if rng.random() < 0.5:
                parts.mirrored ^= chosen
                right = [image[:, ::-1] if flip else image for image, flip in zip(right, chosen)]
            else:
                parts.turned ^= chosen
                right = [image[::-1] if flip else image for image, flip in zip(right, chosen)]
            parts.crop(tops, lefts, int(rows), int(columns))
            right = [i[t : t + rows, x : x + columns] for i, t, x in zip(right, tops, lefts)]
        np.testing.assert_array_equal(parts.taken(None, False), np.stack(right))
        np.testing.assert_array_equal(parts.taken(None, True), np.stack(right).transpose(0, 3, 1, 2))
