"""Runs a program for many rounds in one call, natively.

`repetition(entry, carried)` prepares everything that is the same for every call; `run` takes the
buffers that stay and those that differ between rounds, and gives the buffers of all results. A
result is one of three kinds: *aliased* (a parameter, updated in place), *carried* (state that each
round computes anew: the input's buffer is copied first, so that the caller's memory is not
written), or a *row*: every round writes its own row of one array, with rows aligned to 64 bytes.
Where rows would take more than `KEPT` bytes and only the last is wanted, all rounds write the same
memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mycel._src.engines import buffers
from mycel._src.engines.base import Entry, Repetition, Rounds
from mycel._src.engines.native.program.program import Program, program_of
from mycel._src.engines.native.runtime.repeat_ir import REPEAT
from mycel._src.engines.native.runtime.runtime import runtime
from mycel._src.engines.native.runtime.runtime_ir import PROGRAM

__all__ = ["repetition"]

_ALIGNED = 64
_ROUNDS, _BASES, _MOVES, _MOVE_TABLE = (REPEAT.index(n) for n in ("rounds", "bases", "moves", "move_table"))


class _Rounds(Rounds):
    """The results of a repetition: rows of blocks of memory, and buffers of the other results."""

    def __init__(self, count: int, outputs: Sequence[Any], rows: Mapping[int, tuple[Any, int, int]]) -> None:
        self.count = count
        self._outputs, self._rows = outputs, rows

    def row(self, k: int) -> tuple[Any, ...]:
        k = k % self.count
        return tuple([self.at(j, k) if j in self._rows else found for j, found in enumerate(self._outputs)])

    def keeps(self, j: int) -> bool:
        return j in self._rows

    def at(self, j: int, k: int) -> Any:
        block, start, stride = self._rows[j]
        return runtime().wrap(block, start + k * stride)


def repetition(entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
    """Return the program of an entry as a `Repetition`; None where it is not a single program."""
    found = program_of(entry)
    return None if found is None else _Repetition(found, carried)


class _Repetition(Repetition):
    """A program to be run many times in one call.

    `carried` maps results to the inputs of the next round.
    """

    def __init__(self, found: Program, carried: Mapping[int, int]) -> None:
        self.program = found
        self.carried = dict(carried)
        table = found.table
        # A program that runs without Python's lock may not run with it, and without the mutex, at
        # the same time.
        table[PROGRAM.index("heavy")] = 1
        self.aliases: dict[int, int] = found.template.aliases
        self.inputs, self.outputs = table[PROGRAM.index("inputs")], len(found.outputs)
        self.carries = (ctypes.c_int64 * max(3 * len(self.carried), 1))()
        for n, (j, i) in enumerate(self.carried.items()):
            self.carries[3 * n : 3 * n + 3] = [self.inputs + j, i, int(found.outputs[j].nbytes)]
        self._words = [
            ctypes.addressof(table),
            0,
            0,
            0,
            0,
            len(self.carried),
            ctypes.addressof(self.carries),
            0,
        ]

    def row_bytes(self) -> int:
        """Return the bytes of the results of one round that are rows."""
        own = [b for j, b in enumerate(self.program.output_bytes) if j not in self.aliases and j not in self.carried]
        return sum(-(-b // _ALIGNED) * _ALIGNED for b in own)

    def run(
        self,
        stay: Sequence[Any],
        rounds: Sequence[Sequence[Any]],
        keep: bool = False,
        restore: Callable[[int, Any], None] | None = None,
    ) -> Rounds:
        """Run the program for each of `rounds`.

        `stay`, `keep` and `restore` are as `Repetition.run` says.
        """
        count, moving = len(rounds), len(rounds[0])
        address = buffers.address
        stay = list(stay)
        for i in self.carried.values():
            stay[i - moving] = buffers.copy(stay[i - moving], self.program.graph.input_types[i])  # type: ignore[arg-type]
        bases = (ctypes.c_int64 * (self.inputs + self.outputs + 1))()
        bases[moving : self.inputs] = [address(b) for b in stay]
        moves: list[tuple[int, Sequence[int] | range]] = [(i, [address(r[i]) for r in rounds]) for i in range(moving)]
        outputs: list[Any] = []
        rows: dict[int, tuple[Any, int, int]] = {}
        keep = keep or count * self.row_bytes() <= self.KEPT
        for j, nbytes in enumerate(self.program.output_bytes):
            if j in self.aliases:
                outputs.append(stay[self.aliases[j] - moving])
            elif keep and j not in self.carried:
                stride = -(-nbytes // _ALIGNED) * _ALIGNED
                block = buffers.empty(stride * count)
                start = address(block)
                rows[j] = (block, start, stride)
                moves.append((self.inputs + j, range(start, start + stride * count, stride)))
                outputs.append(None)
                continue
            else:
                outputs.append(buffers.empty(nbytes))
            bases[self.inputs + j] = address(outputs[j])
        lists = [(ctypes.c_int64 * count)(*places) for _, places in moves]
        table = (ctypes.c_int64 * max(2 * len(moves), 1))()
        for n, ((base, _), places) in enumerate(zip(moves, lists)):
            table[2 * n], table[2 * n + 1] = base, ctypes.addressof(places)
        plan = (ctypes.c_int64 * len(REPEAT))(*self._words)
        plan[_ROUNDS], plan[_BASES] = count, ctypes.addressof(bases)
        plan[_MOVES], plan[_MOVE_TABLE] = len(moves), ctypes.addressof(table)
        try:
            self.program.guarded(lambda: runtime().repeat(ctypes.addressof(plan)))
        except BaseException:
            for i in self.carried.values() if restore is not None else ():
                restore(i, stay[i - moving])  # type: ignore[misc]
            raise
        return _Rounds(count, outputs, rows)
