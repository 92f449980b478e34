"""Instructions, flash and RAM of libraries on emulated microcontrollers.

    python benchmarks/devices.py [--targets cortex-m4 cortex-m55]

Each network is built for each target and run in qemu-system-arm, which counts instructions. A line
has the multiplications of one call, instructions for each of them, bytes of code and of arena, and
bytes of stack. `make device` installs what it needs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import mycel as ms
from mycel import nn
from mycel.deploy import build
from mycel.deploy.boards import BOARDS, BoardError, missing_tools, run
from tests.deploy.networks import LeNet, training_step


def keywords() -> nn.Cell:
    """Return the depthwise separable network of MLPerf Tiny's task of keywords."""
    cells: list[Any] = [nn.Conv2d(1, 64, (10, 4), stride=2, pad_mode="same", has_bias=True), nn.ReLU()]
    for _ in range(4):
        cells += [nn.Conv2d(64, 64, 3, group=64, has_bias=True), nn.ReLU(), nn.Conv2d(64, 64, 1, has_bias=True)]
        cells.append(nn.ReLU())
    return nn.SequentialCell(*cells, nn.AvgPool2d((25, 5)), nn.Flatten(), nn.Dense(64, 12))


def anomaly() -> nn.Cell:
    """Return the autoencoder of MLPerf Tiny's task of anomalies, without its normalisations."""
    sizes = [640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640]
    cells: list[Any] = []
    for one, other in zip(sizes, sizes[1:]):
        cells += [nn.Dense(one, other), nn.ReLU()]
    return nn.SequentialCell(*cells[:-1])


def _random(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.RandomState(0).randn(*shape).astype("f4")


# Each network with its inputs and the products of a call.
NETWORKS: dict[str, tuple[Callable[[], Any], tuple[np.ndarray[Any, Any], ...], int]] = {
    "lenet": (LeNet, (_random(1, 1, 28, 28),), 281_640),
    "keywords": (keywords, (_random(1, 1, 49, 10),), 64 * 125 * 40 + 4 * 125 * (64 * 9 + 64 * 64) + 768),
    "anomaly": (anomaly, (_random(1, 640),), 2 * 640 * 128 + 6 * 128 * 128 + 2 * 8 * 128),
    # Forward, and as much again for each of both gradients, but for that of the images.
    "lenet training, 4": (
        training_step,
        (_random(4, 1, 28, 28), np.array([3, 1, 4, 1], np.int32)),
        4 * (3 * 281_640 - 86_400),
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", nargs="+", choices=list(BOARDS), default=["cortex-m4", "cortex-m7", "cortex-m55"])
    options = parser.parse_args()
    if missing_tools():
        print(f"{missing_tools()} is not installed; make device installs it", file=sys.stderr)
        return 2
    print(f"{'network':<20}{'target':<12}{'products':>12}{'each':>8}{'code':>10}{'arena':>10}{'stack':>8}")
    for name, (make, inputs, products) in NETWORKS.items():
        for target in options.targets:
            ms.set_seed(1)
            network = make()
            if isinstance(network, nn.Cell):
                network.set_train(False)
            library = build(network, *map(ms.Tensor, inputs), target=target, name="network")
            with tempfile.TemporaryDirectory() as folder:
                try:
                    done = run(library, [inputs], Path(folder))
                except BoardError as error:
                    print(f"{name:<20}{target:<12} does not run: {str(error).strip().splitlines()[-1]}")
                    continue
            each = done.instructions[0] / products
            print(f"{name:<20}{target:<12}{products:>12,}{each:>8.2f}", end="")
            print(f"{library.code_bytes:>10,}{library.arena_bytes:>10,}{done.stack_bytes:>8,}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
