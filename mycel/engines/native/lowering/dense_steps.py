"""Products and convolutions as calls to the dense library.

Operands are given as they lie, whatever their strides; only values repeated by a stride of 0 are copied first. Convolutions write their
images channels-last, and kernels follow that layout; what is a result of the graph they write in row-major order, which the library does faster than a copy would. What the library refuses becomes a host step. A step says what is to be computed (`DenseCall`); the
library's plans are made for actual sizes, with each program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycel.base.dtype import uint8
from mycel.engines.native.kernels.depthwise import depthwise_step
from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.kernels.views import View, contiguous_strides, row_major
from mycel.engines.native.lowering.dense_narrow import narrow_gradient
from mycel.engines.native.lowering.dense_strides import channels_last, gathered, skips, spread
from mycel.engines.native.onednn import binding as dense
from mycel.engines.reports import work
from mycel.ir.dims import DimLike, hint, is_one, product
from mycel.ir.graph import Node

__all__ = ["DenseCall", "dense_step"]

Number = Callable[[DimLike], int]

# Below this many operations, about 20 microseconds of one core, a second thread gains less than it costs.
SMALL = 4_000_000


def operand(view: View, number: Number = hint) -> dense.Operand:
    """A view as the dense library wants it described; dimensions of size 1 get the stride they would have."""
    shape = tuple([number(d) for d in view.shape])
    strides: list[Any] = [number(s) for s in view.strides]
    packed = contiguous_strides(shape)
    for k, d in enumerate(shape):
        if d == 1:
            strides[k] = packed[k] if k == len(shape) - 1 else max(strides[k + 1] * shape[k + 1], 1)
    return dense.Operand(shape, tuple(strides), view.buffer.dtype.name)


def _readable(lowering: Any, node: Node) -> View:
    view: View = lowering.view(node)
    if any(hint(s) <= 0 and not is_one(d) for s, d in zip(view.strides, view.shape)):
        view = lowering.copy(view)
    return view


@dataclass
class DenseCall:
    """A product or convolution with the places of its operands and its result; `unstrided`: the strides are seen to by other steps."""

    node: Node
    inputs: list[View]
    out: View
    unstrided: bool = False

    def plan(self, number: Number) -> tuple[dense.Plan, dict[str, View]]:
        """The library's plan for actual sizes, and its buffers by name; small work runs on one thread, which costs less than waking others.

        Raises Unsupported where the library refuses.
        """
        name = self.node.op
        operands = [operand(v, number) for v in (*self.inputs, self.out)]
        with dense.threads(1 if work(self.node, number) < SMALL else dense.max_threads()):
            if name == "matmul":
                plan = dense.matmul(operands[0], operands[1], operands[2])
                names: tuple[str, ...] = ("a", "b", "out")
            else:
                make, names = _CONVOLUTIONS[name][0], _CONVOLUTIONS[name][1:]
                p = self.node.params
                plan = make(
                    *operands,
                    strides=tuple([1 if self.unstrided else number(s) for s in p["strides"]]),
                    padding_low=tuple([number(low) for low, _ in p["padding"]]),
                    padding_high=tuple([number(high) for _, high in p["padding"]]),
                    dilation=tuple([number(d) for d in p["dilation"]]),
                    groups=p["groups"],
                )
        views = dict(zip(names, (*self.inputs, self.out)))
        views.update({t: row_major(Buffer(uint8, size, t), (size,)) for t, size in plan.temporaries.items()})
        return plan.copy(), views


def dense_step(lowering: Any, node: Node) -> None:
    """Add the step that computes a product or a convolution."""
    inputs = [_readable(lowering, i) for i in node.inputs]
    name = node.op
    if name != "matmul" and depthwise_step(lowering, node, inputs):
        return
    if narrow_gradient(lowering, node, inputs):
        return
    buffer = Buffer(node.type.dtype, node.type.size, name)
    lay = row_major if name in ("matmul", "conv_grad_weight") or node in lowering.results else channels_last
    out = target = lay(buffer, tuple(node.type.shape))
    unstrided = skips(node)
    if unstrided and name != "conv_grad_input":
        inputs[0] = gathered(lowering, inputs[0], node)
    elif unstrided:
        met = (*node.type.shape[:2], *node.inputs[0].type.shape[2:])
        out = lay(Buffer(node.type.dtype, product(met), name), met)
    call = DenseCall(node, inputs, out, unstrided)
    try:
        call.plan(hint)
    except dense.Unsupported as refusal:
        lowering.host(node, str(refusal))
        return
    lowering.step("dense", [v.buffer for v in inputs], [out.buffer], call, node)
    if out is not target:
        spread(lowering, node, out, target)
    lowering.bind(node, [target])


_CONVOLUTIONS: dict[str, Any] = {
    "conv": (dense.conv_forward, "src", "weights", "dst"),
    "conv_grad_input": (dense.conv_backward_data, "diff_dst", "weights", "diff_src"),
    "conv_grad_weight": (dense.conv_backward_weights, "src", "diff_dst", "diff_weights"),
}
