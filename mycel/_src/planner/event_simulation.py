"""Discrete-event simulation of a rank's program: kernels, messages and memory over time.

All ranks that run the same graph are equal, so one of them stands for all, and thousands of devices
cost no more than one. A rank has a stream for computation and one for each channel of the topology.
A task is ready when those that it needs have ended. A stream that is free takes, of the tasks that
are ready, the one that could begin first on a machine without limits (the longest way from the
inputs, in seconds), and of equal ones the first in the graph. So gradients of weights are computed
along with those of values, and their sums go over the links while earlier layers are computed.
Without overlap all of them share one stream.

Memory holds the graph's inputs throughout, and each stored value from the start of its task to the
end of its last reader; results that the graph gives stay. A result that is written over an input
takes none. A kernel of arithmetic writes over an operand of the same size that it reads last.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from mycel._src.compiler.ir.graph import Graph, Where
from mycel._src.engines.reports import place_of
from mycel._src.planner.kernel_cost import ELEMENTWISE, Place, Task, nbytes_of, tasks_of
from mycel._src.planner.topology import Topology

__all__ = ["COMPUTE", "Event", "Run", "add_memory", "run_graph", "run_tasks"]

COMPUTE = "compute"


@dataclass(frozen=True)
class Event:
    """One kernel or one leg of a collective: what it is, on which stream, from when to when."""

    name: str
    stream: str
    start: float
    end: float
    where: Where | None = field(default=None, compare=False)


@dataclass
class Run:
    """One rank's run of a graph.

    `seconds` is when the last task ends, `spans` when each task begins and ends. `inputs` are the
    bytes of the graph's inputs, `peak` the most in use, inputs included, and `alive` what of them
    lies in values at that time, by line.
    """

    seconds: float
    events: list[Event]
    spans: dict[int, tuple[float, float]] = field(default_factory=dict)
    inputs: int = 0
    peak: int = 0
    alive: list[tuple[int, str]] = field(default_factory=list)

    def busy(self, stream: str) -> float:
        """Return the seconds in which a stream works."""
        return sum(e.end - e.start for e in self.events if e.stream == stream)

    @property
    def compute(self) -> float:
        """The seconds in which the rank computes."""
        return self.busy(COMPUTE)

    @property
    def communication(self) -> float:
        """The seconds in which at least one of the rank's channels works."""
        found, end = 0.0, 0.0
        for e in sorted((e for e in self.events if e.stream != COMPUTE), key=lambda e: e.start):
            found += max(0.0, e.end - max(e.start, end))
            end = max(end, e.end)
        return found

    @property
    def exposed(self) -> float:
        """The seconds in which the rank waits for messages."""
        return self.seconds - self.compute


def run_graph(
    graph: Graph,
    topology: Topology,
    aliases: Mapping[int, int] | None = None,
    overlap: bool = True,
    scaled: bool = False,
) -> Run:
    """Return a rank's run of its graph.

    `topology` has the mesh of the graph's collectives. `aliases` says which of the graph's outputs,
    by number, are written over which of its inputs, `overlap` whether messages go while others are
    computed. If `scaled`, collectives join as many ranks as the topology has along their axes.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.sharding.mesh import Mesh
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.planner.topology import Device, Link
    >>> from mycel._src.compiler.prims.distributed.collectives import all_reduce
    >>> from mycel._src.compiler.prims.matrix_product import matmul
    >>> mesh = Mesh((4,), ("data",))
    >>> x = input_node(tensor_type((1000, 1000), float32))
    >>> y = all_reduce(matmul(x, x), mesh=mesh, axes=("data",), op="sum")
    >>> toy = Device("toy", {"float32": 1e9}, bandwidth=1e12, memory=2**30)
    >>> run = run_graph(Graph([x], [y]), Topology(toy, mesh, {"data": Link(0, 1e6)}))
    >>> run.compute, run.exposed, run.peak
    (2.0, 6.0, 12000000)
    """
    tasks, ends = tasks_of(graph)
    if scaled:
        for task in tasks:
            task.exchange = task.exchange and task.exchange.scaled(topology)
    run = run_tasks(tasks, topology, overlap)
    # Outputs of tuple types have several ends each, and are written over nothing.
    over = {ends[k] for k in aliases or ()} if len(ends) == len(graph.outputs) else set()
    add_memory(run, tasks, ends, sum(nbytes_of(n.type) for n in graph.inputs), over)
    return run


def run_tasks(
    tasks: Sequence[Task], topology: Topology, overlap: bool = True, chosen: Collection[int] | None = None
) -> Run:
    """Return a rank's run of tasks, without its memory.

    `topology` has the mesh of the collectives, `overlap` says whether messages go while others are
    computed. With `chosen` those tasks alone run, by place, and what the others compute is there
    from the start.
    """
    return _Streams(tasks, topology, overlap, range(len(tasks)) if chosen is None else chosen).run()


class _Streams:
    """The state of a run: what waits, what is ready for each stream, and what ends when.

    Of `tasks` those at the places `chosen` run, on the streams of `topology`, or all on one without
    `overlap`.
    """

    def __init__(self, tasks: Sequence[Task], topology: Topology, overlap: bool, chosen: Collection[int]) -> None:
        self.tasks, self.now = tasks, 0.0
        self.legs = {k: _legs(tasks[k], topology, overlap) for k in sorted(chosen)}
        self.users: dict[int, list[int]] = {k: [] for k in self.legs}
        self.waits: dict[int, int] = {}
        self.earliest: dict[int, float] = {}
        for k in self.legs:
            needs = [n for n in tasks[k].needs if n in self.legs]
            self.waits[k] = len(needs)
            self.earliest[k] = max((self.earliest[n] + sum(s for *_, s in self.legs[n]) for n in needs), default=0.0)
            for n in needs:
                self.users[n].append(k)
        self.ready: dict[str, list[tuple[float, int, int]]] = {}
        self.busy: set[str] = set()
        self.ending: list[tuple[float, int, int, str]] = []
        self.events: list[Event] = []
        self.spans: dict[int, tuple[float, float]] = {}

    def run(self) -> Run:
        for k in [k for k, count in self.waits.items() if not count]:
            self.begin(k)
        self.start()
        while self.ending:
            self.now = self.ending[0][0]
            while self.ending and self.ending[0][0] == self.now:
                _, k, leg, stream = heapq.heappop(self.ending)
                self.busy.discard(stream)
                self.leave(k, leg + 1)
            self.start()
        return Run(self.now, self.events, self.spans)

    def begin(self, k: int) -> None:
        self.spans[k] = (self.now, self.now)
        self.leave(k, 0)

    def leave(self, k: int, leg: int) -> None:
        """Queue the next leg of a task, or its users where it has ended."""
        if leg < len(self.legs[k]):
            heapq.heappush(self.ready.setdefault(self.legs[k][leg][0], []), (self.earliest[k], k, leg))
            return
        self.spans[k] = (self.spans[k][0], self.now)
        for user in self.users[k]:
            self.waits[user] -= 1
            if not self.waits[user]:
                self.begin(user)

    def start(self) -> None:
        """Have each free stream take what is ready and comes first."""
        for stream, queue in self.ready.items():
            if queue and stream not in self.busy:
                _, k, leg = heapq.heappop(queue)
                _, name, seconds = self.legs[k][leg]
                if leg == 0:
                    self.spans[k] = (self.now, self.now)
                self.busy.add(stream)
                end = self.now + seconds
                self.events.append(Event(self.tasks[k].name, name, self.now, end, self.tasks[k].where))
                heapq.heappush(self.ending, (end, k, leg, stream))


def _legs(task: Task, topology: Topology, overlap: bool) -> list[tuple[str, str, float]]:
    """Return what a task occupies, one after the other: a stream, its name, and the seconds."""
    if task.exchange is None:
        return [(COMPUTE, COMPUTE, task.seconds(topology.device))]
    found = [(topology.channel(axis), s) for axis, s in task.exchange.legs(topology)]
    return [(channel if overlap else COMPUTE, channel, s) for channel, s in found]


def add_memory(run: Run, tasks: Sequence[Task], ends: Sequence[Place], inputs: int, over: Collection[Place]) -> None:
    """Enter into a run the most memory that it has in use at a time.

    `tasks` are those of the run, `ends` where the graph's outputs lie, `inputs` the bytes of its
    inputs, and `over` the outputs that are written over inputs.
    """
    last: dict[Place, int] = {}
    for k, task in enumerate(tasks):
        for place in task.uses:
            if place[0] >= 0 and (place not in last or run.spans[last[place]][1] <= run.spans[k][1]):
                last[place] = k
    kept = set(ends)
    free = [sorted(t.results[n] for n in t.stored if (k, n) not in over) for k, t in enumerate(tasks)]
    changes: list[tuple[float, int, int, Place]] = []
    for k, task in enumerate(tasks):
        for place in [(k, n) for n in sorted(task.stored) if (k, n) not in over]:
            size = task.results[place[1]]
            changes.append((run.spans[k][0], 1, size, place))
            if place in kept:
                continue
            # Arithmetic may write over what nothing else will read.
            reader = last[place]
            inside = tasks[reader].kind.startswith(ELEMENTWISE) and size in free[reader]
            if inside:
                free[reader].remove(size)
            changes.append((run.spans[reader][0 if inside else 1], 0, -size, place))
    changes.sort(key=lambda c: c[:2])
    used = most = moment = 0
    for at, (_, _, size, _) in enumerate(changes):
        used += size
        if used > most:
            most, moment = used, at
    lines: dict[str, int] = {}
    for _, _, size, place in changes[: moment + 1]:
        line = place_of(tasks[place[0]].where)
        lines[line] = lines.get(line, 0) + size
    run.inputs, run.peak = inputs, inputs + most
    run.alive = sorted(((n, line) for line, n in lines.items() if n), key=lambda e: (-e[0], e[1]))
