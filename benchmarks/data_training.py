"""Training from files: time of a step, beside the same step on batches that lie in memory.

    python benchmarks/data_training.py [--package mycel] [--only lenet] [--steps 20] [--rounds 9]

LeNet-5 reads MNIST's files (resized, scaled, shuffled, batches of 32), ResNet-50 photographs
(decoded, cropped at random, flipped, normalised, batches of 8). Steps on files and steps in memory
take turns in every round. Shown are the medians, in milliseconds, of the wall time of a step in
memory and from files, and of the ratios of each pair; the processor time that a batch of the
pipeline takes by itself; and how much of all cores the steps in memory use. Where that leaves no
core free, the pipeline's own work is what the ratio cannot be below: `bound` is the ratio of a
pipeline that fills all cores, at no cost for waiting. `--package mindspore` runs MindSpore.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import make_files

BATCH = {"lenet5": 32, "resnet50": 8}


def pipeline(ds: Any, name: str, folder: str, workers: int) -> Any:
    """Return the batches that a network is trained on, without end."""
    vision = ds.vision
    if name == "lenet5":
        data = ds.MnistDataset(folder, "train", shuffle=True)
        operations = [vision.Rescale(1 / 255, 0.0), vision.Rescale(1 / 0.3081, -0.1307 / 0.3081), vision.HWC2CHW()]
        operations = [vision.Resize((32, 32)), *operations]
    else:
        data = ds.ImageFolderDataset(os.path.join(folder, "photographs"), shuffle=True)
        normalize = vision.Normalize([123.0, 117.0, 104.0], [58.0, 57.0, 57.0])
        operations = [vision.Decode(), vision.RandomResizedCrop(224), vision.RandomHorizontalFlip(), normalize]
        operations.append(vision.HWC2CHW())
    data = data.map(operations, "image", num_parallel_workers=workers)
    data = data.map(ds.transforms.TypeCast(np.int32), "label")
    return data.batch(BATCH[name], drop_remainder=True).repeat()


def trainer(ms: Any, name: str) -> Any:
    """Return a function of a batch that takes a step."""
    networks = importlib.import_module("mindspore_networks")
    net = networks.WithLoss(networks.NETWORKS[name]())
    step = ms.nn.TrainOneStepCell(net, ms.nn.Momentum(net.trainable_params(), 0.01, 0.9))
    step.set_train()
    return step


class _Clock:
    """Wall and processor time of what happens within it."""

    def __enter__(self) -> _Clock:
        self.wall, self.cpu = -time.perf_counter(), -time.process_time()
        return self

    def __exit__(self, *error: object) -> None:
        self.wall, self.cpu = self.wall + time.perf_counter(), self.cpu + time.process_time()


def compare(ms: Any, ds: Any, name: str, folder: str, options: Any) -> str:
    """Return a line with the times of one network."""
    step, count = trainer(ms, name), options.steps
    rows = pipeline(ds, name, folder, options.workers).create_tuple_iterator(num_epochs=1)
    held = [[ms.Tensor(part.asnumpy()) for part in next(rows)] for _ in range(4)]
    for batch in held * 2:
        step(*batch).asnumpy()
    memory, files, ratios, uses = [], [], [], []
    for number in range(options.rounds):
        clocks = {}
        for kind in ("memory", "files") if number % 2 else ("files", "memory"):
            with _Clock() as clocks[kind]:
                for at in range(count):
                    loss = step(*(held[at % len(held)] if kind == "memory" else next(rows)))
                loss.asnumpy()
        memory.append(clocks["memory"].wall / count)
        files.append(clocks["files"].wall / count)
        ratios.append(files[-1] / memory[-1])
        uses.append(clocks["memory"].cpu / clocks["memory"].wall)
    del rows
    alone = pipeline(ds, name, folder, options.workers).create_tuple_iterator(num_epochs=1)
    next(alone)
    with _Clock() as clock:
        for _ in range(10 * count):
            next(alone)
    del alone
    cores, step_time, use = os.cpu_count() or 1, statistics.median(memory), statistics.median(uses)
    bound = max(1.0, (use * step_time + clock.cpu / (10 * count)) / (cores * step_time))
    return (
        f"{name:<10} step {1e3 * step_time:8.2f} ms in memory, {1e3 * statistics.median(files):8.2f} from files, "
        f"ratio {statistics.median(ratios):5.3f} ({min(ratios):5.3f} to {max(ratios):5.3f}); a batch of the pipeline "
        f"{1e2 * clock.cpu / count:7.2f} ms; {use:4.2f} of {cores} cores used in memory, bound {bound:5.3f}"
    )


def main() -> None:
    """Compare training from files with training in memory."""
    parser = argparse.ArgumentParser(description="Training from files.")
    parser.add_argument("--package", default="mycel", choices=("mycel", "mindspore"))
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    if options.package == "mycel":
        from mycel import compat

        compat.install()
    import mindspore as ms
    import mindspore.dataset as ds

    importlib.import_module("mindspore.dataset.vision")
    importlib.import_module("mindspore.dataset.transforms")
    ms.set_context(mode=ms.GRAPH_MODE)
    with tempfile.TemporaryDirectory() as folder:
        make_files(Path(folder))
        for name in BATCH:
            if options.only in name:
                print(compare(ms, ds, name, folder, options), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
