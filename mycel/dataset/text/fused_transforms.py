"""Fusion of successive text transforms of a `map`: a tokenizer, `Lookup`, and padding.

Together they become a `TextChain`. The words of all texts of a block go through one list and become
one array of numbers, which is cut into rows, or lies in an array of padded rows. A chain gives what
its operations give one by one. Texts that it is not made for, and those for which an operation
raises an error, are left to the operations, which name the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

import numpy as np

from mycel.dataset.rows.column_blocks import Array, Column
from mycel.dataset.text.base import Tokenizer
from mycel.dataset.transforms.base import Joined, Keys
from mycel.dataset.transforms.generic import PadEnd

__all__ = ["TextChain", "chain_of"]


class TextChain(Joined):
    """Operations that are computed at once.

    * `tokenizer`: a tokenizer without offsets.
    * `look_up`: a `Lookup`.
    * `padding`: a `PadEnd` to one length, or None.
    """

    def __init__(self, tokenizer: Tokenizer, look_up: Any, padding: PadEnd | None) -> None:
        self.tokenizer, self.look_up, self.padding = tokenizer, look_up, padding
        self.operations = [tokenizer, look_up, *([] if padding is None else [padding])]

    def apply(self, columns: Sequence[Column], count: int, keys: Keys | None) -> list[Column] | None:
        texts = _texts(columns)
        if texts is None:
            return None
        look_up = self.look_up
        words: list[str] = []
        ends: list[int] = []
        try:
            for text in texts:
                words += self.tokenizer.words(text)
                ends.append(len(words))
            found = map(look_up._numbers.get, words, repeat(look_up._unknown))
            numbers = np.fromiter(found, look_up.data_type, len(words))
            if self.padding is not None:
                return [_padded(numbers, ends, self.padding)]
        except (TypeError, ValueError, OverflowError, RuntimeError, UnicodeError):
            # The operations, called one by one, raise the error that names the row.
            return None
        return [[numbers[start:end] for start, end in zip([0, *ends], ends)]]


def _texts(columns: Sequence[Column]) -> list[str] | None:
    if len(columns) != 1:
        return None
    column = columns[0]
    if isinstance(column, np.ndarray):
        texts = column.tolist() if column.ndim == 1 and column.dtype.kind == "U" else None
    elif all(isinstance(row, np.ndarray) and not row.ndim and row.dtype.kind == "U" for row in column):
        texts = [row.item() for row in column]
    else:
        texts = None
    # Arrays of words end them where zeros begin.
    return None if texts is None or any("\0" in text for text in texts) else texts


def _padded(numbers: Array, ends: Sequence[int], operation: PadEnd) -> Array:
    """Return rows of numbers, which end at `ends`, as `PadEnd` pads or cuts them."""
    width = operation.pad_shape[0]
    assert width is not None
    result: Array = np.empty((len(ends), width), numbers.dtype)
    result[...] = 0 if operation.pad_value is None else operation.pad_value
    lengths = np.diff(ends, prepend=0)
    if lengths.max() > width:
        places = np.arange(len(numbers)) - np.repeat(np.asarray(ends) - lengths, lengths)
        numbers = numbers[places < width]
    result[np.arange(width) < np.minimum(lengths, width)[:, None]] = numbers
    return result


def chain_of(first: Any, look_up: Any, following: Sequence[Any]) -> TextChain | None:
    """Return a chain of an operation, a `Lookup` behind it, and the first of those that follow.

    None where `first` is no tokenizer of the library, or gives offsets.
    """
    if not isinstance(first, Tokenizer) or type(first).compute is not Tokenizer.compute or first.with_offsets:
        return None
    if not type(first).__module__.startswith("mycel."):
        return None
    last = following[0] if following and type(following[0]) is PadEnd else None
    fits = last is not None and len(last.pad_shape) == 1 and last.pad_shape[0] is not None
    return TextChain(first, look_up, last if fits else None)
