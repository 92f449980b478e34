"""Shared-memory windows, by which the ranks of one machine reduce large arrays.

Each rank has two windows of `SIZE` bytes, which are files in memory (memfd) that the others map. An
array goes through them piece by piece. Every rank writes its piece into its window; once all have,
each combines its part of all windows, in the order of ranks, and writes the result into its own
window, where nobody else reads this part; once all have, each copies all parts. The two windows
take turns: before one is written again, all ranks have come to the other, and so have read it.

Windows go with the processes that map them, however these end.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable

import numpy as np

from mycel._src.compiler.transport.base import Array, reduced

__all__ = ["LEAST", "Windows", "opened"]

SIZE = 16 << 20
LEAST = 1 << 20  # bytes of arrays for which it pays
Meet = Callable[[Array], list[Array]]


class Windows:
    """The windows of the members of a group, in their order; `own` is the place of this one."""

    def __init__(self, maps: list[list[Array]], own: int) -> None:
        self._maps, self._own, self._turn = maps, own, 0

    def all_reduce(self, flat: Array, op: str, meet: Meet) -> Array:
        """Return vectors of all members combined; `meet` gives what each member gives it, once all
        have.
        """
        result, count = np.empty_like(flat), len(self._maps)
        most = SIZE // flat.itemsize
        for start in range(0, flat.size, most):
            piece = flat[start : start + most]
            views = [maps[self._turn][: piece.nbytes].view(flat.dtype) for maps in self._maps]
            self._turn ^= 1
            ends = [piece.size * k // count for k in range(count + 1)]
            mine = slice(ends[self._own], ends[self._own + 1])
            views[self._own][:] = piece
            meet(np.array([flat.size, start]))
            views[self._own][mine] = reduced([v[mine] for v in views], op)
            meet(np.array([flat.size, start]))
            for view, a, b in zip(views, ends, ends[1:]):
                result[start + a : start + b] = view[a:b]
        return result


def opened(own: int, meet: Meet) -> Windows | None:
    """Return the windows of a group, which all its members open together; None where one of them
    cannot. `own` is this one's place, and `meet` that of `Windows.all_reduce`.
    """
    files: list[int] = []
    try:
        for _ in range(2 if hasattr(os, "memfd_create") else 0):
            files.append(os.memfd_create("mycel-window"))
            os.ftruncate(files[-1], SIZE)
        heads = meet(np.array([os.getpid(), *files] if len(files) == 2 else [0, 0, 0]))
        try:
            maps = [[_mapped(int(head[0]), int(file)) for file in head[1:]] for head in heads]
        except OSError:
            maps = []
        agreed = meet(np.array([len(maps)]))
    finally:
        for file in files:
            os.close(file)
    return Windows(maps, own) if all(int(found[0]) for found in agreed) else None


def _mapped(process: int, file: int) -> Array:
    opened = os.open(f"/proc/{process}/fd/{file}", os.O_RDWR)
    try:
        return np.frombuffer(mmap.mmap(opened, SIZE), np.uint8)
    finally:
        os.close(opened)
