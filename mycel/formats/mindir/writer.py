"""Writes a staged graph as a MindIR file: its graphs, primitives and values.

A file is one `ModelProto` message: `primitives` are operators with their attributes, nodes of a
graph apply them (``REF::name``) to values by name, and constants are nodes, too. Operators whose
`prim_type` is PRIMITIVE_FUNCTION take all their arguments as inputs, in the order of MindSpore's
definition.

Inner graphs are functions of all that they use. A branch calls one of two functions that ``Switch``
chooses; a loop is a function, the header, that chooses between one that calls the header again
and one that gives the result. Where a call changes parameters, their values are loaded first, and
``UpdateState`` orders the assignments after everything else. Sizes that are left open are -1 in the
types of inputs, and are computed from the shapes of the inputs of their function.

How a single operation is written is up to a function (`mycel.formats.mindir.export_rules` has the
rules).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mycel._src.compiler.ir.dims import Dim
from mycel._src.compiler.ir.graph import Graph, Node
from mycel._src.compiler.ir.symbol_binding import Binder
from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.loops.programs import Program
from mycel._src.foundation.dtype_codes import ONNX
from mycel._src.foundation.errors import Unsupported
from mycel._src.foundation.files.protobuf_wire import BYTES, field, varint
from mycel.formats.graph_files.graph_file import Model, State
from mycel.formats.mindir.messages import FROZEN
from mycel.formats.writer_base import GraphWriter

__all__ = ["Body", "NodeRule", "Writer"]

_FLOAT, _INT64, _STRING, _BOOL, _TENSORS, _TUPLE, _LIST, _MONAD = 1, 7, 8, 9, 19, 20, 21, 23
# A message of Protocol Buffers ends before 2 GiB.
_MOST_BYTES = (1 << 31) - 1
_SIZES = {
    "+": "ScalarAdd",
    "-": "ScalarSub",
    "*": "ScalarMul",
    "/": "ScalarFloorDiv",
    "//": "ScalarFloorDiv",
    "%": "ScalarMod",
    "max": "ScalarMax",
}
# (writer, node, names of its operands) to the name of its value, or the names of its values.
NodeRule = Callable[["Writer", Node, list[str]], Any]


class _Monad:
    """The value that begins an order of effects."""


def _attribute(name: str, value: Any) -> bytes:
    """Return an encoded AttributeProto."""
    content = field(1, name) if name else b""
    if isinstance(value, _Monad):
        return content + field(16, _MONAD)
    if isinstance(value, bool):
        return content + field(3, int(value)) + field(16, _BOOL)
    if isinstance(value, int):
        return content + field(3, value) + field(16, _INT64)
    if isinstance(value, float):
        return content + b"\x15" + struct.pack("<f", value) + field(16, _FLOAT)
    if isinstance(value, str):
        return content + field(5, value) + field(16, _STRING)
    if isinstance(value, tuple):
        parts = [field(17, field(10, int(v)) + field(16, _INT64)) for v in value]
        return content + field(16, _TUPLE) + b"".join(parts)
    return content + field(12, _tensor("", np.asarray(value))) + field(16, _TENSORS)


def _tensor(name: str, array: Any) -> bytes:
    content = b"".join([field(1, d) for d in array.shape]) + field(2, _code(str(array.dtype)))
    return content + (field(7, name) if name else b"") + field(9, np.ascontiguousarray(array).tobytes())


def _parameter(name: str, state: State) -> list[bytes | memoryview]:
    """Return an encoded parameter as the head, the values and the rest."""
    array = np.ascontiguousarray(state.value)
    head = b"".join([field(1, d) for d in np.shape(state.value)]) + field(2, _code(str(array.dtype)))
    head += field(7, name) + field(13, state.name)
    if state.kind == "parameter" and not state.requires_grad:
        head += field(8, FROZEN)
    head += varint(9 << 3 | BYTES) + varint(array.nbytes)
    values = memoryview(array.reshape(-1).view(np.uint8).data)
    return [varint(3 << 3 | BYTES) + varint(len(head) + len(values)) + head, values]


def _type(kind: TensorType) -> bytes:
    return b"".join([field(1, -1 if isinstance(d, Dim) else int(d)) for d in kind.shape]) + field(
        2, _code(kind.dtype.name)
    )


def _type_attribute(name: str, kind: Any) -> bytes:
    """Return the attribute that says the type of a value: of a tensor, or a tuple of types."""
    content = field(1, name) if name else b""
    if isinstance(kind, (tuple, list)):
        code = _TUPLE if isinstance(kind, tuple) else _LIST
        return content + field(16, code) + b"".join([field(17, _type_attribute("", k)) for k in kind])
    return content + field(12, _type(kind)) + field(16, _TENSORS)


def _code(name: str) -> int:
    if name not in ONNX:
        raise Unsupported(f"export: MindIR has no element type {name}")
    return ONNX[name]


class Body:
    """A graph that is being written: its nodes, and what reads open sizes from its inputs."""

    def __init__(self, name: str, inputs: Sequence[str], kinds: Sequence[Any]) -> None:
        self.name, self.inputs, self.kinds = name, list(inputs), list(kinds)
        self.nodes: list[tuple[str, list[str], bytes]] = []
        self.constants: dict[bytes, str] = {}
        self.sizes: dict[str, str] = {}
        self.reads = Binder(kinds)

    def used(self, last: str) -> list[bytes]:
        """Return the nodes that the value `last` depends on."""
        wanted, kept = {last}, []
        for name, inputs, content in reversed(self.nodes):
            if name in wanted:
                wanted.update(inputs)
                kept.append(content)
        return kept[::-1]

    def encoded(self, last: str, kind: Any) -> bytes:
        """Return the encoded graph, whose result is the value `last` of a type."""
        content = b"".join([field(1, n) for n in self.used(last)]) + field(2, self.name)
        for name, taken in zip(self.inputs, self.kinds):
            content += field(5, field(1, name) + field(2, _type(taken)))
        if isinstance(kind, (tuple, list)):
            name = "Tuple" if isinstance(kind, tuple) else "List"
            return content + field(6, field(1, last) + field(4, name) + field(5, _type_attribute("", kind)))
        return content + field(6, field(1, last) + field(2, _type(kind)))


class Writer(GraphWriter):
    """The collector of a file, which writes one graph, the body, at a time."""

    def __init__(self, model: Model, rule: NodeRule) -> None:
        self.primitives: dict[bytes, str] = {}
        self.definitions: list[bytes] = []
        self.functions: list[bytes] = []
        graph = model.graph
        given = graph.inputs[: len(graph.inputs) - len(model.states)]
        name = graph.name
        named = [str(n.params.get("name") or f"x{i}") for i, n in enumerate(given)]
        if len(set(named)) < len(named):
            named = [f"x{i}" for i in range(len(given))]
        self.body = Body(name, [f"{name}:{each}" for each in named], [n.type for n in given])
        super().__init__(model, rule, self.body.reads)

    def parts(self) -> list[bytes | memoryview]:
        """Return the whole file, in parts: the values of the parameters are not copied."""
        graph, states, body = self.source.graph, self.source.states, self.body
        given = len(graph.inputs) - len(states)
        written = {number for number, _ in self.source.writes}
        parameters: list[bytes | memoryview] = []
        self.names.update(zip(graph.inputs, body.inputs))
        places: list[str | None] = []
        for number, (node, state) in enumerate(zip(graph.inputs[given:], states)):
            if state.kind == "tensor" and number not in written:
                places.append(None)
                self.names[node] = self.constant(state.value)
                continue
            place = f"{body.name}:{state.name}"
            places.append(place)
            parameters += _parameter(place, state)
            self.names[node] = place
        if self.source.writes:
            monad = self.constant(_Monad())
            for node, stored in zip(graph.inputs[given:], places):
                if stored is not None:
                    self.names[node] = self.apply("Load", [stored, monad], node.type, function=False)
        self.run(graph)
        if self.source.writes:
            last, kind = self.result(self.source.result)
            values = [(str(places[s]), self.name(graph.outputs[o])) for s, o in self.source.writes]
            state_of = self.apply("UpdateState", [monad, last, *[v for _, v in values]], None, function=False)
            for target, value in values:
                done = self.apply("Assign", [target, value, state_of], None, side_effect_mem=True)
                state_of = self.apply("UpdateState", [state_of, done], None, function=False)
            last = self.apply("Depend", [last, state_of], kind, function=False, side_effect_propagate=1)
        else:
            last, kind = self.result(self.source.result)
        content = body.encoded(last, kind)
        size = len(content) + sum(map(len, parameters))
        head = field(1, "1.1") + field(2, "MindSpore") + field(5, "2.10.0") + varint(7 << 3 | BYTES) + varint(size)
        tail = b"".join([field(8, f) for f in self.functions]) + field(10, 1)
        tail += b"".join([field(12, p) for p in self.definitions]) + field(13, 3)
        tail += b"".join([field(14, field(1, k) + field(2, v)) for k, v in self.source.user_info.items()])
        if len(head) + size + len(tail) > _MOST_BYTES:
            raise Unsupported(f"export: MindIR files end at 2 GiB, and this one would have {size:,} bytes")
        return [head, content, *parameters, tail]

    def result(self, form: Any, outermost: bool = True) -> tuple[str, Any]:
        """Write a result of a form; return the name of its value and its type."""
        graph = self.source.graph
        given = len(graph.inputs) - len(self.source.states)
        kind: str
        content: Any
        ((kind, content),) = form.items() if isinstance(form, dict) else (("", ()),)
        if kind in ("tuple", "list"):
            parts = [self.result(part, False) for part in content]
            types = [t for _, t in parts]
            if kind == "list":
                return self.apply("make_list", [n for n, _ in parts], types, function=False), types
            return self.apply("MakeTuple", [n for n, _ in parts], tuple(types), function=False), tuple(types)
        if kind in ("tensor", "number"):
            node = graph.outputs[content]
        elif kind in ("argument", "state"):
            node = graph.inputs[content + (given if kind == "state" else 0)]
        else:
            raise Unsupported("export: MindIR takes networks that return tensors, and tuples and lists of them")
        name = self.name(node)
        if name in self.body.inputs or node.is_constant or not outermost or node.prim is None:
            # The result of a graph, or of a call, is a value of its own.
            name = self.apply("Reshape", [name, self.shape(node.shape)], node.type)
        return name, node.type

    # Nodes.

    def apply(self, operator: str, inputs: Iterable[str], kind: Any, function: bool = True, **attributes: Any) -> str:
        """Add a node and return the name of its value.

        `operator` is the name in MindSpore, with `attributes`, and `inputs` are names of values.
        `kind` is the type of the result, None to leave it out. `function` marks an operator that
        takes all its arguments as inputs.
        """
        described = [field(3, _attribute(k, v)) for k, v in attributes.items()]
        content = field(2, operator) + b"".join(described) + field(5, 2 if function else 1)
        if content not in self.primitives:
            self.primitives[content] = f"{operator}:{len(self.primitives) + 1}"
            self.definitions.append(field(1, self.primitives[content]) + content)
        return self.added(self.primitives[content], inputs, kind)

    def added(self, target: str, inputs: Iterable[str], kind: Any) -> str:
        """Add the application of a primitive, a function or a value; return its name."""
        self.count += 1
        name, operands = f"{self.body.name}:v{self.count}", list(inputs)
        made = b"".join([field(1, i) for i in operands]) + field(2, name) + field(3, name) + field(4, f"REF::{target}")
        if kind is not None:
            made += field(5, _type_attribute("shape", kind))
        self.body.nodes.append((name, [*operands, target], made + field(7, "Default")))
        return name

    def several(self, whole: str, kinds: Sequence[Any]) -> list[str]:
        """Return the names of the items of a tuple."""
        return [self.apply("TupleGetItem", [whole, self.constant(i)], k, False) for i, k in enumerate(kinds)]

    def constant(self, value: Any) -> str:
        """Return the name of a constant: a number, a word, a tuple of integers or an array."""
        content = _attribute("value", value)
        if content not in self.body.constants:
            self.count += 1
            name = self.body.constants[content] = f"ValueNode_{self.count}"
            self.body.nodes.append(
                (name, [], field(2, name) + field(3, name) + field(4, "Constant") + field(5, content))
            )
        return self.body.constants[content]

    # Sizes.

    def whole(self, number: int) -> str:
        return self.constant(int(number))

    def combined(self, operator: str, left: str, right: str) -> str:
        return self.apply(_SIZES[operator], [left, right], None)

    def input_size(self, number: int, axis: int) -> str:
        shape = self.apply("Shape", [self.body.inputs[number]], None)
        return self.apply("TupleGetItem", [shape, self.constant(axis)], None, False)

    def shape(self, shape: Sequence[Any]) -> str:
        """Return a shape as a tuple of numbers."""
        if not any(isinstance(d, Dim) for d in shape):
            return self.constant(tuple([int(d) for d in shape]))
        return self.apply("MakeTuple", [self.size(d) for d in shape], None, function=False)

    # Graphs.

    def run(self, graph: Graph) -> list[str]:
        """Write the nodes of a graph whose inputs have names, and return its outputs' names."""
        for node in graph.nodes:
            if node not in self.names:
                self.node(node)
        return [self.name(o) for o in graph.outputs]

    def function(self, kinds: Sequence[Any], made: Callable[[list[str]], tuple[str, Any]], name: str = "") -> str:
        """Write a function of inputs of given types; `made` writes its nodes and returns its
        result and the type of that. Return the function's name.
        """
        self.count += 1
        name = name or f"mycel_function_{self.count}"
        outer = self.body
        self.enter(Body(name, [f"{name}:x{i}" for i in range(len(kinds))], kinds))
        try:
            last, kind = made(self.body.inputs)
            if last in self.body.inputs:
                last = self.apply("Depend", [last, last], kind, function=False, side_effect_propagate=1)
            self.functions.append(self.body.encoded(last, kind))
        finally:
            self.enter(outer)
        return name

    def enter(self, body: Body) -> None:
        """Write into a graph from now on."""
        self.body, self.sizes, self.reads = body, body.sizes, body.reads

    def joined(self, names: Sequence[str], kinds: Sequence[Any]) -> tuple[str, Any]:
        """Return several values as one: a tuple, unless there is one only."""
        if len(names) == 1:
            return names[0], kinds[0]
        return self.apply("MakeTuple", names, tuple(kinds), function=False), tuple(kinds)

    def chosen(self, condition: str, true: Sequence[str], false: Sequence[str], kinds: Sequence[Any]) -> str:
        """Call one of two functions, and return the result's name.

        `true` and `false` are each a function's name and its arguments, of which `condition`
        chooses one; `kinds` are the types of the results.
        """
        parts = [
            self.apply("Partial", part, None, function=False, side_effect_propagate=1) if len(part) > 1 else part[0]
            for part in (true, false)
        ]
        choice = self.apply("Switch", [condition, *parts], None, function=False)
        return self.added(choice, [], tuple(kinds) if len(kinds) > 1 else kinds[0])

    def without_form(self, node: Node, program: Program | None, declined: bool) -> str:
        what = f"operation {node.op}" if program is None else f"operator {program.name}"
        return f"export: MindIR has no form for the {what}"
