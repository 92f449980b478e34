"""Simulation of programs on more devices than there are: step time, memory, bubbles, a picture.

`staged` takes the graph of a function from types alone, `partition` divides it, `simulate` runs the
result in time on a `Topology`, which a `Cluster` gives for any mesh and `measured_topology` for the
processes of this machine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh as Mesh
from mycel._src.compiler.transforms.partition import WHOLE as WHOLE
from mycel._src.compiler.transforms.partition import partition as partition
from mycel._src.compiler.transforms.partition import sharding as sharding
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.engines.select import engine
from mycel._src.foundation.errors import CompileError
from mycel._src.planner.device_benchmark import measured_topology as measured_topology
from mycel._src.planner.simulation import Pipeline as Pipeline
from mycel._src.planner.simulation import Simulation as Simulation
from mycel._src.planner.simulation import Stage as Stage
from mycel._src.planner.simulation import simulate as simulate
from mycel._src.planner.topology import A100 as A100
from mycel._src.planner.topology import H100 as H100
from mycel._src.planner.topology import Cluster as Cluster
from mycel._src.planner.topology import Device as Device
from mycel._src.planner.topology import Level as Level
from mycel._src.planner.topology import Link as Link
from mycel._src.planner.topology import Topology as Topology
from mycel._src.planner.topology import load as load
from mycel._src.planner.topology import save as save
from mycel._src.planner.training_graphs import adam as adam
from mycel._src.planner.training_graphs import with_gradients as with_gradients
from mycel._src.staging.compiled.explain import compiled_of
from mycel._src.tensors.core.parameter import types_only

__all__ = [
    "A100",
    "Cluster",
    "Device",
    "H100",
    "Level",
    "Link",
    "Mesh",
    "Pipeline",
    "Simulation",
    "Stage",
    "Staged",
    "Topology",
    "WHOLE",
    "adam",
    "load",
    "measured_topology",
    "partition",
    "save",
    "sharding",
    "simulate",
    "staged",
    "with_gradients",
]


@dataclass(frozen=True)
class Staged:
    """The graph of a function, as an engine would run it, with the names of its inputs.

    `names` has that of each input: of a parameter its own, of an argument "". `aliases` says which
    outputs, by number, are written over which inputs, as parameters are.
    """

    graph: Graph
    names: tuple[str, ...]
    aliases: dict[int, int] = field(default_factory=dict)


def staged(function: Any, *args: Any) -> Staged:
    """Return the graph of a function or Cell for arguments like these, from their types alone.

    Parameters made within ``mycel.nn.no_init_parameters()``, and arguments declared as
    ``Tensor(shape=..., dtype=..., init=...)``, take no memory. Raises CompileError for a function
    that is not one graph of known sizes.

    >>> import mycel as ms
    >>> from mycel.common.initializer import Zero
    >>> with ms.nn.no_init_parameters():
    ...     net = ms.nn.Dense(100_000, 100_000)
    >>> found = staged(net, ms.Tensor(shape=(8, 100_000), dtype=ms.float32, init=Zero()))
    >>> found.names, net.weight.has_init
    (('', 'weight', 'bias'), True)
    """
    with types_only():
        compiled, bound = compiled_of(function)
        version, plan = compiled.look(bound + args, {})
        if version is None or version.is_open:
            reason = "data decide sizes in it" if plan is None else str(plan.refusal)
            raise CompileError(f"staged: {compiled.__qualname__} is not one graph of known sizes: {reason}")
        graph = specialize(version.graph, version.sizes) if version.sizes else version.graph
        captured = len(graph.inputs) - len(version.tensors)
        names = tuple(str(n.params.get("name", "")) if k >= captured else "" for k, n in enumerate(graph.inputs))
        return Staged(engine().prepared(graph), names, dict(version.aliases or {}))
