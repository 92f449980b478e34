"""Datasets of random rows, which are functions of a seed and their number."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset import config
from mycel.dataset.arguments import check_count, names
from mycel.dataset.basic_sources.mappable_source import MappableDataset
from mycel.dataset.basic_sources.modality_bases import VisionBaseDataset
from mycel.dataset.random_numbers.random_streams import generator
from mycel.dataset.readers.schema import Schema
from mycel.dataset.rows.column_blocks import Array, Block, Row
from mycel.dataset.samplers import Indices, Shuffle


class FakeImageDataset(MappableDataset, VisionBaseDataset):
    """Random images and labels.

    Args:
        num_images (int): The number of rows. Default: 1000.
        image_size (Sequence[int]): The shape of the column `image`, uint8. Default: (224, 224, 3).
        num_classes (int): The number of classes, which the column `label`, uint32, is below.
            Default: 10.
        base_seed (int): The seed; a row depends only on it and on its number. Default: 0.
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
        ValueError: For sizes and counts below 1.

    Examples:
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
        kind = "FakeImageDataset"
        if sampler is not None and (num_samples is not None or shuffle is not None):
            raise RuntimeError(f"{kind}: a sampler was given, so num_samples and shuffle would have no effect")
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.num_images = check_count(kind, "num_images", num_images, 1)
        self._classes = check_count(kind, "num_classes", num_classes, 1)
        self.base_seed = check_count(kind, "base_seed", base_seed, 0)
        if len(arguments.sequence(kind, "image_size", image_size)) != 3:
            raise ValueError(f"{kind}: image_size must be height, width and channels, not {image_size!r}")
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

    Integers are drawn from the full range of their type, floats from [0, 1), text from the digits.
    Rows depend on the seed of `mycel.dataset.config` when the dataset is made.

    Args:
        total_rows (int | None): The number of rows; without it there are as many as the schema
            states, or some. Default: None.
        schema (Schema | str | None): A `Schema`, or the name of its file; None for what there is.
            Default: None.
        columns_list (Sequence[str] | None): The columns of the schema to use. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.

    Examples:
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
        arguments.optional(kind, "schema", found, Schema, "a Schema or the name of its file")
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
