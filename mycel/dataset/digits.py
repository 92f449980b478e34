"""The handwritten digits that come with the package: 1,797 images of 8x8 pixels in ten classes.

Pixels have 17 levels. The images are the test part of the UCI data set "Optical Recognition of
Handwritten Digits" by E. Alpaydin and C. Kaynak (1998), DOI 10.24432/C50P49, under the Creative
Commons Attribution 4.0 licence; `mycel/_src/data/README.md` has the details.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation.files.idx_format import read_idx
from mycel._src.foundation.files.idx_format import write_idx as write_idx_file
from mycel.dataset.vision import Resize

__all__ = ["load_digits", "stratified_split", "write_idx"]

_DATA = Path(__file__).resolve().parent.parent / "_src" / "data"
_LEVELS = 16

UInt8Array = np.ndarray[Any, np.dtype[np.uint8]]
Int32Array = np.ndarray[Any, np.dtype[np.int32]]
Int64Array = np.ndarray[Any, np.dtype[np.int64]]


def load_digits(size: int = 32) -> tuple[UInt8Array, Int32Array]:
    """Return the digits, resized bilinearly, and their labels.

    Images are uint8 [1797, size, size, 1] within 0 .. 255, labels int32 [1797]. Raises ValueError
    for a size below 1.

    >>> from mycel.dataset import digits
    >>> images, labels = digits.load_digits(8)
    >>> images.shape, int(images.max()), labels[:3].tolist()
    ((1797, 8, 8, 1), 255, [0, 1, 2])
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"load_digits: size must be a positive integer, not {size!r}")
    levels = read_idx(_DATA / "digits-images-idx3-ubyte.gz")
    labels = read_idx(_DATA / "digits-labels-idx1-ubyte.gz")
    images = np.rint(levels * (255.0 / _LEVELS)).astype(np.uint8)[..., None]
    return Resize((size, size)).apply_block(images, None), labels.astype(np.int32)


def stratified_split(
    labels: np.ndarray[Any, np.dtype[Any]], train_fraction: float = 0.8, seed: int = 0
) -> tuple[Int64Array, Int64Array]:
    """Return row numbers for training and for testing, each class divided in the same proportion.

    Equal arguments give equal rows. Raises ValueError for a fraction not within (0, 1).

    >>> import numpy as np
    >>> from mycel.dataset import digits
    >>> train, test = digits.stratified_split(np.repeat([0, 1], 10))
    >>> len(train), len(test)
    (16, 4)
    """
    if not 0 < train_fraction < 1:
        raise ValueError(f"stratified_split: train_fraction must be within (0, 1), not {train_fraction}")
    random = np.random.Generator(np.random.PCG64(seed))
    order = random.permutation(len(labels))
    train: list[Int64Array] = []
    test: list[Int64Array] = []
    for label in np.unique(labels):
        members = order[labels[order] == label]
        # Rounded to nearest, so that the parts of all classes add up to about the fraction.
        count = int(np.floor(len(members) * train_fraction + 0.5))
        train.append(members[:count])
        test.append(members[count:])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


def write_idx(directory: str | os.PathLike[str], train_fraction: float = 0.8, seed: int = 0, size: int = 28) -> None:
    """Write the digits as the four files that `MnistDataset` reads.

    * `directory`: the folder of the files, which is made if needed. Existing files are overwritten.
    * `train_fraction`, `seed`: how `stratified_split` divides the digits.
    * `size`: the height and width of an image.

    >>> import tempfile, os
    >>> from mycel.dataset import digits
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     digits.write_idx(folder)
    ...     sorted(os.listdir(folder))[0]
    't10k-images-idx3-ubyte'
    """
    images, labels = load_digits(size)
    train, test = stratified_split(labels, train_fraction, seed)
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    for part, rows in (("train", train), ("t10k", test)):
        write_idx_file(folder / f"{part}-images-idx3-ubyte", images[rows, ..., 0])
        write_idx_file(folder / f"{part}-labels-idx1-ubyte", labels[rows].astype(np.uint8))
