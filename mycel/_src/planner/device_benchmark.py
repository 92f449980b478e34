"""Microbenchmarks: this machine's throughput and bandwidth, measured with the engine in force.

Each figure is the best of several runs of one small graph, so that what else runs at the time
matters little; all of them together take a second or two. Products and convolutions are measured
separately, and memory within the caches and beyond them. Ranks on one machine exchange arrays
through its memory: what is sent is written once and read once more, so that a link has half the
rate of a copy, and its latency is that of a message between processes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.sharding.mesh import Mesh
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines import buffers
from mycel._src.engines.select import engine
from mycel._src.foundation.dtype import float32
from mycel._src.foundation.system.system_memory import machine_memory
from mycel._src.planner.kernel_cost import ELEMENTWISE, tasks_of
from mycel._src.planner.topology import Device, Link, Topology

__all__ = ["measured_device", "measured_topology"]

_RUNS = 7
# Seconds from one process to another: what small messages take by MPI on one machine.
_LATENCY = 4e-6
_CACHE = 8 << 20


def measured_device() -> Device:
    """Measure this machine with the engine in force; return it as one device.

    >>> device = measured_device()
    >>> device.flops["float32"] > 0, device.bandwidth > 0, device.memory > 0
    (True, True, True)
    """
    products = [_graph(matmul, (512, 512), (512, 512)), _graph(matmul, (1024, 256), (256, 1024))]
    functions = _graph(lambda a, b: E.exp(E.tanh(E.exp(E.tanh(E.add(a, b))))), (1 << 17,), (1 << 17,))
    small, large, nothing = (_graph(lambda a, b: E.add(a, b), (n,), (n,)) for n in (1 << 18, 1 << 23, 8))
    rates = {"float32": _rate(products), f"{ELEMENTWISE} float32": _rate([functions])}
    rates |= {f"{name} float32": _rate(graphs) for name, graphs in _convolutions().items()}
    return Device(
        f"this machine ({engine().name} engine, {engine().threads} threads)",
        rates,
        bandwidth=_moved(large) / _seconds(large),
        memory=machine_memory() or 1 << 40,
        overhead=_seconds(nothing),
        cache=_CACHE,
        cached=_moved(small) / _seconds(small),
    )


def _convolutions() -> dict[str, list[Graph]]:
    """Return convolutions and their derivatives, with kernels of 1 and of 3 in both axes."""
    found: dict[str, list[Graph]] = {"conv": [], "conv_grad_input": [], "conv_grad_weight": []}
    for channels, out, size, kernel in ((64, 64, 56, 3), (256, 64, 56, 1), (256, 1024, 14, 1)):
        pad = kernel // 2
        options = {"strides": (1, 1), "padding": ((pad, pad), (pad, pad)), "dilation": (1, 1), "groups": 1}
        x, y, w = (4, channels, size, size), (4, out, size, size), (out, channels, kernel, kernel)
        found["conv"].append(_graph(partial(conv, **options), x, w))
        found["conv_grad_input"].append(_graph(partial(conv_grad_input, **options, input_shape=x), y, w))
        found["conv_grad_weight"].append(_graph(partial(conv_grad_weight, **options, weight_shape=w), x, y))
    return found


def measured_topology(mesh: Mesh) -> Topology:
    """Return this machine as the devices of a mesh, each a process of its own on a share of it.

    The rates of the machine are divided among the ranks, as all of them work at the same time.
    """
    whole = measured_device()
    device = Device(
        whole.name,
        {k: r / mesh.size for k, r in whole.flops.items()},
        bandwidth=whole.bandwidth / mesh.size,
        memory=whole.memory // mesh.size,
        overhead=whole.overhead,
        cache=whole.cache // mesh.size,
        cached=whole.cached / mesh.size,
    )
    links = {a: Link(_LATENCY, device.bandwidth / 2, "memory") for a in mesh.names}
    return Topology(device, mesh, links, "this machine", "measured")


def _graph(rule: Callable[..., Node], *shapes: tuple[int, ...]) -> Graph:
    inputs = [input_node(tensor_type(s, float32)) for s in shapes]
    return Graph(inputs, [rule(*inputs)])


def _rate(graphs: Sequence[Graph]) -> float:
    """Return the operations a second of graphs that are run one after the other."""
    return sum(t.flops for g in graphs for t in tasks_of(g)[0]) / sum(_seconds(g) for g in graphs)


def _moved(graph: Graph) -> int:
    return sum(t.read + t.written for t in tasks_of(graph)[0])


def _seconds(graph: Graph) -> float:
    """Return the least seconds of a run of a graph."""
    random = np.random.default_rng(0)
    entry = engine().compile(graph)
    given = [buffers.from_array(random.standard_normal(n.type.shape, np.float32)) for n in graph.inputs]
    entry(*given)
    found = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        entry(*given)
        found.append(time.perf_counter() - start)
    return min(found)
