"""Images and the transforms of images that `image_transforms.py` measures."""

from __future__ import annotations

from typing import Any

import numpy as np

CORNERS = [(0, 0), (63, 0), (63, 63), (0, 63)]
MOVED = [(5, 3), (60, 2), (61, 62), (1, 58)]


def images() -> dict[str, Any]:
    """Return the images by name; the last ones are pictures of Pillow, and files."""
    random = np.random.default_rng(0)
    found: dict[str, Any] = {}
    for shape in ((224, 224, 3), (64, 64, 1), (1080, 1920, 3), (32, 32, 3)):
        # Smooth colours with some noise, as photographs are.
        places = np.indices(shape[:2]).sum(0)[..., None] * np.array([1, 2, 3][: shape[2]])
        image = (places // 2 + random.integers(0, 32, shape)) % 256
        for dtype in ("uint8", "float32", "uint16"):
            scale = {"uint8": 1.0, "float32": 1 / 255, "uint16": 256.0}[dtype]
            found[f"{'x'.join(map(str, shape))} {dtype}"] = (image * scale).astype(dtype)
    try:
        from PIL import Image
    except ImportError:
        return found
    found["picture"] = Image.fromarray(found["32x32x3 uint8"])
    return found


def transforms(v: Any) -> dict[str, Any]:
    """Return the transforms of a package by name."""
    kind, border = v.Inter, v.Border
    return more_transforms(v) | {
        "AdjustBrightness": v.AdjustBrightness(1.3),
        "AdjustContrast": v.AdjustContrast(1.3),
        "AdjustGamma": v.AdjustGamma(2.0),
        "AdjustHue": v.AdjustHue(0.2),
        "AdjustSaturation": v.AdjustSaturation(1.3),
        "AdjustSharpness": v.AdjustSharpness(1.7),
        "Affine": v.Affine(15, (0.1, -0.1), 1.2, (5, 3)),
        "Affine, bilinear": v.Affine(15, (0.1, -0.1), 1.2, (5, 3), kind.BILINEAR),
        "AutoAugment": v.AutoAugment(),
        "AutoAugment, CIFAR10": v.AutoAugment(v.AutoAugmentPolicy.CIFAR10),
        "AutoAugment, SVHN": v.AutoAugment(v.AutoAugmentPolicy.SVHN),
        "AutoContrast": v.AutoContrast(2.0),
        "CenterCrop": v.CenterCrop(56),
        "CenterCrop, larger": v.CenterCrop((230, 240)),
        "ConvertColor, BGR": v.ConvertColor(v.ConvertMode.COLOR_RGB2BGR),
        "ConvertColor, RGBA": v.ConvertColor(v.ConvertMode.COLOR_RGB2RGBA),
        "ConvertColor, grey": v.ConvertColor(v.ConvertMode.COLOR_RGB2GRAY),
        "Crop": v.Crop((2, 3), (50, 60)),
        "CutOut": v.CutOut(20, 2),
        "Equalize": v.Equalize(),
        "Erase": v.Erase(5, 6, 20, 30, 7),
        "FiveCrop": v.FiveCrop(32),
        "GaussianBlur 3": v.GaussianBlur(3, 0.8),
        "GaussianBlur 9": v.GaussianBlur(9, 1.7),
        "Grayscale": v.Grayscale(1),
        "Grayscale, 3": v.Grayscale(3),
        "HorizontalFlip": v.HorizontalFlip(),
        "HsvToRgb": v.HsvToRgb(True),
        "HWC2CHW": v.HWC2CHW(),
        "Invert": v.Invert(),
        "Normalize": v.Normalize([120.0], [50.0]),
        "NormalizePad": v.NormalizePad([120.0], [50.0]),
        "Pad": v.Pad(8),
        "Pad, edge": v.Pad(8, 0, border.EDGE),
        "Pad, reflected": v.Pad(8, 0, border.REFLECT),
        "PadToSize": v.PadToSize((1100, 1940)),
    }


def more_transforms(v: Any) -> dict[str, Any]:
    """Return the other transforms of a package by name."""
    kind = v.Inter
    some = [v.Invert(), v.Solarize(128), v.AdjustBrightness(1.2)]
    return {
        "Perspective": v.Perspective(CORNERS, MOVED),
        "Posterize": v.Posterize(4),
        "RandAugment": v.RandAugment(),
        "RandAugment, bilinear": v.RandAugment(2, 9, 31, kind.BILINEAR),
        "RandomAdjustSharpness": v.RandomAdjustSharpness(1.7, 1.0),
        "RandomAffine": v.RandomAffine((15, 15), (0.1, 0.1), (0.9, 1.1)),
        "RandomAutoContrast": v.RandomAutoContrast(2.0, None, 1.0),
        "RandomColor": v.RandomColor((1.3, 1.3)),
        "RandomColorAdjust": v.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
        "RandomCrop": v.RandomCrop(48),
        "RandomCrop, padded": v.RandomCrop(64, 4),
        "RandomEqualize": v.RandomEqualize(1.0),
        "RandomErasing": v.RandomErasing(1.0),
        "RandomErasing, noise": v.RandomErasing(1.0, value="random"),
        "RandomGrayscale": v.RandomGrayscale(1.0),
        "RandomHorizontalFlip": v.RandomHorizontalFlip(1.0),
        "RandomInvert": v.RandomInvert(1.0),
        "RandomLighting": v.RandomLighting(0.1),
        "RandomPerspective": v.RandomPerspective(0.3, 1.0, kind.BILINEAR),
        "RandomPosterize": v.RandomPosterize((4, 4)),
        "RandomResize": v.RandomResize((56, 60)),
        "RandomResizedCrop": v.RandomResizedCrop(56, (0.5, 0.5)),
        "RandomRotation": v.RandomRotation((30, 30)),
        "RandomSelectSubpolicy": v.RandomSelectSubpolicy([[(some[0], 1.0), (some[1], 1.0)]]),
        "RandomSharpness": v.RandomSharpness((1.7, 1.7)),
        "RandomSolarize": v.RandomSolarize((128, 255)),
        "RandomVerticalFlip": v.RandomVerticalFlip(1.0),
        "Rescale": v.Rescale(1 / 255, 0.1),
        "Resize": v.Resize((56, 60)),
        "Resize, larger": v.Resize((300, 400)),
        "Resize, nearest": v.Resize((56, 60), kind.NEAREST),
        "Resize, cubic": v.Resize((56, 60), kind.BICUBIC),
        "Resize, cubic, larger": v.Resize((300, 400), kind.BICUBIC),
        "Resize, area": v.Resize((56, 60), kind.AREA),
        "Resize, half": v.Resize(32),
        "Resize, antialias": v.Resize((56, 60), kind.ANTIALIAS),
        "ResizedCrop": v.ResizedCrop(2, 3, 40, 50, (56, 60)),
        "RgbToHsv": v.RgbToHsv(True),
        "Rotate": v.Rotate(30),
        "Rotate, bilinear": v.Rotate(30, kind.BILINEAR),
        "Rotate, cubic": v.Rotate(30, kind.BICUBIC),
        "Rotate, expanded": v.Rotate(30, expand=True),
        "SlicePatches": v.SlicePatches(2, 2),
        "Solarize": v.Solarize(128),
        "TenCrop": v.TenCrop(32),
        "ToPIL": v.ToPIL(),
        "ToTensor": v.ToTensor(),
        "ToType": v.ToType(np.float32),
        "TrivialAugmentWide": v.TrivialAugmentWide(),
        "UniformAugment": v.UniformAugment(some, 2),
        "VerticalFlip": v.VerticalFlip(),
    }


def of_files(v: Any) -> dict[str, Any]:
    """Return functions of a package that read and write files, which take an image."""
    encoded: dict[bytes, Any] = {}

    def decoded(image: Any) -> Any:
        key = image.tobytes()[:64]
        if key not in encoded:
            encoded[key] = np.frombuffer(jpeg_of(image), np.uint8)
        return v.Decode()(encoded[key])

    return {
        "Decode": decoded,
        "encode_jpeg": lambda image: len(v.encode_jpeg(image)) * 0 + 1,
        "encode_png": lambda image: len(v.encode_png(image)) * 0 + 1,
    }


_batches: dict[Any, Any] = {}


def batch_of(image: Any, planes: bool = False) -> tuple[Any, Any]:
    """Return a batch of an image and others like it, and labels; `planes` puts channels first."""
    key = image.shape, image.dtype.name, planes
    if key not in _batches:
        count = 16 if image.size < 1 << 20 else 4
        images = np.stack([np.roll(image, number, 0) for number in range(count)])
        images = np.ascontiguousarray(images.transpose(0, 3, 1, 2)) if planes else images
        _batches[key] = images, np.eye(count, dtype=np.float32)
    return _batches[key]


def of_batches(v: Any) -> dict[str, Any]:
    """Return functions of a package that mix the images of batches, which take an image."""
    formats = getattr(v, "ImageBatchFormat", None) or v.utils.ImageBatchFormat
    mixed = v.MixUpBatch(1.0)
    cut, cut_planes = v.CutMixBatch(formats.NHWC), v.CutMixBatch(formats.NCHW)
    return {
        "MixUp, batch": lambda image: v.MixUp(len(batch_of(image)[0]), 1.0)(*batch_of(image))[0],
        "MixUpBatch": lambda image: mixed(*batch_of(image))[0],
        "CutMixBatch": lambda image: cut(*batch_of(image))[0],
        "CutMixBatch, planes": lambda image: cut_planes(*batch_of(image, True))[0],
    }


def jpeg_of(image: Any) -> bytes:
    """Return a file with an image of bytes."""
    import io

    from PIL import Image

    if image.dtype != np.uint8:
        raise TypeError("files have bytes")
    Image.fromarray(image[..., 0] if image.shape[2] == 1 else image).save(file := io.BytesIO(), "jpeg", quality=90)
    return file.getvalue()
