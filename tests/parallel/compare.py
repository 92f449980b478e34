"""Training divided among ranks, compared with training on one device.

    mycel launch -n 4 --plain tests/parallel/compare.py [--tasks lenet,bert] [--ways data,zero3]
    NPROC=8 MYCEL_ENGINE=xla XLA_FLAGS=--xla_force_host_platform_device_count=8 \
        python tests/parallel/compare.py --devices 8
    NPROC=8 MYCEL_ENGINE=xla XLA_FLAGS=--xla_force_host_platform_device_count=2 \
        mycel launch -n 2 --plain tests/parallel/compare.py --devices 4

Every rank, or the one process of several devices, trains each network undivided and then divided in
each way, and compares the losses and the parameters, masks of dropout bit for bit, and what was
sent with what was predicted and with what each way may send (`accounts.py`). Rank 0 prints a line
for each; the exit status says whether all agree.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np

import mycel as ms
from mycel._src.compiler.transport.counting_transport import Counted
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.engines.select import engine
from mycel._src.planner.communication_volume import Communication
from mycel._src.staging.distributed.distributed_function import Distributed
from mycel._src.staging.frontend.parallelism.micro_batches import cut_into
from tests.parallel import accounts
from tests.parallel.adasum import alone_by_adasum
from tests.parallel.networks import TASKS, Task
from tests.parallel.other_networks import OTHER_TASKS
from tests.parallel.ways import ALL, COMBINED, PIPELINES, by_adasum, divide, fits, parts

EVERY = {**TASKS, **OTHER_TASKS}
LOSSES, STATES = 1e-5, 5e-5
# The gradient of a key's bias is 0, as it adds the same to all scores; Adam makes steps of what
# rounding leaves of it.
NOISE = "key.bias"


class Trained(NamedTuple):
    """The losses, the parameters by name, and what is to be equal bit for bit."""

    losses: np.ndarray
    states: dict[str, np.ndarray]
    shown: list[np.ndarray]


def made(name: str, steps: int) -> Task:
    """A network whose values are the same each time."""
    ms.set_seed(3)
    np.random.seed(3)
    return EVERY[name](steps)


def arrays(values: Any) -> list[np.ndarray]:
    return [v.asnumpy() for v in values[:-1]]


def trained(task: Task, wrap: Callable[[Any], Any], own: Callable[[Any], Any] = lambda rows: rows) -> Trained:
    """Train a network by its step, wrapped; `own` takes of each array of a batch what is given."""
    step = wrap(task.step)
    losses = [float(step(*[ms.Tensor(own(a)) for a in batch])) for batch in task.batches]
    shown = [] if task.shown is None else arrays(wrap(task.shown)(*map(ms.Tensor, task.batches[0])))
    return Trained(np.array(losses), task.values(), shown)


def undivided(count: int) -> Callable[[Any], Any]:
    """Functions compiled for one device, with the batch cut into so many parts."""

    def wrap(function: Any) -> Any:
        compiled = ms.jit(function)

        def call(*batch: Any) -> Any:
            with cut_into(count):
                return compiled(*batch)

        return call if count > 1 else compiled

    return wrap


def own_rows(array: np.ndarray) -> np.ndarray:
    """The rows of this rank."""
    return np.split(array, transport().size)[transport().rank]


def by_transport(count: int) -> bool:
    """Whether so many ranks exchange through the transport, and are no devices of one program."""
    return transport().size > 1 and engine().device_count() != count


class Compared(NamedTuple):
    by_loss: float
    by_state: float
    wrong: list[str]
    remarks: list[str]


def compared(name: str, way: str, count: int, steps: int, expected: Trained) -> Compared:
    """Train a network in a way, and compare it with what is expected."""
    task, programs = made(name, steps), []

    def wrap(function: Any) -> Any:
        found = divide(task, function, way, count)
        programs.append(found)
        return found

    counted = Counted(transport())
    if way in COMBINED:
        found = trained(task.with_step(by_adasum(task)), lambda step: step, own_rows)
        wrong, remarks = [], []
    else:
        with within(counted):
            step = wrap(task.step)
            batches = [[ms.Tensor(a) for a in batch] for batch in task.batches]
            accounted = predicted(step, batches)
            losses = np.array([float(step(*batch)) for batch in batches])
            sent, total = counted.sent, sum(c.sent for c in accounted)
        wrong, remarks = accounts.checked(task, way, count, accounted[0], batches[0]) if task.is_bounded else ([], [])
        remarks.insert(0, f"{accounted[0].sent} bytes a step")
        if by_transport(count) and sent != total:
            wrong.append(f"{sent} bytes were sent, {total} were predicted")
        shown = [] if task.shown is None else arrays(wrap(task.shown)(*batches[0]))
        found = Trained(losses, task.values(), shown)
    by_loss = np.abs(found.losses - expected.losses).max() / np.abs(expected.losses).max()
    by_state = max(np.abs(found.states[k] - v).max() for k, v in expected.states.items() if not k.endswith(NOISE))
    wrong += [] if by_loss < LOSSES else ["losses"]
    wrong += [] if by_state < STATES else ["states"]
    masks = [k for k, (a, b) in enumerate(zip(found.shown, expected.shown)) if not np.array_equal(a, b)]
    wrong += [f"mask {k}" for k in masks]
    if found.shown:
        remarks.append(f"{len(found.shown) - len(masks)} masks equal")
    return Compared(by_loss, by_state, wrong, remarks)


def predicted(step: Distributed, batches: list[list[Any]]) -> list[Communication]:
    """What this rank, or the one that sends most, will send for each batch."""
    rank = transport().rank if by_transport(step.size) else None
    known: dict[Any, Communication] = {}
    for shapes, batch in [(tuple([t.shape for t in batch]), batch) for batch in batches]:
        if shapes not in known:
            known[shapes] = Communication(step.divided(*batch).of_rank().graph, rank=rank)
    return [known[tuple([t.shape for t in batch])] for batch in batches]


def alone(name: str, way: str, count: int, steps: int) -> Trained:
    """What one device computes in place of a way."""
    if way in COMBINED:
        return Trained(*alone_by_adasum(lambda: made(name, steps), count, transport().rank), [])
    return trained(made(name, steps), undivided(parts(way, count)))


def first_wrong(wrong: list[str]) -> int:
    """The first rank that has found something wrong, 0 if there is none."""
    ranks = range(transport().size)
    return next((k for k, bad in enumerate(transport().all_gather_list(np.array([len(wrong)]), ranks)) if bad[0]), 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", default=",".join(EVERY))
    parser.add_argument("--ways", default=",".join(ALL))
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--devices", type=int, default=0, help="so many devices of the processes, in place of ranks")
    asked = parser.parse_args()
    ms.communication.init()
    bad, count = 0, asked.devices or transport().size
    for name in asked.tasks.split(","):
        whole: dict[Any, Trained] = {}
        for way in asked.ways.split(","):
            among = transport().size > 1 and way in PIPELINES  # whose stages are ranks, not devices of theirs
            if not fits(made(name, 1), way, count) or (asked.devices and (way in COMBINED or among)):
                continue
            key = way if way in COMBINED else parts(way, count)
            if key not in whole:
                whole[key] = alone(name, way, count, asked.steps)
            began = time.perf_counter()
            found = compared(name, way, count, asked.steps, whole[key])
            seconds = time.perf_counter() - began
            bad += bool(found.wrong)
            if first_wrong(found.wrong) == transport().rank:
                text = f"DIFFERS on rank {transport().rank}: {', '.join(found.wrong)}" if found.wrong else "agrees"
                print(
                    f"{name} {way} {count}: losses {found.by_loss:.1e} states {found.by_state:.1e} {text} "
                    f"({'; '.join(found.remarks)}; {seconds:.1f} s)",
                    flush=True,
                )
    return bad


if __name__ == "__main__":
    sys.exit(main())
