"""The digits that the demonstration learns: those in the package, or MNIST in its IDX files.

Images are returned as uint8 [N, 32, 32], smaller ones centred on black, and labels as int32 [N].
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation.files.idx_format import read_idx
from mycel.dataset import digits

__all__ = ["DataError", "DigitData", "bundled", "mnist"]

SIZE = 32
_NAMES = {
    "train": ("train-images", "train-labels"),
    "test": ("t10k-images", "t10k-labels"),
}


class DataError(ValueError):
    """An error: the digits cannot be used; the message is one line and names the file."""


@dataclass(frozen=True)
class DigitData:
    """Images for training and held-out images: uint8 [N, 32, 32] with int32 labels [N]."""

    name: str
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int32]
    held_out_images: NDArray[np.uint8]
    held_out_labels: NDArray[np.int32]

    def fingerprint(self) -> int:
        """Return the CRC-32 of the training images and labels, which identifies the data of a
        checkpoint.
        """
        return zlib.crc32(self.train_labels.tobytes(), zlib.crc32(self.train_images.tobytes()))


def bundled() -> DigitData:
    """Return the digits in the package, four fifths for training and one fifth held out."""
    images, labels = digits.load_digits(size=SIZE)
    return _split("bundled digits", images[..., 0], labels)


def mnist(folder: Path) -> DigitData:
    """Return MNIST from `train-images...` and `train-labels...` (plain or .gz) in `folder`.

    The held-out images are those of `t10k-images...` if present, else a fifth of the training
    images, equally many of each digit. Raises DataError if the folder or a file is missing,
    damaged, or not of digits.
    """
    if not folder.is_dir():
        raise DataError(f"no such folder: {folder} (--data takes the folder of the MNIST IDX files)")
    train_images, train_labels = _pair(folder, *_NAMES["train"])
    if not _find(folder, _NAMES["test"][0]):
        return _split(f"digits in {folder}", train_images, train_labels)
    return DigitData(f"digits in {folder}", train_images, train_labels, *_pair(folder, *_NAMES["test"]))


def _find(folder: Path, stem: str) -> Path | None:
    matches = sorted(path for path in folder.glob(f"{stem}*") if path.is_file())
    return matches[0] if matches else None


def _pair(folder: Path, image_stem: str, label_stem: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    image_path, label_path = _find(folder, image_stem), _find(folder, label_stem)
    for path, stem in ((image_path, image_stem), (label_path, label_stem)):
        if path is None:
            raise DataError(f"no {stem}-* file in {folder} (MNIST calls it {stem}-idx{3 if 'im' in stem else 1}-ubyte)")
    assert image_path is not None and label_path is not None
    images, labels = _read(image_path), _read(label_path)
    if images.ndim != 3 or max(images.shape[1:]) > SIZE:
        raise DataError(f"{image_path}: shape {images.shape}; expected [N, H, W] with H and W of at most {SIZE}")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{label_path}: labels of shape {labels.shape} for {len(images)} images")
    if len(labels) == 0 or labels.max() > 9:
        raise DataError(f"{label_path}: expected labels 0 to 9, found {labels.max(initial=0)} in {len(labels)} labels")
    margins = [((SIZE - side) // 2, (SIZE - side + 1) // 2) for side in images.shape[1:]]
    return np.pad(images, [(0, 0), *margins]), labels.astype(np.int32)


def _read(path: Path) -> NDArray[np.uint8]:
    try:
        array = read_idx(path)
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if array.dtype != np.uint8:
        raise DataError(f"{path}: holds {array.dtype} numbers; digits and labels are unsigned bytes")
    return array


def _split(name: str, images: NDArray[np.uint8], labels: NDArray[np.int32]) -> DigitData:
    rows, held_out = digits.stratified_split(labels)
    return DigitData(name, images[rows], labels[rows], images[held_out], labels[held_out])
