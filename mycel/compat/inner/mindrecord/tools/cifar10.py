"""`mindspore.mindrecord.tools.cifar10`: CIFAR-10 as arrays."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.mindrecord.converters import _cifar_pickle

__all__ = ["Cifar10"]


class Cifar10:
    """The Python version of CIFAR-10 in a directory.

    `load_data` reads it: `images` (float64) and `labels` are of the training files, `Test.images`
    (uint8) and `Test.labels` of the others. Labels are columns of numbers, or with `one_hot` rows
    of zeros with a one.
    """

    _labels = {"labels": (b"labels", 10)}

    def __init__(self, path: str, one_hot: bool = True) -> None:
        self.path = path
        self.one_hot = arguments.flag(type(self).__name__, "one_hot", one_hot)
        self.images: Any = None
        self.Test = SimpleNamespace()

    def _parts(self, file: str) -> bool:
        """Return whether a file has images to train with; those to test with have other names."""
        return file.startswith("data_batch_")

    def load_data(self) -> None:
        """Read the files; OSError where the directory is missing."""
        names = sorted(os.listdir(self.path))
        train = [name for name in names if self._parts(name)]
        self._fill(self, train)
        self.images = self.images.astype(np.float64)
        self._fill(self.Test, [name for name in names if name in ("test_batch", "test")])

    def _fill(self, target: Any, names: list[str]) -> None:
        keys = [key for key, _ in self._labels.values()]
        found = [_cifar_pickle(Path(self.path, name), keys) for name in names]
        images, *labels = (np.concatenate(parts) for parts in zip(*found))
        target.images = images
        for (title, (_, classes)), numbers in zip(self._labels.items(), labels):
            setattr(target, title, np.eye(classes)[numbers] if self.one_hot else numbers[:, None])
