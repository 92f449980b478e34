"""Normal forms of Unicode and case folding.

Folding is Unicode's NFKC_Casefold (Unicode Standard, section 3.13): case folding and compatibility
composition until nothing changes, without the characters that Unicode says to ignore.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import code_points
from mycel.dataset.text.base import ElementwiseText
from mycel.dataset.text.enums import NormalizeForm

# The property Default_Ignorable_Code_Point.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


# Of the first 256 characters: capital letters with their small ones, and those that become others.
_CAPITALS = bytes(range(0x41, 0x5B)) + bytes(range(0xC0, 0xD7)) + bytes(range(0xD8, 0xDF))
_SMALL = bytes.maketrans(_CAPITALS, bytes(code + 32 for code in _CAPITALS))
_OTHERS = bytes((0xA0, 0xA8, 0xAA, 0xAD, 0xAF, 0xB2, 0xB3, 0xB4, 0xB5, 0xB8, 0xB9, 0xBA, 0xBC, 0xBD, 0xBE))


def _folded_latin(text: str) -> str | None:
    """Return the NFKC_Casefold of a text of Latin letters and the like, and None for others."""
    try:
        given = text.encode("latin-1")
    except UnicodeEncodeError:
        return None
    if len(given.translate(None, _OTHERS)) != len(given):
        return None
    return given.replace(b"\xdf", b"ss").translate(_SMALL).decode("latin-1")


# Characters from which on a table is worth it.
_LONG = 256


def _one_by_one(text: str, change: str) -> str | None:
    """Return a text that is "folded" or in "NFKC" where each character becomes one, else None."""
    points = code_points.codes_of(text)
    if int(points.max()) >= _CODES:
        return None
    found = np.take(_alone(change), points)
    return code_points.text_of(found) if int(found.min()) >= 0 else None


_CODES = 0x10000


@cache
def _alone(change: str) -> Array:
    """Return what each of the first code points becomes, int32, and -1 for those with more to them.

    These are what becomes none or several, and what its neighbours may join or swap places with.
    """
    joining = set(map(chr, [*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)]))
    for character in map(chr, range(_CODES)):
        parts = unicodedata.decomposition(character).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            joining.add(chr(int(parts[1], 16)))

    def changed(code: int) -> int:
        one = chr(code)
        other = _folded(one) if change == "folded" else unicodedata.normalize("NFKC", one)
        if len(other) != 1 or ord(other) >= _CODES or not joining.isdisjoint((one, other)):
            return -1
        return -1 if unicodedata.combining(one) or unicodedata.combining(other) else ord(other)

    return np.fromiter(map(changed, range(_CODES)), np.int32, _CODES)


def case_folded(text: str) -> str:
    """Return the NFKC_Casefold of a text."""
    if text.isascii():
        return text.lower()
    if len(text) > 8:
        simple = _folded_latin(text)
        if simple is None and len(text) >= _LONG:
            simple = _one_by_one(text, "folded")
        if simple is not None:
            return simple
    return _folded(text)


def _folded(text: str) -> str:
    folded = unicodedata.normalize("NFD", text)
    while True:
        once = unicodedata.normalize("NFKC", _IGNORABLE.sub("", folded).casefold())
        if once == folded:
            return once
        folded = once


def normalized(text: str, form: NormalizeForm) -> str:
    """Return a text in a normal form."""
    if form is NormalizeForm.NFC:
        return unicodedata.normalize("NFC", text)
    if form is NormalizeForm.NFKC:
        simple = _one_by_one(text, "NFKC") if len(text) >= _LONG and not text.isascii() else None
        if simple is not None:
            return simple
        return unicodedata.normalize("NFKC", text)
    if form is NormalizeForm.NFD:
        return unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFKD", text) if form is NormalizeForm.NFKD else text


def check_form(operation: str, form: object) -> NormalizeForm:
    """Return a `NormalizeForm`; raise TypeError otherwise."""
    return arguments.instance(operation, "the normal form", form, NormalizeForm)


class NormalizeUTF8(ElementwiseText):
    """Texts, of any shape, in one of Unicode's normal forms.

    >>> from mycel.dataset import text
    >>> text.NormalizeUTF8(text.NormalizeForm.NFKC)("ﬁ①").tolist()
    'fi1'
    """

    def __init__(self, normalize_form: NormalizeForm = NormalizeForm.NFKC) -> None:
        self.normalize_form = check_form("NormalizeUTF8", normalize_form)

    def one(self, text: str) -> str:
        return normalized(text, self.normalize_form)


class CaseFold(ElementwiseText):
    """Texts, of any shape, without differences of case: Unicode's NFKC_Casefold.

    >>> from mycel.dataset import text
    >>> text.CaseFold()("Straße ÀB").tolist()
    'strasse àb'
    """

    def __init__(self) -> None:
        return

    def one(self, text: str) -> str:
        return case_folded(text)
