"""Image files in every format that can be written here, decoded as a dataset decodes them."""

from __future__ import annotations

import functools
import io
import random as random_module
import struct
import zlib

import numpy as np

from mycel.dataset import vision
from mycel.dataset.vision.codecs.image_io import decode_image
from mycel.dataset.vision.enums import ImageReadMode
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 60
_FORMS = (
    ("JPEG", "RGB", {}),
    ("JPEG", "L", {"progressive": True}),
    ("JPEG", "CMYK", {}),
    ("PNG", "RGB", {}),
    ("PNG", "RGBA", {}),
    ("PNG", "P", {}),
    ("PNG", "1", {}),
    ("PNG", "I;16", {}),
    ("GIF", "P", {}),
    ("BMP", "RGB", {}),
    ("BMP", "L", {}),
    ("PPM", "RGB", {}),
    ("TIFF", "RGB", {}),
    ("TIFF", "RGB", {"compression": "tiff_lzw"}),
    ("TIFF", "RGB", {"compression": "tiff_deflate"}),
    ("TIFF", "F", {}),
    ("WEBP", "RGB", {}),
    ("WEBP", "RGBA", {"lossless": True}),
    ("ICO", "RGBA", {}),
    ("ICNS", "RGBA", {}),
    ("TGA", "RGB", {"compression": "tga_rle"}),
    ("PCX", "RGB", {}),
    ("SGI", "RGB", {}),
    ("JPEG2000", "RGB", {}),
    ("DDS", "RGB", {}),
    ("DIB", "RGB", {}),
    ("EPS", "RGB", {}),
    ("IM", "RGB", {}),
    ("MSP", "1", {}),
    ("XBM", "1", {}),
    ("SPIDER", "F", {}),
    ("BLP", "P", {}),
    ("QOI", "RGB", {}),
    ("AVIF", "RGB", {}),
    ("MPO", "RGB", {}),
    ("PDF", "RGB", {}),
)


@functools.cache
def sound() -> tuple[bytes, ...]:
    from PIL import Image

    pixels = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    picture = Image.fromarray(pixels)
    found = []
    for form, mode, options in _FORMS:
        target = io.BytesIO()
        try:
            picture.convert("L").convert(mode).save(target, form, **options) if mode in (
                "F",
                "I;16",
            ) else picture.convert(mode).save(target, form, **options)
        except (KeyError, OSError, ValueError, SystemError):
            # A format that this installation cannot write.
            continue
        found.append(target.getvalue())
    frames = io.BytesIO()
    picture.save(frames, "GIF", save_all=True, append_images=[picture.rotate(90)])
    return (*found, frames.getvalue())


def png(width: int, height: int, bits: int, kind: int, lines: bytes) -> bytes:
    """A PNG file with these numbers in its header, and checksums that fit."""
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def case(random: random_module.Random) -> bytes:
    if random.random() < 0.1:
        sizes = (0, 1, 5, 100, 20000, 65535, 2**31 - 1, 2**32 - 1)
        return png(
            random.choice(sizes),
            random.choice(sizes),
            random.choice((1, 2, 4, 8, 16, 3)),
            random.choice((0, 2, 3, 4, 6)),
            random.randbytes(random.choice((0, 10, 1000))),
        )
    return damage(random, random.choice(sound()))


def setup() -> None:
    read = 0
    for content in sound():
        try:
            decode_image(content)
            read += 1
        except ValueError:
            # One of the formats that are not read at all.
            pass
    assert read > 15


def run(case: bytes) -> None:
    for mode in ImageReadMode:
        decode_image(case, "Decode", mode)
    pixels = vision.Decode()(np.frombuffer(bytearray(case), np.uint8))
    assert pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.shape[2] == 3


def describe(case: bytes) -> str:
    return repr(case)


def judge(error: BaseException, case: bytes) -> str:
    return clear(error, ("Decode",))
