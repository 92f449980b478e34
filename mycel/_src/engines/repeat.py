"""Runs a program for many rounds in one call, for engines without a native loop of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from mycel._src.engines.base import Entry, Repetition, Rounds

__all__ = ["Repeatable", "Repeated"]

_ALIGNED = 64


class Repeatable(Protocol):
    """What a program must have to be repeated: its entry, output types, and aliased outputs."""

    @property
    def entry(self) -> Entry: ...

    @property
    def outputs(self) -> Sequence[Any]: ...

    @property
    def aliases(self) -> Mapping[int, int]: ...


class _Rounds(Rounds):
    def __init__(self, count: int, last: Sequence[Any], kept: Sequence[Mapping[int, Any]]) -> None:
        self.count, self.last, self.kept = count, last, kept

    def row(self, k: int) -> tuple[Any, ...]:
        k = k % self.count
        return tuple([self.at(j, k) if self.keeps(j) else found for j, found in enumerate(self.last)])

    def keeps(self, j: int) -> bool:
        return bool(self.kept) and j in self.kept[0]

    def at(self, j: int, k: int) -> Any:
        return self.kept[k][j]


class Repeated(Repetition):
    """A program whose rounds are calls of its entry."""

    def __init__(self, program: Repeatable, carried: Mapping[int, int]) -> None:
        self.program, self.carried = program, dict(carried)

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
        program, state, moving = self.program, list(stay), len(rounds[0])
        own = [j for j in range(len(program.outputs)) if j not in program.aliases and j not in self.carried]
        size = sum(-(-max(int(program.outputs[j].nbytes), 1) // _ALIGNED) * _ALIGNED for j in own)
        keep = keep or len(rounds) * size <= self.KEPT
        kept: list[dict[int, Any]] = []
        values: tuple[Any, ...] = ()
        for batch in rounds:
            try:
                found = program.entry(*batch, *state)
            except BaseException:
                for i in self.carried.values() if restore is not None else ():
                    restore(i, state[i - moving])  # type: ignore[misc]
                raise
            values = found if type(found) is tuple else (found,)
            if keep:
                kept.append({j: values[j] for j in own})
            for j, i in self.carried.items():
                state[i - moving] = values[j]
        return _Rounds(len(rounds), values, kept)
