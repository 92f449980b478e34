"""`mindspore.nn.wrap.cell_wrapper`: a part of a batch."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.tensor import Tensor

__all__: list[str] = []


class _MicroBatch(Cell):
    """The part of number `i` of a batch that is cut into `micro_size` parts along the first axis.

    Raises ValueError where the parts would not be equal.
    """

    def __init__(self, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        self.micro_size = arguments.integer("_MicroBatch", "micro_size", micro_size, 1)

    def construct(self, i: Any, *inputs: Tensor) -> tuple[Tensor, ...]:
        """Return the part of each input."""
        parts = []
        for x in inputs:
            if x.shape[0] % self.micro_size:
                raise ValueError(f"{x.shape[0]} rows do not divide into {self.micro_size} parts")
            rows = x.shape[0] // self.micro_size
            parts.append(x[i * rows : (i + 1) * rows])
        return tuple(parts)
