"""Simulation of a training program on many devices: step time, memory, pipeline bubbles, a chart.

A program is the graph that all ranks run, or a `Pipeline` of stages. The devices of one stage run
one graph and are equal, so there is a `Class` of devices for each stage, and one for a graph. Each
micro-batch passes the stages as `planner.pipeline_stages` plays the schedule: with the seconds of
the stage's forward and backward, in which its own collectives are, and those of the messages
between stages. When its last micro-batch is through, a stage updates its parameters.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.transforms.partition import Partitioned
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.readable_sizes import readable
from mycel._src.planner.event_simulation import COMPUTE, Run, add_memory, run_graph, run_tasks
from mycel._src.planner.kernel_cost import nbytes_of, tasks_of
from mycel._src.planner.pipeline_stages import SCHEDULES, played, schedule
from mycel._src.planner.timeline_chart import Bar, picture
from mycel._src.planner.topology import Topology

__all__ = ["Class", "Pipeline", "Simulation", "Stage", "simulate"]


@dataclass(frozen=True, eq=False)
class Stage:
    """One stage of a pipeline, as the graphs of one rank.

    `step` takes one micro-batch forwards and backwards: its first `results` outputs are what goes
    on to the next stage (of the last one, the loss), the others gradients. `update` runs once after
    all micro-batches, as the sum of gradients over ranks and the optimizer; `aliases` says which of
    its outputs are written over which of its inputs. With `recompute` only what enters the stage is
    kept of a micro-batch, and its forward runs again before its backward; `entering` says how many
    of the inputs of `step` that is, the others are parameters.
    """

    step: Graph
    results: int = 1
    update: Graph | None = None
    aliases: Mapping[int, int] = field(default_factory=dict)
    recompute: bool = False
    entering: int = 1


@dataclass(frozen=True)
class Pipeline:
    """Stages in their order, the number of micro-batches, and the schedule, one of `SCHEDULES`.

    The same stage may come many times. `axis` is the topology's along which stages lie; where there
    are more stages than devices, each device has every so-many-th of them.
    """

    stages: Sequence[Stage]
    microbatches: int
    schedule: str = "1f1b"
    axis: str = "pipe"


@dataclass
class Class:
    """Devices that do the same: their name, how many they are, and the seconds of one of them.

    `compute` are those in which it computes, `communication` those in which messages of its
    collectives go, `exposed` those in which it waits for them, `bubble` those in which it waits for
    other stages. `memory` is the most that it has in use, in bytes, of which `parameters` are those
    of the graph's inputs.
    """

    name: str
    devices: int
    compute: float
    communication: float
    exposed: float
    bubble: float
    memory: int
    parameters: int
    bars: list[Bar] = field(default_factory=list, repr=False)
    alive: list[tuple[int, str]] = field(default_factory=list, repr=False)


@dataclass
class Simulation:
    """How a program would run: the seconds of a step, and the classes of its devices.

    `print` shows a table, `save` draws who does what when.
    """

    name: str
    topology: Topology
    seconds: float
    classes: list[Class]

    @property
    def devices(self) -> int:
        """The number of devices."""
        return sum(c.devices for c in self.classes)

    @property
    def memory(self) -> int:
        """The bytes in use on the device that has the most."""
        return max(c.memory for c in self.classes)

    @property
    def fits(self) -> bool:
        """Whether every device has memory enough."""
        return self.memory <= self.topology.device.memory

    @property
    def compute(self) -> float:
        """The share of the step in which devices compute."""
        return self._share([c.compute for c in self.classes])

    @property
    def communication(self) -> float:
        """The share of the step in which messages of collectives go."""
        return self._share([c.communication for c in self.classes])

    @property
    def exposed(self) -> float:
        """The share of the step in which devices wait for messages of collectives."""
        return self._share([c.exposed for c in self.classes])

    @property
    def bubble(self) -> float:
        """The share of the step in which devices wait for other stages."""
        return self._share([c.bubble for c in self.classes])

    def _share(self, seconds: Sequence[float]) -> float:
        if not self.seconds:
            return 0.0
        return sum(s * c.devices for s, c in zip(seconds, self.classes)) / (self.seconds * self.devices)

    def text(self) -> str:
        """Return a table of the classes."""
        limit = self.topology.device.memory
        over = "" if self.fits else f", {readable(self.memory - limit)} more than there are"
        lines = [
            f"{self.name} on {self.devices} x {self.topology.device.name} ({self.topology.name})",
            f"  {_shown(self.seconds)} a step, {readable(self.memory)} of {readable(limit)} a device{over}",
            f"  {'':<12} {'devices':>8} {'compute':>8} {'messages':>8} {'exposed':>8} {'bubble':>8} {'memory':>11} "
            f"{'parameters':>11}",
        ]
        for c in self.classes:
            shares = [s / self.seconds if self.seconds else 0.0 for s in (c.compute, c.communication, c.exposed)]
            shares.append(c.bubble / self.seconds if self.seconds else 0.0)
            lines.append(
                f"  {c.name:<12} {c.devices:>8} "
                + " ".join(f"{s:>8.1%}" for s in shares)
                + f" {readable(c.memory):>11} {readable(c.parameters):>11}"
            )
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Draw the timeline into a file: SVG by its name, or what matplotlib writes, as PNG.

        Raises ValueError for other names, and ImportError, which says what to install, where
        matplotlib is needed and missing.
        """
        title = f"{self.name}: {_shown(self.seconds)} a step on {self.devices} devices"
        picture(path, title, self.seconds, [bar for c in self.classes for bar in c.bars])


def simulate(
    program: Graph | Partitioned | Pipeline,
    topology: Topology,
    aliases: Mapping[int, int] | None = None,
    overlap: bool = True,
    scaled: bool = False,
    name: str = "",
) -> Simulation:
    """Return how one step of a program would run on a topology's devices.

    Args:
        program (Graph | Partitioned | Pipeline): The graph of one rank with its collectives, as
            `partition` makes it, or a pipeline of such graphs; the meshes of its collectives have
            the topology's sizes along the axes that they name.
        topology (Topology): The devices.
        aliases (Mapping[int, int] | None): Which outputs of a graph, by number, are written over
            which of its inputs, as parameters are. Default: None.
        overlap (bool): Whether messages go while others are computed. Default: True.
        scaled (bool): Whether the meshes of collectives may have other sizes: then each rank's part
            of the work is as in the graph, and the work grows with the devices (weak scaling).
            Default: False.
        name (str): A name for the table. Default: "".

    Returns:
        Simulation: When each part runs, and what memory it takes.

    Raises:
        ShapeError: For meshes of other sizes.
        ValueError: For pipelines that do not fit their axis.

    Examples:
        >>> from mycel._src.foundation.dtype import float32
        >>> from mycel._src.compiler.ir.graph import input_node
        >>> from mycel._src.compiler.ir.sharding.mesh import Mesh
        >>> from mycel._src.compiler.ir.types import tensor_type
        >>> from mycel._src.planner.topology import A100
        >>> from mycel._src.compiler.prims.distributed.collectives import all_reduce
        >>> from mycel._src.compiler.prims.matrix_product import matmul
        >>> mesh = Mesh((512, 8), ("data", "model"))
        >>> x = input_node(tensor_type((8192, 8192), float32))
        >>> y = all_reduce(matmul(x, x), mesh=mesh, axes=("model",), op="sum")
        >>> found = simulate(Graph([x], [y]), A100.topology(mesh))
        >>> found.devices, round(found.seconds, 3), round(found.exposed, 3)
        (4096, 0.082, 0.019)
    """
    if isinstance(program, Pipeline):
        if scaled or aliases:
            raise ValueError("simulate: a Pipeline has aliases in its stages, and sizes that are not scaled")
        return _pipelined(program, topology, overlap, name)
    graph = program.graph if isinstance(program, Partitioned) else program
    arguments.instance("simulate", "program", graph, Graph, "a Graph, a partitioned graph or a Pipeline")
    run = run_graph(graph, topology, aliases, overlap, scaled)
    title = name or graph.name
    found = Class(
        "each rank",
        topology.mesh.size,
        run.compute,
        run.communication,
        run.exposed,
        0.0,
        run.peak,
        run.inputs,
        [Bar(e.stream, e.start, e.end, e.name, "compute" if e.stream == COMPUTE else "message") for e in run.events],
        run.alive,
    )
    return Simulation(title, topology, run.seconds, [found])


@dataclass
class _Times:
    """The runs of a stage, and its bytes: what goes on, what is kept of a micro-batch, the peak."""

    forward: Run
    backward: Run
    update: Run | None
    moved: int
    kept: int
    peak: int
    inputs: int


def _times(stage: Stage, topology: Topology, overlap: bool) -> _Times:
    """Return the times and sizes of one micro-batch through a stage, and of its update."""
    tasks, ends = tasks_of(stage.step)
    forward: set[int] = set()
    stack = [place for place, _ in ends[: stage.results] if place >= 0]
    while stack:
        k = stack.pop()
        if k not in forward:
            forward.add(k)
            stack += tasks[k].needs
    backward = [k for k in range(len(tasks)) if k not in forward]
    first, second = run_tasks(tasks, topology, overlap, forward), run_tasks(tasks, topology, overlap, backward)
    whole = Run(first.seconds + second.seconds, [])
    whole.spans = {**first.spans, **{k: (a + first.seconds, b + first.seconds) for k, (a, b) in second.spans.items()}}
    inputs = sum(nbytes_of(n.type) for n in stage.step.inputs[stage.entering :])
    entered = sum(nbytes_of(n.type) for n in stage.step.inputs[: stage.entering])
    # Gradients of parameters are added to those that the update takes.
    summed = ends[stage.results + stage.entering :] if stage.update is not None else []
    add_memory(whole, tasks, ends, inputs + entered, set(summed))
    kept = {p for k in backward for p in tasks[k].uses if p[0] in forward}
    held = entered + sum(tasks[k].results[n] for k, n in kept)
    if stage.recompute:
        second = run_tasks(tasks, topology, overlap)
        held = entered
    update = None if stage.update is None else run_graph(stage.update, topology, stage.aliases, overlap)
    moved = sum(nbytes_of(n.type) for n in stage.step.outputs[: stage.results])
    return _Times(first, second, update, moved, held, whole.peak, inputs)


def _pipelined(program: Pipeline, topology: Topology, overlap: bool, name: str) -> Simulation:
    arguments.one_of("Pipeline", "schedule", program.schedule, SCHEDULES)
    if program.axis not in topology.mesh.names:
        raise ShapeError(
            f"simulate: stages lie along {program.axis!r}, but the mesh has the axes {', '.join(topology.mesh.names)}"
        )
    devices, count = topology.mesh.count((program.axis,)), len(program.stages)
    if not count or count % devices:
        raise ValueError(f"simulate: {count} stages do not divide among {devices} devices along {program.axis!r}")
    known: dict[Stage, _Times] = {}
    for stage in program.stages:
        if stage not in known:
            known[stage] = _times(stage, topology, overlap)
    times = [known[s] for s in program.stages]
    sent = [topology.seconds("send", t.moved, (program.axis,)) for t in times]
    works = schedule(program.schedule, devices, program.microbatches, count // devices)
    play = played(works, [t.forward.seconds for t in times], [t.backward.seconds for t in times], sent)
    classes, seconds = [], 0.0
    for d in range(devices):
        own = times[d::devices]
        ends = play.times[d][-1][1]
        bars = []
        for work, (start, end) in zip(works[d], play.times[d]):
            kind = "backward" if work.backward else "forward"
            bars.append(Bar(f"stage {d}", start, end, str(work.microbatch), kind))
        updates = [t.update for t in own if t.update is not None]
        for update in updates:
            bars.append(Bar(f"stage {d}", ends, ends + update.seconds, "update", "message"))
            ends += update.seconds
        seconds = max(seconds, ends)
        runs = [run for t in own for run in [t.forward, t.backward] * program.microbatches] + updates
        memory = _memory(own, updates, play.kept[d])
        classes.append(
            Class(
                f"stage {d}",
                topology.mesh.size // devices,
                sum(r.compute for r in runs),
                sum(r.communication for r in runs),
                sum(r.exposed for r in runs),
                0.0,
                memory,
                max(sum(t.inputs for t in own), sum(u.inputs for u in updates)),
                bars,
            )
        )
    for c in classes:
        c.bubble = max(0.0, seconds - c.compute - c.exposed)
    return Simulation(name or f"pipeline ({program.schedule})", topology, seconds, classes)


def _memory(own: Sequence[_Times], updates: Sequence[Run], kept: int) -> int:
    """Return the most bytes in use on a device that keeps so many micro-batches of its stages.

    Beside what the micro-batch at hand needs there are the states that only updates use, and what
    is kept of the other micro-batches, shared evenly among the device's stages.
    """
    states = max(0, sum(u.inputs for u in updates) - sum(t.inputs for t in own))
    idle = sum(t.inputs for t in own)
    most = max(t.peak - t.inputs for t in own)
    average = sum(t.kept for t in own) / len(own)
    return max([idle + states + most + round(average * max(0, kept - 1)), *[u.peak for u in updates]])


def _shown(seconds: float) -> str:
    return f"{seconds:.4g} s" if seconds >= 1 else f"{seconds * 1e3:.4g} ms"
