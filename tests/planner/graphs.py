"""Graphs for tests of the planner: random ones of a few operations, and a training step."""

import numpy as np

from mycel._src.compiler.ir.graph import Graph, input_node, toposort
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import CONSTANT, GET_ITEM
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.indexing.index import take
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.normalization import moments, softmax
from mycel._src.compiler.transforms.grad import vjp
from mycel._src.foundation.dtype import float32, int32
from mycel._src.planner.topology import Device, Link, Topology

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


def summed_graph(seed: int) -> Graph:
    """Return the sum of three products, in views and times numbers, with something else between."""
    pairs = [(node((8, 16), f"x{k}"), node((16, 8), f"w{k}")) for k in range(3)]
    a, b, c = (matmul(x, w) for x, w in pairs)
    b = S.transpose(E.mul(b, 0.5), permutation=(1, 0))
    c = S.reshape(E.neg(S.reshape(c, (64,))), (8, 8))
    inputs = [i for pair in pairs for i in pair]
    if seed % 4 == 1:
        inputs.append(node((8, 8), "y"))
        a = E.add(a, inputs[-1])
    return Graph(inputs, [E.tanh(E.add(E.sub(a, b), c))])


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


OPERATIONS = "matmul add exp transpose sum mul softmax moments concat take conv merge split max sub square".split()


def various_graph(seed: int, operators: int) -> Graph:
    """Return a graph of at most as many operations of many kinds, some with several results.

    Its inputs are matrices, a stack of them, the weights of a convolution, and integers; values are
    used any number of times, and all that nobody uses are outputs.
    """
    rng = np.random.default_rng(seed)
    a, b, c = (int(s) for s in rng.choice([2, 3, 4, 6, 8, 12, 16], 3))
    inputs = [node((a, b), "x0"), node((b, a) if rng.random() < 0.5 else (a, b), "x1"), node((c, b, a), "x2")]
    weights = node((int(rng.choice([2, 4, 6])), b, 1), "kernel")
    places = input_node(tensor_type((int(rng.choice([3, 4, 8])),), int32), "places")
    values, made = list(inputs), 0
    while made < operators:
        x, y = (values[int(rng.integers(len(values)))] for _ in range(2))
        found = _operation(str(rng.choice(OPERATIONS)), x, y, weights, places, rng)
        if found and max(v.type.size for v in found) <= 4096:
            nodes = set(Graph([*inputs, weights, places], [*values, *found]).nodes)
            before = set(Graph([*inputs, weights, places], values).nodes)
            count = sum(n.prim is not GET_ITEM and n.prim is not CONSTANT for n in nodes - before)
            if made + count <= operators:
                values += found
                made += count
            elif made:
                break
    used = {i for v in values for i in v.inputs}
    outputs = [v for v in values if v not in used and v.prim is not None]
    needed = set(toposort(outputs))
    return Graph([i for i in (*inputs, weights, places) if i in needed], outputs)


def _operation(kind, x, y, weights, places, rng):
    """Return the results of one operation on `x`, and `y` where it fits, or nothing."""
    rank = x.type.rank
    axis = int(rng.integers(rank)) if rank else 0
    if kind == "matmul" and rank >= 2 and y.type.rank == rank and x.shape[-1] == y.shape[-2]:
        return [matmul(x, y)] if x.shape[:-2] == y.shape[:-2] else []
    if kind in ("add", "sub", "mul") and x.shape == y.shape:
        return [{"add": E.add, "sub": E.sub, "mul": E.mul}[kind](x, y)]
    if kind in ("exp", "square"):
        return [E.tanh(x) if kind == "exp" else E.mul(x, x)]
    if kind == "concat" and rank == y.type.rank and x.shape[:axis] == y.shape[:axis]:
        return [S.concat((x, y), axis)] if rank and x.shape[axis + 1 :] == y.shape[axis + 1 :] else []
    if not rank or x.type.size == 1:
        return []
    if kind == "transpose":
        return [S.transpose(x, permutation=tuple(int(p) for p in rng.permutation(rank)))]
    if kind in ("sum", "max"):
        reduce = R.reduce_sum if kind == "sum" else R.reduce_max
        return [reduce(x, axes=(axis,), keepdims=bool(rng.integers(2)))]
    if kind == "softmax":
        return [softmax(x, axis=axis)]
    if kind == "moments":
        return list(moments(x, axes=(axis,)))
    if kind == "take":
        return [take(x, places, axis=axis, bounds="drop")]
    if kind == "conv" and rank == 3 and x.shape[1] == weights.shape[1]:
        return [conv(x, weights, strides=(1,), padding=((0, 0),), dilation=(1,), groups=1)]
    if kind == "merge" and rank >= 2:
        return [S.reshape(x, (x.shape[0] * x.shape[1], *x.shape[2:]))]
    if kind == "split" and rank == 2 and x.shape[0] % 2 == 0:
        return [S.reshape(x, (2, x.shape[0] // 2, x.shape[1]))]
    return []
