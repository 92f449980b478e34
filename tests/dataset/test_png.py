"""PNG files that are decoded without Pillow have Pillow's pixels, and all others are left to it."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from mycel.dataset.vision import Decode
from mycel.dataset.vision.codecs import png
from mycel.dataset.vision.codecs.image_io import decode_image

PIL = pytest.importorskip("PIL.Image")


def _file(lines: list[bytes], width: int, colour: int, depth: int = 8, interlaced: int = 0, more: Any = ()) -> bytes:
    """A file of lines that begin with the number of their filter."""
    head = struct.pack(">IIBBBBB", width, len(lines), depth, colour, 0, 0, interlaced)
    data = zlib.compress(b"".join(lines))
    chunks = [(b"IHDR", head), *more, (b"IDAT", data[:7]), (b"IDAT", data[7:]), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _by_pillow(content: bytes) -> Any:
    return np.array(PIL.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("colour, channels", [(0, 1), (2, 3), (6, 4)])
def test_every_filter_gives_pillows_pixels(colour: int, channels: int) -> None:
    random = np.random.default_rng(colour)
    for number in range(60):
        height, width = random.integers(1, 9), int(random.integers(1, 12))
        kinds = random.integers(0, 5, height) if number > 4 else np.full(height, number)
        noise = random.integers(0, 256 if number % 2 else 3, (height, width * channels), dtype=np.uint8)
        content = _file([bytes([kind]) + line.tobytes() for kind, line in zip(kinds.tolist(), noise)], width, colour)
        found = png.decoded(content)
        assert found is not None and found.dtype == np.uint8
        assert np.array_equal(found, _by_pillow(content))
        assert np.array_equal(Decode()(np.frombuffer(content, np.uint8)), found)


def test_what_pillow_writes_is_decoded() -> None:
    random = np.random.default_rng(0)
    smooth = np.add.outer(np.arange(40), np.arange(50))[..., None] * np.array([1, 2, 3])
    for pixels in (
        random.integers(0, 256, (30, 41, 3)),
        smooth,
        smooth[..., 0],
        np.concatenate([smooth, smooth], 2)[..., :4],
    ):
        for options in ({}, {"optimize": True}, {"compress_level": 0}):
            file = io.BytesIO()
            PIL.fromarray(pixels.astype(np.uint8)).save(file, "PNG", dpi=(72, 72), **options)
            found = png.decoded(file.getvalue())
            assert found is not None and np.array_equal(found, _by_pillow(file.getvalue()))


def test_other_files_are_left_to_pillow() -> None:
    line = bytes(range(1, 8))
    whole = _file([b"\0" + line[:6], b"\2" + line[:6]], 2, 2)
    assert png.decoded(whole) is not None
    others = [
        whole[:-12],
        whole[:40],
        whole[:50] + b"x" + whole[51:],
        b"GIF" + whole,
        _file([b"\5" + line[:6]], 2, 2),
        _file([b"\0" + line[:5]], 2, 2),
        _file([b"\0" + line[:6]], 2, 2, more=[(b"tRNS", bytes(6))]),
        _file([b"\0" + line[:2]], 2, 3, more=[(b"PLTE", bytes(24))]),
        _file([b"\0" + line[:2]], 1, 0, depth=16),
        _file([b"\0" + line[:6]], 2, 2, interlaced=1),
        _file([b"\0" + line[:6]], 0, 2),
        _file([b"\0" + line[:6]], 2**31 - 1, 2),
        b"",
    ]
    for content in others:
        assert png.decoded(content) is None
        try:
            wanted = _by_pillow(content)
        except Exception:
            with pytest.raises(ValueError):
                decode_image(content)
        else:
            assert np.array_equal(decode_image(content), wanted)


def test_damaged_files_are_pillows() -> None:
    random = np.random.default_rng(1)
    file = io.BytesIO()
    PIL.fromarray(random.integers(0, 256, (9, 7, 3), dtype=np.uint8)).save(file, "PNG")
    for _ in range(200):
        content = bytearray(file.getvalue())
        content[random.integers(len(content))] ^= 1 << random.integers(8)
        found = png.decoded(bytes(content))
        assert found is None or np.array_equal(found, _by_pillow(bytes(content)))
