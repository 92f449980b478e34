"""Parallel modes: ordinary programs are divided by settings and operators' strategies.

In the modes "semi_auto_parallel" and "auto_parallel" a call of a compiled function is the common
work of all ranks. Arguments are divided as the setting `dataset_strategy` says: with
"data_parallel" each rank gives its part of every tensor that has axes, with "full_batch" all of it.
Marked operators are divided as their strategies say, parameters as their first operator has them,
and the rest follows by least communication. With `enable_parallel_optimizer` parameters and states
that are whole are divided along their first axis.

With `pipeline_stages` the ranks are that many groups, among which operators are divided by the
stages of their Cells, or where these have none by what operators cost; `nn.PipelineCell` makes the
micro-batches.

A process that is alone runs the function as it is, whatever the number of devices set.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.distributed.sharding_constraint import constrain
from mycel._src.compiler.transforms.expansion import without_calls
from mycel._src.compiler.transforms.operator_regions import without_marks
from mycel._src.compiler.transforms.partition import ALONE, WHOLE, Fusing, Sharding, opened, sharding
from mycel._src.compiler.transport.current_transport import transport
from mycel._src.compiler.transport.rank_environment import world
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.settings.ignored_settings import without_effect
from mycel._src.foundation.settings.parallel_settings import AUTO, ParallelSettings, current
from mycel._src.planner.planning import plan
from mycel._src.planner.topology import HOST, Topology, load
from mycel._src.staging.compiled.function_version import Version
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.compiled.parallel_dispatch import RankProgram, dividing
from mycel._src.staging.distributed.distributed_function import Distributed
from mycel._src.staging.distributed.layout_specs import Counting, Decided, Given, Layouts, Spec, grown, one_part
from mycel._src.staging.distributed.pipeline_parallelism import Pipeline
from mycel._src.staging.distributed.rank_agreement import are_together, found_by_one, together
from mycel._src.staging.distributed.strategy_files import chosen, load_strategies, save_strategies
from mycel._src.staging.distributed.strategy_layouts import mesh_of, plan_of
from mycel._src.staging.distributed.version_partition import VersionParts
from mycel._src.tensors.core.parameter import Parameter

__all__ = ["WITH_EFFECT", "OfSettings", "Saving", "begin", "call", "device_count", "saving"]

KILOBYTE = 1024
# The settings that have an effect where there are several devices.
WITH_EFFECT = (
    "gradients_mean",
    "parameter_broadcast",
    "device_num",
    "global_rank",
    "dataset_strategy",
    "full_batch",
    "search_mode",
    "auto_parallel_search_mode",
    "sharding_propagation",
    "enable_parallel_optimizer",
    "parallel_optimizer_config",
    "comm_fusion",
    "all_reduce_fusion_config",
    "gradient_fp32_sync",
    "force_fp32_communication",
    "pipeline_stages",
    "pipeline_segments",
    "pipeline_config",
    "strategy_ckpt_save_file",
    "strategy_ckpt_config",
    "operator_strategy_load",
    "operator_strategy_save",
)


class Saving:
    """A hook, set by the package of checkpoints, that writes strategy files.

    `write` takes settings, parameters by name with their layouts, and the mesh.
    """

    write: Callable[[ParallelSettings, Mapping[str, tuple[Parameter, Sharding]], Mesh], None] | None = None


saving = Saving()


@dataclass(frozen=True)
class OfSettings(Layouts):
    """Layouts that follow from the settings of parallel training."""

    settings: ParallelSettings = ParallelSettings()

    def of_input(self, number: int, type: TensorType) -> Sharding:
        """Return the layout of a tensor in the arguments."""
        spec = _spec_of(self.settings, self.mesh, number, type.rank)
        return WHOLE if spec is None else sharding(self.mesh, type.shape, spec)  # type: ignore[arg-type]

    def of_captured(self, tensor: Any, type: TensorType) -> Sharding | None:
        """Return the layout of a tensor from outside: parameters are laid out by their users."""
        if not isinstance(tensor, Parameter):
            return WHOLE
        if self.settings.enable_parallel_optimizer and tensor.parallel_optimizer and type.rank:
            least = self.settings.parallel_optimizer_config.get("parallel_optimizer_threshold", 64)
            if type.nbytes >= least * KILOBYTE and not int(type.shape[0]) % self.mesh.size:
                return sharding(self.mesh, type.shape, (self.mesh.names,))  # type: ignore[arg-type]
        return None

    def whole_shape(self, number: int, shape: Sequence[Any], given: Counting = one_part) -> tuple[Any, ...]:
        """Return the shape of the whole tensor of which the ranks give parts of `shape`, of those
        along some mesh axes as many as `given` says.
        """
        spec = _spec_of(self.settings, self.mesh, number, len(shape)) if self.parts else None
        return grown(self.mesh, shape, spec or (), given)

    def divided(self, parameters: Mapping[str, tuple[Parameter, Sharding]]) -> None:
        """Write the strategy file that the settings name, where the program changes parameters."""
        asked = self.settings.strategy_ckpt_config["save_file"] or self.settings.strategy_ckpt_save_file
        if asked and saving.write is not None:
            saving.write(self.settings, parameters, self.mesh)

    def made(self, version: Version, parts: VersionParts) -> None:
        """Write the file of operators' strategies that the settings name."""
        if self.settings.operator_strategy_save and not transport().rank:
            save_strategies(self.settings.operator_strategy_save, chosen(version, parts))

    def decided(self, graph: Graph, inputs: Given, outputs: Given, tied: Mapping[int, int]) -> Decided:
        """Return the graph, the layouts of its inputs and the divisions of nodes.

        In the automatic mode they are searched, where no operator has a strategy of the program's,
        by one rank for all. In a pipeline it is the divisions inside of the stages, of which each
        holds its share. `inputs`, `outputs` and `tied` are as for `Layouts.decided`.
        """
        graph = without_calls(graph)
        path = self.settings.operator_strategy_load
        marked = plan_of(graph, self.mesh, load_strategies(path) if path else {})
        if self.settings.parallel_mode != AUTO or marked:
            return graph, inputs, marked
        mode = "sharding_propagation" if self.settings.sharding_propagation else self.settings.search_mode
        graph, topology, stages = opened(graph), topology_of(self.mesh), self.settings.pipeline_stages
        plain, image = without_marks(graph)
        limit = float(topology.device.memory) * stages
        share = found_by_one if are_together() else None
        made = plan(plain, topology, inputs, outputs, tied, limit, mode, share)
        if stages == 1:
            return plain, made.inputs, made.divisions
        # Stages are told apart by the marks, which go with what they mark.
        plain_of = {
            n: made.divisions[image[n]] for n in graph.nodes if n.prim is not constrain and image[n] in made.divisions
        }
        return graph, made.inputs, plain_of


def topology_of(mesh: Mesh) -> Topology:
    """Return the devices and links that plans are made for.

    The environment variable MYCEL_TOPOLOGY names a file of them; without it ranks are taken for
    processes of one machine. All ranks have to find the same.
    """
    path = os.environ.get("MYCEL_TOPOLOGY")
    if not path:
        return HOST.topology(mesh)
    found = load(path)
    if found.mesh.sizes != mesh.sizes:
        raise ShapeError(f"MYCEL_TOPOLOGY: {path!r} is for a mesh of {found.mesh.sizes}, not of {mesh.sizes}")
    return replace(found, mesh=mesh, links={a: found.links[b] for a, b in zip(mesh.names, found.mesh.names)})


def _spec_of(settings: ParallelSettings, mesh: Mesh, number: int, rank: int) -> Spec | None:
    asked = settings.dataset_strategy
    if asked == "full_batch" or not rank:
        return None
    if asked == "data_parallel":
        return (mesh.names,)
    if number >= len(asked):
        raise ValueError(
            f"dataset_strategy: it has layouts of {len(asked)} tensors, and there is a tensor number {number}; give "
            "one for each"
        )
    taken: list[Any] = []
    left = list(mesh.names)
    for cut in asked[number]:
        names = []
        for name in list(left):
            size = mesh.count((name,))
            if cut % size == 0:
                names.append(name)
                left.remove(name)
                cut //= size
        if cut != 1:
            raise ValueError(f"dataset_strategy: {asked[number]} does not fit {mesh.size} devices")
        taken.append(tuple(names) or None)
    return tuple(taken)


def call(jit: Jit, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a compiled function as the settings in force divide it.

    Raises ValueError where the number of devices set is not that of the ranks, RuntimeError where
    this process is one of several that have not met.
    """
    settings = current()
    here = transport().size
    if here == 1 and world().size > 1:
        raise RuntimeError(
            f"this process is one of {world().size}, which have not met; call mycel.communication.init() before "
            "compiled functions are called in a parallel mode"
        )
    devices = engine().device_count()
    if devices == settings.dividing or (here == 1 and devices >= settings.device_num):
        here = settings.device_num
    if here == 1:
        what = f"the parallel mode of {settings.dividing} devices"
        without_effect(what, "this process is alone; `mycel launch` starts ranks")
        return jit.run_here(args, kwargs)
    if settings.dividing != here:
        found = f"{here} ranks were started"
        found += f", which have {devices} devices together" if devices > here else ""
        raise ValueError(
            f"device_num is {settings.device_num}, and {found}; set device_num={max(here, devices)}, or start "
            f"{settings.device_num} ranks"
        )
    with together():
        return distributed(jit, settings)(*args, **kwargs)


def distributed(jit: Jit, settings: ParallelSettings) -> Distributed:
    """Return the divided form of a compiled function under settings."""
    known: tuple[ParallelSettings, Distributed] | None = jit.divided
    if known is None or (known[0] is not settings and known[0] != settings):
        parts = settings.dataset_strategy != "full_batch"
        pipeline = pipeline_of(settings)
        mesh = mesh_of((settings.dividing or 1) // (1 if pipeline is None else pipeline.stages))
        again = settings.parallel_optimizer_config.get("optimizer_level") == "level3"
        wide = "all" if settings.force_fp32_communication else "gradients" if settings.gradient_fp32_sync else ""
        layouts = OfSettings(mesh, (), None, parts, fusing_of(settings), again, wide, settings)
        known = jit.divided = (settings, Distributed(jit.__wrapped__, layouts, pipeline))
    return known[1]


def fusing_of(settings: ParallelSettings) -> Fusing:
    """Return how collectives are joined: by `comm_fusion`, whose sizes are in MiB, or where it
    leaves all-reduces to us, by the indices of `all_reduce_fusion_config`.
    """
    asked = settings.comm_fusion
    if not asked.get("openstate", True):
        return ALONE
    kinds = {"sums": "allreduce", "scatters": "reducescatter", "gathers": "allgather"}
    sizes = {ours: asked[name]["config"] << 20 for ours, name in kinds.items() if asked[name]["mode"] == "size"}
    by_index = asked["allreduce"]["mode"] == "index"
    cuts = asked["allreduce"]["config"] if by_index else () if "sums" in sizes else settings.all_reduce_fusion_config
    return Fusing(**sizes, cuts=tuple(cuts))


def pipeline_of(settings: ParallelSettings) -> Pipeline | None:
    """Return the pipeline that settings ask for, None for one stage.

    Raises ValueError where the devices do not divide into the stages, and for a schedule that is
    not known.
    """
    stages = settings.pipeline_stages
    if stages == 1:
        return None
    if settings.device_num % stages:
        raise ValueError(f"pipeline_stages: {settings.device_num} devices do not divide into {stages} stages")
    if settings.strategy_ckpt_config["save_file"] or settings.strategy_ckpt_save_file:
        without_effect("strategy_ckpt_save_file", "strategies of pipelines are not written")
    kind = settings.pipeline_config["pipeline_scheduler"]
    if kind not in ("1f1b", "gpipe"):
        raise ValueError(f"pipeline_scheduler: {kind!r} has no schedule here; '1f1b' and 'gpipe' have")
    interleaved = settings.pipeline_config["pipeline_interleave"] and kind == "1f1b"
    if settings.pipeline_segments > 1 and not interleaved:
        raise ValueError(
            f"pipeline_segments: {settings.pipeline_segments} segments need pipeline_interleave with the scheduler "
            "'1f1b'"
        )
    return Pipeline(stages, None, "interleaved" if interleaved else kind, chunks=settings.pipeline_segments)


def planned(jit: Jit, *args: Any, **kwargs: Any) -> RankProgram:
    """Return what a rank would run in a call."""
    return distributed(jit, current()).planned(*args, **kwargs)


def device_count() -> int:
    """Return how many devices work together: the ranks that there are or that the environment
    names, or the devices of this process.
    """
    if world().size > transport().size:
        return world().size  # they have not met, and what devices they have is known then
    return max(transport().size, engine().device_count())


def begin() -> None:
    """Have calls of compiled functions divided from now on, where settings say so."""
    dividing.call, dividing.planned = call, planned
