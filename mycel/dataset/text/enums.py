"""The choices that text transforms offer."""

from __future__ import annotations

from enum import IntEnum


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
