"""Base classes of text transforms and tokenizers, and the checks of their arguments.

Arguments are checked as MindSpore does. Text is held in NumPy arrays of type str (`<U`). A
tokenizer finds *spans* of the characters of one text; offsets, where requested, count the bytes of
the text in UTF-8. A text without tokens gives one empty token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel._src.foundation import arguments
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import code_points
from mycel.dataset.transforms.base import Transform

INT32_MAX = 2**31 - 1
UINT32_MAX = 2**32 - 1
Span = tuple[int, int]
Places = tuple[Array, Array, Array]


def check_type(operation: str, argument: str, value: Any, kinds: type | tuple[type, ...]) -> None:
    """Raise TypeError unless `value` is of one of the types `kinds`; a bool is not an int.

    `operation` and `argument` are named in messages, here and in the checks below.
    """
    kinds = kinds if isinstance(kinds, tuple) else (kinds,)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        raise arguments.wrong_type(operation, argument, arguments.named(kinds), value)


def check_range(operation: str, argument: str, value: Any, low: int, high: int) -> None:
    """Raise TypeError unless `value` is an int, and ValueError unless it is within [low, high].

    `operation` and `argument` are named in messages.
    """
    check_type(operation, argument, value, int)
    if not low <= value <= high:
        raise ValueError(f"{operation}: {argument} must be within [{low}, {high}], not {value}")


def check_words(operation: str, argument: str, words: Any) -> list[str]:
    """Return a list of distinct words; raise TypeError or ValueError otherwise."""
    check_type(operation, argument, words, list)
    seen: set[str] = set()
    for word in words:
        check_type(operation, f"an element of {argument}", word, str)
        if word in seen:
            raise ValueError(f"{operation}: {argument} has the word {word!r} twice")
        seen.add(word)
    return list(words)


def words_array(words: Sequence[str], shape: tuple[int, ...] | None = None) -> Array:
    """Return an array of text that is as wide as its longest word."""
    array = np.array(words, np.str_)
    return array if shape is None else array.reshape(shape)


class TextTransform(Transform):
    """The base class of transforms of text of any shape: `compute` only gets arrays of type str."""

    in_threads = False

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        return dtype.kind == "U"

    def texts(self, array: Array, *ranks: int) -> list[str]:
        """Return the texts of an array, flattened.

        Raises TypeError for other arrays, and ValueError unless the array has one of these ranks.
        """
        name = type(self).__name__
        if array.dtype.kind != "U":
            advice = "; decode with text.to_str" if array.dtype.kind == "S" else ""
            raise TypeError(f"{name}: the input must be text, not an array of type {array.dtype}{advice}")
        if ranks and array.ndim not in ranks:
            wanted = " or ".join(("one text", "a list of texts", "a matrix of texts")[rank] for rank in ranks)
            raise ValueError(f"{name}: the input must be {wanted}, not an array of shape {array.shape}")
        flat: list[str] = array.reshape(-1).tolist()
        return flat


class ElementwiseText(TextTransform):
    """A transform of each text of an array by itself, defined by `one`."""

    def one(self, text: str) -> str:
        """Transform one text."""
        raise NotImplementedError(f"{type(self).__name__} must define one")

    def compute(self, array: Array, lead: int) -> Array:
        return words_array([self.one(text) for text in self.texts(array)], array.shape)


def byte_offsets(text: str, spans: Sequence[Span]) -> list[Span]:
    """Convert spans of characters to spans of the bytes in UTF-8."""
    if text.isascii():
        return list(spans)
    if len(text) >= code_points.LONG:
        before = code_points.bytes_before(code_points.codes_of(text)).tolist()
        return [(before[start], before[end]) for start, end in spans]
    before = [0]
    for character in text:
        code = ord(character)
        before.append(before[-1] + (1 if code < 0x80 else 2 if code < 0x800 else 3 if code < 0x10000 else 4))
    return [(before[start], before[end]) for start, end in spans]


def token_columns(tokens: Sequence[str], offsets: Sequence[Span], with_offsets: bool) -> Any:
    """Return the result of a tokenizer: the tokens, and offsets if they were requested.

    Offsets are uint32: the first bytes of the tokens and the bytes after their last.
    """
    if not tokens:
        tokens, offsets = [""], [(0, 0)]
    found = words_array(tokens)
    if not with_offsets:
        return found
    places = np.array(offsets, np.uint32).reshape(-1, 2)
    return found, places[:, 0].copy(), places[:, 1].copy()


def _spans_of(places: Places) -> Iterable[Span]:
    return zip(places[1].tolist(), places[2].tolist())


class Tokenizer(TextTransform):
    """The base class of tokenizers of one text, defined by `spans`."""

    def __init__(self, with_offsets: bool = False) -> None:
        check_type(type(self).__name__, "with_offsets", with_offsets, bool)
        self.with_offsets = with_offsets

    def prepare(self, text: str) -> str:
        """Return the text in which spans are found."""
        return text

    def places(self, text: str) -> Places | None:
        """Return the code points of a text that is not short, and where the tokens start and end.

        None where they have to be found by `spans`.
        """
        return None

    def spans(self, text: str) -> list[Span]:
        """Return where the tokens start and end."""
        raise NotImplementedError(f"{type(self).__name__} must define spans")

    def pieces(self, text: str) -> list[str]:
        """Return the tokens of a prepared text, of which there is always one, by `spans`."""
        return [text[start:end] for start, end in self.spans(text)] or [""]

    def words(self, text: str) -> list[str]:
        """Return the tokens of a text, of which there is always one."""
        text = self.prepare(text)
        places = self._placed(text)
        if places is None:
            return self.pieces(text)
        return [text[start:end] for start, end in _spans_of(places)] or [""]

    def found(self, text: str) -> Iterable[Span]:
        """Return where the tokens of a prepared text start and end, by `places` where it can."""
        places = self._placed(text)
        return self.spans(text) if places is None else _spans_of(places)

    def _placed(self, text: str) -> Places | None:
        return self.places(text) if len(text) >= code_points.LONG and are_on() else None

    def compute(self, array: Array, lead: int) -> Any:
        text = self.prepare(self.texts(array, 0)[0])
        places = self._placed(text)
        if places is not None and len(places[1]):
            tokens = code_points.cut(*places)
            if not self.with_offsets:
                return tokens
            before = code_points.bytes_before(places[0])
            return tokens, before[places[1]], before[places[2]]
        if not self.with_offsets:
            return words_array(self.pieces(text))
        spans = self.spans(text)
        return token_columns([text[start:end] for start, end in spans], byte_offsets(text, spans), True)
