"""`mindspore.mindrecord.tools.cifar100`: CIFAR-100 as arrays."""

from __future__ import annotations

from mycel.compat.inner.mindrecord.tools.cifar10 import Cifar10

__all__ = ["Cifar100"]


class Cifar100(Cifar10):
    """The Python version of CIFAR-100 in a directory.

    `load_data` reads it: `images` (uint8), `fine_labels` and `coarse_labels` are of the training
    file, those of `Test` of the other. Labels are columns of numbers, or with `one_hot` rows of
    zeros with a one.
    """

    _labels = {"fine_labels": (b"fine_labels", 100), "coarse_labels": (b"coarse_labels", 20)}

    def _parts(self, file: str) -> bool:
        return file == "train"

    def load_data(self) -> None:
        """Read the files; OSError where the directory is missing."""
        super().load_data()
        self.images = self.images.astype("uint8")
