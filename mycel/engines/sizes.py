"""Programs of graphs with symbolic sizes, whatever engine makes them.

`programs_of` remembers those of a graph as long as the graph lives. `Specialized` is what an engine can give that has no code for all sizes at once: the graph with actual
sizes put in, compiled for each tuple of them, of which the most recently used are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Optional
from weakref import WeakKeyDictionary

from mycel.base import locks
from mycel.engines.base import Engine, Entry, Sized, current
from mycel.ir.graph import Graph
from mycel.transforms.specialize import concrete, specialize

__all__ = ["Specialized", "programs_of", "types_for"]

MOST = 32
_lock = locks.reentrant()


class Specialized(Sized):
    """A graph that an engine compiles for each tuple of sizes."""

    def __init__(self, engine: Engine, graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> None:
        self.engine, self.graph, self.aliases = engine, graph, dict(aliases or {})
        self.entries: OrderedDict[tuple[int, ...], Entry] = OrderedDict()

    def entry(self, sizes: Mapping[str, int]) -> Entry:
        key = tuple(sizes.values())
        with _lock:
            found = self.entries.get(key)
            if found is None:
                graph = specialize(self.graph, sizes) if sizes else self.graph
                found = self.entries[key] = self.engine.compile(graph, self.aliases)
                while len(self.entries) > MOST:
                    self.entries.popitem(last=False)
            else:
                self.entries.move_to_end(key)
            return found


_programs: WeakKeyDictionary[Graph, Sized] = WeakKeyDictionary()


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
