"""Tokenizers by blanks, characters and scripts, and by Python functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import numpy as np

from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import code_points
from mycel.dataset.text.base import Places, Span, TextTransform, Tokenizer, check_type
from mycel.dataset.text.unicode_sets import WHITE_SPACE, is_space, script, script_kinds

# Python counts four separators as blanks that Unicode's White_Space does not have.
_WORDS = re.compile(r"(?:\S|[\x1c-\x1f])+")


class WhitespaceTokenizer(Tokenizer):
    """The parts of a text between blanks (Unicode's White_Space).

    With offsets, the result is three arrays: tokens, and their first bytes and the bytes after
    their last in UTF-8, uint32.

    >>> from mycel.dataset import text
    >>> [part.tolist() for part in text.WhitespaceTokenizer(with_offsets=True)("北京  is big")]
    [['北京', 'is', 'big'], [0, 8, 11], [6, 10, 14]]
    """

    def places(self, text: str) -> Places | None:
        if not self.with_offsets:
            # Texts of Python are split quicker.
            return None
        points = code_points.codes_of(text)
        kinds = code_points.kinds_of(points, ("blanks",), lambda: (WHITE_SPACE,))
        starts, ends = code_points.runs(kinds)
        kept = kinds[starts] == 0
        return points, starts[kept], ends[kept]

    def spans(self, text: str) -> list[Span]:
        return [word.span() for word in _WORDS.finditer(text)]

    def pieces(self, text: str) -> list[str]:
        some = "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text
        return (_WORDS.findall(text) if some else text.split()) or [""]


class UnicodeCharTokenizer(Tokenizer):
    """The characters of a text; with offsets, as for `WhitespaceTokenizer`.

    >>> from mycel.dataset import text
    >>> text.UnicodeCharTokenizer()("a b").tolist()
    ['a', ' ', 'b']
    """

    def places(self, text: str) -> Places | None:
        points = code_points.codes_of(text)
        starts = np.arange(len(points))
        return points, starts, starts + 1

    def spans(self, text: str) -> list[Span]:
        return [(i, i + 1) for i in range(len(text))]


class UnicodeScriptTokenizer(Tokenizer):
    """The runs of characters of one script in a text; blanks are tokens with `keep_whitespace`.

    With offsets, as for `WhitespaceTokenizer`.

    >>> from mycel.dataset import text
    >>> text.UnicodeScriptTokenizer()("Hello 世界!").tolist()
    ['Hello', '世界', '!']
    """

    def __init__(self, keep_whitespace: bool = False, with_offsets: bool = False) -> None:
        check_type("UnicodeScriptTokenizer", "keep_whitespace", keep_whitespace, bool)
        super().__init__(with_offsets)
        self.keep_whitespace = keep_whitespace

    def places(self, text: str) -> Places | None:
        points = code_points.codes_of(text)
        kinds = np.take(script_kinds(), points)
        starts, ends = code_points.runs(kinds, -1)
        if self.keep_whitespace:
            return points, starts, ends
        kept = kinds[starts] >= 0
        return points, starts[kept], ends[kept]

    def spans(self, text: str) -> list[Span]:
        kinds = {character: (script(character), is_space(character)) for character in set(text)}
        runs = _runs(text, kinds.__getitem__)
        return [span for span, (_, blank) in runs if self.keep_whitespace or not blank]


def _runs(text: str, key: Callable[[str], Any]) -> Iterable[tuple[Span, Any]]:
    """Return the longest runs of characters with equal keys, and their keys."""
    start = 0
    for value, group in groupby(text, key):
        end = start + len(list(group))
        yield (start, end), value
        start = end


class PythonTokenizer(TextTransform):
    """The words that a function returns for a text; each text of an array must have equally many.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.PythonTokenizer(str.split)(np.array("a b c")).tolist()
    ['a', 'b', 'c']
    """

    def __init__(self, tokenizer: Callable[[str], Iterable[str]]) -> None:
        arguments.function("PythonTokenizer", "tokenizer", tokenizer)
        self.tokenizer = tokenizer
        self.random = getattr(tokenizer, "random", True)

    def compute(self, array: Array, lead: int) -> Array:
        if array.dtype.kind == "S":
            array = np.char.decode(array, "utf8")
        rows = []
        for text in self.texts(array):
            words = self.tokenizer(text)
            if isinstance(words, (str, bytes)) or not isinstance(words, Iterable):
                raise TypeError(
                    f"PythonTokenizer: the result of the function must be a list of words, not {words!r} for {text!r}"
                )
            rows.append(np.array(list(words), np.str_))
        lengths = sorted({len(row) for row in rows})
        if len(lengths) > 1:
            raise ValueError(f"PythonTokenizer: the function gives lists of {lengths} words for the texts of one array")
        found = np.array(rows) if rows else np.empty((0, 0), np.str_)
        return found.reshape(*array.shape, *found.shape[1:])
