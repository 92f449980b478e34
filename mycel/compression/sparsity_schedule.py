"""Sparsity schedules: gradual pruning while a network trains (Zhu and Gupta, 2017).

    s(t) = final + (initial - final) * (1 - (t - begin) / (end - begin)) ** 3

for steps t between `begin` and `end`. Masks are chosen anew every so many steps, and stay after the
end.
"""

from __future__ import annotations

from mycel._src.foundation import arguments
from mycel._src.foundation.log import logger
from mycel._src.tensors.cells.cell import Cell
from mycel.compression.weight_pruning import masked_layers, update_masks
from mycel.train.callback.base import Callback, RunContext

__all__ = ["GradualPruning"]


class GradualPruning(Callback):
    """A callback of training that raises the sparsity of masks.

    Where hooks are called for several steps at once, as with data sinking, masks change then only.

    Args:
        net (Cell): A Cell with masks (`prune_weights`), by magnitude or movement.
        sparsity (float): The share of weights that are zero in the end.
        begin (int): The training step, from 1, at which it begins to grow.
        end (int): The training step at which it ends. A run that is over before logs a warning with
            the sparsity that was reached.
        every (int): The number of training steps between new masks. Default: 1.
        initial (float): The sparsity at the beginning. Default: 0.0.

    Raises:
        ValueError: For a network without masks or with patterns, and for steps in the wrong order.

    Examples:
        >>> import mycel as ms
        >>> from mycel.compression import GradualPruning, prune_weights
        >>> net = prune_weights(ms.nn.SequentialCell(ms.nn.Dense(4, 4)), 0.0)
        >>> callback = GradualPruning(net, 0.8, begin=10, end=110)
        >>> [round(callback.at(step), 2) for step in (5, 10, 60, 200)]
        [0.0, 0.0, 0.7, 0.8]
    """

    def __init__(self, net: Cell, sparsity: float, begin: int, end: int, every: int = 1, initial: float = 0.0) -> None:
        owner = "GradualPruning"
        arguments.instance(owner, "net", net, Cell, "a Cell")
        for name, share in (("sparsity", sparsity), ("initial", initial)):
            if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 <= share < 1:
                raise ValueError(f"{owner}: {name} must be from 0 to below 1, not {share!r}")
        layers = masked_layers(net)
        if not layers or any(c.rule.pattern is not None for c in layers.values()):
            raise ValueError(f"{owner}: the network must have masks without patterns; call prune_weights first")
        arguments.integer(owner, "begin", begin, 0)
        arguments.integer(owner, "every", every, 1)
        if type(end) is not int or end <= begin:
            raise ValueError(f"{owner}: end must be an int above begin {begin}, not {end!r}")
        self.net, self.sparsity, self.initial = net, float(sparsity), float(initial)
        self.begin_step, self.end_step, self.every = begin, end, every
        self._next = begin

    def at(self, step: int) -> float:
        """Return the sparsity at a step."""
        share = min(max((step - self.begin_step) / (self.end_step - self.begin_step), 0.0), 1.0)
        return self.sparsity + (self.initial - self.sparsity) * (1 - share) ** 3

    def on_train_begin(self, run_context: RunContext) -> None:
        """Begin with the first masks."""
        self._next = self.begin_step

    def on_train_step_end(self, run_context: RunContext) -> None:
        """Choose new masks where it is time."""
        step = int(run_context.original_args()["cur_step_num"])
        if step < self._next or self._next > self.end_step:
            return
        update_masks(self.net, self.at(step))
        self._next = min(step + self.every, self.end_step) if step < self.end_step else self.end_step + 1

    def on_train_end(self, run_context: RunContext) -> None:
        """Warn where training ended before the last masks."""
        if self._next <= self.end_step:
            step = int(run_context.original_args()["cur_step_num"])
            logger.warning(
                "GradualPruning: training ended at step %d of %d, with a sparsity of %.3f in place of %.3f",
                step,
                self.end_step,
                self.at(step),
                self.sparsity,
            )
