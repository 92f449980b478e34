"""What transforms compute by routines is what their NumPy code gives, bit for bit."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

from mycel._src.engines.routines import compiled_routines
from mycel.dataset import vision
from mycel.dataset.random_numbers.random_streams import Stream, using
from mycel.dataset.vision.erasing import normals
from mycel.dataset.vision.kernels import color_values

INTER = vision.Inter
SIZES = [(1, 1), (2, 2), (3, 5), (7, 4), (16, 16), (31, 20), (40, 33)]


def without_routines(monkeypatch):
    monkeypatch.setattr(compiled_routines, "base", SimpleNamespace(current=lambda: SimpleNamespace(name="reference")))


def result(transform, image):
    with using(Stream(5)):
        try:
            found = transform(image.copy())
            return np.stack(found) if isinstance(found, tuple) else found
        except Exception as error:
            return type(error), str(error)


def compare(monkeypatch, transforms, images):
    by_routines = [result(t, image) for t in transforms for image in images]
    with monkeypatch.context() as patch:
        without_routines(patch)
        by_numpy = [result(t, image) for t in transforms for image in images]
    cases = [(t, image) for t in transforms for image in images]
    assert not all(isinstance(found, tuple) for found in by_numpy)
    for (transform, image), one, other in zip(cases, by_routines, by_numpy):
        where = f"{transform} of {image.dtype} {image.shape}"
        if isinstance(other, tuple):
            assert one == other, where
            continue
        assert one.dtype == other.dtype and one.shape == other.shape, where
        np.testing.assert_array_equal(one, other, where)


def others(dtypes=("uint16", "int16", "float32", "float64")):
    """Return images of other numbers than bytes."""
    found = images(dtypes, (0, 1, 3), SIZES[2:])
    return [(image * 200.7 - 9000).astype(image.dtype) for image in found]


def images(dtypes=("uint8",), channels=(0, 1, 3, 4), sizes=SIZES):
    rng = np.random.default_rng(0)
    found = []
    for dtype in dtypes:
        for height, width in sizes:
            for count in channels:
                shape = (height, width, count) if count else (height, width)
                image = rng.integers(0, 256, shape)
                if rng.random() < 0.3:
                    image[: height // 2] = 255 * rng.integers(0, 2)
                found.append(image.astype(dtype))
    found += [image[::-1] for image in found[-3:]]
    return found


KINDS = [INTER.NEAREST, INTER.BILINEAR, INTER.BICUBIC, INTER.AREA, INTER.ANTIALIAS, INTER.PILCUBIC]


@pytest.mark.parametrize("kind", KINDS)
def test_resize(monkeypatch, kind):
    sizes = [(1, 1), (8, 8), (5, 13), (20, 3), (31, 40), (4, 5), 7]
    transforms = [vision.Resize(size, kind) for size in sizes] + [vision.ResizedCrop(0, 0, 2, 2, (5, 3), kind)]
    compare(monkeypatch, transforms, images(("uint8", "float32"), (0, 3, 4)))
    compare(monkeypatch, transforms, others(("uint16", "int16")))


@pytest.mark.parametrize("kind", KINDS)
def test_resize_of_parts(monkeypatch, kind):
    places = [(1, 2, 5, 7), (0, 0, 8, 8), (9, 3, 7, 12), (2, 5, 14, 10), (15, 19, 1, 1), (3, 0, 4, 20)]
    transforms = [vision.ResizedCrop(*place, size, kind) for place in places for size in [(7, 5), (4, 4), (5, 7)]]
    transforms += [vision.RandomResizedCrop((9, 6), (0.1, 0.9), interpolation=kind)]
    compare(monkeypatch, transforms, images(("uint8", "float32", "uint16"), (0, 3, 4), [(16, 20), (33, 41)]))


@pytest.mark.parametrize("kind", [INTER.NEAREST, INTER.BILINEAR, INTER.BICUBIC])
def test_warps(monkeypatch, kind):
    transforms = [
        vision.Rotate(0, kind),
        vision.Rotate(33.3, kind, fill_value=(1, 2, 3)),
        vision.Rotate(-90, kind, expand=True),
        vision.Rotate(211, kind, True, None, 9),
        vision.Rotate(20, kind, center=(-3, 40)),
        vision.Affine(15, (0.2, -0.3), 1.7, (10, -5), kind, 200),
        vision.RandomAffine(40, (0.4, 0.4), (0.1, 3.0), 30, kind),
        vision.RandomRotation(180, kind),
        vision.Perspective([(0, 0), (9, 0), (9, 9), (0, 9)], [(1, 0), (7, 2), (9, 9), (2, 5)], kind),
        vision.Perspective([(0, 0), (20, 0), (20, 30), (0, 30)], [(5, 5), (7, 0), (30, 9), (0, 2)], kind),
        vision.RandomPerspective(0.9, 1.0, kind),
    ]
    compare(monkeypatch, transforms, images())
    compare(monkeypatch, transforms, others())


def test_blurs(monkeypatch):
    sizes = [1, 3, 5, (3, 7), (9, 1), 15]
    transforms = [vision.GaussianBlur(size) for size in sizes] + [vision.GaussianBlur(5, 0.4), vision.GaussianBlur(31)]
    transforms += [vision.AdjustSharpness(factor) for factor in (0.0, 0.5, 1.0, 1.9, 40.0)]
    compare(monkeypatch, transforms, images())
    compare(monkeypatch, transforms, others())


def test_colours(monkeypatch):
    transforms = [vision.AdjustHue(factor) for factor in (-0.5, -0.21, 0.0, 0.1, 0.5)]
    for factor in (0.0, 0.3, 1.0, 1.7, 300.0):
        transforms += [vision.AdjustBrightness(factor), vision.AdjustContrast(factor), vision.AdjustSaturation(factor)]
        transforms.append(vision.AdjustGamma(factor, 1.1))
    transforms += [vision.Grayscale(1), vision.Grayscale(3), vision.Equalize(), vision.AutoContrast()]
    transforms += [vision.AutoContrast(10.0, [0, 255]), vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.2)]
    transforms += [vision.AutoContrast(cutoff) for cutoff in (0.3, 5.0, 49.9)]
    flat = [np.full((5, 7, 3), value, np.uint8) for value in (0, 9, 255)]
    compare(monkeypatch, transforms, [*images(), *flat])
    compare(monkeypatch, transforms, others(("float32", "float64", "float16")))
    compare(monkeypatch, [vision.AdjustBrightness(factor) for factor in (0.3, 1.7)], others(("uint16", "int16")))


def test_sharpness_keeps_the_type():
    # As MindSpore gives them.
    image = np.full((4, 4), 40000, np.uint16)
    image[1, 1] = 60000
    sharp = vision.AdjustSharpness(1.7)(image)
    assert sharp.dtype == np.uint16 and sharp[0].tolist() == [40000] * 4
    assert sharp[1].tolist() == [40000, 65535, 38923, 40000]
    assert vision.AdjustSharpness(0.0)((image // 4).astype(np.int16))[1].tolist() == [10000, 11923, 10385, 10000]


def test_orders_of_colours(monkeypatch):
    transforms = [vision.ConvertColor(mode) for mode in vision.ConvertMode]
    transforms += [vision.RandomLighting(alpha) for alpha in (0.0, 0.3, 5.0)]
    transforms += [vision.Solarize((0.5, 99.5)), vision.Solarize(255.0), vision.Solarize((7, 7))]
    transforms += [vision.Solarize(100), vision.Solarize((3, 99)), vision.Posterize(3), vision.Invert()]
    transforms += [
        vision.Pad(2),
        vision.Pad((0, 3, 1, 0), (7, 8, 9)),
        vision.CenterCrop((30, 3)),
        vision.VerticalFlip(),
    ]
    compare(monkeypatch, transforms, images(("uint8", "float32", "float64")))


def test_padding_and_flips(monkeypatch):
    borders = list(vision.Border)
    sides = [1, (0, 3, 1, 0), (40, 2, 35, 77), 0]
    transforms = [vision.Pad(side, 7, border) for side in sides for border in borders]
    transforms += [vision.Pad(2, (1, 200, 3)), vision.PadToSize((70, 60), (3, 4), 9), vision.CenterCrop((35, 60))]
    transforms += [vision.RandomCrop(9, 3, True, 5, border) for border in borders]
    transforms += [vision.HorizontalFlip(), vision.RandomHorizontalFlip(1.0), vision.SlicePatches(2, 3)]
    sizes = [(1, 1), (2, 5), (33, 20)]
    kinds = ("uint8", "int8", "bool", "uint16", "int32", "float16", "float32", "float64", "complex64", "complex128")
    compare(monkeypatch, transforms, images(kinds, (0, 1, 2, 3), sizes))
    compare(monkeypatch, transforms, [np.array([["a", "bc"], ["", "d"]]), np.ones((3, 4, 3), ">f4")])


def test_drawn_rectangles(monkeypatch):
    transforms = [vision.RandomErasing(1.0, value=value) for value in (7, (1, 2, 3), "random")]
    transforms += [vision.Erase(1, 1, 2, 1, value) for value in (3, 255)] + [vision.CutOut(2, 2)]
    compare(monkeypatch, transforms, images(("uint8", "float32"), (3,), SIZES[2:]))
    one, other = Stream(5), Stream(5)
    for count in (0, 1, 3000):
        with using(one):
            found = normals(count)
        assert found.tolist() == [other.normal() for _ in range(count)] and one.state == other.state


def test_normalised_and_padded(monkeypatch):
    transforms = [vision.NormalizePad([3.0], [0.7]), vision.NormalizePad([3.0, 100.0, 7.5], [0.7, 1.1, 90.0])]
    transforms += [vision.NormalizePad([3.0], [0.7], "float16"), vision.NormalizePad([3.0], [0.7], is_hwc=False)]
    compare(monkeypatch, transforms, images(("uint8", "float32", "int32")))


def test_hue_saturation_and_value(monkeypatch):
    rng = np.random.default_rng(3)
    colours = rng.random((9, 40, 3))
    colours[0], colours[1, :, 1], colours[2, :, 0] = 0.5, colours[1, :, 0], 0
    wild = rng.normal(size=(5, 6, 3)) * 40
    wild[1] = np.nan
    found = [colours, colours.astype(np.float32), np.round(colours, 1), np.round(colours), wild, wild[3:]]
    compare(monkeypatch, [vision.HsvToRgb(True)], found)
    compare(monkeypatch, [vision.RgbToHsv(True)], found[:4])
    compare(monkeypatch, [vision.HsvToRgb(), vision.RgbToHsv()], [image.transpose(2, 0, 1) for image in found[:4]])
    found = [(colours * 255).astype(np.uint8), (colours * 5).astype(np.uint16), np.stack([colours, colours / 2])]
    compare(monkeypatch, [vision.HsvToRgb(True), vision.RgbToHsv(True)], found)
    several = [np.moveaxis(image, -1, -3) for image in found]
    compare(monkeypatch, [vision.HsvToRgb(), vision.RgbToHsv()], several)


def test_every_hue(monkeypatch):
    grid = np.stack(np.meshgrid(*[np.arange(0, 256, 5)] * 3), -1).astype(np.uint8).reshape(52, -1, 3)
    compare(monkeypatch, [vision.AdjustHue(factor) for factor in (0.17, -0.4)], [grid])


def test_values_and_places(monkeypatch):
    transforms = [
        vision.Rescale(1 / 255, 0.0),
        vision.Rescale(0.3, -1.5),
        vision.Normalize([3.0], [0.7]),
        vision.Normalize([3.0, 100.0, 7.5], [0.7, 1.1, 90.0]),
        vision.Normalize([3.0] * 4, [0.7, 1.1, 90.0, 3.0], False),
        vision.ToTensor(),
        vision.ToTensor(np.float16),
        vision.HWC2CHW(),
        vision.HorizontalFlip(),
        vision.VerticalFlip(),
    ]
    compare(monkeypatch, transforms, images(("uint8", "float32", "int32")))
    compare(monkeypatch, transforms, images(channels=(9,)))


ALL_TYPES = ("bool", "int8", "uint8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64")


@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 7), (5, 3, 1), (13, 9, 3), (33, 65, 3), (64, 11, 4), (70, 1, 3)])
def test_colours_of_all_types(monkeypatch, shape):
    values = np.random.default_rng(sum(shape)).integers(0, 256, shape)
    of = [(values * (1 if dtype in ("bool", "uint8") else 0.5)).astype(dtype) for dtype in ALL_TYPES]
    three = [image for image in of if image.shape[2:] == (3,)]
    rows = np.repeat(values.astype(np.uint8), 2, 0)[::2]
    alike = [
        vision.Rescale(1 / 255, 0.1),
        vision.Rescale(3.7, 0),
        vision.Normalize([120.0], [50.0]),
        vision.NormalizePad([120.0], [50.0]),
        vision.NormalizePad([120.0], [50.0], "float16"),
        vision.AdjustBrightness(1.3),
        vision.AdjustContrast(0.3),
        vision.AdjustSaturation(1.7),
        vision.RandomLighting(0.4),
        vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
        vision.Invert(),
        vision.Solarize((20.5, 100)),
        vision.Grayscale(1),
        vision.HsvToRgb(True),
        vision.RgbToHsv(True),
        *[vision.ConvertColor(vision.ConvertMode(mode)) for mode in (0, 1, 4, 5, 7, 8, 10)],
    ]
    compare(monkeypatch, alike, [*of, rows])
    if three:
        compare(monkeypatch, [vision.Normalize([1.0, 2.0, 3.0], [3.0, 5.0, 7.0])], [*of, rows])


@pytest.mark.parametrize("dtype", [*ALL_TYPES, "uint32", "uint64", ">f4", ">i2"])
def test_mixed_batches(monkeypatch, dtype):
    rng = np.random.default_rng(4)
    for shape in ((0, 2, 3, 3), (1, 1, 1, 1), (5, 7, 9, 3), (4, 3, 33, 2)):
        kind = np.dtype(dtype).kind
        images = (
            rng.integers(0, 2 if kind == "b" else 120, shape) * (1 if kind in "bf" or "8" in dtype else 250)
        ).astype(dtype)
        labels = np.eye(shape[0], 11)
        for transform in (vision.MixUpBatch(0.4), vision.MixUp(max(1, shape[0]), 0.9)):
            found = []
            for engine in ("routines", "numpy"):
                with monkeypatch.context() as patch, using(Stream(9)):
                    if engine == "numpy":
                        without_routines(patch)
                    if shape[0] or isinstance(transform, vision.MixUpBatch):
                        found.append(transform(images, labels))
            for one, other in zip(*found):
                assert one.dtype == other.dtype
                np.testing.assert_array_equal(one, other)


def test_mixed_batches_against_their_definition():
    values = np.arange(24).reshape(2, 2, 2, 3) * 2700
    for dtype in ("uint16", "int16", "int32", "int64", "uint8", "float32", "float64"):
        images = (values if dtype != "uint8" else values // 250).clip(0, 32767).astype(dtype)
        with using(Stream(3)):
            mixed, marks = vision.MixUpBatch(1.0)(images, np.eye(2))
        share, other = marks[0].astype(np.float64), images.astype(np.float64)
        for n in range(2):
            wanted = share[0] * other[n] + share[1] * other[1 - n] if share[1] else other[n]
            error = np.abs(mixed[n] - wanted).max()
            assert error <= (0.01 if dtype[0] == "f" else 0.51), (dtype, error)
        assert mixed.dtype == images.dtype


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e15, -1e300])
def test_hues_of_numbers_that_are_none_or_large(monkeypatch, odd):
    image = np.random.default_rng(2).random((4, 5, 3))
    image[2, 3, 1] = odd
    batch = np.stack([image[..., 0], image[..., 1], image[..., 2]])[None].repeat(2, 0)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compare(monkeypatch, [vision.RgbToHsv(True), vision.HsvToRgb(True)], [image, image[:1]])
        compare(monkeypatch, [vision.RgbToHsv(), vision.HsvToRgb()], [batch, batch[0]])


def test_empty_images_and_blocks(monkeypatch):
    transforms = [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW(), vision.AdjustBrightness(0.5), vision.GaussianBlur(3)]
    transforms += [vision.AdjustSaturation(0.5), vision.Grayscale(), vision.Rotate(5), vision.HorizontalFlip()]
    compare(monkeypatch, [*transforms, vision.Invert()], [np.zeros((0, 4, 3), np.uint8), np.zeros((4, 0, 3), np.uint8)])
    block = np.random.default_rng(1).integers(0, 256, (5, 20, 30, 3), dtype=np.uint8)
    blocks = [vision.Resize((7, 9)), vision.Resize((30, 40), INTER.BICUBIC), vision.Rotate(30), transforms[0]]
    compare(monkeypatch, [*blocks, vision.Normalize([1.0, 2.0, 3.0], [4.0, 5.0, 6.0])], [block])
    for transform in (*blocks[:2], transforms[0], vision.Grayscale(3), vision.AdjustSaturation(0.3)):
        together = transform.compute(block.copy(), 1)
        assert (together == np.stack([transform(image) for image in block])).all()


@pytest.mark.parametrize(
    "shape", [(5, 28, 28, 1), (5, 28, 28), (7, 11, 9, 3), (3, 1, 1, 3), (4, 13, 7, 4), (2, 30, 6, 2)]
)
def test_images_resized_at_once_are_those_resized_alone(shape: tuple[int, ...]) -> None:
    images = np.random.default_rng(3).integers(0, 256, shape, dtype=np.uint8)
    for size in ((32, 32), (4, 4), (1, 1), (9, 5), (14, 14)):
        resize = vision.Resize(size)
        for given in (images, images[::-1], images[1:2]):
            made = resize.apply_block(given, None)
            np.testing.assert_array_equal(made, np.stack([resize(image) for image in given]))


def test_integers_stand_for_quotients_when_hues_are_turned():
    # All products of a value, a saturation and a rest.
    for first in range(0, 256, 32):
        numbers = np.arange(first << 19, (first + 32) << 19)
        numbers = numbers[numbers <= 255**3]
        assert (color_values._over_255(numbers) == numbers // 255).all()
        rounded = (2 * numbers + 255**2) // (2 * 255**2)
        assert (color_values._part(numbers, 1) == rounded).all()


def test_all_colours_of_bytes_have_their_hues(monkeypatch):
    steps = np.arange(0, 256, 5, dtype=np.uint8)
    colours = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(len(steps), -1, 3)
    kinds = [colours, (colours / 255).astype(np.float32), colours * np.uint16(257)]
    compare(monkeypatch, [vision.AdjustHue(0.37), vision.AdjustHue(-0.2)], [colours])
    zeros = np.array([0.0, -0.0], np.float32)
    signs = np.stack(np.meshgrid(zeros, zeros, zeros, indexing="ij"), -1).reshape(2, 4, 3).repeat(9, 1)
    compare(monkeypatch, [vision.RgbToHsv(True)], [*kinds, signs])


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_values_are_looked_up_at_all_lengths(channels):
    rng = np.random.default_rng(8)
    for count in (0, 1, 63, 64, 65, 200):
        source = rng.integers(0, 256, (count, channels)).astype(np.uint8)
        for element in ("uint8", "float32"):
            tables = rng.integers(0, 256, (channels, 256)).astype(element)
            found = np.zeros(source.shape, element)
            color_values.look_up(source, count, channels, element, tables, found)
            assert (found == np.stack([tables[c][source[:, c]] for c in range(channels)], -1)).all()
