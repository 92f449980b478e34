"""Communication volume: the bytes and messages of a rank's graph, exactly, before anything runs.

Bytes and messages are those of the ring algorithms (`transport.collective_volume`), by which
`transport.counting_transport` counts what runs. What a rank sends to other stages of a pipeline is
as large as it is. A collective in a loop counts as often as the loop runs, where that is known
before, and once where data decide it; one in a branch counts as if the branch were taken. The
gradient of a loop runs the loop itself where the graph does not have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.graph import Graph, Node, Where
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims.control_flow.control import while_loop
from mycel._src.compiler.prims.control_flow.trip_count import known_rounds
from mycel._src.compiler.prims.control_flow.while_gradient import while_grad
from mycel._src.compiler.prims.distributed.collectives import COLLECTIVES, permute
from mycel._src.compiler.prims.distributed.point_to_point import messages as stage_messages
from mycel._src.compiler.transforms.loop_residuals import loop_pairs
from mycel._src.compiler.transport.collective_volume import messages, sent
from mycel._src.engines.reports import place_of
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.readable_sizes import readable
from mycel._src.planner.topology import Topology

__all__ = ["Communication", "Exchange", "exchange_of"]


@dataclass(frozen=True)
class Exchange:
    """One collective of a graph.

    It has its kind, the axes of the mesh, how many ranks take part, the bytes of its larger side,
    the bytes and messages that this rank sends each time, and the user's line. `times` is how often
    it runs, None where data decide that.
    """

    kind: str
    axes: tuple[str, ...]
    count: int
    nbytes: int
    sent: int
    messages: int
    where: Where | None = field(default=None, compare=False)
    mesh: Mesh | None = field(default=None, repr=False, compare=False)
    times: int | None = 1

    @property
    def runs(self) -> int:
        """How often it is counted."""
        return 1 if self.times is None else self.times

    def scaled(self, topology: Topology) -> Exchange:
        """Return the collective among as many ranks as a topology has along its axes.

        What each rank gives stays as it is.
        """
        count = topology.mesh.count(self.axes)
        if count == self.count:
            return self
        nbytes = self.nbytes // self.count * count if self.kind == "all_gather" else self.nbytes
        found = (self.sent, self.messages)
        if self.kind != "permute":
            found = (sent(self.kind, nbytes, count), messages(self.kind, count))
        return Exchange(self.kind, self.axes, count, nbytes, *found, self.where, topology.mesh, self.times)

    def seconds(self, topology: Topology) -> float:
        """Return what the collective takes from its start to its end, as `legs` has it."""
        return sum(s for _, s in self.legs(topology))

    def legs(self, topology: Topology) -> list[tuple[str, float]]:
        """Return the axes that the collective goes along, in their order, and the seconds on each.

        Raises ShapeError where the topology has other sizes along its axes.
        """
        found = topology.mesh.count(self.axes)
        if found != self.count:
            raise ShapeError(
                f"{self.kind} along {', '.join(self.axes)} joins {self.count} ranks, but {topology.name} has {found} "
                "there; give it the program's mesh, or have it scaled"
            )
        return topology.legs(self.kind, self.nbytes, self.axes)


def exchange_of(node: Node, rank: int | None = None) -> Exchange | None:
    """Return what a node exchanges with other ranks; None for a node that is no collective.

    What a rank sends in a permute depends on its place: with `rank` it is that rank's, without it
    the most that one sends.
    """
    if node.prim not in COLLECTIVES:
        return None
    mesh, axes = node.params["mesh"], tuple(node.params["axes"])
    count = mesh.count(axes)
    nbytes = max(hint(node.type.nbytes), *[hint(i.type.nbytes) for i in node.inputs])
    if node.prim is permute:
        ways = [(a, b) for a, b in node.params["pairs"] if a != b]
        away = bool(ways) if rank is None else mesh.position(rank, axes) in {a for a, _ in ways}
        bytes_, times = (nbytes, 1) if away else (0, 0)
    else:
        bytes_, times = sent(node.op, nbytes, count), messages(node.op, count)
    return Exchange(node.op, axes, count, nbytes, bytes_, times, node.where, mesh)


def _to_stages(node: Node) -> Exchange | None:
    if node.prim is not stage_messages:
        return None
    count = len(node.params["sent"])
    nbytes = sum(hint(i.type.nbytes) for i in node.inputs[:count])
    return Exchange("send", (), 1, nbytes, nbytes, count, node.where, node.params["mesh"]) if count else None


class Communication:
    """The collectives of one rank's graph, which `text` shows by the user's lines.

    `exchanges` has them in the order of the graph, `sent` and `messages` are those of all of them
    together. With a `topology` the seconds of each line are shown too. Without `rank` it is the
    account of the rank that sends most.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims.distributed.collectives import all_reduce
    >>> x = input_node(tensor_type((1000,), float32))
    >>> y = all_reduce(x, mesh=Mesh((4,), ("data",)), axes=("data",), op="sum")
    >>> print(Communication(Graph([x], [y])))
    a rank sends 5.859 KiB in 6 messages of 1 collective
      all_reduce along data (4 ranks), once: 5.859 KiB in 6 messages; library code
    """

    def __init__(self, graph: Graph, topology: Topology | None = None, rank: int | None = None) -> None:
        self.topology = topology
        made = [(exchange_of(n, rank) or _to_stages(n), times) for n, times in _nodes(graph, 1)]
        self.exchanges = [replace(e, times=times) for e, times in made if e is not None and times != 0]

    @property
    def sent(self) -> int:
        """The bytes that the rank sends."""
        return sum(e.sent * e.runs for e in self.exchanges)

    @property
    def messages(self) -> int:
        """The messages that the rank sends."""
        return sum(e.messages * e.runs for e in self.exchanges)

    @property
    def lines(self) -> list[tuple[str, list[Exchange]]]:
        """The exchanges of each of the user's lines, those that send most first."""
        found: dict[str, list[Exchange]] = {}
        for e in self.exchanges:
            found.setdefault(place_of(e.where), []).append(e)
        return sorted(found.items(), key=lambda item: (-sum(e.sent * e.runs for e in item[1]), item[0]))

    def text(self, most: int = 40) -> str:
        """Return the sums, and the `most` lines of the source that send most."""
        rows = []
        for place, exchanges in self.lines:
            kinds: dict[tuple[str, tuple[str, ...], int], list[Exchange]] = {}
            for e in exchanges:
                kinds.setdefault((e.kind, e.axes, e.count), []).append(e)
            rows += [(place, *kind, found) for kind, found in kinds.items()]
        lines = [
            f"a rank sends {readable(self.sent)} in {self._counted(self.exchanges)} of "
            f"{len(self.exchanges)} collective{'' if len(self.exchanges) == 1 else 's'}{self._seconds(self.exchanges)}"
        ]
        for place, kind, axes, count, found in rows[:most]:
            sent_ = readable(sum(e.sent * e.runs for e in found))
            lines.append(
                f"  {_named(kind, axes, count)}, {_times(found)}: {sent_} in "
                f"{self._counted(found)}{self._seconds(found)}; {place}"
            )
        if len(rows) > most:
            left = [e for *_, found in rows[most:] for e in found]
            lines.append(f"  {len(rows) - most} more: {readable(sum(e.sent * e.runs for e in left))}")
        return "\n".join(lines)

    def _counted(self, exchanges: list[Exchange]) -> str:
        count = sum(e.messages * e.runs for e in exchanges)
        return f"{count} message{'' if count == 1 else 's'}"

    def _seconds(self, exchanges: list[Exchange]) -> str:
        if self.topology is None:
            return ""
        return f", {sum(e.seconds(self.topology) * e.runs for e in exchanges) * 1e3:.4g} ms"

    def __str__(self) -> str:
        return self.text()


def _named(kind: str, axes: tuple[str, ...], count: int) -> str:
    return f"{kind} along {', '.join(axes)} ({count} ranks)" if axes else f"{kind} to other stages"


def _times(exchanges: list[Exchange]) -> str:
    """Return how often collectives run, in words."""
    known = sum(e.times for e in exchanges if e.times is not None)
    unknown = sum(e.times is None for e in exchanges)
    words = ["once" if known == 1 else f"{known} times"] if known else []
    if unknown:
        words.append(f"{'once' if unknown == 1 else f'{unknown} times'} a round")
    return " and ".join(words)


def _nodes(graph: Graph, times: int | None) -> Iterator[tuple[Node, int | None]]:
    """Give the nodes of a graph and of those that its nodes hold, with how often they run.

    The graph itself runs so many `times`.
    """
    pairs = loop_pairs(graph)
    for node in graph.nodes:
        yield node, times
        for name, value in node.params.items():
            for inner in value if isinstance(value, tuple) else (value,):
                if isinstance(inner, Graph):
                    yield from _nodes(inner, _runs(node, name, times, node in pairs))


def _runs(node: Node, name: str, times: int | None, paired: bool) -> int | None:
    """Return how often the graph in the parameter `name` of a node runs, when that runs `times`.

    `paired` says of a loop and its gradient that the graph has both.
    """
    if node.prim not in (while_loop, while_grad):
        return times
    if node.prim is while_grad and paired and name != "backward":
        return 0
    rounds = known_rounds(node)
    if rounds is None or times is None:
        return None
    again = node.prim is while_grad and node.params["keep"] == "root" and name == "body"
    return times * (rounds * 2 if again else rounds + 1 if name == "test" else rounds)
