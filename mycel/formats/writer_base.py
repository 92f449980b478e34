"""The common base of format writers: names of nodes, symbolic sizes, inlined definitions.

A format's writer gives what its files have: constants, operations between sizes, and how a graph is
run through. Names in an inner graph are its own while it is inlined. A size is a polynomial over
symbols and divisions, remainders and maxima of sizes; each of these is written once in the graph
that it is used in, from the shape of the input that tells the symbol.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Atom, Dim
from mycel._src.compiler.ir.graph import Graph, Node, input_node
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.loops.programs import Program
from mycel._src.compiler.prims.base import GET_ITEM, outputs_of
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.graph_file import Model

__all__ = ["GraphWriter"]


class GraphWriter(ABC):
    """The collector of a file; a method that makes nodes returns the name of their value.

    `rule` writes a node that is neither a constant nor an item of a tuple, and may give it back to
    `opened`. `sizes` are those that the graph at hand has already, and `reads` says from which of
    its inputs symbols are read.
    """

    def __init__(self, model: Model, rule: Callable[..., Any], reads: Binder) -> None:
        self.source, self.rule, self.reads = model, rule, reads
        self.names: dict[Node, Any] = {}
        self.sizes: dict[str, str] = {}
        self.count = 0

    # What a format gives.

    @abstractmethod
    def constant(self, value: Any) -> str:
        """Return the name of a constant."""

    @abstractmethod
    def run(self, graph: Graph) -> list[str]:
        """Write the nodes of a graph whose inputs have names, and return its outputs' names."""

    @abstractmethod
    def whole(self, number: int) -> str:
        """Return a number as a size."""

    @abstractmethod
    def combined(self, operator: str, left: str, right: str) -> str:
        """Return a size of two: their ``+``, ``-``, ``*``, ``//``, ``%`` or ``max``, or ``/``, a
        quotient that is whole.
        """

    @abstractmethod
    def input_size(self, number: int, axis: int) -> str:
        """Return the size of an axis of an input, by their numbers."""

    @abstractmethod
    def without_form(self, node: Node, program: Program | None, declined: bool) -> str:
        """Return the message for a node that cannot be written.

        `program` is what an operator of the user's computes, and `declined` whether the primitive
        has a definition, but not with the parameters of `node`.
        """

    # Names.

    def name(self, node: Node) -> str:
        """Return the name of a node's value."""
        found = self.names[node]
        assert isinstance(found, str)
        return found

    def scalar(self, value: Any, like: Any) -> str:
        """Return the name of a tensor without axes of the element type of a node or type."""
        return self.constant(np.asarray(value, like.dtype.numpy))

    def inlined(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Write the nodes of an inner graph here, and return the names of its outputs."""
        outer = self.names
        self.names = dict(zip(graph.inputs, operands))
        try:
            return self.run(graph)
        finally:
            self.names = outer

    # Sizes.

    def size(self, dim: Any) -> str:
        """Return a size that may be open."""
        if not isinstance(dim, Dim):
            return self.whole(int(dim))
        total = ""
        for monomial, factor in dim.terms.items():
            product = self.whole(int(factor))
            for atom, power in monomial:
                for _ in range(power):
                    product = self.combined("*", product, self.atom(atom))
            total = self.combined("+", total, product) if total else product
        return total

    def atom(self, atom: Atom) -> str:
        """Return the value of a symbol, or of a division, remainder or maximum of sizes."""
        key = repr(atom)
        if key not in self.sizes:
            if atom.operator == "symbol":
                self.sizes[key] = self._symbol(atom.name)
            else:
                left, right = [self.size(v) for v in atom.operands]
                self.sizes[key] = self.combined(atom.operator, left, right)
        return self.sizes[key]

    def _symbol(self, name: str) -> str:
        if name not in self.reads.reads:
            raise Unsupported(f"export: the size {name} cannot be read from the shape of an input")
        number, axis, factor, offset = self.reads.reads[name]
        found = self.input_size(number, int(axis))
        if offset:
            found = self.combined("-", found, self.whole(int(offset)))
        return self.combined("/", found, self.whole(int(factor))) if factor != 1 else found

    # Nodes of the graph.

    def node(self, node: Node) -> None:
        """Write a node of the staged graph."""
        if node.prim is GET_ITEM:
            self.names[node] = self.names[node.inputs[0]][node.params["index"]]
        elif node.is_constant:
            self.names[node] = self.constant(node.params["value"].array)
        else:
            self.names[node] = self.rule(self, node, [self.names[i] for i in node.inputs])

    def opened(self, node: Node, operands: Sequence[str]) -> Any:
        """Write the definition of a node in other operations, and return the names of its values.

        Raises Unsupported where there is none.
        """
        prim = node.prim
        assert prim is not None
        made: Any | None = None
        inputs = [input_node(i.type) for i in node.inputs]
        program = next((v for v in node.params.values() if isinstance(v, Program)), None)
        opens = prim.expand is not None and all(isinstance(i.type, TensorType) for i in node.inputs)
        if prim.expand is not None and opens:
            # An operator's schedule says how it runs here, and nothing of what it computes.
            params = {k: replace(v, plan=None) if isinstance(v, Program) else v for k, v in node.params.items()}
            made = prim.expand(*inputs, **params)
        graph = Graph(inputs, made if isinstance(made, tuple) else (made,)) if made is not None else None
        if graph is None or any(
            n.prim is prim and n.type == node.type and n.params == node.params for n in graph.nodes
        ):
            where = f" (at {node.where})" if node.where is not None else ""
            raise Unsupported(self.without_form(node, program, opens and made is None) + where)
        names = self.inlined(graph, operands)
        return names if isinstance(outputs_of(node), tuple) else names[0]
