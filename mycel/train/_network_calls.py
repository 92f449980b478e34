"""How `Model` calls networks: function losses, divided networks, checks of arguments."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mycel._src.foundation import arguments
from mycel._src.foundation.settings.config import GRAPH_MODE, get_context
from mycel._src.foundation.settings.parallel_settings import in_force
from mycel._src.staging.compiled.parallel_dispatch import dividing
from mycel._src.tensors.cells.cell import Cell

__all__ = ["FunctionLoss", "called", "check_columns", "check_counts", "checked_indexes", "settings_of"]


class FunctionLoss(Cell):
    """A loss given as a plain function of (prediction, label)."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def construct(self, *arguments: Any) -> Any:
        """Return the loss."""
        return self.function(*arguments)


def called(network: Cell, batch: tuple[Any, ...]) -> Any:
    """Return a network's outputs; ranks that divide it do so in any mode, by compiling it."""
    if not dividing.now or get_context("mode") == GRAPH_MODE:
        return network(*batch)
    if "_names_checked" not in network.__dict__:
        network._before_first_call()
    return network.compile_and_run(*batch)


def settings_of(network: Any) -> AbstractContextManager[None]:
    """Return a context in which the parallel settings of a network's own are in force, if it is an
    `AutoParallel` or has one inside.
    """
    for _, cell in network.cells_and_names():
        own = getattr(cell, "settings_in_force", None)
        if own is not None:
            return in_force(own)
    return nullcontext()


def checked_indexes(indexes: Any) -> list[int] | None:
    """Return the positions of loss, prediction and label among the outputs of an evaluation."""
    if indexes is None:
        return None
    if not isinstance(indexes, list) or len(indexes) != 3 or not all(isinstance(i, int) and i >= 0 for i in indexes):
        raise ValueError(f"Model: eval_indexes must be three positions, of loss, prediction and label, not {indexes!r}")
    return indexes


def check_counts(function: str, epoch: Any, initial_epoch: Any, sink: Any, sink_size: Any) -> None:
    """Raise ValueError or TypeError for an `epoch`, `initial_epoch`, `sink` or `sink_size` of the
    `function` that does not fit.
    """
    for name, value, least in (("epoch", epoch, 1), ("initial_epoch", initial_epoch, 0)):
        arguments.integer(function, name, value, least, numpy=False)
    if initial_epoch >= epoch:
        raise ValueError(
            f"{function}: epoch, where training ends, must be greater than initial_epoch; {epoch} is not > "
            f"{initial_epoch}"
        )
    arguments.flag(function, "dataset_sink_mode", sink)
    arguments.integer(function, "sink_size", sink_size, numpy=False)
    if sink_size == 0 or sink_size < -1:
        raise arguments.wrong_value(function, "sink_size", "-1 or positive", sink_size)


def check_columns(argument: str, batch: tuple[Any, ...], loss_fn: Cell | None) -> None:
    """Raise ValueError for a batch that a model with a loss does not take."""
    if loss_fn is not None and len(batch) != 2:
        raise ValueError(
            f"Model: {argument} gives {len(batch)} columns, and a model with a loss_fn takes two, data and label; "
            "choose them with "
            "dataset.project([...]), or give a network that computes its loss and leave loss_fn out"
        )
