"""The base of layers that take no arguments."""

from __future__ import annotations

from mycel._src.tensors.cells.cell import Cell


class Plain(Cell):
    """Base of layers that are made without arguments."""

    def __init__(self) -> None:
        super().__init__()
