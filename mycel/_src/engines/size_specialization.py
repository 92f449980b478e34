"""Programs per tuple of actual sizes, for graphs with symbolic sizes, on every engine.

`programs_of` remembers those of a graph as long as the graph lives. `Specialized` serves an engine
without code for all sizes at once: it compiles the graph for each tuple of actual sizes, and
remembers the programs most recently used.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.transforms.specialize import concrete, specialize
from mycel._src.engines.base import Engine, Entry, Sized, current
from mycel._src.foundation.bounded_caches import FEW, MANY, Remembered, RememberedOf
from mycel._src.foundation.settings import config
from mycel._src.foundation.system import locks

__all__ = ["BySizes", "Specialized", "programs_of", "types_for"]

T = TypeVar("T")
_lock = locks.reentrant()


class BySizes(ABC, Generic[T]):
    """An object for each tuple of sizes of a graph, made when it is first needed."""

    def __init__(self) -> None:
        self.programs = Remembered[tuple[int, ...], T]("programs by sizes", FEW)

    def program(self, sizes: Mapping[str, int]) -> T:
        """Return the object for actual sizes of all symbols."""
        key = tuple(sizes.values())
        with _lock:
            return self.programs.recall(key, lambda: self.make(sizes))

    @abstractmethod
    def make(self, sizes: Mapping[str, int]) -> T:
        """Make the object for new sizes."""


class Specialized(BySizes[Entry], Sized):
    """A graph that an engine compiles for each tuple of sizes."""

    def __init__(self, engine: Engine, graph: Graph, aliases: Mapping[int, int] | None = None) -> None:
        super().__init__()
        self.engine, self.graph, self.aliases = engine, graph, dict(aliases or {})

    def make(self, sizes: Mapping[str, int]) -> Entry:
        return self.engine.compile(specialize(self.graph, sizes) if sizes else self.graph, self.aliases)

    def entry(self, sizes: Mapping[str, int]) -> Entry:
        return self.program(sizes)


_programs = RememberedOf[Sized]("graphs of symbolic sizes", MANY, config.COMPILED_ANEW)


def programs_of(graph: Graph) -> Sized:
    """Return the programs of a graph that overwrites none of its inputs.

    They are remembered as long as the graph lives.
    """
    # Of a copy, as what holds its own key would never be let go.
    return _programs.of(graph, lambda: current().sized(Graph(graph.inputs, graph.outputs, graph.name)))


def types_for(types: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Return types with actual sizes in place of symbols."""
    return tuple([concrete(t, sizes) for t in types])
