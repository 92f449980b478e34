"""Weight-only quantisation, and dynamic quantisation of activations (``values="dynamic"``).

`quantise_weights` keeps floats for values. Weights of products and convolutions are levels with a
scale for each channel, or in products for each group of inputs of each channel, and become floats
where they are read; levels of 4 bits or fewer lie two in a byte. With ``values="dynamic"`` values
are rounded too, each row by its own largest magnitude, and products are sums of integers.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, at
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.base import constant
from mycel._src.compiler.prims.convolution.conv import conv
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.compiler.prims.neural.quantisation import dequantize, int_matmul, quantize
from mycel._src.compiler.prims.reduce import reduce_max
from mycel._src.compiler.transforms.quantise.batch_norm_folding import fold_normalisations
from mycel._src.compiler.transforms.quantise.fake_quantisation import weights_of
from mycel._src.compiler.transforms.quantise.graph_freezing import array_of, literal
from mycel._src.compiler.transforms.quantise.integer_lowering import Lowered
from mycel._src.compiler.transforms.quantise.scales import levels_of, weight_scale
from mycel._src.foundation import arguments
from mycel._src.foundation.dtype import float32, int32
from mycel._src.foundation.errors import Unsupported
from mycel.formats.exporting import LoadedGraph
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.post_training import Batches
from mycel.quantisation.quantised_network import Quantised, Report, constant_bytes, float_model, run
from mycel.quantisation.weight_rounding import gptq

__all__ = ["quantise_weights"]

Array = np.ndarray[Any, Any]
METHODS = ("nearest", "gptq")
VALUES = ("float", "dynamic")


def quantise_weights(
    net: Any,
    data: Any,
    *,
    bits: int = 8,
    group_size: int | None = None,
    method: str = "nearest",
    values: str = "float",
) -> Quantised:
    """Return a network whose weights have few bits.

    Args:
        net (Cell | Callable[..., Any]): As for `quantise`.
        data (Tensor | Iterable[Tensor | tuple[Tensor, ...]]): As for `quantise`; its values count
            for "gptq" only, else their types.
        bits (int): Bits of weights, from 2 to 8; those of up to 4 bits lie two in a byte. Default:
            8.
        group_size (int | None): How many inputs of a product have a scale together (None: all of a
            channel). Default: None.
        method (str): "nearest", or "gptq" for products, which needs data of at least some rows.
            Default: "nearest".
        values (str): "float", or "dynamic": products round each row of what they read to 8 bits.
            Default: "float".

    Returns:
        Quantised: The network.

    Raises:
        ValueError: For arguments that mean nothing.
        Unsupported, CompileError: For networks that are no graph.

    Examples:
        >>> import mycel as ms
        >>> from mycel.quantisation import quantise_weights
        >>> ms.set_seed(0)
        >>> net = ms.nn.Dense(64, 32)
        >>> x = ms.ops.rand(4, 64)
        >>> small = quantise_weights(net, x, bits=4, group_size=32)
        >>> bool(ms.ops.abs(small(x) - net(x)).max() < 0.1)
        True
        >>> small.report.bytes < 0.3 * small.report.float_bytes
        True
    """
    if type(bits) is not int or not 2 <= bits <= 8:
        raise ValueError(f"quantise_weights: bits must be an int from 2 to 8, not {bits!r}")
    if group_size is not None and (type(group_size) is not int or group_size < 1):
        raise ValueError(f"quantise_weights: group_size must be None or an int of at least 1, not {group_size!r}")
    arguments.one_of("quantise_weights", "method", method, METHODS)
    arguments.one_of("quantise_weights", "values", values, VALUES)
    if values == "dynamic" and group_size is not None:
        raise ValueError("quantise_weights: dynamic values go with whole channels; leave group_size out")
    batches = Batches(data)
    model = float_model(net, batches.examples())
    model.graph = fold_normalisations(model.graph)
    linear = [n for n in weights_of(model.graph) if array_of(n.inputs[1]) is not None]
    if not linear:
        raise Unsupported("quantise_weights: the network has no product or convolution with weights of its own")
    hessians = _hessians(model, linear, batches) if method == "gptq" else {}
    change = _Change(bits, group_size, values, hessians)
    image: dict[Node, Node] = {i: i for i in model.graph.inputs}
    chosen = set(linear)
    for node in model.graph.nodes:
        given = tuple([image[i] for i in node.inputs])
        if node in chosen:
            with at(node.where):
                image[node] = change.of(node, given)
            continue
        same = all(a is b for a, b in zip(given, node.inputs))
        image[node] = node if same else Node(node.prim, given, node.params, node.type, node.where)
    graph = Graph(model.graph.inputs, [image[o] for o in model.graph.outputs], model.graph.name)
    report = Report(constant_bytes(graph), constant_bytes(model.graph), [], [bits] * len(linear))
    return Quantised(model, Lowered(graph), LoadedGraph(replace(model, graph=graph)), report)


def _hessians(model: Model, linear: list[Node], batches: Batches) -> dict[Node, Array]:
    """Return X'X of what each product reads, in float64."""
    products = [n for n in linear if n.prim is matmul]
    found = {n: np.zeros((n.inputs[1].shape[0],) * 2) for n in products}
    network = run(model, [n.inputs[0] for n in products])
    for row in batches:
        for node, value in zip(products, network(*row) if products else ()):
            x = value.asnumpy().astype(np.float64).reshape(-1, value.shape[-1])
            found[node] += x.T @ x
    return found


class _Change:
    """The replacement of operations by those with weights of few bits.

    `bits`, `group` and `values` are arguments of `quantise_weights`; `hessians` are there for GPTQ.
    """

    def __init__(self, bits: int, group: int | None, values: str, hessians: dict[Node, Array]) -> None:
        self.bits, self.group, self.values, self.hessians = bits, group, values, hessians

    def of(self, node: Node, given: tuple[Node, ...]) -> Node:
        """Return what computes a convolution or product of `given` operands."""
        weight = array_of(node.inputs[1])
        assert weight is not None and node.prim is not None
        if node.prim is conv:
            scale = weight_scale(weight, 0, self.bits)
            return conv(given[0], self.real(levels_of(weight, scale), scale.size), **node.params)
        count = weight.shape[0]
        size = min(self.group or count, count)
        if count % size:
            raise ValueError(f"quantise_weights: groups of {size} do not divide the {count} inputs of {node.where}")
        if node in self.hessians:
            levels, scales = gptq(weight, self.hessians[node], self.bits, size)
        else:
            grouped = weight.reshape(count // size, size, -1)
            largest = np.abs(grouped).max(1, keepdims=True)
            scale = weight_scale(grouped, -1, self.bits, largest)
            levels, scales = levels_of(grouped, scale).reshape(weight.shape), scale.size.reshape(count // size, -1)
        if self.values == "dynamic":
            return _dynamic(given[0], literal(levels), scales)
        grouped = levels.reshape(count // size, size, -1)
        real = self.real(grouped, scales[:, None])
        return matmul(given[0], S.reshape(real, weight.shape))

    def real(self, levels: Array, size: Array) -> Node:
        """Return the floats that levels stand for, which are computed where they are read."""
        held = literal(levels) if self.bits > 4 or levels.size % 2 else _unpacked(levels)
        return dequantize(held, literal(size.astype(np.float32)), constant(0.0, float32))


def _unpacked(levels: Array) -> Node:
    """Return levels of 4 bits of which two lie in a byte: the first half low, the second high."""
    flat = levels.reshape(2, -1)
    packed = literal(((flat[1].astype(np.int16) << 4) | (flat[0] & 15)).astype(np.int8))
    # Moved left and back, the highest of four bits is the sign.
    low = E.shift_right(E.shift_left(packed, 4), 4)
    return S.reshape(S.concat([low, E.shift_right(packed, 4)], 0), levels.shape)


def _dynamic(x: Node, weight: Node, scales: Array) -> Node:
    """Return a product whose rows of `x` are rounded by their own largest magnitude."""
    largest = reduce_max(E.abs_(x), axes=(x.type.rank - 1,), keepdims=True)
    size = E.maximum(E.div(largest, 127.0), 2.0**-100)
    levels = quantize(x, size, constant(0.0, float32), low=-127, high=127, ties="even", dtype=weight.dtype)
    total = int_matmul(levels, weight, a_zero=0, b_zero=0)
    assert total.dtype is int32
    return E.mul(dequantize(total, literal(scales.astype(np.float32)), constant(0.0, float32)), size)
