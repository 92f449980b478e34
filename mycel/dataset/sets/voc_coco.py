"""Sources of images with annotations: Pascal VOC and Microsoft COCO."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel._src.foundation.files import decompression as inflate
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.readers.damaged_files import read_json, read_xml
from mycel.dataset.rows.column_blocks import Array, Row
from mycel.dataset.samplers import Shuffle
from mycel.dataset.sets.folder_checks import check_class_indexing, image_names, read_lines
from mycel.dataset.sets.image_set_base import Decrypt, FileDataset

FILE_NAME = "_meta-filename"


def _column(values: Sequence[Any], kind: Any = np.uint32) -> Array:
    return np.array(values, kind).reshape(-1, 1)


class _Annotated(FileDataset):
    """The base class of annotated images: `_paths` and `_targets`, in the order of `_names`."""

    _names: list[str]
    _paths: list[str]
    _targets: list[tuple[Array, ...]]
    extra_metadata: bool
    class_indexing: dict[str, Any]

    def _check(self, task: str, tasks: Sequence[str], extra_metadata: bool) -> None:
        kind = type(self).__name__
        arguments.one_of(kind, "task", task, tasks)
        arguments.flag(kind, "extra_metadata", extra_metadata)
        self.task = task
        self.extra_metadata = extra_metadata

    def _columns(self) -> list[str]:
        return ["image", *self._names, *([FILE_NAME] if self.extra_metadata else [])]

    def _total(self) -> int:
        return len(self._paths)

    def _row(self, number: int) -> Row:
        path = self._paths[number]
        row = (self._image(path), *(target.copy() for target in self._targets[number]))
        return (*row, np.array(Path(path).stem)) if self.extra_metadata else row

    def get_class_indexing(self) -> dict[str, Any]:
        return dict(self.class_indexing)


class VOCDataset(_Annotated):
    """Pascal VOC (Everingham et al., 2010): images, and their segmentation or the objects in them.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        task (str): "Segmentation" has columns `image` and `target`, both images. "Detection" has
            `image`, `bbox`, float32 [N, 4] of left, top, width and height, `label`, `difficult` and
            `truncate`, uint32 [N, 1]. Default: "Segmentation".
        usage (str): The list of images in ImageSets/Segmentation or ImageSets/Main. Default:
            "train".
        class_indexing (dict[str, int] | None): The number of each class by name; other objects are
            left out, as are images without any. By default classes are numbered in the order of
            their names. Default: None.
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
        extra_metadata (bool): Whether a column `_meta-filename` follows, which appears once it is
            renamed. Default: False.
        decrypt (Decrypt): A function from the path of an image to its bytes. Default: None.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        task: str = "Segmentation",
        usage: str = "train",
        class_indexing: dict[str, int] | None = None,
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        extra_metadata: bool = False,
        decrypt: Decrypt = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._setup(dataset_dir, decode, decrypt)
        self._check(task, ("Segmentation", "Detection"), extra_metadata)
        given = check_class_indexing("VOCDataset", class_indexing)
        if given is not None and task == "Segmentation":
            raise ValueError("VOCDataset: class_indexing has a meaning for task='Detection' alone")
        self.usage = usage
        listing = Path(
            self.dataset_dir, "ImageSets", "Segmentation" if task == "Segmentation" else "Main", f"{usage}.txt"
        )
        if not listing.is_file():
            raise ValueError(f"VOCDataset: there is no file {os.fspath(listing)!r}, needed for usage={usage!r}")
        names = [line.split()[0] for line in read_lines("VOCDataset", listing) if line.strip()]
        folder = os.path.join(self.dataset_dir, "JPEGImages")
        paths = image_names(folder, [f"{name}.jpg" for name in names], "VOCDataset")
        self.class_indexing = {}
        if task == "Segmentation":
            self._names = ["target"]
            self._paths = paths
            masks = os.path.join(self.dataset_dir, "SegmentationClass")
            self._masks = image_names(masks, [f"{name}.png" for name in names], "VOCDataset")
            self._targets = [() for _ in names]
            return
        self._names = ["bbox", "label", "difficult", "truncate"]
        found = [_objects(Path(self.dataset_dir, "Annotations", f"{name}.xml")) for name in names]
        classes = sorted({name for objects in found for name, *_ in objects})
        self.class_indexing = given if given is not None else {name: number for number, name in enumerate(classes)}
        self._paths, self._targets = [], []
        for path, objects in zip(paths, found):
            kept = [entry for entry in objects if entry[0] in self.class_indexing]
            if kept:
                labels, boxes, difficult, truncated = zip(*kept)
                numbers = [self.class_indexing[label] for label in labels]
                self._paths.append(path)
                self._targets.append(
                    (np.array(boxes, np.float32), _column(numbers), _column(difficult), _column(truncated))
                )

    def _row(self, number: int) -> Row:
        image, *others = super()._row(number)
        return (image, self._image(self._masks[number]), *others) if self.task == "Segmentation" else (image, *others)


def _objects(path: Path) -> list[tuple[str, list[float], int, int]]:
    """Return (name, [left, top, width, height], difficult, truncated) of each annotated object."""
    objects = []
    with reading("VOCDataset", path):
        for entry in read_xml("VOCDataset", path).iter("object"):
            left, top, right, bottom = (
                float(entry.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")
            )
            flags = [int(entry.findtext(flag, "0")) for flag in ("difficult", "truncated")]
            objects.append((entry.findtext("name", ""), [left, top, right - left, bottom - top], flags[0], flags[1]))
    return objects


class CocoDataset(_Annotated):
    """Microsoft COCO (Lin et al., 2014): the images that have annotations, and these.

    Args:
        dataset_dir (str | os.PathLike[str]): The folder of the files.
        annotation_file (str | os.PathLike[str]): The file of the annotations.
        task (str): "Detection" has columns `image`, `bbox`, float32 [N, 4] of left, top, width and
            height, `category_id` and `iscrowd`, uint32 [N, 1]. "Stuff" has `image`, `segmentation`,
            float32, a row for each polygon (or the counts of run lengths), padded with -1, and
            `iscrowd`. "Keypoint" has `image`, `keypoints`, float32 [N, K], and `num_keypoints`.
            "Panoptic" is "Detection" with `area`. "Captioning" has `image` and `captions`, text [N,
            1]. Default: "Detection".
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
        extra_metadata (bool): Whether a column `_meta-filename` follows, which appears once it is
            renamed. Default: False.
        decrypt (Decrypt): A function from the path of an image to its bytes. Default: None.
    """

    def __init__(
        self,
        dataset_dir: str | os.PathLike[str],
        annotation_file: str | os.PathLike[str],
        task: str = "Detection",
        num_samples: int | None = None,
        num_parallel_workers: int | None = None,
        shuffle: bool | Shuffle | None = None,
        decode: bool = False,
        sampler: Any = None,
        num_shards: int | None = None,
        shard_id: int | None = None,
        cache: Any = None,
        extra_metadata: bool = False,
        decrypt: Decrypt = None,
    ) -> None:
        super().__init__(num_parallel_workers, sampler, num_samples, shuffle, num_shards, shard_id, cache)
        self._setup(dataset_dir, decode, decrypt)
        self._check(task, ("Detection", "Stuff", "Panoptic", "Keypoint", "Captioning"), extra_metadata)
        self.annotation_file = os.fspath(annotation_file)
        with reading("CocoDataset", self.annotation_file):
            found = read_json("CocoDataset", self.annotation_file)
            files = {image["id"]: image["file_name"] for image in found["images"]}
            groups: dict[int, list[dict[str, Any]]] = {number: [] for number in files}
            for entry in found["annotations"]:
                parts = entry["segments_info"] if task == "Panoptic" else [entry]
                groups[entry["image_id"]] += parts
            self._names, make = _COCO[task]
            kept = [number for number in files if groups[number]]
            self._targets = [make(groups[number]) for number in kept]
            self.class_indexing = {} if task == "Captioning" else _categories(found["categories"], task == "Panoptic")
            self._paths = image_names(self.dataset_dir, [files[number] for number in kept], "CocoDataset")


def _categories(entries: Sequence[dict[str, Any]], things: bool) -> dict[str, list[int]]:
    return {entry["name"]: [entry["id"], *([entry["isthing"]] if things else [])] for entry in entries}


def _detection(entries: Sequence[dict[str, Any]]) -> tuple[Array, ...]:
    return (
        np.array([entry["bbox"] for entry in entries], np.float32).reshape(-1, 4),
        _column([entry["category_id"] for entry in entries]),
        _column([entry["iscrowd"] for entry in entries]),
    )


def _panoptic(entries: Sequence[dict[str, Any]]) -> tuple[Array, ...]:
    return (*_detection(entries), _column([entry["area"] for entry in entries]))


def _stuff(entries: Sequence[dict[str, Any]]) -> tuple[Array, ...]:
    lines: list[list[float]] = []
    for entry in entries:
        shape = entry["segmentation"]
        lines += [shape["counts"]] if isinstance(shape, dict) else shape
    longest, count = max(map(len, lines)), sum(map(len, lines))
    if 4 * len(lines) * longest > inflate.limit(8 * count):
        raise ValueError(f"{len(lines)} outlines would all be filled up to {longest} numbers")
    filled = np.full((len(lines), longest), -1, np.float32)
    for row, line in zip(filled, lines):
        row[: len(line)] = line
    return filled, _column([entry["iscrowd"] for entry in entries])


def _keypoint(entries: Sequence[dict[str, Any]]) -> tuple[Array, ...]:
    points = np.array([entry["keypoints"] for entry in entries], np.float32)
    return points, _column([entry["num_keypoints"] for entry in entries])


def _captioning(entries: Sequence[dict[str, Any]]) -> tuple[Array, ...]:
    return (_column([entry["caption"] for entry in entries], np.str_),)


_COCO = {
    "Detection": (["bbox", "category_id", "iscrowd"], _detection),
    "Stuff": (["segmentation", "iscrowd"], _stuff),
    "Keypoint": (["keypoints", "num_keypoints"], _keypoint),
    "Panoptic": (["bbox", "category_id", "iscrowd", "area"], _panoptic),
    "Captioning": (["captions"], _captioning),
}
