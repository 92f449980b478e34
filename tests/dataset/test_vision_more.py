"""Enhancing, warping and multiplying images: against what MindSpore 2.10 gives for fixed images,
and formulas; random ones by their ranges.
"""

from __future__ import annotations

import colorsys
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision
from mycel.dataset.vision import ConvertMode, ImageBatchFormat, Inter, SliceMode

RANDOM = np.random.default_rng(0)
COLOURS = RANDOM.integers(0, 256, (6, 7, 3)).astype(np.uint8)
GREYS = RANDOM.integers(0, 256, (5, 6)).astype(np.uint8)
IMAGES = {"C": COLOURS, "G": GREYS, "A": RANDOM.integers(0, 256, (5, 4, 4)).astype(np.uint8)}
SMOOTH = (np.add.outer(np.arange(6) * 20, np.arange(7) * 15)[..., None] + np.array([0, 30, 60])).astype(np.uint8)
# The images that MindSpore 2.10 makes: for a call and an image, the shapes and bytes of the
# results.
VALUES = json.loads((Path(__file__).parent / "values" / "vision.json").read_text())
NAMES = {**vars(vision), "Inter": Inter, "ConvertMode": ConvertMode, "SliceMode": SliceMode}
# Sums in floating point, where MindSpore rounds a few pixels the other way.
NEARLY = ("RandomColor((1.7", "Affine(15")


@pytest.mark.parametrize("case", VALUES)
def test_images_are_those_of_mindspore(case: str) -> None:
    call, image = case.rsplit("|", 1)
    result = eval(call, {}, NAMES)(IMAGES[image])
    results = result if isinstance(result, tuple) else (result,)
    assert len(results) == len(VALUES[case])
    for got, (shape, content) in zip(results, VALUES[case]):
        expected = np.frombuffer(bytes.fromhex(content), np.uint8).reshape(shape)
        assert got.dtype == np.uint8 and got.shape == expected.shape
        assert np.abs(got.astype(int) - expected).max() <= (1 if call.startswith(NEARLY) else 0)


def test_colour_spaces_against_colorsys() -> None:
    image = COLOURS / 255
    expected = np.array([colorsys.rgb_to_hsv(*pixel) for pixel in image.reshape(-1, 3)]).reshape(image.shape)
    np.testing.assert_allclose(vision.RgbToHsv(True)(image), expected, atol=1e-12)
    np.testing.assert_allclose(vision.HsvToRgb(True)(expected), image, atol=1e-12)
    np.testing.assert_allclose(vision.RgbToHsv()(image.transpose(2, 0, 1)), expected.transpose(2, 0, 1), atol=1e-12)
    with pytest.raises(TypeError, match=r"the image must be \[3, H, W\]"):
        vision.RgbToHsv()(image)


def test_floats_follow_the_formulas() -> None:
    image = (COLOURS / 255).astype(np.float32)
    np.testing.assert_allclose(vision.AdjustGamma(0.5, 1.3)(image), np.minimum(1, (1.3 * image) ** 0.5), rtol=1e-6)
    np.testing.assert_allclose(vision.AdjustSharpness(1.0)(image), image, rtol=1e-6)
    soft = vision.AdjustSharpness(0.0)(image)
    middle = (image[:3, :3].sum((0, 1)) + 4 * image[1, 1]) / 13
    np.testing.assert_allclose(soft[1, 1], middle, rtol=1e-5)
    assert np.array_equal(soft[0], image[0])
    weights = np.exp(-(np.arange(-1, 2) ** 2) / (2 * 0.8**2))
    weights /= weights.sum()
    rows = np.pad(image, ((0, 0), (1, 1), (0, 0)), mode="reflect")
    across = sum(w * rows[:, n : n + 7] for n, w in enumerate(weights))
    columns = np.pad(across, ((1, 1), (0, 0), (0, 0)), mode="reflect")
    np.testing.assert_allclose(
        vision.GaussianBlur(3)(image), sum(w * columns[n : n + 6] for n, w in enumerate(weights)), rtol=1e-5
    )
    grey = image @ np.array([0.299, 0.587, 0.114], np.float32)
    np.testing.assert_allclose(vision.ConvertColor(ConvertMode.COLOR_RGB2GRAY)(image), grey, rtol=1e-6)


def test_turns_and_moves() -> None:
    square = np.arange(25, dtype=np.uint8).reshape(5, 5)
    for turns in range(4):
        for kind in (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC):
            assert np.array_equal(vision.Rotate(90 * turns, kind)(square), np.rot90(square, turns))
    moved = vision.Affine(0, (0.2, -0.4), 1.0, 0.0, fill_value=9)(square)
    assert np.array_equal(moved[:3, 1:], square[2:, :4]) and (moved[:, 0] == 9).all() and (moved[3:] == 9).all()
    wide = vision.Rotate(90, expand=True)(COLOURS)
    assert wide.shape == (7, 6, 3) and np.array_equal(wide, np.rot90(COLOURS))
    corners = [[0, 0], [4, 0], [4, 4], [0, 4]]
    assert np.array_equal(vision.Perspective(corners, corners)(square), square)
    assert np.array_equal(vision.Perspective(corners, corners[1:] + corners[:1])(square), np.rot90(square, -1))


def test_crops_and_patches() -> None:
    found = vision.TenCrop((3, 4), True)(COLOURS)
    upside_down = COLOURS[::-1]
    expected = [
        image[top : top + 3, left : left + 4]
        for image in (COLOURS, upside_down)
        for top, left in ((0, 0), (0, 3), (3, 0), (3, 3), (1, 1))
    ]
    assert len(found) == 10 and all(np.array_equal(a, b) for a, b in zip(found, expected))
    with pytest.raises(ValueError, match="is larger than the image"):
        vision.FiveCrop(8)(COLOURS)
    patches = vision.SlicePatches(4, 2, SliceMode.PAD, 7)(COLOURS)
    assert len(patches) == 8 and patches[0].shape == (2, 4, 3) and (patches[7] == 7).all()


def test_linear_maps_and_padding() -> None:
    size = COLOURS.size
    matrix, mean = RANDOM.normal(size=(size, size)), RANDOM.normal(size=size)
    expected = ((COLOURS.reshape(-1) - mean) @ matrix).reshape(COLOURS.shape)
    np.testing.assert_allclose(vision.LinearTransformation(matrix, mean)(COLOURS), expected, rtol=1e-9)
    with pytest.raises(ValueError, match="does not fit a vector"):
        vision.LinearTransformation(matrix, mean[:-1])
    mean, std = np.array([100.0, 120, 130]), np.array([50.0, 60, 70])
    padded = vision.NormalizePad(list(mean), list(std), "float16")(COLOURS)
    assert padded.dtype == np.float16 and (padded[..., 3] == 0).all()
    np.testing.assert_allclose(padded[..., :3], (COLOURS - mean) / std, atol=2e-3)
    first = vision.NormalizePad(list(mean), list(std), is_hwc=False)(COLOURS.transpose(2, 0, 1))
    assert first.shape == (4, 6, 7) and (first[3] == 0).all()


def seeded(transform: Any, image: np.ndarray, count: int) -> list[np.ndarray]:
    ds.config.set_seed(7)
    data = ds.GeneratorDataset([(image,)] * count, ["image"], shuffle=False).map(transform, "image")
    return [row[0] for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True)]


@pytest.mark.parametrize(
    "random, fixed, low, high",
    [
        (vision.RandomSharpness((0.2, 1.8)), vision.AdjustSharpness, 0.2, 1.8),
        (vision.RandomColor((0.2, 1.8)), vision.AdjustSaturation, 0.2, 1.8),
        (vision.RandomColorAdjust(brightness=0.5), vision.AdjustBrightness, 0.5, 1.5),
        (vision.RandomColorAdjust(contrast=(0.5, 1.5)), vision.AdjustContrast, 0.5, 1.5),
        (vision.RandomColorAdjust(hue=0.2), vision.AdjustHue, -0.2, 0.2),
        (vision.RandomRotation(40), vision.Rotate, -40, 40),
        (vision.RandomRotation((10, 40), Inter.BILINEAR), lambda a: vision.Rotate(a, Inter.BILINEAR), 10, 40),
        (
            vision.RandomAffine((10, 40), resample=Inter.BILINEAR),
            lambda a: vision.Affine(a, (0, 0), 1.0, 0.0, Inter.BILINEAR),
            10,
            40,
        ),
        (vision.RandomAffine(0, scale=(0.5, 2.0)), lambda s: vision.Affine(0, (0, 0), s, 0.0), 0.5, 2.0),
        (vision.RandomAffine(0, shear=(-30, 30)), lambda s: vision.Affine(0, (0, 0), 1.0, s), -30, 30),
        (vision.RandomPosterize((2, 5)), vision.Posterize, 2, 5),
    ],
)
def test_random_forms_stay_within_their_ranges(random: Any, fixed: Any, low: float, high: float) -> None:
    whole = isinstance(random, vision.RandomPosterize)
    # A ramp is as sharp as its mean over neighbours.
    shown = COLOURS if isinstance(random, vision.RandomSharpness) else SMOOTH
    values = list(range(2, 6)) if whole else list(np.linspace(low, high, 801))
    known = np.stack([fixed(value)(shown) for value in values]).astype(int)
    images = seeded(random, shown, 24)
    nearest = []
    for image in images:
        distance = np.abs(known - image).reshape(len(known), -1).sum(1)
        assert distance.min() <= (0 if whole else SMOOTH.size // 4)
        nearest.append(float(values[int(distance.argmin())]))
    # 24 uniform draws leave both outer quarters of the range empty with a chance of 0.2 %; the seed
    # is fixed.
    assert min(nearest) < low + (high - low) / 3 and max(nearest) > high - (high - low) / 3


@pytest.mark.parametrize(
    "chance, always",
    [
        (vision.RandomEqualize, vision.Equalize()),
        (lambda prob: vision.RandomAutoContrast(prob=prob), vision.AutoContrast()),
        (lambda prob: vision.RandomAdjustSharpness(0.0, prob), vision.AdjustSharpness(0.0)),
    ],
)
def test_probabilities(chance: Any, always: Any) -> None:
    assert np.array_equal(chance(0.0)(COLOURS), COLOURS) and np.array_equal(chance(1.0)(COLOURS), always(COLOURS))
    changed = sum(not np.array_equal(image, COLOURS) for image in seeded(chance(0.3), COLOURS, 200))
    assert 35 <= changed <= 85


def test_random_perspective_and_solarize() -> None:
    assert np.array_equal(vision.RandomPerspective(0.5, 0.0)(SMOOTH), SMOOTH)
    images = seeded(vision.RandomPerspective(0.9, 1.0, Inter.NEAREST), SMOOTH, 9)
    assert len({image.tobytes() for image in images}) > 3 and all(
        set(np.unique(i)) <= {0, *np.unique(SMOOTH)} for i in images
    )
    for image in seeded(vision.RandomSolarize((50, 150)), SMOOTH, 9):
        changed = image != SMOOTH
        assert (
            (SMOOTH[changed] >= 50).all()
            and (SMOOTH[changed] <= 150).all()
            and (image[changed] == 255 - SMOOTH[changed]).all()
        )


def test_lighting_moves_along_the_colours_of_imagenet() -> None:
    image = np.full((4, 5, 3), 0.5)
    shifts = np.stack([found[0, 0] - 0.5 for found in seeded(vision.RandomLighting(0.1), image, 400)])
    vectors, values = vision.RandomLighting._VECTORS, vision.RandomLighting._VALUES
    covariance = 0.01 * (vectors * values**2) @ vectors.T
    np.testing.assert_allclose(np.cov(shifts.T), covariance, rtol=0.25, atol=0.5)
    assert np.array_equal(vision.RandomLighting(0.0)(COLOURS), COLOURS)


def test_resizing_by_chance_and_decoding() -> None:
    known = {
        vision.Resize(4, kind)(COLOURS).tobytes() for kind in (Inter.NEAREST, Inter.BILINEAR, Inter.BICUBIC, Inter.AREA)
    }
    assert {image.tobytes() for image in seeded(vision.RandomResize(4), COLOURS, 40)} == known
    pytest.importorskip("PIL")
    content = vision.encode_png(COLOURS)
    assert np.array_equal(vision.RandomCropDecodeResize((6, 7), (1.0, 1.0), (7 / 6, 7 / 6))(content), COLOURS)
    assert vision.RandomCropDecodeResize(3)(content).shape == (3, 3, 3)


def test_choosing_among_transforms() -> None:
    plus = [lambda x, n=n: x + n for n in (1, 10, 100)]
    sums = {int(image[0]) for image in seeded(vision.UniformAugment(plus, 2), np.zeros(1, int), 60)}
    assert sums == {0, 1, 10, 100, 11, 101, 110}
    with pytest.raises(ValueError, match=r"num_ops must be at most 3, not 4"):
        vision.UniformAugment(plus, 4)
    policy = vision.RandomSelectSubpolicy([[(plus[0], 1.0), (plus[1], 0.5)], [(plus[2], 1.0)]])
    found = [int(image[0]) for image in seeded(policy, np.zeros(1, int), 200)]
    assert set(found) == {1, 11, 100} and 70 <= found.count(100) <= 130
    with pytest.raises(TypeError, match="must be \\(transform, probability\\)"):
        vision.RandomSelectSubpolicy([[plus[0]]])


def batch(transform: Any, images: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    ds.config.set_seed(3)
    data = ds.NumpySlicesDataset({"image": images, "label": labels}, shuffle=False).batch(len(images))
    mixed = data.map(transform, ["image", "label"])
    (row,) = mixed.create_tuple_iterator(num_epochs=1, output_numpy=True)
    return row[0], row[1]


def test_mixing_batches() -> None:
    # Image n is n everywhere, so that a mixed image shows its shares.
    images = np.broadcast_to(np.arange(4.0)[:, None, None, None], (4, 8, 6, 3)).astype(np.float32).copy()
    labels = np.eye(4, dtype=np.float32)
    mixed, marks = batch(vision.MixUpBatch(1.0), images, labels)
    np.testing.assert_allclose(mixed[:, 0, 0, 0], marks @ np.arange(4), rtol=1e-6)
    np.testing.assert_allclose(marks.sum(1), 1, rtol=1e-6)
    for layout, wanted in (
        (ImageBatchFormat.NHWC, images),
        (ImageBatchFormat.NCHW, images.transpose(0, 3, 1, 2).copy()),
    ):
        cut, marks = batch(vision.CutMixBatch(layout, 1.0, 1.0), wanted, labels)
        np.testing.assert_allclose(cut.mean((1, 2, 3)), marks @ np.arange(4), rtol=1e-5, atol=1e-6)
        assert not np.array_equal(cut, wanted) and set(np.unique(cut)) <= {0, 1, 2, 3}
    untouched, _ = batch(vision.CutMixBatch(ImageBatchFormat.NHWC, 1.0, 0.0), images, labels)
    assert np.array_equal(untouched, images)
    with pytest.raises(ValueError, match="use it after batch"):
        vision.MixUpBatch()(images[0], labels[0])
    with pytest.raises(ValueError, match="labels must be one-hot"):
        vision.MixUpBatch()(images, np.arange(4))


@pytest.mark.parametrize(
    "call, message",
    [
        ("AdjustHue(0.6)", "hue_factor must be within"),
        ("AutoContrast(50)", r"cutoff must be within \[0, 50\)"),
        ("GaussianBlur(4)", "kernel_size must be odd"),
        ("ConvertColor(3)", "must be a ConvertMode"),
        ("Rotate('a')", "degrees must be a number"),
        ("Rotate(3, Inter.ANTIALIAS)", "use NEAREST, BILINEAR or BICUBIC"),
        ("RandomRotation((5, 3))", "an increasing pair"),
        ("RandomRotation(-3)", "must be at least 0"),
        ("RandomAffine(3, (2, 0))", "translate must be 2 or 4 numbers"),
        ("Affine(3, (0, 0), 0, 0)", "scale must be positive"),
        ("Perspective([[0, 0]], [[0, 0]])", "must be four points"),
        ("RandomColorAdjust(-1)", "brightness must be at least 0"),
        ("RandomColorAdjust(hue=0.7)", "hue must be within"),
        ("RandomPosterize((0, 4))", r"bits must be within \[1, 8\]"),
        ("RandomSolarize((0, 300))", r"threshold must be within \[0, 255\]"),
        ("SlicePatches(0)", "num_height must be at least 1"),
        ("NormalizePad([1], [1], 'int8')", "dtype must be"),
        ("CutMixBatch(0)", "must be an ImageBatchFormat"),
        ("MixUpBatch(0)", "alpha must be positive"),
        ("RgbToHsv(1)", "is_hwc must be a bool"),
    ],
)
def test_arguments_that_do_not_fit(call: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        eval(call, {}, NAMES)


def test_images_that_do_not_fit() -> None:
    for call, image, message in (
        ("AdjustHue(0.1)", GREYS, r"the image must be \[H, W, C\]"),
        ("AutoContrast()", COLOURS / 255, "must be uint8"),
        ("Equalize()", IMAGES["A"], "must have one channel or three"),
        ("ConvertColor(ConvertMode.COLOR_GRAY2RGB)", COLOURS, "must have 1 channels"),
        ("RandomLighting()", GREYS, r"\[H, W, C\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            eval(call, {}, NAMES)(image)


def test_functions_that_draw_nothing() -> None:
    from mycel.dataset import transforms

    for mark in (transforms.not_random, vision.not_random):
        function = mark(lambda x: x + 1)
        assert function.random is False and int(seeded(function, np.zeros(1, int), 1)[0][0]) == 1
    with pytest.raises(TypeError, match="must be a function"):
        transforms.not_random(3)


def quadrilaterals():
    """Return images with four points and where they go."""
    state, numbers = 1, []
    for _ in range(60 * 18):
        state = state * 6364136223846793005 + 1442695040888963407 & (1 << 64) - 1
        numbers.append(state >> 33)
    found = []
    for number in range(60):
        height, width, *moves = numbers[18 * number : 18 * number + 18]
        height, width = 3 + height % 68, 3 + width % 68
        corners = [(0, 0), (width - 1, 0), (width - 1, height - 1), (0, height - 1)]
        near = [(x + moves[2 * n] % 19 - 9, y + moves[2 * n + 1] % 19 - 9) for n, (x, y) in enumerate(corners)]
        other = [(x + moves[8 + 2 * n] % 7 - 3, y + moves[9 + 2 * n] % 7 - 3) for n, (x, y) in enumerate(corners)]
        image = (np.arange(height * width * 3) * 2654435761 >> 9) % 256
        found.append((image.astype(np.uint8).reshape(height, width, 3), other if number % 2 else corners, near))
    return found


@pytest.mark.parametrize(
    "kind, digest",
    [
        (Inter.NEAREST, "63c954b23a6f32f3700e51961f883ad6d123c308438ce834c98fe925f6fb6c2a"),
        (Inter.BILINEAR, "317b8c76c28b43cdb43636d21e297c77871819288e1217f977ee4f3f4c57dc26"),
        (Inter.BICUBIC, "8545092f756b14c87e8787f07c5923ac13a8c5bf25a3bfd70e93e011ed8d6da9"),
    ],
)
def test_perspectives_are_mindspores(kind, digest):
    found = hashlib.sha256()
    for image, start, end in quadrilaterals():
        found.update(vision.Perspective(start, end, kind)(image).tobytes())
    assert found.hexdigest() == digest


def test_points_that_are_the_same_have_no_perspective():
    square = [(0, 0), (9, 0), (9, 9), (0, 9)]
    for start in ([(3, 4)] * 4, [(0, 0), (9, 0), (9, 0), (0, 9)]):
        with pytest.raises(RuntimeError, match=r"three of the points .* lie on a line"):
            vision.Perspective(start, square)(np.zeros((4, 5, 3), np.uint8))


def test_resized_axes_take_the_places_that_opencv_rounds_to() -> None:
    # What MindSpore 2.10 takes: 1 / (target / source) is not source / target.
    for source, target, place, wanted in ((10, 148, 74, 4), (22, 36, 18, 10), (22, 50, 25, 10), (28, 50, 25, 13)):
        rows = np.repeat(np.arange(source, dtype=np.uint8)[:, None, None] * 8, 3, axis=2).repeat(2, axis=1)
        assert vision.Resize((target, 2), Inter.NEAREST)(rows)[place, 0, 0] == 8 * wanted
        assert vision.Resize((target, 2), Inter.NEAREST)(rows.astype(np.float64))[place, 0, 0] == 8 * wanted
    for source, target, least, most in ((22, 100, 0, 1), (102, 118, 0, 1.84314), (142, 154, 0, 1.91549)):
        lines = np.repeat(np.arange(source, dtype=np.float32)[:, None, None], 3, axis=2)
        steps = np.diff(vision.Resize((target, 1), Inter.AREA)(lines)[:, 0, 0])
        np.testing.assert_allclose((steps.min(), steps.max()), (least, most), 1e-4, 1e-4)


def test_means_of_greys_are_rounded_to_even() -> None:
    for values, mean in (((0, 1), 0), ((1, 2), 2), ((2, 3), 2), ((3, 4), 4), ((0, 1, 1), 1), ((255, 255, 254), 255)):
        image = np.repeat(np.array(values, np.uint8)[None, :, None], 3, 2)
        assert set(vision.AdjustContrast(0.0)(image).flat) == {mean}
        assert set(vision.RandomColorAdjust((1, 1), (0, 0), (1, 1), (0, 0))(image).flat) == {mean}


@pytest.mark.parametrize("on", [True, False])
def test_equalised_values_are_products_of_float32_rounded_to_even(monkeypatch, on) -> None:
    if not on:
        monkeypatch.setattr("mycel.dataset.vision.base.are_on", lambda: False)
    for count in (7, 13, 19, 37, 51):
        image = np.arange(count, dtype=np.uint8)[:, None].repeat(2, 1)
        steps = (2 * np.arange(count)).astype(np.float32) * np.float32(255 / (2 * (count - 1)))
        assert vision.Equalize()(image)[:, 0].tolist() == np.rint(steps).astype(int).tolist()


def test_blurs_have_one_deviation_unless_two_are_given() -> None:
    point = np.zeros((7, 7))
    point[3, 3] = 1
    for sizes, sigma, wanted in (
        ((1, 3), None, (0.5, 0.5)),
        ((5, 3), None, (1.1, 1.1)),
        ((5, 3), 0, (1.1, 1.1)),
        ((5, 3), (0, 0), (1.1, 0.8)),
        ((5, 3), (1.5, 0), (1.5, 0.8)),
        ((3, 5), 2, (2, 2)),
    ):
        lines = []
        for size, deviation in zip(sizes, wanted):
            weights = np.exp(-((np.arange(7) - 3) ** 2) / (2 * deviation**2)) * (abs(np.arange(7) - 3) <= size // 2)
            lines.append(weights / weights.sum())
        np.testing.assert_allclose(vision.GaussianBlur(sizes, sigma)(point), np.outer(lines[1], lines[0]), atol=1e-12)


def test_gammas_of_floats_are_float32() -> None:
    for dtype in (np.float16, np.float32, np.float64):
        found = vision.AdjustGamma(0.5, 3)(np.array([[0.5, 0.25, 0.1]], dtype))
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [[1, 0.75**0.5, 0.3**0.5]], rtol=1e-3)


def test_one_patch_is_an_array() -> None:
    image = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    assert vision.SlicePatches(1, 1)(image).tolist() == image.tolist()
    assert len(vision.SlicePatches(1, 2)(image)) == 2
    data = ds.NumpySlicesDataset([image], ["x"], shuffle=False).map(vision.SlicePatches(), "x")
    assert next(iter(data))[0].asnumpy().tolist() == image.tolist()


def test_what_no_byte_holds_is_refused_as_an_input() -> None:
    with pytest.raises(RuntimeError, match="out of bounds|cannot|unsupported|too large"):
        vision.Invert()(np.zeros((2, 2, 3), np.int8))
