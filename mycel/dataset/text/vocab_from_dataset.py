"""Vocabularies that are made of the text of a dataset."""

from __future__ import annotations

from typing import Any

from mycel.dataset.nodes.node import Node
from mycel.dataset.text.enums import SentencePieceModel
from mycel.dataset.text.sentencepiece_models import SentencePieceVocab
from mycel.dataset.text.vocab import Vocab


class MakesVocabularies(Node):
    """A dataset that makes vocabularies of its text."""

    def build_vocab(
        self,
        columns: Any,
        freq_range: tuple[int | None, int | None] | None,
        top_k: int | None,
        special_tokens: list[str] | None,
        special_first: bool,
    ) -> Vocab:
        """Return the vocabulary of the words in columns of this dataset.

        `columns`, `freq_range`, `top_k`, `special_tokens` and `special_first` are those of
        `text.Vocab.from_dataset`.

        >>> import mycel.dataset as ds
        >>> words = ds.NumpySlicesDataset({"text": ["b", "a", "b"]}, shuffle=False)
        >>> words.build_vocab(["text"], None, None, ["<unk>"], True).vocab()
        {'<unk>': 0, 'b': 1, 'a': 2}
        """
        return Vocab.from_dataset(self, columns, freq_range, top_k, special_tokens, special_first)

    def build_sentencepiece_vocab(
        self,
        columns: list[str],
        vocab_size: int,
        character_coverage: float,
        model_type: SentencePieceModel,
        params: dict[str, Any],
    ) -> SentencePieceVocab:
        """Return a model of SentencePiece that was trained on columns of this dataset.

        `columns` are the `col_names` of `text.SentencePieceVocab.from_dataset`, and `vocab_size`,
        `character_coverage`, `model_type` and `params` are its.

        >>> import mycel.dataset as ds
        >>> from mycel.dataset.text import SentencePieceModel
        >>> words = ds.NumpySlicesDataset({"text": ["b", "a", "b"]}, shuffle=False)
        >>> words.build_sentencepiece_vocab(["none"], 5, 1.0, SentencePieceModel.CHAR, {})
        Traceback (most recent call last):
        ValueError: SentencePieceVocab.from_dataset: there is no column 'none' in ['text']
        """
        return SentencePieceVocab.from_dataset(self, columns, vocab_size, character_coverage, model_type, params)
