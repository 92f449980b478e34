"""How `Model` calls networks: losses that are functions, and networks that ranks divide."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mycel.base.config import GRAPH_MODE, get_context
from mycel.base.parallel_settings import in_force
from mycel.cells.cell import Cell
from mycel.compiled.divided import dividing

__all__ = ["FunctionLoss", "called", "settings_of"]


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
