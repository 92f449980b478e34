"""BERT's tokenizers (Devlin et al., 2019): basic, WordPiece, and one after the other.

WordPiece is that of Schuster and Nakajima (2012).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Any

from mycel._src.foundation.bounded_caches import FEW, MANY, RememberedOf
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text import code_points
from mycel.dataset.text.base import (
    UINT32_MAX,
    Places,
    Span,
    TextTransform,
    Tokenizer,
    byte_offsets,
    check_range,
    check_type,
    token_columns,
)
from mycel.dataset.text.enums import NormalizeForm
from mycel.dataset.text.icu_regex import compile_pattern
from mycel.dataset.text.normalize import case_folded, check_form, normalized
from mycel.dataset.text.regex import split_places, split_spans
from mycel.dataset.text.unicode_sets import WHITE_SPACE, Ranges, categories
from mycel.dataset.text.vocab import Vocab

_SPECIAL = r"\[CLS\]|\[SEP\]|\[UNK\]|\[PAD\]|\[MASK\]|\[unused[0-9]+\]"
# ASCII's signs, punctuation, and the blocks of Chinese characters; also as tokens.
_SINGLE = (
    r"[!-/:-@\[-`{-~\p{P}\u4E00-\u9FFF\u3400-\u4DBF\U00020000-\U0002A6DF\U0002A700-\U0002B73F"
    r"\U0002B740-\U0002B81F\U0002B820-\U0002CEAF\uF900-\uFAFF\U0002F800-\U0002FA1F]"
)


@cache
def _patterns(special: bool, blanks: bool) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the delimiters of words, and those of them that are tokens."""
    kept = f"{_SPECIAL}|{_SINGLE}" if special else _SINGLE
    delimiter = compile_pattern("BasicTokenizer", rf"\s+|{kept}")
    return delimiter, delimiter if blanks else compile_pattern("BasicTokenizer", kept)


@cache
def _controls() -> re.Pattern[str]:
    """Return a pattern of a control character."""
    return compile_pattern("BasicTokenizer", r"[\p{Cc}\p{Cf}]")


def _singles() -> Ranges:
    """Return the characters that are tokens."""
    found = code_points.set_of(compile_pattern("BasicTokenizer", _SINGLE))
    assert found is not None
    return found[0]


class BasicTokenizer(Tokenizer):
    """The words, punctuation marks and Chinese characters of a text, without control characters.

    Args:
        lower_case (bool): Whether to fold case and drop accents, instead of applying
            `normalization_form`. Default: False.
        keep_whitespace (bool): Whether blanks are tokens. Default: False.
        normalization_form (NormalizeForm): The normal form of the text.
        preserve_unused_token (bool): Whether "[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]" and
            "[unused1]", "[unused2]", ... are tokens and keep their case. (The text before them is
            not repeated, as it is in MindSpore.). Default: True.
        with_offsets (bool): Whether the result is three arrays: the tokens, and their first bytes
            and the bytes after their last in UTF-8 of the changed text, uint32. Default: False.

    Examples:
        >>> from mycel.dataset import text
        >>> text.BasicTokenizer(lower_case=True)("[CLS] Café, 北京!").tolist()
        ['[CLS]', 'cafe', ',', '北', '京', '!']
    """

    def __init__(
        self,
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        name = type(self).__name__
        check_type(name, "lower_case", lower_case, bool)
        check_type(name, "keep_whitespace", keep_whitespace, bool)
        check_type(name, "preserve_unused_token", preserve_unused_token, bool)
        self.normalization_form = check_form(name, normalization_form)
        super().__init__(with_offsets)
        self.lower_case = lower_case
        self.keep_whitespace = keep_whitespace
        self.preserve_unused_token = preserve_unused_token
        self._delimiter, self._keep = _patterns(preserve_unused_token, keep_whitespace)

    def prepare(self, text: str) -> str:
        if self.lower_case:
            special = self.preserve_unused_token and "[" in text
            parts = re.split(f"({_SPECIAL})", text) if special else [text]
            text = "".join(part if i % 2 else _plain(part) for i, part in enumerate(parts))
        else:
            text = normalized(text, self.normalization_form)
        return text if text.isprintable() else _controls().sub(" ", text)

    def places(self, text: str) -> Places | None:
        if self.preserve_unused_token and "[" in text:
            return None
        return split_places(text, ("words",), lambda: (WHITE_SPACE, _singles()), self.keep_whitespace)

    def spans(self, text: str) -> list[Span]:
        return split_spans(text, self._delimiter, self._keep)


def _plain(text: str) -> str:
    """Return a text without case and accents."""
    apart = unicodedata.normalize("NFD", case_folded(text))
    if apart.isascii():
        return apart
    if len(apart) < code_points.LONG:
        return "".join(c for c in apart if unicodedata.category(c) != "Mn")
    points = code_points.codes_of(apart)
    return code_points.text_of(points[code_points.kinds_of(points, ("Mn",), lambda: (categories("Mn"),)) == 0])


_Pieces = tuple[list[str], list[Span]]
_known = RememberedOf[dict[str, _Pieces]]("pieces of words", FEW)


class WordpieceTokenizer(TextTransform):
    """The pieces of a word, or of the words of a list.

    The longest piece in the vocabulary is taken from the front each time.

    Args:
        vocab (Vocab): The vocabulary.
        suffix_indicator (str): What precedes pieces in the vocabulary that do not start a word.
            Default: "##".
        max_bytes_per_token (int): A word with more bytes in UTF-8 is unknown. Default: 100.
        unknown_token (str): What stands for a word that is unknown or has no pieces; if it is
            empty, the word stays as it is. Default: "[UNK]".
        with_offsets (bool): Whether the result is three arrays: the pieces, and their first bytes
            and the bytes after their last in the word, uint32. Default: False.

    Examples:
        >>> from mycel.dataset import text
        >>> pieces = text.Vocab.from_list(["fav", "##or", "##ite", "book", "[UNK]"])
        >>> text.WordpieceTokenizer(pieces)(["favorite", "tea", "book"]).tolist()
        ['fav', '##or', '##ite', '[UNK]', 'book']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        with_offsets: bool = False,
    ) -> None:
        name = type(self).__name__
        if vocab is None:
            raise ValueError(f"{name}: vocab must be given")
        check_type(name, "vocab", vocab, Vocab)
        check_type(name, "suffix_indicator", suffix_indicator, str)
        check_type(name, "unknown_token", unknown_token, str)
        check_type(name, "with_offsets", with_offsets, bool)
        check_range(name, "max_bytes_per_token", max_bytes_per_token, 0, UINT32_MAX)
        self.vocab = vocab
        self.suffix_indicator = suffix_indicator
        self.max_bytes_per_token = max_bytes_per_token
        self.unknown_token = unknown_token
        self.with_offsets = with_offsets
        self._pieces = vocab.vocab()
        # How much of a word a piece has at most.
        self._longest = max(map(len, self._pieces), default=0)

    def splitter(self) -> Callable[[str], _Pieces]:
        """Return a `split` that remembers words, whose lists are not to be changed."""
        known = _known.of(self, dict)

        def split(word: str) -> _Pieces:
            found = known.get(word)
            if found is None:
                if len(known) >= MANY:
                    known.clear()
                found = known[word] = self.split(word)
            return found

        return split

    def split(self, word: str) -> _Pieces:
        """Return the pieces of one word and their bytes."""
        size = len(word) if word.isascii() else len(word.encode("utf-8", "surrogatepass"))
        if size > self.max_bytes_per_token:
            return [self.unknown_token or word], [(0, size)]
        if word in self._pieces:
            return [word] if word else [], [(0, size)] if word else []
        whole = [self.unknown_token or word], [(0, size)]
        # Longer ones are no pieces.
        longest, count = self._longest, len(word)
        pieces: list[str] = []
        spans: list[Span] = []
        start = 0
        while start < count:
            for end in range(min(count, start + longest), start, -1):
                piece = self.suffix_indicator + word[start:end] if start else word[:end]
                if piece in self._pieces:
                    break
            else:
                return whole
            pieces.append(piece)
            spans.append((start, end))
            start = end
        return pieces, byte_offsets(word, spans) if self.with_offsets else spans

    def compute(self, array: Array, lead: int) -> Any:
        pieces: list[str] = []
        offsets: list[Span] = []
        split = self.splitter()
        for word in self.texts(array, 0, 1):
            found, spans = split(word)
            pieces += found
            offsets += spans
        return token_columns(pieces, offsets, self.with_offsets)


class BertTokenizer(BasicTokenizer):
    """`BasicTokenizer`, followed by `WordpieceTokenizer` for each of its words.

    Args:
        vocab (Vocab): The vocabulary; special tokens that are not in it are unknown too.
        suffix_indicator (str): What precedes pieces in the vocabulary that do not start a word.
            Default: "##".
        max_bytes_per_token (int): A word with more bytes in UTF-8 is unknown. Default: 100.
        unknown_token (str): What stands for a word that is unknown or has no pieces; if it is
            empty, the word stays as it is. Default: "[UNK]".
        lower_case (bool): Whether to fold case and drop accents, instead of applying
            `normalization_form`. Default: False.
        keep_whitespace (bool): Whether blanks are tokens. Default: False.
        normalization_form (NormalizeForm): The normal form of the text.
        preserve_unused_token (bool): Whether special tokens such as "[CLS]" are tokens and keep
            their case. Default: True.
        with_offsets (bool): Whether the result is three arrays: the tokens, and their first bytes
            and the bytes after their last. Default: False.

    Examples:
        >>> from mycel.dataset import text
        >>> pieces = text.Vocab.from_list(["fav", "##or", "##ite", "book", "[UNK]", "!"])
        >>> text.BertTokenizer(pieces, lower_case=True)("Favorite book!").tolist()
        ['fav', '##or', '##ite', 'book', '!']
    """

    def __init__(
        self,
        vocab: Vocab,
        suffix_indicator: str = "##",
        max_bytes_per_token: int = 100,
        unknown_token: str = "[UNK]",
        lower_case: bool = False,
        keep_whitespace: bool = False,
        normalization_form: NormalizeForm = NormalizeForm.NONE,
        preserve_unused_token: bool = True,
        with_offsets: bool = False,
    ) -> None:
        self._wordpiece = WordpieceTokenizer(vocab, suffix_indicator, max_bytes_per_token, unknown_token, with_offsets)
        super().__init__(lower_case, keep_whitespace, normalization_form, preserve_unused_token, with_offsets)
        self.vocab = vocab
        self.suffix_indicator = suffix_indicator
        self.max_bytes_per_token = max_bytes_per_token
        self.unknown_token = unknown_token

    def compute(self, array: Array, lead: int) -> Any:
        text = self.prepare(self.texts(array, 0)[0])
        spans = list(self.found(text))
        split = self._wordpiece.splitter()
        pieces: list[str] = []
        offsets: list[Span] = []
        if not self.with_offsets:
            for start, end in spans:
                pieces += split(text[start:end])[0]
            return token_columns(pieces, offsets, False)
        for (start, end), (first, _) in zip(spans, byte_offsets(text, spans)):
            found, parts = split(text[start:end])
            pieces += found
            offsets += [(first + a, first + b) for a, b in parts]
        return token_columns(pieces, offsets, self.with_offsets)
