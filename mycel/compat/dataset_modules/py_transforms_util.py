"""`mindspore.dataset.vision.py_transforms_util`: functions on images that libraries borrow.

Most take an image of Pillow and give one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mycel.dataset import vision
from mycel.dataset.rows.column_blocks import is_picture
from mycel.dataset.vision import Border, Inter, pillow_operations
from mycel.dataset.vision.geometry import draw_rectangle
from mycel.dataset.vision.warp import affine_matrix

__all__ = [
    "adjust_brightness",
    "adjust_contrast",
    "adjust_gamma",
    "adjust_hue",
    "adjust_saturation",
    "augment_error_message",
    "auto_contrast",
    "center_crop",
    "crop",
    "decode",
    "equalize",
    "erase",
    "five_crop",
    "get_erase_params",
    "grayscale",
    "horizontal_flip",
    "hsv_to_rgbs",
    "hwc_to_chw",
    "invert_color",
    "is_numpy",
    "is_pil",
    "linear_transform",
    "normalize",
    "pad",
    "perspective",
    "random_affine",
    "random_color",
    "random_color_adjust",
    "random_crop",
    "random_horizontal_flip",
    "random_lighting",
    "random_resize_crop",
    "random_rotation",
    "random_sharpness",
    "random_vertical_flip",
    "resize",
    "rgb_to_hsvs",
    "rotate",
    "ten_crop",
    "to_pil",
    "to_tensor",
    "to_type",
    "uniform_augment",
    "vertical_flip",
]

augment_error_message = "img should be PIL image. Got {}. Use Decode() for encoded data or ToPIL() for decoded data."


def is_pil(img: Any) -> bool:
    """Return whether an image is one of Pillow."""
    return is_picture(img)


def is_numpy(img: Any) -> bool:
    """Return whether an image is a NumPy array."""
    return isinstance(img, np.ndarray)


def _picture(img: Any) -> Any:
    if not is_pil(img):
        raise TypeError(augment_error_message.format(type(img)))
    return img


def hwc_to_chw(img: Any) -> Any:
    """Return an image [H, W, C] as [C, H, W]; an array with another number of dimensions is
    unchanged.

    Raises TypeError for anything but an array.
    """
    if not is_numpy(img):
        raise TypeError(f"hwc_to_chw: img must be a NumPy array, not {type(img).__name__}")
    return img.transpose(2, 0, 1) if img.ndim == 3 else img


def _by(make: Callable[..., Any], doc: str) -> Callable[..., Any]:
    """Return a function of a picture that applies the transform that `make` makes of the rest."""

    def apply(img: Any, *args: Any, **kwargs: Any) -> Any:
        return make(*args, **kwargs)(_picture(img))

    apply.__doc__ = doc
    return apply


adjust_brightness = _by(vision.AdjustBrightness, "Return a blend with black.")
adjust_contrast = _by(vision.AdjustContrast, "Return a blend with the mean grey.")
adjust_saturation = _by(vision.AdjustSaturation, "Return a blend with the greys.")
adjust_hue = _by(vision.AdjustHue, "Return the picture with its hue turned.")
adjust_gamma = _by(vision.AdjustGamma, "Return `gain * picture ** gamma`.")
auto_contrast = _by(vision.AutoContrast, "Return the picture with its contrast stretched.")
equalize = _by(vision.Equalize, "Return the picture with an even histogram.")
invert_color = _by(vision.Invert, "Return the negative.")
center_crop = _by(vision.CenterCrop, "Return the middle (height, width).")
five_crop = _by(vision.FiveCrop, "Return the crops at the corners and in the middle.")
ten_crop = _by(vision.TenCrop, "Return the crops of `five_crop` and those of the flipped picture.")
grayscale = _by(vision.Grayscale, "Return the greys.")
pad = _by(vision.Pad, "Return the picture with more pixels at its sides.")
resize = _by(vision.Resize, "Return the picture in another size.")
perspective = _by(vision.Perspective, "Return the picture, warped by four points.")
random_horizontal_flip = _by(vision.RandomHorizontalFlip, "Return the picture, mirrored at random.")
random_vertical_flip = _by(vision.RandomVerticalFlip, "Return the picture, upside down at random.")
random_color_adjust = _by(vision.RandomColorAdjust, "Return the picture in random colours.")
random_color = _by(vision.RandomColor, "Return the picture with random saturation.")
random_sharpness = _by(vision.RandomSharpness, "Return the picture, sharpened at random.")
random_rotation = _by(vision.RandomRotation, "Return the picture, rotated at random.")
random_lighting = _by(vision.RandomLighting, "Return the picture in random light.")
random_resize_crop = _by(vision.RandomResizedCrop, "Return a random part in another size.")


def random_affine(
    img: Any,
    angle: float,
    translations: Sequence[float],
    scale: float,
    shear: Sequence[float],
    resample: Any,
    fill_value: Any = 0,
) -> Any:
    """Return the picture `img`, moved by these amounts, which are drawn already.

    * `angle`: the rotation in degrees.
    * `translations`: the pixels (x, y).
    * `scale`: the factor.
    * `shear`: the angles of the shear.
    * `resample`: the interpolation.
    * `fill_value`: the value of what lies outside.
    """
    picture = _picture(img)
    matrix = affine_matrix((picture.height, picture.width), angle, translations, scale, shear)
    return pillow_operations.affine(picture, matrix, resample, fill_value)


def random_crop(img: Any, size: Any, padding: Any, pad_if_needed: bool, fill_value: Any, padding_mode: Border) -> Any:
    """Return a random part of `img`; the parameters are those of `vision.RandomCrop`.

    They are `size`, `padding`, `pad_if_needed`, `fill_value` and `padding_mode`.
    """
    return vision.RandomCrop(size, padding, pad_if_needed, fill_value, padding_mode)(_picture(img))


def crop(img: Any, top: int, left: int, height: int, width: int) -> Any:
    """Return the part of `img` of `height` and `width` from (`top`, `left`) on."""
    return pillow_operations.crop(_picture(img), top, left, height, width)


def horizontal_flip(img: Any) -> Any:
    """Return the picture, mirrored."""
    return pillow_operations.flip(_picture(img), 1)


def vertical_flip(img: Any) -> Any:
    """Return the picture upside down."""
    return pillow_operations.flip(_picture(img), 0)


def rotate(img: Any, angle: float, resample: Inter, expand: bool, center: Any, fill_value: Any) -> Any:
    """Return the picture `img`, rotated counter-clockwise.

    * `angle`: the angle in degrees.
    * `resample`, `expand`, `center`, `fill_value`: as in `vision.RandomRotation`.
    """
    return pillow_operations.rotate(_picture(img), angle, resample, expand, center, fill_value)


def decode(img: Any) -> Any:
    """Return the picture in the content of a file."""
    return vision.Decode(to_pil=True)(img)


def to_pil(img: Any) -> Any:
    """Return the picture of an array."""
    return vision.ToPIL()(img)


def to_tensor(img: Any, output_type: Any) -> Any:
    """Return the array [C, H, W] of 0 .. 1 of a picture or an array."""
    return vision.ToTensor(output_type)(img)


def to_type(img: Any, output_type: Any) -> Any:
    """Return an array in another type; raise TypeError for anything but an array."""
    if not is_numpy(img):
        raise TypeError(f"img should be NumPy image. Got {type(img)}.")
    return img.astype(output_type)


def normalize(
    img: Any, mean: Sequence[float], std: Sequence[float], pad_channel: bool = False, dtype: str = "float32"
) -> Any:
    """Return `(img - mean) / std` for [C, H, W].

    * `img`: the array.
    * `mean`, `std`: a number for each channel, or one.
    * `pad_channel`: whether a channel of zeros follows.
    * `dtype`: the type of the result then.
    """
    if not is_numpy(img):
        raise TypeError(f"img should be NumPy image. Got {type(img)}.")
    if pad_channel:
        return vision.NormalizePad(mean, std, dtype, is_hwc=False)(img)
    return vision.Normalize(mean, std, is_hwc=False)(img)


def linear_transform(np_img: Any, transformation_matrix: Any, mean_vector: Any) -> Any:
    """Return the product of a matrix and an image as a vector."""
    return vision.LinearTransformation(transformation_matrix, mean_vector)(np_img)


def rgb_to_hsvs(np_rgb_imgs: Any, is_hwc: bool) -> Any:
    """Return the hue, saturation and value of one image or several."""
    return vision.RgbToHsv(is_hwc)(np_rgb_imgs)


def hsv_to_rgbs(np_hsv_imgs: Any, is_hwc: bool) -> Any:
    """Return the colours of one image of hue, saturation and value, or of several."""
    return vision.HsvToRgb(is_hwc)(np_hsv_imgs)


def get_erase_params(
    np_img: Any, scale: Sequence[float], ratio: Sequence[float], value: Any, bounded: bool, max_attempts: int
) -> tuple[int, int, int, int, Any]:
    """Draw (top, left, height, width, value) of a rectangle to erase in `np_img`, [C, H, W].

    * `scale`, `ratio`, `max_attempts`: as in `vision.RandomErasing`.
    * `value`: the value, which is returned.
    * `bounded`: must be True; rectangles lie within the image.
    """
    height, width = np_img.shape[1:3]
    found = draw_rectangle(height, width, scale, ratio, max_attempts)
    return (0, 0, height, width, np_img) if found is None else (*found, value)


def erase(np_img: Any, i: int, j: int, height: int, width: int, erase_value: Any, inplace: bool = False) -> Any:
    """Return `np_img`, [C, H, W], with a rectangle set to a value.

    * `i`, `j`, `height`, `width`: the rectangle's top, left, and size.
    * `erase_value`: the value.
    * `inplace`: whether to write into the image itself.
    """
    result = np_img if inplace else np_img.copy()
    result[:, i : i + height, j : j + width] = erase_value
    return result


def uniform_augment(img: Any, transforms: Sequence[Callable[..., Any]], num_ops: int) -> Any:
    """Return the picture with some of the transforms applied at random."""
    return vision.UniformAugment(transforms, num_ops)(img)
