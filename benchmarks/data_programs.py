"""Pipelines as programs have them: records of tokens, masks, boxes, sentences, speech, few rows.

    python benchmarks/data_programs.py --side mycel=PYTHON[:PATH] --side mindspore=PYTHON

Arguments and what is shown are those of `data.py`, whose protocol this is.
"""

from __future__ import annotations

import json
import os
import sys
import wave
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import data
import numpy as np

ROWS = 2000
CROP = 224


def make_files(folder: Path) -> None:
    """Write what the cases read."""
    random = np.random.default_rng(0)
    data.make_photographs(folder / "photographs", random)
    make_scenes(folder, random)
    make_records(folder, random)
    make_texts(folder, random)
    (folder / "speech" / "yes").mkdir(parents=True)
    for number in range(64):
        with wave.open(str(folder / "speech" / "yes" / f"{number:08x}_nohash_0.wav"), "wb") as handle:
            handle.setnchannels(1)
            handle.setsampwidth(2)
            handle.setframerate(16000)
            handle.writeframes(random.integers(-8000, 8000, 16000).astype("<i2").tobytes())


def make_scenes(folder: Path, random: Any) -> None:
    """Write photographs with masks and boxes, as VOC has them."""
    from PIL import Image

    scenes = folder / "scenes"
    for name in ("JPEGImages", "SegmentationClass", "Annotations", "ImageSets/Segmentation", "ImageSets/Main"):
        (scenes / name).mkdir(parents=True)
    names = [path.stem for path in sorted((folder / "photographs" / "class").glob("*.jpg"))[:32]]
    for number, name in enumerate(names):
        content = (folder / "photographs" / "class" / f"{name}.jpg").read_bytes()
        (scenes / "JPEGImages" / f"{name}.jpg").write_bytes(content)
        width, height = Image.open(scenes / "JPEGImages" / f"{name}.jpg").size
        coarse = random.integers(0, 21, (height // 8 + 1, width // 8 + 1)).astype(np.uint8)
        mask = np.kron(coarse, np.ones((8, 8), np.uint8))[:height, :width]
        Image.fromarray(mask).save(scenes / "SegmentationClass" / f"{name}.png")
        objects = ""
        for left, top, wide, high in random.integers(1, 150, (1 + number % 5, 4)):
            box = f"<xmin>{left}</xmin><ymin>{top}</ymin><xmax>{left + wide}</xmax><ymax>{top + high}</ymax>"
            objects += f"<object><name>cat</name><difficult>0</difficult><truncated>0</truncated><bndbox>{box}"
            objects += "</bndbox></object>"
        (scenes / "Annotations" / f"{name}.xml").write_text(f"<annotation>{objects}</annotation>")
    for task in ("Segmentation", "Main"):
        (scenes / "ImageSets" / task / "train.txt").write_text("\n".join(names) + "\n")


def make_records(folder: Path, random: Any) -> None:
    """Write record files of tokens and of photographs."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from mycel.mindrecord import FileWriter

    names = ("ids", "mask", "places", "types")
    writer = FileWriter(str(folder / "tokens.mindrecord"))
    writer.add_schema({name: {"type": "int32", "shape": [128]} for name in names} | {"label": {"type": "int64"}})
    rows = random.integers(0, 30000, (ROWS, 4, 128)).astype(np.int32)
    writer.write_raw_data([dict(zip(names, row)) | {"label": number} for number, row in enumerate(rows)])
    writer.commit()
    writer = FileWriter(str(folder / "images.mindrecord"))
    writer.add_schema({"data": {"type": "bytes"}, "label": {"type": "int32"}})
    photographs = sorted((folder / "photographs" / "class").glob("*.jpg"))
    writer.write_raw_data([{"data": path.read_bytes(), "label": n} for n, path in enumerate(photographs)])
    writer.commit()


def make_texts(folder: Path, random: Any) -> None:
    """Write pairs of sentences, a vocabulary of parts of words, and a table."""
    letters = [chr(97 + number) for number in range(26)]
    words = ["".join(random.choice(letters, random.integers(2, 9))) for _ in range(3000)]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters, *("##" + letter for letter in letters)]
    pieces += [word[:4] for word in words if len(word) > 2] + ["##" + word[2:5] for word in words if len(word) > 3]
    (folder / "pieces.txt").write_text("\n".join(dict.fromkeys(pieces)) + "\n")

    def sentence() -> str:
        return " ".join(random.choice(words, random.integers(5, 40)))

    pairs = [{"sentence1": sentence(), "sentence2": sentence(), "label": str(n % 2)} for n in range(ROWS)]
    (folder / "pairs.json").write_text("\n".join(map(json.dumps, pairs)) + "\n")
    table = [",".join([str(n), *(f"{value:.4f}" for value in random.random(39))]) for n in range(ROWS)]
    (folder / "table.csv").write_text("\n".join(table) + "\n")


class Lengths:
    """Sequences of different lengths, by number."""

    def __init__(self) -> None:
        random = np.random.default_rng(0)
        self.rows = [random.integers(0, 30000, size).astype(np.int32) for size in random.integers(5, 120, ROWS)]

    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        return self.rows[number], np.int32(number % 2)


class Large:
    """Arrays of a megabyte, by number."""

    def __init__(self) -> None:
        self.rows = np.random.default_rng(0).random((8, 512, 512)).astype(np.float32)

    def __len__(self) -> int:
        return 64

    def __getitem__(self, number: int) -> Any:
        return self.rows[number % 8], np.int32(number)


class Often:
    """A dataset of few rows, over which an iterator is made again and again: each is a row."""

    def __init__(self, rows: Any, count: int) -> None:
        self.rows, self.count = rows, count

    def create_tuple_iterator(self, **options: Any) -> Iterator[list[Any]]:
        """Yield the sums of the passes."""
        for _ in range(self.count):
            passed = self.rows.create_dict_iterator(num_epochs=1, output_numpy=True)
            yield [np.array([sum(float(row["x"].sum()) for row in passed)])]


def _crop(image: Any, mask: Any) -> Any:
    top, left = (int(np.random.randint(0, size - CROP)) for size in mask.shape[:2])
    return image[top : top + CROP, left : left + CROP], mask[top : top + CROP, left : left + CROP]


def _corners(boxes: Any) -> Any:
    return boxes[:, :4].astype(np.float32)


def _padded(boxes: Any, images: Any, info: Any) -> Any:
    return [np.concatenate([box, np.zeros((16 - len(box), 4), np.float32)]) for box in boxes], images


def _pair(first: Any, second: Any) -> Any:
    ids = np.concatenate([[2], first, [3], second, [3]]).astype(np.int32)
    return ids, np.repeat(np.array([0, 1], np.int32), [len(first) + 2, len(second) + 1])


def pipelines(ds: Any, folder: str) -> data.Makers:
    """Return what makes the pipelines, by name."""
    vision, text, audio, transforms = ds.vision, ds.text, ds.audio, ds.transforms
    pieces = text.Vocab.from_file(os.path.join(folder, "pieces.txt"))
    padded = transforms.PadEnd([160], 0)

    def tokens(**options: Any) -> Any:
        return ds.MindDataset(os.path.join(folder, "tokens.mindrecord"), **options).batch(32)

    def images() -> Any:
        rows = ds.MindDataset(os.path.join(folder, "images.mindrecord"), ["data", "label"], shuffle=False)
        return rows.map([vision.Decode(), vision.Resize((64, 64)), vision.HWC2CHW()], "data").batch(16)

    def scenes(task: str) -> Any:
        return ds.VOCDataset(os.path.join(folder, "scenes"), task, "train", decode=True, shuffle=False)

    def masks() -> Any:
        rows = scenes("Segmentation").map(_crop, ["image", "target"])
        return rows.map([vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()], "image").batch(8)

    def boxes() -> Any:
        rows = scenes("Detection").project(["bbox", "image"]).map(_corners, "bbox")
        rows = rows.map([vision.Resize((256, 256)), vision.HWC2CHW()], "image")
        return rows.batch(8, per_batch_map=_padded, input_columns=["bbox", "image"])

    def views() -> Any:
        rows = ds.ImageFolderDataset(os.path.join(folder, "photographs"), shuffle=False, decode=True)
        color = transforms.RandomApply([vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1)], 0.8)
        moves = [vision.RandomResizedCrop(96), vision.RandomHorizontalFlip(), color, vision.ToTensor()]
        rows = rows.project(["image"]).map(transforms.Duplicate(), "image", ["one", "other"])
        return rows.map(moves, "one").map(moves, "other").batch(16)

    def pairs() -> Any:
        rows = ds.CLUEDataset(os.path.join(folder, "pairs.json"), "AFQMC", "train", shuffle=False)
        steps = [text.BertTokenizer(pieces, lower_case=True), text.Truncate(60), text.Lookup(pieces, "[UNK]")]
        rows = rows.map(steps, "sentence1").map(steps, "sentence2")
        rows = rows.map(_pair, ["sentence1", "sentence2"], ["ids", "types"]).project(["ids", "types", "label"])
        return rows.map(padded, "ids").map(padded, "types").batch(32)

    def lengths() -> Any:
        rows = ds.GeneratorDataset(Lengths(), ["x", "n"], shuffle=False)
        padding = {"x": ([None], 0), "n": ([], 0)}
        return rows.bucket_batch_by_length(["x"], [20, 40, 60, 80, 100], [32] * 6, pad_info=padding)

    def table() -> Any:
        names, defaults = [f"c{number}" for number in range(40)], [0, *[0.0] * 39]
        path = os.path.join(folder, "table.csv")
        return ds.CSVDataset(path, column_defaults=defaults, column_names=names, shuffle=False).batch(32)

    def speech() -> Any:
        rows = ds.SpeechCommandsDataset(os.path.join(folder, "speech"), "all", shuffle=False).project(["waveform"])
        return rows.map([audio.Spectrogram(400), audio.AmplitudeToDB()], "waveform").batch(16)

    def large(**options: Any) -> Any:
        return ds.GeneratorDataset(Large(), ["x", "n"], shuffle=False, **options).batch(8)

    def few() -> Any:
        rows = np.arange(32, dtype=np.float32).reshape(8, 4)
        return ds.NumpySlicesDataset({"x": rows}, shuffle=False).batch(4)

    return {
        "records of tokens": lambda: tokens(shuffle=False),
        "records of tokens, at random": lambda: tokens(shuffle=True),
        "records of photographs": images,
        "masks, at random": masks,
        "boxes": boxes,
        "two views, at random": views,
        "pairs of sentences": pairs,
        "lengths": lengths,
        "table of 40 columns": table,
        "speech": speech,
        "arrays of 1 MB": large,
        "arrays of 1 MB, 2 processes": lambda: large(num_parallel_workers=2),
        "iterators of 8 rows": lambda: Often(few(), 30),
    }


def torch_pipelines(folder: str) -> data.Makers:
    """Return those of the pipelines that PyTorch has, by name."""
    import torch
    from torch.utils.data import DataLoader

    torch.set_num_threads(1)
    return {
        "arrays of 1 MB": lambda: data.Epochs(DataLoader(Large(), 8)),
        "arrays of 1 MB, 2 processes": lambda: data.Epochs(
            DataLoader(Large(), 8, num_workers=2, persistent_workers=True)
        ),
    }


if __name__ == "__main__":
    data.main(__file__, make_files, pipelines, torch_pipelines)
