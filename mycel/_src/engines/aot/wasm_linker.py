"""Links an object of WebAssembly to a module that runs as it is.

An object, as LLVM writes it, imports its memory and its stack, and names data by symbols. `linked`
places the stack at the lowest addresses, where one that overflows leaves the memory and traps, then
the data, and writes the addresses where the object asks for them. The module imports nothing: it
has a memory of its own that does not grow, and exports it with the functions asked for.

The format is that of https://webassembly.github.io/spec/core/binary/, and for objects
https://github.com/WebAssembly/tool-conventions/blob/main/Linking.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mycel._src.foundation.errors import Unsupported

__all__ = ["Linked", "linked"]

PAGE = 1 << 16
_SPARE = 1024
MOST = 1 << 32
_HEAD = b"\0asm\1\0\0\0"
_CUSTOM, _TYPES, _IMPORTS, _FUNCTIONS, _MEMORY, _GLOBALS, _EXPORTS, _CODE, _DATA = 0, 1, 2, 3, 5, 6, 7, 10, 11
_FUNCTION, _DATUM, _GLOBAL = 0, 1, 2
_SEGMENTS, _SYMBOLS = 5, 8
_UNDEFINED, _NAMED = 0x10, 0x40
_I32, _I32_CONST, _END = 0x7F, 0x41, 0x0B
# How a function takes stack: it gets the pointer (global 0), may keep it in locals, and subtracts a
# constant. It may round the result down to a multiple of 64.
_LEB = rb"[\x80-\xff]*[\x00-\x7f]"
_FRAME = re.compile(rb"\x23\x80{4}\x00(?:[\x20-\x22]" + _LEB + rb"){0,6}\x41(" + _LEB + rb")\x6b", re.DOTALL)

# The kinds of places that wait for an index, and of those that wait for an address.
_INDICES = {0: "function", 6: "type", 7: "global"}
_ADDRESSES = {3: "unsigned", 4: "signed", 5: "word"}


@dataclass(frozen=True)
class Linked:
    """A module, and the places in its memory of what programs write, and of the room for others.

    What the module keeps from call to call is at `state` and ends at `free`, where the room begins.
    """

    module: bytes
    state: int
    free: int


@dataclass
class _Reader:
    """Numbers and names out of bytes, from a place on."""

    data: bytes
    at: int = 0

    def number(self) -> int:
        """Return an unsigned number of seven bits a byte."""
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return result

    def signed(self) -> int:
        """Return a signed number of seven bits a byte."""
        start = self.at
        value = self.number()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 64 else value

    def bytes(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def text(self) -> str:
        return self.bytes(self.number()).decode()

    @property
    def more(self) -> bool:
        return self.at < len(self.data)


@dataclass
class _Symbol:
    """What an object names: a function or global by its index, or a place in a segment."""

    kind: int
    name: str
    index: int = 0
    segment: int | None = None
    offset: int = 0


@dataclass
class _Object:
    """The parts of an object: sections, segments of data, symbols, and places that wait."""

    sections: dict[int, bytes] = field(default_factory=dict)
    numbers: list[int] = field(default_factory=list)
    segments: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    aligns: list[int] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    symbols: list[_Symbol] = field(default_factory=list)
    places: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=dict)


def linked(data: bytes, exports: Sequence[str], room: int) -> Linked:
    """Return the module of an object.

    `exports` are the functions that are seen from outside, and `room` the bytes of memory behind
    what the module uses itself. Raises Unsupported where the object calls functions that it does
    not have, or where the memory is beyond what addresses of 32 bits reach.
    """
    parts = _parsed(data)
    _check_imports(parts)
    stack = _stack(parts)
    addresses, state, free = _addresses(parts, stack)
    if free + room > MOST:
        raise Unsupported(f"build: {free + room:,} bytes of memory; a module of WebAssembly has at most {MOST:,}")
    code = _patched(parts, _CODE, addresses)
    raw = _patched(parts, _DATA, addresses) if parts.segments else b""
    functions = {s.name: s.index for s in parts.symbols if s.kind == _FUNCTION}
    exported = [_text("memory") + b"\2\0"]
    exported += [_text(name) + b"\0" + _number(functions[name]) for name in exports]
    top = bytes([_I32, 1, _I32_CONST]) + _signed(stack) + bytes([_END])
    module = _HEAD + _section(_TYPES, parts.sections[_TYPES]) + _section(_FUNCTIONS, parts.sections[_FUNCTIONS])
    pages = -(-(free + room) // PAGE)
    module += _section(_MEMORY, _list([b"\1" + _number(pages) + _number(pages)]))
    module += _section(_GLOBALS, _list([top])) + _section(_EXPORTS, _list(exported)) + _section(_CODE, code)
    kept = []
    for start, size, address in zip(parts.starts, map(len, parts.segments), addresses):
        if content := raw[start : start + size].rstrip(b"\0"):
            place = bytes([0, _I32_CONST]) + _signed(address) + bytes([_END])
            kept.append(place + _number(len(content)) + content)
    return Linked(module + (_section(_DATA, _list(kept)) if kept else b""), state, free)


def _parsed(data: bytes) -> _Object:
    """Return the parts of an object."""
    reader, parts = _Reader(data, len(_HEAD)), _Object()
    while reader.more:
        kind, body = reader.bytes(1)[0], _Reader(reader.bytes(reader.number()))
        parts.numbers.append(kind)
        if kind != _CUSTOM:
            parts.sections[kind] = body.data
            if kind == _DATA:
                _read_segments(body, parts)
            continue
        name = body.text()
        if name == "linking":
            _read_linking(body, parts)
        elif name.startswith("reloc."):
            section = parts.numbers[body.number()]
            parts.places[section] = list(_read_places(body))
    return parts


def _read_segments(body: _Reader, parts: _Object) -> None:
    for _ in range(body.number()):
        mode = body.number()
        assert mode == 0, "objects have segments at addresses of the first memory"
        body.bytes(1)
        body.signed()
        body.bytes(1)
        size = body.number()
        parts.starts.append(body.at)
        parts.segments.append(body.bytes(size))


def _read_linking(body: _Reader, parts: _Object) -> None:
    assert body.number() == 2, "the convention of objects has version 2"
    while body.more:
        kind, inner = body.bytes(1)[0], _Reader(body.bytes(body.number()))
        if kind == _SEGMENTS:
            for _ in range(inner.number()):
                parts.names.append(inner.text())
                parts.aligns.append(1 << inner.number())
                inner.number()
        elif kind == _SYMBOLS:
            parts.symbols = [_read_symbol(inner) for _ in range(inner.number())]


def _read_symbol(body: _Reader) -> _Symbol:
    kind, flags = body.bytes(1)[0], body.number()
    undefined = bool(flags & _UNDEFINED)
    if kind == _DATUM:
        name = body.text()
        if undefined:
            return _Symbol(kind, name)
        segment, offset = body.number(), body.number()
        body.number()
        return _Symbol(kind, name, segment=segment, offset=offset)
    index = body.number()
    named = kind in (_FUNCTION, _GLOBAL) and (not undefined or flags & _NAMED)
    return _Symbol(kind, body.text() if named else "", index)


def _read_places(body: _Reader) -> Iterator[tuple[int, int, int, int]]:
    """Yield places that wait in a section: kind, place, symbol, and what is added."""
    for _ in range(body.number()):
        kind, place, symbol = body.number(), body.number(), body.number()
        yield kind, place, symbol, 0 if kind in _INDICES else body.signed()


def _check_imports(parts: _Object) -> None:
    """Raise Unsupported unless an object imports its memory and its stack alone."""
    body = _Reader(parts.sections.get(_IMPORTS, b"\0"))
    missing = []
    for _ in range(body.number()):
        body.text()
        name, kind = body.text(), body.bytes(1)[0]
        if kind == 0:
            body.number()
            missing.append(name)
        elif kind == 2:
            limits = body.number()
            body.number()
            if limits & 1:
                body.number()
        elif kind == 3 and name == "__stack_pointer":
            body.bytes(2)
        else:
            missing.append(name)
            break
    if missing:
        raise Unsupported(f"build: a module of WebAssembly has no {', '.join(missing)}, which this program calls")


def _stack(parts: _Object) -> int:
    """Return the bytes of stack that a module needs: what its functions take, each once.

    A function begins by moving the pointer down; none calls itself.
    """
    taken = (_Reader(found[1]).signed() + 64 for found in _FRAME.finditer(parts.sections[_CODE]))
    return -(-(sum(taken) + _SPARE) // 16) * 16


def _addresses(parts: _Object, stack: int) -> tuple[list[int], int, int]:
    """Return the addresses of the segments, behind the stack, constants before what is written.

    Then come the first address of what is written, and the first behind it.
    """
    at, state, result = stack, -1, [0] * len(parts.segments)
    for number in sorted(range(len(result)), key=lambda n: not parts.names[n].startswith(".rodata")):
        if state < 0 and not parts.names[number].startswith(".rodata"):
            state = at = -(-at // 16) * 16
        at = -(-at // parts.aligns[number]) * parts.aligns[number]
        result[number] = at
        at += len(parts.segments[number])
    free = -(-at // 16) * 16
    return result, state if state >= 0 else free, free


def _patched(parts: _Object, section: int, addresses: Sequence[int]) -> bytes:
    """Return the bytes of a section with the places that wait written."""
    result = bytearray(parts.sections[section])
    for kind, place, number, added in parts.places.get(section, ()):
        if kind in _INDICES:
            value = number if _INDICES[kind] == "type" else parts.symbols[number].index
            result[place : place + 5] = _number(value, 5)
            continue
        symbol = parts.symbols[number]
        if kind not in _ADDRESSES or symbol.segment is None:
            raise Unsupported(f"build: a module of WebAssembly has no {symbol.name} (a place of kind {kind})")
        value = addresses[symbol.segment] + symbol.offset + added
        if _ADDRESSES[kind] == "word":
            result[place : place + 4] = value.to_bytes(4, "little")
        else:
            result[place : place + 5] = _number(value, 5) if _ADDRESSES[kind] == "unsigned" else _signed(value, 5)
    return bytes(result)


def _number(value: int, width: int = 1) -> bytes:
    """Return an unsigned number of seven bits a byte, in at least `width` bytes."""
    result: list[int] = []
    while value > 127 or len(result) + 1 < width:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def _signed(value: int, width: int = 1) -> bytes:
    """Return a signed number of seven bits a byte, in at least `width` bytes."""
    result: list[int] = []
    while not -64 <= value <= 63 or len(result) + 1 < width:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value & 127])


def _text(name: str) -> bytes:
    return _number(len(name.encode())) + name.encode()


def _list(items: Sequence[bytes]) -> bytes:
    return _number(len(items)) + b"".join(items)


def _section(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + _number(len(body)) + body
