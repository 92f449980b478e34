"""Accuracy, products, bytes and time of compressed networks.

    python benchmarks/compression.py [digits] [textures]

The tasks are LeNet-5 on the bundled digits, and a residual network on textures of 32 x 32 with
three channels, which are made here: gratings of ten directions and widths with random phases,
colours and noise. Each network is trained, compressed, and trained on for a third of the epochs;
shares of right answers are those on images that were never seen. The speed is that of a compiled
call on 64 images, as how many times as fast it is as the whole network, which is called in turns.
"""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycel as ms
from mycel import nn, ops
from mycel.compression import (
    Distilled,
    GradualPruning,
    cost_of,
    low_rank,
    prune_channels,
    prune_weights,
    remove_masks,
    size_report,
)
from mycel.demo.data import bundled
from mycel.demo.lenet import LeNet5
from mycel.quantisation import quantise

LOSS = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")


class Block(nn.Cell):
    """Two convolutions and a way around them."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.first, self.norm = nn.Conv2d(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.second, self.norm2 = nn.Conv2d(outside, outside, 3), nn.BatchNorm2d(outside)
        self.around: Any = nn.Conv2d(inside, outside, 1, stride) if stride != 1 or inside != outside else None

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        y = self.norm2(self.second(ops.relu(self.norm(self.first(x)))))
        return ops.relu(y + (x if self.around is None else self.around(x)))


class Residual(nn.Cell):
    """A residual network of three stages for images (N, 3, 32, 32)."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, width, 3, 2), nn.BatchNorm2d(width)
        self.blocks = nn.SequentialCell(
            Block(width, width, 1), Block(width, 2 * width, 2), Block(2 * width, 4 * width, 2)
        )
        self.head = nn.Dense(4 * width, 10)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        return self.head(self.blocks(ops.relu(self.norm(self.stem(x)))).mean((2, 3)))


class Small(nn.Cell):
    """A small student for digits."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 3, 5, pad_mode="valid"), nn.Conv2d(3, 6, 5, pad_mode="valid")
        self.head, self.pool = nn.Dense(150, 10), nn.MaxPool2d(2, 2)

    def construct(self, x: ms.Tensor) -> ms.Tensor:
        x = self.pool(ops.relu(self.conv2(self.pool(ops.relu(self.conv1(x))))))
        return self.head(x.reshape(x.shape[0], -1))


def textures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return images (count, 3, 32, 32) of float32 and their ten classes."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    angle = labels % 5 * np.pi / 5 + rng.normal(0, 0.08, count)
    waves = np.where(labels < 5, 4.0, 6.5) + rng.normal(0, 0.4, count)
    y, x = np.mgrid[:32, :32] / 32
    along = np.cos(angle)[:, None, None] * x + np.sin(angle)[:, None, None] * y
    phase = rng.uniform(0, 2 * np.pi, (count, 1, 1))
    grating = np.sin(2 * np.pi * waves[:, None, None] * along + phase)
    images = grating[:, None] * rng.uniform(-1, 1, (count, 3, 1, 1)) + rng.normal(0, 0.6, (count, 3, 32, 32))
    return images.astype(np.float32), labels.astype(np.int32)


def digits() -> tuple[Any, ...]:
    """Return the images and labels of training, and those held out."""
    data = bundled()
    images = [(a[:, None] / 255.0).astype(np.float32) for a in (data.train_images, data.held_out_images)]
    return images[0], data.train_labels.astype(np.int32), images[1], data.held_out_labels


class Task:
    """Data, and what is done with them."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "digits":
            self.x, self.y, self.held, self.truth = digits()
            self.make: Callable[[], Any] = LeNet5
            self.student: Callable[[], Any] = Small
            self.epochs, self.multiple = 30, 2
        else:
            (self.x, self.y), (self.held, self.truth) = textures(2000, 1), textures(1000, 2)
            self.make, self.student = Residual, lambda: Residual(4)
            self.epochs, self.multiple = 9, 8
        self.steps = len(self.x) // 64
        self.whole: Any = None

    def train(self, net: Any, epochs: int, callbacks: Any = (), rate: float = 2e-3) -> Any:
        """Train a network, or a Cell that gives the loss."""
        data = ms.dataset.NumpySlicesDataset({"x": self.x, "y": self.y}, shuffle=True).batch(64, drop_remainder=True)
        schedule = nn.cosine_decay_lr(1e-5, rate, epochs * self.steps, self.steps, epochs)
        optimizer = nn.Adam(net.trainable_params(), schedule)
        loss = None if isinstance(net, Distilled) else LOSS
        ms.Model(net, loss, optimizer).train(epochs, data, callbacks=list(callbacks), dataset_sink_mode=False)
        return net.set_train(False)

    def right(self, net: Any) -> float:
        """Return the share of right answers on what is held out."""
        found = [net(ms.Tensor(self.held[k : k + 256])).asnumpy().argmax(1) for k in range(0, len(self.held), 256)]
        return float((np.concatenate(found) == self.truth).mean())

    def show(self, what: str, net: Any) -> None:
        """Print a line on a network."""
        costs, size = cost_of(net, ms.Tensor(self.x[:1])), size_report(net)
        calls, x = [ms.jit(lambda x: self.whole(x)), ms.jit(lambda x: net(x))], ms.Tensor(self.x[:64])
        times: list[list[float]] = [[], []]
        for _ in range(200):
            for call, found in zip(calls, times):
                start = time.perf_counter()
                call(x).asnumpy()
                found.append(time.perf_counter() - start)
        print(
            f"{self.name:9} {what:34} {self.right(net):7.1%} {costs.macs:>10,} {size.bytes:>9,} {size.sparse:>9,} "
            f"{min(times[0]) / min(times[1]):6.2f}",
            flush=True,
        )

    def run(self) -> None:
        """Print all lines."""
        ms.set_seed(1)
        self.whole = whole = self.train(self.make(), self.epochs)
        more, x = max(self.epochs // 3, 1), ms.Tensor(self.x[:2])
        self.show("whole", whole)
        for share in (0.5, 0.25):
            small = self.train(prune_channels(whole, x, macs=share, round_to=self.multiple), more)
            self.show(f"channels, {share:.0%} of the products", small)
            integers = quantise(small, self.x[:256])
            print(f"{self.name:9} {'  and int8':34} {self.right(integers):7.1%} {'':10} {integers.report.bytes:>9,}")
        for method, share in (("magnitude", 0.8), ("magnitude", 0.9), ("movement", 0.8)):
            net = prune_weights(copy.deepcopy(whole), 0.0, method=method)
            end = max(more * self.steps * 2 // 3, 2)
            net = self.train(net, more, [GradualPruning(net, share, 0, end, max(end // 20, 1))])
            self.show(f"{method}, {share:.0%} zeros", remove_masks(net))
        inputs = {name for name, c in whole.cells_and_names() if getattr(c, "in_channels", 4) % 4}
        net = self.train(prune_weights(copy.deepcopy(whole), pattern=(2, 4), exclude=sorted(inputs)), more)
        self.show("2:4", remove_masks(net))
        for form in ("channel", "tucker"):
            self.show(
                f"low rank ({form}), half the weights",
                self.train(low_rank(copy.deepcopy(whole), parameters=0.5, form=form), more),
            )
        ms.set_seed(2)
        self.show("small student, alone", self.train(self.student(), self.epochs))
        ms.set_seed(2)
        student = self.student()
        self.train(Distilled(student, whole, LOSS, hard=0.3, soft=0.7), self.epochs)
        self.show("small student, distilled", student.set_train(False))


if __name__ == "__main__":
    print(f"{'task':9} {'network':34} {'right':>7} {'products':>10} {'bytes':>9} {'sparse':>9} {'speed':>6}")
    for task in sys.argv[1:] or ["digits", "textures"]:
        Task(task).run()
