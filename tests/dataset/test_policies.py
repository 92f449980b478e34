"""Policies of augmentation, against the transforms that they are made of."""

from __future__ import annotations

import numpy as np
import pytest

from mycel.dataset import vision
from mycel.dataset.vision import policies

IMAGE = np.random.default_rng(0).integers(0, 256, (16, 20, 3)).astype(np.uint8)


def test_policies_have_the_published_pairs() -> None:
    for policy in vision.AutoAugmentPolicy:
        pairs = policies.parse_policy(policy)
        assert len(pairs) == 25 and all(len(pair) == 2 for pair in pairs)
        for name, probability, magnitude in (entry for pair in pairs for entry in pair):
            assert name in (*policies._CHOICES, "Invert") and 0 <= probability <= 1 and 0 <= magnitude <= 9
    first = {policy.value: policies.parse_policy(policy)[0] for policy in vision.AutoAugmentPolicy}
    assert first == {
        "imagenet": [("Posterize", 0.4, 8), ("Rotate", 0.6, 9)],
        "cifar10": [("Invert", 0.1, 0), ("Contrast", 0.2, 6)],
        "svhn": [("ShearX", 0.9, 4), ("Invert", 0.2, 0)],
    }
    assert policies.parse_policy(vision.AutoAugmentPolicy.IMAGENET)[14][1] == ("Contrast", 1.0, 8)


def test_operations_at_known_magnitudes() -> None:
    apply = vision.RandAugment()._apply
    wide = vision.TrivialAugmentWide()._apply
    for found, expected in (
        (apply(IMAGE, "Identity", 1.0, False), IMAGE),
        (apply(IMAGE, "Invert", 0.0, False), 255 - IMAGE),
        (apply(IMAGE, "Posterize", 1.0, False), IMAGE & 0xF0),
        (wide(IMAGE, "Posterize", 1.0, False), IMAGE & 0xC0),
        (apply(IMAGE, "Solarize", 1.0, False), 255 - IMAGE),
        (apply(IMAGE, "Brightness", 1.0, True), vision.AdjustBrightness(0.1)(IMAGE)),
        (apply(IMAGE, "Color", 0.5, False), vision.AdjustSaturation(1.45)(IMAGE)),
        (apply(IMAGE, "Rotate", 0.5, True), vision.Rotate(-15)(IMAGE)),
        (apply(IMAGE, "ShearY", 0.0, False), IMAGE),
    ):
        np.testing.assert_array_equal(found, expected)
    moved = wide(IMAGE, "TranslateX", 5 / 32, False)
    np.testing.assert_array_equal(moved[:, 5:], IMAGE[:, :-5])
    assert not moved[:, :5].any()
    moved = wide(IMAGE, "TranslateY", 4 / 32, True)
    np.testing.assert_array_equal(moved[:-4], IMAGE[4:])


@pytest.mark.parametrize(
    "transform",
    [
        vision.AutoAugment(),
        vision.AutoAugment(vision.AutoAugmentPolicy.CIFAR10, vision.Inter.BILINEAR, (1, 2, 3)),
        vision.AutoAugment(vision.AutoAugmentPolicy.SVHN),
        vision.RandAugment(3, 30),
        vision.TrivialAugmentWide(),
    ],
)
def test_images_keep_their_form(transform: vision.AutoAugment) -> None:
    found = [transform(IMAGE) for _ in range(60)]
    assert all(image.shape == IMAGE.shape and image.dtype == np.uint8 for image in found)
    assert len({image.tobytes() for image in found}) > 5


def test_errors() -> None:
    assert np.array_equal(vision.RandAugment(0)(IMAGE), IMAGE)
    for make, kind, message in (
        (lambda: vision.AutoAugment("imagenet"), TypeError, "must be an AutoAugmentPolicy"),
        (lambda: vision.RandAugment(magnitude=31), ValueError, "magnitude must be below 31"),
        (lambda: vision.TrivialAugmentWide(1), ValueError, "num_magnitude_bins must be within"),
        (lambda: vision.AutoAugment()(IMAGE[..., :1]), ValueError, "AutoAugment"),
        (lambda: vision.RandAugment()(IMAGE.astype(np.float32)), (TypeError, ValueError), "RandAugment"),
    ):
        with pytest.raises(kind, match=message):
            make()


def test_mixup_mixes_with_the_next_image() -> None:
    images = np.random.default_rng(1).uniform(0, 255, (3, 4, 5, 3))
    labels = np.eye(3)
    mixed, marks = vision.MixUp(3, 0.7)(images.astype(np.float32), labels)
    shares = np.diag(marks)
    assert mixed.dtype == marks.dtype == np.float64 and len(set(shares.tolist())) == 3
    for number in range(3):
        following = (number + 1) % 3
        expected = shares[number] * images[number] + (1 - shares[number]) * images[following]
        np.testing.assert_allclose(mixed[number], expected, rtol=1e-5)
        np.testing.assert_allclose(marks[number, following], 1 - shares[number])
    drawn = np.array([np.diag(vision.MixUp(3, 2.0)(images, labels)[1]) for _ in range(400)])
    # Beta(2, 2) has the mean 1/2 and the variance 1/20.
    assert abs(drawn.mean() - 0.5) < 0.04 and abs(drawn.var() - 0.05) < 0.012
    for make, kind in (
        (lambda: vision.MixUp(2, 1.0)(images, labels), ValueError),
        (lambda: vision.MixUp(3, 1.0)(images, np.arange(3)), ValueError),
        (lambda: vision.MixUp(0, 1.0), ValueError),
        (lambda: vision.MixUp(2, 0.0), ValueError),
        (lambda: vision.MixUp(2, 1.0, False), NotImplementedError),
    ):
        with pytest.raises(kind, match="MixUp"):
            make()
