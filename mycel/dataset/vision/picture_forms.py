"""What each operation gives for an image of Pillow: an image of Pillow again.

Operations that are not listed compute on the image's array. Random ones draw as they do for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mycel.dataset.randomness import current_stream
from mycel.dataset.vision import color, composition, enhance, erasing, geometry, hsv, pictures, resize, warp
from mycel.dataset.vision.base import ImageTransform, picture_forms

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

T = TypeVar("T", bound=ImageTransform)


def _form(kind: type[T]) -> Callable[[Callable[[T, Picture], Any]], Callable[[T, Picture], Any]]:
    def keep(function: Callable[[T, Picture], Any]) -> Callable[[T, Picture], Any]:
        picture_forms[kind] = function
        return function

    return keep


_form(enhance.AdjustGamma)(lambda t, p: pictures.gamma(p, t.gamma, t.gain))
_form(enhance.AdjustHue)(lambda t, p: pictures.hue(p, t.hue_factor))
_form(color.AdjustBrightness)(lambda t, p: pictures.brightness(p, t.factor))
_form(color.AdjustContrast)(lambda t, p: pictures.contrast(p, t.factor))
_form(color.AdjustSaturation)(lambda t, p: pictures.saturation(p, t.factor))
_form(enhance.RandomSharpness)(lambda t, p: pictures.sharpness(p, current_stream().uniform(*t.degrees)))
_form(enhance.RandomColor)(lambda t, p: pictures.saturation(p, current_stream().uniform(*t.degrees)))
_form(enhance.AutoContrast)(lambda t, p: pictures.auto_contrast(p, t.cutoff, t.ignore or None))
_form(enhance.Equalize)(lambda t, p: pictures.equalize(p))
_form(color.Invert)(lambda t, p: pictures.invert(p))
_form(geometry.CenterCrop)(lambda t, p: pictures.center_crop(p, t.size))
_form(composition.FiveCrop)(lambda t, p: pictures.five_crop(p, t.size))
_form(composition.TenCrop)(lambda t, p: pictures.ten_crop(p, t.size, t.use_vertical_flip))
_form(color.Grayscale)(lambda t, p: pictures.grayscale(p, t.num_output_channels))
_form(geometry.Pad)(lambda t, p: pictures.pad(p, t.padding, t.fill_value, t.padding_mode))
_form(resize.Resize)(lambda t, p: pictures.resize(p, t.size, t.interpolation))
_form(warp.Perspective)(lambda t, p: pictures.perspective(p, t.start_points, t.end_points, t.interpolation))
_form(color.ToPIL)(lambda t, p: p)


@_form(color.RandomGrayscale)
def _random_grayscale(transform: color.RandomGrayscale, picture: Picture) -> Picture:
    if current_stream().uniform() >= transform.prob:
        return picture
    return pictures.grayscale(picture, 1 if picture.mode == "L" else 3)


@_form(geometry.RandomHorizontalFlip)
def _random_flip(transform: geometry.RandomHorizontalFlip, picture: Picture) -> Picture:
    return pictures.flip(picture, transform._axis) if current_stream().uniform() < transform.prob else picture


@_form(geometry.RandomCrop)
def _random_crop(transform: geometry.RandomCrop, picture: Picture) -> Picture:
    fill, border = transform.fill_value, transform.padding_mode
    if transform.padding is not None:
        picture = pictures.pad(picture, transform.padding, fill, border)
    height, width = transform.size
    if transform.pad_if_needed:
        across, down = max(0, width - picture.width), max(0, height - picture.height)
        if across or down:
            picture = pictures.pad(picture, (across, down, across, down), fill, border)
    top, left = geometry.draw_place(picture.height, picture.width, transform.size)
    return pictures.crop(picture, top, left, height, width)


@_form(geometry.RandomResizedCrop)
def _random_resized_crop(transform: geometry.RandomResizedCrop, picture: Picture) -> Picture:
    part = pictures.crop(picture, *transform.draw(picture.height, picture.width))
    return pictures.resize(part, transform.size, transform.interpolation)


@_form(warp.RandomRotation)
def _random_rotation(transform: warp.RandomRotation, picture: Picture) -> Picture:
    return pictures.rotate(
        picture, transform._angle(), transform.resample, transform.expand, transform.center, transform.fill_value
    )


@_form(warp.RandomAffine)
def _random_affine(transform: warp.RandomAffine, picture: Picture) -> Picture:
    matrix = transform.draw(picture.height, picture.width)
    return pictures.affine(picture, matrix, transform.resample, transform.fill_value)


@_form(warp.RandomPerspective)
def _random_perspective(transform: warp.RandomPerspective, picture: Picture) -> Picture:
    points = transform.draw(picture.height, picture.width)
    return picture if points is None else pictures.perspective(picture, *points, transform.interpolation)


@_form(enhance.RandomColorAdjust)
def _random_color_adjust(transform: enhance.RandomColorAdjust, picture: Picture) -> Picture:
    for step in transform.draw(all_four=True):
        picture = step(picture)
    return picture


@_form(composition.RandomLighting)
def _random_lighting(transform: composition.RandomLighting, picture: Picture) -> Picture:
    return pictures.lighting(picture, transform.draw())


@_form(erasing.RandomErasing)
def _random_erasing(transform: erasing.RandomErasing, picture: Picture) -> Picture:
    if current_stream().uniform() >= transform.prob:
        return picture
    raise TypeError("RandomErasing: takes an array [C, H, W], not a picture; use it after ToTensor")


def _of_arrays(transform: ImageTransform, picture: Picture) -> Any:
    raise TypeError(f"{type(transform).__name__}: takes an array, not a picture; use it after ToTensor or ToNumpy")


for _kind in (hsv.RgbToHsv, hsv.HsvToRgb, composition.LinearTransformation):
    _form(_kind)(_of_arrays)
