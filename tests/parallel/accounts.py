"""What each way of `ways.py` may send and keep.

Data parallelism sums gradients and gathers nothing; ZeRO sends no more, and a rank keeps its share
of what is divided. A layer of a transformer that is divided by heads has four all-reduces.
"""

from __future__ import annotations

import math
from typing import Any

from mycel import nn
from mycel._src.compiler.transforms.partition import local_type
from mycel._src.planner.communication_volume import Communication
from mycel._src.staging.distributed.sharded_tensors import held
from tests.parallel.networks import ROWS, Layer, Task
from tests.parallel.ways import everything, parts, states_of

FEW = 100  # the bytes of sums that are no gradients


def bytes_of_statistics(task: Task) -> int:
    """The sums of batch normalisation: two forwards, two backwards."""
    return sum(4 * 4 * c.num_features for _, c in task.network.cells_and_names() if isinstance(c, nn.BatchNorm2d))


def checked(task: Task, way: str, count: int, found: Communication, batch: list[Any]) -> tuple[list[str], list[str]]:
    """Return what is wrong with the communication of a step, and remarks."""
    wrong: list[str] = []
    remarks: list[str] = []
    kinds = {e.kind for e in found.exchanges}
    if way in ("data", "recompute", "accumulation") and kinds != {"all_reduce"}:
        wrong.append(f"sends {', '.join(sorted(kinds))}")
    if way in ("data", "recompute", "accumulation", "zero1", "zero2", "zero3"):
        gradients = sum(padded(p, count) if way[:4] == "zero" else p.nbytes for p in task.network.trainable_params())
        statistics = parts(way, count) * bytes_of_statistics(task)
        most = 2 * (count - 1) / count * (1.05 * gradients + statistics) + FEW
        remarks.append(f"{found.sent / most:.2f} of the most that it may send")
        if found.sent > most:
            wrong.append(f"sends {found.sent} bytes, more than {most:.0f}")
    if way.startswith("zero"):
        kept(task, way, count, wrong, remarks)
    if way in ("operators", "both", "three"):
        layers = sum(isinstance(c, Layer) for _, c in task.network.cells_and_names())
        wide = [e for e in found.exchanges if e.kind == "all_reduce" and e.axes == ("tp",) and is_activation(e, batch)]
        # One more brings the rows of the divided table together.
        if layers and len(wide) != 4 * layers + 1:
            wrong.append(f"{len(wide)} all-reduces of activations, not {4 * layers + 1}")
        if layers:
            remarks.append(f"{len(wide)} all-reduces of activations")
    return wrong, remarks


def padded(p: Any, count: int) -> int:
    """The bytes of a parameter whose rows are divided, or of one that is whole."""
    if everything(p) is None:
        return int(p.nbytes)
    return -(-p.shape[0] // count) * count * math.prod(p.shape[1:]) * int(p.dtype.itemsize)


def is_activation(exchange: Any, batch: list[Any]) -> bool:
    return exchange.nbytes >= 4 * 24 * batch[0].size // ROWS


def kept(task: Task, way: str, count: int, wrong: list[str], remarks: list[str]) -> None:
    """Check the memory of what is divided."""
    chosen = everything if way == "zero3" else states_of(task)
    whole = own = 0
    for p in task.parameters().values():
        if chosen(p) is None:
            continue
        known = held(p)
        size = p.nbytes if known is None else int(local_type(p._type, known.layout).nbytes)
        if size > padded(p, count) // count:
            wrong.append(f"{p.name} takes {size} of {p.nbytes} bytes")
        whole, own = whole + p.nbytes, own + size
    remarks.append(f"{own / whole:.3f} of what is divided on each rank")
