"""Training steps that freeze or accumulate gradients, depending on their optimizer and on the
settings of the training.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mycel import ops
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor
from mycel.boost.grad_freeze import FreezeOpt, freeze_cell
from mycel.nn import CellList, Optimizer, TrainOneStepCell, TrainOneStepWithLossScaleCell
from mycel.nn.assignment import store

__all__ = ["BoostTrainOneStepCell", "BoostTrainOneStepWithLossScaleCell"]


class BoostTrainOneStepCell(TrainOneStepCell):
    """A training step that gives the loss; with an Optimizer it is `nn.TrainOneStepCell`.

    With a `FreezeOpt` each step is taken by the optimizer that its strategy names. At its end the
    strategy begins again; without a strategy the first optimizer takes all steps. Raises TypeError
    for other arguments.

    >>> import mycel as ms
    >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> w, b = net.trainable_params()
    >>> optimizer = ms.boost.FreezeOpt(ms.nn.SGD([w, b], 0.1), [[w, b], [b]], [0, 1])
    >>> step = ms.boost.BoostTrainOneStepCell(net, optimizer)
    >>> step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1))).shape
    ()
    """

    def __init__(self, network: Cell, optimizer: Any, sens: Any = None) -> None:
        super().__init__(network, optimizer, sens)
        self.freezes = isinstance(optimizer, FreezeOpt)
        if not self.freezes and not isinstance(optimizer, Optimizer):
            raise TypeError(
                f"BoostTrainOneStepCell: optimizer must be an Optimizer or a FreezeOpt, not {type(optimizer).__name__}"
            )
        self.freeze_nets: CellList | None = None
        if isinstance(optimizer, FreezeOpt):
            self.train_strategy = optimizer.train_strategy
            self.step = Parameter(Tensor(np.zeros((), np.int32)), name="freeze_step", requires_grad=False)
            nets = freeze_cell(False, network, optimizer, self.sens, self.grad, False)
            self.freeze_nets = CellList(list(nets), auto_prefix=False)

    def construct(self, *inputs: Any) -> Any:
        """Take a step on a batch, and return the loss."""
        return self.gradient_freeze_process(*inputs) if self.freezes else super().construct(*inputs)

    def gradient_freeze_process(self, *inputs: Any) -> Any:
        """Take a step by the optimizer whose turn it is, and return the loss."""
        nets: Any = self.freeze_nets
        if self.train_strategy is None:
            return nets[0](*inputs)
        turn = ops.gather(self.train_strategy, self.step % self.train_strategy.shape[0], 0)
        store(self.step, self.step + 1)
        loss = None
        for number in range(len(nets)):
            if turn == number:
                loss = nets[number](*inputs)
        return loss

    def check_adasum_enable(self) -> bool:
        """Return whether Adasum combines the gradients of several devices; it does not on one
        device.
        """
        return False

    def check_dim_reduce_enable(self) -> bool:
        """Return whether the dimensions of gradients are reduced; this step never does so."""
        return False


class BoostTrainOneStepWithLossScaleCell(TrainOneStepWithLossScaleCell):
    """A training step with a loss scale, as `nn.TrainOneStepWithLossScaleCell`: it gives the loss,
    whether gradients overflowed, and the scale.

    >>> import mycel as ms
    >>> net = ms.nn.WithLossCell(ms.nn.Dense(2, 1), ms.nn.MSELoss())
    >>> optimizer = ms.nn.SGD(net.trainable_params(), 0.1)
    >>> step = ms.boost.BoostTrainOneStepWithLossScaleCell(net, optimizer, ms.Tensor(8.0))
    >>> [t.shape for t in step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1)))]
    [(), (), ()]
    """
