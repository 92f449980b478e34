"""What plans say that ranks send, beside the messages that the partitioner makes of them.

    python -m tests.planner.messages [--tasks lenet,resnet,...]

For each network of `tests.parallel.networks` and each plan: the bytes by the model, those of the
partitioned graph, and their ratio; then the bytes that the partitioner finds by itself from the
same layouts of inputs. `free` is the plan that the search finds, the others have names.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

import mycel as ms
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transforms.partition import opened, partition
from mycel._src.planner.named_plans import starts_of
from mycel._src.planner.optimisation_problem import fixed
from mycel._src.planner.plan_search import Answer, search
from mycel._src.planner.planning import Plan
from mycel._src.planner.sharding_problem import pose
from mycel._src.planner.topology import Device, Link, Topology
from tests.parallel.networks import TASKS

# Networks as small as these are divided only where computing is slow and messages are not.
DEVICE = Device("slow", {"float32": 1e8}, bandwidth=1e8, memory=2**34)
ABOVE, BELOW = 1.25, 0.95  # of the partitioned bytes: what the model may say


def step_of(name: str) -> tuple[Graph, dict[int, int]]:
    """Return the graph of a training step, and which outputs take the place of inputs."""
    task = TASKS[name](1)
    version, _ = ms.jit(task.step).look(tuple(map(ms.Tensor, task.batches[0])), {})
    assert version is not None
    count = len(version.graph.inputs) - len(version.tensors)
    tied = {place: count + i for i, place in version.writes}
    return opened(version.graph), tied


def slow(mesh: Mesh) -> Topology:
    """Return slow devices with fast links."""
    return Topology(DEVICE, mesh, {a: Link(1e-7, 1e9) for a in mesh.names})


def plans(graph: Graph, tied: Mapping[int, int], topology: Topology) -> dict[str, Plan]:
    """Return the found plan and the named ones, completed by search."""
    posed = pose(graph, topology, aliases=tied)
    starts = starts_of(posed, tied)
    made = {"free": Plan(posed, search(posed.problem, starts=list(starts.values()), ties=posed.ties), tied)}
    for name, start in starts.items():
        allowed: list[Any] = [[start[k]] if k in start else None for k in range(len(posed.nodes))]
        answer = search(fixed(posed.problem, allowed), ties=posed.ties)
        choices = [c if a is None else a[c] for a, c in zip(allowed, answer.choices)]
        made[name] = Plan(posed, Answer(choices, answer.seconds, answer.bytes, False), tied)
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default=",".join(TASKS))
    wrong = 0
    for name in parser.parse_args().tasks.split(","):
        graph, tied = step_of(name)
        for mesh in (Mesh((4,), ("data",)), Mesh((2, 2), ("data", "model"))):
            for kind, found in plans(graph, tied, slow(mesh)).items():
                made = partition(graph, mesh, found.inputs, tied=tied, plan=found.divisions)
                alone = partition(graph, mesh, found.inputs, tied=tied)
                ratio = found.sent / made.sent if made.sent else 1.0 if not found.sent else float("inf")
                differs = not BELOW <= ratio <= ABOVE
                wrong += differs
                print(
                    f"{name} {mesh.sizes} {kind}: {found.sent:.0f} predicted, {made.sent:.0f} partitioned, ratio "
                    f"{ratio:.2f}; {alone.sent:.0f} by layouts alone{' DIFFERS' if differs else ''}",
                    flush=True,
                )
    return wrong


if __name__ == "__main__":
    sys.exit(main())
