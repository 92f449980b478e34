"""Chains of image transforms give what their operations give one by one."""

import io

import numpy as np
import pytest
from PIL import Image

import mycel.dataset as ds
from mycel._src.engines.routines import are_on
from mycel.dataset import transforms, vision
from mycel.dataset.vision.fused_transforms import Chain, steps

INTER = vision.Inter


class Rows:
    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return (self.rows[index],)


def jpeg(array, **options):
    buffer = io.BytesIO()
    Image.fromarray(array).save(buffer, "JPEG", **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def photograph(rng, height, width):
    small = rng.integers(0, 256, (-(-height // 8), -(-width // 8), 3), dtype=np.uint8)
    return np.asarray(Image.fromarray(small).resize((width, height)))


def outputs(rows, operations, workers=1):
    before = ds.config.get_seed()
    ds.config.set_seed(11)
    try:
        data = ds.GeneratorDataset(Rows(rows), ["image"], shuffle=False)
        data = data.map(operations, ["image"], num_parallel_workers=workers)
        return [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]
    finally:
        ds.config.set_seed(before)


def compare(monkeypatch, rows, operations, applied=True):
    """Compare a chain's rows with those of its operations, and say whether it was applied."""
    answers = []
    apply = Chain.apply

    def noted(self, *arguments):
        found = apply(self, *arguments)
        answers.append(found is not None)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Chain, "apply", noted)
        chained, shared = outputs(rows, operations), outputs(rows, operations, 3)
        patch.setattr(Chain, "apply", lambda *arguments: None)
        plain = outputs(rows, operations)
    assert all(answers) is (applied and are_on()) and answers
    for found in (chained, shared):
        assert len(found) == len(plain)
        for one, other in zip(found, plain):
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_array_equal(one, other)


NORMALIZE = vision.Normalize([123.0, 117.0, 104.0], [58.0, 57.0, 57.0])
KNOWN = {
    "training": [vision.RandomResizedCrop(32), vision.RandomHorizontalFlip(), NORMALIZE, vision.HWC2CHW()],
    "evaluation": [vision.Resize(40), vision.CenterCrop(32), NORMALIZE, vision.HWC2CHW()],
    "small types": [vision.Resize((20, 31)), vision.ToTensor(), transforms.TypeCast(np.float16)],
    "planes first": [
        vision.RandomCrop(24),
        vision.HWC2CHW(),
        vision.Rescale(1 / 255, 0.5),
        vision.Normalize([0.5, 0.4, 0.3], [0.2] * 3, False),
    ],
    "cubic": [vision.VerticalFlip(), vision.Resize(50, INTER.BICUBIC), vision.RandomResizedCrop(16), vision.Invert()],
    "halved": [vision.CenterCrop(32), vision.Resize((16, 16)), vision.Rescale(2.0, 0.0)],
}


@pytest.mark.parametrize("name", KNOWN)
def test_chains_after_decoding(monkeypatch, name):
    rng = np.random.default_rng(3)
    rows = [jpeg(photograph(rng, h, w)) for h, w in ((60, 81), (48, 64), (64, 48), (60, 81))]
    compare(monkeypatch, rows, [vision.Decode(), *KNOWN[name]])


def test_chains_that_decode_and_crop_at_once(monkeypatch):
    rng = np.random.default_rng(6)
    rows = [jpeg(photograph(rng, h, w), quality=90, subsampling=s) for s, h, w in ((0, 90, 131), (2, 148, 64))]
    buffer = io.BytesIO()
    Image.fromarray(photograph(rng, 50, 61)).save(buffer, "PNG")
    rows.append(np.frombuffer(buffer.getvalue(), np.uint8))
    both = vision.RandomCropDecodeResize(24)
    compare(monkeypatch, rows, [both])
    compare(monkeypatch, rows, [both, vision.RandomHorizontalFlip(), NORMALIZE, vision.HWC2CHW()])
    compare(monkeypatch, rows, [vision.Decode(), vision.Resize((200, 190)), vision.CenterCrop(20)])
    compare(monkeypatch, rows, [vision.Decode(), vision.Resize((20, 19), INTER.NEAREST), vision.RandomCrop(7)])
    compare(monkeypatch, rows, [vision.Decode(), vision.VerticalFlip(), vision.Crop((1, 2), (20, 10))])


def test_drawn_chains(monkeypatch):
    """Chains of operations in any order, over images of several sizes and channels."""
    rng = np.random.default_rng(4)
    kinds = [INTER.NEAREST, INTER.BILINEAR, INTER.BICUBIC, INTER.AREA, INTER.ANTIALIAS, INTER.PILCUBIC]
    for _ in range(40):
        channels = int(rng.choice([1, 3, 4]))
        rows = [rng.integers(0, 256, (*rng.integers(20, 40, 2), channels), dtype=np.uint8) for _ in range(3)]
        if rng.random() < 0.3:
            rows = [rows[0], rows[0][::-1].copy(), rows[0] // 2]
        moves = [
            lambda: vision.Resize(tuple(map(int, rng.integers(12, 50, 2))), kinds[rng.integers(6)]),
            lambda: vision.Resize(int(rng.integers(12, 50)), kinds[rng.integers(2)]),
            lambda: vision.RandomResizedCrop(int(rng.integers(12, 50)), interpolation=kinds[rng.integers(3)]),
            lambda: vision.ResizedCrop(1, 2, 9, 8, (15, 13)),
            lambda: vision.RandomCrop((11, 10)),
            lambda: vision.CenterCrop((12, 11)),
            lambda: vision.Crop((1, 0), (10, 9)),
            vision.HorizontalFlip,
            vision.VerticalFlip,
            vision.RandomHorizontalFlip,
            vision.RandomVerticalFlip,
        ]
        values = [
            lambda: vision.Rescale(0.3, -1.0),
            vision.Invert,
            lambda: vision.Normalize([3.0], [2.0]),
            vision.HWC2CHW,
            lambda: transforms.TypeCast(np.float64),
            lambda: vision.AdjustBrightness(1.3),
        ]
        chain = [moves[rng.integers(len(moves))]() for _ in range(rng.integers(2, 5))]
        chain += [values[n]() for n in sorted(rng.choice(len(values), rng.integers(0, 4), replace=False))]
        try:
            outputs(rows, chain)
        except RuntimeError:
            continue
        compare_or_leave(monkeypatch, rows, chain)


def compare_or_leave(monkeypatch, rows, chain):
    """Compare, whether the chain is applied or leaves the rows to its operations."""
    with monkeypatch.context() as patch:
        patch.setattr(Chain, "apply", lambda *arguments: None)
        plain = outputs(rows, chain)
    for one, other in zip(outputs(rows, chain), plain):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)


def test_rows_that_a_chain_is_not_made_for(monkeypatch):
    flat = [np.arange(600, dtype=np.uint8).reshape(20, 30)] * 2
    compare(monkeypatch, flat, [vision.Resize((10, 11)), vision.Rescale(0.5, 0.0)], applied=False)
    floats = [np.ones((9, 9, 3), np.float32)]
    compare(monkeypatch, floats, [vision.HorizontalFlip(), vision.Rescale(0.5, 0.0)], applied=False)
    padded = [np.ones((9, 9, 3), np.uint8)]
    compare(monkeypatch, padded, [vision.CenterCrop(12), vision.Rescale(0.5, 0.0)], applied=False)


def test_errors_are_those_of_the_operations():
    with pytest.raises(RuntimeError, match="Crop: the rectangle 30x30"):
        outputs([np.zeros((9, 9, 3), np.uint8)], [vision.HorizontalFlip(), vision.Crop((0, 0), (30, 30))])
    with pytest.raises(RuntimeError, match="are not an image"):
        outputs([np.zeros(9, np.uint8)], [vision.Decode(), vision.Resize((4, 4))])


def test_what_makes_a_chain():
    class Mine(vision.Resize):
        pass

    decode, resize, flip, rescale = vision.Decode(), vision.Resize(4), vision.HorizontalFlip(), vision.Rescale(1.0, 0.0)
    function = np.negative
    found = steps([function, decode, resize, rescale, flip, rescale, Mine(3), flip])
    assert [number for number, _ in found] == [0, 1, 4, 6, 7]
    assert [isinstance(step, Chain) for _, step in found] == [False, True, True, False, False]
    assert [type(step) for _, step in steps([vision.Decode(True), flip])] == [vision.Decode, vision.HorizontalFlip]
