"""`mindspore.parallel.nn.parallel_grad_reducer`: gradients of a pipeline of devices."""

from __future__ import annotations

from typing import Any

from mycel.cells.cell import Cell

__all__ = ["PipelineGradReducer"]


class PipelineGradReducer(Cell):
    """Gradients divided by the scale of the loss, as they come out of a pipeline of one stage.

    `parameters` are those of the gradients, `scale_sense` is the scale; `opt_shard` says whether an
    optimizer's state is divided over devices, which has no effect on one.
    """

    def __init__(self, parameters: Any, scale_sense: Any = 1.0, opt_shard: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.parameters_of_gradients = tuple(parameters)
        self.scale_sense = scale_sense

    def construct(self, grads: Any) -> Any:
        """Return the gradients, each divided by the scale."""
        return tuple(grad / self.scale_sense for grad in grads)
