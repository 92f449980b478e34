"""Programs of graphs with symbolic sizes, whatever engine makes them.

`programs_of` remembers those of a graph as long as the graph lives. `Specialized` is what an engine can give that has no code for all sizes at once: the graph with actual
sizes put in, compiled for each tuple of them, of which the most recently used are kept.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Optional, TypeVar
from weakref import WeakKeyDictionary

from mycel.base import config, locks
from mycel.engines.base import Engine, Entry, Sized, current
from mycel.ir.graph import Graph
from mycel.transforms.specialize import concrete, specialize

__all__ = ["MOST", "BySizes", "Specialized", "programs_of", "types_for"]

T = TypeVar("T")
MOST = 32
_lock = locks.reentrant()


class BySizes(ABC, Generic[T]):
    """What is made of a graph for each tuple of sizes, of which the `MOST` most recently used are kept."""

    def __init__(self) -> None:
        self.programs: OrderedDict[tuple[int, ...], T] = OrderedDict()

    def program(self, sizes: Mapping[str, int]) -> T:
        """What there is for actual sizes of all symbols."""
        key = tuple(sizes.values())
        with _lock:
            found = self.programs.get(key)
            if found is None:
                found = self.programs[key] = self.make(sizes)
                while len(self.programs) > MOST:
                    self.programs.popitem(last=False)
            else:
                self.programs.move_to_end(key)
            return found

    @abstractmethod
    def make(self, sizes: Mapping[str, int]) -> T:
        """Make it for sizes that are new."""


class Specialized(BySizes[Entry], Sized):
    """A graph that an engine compiles for each tuple of sizes."""

    def __init__(self, engine: Engine, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> None:
        super().__init__()
        self.engine, self.graph, self.aliases = engine, graph, dict(aliases or {})

    def make(self, sizes: Mapping[str, int]) -> Entry:
        return self.engine.compile(specialize(self.graph, sizes) if sizes else self.graph, self.aliases)

    def entry(self, sizes: Mapping[str, int]) -> Entry:
        return self.program(sizes)


_programs: WeakKeyDictionary[Graph, Sized] = WeakKeyDictionary()


def _on_settings(options: Any) -> None:
    if not config.COMPILED_ANEW.isdisjoint(options):
        _programs.clear()


config.listeners.append(_on_settings)


def programs_of(graph: Graph) -> Sized:
    """The programs of a graph that writes over none of its inputs; remembered as long as the graph lives."""
    found = _programs.get(graph)
    if found is None:
        # A copy, as what holds its own key would never be let go.
        found = _programs.setdefault(graph, current().sized(Graph(graph.inputs, graph.outputs, graph.name)))
    return found


def types_for(types: Sequence[Any], sizes: Mapping[str, int]) -> tuple[Any, ...]:
    """Types with actual sizes."""
    return tuple([concrete(t, sizes) for t in types])
