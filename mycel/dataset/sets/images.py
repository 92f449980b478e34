"""Well-known datasets of images in folders and lists.

`image_set_base.py` explains how they are read.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mycel.dataset.readers.damaged_files import read_matlab
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_folder, check_usage, image_names, read_lines
from mycel.dataset.sets.image_set_base import (
    FileSet,
    FolderSet,
    Picture,
    UsageSet,
    Value,
    folders_in,
    images_in,
    label,
    one_of,
)


class Caltech256Dataset(FolderSet):
    """Caltech 256 (Griffin, Holub and Perona, 2007): a folder for each class.

    Columns are `image` and `label`, int32, in the order of the folders' names.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.

    Raises:
        ValueError: If there is no folder, or none with images.

    Examples:
        >>> import tempfile, os
        >>> import numpy as np
        >>> import mycel.dataset as ds
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     os.mkdir(os.path.join(folder, "001.ak47"))
        ...     name = os.path.join(folder, "001.ak47", "001_0001.png")
        ...     ds.vision.write_png(name, np.zeros((2, 3, 3), np.uint8))
        ...     ds.Caltech256Dataset(folder, decode=True).output_shapes()
        [[2, 3, 3], []]
    """

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        return [
            (image, label(number, np.int32))
            for number, name in enumerate(folders_in(folder))
            for image in images_in(os.path.join(folder, name))
        ]


class SUN397Dataset(FolderSet):
    """SUN397 (Xiao et al., 2010).

    Columns are `image` and `label`, uint32, the position of the image's folder in `ClassName.txt`.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        names = [line.strip() for line in read_lines("SUN397Dataset", Path(folder, "ClassName.txt")) if line.strip()]
        return [
            (image, label(number))
            for number, name in enumerate(names)
            for image in images_in(check_folder("SUN397Dataset", os.path.join(folder, name.lstrip("/"))))
        ]


class SBUDataset(FolderSet):
    """The SBU captioned photographs (Ordonez, Kulkarni and Berg, 2011).

    Columns are `image` and `caption`, text. The captions and addresses are lines of two files; the
    image of an address ending in `2723/4385_c3.jpg` is `sbu_images/m_2723_4385_c3.jpg`. Those
    without a file are left out.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("image", "caption")

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        start = os.path.join(folder, "SBU_captioned_photo_dataset_")
        addresses, captions = (read_lines("SBUDataset", f"{start}{name}.txt") for name in ("urls", "captions"))
        if len(addresses) != len(captions):
            raise ValueError(f"SBUDataset: {len(addresses)} addresses but {len(captions)} captions in {folder!r}")
        rows = []
        for address, caption in zip(addresses, captions):
            path = os.path.join(folder, "sbu_images", "m_" + "_".join(address.strip().split("/")[-2:]))
            if os.path.isfile(path):
                rows.append((Picture(path), np.array(caption.strip())))
        return rows


class Food101Dataset(UsageSet):
    """Food-101 (Bossard, Guillaumin and Van Gool, 2014).

    Columns are `image` and `label`, text, the name of the class.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "test" or "all" (the default: the training images first), of
            the lists `meta/train.txt` and `meta/test.txt`. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        rows = []
        for part in ("train", "test") if self.usage == "all" else (self.usage,):
            names = [line.strip() for line in read_lines("Food101Dataset", Path(folder, "meta", f"{part}.txt"))]
            names = [name for name in names if name]
            paths = image_names(os.path.join(folder, "images"), [f"{name}.jpg" for name in names], "Food101Dataset")
            rows += [(Picture(path), np.array(name.split("/")[0])) for path, name in zip(paths, names)]
        return rows


class RenderedSST2Dataset(UsageSet):
    """Rendered SST-2 (Radford et al., 2021): sentences as images.

    Columns are `image` and `label`, uint32, 1 for positive ones.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "val", "test" or "all" (the default), of the folders `train`,
            `valid` and `test`, with the folders `negative` and `positive` in each. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _usages = ("train", "val", "test", "all")

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        parts = {"val": ("valid",), "all": ("test", "train", "valid")}.get(self.usage, (self.usage,))
        return [
            (image, label(number))
            for part in parts
            for number, kind in enumerate(("negative", "positive"))
            for image in images_in(check_folder("RenderedSST2Dataset", os.path.join(folder, part, kind)))
        ]


class OmniglotDataset(FileSet):
    """Omniglot (Lake, Salakhutdinov and Tenenbaum, 2015).

    Columns are `image` and `label`, int32, a class for each folder with images, in the order of
    their paths.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        background (bool | None): Chooses `images_background` (True, the default) or
            `images_evaluation`. Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
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
        background: bool | None = None,
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
        self.background = one_of("OmniglotDataset", "background", background, (None, True, False)) in (None, True)
        part = "images_background" if self.background else "images_evaluation"
        start = check_folder("OmniglotDataset", os.path.join(self._begin(dataset_dir, decode), part))
        groups = [images_in(place) for place in sorted(place for place, _, files in os.walk(start) if files)]
        groups = [group for group in groups if group]
        self._end([(image, label(n, np.int32)) for n, group in enumerate(groups) for image in group])


class LSUNDataset(FileSet):
    """LSUN (Yu et al., 2015) as folders of images.

    Columns are `image` and `label`, uint32. Classes are in the order of their names.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train" and "valid" have the folders `<class>_train` and `<class>_val`,
            "all" (the default) both, "test" the folder `test`, with the label 0. For "all"
            MindSpore gives the two folders of a class different labels; here they are the same.
            Default: None.
        classes (str | Sequence[str] | None): The names of the classes to take; all by default.
            Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
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
        classes: str | Sequence[str] | None = None,
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
        self.usage = check_usage("LSUNDataset", usage, ("train", "test", "valid", "all"))
        folder = self._begin(dataset_dir, decode)
        if self.usage == "test":
            images = images_in(check_folder("LSUNDataset", os.path.join(folder, "test")))
            self._end([(image, label(0)) for image in images])
            return
        ends = {"train": ("_train",), "valid": ("_val",)}.get(self.usage, ("_train", "_val"))
        present = {name[: -len(end)] for name in folders_in(folder) for end in ends if name.endswith(end)}
        wanted = {classes} if isinstance(classes, str) else present if classes is None else set(classes)
        if wanted - present:
            raise ValueError(
                f"LSUNDataset: there are no classes {sorted(wanted - present)}; there are {sorted(present)}"
            )
        self._end(
            [
                (image, label(number))
                for number, name in enumerate(sorted(wanted))
                for end in ends
                if os.path.isdir(os.path.join(folder, name + end))
                for image in images_in(os.path.join(folder, name + end))
            ]
        )


class Places365Dataset(FileSet):
    """Places365 (Zhou et al., 2017): columns `image` and `label`, uint32.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train-standard" (the default), "train-challenge" or "val", of the lists
            `places365_train-standard.txt`, `places365_train-challenge.txt` and `places365_val.txt`.
            Default: None.
        small (bool): Whether to take the images of 256 by 256, in `data_256_standard`,
            `data_256_challenge` and `val_256`, instead of the large ones. Default: True.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
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
        small: bool = True,
        decode: bool = False,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        kind = "Places365Dataset"
        self.usage = check_usage(kind, usage or "train-standard", ("train-standard", "train-challenge", "val"))
        folder = self._begin(dataset_dir, decode)
        self.small = one_of(kind, "small", small, (True, False))
        size = "256" if small else "large"
        part = self.usage.split("-")[-1]
        names = ["places365_val.txt"] if part == "val" else [f"places365_train{c}{part}.txt" for c in "-_"]
        listing = next((name for name in names if os.path.isfile(os.path.join(folder, name))), names[0])
        lines = [line.split() for line in read_lines(kind, Path(folder, listing)) if line.strip()]
        for line in lines:
            if len(line) != 2 or not line[1].isdigit():
                raise ValueError(f"{kind}: each line of {listing} must be a file and a number, not {line}")
        images = os.path.join(folder, f"val_{size}" if part == "val" else f"data_{size}_{part}")
        paths = image_names(images, [line[0].lstrip("/") for line in lines], kind)
        self._end([(Picture(path), label(int(line[1]))) for path, line in zip(paths, lines)])


class DIV2KDataset(FileSet):
    """DIV2K (Agustsson and Timofte, 2017).

    Columns are `hr_image` and `lr_image`, an image and the smaller one made of it.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str): "train" (the default), "valid" or "all". Default: "train".
        downgrade (str): How images were made smaller: "bicubic", "unknown", "mild", "difficult" or
            "wild". Default: "bicubic".
        scale (int): How much: "bicubic" by 2, 3, 4 or 8, "unknown" by 2, 3 or 4, the others by 4.
            Default: 2.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool | None): Whether images are pixels, uint8 [H, W, 3], instead of the files'
            bytes. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("hr_image", "lr_image")
    _scales: ClassVar[dict[str, tuple[int, ...]]] = {
        "bicubic": (2, 3, 4, 8),
        "unknown": (2, 3, 4),
        "mild": (4,),
        "difficult": (4,),
        "wild": (4,),
    }

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str = "train",
        downgrade: str = "bicubic",
        scale: int = 2,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.usage = check_usage("DIV2KDataset", usage, ("train", "valid", "all"))
        self.downgrade = one_of("DIV2KDataset", "downgrade", downgrade, tuple(self._scales))
        self.scale = one_of("DIV2KDataset", f"scale for downgrade={downgrade!r}", scale, self._scales[downgrade])
        folder = self._begin(dataset_dir, decode)
        rows = []
        for part in ("train", "valid") if self.usage == "all" else (self.usage,):
            large = images_in(check_folder("DIV2KDataset", os.path.join(folder, f"DIV2K_{part}_HR")))
            small, end = f"DIV2K_{part}_LR_{downgrade}", f"x{scale}"
            if scale == 8:
                small = f"DIV2K_{part}_LR_x8"
            elif downgrade in ("bicubic", "unknown"):
                small = os.path.join(small, f"X{scale}")
            else:
                end += downgrade[0]
            names = [f"{Path(path).stem}{end}.png" for path in large]
            others = image_names(os.path.join(folder, small), names, "DIV2KDataset")
            rows += [(path, Picture(other)) for path, other in zip(large, others)]
        self._end(rows)


class FlickrDataset(FileSet):
    """Flickr8k and Flickr30k (Hodosh, Young and Hockenmaier, 2013; Young et al., 2014).

    Columns are `image` and `annotation`, text [captions].

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        annotation_file (str | os.PathLike[str]): The file of the annotations, each line of which
            has a file's name, "#" and the caption's number, a tab and the caption.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool | None): Whether images are pixels, uint8 [H, W, 3], instead of the files'
            bytes. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    _names = ("image", "annotation")

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        annotation_file: str | os.PathLike[str],
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        folder = self._begin(dataset_dir, decode)
        captions: dict[str, list[str]] = {}
        for line in read_lines("FlickrDataset", annotation_file):
            if line.strip():
                name, found, caption = line.partition("\t")
                if not found or "#" not in name:
                    raise ValueError(
                        f"FlickrDataset: each line must be a file, '#', a tabulator and a caption, not {line!r}"
                    )
                captions.setdefault(name.rpartition("#")[0], []).append(caption)
        paths = image_names(folder, captions, "FlickrDataset")
        self._end([(Picture(path), np.array(texts)) for path, texts in zip(paths, captions.values())])


class Caltech101Dataset(FileSet):
    """Caltech 101 (Fei-Fei, Fergus and Perona, 2004).

    Classes are the folders of `101_ObjectCategories` except `BACKGROUND_Google`, in the order of
    their names; annotations are MATLAB files in `Annotations`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        target_type (str | None): Chooses the columns that follow `image`: "category" (the default),
            int64, "annotation", float64 [2, N], the points around the object, or both ("all").
            Default: None.
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: 1.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
    """

    _elsewhere: ClassVar[dict[str, str]] = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        target_type: str | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        targets = ("category", "annotation")
        self.target_type = one_of("Caltech101Dataset", "target_type", target_type or "category", (*targets, "all"))
        wanted = targets if self.target_type == "all" else (self.target_type,)
        self._names = ("image", *wanted)
        folder = self._begin(dataset_dir, decode)
        start = check_folder("Caltech101Dataset", os.path.join(folder, "101_ObjectCategories"))
        rows: list[tuple[Value, ...]] = []
        for number, name in enumerate(n for n in folders_in(start) if n != "BACKGROUND_Google"):
            outlines = os.path.join(folder, "Annotations", self._elsewhere.get(name, name))
            for image in images_in(os.path.join(start, name)):
                values = {"category": label(number, np.int64), "annotation": _outline(outlines, image)}
                rows.append((image, *(values[target] for target in wanted)))
        self._end(rows)


def _outline(folder: str, image: str) -> Callable[[], Array]:
    name = f"annotation_{Path(image).stem.rpartition('_')[2]}.mat"
    return lambda: np.array(
        read_matlab("Caltech101Dataset", os.path.join(folder, name), {"obj_contour": 1})["obj_contour"]
    )
