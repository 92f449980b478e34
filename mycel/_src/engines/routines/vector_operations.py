"""Explicit SIMD in routines, where LLVM does not vectorise loops over single elements.

A vector's kind is LLVM's own, as `<8 x i16>`. What is written here is LLVM's, and any processor's:
`neighbours` is one instruction where there is one. `looked_up` alone is of one family, and
`routine_language` says how a routine asks whether it is there.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.engines.routines.element_types import ELEMENTS

__all__ = ["LOOKED_UP", "NEEDED", "WORDS", "element", "kind_of", "number"]

# Writes an operation and returns the name of what it gives.
Say = Callable[[str], str]
# The name and the kind of a vector.
Named = tuple[str, str]
# How many bytes are looked up at once, by processors that have this.
LOOKED_UP, NEEDED = 64, "avx512vbmi"
_PERMUTED = "@llvm.x86.avx512.vpermi2var.qi.512"
_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


def kind_of(count: int, element: str) -> str:
    """Return the kind of a vector of so many elements."""
    return f"<{count} x {element}>"


def element(kind: str) -> tuple[int, str]:
    """Return how many elements a kind has, 0 for one that is no vector, and their kind."""
    if not kind.startswith("<"):
        return 0, kind
    count, _, rest = kind[1:-1].partition(" x ")
    return int(count), rest


def number(text: str, kind: str) -> str:
    """Return a constant of a kind, whose elements are all written `text`."""
    count, one = element(kind)
    return f"<{', '.join([f'{one} {text}'] * count)}>" if count else text


def _chosen(say: Say, vector: str, kind: str, order: Sequence[int]) -> str:
    places = ", ".join(f"i32 {place}" for place in order)
    return say(f"shufflevector {kind} {vector}, {kind} poison, {kind_of(len(order), 'i32')} <{places}>")


def _of_memory(say: Say, address: str, name: str, count: int, order: Sequence[int]) -> Named:
    """Read `count` elements of the type `name` and return those of an order, with their kind.

    Bytes have 16 bits then.
    """
    memory, kind, widen = ELEMENTS[name]
    wide = "i16" if memory in ("i8", "i16") and name != "uint16" else kind
    times, bits = len(order) // count, 8 * _BYTES[memory] * count
    if times > 1 and list(order) == list(range(count)) * times and wide == memory and bits <= 64:
        # The elements as one are in all places after one instruction.
        found = say(f"load i{bits}, ptr {address}, align {_BYTES[memory]}")
        whole = kind_of(times, f"i{bits}")
        found = say(f"insertelement {whole} poison, i{bits} {found}, i32 0")
        found = _chosen(say, found, whole, [0] * times)
        return say(f"bitcast {whole} {found} to {kind_of(len(order), memory)}"), kind_of(len(order), memory)
    found = say(f"load {kind_of(count, memory)}, ptr {address}, align {_BYTES[memory]}")
    if list(order) != list(range(count)):
        found = _chosen(say, found, kind_of(count, memory), order)
    if wide != memory:
        found = say(f"{widen} {kind_of(len(order), memory)} {found} to {kind_of(len(order), wide)}")
    return found, kind_of(len(order), wide)


def _to_memory(say: Say, address: str, name: str, vector: str, kind: str) -> str:
    """Return what writes a vector to memory of the type `name`, to whose bits it is cut."""
    memory = ELEMENTS[name][0]
    count, one = element(kind)
    if one != memory:
        vector = say(f"trunc {kind} {vector} to {kind_of(count, memory)}")
    return f"  store {kind_of(count, memory)} {vector}, ptr {address}, align {_BYTES[memory]}"


def _neighbours(say: Say, one: str, other: str, kind: str) -> Named:
    """Multiply two vectors of 16 bits and add up the products of neighbours, with 32 bits."""
    count = element(kind)[0] // 2
    half, wide = kind_of(count, "i16"), kind_of(count, "i32")
    sums = []
    for first in (0, 1):
        pair = []
        for vector in (one, other):
            part = _chosen(say, vector, kind, range(first, 2 * count, 2))
            pair.append(say(f"sext {half} {part} to {wide}"))
        sums.append(say(f"mul nsw {wide} {pair[0]}, {pair[1]}"))
    return say(f"add {wide} {sums[0]}, {sums[1]}"), wide


def _recoded(say: Say, bytes_at: str, table: str, channels: int, first: int, result: str) -> str:
    """Look bytes up in tables of 256 bytes, one for each channel, and return what writes them.

    `bytes_at`, `table` and `result` are addresses, `first` the channel of the first byte.
    """
    kind = kind_of(LOOKED_UP, "i8")
    places = say(f"load {kind}, ptr {bytes_at}, align 1")
    upper = say(f"icmp slt {kind} {places}, zeroinitializer")
    made = ""
    for channel in range(channels):
        quarters = []
        for quarter in range(channel * 256, channel * 256 + 256, LOOKED_UP):
            at = say(f"getelementptr inbounds i8, ptr {table}, i64 {quarter}")
            quarters.append(say(f"load {kind}, ptr {at}, align 1"))
        halves = [
            say(f"call {kind} {_PERMUTED}({kind} {one}, {kind} {places}, {kind} {other})")
            for one, other in (quarters[:2], quarters[2:])
        ]
        found = say(f"select {kind_of(LOOKED_UP, 'i1')} {upper}, {kind} {halves[1]}, {kind} {halves[0]}")
        if channel:
            own = ", ".join(f"i1 {int((first + lane) % channels == channel)}" for lane in range(LOOKED_UP))
            found = say(f"select {kind_of(LOOKED_UP, 'i1')} <{own}>, {kind} {found}, {kind} {made}")
        made = found
    return f"  store {kind} {made}, ptr {result}, align 1"


# What a writer (`translate`) has written for the arguments of each word: a vector, or None.


def _taken(writer: Any, given: list[ast.expr]) -> Named | None:
    address, name = writer.address(given[0], given[0], given[1])
    return _of_memory(writer.named, address, name, writer.value(given[2]), writer.value(given[3]))


def _placed(writer: Any, given: list[ast.expr]) -> Named | None:
    address, name = writer.address(given[0], given[0], given[1])
    vector = writer.value(given[2])
    writer.lines.append(_to_memory(writer.named, address, name, vector.text, vector.kind))
    return None


def _multiplied(writer: Any, given: list[ast.expr]) -> Named | None:
    one, other = (writer.value(node) for node in given)
    return _neighbours(writer.named, one.text, other.text, one.kind)


def _looked_up(writer: Any, given: list[ast.expr]) -> Named | None:
    source, place, table, channels, first, result, into = given
    at, there = (writer.address(array, array, index)[0] for array, index in ((source, place), (result, into)))
    known = writer.value(table).text, writer.value(channels), writer.value(first)
    writer.outside.add(f"declare <64 x i8> {_PERMUTED}(<64 x i8>, <64 x i8>, <64 x i8>)")
    writer.lines.append(_recoded(writer.named, at, *known, there))
    return None


WORDS: dict[str, Callable[[Any, list[ast.expr]], Named | None]] = {
    "taken": _taken,
    "placed": _placed,
    "neighbours": _multiplied,
    "looked_up": _looked_up,
}
