"""Pipelines of data: time a row of several packages on the same files, in turns.

    python benchmarks/data.py --side mycel=PYTHON[:PATH] --side mindspore=PYTHON [--rounds 7]

Each side is a process, `NAME=PYTHON` or `NAME=PYTHON:PATH` with a PATH to import Mycel from (to
compare two of its versions); a name that begins with "mindspore" imports MindSpore. All read the
same files and must give the same sum. The sides take turns in every round; shown are the least CPU
time and the least wall time of a row, in microseconds, and the ratio of each to the first side.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

ROWS = 2000


def make_files(folder: Path) -> None:
    """Write what the cases read: CIFAR-10, MNIST, photographs, records."""
    random = np.random.default_rng(0)
    rows = random.integers(0, 256, (10000, 3073), dtype=np.uint8)
    rows[:, 0] %= 10
    rows.tofile(folder / "test_batch.bin")
    images, labels = random.integers(0, 256, (ROWS, 28, 28), dtype=np.uint8), random.integers(0, 10, ROWS)
    head = np.array([2051, ROWS, 28, 28], ">i4").tobytes()
    (folder / "train-images-idx3-ubyte").write_bytes(head + images.tobytes())
    head = np.array([2049, ROWS], ">i4").tobytes()
    (folder / "train-labels-idx1-ubyte").write_bytes(head + labels.astype(np.uint8).tobytes())
    make_photographs(folder / "photographs", random)
    make_records(folder / "records", random)


def make_photographs(folder: Path, random: Any) -> None:
    """Write JPEG files of the sizes that ImageNet's have, in one folder for a class."""
    from PIL import Image

    (folder / "class").mkdir(parents=True)
    for number in range(64):
        width, height = ((500, 375), (375, 500), (500, 333), (640, 480))[number % 4]
        small = random.integers(0, 256, (height // 8, width // 8, 3), dtype=np.uint8)
        large = np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))
        noisy = np.clip(large + random.integers(-12, 13, large.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / "class" / f"{number:03d}.jpg", quality=90)


def make_records(path: Path, random: Any) -> None:
    """Write a TFRecord file of images, labels and lists of numbers."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.tfrecords import write

    rows = [
        {
            "image": [random.integers(0, 256, 784, dtype=np.uint8).tobytes()],
            "label": [int(random.integers(10))],
            "numbers": random.integers(0, 40000, 32).tolist(),
            "parts": random.random(16).tolist(),
        }
        for _ in range(ROWS)
    ]
    write(path, rows)


class _Source:
    def __len__(self) -> int:
        return ROWS

    def __getitem__(self, number: int) -> Any:
        return np.full((8, 8), number, np.float32), np.int32(number)


def _stream() -> Any:
    for number in range(ROWS):
        yield np.full((8, 8), number, np.float32), np.int32(number)


def _double(x: Any) -> Any:
    return x * 2


def _slow(x: Any) -> Any:
    time.sleep(0.001)
    return x


def pipelines(ds: Any, folder: str) -> dict[str, Any]:
    """Return the pipelines by name."""
    vision = ds.vision
    numbers = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
    scaled = [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]

    def slices() -> Any:
        return ds.NumpySlicesDataset({"x": numbers}, shuffle=False)

    def generator(**options: Any) -> Any:
        return ds.GeneratorDataset(_Source(), ["x", "n"], shuffle=False, **options)

    def photographs(operations: Any, workers: int = 1) -> Any:
        data = ds.ImageFolderDataset(os.path.join(folder, "photographs"), shuffle=False)
        return data.map(operations, "image", num_parallel_workers=workers).batch(32)

    normalize = vision.Normalize([123.0, 117.0, 104.0], [58.0, 57.0, 57.0])
    training = [vision.Decode(), vision.RandomResizedCrop(224), vision.RandomHorizontalFlip(), normalize]
    training.append(vision.HWC2CHW())
    evaluation = [vision.Decode(), vision.Resize(256), vision.CenterCrop(224), normalize, vision.HWC2CHW()]
    return {
        "photographs, at random": photographs(training),
        "photographs, at random, 2 workers": photographs(training, 2),
        "photographs, evaluated": photographs(evaluation),
        "photographs, resized": photographs([vision.Decode(), vision.Resize((224, 224))]),
        "records": ds.TFRecordDataset(os.path.join(folder, "records"), shuffle=False).batch(32),
        "cifar": ds.Cifar10Dataset(folder, "test", shuffle=False).map(scaled, "image").batch(32),
        "cifar, 2 workers": ds.Cifar10Dataset(folder, "test", shuffle=False)
        .map(scaled, "image", num_parallel_workers=2)
        .batch(32),
        "mnist": ds.MnistDataset(folder, "train", shuffle=False).map(scaled, "image").batch(32),
        "arrays": slices().batch(32),
        "arrays, function": slices().map(_double, "x").batch(32),
        "arrays, function, 2 workers": slices().map(_double, "x", num_parallel_workers=2).batch(32),
        "by number": generator().batch(32),
        "by number, 2 processes": generator(num_parallel_workers=2).batch(32),
        "stream": ds.GeneratorDataset(_stream, ["x", "n"]).batch(32),
        "function of 1 ms, 2 workers": slices().take(400).map(_slow, "x", num_parallel_workers=2).batch(32),
    }


def serve(package: str, folder: str) -> None:
    """Answer names of cases with their times."""
    ds = importlib.import_module(f"{package}.dataset")
    importlib.import_module(f"{package}.dataset.vision")
    cases = pipelines(ds, folder)
    print(json.dumps(list(cases)), flush=True)
    for line in sys.stdin:
        data = cases[line.strip()]
        cpu, wall, rows, total = time.process_time(), time.perf_counter(), 0, 0.0
        for row in data.create_tuple_iterator(num_epochs=1, output_numpy=True):
            rows += len(row[0])
            total += float(row[0].astype(np.float64).sum())
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        print(json.dumps([1e6 * cpu / rows, 1e6 * wall / rows, rows, total]), flush=True)


class _Side:
    def __init__(self, given: str, folder: str) -> None:
        self.name, _, rest = given.partition("=")
        python, _, path = rest.partition(":")
        package = "mindspore" if self.name.startswith("mindspore") else "mycel"
        environment = {**os.environ, "GLOG_v": "3"}
        environment.pop("PYTHONPATH", None)
        if path:
            environment["PYTHONPATH"] = path
        command = [python, __file__, "--serve", package, folder]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.cases: list[str] = self._answer()
        self.best: dict[str, list[float]] = {}
        self.sums: dict[str, Any] = {}

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("["):
                return json.loads(line)
        raise RuntimeError(f"{self.name} has ended")

    def measure(self, case: str) -> None:
        """Run a case once, and keep the least times."""
        assert self.process.stdin is not None
        self.process.stdin.write(case + "\n")
        self.process.stdin.flush()
        cpu, wall, *self.sums[case] = self._answer()
        before = self.best.get(case, [cpu, wall])
        self.best[case] = [min(before[0], cpu), min(before[1], wall)]


def main() -> None:
    """Compare the sides."""
    parser = argparse.ArgumentParser(description="Pipelines of data, in turns.")
    parser.add_argument("--side", action="append", required=True, metavar="NAME=PYTHON[:PATH]")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        sides = [_Side(given, folder) for given in options.side]
        for case in sides[0].cases:
            for _ in range(options.rounds):
                for side in sides:
                    side.measure(case)
            sums = [side.sums[case] for side in sides]
            same = all(n == sums[0][0] and np.isclose(total, sums[0][1]) for n, total in sums) or "at random" in case
            first = sides[0].best[case]
            shown = "  ".join(
                f"{side.name} {cpu:8.1f} {wall:8.1f} ({cpu / first[0]:5.2f} {wall / first[1]:5.2f})"
                for side in sides
                for cpu, wall in [side.best[case]]
            )
            print(f"{case:<30} {shown}{'' if same else '  NOT THE SAME ROWS'}", flush=True)
        for side in sides:
            side.process.communicate()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3])
    else:
        main()
