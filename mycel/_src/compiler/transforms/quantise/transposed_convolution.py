"""Rewrites transposed convolutions with constant weights as convolutions, which can be quantised.

A transposed convolution with a stride of s gives s positions for each of its image, and what falls
on each of them are sums over the image with some of the taps. So it is a convolution with s times
as many channels along each axis, whose positions are then put one beside the other:

    y[n, c, q s + r] = sum over o and u of  x[n, o, q + m + u] w[o, c, k]

where r + low - k d = (m + u) s. Taps that no k has are 0. What is computed with a number, or with
one for each channel, of the result is computed before positions are moved, so that normalisations
fold into the weights and clamps become the ends of sizes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input
from mycel._src.compiler.prims.neural.quantisation import fake_quant
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, is_fixed, literal

__all__ = ["with_convolutions"]

Array = np.ndarray[Any, Any]


class _Form(NamedTuple):
    """How positions are moved: the strides, how many positions a phase has, and the sizes."""

    channels: int
    strides: tuple[int, ...]
    counts: tuple[int, ...]
    sizes: tuple[int, ...]

    @property
    def phases(self) -> int:
        return math.prod(self.strides)


class _Axis(NamedTuple):
    """An axis of the convolution.

    `taps` has the tap of the transposed one for each phase and tap, or its number of taps where
    there is none. `low` and `high` are the padding, and where negative what is cut off.
    """

    taps: Array
    low: int
    high: int
    places: int


def with_convolutions(graph: Graph) -> Graph:
    """Return `graph` with transposed convolutions by constant weights as convolutions.

    Those whose images have open sizes stay.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> x = input_node(tensor_type((1, 2, 3), float32), "x")
    >>> w = literal(np.ones((2, 4, 2), np.float32))
    >>> p = {"strides": (2,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    >>> made = with_convolutions(Graph([x], [conv_grad_input(x, w, input_shape=(1, 4, 6), **p)]))
    >>> [n.op for n in made.nodes if not n.is_constant]
    ['conv', 'reshape', 'transpose', 'reshape']
    """
    if not any(n.prim is conv_grad_input for n in graph.nodes):
        return graph
    # Values of which the positions are not moved yet.
    spread: dict[Node, tuple[Node, _Form]] = {}
    image: dict[Node, Node] = {i: i for i in graph.inputs}

    def real(node: Node) -> Node:
        found = image.get(node)
        if found is None:
            with at(node.where):
                found = image[node] = _moved(*spread[node])
        return found

    for node in graph.nodes:
        with at(node.where):
            found = _convolved(node, real) if node.prim is conv_grad_input else _computed(node, spread)
        if found is not None:
            spread[node] = found
            continue
        given = tuple([real(i) for i in node.inputs])
        same = all(a is b for a, b in zip(given, node.inputs))
        image[node] = node if same else Node(node.prim, given, node.params, node.type, node.where)
    return Graph(graph.inputs, [real(o) for o in graph.outputs], graph.name)


def _axis(size: int, out: int, taps: int, stride: int, low: int, step: int) -> _Axis:
    """Return an axis of the convolution: of an image of `size`, with `out` positions in the end.

    `taps`, `stride`, `low` (of the padding) and `step` (the dilation) are the transposed one's.
    """
    places = {}
    for phase in range(stride):
        for k in range(taps):
            offset, rest = divmod(phase + low - k * step, stride)
            if not rest:
                places[phase, offset] = k
    first, last = min(o for _, o in places), max(o for _, o in places)
    table = np.full((stride, last - first + 1), taps)
    for (phase, offset), k in places.items():
        table[phase, offset - first] = k
    count = -(-out // stride)
    return _Axis(table, -first, count + last - size, count)


def _convolved(node: Node, real: Any) -> tuple[Node, _Form] | None:
    """Return a transposed convolution as a convolution before its positions are moved.

    `real` gives an operand. Returns None where it has to stay.
    """
    x, weight = node.inputs
    p, shape = node.params, node.params["input_shape"]
    sizes = (*x.shape[1:], *shape[1:])
    if not is_fixed(weight) or any(type(d) is not int for d in sizes) or not math.prod(sizes):
        return None
    kernel = weight.shape[2:]
    given = zip(x.shape[2:], shape[2:], kernel, p["strides"], p["padding"], p["dilation"])
    axes = [_axis(size, out, taps, stride, low, step) for size, out, taps, stride, (low, _), step in given]
    held = _weights(weight, axes, p["groups"])
    if held is None:
        return None
    starts: list[DimLike] = [0, 0, *(max(-a.low, 0) for a in axes)]
    stops: list[DimLike] = [*x.shape[:2], *(d + min(a.high, 0) for d, a in zip(x.shape[2:], axes))]
    if any(b <= a for a, b in zip(starts[2:], stops[2:])):
        return None
    source = real(x)
    if any(starts) or stops != list(x.shape):
        source = S.slice_(source, tuple(starts), tuple(stops))
    padding = tuple((max(a.low, 0), max(a.high, 0)) for a in axes)
    ones = (1,) * len(axes)
    made = conv(source, held, strides=ones, padding=padding, dilation=ones, groups=p["groups"])
    strides, counts = tuple(p["strides"]), tuple(a.places for a in axes)
    return made, _Form(int(shape[1]), strides, counts, tuple(shape[2:]))


def _weights(weight: Node, axes: list[_Axis], groups: int) -> Node | None:
    """Return weights of the convolution, rounded ones with their levels; None for scales of inputs.

    `weight` are those of the transposed one, (O, C / groups, *kernel), as constants.
    """
    if weight.prim is fake_quant:
        held, size, zero = weight.inputs
        sizes, none = array_of(size), array_of(zero)
        inner = _weights(held, axes, groups)
        if sizes is None or none is None or inner is None or none.any():
            return None
        if sizes.size > 1:
            wide = sizes.reshape((1,) * (weight.type.rank - sizes.ndim) + sizes.shape)
            if wide.size != wide.shape[1]:
                return None
            phases = math.prod(len(a.taps) for a in axes)
            every = np.repeat(np.tile(wide.reshape(-1), groups), phases)
            size = literal(np.ascontiguousarray(every.reshape(-1, *[1] * (weight.type.rank - 1))), size)
        return fake_quant(inner, size, zero, **weight.params)
    array = array_of(weight)
    if array is None:
        return None
    inputs, outputs, *kernel = array.shape
    # (groups, outputs, inputs, *kernel), and zeros where there is no tap.
    found = array.reshape(groups, inputs // groups, outputs, *kernel).swapaxes(1, 2)
    found = np.pad(found, [(0, 0)] * 3 + [(0, 1)] * len(kernel))
    for k, axis in enumerate(axes):
        found = np.take(found, axis.taps, axis=3 + 2 * k)
    rank = len(axes)
    order = (0, 1, *(3 + 2 * k for k in range(rank)), 2, *(4 + 2 * k for k in range(rank)))
    taps = [a.taps.shape[1] for a in axes]
    return literal(np.ascontiguousarray(found.transpose(order)).reshape(-1, inputs // groups, *taps), weight)


def _computed(node: Node, spread: dict[Node, tuple[Node, _Form]]) -> tuple[Node, _Form] | None:
    """Return an element-wise operation before positions are moved; None where it has none such."""
    prim = node.prim
    forms = {spread[i][1] for i in node.inputs if i in spread}
    if prim is None or not prim.elementwise or prim.effect or len(forms) != 1:
        return None
    (form,) = forms
    if any(i in spread and i.shape != node.shape for i in node.inputs):
        return None
    given = [spread[i][0] if i in spread else _for_phases(i, form, node.type.rank) for i in node.inputs]
    if any(g is None for g in given):
        return None
    return prim(*[g for g in given if g is not None], **node.params), form


def _for_phases(node: Node, form: _Form, rank: int) -> Node | None:
    """Return a constant with one number, or one for each channel, for the channels of all phases.

    `rank` is that of the values. Returns None for other nodes.
    """
    array = array_of(node)
    if array is None or array.size == 1:
        return node if array is not None and array.ndim <= rank else None
    wide = array.reshape((1,) * (rank - array.ndim) + array.shape)
    if wide.shape[1] != form.channels or wide.size != form.channels:
        return None
    return literal(np.repeat(wide, form.phases, axis=1).reshape(-1, *[1] * (rank - 2)), node)


def _moved(value: Node, form: _Form) -> Node:
    """Return a value with its positions where they belong."""
    if form.phases == 1:
        return value
    rank, rows = len(form.strides), value.shape[0]
    apart = S.reshape(value, (rows, form.channels, *form.strides, *form.counts))
    order = (0, 1, *[a for k in range(rank) for a in (2 + rank + k, 2 + k)])
    sizes = tuple(s * n for s, n in zip(form.strides, form.counts))
    made = S.reshape(S.transpose(apart, order), (rows, form.channels, *sizes))
    if sizes == form.sizes:
        return made
    return S.slice_(made, (0,) * made.type.rank, (rows, form.channels, *form.sizes))
