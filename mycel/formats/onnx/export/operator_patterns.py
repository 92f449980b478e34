"""Pattern matching for export: several primitives that are one ONNX operator.

They are normalisations, layers with a bias, means, activations, attention and recurrent layers.

`matched` looks at a node and what it is computed from. Where these are what the library composes of
a normalisation, say, the match has the operands of the ONNX operator and writes it; operations in
between, which nothing else uses, are not written at all. Whether what is matched computes the same
is decided by shapes and constants, never by where it comes from.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import reduce as R
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import GET_ITEM, Primitive
from mycel._src.compiler.prims.convolution import conv, window
from mycel._src.compiler.prims.neural import attention, recurrence
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize
from mycel.formats.onnx.export.normalization_patterns import batch_norm, group_norm, layer_norm, rms_norm
from mycel.formats.onnx.export.operand_matching import (
    Users,
    channels_of,
    is_number,
    number_of,
    one_node,
    pairs,
    scaled_by,
)
from mycel.formats.onnx.export.quantize_dequantize import blocks, rounded, rounded_layer
from mycel.formats.onnx.export.writer import Match, Writer, padding_of

__all__ = ["matched"]


def matched(node: Node, users: Users) -> Match | None:
    """Return how a node is written as an operator together with nodes before it; None if by itself.

    `users` has for each node those that are computed from it.
    """
    for pattern in _PATTERNS.get(node.prim, ()):  # type: ignore[arg-type]
        found = pattern(node, users)
        if found is not None:
            return found
    return None


# Layers with a bias.


def _biased_conv(node: Node, users: Users) -> Match | None:
    for image, offset in pairs(node, E.add):
        bias = channels_of(offset, node)
        if bias is None or image.prim is not conv.conv or len(users[image]) > 1:
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
        return one_node("Conv", *image.inputs, bias, **made)
    return None


def _is_turned(node: Node) -> bool:
    return node.prim is S.TRANSPOSE and tuple(node.params["permutation"]) == (1, 0)


def _gemm(node: Node, users: Users) -> Match | None:
    for product, bias in pairs(node, E.add):
        if product.prim is not matrix_product.matmul or len(users[product]) > 1 or len(product.shape) != 2:
            continue
        x, weight = product.inputs
        if len(x.shape) != 2 or len(weight.shape) != 2 or len(bias.shape) != 1 or not node.dtype.is_floating:
            continue
        if product.shape != node.shape:
            continue
        turned = _is_turned(weight)
        weight = weight.inputs[0] if turned else weight
        return one_node("Gemm", x, weight, bias, transB=int(turned))
    return None


# Pools and means.


def _average(node: Node, users: Users) -> Match | None:
    total, count = node.inputs
    number = number_of(count)
    if number is None:
        return None
    if total.prim is window.window_sum and node.dtype.is_floating and number == math.prod(total.params["window"]):
        pads = padding_of(total.params["padding"])
        made = {"kernel_shape": total.params["window"], "strides": total.params["strides"], "count_include_pad": 1}
        if pads is None:
            return None
        return one_node("AveragePool", total.inputs[0], pads=pads, **made)
    if total.prim is R.reduce_sum and node.dtype.is_floating:
        x, axes, keep = total.inputs[0], tuple(total.params["axes"]), total.params["keepdims"]
        sizes = [x.shape[a] for a in axes]
        if not sizes or any(isinstance(s, Dim) for s in sizes) or math.prod(sizes) != number:
            return None
        if keep and len(x.shape) > 2 and axes == tuple(range(2, len(x.shape))):
            return one_node("GlobalAveragePool", x)
        return Match(
            (x,), lambda w, names: w.emit("ReduceMean", [names[0], w.integers(axes)], keepdims=int(bool(keep)))
        )
    return None


# Activations.


def _divided(node: Node) -> tuple[Node, float] | None:
    """Return x and c of ``x * c``, also where it is a quotient."""
    if node.prim is E.div and node.inputs[0].shape == node.shape:
        number = number_of(node.inputs[1])
        return None if not number else (node.inputs[0], 1 / number)
    return scaled_by(node)


def _gelu_halved(node: Node, users: Users) -> Match | None:
    """As `_gelu`, for ``x * (1 + erf(x / sqrt(2))) * 0.5``."""
    whole = scaled_by(node)
    if whole is None or whole[1] != 0.5:
        return None
    for x, rest in pairs(whole[0], E.mul):
        for bent, one in pairs(rest, E.add):
            inner = _divided(bent.inputs[0]) if bent.prim is E.erf else None
            if inner and is_number(one, 1.0) and inner[0] is x and math.isclose(inner[1], math.sqrt(0.5), rel_tol=1e-3):
                return one_node("Gelu", x)
    return None


def _gelu(node: Node, users: Users) -> Match | None:
    for half, rest in pairs(node, E.mul):
        scaled = scaled_by(half)
        if scaled is None or scaled[1] != 0.5:
            continue
        x = scaled[0]
        for bent, one in pairs(rest, E.add):
            if not is_number(one, 1.0) or bent.prim not in (E.erf, E.tanh):
                continue
            inner = scaled_by(bent.inputs[0])
            if inner is None:
                continue
            if bent.prim is E.erf and inner[0] is x and math.isclose(inner[1], math.sqrt(0.5), rel_tol=1e-3):
                return one_node("Gelu", x)
            if bent.prim is E.tanh and math.isclose(inner[1], math.sqrt(2 / math.pi), rel_tol=1e-3):
                if _is_cubic(inner[0], x):
                    return one_node("Gelu", x, approximate="tanh")
    return None


def _is_cubic(node: Node, x: Node) -> bool:
    """Return whether a node is x + 0.044715 x³."""
    for same, cubic in pairs(node, E.add):
        scaled = scaled_by(cubic)
        if same is not x or scaled is None or not math.isclose(scaled[1], 0.044715, rel_tol=1e-3):
            continue
        for square, last in pairs(scaled[0], E.mul):
            if last is x and square.prim is E.mul and all(i is x for i in square.inputs):
                return True
    return False


def _cut(node: Node, inside: tuple[Primitive, ...]) -> tuple[Node, Node, Node] | None:
    """Return x, the limit, and the comparison of ``select(x ? limit, limit, x)``."""
    if node.prim is not E.SELECT:
        return None
    condition, limit, value = node.inputs
    if condition.prim not in inside or number_of(limit) is None or value.shape != node.shape:
        return None
    x, bound = condition.inputs
    return (x, limit, value) if number_of(bound) == number_of(limit) else None


def _clip_limits(node: Node) -> tuple[Node, Node, Node] | None:
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
    for lower, high in pairs(node, E.minimum):
        for x, low in pairs(lower, E.maximum):
            if number_of(low) is not None and number_of(high) is not None and x.shape == node.shape:
                return x, low, high
    return None


def _relu(node: Node, users: Users) -> Match | None:
    found = _cut(node, (E.le, E.lt))
    if found is None or found[0] is not found[2] or number_of(found[1]) != 0 or not node.dtype.is_floating:
        return None
    return one_node("Relu", found[0])


def _clip(node: Node, users: Users) -> Match | None:
    found = _clip_limits(node)
    if found is None or not node.dtype.is_floating:
        return None
    x, low, high = found
    a, b = number_of(low), number_of(high)
    return Match((x,), lambda w, names: w.emit("Clip", [names[0], w.scalar(a, node), w.scalar(b, node)]))


def _hard_swish(node: Node, users: Users) -> Match | None:
    for x, gate in pairs(node, E.mul):
        found = _clip_limits(gate)
        if found is None or not is_number(found[1], 0.0) or not is_number(found[2], 1.0):
            continue
        for part, half in pairs(found[0], E.add):
            if number_of(half) != 0.5:
                continue
            scaled = scaled_by(part)
            sixth = part.prim is E.div and part.inputs[0] is x and number_of(part.inputs[1]) == 6.0
            if sixth or (scaled is not None and scaled[0] is x and math.isclose(scaled[1], 1 / 6, rel_tol=1e-3)):
                return one_node("HardSwish", x)
    return None


def _leaky_relu(node: Node, users: Users) -> Match | None:
    condition, low, value = node.inputs
    scaled = scaled_by(low)
    if scaled is None or condition.prim not in (E.le, E.lt) or value.shape != node.shape:
        return None
    x, bound = condition.inputs
    if not (scaled[0] is value is x and number_of(bound) == 0 and node.dtype.is_floating):
        return None
    slope = scaled[1]
    return one_node("LeakyRelu", x, alpha=slope)


def _hard_sigmoid(node: Node, users: Users) -> Match | None:
    found = _clip_limits(node)
    if found is None or not node.dtype.is_floating or not (is_number(found[1], 0.0) and is_number(found[2], 1.0)):
        return None
    for part, half in pairs(found[0], E.add):
        term, scaled = number_of(half), _divided(part)
        if term is not None and scaled is not None and scaled[0].shape == node.shape:
            return one_node("HardSigmoid", scaled[0], alpha=scaled[1], beta=term)
    return None


def _below_zero(node: Node) -> tuple[Node, Node] | None:
    """Return x and what is instead of it where it is below 0."""
    if node.prim is not E.SELECT:
        return None
    condition, low, value = node.inputs
    if condition.prim not in (E.le, E.lt) or condition.inputs[0] is not value or not node.dtype.is_floating:
        return None
    return (value, low) if number_of(condition.inputs[1]) == 0 and value.shape == node.shape else None


def _exponential(node: Node) -> tuple[Node, float] | None:
    """Return x and alpha of an exponential linear unit."""
    found = _below_zero(node)
    scaled = None if found is None else scaled_by(found[1]) or (found[1], 1.0)
    if found is None or scaled is None or scaled[0].prim is not E.expm1:
        return None
    inner = scaled[0].inputs[0]
    # Where x is above 0 the exponential is of 0, which no gradient overflows by.
    safe = inner
    if inner.prim is E.SELECT and number_of(inner.inputs[2]) == 0:
        condition, safe, _ = inner.inputs
        if condition.prim not in (E.le, E.lt) or condition.inputs[0] is not safe or number_of(condition.inputs[1]) != 0:
            return None
    return (found[0], scaled[1]) if safe is found[0] else None


def _elu(node: Node, users: Users) -> Match | None:
    found = _exponential(node)
    return None if found is None else one_node("Elu", found[0], alpha=found[1])


def _selu(node: Node, users: Users) -> Match | None:
    scaled = scaled_by(node)
    found = None if scaled is None else _exponential(scaled[0])
    if scaled is None or found is None or len(users[scaled[0]]) > 1:
        return None
    return one_node("Selu", found[0], alpha=found[1], gamma=scaled[1])


def _soft_plus_of(node: Node) -> Node | None:
    """Return x of ``max(x, 0) + log1p(exp(-abs(x)))``, chosen by ``x < 0``."""
    for positive, rest in pairs(node, E.add):
        if positive.prim is not E.SELECT or rest.prim is not E.log1p or rest.inputs[0].prim is not E.exp:
            continue
        low, zero, x = positive.inputs
        chosen = rest.inputs[0].inputs[0]
        if chosen.prim is not E.SELECT or number_of(zero) != 0 or low.prim is not E.lt or low.inputs[0] is not x:
            continue
        same, least, turned = chosen.inputs
        negated = turned.prim is E.neg and turned.inputs[0] is x
        if same is low and least is x and negated and number_of(low.inputs[1]) == 0:
            return x
    return None


def _softplus(node: Node, users: Users) -> Match | None:
    x = _soft_plus_of(node)
    return None if x is None or x.shape != node.shape else one_node("Softplus", x)


def _cut_softplus(node: Node, users: Users) -> Match | None:
    """Match a softplus that is the identity from a number on from which both are equal."""
    condition, value, soft = node.inputs
    x = _soft_plus_of(soft)
    limit = number_of(condition.inputs[1]) if condition.prim in (E.gt, E.ge) else None
    if x is None or limit is None or limit < 17 or not (value is x is condition.inputs[0]) or x.dtype.itemsize > 4:
        return None
    return one_node("Softplus", x)


# Attention and recurrences.


def _attention(node: Node, users: Users) -> Match | None:
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


_GATES = {"lstm": (0, 3, 1, 2), "gru": (1, 0, 2), "tanh": (0,), "relu": (0,)}
_LAYERS = {"lstm": "LSTM", "gru": "GRU", "tanh": "RNN", "relu": "RNN"}


def _recurrence(node: Node, users: Users) -> Match | None:
    """Match a recurrent layer in one direction, whose input is one product."""
    mode, masked = node.params["mode"], node.params["masked"]
    steps, again, bias, first, *rest = node.inputs
    if masked or mode not in _GATES or steps.prim is not matrix_product.matmul or not node.inputs[0].dtype.is_floating:
        return None
    wanted = 3 if mode == "lstm" else 2
    asked = [u.params["index"] for u in users[node] if u.prim is GET_ITEM]
    x, weight = steps.inputs
    if any(i >= wanted for i in asked) or len(weight.shape) != 2 or len(x.shape) != 3:
        return None
    # Quantised weights are constants that lie turned already.
    turned = _is_turned(weight)
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
        weight = weight if turned else w.emit("Transpose", [weight], perm=(1, 0))
        order = _GATES[mode]
        if mode != "gru":
            zeros = w.constant(np.zeros(len(order) * hidden, node.inputs[0].dtype.numpy))
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
        more |= {"activations": ["Relu"]} if mode == "relu" else {}
        found = w.emit(_LAYERS[mode], given, outputs=wanted, hidden_size=int(hidden), direction=back, **more)
        axes = [1] + [0] * (wanted - 1)
        return [w.emit("Squeeze", [name, w.integers([axis])]) for name, axis in zip(found, axes)]

    return Match((x, weight.inputs[0] if turned else weight, again, bias, first, *rest), write)


Pattern = Callable[[Node, Users], Match | None]
_PATTERNS: dict[Primitive, tuple[Pattern, ...]] = {
    attention.attention: (_attention,),
    E.add: (rounded_layer, batch_norm, layer_norm, group_norm, _biased_conv, _gemm, _softplus),
    E.div: (_average,),
    E.minimum: (_clip,),
    E.mul: (_gelu, _gelu_halved, _hard_swish, _selu, rms_norm),
    E.SELECT: (_hard_sigmoid, _clip, _relu, _leaky_relu, _elu, _cut_softplus),
    recurrence.recurrence: (_recurrence,),
    S.RESHAPE: (blocks,),
    dequantize: (rounded,),
    fake_quant: (rounded,),
    quantize: (rounded,),
}
