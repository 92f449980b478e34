"""Normal forms of Unicode and case folding.

Folding is Unicode's NFKC_Casefold (Unicode Standard, section 3.13): case folding and compatibility
composition until nothing changes, without the characters that Unicode says to ignore.
"""

from __future__ import annotations

import re
import unicodedata

from mycel.dataset.text.base import ElementwiseText
from mycel.dataset.text.enums import NormalizeForm

# The property Default_Ignorable_Code_Point.
_IGNORABLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def case_folded(text: str) -> str:
    """Return the NFKC_Casefold of a text."""
    if text.isascii():
        return text.lower()
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
        return unicodedata.normalize("NFKC", text)
    if form is NormalizeForm.NFD:
        return unicodedata.normalize("NFD", text)
    return unicodedata.normalize("NFKD", text) if form is NormalizeForm.NFKD else text


def check_form(operation: str, form: object) -> NormalizeForm:
    """Return a `NormalizeForm`; raise TypeError otherwise."""
    if not isinstance(form, NormalizeForm):
        raise TypeError(f"{operation}: the normal form must be a NormalizeForm, got {form!r}")
    return form


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
