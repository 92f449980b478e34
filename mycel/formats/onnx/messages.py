"""ONNX's Protocol Buffers messages, parsed by `foundation.files.protobuf_wire` into records.

A message is a dataclass whose fields are those of the message that are used; `_FIELDS` has their
numbers and kinds. Bytes are views of the file's content and are not copied. Content is believed
only as far as it has bytes: lengths are checked by the wire reader, nesting and the number of
messages here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from mycel._src.foundation.files.protobuf_wire import WireError, fields, integers, signed

__all__ = [
    "Attribute",
    "Entry",
    "Function",
    "Graph",
    "Model",
    "Node",
    "OnnxError",
    "OperatorSet",
    "SparseTensor",
    "Tensor",
    "Type",
    "Value",
    "read_model",
]

_DEEPEST = 100
_MOST_MESSAGES = 1 << 22
Content = bytes | memoryview


class OnnxError(ValueError):
    """An error: a file is not an ONNX model, is damaged, or contradicts itself."""


@dataclass
class Entry:
    """A pair of texts."""

    key: str = ""
    value: str = ""


@dataclass
class OperatorSet:
    """A domain of operators and its version."""

    domain: str = ""
    version: int = 0


@dataclass
class Dimension:
    """A size: a number, a name, or unknown."""

    value: int | None = None
    name: str = ""


@dataclass
class Shape:
    """The sizes of a tensor."""

    dims: list[Dimension] = field(default_factory=list)


@dataclass
class TensorType:
    """An element type and a shape (None: of unknown rank)."""

    element: int = 0
    shape: Shape | None = None


@dataclass
class Holder:
    """The type of what a sequence or an optional holds."""

    element: Type | None = None


@dataclass
class Type:
    """A type of values: exactly one member is set."""

    tensor: TensorType | None = None
    sequence: Holder | None = None
    optional: Holder | None = None
    sparse: TensorType | None = None


@dataclass
class Value:
    """A name with its type."""

    name: str = ""
    type: Type | None = None


@dataclass
class Tensor:
    """An array; `raw`, one of the lists, or a file has its elements."""

    dims: list[int] = field(default_factory=list)
    element: int = 0
    floats: list[Any] = field(default_factory=list)
    int32s: list[Any] = field(default_factory=list)
    strings: list[Any] = field(default_factory=list)
    int64s: list[Any] = field(default_factory=list)
    name: str = ""
    raw: Content | None = None
    doubles: list[Any] = field(default_factory=list)
    uint64s: list[Any] = field(default_factory=list)
    external: list[Entry] = field(default_factory=list)
    location: int = 0


@dataclass
class SparseTensor:
    """An array of which the elements that are not 0 are given with their places."""

    values: Tensor | None = None
    indices: Tensor | None = None
    dims: list[int] = field(default_factory=list)


@dataclass
class Attribute:
    """A parameter of a node; `kind` says which member holds it, `reference` names a parameter of
    the function around it that holds it instead.
    """

    name: str = ""
    f: float = 0.0
    i: int = 0
    s: Content = b""
    t: Tensor | None = None
    g: Graph | None = None
    floats: list[Any] = field(default_factory=list)
    ints: list[int] = field(default_factory=list)
    strings: list[Any] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    graphs: list[Graph] = field(default_factory=list)
    kind: int = 0
    reference: str = ""
    sparse: SparseTensor | None = None
    type: Type | None = None


@dataclass
class Node:
    """An operator applied to named values."""

    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    name: str = ""
    operator: str = ""
    attributes: list[Attribute] = field(default_factory=list)
    domain: str = ""
    overload: str = ""


@dataclass
class Graph:
    """Nodes in order, constants, and the names that go in and out."""

    nodes: list[Node] = field(default_factory=list)
    name: str = ""
    initializers: list[Tensor] = field(default_factory=list)
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    sparse: list[SparseTensor] = field(default_factory=list)


@dataclass
class Function:
    """An operator that the model defines by nodes."""

    name: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attributes: list[str] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    opsets: list[OperatorSet] = field(default_factory=list)
    domain: str = ""
    defaults: list[Attribute] = field(default_factory=list)
    overload: str = ""


@dataclass
class Model:
    """A whole file."""

    ir_version: int = 0
    producer: str = ""
    graph: Graph | None = None
    opsets: list[OperatorSet] = field(default_factory=list)
    functions: list[Function] = field(default_factory=list)


# For each message, by field number: the member, its kind, whether it is a list. A kind is "int",
# "float", "double", "text", "bytes", "any" (numbers as they are) or the class of a message.
_Spec = dict[int, tuple[str, Any, bool]]
_FIELDS: dict[type, _Spec] = {
    Entry: {1: ("key", "text", False), 2: ("value", "text", False)},
    OperatorSet: {1: ("domain", "text", False), 2: ("version", "int", False)},
    Dimension: {1: ("value", "int", False), 2: ("name", "text", False)},
    Shape: {1: ("dims", Dimension, True)},
    TensorType: {1: ("element", "int", False), 2: ("shape", Shape, False)},
    Holder: {1: ("element", Type, False)},
    Type: {
        1: ("tensor", TensorType, False),
        4: ("sequence", Holder, False),
        8: ("sparse", TensorType, False),
        9: ("optional", Holder, False),
    },
    Value: {1: ("name", "text", False), 2: ("type", Type, False)},
    Tensor: {
        1: ("dims", "int", True),
        2: ("element", "int", False),
        4: ("floats", "float", True),
        5: ("int32s", "int", True),
        6: ("strings", "bytes", True),
        7: ("int64s", "int", True),
        8: ("name", "text", False),
        9: ("raw", "bytes", False),
        10: ("doubles", "double", True),
        11: ("uint64s", "any", True),
        13: ("external", Entry, True),
        14: ("location", "int", False),
    },
    SparseTensor: {1: ("values", Tensor, False), 2: ("indices", Tensor, False), 3: ("dims", "int", True)},
    Attribute: {
        1: ("name", "text", False),
        2: ("f", "float", False),
        3: ("i", "int", False),
        4: ("s", "bytes", False),
        5: ("t", Tensor, False),
        6: ("g", Graph, False),
        7: ("floats", "float", True),
        8: ("ints", "int", True),
        9: ("strings", "bytes", True),
        10: ("tensors", Tensor, True),
        11: ("graphs", Graph, True),
        14: ("type", Type, False),
        20: ("kind", "int", False),
        21: ("reference", "text", False),
        22: ("sparse", SparseTensor, False),
    },
    Node: {
        1: ("inputs", "text", True),
        2: ("outputs", "text", True),
        3: ("name", "text", False),
        4: ("operator", "text", False),
        5: ("attributes", Attribute, True),
        7: ("domain", "text", False),
        8: ("overload", "text", False),
    },
    Graph: {
        1: ("nodes", Node, True),
        2: ("name", "text", False),
        5: ("initializers", Tensor, True),
        11: ("inputs", Value, True),
        12: ("outputs", Value, True),
        15: ("sparse", SparseTensor, True),
    },
    Function: {
        1: ("name", "text", False),
        4: ("inputs", "text", True),
        5: ("outputs", "text", True),
        6: ("attributes", "text", True),
        7: ("nodes", Node, True),
        9: ("opsets", OperatorSet, True),
        10: ("domain", "text", False),
        11: ("defaults", Attribute, True),
        13: ("overload", "text", False),
    },
    Model: {
        1: ("ir_version", "int", False),
        2: ("producer", "text", False),
        7: ("graph", Graph, False),
        8: ("opsets", OperatorSet, True),
        25: ("functions", Function, True),
    },
}


class _Reader:
    def __init__(self) -> None:
        self.count = 0

    def message(self, kind: type, content: Content, depth: int) -> Any:
        self.count += 1
        if depth > _DEEPEST:
            raise OnnxError(f"messages are nested more than {_DEEPEST} deep")
        if self.count > _MOST_MESSAGES:
            raise OnnxError(f"there are more than {_MOST_MESSAGES} messages")
        made, spec = kind(), _FIELDS[kind]
        for number, value in fields(content):
            if number not in spec:
                continue
            member, inner, many = spec[number]
            if isinstance(inner, type):
                if isinstance(value, int):
                    raise OnnxError(f"{kind.__name__}.{member} is a number where a message belongs")
                read: Any = self.message(inner, value, depth + 1)
            else:
                read = _READERS[inner](value, f"{kind.__name__}.{member}", many)
            if many and inner in _NUMBERS:
                getattr(made, member).extend(read)
            elif many:
                getattr(made, member).append(read)
            else:
                setattr(made, member, read)
        return made


def _text(value: Any, where: str, many: bool) -> str:
    if isinstance(value, int):
        raise OnnxError(f"{where} is a number where text belongs")
    try:
        return bytes(value).decode()
    except UnicodeDecodeError as error:
        raise OnnxError(f"{where} is not UTF-8") from error


def _bytes(value: Any, where: str, many: bool) -> Any:
    if isinstance(value, int):
        raise OnnxError(f"{where} is a number where bytes belong")
    return value


def _ints(value: Any, where: str, many: bool) -> Any:
    if many:
        return [signed(v) for v in integers(value)]
    if not isinstance(value, int):
        raise OnnxError(f"{where} is no number")
    return signed(value)


def _any(value: Any, where: str, many: bool) -> Any:
    return integers(value)


def _fixed(form: str, size: int) -> Callable[[Any, str, bool], Any]:
    def read(value: Any, where: str, many: bool) -> Any:
        if isinstance(value, int) or len(value) % size or (not many and len(value) != size):
            raise OnnxError(f"{where} is not made of floats of {size} bytes")
        found = [v for (v,) in struct.iter_unpack(form, value)]
        return found if many else found[0]

    return read


_NUMBERS = ("int", "any", "float", "double")
_READERS: dict[str, Callable[[Any, str, bool], Any]] = {
    "text": _text,
    "bytes": _bytes,
    "int": _ints,
    "any": _any,
    "float": _fixed("<f", 4),
    "double": _fixed("<d", 8),
}


def read_model(content: Content) -> Model:
    """Read the message of a whole file.

    Raises OnnxError where the bytes are not such a message.
    """
    try:
        model: Model = _Reader().message(Model, memoryview(content), 0)
    except WireError as error:
        raise OnnxError(f"it is no ONNX model: {error}") from None
    if model.graph is None:
        raise OnnxError("it is no ONNX model: it has no graph")
    return model
