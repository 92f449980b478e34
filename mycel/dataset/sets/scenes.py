"""Well-known datasets of images with more than a class.

There are faces, roads, boxes, outlines, and patches that match; `image_set_base.py` explains how
they are read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.damaged_files import read_json, read_matlab
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_class_indexing, check_folder, check_usage, image_names, read_lines
from mycel.dataset.sets.image_set_base import FileSet, Picture, UsageSet, Value, images_in, label, one_of
from mycel.dataset.vision.codecs.image_io import decode_image
from mycel.dataset.vision.enums import ImageReadMode

_MOST_FACES = 100_000


class LFWDataset(FileSet):
    """Labeled Faces in the Wild (Huang et al., 2007).

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        task (str | None): "people" (the default) has columns `image` and `label`, uint32, the
            person's position in `lfw-names.txt`. "pairs" has `image1`, `image2` and `label`,
            uint32, 1 for the same person. Default: None.
        usage (str | None): "10fold", "train", "test" or "all" (the default: the training and the
            test list). Default: None.
        image_set (str | None): "original", "funneled" (the default) or "deepfunneled". Default:
            None.
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

    _folders: ClassVar[dict[str, str]] = {
        "original": "lfw",
        "funneled": "lfw_funneled",
        "deepfunneled": "lfw-deepfunneled",
    }
    _lists: ClassVar[dict[str, tuple[str, ...]]] = {
        "10fold": ("",),
        "train": ("DevTrain",),
        "test": ("DevTest",),
        "all": ("DevTrain", "DevTest"),
    }

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        task: str | None = None,
        usage: str | None = None,
        image_set: str | None = None,
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
        kind = "LFWDataset"
        self.task = one_of(kind, "task", task or "people", ("people", "pairs"))
        self.usage = check_usage(kind, usage, tuple(self._lists))
        self.image_set = one_of(kind, "image_set", image_set or "funneled", tuple(self._folders))
        folder = self._begin(dataset_dir, decode)
        self._images = check_folder(kind, os.path.join(folder, self._folders[self.image_set]))
        lines = [
            words
            for end in self._lists[self.usage]
            for words in map(str.split, read_lines(kind, Path(folder, f"{self.task}{end}.txt")))
        ]
        rows: list[tuple[Value, ...]] = []
        if self.task == "people":
            names = [line.split() for line in read_lines(kind, Path(folder, "lfw-names.txt"))]
            numbers = {words[0]: label(number) for number, words in enumerate(w for w in names if w)}
            for words in lines:
                if len(words) == 2 and not words[0].isdigit():
                    with reading(kind, f"{self.task}.txt"):
                        if int(words[1]) > _MOST_FACES:
                            raise ValueError(f"{words[1]} pictures of {words[0]!r}")
                        rows += [(self._face(words[0], n), numbers[words[0]]) for n in range(1, int(words[1]) + 1)]
        else:
            self._names = ("image1", "image2", "label")
            with reading(kind, f"{self.task}.txt"):
                for words in lines:
                    if len(words) == 3:
                        rows.append((self._face(words[0], words[1]), self._face(words[0], words[2]), label(1)))
                    elif len(words) == 4:
                        rows.append((self._face(words[0], words[1]), self._face(words[2], words[3]), label(0)))
        self._end(rows)

    def _face(self, name: str, number: Any) -> Picture:
        return Picture(os.path.join(self._images, name, f"{name}_{int(number):04d}.jpg"))


class KITTIDataset(UsageSet):
    """The objects of KITTI (Geiger, Lenz and Urtasun, 2012).

    Columns are `image`, `label` and `occluded`, uint32, `truncated`, `alpha` and `rotation_y`,
    float32, all [N, 1], `bbox`, float32 [N, 4], `dimensions` and `location`, float32 [N, 3]. Labels
    follow the names of the classes: Car, Cyclist, DontCare, Misc, Pedestrian, Person_sitting, Tram,
    Truck, Van.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train" (the default) or "test", which has only images. Default: None.
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

    _usages = ("train", "test")
    _default = "train"
    _classes = ("Car", "Cyclist", "DontCare", "Misc", "Pedestrian", "Person_sitting", "Tram", "Truck", "Van")

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        part = "training" if self.usage == "train" else "testing"
        place = os.path.join(folder, "data_object_image_2", part, "image_2")
        images = images_in(check_folder("KITTIDataset", place))
        if self.usage == "test":
            self._names = ("image",)
            return [(image,) for image in images]
        self._names = (
            "image",
            "label",
            "truncated",
            "occluded",
            "alpha",
            "bbox",
            "dimensions",
            "location",
            "rotation_y",
        )
        labels = Path(folder, "data_object_label_2", part, "label_2")
        return [(image, *self._objects(labels / f"{Path(image).stem}.txt")) for image in images]

    def _objects(self, path: Path) -> tuple[Array, ...]:
        lines = [line.split() for line in read_lines("KITTIDataset", path) if line.strip()]
        for line in lines:
            if len(line) < 15 or line[0] not in self._classes:
                raise ValueError(
                    f"KITTIDataset: each line of {os.fspath(path)!r} must be a class and 14 numbers, not {line}"
                )
        classes = np.array([self._classes.index(line[0]) for line in lines], np.uint32).reshape(-1, 1)
        numbers = np.array([line[1:15] for line in lines], np.float64).reshape(-1, 14)
        occluded = numbers[:, 1:2].astype(np.int64).astype(np.uint32)
        parts = [
            numbers[:, start:end].astype(np.float32)
            for start, end in ((0, 1), (2, 3), (3, 7), (7, 10), (10, 13), (13, 14))
        ]
        return classes, parts[0], occluded, *parts[1:]


class WIDERFaceDataset(UsageSet):
    """WIDER FACE (Yang et al., 2016).

    Columns are `image`, `bbox`, int32 [N, 4] of left, top, width and height, and `blur`,
    `expression`, `illumination`, `occlusion`, `pose` and `invalid`, int32 [N]; the test part has
    only `image`. The files have `invalid` before `occlusion` and `pose`; MindSpore reads them as if
    it came last.

    The other parameters are those of `MappableDataset`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str | None): "train", "valid", "test" or "all" (the default: the training images,
            then the validation ones). Default: None.
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

    _usages = ("train", "valid", "test", "all")
    _fields = (4, 5, 6, 8, 9, 7)

    def _list(self, folder: str) -> list[tuple[Value, ...]]:
        lists = os.path.join(folder, "wider_face_split")
        if self.usage == "test":
            self._names = ("image",)
            names = [
                name for name in read_lines("WIDERFaceDataset", f"{lists}/wider_face_test_filelist.txt") if name.strip()
            ]
            return [(image,) for image in self._pictures(folder, "test", names)]
        self._names = ("image", "bbox", "blur", "expression", "illumination", "occlusion", "pose", "invalid")
        rows: list[tuple[Value, ...]] = []
        for part in {"train": ("train",), "valid": ("val",)}.get(self.usage, ("train", "val")):
            path = os.path.join(lists, f"wider_face_{part}_bbx_gt.txt")
            lines = [line.strip() for line in read_lines("WIDERFaceDataset", path) if line.strip()][::-1]
            while lines:
                name, count = lines.pop(), lines.pop() if lines else ""
                if not count.isdigit() or len(lines) < int(count):
                    raise ValueError(
                        f"WIDERFaceDataset: {path!r} has {count!r} after {name!r}, not the number of boxes"
                    )
                boxes = [lines.pop().split() for _ in range(int(count))]
                if not boxes and lines and set(lines[-1].split()) == {"0"}:
                    # Images without any face still have a line, of zeros.
                    lines.pop()
                values = np.array(boxes, np.int32).reshape(-1, 10)
                (image,) = self._pictures(folder, part, [name])
                rows.append((image, values[:, :4], *(values[:, field] for field in self._fields)))
        return rows

    @staticmethod
    def _pictures(folder: str, part: str, names: Sequence[str]) -> list[Picture]:
        place = os.path.join(folder, f"WIDER_{part}", "images")
        return [Picture(path) for path in image_names(place, [name.strip() for name in names], "WIDERFaceDataset")]


class CityscapesDataset(FileSet):
    """Cityscapes (Cordts et al., 2016): columns `image` and `task`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        usage (str): "train" (the default), "val" or "all", "test" for the `quality_mode` "fine",
            "train_extra" for "coarse". Default: "train".
        quality_mode (str): "fine" or "coarse". Default: "fine".
        task (str): "instance" (the default), "semantic" and "color" are images, "polygon" is JSON
            as text. Default: "instance".
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

    _names = ("image", "task")
    _ends: ClassVar[dict[str, str]] = {
        "instance": "instanceIds.png",
        "semantic": "labelIds.png",
        "color": "color.png",
        "polygon": "polygons.json",
    }

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        usage: str = "train",
        quality_mode: str = "fine",
        task: str = "instance",
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
        kind = "CityscapesDataset"
        self.quality_mode = one_of(kind, "quality_mode", quality_mode, ("fine", "coarse"))
        parts = ("train", "test", "val") if quality_mode == "fine" else ("train", "train_extra", "val")
        self.usage = check_usage(kind, usage, (*parts, "all"))
        self.task = one_of(kind, "task", task, tuple(self._ends))
        folder = self._begin(dataset_dir, decode)
        quality = "gtFine" if quality_mode == "fine" else "gtCoarse"
        rows: list[tuple[Value, ...]] = []
        for part in parts if self.usage == "all" else (self.usage,):
            start = Path(check_folder(kind, os.path.join(folder, "leftImg8bit", part)))
            for image in sorted(start.glob("*/*_leftImg8bit.png")):
                name = image.name.replace("leftImg8bit.png", f"{quality}_{self._ends[task]}")
                (target,) = image_names(os.path.join(folder, quality, part, image.parent.name), [name], kind)
                rows.append((Picture(image), _polygons(target) if task == "polygon" else Picture(target)))
        self._end(rows)


def _polygons(path: str) -> Callable[[], Array]:
    def read() -> Array:
        found = read_json("CityscapesDataset", path)
        return np.array(json.dumps(found, separators=(",", ":"), sort_keys=True, ensure_ascii=False))

    return read


class SBDataset(FileSet):
    """The Semantic Boundaries Dataset (Hariharan et al., 2011): columns `image` and `task`.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        task (str): "Boundaries" (the default), uint8 [20, H, W], are the boundaries of each class,
            "Segmentation", uint8 [H, W], the classes. Default: "Boundaries".
        usage (str): "train", "val", "train_noval" or "all" (the default: the training images
            first), of the lists of these names. Default: "all".
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: 1.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        decode (bool | None): Whether images are pixels, uint8 [H, W, 3], instead of the files'
            bytes. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
    """

    _names = ("image", "task")

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        task: str = "Boundaries",
        usage: str = "all",
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        decode: bool | None = None,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        self.task = one_of("SBDataset", "task", task, ("Boundaries", "Segmentation"))
        self.usage = check_usage("SBDataset", usage, ("train", "val", "train_noval", "all"))
        folder = self._begin(dataset_dir, decode)
        parts = ("train", "val") if self.usage == "all" else (self.usage,)
        names = [line.strip() for part in parts for line in read_lines("SBDataset", Path(folder, f"{part}.txt"))]
        paths = image_names(os.path.join(folder, "img"), [f"{name}.jpg" for name in names if name], "SBDataset")
        self._end([(Picture(path), self._target(Path(folder, "cls", f"{Path(path).stem}.mat"))) for path in paths])

    def _target(self, path: Path) -> Callable[[], Array]:
        def read() -> Array:
            with reading("SBDataset", path):
                found = read_matlab("SBDataset", path, {"GTcls": 0})["GTcls"][self.task][0, 0]
                if self.task == "Segmentation":
                    return np.array(found, np.uint8)
                return np.stack([np.asarray(edges, np.uint8) for edges in found.reshape(-1)])

        return read


class Flowers102Dataset(FileSet):
    """Oxford 102 Flowers (Nilsback and Zisserman, 2008).

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        task (str): "Classification" (the default) has columns `image` and `label`, uint32.
            "Segmentation" has `segmentation`, an image, between them. Default: "Classification".
        usage (str): "train", "valid", "test" or "all" (the default: training, test and validation
            images). Default: "all".
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

    _parts: ClassVar[dict[str, str]] = {"train": "trnid", "test": "tstid", "valid": "valid"}

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        task: str = "Classification",
        usage: str = "all",
        num_samples: int | None = None,
        num_parallel_workers: int | None = 1,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id)
        kind = "Flowers102Dataset"
        self.task = one_of(kind, "task", task, ("Classification", "Segmentation"))
        self.usage = check_usage(kind, usage, (*self._parts, "all"))
        folder = self._begin(dataset_dir, decode)
        labels = read_matlab(kind, os.path.join(folder, "imagelabels.mat"), {"labels": 1})["labels"].reshape(-1)
        parts = tuple(self._parts) if self.usage == "all" else (self.usage,)
        sets = read_matlab(kind, os.path.join(folder, "setid.mat"), {self._parts[part]: 1 for part in parts})
        with reading(kind, os.path.join(folder, "setid.mat")):
            numbers = [int(number) for part in parts for number in sets[self._parts[part]].reshape(-1)]
        columns: list[list[Any]] = [
            [
                Picture(path)
                for path in image_names(os.path.join(folder, place), [f"{start}_{n:05d}.jpg" for n in numbers], kind)
            ]
            for place, start in (("jpg", "image"), ("segmim", "segmim"))[: 1 + (task == "Segmentation")]
        ]
        self._names = ("image", "segmentation", "label") if task == "Segmentation" else ("image", "label")
        with reading(kind, os.path.join(folder, "imagelabels.mat")):
            self._end(list(zip(*columns, [label(int(labels[n - 1]) - 1) for n in numbers])))


class ManifestDataset(FileSet):
    """Images listed in a file that has a JSON object in each line.

    Objects have `source`, `usage` and `annotation`; columns are `image` and `label`, int32.

    Args:
        dataset_file (str | os.PathLike[str]): The file.
        usage (str): "train" (the default), "eval" or "inference". Default: "train".
        num_samples (int | None): The largest number of rows in an epoch; None or 0 for all.
            Default: None.
        num_parallel_workers (int | None): The number of threads that read; None for that of the
            settings. Default: None.
        shuffle (bool | Shuffle | None): Whether rows come in random order; None for the default,
            which is random. Default: None.
        sampler (Sampler | Iterable[int] | None): What chooses rows, instead of `num_samples`,
            `shuffle`, `num_shards` and `shard_id`. Default: None.
        class_indexing (dict[str, int] | None): The number of each class by name; others are left
            out. By default classes are numbered in the order of their names. Default: None.
        decode (bool): Whether images are pixels, uint8 [H, W, 3], instead of the files' bytes.
            Default: False.
        num_shards (int | None): The number of shards that share the rows; None for one. Default:
            None.
        shard_id (int | None): The number of this shard, given with `num_shards`. Default: None.
        cache (DatasetCache | None): What keeps the rows for later epochs and other pipelines.
            Default: None.
    """

    def __init__(
        self,
        dataset_file: str | os.PathLike[str],
        usage: str = "train",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        sampler: Any = None,
        class_indexing: dict[str, int] | None = None,
        decode: bool = False,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self.dataset_file = os.fspath(dataset_file)
        self.usage = one_of("ManifestDataset", "usage", usage, ("train", "eval", "inference"))
        given = check_class_indexing("ManifestDataset", class_indexing)
        found: list[tuple[str, str]] = []
        for number, line in enumerate(read_lines("ManifestDataset", dataset_file)):
            if line.strip():
                with reading("ManifestDataset", f"{self.dataset_file}, line {number}"):
                    entry = json.loads(line)
                    if entry["usage"] == usage:
                        found += [(os.fspath(entry["source"]), str(part["name"])) for part in entry["annotation"][:1]]
        self._begin(os.path.dirname(os.path.abspath(self.dataset_file)), decode)
        names = sorted({name for _, name in found})
        self.class_indexing = given if given is not None else {name: number for number, name in enumerate(names)}
        kept = [(path, name) for path, name in found if name in self.class_indexing]
        image_names("", [path for path, _ in kept], "ManifestDataset")
        self._end([(Picture(path), label(self.class_indexing[name], np.int32)) for path, name in kept])

    def num_classes(self) -> int:
        return len(self.class_indexing)

    def get_class_indexing(self) -> dict[str, int]:
        return dict(self.class_indexing)


@Remembered("sheets of patches", FEW).calls
def _sheet(path: str, changed: int) -> Array:
    """Return the grey pixels of a sheet of patches; `changed` is when the file was last written."""
    return decode_image(Path(path).read_bytes(), f"PhotoTourDataset: {path}", ImageReadMode.GRAYSCALE)


class PhotoTourDataset(FileSet):
    """The patches of the Photo Tourism data (Winder and Brown, 2007).

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        name (str): The folder: "notredame", "yosemite", "liberty", or one of these with "_harris".
            Sheets `patches0000.bmp` have 16 by 16 patches.
        usage (str | None): "train" (the default) has the column `image`, uint8 [64, 64, 1]. "test"
            has `image1`, `image2` and `matches`, uint32, 1 where both show the same point. Default:
            None.
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
        kind = "PhotoTourDataset"
        places = ("notredame", "yosemite", "liberty")
        self.name = one_of(kind, "name", name, (*places, *(f"{place}_harris" for place in places)))
        self.usage = check_usage(kind, usage or "train", ("train", "test"))
        self._begin(dataset_dir, False)
        folder = check_folder(kind, os.path.join(self.dataset_dir, name))
        if self.usage == "train":
            self._names = ("image",)
            count = sum(1 for line in read_lines(kind, Path(folder, "info.txt")) if line.strip())
            self._end([(self._patch(folder, n),) for n in range(count)])
            return
        self._names = ("image1", "image2", "matches")
        rows: list[tuple[Value, ...]] = []
        for line in read_lines(kind, Path(folder, "m50_100000_100000_0.txt")):
            if line.strip():
                with reading(kind, "m50_100000_100000_0.txt"):
                    first, point, _, second, other, *_ = map(int, line.split())
                rows.append((self._patch(folder, first), self._patch(folder, second), label(int(point == other))))
        self._end(rows)

    @staticmethod
    def _patch(folder: str, number: int) -> Callable[[], Array]:
        def read() -> Array:
            path = os.path.join(folder, f"patches{number // 256:04d}.bmp")
            sheet = _sheet(path, os.stat(path).st_mtime_ns)
            row, column = divmod(number % 256, 16)
            patch: Array = sheet[64 * row : 64 * row + 64, 64 * column : 64 * column + 64].copy()
            return patch

        return read
