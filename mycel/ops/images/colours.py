"""Conversion of images between red, green and blue (RGB) and hue, saturation and value (HSV), and
changes of hue and saturation.

Value is the largest channel v, saturation (v - u) / v with u the smallest one, and hue the place on
the circle red (0), green (1/3), blue (2/3), full turn 1 (Smith, "Color gamut transform pairs",
1978). The way back is u + (v - u) d, where d are the pure hue's channels, so that a turned hue
keeps u and v whatever their sign.
"""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation.errors import ShapeError
from mycel._src.tensors.core.fused import fused
from mycel._src.tensors.core.tensor import Tensor, cast
from mycel.ops._operands import constant_like, floating, reshaped, run, select, take_slice, wide
from mycel.ops.array import stack

__all__ = ["adjust_hue", "adjust_saturation", "hsv_to_rgb", "rgb_to_hsv"]

Channels = tuple[Tensor, Tensor, Tensor]


def _channels(name: str, value: Any, rank: int) -> tuple[Tensor, Channels]:
    """Return images and their three channels."""
    x = floating(name, value)
    if x.ndim < rank or x.shape[-1] != 3:
        raise ShapeError(f"{name}: takes images (..., 3) of at least {rank} dimensions, not {x._type}")
    return x, _parts(wide(x))


def _parts(x: Tensor) -> Channels:
    """Return the three channels of images (..., 3)."""
    one, two, three = (reshaped(take_slice(x, x.ndim - 1, k, k + 1), x.shape[:-1]) for k in range(3))
    return one, two, three


def _extremes(r: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return the largest and the smallest of three channels."""
    return run(E.maximum, run(E.maximum, r, g), b), run(E.minimum, run(E.minimum, r, g), b)


def _hue(r: Tensor, g: Tensor, b: Tensor, high: Tensor, low: Tensor) -> Tensor:
    """Return the hue in [0, 1), 0 for greys."""
    zero = constant_like(0.0, high)
    coloured = run(E.gt, high, low)
    sixth = 1.0 / (6.0 * select(coloured, high - low, 1.0))
    red, green = run(E.eq, r, high), run(E.eq, g, high)
    found = select(red, (g - b) * sixth, select(green, (b - r) * sixth + 1.0 / 3.0, (r - g) * sixth + 2.0 / 3.0))
    return select(coloured, select(run(E.lt, found, zero), found + 1.0, found), zero)


def _pure(hue: Tensor) -> Channels:
    """Return the channels, 0 to 1, of a hue at full saturation and value."""
    at = hue * 6.0

    def ramp(x: Tensor) -> Tensor:
        return run(E.minimum, run(E.maximum, x, constant_like(0.0, x)), constant_like(1.0, x))

    return (
        ramp(run(E.abs_, at - 3.0) - 1.0),
        ramp(2.0 - run(E.abs_, at - 2.0)),
        ramp(2.0 - run(E.abs_, at - 4.0)),
    )


def _saturation(high: Tensor, low: Tensor) -> Tensor:
    """Return the saturation, 0 for black."""
    lit = run(E.gt, high, constant_like(0.0, high))
    return select(lit, (high - low) / select(lit, high, 1.0), 0.0)


@fused
def rgb_to_hsv(images: Any) -> Tensor:
    """Return hue, saturation and value, 0 to 1, of images (..., 3) of red, green and blue.

    Raises ShapeError where there are no 3 channels.

    >>> import mycel as ms
    >>> ms.ops.RGBToHSV()(ms.Tensor([[[[0.0, 0.5, 0.0]]]])).flatten().tolist()[1:]
    [1.0, 0.5]
    """
    x, (r, g, b) = _channels("rgb_to_hsv", images, 1)
    high, low = _extremes(r, g, b)
    return cast(stack([_hue(r, g, b, high, low), _saturation(high, low), high], -1), x.dtype)


@fused
def hsv_to_rgb(images: Any) -> Tensor:
    """Return red, green and blue of images (..., 3) of hue, saturation and value.

    Raises ShapeError where there are no 3 channels.

    >>> import mycel as ms
    >>> ms.ops.HSVToRGB()(ms.Tensor([[[[0.0, 1.0, 0.5]]]])).flatten().tolist()
    [0.5, 0.0, 0.0]
    """
    x, (hue, saturation, value) = _channels("hsv_to_rgb", images, 1)
    return cast(stack([(1.0 - saturation + saturation * d) * value for d in _pure(hue)], -1), x.dtype)


def _amount(name: str, value: Any, like: Tensor) -> Tensor:
    """Return a number as a tensor of the type of `like`."""
    x = floating(name, value)
    if x.ndim:
        raise ShapeError(f"{name}: the amount is a number, not {x._type}")
    return cast(x, like.dtype)


@fused
def adjust_hue(image: Any, delta: Any) -> Tensor:
    """Return RGB images (..., 3) of at least 3 dimensions with `delta` turns added to the hue.

    >>> import mycel as ms
    >>> red = ms.Tensor([[[1.0, 0.0, 0.0]]])
    >>> [round(v, 4) for v in ms.ops.AdjustHue()(red, ms.Tensor(0.5)).flatten().tolist()]
    [0.0, 1.0, 1.0]
    """
    x, (r, g, b) = _channels("adjust_hue", image, 3)
    high, low = _extremes(r, g, b)
    turned = _hue(r, g, b, high, low) + _amount("adjust_hue", delta, high)
    turned = turned - run(E.floor, turned)
    return cast(stack([low + (high - low) * d for d in _pure(turned)], -1), x.dtype)


@fused
def adjust_saturation(image: Any, scale: Any) -> Tensor:
    """Return RGB images (..., 3) of at least 3 dimensions with the saturation times `scale`, cut
    off at 1.

    >>> import mycel as ms
    >>> ms.ops.AdjustSaturation()(ms.Tensor([[[1.0, 0.0, 0.0]]]), ms.Tensor(0.5)).flatten().tolist()
    [1.0, 0.5, 0.5]
    """
    x, (r, g, b) = _channels("adjust_saturation", image, 3)
    high, low = _extremes(r, g, b)
    grown = _saturation(high, low) * _amount("adjust_saturation", scale, high)
    grown = run(E.minimum, run(E.maximum, grown, constant_like(0.0, grown)), constant_like(1.0, grown))
    hue = _hue(r, g, b, high, low)
    return cast(stack([(1.0 - grown + grown * d) * high for d in _pure(hue)], -1), x.dtype)
