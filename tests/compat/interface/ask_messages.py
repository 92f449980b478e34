"""Ask MindSpore for the fields of the messages in its files: `mycel/compat/messages.json`.

    python ask_messages.py

Run with an interpreter that has MindSpore 2.10. For each module, the version of the protocol's
language, its enumerations, and its messages by their full names; a field is its number, its type
(the name of a scalar type, message or enumeration), how often it is there ("one", "needed", "many"
or "map"), whether numbers are packed, its default, and the name of the choice of which it is one.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

MODULES = "anf_ir_pb2 checkpoint_pb2 lineage_pb2 mind_ir_pb2 node_strategy_pb2 summary_pb2"
TARGET = Path(__file__).resolve().parents[3] / "mycel" / "compat" / "messages.json"
TYPES = """
    - double float int64 uint64 int32 fixed64 fixed32 bool string group message bytes uint32 enum
    sfixed32 sfixed64 sint32 sint64
"""


def field(one: Any) -> list[Any]:
    """The facts of a field."""
    kind = TYPES.split()[one.type]
    if kind == "message":
        kind = one.message_type.full_name
    elif kind == "enum":
        kind = one.enum_type.full_name
    often = "needed" if one.is_required else "many" if one.is_repeated else "one"
    if one.message_type is not None and one.message_type.GetOptions().map_entry:
        often = "map"
    choice = one.containing_oneof.name if one.containing_oneof else ""
    default = one.default_value if isinstance(one.default_value, (int, float, str, bool)) else None
    return [one.number, kind, often, bool(one.is_packed), default, choice]


def enumerations(owner: Any) -> dict[str, dict[str, int]]:
    """The enumerations of a module or message, by their full names."""
    return {e.full_name: {v.name: v.number for v in e.values} for e in owner.enum_types_by_name.values()}


def collect(message: Any, messages: dict[str, Any], enums: dict[str, Any]) -> None:
    """Add a message and those inside it."""
    messages[message.full_name] = {one.name: field(one) for one in message.fields}
    enums.update({name: values for name, values in _of_message(message).items()})
    for inner in message.nested_types:
        collect(inner, messages, enums)


def _of_message(message: Any) -> dict[str, dict[str, int]]:
    return {e.full_name: {v.name: v.number for v in e.values} for e in message.enum_types}


def facts(name: str) -> dict[str, Any]:
    """All of a module."""
    found = importlib.import_module(f"mindspore.train.{name}").DESCRIPTOR
    messages: dict[str, Any] = {}
    enums = enumerations(found)
    for message in found.message_types_by_name.values():
        collect(message, messages, enums)
    return {"package": found.package, "enums": enums, "messages": messages}


if __name__ == "__main__":
    rows = [f"{json.dumps(name)}: {json.dumps(facts(name))}" for name in MODULES.split()]
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n")
