"""Gradients summed over the processes of a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Optional

from mycel import ops
from mycel.base import arguments
from mycel.cells.cell import Cell
from mycel.communication import get_group_size

__all__ = ["DistributedGradReducer"]


class DistributedGradReducer(Cell):
    """The sums of gradients over the processes of `group`; a single process keeps its own
    gradients.

    `parameters` are those of the optimizer, one for each gradient that a call takes. With `mean`
    the sums are divided by `degree`, by default the number of processes; None is True only where
    the settings of parallel training ask for it, and False in one process. `fusion_type`, a whole
    number, has no effect on results. Raises TypeError and ValueError for other arguments.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> ms.nn.DistributedGradReducer([w], mean=True, degree=4)((ms.Tensor([2.0]),))[0].asnumpy()
    array([0.5], dtype=float32)
    """

    def __init__(
        self,
        parameters: Iterable[Any],
        mean: Optional[bool] = None,
        degree: Optional[int] = None,
        fusion_type: int = 1,
        group: str = "hccl_world_group",
    ) -> None:
        super().__init__(auto_prefix=False)
        name = type(self).__name__
        self.parameters = tuple(parameters)
        self.mean = False if mean is None else arguments.flag(name, "mean", mean)
        self.degree = get_group_size(group) if degree is None else arguments.integer(name, "degree", degree, 1)
        arguments.integer(name, "fusion_type", fusion_type)
        self.all_reduce: Any = ops.AllReduce(ops.ReduceOp.SUM, group)

    def construct(self, grads: Any) -> Any:
        """Return the gradients summed over all processes."""
        summed = tuple([self.all_reduce(g) for g in grads])
        return tuple([g / self.degree for g in summed]) if self.mean else summed
