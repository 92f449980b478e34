"""Training divided among ranks, compared with training on one device.

    mycel launch -n 4 --plain tests/parallel/compare.py [--tasks lenet,bert] [--ways data,zero3]
    NPROC=8 MYCEL_ENGINE=xla XLA_FLAGS=--xla_force_host_platform_device_count=8 \
        python tests/parallel/compare.py --devices 8

Every rank, or the one process of several devices, trains each network undivided and then divided in
each way, and compares the losses and the parameters. Rank 0 prints a line for each; the exit status
says whether all agree.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import mycel as ms
from mycel.distributed import distribute
from mycel.frontend.micro_batches import cut_into
from mycel.transport.place import transport
from tests.parallel.networks import MICRO_BATCHES, MORE_WAYS, PIPELINES, TASKS, WAYS, layouts, pipeline, recomputed

LOSSES, STATES = 1e-5, 5e-5
# The gradient of a key's bias is 0, as it adds the same to all scores; Adam makes steps of what
# rounding leaves of it.
NOISE = "key.bias"


def trained(name, steps, wrap):
    """Train a new network; returns its losses, and its parameters' values by name."""
    ms.set_seed(3)
    np.random.seed(3)
    task = TASKS[name](steps)
    step = wrap(task)
    losses = [float(step(*map(ms.Tensor, batch))) for batch in task.batches]
    return np.array(losses), {p.name: p.asnumpy().copy() for p in task.network.get_parameters()}


def undivided(task, parts):
    """The compiled step of a task, with the batch cut into parts."""
    step = ms.jit(task.step)

    def call(*batch):
        with cut_into(parts):
            return step(*batch)

    return call


def divided(task, way, count):
    """The step of a task, divided in a way."""
    if way in CUT:
        return distribute(task.step, *pipeline(way, count))
    if way == "recompute":
        recomputed(task)
    return distribute(task.step, layouts(task, way, count))


CUT = ("accumulation", *PIPELINES)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--ways", default=",".join((*WAYS, *MORE_WAYS)))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--devices", type=int, default=0, help="so many devices of this process, in place of ranks")
    asked = parser.parse_args()
    if not asked.devices:
        ms.communication.init()
    wrong, count = 0, asked.devices or transport().size
    for name in asked.tasks.split(","):
        whole = {}
        for way in asked.ways.split(","):
            if (way == "tokens" and not TASKS[name](1).tokens) or (way == "both" and count % 2):
                continue
            if way in PIPELINES and (count % 2 or asked.devices):
                continue
            parts = MICRO_BATCHES if way in CUT else 1
            if parts not in whole:
                whole[parts] = trained(name, asked.steps, lambda task, parts=parts: undivided(task, parts))
            losses, states = whole[parts]
            began = time.perf_counter()
            found, values = trained(name, asked.steps, lambda task, way=way: divided(task, way, count))
            by_loss = np.abs(found - losses).max() / np.abs(losses).max()
            by_state = max(np.abs(values[k] - states[k]).max() for k in states if not k.endswith(NOISE))
            agrees = by_loss < LOSSES and by_state < STATES
            wrong += not agrees
            if transport().rank == 0:
                seconds = time.perf_counter() - began
                text = "agrees" if agrees else "DIFFERS"
                print(
                    f"{name} {way} {count}: losses {by_loss:.1e} states {by_state:.1e} {text} ({seconds:.1f} s)",
                    flush=True,
                )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
