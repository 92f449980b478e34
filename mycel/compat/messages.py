"""Messages of Protocol Buffers with the fields of MindSpore's files, as its modules `*_pb2` have
them.

`messages.json` has the fields of all messages, asked of MindSpore itself. A message class is made
of them: fields are attributes that are checked when they are set, repeated ones are lists, and
`ParseFromString` and `SerializeToString` read and write the wire format. Fields of unknown numbers
are skipped. An enumeration's values are attributes of the class that it is in.
"""

from __future__ import annotations

import functools
import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from mycel._src.foundation.files import protobuf_wire
from mycel._src.foundation.files.protobuf_wire import WireError

__all__ = ["DecodeError", "Message", "module_of"]

DecodeError = WireError
_FIXED = {"double": "<d", "float": "<f", "fixed64": "<Q", "fixed32": "<I", "sfixed64": "<q", "sfixed32": "<i"}
_SCALARS = frozenset((*_FIXED, "bool", "bytes", "int32", "int64", "sint32", "sint64", "string", "uint32", "uint64"))
_SPANS = {
    "int32": (-(1 << 31), 1 << 31),
    "sint32": (-(1 << 31), 1 << 31),
    "uint32": (0, 1 << 32),
    "int64": (-(1 << 63), 1 << 63),
    "sint64": (-(1 << 63), 1 << 63),
    "uint64": (0, 1 << 64),
}


class _Field(NamedTuple):
    """A field: its number, its type, how often it is there, whether its numbers are packed, its
    default, and the choice of which it is one.
    """

    name: str
    number: int
    kind: str
    often: str
    packed: bool
    default: Any
    choice: str


class _Module:
    """The messages and enumerations of one file."""

    def __init__(self, facts: dict[str, Any]) -> None:
        self.enums: dict[str, dict[str, int]] = facts["enums"]
        self.others: dict[str, type[Message]] = {}
        self.classes: dict[str, type[Message]] = {}
        for name, fields in facts["messages"].items():
            known = [_Field(field, *rest) for field, rest in fields.items()]
            content: dict[str, Any] = {"_fields": {f.name: f for f in known}, "_module": self, "_full_name": name}
            content.update({f"{f.name.upper()}_FIELD_NUMBER": f.number for f in known})
            content["__slots__"] = ()
            self.classes[name] = type(name.rpartition(".")[2], (Message,), content)
        for name, made in self.classes.items():
            self._place(name, made)
        for name, values in self.enums.items():
            self._place(name, Enumeration(values), values)

    def is_message(self, kind: str) -> bool:
        """Return whether a type of fields is a message."""
        return kind not in _SCALARS and kind not in self.enums

    def message(self, kind: str) -> type[Message]:
        """Return the class of a message, which may be of another module."""
        if kind not in self.classes and kind not in self.others:
            self.others[kind] = next(
                _module(name).classes[kind] for name, facts in _table().items() if kind in facts["messages"]
            )
        return self.classes.get(kind) or self.others[kind]

    def _place(self, name: str, thing: Any, values: dict[str, int] | None = None) -> None:
        owner = self.classes.get(name.rpartition(".")[0])
        if owner is not None:
            setattr(owner, name.rpartition(".")[2], thing)
            for value, number in (values or {}).items():
                setattr(owner, value, number)

    def content(self) -> dict[str, Any]:
        """Return what the module has at its top: messages, enumerations and their values."""
        inner = set(self.classes)
        found: dict[str, Any] = {
            n.rpartition(".")[2]: made for n, made in self.classes.items() if n.rpartition(".")[0] not in inner
        }
        for name, values in self.enums.items():
            if name.rpartition(".")[0] not in inner:
                found.update({name.rpartition(".")[2]: Enumeration(values), **values})
        return found


class Enumeration:
    """An enumeration: names and numbers."""

    def __init__(self, values: dict[str, int]) -> None:
        self._values = values

    def Value(self, name: str) -> int:
        """Return the number of a name; ValueError for another name."""
        if name not in self._values:
            raise ValueError(f"there is no value {name!r}; there are {', '.join(self._values)}")
        return self._values[name]

    def Name(self, number: int) -> str:
        """Return the name of a number; ValueError for another number."""
        for name, value in self._values.items():
            if value == number:
                return name
        raise ValueError(f"there is no value of the number {number!r}")

    def keys(self) -> list[str]:
        """Return the names."""
        return list(self._values)

    def values(self) -> list[int]:
        """Return the numbers."""
        return list(self._values.values())

    def items(self) -> list[tuple[str, int]]:
        """Return names and numbers."""
        return list(self._values.items())

    def __getattr__(self, name: str) -> int:
        if name in self._values:
            return self._values[name]
        raise AttributeError(name)


class _Many(list[Any]):
    """The values of a repeated field, each of which is checked."""

    def __init__(self, owner: Message, field: _Field) -> None:
        super().__init__()
        self._owner, self._field = owner, field

    def append(self, value: Any) -> None:
        """Add a value; a message is copied."""
        super().append(self._owner._checked(self._field, value))
        self._owner.SetInParent()

    def extend(self, values: Iterable[Any]) -> None:
        """Add several values."""
        for value in values:
            self.append(value)

    def add(self, **fields: Any) -> Message:
        """Add a message with these fields, and return it."""
        made: Message = self._owner._class_of(self._field)(**fields)
        super().append(made)
        self._owner.SetInParent()
        return made

    MergeFrom = extend


class Message:
    """A message; see the module. Fields may be given by name when it is created."""

    __slots__ = ("_parent", "_present", "_values")
    _fields: dict[str, _Field]
    _module: _Module
    _full_name: str

    def __init__(self, **fields: Any) -> None:
        self._values: dict[str, Any] = {}
        self._present: set[str] = set()
        self._parent: tuple[Message, str] | None = None
        for name, value in fields.items():
            field = self._field(name)
            if field.often in ("many", "map"):
                getattr(self, name).extend(value) if field.often == "many" else getattr(self, name).update(value)
            elif isinstance(value, Message):
                getattr(self, name).CopyFrom(value)
            else:
                setattr(self, name, value)

    def _field(self, name: str) -> _Field:
        if name not in self._fields:
            raise ValueError(f"{type(self).__name__} has no field {name!r}; it has {', '.join(self._fields)}")
        return self._fields[name]

    def _class_of(self, field: _Field) -> type[Message]:
        return self._module.message(field.kind)

    def __getattr__(self, name: str) -> Any:
        field = self._fields.get(name)
        if field is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        values = self._values
        if name not in values:
            if field.often == "many":
                values[name] = _Many(self, field)
            elif field.often == "map":
                values[name] = {}
            elif self._module.is_message(field.kind):
                values[name] = child = self._class_of(field)()
                child._parent = (self, name)
            else:
                return b"" if field.kind == "bytes" and not field.default else field.default
        return values[name]

    def __setattr__(self, name: str, value: Any) -> None:
        if name in Message.__slots__:
            object.__setattr__(self, name, value)
            return
        field = self._fields.get(name)
        if field is None or field.often in ("many", "map") or self._module.is_message(field.kind):
            why = "is no field" if field is None else "is filled, not assigned: use extend, add, update or CopyFrom"
            raise AttributeError(f"{type(self).__name__}.{name} {why}")
        self._values[name] = self._checked(field, value)
        self._enter(name)

    def _enter(self, name: str) -> None:
        """Note that a field is present, and so this message is in the one that it belongs to."""
        choice = self._fields[name].choice
        if choice:
            for other in self._fields.values():
                if other.choice == choice and other.name != name:
                    self._values.pop(other.name, None)
                    self._present.discard(other.name)
        self._present.add(name)
        self.SetInParent()

    def SetInParent(self) -> None:
        """Make this message present in the one that it belongs to."""
        if self._parent is not None:
            self._parent[0]._enter(self._parent[1])

    def _checked(self, field: _Field, value: Any) -> Any:
        kind = field.kind
        if self._module.is_message(kind):
            if not isinstance(value, self._class_of(field)):
                raise TypeError(f"{field.name} takes {kind} messages, not {value!r}")
            made = self._class_of(field)()
            made.CopyFrom(value)
            return made
        if kind == "string":
            text = value.decode() if isinstance(value, bytes) else value
            if not isinstance(text, str):
                raise TypeError(f"{field.name} takes text, not {value!r}")
            return text
        if kind == "bytes":
            if not isinstance(value, (bytes, bytearray, memoryview)):
                raise TypeError(f"{field.name} takes bytes, not {value!r}")
            return bytes(value)
        if kind in ("float", "double"):
            return struct.unpack(_FIXED[kind], struct.pack(_FIXED[kind], value))[0]
        if kind in self._module.enums and isinstance(value, str):
            return Enumeration(self._module.enums[kind]).Value(value)
        number = _integer(field.name, value)
        low, high = _SPANS.get(kind, (-(1 << 63), 1 << 64))
        if not low <= number < high:
            raise ValueError(f"{field.name} is {kind}, which {value!r} does not fit")
        return bool(number) if kind == "bool" else number

    # The questions and changes that all messages have.

    def HasField(self, field_name: str) -> bool:
        """Return whether a field that is there once was set; ValueError for other names."""
        if self._field(field_name).often in ("many", "map"):
            raise ValueError(f"{type(self).__name__}.{field_name} is repeated: ask for its length")
        return field_name in self._present

    def ClearField(self, field_name: str) -> None:
        """Take a field away."""
        self._field(field_name)
        self._values.pop(field_name, None)
        self._present.discard(field_name)

    def Clear(self) -> None:
        """Take all fields away."""
        self._values.clear()
        self._present.clear()

    def WhichOneof(self, oneof_group: str) -> str | None:
        """Return the field of a choice that was set, None for none; ValueError for no choice."""
        members = [f.name for f in self._fields.values() if f.choice == oneof_group]
        if not members:
            raise ValueError(f"{type(self).__name__} has no choice {oneof_group!r}")
        return next((name for name in members if name in self._present), None)

    def ListFields(self) -> list[tuple[SimpleNamespace, Any]]:
        """Return the fields that are there, in order of numbers, with their values.

        A field is described by an object with `name` and `number`.
        """
        return [(SimpleNamespace(name=f.name, number=f.number), self._values[f.name]) for f in self._there()]

    def _there(self) -> Iterator[_Field]:
        for field in sorted(self._fields.values(), key=lambda f: f.number):
            if self._values.get(field.name) if field.often in ("many", "map") else field.name in self._present:
                if field.name not in self._values:
                    getattr(self, field.name)
                yield field

    def IsInitialized(self) -> bool:
        """Return whether all fields that must be there are, in this message and those in it."""
        return not any(f.often == "needed" and f.name not in self._present for f in self._fields.values()) and all(
            part.IsInitialized() for part in self._parts()
        )

    def _parts(self) -> Iterator[Message]:
        for value in self._values.values():
            yield from (v for v in (value if isinstance(value, list) else (value,)) if isinstance(v, Message))

    def CopyFrom(self, other_msg: Any) -> None:
        """Become equal to a message of the same class."""
        if other_msg is not self:
            self.Clear()
            self.MergeFrom(other_msg)

    def MergeFrom(self, other_msg: Any) -> None:
        """Take over the fields of a message of the same class; repeated ones are added."""
        if not isinstance(other_msg, type(self)):
            raise TypeError(f"{type(self).__name__} merges with its own class, not {type(other_msg).__name__}")
        self.SetInParent()
        self.MergeFromString(other_msg.SerializePartialToString())

    # The wire format.

    def ParseFromString(self, serialized: bytes) -> int:
        """Become the message that bytes mean, and return their number; DecodeError for others."""
        self.Clear()
        return self.MergeFromString(serialized)

    @classmethod
    def FromString(cls, s: bytes) -> Any:
        """Return the message that bytes mean."""
        made = cls()
        made.ParseFromString(s)
        return made

    def MergeFromString(self, serialized: bytes) -> int:
        """Take over the fields that bytes mean, and return their number."""
        by_number = {f.number: f for f in self._fields.values()}
        for number, value in protobuf_wire.fields(bytes(serialized)):
            field = by_number.get(number)
            if field is not None:
                self._take(field, value)
        return len(serialized)

    def _take(self, field: _Field, value: int | bytes) -> None:
        if field.often == "map":
            entry = self._class_of(field).FromString(_bytes(field, value))
            getattr(self, field.name)[entry.key] = entry.value
        elif field.often == "many":
            list.extend(getattr(self, field.name), self._read(field, value))
        elif self._module.is_message(field.kind):
            getattr(self, field.name).MergeFromString(_bytes(field, value))
            self._enter(field.name)
        else:
            for one in self._read(field, value):
                self._values[field.name] = one
            self._enter(field.name)

    def _read(self, field: _Field, value: int | bytes) -> list[Any]:
        """Return the values of a field's bytes, several where numbers are packed."""
        kind = field.kind
        if self._module.is_message(kind):
            return [self._class_of(field).FromString(_bytes(field, value))]
        if kind == "string":
            try:
                return [_bytes(field, value).decode()]
            except UnicodeDecodeError:
                raise DecodeError(f"field {field.number} is text that is not UTF-8") from None
        if kind == "bytes":
            return [_bytes(field, value)]
        if kind in _FIXED:
            return [v for (v,) in struct.iter_unpack(_FIXED[kind], _bytes(field, value))]
        numbers = protobuf_wire.integers(value)
        if kind == "bool":
            return [bool(n) for n in numbers]
        if kind.startswith("sint"):
            return [(n >> 1) ^ -(n & 1) for n in numbers]
        return numbers if kind.startswith("uint") else [protobuf_wire.signed(n) for n in numbers]

    def SerializeToString(self, **kwargs: Any) -> bytes:
        """Return the message as bytes, fields in order of their numbers.

        Raises ValueError where a field that must be there is not.
        """
        if not self.IsInitialized():
            raise ValueError(f"{type(self).__name__} lacks fields that it must have")
        return self.SerializePartialToString()

    def SerializePartialToString(self, **kwargs: Any) -> bytes:
        """Return the message as bytes, whether or not it is whole."""
        return b"".join(self._written(field) for field in self._there())

    def _written(self, field: _Field) -> bytes:
        value = self._values[field.name]
        if field.often == "map":
            entry = self._class_of(field)
            pieces = [entry(key=k, value=v).SerializeToString() for k, v in value.items()]
            return b"".join(protobuf_wire.field(field.number, piece) for piece in pieces)
        if field.often != "many":
            return self._write(field, value)
        if field.packed:
            return protobuf_wire.field(field.number, b"".join(self._plain(field, v) for v in value))
        return b"".join(self._write(field, v) for v in value)

    def _write(self, field: _Field, value: Any) -> bytes:
        if isinstance(value, Message):
            return protobuf_wire.field(field.number, value.SerializePartialToString())
        if isinstance(value, (str, bytes)):
            return protobuf_wire.field(field.number, value)
        kind = {8: 1, 4: 5}[struct.calcsize(_FIXED[field.kind])] if field.kind in _FIXED else protobuf_wire.VARINT
        return protobuf_wire.varint(field.number << 3 | kind) + self._plain(field, value)

    def _plain(self, field: _Field, value: Any) -> bytes:
        if field.kind in _FIXED:
            return struct.pack(_FIXED[field.kind], value)
        if field.kind.startswith("sint"):
            value = value << 1 ^ value >> 63
        return protobuf_wire.varint(int(value) & ((1 << 64) - 1))

    def ByteSize(self) -> int:
        """Return the number of bytes of the message."""
        return len(self.SerializePartialToString())

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is type(self)
            and isinstance(other, Message)
            and list(self._there()) == list(other._there())
            and all(self._values[f.name] == other._values[f.name] for f in self._there())
        )

    def __hash__(self) -> int:
        raise TypeError(f"{type(self).__name__} can be changed, so it has no hash")

    def __repr__(self) -> str:
        return "".join(line + "\n" for line in self._lines(""))

    def _lines(self, indent: str) -> Iterator[str]:
        for field in self._there():
            value = self._values[field.name]
            if field.often == "map":
                value = [self._class_of(field)(key=k, value=v) for k, v in value.items()]
            for one in value if isinstance(value, list) else (value,):
                if isinstance(one, Message):
                    yield f"{indent}{field.name} {{"
                    yield from one._lines(indent + "  ")
                    yield indent + "}"
                else:
                    yield f"{indent}{field.name}: {self._shown(field, one)}"

    def _shown(self, field: _Field, value: Any) -> str:
        if isinstance(value, (str, bytes)):
            raw = value.encode() if isinstance(value, str) else value
            return '"' + "".join(_character(b) for b in raw) + '"'
        if isinstance(value, bool):
            return str(value).lower()
        names = {number: name for name, number in self._module.enums.get(field.kind, {}).items()}
        if isinstance(value, float):
            return str(value if field.kind == "double" else np.float32(value)).removesuffix(".0")
        return names.get(value, str(value))


def _character(byte: int) -> str:
    known = {10: "\\n", 13: "\\r", 9: "\\t", 34: '\\"', 39: "\\'", 92: "\\\\"}
    return known.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")


def _integer(name: str, value: Any) -> int:
    if isinstance(value, (str, bytes, float)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} takes integers, not {value!r}")
    return int(value)


def _bytes(field: _Field, value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise DecodeError(f"field {field.number} ({field.name}) is a number where {field.kind} is expected")
    return value


def module_of(name: str) -> dict[str, Any]:
    """Return the messages, enumerations and values of one of MindSpore's modules, by their names.

    >>> sorted(module_of("checkpoint_pb2"))
    ['Checkpoint', 'MapTensorProto', 'TensorProto']
    """
    return _module(name).content()


@functools.cache
def _module(name: str) -> _Module:
    return _Module(_table()[name])


@functools.cache
def _table() -> dict[str, Any]:
    table: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    return table
