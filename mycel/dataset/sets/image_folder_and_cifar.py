"""Sources of images in files: folders of classes, CIFAR, SVHN, STL-10 and CelebA.

Images are the bytes of their files, uint8 [N], or pixels, uint8 [H, W, 3], where `decode` asks for
them or the format holds pixels.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel.dataset.basic_sources.mappable_source import HeldDataset
from mycel.dataset.basic_sources.modality_bases import VisionBaseDataset
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.damaged_files import read_matlab
from mycel.dataset.rows.column_blocks import Array, Column, Row
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_class_indexing, check_extensions, check_folder, check_usage
from mycel.dataset.sets.image_set_base import Decrypt, FileDataset


class ImageFolderDataset(FileDataset):
    """Images in a folder for each class: columns `image` and `label`, int32.

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
        extensions (Sequence[str] | None): The endings of the files to take, all files by default,
            in the order of their names. Default: None.
        class_indexing (dict[str, int] | None): The number of each class by folder name; other
            folders are left out. By default classes are numbered in the order of their names.
            Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        decrypt (Decrypt): A function from the path of an image to its bytes. Default: None.

    Raises:
        ValueError: While iterating for a file that cannot be decoded.

    Examples:
        >>> import tempfile, os
        >>> import numpy as np
        >>> import mycel.dataset as ds
        >>> from mycel.dataset import vision
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for name in ("cat", "dog"):
        ...         os.mkdir(os.path.join(folder, name))
        ...         vision.write_png(os.path.join(folder, name, "1.png"), np.zeros((2, 3, 3),
        ...     np.uint8))
        ...     data = ds.ImageFolderDataset(folder, shuffle=False, decode=True)
        ...     data.get_class_indexing(), data.get_dataset_size(), data.output_shapes()
        ({'cat': 0, 'dog': 1}, 2, [[2, 3, 3], []])
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        extensions: Sequence[str] | None = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        decrypt: Decrypt = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._setup(dataset_dir, decode, decrypt)
        self.extensions = check_extensions("ImageFolderDataset", extensions)
        given = check_class_indexing("ImageFolderDataset", class_indexing)
        folders = sorted(entry.name for entry in os.scandir(self.dataset_dir) if entry.is_dir())
        self.class_indexing = given if given is not None else {name: number for number, name in enumerate(folders)}
        self._files: list[tuple[str, int]] = []
        for name in folders:
            if name not in self.class_indexing:
                continue
            folder = os.path.join(self.dataset_dir, name)
            files = sorted(entry.name for entry in os.scandir(folder) if entry.is_file())
            for file in files:
                if self.extensions is None or file.endswith(self.extensions):
                    self._files.append((os.path.join(folder, file), self.class_indexing[name]))
        if not self._files:
            raise ValueError(f"ImageFolderDataset: {self.dataset_dir!r} has no folders with images")

    def _columns(self) -> list[str]:
        return ["image", "label"]

    def _total(self) -> int:
        return len(self._files)

    def _labels(self, column: str) -> Array:
        return np.array([label for _, label in self._files], np.int32)

    def _row(self, number: int) -> Row:
        path, label = self._files[number]
        return self._image(path), np.array(label, np.int32)

    def num_classes(self) -> int:
        return len(self.class_indexing)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self.class_indexing)


class Cifar10Dataset(HeldDataset, VisionBaseDataset):
    """The binary version of CIFAR-10 (Krizhevsky, 2009).

    Columns are `image`, uint8 [32, 32, 3], and `label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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
        ValueError: For a folder without the files, or with files of another length.
    """

    _parts: tuple[tuple[str, str], ...] = (("train", "data_batch_"), ("test", "test_batch"))

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
        self.usage = check_usage(kind, usage, ("train", "test", "all"))
        self.dataset_dir = check_folder(kind, dataset_dir)
        starts = tuple(start for part, start in self._parts if self.usage in ("all", part))
        names = sorted(n for n in os.listdir(self.dataset_dir) if n.startswith(starts) and n.endswith(".bin"))
        if not names:
            wanted = " or ".join(start if start.endswith(".bin") else f"{start}*.bin" for start in starts)
            raise ValueError(f"{kind}: {self.dataset_dir!r} has no file {wanted}; the binary version is needed")
        self._files = [os.path.join(self.dataset_dir, name) for name in names]

    def _row_bytes(self) -> int:
        return len(self._names) - 1 + 3072

    def _check_length(self, path: str, found: int) -> int:
        size = self._row_bytes()
        if not found or found % size:
            name = os.path.basename(path)
            raise ValueError(f"{type(self).__name__}: {name!r} has {found} bytes, which are no rows of {size}")
        return found // size

    def _length(self) -> int:
        return sum(self._check_length(path, os.path.getsize(path)) for path in self._files)

    def _load(self) -> dict[str, Column]:
        parts = []
        for path in self._files:
            content = np.fromfile(path, np.uint8)
            parts.append(content.reshape(self._check_length(path, content.size), self._row_bytes()))
        rows = np.concatenate(parts)
        labels = len(self._names) - 1
        images = np.ascontiguousarray(rows[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        columns: dict[str, Column] = {"image": images}
        for position, label in enumerate(self._names[1:]):
            columns[label] = rows[:, position].astype(np.uint32)
        return columns


class Cifar100Dataset(Cifar10Dataset):
    """The binary version of CIFAR-100; `Cifar10Dataset` explains the parameters.

    Columns are `image`, uint8 [32, 32, 3], `coarse_label` and `fine_label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default). Default: None.
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

    _parts = (("train", "train.bin"), ("test", "test.bin"))
    _names = ("image", "coarse_label", "fine_label")


class STL10Dataset(HeldDataset, VisionBaseDataset):
    """The binary files of STL-10 (Coates, Ng and Lee, 2011).

    Columns are `image`, uint8 [96, 96, 3], and `label`, int32, from 0 on, or -1 where there is
    none.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "unlabeled", "train+unlabeled" or "all" (the default).
            Default: None.
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
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        parts = ("train", "test", "unlabeled")
        self.usage = check_usage("STL10Dataset", usage, (*parts, "train+unlabeled", "all"))
        self.dataset_dir = check_folder("STL10Dataset", dataset_dir)
        wanted = ["test", "train", "unlabeled"] if self.usage == "all" else self.usage.split("+")
        self._parts = wanted
        for part in wanted:
            self._images_of(part)

    def _images_of(self, part: str) -> str:
        path = os.path.join(self.dataset_dir, f"{part}_X.bin")
        if not os.path.isfile(path):
            raise ValueError(f"STL10Dataset: there is no file {path!r}")
        return path

    def _length(self) -> int:
        return sum(os.path.getsize(self._images_of(part)) // (3 * 96 * 96) for part in self._parts)

    def _load(self) -> dict[str, Column]:
        images, labels = zip(*map(self._part_of, self._parts))
        return {"image": np.concatenate(images), "label": np.concatenate(labels)}

    def _part_of(self, part: str) -> tuple[Array, Array]:
        path = self._images_of(part)
        content = np.fromfile(path, np.uint8)
        if content.size % (3 * 96 * 96):
            raise ValueError(f"STL10Dataset: {path!r} has {content.size} bytes, which are no images of 96 by 96")
        images = np.ascontiguousarray(content.reshape(-1, 3, 96, 96).transpose(0, 3, 2, 1))
        if part == "unlabeled":
            return images, np.full(len(images), -1, np.int32)
        labels = np.fromfile(os.path.join(self.dataset_dir, f"{part}_y.bin"), np.uint8).astype(np.int32) - 1
        if len(labels) != len(images):
            raise ValueError(f"STL10Dataset: {len(images)} images but {len(labels)} labels in the {part} files")
        return images, labels


class SVHNDataset(HeldDataset, VisionBaseDataset):
    """The cropped digits of SVHN (Netzer et al., 2011), which are MATLAB files.

    Columns are `image`, uint8 [32, 32, 3], and `label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test", "extra" or "all" (the default). Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: 1.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        parts = ("train", "test", "extra")
        self.usage = check_usage("SVHNDataset", usage, (*parts, "all"))
        self.dataset_dir = check_folder("SVHNDataset", dataset_dir)
        self._parts = parts if self.usage == "all" else (self.usage,)

    def _load(self) -> dict[str, Column]:
        images, labels = zip(*map(self._part_of, self._parts))
        return {"image": np.concatenate(images), "label": np.concatenate(labels)}

    def _part_of(self, part: str) -> tuple[Array, Array]:
        path = os.path.join(self.dataset_dir, f"{part}_32x32.mat")
        found = read_matlab("SVHNDataset", path, {"X": 4, "y": 1})
        images, labels = found["X"], found["y"].reshape(-1)
        if images.dtype != np.uint8 or images.shape[:3] != (32, 32, 3) or images.shape[3:] != labels.shape:
            raise ValueError(
                f"SVHNDataset: {path!r} has images {images.dtype} {images.shape} and labels {labels.shape}, not "
                "uint8 (32, 32, 3, N) and N"
            )
        with reading("SVHNDataset", path):
            # The files call the digit 0 class 10.
            return np.ascontiguousarray(np.moveaxis(images, -1, 0)), (labels % 10).astype(np.uint32)


class CelebADataset(FileDataset):
    """The images of CelebA (Liu et al., 2015).

    Columns are `image` and `attr`, uint32 [number of attributes], 1 where the image has the
    attribute. The folder has the images, `list_attr_celeba.txt` and, but for "all",
    `list_eval_partition.txt`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        usage (str): "train", "valid", "test" or "all" (the default). Default: "all".
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        extensions (Sequence[str] | None): The endings of the files to take; all by default.
            Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
        decrypt (Decrypt): A function from the path of an image to its bytes. Default: None.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        usage: str = "all",
        sampler: Any = None,
        decode: bool = False,
        extensions: Sequence[str] | None = None,
        num_samples: int | None = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        decrypt: Decrypt = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._setup(dataset_dir, decode, decrypt)
        parts = ("train", "valid", "test")
        self.usage = check_usage("CelebADataset", usage, (*parts, "all"))
        self.extensions = check_extensions("CelebADataset", extensions)
        lines = self._lines("list_attr_celeba.txt")
        count = len(lines[1]) if len(lines) > 1 else 0
        wanted: set[str] | None = None
        if self.usage != "all":
            number = str(parts.index(self.usage))
            wanted = {line[0] for line in self._lines("list_eval_partition.txt") if line[1:2] == [number]}
        self._rows: list[tuple[str, Array]] = []
        for line in lines[2:]:
            if len(line) != count + 1 or not set(line[1:]) <= {"1", "-1"}:
                raise ValueError(
                    f"CelebADataset: each line of list_attr_celeba.txt must be a file and {count} times 1 or -1, not "
                    f"{line}"
                )
            if wanted is not None and line[0] not in wanted:
                continue
            if self.extensions is None or line[0].endswith(self.extensions):
                self._rows.append((line[0], np.array([value == "1" for value in line[1:]], np.uint32)))
        if not self._rows:
            raise ValueError(f"CelebADataset: {self.dataset_dir!r} has no images for usage={self.usage!r}")

    def _lines(self, name: str) -> list[list[str]]:
        path = Path(self.dataset_dir, name)
        if not path.is_file():
            raise ValueError(f"CelebADataset: there is no file {os.fspath(path)!r}")
        with reading("CelebADataset", path):
            return [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]

    def _columns(self) -> list[str]:
        return ["image", "attr"]

    def _total(self) -> int:
        return len(self._rows)

    def _row(self, number: int) -> Row:
        name, attributes = self._rows[number]
        return self._image(os.path.join(self.dataset_dir, name)), attributes.copy()
