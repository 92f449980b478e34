"""Programs of the XLA engine: one compiled function, or several with host steps between.

A program is one function that XLA compiled, or several with host steps between them. The level of a
node is the number of host steps that come before it: a *part* computes the nodes of one level, then
the host steps that need no later one run in the graph's order.

Where all is one part, the memory of inputs that are written over is donated to it. What stopped it
is known when it ends (see `interpret`); then those inputs keep their values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import InconclusiveDimension
from mycel._src.compiler.ir.graph import Graph, Node, input_node, substitute, toposort
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.engines.base import Entry, Repetition
from mycel._src.engines.error_messages import index_out_of_range, note_host_step
from mycel._src.engines.host_memory import check_needs
from mycel._src.engines.reference.evaluation import evaluate as on_host
from mycel._src.engines.reference.reports import footprint
from mycel._src.engines.reference.trace import active
from mycel._src.engines.repeat import Repeated
from mycel._src.engines.xla import device_buffers
from mycel._src.engines.xla.binding import jax, jnp
from mycel._src.engines.xla.interpret import Scope, Site, evaluate, may_stop
from mycel._src.engines.xla.preparing import is_host_step, prepared
from mycel._src.engines.xla.trace import Record, XlaProgram
from mycel._src.foundation.settings import config
from mycel._src.foundation.spans import timed

__all__ = ["OPTIONS", "Program", "options", "raise_noted", "repetition"]

# Further options of XLA for what is compiled.
OPTIONS: dict[str, Any] = {}


def options() -> dict[str, Any]:
    """Return how XLA compiles a program: 16-bit floats are rounded after every operation, unless
    the option `wide_intermediates` says otherwise.
    """
    return {"xla_allow_excess_precision": bool(config.get_context("wide_intermediates")), **OPTIONS}


def raise_noted(sites: Sequence[Site], note: Any) -> None:
    """Raise the error of a note, if it is one."""
    number, index = np.asarray(note).tolist()
    if number:
        site = sites[number - 1]
        raise index_out_of_range(site.node, site.axis, site.size, index, site.wraps)


class Part:
    """A graph that XLA runs as one function.

    `aliases` maps outputs to the inputs whose memory is donated to them.
    """

    def __init__(self, graph: Graph, aliases: Mapping[int, int]) -> None:
        self.graph = graph
        self.donated = sorted(set(aliases.values()))
        self.kept = [i for i in range(len(graph.inputs)) if i not in set(self.donated)]
        self.stops = may_stop(graph)
        self.sites: list[Site] = []

        def function(donated: Sequence[Any], kept: Sequence[Any]) -> tuple[list[Any], Any | None]:
            arrays: list[Any] = [None] * len(graph.inputs)
            for places, values in ((self.donated, donated), (self.kept, kept)):
                for i, value in zip(places, values):
                    arrays[i] = value
            sites: list[Site] = []
            scope = Scope(sites)
            results = evaluate(graph, arrays, scope)
            if not self.stops:
                return results, None
            note = scope.noted()
            for j, i in aliases.items():
                results[j] = jnp.where(note[0] == 0, results[j], arrays[i])
            # Every tracing finds the same sites.
            self.sites = sites
            return results, note

        function.__name__ = "".join(c if c.isalnum() else "_" for c in graph.name) or "graph"
        self.function = jax.jit(function, donate_argnums=(0,), compiler_options=options())

    def run(self, arrays: Sequence[Any]) -> tuple[list[Any], Any | None]:
        """Return the results and the note of what stopped the function, if it may stop."""
        found: tuple[list[Any], Any | None] = self.function(
            [arrays[i] for i in self.donated], [arrays[i] for i in self.kept]
        )
        return found


class Program:
    """A graph of static types; `entry` runs it."""

    @timed("program", lambda _, graph, *__: graph.name)
    def __init__(self, graph: Graph, aliases: Mapping[int, int]) -> None:
        self.aliases = dict(aliases)
        for kind in graph.input_types:
            if isinstance(kind, TensorType) and not kind.is_static:
                raise InconclusiveDimension(f"{graph.name}: the sizes of {kind} are not known")
        check_needs(graph, footprint(graph, aliases).own)
        self.graph = prepared(graph)
        self.inputs: list[Any] = list(graph.input_types)
        self.outputs: list[Any] = list(graph.output_types)
        if any(map(is_host_step, self.graph.nodes)):
            self.stages = _stages(self.graph)
            self.whole = None
        else:
            self.stages = []
            self.whole = Part(self.graph, self.aliases)
        self.is_plain = self.whole is not None and not self.aliases and not self.whole.stops
        self.traced = XlaProgram(self.graph, self.aliases, [p.graph for p, *_ in self.stages if p is not None])

    def entry(self, *given: Any) -> Any:
        """Return the buffer of the output, or a tuple of buffers, given those of the inputs."""
        if self.is_plain and not active:
            return self._plain(given)
        record = Record(self.traced)
        try:
            found = [device_buffers.value_of(b, t) for b, t in zip(given, self.inputs)]
            arrays = [array for array, _ in found]
            if self.whole is not None:
                for i in self.whole.donated:
                    if found[i][1] and sum(a is arrays[i] for a in arrays) > 1:
                        arrays[i] = jnp.copy(arrays[i])
                values, note = self.whole.run(arrays)
                record.part_ended(values)
            else:
                values, note = self._staged(arrays, record)
            results = self._results(given, arrays, values)
            if note is not None and self.whole is not None:
                raise_noted(self.whole.sites, note)
        finally:
            record.ends()
        return results[0] if len(results) == 1 else tuple(results)

    def _plain(self, given: Sequence[Any]) -> Any:
        """Run a program that writes over no input and that nothing stops, when nobody traces it."""
        arrays = [device_buffers.array_of(b, t) for b, t in zip(given, self.inputs)]
        values, _ = self.whole.function([], arrays)  # type: ignore[union-attr]
        if len(values) == 1:
            value = values[0]
            for array in arrays:
                if array is value:
                    value = jnp.copy(value)
                    break
            return device_buffers.Held(None, value)
        return tuple(self._results(given, arrays, values))

    def _results(self, given: Sequence[Any], arrays: Sequence[Any], values: Sequence[Any]) -> list[Any]:
        # An array that XLA passed on belongs to a buffer already.
        seen = {id(a) for a in arrays}
        results = []
        for j, value in enumerate(values):
            if id(value) in seen:
                value = jnp.copy(value)
            seen.add(id(value))
            if j in self.aliases:
                buffer = given[self.aliases[j]]
                device_buffers.write(buffer, value, self.outputs[j])
                results.append(buffer)
            else:
                results.append(device_buffers.held(value))
        return results

    def _staged(self, arrays: Sequence[Any], record: Any) -> tuple[list[Any], None]:
        values: dict[Node, Any] = dict(zip(self.graph.inputs, arrays))
        for part, sources, results, steps in self.stages:
            if part is not None:
                found, note = part.run([values[n] for n in sources])
                record.part_ended(found)
                if note is not None:
                    raise_noted(part.sites, note)
                values.update(zip(results, found))
            for node in steps:
                _host_step(node, values)
                record.host_step_ended(node)
        return [values[o] for o in self.graph.outputs], None


_Stage = tuple[Part | None, list[Node], list[Node], list[Node]]


def _stages(graph: Graph) -> list[_Stage]:
    """Return for each level the part, what it takes, what it gives, and the host steps after it."""
    level: dict[Node, int] = dict.fromkeys(graph.inputs, 0)
    for node in graph.nodes:
        level[node] = max([level[i] + is_host_step(i) for i in node.inputs], default=0)
    needed = set(graph.outputs)
    for node in graph.nodes:
        # Constants are in each part that uses them.
        used = [i for i in node.inputs if is_host_step(node) or (level[i] < level[node] and i.prim is not CONSTANT)]
        needed.update(used)
    given, stages = set(graph.inputs), []
    for k in range(max(level.values(), default=0) + 1):
        here = [n for n in graph.nodes if level[n] == k]
        results = [n for n in here if n in needed and not is_host_step(n)]
        steps = [n for n in here if is_host_step(n)]
        stages.append((*_part(graph, results, given), results, steps))
        given |= set(results) | {n for n in graph.nodes if is_host_step(n) and level[n] == k}
    return stages


def _part(graph: Graph, results: Sequence[Node], given: set[Node]) -> tuple[Part | None, list[Node]]:
    if not results:
        return None, []
    sources = [n for n in toposort(results, stop=given) if n in given]
    stand_in = {n: input_node(n.type, "part") for n in sources}
    inner = Graph(list(stand_in.values()), substitute(results, stand_in), graph.name)
    return Part(inner, {}), sources


def _host_step(node: Node, values: dict[Node, Any]) -> None:
    """Compute a node in NumPy."""
    given = [i for i in node.inputs]
    free = {i: input_node(i.type) for i in given}
    arrays = {free[i]: np.asarray(values[i]) for i in given}
    again = Node(node.prim, tuple([free[i] for i in node.inputs]), node.params, node.type, node.where)
    try:
        (found,) = on_host((again,), arrays)
    except Exception as error:
        note_host_step(error, node, [i.type for i in node.inputs])
        raise
    values[node] = (
        tuple([device_buffers.placed(f) for f in found]) if isinstance(found, tuple) else device_buffers.placed(found)
    )


def repetition(entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
    """Return the program of an entry as a `Repetition`; None where it is not a single program."""
    found = getattr(entry, "__self__", None)
    return Repeated(found, carried) if isinstance(found, Program) else None
