"""Mycel's own ``.mindir`` format, a whole network without its Python source, and its writer.

`mycel.formats.graph_files.graph_reader` reads it.

All integers are little-endian::

    0    8 bytes    89 "MYCELIR"
    8    4 bytes    the version of the format, 1
    12   8 bytes    the length of the header
    20              the header: JSON in UTF-8, with spaces at its end up to a multiple of 64
                    bytes of the file
                    tensors in row-major order, each at a multiple of 64 bytes
    end  32 bytes   SHA-256 of all before

The header is a JSON object:

- `tensors` lists the tensors that follow the header: name, element type, shape, where the bytes
  lie, and what the tensor is for. No two tensors share bytes, so that loading them takes no more
  memory than the file.
- `dims` lists symbolic sizes: sums of products of atoms, which are symbols with bounds or
  operations on sizes. A size in a type or a parameter is an index into this list.
- `graphs` lists the graphs, each after those that it holds. A graph is its name, the types of its
  inputs, its nodes ``[primitive, [numbers of inputs], {parameters}]`` and the numbers of its
  outputs. Numbers count the inputs first, then the nodes.

In parameters a tuple is a list, and a value that JSON does not have is an object of one entry that
says its kind (`_Writer.value`). A file that names an unknown primitive or version is refused; the
meaning of a node's parameters may not change without a new version of the format.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.compiler.ir.dims import Atom, Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.types import TensorType, TokenType
from mycel._src.compiler.loops.programs import Program
from mycel._src.compiler.prims.base import REGISTRY, Literal
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.foundation.dtype import DType, from_any
from mycel._src.foundation.errors import Unsupported
from mycel.formats.graph_files.loop_serialization import form_of

__all__ = ["VERSION", "GraphFileError", "MAGIC", "Model", "State", "write_model"]

MAGIC = b"\x89MYCELIR"
VERSION = 1
_ALIGN = 64


class GraphFileError(ValueError):
    """An error: a file is not a graph of Mycel's, is damaged, or is of another version."""


@dataclass
class State:
    """A tensor that a graph takes besides its arguments.

    `kind` is "parameter", "tensor" or "generator": the state of the random generator of the process
    that runs the graph.
    """

    name: str
    value: NDArray[Any]
    kind: str = "parameter"
    requires_grad: bool = True


@dataclass
class Model:
    """A network as a graph: the result of `load_mindir` and the argument of `save_mindir`.

    The inputs of `graph` are the tensors in `arguments`, then `states`. `result` says how its
    outputs make the network's result, and `writes` which states they replace, as pairs (number of a
    state, number of an output). `conditions` say for which sizes the graph holds; they were decided
    with the example `sizes`. `user_info` is any text by name, for the user. `producer` is the
    version that wrote the file.
    """

    graph: Graph
    states: list[State]
    arguments: Any
    result: Any
    writes: list[tuple[int, int]] = field(default_factory=list)
    conditions: dict[tuple[Dim, bool], bool] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    user_info: dict[str, str] = field(default_factory=dict)
    producer: str = ""


class _Writer:
    """The collector of the tensors, sizes and graphs that a header refers to by number."""

    def __init__(self) -> None:
        self.tensors: list[dict[str, Any]] = []
        self.arrays: list[NDArray[Any]] = []
        self.dims: list[Any] = []
        self.graphs: list[Any] = []
        self.numbers: dict[Any, int] = {}
        self.end = 0

    def tensor(self, array: NDArray[Any], **more: Any) -> int:
        array = np.asarray(array, order="C")
        start = -(-self.end // _ALIGN) * _ALIGN
        self.end = start + array.nbytes
        known = {"type": from_any(array.dtype).name, "shape": list(array.shape), "start": start}
        self.tensors.append({**known, **more})
        self.arrays.append(array)
        return len(self.tensors) - 1

    def graph(self, graph: Graph) -> int:
        key = ("graph", graph)
        if key in self.numbers:
            return self.numbers[key]
        places: dict[Node, int] = {node: i for i, node in enumerate(graph.inputs)}
        nodes = []
        for node in graph.nodes:
            if REGISTRY.get(node.op) is not node.prim:
                raise Unsupported(f"export: the operation {node.op} is the program's own, which files do not hold")
            with _in_operation(node.op):
                params = {name: self.value(value) for name, value in node.params.items()}
            nodes.append([node.op, [places[i] for i in node.inputs], params])
            places[node] = len(places)
        written = {
            "name": graph.name,
            "inputs": [[n.params.get("name", "input"), self.value(n.type)] for n in graph.inputs],
            "nodes": nodes,
            "outputs": [places[o] for o in graph.outputs],
        }
        self.graphs.append(written)
        self.numbers[key] = len(self.graphs) - 1
        return self.numbers[key]

    def value(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return {"float": value.hex()}
        if kind is complex:
            return {"complex": [value.real.hex(), value.imag.hex()]}
        if kind is tuple:
            return [self.value(v) for v in value]
        if kind is Dim:
            return {"dim": self.dim(value)}
        if kind is DType:
            return {"dtype": value.name}
        if kind is TensorType:
            return {"type": [value.dtype.name, *[self.value(d) for d in value.shape]]}
        if kind is TokenType:
            return {"token": 0}
        if kind is Literal:
            return {"array": self.tensor(value.array)}
        if kind is Graph:
            return {"graph": self.graph(value)}
        if isinstance(value, np.generic):
            return {"scalar": self.tensor(np.asarray(value))}
        if kind is slice:
            return {"slice": [self.value(v) for v in (value.start, value.stop, value.step)]}
        if kind is frozenset:
            return {"set": [self.value(v) for v in sorted(value)]}
        if kind is Program:
            return {"program": form_of(value, self.value)}
        if kind is Rule:
            return {"rule": [value.is_hook, value.removed]}
        raise Unsupported(f"a parameter of type {kind.__name__} ({value!r}) has no form in a file")

    def dim(self, value: Dim) -> int:
        key = ("dim", frozenset(value.terms.items()))
        if key not in self.numbers:
            terms = [[factor, [[self.atom(a), power] for a, power in mono]] for mono, factor in value.terms.items()]
            self.dims.append(terms)
            self.numbers[key] = len(self.dims) - 1
        return self.numbers[key]

    def atom(self, atom: Atom) -> list[Any]:
        bounds = [None if math.isinf(b) else int(b) for b in (atom.low, atom.high)]
        return [atom.operator, atom.name, [self.value(v) for v in atom.operands], *bounds]


class _in_operation:
    """A context that names the operation in an error about one of its parameters."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, Unsupported) and not str(error).startswith("export:"):
            raise Unsupported(f"export: {self.name}: {error}") from None


def write_model(file: Any, model: Model) -> None:
    """Write a model to a file that is open for writing bytes.

    Raises Unsupported, before anything is written, for parts that have no form in a file.
    """
    writer = _Writer()
    states = [writer.tensor(s.value, name=s.name, kind=s.kind, requires_grad=s.requires_grad) for s in model.states]
    header = {
        "producer": model.producer,
        "graph": writer.graph(model.graph),
        "states": states,
        "arguments": model.arguments,
        "result": model.result,
        "writes": [list(w) for w in model.writes],
        "conditions": [[writer.dim(d), equal, answer] for (d, equal), answer in model.conditions.items()],
        "sizes": model.sizes,
        "user_info": model.user_info,
        "tensors": writer.tensors,
        "dims": writer.dims,
        "graphs": writer.graphs,
    }
    text = json.dumps(header, separators=(",", ":"), allow_nan=False).encode()
    text += b" " * (-(20 + len(text)) % _ALIGN)
    digest = hashlib.sha256()
    for piece in _pieces(text, writer):
        digest.update(piece)
        file.write(piece)
    file.write(digest.digest())


def _pieces(text: bytes, writer: _Writer) -> Iterator[Any]:
    yield MAGIC + VERSION.to_bytes(4, "little") + len(text).to_bytes(8, "little")
    yield text
    end = 0
    for entry, array in zip(writer.tensors, writer.arrays):
        yield bytes(entry["start"] - end)
        flat = array.reshape(-1)
        if array.dtype.byteorder == ">":
            flat = flat.byteswap()
        yield flat.view(np.uint8).data if array.nbytes else b""
        end = entry["start"] + array.nbytes
