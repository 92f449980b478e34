"""Lowering of matrix products and convolutions to calls of oneDNN.

Operands are passed with their strides; only values repeated by a stride of 0 are copied first.
Convolutions write their images channels-last, and kernels follow that layout; a result of the graph
is written in row-major order, which the library does faster than a copy. Nodes that the library
refuses become host steps. A step describes the work (`DenseCall`); the library's plans are made for
actual sizes, with each program.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import is_one, product
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.compiler.prims.matrix_product import matmul
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.native.onednn.dense_call import DenseCall
from mycel._src.engines.native.operations.convolution.amx_pointwise_convolution import pieces_convolution
from mycel._src.engines.native.operations.convolution.depthwise_channels_first_kernel import (
    depthwise_kernel,
    prefers_rows,
)
from mycel._src.engines.native.operations.convolution.pointwise_weight_gradient import narrow_gradient
from mycel._src.engines.native.operations.convolution.strided_pointwise import (
    channels_last,
    gathered,
    skips_positions,
    spread,
)
from mycel._src.engines.native.operations.convolution.winograd_steps import winograd_step
from mycel._src.engines.native.operations.matmul.amx_product_steps import pieces_step
from mycel._src.engines.native.operations.matmul.tiled_product_steps import product_step
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_target

__all__ = ["dense_step"]


def dense_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that computes a product or a convolution."""
    prim = node.prim
    if prim is matmul and (product_step(steps, node) or pieces_step(steps, node)):
        return
    inputs = [_readable(steps, i) for i in node.inputs]
    if prim is not matmul and _depthwise_step(steps, node, inputs):
        return
    if prim is not matmul and winograd_step(steps, node, inputs):
        return
    if narrow_gradient(steps, node, inputs):
        return
    buffer = Buffer(node.type.dtype, node.type.size, node.op)
    lay = row_major if _is_in_rows(node, inputs) or node in steps.results else channels_last
    out = target = lay(buffer, tuple(node.type.shape))
    unstrided = skips_positions(node)
    if unstrided and prim is not conv_grad_input:
        inputs[0] = gathered(steps, inputs[0], node)
    elif unstrided:
        met = (*node.type.shape[:2], *node.inputs[0].type.shape[2:])
        out = lay(Buffer(node.type.dtype, product(met), node.op), met)
    if prim is not matmul and pieces_convolution(steps, node, inputs, out, unstrided):
        _finish(steps, node, out, target)
        return
    call = DenseCall(node, inputs, out, unstrided)
    try:
        call.plan(hint)
    except dense.Unsupported as refusal:
        steps.host(node, str(refusal))
        return
    steps.step(call, [v.buffer for v in inputs], [out.buffer], node)
    _finish(steps, node, out, target)


def _finish(steps: StepBuilder, node: Node, out: View, target: View) -> None:
    """Bind a node to its place `target`, after spreading what was computed in `out`."""
    if out is not target:
        spread(steps, node, out, target)
    steps.bind(node, [target])


def _is_in_rows(node: Node, inputs: list[View]) -> bool:
    """Return whether a result is in row-major order: that of a product, a gradient by weights, and
    of a depthwise convolution of such images, which the library has no code to turn.
    """
    if node.prim in (matmul, conv_grad_weight):
        return True
    groups = node.params["groups"]
    return node.prim is conv and groups != 1 and groups == node.type.shape[1] and is_one(inputs[0].strides[-1])


def _readable(steps: StepBuilder, node: Node) -> View:
    """Return the place of a value in a form that the library can read."""
    view = steps.view(node)
    if any(hint(s) <= 0 and not is_one(d) for s, d in zip(view.strides, view.shape)):
        return steps.copy(view)
    return view


def _depthwise_step(steps: StepBuilder, node: Node, inputs: list[View]) -> bool:
    """Add a depthwise convolution, or a gradient of one, as a special kernel.

    Returns whether there is such a kernel.
    """
    out = new_target(node)
    if prefers_rows(node):
        inputs = [v if is_one(v.strides[-1]) else steps.contiguous(v) for v in inputs]
    kernel = depthwise_kernel(node, inputs, out)
    if kernel is None:
        return False
    steps.step(kernel, [v.buffer for v in inputs], [out.buffer], node)
    steps.bind(node, [out])
    return True
