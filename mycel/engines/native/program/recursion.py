"""Recursive functions made for actual sizes; see `recursion_ir` for how the runtime runs them.

A routine is encoded like a program, but all addresses inside it are relative to the record that each activation gets.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mycel.engines.native.program.program import Program, Table, signed
from mycel.engines.native.runtime.recursion_ir import ROUTINE

if TYPE_CHECKING:
    from mycel.engines.native.program.program import Template

__all__ = ["Routine"]


class Routine(Program):
    """The body of a recursive function for actual sizes; `descriptor` is what calls of it point to."""

    def __init__(self, owner: Program, label: str, template: Template) -> None:
        self.descriptor = (ctypes.c_int64 * len(ROUTINE))()
        super().__init__(template, owner.sizes, owner, {**owner.routines, label: self})

    def finish(self, table: Table, aliases: Mapping[int, int]) -> None:
        bases = len(self.lowered.inputs) + len(self.outputs)
        header = _rounded(8 * (bases + 2))
        tables = [(None, table), *self.tables]
        places = []
        size = header + 8 * len(self.words)
        for _, entries in tables:
            places.append(size)
            size += 32 * len(entries)
        arena = _rounded(size)
        block = (ctypes.c_int64 * (arena // 8))()
        block[header // 8 : header // 8 + len(self.words)] = [signed(w) for w in self.words]
        relocations = [(header + 8 * word, number, offset) for word, number, offset in self.relocations]
        for (word, entries), place in zip(tables, places):
            if word is not None:
                relocations.append((header + 8 * word, bases + 1, place))
            for k, (start, function, extent, least) in enumerate(entries):
                at = place // 8 + 4 * k
                block[at : at + 4] = [signed(function), 0, extent, least]
                relocations.append((place + 32 * k + 8, bases + 1, header + 8 * start))
        flat = [number for relocation in relocations for number in relocation]
        held = (ctypes.c_int64 * max(len(flat), 1))(*flat)
        sizes = (ctypes.c_int64 * max(len(self.output_bytes), 1))(*self.output_bytes)
        self.descriptor[:] = [
            ctypes.addressof(block), arena, max(arena + _rounded(self.arena_bytes), 64), len(relocations), ctypes.addressof(held),
            bases, arena, places[0], len(table), len(self.lowered.inputs), ctypes.addressof(sizes),
        ]  # fmt: skip
        self._alive += [block, held, sizes]


def _rounded(size: int) -> int:
    return -(-size // 64) * 64
