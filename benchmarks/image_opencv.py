"""What OpenCV does for transforms of images, as a program would write it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2 as cv
import numpy as np
from image_cases import CORNERS, MOVED, batch_of, jpeg_of

Function = Callable[[Any], Any]

cv.setNumThreads(1)
VALUES = np.arange(256)
TABLES = {
    "AdjustGamma": np.clip((256 - 1e-3) * (VALUES / 255) ** 2, 0, 255).astype(np.uint8),
    "Solarize": np.where(VALUES >= 128, 255 - VALUES, VALUES).astype(np.uint8),
    "Posterize": (VALUES & 0xF0).astype(np.uint8),
}


def grey(image: Any) -> Any:
    return cv.cvtColor(cv.cvtColor(image, cv.COLOR_RGB2GRAY), cv.COLOR_GRAY2RGB)


def saturated(image: Any) -> Any:
    return cv.addWeighted(image, 1.3, grey(image), -0.3, 0)


def contrast(image: Any) -> Any:
    mean = cv.mean(cv.cvtColor(image, cv.COLOR_RGB2GRAY))[0]
    return cv.addWeighted(image, 1.3, image, 0, -0.3 * (np.floor(mean) if image.dtype == np.uint8 else mean))


def hue(image: Any) -> Any:
    if image.dtype != np.uint8:
        raise TypeError("bytes only")
    turned = cv.cvtColor(image, cv.COLOR_RGB2HSV_FULL)
    turned[..., 0] += 51
    return cv.cvtColor(turned, cv.COLOR_HSV2RGB_FULL)


KERNEL = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) / 13


def sharpened(image: Any) -> Any:
    return cv.addWeighted(image, 1.7, cv.filter2D(image, -1, KERNEL), -0.7, 0)


def bright(image: Any) -> Any:
    return cv.convertScaleAbs(image, alpha=1.3) if image.dtype == np.uint8 else cv.multiply(image, (1.3,) * 4)


def inverted(image: Any) -> Any:
    return cv.bitwise_not(image) if image.dtype == np.uint8 else cv.subtract((255.0,) * 4, image)


def auto_contrast(image: Any) -> Any:
    parts = []
    for channel in cv.split(image):
        counts = np.cumsum(cv.calcHist([channel], [0], None, [256], [0, 256]))
        low, high = np.searchsorted(counts, counts[-1] * np.array([0.02, 0.98]))
        scale = 255 / max(1, high - low)
        parts.append(cv.LUT(channel, np.clip((VALUES - low) * scale, 0, 255).astype(np.uint8)))
    return cv.merge(parts)


def equalized(image: Any) -> Any:
    return cv.merge([cv.equalizeHist(channel) for channel in cv.split(image)])


def warped(degrees: float, flags: int = cv.INTER_NEAREST, larger: float = 1.0) -> Function:
    def function(image: Any) -> Any:
        height, width = image.shape[:2]
        matrix = cv.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1)
        return cv.warpAffine(image, matrix, (round(width * larger), round(height * larger)), flags=flags)

    return function


TILT = cv.getPerspectiveTransform(np.float32(CORNERS), np.float32(MOVED))


def tilted(image: Any) -> Any:
    return cv.warpPerspective(image, TILT, image.shape[1::-1])


def padded(sides: int, border: int = cv.BORDER_CONSTANT) -> Function:
    return lambda image: cv.copyMakeBorder(image, sides, sides, sides, sides, border)


def padded_to(height: int, width: int) -> Function:
    def function(image: Any) -> Any:
        down, across = height - image.shape[0], width - image.shape[1]
        if min(down, across) < 0:
            raise ValueError("larger")
        return cv.copyMakeBorder(
            image, down // 2, down - down // 2, across // 2, across - across // 2, cv.BORDER_CONSTANT
        )

    return function


def resized(size: tuple[int, int], kind: int = cv.INTER_LINEAR) -> Function:
    return lambda image: cv.resize(image, size[::-1], interpolation=kind)


def normalized(image: Any) -> Any:
    result = cv.subtract(image, (120.0,) * 4, dtype=cv.CV_32F)
    return cv.multiply(result, (1 / 50.0,) * 4, result)


def five(image: Any) -> Any:
    height, width = image.shape[:2]
    places = [(0, 0), (0, width - 32), (height - 32, 0), (height - 32, width - 32)]
    places.append(((height - 32) // 2, (width - 32) // 2))
    return [image[y : y + 32, x : x + 32].copy() for y, x in places]


def erased(image: Any) -> Any:
    result = image.copy()
    result[5:25, 6:36] = 7
    return result


def erased_planes(image: Any) -> Any:
    result = image.copy()
    result[:, 5:35, 6:36] = 0
    return result


def noise(image: Any) -> Any:
    result = image.copy()
    result[:, 5:35, 6:36] = np.random.randn(*result[:, 5:35, 6:36].shape)
    return result


def patches(image: Any) -> Any:
    h, w = image.shape[0] // 2, image.shape[1] // 2
    return [image[y : y + h, x : x + w].copy() for y in (0, h) for x in (0, w)]


def planes(image: Any) -> Any:
    return np.stack(cv.split(image))


def tensor(image: Any) -> Any:
    return planes(cv.multiply(image, (1 / 255,) * 4, dtype=cv.CV_32F))


def padded_normalized(image: Any) -> Any:
    result = normalized(image)
    return cv.merge([*cv.split(result), np.zeros(result.shape[:2], np.float32)])


def lit(image: Any) -> Any:
    return cv.add(image, (3.0, -2.0, 1.0, 0.0))


def adjusted(image: Any) -> Any:
    return hue(saturated(contrast(bright(image))))


def centred(image: Any) -> Any:
    top, left = (image.shape[0] - 56) // 2, (image.shape[1] - 56) // 2
    return image[top : top + 56, left : left + 56].copy()


def cropped_and_resized(image: Any) -> Any:
    height, width = (int(length * 0.5**0.5) for length in image.shape[:2])
    return cv.resize(image[:height, :width], (56, 56))


def mixed(image: Any) -> Any:
    images = batch_of(image)[0]
    return np.stack([cv.addWeighted(one, 0.4, other, 0.6, 0) for one, other in zip(images, images[::-1])])


def cut(image: Any) -> Any:
    images = batch_of(image)[0]
    height, width = image.shape[0] // 4, image.shape[1] // 4
    result = images.copy()
    for number in range(len(images)):
        result[number, height:-height, width:-width] = images[-number, height:-height, width:-width]
    return result


def solarized(image: Any) -> Any:
    return cv.LUT(image, TABLES["Solarize"])


_files: dict[bytes, Any] = {}


def decode(image: Any) -> Any:
    key = image.tobytes()[:64]
    if key not in _files:
        _files[key] = np.frombuffer(jpeg_of(image), np.uint8)
    return cv.imdecode(_files[key], cv.IMREAD_COLOR_RGB)


_FIRST: dict[str, Function] = {
    "Decode": decode,
    "encode_jpeg": lambda image: len(cv.imencode(".jpg", image, [cv.IMWRITE_JPEG_QUALITY, 75])[1]) * 0 + 1,
    "encode_png": lambda image: len(cv.imencode(".png", image, [cv.IMWRITE_PNG_COMPRESSION, 6])[1]) * 0 + 1,
    "AdjustBrightness": bright,
    "AdjustContrast": contrast,
    "AdjustHue": hue,
    "AdjustSaturation": saturated,
    "AdjustSharpness": sharpened,
    "Affine": warped(15),
    "Affine, bilinear": warped(15, cv.INTER_LINEAR),
    "AutoContrast": auto_contrast,
    "CenterCrop": centred,
    "CenterCrop, larger": padded_to(230, 240),
    "MixUpBatch": mixed,
    "CutMixBatch": cut,
    "ConvertColor, BGR": lambda image: cv.cvtColor(image, cv.COLOR_RGB2BGR),
    "ConvertColor, RGBA": lambda image: cv.cvtColor(image, cv.COLOR_RGB2RGBA),
    "ConvertColor, grey": lambda image: cv.cvtColor(image, cv.COLOR_RGB2GRAY),
    "Crop": lambda image: image[2:52, 3:63].copy(),
    "CutOut": lambda image: erased(image),
    "Equalize": equalized,
    "Erase": erased,
    "FiveCrop": five,
}
_SECOND: dict[str, Function] = {
    "GaussianBlur 3": lambda image: cv.GaussianBlur(image, (3, 3), 0.8),
    "GaussianBlur 9": lambda image: cv.GaussianBlur(image, (9, 9), 1.7),
    "Grayscale": lambda image: cv.cvtColor(image, cv.COLOR_RGB2GRAY),
    "Grayscale, 3": grey,
    "HorizontalFlip": lambda image: cv.flip(image, 1),
    "HsvToRgb": lambda image: cv.cvtColor(image, cv.COLOR_HSV2RGB),
    "HWC2CHW": planes,
    "Invert": inverted,
    "Normalize": normalized,
    "NormalizePad": padded_normalized,
    "Pad": padded(8),
    "Pad, edge": padded(8, cv.BORDER_REPLICATE),
    "Pad, reflected": padded(8, cv.BORDER_REFLECT_101),
    "PadToSize": padded_to(1100, 1940),
    "Perspective": tilted,
    "RandomColorAdjust": adjusted,
    "RandomCrop": lambda image: image[3:51, 5:53].copy(),
    "RandomCrop, padded": lambda image: padded(4)(image)[3:67, 5:69].copy(),
    "RandomErasing": erased_planes,
    "RandomErasing, noise": noise,
    "RandomLighting": lit,
    "RandomResizedCrop": cropped_and_resized,
    "RandomSelectSubpolicy": lambda image: solarized(inverted(image)),
    "Rescale": lambda image: cv.addWeighted(image, 1 / 255, image, 0, 0.1, dtype=cv.CV_32F),
    "Resize": resized((56, 60)),
    "Resize, larger": resized((300, 400)),
    "Resize, nearest": resized((56, 60), cv.INTER_NEAREST),
    "Resize, cubic": resized((56, 60), cv.INTER_CUBIC),
    "Resize, cubic, larger": resized((300, 400), cv.INTER_CUBIC),
    "Resize, area": resized((56, 60), cv.INTER_AREA),
    "Resize, half": lambda image: cv.resize(image, (32 * image.shape[1] // image.shape[0], 32)),
    "ResizedCrop": lambda image: cv.resize(image[2:42, 3:53], (60, 56)),
    "RgbToHsv": lambda image: cv.cvtColor(image, cv.COLOR_RGB2HSV),
    "Rotate": warped(30),
    "Rotate, bilinear": warped(30, cv.INTER_LINEAR),
    "Rotate, cubic": warped(30, cv.INTER_CUBIC),
    "Rotate, expanded": warped(30, cv.INTER_NEAREST, 1.366),
    "SlicePatches": patches,
    "TenCrop": lambda image: [*five(image), *five(cv.flip(image, 1))],
    "ToTensor": tensor,
    "ToType": lambda image: image.astype(np.float32),
    "VerticalFlip": lambda image: cv.flip(image, 0),
}


def functions() -> dict[str, Function]:
    """Return the functions by the names of transforms."""
    found = _FIRST | _SECOND
    found |= {name: lambda image, table=table: cv.LUT(image, table) for name, table in TABLES.items()}
    for name, same in (
        ("AdjustSharpness", ("RandomAdjustSharpness", "RandomSharpness")),
        ("AutoContrast", ("RandomAutoContrast",)),
        ("AdjustSaturation", ("RandomColor",)),
        ("Equalize", ("RandomEqualize",)),
        ("Grayscale, 3", ("RandomGrayscale",)),
        ("HorizontalFlip", ("RandomHorizontalFlip",)),
        ("VerticalFlip", ("RandomVerticalFlip",)),
        ("Invert", ("RandomInvert",)),
        ("Affine", ("RandomAffine",)),
        ("Perspective", ("RandomPerspective",)),
        ("Posterize", ("RandomPosterize",)),
        ("Rotate", ("RandomRotation",)),
        ("Solarize", ("RandomSolarize",)),
        ("Resize, cubic", ("RandomResize",)),
    ):
        found |= dict.fromkeys(same, found[name])
    return found
