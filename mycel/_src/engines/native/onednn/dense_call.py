"""Descriptions of calls to oneDNN (products and convolutions), and the library's plans for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mycel._src.compiler.ir.dim_values import hint
from mycel._src.compiler.ir.dims import DimLike
from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.base import Primitive
from mycel._src.compiler.prims.convolution.conv import conv, conv_grad_input, conv_grad_weight
from mycel._src.engines.native.kernels.loop_nest import Buffer
from mycel._src.engines.native.kernels.strided_view import View, contiguous_strides, row_major
from mycel._src.engines.native.onednn import binding as dense
from mycel._src.engines.reports import work
from mycel._src.foundation.dtype import uint8

__all__ = ["CONVOLUTIONS", "DenseCall", "Number"]

# A function that gives the actual value of a size.
Number = Callable[[DimLike], int]

# Below this many operations, about 20 microseconds of one core, a second thread gains less than it
# costs.
SMALL = 4_000_000
# Below this many, products are computed without a plan of their own: about as fast, and the bits of
# a result do not depend on whether its sizes are symbols.
PLANNED = 32_000_000

# How the library makes the plan of a convolution or gradient, and what it calls operands and
# result.
CONVOLUTIONS: dict[Primitive, tuple[Callable[..., dense.Plan], tuple[str, str, str]]] = {
    conv: (dense.conv_forward, ("src", "weights", "dst")),
    conv_grad_input: (dense.conv_backward_data, ("diff_dst", "weights", "diff_src")),
    conv_grad_weight: (dense.conv_backward_weights, ("src", "diff_dst", "diff_weights")),
}


def operand(view: View, number: Number = hint) -> dense.Operand:
    """Describe a view to the dense library.

    Dimensions of size 1 get the stride of a row-major layout; `number` gives dimensions as
    integers.
    """
    shape = tuple([number(d) for d in view.shape])
    strides: list[Any] = [number(s) for s in view.strides]
    packed = contiguous_strides(shape)
    for k, d in enumerate(shape):
        if d == 1:
            strides[k] = packed[k] if k == len(shape) - 1 else max(strides[k + 1] * shape[k + 1], 1)
    return dense.Operand(shape, tuple(strides), view.buffer.dtype.name)


@dataclass
class DenseCall:
    """A product or convolution with the places of its operands and its result.

    If `unstrided`, other steps apply the convolution's strides, and the library is given none.
    """

    node: Node
    inputs: list[View]
    out: View
    unstrided: bool = False

    def plan(self, number: Number) -> tuple[dense.Plan, dict[str, View]]:
        """Return the library's plan for actual sizes, and its buffers by name.

        Small work runs on one thread, which costs less than waking others. Raises Unsupported where
        the library refuses it.
        """
        operands = [operand(v, number) for v in (*self.inputs, self.out)]
        with dense.threads(1 if work(self.node, number) < SMALL else dense.max_threads()):
            if self.node.prim in CONVOLUTIONS:
                make, names = CONVOLUTIONS[self.node.prim]
                p = self.node.params
                plan = make(
                    *operands,
                    strides=tuple([1 if self.unstrided else number(s) for s in p["strides"]]),
                    padding_low=tuple([number(low) for low, _ in p["padding"]]),
                    padding_high=tuple([number(high) for _, high in p["padding"]]),
                    dilation=tuple([number(d) for d in p["dilation"]]),
                    groups=p["groups"],
                )
            else:
                names = ("a", "b", "out")
                small = work(self.node, number) < PLANNED
                plan = dense.matmul(operands[0], operands[1], operands[2], small=small)
        views = dict(zip(names, (*self.inputs, self.out)))
        views.update({t: row_major(Buffer(uint8, size, t), (size,)) for t, size in plan.temporaries.items()})
        return plan.copy(), views
