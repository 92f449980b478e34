"""Data-driven rounding of weights: AdaRound, GPTQ and bias correction.

What a layer reads, one row for each position of its result, gives H = X'X. Weights W and their
levels' numbers V differ in the results by the sum over channels of (W - V)' H (W - V), which both
methods make small, one layer at a time:

    adaround   each weight is rounded down or up; which, is a sigmoid that is pressed to 0 or 1
               while it follows the gradient (Nagel et al., 2020); then single weights of each
               output are turned round while that helps
    gptq       inputs one after the other; what rounding one changes is taken back by those that
               are left, by the Cholesky factor of the inverse of H (Frantar et al., 2023)

and `corrected` takes back what is left of the difference in the mean, by the bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import _patches, conv, window_output
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.quantise.fake_quantisation import weights_of
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.quantisable_regions import Linear, Regions
from mycel._src.compiler.transforms.quantise.scales import Scale, levels_of, weight_scale
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.quantised_network import run

__all__ = ["ROUNDS", "adaround", "as_matrix", "corrected", "from_matrix", "gptq", "hessians", "rows_of"]

Array = np.ndarray[Any, Any]
ROUNDS = 400
DAMPING = 0.01
_RATE = 0.02


def rows_of(node: Node) -> Node | None:
    """Return what a layer reads, with a row for each position; None for layers of several groups.

    Columns are the axes of its weights but that of outputs.
    """
    x = node.inputs[0]
    if node.prim is matmul:
        return x
    p = node.params
    if p["groups"] != 1:
        return None
    w = node.inputs[1]
    out = window_output("conv", x.shape[2:], w.shape[2:], p["strides"], p["padding"], p["dilation"])
    patches = _patches(x, w.shape[2:], out, p["strides"], p["padding"], p["dilation"], 1)
    return S.transpose(patches, (0, 1, 3, 2))


def hessians(model: Model, batches: Any) -> dict[Node, Array]:
    """Return X'X of what each layer of a model reads on the batches, in float64."""
    rows = {n: r for n in weights_of(model.graph) if (r := rows_of(n)) is not None}
    if not rows:
        return {}
    network = run(model, list(rows.values()))
    found: dict[Node, Array] = {}
    for batch in batches:
        for node, value in zip(rows, network(*batch)):
            x = value.asnumpy().astype(np.float64).reshape(-1, value.shape[-1])
            found[node] = found.get(node, 0.0) + x.T @ x
    return found


def as_matrix(weight: Array, node: Node) -> Array:
    """Return weights as (inputs, outputs)."""
    return weight if node.prim is matmul else weight.reshape(weight.shape[0], -1).T


def from_matrix(matrix: Array, weight: Array, node: Node) -> Array:
    """Return a matrix of `as_matrix` in the shape of the weights."""
    return matrix if node.prim is matmul else np.ascontiguousarray(matrix.T).reshape(weight.shape)


def adaround(weight: Array, hessian: Array, scale: Scale, rounds: int = ROUNDS) -> Array:
    """Return weights (inputs, outputs) rounded to levels of `scale`, each down or up, as floats.

    `hessian` is X'X of the inputs of `weight`, and `rounds` the number of steps of the descent. The
    result is never worse than the nearest levels.
    """
    size = np.broadcast_to(np.asarray(scale.size, np.float64).reshape(1, -1), (1, weight.shape[1]))
    real = np.clip(weight / size, scale.low, scale.high)
    below, h = np.floor(real), hessian / max(float(np.trace(hessian)) / len(hessian), 1e-30)
    h = h + np.eye(len(h)) * DAMPING
    rest = np.clip(real - below, 0.02, 0.98)
    # The stretched sigmoid of the paper, from -0.1 to 1.1.
    v = -np.log(1.2 / (rest + 0.1) - 1)
    first, second = np.zeros_like(v), np.zeros_like(v)
    weighted = size**2 / np.mean(size**2)
    for k in range(rounds):
        sigmoid = 1 / (1 + np.exp(-v))
        up = np.clip(1.2 * sigmoid - 0.1, 0, 1)
        inside = (up > 0) & (up < 1)
        slope = 1.2 * sigmoid * (1 - sigmoid) * inside
        pressed = 20 - 18 * k / rounds
        apart = 2 * up - 1
        press = -pressed * np.abs(apart) ** (pressed - 1) * np.sign(apart) * 2
        gradient = (2 * h @ (below + up - real) * weighted + 0.01 * (k > rounds // 5) * press) * slope
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        v -= _RATE * 5 * (first / (1 - 0.9 ** (k + 1))) / (np.sqrt(second / (1 - 0.999 ** (k + 1))) + 1e-9)
    found = np.clip(below + (v > 0), scale.low, scale.high)
    nearest = np.clip(np.rint(real), scale.low, scale.high)
    costs = [((n - real) * (h @ (n - real))).sum(0) for n in (found, nearest)]
    return _turned(np.where(costs[0] < costs[1], found, nearest), real, below, h, scale) * size


def _turned(levels: Array, real: Array, below: Array, h: Array, scale: Scale) -> Array:
    """Return `levels` with single ones turned to the other side of the `real` numbers, the one of
    each output that helps most at a time, until none helps.

    `below` are the numbers rounded down, `h` is X'X, and `scale` has the ends.
    """
    levels = levels.copy()
    slopes, outputs = h @ (levels - real), np.arange(levels.shape[1])
    for _ in range(2 * len(levels)):
        turn = np.where(levels > below, -1.0, 1.0)
        allowed = (levels + turn >= scale.low) & (levels + turn <= scale.high) & (np.abs(levels + turn - real) <= 1)
        gain = np.where(allowed, 2 * turn * slopes + np.diag(h)[:, None], np.inf)
        best = gain.argmin(0)
        move = np.where(gain[best, outputs] < -1e-12, turn[best, outputs], 0.0)
        if not move.any():
            break
        levels[best, outputs] += move
        slopes += h[:, best] * move
    return levels


def gptq(weight: Array, hessian: Array, bits: int, group_size: int, sizes: Array | None = None) -> tuple[Array, Array]:
    """Return the levels of a `weight` (inputs, outputs) and the scales (groups, outputs).

    `hessian` is X'X of the inputs, of which `group_size` have a scale together, in `bits` bits:
    that of the group's largest weights, or of `sizes`. Inputs that are always 0 have weights 0.
    """
    w, h = weight.astype(np.float64).copy(), hessian.copy()
    still = np.diag(h) == 0
    h[still, still] = 1.0
    w[still] = 0.0
    h += np.eye(len(h)) * DAMPING * np.mean(np.diag(h))
    factor = np.linalg.cholesky(np.linalg.inv(h)).T
    levels, scales = np.zeros(w.shape, np.int8), []
    for k in range(len(w)):
        if k % group_size == 0:
            scale = weight_scale(w[k : k + group_size], -1, bits)
            if sizes is not None:
                scale = scale._replace(size=np.asarray(sizes[k // group_size], np.float32)[None])
            scales.append(scale.size.reshape(-1))
        levels[k] = levels_of(w[k][None], scale)[0]
        error = (w[k] - levels[k] * scales[-1].astype(np.float64)) / factor[k, k]
        w[k + 1 :] -= np.outer(factor[k, k + 1 :], error)
    return levels, np.stack(scales)


def corrected(
    model: Model, rounded: Mapping[Node, tuple[Array, Scale]], batches: Any
) -> tuple[Graph, dict[Node, Node]]:
    """Return the graph of a model with biases that take back the mean change of each result.

    `rounded` has the weights and scales of layers; what rounding them changes in results is
    measured on the `batches`. The layers of the new graph follow, by those of the old one.
    """
    regions = Regions(model.graph)
    layers = [n for n in weights_of(model.graph) if n in rounded]
    changed = []
    for node in layers:
        weight, scale = rounded[node]
        held = array_of(node.inputs[1])
        assert held is not None and node.prim is not None
        error = (levels_of(weight, scale) * np.asarray(scale.size, np.float64) - held).astype(np.float32)
        changed.append(node.prim(node.inputs[0], literal(error), **node.params))
    network = run(model, changed)
    sums: list[Any] = [0.0] * len(layers)
    counts = [0] * len(layers)
    for row in batches:
        for k, value in enumerate(network(*row)):
            axis = 1 if layers[k].prim is conv else value.ndim - 1
            x = np.moveaxis(value.asnumpy().astype(np.float64), axis, -1).reshape(-1, value.shape[axis])
            sums[k], counts[k] = sums[k] + x.sum(0), counts[k] + len(x)
    terms: dict[Node, tuple[Node, Node]] = {}
    for node, total, count in zip(layers, sums, counts):
        end, found = _with_bias(regions, node)
        shape = (-1,) + (1,) * (node.type.rank - 2) if node.prim is conv else (-1,)
        bias = np.zeros(1) if found.bias is None else np.asarray(array_of(found.bias), np.float64).reshape(-1)
        terms[end] = node, literal((bias - total / max(count, 1)).astype(np.float32).reshape(shape))
    made: dict[Node, Node] = {i: i for i in model.graph.inputs}
    for node in model.graph.nodes:
        given = tuple([made[i] for i in node.inputs])
        same = all(a is b for a, b in zip(given, node.inputs))
        made[node] = node if same else Node(node.prim, given, node.params, node.type, node.where)
        if node in terms:
            base, term = terms[node]
            made[node] = E.add(made[base], term)
    # A layer without a bias is followed by one now.
    images = {n: _inner(made[n], n) for n in layers}
    return Graph(model.graph.inputs, [made[o] for o in model.graph.outputs], model.graph.name), images


def _inner(made: Node, node: Node) -> Node:
    return made if made.prim is node.prim else made.inputs[0]


def _with_bias(regions: Regions, node: Node) -> tuple[Node, Linear]:
    """Return the anchor of a layer, with its bias where it has one, and the node that it is."""
    found = [(n, a) for n, a in regions.anchors.items() if isinstance(a, Linear) and a.base is node]
    return max(found, key=lambda pair: pair[1].bias is not None)
