"""Graphs for tests of the planner: random ones of a few operations, and a training step."""

import numpy as np

from mycel.base.dtype import float32
from mycel.ir.graph import Graph, input_node
from mycel.ir.types import tensor_type
from mycel.planner.topology import Device, Link, Topology
from mycel.prims import elementwise as E
from mycel.prims import reduce as R
from mycel.prims import shape as S
from mycel.prims.linalg import matmul
from mycel.transforms.grad import vjp

DEVICE = Device("toy", {"float32": 1e11}, bandwidth=1e10, memory=2**34)


def toy(mesh, latency=1e-6, bandwidth=1e9):
    """A topology whose links grow slower from the last axis to the first."""
    links = {a: Link(latency, bandwidth * 4**k) for k, a in enumerate(mesh.names)}
    return Topology(DEVICE, mesh, links)


def node(shape, name="x"):
    return input_node(tensor_type(shape, float32), name)


def random_graph(seed: int, operators: int) -> Graph:
    """Return a graph of matrices of a few sizes, with products, sums, transposes and reductions."""
    rng = np.random.default_rng(seed)
    sizes = [int(s) for s in rng.choice([2, 3, 4, 6, 8, 12, 16, 24], 2)]
    inputs = [node((int(rng.choice(sizes)), int(rng.choice(sizes))), f"x{k}") for k in range(2)]
    values = list(inputs)
    while len(Graph(inputs, values).nodes) < operators:
        a = values[int(rng.integers(len(values)))]
        b = values[int(rng.integers(len(values)))]
        kind = int(rng.integers(6))
        if kind == 0 and a.shape[1] == b.shape[0]:
            made = matmul(a, b)
        elif kind == 1 and a.shape == b.shape:
            made = E.add(a, b)
        elif kind == 2:
            made = E.exp(a)
        elif kind == 3:
            made = S.transpose(a, permutation=(1, 0))
        elif kind == 4:
            made = R.reduce_sum(a, axes=(int(rng.integers(2)),), keepdims=True)
        else:
            made = E.mul(a, a)
        values.append(made)
    used = {i for v in values for i in v.inputs}
    return Graph(inputs, [v for v in values if v not in used and v.prim is not None])


def training_step(batch: int, width: int, layers: int = 2):
    """Return a step of a network of dense layers with momentum, and what its outputs replace."""
    x, y = node((batch, width), "x"), node((batch, width), "y")
    weights = [node((width, width), f"w{k}") for k in range(layers)]
    states = [node((width, width), f"m{k}") for k in range(layers)]
    h = x
    for w in weights:
        h = E.tanh(matmul(h, w))
    error = E.sub(h, y)
    loss = R.reduce_sum(E.mul(error, error), axes=(0, 1), keepdims=False)
    gradients = vjp([loss], [E.exp(E.mul(loss, 0.0))], weights)
    moments = [E.add(E.mul(m, 0.9), g) for m, g in zip(states, gradients)]
    updated = [E.sub(w, E.mul(m, 0.1)) for w, m in zip(weights, moments)]
    graph = Graph([x, y, *weights, *states], [loss, *updated, *moments])
    return graph, {1 + k: 2 + k for k in range(2 * layers)}
