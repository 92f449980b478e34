"""Well-known datasets of digits and letters, and datasets of random rows.

EMNIST and QMNIST are IDX files, USPS is text with "number:value" entries, Semeion is text with 256
pixels and ten marks in each line. Random rows are functions of a seed and their number.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel.base.idx import read_idx
from mycel.dataset import config
from mycel.dataset.arguments import check_count, names
from mycel.dataset.blocks import Array, Block, Column, Row
from mycel.dataset.families import VisionBaseDataset
from mycel.dataset.randomness import generator
from mycel.dataset.readers.failures import reading
from mycel.dataset.readers.schema import Schema
from mycel.dataset.readers.text_files import FileOrder, check_shards
from mycel.dataset.samplers import Indices, Shuffle
from mycel.dataset.sets.image_files import check_folder, check_usage
from mycel.dataset.sets.text import read_lines
from mycel.dataset.sources import ArrayDataset, MappableDataset


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


class _Digits(ArrayDataset, VisionBaseDataset):
    """The base class of datasets whose images and labels are all in memory."""

    _arrays: dict[str, Column]

    def _set(self, images: Sequence[Array], labels: Sequence[Array]) -> None:
        if len(images) != len(labels) or any(len(i) != len(k) for i, k in zip(images, labels)):
            raise ValueError(f"{type(self).__name__}: {list(map(len, images))} images, {list(map(len, labels))} labels")
        self._arrays = {"image": np.concatenate(images), "label": np.concatenate(labels)}

    def _data(self) -> dict[str, Column]:
        return self._arrays


class EMnistDataset(_Digits):
    """EMNIST (Cohen et al., 2017): columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    * `name`: "byclass", "bymerge", "balanced", "letters", "digits" or "mnist".
    * `usage`: "train", "test" or "all" (the default), where the test images come first.

    Images are as the files have them, with rows and columns exchanged. Raises ValueError for
    missing files.

    `dataset_dir` is the folder of the files. The other parameters are those of `MappableDataset`.

    >>> import tempfile, os
    >>> import numpy as np
    >>> import mycel.dataset as ds
    >>> from mycel.base.idx import write_idx
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
        if name not in known:
            raise ValueError(f"{kind}: name must be one of {', '.join(map(repr, known))}, got {name!r}")
        self.name = name
        self.usage = check_usage(kind, usage, ("train", "test", "all"))
        self.dataset_dir = check_folder(kind, dataset_dir)
        starts = [f"emnist-{name}-{part}" for part in (("test", "train") if self.usage == "all" else (self.usage,))]
        images = [_read(kind, self.dataset_dir, f"{start}-images-idx3-ubyte", np.uint8, 3) for start in starts]
        labels = [_read(kind, self.dataset_dir, f"{start}-labels-idx1-ubyte", np.uint8, 1) for start in starts]
        self._set([part[..., None] for part in images], [part.astype(np.uint32) for part in labels])


class QMnistDataset(_Digits):
    """QMNIST (Yadav and Bottou, 2019): columns `image`, uint8 [28, 28, 1], and `label`, uint32.

    * `usage`: "train", "test", "test10k" (the first 10000 of "test"), "test50k" (the others),
      "nist" or "all" (the default: training, test and NIST images).
    * `compat`: whether a label is the class instead of [8], all that is known of the digit.

    `dataset_dir` is the folder of the files. The other parameters are those of `MappableDataset`.
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
        if not isinstance(compat, bool):
            raise TypeError(f"{kind}: compat must be a bool, got {compat!r}")
        self.compat = compat
        self.dataset_dir = check_folder(kind, dataset_dir)
        images, labels = [], []
        for part in ("train", "test", "nist") if self.usage == "all" else (self.usage,):
            start = "xnist" if part == "nist" else "qmnist-train" if part == "train" else "qmnist-test"
            rows = {"test10k": slice(0, 10000), "test50k": slice(10000, None)}.get(part, slice(None))
            images.append(_read(kind, self.dataset_dir, f"{start}-images-idx3-ubyte", np.uint8, 3)[rows, ..., None])
            found = _read(kind, self.dataset_dir, f"{start}-labels-idx2-int", np.int32, 2)[rows].astype(np.uint32)
            labels.append(found[:, 0] if compat else found)
        self._set(images, labels)


class SemeionDataset(_Digits):
    """Semeion (Buscema, 1998), the file `semeion.data`.

    Columns are `image`, uint8 [16, 16] of 0 and 1, and `label`, uint32.

    `dataset_dir` is the folder of the files. The other parameters are those of `MappableDataset`.
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
        rows = [line.split() for line in read_lines("SemeionDataset", Path(self.dataset_dir, "semeion.data"))]
        rows = [row for row in rows if row]
        if not rows or any(len(row) != 266 for row in rows):
            raise ValueError(f"SemeionDataset: {self.dataset_dir!r}: lines of semeion.data must have 266 numbers each")
        with reading("SemeionDataset", Path(self.dataset_dir, "semeion.data")):
            values = np.array(rows, np.float64).astype(np.uint8)
        self._set([values[:, :256].reshape(-1, 16, 16)], [values[:, 256:].argmax(1).astype(np.uint32)])


class USPSDataset(_Digits):
    """USPS (Hull, 1994), the files `usps` and `usps.t`.

    Columns are `image`, uint8 [16, 16, 1], and `label`, uint32. `usage` is "train", "test" or "all"
    (the default). A line of a file has the label, from 1 on, and 256 entries "number:value" with
    values from -1 to 1.

    `dataset_dir` is the folder of the files. The other parameters are those of `MappableDataset`.
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
        parts = {"train": ("usps",), "test": ("usps.t",)}.get(self.usage, ("usps", "usps.t"))
        images, labels = zip(*(self._load(Path(self.dataset_dir, part)) for part in parts))
        self._set(images, labels)
        shards = check_shards("USPSDataset", num_shards, shard_id)
        self.sampler = FileOrder("USPSDataset", shuffle, [len(part) for part in labels], num_samples, shards)

    @staticmethod
    def _load(path: Path) -> tuple[Array, Array]:
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


class FakeImageDataset(MappableDataset, VisionBaseDataset):
    """Random images and labels.

    * `num_images`: the number of rows.
    * `image_size`: the shape of the column `image`, uint8.
    * `num_classes`: the number of classes, which the column `label`, uint32, is below.
    * `base_seed`: the seed; a row depends only on it and on its number.

    The other parameters are those of `MappableDataset`. Raises ValueError for sizes and counts
    below 1.

    >>> import mycel.dataset as ds
    >>> ds.FakeImageDataset(10, (8, 8, 3), num_classes=2).output_shapes()
    [[8, 8, 3], []]
    """

    def __init__(
        self,
        num_images: int = 1000,
        image_size: Sequence[int] = (224, 224, 3),
        num_classes: int = 10,
        base_seed: int = 0,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        kind = "FakeImageDataset"
        self.num_images = check_count(kind, "num_images", num_images, 1)
        self._classes = check_count(kind, "num_classes", num_classes, 1)
        self.base_seed = check_count(kind, "base_seed", base_seed, 0)
        if not isinstance(image_size, (list, tuple)) or len(image_size) != 3:
            raise ValueError(f"{kind}: image_size must be height, width and channels, got {image_size!r}")
        self.image_size = tuple(check_count(kind, "image_size", n, 1) for n in image_size)

    def num_classes(self) -> int:
        return self._classes

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _total(self) -> int:
        return self.num_images

    def _label(self, number: int) -> Array:
        return np.array(generator(self.base_seed, number, 1).integers(self._classes), np.uint32)

    def _labels(self, column: str) -> Array:
        return np.array([self._label(number) for number in range(self.num_images)])

    def _gather(self, indices: Indices) -> Block:
        rows: list[Row] = []
        for number in map(int, indices):
            image = generator(self.base_seed, number, 0).integers(0, 256, self.image_size, np.uint8)
            rows.append((image, self._label(number)))
        return Block.from_rows(rows)


_MADE_UP = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")


class RandomDataset(MappableDataset, VisionBaseDataset):
    """Random rows.

    * `total_rows`: the number of rows; without it there are as many as the schema states, or some.
    * `schema`: the `Schema` of the columns, or the name of its file; without it there are some
      columns "c0", "c1", ... of random types and shapes.
    * `columns_list`: the columns of the schema to use.

    The other parameters are those of `MappableDataset`. Integers are drawn from the full range of
    their type, floats from [0, 1), text from the digits. Rows depend on the seed of
    `mycel.dataset.config` when the dataset is made.

    >>> import mycel.dataset as ds
    >>> schema = ds.Schema()
    >>> schema.add_column("x", "float32", [2, 3])
    >>> ds.RandomDataset(4, schema).output_shapes()
    [[2, 3]]
    """

    def __init__(
        self,
        total_rows: int | None = None,
        schema: Any = None,
        columns_list: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        cache: Any = None,
        shuffle: bool | Shuffle | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, None, num_samples, shuffle, num_shards, shard_id, cache)
        kind = "RandomDataset"
        self._seed = config.get_seed()
        random = generator(self._seed, 11)
        found = Schema(schema) if isinstance(schema, (str, os.PathLike)) else schema
        if found is not None and not isinstance(found, Schema):
            raise TypeError(f"{kind}: schema must be a Schema or the name of its file, got {schema!r}")
        wanted = None if columns_list is None else names(columns_list, f"{kind}: columns_list")
        if found is None:
            self._made = [
                (
                    name,
                    _MADE_UP[random.integers(len(_MADE_UP))],
                    tuple(random.integers(1, 5, random.integers(0, 4)).tolist()),
                )
                for name in wanted or [f"c{number}" for number in range(random.integers(1, 5))]
            ]
        else:
            columns = {column["name"]: column for column in found.columns}
            missing = [name for name in wanted or () if name not in columns]
            if missing or not columns:
                raise ValueError(
                    f"{kind}: the schema has no column {', '.join(map(repr, missing))}; it has {list(columns)}"
                )
            self._made = [
                (name, columns[name]["type"], tuple(abs(n) for n in columns[name].get("shape", (1,))))
                for name in wanted or columns
            ]
        stated = found.num_rows if found is not None else 0
        rows = total_rows if total_rows is not None else stated or int(random.integers(1, 101))
        self.total_rows = check_count(kind, "total_rows", rows, 1)

    def _columns(self) -> list[str]:
        return [name for name, _, _ in self._made]

    def _total(self) -> int:
        return self.total_rows

    def _value(self, random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
        if kind == "string":
            return random.integers(0, 10, shape).astype(np.str_)
        if kind == "bool":
            return random.integers(0, 2, shape).astype(np.bool_)
        if kind.startswith("float"):
            return random.random(shape).astype(kind)
        limits = np.iinfo(kind)
        return np.asarray(random.integers(limits.min, limits.max, shape, kind, endpoint=True))

    def _gather(self, indices: Indices) -> Block:
        rows: list[Row] = []
        for number in map(int, indices):
            random = generator(self._seed, number, 13)
            rows.append(tuple(self._value(random, kind, shape) for _, kind, shape in self._made))
        return Block.from_rows(rows)
