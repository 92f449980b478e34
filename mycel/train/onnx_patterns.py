"""Operators of ONNX that are several operations here: normalisations, layers with a bias, means,
activations, attention and recurrent layers.

`matched` looks at a node and what it is computed from. Where these are what the library composes of
a normalisation, say, the match has the operands of the ONNX operator and writes it; operations in
between, which nothing else uses, are not written at all. Whether what is matched computes the same
is decided by shapes and constants, never by where it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Optional

import numpy as np

from mycel.ir.dims import Dim
from mycel.ir.graph import Node
from mycel.prims import attention as A
from mycel.prims import conv as C
from mycel.prims import elementwise as E
from mycel.prims import linalg as L
from mycel.prims import normalization as N
from mycel.prims import recurrence as Q
from mycel.prims import reduce as R
from mycel.prims import shape as S
from mycel.prims import window as W
from mycel.prims.base import GET_ITEM, Primitive
from mycel.train.onnx_writer import Match, Writer

__all__ = ["matched", "padding_of"]

Users = Mapping[Node, list[Node]]


def matched(node: Node, users: Users) -> Optional[Match]:
    """Return how a node is written as an operator together with nodes before it; None if by itself.

    `users` has for each node those that are computed from it.
    """
    for pattern in _PATTERNS.get(node.prim, ()):  # type: ignore[arg-type]
        found = pattern(node, users)
        if found is not None:
            return found
    return None


def _one(operator: str, *inputs: Node, **attributes: Any) -> Match:
    """Return the match of one ONNX node."""
    return Match(inputs, lambda w, names: w.emit(operator, names, **attributes))


# What nodes are.


def _number(node: Node) -> Optional[float]:
    """Return the number in a constant of one element; None for any other node."""
    if not node.is_constant or node.dtype.kind not in "fiu":
        return None
    value = np.asarray(node.value)
    return float(value.reshape(-1)[0]) if value.size == 1 else None


def _is(node: Node, number: float) -> bool:
    found = _number(node)
    return found is not None and math.isclose(found, number, rel_tol=1e-3 if number not in (0, 1) else 0, abs_tol=0)


def _pair(node: Node, primitive: Primitive) -> Iterator[tuple[Node, Node]]:
    """Yield the operands of a node of two operands, if it is of a primitive, in both orders."""
    if node.prim is primitive and len(node.inputs) == 2:
        a, b = node.inputs
        yield a, b
        yield b, a


def _scaled(node: Node) -> Optional[tuple[Node, float]]:
    """Return x and c of ``x * c``."""
    for x, c in _pair(node, E.mul):
        number = _number(c)
        if number is not None and x.shape == node.shape:
            return x, number
    return None


def _line(node: Node, like: Node) -> Optional[Node]:
    """Return the vector of channels that a node is, shaped to meet an image (N, C, ...)."""
    rank = len(like.shape)
    if rank < 2:
        return None
    channels = like.shape[1]
    if len(node.shape) == 1 and rank == 2:
        return node if node.shape[0] == channels else None
    if node.prim is not S.RESHAPE:
        return None
    vector = node.inputs[0]
    forms = ((channels, *[1] * (rank - 2)), (1, channels, *[1] * (rank - 2)))
    fits = len(vector.shape) == 1 and tuple(node.shape) in forms and vector.shape[0] == channels
    return vector if fits else None


def _inverse_root(node: Node) -> Optional[tuple[Node, float]]:
    """Return v and c of ``1 / sqrt(v + c)``."""
    if node.prim is not E.rsqrt:
        return None
    for value, number in _pair(node.inputs[0], E.add):
        epsilon = _number(number)
        if epsilon is not None and epsilon >= 0:
            return value, epsilon
    return None


# Normalisations.


def _batch_norm(node: Node, users: Users) -> Optional[Match]:
    for scaled, offset in _pair(node, E.add):
        bias = _line(offset, node)
        if bias is None or scaled.shape != node.shape:
            continue
        for apart, factor in _pair(scaled, E.mul):
            scale = _line(factor, node)
            if scale is None:
                continue
            for centred, inverse in _pair(apart, E.mul):
                root = _inverse_root(inverse)
                if root is None or centred.prim is not E.sub:
                    continue
                x, middle = centred.inputs
                mean, spread = _line(middle, node), _line(root[0], node)
                if mean is None or spread is None or x.shape != node.shape:
                    continue
                return _one("BatchNormalization", x, scale, bias, mean, spread, epsilon=root[1])
    return None


def _item(node: Node, axes: tuple[int, ...], number: int) -> Optional[Node]:
    """Return the moments whose item `number`, with axes of size 1 again, a node is."""
    if node.prim is not S.RESHAPE or node.inputs[0].prim is not GET_ITEM:
        return None
    item = node.inputs[0]
    source = item.inputs[0]
    if item.params["index"] != number or source.prim is not N.moments or tuple(source.params["axes"]) != axes:
        return None
    shape = source.inputs[0].shape
    kept = tuple(1 if i in axes else n for i, n in enumerate(shape))
    return source if tuple(node.shape) == kept else None


def _layer_norm(node: Node, users: Users) -> Optional[Match]:
    for scaled, bias in _pair(node, E.add):
        for apart, scale in _pair(scaled, E.mul):
            rank, wide = len(node.shape), len(scale.shape)
            if not 0 < wide < rank + 1 or apart.shape != node.shape or bias.shape != scale.shape:
                continue
            if tuple(scale.shape) != tuple(node.shape[rank - wide :]):
                continue
            axes = tuple(range(rank - wide, rank))
            for centred, inverse in _pair(apart, E.mul):
                root = _inverse_root(inverse)
                if root is None or centred.prim is not E.sub:
                    continue
                x, middle = centred.inputs
                first, second = _item(middle, axes, 0), _item(root[0], axes, 1)
                if first is None or first is not second or first.inputs[0] is not x:
                    continue
                return _one("LayerNormalization", x, scale, bias, axis=rank - wide, epsilon=root[1])
    return None


# Layers with a bias.


def padding_of(padding: Any) -> Optional[list[int]]:
    """Return the padding of windows in ONNX's order; None for what it has no form for."""
    sizes = [low for low, _ in padding] + [high for _, high in padding]
    return None if any(isinstance(p, Dim) or p < 0 for p in sizes) else sizes


def _biased_conv(node: Node, users: Users) -> Optional[Match]:
    for image, offset in _pair(node, E.add):
        bias = _line(offset, node)
        if bias is None or image.prim is not C.conv or len(users[image]) > 1:
            continue
        params = image.params
        pads = padding_of(params["padding"])
        if pads is None or isinstance(params["groups"], Dim):
            continue
        made = {
            "strides": params["strides"],
            "pads": pads,
            "dilations": params["dilation"],
            "group": int(params["groups"]),
        }
        return _one("Conv", *image.inputs, bias, **made)
    return None


def _is_turned(node: Node) -> bool:
    return node.prim is S.TRANSPOSE and tuple(node.params["permutation"]) == (1, 0)


def _gemm(node: Node, users: Users) -> Optional[Match]:
    for product, bias in _pair(node, E.add):
        if product.prim is not L.matmul or len(users[product]) > 1 or len(product.shape) != 2:
            continue
        x, weight = product.inputs
        if len(x.shape) != 2 or len(weight.shape) != 2 or len(bias.shape) != 1 or not node.dtype.is_floating:
            continue
        if product.shape != node.shape:
            continue
        turned = _is_turned(weight)
        weight = weight.inputs[0] if turned else weight
        return _one("Gemm", x, weight, bias, transB=int(turned))
    return None


# Pools and means.


def _average(node: Node, users: Users) -> Optional[Match]:
    total, count = node.inputs
    number = _number(count)
    if number is None:
        return None
    if total.prim is W.window_sum and node.dtype.is_floating and number == math.prod(total.params["window"]):
        pads = padding_of(total.params["padding"])
        made = {"kernel_shape": total.params["window"], "strides": total.params["strides"], "count_include_pad": 1}
        if pads is None:
            return None
        return _one("AveragePool", total.inputs[0], pads=pads, **made)
    if total.prim is R.reduce_sum and node.dtype.is_floating:
        x, axes, keep = total.inputs[0], tuple(total.params["axes"]), total.params["keepdims"]
        sizes = [x.shape[a] for a in axes]
        if not sizes or any(isinstance(s, Dim) for s in sizes) or math.prod(sizes) != number:
            return None
        if keep and len(x.shape) > 2 and axes == tuple(range(2, len(x.shape))):
            return _one("GlobalAveragePool", x)
        return Match(
            (x,), lambda w, names: w.emit("ReduceMean", [names[0], w.integers(axes)], keepdims=int(bool(keep)))
        )
    return None


# Activations.


def _divided(node: Node) -> Optional[tuple[Node, float]]:
    """Return x and c of ``x * c``, also where it is a quotient."""
    if node.prim is E.div and node.inputs[0].shape == node.shape:
        number = _number(node.inputs[1])
        return None if not number else (node.inputs[0], 1 / number)
    return _scaled(node)


def _gelu_halved(node: Node, users: Users) -> Optional[Match]:
    """As `_gelu`, for ``x * (1 + erf(x / sqrt(2))) * 0.5``."""
    whole = _scaled(node)
    if whole is None or whole[1] != 0.5:
        return None
    for x, rest in _pair(whole[0], E.mul):
        for bent, one in _pair(rest, E.add):
            inner = _divided(bent.inputs[0]) if bent.prim is E.erf else None
            if inner and _is(one, 1.0) and inner[0] is x and math.isclose(inner[1], math.sqrt(0.5), rel_tol=1e-3):
                return _one("Gelu", x)
    return None


def _gelu(node: Node, users: Users) -> Optional[Match]:
    for half, rest in _pair(node, E.mul):
        scaled = _scaled(half)
        if scaled is None or scaled[1] != 0.5:
            continue
        x = scaled[0]
        for bent, one in _pair(rest, E.add):
            if not _is(one, 1.0) or bent.prim not in (E.erf, E.tanh):
                continue
            inner = _scaled(bent.inputs[0])
            if inner is None:
                continue
            if bent.prim is E.erf and inner[0] is x and math.isclose(inner[1], math.sqrt(0.5), rel_tol=1e-3):
                return _one("Gelu", x)
            if bent.prim is E.tanh and math.isclose(inner[1], math.sqrt(2 / math.pi), rel_tol=1e-3):
                if _is_cubic(inner[0], x):
                    return _one("Gelu", x, approximate="tanh")
    return None


def _is_cubic(node: Node, x: Node) -> bool:
    """Return whether a node is x + 0.044715 x³."""
    for same, cubic in _pair(node, E.add):
        scaled = _scaled(cubic)
        if same is not x or scaled is None or not math.isclose(scaled[1], 0.044715, rel_tol=1e-3):
            continue
        for square, last in _pair(scaled[0], E.mul):
            if last is x and square.prim is E.mul and all(i is x for i in square.inputs):
                return True
    return False


def _cut(node: Node, inside: tuple[Primitive, ...]) -> Optional[tuple[Node, Node, Node]]:
    """Return x, the limit, and the comparison of ``select(x ? limit, limit, x)``."""
    if node.prim is not E.SELECT:
        return None
    condition, limit, value = node.inputs
    if condition.prim not in inside or _number(limit) is None or value.shape != node.shape:
        return None
    x, bound = condition.inputs
    return (x, limit, value) if _number(bound) == _number(limit) else None


def _clip_limits(node: Node) -> Optional[tuple[Node, Node, Node]]:
    """Return x and the lower and upper limits between which a node cuts it."""
    outer = _cut(node, (E.le, E.lt))
    if outer is not None:
        inner = _cut(outer[2], (E.ge, E.gt))
        if inner is not None and inner[0] is inner[2] is outer[0]:
            return inner[0], outer[1], inner[1]
    outer = _cut(node, (E.ge, E.gt))
    if outer is not None and outer[0] is outer[2]:
        inner = _cut(outer[0], (E.le, E.lt))
        if inner is not None and inner[0] is inner[2]:
            return inner[0], inner[1], outer[1]
    for lower, high in _pair(node, E.minimum):
        for x, low in _pair(lower, E.maximum):
            if _number(low) is not None and _number(high) is not None and x.shape == node.shape:
                return x, low, high
    return None


def _relu(node: Node, users: Users) -> Optional[Match]:
    found = _cut(node, (E.le, E.lt))
    if found is None or found[0] is not found[2] or _number(found[1]) != 0 or not node.dtype.is_floating:
        return None
    return _one("Relu", found[0])


def _clip(node: Node, users: Users) -> Optional[Match]:
    found = _clip_limits(node)
    if found is None or not node.dtype.is_floating:
        return None
    x, low, high = found
    a, b = _number(low), _number(high)
    return Match((x,), lambda w, names: w.emit("Clip", [names[0], w.scalar(a, node), w.scalar(b, node)]))


def _hard_swish(node: Node, users: Users) -> Optional[Match]:
    for x, gate in _pair(node, E.mul):
        found = _clip_limits(gate)
        if found is None or not _is(found[1], 0.0) or not _is(found[2], 1.0):
            continue
        for part, half in _pair(found[0], E.add):
            if _number(half) != 0.5:
                continue
            scaled = _scaled(part)
            sixth = part.prim is E.div and part.inputs[0] is x and _number(part.inputs[1]) == 6.0
            if sixth or (scaled is not None and scaled[0] is x and math.isclose(scaled[1], 1 / 6, rel_tol=1e-3)):
                return _one("HardSwish", x)
    return None


def _leaky_relu(node: Node, users: Users) -> Optional[Match]:
    condition, low, value = node.inputs
    scaled = _scaled(low)
    if scaled is None or condition.prim not in (E.le, E.lt) or value.shape != node.shape:
        return None
    x, bound = condition.inputs
    if not (scaled[0] is value is x and _number(bound) == 0 and node.dtype.is_floating):
        return None
    slope = scaled[1]
    return _one("LeakyRelu", x, alpha=slope)


# Attention and recurrences.


def _attention(node: Node, users: Users) -> Optional[Match]:
    """Match an attention whose statistics nobody asks for: its products and its softmax."""
    params = node.params
    q, k, v, *masks = node.inputs
    words = params["operands"]
    asked = {u.params["index"] for u in users[node] if u.prim is GET_ITEM}
    if asked - {0} or any(u.prim is not GET_ITEM for u in users[node]) or params["band"] is not None:
        return None
    if set(words) - {"bias", "drop"} or node.inputs[0].dtype.itemsize < 4 or len(q.shape) < 2:
        return None
    rank = len(q.shape)
    order = (*range(rank - 2), rank - 1, rank - 2)

    def write(w: Writer, names: list[str]) -> list[str]:
        scaled = w.emit("Mul", [names[0], w.scalar(params["scale"], q)])
        scores = w.emit("MatMul", [scaled, w.emit("Transpose", [names[1]], perm=order)])
        for word, mask in zip(words, names[3:]):
            if word == "bias":
                scores = w.emit("Add", [scores, mask])
            else:
                scores = w.emit("Where", [mask, w.scalar(params["fill"], q), scores])
        weights = w.emit("Softmax", [scores], axis=rank - 1)
        return [w.emit("MatMul", [weights, names[2]])]

    return Match((q, k, v, *masks), write)


_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2)}


def _recurrence(node: Node, users: Users) -> Optional[Match]:
    """Match a recurrent layer in one direction, whose input is one product."""
    mode, masked = node.params["mode"], node.params["masked"]
    steps, again, bias, first, *rest = node.inputs
    if masked or mode not in _GATES or steps.prim is not L.matmul or not node.inputs[0].dtype.is_floating:
        return None
    wanted = 3 if mode == "lstm" else 2
    asked = [u.params["index"] for u in users[node] if u.prim is GET_ITEM]
    x, weight = steps.inputs
    if any(i >= wanted for i in asked) or not _is_turned(weight) or len(x.shape) != 3:
        return None
    if any(isinstance(n, Dim) for n in (*again.shape, *weight.shape)):
        return None
    hidden = again.shape[1]
    back = "reverse" if node.params["reverse"] else "forward"

    def parts(w: Writer, name: str, order: tuple[int, ...]) -> str:
        """Put the gates of a tensor in ONNX's order."""
        cut = [
            w.emit("Slice", [name, w.integers([i * hidden]), w.integers([(i + 1) * hidden]), w.integers([0])])
            for i in order
        ]
        return str(w.emit("Concat", cut, axis=0))

    def front(w: Writer, name: str, axis: int = 0) -> str:
        return str(w.emit("Unsqueeze", [name, w.integers([axis])]))

    def write(w: Writer, names: list[str]) -> list[str]:
        x, weight, again, bias, *states = names
        order = _GATES[mode]
        if mode == "lstm":
            zeros = w.constant(np.zeros(4 * hidden, node.inputs[0].dtype.numpy))
            both = w.emit("Concat", [parts(w, bias, order), zeros], axis=0)
        else:
            # The parts are m, r, z and p_n: those of the products of the state, and of the input.
            whole = parts(w, bias, (2, 1, 3))
            zeros = w.constant(np.zeros(2 * hidden, node.inputs[0].dtype.numpy))
            last = w.emit("Slice", [bias, w.integers([0]), w.integers([hidden]), w.integers([0])])
            both = w.emit("Concat", [whole, zeros, last], axis=0)
        given = [x, front(w, parts(w, weight, order)), front(w, parts(w, again, order)), front(w, both), ""]
        given += [front(w, s) for s in states]
        more: dict[str, Any] = {"linear_before_reset": 1} if mode == "gru" else {}
        operator = "LSTM" if mode == "lstm" else "GRU"
        found = w.emit(operator, given, outputs=wanted, hidden_size=int(hidden), direction=back, **more)
        axes = [1] + [0] * (wanted - 1)
        return [w.emit("Squeeze", [name, w.integers([axis])]) for name, axis in zip(found, axes)]

    return Match((x, weight.inputs[0], again, bias, first, *rest), write)


Pattern = Callable[[Node, Users], Optional[Match]]
_PATTERNS: dict[Primitive, tuple[Pattern, ...]] = {
    A.attention: (_attention,),
    E.add: (_batch_norm, _layer_norm, _biased_conv, _gemm),
    E.div: (_average,),
    E.minimum: (_clip,),
    E.mul: (_gelu, _gelu_halved, _hard_swish),
    E.SELECT: (_clip, _relu, _leaky_relu),
    Q.recurrence: (_recurrence,),
}
