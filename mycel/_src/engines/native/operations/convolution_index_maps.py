"""Index maps of convolutions and their gradients as loop nests, where no dense library is called.

Where no dense library is called, each of the three is a sum of products over its own domain: the
result's shape, followed by what is summed over. With an image x of (N, C, *image), weights w of
(O, C / G, *kernel) and the convolution's result y of (N, O, *out), along each spatial axis

    conv              y[n, o, p] = sum over c, t of     x[n, c, p s + t d - low] w[o, c, t]
    conv_grad_weight  w[o, c, t] = sum over n, p of     x[n, c, p s + t d - low] y[n, o, p]
    conv_grad_input   x[n, c, i] = sum over o, t of     y[n, o, i + low - t d]   w[o, c, t]

with strides s, dilation d and padding low, where x and y are 0 outside. So no patches are copied.
The last holds for strides of 1. Groups are either one, or as many as there are channels with one
output each (depthwise), where the channel and the output have the same number. A convolution of
quantised integers (`int_conv`) reads what the first does, and its zero point outside.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mycel._src.compiler.ir.dims import Dim, DimLike, is_one, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.compiler.prims.neural.quantisation import int_conv
from mycel._src.engines.native.kernels.loop_nest import ZERO, Affine, Guard, affine
from mycel._src.engines.native.steps.view_rules import Position

__all__ = ["conv_axes", "conv_positions", "conv_shape", "has_conv_nest", "may_exceed"]


def _weights(node: Node) -> tuple[DimLike, ...]:
    """Return the shape of the weights of a convolution or gradient."""
    return tuple(node.type.shape if node.prim is conv_grad_weight else node.inputs[1].type.shape)


def _image(node: Node) -> tuple[DimLike, ...]:
    return tuple(node.type.shape if node.prim is conv_grad_input else node.inputs[0].type.shape)


def has_conv_nest(node: Node) -> bool:
    """Return whether a convolution or gradient is one nest over its own domain."""
    if node.prim not in (conv, conv_grad_input, conv_grad_weight, int_conv) or not node.type.size:
        return False
    if any(not i.type.size for i in node.inputs):
        return False
    p, w, channels = node.params, _weights(node), _image(node)[1]
    depthwise = is_one(w[1]) and same(w[0], channels) and same(p["groups"], channels)
    if not (is_one(p["groups"]) or depthwise):
        return False
    return node.prim is not conv_grad_input or all(is_one(s) for s in p["strides"])


def conv_shape(node: Node) -> tuple[DimLike, ...]:
    """Return the shape of the domain of a convolution or gradient."""
    shape, w = tuple(node.type.shape), _weights(node)
    if node.prim in (conv, int_conv):
        return shape + w[1:]
    ct = tuple(node.inputs[1 if node.prim is conv_grad_weight else 0].type.shape)
    if node.prim is conv_grad_weight:
        return (*shape, ct[0], *ct[2:])
    return (*shape, w[0] if is_one(node.params["groups"]) else 1, *w[2:])


def conv_axes(node: Node) -> tuple[int, ...]:
    """Return the axes of the domain that are summed over."""
    return tuple(range(len(node.type.shape), len(conv_shape(node))))


def conv_positions(node: Node) -> tuple[tuple[Position, Position], tuple[Guard, ...]]:
    """Return where a position of the domain reads both operands, and the guards of the first."""
    p, rank = node.params, len(node.params["strides"])
    at = [affine(k) for k in range(len(conv_shape(node)))]
    here, there = at[2 : 2 + rank], at[3 + rank :]
    grouped = not is_one(p["groups"])
    if node.prim in (conv, int_conv):
        places = _places(p, here, there)
        positions = (at[0], at[1] if grouped else at[2 + rank], *places), (at[1], _plain(grouped, at[2 + rank]), *there)
    elif node.prim is conv_grad_weight:
        places = _places(p, there, here)
        positions = (at[2 + rank], at[0] if grouped else at[1], *places), (at[2 + rank], at[0], *there)
    else:
        places = [
            i + t.scale(-1 if is_one(d) else -d).shift(low)
            for i, t, d, (low, _) in zip(here, there, p["dilation"], p["padding"])
        ]
        output = at[1] if grouped else at[2 + rank]
        positions = (at[0], output, *places), (output, _plain(grouped, at[1]), *there)
    return positions, _guards(node, places)


def _plain(grouped: bool, channel: Affine) -> Affine:
    """Return the number of a channel in its group."""
    return ZERO if grouped else channel


def _places(params: Mapping[str, Any], out: Sequence[Affine], taps: Sequence[Affine]) -> list[Affine]:
    """Return where in the image the positions of a result and of a kernel meet."""
    return [
        q.scale(s) + t.scale(d).shift(-low)
        for q, t, s, d, (low, _) in zip(out, taps, params["strides"], params["dilation"], params["padding"])
    ]


def _guards(node: Node, places: Sequence[Affine]) -> tuple[Guard, ...]:
    """Return the guards of the first operand's spatial positions, which may lie outside of it."""
    sizes, p = node.inputs[0].type.shape[2:], node.params
    if node.prim is not conv_grad_input:
        return tuple((q, d) for q, d, ends in zip(places, sizes, p["padding"]) if any(map(may_exceed, ends)))
    kernel = _weights(node)[2:]
    return tuple(
        (q, d)
        for q, d, k, ends in zip(places, sizes, kernel, p["padding"])
        if not is_one(k) or any(map(may_exceed, ends))
    )


def may_exceed(amount: DimLike) -> bool:
    """Return whether an amount of padding may be above 0."""
    return bool((amount.bounds()[1] if isinstance(amount, Dim) else amount) > 0)
