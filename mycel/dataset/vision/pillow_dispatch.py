"""Table of the functions that operations call for images of Pillow instead of arrays.

They return images of Pillow again.

Operations that are not listed compute on the image's array. Random ones draw as they do for arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.vision import color, composition, enhance, erasing, geometry, hsv, pillow_operations, resize, warp
from mycel.dataset.vision.base import ImageTransform, picture_forms

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

T = TypeVar("T", bound=ImageTransform)


def _form(kind: type[T]) -> Callable[[Callable[[T, Picture], Any]], Callable[[T, Picture], Any]]:
    def keep(function: Callable[[T, Picture], Any]) -> Callable[[T, Picture], Any]:
        picture_forms[kind] = function
        return function

    return keep


_form(enhance.AdjustGamma)(lambda t, p: pillow_operations.gamma(p, t.gamma, t.gain))
_form(enhance.AdjustHue)(lambda t, p: pillow_operations.hue(p, t.hue_factor))
_form(color.AdjustBrightness)(lambda t, p: pillow_operations.brightness(p, t.factor))
_form(color.AdjustContrast)(lambda t, p: pillow_operations.contrast(p, t.factor))
_form(color.AdjustSaturation)(lambda t, p: pillow_operations.saturation(p, t.factor))
_form(enhance.RandomSharpness)(lambda t, p: pillow_operations.sharpness(p, current_stream().uniform(*t.degrees)))
_form(enhance.RandomColor)(lambda t, p: pillow_operations.saturation(p, current_stream().uniform(*t.degrees)))
_form(enhance.AutoContrast)(lambda t, p: pillow_operations.auto_contrast(p, t.cutoff, t.ignore or None))
_form(enhance.Equalize)(lambda t, p: pillow_operations.equalize(p))
_form(color.Invert)(lambda t, p: pillow_operations.invert(p))
_form(geometry.CenterCrop)(lambda t, p: pillow_operations.center_crop(p, t.size))
_form(composition.FiveCrop)(lambda t, p: pillow_operations.five_crop(p, t.size))
_form(composition.TenCrop)(lambda t, p: pillow_operations.ten_crop(p, t.size, t.use_vertical_flip))
_form(color.Grayscale)(lambda t, p: pillow_operations.grayscale(p, t.num_output_channels))
_form(geometry.Pad)(lambda t, p: pillow_operations.pad(p, t.padding, t.fill_value, t.padding_mode))
_form(resize.Resize)(lambda t, p: pillow_operations.resize(p, t.size, t.interpolation))
_form(warp.Perspective)(lambda t, p: pillow_operations.perspective(p, t.start_points, t.end_points, t.interpolation))
_form(color.ToPIL)(lambda t, p: p)


@_form(color.RandomGrayscale)
def _random_grayscale(transform: color.RandomGrayscale, picture: Picture) -> Picture:
    if current_stream().uniform() >= transform.prob:
        return picture
    return pillow_operations.grayscale(picture, 1 if picture.mode == "L" else 3)


@_form(geometry.RandomHorizontalFlip)
def _random_flip(transform: geometry.RandomHorizontalFlip, picture: Picture) -> Picture:
    return pillow_operations.flip(picture, transform._axis) if current_stream().uniform() < transform.prob else picture


@_form(geometry.RandomCrop)
def _random_crop(transform: geometry.RandomCrop, picture: Picture) -> Picture:
    fill, border = transform.fill_value, transform.padding_mode
    if transform.padding is not None:
        picture = pillow_operations.pad(picture, transform.padding, fill, border)
    height, width = transform.size
    if transform.pad_if_needed:
        across, down = max(0, width - picture.width), max(0, height - picture.height)
        if across or down:
            picture = pillow_operations.pad(picture, (across, down, across, down), fill, border)
    top, left = geometry.draw_place(picture.height, picture.width, transform.size)
    return pillow_operations.crop(picture, top, left, height, width)


@_form(geometry.RandomResizedCrop)
def _random_resized_crop(transform: geometry.RandomResizedCrop, picture: Picture) -> Picture:
    part = pillow_operations.crop(picture, *transform.draw(picture.height, picture.width))
    return pillow_operations.resize(part, transform.size, transform.interpolation)


@_form(warp.RandomRotation)
def _random_rotation(transform: warp.RandomRotation, picture: Picture) -> Picture:
    return pillow_operations.rotate(
        picture, transform._angle(), transform.resample, transform.expand, transform.center, transform.fill_value
    )


@_form(warp.RandomAffine)
def _random_affine(transform: warp.RandomAffine, picture: Picture) -> Picture:
    matrix = transform.draw(picture.height, picture.width)
    return pillow_operations.affine(picture, matrix, transform.resample, transform.fill_value)


@_form(warp.RandomPerspective)
def _random_perspective(transform: warp.RandomPerspective, picture: Picture) -> Picture:
    points = transform.draw(picture.height, picture.width)
    return picture if points is None else pillow_operations.perspective(picture, *points, transform.interpolation)


@_form(enhance.RandomColorAdjust)
def _random_color_adjust(transform: enhance.RandomColorAdjust, picture: Picture) -> Picture:
    for step in transform.draw(all_four=True):
        picture = step(picture)
    return picture


@_form(composition.RandomLighting)
def _random_lighting(transform: composition.RandomLighting, picture: Picture) -> Picture:
    return pillow_operations.lighting(picture, transform.draw())


@_form(erasing.RandomErasing)
def _random_erasing(transform: erasing.RandomErasing, picture: Picture) -> Picture:
    if current_stream().uniform() >= transform.prob:
        return picture
    raise TypeError("RandomErasing: takes an array [C, H, W], not a picture; use it after ToTensor")


def _of_arrays(transform: ImageTransform, picture: Picture) -> Any:
    raise TypeError(f"{type(transform).__name__}: takes an array, not a picture; use it after ToTensor or ToNumpy")


for _kind in (hsv.RgbToHsv, hsv.HsvToRgb, composition.LinearTransformation):
    _form(_kind)(_of_arrays)
