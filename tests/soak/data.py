"""`python -m tests.soak.data --minutes N`: pipelines that run for long, and whether anything grows.

Pipelines of every kind of worker go on all the time, epoch after epoch: rows in memory, images from
files, texts, threads, processes. In every round each gives some rows, which are compared with those
of its first epoch, and another pipeline with processes is begun and left half read. After each
round the memory, the descriptors and the threads are measured as in `tests.soak`, with the memory
of worker processes and how many there are. The exit status is 1 where something grows.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import tempfile
import time

import numpy as np

import mycel.dataset as ds
from mycel.dataset import text, transforms, vision
from tests.soak.__main__ import SLACK, TOLERANCE, measure, verdict

ROWS = 200
TOLERANCE.update({"resident MiB": 0.03, "workers MiB": 0.05, "processes": 0.0})
SLACK.update({"resident MiB": 8.0, "workers MiB": 24.0, "processes": 0.5})


def double(x):
    return x * 2


class Numbers:
    def __len__(self):
        return ROWS

    def __getitem__(self, number):
        return np.full((32, 32), number, np.float32), np.int64(number)


def write_images(folder):
    from PIL import Image

    (folder / "class").mkdir()
    random = np.random.default_rng(0)
    for number in range(32):
        small = random.integers(0, 256, (24, 32, 3), dtype=np.uint8)
        Image.fromarray(small).resize((320, 240)).save(folder / "class" / f"{number:02d}.jpg")


def pipelines(folder):
    """The pipelines by name; none draws at random."""
    images = np.random.default_rng(0).integers(0, 256, (ROWS, 32, 32, 3), dtype=np.uint8)
    scaled = [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]
    photographs = [vision.Decode(), vision.Resize(128), vision.CenterCrop(112), vision.HWC2CHW()]
    lines = [f"one two three {'four ' * (number % 9)}" for number in range(ROWS)]
    words = text.Vocab.from_list(["one", "two", "three", "four"])
    texts = [text.WhitespaceTokenizer(), text.Lookup(words), transforms.PadEnd([12], 0)]

    def held():
        return ds.NumpySlicesDataset({"x": images, "n": np.arange(ROWS)}, shuffle=False)

    numbers = ds.GeneratorDataset(Numbers(), ["x", "n"], shuffle=False, num_parallel_workers=2)
    files = ds.ImageFolderDataset(str(folder), shuffle=False, num_parallel_workers=2)
    return {
        "in memory": held().map(scaled, "x", num_parallel_workers=2).batch(16),
        "threads": held().map(double, "x", num_parallel_workers=2).map(vision.Resize(48), "x").batch(16),
        "processes": numbers.map(double, "x", num_parallel_workers=2, python_multiprocessing=True).batch(16),
        "photographs": files.map(photographs, "image", num_parallel_workers=2).batch(16),
        "texts": ds.NumpySlicesDataset({"x": lines}, shuffle=False).map(texts, "x").repeat(3).batch(16),
    }


def digest(row):
    return [float(np.asarray(part, np.float64).sum()) for part in row]


def children(process):
    """The processes below a process, by their numbers."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue  # It has ended meanwhile.
    below, new = set(), {process}
    while new:
        new = {child for child, parent in found.items() if parent in new} - below
        below |= new
    return below


def measured():
    found = measure()
    total = count = 0
    for child in children(os.getpid()):
        try:
            status = pathlib.Path(f"/proc/{child}/status").read_text().splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in status if line.startswith("RssAnon"))
        count += 1
    return {**found, "workers MiB": total / 1024, "processes": float(count)}


def soak(minutes):
    """Rounds for so many minutes, eleven at least: what was measured after each, and the rows."""
    history, rows, end = [], 0, time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_images(folder)
        data = pipelines(folder)
        expected = {
            key: [digest(r) for r in d.create_tuple_iterator(num_epochs=1, output_numpy=True)]
            for key, d in data.items()
        }
        going = {key: d.create_tuple_iterator(output_numpy=True) for key, d in data.items()}
        while len(history) < 11 or time.monotonic() < end:
            for key, iterator in going.items():
                for _ in range(3):
                    found = [digest(row) for row in iterator]
                    assert found == expected[key], f"{key}: other rows than in the first epoch"
                    rows += 16 * len(found)
            left = data["processes"].create_tuple_iterator(num_epochs=1)
            next(left)
            left.stop()
            history.append(measured())
        for iterator in going.values():
            iterator.stop()
    return history, rows


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=20)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory() as cache:
        os.environ["MYCEL_CACHE"] = cache
        history, rows = soak(minutes)
        grown, lines = verdict(history)
    print("\n".join([f"{len(history)} rounds, {rows} rows", *lines]))
    print(f"grows: {', '.join(grown)}" if grown else "flat")
    return 1 if grown else 0


if __name__ == "__main__":
    sys.exit(main())
