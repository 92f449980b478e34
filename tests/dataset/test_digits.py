"""The digits that come with the package."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

import mycel.dataset as ds
from mycel._src.foundation.files import idx_format
from mycel.dataset import digits

# The sum of all levels, and the start of the SHA-256 of images and labels, computed from the
# published file.
DIGEST = (561718, "87ff0c9e40dc7e2c")


def test_the_data_are_those_of_the_repository() -> None:
    levels = idx_format.read_idx(digits._DATA / "digits-images-idx3-ubyte.gz")
    labels = idx_format.read_idx(digits._DATA / "digits-labels-idx1-ubyte.gz")
    assert levels.shape == (1797, 8, 8) and levels.min() == 0 and levels.max() == 16
    # Class sizes from the description of the UCI test set.
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert levels[0, 0].tolist() == [0, 0, 5, 13, 9, 1, 0, 0]
    assert int(levels.sum()) == DIGEST[0]
    assert hashlib.sha256(levels.tobytes() + labels.tobytes()).hexdigest()[:16] == DIGEST[1]


def test_loading_scales_and_resizes() -> None:
    small, labels = digits.load_digits(8)
    levels = idx_format.read_idx(digits._DATA / "digits-images-idx3-ubyte.gz")
    assert small.shape == (1797, 8, 8, 1) and small.dtype == np.uint8 and labels.dtype == np.int32
    assert np.abs(small[..., 0] - levels * (255 / 16)).max() <= 0.5
    large, _ = digits.load_digits()
    assert large.shape == (1797, 32, 32, 1) and large.dtype == np.uint8
    # Four times as large in both directions keeps each image's mean, up to the borders and
    # rounding.
    assert np.abs(large.mean((1, 2, 3)) - small.mean((1, 2, 3))).max() < 3
    with pytest.raises(ValueError, match="size must be a positive integer, not 0"):
        digits.load_digits(0)


def test_the_split_is_stratified_and_repeats() -> None:
    labels = np.repeat(np.arange(10), 50)
    train, test = digits.stratified_split(labels, 0.8, seed=3)
    assert np.bincount(labels[train]).tolist() == [40] * 10
    assert sorted([*train, *test]) == list(range(500))
    again, _ = digits.stratified_split(labels, 0.8, seed=3)
    other, _ = digits.stratified_split(labels, 0.8, seed=4)
    assert (train == again).all() and not np.array_equal(train, other)
    with pytest.raises(ValueError, match="train_fraction must be within"):
        digits.stratified_split(labels, 1.0)


def test_the_files_are_read_as_mnist(tmp_path: Path) -> None:
    digits.write_idx(tmp_path / "new", seed=1)
    images, labels = digits.load_digits(28)
    train, test = digits.stratified_split(labels, 0.8, 1)
    for usage, rows in (("train", train), ("test", test)):
        data = ds.MnistDataset(tmp_path / "new", usage, shuffle=False).batch(2000)
        ((found, numbers),) = list(data.create_tuple_iterator(num_epochs=1, output_numpy=True))
        assert (found == images[rows]).all() and (numbers == labels[rows]).all()
    assert 0.19 < len(test) / len(labels) < 0.21


def test_the_digits_can_be_learnt() -> None:
    images, labels = digits.load_digits(8)
    train, test = digits.stratified_split(labels)
    pixels = images.reshape(len(images), -1).astype(np.float64)
    # The nearest neighbour of each held-out image.
    squares = (pixels[train] ** 2).sum(1) - 2 * pixels[test] @ pixels[train].T
    assert (labels[train][squares.argmin(1)] == labels[test]).mean() > 0.97
