"""Which Cell is being staged: nodes carry the path of the Cells that were called around them
(`Where.cell`).

A path is "Net.features.0:Conv2d": the outermost Cell's class, the attributes that lead from each to
the next, and the innermost one's class.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycel.ir.graph import current_cell, set_cell

__all__ = ["inside_cell", "path_in"]


class _Local(threading.local):
    cells: tuple[Any, ...] = ()


_local = _Local()


def path_in(path: str, outer: Any, cell: Any) -> str:
    """Return the path of a Cell that is called in another one, which has `path`; "" and None where
    there is no other.
    """
    kind = type(cell).__name__
    if outer is None:
        return f"{kind}:{kind}"
    base = path.partition(":")[0]
    for name, found in outer._cells.items():
        if found is cell:
            return f"{base}.{name}:{kind}"
    for name, found in outer.cells_and_names():
        if found is cell and name:
            return f"{base}.{name}:{kind}"
    return f"{base}.{kind}:{kind}"


@contextmanager
def inside_cell(cell: Any) -> Iterator[str]:
    """Let nodes made in the block say that they belong to a Cell; its path."""
    before, cells = current_cell(), _local.cells
    path = path_in(before, cells[-1] if cells else None, cell)
    _local.cells = (*cells, cell)
    set_cell(path)
    try:
        yield path
    finally:
        _local.cells = cells
        set_cell(before)
