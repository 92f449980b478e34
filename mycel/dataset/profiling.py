"""`profile`: what each node of a pipeline did, as a picture, and which one holds up the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mycel.dataset.execution.iterator_scope import Counter, Scope
from mycel.dataset.iteration.iterators import DictIterator, TupleIterator
from mycel.dataset.nodes.node import Node
from mycel.dataset.pipeline_errors import operation_name

__all__ = ["NodeProfile", "PipelineProfile", "profile"]

_BAR = 10
# How wide names of nodes are in the picture, which has 80 columns.
_NAME = 25
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


class NodeProfile(NamedTuple):
    """What one node of a pipeline did.

    Args:
        name (str): What it is.
        depth (int): How far below the last node it lies.
        kind (str): Who does its work: "inline", "threads" or "processes". A dataset that stands in
            several places is counted in the first; in others it is "above".
        workers (int): How many of them.
        busy (float): Seconds of its work, summed over its workers.
        waiting (float): Seconds of waiting for rows, summed over its workers.
        rows (int): How many rows it gave.
        size (int): How many bytes it gave.
        queue (int): How many pieces of rows waited for it at most.
        calls (tuple[str, ...]): The names of the operations or functions that it calls. Default:
            ().
    """

    name: str
    depth: int
    kind: str
    workers: int
    busy: float
    waiting: float
    rows: int
    size: int
    queue: int
    calls: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """What it is, with what it calls."""
        return f"{self.name} {', '.join(self.calls)}" if self.calls else self.name

    @property
    def work(self) -> str:
        """Who does its work."""
        return self.kind if self.kind == "above" else f"{self.kind} x{self.workers}"


class PipelineProfile:
    """What a pipeline did in `seconds`, of which its consumer waited `asked`.

    `nodes` are `NodeProfile`s, the last node first.
    """

    def __init__(self, nodes: Sequence[NodeProfile], seconds: float, asked: float) -> None:
        self.nodes = list(nodes)
        self.seconds = seconds
        self.asked = asked

    def share(self, node: NodeProfile) -> float:
        """Return how much of the time the workers of a node were at work, from 0 to 1."""
        return min(1.0, node.busy / (self.seconds * node.workers)) if self.seconds else 0.0

    @property
    def bottleneck(self) -> NodeProfile | None:
        """The node whose workers had least rest; None where the consumer hardly waited."""
        if not self.nodes or self.asked < 0.05 * self.seconds:
            return None
        return max(self.nodes, key=self.share)

    def __str__(self) -> str:
        slowest = self.bottleneck
        lines = [f"{self.seconds:.3f} s, in which the consumer waited {self.asked:.3f} s for rows"]
        if self.nodes:
            lines.append(f"{'node':<{_NAME}} {'work':<13} {'busy':<16} {'rows':>7} {'size':>9} queue")
        lines += [self._line(node) for node in self.nodes]
        if slowest is not None:
            lines.append(f"bottleneck: {slowest.label}, {slowest.work}")
        elif any(node.rows for node in self.nodes):
            lines.append("the consumer is slower than the pipeline")
        return "\n".join(lines)

    def _line(self, node: NodeProfile) -> str:
        label = "  " * node.depth + node.label
        label = label if len(label) <= _NAME else label[: _NAME - 3] + "..."
        if node.kind == "above":
            return f"{label:<{_NAME}} above"
        share = self.share(node)
        busy = f"{100 * share:3.0f} % {'#' * round(_BAR * share)}"
        return f"{label:<{_NAME}} {node.work:<13} {busy:<16} {node.rows:>7} {_bytes(node.size):>9} {node.queue:>3}"


def _bytes(size: float) -> str:
    unit = 0
    while size >= 1024 and unit + 1 < len(_UNITS):
        size, unit = size / 1024, unit + 1
    return f"{size:.{1 if unit else 0}f} {_UNITS[unit]}"


def profile(pipeline: Node | TupleIterator | DictIterator, num_epochs: int = 1) -> PipelineProfile:
    """Return what each node of a pipeline did: its work, its waiting, its rows and bytes.

    * `pipeline_parallel`: a dataset, which is run as fast as it can, or an iterator, of which this
      is what it did so far.
    * `num_epochs`: how many epochs of a dataset are run.

    Raises TypeError for other things.

    >>> import time
    >>> import mycel.dataset as ds
    >>> def slow(x):
    ...     time.sleep(0.002)
    ...     return x
    >>> numbers = ds.NumpySlicesDataset(list(range(50)), ["x"], shuffle=False)
    >>> found = ds.profile(numbers.map(slow, "x", num_parallel_workers=2).batch(5))
    >>> found.bottleneck.name, found.bottleneck.rows, found.bottleneck.workers
    ('map', 50, 2)
    """
    if isinstance(pipeline, Node):
        iterator = TupleIterator(pipeline, num_epochs=num_epochs, output_numpy=True)
        for _ in range(iterator.num_epochs):
            for _ in iterator:
                pass
    elif isinstance(pipeline, (TupleIterator, DictIterator)):
        iterator = pipeline  # type: ignore[assignment]
    else:
        raise TypeError(
            f"profile: pipeline must be a dataset or an iterator, not {pipeline!r} of type {type(pipeline).__name__}"
        )
    if iterator.scope is None:
        return PipelineProfile([], 0.0, 0.0)
    return of_scope(iterator.dataset, iterator.scope)


def of_scope(dataset: Node, scope: Scope) -> PipelineProfile:
    """Return what the nodes of a dataset did for the iterator that a scope belongs to."""
    found: list[NodeProfile] = []
    seen: set[int] = set()

    def add(node: Node, depth: int) -> None:
        counter = scope.counters.get(id(node)) or Counter(type(node).__name__, 0)
        if id(node) in seen:
            found.append(NodeProfile(counter.name, depth, "above", 1, 0.0, 0.0, 0, 0, 0))
            return
        seen.add(id(node))
        found.append(
            NodeProfile(
                *(counter.name, depth, counter.kind, counter.workers, counter.busy, counter.waiting),
                *(counter.rows, counter.size, counter.queue),
                tuple(map(operation_name, node.called())),
            )
        )
        for child in node.children:
            add(child, depth + 1)

    add(dataset, 0)
    return PipelineProfile(found, scope.seconds, scope.asked)
