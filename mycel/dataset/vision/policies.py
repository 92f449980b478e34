"""Augmentation policies: which transforms are applied, how often and how strongly.

An operation has a magnitude between 0 and its largest, in equal steps; most have a random sign. The
three policies differ in how they choose: AutoAugment by lists that were learned on a dataset,
RandAugment at random with one magnitude, TrivialAugment at random with any magnitude.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

from mycel._src.foundation import arguments
from mycel.dataset.arguments import check_count
from mycel.dataset.random_numbers.random_streams import current_stream
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.vision.base import ImageTransform, parse_fill
from mycel.dataset.vision.color import (
    AdjustBrightness,
    AdjustContrast,
    AdjustSaturation,
    Invert,
    check_colours,
    check_uint8,
)
from mycel.dataset.vision.enhance import AdjustSharpness, AutoContrast, Equalize
from mycel.dataset.vision.enums import Inter
from mycel.dataset.vision.solarize_posterize import (
    Posterize,
    Solarize,
)
from mycel.dataset.vision.warp import Affine, Rotate, check_resample


class AutoAugmentPolicy(str, Enum):
    """The datasets that policies of AutoAugment were learned on."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Pairs of (operation, probability in tenths, magnitude of 10 steps), from the paper's appendix.
_POLICIES = {
    AutoAugmentPolicy.IMAGENET: """
        Posterize48 Rotate69|Solarize65 AutoContrast60|Equalize80 Equalize60|Posterize67 Posterize66|
        Equalize40 Solarize24|Equalize40 Rotate88|Solarize63 Equalize60|Posterize85 EqualizeX0|Rotate23 Solarize68|
        Equalize60 Posterize46|Rotate88 Color40|Rotate49 Equalize60|Equalize00 Equalize80|Invert60 EqualizeX0|
        Color64 ContrastX8|Rotate88 ColorX2|Color88 Solarize87|Sharpness47 Invert60|ShearX65 EqualizeX0|
        Color40 Equalize60|Equalize40 Solarize24|Solarize65 AutoContrast60|Invert60 EqualizeX0|Color64 ContrastX8|
        Equalize80 Equalize60
    """,
    AutoAugmentPolicy.CIFAR10: """
        Invert10 Contrast26|Rotate72 TranslateX39|Sharpness81 Sharpness93|ShearY58 TranslateY79|
        AutoContrast50 Equalize90|ShearY27 Posterize37|Color43 Brightness67|Sharpness39 Brightness79|
        Equalize60 Equalize50|Contrast67 Sharpness65|Color77 TranslateX58|Equalize30 AutoContrast40|
        TranslateY43 Sharpness26|Brightness96 Color28|Solarize52 Invert00|Equalize20 AutoContrast60|
        Equalize20 Equalize60|Color99 Equalize60|AutoContrast80 Solarize28|Brightness13 Color70|
        Solarize45 AutoContrast90|TranslateY99 TranslateY79|AutoContrast90 Solarize83|Equalize80 Invert10|
        TranslateY79 AutoContrast90
    """,
    AutoAugmentPolicy.SVHN: """
        ShearX94 Invert20|ShearY98 Invert70|Equalize60 Solarize66|Invert90 Equalize60|Equalize60 Rotate93|
        ShearX94 AutoContrast80|ShearY98 Invert40|ShearY95 Solarize26|Invert90 AutoContrast80|Equalize60 Rotate93|
        ShearX94 Solarize33|ShearY88 Invert70|Equalize90 TranslateY66|Invert90 Equalize60|Contrast33 Rotate84|
        Invert80 TranslateY02|ShearY76 Solarize48|Invert60 Rotate84|ShearY37 TranslateX93|ShearX16 Invert60|
        Solarize72 TranslateY67|ShearY84 Invert80|ShearX79 TranslateY83|ShearY85 AutoContrast70|ShearX72 Invert10
    """,
}
_SIGNED = ("ShearX", "ShearY", "TranslateX", "TranslateY", "Rotate", "Brightness", "Color", "Contrast", "Sharpness")
_CHOICES = ("Identity", *_SIGNED, "Posterize", "Solarize", "AutoContrast", "Equalize")
_FACTORS: dict[str, Callable[[float], Any]] = {
    "Brightness": AdjustBrightness,
    "Color": AdjustSaturation,
    "Contrast": AdjustContrast,
    "Sharpness": AdjustSharpness,
}
_PLAIN: dict[str, Callable[[], Any]] = {"AutoContrast": AutoContrast, "Equalize": Equalize, "Invert": Invert}


def parse_policy(policy: AutoAugmentPolicy) -> list[list[tuple[str, float, int]]]:
    """Return the triples (operation, probability, magnitude) of a policy."""
    return [
        [(entry[:-2], 1.0 if entry[-2] == "X" else int(entry[-2]) / 10, int(entry[-1])) for entry in pair.split()]
        for pair in _POLICIES[policy].split("|")
    ]


class _Policy(ImageTransform):
    """The base class of policies: it applies operations to colour images, uint8 [H, W, 3]."""

    vectorised = False
    random = True
    # The largest shear, part of width and height (or pixels), degrees, change of a factor, and
    # number of bits dropped.
    _largest: tuple[float, float, float, float, int] = (0.3, 150 / 331, 30.0, 0.9, 4)
    _in_pixels = False

    def _place(self, interpolation: Inter, fill_value: Any) -> None:
        self.interpolation = check_resample(type(self).__name__, interpolation)
        self.fill_value = parse_fill(type(self).__name__, fill_value)

    def _apply(self, array: Array, name: str, share: float, negative: bool) -> Array:
        """Apply an operation at this share of its largest magnitude."""
        if name == "Identity":
            return array
        sides = array.shape[:2] if self._in_pixels and name[0] == "T" else ()
        change = self.made_for((name, share, negative, sides), lambda: self._change(name, share, negative, sides))
        changed: Array = change.again(change.compute, array) if change.keeps else change.compute(array, 0)
        return changed

    def _change(self, name: str, share: float, negative: bool, sides: tuple[int, ...]) -> Any:
        """Return an operation at this share of its largest magnitude, for images of `sides` if
        it depends on them.
        """
        shear, part, degrees, factor, bits = self._largest
        if name in _PLAIN:
            return _PLAIN[name]()
        if name in _FACTORS:
            return _FACTORS[name](1 + (-factor if negative else factor) * share)
        if name == "Posterize":
            return Posterize(8 - round(bits * share))
        if name == "Solarize":
            return Solarize((255 * (1 - share), 255.0))
        size = (-share if negative else share) * {"S": shear, "T": part, "R": degrees}[name[0]]
        if name == "Rotate":
            return Rotate(size, self.interpolation, fill_value=self.fill_value)
        if sides:
            size = max(-1.0, min(1.0, size / sides[1 if name[-1] == "X" else 0]))
        if name[0] == "S":
            size = math.degrees(math.atan(size))
        along = (size, 0.0) if name[-1] == "X" else (0.0, size)
        moved, slant = (along, (0.0, 0.0)) if name[0] == "T" else ((0.0, 0.0), along)
        return Affine(0.0, moved, 1.0, slant, self.interpolation, self.fill_value)

    def _check(self, array: Array) -> None:
        self.check_image(array, 0, (3,))
        check_uint8(self, array)
        check_colours(self, array)


class AutoAugment(_Policy):
    """A random choice of one of 25 pairs of operations of a learned policy (Cubuk et al., 2019).

    Takes colour images, uint8 [H, W, 3]. `interpolation` and `fill_value` are those of rotation,
    translation and shear.

    >>> import numpy as np
    >>> from mycel.dataset import vision
    >>> vision.AutoAugment(vision.AutoAugmentPolicy.CIFAR10)(np.zeros((8, 8, 3), np.uint8)).shape
    (8, 8, 3)
    """

    def __init__(
        self,
        policy: AutoAugmentPolicy = AutoAugmentPolicy.IMAGENET,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        arguments.instance("AutoAugment", "policy", policy, AutoAugmentPolicy)
        self.policy = policy
        self._pairs = parse_policy(policy)
        self._place(interpolation, fill_value)

    def compute(self, array: Array, lead: int) -> Array:
        self._check(array)
        stream = current_stream()
        for name, probability, magnitude in stream.choice(self._pairs):
            if stream.uniform() < probability:
                array = self._apply(array, name, magnitude / 9, name in _SIGNED and stream.uniform() < 0.5)
        return array


class RandAugment(_Policy):
    """Random operations at one magnitude for colour images, uint8 [H, W, 3] (Cubuk et al., 2020).

    Args:
        num_ops (int): The number of operations, chosen for every image. Default: 2.
        magnitude (int): Their magnitude, from 0 on, below `num_magnitude_bins`. Default: 9.
        num_magnitude_bins (int): The number of magnitudes. Default: 31.
        interpolation (Inter): The interpolation of rotation, translation and shear.
        fill_value (int | tuple[int, int, int]): The value of what lies outside after these.
            Default: 0.
    """

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        self.num_ops = check_count("RandAugment", "num_ops", num_ops, 0)
        self.num_magnitude_bins = check_count("RandAugment", "num_magnitude_bins", num_magnitude_bins, 2)
        self.magnitude = check_count("RandAugment", "magnitude", magnitude, 0)
        if self.magnitude >= self.num_magnitude_bins:
            raise ValueError(f"RandAugment: magnitude must be below {num_magnitude_bins}, not {magnitude}")
        self._place(interpolation, fill_value)

    def compute(self, array: Array, lead: int) -> Array:
        self._check(array)
        stream = current_stream()
        share = self.magnitude / (self.num_magnitude_bins - 1)
        for _ in range(self.num_ops):
            name = stream.choice(_CHOICES)
            array = self._apply(array, name, share, name in _SIGNED and stream.uniform() < 0.5)
        return array


class TrivialAugmentWide(_Policy):
    """One random operation at a random magnitude for every image (Müller and Hutter, 2021).

    The magnitude is one of `num_magnitude_bins` steps. Takes colour images, uint8 [H, W, 3].
    `interpolation` and `fill_value` are those of rotation, translation and shear.
    """

    _largest = (0.99, 32.0, 135.0, 0.99, 6)
    _in_pixels = True

    def __init__(
        self,
        num_magnitude_bins: int = 31,
        interpolation: Inter = Inter.NEAREST,
        fill_value: int | tuple[int, int, int] = 0,
    ) -> None:
        self.num_magnitude_bins = check_count("TrivialAugmentWide", "num_magnitude_bins", num_magnitude_bins, 2)
        self._place(interpolation, fill_value)

    def compute(self, array: Array, lead: int) -> Array:
        self._check(array)
        stream = current_stream()
        name = stream.choice(_CHOICES)
        share = stream.integer(0, self.num_magnitude_bins - 1) / (self.num_magnitude_bins - 1)
        return self._apply(array, name, share, name in _SIGNED and stream.uniform() < 0.5)
