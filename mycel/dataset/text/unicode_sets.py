"""Sets of Unicode characters as sorted ranges, and the sets that names of properties stand for.

A set is a tuple of ranges (first, last) in order, with a gap between any two. General categories
come from Python's `unicodedata`; scripts come from the table in `unicode_scripts.py`.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cache
from itertools import groupby

import numpy as np

from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text.unicode_scripts import OTHER_ALPHABETIC, SCRIPTS

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF
WHITE_SPACE: Ranges = (
    (0x09, 0x0D),
    (0x20, 0x20),
    (0x85, 0x85),
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x2028, 0x2029),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_CATEGORIES = {
    "letter": "L",
    "uppercaseletter": "Lu",
    "lowercaseletter": "Ll",
    "titlecaseletter": "Lt",
    "modifierletter": "Lm",
    "otherletter": "Lo",
    "mark": "M",
    "nonspacingmark": "Mn",
    "spacingmark": "Mc",
    "enclosingmark": "Me",
    "number": "N",
    "decimalnumber": "Nd",
    "letternumber": "Nl",
    "othernumber": "No",
    "punctuation": "P",
    "connectorpunctuation": "Pc",
    "dashpunctuation": "Pd",
    "openpunctuation": "Ps",
    "closepunctuation": "Pe",
    "initialpunctuation": "Pi",
    "finalpunctuation": "Pf",
    "otherpunctuation": "Po",
    "symbol": "S",
    "mathsymbol": "Sm",
    "currencysymbol": "Sc",
    "modifiersymbol": "Sk",
    "othersymbol": "So",
    "separator": "Z",
    "spaceseparator": "Zs",
    "lineseparator": "Zl",
    "paragraphseparator": "Zp",
    "other": "C",
    "control": "Cc",
    "format": "Cf",
    "surrogate": "Cs",
    "privateuse": "Co",
    "unassigned": "Cn",
}


def union(*sets: Iterable[tuple[int, int]]) -> Ranges:
    """Return the characters that are in any of the sets; the ranges may come in any order."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(r for one in sets for r in one):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def invert(ranges: Ranges) -> Ranges:
    """Return the characters that are not in a set."""
    starts = [0] + [last + 1 for _, last in ranges]
    ends = [first - 1 for first, _ in ranges] + [LAST]
    return tuple((first, last) for first, last in zip(starts, ends) if first <= last)


def intersection(a: Ranges, b: Ranges) -> Ranges:
    """Return the characters that are in both sets."""
    return invert(union(invert(a), invert(b)))


def collect(holds: Callable[[str], bool]) -> Ranges:
    """Return the characters for which a test holds."""
    found = []
    for value, group in groupby(range(LAST + 1), key=lambda code: holds(chr(code))):
        if value:
            codes = list(group)
            found.append((codes[0], codes[-1]))
    return tuple(found)


@cache
def _all_categories() -> dict[str, Ranges]:
    found: dict[str, list[tuple[int, int]]] = {}
    category = unicodedata.category
    start = 0
    for name, group in groupby(map(category, map(chr, range(LAST + 1)))):
        end = start + sum(1 for _ in group)
        found.setdefault(name, []).append((start, end - 1))
        start = end
    return {name: tuple(ranges) for name, ranges in found.items()}


@cache
def categories(*names: str) -> Ranges:
    """Return the characters of general categories.

    A category is a name of two letters, or of one letter for a group.
    """
    return union(*(ranges for name, ranges in _all_categories().items() if name.startswith(names)))


def _parse(ranges: Iterable[str]) -> Ranges:
    pairs = (text.partition("-") for text in ranges)
    return tuple((int(first, 16), int(last or first, 16)) for first, _, last in pairs)


@cache
def _scripts() -> dict[str, Ranges]:
    found = {}
    for line in SCRIPTS.strip().replace("\n ", " ").splitlines():
        code, name, *ranges = line.split()
        found[_plain(code)] = found[_plain(name)] = _parse(ranges)
    return found


@cache
def _script_ends() -> tuple[list[int], list[str]]:
    codes = {line.split(None, 1)[0].lower() for line in SCRIPTS.splitlines() if line[:1].strip()}
    starts: list[int] = []
    names: list[str] = []
    after = 0
    for first, last, code in sorted((a, b, name) for name in codes for a, b in _scripts()[name]):
        if first > after:
            starts.append(after)
            names.append("zzzz")
        starts.append(first)
        names.append(code)
        after = last + 1
    return [*starts, after], [*names, "zzzz"]


def script(character: str) -> str:
    """Return the code of a character's script, in small letters.

    >>> script("a"), script("中"), script("1")
    ('latn', 'hani', 'zyyy')
    """
    starts, names = _script_ends()
    return names[bisect_right(starts, ord(character)) - 1]


@cache
def script_kinds() -> Array:
    """Return the number of each code point's script, int16, which is negative for blanks."""
    starts, names = _script_ends()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names), 2)}
    lengths = np.diff([*starts, LAST + 1])
    kinds = np.repeat(np.array([numbers[name] for name in names], np.int16), lengths)
    for first, last in WHITE_SPACE:
        kinds[first : last + 1] *= -1
    return kinds


def is_space(character: str) -> bool:
    """Return whether a character has Unicode's property White_Space."""
    return character.isspace() and not "\x1c" <= character <= "\x1f"


def _plain(name: str) -> str:
    return "".join(c for c in name.lower() if c not in " _-")


def _words() -> Ranges:
    return union(characters("alphabetic"), categories("M", "Nd", "Pc"), ((0x200C, 0x200D),))


@cache
def characters(name: str) -> Ranges:
    """Return the characters that have a property.

    The property is a general category, a script, or one of a few that hold or do not. Names are
    those of Unicode and POSIX, short or long, with or without `gc=` or `sc=` before them. Raises
    ValueError for other names.
    """
    kind, _, value = name.rpartition("=")
    kind, plain = _plain(kind), _plain(value)
    if kind in ("", "gc", "generalcategory"):
        short = _CATEGORIES.get(plain, plain.capitalize())
        if categories(short) and len(short) <= 2:
            return categories(short)
        if plain == "lc":
            return categories("Lu", "Ll", "Lt")
    if kind in ("", "sc", "script"):
        plain = {"unknown": "zzzz"}.get(plain, plain)
        if plain == "zzzz":
            return invert(union(*_scripts().values()))
        if plain in _scripts():
            return _scripts()[plain]
    if not kind and plain in _PROPERTIES:
        return _PROPERTIES[plain]()
    raise ValueError(
        f"{name!r} is no property of characters that is known here; use a general category (Lu, Letter), a script "
        "(Han), "
        f"or one of {sorted(_PROPERTIES)}"
    )


def _graph() -> Ranges:
    return invert(union(WHITE_SPACE, categories("Cc", "Cs", "Cn")))


_PROPERTIES: dict[str, Callable[[], Ranges]] = {
    "any": lambda: ((0, LAST),),
    "ascii": lambda: ((0, 0x7F),),
    "assigned": lambda: invert(categories("Cn")),
    "whitespace": lambda: WHITE_SPACE,
    "space": lambda: WHITE_SPACE,
    "alphabetic": lambda: union(categories("L", "Nl"), _parse(OTHER_ALPHABETIC.split())),
    "alpha": lambda: characters("alphabetic"),
    "uppercase": lambda: collect(str.isupper),
    "upper": lambda: collect(str.isupper),
    "lowercase": lambda: collect(str.islower),
    "lower": lambda: collect(str.islower),
    "digit": lambda: categories("Nd"),
    "alnum": lambda: union(characters("alphabetic"), categories("Nd")),
    "punct": lambda: categories("P"),
    "blank": lambda: union(categories("Zs"), ((9, 9),)),
    "cntrl": lambda: categories("Cc"),
    "xdigit": lambda: union(categories("Nd"), ((0x41, 0x46), (0x61, 0x66), (0xFF21, 0xFF26), (0xFF41, 0xFF46))),
    "graph": _graph,
    "print": lambda: intersection(union(_graph(), characters("blank")), invert(categories("Cc"))),
    "word": _words,
}
