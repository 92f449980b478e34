"""1x1 convolutions and their gradients as AMX products of split float32 (`amx_product_steps`).

The positions of an image are the rows of a matrix and its channels the columns; where channels come
first in memory, the transposed matrix is computed. In the gradient by the weights positions are the
common axis; where there would be too few units of work, images are a batch whose results are added
up.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_one, is_zero, product, same
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.engines.native.kernels.loop_nest import Affine, Buffer, Builder, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, row_major
from mycel._src.engines.native.operations.matmul.amx_product_steps import multiply, usable
from mycel._src.engines.native.steps.step_builder import StepBuilder

__all__ = ["pieces_convolution"]

# Results of the gradient by weights that are too few to be shared among threads, and the most
# images whose results are added up.
FEW, MOST = 1 << 17, 16
# Operations that one core does in a second in the library's convolutions and in their gradients.
FORWARD_RATE, BACKWARD_RATE = 170e9, 120e9


def pieces_convolution(steps: StepBuilder, node: Node, inputs: list[View], out: View, unstrided: bool) -> bool:
    """Add the steps of a convolution or gradient; return whether it is done this way.

    `steps` gets the steps for `node`, whose operands are `inputs`, and whose result is `out`; for
    `unstrided` see `skips_positions`.
    """
    strided = not unstrided and any(not is_one(s) for s in node.params["strides"])
    if node.prim not in (conv, conv_grad_input, conv_grad_weight) or not usable(node) or strided:
        return False
    weights = out if node.prim is conv_grad_weight else inputs[1]
    padded = any(not is_zero(k) for pair in node.params["padding"] for k in pair)
    if any(not is_one(d) for d in weights.shape[2:]) or padded or node.params["groups"] != 1:
        return False
    if node.prim is conv_grad_weight:
        return _weights_gradient(steps, node, inputs, out)
    image, result = _matrices(inputs[0]), _matrices(out)
    if image is None or result is None or not same(image.shape[1], result.shape[1]):
        return False
    rate = FORWARD_RATE if node.prim is conv else BACKWARD_RATE
    factor = View(weights.buffer, weights.shape[:2], weights.strides[:2], weights.offset)
    if node.prim is conv:
        factor = _turned(factor)
    if is_one(result.strides[-1]):
        return multiply(steps, node, image, factor, result, rate)
    if is_one(result.strides[-2]):
        return multiply(steps, node, _turned(factor), _turned(image), _turned(result), rate)
    return False


def _turned(view: View) -> View:
    """Return the transposed matrices."""
    *batch, a, b = view.shape
    *far, s, t = view.strides
    return View(view.buffer, (*batch, b, a), (*far, t, s), view.offset)


def _matrices(image: View) -> View | None:
    """Return images as matrices (image, position, channel); None where that needs a copy."""
    n, c, *sizes = image.shape
    far, channel, *strides = image.strides
    size, step = sizes[-1], strides[-1]
    for d, s in zip(reversed(sizes[:-1]), reversed(strides[:-1])):
        if not is_one(d) and not same(s, step * size):
            return None
        size = size * d
    return View(image.buffer, (n, size, c), (far, step, channel), image.offset)


def _weights_gradient(steps: StepBuilder, node: Node, inputs: list[View], out: View) -> bool:
    image, given = map(_matrices, inputs)
    if image is None or given is None or not same(image.shape[1], given.shape[1]):
        return False
    images, size, channels = image.shape
    outputs = given.shape[-1]
    target = View(out.buffer, (outputs, channels), out.strides[:2], out.offset)
    joined = [_joined(view) for view in (given, image)]
    left, right = joined
    few = type(outputs * channels) is int and outputs * channels <= FEW and type(images) is int and 1 < images <= MOST
    if left is not None and right is not None and not few:
        return multiply(steps, node, _turned(left), right, target, BACKWARD_RATE)
    if type(images) is not int or images > MOST:
        return False
    parts = row_major(Buffer(node.dtype, product((images, outputs, channels)), "sums"), (images, outputs, channels))
    if not multiply(steps, node, _turned(given), image, parts, BACKWARD_RATE):
        return False
    b, position = Builder(), (affine(0), affine(1))
    values = [b.load(parts.access((Affine((), k), *position))) for k in range(images)]
    total = values[0]
    for value in values[1:]:
        total = b.op("add", node.dtype, total, value)
    store = Store(target.access(position), total, True)
    steps.kernel(Nest([Loop(outputs, "p"), Loop(channels, "p")], [], [store], "sums"), target.strides, node)
    return True


def _joined(matrices: View) -> View | None:
    """Return the matrices one below the other as one; None where they do not lie so."""
    n, size, width = matrices.shape
    far, step, column = matrices.strides
    if not is_one(n) and not same(far, step * size):
        return None
    return View(matrices.buffer, (n * size, width), (step, column), matrices.offset)
