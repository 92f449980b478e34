"""Cell paths: the path of the Cell being staged, which its nodes carry (`Where.cell`).

A path is "Net.features.0:Conv2d": the class of the outermost Cell, the attributes that lead from
each Cell to the next, and the class of the innermost one. Operators that are divided among devices
have MindSpore's form of it in their names, "Default/features-SequentialCell/0-Conv2d".
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.graph import current_cell, set_cell
from mycel._src.foundation.settings.parallel_settings import current

__all__ = ["inside_cell", "inside_micro_batch", "micro_batch", "path_in", "pipeline_stage", "scope_name"]


class _Local(threading.local):
    cells: tuple[Any, ...] = ()
    micro: int = -1


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
    outer = next((c for c in reversed(cells) if c._micro_batch is None), None)
    path = before if cell._micro_batch is not None else path_in(before, outer, cell)
    _local.cells = (*cells, cell)
    set_cell(path)
    try:
        yield path
    finally:
        _local.cells = cells
        set_cell(before)


def scope_name() -> str:
    """Return the path of the present Cell in MindSpore's form."""
    parts = ["Default"]
    cells = [c for c in _local.cells if c._micro_batch is None]
    for outer, cell in zip(cells, cells[1:]):
        name = next((n for n, c in outer._cells.items() if c is cell), "")
        if not name:
            name = next((n for n, c in outer.cells_and_names() if c is cell and n), "").replace(".", "/")
        kind = type(cell).__name__
        parts.append(f"{name}-{kind}" if name else kind)
    return "/".join(parts)


def pipeline_stage() -> int:
    """Return the stage of a pipeline that the innermost Cell with a `pipeline_stage` has; -1 if
    none of the present Cells has one.

    The stages of segment k of the innermost Cell with a `pipeline_segment` come behind those of the
    k segments before.
    """
    stage = next((c._pipeline_stage for c in reversed(_local.cells) if c._pipeline_stage is not None), -1)
    segment = next((c._pipeline_segment for c in reversed(_local.cells) if c._pipeline_segment is not None), 0)
    return stage + segment * current().pipeline_stages if stage >= 0 else stage


def micro_batch() -> int:
    """Return the number of the micro-batch that is being staged, -1 outside of micro-batches."""
    found = next((c._micro_batch for c in reversed(_local.cells) if c._micro_batch is not None), -1)
    return _local.micro if found < 0 else found


@contextmanager
def inside_micro_batch(number: int) -> Iterator[None]:
    """Have the operators of a block work on one micro-batch."""
    before, _local.micro = _local.micro, number
    try:
        yield
    finally:
        _local.micro = before
