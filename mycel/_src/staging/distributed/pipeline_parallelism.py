"""Pipeline-parallel functions: stages on groups of ranks, micro-batches one after another.

A call is staged with the batch cut into micro-batches, for the settings under which operators have
marks. The graph is divided on the mesh of one stage, as all have the same form, and then cut into
one graph for each stage's ranks (`transforms.pipeline_parallel`), of which a rank runs its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.prims.distributed.sharding_constraint import Operator, constrain
from mycel._src.compiler.transforms.partition import ALONE
from mycel._src.compiler.transforms.pipeline_parallel import Assignment, Kind, Stage, Unit, assign
from mycel._src.compiler.transforms.pipeline_parallel.stage_graphs import Pipe
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.engines.base import Spread, Stages
from mycel._src.engines.error_messages import out_of_memory
from mycel._src.engines.select import engine
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import CompileError
from mycel._src.foundation.settings.parallel_settings import SEMI_AUTO, ParallelSettings
from mycel._src.planner.pipeline_stages import schedule
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.parallel_dispatch import RankProgram
from mycel._src.staging.distributed.layout_specs import Layouts
from mycel._src.staging.distributed.pipeline_balancing import balanced
from mycel._src.staging.distributed.rank_executors import Entry, Executor, OfDevices, OfRanks, value_of
from mycel._src.staging.distributed.sharded_tensors import GivenParts, Held, held, hold
from mycel._src.staging.distributed.version_partition import divide
from mycel._src.staging.frontend.parallelism.micro_batches import COMBINED
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["Pipeline", "Piped", "settings_for"]

SCHEDULES = ("gpipe", "1f1b", "interleaved")


@dataclass(frozen=True)
class Pipeline:
    """How a training step becomes a pipeline.

    `stages` groups of ranks work on `micro_batches` parts of the batch (None: those that
    `nn.PipelineCell` makes), in the order that `schedule` names: "gpipe" (all forwards first),
    "1f1b" (a forward and a backward in turn), or "interleaved", in which each group has `chunks`
    stages. `cuts` has the paths of the Cells with which the stages after the first begin, as
    ``"layers.2"``; without it stages are those of `Cell.pipeline_stage`, and where there are none
    the graph is cut by what its operators cost.
    The loss of the batch is the mean of those of its parts, or with ``combined="sum"`` their sum.
    Raises ValueError for numbers that do not fit each other.

    >>> Pipeline(2, 4).schedule
    '1f1b'
    """

    stages: int
    micro_batches: int | None
    schedule: str = "1f1b"
    cuts: Sequence[str] | None = None
    chunks: int = 1
    combined: str = "mean"

    def __post_init__(self) -> None:
        for name in ("stages", "chunks", *(() if self.micro_batches is None else ("micro_batches",))):
            arguments.integer("Pipeline", name, getattr(self, name), 1)
        arguments.one_of("Pipeline", "schedule", self.schedule, SCHEDULES)
        arguments.one_of("Pipeline", "combined", self.combined, COMBINED)
        if self.micro_batches is not None:
            self.orders(self.micro_batches)
        if self.cuts is not None and len(self.cuts) != self.count - 1:
            raise ValueError(f"Pipeline: {self.count} stages need {self.count - 1} cuts, not {len(self.cuts)}")

    @property
    def count(self) -> int:
        """The number of stages in all, `chunks` for each group of ranks."""
        return self.stages * self.chunks

    def orders(self, count: int) -> list[list[Unit]]:
        """Return what each group of ranks does with `count` micro-batches, in its order; backwards
        go in the order of micro-batches.
        """
        found = []
        for works in schedule(self.schedule, self.stages, count, self.chunks):
            if self.schedule == "gpipe":
                works = sorted(works, key=lambda w: (w.backward, w.microbatch))
            found.append([Unit(Kind.BACKWARD if w.backward else Kind.FORWARD, w.chunk, w.microbatch) for w in works])
        return found


def settings_for(pipeline: Pipeline, mesh: Mesh) -> ParallelSettings:
    """Return the settings under which the operators of a pipeline's step have marks."""
    count = max(2, pipeline.stages * mesh.size)
    return ParallelSettings(parallel_mode=SEMI_AUTO, device_num=count, pipeline_stages=pipeline.stages)


def meshes_of(mesh: Mesh, stages: int) -> list[Mesh]:
    """Return the mesh of each stage: that of the first one, on the next devices."""
    return [replace(mesh, devices=tuple([s * mesh.size + d for d in mesh.devices])) for s in range(stages)]


class Piped:
    """One version of a function as a pipeline.

    A rank runs the graph of its stage; a process whose devices are the ranks runs those of all.
    """

    def __init__(
        self,
        version: Version,
        layouts: Layouts,
        count: int,
        pipeline: Pipeline,
        executor: Executor,
        sizes: Mapping[str, int],
    ) -> None:
        """Divide and cut the graph of `version`, of which `count` inputs are arguments, by the
        `layouts` inside of a stage and the `pipeline_parallel`, for ranks of the kind of
        `executor`; `sizes` are those of its symbols.
        """
        self.version, self.layouts, self.pipeline, self.executor = version, layouts, pipeline, executor
        mesh = layouts.mesh
        self.of = divide(version, layouts, count, layouts.parts and executor.is_apart, ALONE, sizes)
        self.made, self.writes, tied = self.of.made, self.of.writes, self.of.tied
        self.meshes = meshes_of(mesh, pipeline.stages)
        local = self.made.graph
        batch = local.inputs[:count]
        written = {i for i, _ in self.writes}
        self._read = {k for k in range(count, len(self.made.inputs)) if k not in written}
        parts = max([n.params["mark"].operator.micro for n in local.nodes if n.prim is constrain], default=-1) + 1
        if not parts:  # nothing is differentiated, and the batch is one part
            local = _as_first_part(local)
            batch = local.inputs[:count]
        asked = stages_asked(local, batch, pipeline)
        self.assigned: Assignment = assign(local, batch, asked, pipeline.count)
        empty = set(range(pipeline.count)) - {u.stage for u in self.assigned.units.values()}
        if empty:
            raise CompileError(
                f"{version.graph.name}: nothing is computed in stage {min(empty)} of {pipeline.count}; set "
                "pipeline_stage of its Cells, or name them in `cuts`"
            )
        self.pipe = Pipe(local, self.assigned, pipeline.orders(max(parts, 1)), mesh, self.meshes, tied)
        self._programs: dict[int, tuple[Stage, Entry]] = {}
        self._together: tuple[list[Stage], Stages] | None = None

    @property
    def here(self) -> int:
        """The number of this rank's device: of the group of ranks that it is in."""
        if len(self.meshes) == 1:
            return 0
        rank = transport().rank
        return next(k for k, m in enumerate(self.meshes) if rank in m.devices)

    def of_rank(self) -> RankProgram:
        """Return what this rank runs of its stage, or of the first one where this is no rank."""
        rank = transport().rank
        stage = self.stage(next((k for k, m in enumerate(self.meshes) if rank in m.devices), 0))
        return RankProgram(self.version, stage.graph, stage.inputs, self._aliases(stage))

    def stage(self, device: int) -> Stage:
        """Return the graph of one group of ranks."""
        return self.pipe.stage(device, self.layouts.fusing)

    def run(self, tensors: list[Tensor], call: Any) -> Any:
        """Run this rank's stage on its parts of a call's `tensors`, or on those that are whole; or
        the stages of all devices.
        """
        version = self.version
        given = [*tensors, *version.tensors]
        own = len(tensors) if self.layouts.parts and self.executor.is_apart else 0
        try:
            found = self._on_rank(given, own) if self.executor.is_apart else self._on_devices(given)
        except MemoryError:
            raise out_of_memory(self.of_rank().graph) from None
        tied = {place for _, place in self.writes}
        out: list[Any] = [None] * len(self.of.types)
        for k, type in enumerate(self.of.types):
            if k not in tied:
                out[k] = make(type, self.executor.own(found[k]))
        for i, place in self.writes:
            out[place] = given[i]
        version.kept = None
        parts = GivenParts(tensors, self.made.inputs, self._of(self.here).joined) if own else tensors
        return version._finish(out, parts, call)

    def _homes(self, place: int) -> list[int]:
        """Return the devices that have an output of the graph."""
        return sorted(self.pipe.devices_of_output(place))

    def _on_rank(self, given: Sequence[Tensor], own: int) -> dict[int, Any]:
        """Return the outputs of this rank's stage, by their numbers, and keep what it writes.

        Of the first `own` of `given` there are parts here.
        """
        device = self.here
        stage, program = self._program(device)
        mesh = self.meshes[device]
        executor = self._of(device)
        self._settle(given, own)
        buffers = []
        for k in stage.inputs:
            one = given[k]
            buffers.append(executor.given(one, self.made.inputs[k]) if k < own else self._piece(executor, k, one))
        found = dict(zip(stage.outputs, program(*buffers)))
        for i, place in self.writes:
            if len(self.meshes) == 1:
                executor.keep(given[i], found[place], self.made.outputs[place])
                continue
            homes = tuple([self.meshes[d] for d in self._homes(place)])
            hold(given[i], Held(found.get(place), self.made.outputs[place], mesh, homes, tuple(self.meshes)))
        return found

    def _settle(self, given: Sequence[Tensor], own: int) -> None:
        """Make tensors whole that are apart otherwise than here, as those of a program with other
        stages. All ranks do so together, also those that do not use them.
        """
        for k in range(own, len(given)):
            known = held(given[k])
            if known is None:
                continue
            homes = known.homes or (known.mesh,)
            needed = {self.meshes[d] for d in self.pipe.devices_of_input(k)}
            if known.layout != self.made.inputs[k] or not needed.issubset(homes):
                value_of(given[k])

    def _of(self, device: int) -> Executor:
        """Return who runs the stage of one group of ranks; devices of several processes have one
        stage.
        """
        return self.executor if len(self.meshes) == 1 else OfRanks(self.meshes[device])

    def _on_devices(self, given: Sequence[Tensor]) -> dict[int, Any]:
        """Return the outputs of all stages, by their numbers, and keep what they write."""
        stages, programs = self._all()
        pieces = []
        for stage, mesh in zip(stages, self.meshes):
            pieces.append([self._piece(OfDevices(mesh), k, given[k]) for k in stage.inputs])
        found: dict[int, Any] = {}
        copies: dict[int, list[Spread]] = {}
        for stage, results in zip(stages, programs.entry(*pieces)):
            for k, piece in zip(stage.outputs, results):
                found.setdefault(k, piece)
                copies.setdefault(k, []).append(piece)
        for i, place in self.writes:
            homes = tuple([self.meshes[d] for d in self._homes(place)])
            known = Held(
                found[place], self.made.outputs[place], homes[0], homes, tuple(self.meshes), tuple(copies[place])
            )
            hold(given[i], known, lazily=True)
        return found

    def _piece(self, executor: Executor, k: int, tensor: Tensor) -> Any:
        """Return the piece of the value of input `k` on the devices of a stage."""
        layout, mesh, known = self.made.inputs[k], executor.mesh, held(tensor)
        if known is not None and known.layout == layout and mesh in known.homes and known.copies:
            return known.copies[known.homes.index(mesh)]
        return executor.piece(tensor, layout, self if k in self._read else None)

    def _all(self) -> tuple[list[Stage], Stages]:
        if self._together is None:
            stages = [self.stage(k) for k in range(len(self.meshes))]
            programs = [(s.graph, m, self._aliases(s)) for s, m in zip(stages, self.meshes)]
            self._together = (stages, engine().stages(programs))
        return self._together

    def _aliases(self, stage: Stage) -> dict[int, int]:
        """Return which outputs of a stage take the memory of which of its inputs."""
        place = {k: n for n, k in enumerate(stage.inputs)}
        number = {k: n for n, k in enumerate(stage.outputs)}
        return {number[o]: place[i] for o, i in self.version.aliases.items() if o in number and i in place}

    def _program(self, device: int) -> tuple[Stage, Entry]:
        if device not in self._programs:
            stage = self.stage(device)
            self._programs[device] = (stage, self._of(device).entry(stage.graph, self._aliases(stage)))
        return self._programs[device]


def _as_first_part(graph: Graph) -> Graph:
    """Return a graph whose operators work on micro-batch 0."""
    image: dict[Node, Node] = {}
    for node in graph.nodes:
        inputs, params = tuple([image.get(i, i) for i in node.inputs]), node.params
        if node.prim is constrain:
            mark = params["mark"]
            params = {"mark": replace(mark, operator=replace(mark.operator, micro=0))}
        image[node] = Node(node.prim, inputs, params, node.type, node.where)
    return Graph(graph.inputs, [image.get(o, o) for o in graph.outputs], graph.name)


def stages_asked(graph: Graph, batch: Collection[Node], pipeline: Pipeline) -> Callable[[Operator], int | None]:
    """Return the stage that is asked for each operator: by `cuts`, by the user's Cells, or by what
    operators cost.
    """
    marks = [n for n in graph.nodes if n.prim is constrain]
    found: dict[Operator, int] = {}
    if pipeline.cuts is None:
        found = {o: o.stage for o in [n.params["mark"].operator for n in marks] if o.stage >= 0}
        for operator, stage in found.items():
            if stage >= pipeline.count:
                raise ValueError(
                    f"{operator.name} is to be on stage {stage}, and there are {pipeline.count} (pipeline_stages)"
                )
        return (found or balanced(graph, batch, pipeline.count)).get
    met = dict.fromkeys(pipeline.cuts, False)
    for node in marks:
        where = node.where
        path = "" if where is None else f"{where.cell.partition(':')[0]}."
        for k, name in enumerate(pipeline.cuts):
            if f".{name}." in path:
                found[node.params["mark"].operator] = k + 1
                met[name] = True
    missing = [name for name, there in met.items() if not there]
    if missing:
        raise CompileError(f"Pipeline: no Cell {missing[0]!r} computes anything here; name Cells by their paths")
    return found.get
