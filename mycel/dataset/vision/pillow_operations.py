"""Operations on Pillow's images, which give Pillow's images again.

MindSpore computes them by Pillow's own functions, whose interpolation and rounding differ from
those of the operations on arrays. Pillow is imported when one is called: who has an image of it has
imported it already.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mycel.dataset.vision.enums import Border, Inter

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

# Pillow's numbers of the interpolations.
_RESAMPLING = {Inter.NEAREST: 0, Inter.ANTIALIAS: 1, Inter.BILINEAR: 2, Inter.BICUBIC: 3}
_NUMPY_MODES: dict[Border, Any] = {Border.EDGE: "edge", Border.REFLECT: "reflect", Border.SYMMETRIC: "symmetric"}
_AFFINE, _PERSPECTIVE = 0, 2
# Modes that have no hue.
_GREY_MODES = ("L", "1", "I", "F")


def resampling(operation: str, kind: Inter) -> Any:
    """Return Pillow's interpolation for one of ours; raise TypeError where it has none."""
    if kind not in _RESAMPLING:
        raise TypeError(f"{operation}: Pillow's images have no interpolation {kind!r}; use an array")
    return _RESAMPLING[kind]


def _enhanced(kind: str, picture: Picture, factor: float) -> Picture:
    result: Picture = getattr(importlib.import_module("PIL.ImageEnhance"), kind)(picture).enhance(factor)
    return result


def brightness(picture: Picture, factor: float) -> Picture:
    """Return a blend with black."""
    return _enhanced("Brightness", picture, factor)


def contrast(picture: Picture, factor: float) -> Picture:
    """Return a blend with the mean grey."""
    return _enhanced("Contrast", picture, factor)


def saturation(picture: Picture, factor: float) -> Picture:
    """Return a blend with the greys."""
    return _enhanced("Color", picture, factor)


def sharpness(picture: Picture, factor: float) -> Picture:
    """Return a blend with the blurred picture."""
    return _enhanced("Sharpness", picture, factor)


def hue(picture: Picture, factor: float) -> Picture:
    """Return the picture with its hue turned, where 1 is a whole turn."""
    if picture.mode in _GREY_MODES:
        return picture
    from PIL import Image

    parts = picture.convert("HSV").split()
    turned = np.asarray(parts[0]) + np.array(factor * 255).astype(np.int64).astype(np.uint8)
    return Image.merge("HSV", (Image.fromarray(turned), *parts[1:])).convert(picture.mode)


def gamma(picture: Picture, exponent: float, gain: float) -> Picture:
    """Return `gain * picture ** exponent`, for values from 0 to 1.

    As in MindSpore, only colours without opacity and greys change.
    """
    if picture.mode not in ("RGB", "L"):
        return picture
    table = [(255 + 1 - 1e-3) * gain * (value / 255.0) ** exponent for value in range(256)]
    coloured = picture.convert("RGB")
    return coloured.point([int(value) for value in table] * 3).convert(picture.mode)


def auto_contrast(picture: Picture, cutoff: float, ignore: Any) -> Picture:
    """Return the picture with its contrast stretched."""
    from PIL import ImageOps

    return ImageOps.autocontrast(picture, cutoff, ignore)


def equalize(picture: Picture) -> Picture:
    """Return the picture with an even histogram."""
    from PIL import ImageOps

    return ImageOps.equalize(picture)


def invert(picture: Picture) -> Picture:
    """Return the negative."""
    from PIL import ImageOps

    return ImageOps.invert(picture)


def flip(picture: Picture, axis: int) -> Picture:
    """Return the picture upside down for axis 0, or mirrored for axis 1."""
    from PIL import Image

    return picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT if axis else Image.Transpose.FLIP_TOP_BOTTOM)


def crop(picture: Picture, top: int, left: int, height: int, width: int) -> Picture:
    """Return the part of `height` and `width` from (`top`, `left`) on.

    What lies outside of the picture is zero.
    """
    return picture.crop((left, top, left + width, top + height))


def center_crop(picture: Picture, size: Sequence[int]) -> Picture:
    """Return the middle (height, width)."""
    return crop(picture, round((picture.height - size[0]) / 2.0), round((picture.width - size[1]) / 2.0), *size)


def five_crop(picture: Picture, size: Sequence[int]) -> tuple[Picture, ...]:
    """Return the crops at the corners, row by row, and the one in the middle."""
    height, width = size
    bottom, right = picture.height - height, picture.width - width
    if min(bottom, right) < 0:
        raise ValueError(f"FiveCrop: size {tuple(size)} is larger than the picture, of {picture.size}")
    corners = [crop(picture, top, left, height, width) for top in (0, bottom) for left in (0, right)]
    return (*corners, center_crop(picture, size))


def ten_crop(picture: Picture, size: Sequence[int], vertical: bool) -> tuple[Picture, ...]:
    """Return the crops of `five_crop`, and those of the flipped picture."""
    return (*five_crop(picture, size), *five_crop(flip(picture, 0 if vertical else 1), size))


def grayscale(picture: Picture, channels: int) -> Picture:
    """Return the greys, as mode "L" or as three equal channels."""
    from PIL import Image

    grey = picture.convert("L")
    return grey if channels == 1 else Image.merge("RGB", (grey, grey, grey))


def pad(picture: Picture, sides: Sequence[int], fill: Any, border: Border) -> Picture:
    """Return the picture with more pixels at its sides.

    * `sides`: the numbers (left, top, right, bottom) of pixels.
    * `fill`: their value for the border CONSTANT.
    * `border`: the border.
    """
    from PIL import Image, ImageOps

    left, top, right, bottom = sides
    if border is Border.CONSTANT:
        if picture.mode == "P":
            palette = picture.getpalette()
            padded = ImageOps.expand(picture, border=(left, top, right, bottom), fill=fill)
            if palette is not None:
                padded.putpalette(palette)
            return padded
        colour = fill if isinstance(fill, tuple) else (fill,) * 3
        whole: Any = colour[0] if len(picture.getbands()) == 1 else colour
        return ImageOps.expand(picture, border=(left, top, right, bottom), fill=whole)
    array = np.asarray(picture)
    widths = [(top, bottom), (left, right)] + [(0, 0)] * (array.ndim - 2)
    return Image.fromarray(np.pad(array, widths, mode=_NUMPY_MODES[border]))


def resize(picture: Picture, size: Any, kind: Inter) -> Picture:
    """Return the picture in size (height, width), or with its shorter edge of this length."""
    method = resampling("Resize", kind)
    if not isinstance(size, int):
        return picture.resize((size[1], size[0]), method)
    width, height = picture.size
    if size == min(width, height):
        return picture
    if width < height:
        return picture.resize((size, int(size * height / width)), method)
    return picture.resize((int(size * width / height), size), method)


def rotate(picture: Picture, degrees: float, kind: Inter, expand: bool, center: Any, fill: Any) -> Picture:
    """Return the picture, rotated counter-clockwise.

    * `degrees`: the angle.
    * `kind`: the interpolation.
    * `expand`: whether the result is large enough to hold the whole picture.
    * `center`: the fixed point (x, y), or None for the middle.
    * `fill`: the value of what lies outside.
    """
    method = resampling("Rotate", kind)
    return picture.rotate(degrees, method, expand, center, fillcolor=_fill_of(picture, fill))


def affine(picture: Picture, matrix: Any, kind: Inter, fill: Any) -> Picture:
    """Return the picture, moved by a matrix.

    * `matrix`: the six numbers of the matrix [2, 3] of pixels (x, y).
    * `kind`: the interpolation.
    * `fill`: the value of what lies outside.
    """
    inverse = np.linalg.inv(np.vstack([np.reshape(matrix, (2, 3)), [0, 0, 1]]))[:2]
    # Pillow places pixels at half coordinates.
    inverse[:, 2] += inverse[:, :2].sum(1) / 2 - 0.5
    method: Any = _AFFINE
    numbers = tuple(inverse.ravel().tolist())
    return picture.transform(
        picture.size, method, numbers, resampling("RandomAffine", kind), fillcolor=_fill_of(picture, fill)
    )


def _fill_of(picture: Picture, fill: Any) -> Any:
    """Return the value of what lies outside, in the form that this picture takes."""
    bands = len(picture.getbands())
    colours = fill if isinstance(fill, tuple) else (fill,) * 3
    return colours[0] if bands == 1 else (*colours, 255)[:bands]


def perspective(picture: Picture, starts: Any, ends: Any, kind: Inter) -> Picture:
    """Return the picture, warped so that four points (x, y) move from `starts` to `ends`.

    `kind` is the interpolation.
    """
    rows = []
    for (x, y), (u, v) in zip(ends, starts):
        rows.append([x, y, 1, 0, 0, 0, -u * x, -u * y])
        rows.append([0, 0, 0, x, y, 1, -v * x, -v * y])
    targets = np.array([number for point in starts for number in point], np.float64)
    solved = np.linalg.lstsq(np.array(rows, np.float64), targets, rcond=None)[0]
    method: Any = _PERSPECTIVE
    return picture.transform(picture.size, method, tuple(solved.tolist()), resampling("Perspective", kind))


def lighting(picture: Picture, added: Any) -> Picture:
    """Return the picture in RGB with an amount added to each channel."""
    from PIL import Image

    lit = np.asarray(picture.convert("RGB")) + added
    return Image.fromarray(np.clip(lit, 0, 255).astype(np.uint8))
