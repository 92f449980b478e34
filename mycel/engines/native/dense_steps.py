"""Products and convolutions as calls to the dense library.

Operands are given as they lie, whatever their strides; only values repeated by a stride of 0 are copied first. Convolutions write their
images channels-last, and kernels follow that layout; what is a result of the graph they write in row-major order, which the library does faster than a copy would. What the library refuses becomes a host step. A step says what is to be computed (`DenseCall`); the
library's plans are made for actual sizes, with each program.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycel.dtype import uint8
from mycel.engines.native import dense
from mycel.engines.native.depthwise import depthwise_step
from mycel.engines.native.values import View, contiguous_strides, row_major
from mycel.ir.dims import DimLike, hint, is_one, is_zero
from mycel.ir.graph import Node
from mycel.kernel.nest import Buffer

__all__ = ["DenseCall", "dense_step", "work"]

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


def channels_last(buffer: Buffer, shape: tuple[DimLike, ...]) -> View:
    """A view of (N, C, *spatial) with C innermost in memory."""
    n, c, *spatial = shape
    inner = contiguous_strides((*spatial, c))
    size = c
    for d in spatial:
        size = size * d
    return View(buffer, shape, (size, 1, *inner[:-1]))


def _readable(lowering: Any, node: Node) -> View:
    view: View = lowering.view(node)
    if any(hint(s) <= 0 and not is_one(d) for s, d in zip(view.strides, view.shape)):
        view = lowering.copy(view)
    return view


def _skips(node: Node) -> bool:
    """Whether the window is a single position, and leaves some out."""
    p = node.params
    single = all(is_one(d) for d in node.type.shape[2:]) and all(is_zero(pad) for pair in p["padding"] for pad in pair)
    return single and p["groups"] == 1 and any(not is_one(s) for s in p["strides"])


def _gathered(lowering: Any, image: View, node: Node) -> View:
    """The positions that the window meets, channels-last; they are much less work for a product than for the library's strided convolution."""
    shape = (*image.shape[:2], *node.inputs[1].type.shape[2:])
    strides = (*image.strides[:2], *[a * b for a, b in zip(image.strides[2:], node.params["strides"])])
    axes = (0, *range(2, len(shape)), 1)
    met = View(image.buffer, tuple([shape[k] for k in axes]), tuple([strides[k] for k in axes]), image.offset)
    return channels_last(lowering.copy(met).buffer, shape)


def work(node: Node, number: Number = hint) -> int:
    """The floating-point operations of a product or a convolution."""
    a, b = (i.type for i in node.inputs)
    if node.prim.name == "matmul":  # type: ignore[union-attr]
        return 2 * number(node.type.size) * number(a.shape[-1])
    # Every weight meets every position of the image that has the convolution's output channels.
    image, weights = {"conv": (node.type, b), "conv_grad_input": (a, b), "conv_grad_weight": (b, node.type)}[
        node.prim.name  # type: ignore[union-attr]
    ]
    return 2 * number(weights.size) * number(image.size) // number(image.shape[1])


@dataclass
class DenseCall:
    """A product or convolution with the places of its operands and its result."""

    node: Node
    inputs: list[View]
    out: View
    gathered: bool = False

    def plan(self, number: Number) -> tuple[dense.Plan, dict[str, View]]:
        """The library's plan for actual sizes, and its buffers by name; small work runs on one thread, which costs less than waking others.

        Raises Unsupported where the library refuses.
        """
        name = self.node.prim.name  # type: ignore[union-attr]
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
                    strides=tuple([1 if self.gathered else number(s) for s in p["strides"]]),
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
    name = node.prim.name  # type: ignore[union-attr]
    if name != "matmul" and depthwise_step(lowering, node, inputs):
        return
    buffer = Buffer(node.type.dtype, node.type.size, name)
    packed = name in ("matmul", "conv_grad_weight") or node in lowering.results
    out = row_major(buffer, node.type.shape) if packed else channels_last(buffer, tuple(node.type.shape))
    gathered = name == "conv_grad_weight" and _skips(node)
    if gathered:
        inputs[0] = _gathered(lowering, inputs[0], node)
    call = DenseCall(node, inputs, out, gathered)
    try:
        call.plan(hint)
    except dense.Unsupported as refusal:
        lowering.host(node, str(refusal))
        return
    lowering.step("dense", [v.buffer for v in inputs], [buffer], call, node)
    lowering.bind(node, [out])


_CONVOLUTIONS: dict[str, Any] = {
    "conv": (dense.conv_forward, "src", "weights", "dst"),
    "conv_grad_input": (dense.conv_backward_data, "diff_dst", "weights", "diff_src"),
    "conv_grad_weight": (dense.conv_backward_weights, "src", "diff_dst", "diff_weights"),
}
