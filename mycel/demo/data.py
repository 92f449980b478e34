"""The digits that the demonstration learns: those in the package, or MNIST in its IDX files.

An IDX file starts with two zero bytes, a byte for the element type (8 is unsigned byte), a byte for the number of dimensions, and
each dimension as a big-endian 32-bit integer; the elements follow in row-major order (LeCun, Cortes and Burges, "The MNIST
database of handwritten digits"). Images come out as uint8 [N, 32, 32], smaller ones centred on black, labels as int32 [N].
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mycel.dataset import digits

__all__ = ["DataError", "DigitData", "bundled", "mnist", "read_idx"]

SIZE = 32
_NAMES = {
    "train": ("train-images", "train-labels"),
    "test": ("t10k-images", "t10k-labels"),
}


class DataError(ValueError):
    """The digits asked for cannot be used; the message is one line and names the file."""


@dataclass(frozen=True)
class DigitData:
    """Images to learn from and images held out: uint8 [N, 32, 32] with int32 labels [N]."""

    name: str
    train_images: NDArray[np.uint8]
    train_labels: NDArray[np.int32]
    held_out_images: NDArray[np.uint8]
    held_out_labels: NDArray[np.int32]

    def fingerprint(self) -> int:
        """CRC-32 of the training images and labels: tells whether a checkpoint was trained on these."""
        return zlib.crc32(self.train_labels.tobytes(), zlib.crc32(self.train_images.tobytes()))


def bundled() -> DigitData:
    """The digits in the package, four fifths to learn from and one fifth held out."""
    images, labels = digits.load_digits(size=SIZE)
    return _split("bundled digits", images[..., 0], labels)


def mnist(folder: Path) -> DigitData:
    """MNIST from `train-images...` and `train-labels...` (plain or .gz) in `folder`.

    The held-out images are those of `t10k-images...` where present, else every fifth training image.
    Raises DataError if the folder or a file is missing, damaged, or not of digits.
    """
    if not folder.is_dir():
        raise DataError(f"no such folder: {folder} (--data takes the folder of the MNIST IDX files)")
    train_images, train_labels = _pair(folder, *_NAMES["train"])
    if not _find(folder, _NAMES["test"][0]):
        return _split(f"digits in {folder}", train_images, train_labels)
    return DigitData(f"digits in {folder}", train_images, train_labels, *_pair(folder, *_NAMES["test"]))


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array in an IDX file of unsigned bytes, gzip-compressed if its name ends in `.gz`.

    Raises DataError if the file cannot be read, holds another element type, or has not exactly the announced length.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
    if len(content) < 4 or content[:2] != b"\0\0":
        raise DataError(f"{path}: not an IDX file (it does not start with two zero bytes)")
    kind, rank = content[2], content[3]
    if kind != 8:
        raise DataError(f"{path}: element type 0x{kind:02x}; only unsigned bytes (0x08) are read")
    start = 4 + 4 * rank
    if rank == 0 or len(content) < start:
        raise DataError(f"{path}: damaged: its header announces {rank} dimensions in {len(content)} bytes")
    shape = struct.unpack(f">{rank}I", content[4:start])
    if len(content) - start != math.prod(shape):
        raise DataError(f"{path}: damaged: {len(content) - start} bytes of data for shape {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def _find(folder: Path, stem: str) -> Path | None:
    matches = sorted(path for path in folder.glob(f"{stem}*") if path.is_file())
    return matches[0] if matches else None


def _pair(folder: Path, image_stem: str, label_stem: str) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    image_path, label_path = _find(folder, image_stem), _find(folder, label_stem)
    for path, stem in ((image_path, image_stem), (label_path, label_stem)):
        if path is None:
            raise DataError(f"no {stem}-* file in {folder} (MNIST calls it {stem}-idx{3 if 'im' in stem else 1}-ubyte)")
    assert image_path is not None and label_path is not None
    images, labels = read_idx(image_path), read_idx(label_path)
    if images.ndim != 3 or max(images.shape[1:]) > SIZE:
        raise DataError(f"{image_path}: shape {images.shape}; expected [N, H, W] with H and W of at most {SIZE}")
    if labels.shape != images.shape[:1]:
        raise DataError(f"{label_path}: labels of shape {labels.shape} for {len(images)} images")
    if len(labels) == 0 or labels.max() > 9:
        raise DataError(f"{label_path}: expected labels 0 to 9, found {labels.max(initial=0)} in {len(labels)} labels")
    margins = [((SIZE - side) // 2, (SIZE - side + 1) // 2) for side in images.shape[1:]]
    return np.pad(images, [(0, 0), *margins]), labels.astype(np.int32)


def _split(name: str, images: NDArray[np.uint8], labels: NDArray[np.int32]) -> DigitData:
    held_out = np.arange(len(images)) % 5 == 4
    return DigitData(name, images[~held_out], labels[~held_out], images[held_out], labels[held_out])
