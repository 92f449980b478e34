"""Structural hashing of graphs: equal structures have equal SHA-256 digests.

A digest is the same in every process, and depends neither on the names of nodes nor on their places
in the source.

The nodes are written down in topological order, each as its primitive, the numbers of its inputs
and its parameters; of types only those of the inputs are written, as the others follow. Symbols
are numbered in the order in which they appear (sorted by name where several new ones appear in one
dimension). Constants count by their bytes. One pass, linear in the size of the graph.
"""

from __future__ import annotations

import enum
import hashlib
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Atom, Dim
from mycel._src.compiler.ir.graph import Graph, Node, Where, toposort
from mycel._src.compiler.ir.types import TensorType, TokenType
from mycel._src.foundation.dtype import DType

__all__ = ["structural_hash"]


def structural_hash(graph: Graph) -> str:
    """Return the digest of a graph, in hexadecimal.

    It is equal for graphs that compute the same expressions of their inputs. Raises TypeError where
    a parameter has no lasting identity, as Python functions have none.

    >>> from mycel._src.foundation.dtype import float32
    >>> from mycel._src.compiler.ir.graph import input_node
    >>> from mycel._src.compiler.ir.types import tensor_type
    >>> from mycel._src.compiler.prims import elementwise as E
    >>> def f(name):
    ...     x = input_node(tensor_type((2,), float32), name)
    ...     return Graph([x], [E.exp(x)], name)
    >>> structural_hash(f("a")) == structural_hash(f("b"))
    True
    """
    if graph._hash is None:
        graph._hash = hashlib.sha256(_Writer().graph(graph).encode()).hexdigest()
    return graph._hash


class _Writer:
    """A writer of graphs as text for the digest.

    A nested graph appears as the digest of its own text, so that one used often is written once.
    """

    def __init__(self) -> None:
        self.symbols: dict[str, str] = {}
        self.written: dict[Any, str] = {}
        self.open: dict[Graph, int] = {}
        self.digests: dict[Graph, str] = {}
        self.outermost = 0
        self.symbolic = False

    def graph(self, graph: Graph) -> str:
        self.open[graph] = len(self.open)
        number: dict[Node, int] = {}
        parts: list[str] = []
        add = parts.append
        for i, node in enumerate(graph.inputs):
            number[node] = i
            add(f"i{self.type(node.type)};")
        for node in toposort(graph.outputs):
            if node in number:
                continue
            if node.prim is None:
                raise ValueError(f"structural_hash: {node!r} is reached but is not an input of {graph.name}")
            number[node] = len(number)
            add(f"{node.op}({','.join([str(number[i]) for i in node.inputs])}")
            params = node.params
            if params:
                for name, value in params.items() if len(params) == 1 else sorted(params.items()):
                    add(f"|{name}={self.text(value)}")
            add(")")
        add("->" + ",".join([str(number[n]) for n in graph.outputs]))
        del self.open[graph]
        return "".join(parts)

    def nested(self, graph: Graph) -> str:
        found = graph._digest or self.digests.get(graph)
        if found is not None:
            return found
        if graph in self.open:
            self.outermost = min(self.outermost, self.open[graph])
            return f"<outer {self.open[graph]}>"
        level, before = len(self.open), self.outermost
        self.outermost, symbols, self.symbolic = level, self.symbolic, False
        digest = hashlib.sha256(self.graph(graph).encode()).hexdigest()
        if self.outermost >= level:
            self.digests[graph] = digest
            if not self.symbolic:
                # It says nothing of what is around it, so that it may be kept with the graph.
                graph._digest = digest
        self.symbolic = self.symbolic or symbols
        self.outermost = min(before, self.outermost)
        return digest

    def text(self, value: Any) -> str:
        kind = type(value)
        if kind is int or kind is str or kind is bool or kind is float or value is None:
            return repr(value)
        if kind is tuple:
            return "(" + ",".join([self.text(v) for v in value]) + ")"
        if kind is Dim:
            return self.dim(value)
        if kind is DType:
            return str(value.name)
        if kind is TensorType or kind is TokenType:
            return self.type(value)
        if isinstance(value, Graph):
            return self.nested(value)
        if isinstance(value, Where):
            return ""
        if isinstance(value, (complex, bytes, slice, range, enum.Enum, np.generic, np.dtype)) or value is Ellipsis:
            return f"{kind.__name__}:{value!r}"
        if isinstance(value, frozenset):
            return "{" + ",".join(sorted(self.text(v) for v in value)) + "}"
        if hasattr(kind, "lasting_name"):
            return str(kind.lasting_name)
        if hasattr(kind, "lasting_text"):
            return hashlib.sha256(value.lasting_text.encode()).hexdigest()
        array = getattr(value, "array", None)
        if isinstance(array, np.ndarray):
            return self.literal(array)
        raise TypeError(f"structural_hash: a parameter of type {kind.__name__} has no lasting identity: {value!r}")

    def literal(self, array: np.ndarray[Any, Any]) -> str:
        data = array.tobytes()
        content = data.hex() if len(data) <= 64 else hashlib.sha256(data).hexdigest()
        return f"{array.dtype.name}{array.shape}{content}"

    def type(self, value: Any) -> str:
        found = self.written.get(value)
        if found is None:
            if isinstance(value, tuple):
                found = "(" + ",".join([self.type(v) for v in value]) + ")"
            elif isinstance(value, TensorType):
                found = f"{value.dtype.name}[{','.join([self.text(d) for d in value.shape])}]"
            else:
                found = "token"
            self.written[value] = found
        return found

    def dim(self, value: Dim) -> str:
        self.symbolic = True
        found = self.written.get(value)
        if found is None:
            atoms = {a for monomial in value.terms for a, _ in monomial}
            names = {a: self.atom(a) for a in sorted(atoms, key=repr)}
            terms = [
                (sorted((names[a], power) for a, power in monomial), factor) for monomial, factor in value.terms.items()
            ]
            found = self.written[value] = repr(sorted(terms))
        return found

    def atom(self, atom: Atom) -> str:
        if atom.operator == "symbol":
            name = self.symbols.get(atom.name)
            if name is None:
                name = self.symbols[atom.name] = f"s{len(self.symbols)}:{atom.low}:{atom.high}"
            return name
        return f"{atom.operator}({','.join([self.text(v) for v in atom.operands])})"
