"""Training steps with a loss scale, and the cells that adjust the scale.

Small gradients vanish in 16-bit floats. The loss is therefore multiplied by a scale before
differentiating and the gradients are divided by it after. A step whose gradients overflow is left
out: parameters, optimizer states and its step counter keep their values. The dynamic scale follows
Micikevicius et al., 2018: divided by a factor after an overflow, multiplied by it after a window of
steps without one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel import ops
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.foundation import arguments
from mycel._src.foundation import dtype as D
from mycel._src.staging.derivatives import value_and_grad
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast
from mycel.nn.assignment import store
from mycel.nn.wrap import TrainOneStepCell

__all__ = ["DynamicLossScaleUpdateCell", "FixedLossScaleUpdateCell", "TrainOneStepWithLossScaleCell", "finite"]


def finite(tensors: Sequence[Tensor]) -> Tensor:
    """Return whether all elements of some tensors are neither infinite nor NaN, as a bool tensor of
    no dimensions.
    """
    found: Tensor | None = None
    for t in tensors:
        if t.dtype.is_floating or t.dtype.is_complex:
            one = ops.all(ops.isfinite(t))
            found = one if found is None else ops.logical_and(found, one)
    return as_tensor(True) if found is None else found


def _truth(overflow: Any) -> Tensor:
    return ops.reshape(as_tensor(overflow), ()).astype(D.bool_)


class FixedLossScaleUpdateCell(Cell):
    """A loss scale that never changes; called with the scale and whether there was an overflow, it
    returns the latter.

    >>> import mycel as ms
    >>> bool(ms.nn.FixedLossScaleUpdateCell(8.0)(ms.Parameter(ms.Tensor(8.0)), ms.Tensor(True)))
    True
    """

    def __init__(self, loss_scale_value: Any) -> None:
        super().__init__()
        arguments.number("FixedLossScaleUpdateCell", "loss_scale_value", loss_scale_value, above=0)
        self.loss_scale_value = loss_scale_value

    def get_loss_scale(self) -> Any:
        """Return the scale."""
        return self.loss_scale_value

    def construct(self, _: Any, overflow: Any) -> Tensor:
        """Return `overflow` unchanged."""
        return _truth(overflow)


class DynamicLossScaleUpdateCell(Cell):
    """A loss scale that is divided by `scale_factor` after an overflow, but not below 1, and
    multiplied by it every `scale_window` steps without one.

    It is called with the scale (a Parameter, which it changes) and whether there was an overflow,
    which it returns. Raises ValueError for an initial scale, factor or window that is not positive.

    >>> import mycel as ms
    >>> scale = ms.Parameter(ms.Tensor(16.0))
    >>> update = ms.nn.DynamicLossScaleUpdateCell(16, scale_factor=2, scale_window=100)
    >>> bool(update(scale, ms.Tensor(True))), float(scale)
    (True, 8.0)
    """

    def __init__(self, loss_scale_value: Any, scale_factor: Any, scale_window: int) -> None:
        super().__init__()
        name = "DynamicLossScaleUpdateCell"
        arguments.number(name, "loss_scale_value", loss_scale_value, above=0)
        arguments.number(name, "scale_factor", scale_factor, above=0)
        self.loss_scale_value, self.scale_factor = loss_scale_value, scale_factor
        self.scale_window = arguments.integer(name, "scale_window", scale_window, 1)
        self.cur_iter = Parameter(Tensor(1, D.int32), name="current_iterator_step", requires_grad=False)
        self.last_overflow_iter = Parameter(Tensor(0, D.int32), name="last_overflow_iterator_step", requires_grad=False)

    def get_loss_scale(self) -> Any:
        """Return the initial scale."""
        return self.loss_scale_value

    def construct(self, loss_scale: Parameter, overflow: Any) -> Tensor:
        """Adjust the scale, and return `overflow`."""
        hit = _truth(overflow)
        scale = ops.where(hit, ops.maximum(loss_scale / self.scale_factor, 1.0), loss_scale)
        start = ops.where(hit, self.cur_iter, self.last_overflow_iter)
        grown = self.cur_iter - start >= self.scale_window
        store(self.last_overflow_iter, ops.where(grown, self.cur_iter, start))
        store(self.cur_iter, self.cur_iter + 1)
        store(loss_scale, ops.where(grown, scale * self.scale_factor, scale))
        return hit


class TrainOneStepWithLossScaleCell(TrainOneStepCell):
    """A training step that scales the loss, and is left out where its gradients overflow.

    It returns the loss, whether there was an overflow, and the scale of this step. `scale_sense` is
    a Tensor of one element (a fixed scale, see `set_sense_scale`), or a Cell that adjusts the
    scale, as `DynamicLossScaleUpdateCell`. Raises TypeError for another `scale_sense`, ValueError
    for a tensor of more elements.

    >>> import mycel as ms
    >>> net = ms.nn.Dense(2, 1)
    >>> step = ms.nn.TrainOneStepWithLossScaleCell(
    ...     ms.nn.WithLossCell(net, ms.nn.MSELoss()), ms.nn.SGD(net.trainable_params(), 0.01),
    ...     scale_sense=ms.nn.DynamicLossScaleUpdateCell(2**16, 2, 1000))
    >>> loss, overflow, scale = step(ms.ops.ones((3, 2)), ms.ops.ones((3, 1)))
    >>> bool(overflow), float(scale)
    (False, 65536.0)
    """

    def __init__(self, network: Cell, optimizer: Any, scale_sense: Any) -> None:
        super().__init__(network, optimizer, None)
        self.loss_scaling_manager: Cell | None = None
        if isinstance(scale_sense, Cell):
            self.loss_scaling_manager = scale_sense
            scale: Any = np.float32(scale_sense.get_loss_scale())
        elif isinstance(scale_sense, Tensor):
            if scale_sense.shape not in ((), (1,)):
                raise ValueError(
                    "TrainOneStepWithLossScaleCell: scale_sense must have one element, its shape () or (1,), not "
                    f"{scale_sense.shape}"
                )
            scale = scale_sense.asnumpy().astype(np.float32)
        else:
            raise TypeError(
                "TrainOneStepWithLossScaleCell: scale_sense must be a Cell or a Tensor, not "
                f"{type(scale_sense).__name__}"
            )
        self.scale_sense = Parameter(Tensor(scale), name="scale_sense", requires_grad=False)

    def construct(self, *inputs: Any) -> Any:
        """Take a step on a batch, unless the gradients overflow."""
        # A copy, as the Parameter may change before this step's result is read.
        scale = self.scale_sense + 0.0
        loss, grads = self.scaled_gradients(inputs, scale)
        # What overflows in one process does so in the sums of all.
        grads = self.grad_reducer(grads)
        overflow = self.process_loss_scale(ops.logical_not(finite(grads)))
        self.update_unless(overflow, grads)
        return loss, overflow, scale

    def scaled_gradients(self, inputs: Any, scale: Tensor) -> tuple[Any, tuple[Tensor, ...]]:
        """Return the loss, and the gradients computed with a scaled loss and divided by the
        scale.
        """
        factor = ops.reshape(scale, ())

        def scaled(*given: Any) -> tuple[Any, Any]:
            loss = self.network(*given)
            losses = loss if isinstance(loss, (tuple, list)) else (loss,)
            return tuple([one * cast(factor, one.dtype) for one in losses if one.dtype.is_floating]), loss

        (_, loss), grads = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs)
        return loss, tuple([g / cast(factor, g.dtype) for g in grads])

    def update_unless(self, overflow: Tensor, grads: tuple[Tensor, ...]) -> None:
        """Call the optimizer, and restore everything that it owns where there was an overflow."""
        context = eager.current_context()
        if context is None or not context.is_staging:
            if not bool(overflow):
                self.optimizer(grads)
            return
        owned = list(self.optimizer.get_parameters())
        before = [eager.apply(identity, p) for p in owned]
        self.optimizer(grads)
        for p, old in zip(owned, before):
            store(p, ops.where(overflow, old, p))

    def set_sense_scale(self, sens: Tensor) -> None:
        """Set the scale to another value.

        Raises TypeError for a `sens` that is no Tensor, ValueError for another shape.
        """
        arguments.instance("TrainOneStepWithLossScaleCell", "the scale", sens, Tensor)
        self.scale_sense.set_data(sens)

    def start_overflow_check(self, pre_cond: Any, compute_input: Any) -> tuple[Any, Any]:
        """Return the state that `get_overflow_status` takes, and the input of the computation.

        Programs call both around a computation; a CPU needs no state.
        """
        return as_tensor(False), compute_input

    def get_overflow_status(self, status: Any, compute_output: Any) -> Tensor:
        """Return whether a gradient, in a tensor or a sequence of them, is infinite or NaN."""
        found = compute_output if isinstance(compute_output, (tuple, list)) else (compute_output,)
        return ops.logical_not(finite(found))

    def process_loss_scale(self, overflow: Any) -> Tensor:
        """Let the Cell of the scale adjust it, and return `overflow`."""
        if self.loss_scaling_manager is None:
            return _truth(overflow)
        return self.loss_scaling_manager(self.scale_sense, overflow)
