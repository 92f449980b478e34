"""Well-known datasets of digits and letters.

EMNIST and QMNIST are IDX files, USPS is text with "number:value" entries, Semeion is text with 256
pixels and ten marks in each line.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files.idx_format import read_idx
from mycel.dataset.basic_sources.mappable_source import HeldDataset
from mycel.dataset.basic_sources.modality_bases import VisionBaseDataset
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.file_order import FileOrder, check_shards
from mycel.dataset.rows.column_blocks import Array, Column
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_folder, check_usage, read_lines


def _read(operation: str, folder: str, name: str, dtype: Any, axes: int) -> Array:
    """Read the array of an IDX file, which may be compressed.

    Raises ValueError where there is none, or one of another type or rank.
    """
    for path in (Path(folder, name), Path(folder, f"{name}.gz")):
        if path.is_file():
            found = np.asarray(read_idx(path))
            if found.ndim != axes or found.dtype.newbyteorder("=") != dtype:
                raise ValueError(
                    f"{operation}: {os.fspath(path)!r} holds {found.dtype} of {found.ndim} axes, not {dtype} of {axes}"
                )
            return found
    raise ValueError(f"{operation}: there is no file {name} or {name}.gz in {folder!r}")


class _Digits(HeldDataset, VisionBaseDataset):
    """The base class of datasets whose images and labels are all held in memory."""

    def _joined(self, images: Sequence[Array], labels: Sequence[Array]) -> dict[str, Column]:
        if len(images) != len(labels) or any(len(i) != len(k) for i, k in zip(images, labels)):
            raise ValueError(f"{type(self).__name__}: {list(map(len, images))} images, {list(map(len, labels))} labels")
        return {"image": np.concatenate(images), "label": np.concatenate(labels)}


class EMnistDataset(_Digits):
    """EMNIST (Cohen et al., 2017): columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    Images are as the files have them, with rows and columns exchanged.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        name (str): "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
        usage (str | None): "train", "test" or "all" (the default), where the test images come
            first. Default: None.
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
        ValueError: For missing files.

    Examples:
        >>> import tempfile, os
        >>> import numpy as np
        >>> import mycel.dataset as ds
        >>> from mycel._src.foundation.files.idx_format import write_idx
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     start = os.path.join(folder, "emnist-letters-test-")
        ...     write_idx(start + "images-idx3-ubyte", np.zeros((2, 28, 28), np.uint8))
        ...     write_idx(start + "labels-idx1-ubyte", np.array([1, 26], np.uint8))
        ...     ds.EMnistDataset(folder, "letters", "test").output_shapes()
        [[28, 28, 1], []]
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        name: str,
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
        kind, known = "EMnistDataset", ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
        arguments.one_of(kind, "name", name, known)
        self.name = name
        self.usage = check_usage(kind, usage, ("train", "test", "all"))
        self.dataset_dir = check_folder(kind, dataset_dir)

    def _load(self) -> dict[str, Column]:
        kind, name = "EMnistDataset", self.name
        starts = [f"emnist-{name}-{part}" for part in (("test", "train") if self.usage == "all" else (self.usage,))]
        images = [_read(kind, self.dataset_dir, f"{start}-images-idx3-ubyte", np.uint8, 3) for start in starts]
        labels = [_read(kind, self.dataset_dir, f"{start}-labels-idx1-ubyte", np.uint8, 1) for start in starts]
        return self._joined([part[..., None] for part in images], [part.astype(np.uint32) for part in labels])


class QMnistDataset(_Digits):
    """QMNIST (Yadav and Bottou, 2019): columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "test10k" (the first 10000 of "test"), "test50k" (the
            others), "nist" or "all" (the default: training, test and NIST images). Default: None.
        compat (bool): Whether a label is the class instead of [8], all that is known of the digit.
            Default: True.
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

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        compat: bool = True,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        kind = "QMnistDataset"
        self.usage = check_usage(kind, usage, ("train", "test", "test10k", "test50k", "nist", "all"))
        arguments.flag(kind, "compat", compat)
        self.compat = compat
        self.dataset_dir = check_folder(kind, dataset_dir)

    def _load(self) -> dict[str, Column]:
        kind = "QMnistDataset"
        images, labels = [], []
        for part in ("train", "test", "nist") if self.usage == "all" else (self.usage,):
            start = "xnist" if part == "nist" else "qmnist-train" if part == "train" else "qmnist-test"
            rows = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(part, slice(None))
            images.append(_read(kind, self.dataset_dir, f"{start}-images-idx3-ubyte", np.uint8, 3)[rows, ..., None])
            found = _read(kind, self.dataset_dir, f"{start}-labels-idx2-int", np.int32, 2)[rows].astype(np.uint32)
            labels.append(found[:, 0] if self.compat else found)
        return self._joined(images, labels)


class SemeionDataset(_Digits):
    """Semeion (Buscema, 1998), the file `semeion.data`.

    Columns are `image`, uint8 [16, 16] of 0 and 1, and `label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
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

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.dataset_dir = check_folder("SemeionDataset", dataset_dir)

    def _load(self) -> dict[str, Column]:
        rows = [line.split() for line in read_lines("SemeionDataset", Path(self.dataset_dir, "semeion.data"))]
        rows = [row for row in rows if row]
        if not rows or any(len(row) != 266 for row in rows):
            raise ValueError(f"SemeionDataset: {self.dataset_dir!r}: lines of semeion.data must have 266 numbers each")
        with reading("SemeionDataset", Path(self.dataset_dir, "semeion.data")):
            values = np.array(rows, np.float64).astype(np.uint8)
        return self._joined([values[:, :256].reshape(-1, 16, 16)], [values[:, 256:].argmax(1).astype(np.uint32)])


class USPSDataset(_Digits):
    """USPS (Hull, 1994), the files `usps` and `usps.t`.

    Columns are `image`, uint8 [16, 16, 1], and `label`, uint32. A line of a file has the label,
    from 1 on, and 256 entries "number:value" with values from -1 to 1.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = Shuffle.GLOBAL,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, cache=cache)
        self.usage = check_usage("USPSDataset", usage, ("train", "test", "all"))
        self.dataset_dir = check_folder("USPSDataset", dataset_dir)
        self._parts = {"train": ("usps",), "test": ("usps.t",)}.get(self.usage, ("usps", "usps.t"))
        self._sizes: list[int] = []
        shards = check_shards("USPSDataset", num_shards, shard_id)
        self.sampler = FileOrder("USPSDataset", shuffle, self._sizes, num_samples, shards)

    def _load(self) -> dict[str, Column]:
        images, labels = zip(*(self._part_of(Path(self.dataset_dir, part)) for part in self._parts))
        self._sizes[:] = [len(part) for part in labels]
        return self._joined(images, labels)

    @staticmethod
    def _part_of(path: Path) -> tuple[Array, Array]:
        rows = []
        for number, line in enumerate(read_lines("USPSDataset", path)):
            if line.strip():
                first, *entries = line.split()
                values = [entry.partition(":")[2] for entry in entries]
                if len(values) != 256 or not all(values):
                    raise ValueError(
                        f"USPSDataset: line {number} of {os.fspath(path)!r} has not 256 entries 'number:value'"
                    )
                rows.append([first, *values])
        with reading("USPSDataset", path):
            found = np.array(rows, np.float64).reshape(-1, 257)
        images = ((found[:, 1:] + 1) / 2 * 255).astype(np.uint8).reshape(-1, 16, 16, 1)
        return images, (found[:, 0] - 1).astype(np.uint32)
