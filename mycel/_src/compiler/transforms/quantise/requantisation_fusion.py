"""Pattern matching of quantised layers: integer products, bias and requantisation as one primitive.

    requantize(int_conv(x, w) + bias, multiplier, shift)      rescaled_conv
    requantize(int_matmul(x, w) + bias, multiplier, shift)    the same of an image of one place
    int_matmul(x, w), where nothing rescales it               the same, times 1, with 32 bits
    requantize(window_sum(x - zero), multiplier, shift)       rescaled_pool, also by position
    requantize of the sum of two values, each rescaled        rescaled_sum

Weights, bias, multiplier and shift are constants, and sums are used nowhere else. A row of a matrix
is an image with one place and its columns as channels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution.window import window_sum
from mycel._src.compiler.prims.neural.quantisation import int_conv, int_matmul, requantize
from mycel._src.compiler.prims.neural.requantised_layers import rescaled_conv, rescaled_pool, rescaled_sum
from mycel._src.compiler.prims.reduce import reduce_sum
from mycel._src.compiler.transforms.graph_rewriting import Visit, rewrite, use_counts
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.foundation.dtype import DType, int8, int32

__all__ = ["with_rescaled"]

Array = np.ndarray[Any, Any]
_WORD = (-(1 << 31), (1 << 31) - 1)


def with_rescaled(graph: Graph, averages: bool = True) -> Graph:
    """Return the graph with each layer of levels as one primitive; the graph itself without one.

    Without `averages` sums over windows stay as they are.
    """

    def start(inner: Graph) -> Visit:
        uses, results = use_counts(inner), set(inner.outputs)

        def visit(old: Node, new: Node) -> Node:
            if old.prim is not requantize:
                return new
            chain = [old.inputs[0]]
            if chain[0].prim is E.add:
                chain.append(next((i for i in chain[0].inputs if array_of(i) is None), chain[0]))
            if any(uses[n] != 1 or n in results for n in chain):
                return new
            with at(old.where):
                return _layer(new) or (_pool(new) if averages else None) or _sum(new) or new

        return visit

    return rewrite(rewrite(graph, start), lambda inner: _product)


def _product(old: Node, new: Node) -> Node:
    """Return a product of bytes with constants as a layer whose levels are its sums."""
    if new.prim is not int_matmul or new.inputs[0].dtype is not int8 or new.params["b_zero"]:
        return new
    array = array_of(new.inputs[1])
    sizes = all(type(d) is int for d in new.shape)
    if array is None or array.dtype != np.int8 or array.ndim != 2 or not array.size or not sizes:
        return new
    with at(old.where):
        once = {"zero": 0, "low": _WORD[0], "high": _WORD[1], "rounding": "single", "dtype": int32}
        numbers = [literal(np.array(v, np.int32)) for v in (1 << 30, 1)]
        return _layer(requantize(new, *numbers, **once), int32) or new


def _layer(node: Node, dtype: DType = int8) -> Node | None:
    """Return the layer that a rescaled sum is, with a result of `dtype`; None where it is none."""
    total, bias = node.inputs[0], np.zeros((), np.int32)
    if total.prim is E.add:
        for base, other in (total.inputs, total.inputs[::-1]):
            value = array_of(other)
            if value is not None:
                total, bias = base, value
                break
    if total.prim not in (int_conv, int_matmul) or node.params["dtype"] is not dtype:
        return None
    x, weight = total.inputs
    array = array_of(weight)
    if array is None or not array.size or total.prim is int_matmul and (array.ndim != 2 or total.params["b_zero"]):
        return None
    count = array.shape[0 if total.prim is int_conv else 1]
    spread = (count,) + (1,) * (total.type.rank - 2 if total.prim is int_conv else 0)
    numbers = []
    for value in (bias, array_of(node.inputs[1]), array_of(node.inputs[2])):
        if value is None or not _is_by_channel(value, spread):
            return None
        numbers.append(literal(np.array(np.broadcast_to(value, spread).reshape(count), np.int32)))
    last = {k: v for k, v in node.params.items() if k != "zero"}
    last["result_zero"] = node.params["zero"]
    if total.prim is int_conv:
        return rescaled_conv(x, weight, *numbers, **total.params, **last)
    if any(type(d) is not int for d in x.shape):
        return None
    rows = S.reshape(x, (int(np.prod(x.shape[:-1])), array.shape[0], 1, 1))
    turned = literal(np.array(array.T.reshape(count, -1, 1, 1), order="C"), weight)
    plain = {"strides": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    made = rescaled_conv(rows, turned, *numbers, **plain, zero=total.params["a_zero"], **last)
    return S.reshape(made, (*x.shape[:-1], count))


def _pool(node: Node) -> Node | None:
    """Return the sum over windows that a rescaled sum is; None where it is none."""
    total, *numbers = node.inputs
    arrays = [array_of(n) for n in numbers]
    if node.params["dtype"] is not int8 or any(a is None for a in arrays):
        return None
    single = all(a is not None and a.size == 1 for a in arrays)
    x = total.inputs[0] if total.prim in (window_sum, reduce_sum) else total
    zero = 0
    if x.prim is E.sub and (value := array_of(x.inputs[1])) is not None and value.size == 1:
        x, zero = x.inputs[0], int(value.reshape(-1)[0])
    if x.prim is not E.cast or x.inputs[0].dtype is not int8 or not -128 <= zero <= 127:
        return None
    x = x.inputs[0]
    last = {k: v for k, v in node.params.items() if k != "zero"}
    last |= {"result_zero": node.params["zero"], "zero": zero}
    if total.prim is window_sum and not single:
        # A number for each position.
        places = total.shape[2:]
        if any(type(d) is not int for d in places) or total.type is not node.type.with_dtype(int32):
            return None
        if not all(_is_by_position(a, places) for a in arrays if a is not None):
            return None
        wide = [np.broadcast_to(a, (1, 1, *places)).reshape(places) for a in arrays if a is not None]
        return rescaled_pool(x, *[literal(np.array(a, np.int32)) for a in wide], **total.params, **last)
    if not single:
        return None
    scalars = [literal(np.array(a, np.int32).reshape(())) for a in arrays]
    if total.prim is window_sum:
        return rescaled_pool(x, *scalars, **total.params, **last)
    if total.prim is not reduce_sum or x.type.rank != 4 or set(total.params["axes"]) != {2, 3}:
        return None
    if any(type(d) is not int or not d for d in x.shape):
        return None
    made = rescaled_pool(x, *scalars, window=x.shape[2:], strides=(1, 1), padding=((0, 0), (0, 0)), **last)
    return made if total.params["keepdims"] else S.reshape(made, x.shape[:2])


def _sum(node: Node) -> Node | None:
    """Return the sum of two values of bytes that a rescaled sum is; None where it is none."""
    total, p = node.inputs[0], node.params
    numbers = [_scalar(n) for n in node.inputs[1:]]
    if total.prim is not E.add or p["dtype"] is not int8 or None in numbers:
        return None
    found = [_part(x, p["rounding"]) for x in total.inputs]
    if any(f is None for f in found):
        return None
    (a, left, room), (b, right, other) = [f for f in found if f is not None]
    if room != other or not 0 <= room <= 22 or a.shape != b.shape or a.shape != node.shape:
        return None
    last = {k: v for k, v in p.items() if k != "zero"}
    return rescaled_sum(a, b, left=left, right=right, last=tuple(numbers), room=room, result_zero=p["zero"], **last)


def _part(node: Node, rounding: str) -> tuple[Node, tuple[int, ...], int] | None:
    """Return the bytes, the numbers and the room of an operand of such a sum; None for others."""
    p = node.params
    if node.prim is not requantize or p["rounding"] != rounding or (p["low"], p["high"], p["zero"]) != (*_WORD, 0):
        return None
    moved, *others = node.inputs
    numbers = [_scalar(n) for n in others]
    if moved.prim is not E.shift_left or None in numbers:
        return None
    x, room = moved.inputs[0], _scalar(moved.inputs[1])
    zero: int | None = 0
    if x.prim is E.sub:
        x, zero = x.inputs[0], _scalar(x.inputs[1])
    if room is None or zero is None or not -128 <= zero <= 127 or x.prim is not E.cast or x.inputs[0].dtype is not int8:
        return None
    return x.inputs[0], (zero, *[n for n in numbers if n is not None]), room


def _scalar(node: Node) -> int | None:
    array = array_of(node)
    return None if array is None or array.size != 1 else int(array.reshape(-1)[0])


def _is_by_position(value: Array, places: tuple[Any, ...]) -> bool:
    """Return whether a constant has a number for each position of an image, or one for all."""
    rank = len(places)
    return value.size == 1 or (value.shape[-rank:] == places and all(d == 1 for d in value.shape[:-rank]))


def _is_by_channel(value: Array, spread: tuple[int, ...]) -> bool:
    """Return whether a constant has a number for each channel, or one for all."""
    return value.ndim <= len(spread) and all(d in (1, s) for d, s in zip(value.shape[::-1], spread[::-1]))
