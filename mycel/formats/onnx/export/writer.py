"""Writes a staged graph as an ONNX model: its nodes, values and sizes.

`Writer` walks the graph, names every value, and writes constants, sizes and inner graphs. How a
single operation is written is up to a function that it is given
(`mycel.formats.onnx.export.node_rules` has the rules). Symbols are named dimensions of the
inputs, and sizes that depend on them are computed from the inputs' shapes. Results are a flat
list, `output0` and so on, in the order in which they lie in the network's
result. `foundation.files.protobuf_wire` encodes the messages.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.loops.programs import Program
from mycel._src.foundation.dtype_codes import ONNX
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.protobuf_wire import field
from mycel.formats.graph_files.graph_file import Model
from mycel.formats.writer_base import GraphWriter

__all__ = ["Match", "NodeRule", "Writer", "padding_of", "type_code"]

_OPSET = 20
_IR_VERSIONS = {20: 9, 21: 10}
_INT4 = 22

_SIZES = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "Div", "%": "Mod", "max": "Max"}

Attribute = int | float | str | Sequence[int] | Sequence[str] | bytes
# (writer, node, names of its operands) to the name of its value, or the names of its values.
NodeRule = Callable[["Writer", Node, list[str]], Any]


def _attribute(name: str, value: Attribute) -> bytes:
    content = field(1, name)
    if isinstance(value, float):
        return content + b"\x15" + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, int):
        return content + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return content + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return content + field(6, value) + field(20, 5)
    if value and isinstance(value[0], str):
        return content + b"".join([field(9, str(v)) for v in value]) + field(20, 8)
    return content + b"".join([field(8, int(v)) for v in value]) + field(20, 7)


def _tensor(name: str, array: Any, kind: str = "") -> bytes:
    """Return an encoded TensorProto; `kind` is that of the array, or int4, of which two lie in a
    byte.
    """
    array = np.asarray(array)
    raw = np.ascontiguousarray(array).tobytes()
    if kind == "int4":
        flat = np.append(array.reshape(-1), [0] * (array.size % 2)).astype(np.uint8) & 15
        raw = (flat[::2] | flat[1::2] << 4).astype(np.uint8).tobytes()
    content = b"".join([field(1, int(d)) for d in array.shape])
    return content + field(2, _INT4 if kind == "int4" else ONNX[str(array.dtype)]) + field(8, name) + field(9, raw)


def _value(name: str, kind: TensorType | None) -> bytes:
    if kind is None:
        return field(1, name)
    dims = [field(1, field(2, repr(d)) if isinstance(d, Dim) else field(1, d)) for d in kind.shape]
    tensor = field(1, type_code(kind)) + field(2, b"".join(dims))
    return field(1, name) + field(2, field(1, tensor))


def type_code(kind: Any) -> int:
    name = kind.dtype.name if isinstance(kind, TensorType) else str(kind)
    if name not in ONNX:
        raise Unsupported(f"export: ONNX has no element type {name}")
    return ONNX[name]


def padding_of(padding: Any) -> list[int] | None:
    """Return the padding of windows in ONNX's order; None for what it has no form for."""
    sizes = [low for low, _ in padding] + [high for _, high in padding]
    return None if any(isinstance(p, Dim) or p < 0 for p in sizes) else sizes


class Match(NamedTuple):
    """A node that is written together with nodes before it: the nodes that it takes, and what
    writes it for their names and returns the name of its value, or the names of its values.
    """

    inputs: tuple[Node, ...]
    write: Callable[[Writer, list[str]], Any]


# (node, the nodes computed from each node) to how it is written with others, or None.
Matcher = Callable[[Node, Mapping[Node, list[Node]]], Match | None]


class Writer(GraphWriter):
    """The collector of a model's nodes.

    `matcher` finds nodes that are one operator with others; what only such an operator needs of
    them is not written.
    """

    def __init__(self, model: Model, rule: NodeRule, matcher: Matcher) -> None:
        super().__init__(model, rule, Binder(model.graph.input_types[: len(model.graph.inputs) - len(model.states)]))
        self.matcher = matcher
        self.opset = _OPSET
        self.reserved: set[str] = {s.name for s in model.states}
        self.reserved |= {str(n.params.get("name", "input")) for n in model.graph.inputs}
        self.nodes: list[bytes] = []
        self.constants: dict[Any, str] = {}
        self.initializers: list[bytes] = []
        self.has_levels = False  # whether a value is dequantised

    def model(self) -> bytes:
        graph, states = self.source.graph, self.source.states
        given = len(graph.inputs) - len(states)
        inputs = []
        used: set[str] = set()
        for node in graph.inputs[:given]:
            name = str(node.params.get("name", "input"))
            while name in used:
                name += "_"
            used.add(name)
            self.names[node] = name
            inputs.append(_value(name, node.type))
        for number, (node, state) in enumerate(zip(graph.inputs[given:], states)):
            if state.kind == "generator":
                raise Unsupported(
                    "export: the network draws random numbers, which ONNX has no form for; export it outside of "
                    "training"
                )
            name = state.name if state.name not in used else f"{state.name}.{number}"
            used.add(name)
            self.names[node] = name
            self.initializers.append(_tensor(name, state.value))
        self.run(graph)
        outputs = []
        for number, node in enumerate(self.results(self.source.result)):
            name = f"output{number}"
            self.emit("Identity", [self.name(node)], into=name)
            outputs.append(_value(name, node.type))
        content = b"".join([field(1, n) for n in self.nodes]) + field(2, graph.name)
        content += b"".join([field(5, i) for i in self.initializers])
        content += b"".join([field(11, i) for i in inputs]) + b"".join([field(12, o) for o in outputs])
        head = field(1, _IR_VERSIONS[self.opset]) + field(2, "mycel") + field(3, self.source.producer)
        return head + field(7, content) + field(8, field(1, "") + field(2, self.opset))

    def results(self, form: Any) -> list[Node]:
        """Return the nodes in a result's form, in their order."""
        graph = self.source.graph
        given = len(graph.inputs) - len(self.source.states)
        if not isinstance(form, dict):
            raise Unsupported(f"export: the network returns {form!r}, and an ONNX model gives tensors only")
        ((kind, content),) = form.items()
        if kind in ("tensor", "number"):
            return [graph.outputs[content]]
        if kind in ("argument", "state"):
            return [graph.inputs[content + (given if kind == "state" else 0)]]
        if kind == "float":
            raise Unsupported("export: the network returns a Python number, and an ONNX model gives tensors only")
        parts = [part for _, part in content] if kind == "dict" else content
        return [node for part in parts for node in self.results(part)]

    # Names and nodes.

    def fresh(self) -> str:
        self.count += 1
        while f"v{self.count}" in self.reserved:
            self.count += 1
        return f"v{self.count}"

    def emit(
        self, operator: str, inputs: Sequence[str], into: str = "", outputs: int = 1, **attributes: Attribute
    ) -> Any:
        """Add an ONNX node and return the name of its output, or the names of several.

        `operator` is its ONNX type and `inputs` are names of values. `into` names the output; by
        default it gets a fresh name. `outputs` is the number of outputs, and `attributes` are the
        node's attributes.
        """
        names = [into] if into else [self.fresh() for _ in range(outputs)]
        content = b"".join([field(1, i) for i in inputs]) + b"".join([field(2, n) for n in names])
        content += field(3, f"{operator}_{names[0]}") + field(4, operator)
        self.nodes.append(content + b"".join([field(5, _attribute(k, v)) for k, v in attributes.items()]))
        self.has_levels = self.has_levels or operator == "DequantizeLinear"
        return names if outputs > 1 else names[0]

    def seen_inside(self, names: Sequence[str], nodes: Sequence[Node]) -> list[str]:
        """Return names of the values of `nodes`, called `names`, for inner graphs.

        Where there are levels of scales, ONNX Runtime moves these across what changes a shape, and
        ends where that is seen by an inner graph. It moves none across a largest of one.
        """
        if not self.has_levels:
            return list(names)
        return [
            str(self.emit("Max", [name])) if node.dtype.name in ("float32", "float64") else name
            for name, node in zip(names, nodes)
        ]

    def need_operators(self, version: int) -> None:
        """Note that a set of operators is needed that is newer than what others are written in."""
        self.opset = max(self.opset, version)

    def packed(self, values: Any, kind: str) -> str:
        """Return the name of a constant of integers of a type, which may be int4."""
        return self.constant(np.asarray(values, "int8" if kind == "int4" else kind), kind)

    def constant(self, array: Any, kind: str = "") -> str:
        array = np.asarray(array)
        key = (kind or str(array.dtype), array.shape, array.tobytes())
        if key not in self.constants:
            type_code(str(array.dtype))
            number = len(self.constants)
            while f"c{number}" in self.reserved:
                number += 1
            self.constants[key] = f"c{number}"
            self.reserved.add(f"c{number}")
            self.initializers.append(_tensor(self.constants[key], array, kind))
        return self.constants[key]

    def integers(self, values: Iterable[int]) -> str:
        return self.constant(np.array(list(values), np.int64))

    def run(self, graph: Graph) -> list[str]:
        """Emit the nodes of a graph whose inputs have names, and return its outputs' names."""
        nodes = graph.nodes
        users: dict[Node, list[Node]] = {n: [] for n in (*graph.inputs, *nodes)}
        for node in nodes:
            for i in node.inputs:
                users[i].append(node)
        matches: dict[Node, Match | None] = {}
        wanted, needed = list(graph.outputs), set()
        while wanted:
            node = wanted.pop()
            if node in self.names or node in needed:
                continue
            needed.add(node)
            # An output is wanted by itself.
            found = self.matcher(node, users) if node.prim is not None and not node.is_constant else None
            matches[node] = found
            wanted += node.inputs if found is None else found.inputs
        for node in nodes:
            if node not in needed or node in self.names:
                continue
            found = matches[node]
            if found is None:
                self.node(node)
            else:
                self.names[node] = found.write(self, [self.name(i) for i in found.inputs])
        return [self.name(o) for o in graph.outputs]

    def body(
        self, inputs: Sequence[tuple[str, TensorType | None]], make: Callable[[], Sequence[tuple[str, TensorType]]]
    ) -> bytes:
        """Return a graph to be the value of an attribute; `inputs` are names and types, and `make`
        emits its nodes.
        """
        nodes, self.nodes = self.nodes, []
        sizes, self.sizes = self.sizes, {}
        results = []
        for name, kind in make():
            results.append((self.emit("Identity", [name]), kind))
        content = b"".join([field(1, n) for n in self.nodes]) + field(2, f"body{self.fresh()}")
        content += b"".join([field(11, _value(*i)) for i in inputs]) + b"".join(
            [field(12, _value(*r)) for r in results]
        )
        self.nodes, self.sizes = nodes, sizes
        return content

    # Sizes.

    def whole(self, number: int) -> str:
        return self.integers([number])

    def combined(self, operator: str, left: str, right: str) -> str:
        if operator == "//":
            # Div truncates.
            left = self.emit("Sub", [left, self.emit("Mod", [left, right])])
        return str(self.emit(_SIZES[operator], [left, right]))

    def input_size(self, number: int, axis: int) -> str:
        node = self.source.graph.inputs[number]
        name = str(node.params.get("name", "input")) if node not in self.names else self.name(node)
        return str(self.emit("Gather", [self.emit("Shape", [name]), self.integers([axis])]))

    def shape(self, shape: Sequence[Any]) -> str:
        """Return a shape as a vector of int64."""
        if not any(isinstance(d, Dim) for d in shape):
            return self.integers(shape)
        return str(self.emit("Concat", [self.size(d) for d in shape], axis=0))

    def without_form(self, node: Node, program: Program | None, declined: bool) -> str:
        what = f"the operation {node.op}"
        if declined:
            what = f"{node.op} of this kind" if program is None else f"the operator {program.name}"
        return f"export: {what} has no form in ONNX"
