"""Export of quantised networks to ONNX in QDQ form (QuantizeLinear and DequantizeLinear).

A value that is rounded to the levels of a scale is quantised and dequantised at once; a constant is
stored as its integers, in a type of 4, 8 or 16 bits, and dequantised. Runtimes fuse these with the
operator between them into one of integers. For that a bias is stored as integers as well: of 32
bits, and of the product of the scales of what its layer reads and of its weights.

What has no such form, as halves that are rounded away from zero, is written by its definition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import matrix_product
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.convolution import conv
from mycel._src.compiler.prims.neural.quantisation import dequantize, fake_quant, quantize
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, computed
from mycel._src.foundation.dtype import DType, float32
from mycel.formats.onnx.export.operand_matching import Users, pairs
from mycel.formats.onnx.export.writer import Match, Writer, padding_of

__all__ = ["blocks", "rounded", "rounded_layer"]

Array = np.ndarray[Any, Any]
_KINDS = {
    "int4": (-8, 7),
    "int8": (-128, 127),
    "uint8": (0, 255),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
}
# The set of operators from which on types of 4 and 16 bits are there, and blocks.
_SMALL = 21


class _Scale(NamedTuple):
    """What levels stand for: a size and a zero point for each entry of `axis`, or one (None)."""

    sizes: Array
    zeros: Array
    axis: int | None


def _scale(size: Node, zero: Node, rank: int) -> _Scale | None:
    """Return the scale that two constants are for a tensor of `rank` axes; None for other nodes."""
    sizes, zeros = array_of(size), array_of(zero)
    if sizes is None or zeros is None or sizes.dtype != np.float32 or (np.rint(zeros) != zeros).any():
        return None
    if sizes.size == 1 == zeros.size:
        return _Scale(sizes.reshape(()), zeros.reshape(()), None)
    shape = np.broadcast_shapes(sizes.shape, zeros.shape)
    wide = [k for k, n in enumerate(shape) if n != 1]
    if len(wide) != 1:
        return None
    sizes, zeros = (np.broadcast_to(v, shape).reshape(-1) for v in (sizes, zeros))
    return _Scale(sizes, zeros, wide[0] + rank - len(shape))


def _kind(low: int, high: int, kinds: tuple[str, ...]) -> str | None:
    return next((k for k in kinds if _KINDS[k][0] <= low and high <= _KINDS[k][1]), None)


def _ends(w: Writer, scale: _Scale, kind: str) -> list[str]:
    """Write the sizes and zero points of a scale."""
    if kind in ("int4", "int16", "uint16"):
        w.need_operators(_SMALL)
    return [w.constant(np.asarray(scale.sizes)), w.packed(np.asarray(scale.zeros), kind)]


def _axis(scale: _Scale) -> dict[str, Any]:
    return {} if scale.axis is None else {"axis": scale.axis}


def _levels(w: Writer, x: str, scale: _Scale, low: int, high: int, kind: str) -> str:
    """Write the levels of a value."""
    made = str(w.emit("QuantizeLinear", [x, *_ends(w, scale, kind)], **_axis(scale)))
    if (low, high) != _KINDS[kind]:
        made = str(w.emit("Clip", [made, *[w.constant(np.asarray(v, kind)) for v in (low, high)]]))
    return made


def _reals(w: Writer, levels: str, scale: _Scale, kind: str, **more: Any) -> str:
    return str(w.emit("DequantizeLinear", [levels, *_ends(w, scale, kind)], **_axis(scale), **more))


def rounded(node: Node, users: Users) -> Match | None:
    """Match a value or constant that is rounded to levels, quantised, or dequantised."""
    x, size, zero = node.inputs
    found = _scale(size, zero, len(x.shape)) if isinstance(x.type, TensorType) else None
    if found is None:
        return None
    scale: _Scale = found
    if scale.axis is not None and x.shape[scale.axis] != scale.sizes.size:
        return None
    if node.prim is dequantize:
        return _dequantized(node, scale)
    low, high = node.params["low"], node.params["high"]
    array = array_of(x)
    if node.params["ties"] != "even" or x.dtype is not float32:
        return None
    if node.prim is quantize:
        name = node.dtype.name
        return Match((x,), lambda w, names: _levels(w, names[0], scale, low, high, name))
    if array is not None:
        held = _held(array, scale, low, high)
        return None if held is None else Match((), lambda w, names: _constant(w, *held, scale))
    kind = _kind(low, high, ("int8", "uint8", "int16", "uint16"))
    if kind is None:
        return None
    if kind == "int8":
        # The same levels without a sign, for which runtimes have the kernels on every processor.
        kind, low, high, scale = "uint8", low + 128, high + 128, scale._replace(zeros=scale.zeros + 128)
    return Match((x,), lambda w, names: _reals(w, _levels(w, names[0], scale, low, high, kind), scale, kind))


def _held(array: Array, scale: _Scale, low: int, high: int) -> tuple[Array, str] | None:
    """Return the levels of a constant, and their type."""
    form = [-1 if k == scale.axis else 1 for k in range(array.ndim)]
    sizes, zeros = (v.reshape(form) if scale.axis is not None else v for v in scale[:2])
    kind = _kind(low, high, ("int4", "int8", "uint8", "int16", "uint16"))
    if kind is None:
        return None
    return np.clip(np.rint(array / sizes) + zeros, low, high).astype(np.int32), kind


def _constant(w: Writer, levels: Array, kind: str, scale: _Scale, **more: Any) -> str:
    return _reals(w, w.packed(levels, kind), scale, kind, **more)


def _known(node: Node) -> Array | None:
    """Return the value of a node that depends on constants alone."""
    return array_of(computed([node], [])[0])


def _dequantized(node: Node, scale: _Scale) -> Match | None:
    kind: DType = node.inputs[0].dtype
    array = _known(node.inputs[0])
    if array is None:
        return Match((node.inputs[0],), lambda w, names: _reals(w, names[0], scale, kind.name))
    name = _fitting(array, node.inputs[0])
    return Match((), lambda w, names: _constant(w, array, name, scale))


def _fitting(array: Array, node: Node) -> str:
    """Return the type of constant levels: of 4 bits where two lie in a byte, else their own."""
    packed = node.prim is S.RESHAPE and node.inputs[0].prim is S.CONCAT
    low, high = int(array.min(initial=0)), int(array.max(initial=0))
    return "int4" if packed and _KINDS["int4"][0] <= low and high <= _KINDS["int4"][1] else node.dtype.name


def blocks(node: Node, users: Users) -> Match | None:
    """Match weights of a product of which groups of rows have scales of their own."""
    real = node.inputs[0]
    if real.prim is not dequantize or len(real.shape) != 3 or len(node.shape) != 2:
        return None
    levels, size, zero = real.inputs
    array, sizes, zeros = _known(levels), array_of(size), array_of(zero)
    if array is None or sizes is None or zeros is None or zeros.any():
        return None
    groups, rows, columns = array.shape
    if sizes.shape != (groups, 1, columns) or node.shape != (groups * rows, columns):
        return None
    kind, flat = _fitting(array, levels), array.reshape(node.shape)
    if groups == 1:
        line = _Scale(sizes.reshape(-1), np.zeros(columns), 1)
        return Match((), lambda w, names: _constant(w, flat, kind, line))
    scale = _Scale(sizes.reshape(groups, columns), np.zeros((groups, columns)), 0)

    def write(w: Writer, names: list[str]) -> str:
        w.need_operators(_SMALL)
        return _constant(w, flat, kind, scale, block_size=rows)

    return Match((), write)


def rounded_layer(node: Node, users: Users) -> Match | None:
    """Match a convolution or product of rounded values and weights with a constant bias."""
    for layer, offset in pairs(node, E.add):
        bias = array_of(offset)
        if bias is None or layer.prim not in (conv.conv, matrix_product.matmul) or len(users[layer]) > 1:
            continue
        x, weight = layer.inputs
        image = layer.prim is conv.conv
        levels = x.prim in (fake_quant, dequantize) and weight.prim is fake_quant
        if not levels or layer.shape != node.shape:
            continue
        of_x, of_weight = (_scale(v.inputs[1], v.inputs[2], len(v.shape)) for v in (x, weight))
        channel = 0 if image else 1
        if of_x is None or of_x.axis is not None or of_weight is None or of_weight.axis not in (None, channel):
            continue
        count = weight.shape[channel]
        if len(weight.shape) != (len(node.shape) if image else 2) or (not image and len(node.shape) != 2):
            continue
        if bias.size not in (1, count) or (bias.size == count > 1 and not _is_line(bias, node, image)):
            continue
        sizes = np.broadcast_to(of_weight.sizes.astype(np.float64) * float(of_x.sizes), (count,))
        whole = np.rint(np.broadcast_to(bias.reshape(-1), (count,)) / sizes)
        if (np.abs(whole) >= 1 << 31).any():
            continue
        return _layer(layer, x, weight, whole, sizes.astype(np.float32))
    return None


def _is_line(bias: Array, node: Node, image: bool) -> bool:
    axis = 1 if image else len(node.shape) - 1
    offset = axis - (len(node.shape) - bias.ndim)
    return 0 <= offset < bias.ndim and bias.shape[offset] == bias.size


def _layer(layer: Node, x: Node, weight: Node, levels: Array, sizes: Array) -> Match | None:
    params = layer.params
    pads = padding_of(params["padding"]) if layer.prim is conv.conv else []
    if pads is None:
        return None

    def write(w: Writer, names: list[str]) -> str:
        scale = _Scale(sizes, np.zeros(sizes.shape), 0)
        given = [*names, _constant(w, levels, "int32", scale)]
        if layer.prim is matrix_product.matmul:
            return str(w.emit("Gemm", given))
        made = {"strides": params["strides"], "pads": pads, "dilations": params["dilation"]}
        return str(w.emit("Conv", given, group=int(params["groups"]), **made))

    return Match((x, weight), write)
