"""The ways in which the networks of `networks.py` are divided, and for which numbers of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mycel as ms
from mycel import nn
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.staging.distributed import Layouts, Pipeline, distribute
from tests.parallel.networks import ROWS, Task

# All ranks compute parts of the whole batch.
WAYS = ("data", "operators", "both", "three", "tokens", "zero1", "zero3", "recompute")
# The batch is cut into micro-batches: the schedule, and the stages of each group of ranks.
PIPELINES = {"pipeline-gpipe": ("gpipe", 1), "pipeline-1f1b": ("1f1b", 1), "pipeline-interleaved": ("interleaved", 2)}
ACCUMULATED = ("accumulation", "zero2")
# Each rank has rows of its own, and gradients are combined.
COMBINED = ("adasum",)
ALL = (*WAYS, *ACCUMULATED, *PIPELINES, *COMBINED)


def stages(way: str, count: int) -> int:
    """The number of groups of ranks: 4 in a pipeline of 8 ranks, else 2."""
    return (4 if count >= 8 else 2) if way in PIPELINES else 1


def parts(way: str, count: int) -> int:
    """The number of micro-batches; those that all ranks divide have a row for each at least."""
    if way in PIPELINES:
        return 2 * stages(way, count)
    return min(4, ROWS // count) if way in ACCUMULATED else 1


def fits(task: Task, way: str, count: int) -> bool:
    """Whether a task can be divided in a way among so many ranks."""
    if way.startswith(task.excluded):
        return False
    if way == "tokens":
        return bool(task.tokens)
    if way == "three":
        return count % 3 == 0 and count > 3
    if way == "both" or way in PIPELINES:
        return not count % 2
    return way != "adasum" or not count & (count - 1)


def layouts(task: Task, way: str, count: int) -> Layouts:
    """The layouts of a way to divide among `count` ranks; in a pipeline those inside of a stage."""
    rows = [("dp",)] * len(task.batches[0])
    if way == "operators":
        return Layouts(Mesh((count,), ("tp",)), [], task.operators)
    if way in ("both", "three"):
        own = 2 if way == "both" else 3
        return Layouts(Mesh((count // own, own), ("dp", "tp")), rows, task.operators)
    if way == "tokens":
        return Layouts(Mesh((count,), ("sp",)), task.tokens)
    chosen: Callable[[Any], Any] | None = None
    if way.startswith("zero"):
        chosen = everything if way == "zero3" else states_of(task)
    return Layouts(Mesh((count // stages(way, count),), ("dp",)), rows, chosen)


def everything(p: Any) -> Any:
    """All that is worth it is divided; tables of learning rates are only read, and stay whole."""
    return ("dp",) if p.ndim and p.shape[0] > 1 and p.size > 8 and p.name != "learning_rate" else None


def states_of(task: Task) -> Callable[[Any], Any]:
    """What the optimizer keeps is divided, and weights are whole."""
    # States want gradients as what they are copies of does, so names tell them apart.
    weights = {p.name for p in task.network.get_parameters()}
    return lambda p: everything(p) if p.name not in weights else None


def divided(task: Task, way: str, count: int) -> Any:
    """The step of a task, divided in a way among `count` ranks."""
    return divide(task, task.step, way, count)


def divide(task: Task, step: Any, way: str, count: int) -> Any:
    """A function of a task's batch, divided."""
    made = layouts(task, way, count)
    if way in PIPELINES or way in ACCUMULATED:
        schedule, chunks = PIPELINES.get(way, ("gpipe", 1))
        return distribute(step, made, Pipeline(stages(way, count), parts(way, count), schedule, chunks=chunks))
    if way == "recompute":
        for cell in task.network.cells():
            cell.recompute()
    return distribute(step, made)


def by_adasum(task: Task) -> Any:
    """The step of one rank on its rows, whose gradients are combined with those of others."""
    combine = nn.AdaSumByGradWrapCell(task.update)

    def step(*batch: Any) -> Any:
        value, gradients = task.derive(*batch)
        combine(gradients)
        return value

    return ms.jit(step)
