"""Graphs with data-dependent sizes (masks), cut into phases that run once their sizes are known.

A graph is cut at its `positions` nodes (`prims.nonzero_positions`).

Each phase runs when the sizes that it needs are known. The level of a node is the number of steps
of finding positions that must come before it: those that it depends on, and those whose counts
appear in its type or parameters. Phase k computes the nodes of level k that a later phase, a mask
or an output needs; then the positions of the masks at that level are found, which binds their
symbols. Each phase is a separate graph, with a program for each tuple of sizes (`Engine.sized`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.compiler.prims.elementwise import identity
from mycel._src.compiler.prims.nonzero_positions import positions
from mycel._src.compiler.transforms.specialize import inner_sizes, specialize
from mycel._src.engines import buffers, nonfinite
from mycel._src.engines.base import current
from mycel._src.engines.size_specialization import types_for

__all__ = ["Phases"]


class _Phase:
    """One phase: its program, the values that it takes, and those that it gives.

    `graph` is the phase's graph. `sources` are the nodes of the whole graph that its inputs stand
    for, `results` those that its outputs stand for; `aliases` maps outputs to the inputs into whose
    memory they are written.
    """

    def __init__(self, graph: Graph, sources: list[Node], results: list[Node], aliases: dict[int, int]) -> None:
        self.programs = current().sized(graph, aliases)
        self.sources, self.results = sources, results
        self.types = graph.output_types
        self.names = tuple(symbols_in(*inner_sizes(graph)))


class Phases:
    """The phases of a graph.

    `aliases` maps outputs to the inputs into whose memory they are written.
    """

    def __init__(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> None:
        self.graph = graph
        self.aliases = {} if nonfinite.is_on() else dict(aliases or {})
        self.level: dict[Node, int] = {}
        counts: dict[str, int] = {}
        # A size may be mentioned before the positions that it counts: levels grow until they agree.
        while True:
            before = dict(counts)
            self._find_levels(counts)
            if counts == before:
                break
        self.phases = self._cut(max(counts.values(), default=0))

    def _find_levels(self, counts: dict[str, int]) -> None:
        """Compute the levels of all nodes, and update those in `counts`, which bind symbols."""
        for node in self.graph.inputs:
            self.level[node] = 0
        for node in self.graph.nodes:
            level = max([self.level[i] for i in node.inputs], default=0)
            if node.prim is positions:
                (name,) = symbols_in(node.params["count"])
                level = counts[name] = max(level + 1, counts.get(name, 0))
            else:
                for name in symbols_in(*inner_sizes(node)):
                    level = max(level, counts.get(name, 0))
            self.level[node] = level

    def _cut(self, last: int) -> list[tuple[_Phase | None, list[Node]]]:
        graph, level = self.graph, self.level
        needed: set[Node] = {n.inputs[0] for n in graph.nodes if n.prim is positions}
        for node in graph.nodes:
            for i in node.inputs:
                if node.prim is not positions and level[i] < level[node]:
                    needed.add(i)
        given: set[Node] = set(graph.inputs) | {n for n in graph.nodes if n.prim is positions}
        phases: list[tuple[_Phase | None, list[Node]]] = []
        for k in range(last + 1):
            found = [n for n in graph.nodes if n.prim is positions and level[n] == k + 1]
            if k == last:
                results = list(graph.outputs)
            else:
                results = [
                    n
                    for n in graph.nodes
                    if level[n] == k and n in needed and n not in given and n.prim is not CONSTANT
                ]
            phases.append((self._phase(results, given, k == last), found))
            given |= set(results)
        return phases

    def _phase(self, results: list[Node], given: set[Node], is_last: bool) -> _Phase | None:
        if not results:
            return None
        used = [n for n in toposort(results, stop=given) if n in given]
        order = list(dict.fromkeys([*self.graph.inputs, *used] if is_last else used))
        stand_in = {n: input_node(n.type, "phase") for n in order}
        outputs = substitute(results, stand_in)
        outputs = [Node(identity, (o,), {}, o.type) if o.prim is None else o for o in outputs]
        inner = Graph(list(stand_in.values()), outputs, self.graph.name)
        return _Phase(inner, order, results, self.aliases if is_last else {})

    def run(self, given: Sequence[Any], sizes: Mapping[str, int]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return the outputs' buffers and their types.

        `given` are the inputs' buffers, `sizes` those of the symbols in the inputs' types.
        """
        known = dict(sizes)
        values: dict[Node, Any] = dict(zip(self.graph.inputs, given))
        types: tuple[Any, ...] = ()
        results: tuple[Any, ...] = ()
        for phase, found in self.phases:
            if phase is not None:
                entry = phase.programs.entry({n: known[n] for n in phase.names})
                made = entry(*[values[n] for n in phase.sources])
                results = made if isinstance(made, tuple) else (made,)
                values.update(zip(phase.results, results))
                types = types_for(phase.types, known)
            for node in found:
                self._bind(node, values, known)
        if nonfinite.is_on():
            nonfinite.examine(specialize(self.graph, known), given, results)
        return results, types

    def _bind(self, node: Node, values: dict[Node, Any], known: dict[str, int]) -> None:
        mask = node.inputs[0]
        (kind,) = types_for([mask.type], known)
        if mask.prim is CONSTANT:
            array = mask.value
        else:
            array = buffers.to_array(values[mask], kind)
        held = np.flatnonzero(array).astype(np.int64)
        count = node.params["count"]
        assert isinstance(count, Dim)
        (name,) = symbols_in(count)
        known[name] = len(held)
        values[node] = buffers.from_array(held)
