"""The base classes of datasets of images that are read from files when they are requested.

A `FileSet` lists its rows when it is made. Each value of a row is an array, a function that reads
one, or a `Picture`, the path of an image that is read with the row, and decoded where `decode` asks
for that. Images are the bytes of their files, uint8 [N], or pixels, uint8 [H, W, 3].
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.basic_sources.modality_bases import VisionBaseDataset
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.rows.column_blocks import Array, Block, Row
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.sets.folder_checks import check_folder, check_usage
from mycel.dataset.vision.codecs.image_io import decode_image

Decrypt = Callable[[str], Any] | None


class FileDataset(MappableDataset, VisionBaseDataset):
    """The base class of sources that read a row from files when it is requested."""

    _uses_workers = True
    _reads_files = True

    def _free(self) -> bool:
        return self.decrypt is None

    def _setup(self, dataset_dir: str | os.PathLike[str], decode: bool, decrypt: Decrypt = None) -> None:
        kind = type(self).__name__
        self.dataset_dir = check_folder(kind, dataset_dir)
        arguments.flag(kind, "decode", decode)
        if decrypt is not None:
            arguments.function(kind, "decrypt", decrypt, "a function from a path to bytes")
        self.decode = decode
        self.decrypt = decrypt

    def _image(self, path: str) -> Array:
        """Return a file's bytes, or its pixels."""
        if self.decrypt is not None:
            content = bytes(self.decrypt(path))
        else:
            with reading(type(self).__name__, path):
                content = Path(path).read_bytes()
        if self.decode:
            return decode_image(content, f"{type(self).__name__}: {path}")
        return np.frombuffer(bytearray(content), np.uint8)

    def _row(self, number: int) -> Row:
        """Read the row of this number."""
        raise NotImplementedError(f"{type(self).__name__} must define _row")

    def _gather(self, indices: Indices) -> Block:
        return Block.from_rows([self._row(int(index)) for index in indices])


IMAGES = (".jpg", ".jpeg", ".png", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp", ".gif")


class Picture(str):
    """The path of an image."""


Value = Any


def label(number: int, kind: Any = np.uint32) -> Array:
    """Return the number of a class as an array."""
    return np.array(number, kind)


def one_of(operation: str, argument: str, value: Any, known: Sequence[Any]) -> Any:
    """Return `value`, which must be one of `known`; raise ValueError otherwise.

    `operation` and `argument` are named in messages.
    """
    if value not in known:
        raise ValueError(f"{operation}: {argument} must be one of {', '.join(map(repr, known))}, not {value!r}")
    return value


def folders_in(path: str) -> list[str]:
    """Return the names of folders, in order."""
    return sorted(entry.name for entry in os.scandir(path) if entry.is_dir())


def images_in(path: str) -> list[Picture]:
    """Return the images of a folder, in the order of their names."""
    names = sorted(entry.name for entry in os.scandir(path) if entry.is_file())
    return [Picture(os.path.join(path, name)) for name in names if name.lower().endswith(IMAGES)]


class FileSet(FileDataset):
    """The base class of datasets whose rows are listed when they are made.

    The rows are `_entries`, under the names of `_names`.
    """

    _names: Sequence[str] = ("image", "label")
    _entries: list[tuple[Value, ...]]

    def _begin(self, dataset_dir: str | os.PathLike[str], decode: bool | None) -> str:
        self._setup(dataset_dir, False if decode is None else decode)
        return self.dataset_dir

    def _end(self, entries: list[tuple[Value, ...]]) -> None:
        if not entries:
            raise ValueError(f"{type(self).__name__}: {self.dataset_dir!r} has no images of those that are asked for")
        self._entries = entries

    def _columns(self) -> list[str]:
        return list(self._names)

    def _total(self) -> int:
        return len(self._entries)

    def _row(self, number: int) -> Row:
        return tuple(self._value(value) for value in self._entries[number])

    def _value(self, value: Value) -> Array:
        if isinstance(value, Picture):
            return self._image(value)
        with reading(type(self).__name__, self.dataset_dir):
            array: Array = value() if callable(value) else value.copy()
        return array

    def _labels(self, column: str) -> Array:
        if column not in self._names or not isinstance(self._entries[0][list(self._names).index(column)], np.ndarray):
            raise ValueError(f"PKSampler: {column!r} is no column of labels; the columns are {list(self._names)}")
        place = list(self._names).index(column)
        return np.array([entry[place] for entry in self._entries])


class FolderSet(FileSet):
    """The base class of datasets with one part: `_list` returns the rows of a folder.

    `dataset_dir` is the folder; `decode` says whether images are pixels instead of the files'
    bytes. `num_samples`, `num_parallel_workers`, `shuffle`, `sampler`, `num_shards`, `shard_id` and
    `cache` are those of `MappableDataset`.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        folder = self._begin(dataset_dir, decode)
        with reading(type(self).__name__, folder):
            self._end(self._list(folder))

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        raise NotImplementedError(f"{type(self).__name__} must define _list")


class UsageSet(FileSet):
    """The base class of datasets with several parts: `_list` returns the rows of the part `usage`.

    `dataset_dir`, `num_samples`, `num_parallel_workers`, `shuffle`, `decode`, `sampler`,
    `num_shards`, `shard_id` and `cache` are those of `FolderSet`.
    """

    _usages: tuple[str, ...] = ("train", "test", "all")
    _default = "all"

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.usage = check_usage(type(self).__name__, usage or self._default, self._usages)
        folder = self._begin(dataset_dir, decode)
        with reading(type(self).__name__, folder):
            self._end(self._list(folder))

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        raise NotImplementedError(f"{type(self).__name__} must define _list")
