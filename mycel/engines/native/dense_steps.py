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

__all__ = ["dense_step"]


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


def dense_step(lowering: Any, node: Node) -> None:
    """Add the calls that compute a product or a convolution."""
    name = node.prim.name  # type: ignore[union-attr]
    inputs = [_readable(lowering, i) for i in node.inputs]
    shape = tuple(node.type.shape)
    buffer = Buffer(node.type.dtype, int(node.type.size), name)
    p = node.params
    try:
        if name == "matmul":
            out = row_major(buffer, shape)
            plan = dense.matmul(operand(inputs[0]), operand(inputs[1]), operand(out))
            names = {"a": inputs[0], "b": inputs[1], "out": out}
        else:
            options = {
                "strides": p["strides"], "padding_low": tuple(a for a, _ in p["padding"]),
                "padding_high": tuple(b for _, b in p["padding"]), "dilation": p["dilation"], "groups": p["groups"],
            }  # fmt: skip
            out = row_major(buffer, shape) if name == "conv_grad_weight" else channels_last(buffer, shape)
            make, first, second, third = _CONVOLUTIONS[name]
            plan = make(operand(inputs[0]), operand(inputs[1]), operand(out), **options)
            names = {first: inputs[0], second: inputs[1], third: out}
    except dense.Unsupported as refusal:
        lowering.host(node, str(refusal))
        return
    plan = plan.copy()
    scratch = {t: Buffer(uint8, size, t) for t, size in plan.temporaries.items()}
    views = {**names, **{t: row_major(b, (b.size,)) for t, b in scratch.items()}}
    reads = [v.buffer for v in inputs]
    lowering.step("dense", reads, [buffer, *scratch.values()], (plan, views), node)
    lowering.bind(node, [out])


_CONVOLUTIONS: dict[str, Any] = {
    "conv": (dense.conv_forward, "src", "weights", "dst"),
    "conv_grad_input": (dense.conv_backward_data, "diff_dst", "weights", "diff_src"),
    "conv_grad_weight": (dense.conv_backward_weights, "src", "diff_dst", "diff_weights"),
}
