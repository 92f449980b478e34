"""Generated sums of products of levels, and what follows them, as graphs with inputs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.types import tensor_type
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul, requantize
from mycel._src.foundation.dtype import float32, int8, int32, uint8

__all__ = ["Case", "bytes_of", "float_cases", "image_cases", "matrix_cases"]

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A graph and the values of its inputs."""

    name: str
    graph: Graph
    values: list[Array]


def bytes_of(rng: np.random.Generator, shape: tuple[int, ...], kind: Any = np.int8) -> Array:
    """Return bytes, also those at the ends of their type: products of these are the largest."""
    ends = np.iinfo(kind)
    return rng.choice([ends.min, ends.max, *range(-9 if ends.min else 0, 9)], shape).astype(kind)


def _image(rng: np.random.Generator, k: int) -> tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any]]:
    """Return a name, the shapes of an image and of weights, and parameters of a convolution."""
    form = ("pointwise", "depthwise", "windows")[k % 3]
    n, height, width = (int(v) for v in (rng.integers(1, 4), rng.integers(5, 15), rng.integers(5, 31)))
    rows, columns = (1, 1) if form == "pointwise" else (int(v) for v in rng.integers(1, 6 if k % 2 else 4, 2))
    inputs = int(rng.choice([1, 3, 8, 16, 17, 24, 40, 70]))
    outputs = int(rng.choice([6, 15, 16, 17, 24, 33, 48, 64, 70, 96]))
    depthwise = form == "depthwise"
    inputs = outputs if depthwise else inputs
    padding = (
        ((0, 0), (0, 0))
        if form == "pointwise" and k % 2
        else tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (2, 2)))
    )
    dilation = [int(v) for v in rng.integers(1, 3, 2)]
    # Windows fit into their images.
    dilation = [d if (s - 1) * d < size else 1 for d, s, size in zip(dilation, (rows, columns), (height, width))]
    p = {
        "strides": (1, 1) if k % 4 == 0 else tuple(int(v) for v in rng.integers(1, 4, 2)),
        "padding": padding,
        "dilation": tuple(dilation),
        "groups": outputs if depthwise else 1,
    }
    name = f"{k}-{form}-{n}x{inputs}x{height}x{width}-{outputs}x{rows}x{columns}"
    return name, (n, inputs, height, width), (outputs, 1 if depthwise else inputs, rows, columns), p


def image_cases(count: int, seed: int) -> list[Case]:
    """Return convolutions of levels, with levels of other scales behind most of them."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        name, shape, weights, p = _image(rng, k)
        signed = bool(rng.integers(0, 2))
        kind = int8 if signed else uint8
        zero = int(rng.integers(-128, 128) if signed else rng.integers(0, 256))
        x = input_node(tensor_type(shape, kind), "x")
        w = constant(bytes_of(rng, weights))
        y = int_conv(x, w, zero=zero, **p)
        nodes, values = [x], [bytes_of(rng, shape, kind.numpy)]
        outputs = _behind(rng, k, y, (1, weights[0], 1, 1), nodes, values)
        found.append(Case(name, Graph(nodes, outputs), values))
    return found


def matrix_cases(seed: int) -> list[Case]:
    """Return products of matrices of levels."""
    rng = np.random.default_rng(seed)
    found = []
    for k, shape in enumerate([(1, 1), (5, 3), (47, 64), (48, 65), (97, 7), (3, 2, 20), (2, 3, 25, 9), (1, 300)]):
        for outputs in (6, 16, 40, 130):
            a = input_node(tensor_type(shape, int8), "a")
            y = int_matmul(a, constant(bytes_of(rng, (shape[-1], outputs))), a_zero=-7, b_zero=0)
            nodes, values = [a], [bytes_of(rng, shape)]
            results = _behind(rng, k, y, (outputs,), nodes, values)
            found.append(Case(f"{shape}-{outputs}", Graph(nodes, results), values))
    return found


def _behind(
    rng: np.random.Generator, k: int, y: Node, channels: tuple[int, ...], nodes: list[Node], values: list[Array]
) -> list[Node]:
    """Return what is made of a sum: itself, steps of another scale, or these and another value.

    Inputs that it takes come to `nodes`, with their `values`; `channels` is the shape of numbers of
    channels.
    """
    if k % 6 == 5:
        return [y]
    kind = int8 if rng.integers(0, 2) else uint8
    low, high = (-128, 127) if kind is int8 else (0, 255)
    if rng.integers(0, 2):
        low, high = low + 3, high - 40
    y = E.add(y, constant(rng.integers(-900, 900, channels).astype(np.int32)))
    multiplier = rng.integers(1 << 30, (1 << 31) - 1, channels)
    least, most = ((-12, -3), (-9, 1), (-6, 3))[k % 3]
    shift = rng.integers(least, most, channels)
    if k % 4 == 1:
        # A channel without weights.
        multiplier.reshape(-1)[0], shift.reshape(-1)[0] = 0, 0
    made = requantize(
        y,
        constant(multiplier.astype(np.int32)),
        constant(shift.astype(np.int32)),
        zero=int(rng.integers(low, high)),
        low=low,
        high=high,
        rounding="single" if k % 5 else "double",
        dtype=kind,
    )
    if k % 6 == 4:
        return [made, y]
    if k % 6 == 3:
        other = input_node(tensor_type(tuple(int(d) for d in y.shape), int8), "other")
        nodes.append(other)
        values.append(bytes_of(rng, other.shape))
        return [E.add(E.cast(made, dtype=int32), E.cast(other, dtype=int32))]
    return [made]


def float_cases(count: int, seed: int) -> list[Case]:
    """Return convolutions and products of floats with what follows them."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(count):
        name, shape, weights, p = _image(rng, k)
        x = input_node(tensor_type(shape, float32), "x")
        w = constant(rng.standard_normal(weights).astype(np.float32))
        y = E.add(conv(x, w, **p), constant(rng.standard_normal((1, weights[0], 1, 1)).astype(np.float32)))
        nodes, values = [x], [rng.standard_normal(shape).astype(np.float32)]
        if k % 4 == 1:
            y = E.minimum(E.maximum(y, 0.0), 6.0)
        if k % 4 == 2:
            other = input_node(tensor_type(tuple(int(d) for d in y.shape), float32), "other")
            nodes.append(other)
            values.append(rng.standard_normal(other.shape).astype(np.float32))
            y = E.tanh(E.add(y, other))
        found.append(Case(name, Graph(nodes, [y]), values))
    for stride in (1, 2):
        # More than tiles copy.
        x = input_node(tensor_type((2, 96, 9, 11), float32), "x")
        w = constant((rng.standard_normal((20, 96, 3, 3)) / 30).astype(np.float32))
        p = {"strides": (stride, stride), "padding": ((1, 2), (0, 1)), "dilation": (1, 1), "groups": 1}
        values = [rng.standard_normal(x.shape).astype(np.float32)]
        found.append(Case(f"windows-{stride}", Graph([x], [conv(x, w, **p)]), values))
    for rows in (1, 3, 50):
        a = input_node(tensor_type((rows, 37), float32), "a")
        y = matmul(a, constant(rng.standard_normal((37, 45)).astype(np.float32)))
        found.append(Case(f"matrix-{rows}", Graph([a], [y]), [rng.standard_normal((rows, 37)).astype(np.float32)]))
    return found
