"""Transforms by regular expressions, in the syntax of ICU (see `icu_regex.py`)."""

from __future__ import annotations

import re
from collections.abc import Callable

from mycel.dataset.text import code_points
from mycel.dataset.text.base import ElementwiseText, Places, Span, Tokenizer, check_type
from mycel.dataset.text.icu_regex import compile_pattern, compile_replacement
from mycel.dataset.text.unicode_sets import Ranges, intersection


class RegexReplace(ElementwiseText):
    """Texts, of any shape, with the matches of an ICU regular expression replaced.

    All matches are replaced, or the first of each text without `replace_all`. `$1` and `${name}` in
    `replace` stand for groups. Each text of an array is treated by itself, where MindSpore joins
    them. Raises ValueError for a wrong pattern.

    >>> from mycel.dataset import text
    >>> text.RegexReplace(r"(\\p{Han}+)", "<$1>")("a中文b").tolist()
    'a<中文>b'
    """

    def __init__(self, pattern: str, replace: str, replace_all: bool = True) -> None:
        check_type("RegexReplace", "pattern", pattern, str)
        check_type("RegexReplace", "replace", replace, str)
        check_type("RegexReplace", "replace_all", replace_all, bool)
        self.pattern = pattern
        self.replace = replace
        self.replace_all = replace_all
        self._compiled = compile_pattern("RegexReplace", pattern)
        found = compile_replacement("RegexReplace", self._compiled, replace)
        self._literal = found if isinstance(found, str) else ""
        # What has no groups is a template, in which only this has a meaning.
        self._replacement = found.replace("\\", "\\\\") if isinstance(found, str) else found

    def one(self, text: str) -> str:
        if self.replace_all and len(text) >= _LONG and isinstance(self._replacement, str):
            given = code_points.set_of(self._compiled)
            if given is not None:
                return _replaced(text, self._compiled.pattern, *given, self._literal)
        return self._compiled.sub(self._replacement, text, 0 if self.replace_all else 1)


# Characters from which on sets are replaced by way of arrays.
_LONG = 256


def _replaced(text: str, name: str, ranges: Ranges, several: bool, literal: str) -> str:
    """Return a text with `literal` for each character of a set, or with `several` for each run."""
    kinds = code_points.kinds_of(code_points.codes_of(text), (name,), lambda: (ranges,))
    starts, ends = code_points.runs(kinds, 2 if several else 1)
    taken = kinds[starts] == 1
    parts: list[str] = []
    after = 0
    for start, end in zip(starts[taken].tolist(), ends[taken].tolist()):
        parts.append(text[after:start])
        after = end
    return literal.join([*parts, text[after:]])


def split_places(text: str, name: tuple[str, ...], sets: Callable[[], code_points.Sets], blanks: bool) -> Places:
    """Return where a text is cut, and its code points.

    Its words are tokens, and characters of the second of `sets`, and with `blanks` runs of the
    first. `name` names the sets.
    """
    points = code_points.codes_of(text)
    kinds = code_points.kinds_of(points, name, sets)
    starts, ends = code_points.runs(kinds)
    if blanks:
        return points, starts, ends
    kept = kinds[starts] != code_points.BLANK
    return points, starts[kept], ends[kept]


def split_spans(text: str, delimiter: re.Pattern[str], keep: re.Pattern[str] | None) -> list[Span]:
    """Return the spans between delimiters, and the delimiters that `keep` fully matches."""
    spans: list[Span] = []
    after = 0
    for match in delimiter.finditer(text):
        start, end = match.span()
        if start > after:
            spans.append((after, start))
        if keep is not None and end > start and keep.fullmatch(match.group()):
            spans.append((start, end))
        after = end
    if after < len(text):
        spans.append((after, len(text)))
    return spans


class RegexTokenizer(Tokenizer):
    """The parts of a text between the matches of an ICU regular expression.

    Matches that `keep_delim_pattern` fully matches are tokens as well. With offsets, the result is
    three arrays: tokens, and their first bytes and the bytes after their last in UTF-8, uint32.

    >>> from mycel.dataset import text
    >>> text.RegexTokenizer("[,;]", ";")("a,b;c").tolist()
    ['a', 'b', ';', 'c']
    """

    def __init__(self, delim_pattern: str, keep_delim_pattern: str = "", with_offsets: bool = False) -> None:
        if delim_pattern is None:
            raise ValueError("RegexTokenizer: delim_pattern must be given")
        check_type("RegexTokenizer", "delim_pattern", delim_pattern, str)
        check_type("RegexTokenizer", "keep_delim_pattern", keep_delim_pattern, str)
        super().__init__(with_offsets)
        self.delim_pattern = delim_pattern
        self.keep_delim_pattern = keep_delim_pattern
        self._delimiter = compile_pattern("RegexTokenizer", delim_pattern)
        self._keep = compile_pattern("RegexTokenizer", keep_delim_pattern) if keep_delim_pattern else None

    def places(self, text: str) -> Places | None:
        given = code_points.set_of(self._delimiter)
        if given is None:
            return None
        ranges, several = given
        name: tuple[str, ...] = (self._delimiter.pattern,)
        if self._keep is None:
            return split_places(text, name, lambda: (ranges,), False)
        kept = code_points.set_of(self._keep)
        if kept is None:
            return None
        if not several:
            among = kept[0]
            name = self._delimiter.pattern, self._keep.pattern
            return split_places(text, name, lambda: (ranges, intersection(ranges, among)), False)
        return split_places(text, name[:1], lambda: (ranges,), True) if kept == given else None

    def spans(self, text: str) -> list[Span]:
        return split_spans(text, self._delimiter, self._keep)


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


class FilterWikipediaXML(ElementwiseText):
    """Texts, of any shape, of Wikipedia's XML as words of the letters a to z.

    Single blanks separate the words. Tags and entities are removed, digits are spelt out, and
    everything else but letters becomes a blank; a line that starts with no letter is joined to the
    one before it. Nothing is left of a text with "#redirect". Each text of an array is filtered by
    itself, and an empty line is a blank, where MindSpore joins texts and writes an "n".

    >>> from mycel.dataset import text
    >>> text.FilterWikipediaXML()("<b>Hello</b> &amp; <page>Welcome, 2 Worlds").tolist()
    'welcome two worlds'
    """

    def __init__(self) -> None:
        return

    def one(self, text: str) -> str:
        if "#redirect" in text.lower():
            return ""
        text = re.sub(r"<[^>]*>", "", re.sub(r"<[^\n\r\v\f\x85\u2028\u2029]*>", "", text))
        text = re.sub(r"&[^;]*;", " ", text)
        text = re.sub(r"[A-Z]", lambda match: match.group().lower(), text)
        text = re.sub(r"[0-9]", lambda match: f" {_DIGITS[int(match.group())]} ", text)
        return re.sub(r"\s+", " ", re.sub(r"[^a-z\n]+", " ", text).replace("\n ", "")).strip()
