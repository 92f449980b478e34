"""JPEG files, decoded in parts, have the pixels that Pillow gives."""

import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageFile

from mycel._src.engines.routines import are_on
from mycel.dataset import vision
from mycel.dataset.vision.codecs import jpeg
from mycel.dataset.vision.codecs.image_io import decode_image

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
    assert jpeg.opened(encoded(pixels[..., 0]), greys=False) is None
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


@needs_decoder
def test_greys_are_decoded_as_colours():
    rng = np.random.default_rng(6)
    for shape in ((1, 1), (9, 40), (64, 33)):
        content = encoded(rng.integers(0, 256, shape, dtype=np.uint8))
        whole = by_pillow(content)
        np.testing.assert_array_equal(jpeg.decoded(content), whole)
        np.testing.assert_array_equal(vision.Decode()(np.frombuffer(content, np.uint8)), whole)
        assert decode_image(content, mode=vision.ImageReadMode.UNCHANGED).shape == (*shape, 1)
        found, first, begin = jpeg.opened(content).pixels(0, 0, 1, 1)
        np.testing.assert_array_equal(found[-first, -begin], whole[0, 0])


def without_tables(content):
    """Return a file without its tables of codes and weights."""
    kept, place = content[:2], 2
    while content[place + 1] != 0xDA:
        size = 2 + int.from_bytes(content[place + 2 : place + 4], "big")
        if content[place + 1] not in (0xC4, 0xDB):
            kept += content[place : place + size]
        place += size
    return kept + content[place:]


@needs_decoder
def test_files_know_nothing_of_those_before():
    rng = np.random.default_rng(7)
    files = []
    for number in range(60):
        shape = (*rng.integers(1, 60, 2), 3)[: 3 - number % 2]
        image = rng.integers(0, 256, shape, dtype=np.uint8)
        files.append(encoded(image, quality=int(rng.integers(5, 100)), progressive=number % 3 == 0, optimize=True))
    for content in files:
        np.testing.assert_array_equal(jpeg.decoded(content), by_pillow(content))
        assert jpeg.decoded(without_tables(content)) is None
        assert jpeg.decoded(content[:-30] + content[-2:]) is None or len(content) < 700
    with ThreadPoolExecutor(6) as pool:
        for content, pixels in zip(files * 5, pool.map(jpeg.decoded, files * 5)):
            np.testing.assert_array_equal(pixels, by_pillow(content))


needs_encoder = pytest.mark.skipif(
    jpeg.encoder() is None or not are_on(), reason="Pillow has brought no libjpeg-turbo of version 6.2"
)


@needs_encoder
def test_files_are_those_of_pillow():
    rng = np.random.default_rng(3)
    for number in range(300):
        shape = tuple(int(n) for n in rng.integers(1, 71, 2)) + ((), (1,), (3,))[number % 3]
        pixels = rng.integers(0, (2, 32, 256)[number // 3 % 3], (2 * shape[0], *shape[1:]), dtype=np.uint8)
        # Noise of the best quality takes more bytes than pixels.
        quality = 100 if number < 30 else int(rng.integers(1, 101))
        for image in (pixels[: shape[0]], pixels[::2], pixels[shape[0] - 1 :: -1]):
            content = vision.encode_jpeg(image, quality)
            plain = image[..., 0] if shape[2:] == (1,) else image
            assert content.dtype == np.uint8 and content.flags.writeable and content.flags.owndata
            assert content.tobytes() == encoded(np.ascontiguousarray(plain), quality=quality), (shape, quality)


@needs_encoder
def test_threads_encode_at_once():
    rng = np.random.default_rng(4)
    images = [rng.integers(0, 256, (40 + n, 50 - n, 3), dtype=np.uint8) for n in range(24)]
    with ThreadPoolExecutor(6) as pool:
        files = list(pool.map(vision.encode_jpeg, images * 8))
    assert [file.tobytes() for file in files] == [encoded(image, quality=75) for image in images] * 8


@needs_encoder
def test_errors_of_the_library_leave_it_usable():
    image = np.random.default_rng(5).integers(0, 256, (9, 11, 3), dtype=np.uint8)
    for shape in ((65501, 1), (1, 65501, 3)):
        with pytest.raises(ValueError, match=r"^Maximum supported image dimension is 65500 pixels$"):
            jpeg.encoded(np.zeros(shape, np.uint8), 75)
        with pytest.raises(ValueError, match="encode_jpeg: the image must have at most 65500 rows and columns, not"):
            vision.encode_jpeg(np.zeros(shape, np.uint8))
        assert vision.encode_jpeg(image).tobytes() == encoded(image, quality=75)
    assert len(vision.encode_jpeg(np.zeros((65500, 1), np.uint8))) > 600


@pytest.mark.parametrize("encode", [vision.encode_jpeg, vision.encode_png])
def test_images_without_pixels_are_refused(encode):
    for shape in ((0, 4), (4, 0, 3)):
        with pytest.raises(ValueError, match=rf"{encode.__name__}: the image must have pixels, not shape"):
            encode(np.zeros(shape, np.uint8))
