"""Products and convolutions as calls to the dense library.

Operands are given as they lie, whatever their strides; only values repeated by a stride of 0 are copied first. Convolutions write their
images channels-last, and kernels follow that layout. What the library refuses becomes a generated nest or a host step.
"""

from __future__ import annotations

from typing import Any

from mycel.dtype import uint8
from mycel.engines.native import dense
from mycel.engines.native.values import View, contiguous_strides, row_major
from mycel.ir.graph import Node
from mycel.kernel.nest import Buffer

__all__ = ["dense_step", "work"]

# Below this many operations, about 20 microseconds of one core, a second thread gains less than it costs.
SMALL = 4_000_000


def operand(view: View) -> dense.Operand:
    """A view as the dense library wants it described; dimensions of size 1 get the stride they would have."""
    strides = list(view.strides)
    packed = contiguous_strides(view.shape)
    for k, d in enumerate(view.shape):
        if d == 1:
            strides[k] = packed[k] if k == len(view.shape) - 1 else max(strides[k + 1] * view.shape[k + 1], 1)
    return dense.Operand(tuple(view.shape), tuple(strides), view.buffer.dtype.name)


def channels_last(buffer: Buffer, shape: tuple[int, ...]) -> View:
    """A view of (N, C, *spatial) with C innermost in memory."""
    n, c, *spatial = shape
    inner = contiguous_strides((*spatial, c))
    size = c
    for d in spatial:
        size *= d
    return View(buffer, shape, (size, 1, *inner[:-1]))


def _readable(lowering: Any, node: Node) -> View:
    view: View = lowering.view(node)
    if any(s <= 0 and d > 1 for s, d in zip(view.strides, view.shape)):
        view = lowering.copy(view)
    return view


def work(node: Node) -> int:
    """The floating-point operations of a product or a convolution."""
    a, b = (i.type for i in node.inputs)
    if node.prim.name == "matmul":  # type: ignore[union-attr]
        return 2 * int(node.type.size) * int(a.shape[-1])
    # Every weight meets every position of the image that has the convolution's output channels.
    image, weights = {"conv": (node.type, b), "conv_grad_input": (a, b), "conv_grad_weight": (b, node.type)}[
        node.prim.name  # type: ignore[union-attr]
    ]
    return 2 * int(weights.size) * int(image.size) // int(image.shape[1])


def _plan(node: Node, inputs: list[View], buffer: Buffer) -> tuple[dense.Plan, dict[str, View], View]:
    """The library's plan, its buffers by name, and the result."""
    shape = tuple(node.type.shape)
    p = node.params
    if node.prim.name == "matmul":  # type: ignore[union-attr]
        out = row_major(buffer, shape)
        return (
            dense.matmul(operand(inputs[0]), operand(inputs[1]), operand(out)),
            {"a": inputs[0], "b": inputs[1], "out": out},
            out,
        )
    make, first, second, third = _CONVOLUTIONS[node.prim.name]  # type: ignore[union-attr]
    out = row_major(buffer, shape) if third == "diff_weights" else channels_last(buffer, shape)
    plan = make(
        *map(operand, (*inputs, out)),
        strides=p["strides"],
        padding_low=tuple(low for low, _ in p["padding"]),
        padding_high=tuple(high for _, high in p["padding"]),
        dilation=p["dilation"],
        groups=p["groups"],
    )
    return plan, {first: inputs[0], second: inputs[1], third: out}, out


def dense_step(lowering: Any, node: Node) -> None:
    """Add the calls that compute a product or a convolution; small ones run on one thread, which costs less than waking others."""
    inputs = [_readable(lowering, i) for i in node.inputs]
    buffer = Buffer(node.type.dtype, int(node.type.size), node.prim.name)  # type: ignore[union-attr]
    try:
        with dense.threads(1 if work(node) < SMALL else dense.max_threads()):
            plan, views, out = _plan(node, inputs, buffer)
    except dense.Unsupported as refusal:
        lowering.host(node, str(refusal))
        return
    scratch = {t: Buffer(uint8, size, t) for t, size in plan.temporaries.items()}
    views |= {t: row_major(b, (b.size,)) for t, b in scratch.items()}
    lowering.step("dense", [v.buffer for v in inputs], [buffer, *scratch.values()], (plan.copy(), views), node)
    lowering.bind(node, [out])


_CONVOLUTIONS: dict[str, Any] = {
    "conv": (dense.conv_forward, "src", "weights", "dst"),
    "conv_grad_input": (dense.conv_backward_data, "diff_dst", "weights", "diff_src"),
    "conv_grad_weight": (dense.conv_backward_weights, "src", "diff_dst", "diff_weights"),
}
