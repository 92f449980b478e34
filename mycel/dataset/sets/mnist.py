"""MNIST and the datasets of images in files of the same form."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files.idx_format import idx_shape, read_idx
from mycel.dataset.basic_sources.mappable_source import HeldDataset
from mycel.dataset.basic_sources.modality_bases import VisionBaseDataset
from mycel.dataset.rows.column_blocks import Array, Column
from mycel.dataset.samplers import Shuffle


class MnistDataset(HeldDataset, VisionBaseDataset):
    """The MNIST files of a folder: columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    Files may be compressed (`.gz`).

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", or "all" (the default): first the test, then the
            training images, or those of the two that the folder has. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: For a missing folder or file, and for truncated files.

    Examples:
        >>> import tempfile
        >>> import mycel.dataset as ds
        >>> from mycel.dataset import digits
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     digits.write_idx(folder)
        ...     data = ds.MnistDataset(folder, usage="train")
        ...     data.get_dataset_size(), data.output_shapes()
        (1438, [[28, 28, 1], []])
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        kind = type(self).__name__
        if usage is not None:
            arguments.one_of(kind, "usage", usage, ("train", "test", "all"))
        if not isinstance(dataset_dir, (str, os.PathLike)):
            raise TypeError(f"{kind}: the directory must be a path, not {type(dataset_dir).__name__}")
        if not os.path.isdir(dataset_dir):
            raise ValueError(f"{kind}: there is no directory {os.fspath(dataset_dir)!r}")
        self.dataset_dir = os.fspath(dataset_dir)
        self.usage = usage or "all"
        self._parts = {"train": ["train"], "test": ["t10k"], "all": ["t10k", "train"]}[self.usage]
        if len(self._parts) > 1 and any(map(self._has, self._parts)):
            self._parts = [part for part in self._parts if self._has(part)]
        self._files = {part: (self._find(part, "images", 3), self._find(part, "labels", 1)) for part in self._parts}

    def _length(self) -> int:
        return sum(idx_shape(images)[0] for images, _ in self._files.values())

    def _load(self) -> dict[str, Column]:
        loaded = [self._part_of(part) for part in self._parts]
        return {
            "image": loaded[0][0] if len(loaded) == 1 else np.concatenate([images for images, _ in loaded]),
            "label": np.concatenate([labels for _, labels in loaded]),
        }

    def _part_of(self, part: str) -> tuple[Array, Array]:
        kind = type(self).__name__
        images, labels = (np.asarray(read_idx(path)) for path in self._files[part])
        if images.ndim != 3 or images.dtype != np.uint8 or labels.ndim != 1 or labels.dtype != np.uint8:
            raise ValueError(
                f"{kind}: the {part} files of {self.dataset_dir!r} must hold uint8 of 3 axes and of 1, not "
                f"{images.dtype} of {images.ndim} and {labels.dtype} of {labels.ndim}"
            )
        if len(images) != len(labels):
            raise ValueError(
                f"{kind}: {len(images)} images but {len(labels)} labels in the {part} files of {self.dataset_dir!r}"
            )
        return images[..., None], labels.astype(np.uint32)

    def _has(self, part: str) -> bool:
        """Return whether any file of a part exists.

        Half a part is an error; none of it means another usage.
        """
        names = self._candidates(part, "images", 3) + self._candidates(part, "labels", 1)
        return any(Path(self.dataset_dir, name).is_file() for name in names)

    @staticmethod
    def _candidates(part: str, content: str, axes: int) -> list[str]:
        plain = f"{part}-{content}-idx{axes}-ubyte"
        return [name + end for name in (plain, plain.replace("-idx", ".idx")) for end in ("", ".gz")]

    def _find(self, part: str, content: str, axes: int) -> Path:
        candidates = self._candidates(part, content, axes)
        for name in candidates:
            path = Path(self.dataset_dir, name)
            if path.is_file():
                return path
        raise ValueError(
            f"{type(self).__name__}: {self.dataset_dir!r} has no file {' or '.join(candidates)}, "
            f"needed for usage={self.usage!r}"
        )


class FashionMnistDataset(MnistDataset):
    """The Fashion-MNIST files of a folder (Xiao, Rasul and Vollgraf, 2017).

    `MnistDataset` explains the parameters.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", or "all" (the default): first the test, then the
            training images. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """


class KMnistDataset(MnistDataset):
    """The Kuzushiji-MNIST files of a folder (Clanuwat et al., 2018).

    `MnistDataset` explains the parameters.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", or "all" (the default): first the test, then the
            training images. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """
