"""Vocabularies: words and their numbers, from lists, dictionaries, files and datasets."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel.dataset.pipeline_errors import reading
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text.base import INT32_MAX, TextTransform, check_range, check_type, check_words
from mycel.dataset.text.fused_transforms import chain_of
from mycel.dataset.transforms.base import Joined, numpy_type


class Vocab:
    """Words and their numbers; made by `from_list`, `from_dict`, `from_file` or `from_dataset`.

    A vocabulary made by calling the class is empty: its methods raise RuntimeError.

    >>> from mycel.dataset import text
    >>> words = text.Vocab.from_list(["deep", "learning"], special_tokens=["<unk>"])
    >>> words.vocab()
    {'<unk>': 0, 'deep': 1, 'learning': 2}
    >>> words.tokens_to_ids(["deep", "sea"]), words.ids_to_tokens(2)
    ([1, -1], 'learning')
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] | None = None
        self._words: dict[int, str] = {}

    @classmethod
    def _of(cls, numbers: dict[str, int]) -> Vocab:
        made = cls()
        made._numbers = numbers
        for word, number in numbers.items():
            made._words.setdefault(number, word)
        return made

    @classmethod
    def _in_order(
        cls, operation: str, words: list[str], special_tokens: list[str] | None, special_first: bool
    ) -> Vocab:
        special = special_tokens or []
        cls._check_apart(operation, words, special)
        ordered = special + words if special_first else words + special
        return cls._of({word: number for number, word in enumerate(ordered)})

    @staticmethod
    def _check_apart(operation: str, words: list[str], special_tokens: list[str] | None) -> None:
        both = sorted(set(words) & set(special_tokens or ()))
        if both:
            raise RuntimeError(f"{operation}: special_tokens that are words of the vocabulary as well: {both}")

    @property
    def c_vocab(self) -> Vocab:
        """The vocabulary as transforms take it: this one."""
        return self

    def _built(self, operation: str) -> dict[str, int]:
        if self._numbers is None:
            raise RuntimeError(
                f"{operation}: this vocabulary is not built; make one with Vocab.from_list, from_dict, from_file or "
                "from_dataset"
            )
        return self._numbers

    @classmethod
    def from_dataset(
        cls,
        dataset: Any,
        columns: Any = None,
        freq_range: Any = None,
        top_k: int | None = None,
        special_tokens: list[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Make a vocabulary of the words in columns of a dataset, the most frequent first.

        Words of equal frequency are in the order of their characters.

        Args:
            dataset (Dataset): The dataset.
            columns (str | Sequence[str] | None): The columns of text; None for all. Default: None.
            freq_range (tuple[int | None, int | None] | None): The least and the greatest frequency
                of the words to take, with None for no limit. Default: None.
            top_k (int | None): The number of words to take. Default: None.
            special_tokens (list[str] | None): Words that come before or after the others. Default:
                None.
            special_first (bool): Whether they come before. Default: True.

        Returns:
            Vocab: The vocabulary.

        Raises:
            RuntimeError: For a column that does not exist or holds no text, and for special tokens
                that are words of the data as well.
        """
        operation = "Vocab.from_dataset"
        names = [] if columns is None else columns if isinstance(columns, list) else [columns]
        for name in names:
            check_type(operation, "a column", name, str)
        low, high = _frequencies(operation, freq_range)
        if top_k is not None:
            check_type(operation, "top_k", top_k, int)
            if top_k < 1:
                raise ValueError(f"{operation}: top_k must be positive, not {top_k}")
        check_type(operation, "special_first", special_first, bool)
        special = None if special_tokens is None else check_words(operation, "special_tokens", special_tokens)
        present = dataset.get_col_names()
        absent = [name for name in names if name not in present]
        if absent:
            raise RuntimeError(f"{operation}: there is no column {absent[0]!r}; the columns are {present}")
        counts: Counter[str] = Counter()
        for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True):
            for name in names or present:
                if row[name].dtype.kind != "U":
                    raise RuntimeError(f"{operation}: column {name!r} holds {row[name].dtype}, not text")
                counts.update(row[name].reshape(-1).tolist())
        # As in MindSpore, words that are left out count too.
        cls._check_apart(operation, [*counts], special)
        chosen = [w for w, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])) if low <= n <= high]
        return cls._in_order(operation, chosen[:top_k], special, special_first)

    @classmethod
    def from_list(
        cls, word_list: list[str], special_tokens: list[str] | None = None, special_first: bool = True
    ) -> Vocab:
        """Make a vocabulary of the words of a list, numbered from 0 in its order.

        Special tokens come before or after them. Raises TypeError for anything but lists of text,
        and ValueError for a repeated word.
        """
        operation = "Vocab.from_list"
        words = check_words(operation, "word_list", word_list)
        special = [] if special_tokens is None else check_words(operation, "special_tokens", special_tokens)
        both = sorted(set(words) & set(special))
        if both:
            raise ValueError(f"{operation}: words both in word_list and special_tokens: {both}")
        check_type(operation, "special_first", special_first, bool)
        return cls._in_order(operation, words, special, special_first)

    @classmethod
    def from_file(
        cls,
        file_path: str,
        delimiter: str = "",
        vocab_size: int | None = None,
        special_tokens: list[str] | None = None,
        special_first: bool = True,
    ) -> Vocab:
        """Make a vocabulary of the words of a text file, one in each line.

        Args:
            file_path (str): The file.
            delimiter (str): The word is what stands before the first delimiter in the line. A
                delimiter of several characters counts as a whole (in MindSpore each of them is
                one). Default: "".
            vocab_size (int | None): The largest number of lines to read. Default: None.
            special_tokens (list[str] | None): Words that come before or after the others. Default:
                None.
            special_first (bool): Whether they come before. Default: True.

        Returns:
            Vocab: The vocabulary.

        Raises:
            RuntimeError: For a file that cannot be read, a repeated word, and a special token that
                is a word of the file as well.
        """
        operation = "Vocab.from_file"
        special = None if special_tokens is None else check_words(operation, "special_tokens", special_tokens)
        check_type(operation, "file_path", file_path, str)
        check_type(operation, "delimiter", delimiter, str)
        if vocab_size is not None:
            check_type(operation, "vocab_size", vocab_size, int)
            if vocab_size < 1:
                raise ValueError(f"{operation}: vocab_size must be positive, not {vocab_size}")
        check_type(operation, "special_first", special_first, bool)
        if not os.path.isfile(file_path):
            raise RuntimeError(f"{operation}: there is no file {file_path!r}")
        words: list[str] = []
        with reading(operation, file_path), open(file_path, encoding="utf-8", newline="\n") as lines:
            for line in lines:
                if len(words) == vocab_size:
                    break
                line = line[:-1] if line.endswith("\n") else line
                words.append(line.split(delimiter, 1)[0] if delimiter else line)
        twice = [word for word, count in Counter(words).items() if count > 1]
        if twice:
            raise RuntimeError(f"{operation}: {file_path!r} has the word {twice[0]!r} twice")
        return cls._in_order(operation, words, special, special_first)

    @classmethod
    def from_dict(cls, word_dict: dict[str, int]) -> Vocab:
        """Make a vocabulary of words with the numbers that a dictionary gives them.

        Raises TypeError for words that are not text or numbers that are not int, and ValueError for
        negative numbers.
        """
        operation = "Vocab.from_dict"
        check_type(operation, "word_dict", word_dict, dict)
        for word, number in word_dict.items():
            check_type(operation, "a word", word, str)
            check_range(operation, f"the number of {word!r}", number, 0, INT32_MAX)
        return cls._of(dict(word_dict))

    def vocab(self) -> dict[str, int]:
        """Return all words with their numbers."""
        return dict(self._built("Vocab.vocab"))

    def tokens_to_ids(self, tokens: Any) -> Any:
        """Return the number of a word, or a list of numbers for several words.

        Words that are not in the vocabulary have the number -1.
        """
        operation = "Vocab.tokens_to_ids"
        numbers = self._built(operation)
        check_type(operation, "tokens", tokens, (str, list, np.ndarray))
        tokens = _listed(operation, "tokens", tokens, "U")
        if isinstance(tokens, str):
            return numbers.get(tokens, -1)
        for index, token in enumerate(tokens):
            check_type(operation, f"tokens[{index}]", token, str)
        return [numbers.get(token, -1) for token in tokens]

    def ids_to_tokens(self, ids: Any) -> Any:
        """Return the word of a number, or a list of words for several numbers.

        Numbers that no word has give empty text.
        """
        operation = "Vocab.ids_to_tokens"
        self._built(operation)
        check_type(operation, "ids", ids, (int, list, np.ndarray))
        ids = _listed(operation, "ids", ids, "iu")
        for index, number in enumerate([ids] if isinstance(ids, int) else ids):
            value = int(number) if isinstance(number, np.integer) else number
            check_range(operation, f"ids[{index}]" if isinstance(ids, list) else "ids", value, 0, INT32_MAX)
        return self._words.get(ids, "") if isinstance(ids, int) else [self._words.get(int(n), "") for n in ids]


def _listed(operation: str, argument: str, value: Any, kinds: str) -> Any:
    """Return a NumPy array as a scalar or list; TypeError for other types or more than one axis."""
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind not in kinds or value.ndim > 1:
        raise TypeError(f"{operation}: {argument} is an array of {value.dtype} of shape {value.shape}; give one list")
    return value.tolist()


def _frequencies(operation: str, freq_range: Any) -> tuple[float, float]:
    """Return the least and greatest frequency; TypeError or ValueError if this is not a range."""
    if freq_range is None:
        return 0, np.inf
    check_type(operation, "freq_range", freq_range, tuple)
    if len(freq_range) != 2 or not all(n is None or type(n) is int for n in freq_range):
        raise ValueError(f"{operation}: freq_range must be a tuple of two integers or None, not {freq_range}")
    low, high = freq_range
    if low is not None and high is not None and not 0 <= low <= high:
        raise ValueError(f"{operation}: freq_range must be (a, b) with 0 <= a <= b, not {freq_range}")
    return 0 if low is None else low, np.inf if high is None else high


class Lookup(TextTransform):
    """The numbers of words of any shape in a vocabulary, int32 or another numeric type.

    A word that is not in the vocabulary has the number of `unknown_token`; without one,
    RuntimeError is raised.

    >>> from mycel.dataset import text
    >>> words = text.Vocab.from_list(["deep", "learning"], special_tokens=["<unk>"])
    >>> text.Lookup(words, "<unk>")(["learning", "sea"]).tolist()
    [2, 0]
    """

    vectorised = True

    def __init__(self, vocab: Vocab, unknown_token: str | None = None, data_type: Any = np.int32) -> None:
        check_type("Lookup", "vocab", vocab, Vocab)
        if vocab._numbers is None:
            raise TypeError("Lookup: vocab is not built; make one with Vocab.from_list or another of its methods")
        if unknown_token is not None:
            check_type("Lookup", "unknown_token", unknown_token, str)
        self.vocab = vocab
        self.unknown_token = unknown_token
        self.data_type = numpy_type("Lookup", data_type)
        if self.data_type.kind not in "iufb":
            raise TypeError(f"Lookup: data_type must be a type of numbers or bool, not {self.data_type}")
        self._numbers = vocab._numbers
        self._unknown = None if unknown_token is None else self._numbers.get(unknown_token)
        if unknown_token is not None and self._unknown is None:
            raise RuntimeError(f"Lookup: unknown_token {unknown_token!r} is not in the vocabulary")

    def chained(self, first: Any, following: Sequence[Any]) -> Joined | None:
        return chain_of(first, self, following) if type(self) is Lookup else None

    def compute(self, array: Array, lead: int) -> Array:
        found = [self._numbers.get(word, self._unknown) for word in self.texts(array)]
        if None in found:
            word = array.reshape(-1)[found.index(None)]
            raise RuntimeError(f"Lookup: {str(word)!r} is not in the vocabulary; give an unknown_token")
        try:
            result: Array = np.array(found, self.data_type).reshape(array.shape)
        except OverflowError as error:
            raise ValueError(f"Lookup: a word has a number that {self.data_type} has not: {error}") from None
        return result
