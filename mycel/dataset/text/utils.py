"""Arrays of bytes and of text, and the enumerations of the text transforms."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np

from mycel.dataset.blocks import Array


class JiebaMode(IntEnum):
    """The methods of `JiebaTokenizer`: dictionary (MP), Markov model (HMM), or both (MIX)."""

    MIX = 0
    MP = 1
    HMM = 2


class NormalizeForm(IntEnum):
    """The normal forms of Unicode (Unicode Standard Annex 15), and none."""

    NONE = 0
    NFC = 1
    NFKC = 2
    NFD = 3
    NFKD = 4


class SentencePieceModel(IntEnum):
    """The kinds of models that SentencePiece trains.

    They are unigram (Kudo, 2018), byte pairs (Sennrich et al., 2016), characters and words.
    """

    UNIGRAM = 0
    BPE = 1
    CHAR = 2
    WORD = 3


class SPieceTokenizerLoadType(IntEnum):
    """The origin of the model of `SentencePieceTokenizer`: a file or a vocabulary."""

    FILE = 0
    MODEL = 1


class SPieceTokenizerOutType(IntEnum):
    """The result of `SentencePieceTokenizer`: pieces or their numbers."""

    STRING = 0
    INT = 1


def _check_array(operation: str, array: Any, kind: str, expected: str) -> None:
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{operation}: expected a NumPy array of {expected}, got {array!r} of type {type(array).__name__}"
        )
    if array.dtype.kind != kind:
        raise TypeError(f"{operation}: expected an array of {expected}, got one of type {array.dtype}")


def to_str(array: Any, encoding: str = "utf8") -> Array:
    """Decode an array of bytes to text of the same shape.

    Raises TypeError for anything but an array of bytes, and UnicodeDecodeError for bytes that are
    not text in this encoding.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_str(np.array([b"caf\\xc3\\xa9"])).tolist()
    ['café']
    """
    _check_array("to_str", array, "S", "bytes")
    return np.char.decode(array, encoding)


def to_bytes(array: Any, encoding: str = "utf8") -> Array:
    """Encode an array of text to bytes of the same shape.

    Raises TypeError for anything but an array of text, and UnicodeEncodeError for characters that
    the encoding lacks.

    >>> import numpy as np
    >>> from mycel.dataset import text
    >>> text.to_bytes(np.array(["a", "é"])).tolist()
    [b'a', b'\\xc3\\xa9']
    """
    _check_array("to_bytes", array, "U", "text")
    return np.char.encode(array, encoding)
