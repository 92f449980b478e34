"""The families of datasets, for `isinstance`: text, images and sound."""

from __future__ import annotations

from mycel.dataset.pipeline import Dataset


class TextBaseDataset(Dataset):
    """The base class of datasets of text."""


class VisionBaseDataset(Dataset):
    """The base class of datasets of images."""


class AudioBaseDataset(Dataset):
    """The base class of datasets of sound."""
