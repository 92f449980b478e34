"""JPEG files, decoded in parts, have the pixels that Pillow gives."""

import io

import numpy as np
import pytest
from PIL import Image, ImageFile

from mycel.dataset import vision
from mycel.dataset.vision import jpeg
from mycel.dataset.vision.files import decode_image
from mycel.engines.routines import are_on

needs_decoder = pytest.mark.skipif(
    jpeg.decoder() is None or not are_on(), reason="Pillow has brought no libjpeg-turbo of version 6.2"
)


def encoded(array, **options):
    before, ImageFile.MAXBLOCK = ImageFile.MAXBLOCK, 1 << 20
    try:
        buffer = io.BytesIO()
        Image.fromarray(array).save(buffer, "JPEG", **options)
        return buffer.getvalue()
    finally:
        ImageFile.MAXBLOCK = before


def by_pillow(content):
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@needs_decoder
@pytest.mark.parametrize("subsampling", [0, 1, 2])
@pytest.mark.parametrize("progressive", [False, True])
def test_parts_are_those_of_the_whole(subsampling, progressive):
    rng = np.random.default_rng(subsampling)
    for size in ((1, 1), (7, 9), (33, 17), (64, 130), (121, 75)):
        pixels = rng.integers(0, 256, (*size, 3), dtype=np.uint8)
        content = encoded(pixels, subsampling=subsampling, progressive=progressive, quality=int(rng.integers(20, 96)))
        whole = by_pillow(content)
        np.testing.assert_array_equal(jpeg.decoded(content), whole)
        for _ in range(12):
            top, left = (int(rng.integers(0, n)) for n in size)
            height, width = (int(rng.integers(1, n - at + 1)) for n, at in zip(size, (top, left)))
            found, first, begin = jpeg.opened(content).pixels(top, left, height, width)
            part = found[top - first : top - first + height, left - begin : left - begin + width]
            np.testing.assert_array_equal(part, whole[top : top + height, left : left + width])


@needs_decoder
def test_files_that_pillow_is_asked_for():
    pixels = np.random.default_rng(1).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    content = encoded(pixels)
    assert jpeg.size_of(content) == (40, 50)
    assert jpeg.opened(encoded(pixels[..., 0])) is None
    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 4, 4), np.uint8), "CMYK").save(buffer, "JPEG")
    assert jpeg.opened(buffer.getvalue()) is None
    for cut in (0, 2, 3, 10, 200, len(content) - 1):
        assert jpeg.opened(content[:cut]) is None
    # A header and an end without an image, and numbers of the header that are not the image's.
    assert jpeg.decoded(content[:180] + content[-2:]) is None
    assert jpeg.decoded(content[:700] + content[-2:]) is None
    for function in (decode_image, vision.Decode()):
        np.testing.assert_array_equal(function(content), by_pillow(content))
        np.testing.assert_array_equal(function(encoded(pixels[..., 0])), by_pillow(encoded(pixels[..., 0])))


@needs_decoder
def test_damaged_files_are_pixels_or_left_to_pillow():
    rng = np.random.default_rng(2)
    content = encoded(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8), progressive=True)
    for _ in range(300):
        damaged = bytearray(content)
        for place in rng.integers(3, len(content) - 2, rng.integers(1, 6)):
            damaged[place] = rng.integers(0, 256)
        file = jpeg.opened(bytes(damaged))
        if file is None or max(file.shape) > 5000:
            continue
        found = file.pixels(0, 0, *file.shape[:2])
        if found is not None:
            try:
                whole = by_pillow(bytes(damaged))
            except Exception:
                continue
            np.testing.assert_array_equal(found[0], whole)
