"""Vectors in routines: several elements at once, where loops over single ones are not made so.

A vector's kind is LLVM's own, as `<8 x i16>`. What is written here is LLVM's, and any processor's:
`neighbours` is one instruction where there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mycel.engines.routines.elements import ELEMENTS

__all__ = ["element", "kind_of", "neighbours", "number", "of_memory", "to_memory"]

# Writes an operation and returns the name of what it gives.
Say = Callable[[str], str]


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


def of_memory(say: Say, address: str, name: str, count: int, order: Sequence[int]) -> tuple[str, str]:
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


_BYTES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "float": 4, "double": 8}


def to_memory(say: Say, address: str, name: str, vector: str, kind: str) -> str:
    """Return what writes a vector to memory of the type `name`, to whose bits it is cut."""
    memory = ELEMENTS[name][0]
    count, one = element(kind)
    if one != memory:
        vector = say(f"trunc {kind} {vector} to {kind_of(count, memory)}")
    return f"  store {kind_of(count, memory)} {vector}, ptr {address}, align {_BYTES[memory]}"


def neighbours(say: Say, one: str, other: str, kind: str) -> tuple[str, str]:
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
