"""A loader of small ELF objects that packs kernels into shared pages of memory.

A kernel's object is small (2 KiB) and simple: code, constants, relative addresses between the two,
and calls of a few functions of the C library. LLVM's linker gives each object separate pages, of
which a process may have some 65,000, and takes half a millisecond. This loader puts sections one
after another into chunks of memory with two mappings, one to write and one to run (never one for
both), fills in relative addresses, and lets calls go through stubs beside the code.

Other objects (another format or processor, writable data, other kinds of relocation) are refused
with None and go to LLVM's linker, as do all objects where the system does not give such memory. The
format is that of the ELF specification and the System V ABI of x86-64 (R_X86_64_PC32,
R_X86_64_PLT32).

A chunk is shared with forked child processes: a child only runs its code, and writes to new
chunks.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["CHUNK", "CodePages"]

CHUNK = 1 << 21
_ALIGNMENT = 64

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_IDENTITY, _RELOCATABLE, _X86_64 = b"\x7fELF\x02\x01\x01", 1, 62
_PROGBITS, _SYMTAB, _RELA, _NOBITS = 1, 2, 4, 8
_WRITE, _ALLOC = 1, 2
_PC32, _PLT32 = 2, 4
_JUMP = bytes([0xFF, 0x25, 0, 0, 0, 0])  # jmp *0(%rip): the address follows


class _Chunk:
    """A block of memory that is written through one mapping and run through another."""

    def __init__(self) -> None:
        handle = os.memfd_create("mycel-kernels", os.MFD_CLOEXEC)
        try:
            os.ftruncate(handle, CHUNK)
            self.memory = mmap.mmap(handle, CHUNK, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            self.runnable = mmap.mmap(handle, CHUNK, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC)
        finally:
            os.close(handle)
        self.base: int = np.frombuffer(self.runnable, np.uint8).ctypes.data
        self.used = 0
        self.stubs: dict[str, int] = {}


class CodePages:
    """Chunks of code.

    `address_of` finds functions outside (0: unknown). The caller serializes calls.
    """

    def __init__(self, address_of: Callable[[str], int]) -> None:
        self._address_of = address_of
        self._chunks: list[_Chunk] = []
        self._current: _Chunk | None = None
        self.works = hasattr(os, "memfd_create")

    def begin_anew(self) -> None:
        """Stop writing to the current chunk, which another process writes."""
        self._current = None

    def load(self, code: bytes, names: Sequence[str]) -> list[int] | None:
        """Return the addresses of functions of an object; None where it cannot be loaded here."""
        image = _Object.read(code) if self.works else None
        if image is None or not all(name in image.functions for name in names):
            return None
        outside = {name: self._address_of(name) for name in image.outside}
        if not all(outside.values()):
            return None
        size = image.size + len(outside) * _ALIGNMENT
        if size > CHUNK:
            return None
        chunk = self._room(size)
        if chunk is None:
            return None
        for name, address in outside.items():
            if name not in chunk.stubs:
                chunk.stubs[name] = chunk.used
                chunk.memory[chunk.used : chunk.used + 14] = _JUMP + struct.pack("<Q", address)
                chunk.used += _ALIGNMENT
        place = chunk.used
        chunk.memory[place : place + image.size] = image.placed(place, chunk.stubs)
        chunk.used += image.size
        return [chunk.base + place + image.functions[name] for name in names]

    def _room(self, size: int) -> _Chunk | None:
        if self._current is None or self._current.used + size > CHUNK:
            try:
                self._current = _Chunk()
            except OSError as error:
                if error.errno == errno.ENOMEM:
                    return None
                # The system forbids such memory (a hardened kernel, a limit): LLVM's linker has its
                # own ways.
                self.works = False
                return None
            self._chunks.append(self._current)
        return self._current


class _Object:
    """A relocatable object: its sections in a row, its functions' offsets, and relocations."""

    def __init__(self, content: bytes, functions: dict[str, int], fixes: list[tuple[int, Any, int]]) -> None:
        self.content = content
        self.size = len(content)
        self.functions = functions
        # Where the distance lies, what it leads to (a place in here, or a name outside), what is
        # added.
        self.fixes = fixes
        self.outside = dict.fromkeys(target for _, target, _ in fixes if isinstance(target, str))

    def placed(self, place: int, stubs: Mapping[str, int]) -> bytes:
        """Return the content relocated to the address `place` of a chunk."""
        content = bytearray(self.content)
        for at, target, added in self.fixes:
            goal = stubs[target] - place if isinstance(target, str) else target
            struct.pack_into("<i", content, at, goal + added - at)
        return bytes(content)

    @classmethod
    def read(cls, code: bytes) -> _Object | None:
        """Return the object in a file; None where it is not of the kind that the module loads."""
        if len(code) < _HEADER.size:
            return None
        head = _HEADER.unpack_from(code)
        if not head[0].startswith(_IDENTITY) or head[1:3] != (_RELOCATABLE, _X86_64):
            return None
        table, count = head[6], head[12]
        if table + count * _SECTION.size > len(code):
            return None
        sections = [_SECTION.unpack_from(code, table + k * _SECTION.size) for k in range(count)]
        places, content = _laid_out(code, sections)
        if places is None:
            return None
        functions: dict[str, int] = {}
        fixes: list[tuple[int, Any, int]] = []
        for kind, _, offset, size, link, info in (s[1:2] + s[2:3] + s[4:8] for s in sections):
            if kind == _SYMTAB:
                functions.update(_defined(code, sections, offset, size, link, places))
            elif kind == _RELA and info in places:
                found = _distances(code, sections, (offset, size, link), places, places[info])
                if found is None:
                    return None
                fixes += found
        return cls(content, functions, fixes)


def _laid_out(code: bytes, sections: Sequence[tuple[int, ...]]) -> tuple[dict[int, int] | None, bytes]:
    """Return the offset of each section that is loaded, and the sections in a row.

    Tables for unwinding are left out.
    """
    places: dict[int, int] = {}
    content = bytearray()
    for number, (_, kind, flags, _, offset, size, _, _, alignment, _) in enumerate(sections):
        if not flags & _ALLOC or not size:
            continue
        if kind not in (_PROGBITS, _NOBITS):
            continue  # .eh_frame is a kind of its own on x86-64
        if kind == _NOBITS or flags & _WRITE or alignment > _ALIGNMENT or offset + size > len(code):
            return None, b""
        content += bytes(-len(content) % _ALIGNMENT)
        places[number] = len(content)
        content += code[offset : offset + size]
    content += bytes(-len(content) % _ALIGNMENT)
    return places, bytes(content)


def _name(code: bytes, sections: Sequence[tuple[int, ...]], strings: int, at: int) -> str:
    begin = sections[strings][4] + at
    return code[begin : code.index(b"\0", begin)].decode()


def _defined(
    code: bytes, sections: Sequence[tuple[int, ...]], offset: int, size: int, strings: int, places: Mapping[int, int]
) -> dict[str, int]:
    found = {}
    for at in range(offset, offset + size, _SYMBOL.size):
        name, _, _, section, value, _ = _SYMBOL.unpack_from(code, at)
        if name and section in places:
            found[_name(code, sections, strings, name)] = places[section] + value
    return found


def _distances(
    code: bytes, sections: Sequence[tuple[int, ...]], table: tuple[int, int, int], places: Mapping[int, int], base: int
) -> list[tuple[int, Any, int]] | None:
    """Return the relocations of the section at offset `base`: where, and relative to what.

    `code` is the object file, `sections` its section headers, `table` the header of the
    relocations, and `places` the offsets of sections. Returns None where there is another kind of
    relocation.
    """
    offset, size, symbols = table
    symbol_table, strings = sections[symbols][4], sections[symbols][6]
    found: list[tuple[int, Any, int]] = []
    for at in range(offset, offset + size, _RELOCATION.size):
        where, info, added = _RELOCATION.unpack_from(code, at)
        kind = info & 0xFFFFFFFF
        name, _, _, section, value, _ = _SYMBOL.unpack_from(code, symbol_table + (info >> 32) * _SYMBOL.size)
        if section in places and kind in (_PC32, _PLT32):
            found.append((base + where, places[section] + value, added))
        elif section == 0 and name and kind == _PLT32:
            found.append((base + where, _name(code, sections, strings, name), added))
        else:
            return None
    return found
