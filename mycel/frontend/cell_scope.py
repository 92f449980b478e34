"""The path of the Cell that is being staged, which nodes carry (`Where.cell`).

A path is "Net.features.0:Conv2d": the class of the outermost Cell, the attributes that lead from
each Cell to the next, and the class of the innermost one.
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
    """Return the path of `cell`, which is called in the Cell `outer` with the path `path`.

    Without an outer Cell `path` is "" and `outer` is None.
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
    """Return a context manager that gives nodes the path of a Cell, and yields that path."""
    before, cells = current_cell(), _local.cells
    path = path_in(before, cells[-1] if cells else None, cell)
    _local.cells = (*cells, cell)
    set_cell(path)
    try:
        yield path
    finally:
        _local.cells = cells
        set_cell(before)
