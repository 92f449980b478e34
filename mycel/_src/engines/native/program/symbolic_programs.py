"""Programs of a graph with symbolic sizes: one lowering serves many tuples of actual sizes.

A lowering (`Template`) is made with the sizes of one call as hints. Its decisions by them are its
guards, and it serves all sizes for which these hold; other sizes get another lowering. Sizes below
2 broadcast or leave nothing to do, and are constants of a separate graph; so are sizes that the
dense library refuses, and those that code is made for (`Primitive.fixed`). The most recently used
programs are remembered; they take their arenas from the allocator at each run. A lowering
settles orders of adding up where the decisions under which it is asked for do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mycel._src.compiler.ir.dim_values import symbols_in
from mycel._src.compiler.ir.dimension_guards import Decisions, current_decisions, deciding
from mycel._src.compiler.ir.graph import Graph
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.transforms.complex_pairs import complex_pairs
from mycel._src.compiler.transforms.optimisation.passes import optimize
from mycel._src.compiler.transforms.optimisation.split_symbolic_reductions import split_symbolic
from mycel._src.compiler.transforms.specialize import specialize
from mycel._src.engines.base import Entry, Sized
from mycel._src.engines.native.kernels.loop_nest import FAR
from mycel._src.engines.native.lowering.expand import expand
from mycel._src.engines.native.onednn.binding import Unsupported
from mycel._src.engines.native.program.program import Program
from mycel._src.engines.native.program.template import Template
from mycel._src.engines.size_specialization import BySizes
from mycel._src.foundation.bounded_caches import FEW, Remembered
from mycel._src.foundation.errors import ShapeError
from mycel._src.foundation.python_runtime import garbage_collection

__all__ = ["Instances"]


def check_positions(graph: Graph) -> None:
    """Raise ShapeError where an operation's type of positions is too small for the actual sizes."""
    for node in graph.nodes:
        types = [i.type for i in node.inputs]
        if node.prim is not None and any(d > FAR for t in types if isinstance(t, TensorType) for d in t.shape):
            kind = node.prim.type_of(*types, **node.params)
            if kind != node.type:
                raise ShapeError(
                    f"{node.op}: of {types} it gives {kind}, and was compiled to give {node.type}; declare these sizes "
                    "as fixed"
                )


class Instances(BySizes[Program], Sized):
    """The programs of one graph.

    `aliases` maps outputs to the inputs into whose memory they are written.
    """

    def __init__(self, graph: Graph, aliases: Mapping[int, int] | None = None) -> None:
        super().__init__()
        self.graph, self.aliases = graph, dict(aliases or {})
        self.templates: list[tuple[Callable[[Mapping[str, int]], bool], Template]] = []
        self.decided: list[list[str]] = []
        self.parts = Remembered[Any, Instances]("parts of graphs of symbolic sizes", FEW)
        fixed = [d for n in graph.nodes if n.prim is not None and n.prim.fixed is not None for d in n.prim.fixed(n)]
        self.fixed = frozenset(symbols_in(*fixed))

    def make(self, sizes: Mapping[str, int]) -> Program:
        with garbage_collection.left_alone():
            return self._made(sizes)

    def _made(self, sizes: Mapping[str, int]) -> Program:
        known = {name: size for name, size in sizes.items() if size < 2 or name in self.fixed}
        if known and len(known) < len(sizes):
            part = self.parts.recall(
                tuple(known.items()), lambda: Instances(specialize(self.graph, known), self.aliases)
            )
            return part.program({n: s for n, s in sizes.items() if n not in known})
        if known or not sizes:
            return self._fixed(sizes)
        for holds, template in self.templates:  # noqa: B007
            if holds(sizes):
                break
        else:
            template = self._lower(sizes)
        try:
            return Program(template, sizes)
        except Unsupported:
            return self._fixed(sizes)

    def _lower(self, sizes: Mapping[str, int]) -> Template:
        asking = current_decisions()
        decisions = Decisions(sizes, settles_orders=asking is not None and asking.settles_orders)
        with deciding(decisions):
            template = Template(split_symbolic(_optimized(complex_pairs(expand(self.graph)))), self.aliases)
        self.templates.insert(0, (decisions.condition(), template))
        self.decided.insert(0, decisions.describe())
        return template

    def _fixed(self, sizes: Mapping[str, int]) -> Program:
        graph = specialize(self.graph, sizes)
        check_positions(graph)
        opened = complex_pairs(expand(graph))
        return Program(Template(optimize(opened) if len(opened.nodes) > 1 else opened, self.aliases))

    def entry(self, sizes: Mapping[str, int]) -> Entry:
        return self.program(sizes).entry


def _optimized(graph: Graph) -> Graph:
    """Return the graph after the passes.

    The passes compare sizes by their form, without decisions, unless types fit only by decisions.
    """
    if len(graph.nodes) <= 1:
        return graph
    try:
        with deciding(None):
            return optimize(graph)
    except ShapeError:
        return optimize(graph)
