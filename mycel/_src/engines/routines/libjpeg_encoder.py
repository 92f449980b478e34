"""Encodes JPEG files by a libjpeg-turbo that the process has loaded.

Files are what the library's defaults give for a quality. They are written into memory that is given
to it: where it has no room, the library is left, and called again with more. States that are idle
are kept, as the library asks the processor what it is for each new one, which takes longer than a
small image; all that it keeps in them are tables, which every file sets anew.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from mycel._src.engines.routines.array_address import address
from mycel._src.engines.routines.libjpeg_calls import CHANNELS, HEIGHT, JUMP, OWN, VERSION, WIDTH, Calls, message_of

__all__ = ["Encoder"]

# The size of `jpeg_compress_struct`, and offsets in it.
_SIZE = 520
_TARGET, _SPACE = 40, 60
_GREY, _RGB = 1, 2
# Where the state has what the library writes to (the place and the room that is left, and three
# functions), and a row.
_PLACE, _LEFT, _INIT, _EMPTY, _TERM, _ROW, _STATE = OWN, OWN + 8, OWN + 16, OWN + 24, OWN + 32, OWN + 40, OWN + 64
_NAMES = (
    *("std_error", "CreateCompress", "set_defaults", "set_quality", "start_compress"),
    *("write_scanlines", "finish_compress", "destroy_compress"),
)
_FULL = 2

# A file has so many bytes besides its codes, at most; and codes have so many for a pixel of blocks:
# 26 bits, which may be written twice, for each of its values, one and a half.
_HEAD, _MOST = 4096, 10

_TEXT = f"""
define internal i32 @full(ptr %state) {{
  %jump = getelementptr i8, ptr %state, i64 {JUMP}
  call void @longjmp(ptr %jump, i32 {_FULL})
  unreachable
}}

define i32 @NAME(ptr %functions, ptr %state, ptr %pixels, i32 %width, i32 %height, i32 %channels, i32 %quality,
                 ptr %out, i64 %room) {{
  %before = load ptr, ptr %state
BEGIN
  %failed = icmp ne i32 %came, 0
  br i1 %failed, label %error, label %first
error:
  call void %f.destroy_compress(ptr %state)
  ret i32 %came
first:
  %fresh = icmp eq ptr %before, null
  br i1 %fresh, label %create, label %begin
create:
  call void %f.CreateCompress(ptr %state, i32 {VERSION}, i64 {_SIZE})
  br label %begin
begin:
  %target = getelementptr i8, ptr %state, i64 {_PLACE}
  %p.target = getelementptr i8, ptr %state, i64 {_TARGET}
  store ptr %target, ptr %p.target
  store ptr %out, ptr %target
  %p.left = getelementptr i8, ptr %state, i64 {_LEFT}
  store i64 %room, ptr %p.left
  %p.init = getelementptr i8, ptr %state, i64 {_INIT}
  store ptr @quiet, ptr %p.init
  %p.empty = getelementptr i8, ptr %state, i64 {_EMPTY}
  store ptr @full, ptr %p.empty
  %p.term = getelementptr i8, ptr %state, i64 {_TERM}
  store ptr @quiet, ptr %p.term
  %p.width = getelementptr i8, ptr %state, i64 {WIDTH}
  store i32 %width, ptr %p.width
  %p.height = getelementptr i8, ptr %state, i64 {HEIGHT}
  store i32 %height, ptr %p.height
  %p.channels = getelementptr i8, ptr %state, i64 {CHANNELS}
  store i32 %channels, ptr %p.channels
  %grey = icmp eq i32 %channels, 1
  %space = select i1 %grey, i32 {_GREY}, i32 {_RGB}
  %p.space = getelementptr i8, ptr %state, i64 {_SPACE}
  store i32 %space, ptr %p.space
  call void %f.set_defaults(ptr %state)
  call void %f.set_quality(ptr %state, i32 %quality, i32 1)
  call void %f.start_compress(ptr %state, i32 1)
  %p.row = getelementptr i8, ptr %state, i64 {_ROW}
  %pitch.narrow = mul i32 %width, %channels
  %pitch = zext i32 %pitch.narrow to i64
  %rows = zext i32 %height to i64
  br label %again
again:
  %y = phi i64 [ 0, %begin ], [ %next, %line ]
  %more = icmp ult i64 %y, %rows
  br i1 %more, label %line, label %done
line:
  %offset = mul i64 %y, %pitch
  %row = getelementptr i8, ptr %pixels, i64 %offset
  store ptr %row, ptr %p.row
  %put = call i32 %f.write_scanlines(ptr %state, ptr %p.row, i32 1)
  %next = add i64 %y, 1
  br label %again
done:
  call void %f.finish_compress(ptr %state)
  ret i32 0
}}
"""


class Encoder:
    """The encoder of a library, by its path.

    Raises OSError where the file is no library, and AttributeError where it lacks a function.
    """

    def __init__(self, path: str) -> None:
        word, small = ctypes.c_void_p, ctypes.c_int32
        self._call = Calls(path, _NAMES, _TEXT, (word, small, small, small, small, word, ctypes.c_int64))
        self._idle: list[np.ndarray[Any, Any]] = []

    def encode(self, pixels: np.ndarray[Any, Any], quality: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Return the content of a file, uint8 [N].

        * `pixels`: grey [H, W] or colours [H, W, 3], uint8 in C order.
        * `quality`: a number from 1 to 100.

        Raises ValueError with what the library says of images that it refuses.
        """
        height, width = pixels.shape[:2]
        channels = 3 if pixels.ndim == 3 else 1
        given = address(pixels), width, height, channels, quality
        # Most files are smaller than their pixels, and memory that is not written to costs nothing.
        most = _MOST * (height + 15 & -16) * (width + 15 & -16)
        for room in (pixels.size + _HEAD, most + _HEAD):
            memory = np.empty(room, np.uint8)
            try:
                state = self._idle.pop()
            except IndexError:
                state = np.zeros(_STATE // 8, np.uint64)
            came = self._call(state, *given, address(memory), room)
            if not came:
                content: np.ndarray[Any, np.dtype[np.uint8]] = memory[: room - int(state[_LEFT // 8])].copy()
                self._idle.append(state)
                return content
            if came != _FULL:
                break
        raise ValueError(message_of(state))
