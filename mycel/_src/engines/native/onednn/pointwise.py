"""Pointwise convolutions (kernel size 1) as products of matrices, where these are faster.

The positions of an image are the rows of a matrix and the channels its columns; channels-first
memory holds the transposed matrix. The same is true of the weights. So each of the three directions
is one product for each image, without a reorder for any layout, and one product for all images
where all are channels-last. The gradients by the weights are summed over the images.

oneDNN's convolutions are faster forward from channels-last to channels-last memory, except where
reordering very many weights takes long. Its gradients by weights reach two thirds of the speed of
products, and its gradients by images need reordered weights, which products do not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from mycel._src.engines.native.onednn import c_interface as dnnl
from mycel._src.engines.native.onednn.autotune import RULE
from mycel._src.engines.native.onednn.matmul import plan_in_way
from mycel._src.engines.native.onednn.plan import Assembly, Operand, Plan, Product

__all__ = ["MANY", "pointwise", "with_many_weights"]

# Rearranging more weights than these is worse than a product that takes them as they lie.
MANY = 1 << 19
# A product with fewer terms in its sums spends its time on results.
SHORT = 128


@dataclass(frozen=True)
class Matrix:
    """Matrices in a buffer.

    It has their sizes, the elements from row to row in memory, whether memory holds the transpose,
    and the distance between matrices.
    """

    name: str
    height: int
    width: int
    row: int
    transposed: bool
    count: int = 1
    step: int = 0

    def flipped(self) -> Matrix:
        """Return the transposed matrices in the same memory."""
        return Matrix(self.name, self.width, self.height, self.row, not self.transposed, self.count, self.step)


def pointwise(
    direction: str,
    images: tuple[tuple[str, Operand], tuple[str, Operand]],
    weights: tuple[str, Operand],
    assembly: Assembly,
    anyway: bool = False,
) -> bool:
    """Add a convolution to the plan as products; return whether that was done.

    It is done for a convolution without padding, strides, groups or post-operations. `direction` is
    forward, data or weights; `images` are the source and the destination, or their gradients, and
    `weights` the weights or their gradient, each with its name. `assembly` collects the plan. With
    `anyway`, products are used even where they are slower.
    """
    (src_name, src), (dst_name, dst) = images
    if (
        not dnnl.is_x86()
        or {src.dtype, dst.dtype, weights[1].dtype} != {"float32"}
        or math.prod(weights[1].shape[2:]) > 1
    ):
        return False
    x, y, w = _image(src_name, src), _image(dst_name, dst), _weights(*weights)
    if x is None or y is None or w is None:
        return False
    last = not x.transposed and not y.transposed
    if direction == "forward" and not y.transposed and not anyway:
        return False
    if last:
        x, y = _joined(x, src), _joined(y, dst)
    if x.count != y.count or (direction == "weights" and x.height < SHORT and not anyway):
        return False
    if direction == "forward":
        assembly.add_product(_product(x, w.flipped(), y))
    elif direction == "data":
        assembly.add_product(_product(y, w, x))
    else:
        assembly.add_product(_product(y.flipped(), x, w))
    return True


def with_many_weights(src: Operand, weights: Operand, dst: Operand) -> Plan | None:
    """Return the plan of a channels-last convolution as one of oneDNN's matrix products.

    Returns None unless there are many weights.
    """
    if src.dtype != "float32" or math.prod(weights.shape) < MANY or math.prod(weights.shape[2:]) > 1:
        return None
    x, y, w = _image("src", src), _image("dst", dst), _weights("weights", weights)
    if x is None or y is None or w is None or x.transposed or y.transposed:
        return None
    x, y = _joined(x, src), _joined(y, dst)
    if x.count != 1 or y.count != 1:
        return None
    strides = (w.row, 1) if w.transposed else (1, w.row)
    plan = plan_in_way(
        Operand((x.height, x.width), (x.row, 1), "float32"),
        Operand((w.width, w.height), strides, "float32"),
        Operand((y.height, y.width), (y.row, 1), "float32"),
        None,
        (),
        RULE,
    )
    names = {"a": "src", "b": "weights", "out": "dst"}
    return plan.renamed(names, {"src": src, "weights": weights, "dst": dst})


def _image(name: str, operand: Operand) -> Matrix | None:
    """Return the matrices (positions, channels) of the images; None if some is not a matrix."""
    (count, channels, *sizes), (step, channel, *strides) = operand.shape, operand.strides
    position, area = _run(sizes, strides), math.prod(sizes)
    if position is None:
        return None
    if (channel == 1 or channels == 1) and (position >= channels or area == 1):
        return Matrix(name, area, channels, max(position, channels), False, count, step)
    if position == 1 and channel >= area > 1:
        return Matrix(name, area, channels, channel, True, count, step)
    return None


def _run(sizes: list[int], strides: list[int]) -> int | None:
    """Return the step through dimensions that are evenly spaced in memory; else None."""
    step: int | None = None
    reach = 0
    for size, stride in zip(reversed(sizes), reversed(strides)):
        if size == 1:
            continue
        if step is None:
            step = stride
        elif stride != reach:
            return None
        reach = size * stride
    return 1 if step is None else step


def _joined(matrix: Matrix, operand: Operand) -> Matrix:
    """Return one matrix of all images, if they are evenly spaced; else the matrices."""
    if matrix.count > 1 and matrix.step != matrix.height * matrix.row:
        return matrix
    return Matrix(matrix.name, matrix.count * matrix.height, matrix.width, matrix.row, matrix.transposed)


def _weights(name: str, operand: Operand) -> Matrix | None:
    """Return the matrix (outputs, channels)."""
    (outputs, channels), (row, column) = operand.shape[:2], operand.strides[:2]
    if column == 1 and (row >= channels or outputs == 1):
        return Matrix(name, outputs, channels, max(row, channels), False)
    if row == 1 and (column >= outputs or channels == 1):
        return Matrix(name, outputs, channels, max(column, outputs), True)
    return None


def _product(a: Matrix, b: Matrix, out: Matrix) -> Product:
    """Return out = a @ b.

    If the result is transposed in memory, it is computed as the product of the transposes.
    """
    if out.transposed:
        a, b, out = b.flipped(), a.flipped(), out.flipped()
    return Product(
        (a.name, b.name, out.name),
        (a.transposed, b.transposed),
        (out.height, out.width, a.width),
        (a.row, b.row, out.row),
        max(a.count, b.count),
        (a.step, b.step, out.step),
    )
