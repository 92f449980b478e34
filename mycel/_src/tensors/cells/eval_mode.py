"""`outside_of_training`: a context in which a network is in evaluation mode."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.tensors.cells.cell import Cell

__all__ = ["outside_of_training"]


@contextmanager
def outside_of_training(net: Any) -> Iterator[None]:
    """Put a Cell and those in it out of training, and each back afterwards.

    What is no Cell is left alone.
    """
    modes = [(cell, cell.training) for _, cell in net.cells_and_names()] if isinstance(net, Cell) else []
    if isinstance(net, Cell):
        net.set_train(False)
    try:
        yield
    finally:
        for cell, mode in modes:
            if cell.training != mode:
                cell.training = mode
