"""Transforms of lists of words or numbers: adding, truncating, windows, n-grams, and parsing."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mycel._src.engines.routines import are_on
from mycel.dataset.pipeline_errors import InputValueError
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import code_points
from mycel.dataset.text.base import INT32_MAX, TextTransform, check_range, check_type, words_array
from mycel.dataset.transforms.base import Transform, numpy_type


class AddToken(TextTransform):
    """A list, or each row of a matrix, with a token at its beginning (or end).

    Raises RuntimeError for an empty token.

    >>> from mycel.dataset import text
    >>> text.AddToken("<s>")(["a", "b"]).tolist()
    ['<s>', 'a', 'b']
    """

    def __init__(self, token: str, begin: bool = True) -> None:
        check_type("AddToken", "token", token, str)
        check_type("AddToken", "begin", begin, bool)
        if not token:
            raise RuntimeError("AddToken: token must not be empty")
        self.token = token
        self.begin = begin

    def compute(self, array: Array, lead: int) -> Array:
        self.texts(array, 1, 2)
        token = np.full((*array.shape[:-1], 1), self.token)
        parts = (token, array) if self.begin else (array, token)
        return np.concatenate(parts, axis=-1)


class Truncate(Transform):
    """The first `max_seq_len` elements of a list, or of each row of a matrix, of any type.

    >>> from mycel.dataset import text
    >>> text.Truncate(2)(["a", "b", "c"]).tolist()
    ['a', 'b']
    """

    def __init__(self, max_seq_len: int) -> None:
        check_range("Truncate", "max_seq_len", max_seq_len, 1, INT32_MAX)
        self.max_seq_len = max_seq_len

    def compute(self, array: Array, lead: int) -> Array:
        if array.ndim - lead not in (1, 2):
            raise ValueError(f"Truncate: the input must be a list or a matrix, not of shape {array.shape[lead:]}")
        return narrow(array[..., : self.max_seq_len])


class TruncateSequencePair(Transform):
    """Two lists truncated until they have at most `max_length` elements together.

    Elements are removed one at a time from the longer list, or from the second if they are equally
    long.

    >>> from mycel.dataset import text
    >>> parts = text.TruncateSequencePair(5)(["a", "b", "c", "d"], ["x", "y", "z"])
    >>> [part.tolist() for part in parts]
    [['a', 'b', 'c'], ['x', 'y']]
    """

    def __init__(self, max_length: int) -> None:
        check_range("TruncateSequencePair", "max_length", max_length, 0, INT32_MAX)
        self.max_length = max_length

    def __call__(self, *inputs: Any) -> Any:
        arrays = [self.convert(value) for value in inputs]
        if len(arrays) != 2 or any(array.ndim != 1 for array in arrays):
            raise InputValueError(
                f"TruncateSequencePair: the inputs must be two lists, not of shapes {[array.shape for array in arrays]}"
            )
        first, second = map(len, arrays)
        excess = max(0, first + second - self.max_length)
        level = min(abs(first - second), excess)
        first, second = (first - level, second) if first > second else (first, second - level)
        excess -= level
        return narrow(arrays[0][: first - excess // 2]), narrow(arrays[1][: second - (excess + 1) // 2])


def narrow(array: Array) -> Array:
    """Return an array of text that is as wide as its longest word; other arrays are copied."""
    return words_array(array.reshape(-1).tolist(), array.shape) if array.dtype.kind == "U" else array.copy()


class SlidingWindow(Transform):
    """All runs of `width` neighbouring elements of a list, one in each row.

    A shorter list gives an empty array of shape [0]. `axis` must be 0 or -1.

    >>> from mycel.dataset import text
    >>> text.SlidingWindow(3)([1, 2, 3, 4]).tolist()
    [[1, 2, 3], [2, 3, 4]]
    """

    def __init__(self, width: int, axis: int = 0) -> None:
        check_range("SlidingWindow", "width", width, 1, INT32_MAX)
        check_type("SlidingWindow", "axis", axis, int)
        self.width = width
        self.axis = axis

    def compute(self, array: Array, lead: int) -> Array:
        if array.ndim != 1:
            raise ValueError(f"SlidingWindow: the input must be a list, not of shape {array.shape}")
        if self.axis not in (0, -1):
            raise ValueError(f"SlidingWindow: axis must be 0 or -1 for a list, not {self.axis}")
        if len(array) < self.width:
            return np.empty(0, array.dtype)
        windows: Array = np.lib.stride_tricks.sliding_window_view(array, self.width).copy()
        return windows


class Ngram(TextTransform):
    """All runs of `n` neighbouring words, joined by `separator`.

    An n that is greater than the length of the padded list gives one empty text.

    Args:
        n (int): The number of words, or a list of numbers whose runs follow each other.
        left_pad (tuple[str, int]): (word, count), words to add at this end first, at most n - 1 of
            them. Default: ('', 0).
        right_pad (tuple[str, int]): (word, count), words to add at this end first, at most n - 1 of
            them. Default: ('', 0).
        separator (str): The text between the words. Default: " ".

    Examples:
        >>> from mycel.dataset import text
        >>> text.Ngram([2, 1], ("_", 1), separator="-")(["a", "b"]).tolist()
        ['_-a', 'a-b', 'a', 'b']
    """

    def __init__(self, n: Any, left_pad: Any = ("", 0), right_pad: Any = ("", 0), separator: str = " ") -> None:
        sizes = [n] if isinstance(n, int) else n
        if not isinstance(sizes, list) or not sizes:
            raise ValueError(f"Ngram: n must be a positive integer or a list of them, not {n!r}")
        for size in sizes:
            check_type("Ngram", "n", size, int)
            if size < 1:
                raise ValueError(f"Ngram: n must be positive, not {size}")
        for argument, pad in (("left_pad", left_pad), ("right_pad", right_pad)):
            valid = isinstance(pad, tuple) and len(pad) == 2 and isinstance(pad[0], str) and isinstance(pad[1], int)
            if not valid or pad[1] < 0:
                raise ValueError(f"Ngram: {argument} must be a word and a count of at least 0, not {pad!r}")
        check_type("Ngram", "separator", separator, str)
        self.ngrams = sizes
        self.left_pad = left_pad
        self.right_pad = right_pad
        self.separator = separator

    def compute(self, array: Array, lead: int) -> Array:
        words = self.texts(array, 1)
        found: list[str] = []
        for n in self.ngrams:
            left = [self.left_pad[0]] * min(self.left_pad[1], n - 1)
            right = [self.right_pad[0]] * min(self.right_pad[1], n - 1)
            padded = [*left, *words, *right]
            grams = [self.separator.join(padded[i : i + n]) for i in range(len(padded) - n + 1)]
            found += grams or [""]
        return words_array(found)


_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_FLOAT = re.compile(
    r"[ \t\n\v\f\r]*([+-]?(?:0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)(?:[pP][+-]?[0-9]+)?"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|nan))",
    re.IGNORECASE,
)


class ToNumber(TextTransform):
    """The numbers that texts, of any shape, stand for.

    The longest numeral at the start of a text counts, after blanks, as in C's `strtol` and
    `strtod`: "12.5" is the integer 12. Raises ValueError for a text that starts with no numeral,
    and for numbers beyond the type.

    >>> from mycel.dataset import text
    >>> text.ToNumber("int32")(["1", "-20"]).tolist()
    [1, -20]
    """

    vectorised = True

    def __init__(self, data_type: Any) -> None:
        self.data_type = numpy_type("ToNumber", data_type)
        if self.data_type.kind not in "iuf":
            raise TypeError(f"ToNumber: data_type must be a type of numbers, not {self.data_type}")

    def compute(self, array: Array, lead: int) -> Array:
        texts = self.texts(array)
        if array.size > 1 and array.dtype.itemsize and are_on():
            found = self._plain(array, texts)
            if found is not None:
                plain: Array = found.reshape(array.shape)
                return plain
        numbers = [self._number(text) for text in texts]
        result: Array = np.array(numbers, self.data_type).reshape(array.shape)
        return result

    def _plain(self, array: Array, texts: list[str]) -> Array | None:
        """Return the numbers where each text is but a numeral within the type, else None."""
        result: Array
        if self.data_type.kind in "iu":
            whole = code_points.whole_numbers(array)
            if whole is None:
                return None
            limits = np.iinfo(self.data_type)
            fits = int(limits.min) <= int(whole.min()) and int(whole.max()) <= int(limits.max)
            if not fits:
                return None
            result = whole.astype(self.data_type)
            return result
        if not code_points.are_numerals(array):
            return None
        values: Array = np.array(list(map(float, texts)))
        fits = float(np.abs(values).max()) <= float(np.finfo(self.data_type).max)
        if not fits:
            return None
        result = values.astype(self.data_type)
        return result

    def _number(self, text: str) -> Any:
        whole = self.data_type.kind in "iu"
        found = (_INTEGER if whole else _FLOAT).match(text)
        if found is None:
            raise ValueError(f"ToNumber: {text!r} is no number")
        numeral = found.group(1)
        if whole:
            limits = np.iinfo(self.data_type)
            number = int(numeral)
            if not int(limits.min) <= number <= int(limits.max):
                raise ValueError(f"ToNumber: {text!r} is not within {self.data_type}, [{limits.min}, {limits.max}]")
            return number
        value = float.fromhex(numeral) if "x" in numeral.lower() else float(numeral)
        if abs(value) > float(np.finfo(self.data_type).max):
            raise ValueError(f"ToNumber: {text!r} is too large for {self.data_type}")
        return value
