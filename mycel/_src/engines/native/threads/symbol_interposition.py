"""Symbol interposition: redirects a loaded ELF library's imports in its global offset table.

A library calls functions of others through a table of addresses, which the system's loader fills
in: one entry for each relocation of a name. `lead` writes other addresses there, for one library
only; the rest of the process keeps calling what it called. The format is that of the ELF
specification, with the relocations of x86-64 and AArch64, and `link_map` is the C library's
(dlinfo).
"""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys
from collections.abc import Mapping
from typing import Any

__all__ = ["imports", "lead"]

_LINK_MAP = 2  # RTLD_DI_LINKMAP
_STRTAB, _SYMTAB, _RELA, _RELASZ, _JMPREL, _PLTRELSZ = 5, 6, 7, 8, 23, 2
# Relocations whose entry is the address of a name: of a variable or function, of a function.
_BY_NAME = {"x86_64": (6, 7), "aarch64": (1025, 1026)}
_ENTRY, _SYMBOL = 24, 24
_READ, _WRITE = 1, 2


class _LinkMap(ctypes.Structure):
    _fields_ = [("base", ctypes.c_uint64), ("name", ctypes.c_char_p), ("dynamic", ctypes.c_uint64)]


def _word(address: int) -> int:
    return int(ctypes.c_uint64.from_address(address).value)


def _dynamic(link: _LinkMap) -> dict[int, int]:
    """Return the entries of a library's dynamic section, by tag; addresses as they are now."""
    found: dict[int, int] = {}
    at = link.dynamic
    while _word(at):
        found[_word(at)] = _word(at + 8)
        at += 16
    for tag in (_STRTAB, _SYMTAB, _RELA, _JMPREL):
        # Most systems' loaders have added the base already.
        if tag in found and found[tag] < link.base:
            found[tag] += link.base
    return found


def imports(library: ctypes.CDLL) -> dict[str, list[int]] | None:
    """Return the places that hold the address of each name that a library imports.

    Returns None on systems whose libraries have another format.
    """
    kinds = _BY_NAME.get(platform.machine())
    find = getattr(ctypes.CDLL(None), "dlinfo", None)
    if sys.platform != "linux" or kinds is None or find is None or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    link = ctypes.POINTER(_LinkMap)()
    if find(ctypes.c_void_p(library._handle), _LINK_MAP, ctypes.byref(link)):
        return None
    base, dynamic = int(link.contents.base), _dynamic(link.contents)
    places: dict[str, list[int]] = {}
    for table, size in ((_RELA, _RELASZ), (_JMPREL, _PLTRELSZ)):
        if table not in dynamic:
            continue
        rows = ctypes.string_at(dynamic[table], dynamic[size])
        for where, number in _named(rows, kinds):
            name = ctypes.string_at(dynamic[_STRTAB] + _name_of(dynamic[_SYMTAB], number)).decode()
            places.setdefault(name, []).append(base + where)
    return places


def _named(rows: bytes, kinds: tuple[int, int]) -> list[tuple[int, int]]:
    """Return (offset, number of the symbol) of the relocations of names among `rows`."""
    import numpy as np

    table = np.frombuffer(rows, np.uint64).reshape(-1, _ENTRY // 8)
    chosen = table[np.isin(table[:, 1] & np.uint64(0xFFFFFFFF), np.array(kinds, np.uint64))]
    return [(int(where), int(info) >> 32) for where, info, _ in chosen.tolist()]


def _name_of(symbols: int, number: int) -> int:
    return int(ctypes.c_uint32.from_address(symbols + _SYMBOL * number).value)


def _protection(address: int) -> int:
    """Return what may be done with the page of an address, as mprotect takes it."""
    with open("/proc/self/maps") as file:
        for line in file:
            span, flags = line.split()[:2]
            first, last = (int(end, 16) for end in span.split("-"))
            if first <= address < last:
                return sum(1 << k for k, flag in enumerate(flags[:3]) if flag != "-")
    return 0


def lead(places: Mapping[str, list[int]], targets: Mapping[str, int]) -> bool:
    """Write the addresses `targets`, by name, into their places; return whether that was possible.

    Nobody may call these names meanwhile. Where it returns False nothing was changed.
    """
    entries = [(place, targets[name]) for name, where in places.items() if name in targets for place in where]
    pages = sorted({place & -mmap.PAGESIZE for place, _ in entries})
    protect: Any = ctypes.CDLL(None).mprotect
    protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    before = {page: _protection(page) for page in pages}
    opened: list[int] = []
    try:
        for page in pages:
            if not before[page] & _WRITE:
                if protect(page, mmap.PAGESIZE, before[page] | _READ | _WRITE):
                    return False
                opened.append(page)
        for place, target in entries:
            ctypes.c_uint64.from_address(place).value = target
        return True
    finally:
        for page in opened:
            protect(page, mmap.PAGESIZE, before[page])
