"""Gradient accumulation: updates of the parameters from the mean of the gradients of several steps.

A sum of ``gradient / steps`` is kept beside each parameter. Every `steps` calls the sums are given
to the optimizer and set to zero. The sums and the count are parameters, so that a training step may
be compiled as a whole: it computes the update at each call, and takes it where there are enough.
"""

from __future__ import annotations

from typing import Any

from mycel import ops
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.nn.assignment import store

__all__ = ["GradientAccumulation", "gradient_accumulation_op", "gradient_clear_op"]

gradient_accumulation_op = ops.MultitypeFuncGraph("gradient_accumulation_op")
gradient_clear_op = ops.MultitypeFuncGraph("gradient_clear_op")


@gradient_accumulation_op.register("Int64", "Tensor", "Tensor")
def _accumulate(steps: int, total: Parameter, gradient: Tensor) -> Parameter:
    """Add one of `steps` gradients to the sum that becomes their mean."""
    store(total, total + gradient / steps)
    return total


@gradient_clear_op.register("Tensor")
def _clear(total: Parameter) -> Parameter:
    """Set a sum to zero."""
    store(total, ops.zeros_like(total))
    return total


class GradientAccumulation(Cell):
    """A Cell that collects gradients and gives `optimizer` their mean every `max_accumulation_step`
    calls.

    It is called with a loss, which it returns, and one gradient for each parameter. Raises
    TypeError or ValueError for a number of steps that is no positive integer, TypeError for an
    optimizer without `parameters`.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0]), name="w")
    >>> collect = ms.boost.GradientAccumulation(2, ms.nn.SGD([w], 0.5))
    >>> for g in (1.0, 3.0):
    ...     _ = collect(ms.Tensor(0.0), (ms.Tensor([g]),))
    >>> w.asnumpy()
    array([0.], dtype=float32)
    """

    def __init__(self, max_accumulation_step: int, optimizer: Any) -> None:
        super().__init__()
        self._max_accumulation_step = arguments.integer(
            "GradientAccumulation", "max_accumulation_step", max_accumulation_step, 1
        )
        if not isinstance(optimizer, Cell) or not hasattr(optimizer, "parameters"):
            raise TypeError(f"GradientAccumulation: optimizer must be an Optimizer, not {type(optimizer).__name__}")
        self.optimizer = optimizer
        self.weights = optimizer.parameters
        self.hyper_map = ops.HyperMap()
        self._grad_accumulation = self.weights.clone(prefix="grad_accumulation", init="zeros")
        self._accumulation_step = Parameter(Tensor(0, D.int32), name="accumulation_step")

    def construct(self, loss: Any, grads: Any) -> Any:
        """Add gradients to the sums, update the parameters if there are enough, and return the
        loss.
        """
        self.hyper_map(
            ops.partial(gradient_accumulation_op, self._max_accumulation_step), self._grad_accumulation, grads
        )
        store(self._accumulation_step, self._accumulation_step + 1)
        context = eager.local.context if eager.active else None
        if context is not None and context.is_staging:
            self._update_where_ready()
        elif self._accumulation_step >= self._max_accumulation_step:
            self.optimizer(self._grad_accumulation)
            self.hyper_map(gradient_clear_op, self._grad_accumulation)
            store(self._accumulation_step, ops.zeros_like(self._accumulation_step))
        return loss

    def _update_where_ready(self) -> None:
        """Update the parameters if there are enough gradients, element by element.

        In a compiled function nothing is computed apart, so that weights and states change where
        they lie, and there is no copy of them as a branch would have.
        """
        ready = self._accumulation_step >= self._max_accumulation_step
        changed = list({id(p): p for p in self.optimizer.get_parameters()}.values())
        before = [p.copy() for p in changed]
        self.optimizer(self._grad_accumulation)
        for p, old in zip(changed, before):
            store(p, ops.where(ready, p, old))
        for total in (*self._grad_accumulation, self._accumulation_step):
            store(total, ops.where(ready, ops.zeros_like(total), total))
