"""Loss-scale managers, from which a `Model` gets the scale and the Cell that adjusts it inside a
training step.
"""

from __future__ import annotations

from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel.nn.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager:
    """The base of loss-scale managers."""

    def get_loss_scale(self) -> Any:
        """Return the scale."""

    def update_loss_scale(self, overflow: bool) -> None:
        """Adjust the scale after a step, given whether its gradients overflowed."""

    def get_update_cell(self) -> Cell | None:
        """Return the Cell that adjusts the scale inside a training step, None where none is
        needed.
        """


class FixedLossScaleManager(LossScaleManager):
    """A fixed loss scale of at least 1.

    With `drop_overflow_update` a step whose gradients overflow is left out. Without it, the
    optimizer must divide the gradients: give it the same `loss_scale`. Raises TypeError or
    ValueError for another scale.

    >>> import mycel as ms
    >>> ms.amp.FixedLossScaleManager(128.0).get_loss_scale()
    128.0
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        arguments.number("FixedLossScaleManager", "loss_scale", loss_scale, at_least=1)
        self._loss_scale = loss_scale
        self._drop_overflow_update = bool(drop_overflow_update)

    def get_loss_scale(self) -> Any:
        """Return the scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return whether steps that overflow are left out."""
        return self._drop_overflow_update

    def update_loss_scale(self, overflow: bool) -> None:
        """Do nothing: the scale is fixed."""

    def get_update_cell(self) -> Cell | None:
        """Return the Cell that reports overflows; None where steps are never left out."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drop_overflow_update else None


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that is divided by `scale_factor` after an overflow, but not below 1, and
    multiplied by it after `scale_window` steps without an overflow.

    Raises ValueError for an initial scale below 1 or a factor or window that is not positive,
    TypeError for other types.

    >>> import mycel as ms
    >>> manager = ms.amp.DynamicLossScaleManager(init_loss_scale=16)
    >>> manager.update_loss_scale(overflow=True)
    >>> manager.get_loss_scale()
    8.0
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: float = 2, scale_window: int = 2000) -> None:
        name = "DynamicLossScaleManager"
        arguments.number(name, "init_loss_scale", init_loss_scale, at_least=1)
        arguments.number(name, "scale_factor", scale_factor, above=0)
        self.loss_scale, self.scale_factor = init_loss_scale, scale_factor
        self.scale_window = arguments.integer(name, "scale_window", scale_window, 1)
        self.increase_ratio: float = scale_factor
        self.decrease_ratio = 1 / scale_factor
        self.cur_iter = 1
        self.last_overflow_iter = 0
        self.bad_step_max = 1000
        self.bad_step = 0

    def get_loss_scale(self) -> Any:
        """Return the scale."""
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return True: steps that overflow are left out."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        """Adjust the scale after a step. Raises RuntimeError after 1000 overflows in a row."""
        if overflow:
            self.loss_scale = max(self.loss_scale * self.decrease_ratio, 1)
            self.last_overflow_iter = self.cur_iter
            self.bad_step += 1
            if self.bad_step > self.bad_step_max:
                raise RuntimeError(
                    f"DynamicLossScaleManager: the gradients of {self.bad_step} steps in a row overflowed, at a loss "
                    f"scale of {self.loss_scale}; "
                    "the network diverges, or its loss is not finite"
                )
            logger.info("overflow; the loss scale is now %s", self.loss_scale)
        else:
            if (self.cur_iter - self.last_overflow_iter) % self.scale_window == 0:
                self.loss_scale *= self.increase_ratio
            self.bad_step = 0
        self.cur_iter += 1

    def get_update_cell(self) -> Cell | None:
        """Return the Cell that adjusts the scale inside a training step."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
