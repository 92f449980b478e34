"""The families of datasets, for `isinstance`: by what rows hold, and whether they are a source or made of other datasets."""

from __future__ import annotations

from mycel.dataset.pipeline import Dataset


class TextBaseDataset(Dataset):
    """The base of datasets of text."""


class VisionBaseDataset(Dataset):
    """The base of datasets of images."""


class AudioBaseDataset(Dataset):
    """The base of datasets of sound."""
