"""JPEG files, decoded and encoded by the libjpeg-turbo that Pillow uses.

Files are decoded as far as they are needed. Pillow decodes whole images and copies them twice; here
the size comes from the file's header, and pixels are computed when it is known which: `Encoded`
stands for them until then. What is decoded is what Pillow gives, bit for bit. Only whole files of
greys or three colours of 8 bits are decoded so; for all others, and where the library or its layout
is another one, Pillow is asked. Files that are written are those of Pillow, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.engines.routines.libjpeg_calls import Calls
from mycel._src.engines.routines.libjpeg_decoder import Decoder
from mycel._src.engines.routines.libjpeg_encoder import Encoder
from mycel._src.foundation.files import decompression as inflate
from mycel._src.foundation.system import locks
from mycel.dataset.rows.column_blocks import Array

T = TypeVar("T")

_decoders: list[Decoder | None] = []
_encoders: list[Encoder | None] = []
_finding = locks.lock()
# Markers of frames: sequential ones and progressive ones of Huffman codes.
_FRAMES = (0xC0, 0xC1, 0xC2)
_ALONE = (0x01, *range(0xD0, 0xD9))


def decoder() -> Decoder | None:
    """Return the decoder of Pillow's libjpeg-turbo, or None where Pillow uses another."""
    return _decoders[0] if _decoders else _found(_decoders, Decoder)


def encoder() -> Encoder | None:
    """Return the encoder of Pillow's libjpeg-turbo, or None where Pillow uses another."""
    return _encoders[0] if _encoders else _found(_encoders, Encoder)


def _found(known: list[T | None], kind: Callable[[str], T]) -> T | None:
    with _finding:
        if not known:
            path = _path()
            try:
                known.append(None if path is None else kind(path))
            except (OSError, AttributeError):
                # Another library, which Pillow alone knows how to call.
                known.append(None)
    return known[0]


def _path() -> str | None:
    if not Calls.fit():
        return None
    try:
        from PIL import _imaging, features
    except ImportError:
        return None
    if not features.check_feature("libjpeg_turbo") or features.version("jpg") != "6.2":
        return None
    # Functions are looked up in what this module was linked with, too.
    return getattr(_imaging, "__file__", None)


def size_of(content: bytes, greys: bool = True) -> tuple[int, int] | None:
    """Return the height and width that the header of a whole JPEG file says.

    Returns None for other files, and for those that are not three colours of 8 bits, or greys where
    `greys` is true.
    """
    if content[:3] != b"\xff\xd8\xff" or content[-2:] != b"\xff\xd9":
        return None
    place = 2
    while place + 9 < len(content):
        if content[place] != 0xFF:
            return None
        marker = content[place + 1]
        if marker == 0xFF or marker in _ALONE:
            place += 1 if marker == 0xFF else 2
            continue
        if marker in _FRAMES:
            height, width = (int.from_bytes(content[place + n : place + n + 2], "big") for n in (5, 7))
            fits = content[place + 4] == 8 and content[place + 9] in ((1, 3) if greys else (3,)) and height and width
            return (height, width) if fits else None
        if marker in (0xD9, 0xDA) or 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xCC):
            return None
        place += 2 + int.from_bytes(content[place + 2 : place + 4], "big")
    return None


class Encoded:
    """The pixels of a JPEG file that are not decoded yet: `shape` is theirs, [H, W, 3]."""

    def __init__(self, decoder: Decoder, content: bytes, size: tuple[int, int]) -> None:
        self._decoder, self._content = decoder, np.frombuffer(content, np.uint8)
        self.shape = (*size, 3)

    def pixels(self, top: int, left: int, height: int, width: int) -> tuple[Array, int, int] | None:
        """Return pixels that have a part among them, and the row and column of the first one.

        The part has `height` rows from `top` on and `width` columns from `left` on. Returns None
        for a file that Pillow has to be asked for.
        """
        found = self._decoder.decode(self._content, self.shape[:2], top, left, height, width)
        return None if found is None else (found.pixels, found.top, found.left)


def opened(content: bytes, greys: bool = True) -> Encoded | None:
    """Return a JPEG file that can be decoded in parts, or None for any other file.

    Its pixels are three colours; `greys` says whether those of greys are wanted so, too.
    """
    size = size_of(content, greys) if are_on() else None
    if size is None or 4 * size[0] * size[1] > inflate.limit(len(content)):
        return None
    found: Any = decoder()
    return None if found is None else Encoded(found, content, size)


def decoded(content: bytes, greys: bool = True) -> Array | None:
    """Return all pixels of a JPEG file, uint8 [H, W, 3], or None for a file that is not decoded.

    `greys` says whether greys are decoded as colours.
    """
    file = opened(content, greys)
    found = None if file is None else file.pixels(0, 0, *file.shape[:2])
    return None if found is None else found[0]


def encoded(pixels: Array, quality: int) -> Array | None:
    """Return the content of a JPEG file, uint8 [N], as Pillow writes it.

    Returns None where the library or its layout is another one. `pixels` are grey [H, W] or colours
    [H, W, 3], uint8. Raises ValueError for images that the library refuses.
    """
    found = encoder() if are_on() else None
    return None if found is None else found.encode(np.ascontiguousarray(pixels), quality)
