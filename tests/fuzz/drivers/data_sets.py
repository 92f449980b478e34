"""Published sets of text, images and sound, and the files of the general readers: one file of a
folder is damaged, and all rows are read.
"""

from __future__ import annotations

import atexit
import functools
import io
import json
import os
import random as random_module
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import mycel.dataset as ds
from tests.dataset import audio_set_files, image_set_files, set_files
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 120

_VOC = (
    "<annotation><size><width>3</width></size><object><name>cat</name><difficult>0</difficult><truncated>1</truncated><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax>"
    "<ymax>4</ymax></bndbox></object></annotation>"
)
_COCO = {
    "images": [{"id": 1, "file_name": "a.png", "width": 3, "height": 2}],
    "annotations": [
        {
            "id": 5,
            "image_id": 1,
            "category_id": 2,
            "iscrowd": 0,
            "area": 4,
            "bbox": [0, 1, 2, 1],
            "keypoints": [1, 2, 2],
            "num_keypoints": 1,
            "segmentation": [[0, 0, 2, 0, 2, 2]],
            "caption": "a cat",
            "segments_info": [{"category_id": 2, "bbox": [1, 1, 2, 3], "area": 6, "iscrowd": 0}],
        }
    ],
    "categories": [{"id": 2, "name": "cat", "isthing": 1}],
}


def voc(folder: Path) -> None:
    set_files.write(
        folder,
        {
            "ImageSets/Main/train.txt": "a\n",
            "ImageSets/Segmentation/train.txt": "a\n",
            "JPEGImages/a.jpg": set_files.png(1),
            "SegmentationClass/a.png": set_files.png(2, channels=1),
            "Annotations/a.xml": _VOC,
        },
    )


def coco(folder: Path) -> None:
    set_files.write(folder, {"images/a.png": set_files.png(1), "a.json": json.dumps(_COCO)})


def celeba(folder: Path) -> None:
    set_files.write(
        folder,
        {
            "list_attr_celeba.txt": "2\nx y z\n1.jpg 1 -1 1\n2.jpg -1 -1 1\n",
            "list_eval_partition.txt": "1.jpg 0\n2.jpg 0\n",
            "1.jpg": set_files.png(1),
            "2.jpg": set_files.png(2),
        },
    )


def cifar(folder: Path) -> None:
    set_files.write(
        folder,
        {
            "data_batch_1.bin": bytes(2 * 3073),
            "train.bin": bytes(3074),
            "train_X.bin": bytes(27648),
            "train_y.bin": b"\1",
        },
    )


def svhn(folder: Path) -> None:
    from scipy.io import savemat

    content = io.BytesIO()
    savemat(
        content, {"X": np.zeros((32, 32, 3, 2), np.uint8), "y": np.array([[1], [10]], np.uint8)}, do_compression=True
    )
    set_files.write(folder, {"train_32x32.mat": content.getvalue()})


def texts(folder: Path) -> None:
    set_files.write(
        folder,
        {
            "a.txt": "one\ntwo\n",
            "a.csv": 'n,x,name\n1,0.5,"one, two"\n2,1.5,b\n',
            "config.json": '{"seed": 3, "numParallelWorkers": 2, "prefetchSize": 4}',
            "schema.json": '{"numRows": 2, "columns": [{"name": "x", "type": "float32", "rank": 1, "shape": [2]}]}',
            "vocab.txt": "a\nb\nc\n",
            "vectors.txt": "2 3\na 0.1 0.2 0.3\nb 1 2 3\n",
        },
    )


_OWN: dict[str, tuple[Callable[[Path], None], Callable[[Path], Any]]] = {
    "VOC detection": (voc, lambda f: ds.VOCDataset(f, "Detection", "train", decode=True, shuffle=False)),
    "VOC segmentation": (voc, lambda f: ds.VOCDataset(f, "Segmentation", "train", decode=True, shuffle=False)),
    **{
        f"COCO {task}": (
            coco,
            functools.partial(
                lambda f, task: ds.CocoDataset(f / "images", f / "a.json", task, shuffle=False, decode=True), task=task
            ),
        )
        for task in ("Detection", "Stuff", "Keypoint", "Panoptic", "Captioning")
    },
    "CelebA": (celeba, lambda f: ds.CelebADataset(f, shuffle=False, decode=True)),
    "CelebA train": (celeba, lambda f: ds.CelebADataset(f, shuffle=False, usage="train")),
    "CIFAR-10": (cifar, lambda f: ds.Cifar10Dataset(f, "train", shuffle=False)),
    "CIFAR-100": (cifar, lambda f: ds.Cifar100Dataset(f, "train", shuffle=False)),
    "STL10": (cifar, lambda f: ds.STL10Dataset(f, "train", shuffle=False)),
    "SVHN": (svhn, lambda f: ds.SVHNDataset(f, "train", shuffle=False)),
    "text": (texts, lambda f: ds.TextFileDataset(f / "a.txt", shuffle=False)),
    "csv": (texts, lambda f: ds.CSVDataset(f / "a.csv", column_defaults=[0, 0.0, ""], shuffle=False)),
    "csv text": (texts, lambda f: ds.CSVDataset(f / "a.csv", shuffle=False)),
    "schema": (texts, lambda f: ds.RandomDataset(2, os.fspath(f / "schema.json"))),
    "vocab": (texts, lambda f: ds.text.Vocab.from_file(os.fspath(f / "vocab.txt")) and []),
    "vectors": (texts, lambda f: ds.text.Vectors.from_file(os.fspath(f / "vectors.txt")) and []),
    "GloVe": (texts, lambda f: ds.text.GloVe.from_file(os.fspath(f / "glove.6B.3d.txt")) and []),
    "FastText": (texts, lambda f: ds.text.FastText.from_file(os.fspath(f / "vectors.vec")) and []),
    "config": (texts, lambda f: ds.config.load(os.fspath(f / "config.json")) or []),
}


@functools.cache
def tables() -> dict[str, Any]:
    return {
        **set_files.text_cases(),
        **image_set_files.image_cases(),
        **image_set_files.digit_cases(),
        **audio_set_files.audio_cases(),
    }


@functools.cache
def names() -> list[str]:
    return sorted((*tables(), *_OWN))


@functools.cache
def home() -> Path:
    folder = tempfile.mkdtemp(prefix="mycel-fuzz-sets-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@functools.cache
def built(name: str) -> tuple[Path, tuple[str, ...]]:
    """The sound folder of a set, and the files in it."""
    folder = home() / str(names().index(name))
    folder.mkdir(exist_ok=True)
    (_OWN[name][0] if name in _OWN else tables()[name][1])(folder)
    if name in ("GloVe", "FastText"):
        shutil.copy(folder / "vectors.txt", folder / ("glove.6B.3d.txt" if name == "GloVe" else "vectors.vec"))
    return folder, tuple(sorted(os.fspath(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()))


# What ended in an inner error once: an encoding that is none, a rate beyond the column's type, a
# name that no file has.
KEPT = (
    (
        "IWSLT2016 None",
        "texts/de/en/de-en/IWSLT16.TED.tst2014.de-en.de.xml",
        b'<?xml version="1.0" encoding="UTF255"?><a/>',
    ),
    (
        "YesNo",
        "1_0_0_0_1_1_0_0.wav",
        b"RIFF.\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\0\0\0\xff\x80>\0\0\2\0\x10\0data\2\0\0\0\0\x80",
    ),
    ("LFW task=pairs usage=test", "pairsDevTest.txt", b"\0\x0fAnn\x7fB\t2\t3\nBob_C\t1\tZed_A\t1\ned_A\t1\n"),
)


def case(random: random_module.Random) -> tuple[str, str, bytes]:
    name = random.choice(names())
    folder, files = built(name)
    file = random.choice(files)
    return name, file, damage(random, (folder / file).read_bytes())


def opened(name: str, folder: Path) -> Any:
    if name in _OWN:
        return _OWN[name][1](folder)
    kind, _, inside, arguments = tables()[name]
    places = [folder / part for part in inside] if isinstance(inside, tuple) else [folder / (inside or "")]
    return getattr(ds, f"{kind}Dataset")(*map(os.fspath, places), **arguments)


def run(case: tuple[str, str, bytes]) -> None:
    name, file, content = case
    folder = built(name)[0]
    path = folder / file
    before = path.read_bytes()
    path.write_bytes(content)
    settings = dict(ds.config._settings)
    try:
        data = opened(name, folder)
        for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True) if isinstance(data, ds.Dataset) else ():
            assert sum(value.nbytes for value in row) < 1 << 26
    finally:
        path.write_bytes(before)
        ds.config._settings.update(settings)


def describe(case: tuple[str, str, bytes]) -> str:
    return f"{case[0]}, {case[1]}: {case[2]!r}"


def judge(error: BaseException, case: tuple[str, str, bytes]) -> str:
    name, file, _ = case
    kind = tables()[name][0] if name in tables() else name.split()[0]
    return clear(
        error,
        (
            Path(file).name,
            f"{kind}Dataset",
            "Dataset: ",
            "from_file",
            "Schema",
            "add_column",
            "parse_columns",
            "from_json",
            "load:",
            "set_",
            "Vocab",
            "Vectors",
            "GloVe",
            "FastText",
        ),
    )
