"""Cross-layer equalisation: rescales channels of neighbouring layers for a like range in both.

Where a convolution or product is followed, through rectifiers and moves that keep channels apart,
by exactly one other, a factor s for each channel moves from one to the other without a change of
the function (Nagel et al., 2019):

    W1' = W1 / s,  b1' = b1 / s,  W2' = W2 s      s = sqrt(r1 r2) / r2

where r1 and r2 are the largest magnitudes of the channel in both. Pairs are gone through `ROUNDS`
times, since a layer may be in two of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, substitute
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.convolution.window import window_max
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.quantisable_regions import Linear, Regions

__all__ = ["equalised"]

Array = np.ndarray[Any, Any]
ROUNDS = 8


def equalised(graph: Graph) -> Graph:
    """Return `graph` with the weights of neighbouring layers equalised; weights are constants."""
    pairs = _pairs(graph)
    arrays: dict[Node, Array] = {}
    for first, second in pairs:
        for node in (first.base.inputs[1], second.inputs[1], *([first.bias] if first.bias is not None else [])):
            held = array_of(node)
            assert held is not None
            arrays.setdefault(node, held.astype(np.float64))
    for _ in range(ROUNDS):
        for first, second in pairs:
            _equalise(arrays, first, second)
    images = {n: literal(a.astype(n.dtype.numpy), n) for n, a in arrays.items()}
    return Graph(graph.inputs, substitute(graph.outputs, images), graph.name) if images else graph


def _pairs(graph: Graph) -> list[tuple[Linear, Node]]:
    regions = Regions(graph)
    whole = {found.base: (node, found) for node, found in regions.anchors.items() if isinstance(found, Linear)}
    shared = [node.inputs[1] for node in whole]
    found = []
    for base, (end, linear) in whole.items():
        second = _next(regions, end)
        if (
            second is None
            or second not in whole
            or array_of(second.inputs[1]) is None
            or array_of(base.inputs[1]) is None
        ):
            continue
        # Weights that two layers read cannot follow both.
        if shared.count(base.inputs[1]) == 1 == shared.count(second.inputs[1]) and _fits(base, second):
            found.append((linear, second))
    return found


def _fits(first: Node, second: Node) -> bool:
    """Return whether the channels that come out of a layer are those that go into another."""
    if first.prim is not second.prim:
        return False
    if first.prim is matmul:
        return bool(first.shape[-1] == second.inputs[1].shape[0])
    groups, w = second.params["groups"], second.inputs[1].shape
    return bool(groups == 1 or (w[1] == 1 and groups == w[0] == first.shape[1]))


def _next(regions: Regions, end: Node) -> Node | None:
    """Return the convolution or product that alone reads a value through rectifiers."""
    node = end
    while True:
        users = set(regions.users.get(node, ()))
        if node in regions.results or not users:
            return None
        if len(users) == 1:
            (user,) = users
            if user.prim in (conv, matmul) and user.inputs[0] is node:
                return user
            if user.prim is window_max:
                node = user
                continue
        ends = regions.ends(node)
        found = regions.clamp(ends[0], node) if len(ends) == 1 else None
        # A rectifier alone lets a factor above 0 through.
        if (
            found is None
            or (found.low, found.high) != (0.0, np.inf)
            or any(regions.roots.get(u) is not node for u in users)
        ):
            return None
        node = ends[0]


def _equalise(arrays: dict[Node, Array], first: Linear, second: Node) -> None:
    w1, w2 = first.base.inputs[1], second.inputs[1]
    a, b = arrays[w1], arrays[w2]
    if second.prim is matmul:
        out, into = np.abs(a).max(0), np.abs(b).max(1)
        places: tuple[tuple[int, ...], tuple[int, ...]] = (1, -1), (-1, 1)
    else:
        out = np.abs(a).max((1, *range(2, a.ndim)))
        depthwise = second.params["groups"] != 1
        into = np.abs(b).max(tuple(k for k in range(b.ndim) if k != (0 if depthwise else 1)))
        ones = (1,) * (b.ndim - 2)
        places = (-1, 1, *ones), ((-1, 1, *ones) if depthwise else (1, -1, *ones))
    with np.errstate(all="ignore"):
        factor = np.sqrt(out * into) / into
    factor = np.where(np.isfinite(factor) & (factor > 0), factor, 1.0)
    arrays[w1], arrays[w2] = a / factor.reshape(places[0]), b * factor.reshape(places[1])
    if first.bias is not None:
        bias = arrays[first.bias]
        arrays[first.bias] = bias / factor.reshape([-1 if d == len(factor) else 1 for d in bias.shape])
