"""What OpenCV does for transforms of images, as a program would write it."""

from __future__ import annotations

import math
import random
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


def rectangle(height: int, width: int) -> tuple[int, int, int, int]:
    """Draw (top, left, height, width) of a rectangle, as RandomErasing does."""
    while True:
        area = height * width * random.uniform(0.02, 0.33)
        aspect = math.exp(random.uniform(math.log(0.3), math.log(3.3)))
        h, w = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
        if 0 < h <= height and 0 < w <= width:
            return random.randint(0, height - h), random.randint(0, width - w), h, w


def erased_planes(image: Any) -> Any:
    top, left, height, width = rectangle(*image.shape[1:])
    result = image.copy()
    result[:, top : top + height, left : left + width] = 0
    return result


def noise(image: Any) -> Any:
    top, left, height, width = rectangle(*image.shape[1:])
    result = image.copy()
    result[:, top : top + height, left : left + width] = np.random.randn(image.shape[0], height, width)
    return result


def cut_out(image: Any) -> Any:
    result = image.copy()
    for _ in range(2):
        top, left = (random.randint(0, length - 1) - 10 for length in image.shape[:2])
        result[max(0, top) : max(0, top + 20), max(0, left) : max(0, left + 20)] = 0
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
    return cv.add(image, (*(DIRECTIONS @ (np.random.randn(3) * LIGHTS)).tolist(), 0.0))


DIRECTIONS = np.array([[-0.5675, 0.7192, 0.4009], [-0.5808, -0.0045, -0.8140], [-0.5836, -0.6948, 0.4203]])
LIGHTS = 0.1 * np.array([55.46, 4.794, 1.148])


def adjusted(image: Any) -> Any:
    return hue(saturated(contrast(bright(image))))


def centred(image: Any) -> Any:
    if image.shape[0] < 56:
        return padded_to(56, 56)(image)
    top, left = (image.shape[0] - 56) // 2, (image.shape[1] - 56) // 2
    return image[top : top + 56, left : left + 56].copy()


def cropped(size: int) -> Function:
    def function(image: Any) -> Any:
        height, width = image.shape[:2]
        if min(height, width) < size:
            raise ValueError("smaller")
        top, left = random.randint(0, height - size), random.randint(0, width - size)
        return image[top : top + size, left : left + size].copy()

    return function


def sometimes(function: Function) -> Function:
    return lambda image: function(image) if random.random() < 1.0 else image


def cropped_and_resized(image: Any) -> Any:
    area = image.shape[0] * image.shape[1] * random.uniform(0.5, 0.5)
    while True:
        aspect = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        h, w = round(math.sqrt(area / aspect)), round(math.sqrt(area * aspect))
        if h <= image.shape[0] and w <= image.shape[1]:
            break
    top, left = random.randint(0, image.shape[0] - h), random.randint(0, image.shape[1] - w)
    return cv.resize(image[top : top + h, left : left + w], (56, 56))


KINDS = (cv.INTER_NEAREST, cv.INTER_LINEAR, cv.INTER_CUBIC, cv.INTER_AREA)


def resized_somehow(image: Any) -> Any:
    return cv.resize(image, (60, 56), interpolation=random.choice(KINDS))


def turned_somehow(image: Any) -> Any:
    height, width = image.shape[:2]
    matrix = cv.getRotationMatrix2D(
        ((width - 1) / 2, (height - 1) / 2), random.uniform(15, 15), random.uniform(0.9, 1.1)
    )
    matrix[0, 2] += random.uniform(-0.1, 0.1) * width
    matrix[1, 2] += random.uniform(-0.1, 0.1) * height
    return cv.warpAffine(image, matrix, (width, height), flags=cv.INTER_NEAREST)


def tilted_somehow(image: Any) -> Any:
    height, width = image.shape[:2]
    right, bottom = width - 1, height - 1
    across, down = int(0.3 * (width // 2)), int(0.3 * (height // 2))
    ends = [
        (abs(x - random.randint(0, across)), abs(y - random.randint(0, down)))
        for x, y in ((0, 0), (right, 0), (right, bottom), (0, bottom))
    ]
    corners = np.float32([(0, 0), (right, 0), (right, bottom), (0, bottom)])
    return cv.warpPerspective(image, cv.getPerspectiveTransform(corners, np.float32(ends)), (width, height))


def mixed(image: Any) -> Any:
    images = batch_of(image)[0]
    return np.stack([cv.addWeighted(one, 0.4, other, 0.6, 0) for one, other in zip(images, images[::-1])])


def cut(image: Any) -> Any:
    images = batch_of(image)[0]
    result = images.copy()
    for number, other in enumerate(np.random.permutation(len(images))):
        side = (1 - random.betavariate(1.0, 1.0)) ** 0.5
        parts = []
        for length in image.shape[:2]:
            middle, half = random.randint(0, length - 1), int(length * side) // 2
            parts.append(slice(max(0, middle - half), min(length, middle + half)))
        result[number][tuple(parts)] = images[other][tuple(parts)]
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
    "CutOut": cut_out,
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
    "RandomCrop": cropped(48),
    "RandomCrop, padded": lambda image: cropped(64)(padded(4)(image)),
    "RandomErasing": erased_planes,
    "RandomErasing, noise": noise,
    "RandomLighting": lit,
    "RandomAffine": turned_somehow,
    "RandomPerspective": tilted_somehow,
    "RandomResize": resized_somehow,
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
        ("Posterize", ("RandomPosterize",)),
        ("Rotate", ("RandomRotation",)),
        ("Solarize", ("RandomSolarize",)),
    ):
        found |= dict.fromkeys(same, sometimes(found[name]))
    return found
