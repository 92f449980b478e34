"""Image operations called with every kind of image, and what comes back, as JSON."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from PIL import Image

COLOURS = (np.arange(6 * 7 * 3).reshape(6, 7, 3) * 37 % 251).astype(np.uint8)
GREY = COLOURS[..., 0].copy()
ALPHA = np.concatenate([COLOURS, 255 - COLOURS[..., :1]], 2)


def content(form: str = "PNG") -> bytes:
    """Return the content of a file with the coloured picture."""
    file = io.BytesIO()
    Image.fromarray(COLOURS).save(file, form)
    return file.getvalue()


KINDS: dict[str, Any] = {
    "RGB picture": lambda: Image.fromarray(COLOURS),
    "L picture": lambda: Image.fromarray(GREY),
    "RGBA picture": lambda: Image.fromarray(ALPHA),
    "uint8 HWC": COLOURS.copy,
    "uint8 HW": GREY.copy,
    "uint8 HW1": lambda: GREY[..., None].copy(),
    "uint8 HW4": ALPHA.copy,
    "float32 HWC": lambda: COLOURS.astype(np.float32) / 256,
    "float64 HWC": lambda: COLOURS.astype(np.float64) / 256,
    "float32 HW": lambda: GREY.astype(np.float32) / 256,
    "int32 HWC": lambda: COLOURS.astype(np.int32),
    "uint8 NHWC": lambda: np.stack([COLOURS, COLOURS[::-1]]),
    "bytes": content,
    "uint8 of a file": lambda: np.frombuffer(content(), np.uint8).copy(),
    "list": lambda: [1, 2, 3],
    "nested list": lambda: [[1, 2], [3, 4]],
    "number": lambda: 3,
    "text": lambda: "text",
}

# Those whose values are compared; what a picture's mode gives is asked of Pillow.
CERTAIN = """
AdjustBrightness(1.5) AdjustContrast(0.5) AdjustGamma(2.0) AdjustHue(0.2) AdjustSaturation(0.5)
AdjustSharpness(2.0) Affine(15,(0.1,0.1),1.1,(1,1)) AutoContrast() AutoContrast(10.0,[3])
CenterCrop(4) CenterCrop((4,9)) ConvertColor(V.ConvertMode.COLOR_RGB2BGR) Crop((1,2),(3,4)) Decode()
Decode(True) Equalize() Erase(1,1,2,2) FiveCrop(3) GaussianBlur(3) Grayscale() Grayscale(3) HWC2CHW()
HorizontalFlip() HsvToRgb(True) Invert() Normalize([0.5,0.5,0.5],[0.1,0.2,0.3]) Normalize([9.0],[2.0])
NormalizePad([0.5,0.5,0.5],[0.1,0.2,0.3]) Pad(1) Pad((1,2),7) Pad([1,2,3,4],(1,2,3)) Pad(1,0,V.Border.REFLECT)
Pad(1,0,V.Border.EDGE) Pad(1,0,V.Border.SYMMETRIC) PadToSize(10)
Perspective([[0,0],[6,0],[6,5],[0,5]],[[1,0],[5,1],[6,5],[0,4]]) Posterize(3)
RandomColorAdjust() RandomCrop((6,7)) RandomGrayscale(1.0) RandomGrayscale(0.0) RandomHorizontalFlip(1.0)
RandomHorizontalFlip(0.0) RandomInvert(1.0) RandomRotation((90,90)) RandomVerticalFlip(1.0)
RandomColor((1.0,1.0)) RandomSharpness((1.0,1.0)) RandomErasing(0.0) RandomPerspective(0.5,0.0) Rescale(2.0,1.0)
Resize(4) Resize((3,5)) Resize((9,8),V.Inter.NEAREST) Resize((3,4),V.Inter.BICUBIC) Resize((9,8),V.Inter.ANTIALIAS)
ResizedCrop(1,1,3,3,5) RgbToHsv(True) Rotate(90) Rotate(30,V.Inter.BILINEAR,True)
SlicePatches(2,2) Solarize((50,100)) TenCrop(3) TenCrop(3,True) ToNumpy() ToPIL() ToTensor() ToTensor(np.float16)
ToType(np.float32) VerticalFlip() RandomSelectSubpolicy([[(V.Invert(),1.0)]])
""".split()
DRAWN = """
AutoAugment() CutOut(2) RandAugment() RandomAdjustSharpness(2.0) RandomAffine(15) RandomAutoContrast() RandomColor()
RandomColorAdjust(0.5,0.5,0.5,0.2) RandomCrop(4) RandomCrop(9,1,True) RandomCropDecodeResize(4) RandomEqualize()
RandomErasing(1.0) RandomLighting(0.1) RandomPerspective(0.5,1.0) RandomPosterize((2,5)) RandomResizedCrop(4)
RandomRotation(30) RandomSharpness() RandomSolarize() TrivialAugmentWide() RandomResize(4)
UniformAugment([V.Invert()],1)
""".split()


def made(V: Any, written: str) -> Any:
    """Return the operation of this module `vision` that an expression writes."""
    return eval(f"V.{written}", {"V": V, "np": np})


def described(value: Any, values: bool) -> Any:
    """Return the kind of a result, its type, its shape, and its values if they are wanted."""
    if isinstance(value, tuple):
        return ["tuple", [described(v, values) for v in value]]
    if isinstance(value, Image.Image):
        array = np.asarray(value)
        return ["picture", value.mode, list(array.shape), *([array.tobytes().hex()] if values else [])]
    if isinstance(value, np.ndarray):
        kept = value.ravel().astype(np.float64).round(4).tolist() if value.dtype.kind == "f" else None
        held = [value.tobytes().hex() if kept is None else kept] if values else []
        return ["array", str(value.dtype), list(value.shape), *held]
    return [type(value).__name__]


def answer(V: Any, written: str, kind: str) -> Any:
    """Return what an operation gives for one kind of image, or the class of its error."""
    operation = made(V, written)
    try:
        return described(operation(KINDS[kind]()), written in CERTAIN)
    except Exception as error:
        return "!" + type(error).__name__


def answers(V: Any) -> dict[str, dict[str, Any]]:
    """Return the answers of all operations to all kinds."""
    return {written: {kind: answer(V, written, kind) for kind in KINDS} for written in CERTAIN + DRAWN}
