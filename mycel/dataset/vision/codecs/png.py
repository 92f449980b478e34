"""PNG files of 8 bits, decoded by zlib and a routine.

Pillow moves pixels through an image of its own and copies them three times. Whole files of grey
values or of colours, with or without alpha, and not interlaced are decoded here, bit for bit as
Pillow does; for all others, damaged ones among them, Pillow is asked. Sizes are believed once as
many bytes are there.
"""

from __future__ import annotations

import struct
import zlib

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation.files import decompression as inflate
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.codecs import png_unfilter as nest

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Channels by types of colour; palettes are Pillow's.
_CHANNELS = {0: 1, 2: 3, 6: 4}
# Chunks that change no pixel.
_OTHERS = frozenset(
    (b"gAMA", b"cHRM", b"sRGB", b"pHYs", b"tEXt", b"zTXt", b"iTXt", b"tIME", b"bKGD", b"sBIT", b"eXIf", b"iCCP")
)
# Pillow warns of more pixels.
_MANY = 1 << 26


def decoded(content: bytes) -> Array | None:
    """Return the colours of a PNG file, uint8 [H, W, 3], or None for a file that is not decoded."""
    if content[:8] != _SIGNATURE or not are_on():
        return None
    found = _parts(content)
    if found is None:
        return None
    height, width, channels, data = found
    total = height * (1 + width * channels)
    if height * width > _MANY or 4 * height * width > inflate.limit(len(content)):
        return None
    machine = zlib.decompressobj()
    try:
        raw = machine.decompress(data, total)
        # What is left has to be the checksum.
        machine.decompress(machine.unconsumed_tail, 1)
    except zlib.error:
        return None
    if len(raw) != total or not machine.eof:
        return None
    lines: Array = np.empty((height, width, channels), np.uint8)
    state = np.zeros(1, np.int64)
    nest.unfilter(raw, height, width * channels, channels, lines, state)
    if state[0]:
        return None
    if channels == 3:
        return lines
    result: Array = np.empty((height, width, 3), np.uint8)
    result[...] = lines[..., :3] if channels == 4 else lines
    return result


def _parts(content: bytes) -> tuple[int, int, int, bytes] | None:
    """Return the height, width and channels of a whole file, and its compressed data."""
    place, head, data = 8, None, []
    while place + 12 <= len(content):
        size, kind = struct.unpack_from(">I4s", content, place)
        end = place + 8 + size
        if end + 4 > len(content) or zlib.crc32(content[place + 4 : end]) != int.from_bytes(
            content[end : end + 4], "big"
        ):
            return None
        if (kind == b"IHDR") != (head is None):
            return None
        if kind == b"IHDR":
            if size != 13:
                return None
            head = struct.unpack_from(">IIBBBBB", content, place + 8)
        elif kind == b"IDAT":
            data.append(content[place + 8 : end])
        elif kind == b"IEND":
            break
        elif kind not in _OTHERS:
            return None
        place = end + 4
    else:
        return None
    if head is None or not data:
        return None
    width, height, depth, colour, compression, filters, interlaced = head
    fits = depth == 8 and colour in _CHANNELS and not (compression or filters or interlaced)
    if not fits or not 0 < width < 1 << 24 or not 0 < height < 1 << 24:
        return None
    return height, width, _CHANNELS[colour], b"".join(data)
