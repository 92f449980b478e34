"""Lowering of cumulative sums, products and extremes to kernels.

Rows are independent, and the axis is one loop that carries a value.
"""

from __future__ import annotations

from mycel._src.compiler.ir.dims import is_one
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.sort_and_scan import cummax, cummin, cumprod, cumsum
from mycel._src.engines.native.kernels.loop_nest import ZERO, Buffer, Builder, Loop, Nest, Store, affine
from mycel._src.engines.native.kernels.strided_view import View, like_order
from mycel._src.engines.native.steps.step_builder import StepBuilder
from mycel._src.foundation import dtype as D

__all__ = ["SCANS", "scan_step"]

SCANS = {cumsum: "sum", cumprod: "prod", cummax: "max", cummin: "min"}


def scan_step(steps: StepBuilder, node: Node) -> None:
    """Add the kernel of a running reduction; 16-bit floats are accumulated in wider ones."""
    (x,) = node.inputs
    assert node.prim is not None
    axis, shape = node.params["axis"], tuple(node.type.shape)
    view = steps.view(x)
    target = View(Buffer(node.type.dtype, node.type.size, node.op), shape, like_order(view.strides, shape))
    b = Builder()
    at = [ZERO if is_one(d) else affine(k) for k, d in enumerate(shape)]
    if node.params["reverse"] and not is_one(shape[axis]):
        at[axis] = at[axis].scale(-1).shift(shape[axis] - 1)
    value = b.load(view.access(at))
    wide = D.float32 if node.dtype.is_floating and node.dtype.itemsize == 2 else node.dtype
    if node.prim is cumprod and wide is D.float32:
        wide = D.float64  # each factor's rounding stays in all that follow
    if wide is not node.dtype:
        value = b.op("cast", wide, value)
    running = b.reduce(SCANS[node.prim], value, wide, scan=True)
    result = running.result if wide is node.dtype else b.op("cast", node.dtype, running.result)
    loops = [Loop(d, "s" if k == axis else "p") for k, d in enumerate(shape)]
    name = node.op
    steps.kernel(Nest(loops, [running], [Store(target.access(at), result, True)], name), target.strides, node)
    steps.bind(node, [target])
