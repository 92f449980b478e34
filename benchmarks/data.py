"""Pipelines of data: time a row of several packages on the same files, in turns.

    python benchmarks/data.py --side mycel=PYTHON[:PATH] --side mindspore=PYTHON [--rounds 7]

Each side is a process, `NAME=PYTHON` or `NAME=PYTHON:PATH` with a PATH to import Mycel from (to
compare two of its versions); a name that begins with "mindspore" imports MindSpore, one with
"torch" PyTorch, torchvision and torchaudio, which have some of the cases. All read the same files
and must give the same sum. `--only TEXT` takes the cases with a text in their names. The sides take
turns in every round; shown are the least CPU time and the least wall time of a row, in
microseconds, and the ratio of each to the first side. torchvision resizes photographs with Pillow's
filters, so its rows are others. Processes of workers are counted too. Cases of PyTorch whose
package is missing are left out, with a word. `data_programs.py` has pipelines of other kinds.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
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
    words = np.array([f"word{number}" for number in range(5000)])
    lines = [" ".join(random.choice(words, random.integers(5, 40))) for _ in range(ROWS)]
    (folder / "lines.txt").write_text("\n".join(lines) + "\n")
    (folder / "words.txt").write_text("<unk>\n" + "\n".join(words[:4000]) + "\n")
    waves = random.standard_normal((64, 16000)).astype(np.float32)
    np.save(folder / "waves.npy", waves)


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
    from mycel.mindrecord import FileWriter

    writer = FileWriter(str(path) + ".mindrecord", 1)
    kinds = {"image": {"type": "bytes"}, "label": {"type": "int64"}, "parts": {"type": "float32", "shape": [16]}}
    writer.add_schema(kinds)
    writer.write_raw_data(
        [
            {"image": row["image"][0], "label": row["label"][0], "parts": np.array(row["parts"], np.float32)}
            for row in rows
        ]
    )
    writer.commit()


class Numbered:
    """Rows that are read by number."""

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


def pipelines(ds: Any, folder: str) -> dict[str, Callable[[], Any]]:
    """Return what makes the pipelines, by name."""
    vision = ds.vision
    numbers = np.arange(ROWS * 16, dtype=np.float32).reshape(ROWS, 16)
    scaled = [vision.Rescale(1 / 255, 0.0), vision.HWC2CHW()]

    def slices() -> Any:
        return ds.NumpySlicesDataset({"x": numbers}, shuffle=False)

    def generator(**options: Any) -> Any:
        return ds.GeneratorDataset(Numbered(), ["x", "n"], shuffle=False, **options)

    def photographs(operations: Any, workers: int = 1) -> Any:
        data = ds.ImageFolderDataset(os.path.join(folder, "photographs"), shuffle=False)
        return data.map(operations, "image", num_parallel_workers=workers).batch(32)

    def sounds(operation: Any) -> Any:
        waves = np.load(os.path.join(folder, "waves.npy"))
        return ds.NumpySlicesDataset({"x": waves}, shuffle=False).map(operation, "x").batch(16)

    text, lines = ds.text, os.path.join(folder, "lines.txt")
    vocabulary = text.Vocab.from_file(os.path.join(folder, "words.txt"))
    look_up, pad = text.Lookup(vocabulary, "<unk>"), ds.transforms.PadEnd([40], 0)
    ids = np.arange(ROWS * 16).reshape(ROWS, 16) % 4500
    strings = np.array([f"word{number}" for number in range(4500)])[ids]

    def sentences(*operations: Any) -> Any:
        return ds.TextFileDataset(lines, shuffle=False).map(list(operations), "text").batch(32)

    normalize = vision.Normalize([123.0, 117.0, 104.0], [58.0, 57.0, 57.0])
    training = [vision.Decode(), vision.RandomResizedCrop(224), vision.RandomHorizontalFlip(), normalize]
    training.append(vision.HWC2CHW())
    evaluation = [vision.Decode(), vision.Resize(256), vision.CenterCrop(224), normalize, vision.HWC2CHW()]
    return {
        "photographs, at random": lambda: photographs(training),
        "photographs, at random, 2 workers": lambda: photographs(training, 2),
        "photographs, evaluated": lambda: photographs(evaluation),
        "photographs, evaluated, 2 workers": lambda: photographs(evaluation, 2),
        "photographs, resized": lambda: photographs([vision.Decode(), vision.Resize((224, 224))]),
        "records": lambda: ds.TFRecordDataset(os.path.join(folder, "records"), shuffle=False).batch(32),
        "records of MindRecord": lambda: ds.MindDataset(
            os.path.join(folder, "records.mindrecord"), ["label", "parts", "image"], shuffle=False
        ).batch(32),
        "text, words": lambda: sentences(text.WhitespaceTokenizer(), look_up, pad),
        "text, basic words": lambda: sentences(text.BasicTokenizer(), look_up, pad),
        "text, look-up": lambda: ds.NumpySlicesDataset({"x": strings}, shuffle=False).map(look_up, "x").batch(32),
        "sound, mel spectrogram": lambda: sounds(ds.audio.MelSpectrogram(16000)),
        "sound, 16 to 8 kHz": lambda: sounds(ds.audio.Resample(16000, 8000)),
        "sound, 44.1 to 16 kHz": lambda: sounds(ds.audio.Resample(44100, 16000)),
        "cifar": lambda: ds.Cifar10Dataset(folder, "test", shuffle=False).map(scaled, "image").batch(32),
        "cifar, 2 workers": lambda: (
            ds.Cifar10Dataset(folder, "test", shuffle=False).map(scaled, "image", num_parallel_workers=2).batch(32)
        ),
        "mnist": lambda: ds.MnistDataset(folder, "train", shuffle=False).map(scaled, "image").batch(32),
        "arrays": lambda: slices().batch(32),
        "arrays, function": lambda: slices().map(_double, "x").batch(32),
        "arrays, function, 2 workers": lambda: slices().map(_double, "x", num_parallel_workers=2).batch(32),
        "by number": lambda: generator().batch(32),
        "by number, 2 processes": lambda: generator(num_parallel_workers=2).batch(32),
        "stream": lambda: ds.GeneratorDataset(_stream, ["x", "n"]).batch(32),
        "function of 1 ms, 2 workers": lambda: slices().take(400).map(_slow, "x", num_parallel_workers=2).batch(32),
    }


class Epochs:
    """An iterable of PyTorch, with the method by which the others give the rows of an epoch."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_tuple_iterator(self, **options: Any) -> Any:
        return ([part.numpy() for part in row] for row in self.loader)


def torch_pipelines(folder: str) -> dict[str, Callable[[], Any]]:
    """Return those of the pipelines that PyTorch, torchvision and torchaudio have, by name."""
    import torch
    from torch.utils.data import DataLoader, Dataset, TensorDataset

    torch.set_num_threads(1)

    class Rows(Dataset):  # type: ignore[type-arg]
        def __init__(self, count: int, row: Any) -> None:
            self.count, self.row = count, row

        def __len__(self) -> int:
            return self.count

        def __getitem__(self, number: int) -> Any:
            return self.row(number)

    def sounds(name: str, *arguments: Any) -> Any:
        import torchaudio

        operation = getattr(torchaudio.transforms, name)(*arguments)
        waves = torch.from_numpy(np.load(os.path.join(folder, "waves.npy")))
        return Epochs(DataLoader(Rows(len(waves), lambda n: (operation(waves[n]),)), 16))

    def photographs(*moves: tuple[Any, ...], workers: int = 0) -> Any:
        import torchvision
        from torchvision.transforms import v2

        operations: list[Any] = [getattr(v2, name)(*arguments) for name, *arguments in moves]
        if moves == resized:
            data = torchvision.datasets.ImageFolder(
                os.path.join(folder, "photographs"), v2.Compose([*operations, v2.PILToTensor()])
            )
            return Epochs(DataLoader(data, 32))
        operations += [v2.ToImage(), v2.ToDtype(torch.float32, scale=True)]
        operations.append(v2.Normalize([0.482, 0.459, 0.408], [0.227, 0.224, 0.224]))
        data = torchvision.datasets.ImageFolder(os.path.join(folder, "photographs"), v2.Compose(operations))
        # Workers stay for the next epoch, as those of the others do.
        return Epochs(DataLoader(data, 32, num_workers=workers, persistent_workers=workers > 0))

    def mnist() -> Any:
        def read(name: str, head: int) -> Any:
            return np.fromfile(os.path.join(folder, name), np.uint8)[head:]

        images = torch.from_numpy(read("train-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28))
        labels = torch.from_numpy(read("train-labels-idx1-ubyte", 8))
        return Epochs(DataLoader(Rows(len(images), lambda n: (images[n].float() / 255, labels[n])), 32))

    numbers = torch.arange(ROWS * 16, dtype=torch.float32).reshape(ROWS, 16)
    source = Numbered()
    training = ("RandomResizedCrop", 224), ("RandomHorizontalFlip",)
    evaluation = ("Resize", 256), ("CenterCrop", 224)
    resized = (("Resize", (224, 224)),)
    found = {
        "photographs, at random": lambda: photographs(*training),
        "photographs, at random, 2 workers": lambda: photographs(*training, workers=2),
        "photographs, evaluated": lambda: photographs(*evaluation),
        "photographs, evaluated, 2 workers": lambda: photographs(*evaluation, workers=2),
        "photographs, resized": lambda: photographs(*resized),
        "sound, mel spectrogram": lambda: sounds("MelSpectrogram", 16000),
        "sound, 16 to 8 kHz": lambda: sounds("Resample", 16000, 8000),
        "sound, 44.1 to 16 kHz": lambda: sounds("Resample", 44100, 16000),
        "mnist": mnist,
        "arrays": lambda: Epochs(DataLoader(TensorDataset(numbers), 32)),
        "by number": lambda: Epochs(DataLoader(Rows(ROWS, source.__getitem__), 32)),
    }
    for package, kind in (("torchvision", "photographs"), ("torchaudio", "sound")):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed, so cases of {kind} are left out", file=sys.stderr)
            found = {name: make for name, make in found.items() if not name.startswith(kind)}
    return found


def spent() -> float:
    """Return the processor time of this process and of those below it, in seconds."""
    found: dict[int, tuple[int, int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # It has ended meanwhile.
            found[int(name)] = int(fields[1]), sum(map(int, fields[11:15]))

    def below(parent: int) -> int:
        return sum(ticks + below(child) for child, (above, ticks) in found.items() if above == parent)

    ended = os.times()
    return below(os.getpid()) / os.sysconf("SC_CLK_TCK") + ended.children_user + ended.children_system


Makers = dict[str, Callable[[], Any]]


def serve(
    package: str, folder: str, pipelines: Callable[[Any, str], Makers], torch_pipelines: Callable[[str], Makers]
) -> None:
    """Answer names of cases with their times."""
    if package == "torch":
        makers = torch_pipelines(folder)
    else:
        ds = importlib.import_module(f"{package}.dataset")
        for name in ("vision", "audio", "text"):
            importlib.import_module(f"{package}.dataset.{name}")
        makers = pipelines(ds, folder)
    cases: dict[str, Any] = {}
    print(json.dumps(list(makers)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in cases:
            cases[name] = makers[name]()
        before = spent()
        cpu, wall, rows, total = time.process_time(), time.perf_counter(), 0, 0.0
        for row in cases[name].create_tuple_iterator(num_epochs=1, output_numpy=True):
            rows += len(row[0])
            total += float(row[0].astype(np.float64).sum())
        cpu, wall = time.process_time() - cpu + spent() - before, time.perf_counter() - wall
        print(json.dumps([1e6 * cpu / rows, 1e6 * wall / rows, rows, total]), flush=True)


class _Side:
    def __init__(self, given: str, folder: str, script: str) -> None:
        self.name, _, rest = given.partition("=")
        python, _, path = rest.partition(":")
        package = next((name for name in ("mindspore", "torch") if self.name.startswith(name)), "mycel")
        environment = {**os.environ, "GLOG_v": "3"}
        environment.pop("PYTHONPATH", None)
        if path:
            environment["PYTHONPATH"] = path
        command = [python, script, "--serve", package, folder]
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


def main(
    script: str,
    make_files: Callable[[Path], None],
    pipelines: Callable[[Any, str], Makers],
    torch_pipelines: Callable[[str], Makers],
) -> None:
    """Compare the sides, or be one of them.

    `script` is run for each side, `make_files` writes what all read; `pipelines` gives what makes
    the pipelines of a package like MindSpore's `dataset`, `torch_pipelines` those of PyTorch.
    """
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2], sys.argv[3], pipelines, torch_pipelines)
        return
    parser = argparse.ArgumentParser(description="Pipelines of data, in turns.")
    parser.add_argument("--side", action="append", required=True, metavar="NAME=PYTHON[:PATH]")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", metavar="TEXT")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        sides = [_Side(given, folder, script) for given in options.side]
        for case in sides[0].cases:
            if options.only not in case:
                continue
            able = [side for side in sides if case in side.cases]
            # The first time is that of compiling and importing.
            for number in range(options.rounds + 1):
                for side in able:
                    side.measure(case)
                    if not number:
                        side.best.clear()
            sums = [side.sums[case] for side in able]
            kept = [(n, t) for side, (n, t) in zip(able, sums) if side.name[:5] != "torch" or "photo" not in case]
            same = all(n == kept[0][0] and np.isclose(t, kept[0][1], 1e-4) for n, t in kept) or "at random" in case
            first = sides[0].best[case]
            shown = "  ".join(
                f"{side.name} {cpu:8.1f} {wall:8.1f} ({cpu / first[0]:5.2f} {wall / first[1]:5.2f})"
                for side in able
                for cpu, wall in [side.best[case]]
            )
            print(f"{case:<30} {shown}{'' if same else '  NOT THE SAME ROWS'}", flush=True)
        for side in sides:
            side.process.communicate()


if __name__ == "__main__":
    main(__file__, make_files, pipelines, torch_pipelines)
