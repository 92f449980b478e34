"""Records that the partitioner's modules share: messages, nested graphs, their divided forms."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mycel._src.compiler.ir.graph import Graph, Where
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.partition.tensor_sharding import Sharding

__all__ = ["Divided", "Message", "Task", "repeated"]


@dataclass(frozen=True)
class Message:
    """One collective of a partitioned graph, for reports.

    `kind` is its name, `mesh_axes` are those along which ranks exchange, `sent` is the number of
    bytes that each rank sends, `value` the type of the whole tensor that moves, from the layout
    `start` to `end`; `where` is the user's line that made the tensor, or that uses it where it is
    an input. `times` is how often it goes: the rounds of the loops around it, None where data
    decide them. One in a branch goes as if the branch were taken.
    """

    kind: str
    mesh_axes: tuple[str, ...]
    sent: float
    value: TensorType
    start: Sharding
    end: Sharding
    where: Where | None
    times: int | None = 1


def repeated(messages: tuple[Message, ...], rounds: int | None) -> tuple[Message, ...]:
    """Return messages as they are in a loop of so many `rounds`."""
    if rounds == 1:
        return messages
    times = [None if m.times is None or rounds is None else m.times * rounds for m in messages]
    return tuple([replace(m, times=t) for m, t in zip(messages, times)])


@dataclass(frozen=True)
class Task:
    """A graph inside of a node, and the layouts in which it takes and gives values.

    `inputs` has the layout of each input, `outputs` that asked of each output, None for any.
    `stable` says which inputs are made of parameters alone, `data_axes` are the mesh axes that
    divide data. Where `loose` is true of an output, what is partial stays so.
    """

    graph: Graph
    inputs: tuple[Sharding, ...]
    outputs: tuple[Sharding | None, ...]
    stable: tuple[bool, ...]
    data_axes: frozenset[str]
    loose: tuple[bool, ...]


@dataclass(frozen=True)
class Divided:
    """The graph that a rank runs in place of a task's, and the layouts of its outputs.

    `wanted` has, for each input that is sent into another layout, that layout. `cost` are the bytes
    that a run sends, with the time of its work as bytes.
    """

    graph: Graph
    outputs: tuple[Sharding, ...]
    messages: tuple[Message, ...]
    wanted: tuple[Sharding | None, ...]
    cost: float
