"""MindIR's Protocol Buffers messages, parsed into records.

A file is one `ModelProto` in the wire format of Protocol Buffers: a main graph and further
functions, each with inputs, parameters, nodes in an order in which they can be computed, and an
output; and a table of primitives, operators with their attributes. A node names its inputs and
what it applies: ``REF::NAME`` is a primitive, a function or the result of another node, and
"Constant" a value.

Nothing in a file is believed: lengths are checked by the wire reader, attributes nest at most
`DEEPEST` levels, and a tensor has as many bytes as its shape says.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mycel._src.foundation import dtype as D
from mycel._src.foundation.files.protobuf_wire import WireError, fields, integers, signed

__all__ = [
    "DEEPEST",
    "FROZEN",
    "STOPS_GRADIENT",
    "TENSOR_KINDS",
    "Attribute",
    "Function",
    "MindIRError",
    "Model",
    "Node",
    "Primitive",
    "TensorInfo",
    "begins",
    "model_of",
]

DEEPEST = 32
# The description of a parameter that isn't trained, which MindSpore reads past.
FROZEN = "requires_grad=False"
# MindSpore leaves `stop_gradient` out of its files. Here it is a Depend, which passes its first
# input on, with an attribute of this name that MindSpore reads past.
STOPS_GRADIENT = "stop_gradient"
# The element types by their numbers in tensors and attributes.
TENSOR_KINDS = {
    1: D.float32,
    2: D.uint8,
    3: D.int8,
    4: D.uint16,
    5: D.int16,
    6: D.int32,
    7: D.int64,
    9: D.bool_,
    10: D.float16,
    11: D.float64,
    12: D.uint32,
    13: D.uint64,
    14: D.complex64,
    15: D.complex128,
    16: D.bfloat16,
}


class MindIRError(ValueError):
    """The error for a file that is no MindIR of MindSpore's."""


@dataclass
class TensorInfo:
    """A tensor: its name, sizes (-1 where open, -2 for an unknown number), element type, and bytes
    if the file has them.
    """

    name: str = ""
    shape: tuple[int, ...] = ()
    kind: int = 0
    content: bytes | None = None
    parameter: str = ""
    elsewhere: str = ""
    offset: int = 0
    length: int = 0
    description: str = ""

    def array(self) -> NDArray[Any]:
        """Return the values; raise MindIRError where bytes and shape do not agree."""
        title = f"tensor {self.parameter or self.name!r}"
        if self.elsewhere:
            raise MindIRError(f"{title} lies in another file, {self.elsewhere!r}, which is not read")
        kind = TENSOR_KINDS.get(self.kind)
        if kind is None:
            raise MindIRError(f"{title} has elements of the unknown type {self.kind}")
        if any(d < 0 for d in self.shape):
            raise MindIRError(f"{title} has values, but the open sizes {self.shape}")
        content = self.content or b""
        count = math.prod(self.shape)
        if len(content) != count * kind.numpy.itemsize:
            raise MindIRError(f"{title} has {len(content)} bytes, not those of {kind.name}{list(self.shape)}")
        if kind is D.bool_:
            return np.asarray(np.frombuffer(content, np.uint8) != 0).reshape(self.shape)
        return np.array(np.frombuffer(content, kind.numpy)).reshape(self.shape)


@dataclass
class Attribute:
    """A named value: its type's number, and what of the fields it has."""

    name: str = ""
    kind: int = 0
    number: int | float | None = None
    text: bytes | None = None
    numbers: list[int | float] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)
    tensors: list[TensorInfo] = field(default_factory=list)
    values: list[Attribute] = field(default_factory=list)


@dataclass
class Node:
    """The application of `operator` to values by name; a Constant has the attribute `value`."""

    operator: str = ""
    inputs: list[str] = field(default_factory=list)
    output: str = ""
    attributes: list[Attribute] = field(default_factory=list)


@dataclass
class Function:
    """A graph: names of inputs, parameters with their values, nodes, and the name of the output."""

    name: str = ""
    inputs: list[TensorInfo] = field(default_factory=list)
    input_kinds: list[str] = field(default_factory=list)
    parameters: list[TensorInfo] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    output_attributes: list[Attribute | None] = field(default_factory=list)
    output_tensors: list[list[TensorInfo]] = field(default_factory=list)


@dataclass
class Primitive:
    """An operator with its attributes; `is_function` if all its arguments are inputs."""

    name: str = ""
    operator: str = ""
    attributes: list[Attribute] = field(default_factory=list)
    is_function: bool = False


@dataclass
class Model:
    """The content of a file."""

    main: Function
    functions: dict[str, Function]
    primitives: dict[str, Primitive]
    producer: str = ""
    version: str = ""
    user_info: dict[str, str] = field(default_factory=dict)


def begins(head: bytes) -> bool:
    """Return whether a file that begins with these bytes may be a MindIR file: its first field is
    the version of the format, a text.
    """
    return head[:1] == b"\n"


def model_of(content: bytes) -> Model:
    """Return the model in a file's content; raise MindIRError for anything else."""
    try:
        return _model(content)
    except (WireError, UnicodeDecodeError, struct.error) as error:
        raise MindIRError(f"it is no MindIR, or damaged: {error}") from None


def _model(content: bytes) -> Model:
    main: Function | None = None
    functions: dict[str, Function] = {}
    primitives: dict[str, Primitive] = {}
    texts = {2: "", 5: ""}
    info: dict[str, str] = {}
    for number, value in fields(content):
        if number in texts:
            texts[number] = _text(value)
        elif number == 7:
            main = _function(_bytes(value))
        elif number == 8:
            function = _function(_bytes(value))
            if function.name in functions:
                raise MindIRError(f"two functions are named {function.name!r}")
            functions[function.name] = function
        elif number == 10 and not value:
            raise MindIRError("its numbers are big-endian, which is not supported")
        elif number == 12:
            primitive = _primitive(_bytes(value))
            primitives[primitive.name] = primitive
        elif number == 14:
            pair = {n: v for n, v in fields(_bytes(value))}
            info[_text(pair.get(1, b""))] = _text(pair.get(2, b""))
    if main is None or main.name in functions or not main.outputs:
        raise MindIRError("it has no main graph with an output")
    return Model(main, functions, primitives, texts[2], texts[5], info)


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise WireError("a number where a message is expected")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()


def _int(value: int | bytes) -> int:
    if isinstance(value, int):
        return signed(value)
    raise WireError("bytes where a number is expected")


def _floats(value: int | bytes, form: str) -> list[float]:
    content = _bytes(value)
    return [v for (v,) in struct.iter_unpack(form, content)]


def _function(content: bytes) -> Function:
    made = Function()
    for number, value in fields(content):
        if number == 1:
            made.nodes.append(_node(_bytes(value)))
        elif number == 2:
            made.name = _text(value)
        elif number == 3:
            made.parameters.append(_tensor(_bytes(value)))
        elif number == 5:
            tensors, _, kind, name = _value_info(_bytes(value))
            made.inputs.append(tensors[0] if tensors else TensorInfo())
            made.inputs[-1].name = name
            made.input_kinds.append(kind)
        elif number == 6:
            tensors, attribute, _, name = _value_info(_bytes(value))
            made.outputs.append(name)
            made.output_attributes.append(attribute)
            made.output_tensors.append(tensors)
        elif number == 10:
            raise MindIRError("it has map parameters, which are not supported")
    return made


def _value_info(content: bytes) -> tuple[list[TensorInfo], Attribute | None, str, str]:
    tensors: list[TensorInfo] = []
    attribute, kind, name = None, "", ""
    for number, value in fields(content):
        if number == 1:
            name = _text(value)
        elif number == 2:
            tensors.append(_tensor(_bytes(value)))
        elif number == 4:
            kind = _text(value)
        elif number == 5:
            attribute = _attribute(_bytes(value))
    return tensors, attribute, kind, name


def _node(content: bytes) -> Node:
    made = Node()
    for number, value in fields(content):
        if number == 1:
            made.inputs.append(_text(value))
        elif number == 2:
            made.output = _text(value)
        elif number == 4:
            made.operator = _text(value)
        elif number == 5:
            made.attributes.append(_attribute(_bytes(value)))
    return made


def _primitive(content: bytes) -> Primitive:
    made = Primitive()
    for number, value in fields(content):
        if number == 1:
            made.name = _text(value)
        elif number == 2:
            made.operator = _text(value)
        elif number == 3:
            made.attributes.append(_attribute(_bytes(value)))
        elif number == 5:
            made.is_function = _int(value) == 2
    return made


def _attribute(content: bytes, depth: int = 0) -> Attribute:
    if depth > DEEPEST:
        raise MindIRError(f"an attribute is nested more than {DEEPEST} levels deep")
    made = Attribute()
    for number, value in fields(content):
        if number == 1:
            made.name = _text(value)
        elif number == 2:
            (made.number,) = _floats(value, "<f")
        elif number == 3:
            made.number = _int(value)
        elif number == 4:
            (made.number,) = _floats(value, "<d")
        elif number == 5:
            made.text = _bytes(value)
        elif number in (8, 9):
            made.numbers += _floats(value, "<f" if number == 8 else "<d")
        elif number == 10:
            made.numbers += map(signed, integers(value))
        elif number == 11:
            made.texts.append(_bytes(value))
        elif number == 12:
            made.tensors.append(_tensor(_bytes(value)))
        elif number == 16:
            made.kind = _int(value)
        elif number == 17:
            made.values.append(_attribute(_bytes(value), depth + 1))
    return made


def _tensor(content: bytes) -> TensorInfo:
    made = TensorInfo()
    shape: list[int] = []
    for number, value in fields(content):
        if number == 1:
            shape += map(signed, integers(value))
        elif number == 2:
            made.kind = _int(value)
        elif number == 7:
            made.name = _text(value)
        elif number == 8:
            made.description = _text(value)
        elif number == 9:
            made.content = _bytes(value)
        elif number == 12:
            made.elsewhere = "?"
            for part, found in fields(_bytes(value)):
                if part == 1:
                    made.elsewhere = _text(found) or "?"
                elif part == 2:
                    made.offset = _int(found)
                elif part == 3:
                    made.length = _int(found)
        elif number == 13:
            made.parameter = _text(value)
        elif number == 16 and value:
            raise MindIRError(f"tensor {made.name!r} is compressed, which is not supported")
    made.shape = tuple(shape)
    return made
