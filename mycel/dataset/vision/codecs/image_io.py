"""Image files: decoding, encoding, reading and writing."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import atomic_files as whole
from mycel._src.foundation.files import decompression as inflate
from mycel.dataset.rows.column_blocks import Array, as_array
from mycel.dataset.vision.codecs import jpeg, png
from mycel.dataset.vision.enums import ImageReadMode


def _pillow(operation: str) -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            f"{operation}: reading and writing image files needs Pillow; pip install 'mycel[image]'"
        ) from error
    return Image


# The formats that are read: none that Pillow gives to other programs, as EPS.
FORMATS = tuple("JPEG MPO JPEG2000 PNG GIF BMP DIB TIFF WEBP AVIF PPM ICO TGA PCX SGI QOI".split())
# libjpeg refuses longer sides.
_LONGEST = 65500


def decode_image(content: bytes, operation: str = "Decode", mode: ImageReadMode = ImageReadMode.COLOR) -> Array:
    """Decode an image file's content to pixels, uint8 [H, W, C].

    Raises ValueError where it is not an image in one of the `FORMATS`, or has more pixels than
    `foundation.files.decompression` allows.
    """
    found = None if mode is ImageReadMode.GRAYSCALE else jpeg.decoded(content, mode is ImageReadMode.COLOR)
    if found is None and mode is ImageReadMode.COLOR:
        found = png.decoded(content)
    if found is None:
        found = _opened(content, operation, mode, np.array)
    return found if found.ndim == 3 else found[..., None]


def decode_picture(content: bytes, operation: str = "Decode") -> Any:
    """Decode an image file's content to a Pillow image of colours; errors are `decode_image`'s."""
    return _opened(content, operation, ImageReadMode.COLOR, lambda picture: picture)


def _opened(content: bytes, operation: str, mode: ImageReadMode, take: Callable[[Any], Any]) -> Any:
    """Return what `take` makes of the Pillow image of a file's content, converted to a mode."""
    image_module = _pillow(operation)
    try:
        image_module.init()
        formats = [name for name in FORMATS if name in image_module.OPEN]
        with image_module.open(io.BytesIO(content), formats=formats) as picture:
            width, height = picture.size
            most = inflate.limit(len(content))
            if 4 * width * height > most:
                raise ValueError(
                    f"it has {width} by {height} pixels, which take more than {most >> 20} MiB; if it may, set the "
                    "environment variable "
                    'MYCEL_INFLATE to a size such as "8GB"'
                )
            if mode is ImageReadMode.COLOR:
                picture = picture.convert("RGB")
            elif mode is ImageReadMode.GRAYSCALE:
                picture = picture.convert("L")
            return take(picture)
    except MemoryError:
        raise
    except Exception as error:
        # Pillow's decoders raise what comes up where a file is damaged.
        kind = "" if isinstance(error, (OSError, SyntaxError, ValueError)) else f"{type(error).__name__}: "
        raise ValueError(
            f"{operation}: the {len(content)} bytes are not an image that Pillow can read: {kind}{error}"
        ) from error


def path_of(operation: str, path: Any) -> str:
    """Return the path of a file; raise TypeError if it is not a path."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"{operation}: the file must be a path, not {type(path).__name__}")
    return os.fspath(path)


def read_file(filename: str) -> Array:
    """Read the bytes of a file as uint8 [N]."""
    with open(path_of("read_file", filename), "rb") as handle:
        return np.frombuffer(bytearray(handle.read()), np.uint8)


def write_file(filename: str, data: Any) -> None:
    """Write bytes, uint8 [N], to a file."""
    array = as_array(data)
    if array.ndim != 1 or array.dtype != np.uint8:
        raise TypeError(f"write_file: the data must be uint8 of one axis, not {array.dtype} of shape {array.shape}")
    whole.write(path_of("write_file", filename), array.tobytes())


def read_image(filename: str, mode: ImageReadMode = ImageReadMode.UNCHANGED) -> Array:
    """Read the pixels of an image file as uint8 [H, W, C]."""
    arguments.instance("read_image", "mode", mode, ImageReadMode)
    with open(path_of("read_image", filename), "rb") as handle:
        return decode_image(handle.read(), f"read_image: {os.fspath(filename)}", mode)


def _pixels(operation: str, image: Any) -> Array:
    array = as_array(image)
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] != 3):
        raise TypeError(
            f"{operation}: the image must be uint8 [H, W], [H, W, 1] or [H, W, 3], not {array.dtype} {array.shape}"
        )
    if not array.size:
        raise ValueError(f"{operation}: the image must have pixels, not shape {array.shape}")
    return array


def _encode(operation: str, pixels: Array, form: str, **options: Any) -> Array:
    buffer = io.BytesIO()
    _pillow(operation).fromarray(pixels).save(buffer, form, **options)
    return np.frombuffer(bytearray(buffer.getvalue()), np.uint8)


def encode_jpeg(image: Any, quality: int = 75) -> Array:
    """Encode an image of one or three channels as the content of a JPEG file, uint8 [N].

    `quality` is within [1, 100].
    """
    if not 1 <= quality <= 100:
        raise ValueError(f"encode_jpeg: quality must be within [1, 100], not {quality}")
    pixels = _pixels("encode_jpeg", image)
    if max(pixels.shape[:2]) > _LONGEST:
        raise ValueError(
            f"encode_jpeg: the image must have at most {_LONGEST} rows and columns, not shape {pixels.shape}"
        )
    found = jpeg.encoded(pixels, quality)
    return _encode("encode_jpeg", pixels, "JPEG", quality=quality) if found is None else found


def encode_png(image: Any, compression_level: int = 6) -> Array:
    """Encode an image of one or three channels as the content of a PNG file, uint8 [N].

    `compression_level` is within [0, 9].

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    >>> bool((vision.Decode()(vision.encode_png(pixels)) == pixels).all())
    True
    """
    if not 0 <= compression_level <= 9:
        raise ValueError(f"encode_png: compression_level must be within [0, 9], not {compression_level}")
    pixels = _pixels("encode_png", image)
    return _encode("encode_png", pixels, "PNG", compress_level=compression_level)


def write_jpeg(filename: str, image: Any, quality: int = 75) -> None:
    """Write an image as a JPEG file."""
    write_file(filename, encode_jpeg(image, quality))


def write_png(filename: str, image: Any, compression_level: int = 6) -> None:
    """Write an image as a PNG file."""
    write_file(filename, encode_png(image, compression_level))


def _image_shape(operation: str, image: Any) -> tuple[int, ...]:
    shape: tuple[int, ...] = as_array(image).shape
    if len(shape) not in (2, 3):
        raise ValueError(f"{operation}: the image must be [H, W] or [H, W, C], not of shape {shape}")
    return shape


def get_image_size(image: Any) -> list[int]:
    """Return [height, width] of an image.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.get_image_size(np.zeros((2, 3, 3), np.uint8))
    [2, 3]
    """
    return list(_image_shape("get_image_size", image)[:2])


def get_image_num_channels(image: Any) -> int:
    """Return the number of channels of an image.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.get_image_num_channels(np.zeros((2, 3, 3), np.uint8))
    3
    """
    shape = _image_shape("get_image_num_channels", image)
    return shape[2] if len(shape) == 3 else 1
