"""A training step on several ranks behind a slow link: communication beside computation.

    mycel launch -n 2 --plain benchmarks/overlap.py
    mpirun -n 2 python benchmarks/overlap.py
    python benchmarks/overlap.py --threads 2

The link is a sleep in front of each exchange (`transport.delayed_transport`), of which the
bandwidth is chosen so that a step without overlap would send for as long as it computes; so no core
works for it. Rank 0 prints the seconds of a step without the link, those that the link takes, what
the model of streams predicts, and what was measured with and without overlap. All ranks compare the
losses and parameters of both ways, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

import mycel as ms
from mycel import nn, ops
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.transport import thread_ranks
from mycel._src.compiler.transport.current_transport import transport, within
from mycel._src.compiler.transport.delayed_transport import Slowed
from mycel._src.planner.event_simulation import run_graph
from mycel._src.planner.kernel_cost import tasks_of
from mycel._src.planner.topology import Device, Link, Topology
from mycel._src.staging.distributed import Layouts, distribute

__all__ = ["main", "trial"]


def _step(width: int, layers: int, rows: int, way: str) -> tuple[Any, Any, Any]:
    """Return a divided training step, its batch, and its parameters."""
    random = np.random.default_rng(0)
    count = transport().size
    cells = []
    for _ in range(layers):
        weight = (random.normal(size=(width, width)) / width**0.5).astype("f4")
        cells += [nn.Dense(width, width, weight_init=ms.Tensor(weight), bias_init="zeros"), nn.Tanh()]
    net = nn.SequentialCell(*cells)
    update = nn.Momentum(net.trainable_params(), 0.01, 0.9)
    derive = ms.value_and_grad(lambda x: ops.mean(ops.square(net(x))), None, update.parameters)

    def step(x: Any) -> Any:
        loss, gradients = derive(x)
        update(gradients)
        return loss

    divided = {"data": (), "zero1": ("moments.",), "zero3": ("",)}[way]
    states = lambda p: ("data",) if p.shape and p.name.startswith(divided) else None
    layouts = Layouts(Mesh((count,), ("data",)), [("data",)], states)
    x = ms.Tensor(random.normal(size=(rows * count, width)).astype("f4"))
    return distribute(step, layouts), x, net.trainable_params()


def _seconds(step: Any, x: Any, steps: int) -> tuple[float, list[float]]:
    """Return the seconds of a step, the least of several, and their losses."""
    losses = [float(step(x))]
    taken = []
    for _ in range(steps):
        began = time.perf_counter()
        losses.append(float(step(x)))
        taken.append(time.perf_counter() - began)
    return min(taken), losses


def trial(asked: argparse.Namespace) -> dict[str, float]:
    """Return the figures of one way of dividing."""
    inner = transport()
    os.environ["MYCEL_OVERLAP"] = "0"
    step, x, _ = _step(asked.width, asked.layers, asked.rows, asked.way)
    plain, _ = _seconds(step, x, asked.steps)
    graph = step.divided(x).graph
    tasks, _ = tasks_of(graph)
    mesh = step.layouts.mesh
    toy = Device("this machine", {"float32": 1.0}, bandwidth=1e15, memory=1 << 40)
    unit = Topology(toy, mesh, {"data": Link(0, 1.0)})
    sent = sum(s for t in tasks if t.exchange is not None for _, s in t.exchange.legs(unit))
    # All ranks have to sleep alike.
    plain = float(inner.all_reduce(np.array([plain]), "max", mesh.devices)[0])
    link = Link(asked.latency, sent / (asked.ratio * plain))
    topology = Topology(toy, mesh, {"data": link})
    work = run_graph(graph, Topology(toy, mesh, {"data": Link(0, 1e30)}), overlap=False).seconds
    topology = replace(topology, device=replace(toy, flops={"float32": work / plain}))
    wire = sum(s for t in tasks if t.exchange is not None for _, s in t.exchange.legs(topology))
    slow = Slowed(inner, lambda kind, nbytes, count: topology.seconds(kind, nbytes, ("data",)) if count > 1 else 0.0)
    found = {"computing": plain, "sending": wire, "predicted": run_graph(graph, topology).seconds}
    results = []
    with within(slow):
        for name, value in (("one after the other", "0"), ("overlapped", "1")):
            os.environ["MYCEL_OVERLAP"] = value
            step, x, parameters = _step(asked.width, asked.layers, asked.rows, asked.way)
            found[name], losses = _seconds(step, x, asked.steps)
            results.append((losses, [p.asnumpy() for p in parameters]))
    (losses, states), (others, values) = results
    equal = losses == others and all(np.array_equal(a, b) for a, b in zip(states, values))
    found["equal"] = float(equal)
    return found


def main() -> int:
    """Print the figures of data parallel training and of divided states and weights."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ways", default="data,zero1,zero3")
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--rows", type=int, default=512, help="of each rank's part of the batch")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--ratio", type=float, default=1.0, help="of sending to computing")
    parser.add_argument("--latency", type=float, default=2e-4)
    parser.add_argument("--threads", type=int, default=0, help="ranks that are threads of this process")
    asked = parser.parse_args()
    if not asked.threads:
        ms.communication.init()
    wrong = 0
    for way in asked.ways.split(","):
        asked.way = way
        every = thread_ranks.run(asked.threads, lambda rank: trial(asked)) if asked.threads else [trial(asked)]
        wrong += not all(f["equal"] for f in every)
        if asked.threads or transport().rank == 0:
            text = ", ".join(f"{name} {1e3 * s:.1f} ms" for name, s in every[0].items() if name != "equal")
            print(f"{way}: {text}; {'equal' if every[0]['equal'] else 'DIFFERENT'} bits", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
