"""Rotations, affine and perspective transforms of images.

Every output pixel is read from a position in the input, as in OpenCV. Positions are rounded to 1/32
of a pixel (nearest: to whole pixels), and, for uint8, weights of bilinear and bicubic interpolation
to multiples of 2**-15; what lies outside is `fill_value`. A positive angle turns counter-clockwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import ImageTransform, by_routine, parse_fill
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.interpolation_weights import FRACTIONS, READ, Reading, reading_of, sample
from mycel.dataset.vision.kernels import perspective_matrix, warp_interpolation

Matrix = np.ndarray[Any, np.dtype[np.float64]]
# An affine matrix: (x, y) goes to (a x + b y + c, d x + e y + f).
Six = tuple[float, float, float, float, float, float]
Points = list[tuple[int, int]]
# Numbers of matrices up to which positions are far from overflowing.
_FAR = 2.0**30
# Positions of which 2**10 times as much is a word of 32 bits.
_NEAR = 1 << 20
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def check_resample(operation: str, resample: Any, extra: tuple[Inter, ...] = (Inter.BICUBIC, Inter.AREA)) -> Inter:
    """Return an interpolation that warping supports; raise TypeError or ValueError otherwise."""
    arguments.instance(operation, "the interpolation", resample, Inter)
    if resample not in (Inter.NEAREST, Inter.BILINEAR, *extra):
        raise ValueError(f"{operation}: {resample!r} is not supported; use NEAREST, BILINEAR or BICUBIC")
    # Averaging areas has no meaning here; OpenCV interpolates instead.
    return Inter.BILINEAR if resample is Inter.AREA else resample


def _inverse(matrix: Six) -> Six:
    """Return the inverse of an affine matrix.

    It is solved for with pivots, whose reciprocals are multiplied with, in the order of LAPACK.
    """
    a, b, c, d, e, f = matrix
    exchanged = abs(d) > abs(a)
    if exchanged:
        a, b, c, d, e, f = d, e, f, a, b, c
    try:
        first = 1.0 / a
        below = d * first
        e -= below * b
        f -= below * c
        second = 1.0 / e
    except ZeroDivisionError:
        raise np.linalg.LinAlgError("Singular matrix") from None
    # The columns of the inverse begin as unit vectors.
    one, other = -below * second, second
    last = -f * second
    found = ((1.0 - b * one) * first, -b * other * first, (-c - b * last) * first, one, other, last)
    return (found[1], found[0], found[2], other, one, last) if exchanged else found


def warp_affine(image: Array, matrix: Six, size: tuple[int, int], kind: Inter, fill: Any) -> Array:
    """Return warp an image [H, W] or [H, W, C] by an affine matrix.

    * `matrix`: takes positions (x, y) of the input to those of the output.
    * `size`: the size of the result.
    * `kind`: the interpolation.
    * `fill`: the value of what lies outside.
    """
    inverse = _inverse(matrix)
    return warp_back(image, inverse, size, kind, fill, _farthest(inverse, size))


def _farthest(inverse: Six, size: tuple[int, int]) -> float:
    """Return how far positions are from the first one at most, which is the last one in some
    direction.
    """
    a, b, c, d, e, f = inverse
    across = abs(a) * size[1] + abs(b) * size[0] + abs(c)
    return max(across, abs(d) * size[1] + abs(e) * size[0] + abs(f))


def warp_back(image: Array, inverse: Six, size: tuple[int, int], kind: Inter, fill: Any, far: float) -> Array:
    """Return what `warp_affine` does.

    * `image`, `size`, `kind`, `fill`: as there.
    * `inverse`: the matrix from positions of the output to those of the input.
    * `far`: no position is farther from the first one.
    """
    if by_routine(image, READ) and min(size) > 0 and far < _FAR:
        return _warped(image, inverse, size, reading_of(image, kind, fill), far)
    nearest = kind is Inter.NEAREST
    half, shift = (512, 10) if nearest else (16, 5)
    columns, rows = np.arange(size[1]), np.arange(size[0])
    lines = inverse[:3], inverse[3:]
    along = [np.rint(line[0] * columns * 1024).astype(np.int64) for line in lines]
    down = [np.rint((line[1] * rows + line[2]) * 1024).astype(np.int64) + half for line in lines]
    places = [(d[:, None] + a[None, :]) >> shift for d, a in zip(down, along)]
    return sample(image, (places[0], places[1]), kind, fill)


def _warped(image: Array, inverse: Six, size: tuple[int, int], reading: Reading, far: float) -> Array:
    """Return what `warp_affine` does, by a routine.

    * `image`, `size`: as there.
    * `inverse`: the matrix from positions of the output to those of the input.
    * `reading`: how the image is read.
    * `far`: no position is farther from the first one.
    """
    result: Array = np.empty((*size, *image.shape[2:]), image.dtype)
    word, dtype = ("int32", _INT32) if far < _NEAR and image.size < _FAR else ("int64", _INT64)
    height, width = image.shape[:2]
    channels, element, fills, even, weights, taps = reading
    warp_interpolation.affine(
        np.ascontiguousarray(image),
        height,
        width,
        channels,
        *inverse,
        fills,
        even,
        weights,
        taps,
        element,
        *size,
        word,
        np.empty(2 * (size[1] + warp_interpolation.WIDE), dtype),
        result,
    )
    return result


def warp_perspective(image: Array, inverse: Matrix, kind: Inter, fill: Any = 0) -> Array:
    """Return warp an image by a matrix between homogeneous positions.

    * `inverse`: the matrix from output to input positions, [3, 3] row by row.
    * `kind`: the interpolation.
    * `fill`: the value of what lies outside.

    Positions of a row are sums of what a block of columns begins with, as in OpenCV.
    """
    height, width = image.shape[:2]
    block = max(1, min(1024 // max(1, min(16, height)), width))
    if by_routine(image, READ) and max(map(abs, inverse.tolist())) < _FAR:
        result = np.empty(image.shape, image.dtype)
        channels, element, fills, even, weights, taps = reading_of(image, kind, fill)
        warp_interpolation.perspective(
            np.ascontiguousarray(image),
            height,
            width,
            channels,
            inverse,
            block,
            fills,
            even,
            weights,
            taps,
            element,
            np.empty(2 * warp_interpolation.WIDE, _INT64),
            result,
        )
        return result
    y, x = np.mgrid[:height, :width].astype(np.float64)
    rest = x % block
    x -= rest
    moved = [inverse[row] * x + inverse[row + 1] * y + inverse[row + 2] + inverse[row] * rest for row in (0, 3, 6)]
    units = 1 if kind is Inter.NEAREST else FRACTIONS
    scale = np.divide(units, moved[2], out=np.zeros_like(moved[2]), where=moved[2] != 0)
    limit = 2**30
    places = [np.rint(np.clip(moved[i] * scale, -limit, limit)).astype(np.int64) for i in (0, 1)]
    return sample(image, (places[0], places[1]), kind, fill)


def perspective_inverse(start: Sequence[Sequence[float]], end: Sequence[Sequence[float]]) -> Matrix:
    """Return the inverse, row by row, of the matrix [3, 3] that takes four points (x, y) to others.

    Raises LinAlgError where there is none, as three of them lie on a line.
    """
    return _inverse_of((*start[0], *start[1], *start[2], *start[3], *end[0], *end[1], *end[2], *end[3]))


_known_inverses = Remembered[tuple[float, ...], Matrix]("perspectives of images", FEW)


def _inverse_of(points: tuple[float, ...]) -> Matrix:
    found = np.empty(10)
    if are_on():
        perspective_matrix.inverse_of_points(*points, np.empty(72), found)
    else:
        with np.errstate(all="ignore"):
            perspective_matrix.inverse_of_points.function(*map(np.float64, points), np.empty(72), found)
    if not found[9]:
        pairs = list(zip(points[::2], points[1::2]))
        raise np.linalg.LinAlgError(f"Singular matrix: three of the points {pairs[:4]} or {pairs[4:]} lie on a line")
    return found[:9]


def rotate(image: Array, degrees: float, kind: Inter, expand: bool, center: Any, fill: Any) -> Array:
    """Rotate an image about `center` (x, y), by default its middle.

    * `degrees`: the angle, counter-clockwise.
    * `kind`: the interpolation.
    * `expand`: whether the result is as large as needed to show the whole image.
    * `fill`: the value of what lies outside.
    """
    height, width = image.shape[:2]
    x, y = ((width - 1) / 2, (height - 1) / 2) if center is None else center
    matrix, cosine, sine = _turn(degrees, x, y)
    if not expand:
        return warp_affine(image, matrix, (height, width), kind, fill)
    right, down = matrix[2], matrix[5]
    box_width = height * abs(sine) + width * abs(cosine)
    box_height = height * abs(cosine) + width * abs(sine)
    right, down = right + (box_width - width) / 2, down + (box_height - height) / 2
    matrix = cosine, sine, right, -sine, cosine, down
    return warp_affine(image, matrix, (round(box_height), round(box_width)), kind, fill)


def _turn(degrees: float, x: float, y: float) -> tuple[Six, float, float]:
    """Return the matrix of a rotation about a point, and the cosine and sine of its angle."""
    turn = math.radians(degrees)
    cosine, sine = math.cos(turn), math.sin(turn)
    right, down = (1 - cosine) * x - sine * y, sine * x + (1 - cosine) * y
    return (cosine, sine, right, -sine, cosine, down), cosine, sine


def affine_matrix(
    shape: Sequence[int], degrees: float, translate: Sequence[float], scale: float, shear: Sequence[float]
) -> Six:
    """Return the matrix of an affine transform about the middle of an image.

    It shears, rotates and scales, and then translates.

    * `shape`: the shape of the image.
    * `degrees`: the angle.
    * `translate`: the translation (x, y) in pixels.
    * `scale`: the factor.
    * `shear`: the angles of the shear.
    """
    x, y = (shape[1] - 1) / 2.0, (shape[0] - 1) / 2.0
    turn, sx, sy = (math.radians(value) for value in (degrees, shear[0], shear[1]))
    a = math.cos(turn - sy) / math.cos(sy)
    b = -math.cos(turn - sy) * math.tan(sx) / math.cos(sy) - math.sin(turn)
    c = math.sin(turn - sy) / math.cos(sy)
    d = -math.sin(turn - sy) * math.tan(sx) / math.cos(sy) + math.cos(turn)
    a, b, c, d = scale * a, scale * b, scale * c, scale * d
    return a, b, x + translate[0] - (a * x + b * y), c, d, y + translate[1] - (c * x + d * y)


def _check_center(operation: str, center: Any) -> tuple[float, float] | None:
    if center is None:
        return None
    if not isinstance(center, (tuple, list)) or len(center) != 2:
        raise TypeError(f"{operation}: center must be a pair (x, y), not {center!r}")
    return center[0], center[1]


def _check_number(operation: str, argument: str, value: Any) -> float:
    arguments.number(operation, argument, value, numpy=False)
    return float(value)


def interval(operation: str, argument: str, value: Any, symmetric: bool = True) -> tuple[float, float]:
    """Return (low, high) from `value`, a pair, or with `symmetric` (-n, n) from a number n of at
    least 0.

    `operation` and `argument` are named in messages. Raises TypeError or ValueError otherwise.
    """
    if symmetric and isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f"{operation}: {argument} must be at least 0, not {value}")
        return -float(value), float(value)
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(
            f"{operation}: {argument} must be {'a number or ' if symmetric else ''}a pair of numbers, not {value!r}"
        )
    low, high = (_check_number(operation, argument, part) for part in value)
    if low > high:
        raise ValueError(f"{operation}: {argument} must be an increasing pair, not {value!r}")
    return low, high


class Rotate(ImageTransform):
    """An image [H, W] or [H, W, C], rotated.

    Args:
        degrees (float): The angle, counter-clockwise.
        resample (Inter): The interpolation.
        expand (bool): Whether the result is large enough to hold the whole image. Default: False.
        center (tuple[float, float] | None): The fixed point (x, y); the middle by default. Default:
            None.
        fill_value (int | tuple[int, int, int]): The value of what lies outside. Colours are in the
            order of the image's channels (MindSpore 2.10 reverses them). Default: 0.

    Examples:
        >>> import numpy as np
        >>> from mycel.dataset import vision
        >>> vision.Rotate(90)(np.array([[1, 2, 3], [4, 5, 6], [7, 8, 9]], np.uint8)).tolist()
        [[3, 6, 9], [2, 5, 8], [1, 4, 7]]
    """

    keeps = True
    vectorised = False

    def __init__(
        self,
        degrees: float,
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        kind = type(self).__name__
        self.degrees: Any = _check_number(kind, "degrees", degrees)
        self._rest(resample, expand, center, fill_value)

    def _rest(self, resample: Any, expand: Any, center: Any, fill_value: Any) -> None:
        kind = type(self).__name__
        self.resample = check_resample(kind, resample)
        arguments.flag(kind, "expand", expand)
        self.expand = expand
        self.center = _check_center(kind, center)
        self.fill_value = parse_fill(kind, fill_value)

    def _angle(self) -> float:
        return float(self.degrees)

    def compute(self, array: Array, lead: int) -> Array:
        if array.ndim in (2, 3):
            return self._turned(array, self._angle())
        self.check_image(array, self.leading(array, lead))
        angle = self._angle()
        turned = [self._turned(image, angle) for image in array.reshape(-1, *array.shape[-3:])]
        together: Array = np.stack(turned).reshape(*array.shape[:-3], *turned[0].shape)
        return together

    def _turned(self, image: Array, angle: float) -> Array:
        fill = usable_fill(image, self.fill_value)
        return rotate(image, angle, self.resample, self.expand, self.center, fill)


def usable_fill(array: Array, fill: Any) -> Any:
    """Return fill values for the channels of an image.

    They are all three colours, with 0 for further channels, or the first colour for one channel.
    """
    channels = array.shape[2] if array.ndim == 3 else 1
    if not isinstance(fill, tuple):
        return fill if channels <= 3 else (*(fill,) * 3, *(0,) * (channels - 3))
    return fill[0] if channels == 1 else (*fill, *(0,) * channels)[:channels]


class _Moving(ImageTransform):
    """The base class of transforms that draw an affine matrix."""

    vectorised = False
    random = True
    resample: Inter
    fill_value: Any

    def moved(self, image: Array, matrix: Six) -> Array:
        """Return an image moved by a matrix, in its size."""
        inverse, size = _inverse(matrix), image.shape[:2]
        far = _farthest(inverse, size)
        if far < _NEAR and image.size < _FAR:
            moved: Array = self.again(self._near, image, *inverse)
            return moved
        return warp_back(image, inverse, size, self.resample, usable_fill(image, self.fill_value), far)

    def _near(self, image: Array, lead: int, *inverse: float) -> Array:
        a, b, c, d, e, f = inverse
        fill = usable_fill(image, self.fill_value)
        return warp_back(image, (a, b, c, d, e, f), image.shape[:2], self.resample, fill, 0.0)


class RandomRotation(_Moving, Rotate):
    """An image, rotated by a random angle.

    Args:
        degrees (float | Sequence[float]): The range of the angle, or one number n for -n to n.
        resample (Inter): The interpolation.
        expand (bool): Whether the result is large enough to hold the whole image. Default: False.
        center (tuple[float, float] | None): The fixed point (x, y); None for the middle. Default:
            None.
        fill_value (int | tuple[int, int, int]): The value of what lies outside, a number or one for
            each channel. Default: 0.
    """

    keeps = False
    random = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        resample: Inter = Inter.NEAREST,
        expand: bool = False,
        center: tuple[float, float] | None = None,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        self.degrees = interval("RandomRotation", "degrees", degrees)
        self._rest(resample, expand, center, fill_value)

    def _angle(self) -> float:
        return current_stream().uniform(*self.degrees)

    def _turned(self, image: Array, angle: float) -> Array:
        if self.expand:
            return super()._turned(image, angle)
        height, width = image.shape[:2]
        x, y = ((width - 1) / 2, (height - 1) / 2) if self.center is None else self.center
        return self.moved(image, _turn(angle, x, y)[0])


class Affine(ImageTransform):
    """An image, transformed affinely about its middle.

    Args:
        degrees (float): The angle, clockwise.
        translate (Sequence[float]): The translation (x, y) as fractions of width and height.
        scale (float): The factor.
        shear (float | Sequence[float]): The angle of the shear, one number, or one for x and one
            for y.
        resample (Inter): The interpolation.
        fill_value (int | tuple[int, int, int]): The value of what lies outside, a number or one for
            each channel. Default: 0.
    """

    keeps = True
    vectorised = False

    def __init__(
        self,
        degrees: float,
        translate: Sequence[float],
        scale: float,
        shear: float | Sequence[float],
        resample: Inter = Inter.NEAREST,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        self.degrees = _check_number("Affine", "degrees", degrees)
        if not isinstance(translate, (list, tuple)) or len(translate) != 2 or any(not -1 <= t <= 1 for t in translate):
            raise ValueError(f"Affine: translate must be two numbers within [-1, 1], not {translate!r}")
        self.translate = (float(translate[0]), float(translate[1]))
        self.scale = _check_number("Affine", "scale", scale)
        if self.scale <= 0:
            raise ValueError(f"Affine: scale must be positive, not {scale!r}")
        both = (shear, 0.0) if isinstance(shear, (int, float)) else tuple(shear)
        if len(both) != 2:
            raise ValueError(f"Affine: shear must be one number or two, not {shear!r}")
        self.shear = both
        self.resample = check_resample("Affine", resample)
        self.fill_value = parse_fill("Affine", fill_value)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        moved = (self.translate[0] * array.shape[1], self.translate[1] * array.shape[0])
        matrix = affine_matrix(array.shape, self.degrees, moved, self.scale, self.shear)
        return warp_affine(array, matrix, array.shape[:2], self.resample, usable_fill(array, self.fill_value))


class RandomAffine(_Moving):
    """An image, rotated, translated, scaled and sheared at random about its middle.

    Args:
        degrees (float | Sequence[float]): The range of the angle, or one number n for -n to n.
        translate (Sequence[float] | None): The largest translation (x, y) as fractions of width and
            height; four numbers are the ranges [x low, x high] and [y low, y high]. Default: None.
        scale (Sequence[float] | None): The range of the factor. Default: None.
        shear (float | Sequence[float] | None): The range of the shear, or n for -n to n; a second
            range is for y. Default: None.
        resample (Inter): The interpolation.
        fill_value (int | tuple[int, int, int]): The value of what lies outside, a number or one for
            each channel. Default: 0.
    """

    vectorised = False
    random = True

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        resample: Inter = Inter.NEAREST,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        kind = "RandomAffine"
        self.degrees = interval(kind, "degrees", degrees)
        parts = (0.0, 0.0, 0.0, 0.0) if translate is None else tuple(translate)
        if len(parts) == 2:
            x, y = parts
            parts = (-abs(x), abs(x), -abs(y), abs(y))
        if len(parts) != 4 or any(not -1 <= part <= 1 for part in parts):
            raise ValueError(f"{kind}: translate must be 2 or 4 numbers within [-1, 1], not {translate!r}")
        self.translate = parts
        self.scale = (1.0, 1.0) if scale is None else interval(kind, "scale", scale, symmetric=False)
        if self.scale[0] < 0 or self.scale[1] <= 0:
            raise ValueError(f"{kind}: scale must be positive, not {scale!r}")
        slants: Any = (0.0, 0.0, 0.0, 0.0) if shear is None else shear
        if isinstance(slants, (int, float)) or len(slants) == 2:
            slants = (*interval(kind, "shear", slants), 0.0, 0.0)
        if len(slants) != 4 or slants[0] > slants[1] or slants[2] > slants[3]:
            raise ValueError(f"{kind}: shear must be a number or one or two increasing pairs, not {shear!r}")
        self.shear = tuple(map(float, slants))
        self.resample = check_resample(kind, resample)
        self.fill_value = parse_fill(kind, fill_value)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        return self.moved(array, self.draw(*array.shape[:2]))

    def draw(self, height: int, width: int) -> Six:
        """Draw the matrix that moves the pixels of an image of this size."""
        stream = current_stream()
        degrees = stream.uniform(*self.degrees)
        moved = (
            stream.uniform(self.translate[0] * width, self.translate[1] * width),
            stream.uniform(self.translate[2] * height, self.translate[3] * height),
        )
        scale = stream.uniform(*self.scale)
        shear = (stream.uniform(*self.shear[:2]), stream.uniform(*self.shear[2:]))
        return affine_matrix((height, width), degrees, moved, scale, shear)


def _check_points(operation: str, argument: str, points: Any) -> tuple[tuple[float, float], ...]:
    if not isinstance(points, (list, tuple)) or len(points) != 4 or any(len(point) != 2 for point in points):
        raise TypeError(f"{operation}: {argument} must be four points (x, y), not {points!r}")
    return tuple([(float(x), float(y)) for x, y in points])


class Perspective(ImageTransform):
    """An image, warped so that four points (x, y), `start_points`, move to `end_points`."""

    keeps = True
    vectorised = False

    def __init__(
        self,
        start_points: Sequence[Sequence[float]],
        end_points: Sequence[Sequence[float]],
        interpolation: Inter = Inter.BILINEAR,
    ) -> None:
        self.start_points = _check_points("Perspective", "start_points", start_points)
        self.end_points = _check_points("Perspective", "end_points", end_points)
        self.interpolation = check_resample("Perspective", interpolation)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        points = self.start_points, self.end_points
        key = tuple([number for four in points for point in four for number in point])
        inverse = _known_inverses.recall(key, lambda: perspective_inverse(*points))
        return warp_perspective(array, inverse, self.interpolation)


class RandomPerspective(ImageTransform):
    """An image whose corners move inwards at random with probability `prob`.

    They move by at most half of `distortion_scale` of the width and height.
    """

    in_python = True
    vectorised = False
    random = True

    def __init__(self, distortion_scale: float = 0.5, prob: float = 0.5, interpolation: Inter = Inter.BICUBIC) -> None:
        self.distortion_scale = arguments.real("RandomPerspective", "distortion_scale", distortion_scale, 0, at_most=1)
        self.prob = arguments.real("RandomPerspective", "prob", prob, 0, at_most=1)
        self.interpolation = check_resample("RandomPerspective", interpolation)

    def compute(self, array: Array, lead: int) -> Array:
        self.check_image(array, lead)
        points = self.draw(*array.shape[:2])
        return array if points is None else warp_perspective(array, perspective_inverse(*points), self.interpolation)

    def draw(self, height: int, width: int) -> tuple[Points, Points] | None:
        """Draw where the corners of an image of this size move from and to; None for no change."""
        stream = current_stream()
        if stream.uniform() >= self.prob:
            return None
        right, bottom = width - 1, height - 1
        across, down = (int(self.distortion_scale * (length // 2)) for length in (width, height))
        ends = [
            (
                sx * right + (1 - 2 * sx) * stream.integer(0, across),
                sy * bottom + (1 - 2 * sy) * stream.integer(0, down),
            )
            for sx, sy in ((0, 0), (1, 0), (1, 1), (0, 1))
        ]
        return [(0, 0), (right, 0), (right, bottom), (0, bottom)], ends
