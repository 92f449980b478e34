"""Transforms of images, against formulas in float64, Pillow, and values that OpenCV 4.11 gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mycel.dataset as ds
from mycel.dataset import vision
from mycel.dataset.vision import Border, Inter

IMAGE = (np.arange(30).reshape(5, 6) * 37 % 256).astype(np.uint8)
COLOURS = np.random.default_rng(0).integers(0, 256, (7, 9, 3)).astype(np.uint8)

# cv2.resize of IMAGE with INTER_NEAREST, INTER_LINEAR, INTER_CUBIC and INTER_AREA.
OPENCV: dict[tuple[Inter, tuple[int, int]], list[list[int]]] = {
    (Inter.NEAREST, (3, 4)): [[0, 37, 111, 148], [222, 3, 77, 114], [154, 191, 9, 46]],
    (Inter.BILINEAR, (3, 4)): [[62, 53, 109, 164], [197, 61, 52, 108], [140, 196, 123, 51]],
    (Inter.BILINEAR, (7, 8)): [
        [0, 23, 51, 78, 106, 134, 162, 185],
        [127, 58, 31, 59, 87, 115, 142, 166],
        [212, 121, 53, 35, 62, 90, 118, 141],
        [188, 211, 143, 11, 38, 66, 94, 117],
        [164, 187, 187, 146, 37, 42, 70, 93],
        [139, 162, 190, 200, 118, 59, 45, 68],
        [120, 143, 171, 198, 226, 94, 26, 49],
    ],
    (Inter.BICUBIC, (3, 4)): [[57, 48, 113, 169], [204, 53, 54, 110], [135, 213, 120, 45]],
    (Inter.AREA, (3, 4)): [[67, 48, 110, 159], [183, 96, 55, 105], [146, 195, 103, 50]],
    (Inter.AREA, (7, 8)): [
        [0, 25, 49, 74, 111, 136, 160, 185],
        [133, 55, 29, 54, 90, 115, 140, 164],
        [215, 103, 43, 33, 70, 95, 119, 144],
        [188, 213, 152, 6, 43, 68, 92, 117],
        [161, 185, 193, 183, 16, 40, 65, 90],
        [140, 165, 190, 214, 98, 54, 45, 69],
        [120, 145, 169, 194, 231, 85, 24, 49],
    ],
}


@pytest.mark.parametrize("kind, size", list(OPENCV))
def test_resize_gives_the_values_of_opencv(kind: Inter, size: tuple[int, int]) -> None:
    assert vision.Resize(size, kind)(IMAGE).tolist() == OPENCV[kind, size]


def bilinear(image: np.ndarray[Any, Any], size: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Half-pixel bilinear interpolation in float64, pixel by pixel."""
    out = np.empty((*size, *image.shape[2:]))
    for i in range(size[0]):
        for j in range(size[1]):
            y = min(max((i + 0.5) * image.shape[0] / size[0] - 0.5, 0), image.shape[0] - 1)
            x = min(max((j + 0.5) * image.shape[1] / size[1] - 0.5, 0), image.shape[1] - 1)
            top, left = int(y), int(x)
            low, right = min(top + 1, image.shape[0] - 1), min(left + 1, image.shape[1] - 1)
            upper = image[top, left] * (1 - (x - left)) + image[top, right] * (x - left)
            lower = image[low, left] * (1 - (x - left)) + image[low, right] * (x - left)
            out[i, j] = upper * (1 - (y - top)) + lower * (y - top)
    return out


@pytest.mark.parametrize("size", [(3, 4), (14, 11), (7, 5), (1, 1), (7, 20)])
def test_bilinear_resize_against_the_formula(size: tuple[int, int]) -> None:
    expected = bilinear(COLOURS.astype(np.float64), size)
    np.testing.assert_allclose(vision.Resize(size)(COLOURS.astype(np.float32)), expected, rtol=0, atol=1e-3)
    assert np.abs(vision.Resize(size)(COLOURS) - expected).max() < 1.0


@pytest.mark.parametrize("kind, name", [(Inter.ANTIALIAS, "LANCZOS"), (Inter.PILCUBIC, "BICUBIC")])
@pytest.mark.parametrize("size", [(7, 4), (7, 21), (3, 9), (20, 9)])
def test_filtered_resize_against_pillow(kind: Inter, name: str, size: tuple[int, int]) -> None:
    image_module = pytest.importorskip("PIL.Image")
    picture = image_module.fromarray(COLOURS).resize(size[::-1], getattr(image_module, name))
    assert (vision.Resize(size, kind)(COLOURS) == np.asarray(picture)).all()


def test_resize_by_the_shorter_edge_and_its_errors() -> None:
    shapes = [(vision.Resize(n)(np.zeros(s, np.uint8)).shape) for n, s in ((14, (7, 9, 3)), (7, (10, 16)), (4, (9, 6)))]
    assert shapes == [(14, 18, 3), (7, 11), (6, 4)]
    assert vision.Resize((2, 3))(np.zeros((5, 4, 4, 3), np.uint8)).shape == (5, 2, 3, 3)
    with pytest.raises(ValueError, match=r"the image must be \[H, W\] or \[H, W, C\], not of shape \(3,\)"):
        vision.Resize(3)(np.zeros(3))
    with pytest.raises(TypeError, match="size must be an integer or a pair"):
        vision.Resize((1, 2, 3))
    with pytest.raises(TypeError, match="floats, not int64; use TypeCast first"):
        vision.Resize(3)(np.zeros((4, 4), np.int64))


def test_values() -> None:
    image = COLOURS.astype(np.float64)
    np.testing.assert_allclose(vision.Rescale(1 / 255, 0.1)(COLOURS), image / 255 + 0.1, rtol=3e-7)
    mean, std = [120.5, 100.0, 3.0], [50.0, 60.0, 70.0]
    expected = (image - mean) / std
    np.testing.assert_allclose(vision.Normalize(mean, std)(COLOURS), expected, rtol=3e-7, atol=1e-7)
    first = vision.Normalize(mean, std, is_hwc=False)(COLOURS.transpose(2, 0, 1))
    np.testing.assert_allclose(first, expected.transpose(2, 0, 1), rtol=3e-7, atol=1e-7)
    np.testing.assert_allclose(vision.ToTensor()(COLOURS), image.transpose(2, 0, 1) / 255, rtol=1e-7)
    assert vision.ToTensor(np.float16)(IMAGE).dtype == np.float16 and vision.ToTensor()(IMAGE).shape == (1, 5, 6)
    assert (vision.ToType(np.float16)(COLOURS) == COLOURS.astype(np.float16)).all()
    assert (vision.Invert()(COLOURS) == 255 - image).all()
    assert (vision.Solarize((50, 100))(IMAGE) == np.where((IMAGE >= 50) & (IMAGE <= 100), 255 - IMAGE, IMAGE)).all()
    assert (vision.Posterize(3)(IMAGE) == IMAGE // 32 * 32).all()
    with pytest.raises(ValueError, match="2 means for an image of 3 channels"):
        vision.Normalize([1.0, 1.0], [2.0, 2.0])(COLOURS)
    with pytest.raises(ValueError, match="standard deviations must be within"):
        vision.Normalize([1.0], [0.0])
    with pytest.raises(TypeError, match="Posterize: the image must be uint8, not float32"):
        vision.Posterize(2)(COLOURS.astype(np.float32))


def test_adjustments_against_their_definition() -> None:
    image = COLOURS.astype(np.float64)
    greys = image @ [0.299, 0.587, 0.114]
    assert np.abs(vision.Grayscale()(COLOURS) - greys).max() <= 0.51
    assert vision.Grayscale(3)(COLOURS).shape == COLOURS.shape
    for factor in (0.0, 0.4, 1.0, 1.7):
        for transform, other in (
            (vision.AdjustBrightness, np.zeros(1)),
            (vision.AdjustContrast, greys.mean()),
            (vision.AdjustSaturation, greys[..., None]),
        ):
            expected = np.clip(other + (image - other) * factor, 0, 255)
            assert np.abs(transform(factor)(COLOURS) - expected).max() < 1.6


def test_flips_and_axes() -> None:
    assert (vision.HorizontalFlip()(COLOURS) == COLOURS[:, ::-1]).all()
    assert (vision.VerticalFlip()(COLOURS) == COLOURS[::-1]).all()
    assert (vision.RandomHorizontalFlip(1.0)(COLOURS) == COLOURS[:, ::-1]).all()
    assert (vision.RandomVerticalFlip(0.0)(COLOURS) == COLOURS).all()
    moved = vision.HWC2CHW()(COLOURS)
    assert (moved == COLOURS.transpose(2, 0, 1)).all() and moved.flags.c_contiguous
    assert (vision.HWC2CHW()(IMAGE) == IMAGE).all()
    with pytest.raises(ValueError, match=r"not of shape \(2, 3, 4, 5\)"):
        vision.HWC2CHW()(np.zeros((2, 3, 4, 5)))
    with pytest.raises(ValueError, match="prob must be within"):
        vision.RandomHorizontalFlip(2)


@pytest.mark.parametrize(
    "mode, name", [(Border.EDGE, "edge"), (Border.REFLECT, "reflect"), (Border.SYMMETRIC, "symmetric")]
)
def test_padding_against_numpy(mode: Border, name: Any) -> None:
    assert (vision.Pad((1, 0, 2, 3), 7, mode)(IMAGE) == np.pad(IMAGE, ((0, 3), (1, 2)), mode=name)).all()
    assert (vision.Pad((1, 2), 0, mode)(COLOURS) == np.pad(COLOURS, ((2, 2), (1, 1), (0, 0)), mode=name)).all()


def test_padding_with_constants() -> None:
    assert (vision.Pad(2, 7)(IMAGE) == np.pad(IMAGE, 2, constant_values=7)).all()
    padded = vision.Pad(1, (1, 2, 3))(COLOURS)
    assert padded[0, 0].tolist() == [1, 2, 3] and (padded[1:-1, 1:-1] == COLOURS).all()
    sized = vision.PadToSize((6, 9))(np.ones((5, 6), np.uint8))
    assert np.argwhere(sized)[0].tolist() == [0, 1] and sized.sum() == 30
    with pytest.raises(ValueError, match="does not fit into"):
        vision.PadToSize((4, 9))(np.ones((5, 6), np.uint8))
    with pytest.raises(ValueError, match="padding must be at least 0"):
        vision.Pad(-1)


def test_crops() -> None:
    grid = np.arange(56).reshape(7, 8)
    assert [int(vision.CenterCrop(s)(grid)[0, 0]) for s in (1, 2, 3, 4, 5, 6, 7)] == [27, 19, 18, 10, 9, 1, 0]
    wide = vision.CenterCrop((10, 11))(np.ones((7, 8), np.uint8))
    assert np.argwhere(wide)[0].tolist() == [2, 2] and wide.sum() == 56
    assert (vision.Crop((1, 2), (3, 4))(grid) == grid[1:4, 2:6]).all()
    assert (vision.ResizedCrop(1, 1, 4, 4, (2, 2))(COLOURS) == vision.Resize((2, 2))(COLOURS[1:5, 1:5])).all()
    assert (vision.Erase(1, 2, 3, 4, 7)(COLOURS)[1:4, 2:6] == 7).all()
    with pytest.raises(ValueError, match=r"the rectangle 3x3 at \(5, 2\) is not inside the image of 7x8"):
        vision.Crop((5, 2), 3)(grid)


def test_random_crops() -> None:
    ds.config.set_seed(2)
    grid = np.arange(56, dtype=np.uint8).reshape(7, 8)
    corners = set()
    for _ in range(200):
        part = vision.RandomCrop((6, 5))(grid)
        corner = int(part[0, 0])
        corners.add(corner)
        assert (part == grid[corner // 8 : corner // 8 + 6, corner % 8 : corner % 8 + 5]).all()
    assert corners == {0, 1, 2, 3, 8, 9, 10, 11}
    assert vision.RandomCrop(12, pad_if_needed=True)(COLOURS).shape == (12, 12, 3)
    assert vision.RandomCrop((9, 9), padding=1)(COLOURS).shape == (9, 9, 3)
    with pytest.raises(ValueError, match="image of 7x8 is smaller than size"):
        vision.RandomCrop(12)(grid)
    for _ in range(20):
        part = vision.RandomResizedCrop((4, 5))(COLOURS)
        assert part.shape == (4, 5, 3) and part.min() >= COLOURS.min() and part.max() <= COLOURS.max()
    erased = vision.RandomErasing(1.0, value=0)(np.ones((3, 20, 20), np.float32))
    assert 0.02 * 400 * 0.7 < (erased[0] == 0).sum() < 0.33 * 400 * 1.3
    assert (vision.CutOut(3)(np.ones((20, 20, 1))) == 0).sum() in (4, 6, 9)


@pytest.mark.parametrize(
    "transform",
    [
        vision.Resize((5, 4)),
        vision.Resize(4, Inter.BICUBIC),
        vision.Resize((5, 4), Inter.AREA),
        vision.Resize((5, 4), Inter.ANTIALIAS),
        vision.Resize((5, 4), Inter.NEAREST),
        vision.Rescale(0.1, 0.2),
        vision.Normalize([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
        vision.HWC2CHW(),
        vision.ToTensor(),
        vision.ToType(np.float16),
        vision.HorizontalFlip(),
        vision.VerticalFlip(),
        vision.RandomVerticalFlip(),
        vision.RandomCrop(4),
        vision.CenterCrop((10, 4)),
        vision.Crop((1, 2), 3),
        vision.Pad(2, 1, Border.REFLECT),
        vision.PadToSize(12),
        vision.Invert(),
        vision.Grayscale(),
        vision.AdjustBrightness(1.3),
        vision.AdjustSaturation(1.3),
        vision.AdjustContrast(1.3),
        vision.Solarize(100),
        vision.Posterize(2),
    ],
    ids=lambda transform: type(transform).__name__,
)
def test_a_block_is_its_rows(transform: Any) -> None:
    ds.config.set_seed(1)
    images = np.random.default_rng(1).integers(0, 256, (6, 7, 9, 3)).astype(np.uint8)
    data = ds.NumpySlicesDataset({"image": images}, shuffle=False)

    def run(size: int) -> list[Any]:
        batches = data.map(transform, "image").batch(size).create_tuple_iterator(num_epochs=1, output_numpy=True)
        found: list[Any] = np.concatenate([image for (image,) in batches]).tolist()
        return found

    assert run(6) == run(1) == run(4)
    if not transform.random:
        assert run(6) == [transform(image).tolist() for image in images]


def test_image_files(tmp_path: Any) -> None:
    pytest.importorskip("PIL.Image")
    path = str(tmp_path / "a.png")
    vision.write_png(path, COLOURS)
    assert (vision.read_image(path) == COLOURS).all()
    assert vision.read_image(path, vision.ImageReadMode.GRAYSCALE).shape == (7, 9, 1)
    content = vision.read_file(path)
    assert (vision.Decode()(content) == COLOURS).all() and (vision.Decode()(content.tobytes()) == COLOURS).all()
    assert np.abs(vision.Decode()(vision.encode_jpeg(np.full((8, 8, 3), 90, np.uint8))).astype(int) - 90).max() <= 2
    assert (vision.ToNumpy()(vision.Decode(to_pil=True)(content)) == COLOURS).all()
    assert (vision.get_image_size(COLOURS), vision.get_image_num_channels(COLOURS)) == ([7, 9], 3)
    with pytest.raises(ValueError, match="the 30 bytes are not an image"):
        vision.Decode()(np.zeros(30, np.uint8))
    with pytest.raises(TypeError, match="must be the bytes of a file"):
        vision.Decode()(COLOURS)


def test_decoding_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "PIL", None)
    with pytest.raises(ImportError, match="Decode: .* needs Pillow; pip install"):
        vision.Decode()(np.zeros(30, np.uint8))
