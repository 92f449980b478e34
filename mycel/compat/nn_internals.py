"""Cells and functions from inside `mindspore.nn` that libraries build their own on."""

from __future__ import annotations

import math
from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.common.initializer import Uniform, initializer
from mycel.nn import LossBase

__all__ = ["RNNCellBase"]


class RNNCellBase(Cell):
    """The weights of one step of a recurrent network with `num_chunks` gates; a subclass defines
    `construct`.

    `weight_ih` is (num_chunks * hidden_size, input_size), `weight_hh` (num_chunks * hidden_size,
    hidden_size), `bias_ih` and `bias_hh` (num_chunks * hidden_size,), or None without `has_bias`.
    Their first values are uniform in ±1 / sqrt(hidden_size); `dtype` is their element type.
    """

    def __init__(
        self, input_size: int, hidden_size: int, has_bias: bool, num_chunks: int, dtype: Any = D.float32
    ) -> None:
        super().__init__()
        owner = type(self).__name__
        self.input_size = arguments.integer(owner, "input_size", input_size, 1)
        self.hidden_size = arguments.integer(owner, "hidden_size", hidden_size, 1)
        self.has_bias = arguments.flag(owner, "has_bias", has_bias)
        self.num_chunks = arguments.integer(owner, "num_chunks", num_chunks, 1)
        rows, start = num_chunks * hidden_size, Uniform(1 / math.sqrt(hidden_size))
        self.weight_ih = Parameter(initializer(start, (rows, input_size), dtype))
        self.weight_hh = Parameter(initializer(start, (rows, hidden_size), dtype))
        self.bias_ih = Parameter(initializer(start, (rows,), dtype)) if has_bias else None
        self.bias_hh = Parameter(initializer(start, (rows,), dtype)) if has_bias else None


class _Loss(LossBase):
    """The name of `LossBase` in releases before 2.0."""


class _VirtualDatasetCell(Cell):
    """A network that returns the results of its backbone: on one device its inputs are whole
    batches.
    """

    def __init__(self, backbone: Cell) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = backbone

    def construct(self, *inputs: Any) -> Any:
        """Return the result of the network."""
        return self._backbone(*inputs)


_grad_overflow = ops.MultitypeFuncGraph("_grad_overflow")


@_grad_overflow.register("Tensor")
def _tensor_overflow(gradient: Tensor) -> Tensor:
    """Return 1 if an element is infinite or NaN, else 0, as float32 of shape (1,)."""
    return ops.reshape(ops.logical_not(ops.all(ops.isfinite(gradient))), (1,)).astype(D.float32)
