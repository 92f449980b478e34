"""Programs of the reference engine, which evaluate a graph on buffers at each call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import InconclusiveDimension
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import TensorType
from mycel._src.engines import buffers
from mycel._src.engines.base import Entry, Repetition
from mycel._src.engines.host_memory import check_needs
from mycel._src.engines.reference.evaluation import evaluate
from mycel._src.engines.reference.reports import footprint
from mycel._src.engines.reference.trace import ReferenceProgram, Watching, active
from mycel._src.engines.repeat import Repeated
from mycel._src.foundation.spans import timed

__all__ = ["Program", "repetition"]


class Program:
    """A graph of static types; `entry` runs it.

    Outputs in `aliases` are copied into those inputs' memory once all are computed.
    """

    @timed("program", lambda _, graph, *__: graph.name)
    def __init__(self, graph: Graph, aliases: Mapping[int, int]) -> None:
        self.graph, self.aliases = graph, dict(aliases)
        for kind in graph.input_types:
            if isinstance(kind, TensorType) and not kind.is_static:
                raise InconclusiveDimension(f"{graph.name}: the sizes of {kind} are not known")
        check_needs(graph, footprint(graph, aliases).own)
        self.inputs: list[Any] = list(graph.input_types)
        self.outputs: list[Any] = list(graph.output_types)
        self.traced = ReferenceProgram(graph, list(self.aliases))

    def entry(self, *given: Any) -> Any:
        """Return the buffer of the output, or a tuple of buffers, given those of the inputs."""
        trace = active[0] if active else None
        begin = trace.begin_run() if trace is not None else 0
        watch = Watching(self.traced, trace)
        arrays = [buffers.to_array(b, t) for b, t in zip(given, self.inputs)]
        try:
            values = evaluate(self.graph, arrays, watch)
            # A value may be a view of an input that is written over.
            written = {j: np.array(values[j]) for j in self.aliases}
            results = [given[self.aliases[j]] if j in written else buffers.from_array(v) for j, v in enumerate(values)]
            for j, i in self.aliases.items():
                arrays[i][...] = written[j]
        finally:
            watch.ends()
            if trace is not None:
                trace.end_run(self.traced, begin)
        return results[0] if len(results) == 1 else tuple(results)


def repetition(entry: Entry, carried: Mapping[int, int]) -> Repetition | None:
    """Return the program of an entry as a `Repetition`; None where it is not a single program."""
    found = getattr(entry, "__self__", None)
    return Repeated(found, carried) if isinstance(found, Program) else None
