"""The choices that vision transforms offer."""

from __future__ import annotations

from enum import Enum, IntEnum


class Inter(IntEnum):
    """The interpolations of `Resize`.

    ANTIALIAS and PILCUBIC are Pillow's (Lanczos and bicubic), the others OpenCV's.
    """

    NEAREST = 0
    ANTIALIAS = 1
    BILINEAR = LINEAR = 2
    BICUBIC = CUBIC = 3
    AREA = 4
    PILCUBIC = 5


class Border(str, Enum):
    """The values of padding: a constant, the edge, or the mirrored image.

    The mirrored image repeats its edge (SYMMETRIC) or does not (REFLECT).
    """

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


class ImageReadMode(IntEnum):
    """The channels that `read_image` returns: as in the file, one of grey, or three of colour."""

    UNCHANGED = 0
    GRAYSCALE = 1
    COLOR = 2
