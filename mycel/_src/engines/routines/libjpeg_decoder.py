"""Decodes parts of JPEG files by a libjpeg-turbo that the process has loaded.

Only the rows and columns that are asked for are computed, with some around them, as colours are
interpolated between neighbours. Nothing is assumed of the content. Greys are decoded as colours.

States serve several files, as the library asks the processor what it is for each new one, which
takes longer than decoding a small image. Tables of the file before are forgotten, since a file
without tables of its own would be decoded with them.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from mycel._src.engines.routines.array_address import address
from mycel._src.engines.routines.libjpeg_calls import (
    CHANNELS,
    HEIGHT,
    OWN,
    VERSION,
    WARNINGS,
    WIDTH,
    Calls,
)

__all__ = ["Decoder", "Piece"]

# The size of `jpeg_decompress_struct`, and offsets in it.
_SIZE = 632
_OUT_SPACE, _OUT_WIDTH, _PRECISION = 64, 136, 296
_GREY, _RGB = 1, 2
# Where the tables of a file are.
_TABLES, _TABLES_END = 200, 296
# Where the state has a row, and the columns of a part.
_ROW, _LEFT, _COUNT, _STATE = OWN, OWN + 8, OWN + 12, OWN + 64
_NAMES = (
    *("std_error", "CreateDecompress", "mem_src", "read_header", "start_decompress"),
    *("crop_scanline", "skip_scanlines", "read_scanlines", "abort_decompress", "destroy_decompress"),
)
_AROUND = 4
# So many files are decoded with a state: it keeps the memory of all tables until it is destroyed.
_MOST = 16
# Blocks of colours that are interpolated have at most so many columns.
_BLOCK = 32

_TEXT = f"""
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define i32 @NAME(ptr %functions, ptr %state, ptr %content, i64 %size, i32 %width, i32 %height,
                 i32 %left, i32 %columns, i32 %top, i32 %rows, ptr %out, i64 %room,
                 i32 %keep) {{
  %before = load ptr, ptr %state
BEGIN
  %failed = icmp ne i32 %came, 0
  br i1 %failed, label %error, label %first
error:
  call void %f.destroy_decompress(ptr %state)
  ret i32 1
first:
  %fresh = icmp eq ptr %before, null
  br i1 %fresh, label %create, label %begin
create:
  call void %f.CreateDecompress(ptr %state, i32 {VERSION}, i64 {_SIZE})
  br label %begin
begin:
  %tables = getelementptr i8, ptr %state, i64 {_TABLES}
  call void @llvm.memset.p0.i64(ptr %tables, i8 0, i64 {_TABLES_END - _TABLES}, i1 false)
  call void %f.mem_src(ptr %state, ptr %content, i64 %size)
  %header = call i32 %f.read_header(ptr %state, i32 1)
  %p.width = getelementptr i8, ptr %state, i64 {WIDTH}
  %n.width = load i32, ptr %p.width
  %d.width = xor i32 %n.width, %width
  %p.height = getelementptr i8, ptr %state, i64 {HEIGHT}
  %n.height = load i32, ptr %p.height
  %d.height = xor i32 %n.height, %height
  %p.channels = getelementptr i8, ptr %state, i64 {CHANNELS}
  %n.channels = load i32, ptr %p.channels
  %grey = icmp eq i32 %n.channels, 1
  %channels = select i1 %grey, i32 1, i32 3
  %d.channels = xor i32 %n.channels, %channels
  %p.space = getelementptr i8, ptr %state, i64 {_OUT_SPACE}
  %n.space = load i32, ptr %p.space
  %space = select i1 %grey, i32 {_GREY}, i32 {_RGB}
  %d.space = xor i32 %n.space, %space
  %p.precision = getelementptr i8, ptr %state, i64 {_PRECISION}
  %n.precision = load i32, ptr %p.precision
  %d.precision = xor i32 %n.precision, 8
  %d1 = or i32 %d.width, %d.height
  %d2 = or i32 %d.channels, %d.space
  %d3 = or i32 %d1, %d2
  %d = or i32 %d3, %d.precision
  %other = icmp ne i32 %d, 0
  br i1 %other, label %error, label %start
start:
  store i32 {_RGB}, ptr %p.space
  %started = call i32 %f.start_decompress(ptr %state)
  %p.left = getelementptr i8, ptr %state, i64 {_LEFT}
  store i32 %left, ptr %p.left
  %p.count = getelementptr i8, ptr %state, i64 {_COUNT}
  store i32 %columns, ptr %p.count
  %part = icmp slt i32 %columns, %width
  br i1 %part, label %crop, label %cropped
crop:
  call void %f.crop_scanline(ptr %state, ptr %p.left, ptr %p.count)
  br label %cropped
cropped:
  %count = load i32, ptr %p.count
  %p.out_width = getelementptr i8, ptr %state, i64 {_OUT_WIDTH}
  %out_width = load i32, ptr %p.out_width
  %same = icmp eq i32 %count, %out_width
  %count.wide = zext i32 %count to i64
  %pitch = mul i64 %count.wide, 3
  %rows.wide = zext i32 %rows to i64
  %needed = mul i64 %pitch, %rows.wide
  %fits = icmp ule i64 %needed, %room
  %good = and i1 %same, %fits
  br i1 %good, label %skip, label %error
skip:
  %some = icmp sgt i32 %top, 0
  br i1 %some, label %above, label %read
above:
  %skipped = call i32 %f.skip_scanlines(ptr %state, i32 %top)
  %all = icmp eq i32 %skipped, %top
  br i1 %all, label %read, label %error
read:
  %p.row = getelementptr i8, ptr %state, i64 {_ROW}
  br label %again
again:
  %y = phi i64 [ 0, %read ], [ %next, %line ]
  %more = icmp ult i64 %y, %rows.wide
  br i1 %more, label %line, label %done
line:
  %offset = mul i64 %y, %pitch
  %row = getelementptr i8, ptr %out, i64 %offset
  store ptr %row, ptr %p.row
  %got = call i32 %f.read_scanlines(ptr %state, ptr %p.row, i32 1)
  %got.wide = zext i32 %got to i64
  %next = add i64 %y, %got.wide
  %none = icmp eq i32 %got, 0
  br i1 %none, label %error, label %again
done:
  %p.warnings = getelementptr i8, ptr %errors, i64 {WARNINGS}
  %warnings = load i64, ptr %p.warnings
  %warned = icmp ne i64 %warnings, 0
  %stays = icmp ne i32 %keep, 0
  br i1 %stays, label %keeps, label %ends
keeps:
  call void %f.abort_decompress(ptr %state)
  br label %end
ends:
  call void %f.destroy_decompress(ptr %state)
  br label %end
end:
  %result = zext i1 %warned to i32
  ret i32 %result
}}
"""


class Piece(NamedTuple):
    """Pixels [rows, columns, 3] of an image, of which the first one is at (`top`, `left`)."""

    pixels: np.ndarray[Any, np.dtype[np.uint8]]
    top: int
    left: int


class Decoder:
    """The decoder of a library, by its path.

    Raises OSError where the file is no library, and AttributeError where it lacks a function.
    """

    def __init__(self, path: str) -> None:
        word, whole, small = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
        self._call = Calls(path, _NAMES, _TEXT, (word, whole, *(small,) * 6, word, whole, small))
        # States that are idle, and how many files each has decoded.
        self._idle: list[tuple[np.ndarray[Any, Any], int]] = []

    def decode(
        self, content: np.ndarray[Any, Any], size: tuple[int, int], top: int, left: int, rows: int, columns: int
    ) -> Piece | None:
        """Return a part of an image, with some pixels around it.

        * `content`: the file, uint8 [N].
        * `size`: the height and width that its header says.
        * `top`, `left`, `rows`, `columns`: the part, inside of the image.

        Returns None where the library gives another size, has an error or warns, and for images
        that are not greys or three colours of 8 bits.
        """
        first, last = max(0, top - _AROUND), min(size[0], top + rows + _AROUND)
        begin, end = max(0, left - _AROUND), min(size[1], left + columns + _AROUND)
        most = min(size[1], end - begin + _BLOCK)
        memory = np.empty((last - first) * most * 3, np.uint8)
        try:
            state, count = self._idle.pop()
        except IndexError:
            state, count = np.zeros(_STATE // 8, np.uint64), 0
        count += 1
        given = address(content), content.size, size[1], size[0]
        place = address(memory)
        if self._call(state, *given, begin, end - begin, first, last - first, place, memory.size, count < _MOST):
            return None
        if count < _MOST:
            self._idle.append((state, count))
        begin, count = (int(number) for number in state.view(np.uint32)[_LEFT // 4 : _LEFT // 4 + 2])
        if not begin <= left <= left + columns <= begin + count:
            return None
        pixels = memory[: (last - first) * count * 3].reshape(last - first, count, 3)
        return Piece(pixels, first, begin)
