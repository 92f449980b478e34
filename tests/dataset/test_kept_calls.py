"""Transforms that keep their calls give what they give without, for any image and any draw."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest

from mycel._src.engines.routines import compiled_routines
from mycel.dataset import transforms, vision
from mycel.dataset.random_numbers.random_streams import Stream, using

INTER, BORDER = vision.Inter, vision.Border
KEPT = [
    vision.HWC2CHW(),
    vision.HorizontalFlip(),
    vision.VerticalFlip(),
    vision.Pad((1, 2, 3, 4), 7),
    vision.Pad(2, (1, 2, 3)),
    vision.Pad(2, 0, BORDER.REFLECT),
    vision.PadToSize((30, 31), None, 5, BORDER.EDGE),
    vision.CenterCrop((9, 11)),
    vision.CenterCrop((30, 8)),
    vision.Crop((2, 3), (8, 9)),
    vision.ResizedCrop(2, 3, 9, 8, (7, 12), INTER.BICUBIC),
    vision.Rescale(0.3, 1.5),
    vision.ToTensor(),
    vision.ToType(np.float32),
    vision.Invert(),
    vision.Grayscale(3),
    vision.AdjustBrightness(1.3),
    vision.AdjustSaturation(0.4),
    vision.AdjustSharpness(1.7),
    vision.AdjustGamma(1.5),
    vision.Solarize((50, 180)),
    vision.Posterize(3),
    vision.Equalize(),
    vision.ConvertColor(vision.ConvertMode.COLOR_RGB2BGR),
    vision.ConvertColor(vision.ConvertMode.COLOR_RGB2RGBA),
    vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY),
    vision.GaussianBlur(3, 0.8),
    vision.GaussianBlur((5, 7), 1.7),
    vision.Resize((11, 13)),
    vision.Resize((14, 13), INTER.NEAREST),
    vision.Resize((11, 25), INTER.BICUBIC),
    vision.Resize((11, 13), INTER.AREA),
    vision.Resize((11, 13), INTER.ANTIALIAS),
    vision.Resize((20, 21)),
    vision.Rotate(30, INTER.BILINEAR, fill_value=(1, 2, 3)),
    vision.Rotate(30, expand=True),
    vision.Affine(15, (0.1, -0.1), 1.2, (5, 3), INTER.BICUBIC),
    vision.Erase(2, 3, 5, 6, 7.0),
    vision.Erase(2, 3, 5, 6, (1, 2, 3)),
    vision.Perspective([(0, 0), (19, 0), (19, 20), (0, 20)], [(1, 2), (18, 1), (19, 19), (2, 20)]),
    vision.FiveCrop((7, 8)),
    vision.TenCrop(9),
    vision.TenCrop(9, True),
    vision.SlicePatches(2, 3),
    vision.SlicePatches(3, 2, vision.SliceMode.DROP),
]
RANDOM = [
    vision.RandomHorizontalFlip(0.8),
    vision.RandomVerticalFlip(0.8),
    vision.RandomInvert(0.8),
    vision.RandomGrayscale(0.8),
    vision.RandomEqualize(0.8),
    vision.RandomAdjustSharpness(1.7, 0.8),
    vision.RandomSharpness((0.2, 1.8)),
    vision.RandomColor((0.2, 1.8)),
    vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
    vision.RandomSolarize((10, 200)),
    vision.RandomPosterize((1, 7)),
    vision.RandomLighting(0.5),
    vision.RandomCrop((12, 9)),
    vision.RandomCrop((22, 24), (1, 2, 3, 4), False, 9),
    vision.RandomCrop((22, 24), 4, True, (1, 2, 3)),
    vision.RandomCrop((22, 24), 4, False, 0, BORDER.REFLECT),
    vision.RandomRotation(40, INTER.BILINEAR, fill_value=3),
    vision.RandomRotation(40, expand=True),
    vision.RandomAffine(20, (0.1, 0.2), (0.5, 1.5), (-10, 10), INTER.BILINEAR),
    vision.RandomResize((11, 13)),
    vision.RandomResizedCrop((11, 13), (0.2, 0.9)),
    vision.RandomErasing(0.8, value=3),
    vision.RandomErasing(0.8, value="random"),
    vision.CutOut(6, 3),
    vision.AutoAugment(),
    vision.RandAugment(),
    vision.TrivialAugmentWide(),
    vision.AdjustContrast(1.4),
    vision.AdjustHue(0.2),
    vision.AdjustContrast(0.4),
    vision.RgbToHsv(True),
    vision.HsvToRgb(True),
]
FORMS = [("uint8", (20, 21, 3)), ("uint8", (20, 21, 1)), ("uint8", (20, 21)), ("float32", (20, 21, 3))]
FORMS += [("uint16", (20, 21, 3)), ("float64", (20, 21)), ("int16", (20, 21, 4)), ("bool", (20, 21, 3))]
FORMS += [("float16", (20, 21, 3)), ("int8", (20, 21, 3)), ("int32", (20, 21, 2)), ("int64", (20, 21))]


def images(dtype, shape, count):
    rng = np.random.default_rng(7)
    scale = {"bool": 2, "int8": 127}.get(dtype, 256)
    return [rng.integers(0, scale, shape).astype(dtype) for _ in range(count)]


def result(transform, image, key):
    with using(Stream(key)):
        try:
            found = transform(image)
        except Exception as error:
            return type(error), str(error)
    return list(found) if isinstance(found, tuple) else [found]


def compare(monkeypatch, transform, forms):
    """Compare many calls with those of NumPy alone; return how many forms were kept."""
    kept = 0
    for dtype, shape in forms:
        given = images(dtype, shape, 24)
        own, plain = copy.deepcopy(transform), copy.deepcopy(transform)
        before = [image.copy() for image in given]
        found = [result(own, image, key) for key, image in enumerate(given)]
        assert all(np.array_equal(a, b) for a, b in zip(given, before)), f"{transform} writes into {dtype} {shape}"
        kept += own._keeper is not None and bool(own._keeper.calls)
        with monkeypatch.context() as patch:
            patch.setattr(compiled_routines, "base", SimpleNamespace(current=lambda: SimpleNamespace(name="reference")))
            for key in (0, 20, 21, 22, 23):
                right, where = result(plain, given[key], key), f"{transform} of {dtype} {shape}, call {key}"
                if isinstance(right, tuple):
                    assert found[key] == right, where
                    continue
                assert len(found[key]) == len(right), where
                for one, other in zip(found[key], right):
                    assert one.dtype == other.dtype and one.shape == other.shape, where
                    assert one.flags.c_contiguous and one.flags.writeable, where
                    np.testing.assert_array_equal(one, other, where)
    return kept


@pytest.mark.parametrize("transform", KEPT, ids=str)
def test_kept_calls_give_what_numpy_gives(monkeypatch, transform):
    assert type(transform).keeps
    assert compare(monkeypatch, transform, FORMS) > 0


@pytest.mark.parametrize("transform", RANDOM, ids=str)
def test_random_transforms_draw_and_give_the_same(monkeypatch, transform):
    assert not type(transform).keeps
    forms = [(dtype, (shape[2] if len(shape) == 3 else 1, 20, 21)) for dtype, shape in FORMS]
    compare(monkeypatch, transform, forms if isinstance(transform, vision.RandomErasing) else FORMS)


def warm(transform, shape=(8, 9, 3), calls=20):
    for image in images("uint8", shape, calls):
        transform(image)
    return transform


def test_an_attribute_that_changes_is_followed():
    image = images("uint8", (8, 9, 3), 1)[0]
    crop = warm(vision.Crop((0, 0), (3, 4)))
    assert crop._keeper.calls
    crop.coordinates = (2, 1)
    np.testing.assert_array_equal(crop(image), image[2:5, 1:5])
    resize = warm(vision.Resize([4, 5]))
    resize.size[0] = 6
    assert resize(image).shape == (6, 5, 3)


def test_other_arrays_are_computed_as_before():
    flip, image = warm(vision.HorizontalFlip()), images("uint8", (8, 9, 3), 1)[0]
    wide = images("uint8", (8, 18, 3), 1)[0]
    for other in (image[::-1], wide[:, ::2], image.astype(">u2"), image.astype(np.complex64), image[:0], image[:3]):
        np.testing.assert_array_equal(flip(other), other[:, ::-1])
    assert flip(image.view(type("Own", (np.ndarray,), {}))).tolist() == image[:, ::-1].tolist()
    readonly = image.copy()
    readonly.flags.writeable = False
    assert flip(readonly).flags.writeable
    for wrong in ((), (image, image), ("text",), ([1, 2],)):
        with pytest.raises((TypeError, ValueError)):
            flip(*wrong)
    assert flip(image) is not flip(image)


def test_copies_and_pickles_leave_kept_calls_behind():
    flip, image = warm(vision.RandomHorizontalFlip(1.0)), images("uint8", (8, 9, 3), 1)[0]
    assert flip._keeper.calls
    for other in (copy.copy(flip), copy.deepcopy(flip), pickle.loads(pickle.dumps(flip))):
        assert other._keeper is None and repr(other) == repr(flip)
        np.testing.assert_array_equal(other(image), image[:, ::-1])


def test_what_users_compute_is_not_kept():
    class Own(vision.Resize):
        calls = 0

        def compute(self, array, lead):
            self.__dict__["calls"] = self.calls + 1
            return super().compute(array, lead)

    assert warm(Own((4, 5))).calls == 20


def test_calls_within_a_call_that_is_being_kept(monkeypatch):
    # The policy's operations are kept themselves; together they are not one call.
    both = transforms.Compose([vision.HorizontalFlip(), vision.Pad(1)])
    image = images("uint8", (8, 9, 3), 1)[0]
    for _ in range(20):
        found = both(image)
    np.testing.assert_array_equal(found, np.pad(image[:, ::-1], ((1, 1), (1, 1), (0, 0))))
