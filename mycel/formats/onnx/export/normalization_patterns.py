"""Pattern matching of normalisations, which are several primitives here and one ONNX operator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM
from mycel._src.compiler.prims.neural import normalization
from mycel.formats.onnx.export.operand_matching import Users, channels_of, inverse_root, number_of, one_node, pairs
from mycel.formats.onnx.export.writer import Match, Writer

__all__ = ["batch_norm", "group_norm", "layer_norm", "rms_norm"]


def batch_norm(node: Node, users: Users) -> Match | None:
    for scaled, offset in pairs(node, E.add):
        bias = channels_of(offset, node)
        if bias is None or scaled.shape != node.shape:
            continue
        for apart, factor in pairs(scaled, E.mul):
            scale = channels_of(factor, node)
            if scale is None:
                continue
            for centred, inverse in pairs(apart, E.mul):
                root = inverse_root(inverse)
                if root is None or centred.prim is not E.sub:
                    continue
                x, middle = centred.inputs
                mean, spread = channels_of(middle, node), channels_of(root[0], node)
                if mean is None or spread is None or x.shape != node.shape:
                    continue
                return one_node("BatchNormalization", x, scale, bias, mean, spread, epsilon=root[1])
    return None


def _item(node: Node, axes: tuple[int, ...], number: int) -> Node | None:
    """Return the moments whose item `number`, with axes of size 1 again, a node is."""
    if node.prim is not S.RESHAPE or node.inputs[0].prim is not GET_ITEM:
        return None
    item = node.inputs[0]
    source = item.inputs[0]
    if (
        item.params["index"] != number
        or source.prim is not normalization.moments
        or tuple(source.params["axes"]) != axes
    ):
        return None
    shape = source.inputs[0].shape
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return source if tuple(node.shape) == kept else None


def layer_norm(node: Node, users: Users) -> Match | None:
    for scaled, bias in pairs(node, E.add):
        for apart, scale in pairs(scaled, E.mul):
            rank, wide = len(node.shape), len(scale.shape)
            if not 0 < wide < rank + 1 or apart.shape != node.shape or bias.shape != scale.shape:
                continue
            if tuple(scale.shape) != tuple(node.shape[rank - wide :]):
                continue
            axes = tuple(range(rank - wide, rank))
            for centred, inverse in pairs(apart, E.mul):
                root = inverse_root(inverse)
                if root is None or centred.prim is not E.sub:
                    continue
                x, middle = centred.inputs
                first, second = _item(middle, axes, 0), _item(root[0], axes, 1)
                if first is None or first is not second or first.inputs[0] is not x:
                    continue
                return one_node("LayerNormalization", x, scale, bias, axis=rank - wide, epsilon=root[1])
    return None


def group_norm(node: Node, users: Users) -> Match | None:
    """Match a normalisation of groups of channels with a factor and a term for each channel.

    Where each channel is a group it is one InstanceNormalization; else that of the groups' lines,
    for which runtimes have kernels, as they have not for GroupNormalization.
    """
    for scaled, offset in pairs(node, E.add):
        bias = channels_of(offset, node)
        if bias is None or scaled.shape != node.shape:
            continue
        for apart, factor in pairs(scaled, E.mul):
            scale = channels_of(factor, node)
            found = None if scale is None else _grouped(apart, node)
            if scale is None or found is None:
                continue
            x, lines, epsilon = found
            if lines[1] == node.shape[1]:
                return one_node("InstanceNormalization", x, scale, bias, epsilon=epsilon)
            return Match((x, factor, offset), _write_groups(x, lines, epsilon))
    return None


def _write_groups(x: Node, lines: tuple[Any, ...], epsilon: float) -> Any:
    def write(w: Writer, names: list[str]) -> str:
        groups = int(lines[1])
        known = not any(isinstance(d, Dim) for d in lines)
        form = w.integers(lines) if known else w.integers([0, groups, -1])
        one, zero = (w.constant(np.full(groups, v, x.dtype.numpy)) for v in (1, 0))
        made = w.emit("InstanceNormalization", [w.emit("Reshape", [names[0], form]), one, zero], epsilon=epsilon)
        back = w.shape(x.shape) if not any(isinstance(d, Dim) for d in x.shape) else w.emit("Shape", names[:1])
        return str(w.emit("Add", [w.emit("Mul", [w.emit("Reshape", [made, back]), names[1]]), names[2]]))

    return write


def _grouped(node: Node, like: Node) -> tuple[Node, tuple[Any, ...], float] | None:
    """Return x, the shape of its groups' lines (N, groups, rest) and epsilon, of normalised x."""
    if node.prim is not S.RESHAPE or node.shape != like.shape or len(node.inputs[0].shape) != 3:
        return None
    for centred, inverse in pairs(node.inputs[0], E.mul):
        root = inverse_root(inverse)
        if root is None or centred.prim is not E.sub:
            continue
        lines, middle = centred.inputs
        first, second = _item(middle, (2,), 0), _item(root[0], (2,), 1)
        if first is None or first is not second or first.inputs[0] is not lines or lines.prim is not S.RESHAPE:
            continue
        x, shape = lines.inputs[0], tuple(lines.shape)
        if x.shape != like.shape or shape[0] != x.shape[0] or isinstance(shape[1], Dim) or 0 in x.shape:
            continue
        return x, shape, root[1]
    return None


def rms_norm(node: Node, users: Users) -> Match | None:
    """Match a division by the root of the mean square, in the form that runtimes know."""
    for x, inverse in pairs(node, E.mul):
        root = inverse_root(inverse)
        if root is None or x.shape != node.shape or root[0].prim is not E.div:
            continue
        total, count = root[0].inputs
        if total.prim is not R.reduce_sum or not total.params["keepdims"] or not node.dtype.is_floating:
            continue
        axes = tuple(total.params["axes"])
        sizes = [x.shape[a] for a in axes]
        if any(isinstance(s, Dim) for s in sizes) or number_of(count) != math.prod(sizes) or not sizes:
            continue
        if any(all(i is x for i in (a, b)) for a, b in pairs(total.inputs[0], E.mul)):
            return Match((x,), _write_rms(x, axes, root[1]))
    return None


def _write_rms(x: Node, axes: tuple[int, ...], epsilon: float) -> Any:
    def write(w: Writer, names: list[str]) -> str:
        square = w.emit("Pow", [names[0], w.scalar(2, x)])
        mean = w.emit("ReduceMean", [square, w.integers(axes)], keepdims=1)
        root = w.emit("Sqrt", [w.emit("Add", [mean, w.scalar(epsilon, x)])])
        return str(w.emit("Div", [names[0], root]))

    return write
