"""Pretrained word vectors from text files, which have a word and its numbers in each line.

Blanks separate them. A first line of two fields is a header and is skipped. Of several vectors for
a word the first counts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from mycel.dataset.pipeline_errors import reading
from mycel.dataset.rows.column_blocks import Array
from mycel.dataset.text.base import INT32_MAX, TextTransform, check_range, check_type


class Vectors:
    """Words and their vectors, float32, all of one length; made by `from_file`."""

    def __init__(self) -> None:
        self._vectors: dict[str, Array] = {}
        self.dimension = 0

    @classmethod
    def _check_path(cls, file_path: str) -> None:
        """Raise RuntimeError for a file whose name is not one of this kind of vectors."""

    @classmethod
    def from_file(cls, file_path: str, max_vectors: int | None = None) -> Any:
        """Read the vectors in a file, or the first `max_vectors` if that is given and not 0.

        Raises RuntimeError for a file that does not exist, is empty, or has vectors of different
        lengths or of one number.
        """
        name = cls.__name__
        check_type(name, "file_path", file_path, str)
        if max_vectors is not None:
            check_range(name, "max_vectors", max_vectors, 0, INT32_MAX)
        if not os.path.isfile(file_path):
            raise RuntimeError(f"{name}: there is no file {file_path!r}")
        cls._check_path(file_path)
        made = cls()
        with reading(name, file_path), open(file_path, encoding="utf-8", newline="\n") as lines:
            for number, line in enumerate(lines, 1):
                fields = line.rstrip("\r\n").rstrip(" ").split(" ")
                if number == 1 and len(fields) == 2:
                    continue
                if max_vectors and len(made._vectors) >= max_vectors:
                    break
                made._add(f"{name}: line {number} of {file_path!r}", fields[0], fields[1:])
        if not made._vectors:
            raise RuntimeError(f"{name}: {file_path!r} has no vectors")
        return made

    def _add(self, where: str, word: str, numbers: list[str]) -> None:
        if len(numbers) < 2:
            raise RuntimeError(f"{where} has a vector of {len(numbers)} numbers; it needs two or more after its word")
        if self._vectors and len(numbers) != self.dimension:
            raise RuntimeError(f"{where} has a vector of {len(numbers)} numbers, those before have {self.dimension}")
        try:
            vector = np.array(numbers, np.float32)
        except ValueError as error:
            raise RuntimeError(f"{where} has a vector with a field that is no number: {error}") from error
        self.dimension = len(numbers)
        self._vectors.setdefault(word, vector)

    def find(self, word: str, lower_case_backup: bool = False) -> Array | None:
        """Return the vector of a word, or None if it has none.

        With `lower_case_backup` it is that of the word in small letters.
        """
        found = self._vectors.get(word)
        return self._vectors.get(word.lower()) if found is None and lower_case_backup else found


class GloVe(Vectors):
    """Vectors of GloVe (Pennington et al., 2014), from files named glove.6B.*.txt."""

    @classmethod
    def _check_path(cls, file_path: str) -> None:
        if not re.fullmatch(r"glove\.6B\..*\.txt", os.path.basename(file_path)):
            raise RuntimeError(f"GloVe: the file must be named glove.6B.*.txt, not {file_path!r}")


class FastText(Vectors):
    """Vectors of fastText (Bojanowski et al., 2017), from files named *.vec."""

    @classmethod
    def _check_path(cls, file_path: str) -> None:
        if not file_path.endswith(".vec"):
            raise RuntimeError(f"FastText: the file must be named *.vec, not {file_path!r}")


class CharNGram(Vectors):
    """Vectors of character n-grams (Hashimoto et al., 2017): a word's is the mean of those known.

    N-grams of two, three and four characters, with the marks "#BEGIN#" and "#END#" as characters at
    the word's ends, are named "2gram-ab", "3gram-b#END#", ... in the file. (MindSpore counts bytes,
    and leaves out vectors that equal `unk_init`.)
    """

    def find(self, word: str, lower_case_backup: bool = False) -> Array | None:
        whole = ["#BEGIN#", *(word.lower() if lower_case_backup else word), "#END#"]
        found = []
        for n in (2, 3, 4):
            for start in range(len(whole) - n + 1):
                vector = self._vectors.get(f"{n}gram-{''.join(whole[start : start + n])}")
                if vector is not None:
                    found.append(vector)
        return np.asarray(np.mean(found, axis=0, dtype=np.float32)) if found else None


class ToVectors(TextTransform):
    """The vectors, float32, of words of any shape, along a new last axis.

    MindSpore puts those of a matrix into one list. A word without a vector has `unk_init`, or
    zeros; with `lower_case_backup`, its form in small letters is tried first.

    >>> import os, tempfile
    >>> from mycel.dataset import text
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "vectors.txt")
    ...     with open(path, "w") as file:
    ...         _ = file.write("ok 1 2 3\\nthis 4 5 6\\n")
    ...     vectors = text.Vectors.from_file(path)
    >>> text.ToVectors(vectors, lower_case_backup=True)(["This", "that"]).tolist()
    [[4.0, 5.0, 6.0], [0.0, 0.0, 0.0]]
    """

    vectorised = True

    def __init__(
        self, vectors: Vectors, unk_init: Sequence[float] | None = None, lower_case_backup: bool = False
    ) -> None:
        check_type("ToVectors", "vectors", vectors, Vectors)
        if unk_init is not None:
            check_type("ToVectors", "unk_init", unk_init, (list, tuple))
            for value in unk_init:
                check_type("ToVectors", "an element of unk_init", value, (int, float))
            if len(unk_init) != vectors.dimension:
                raise ValueError(
                    f"ToVectors: unk_init has {len(unk_init)} numbers for vectors of {vectors.dimension} numbers"
                )
        check_type("ToVectors", "lower_case_backup", lower_case_backup, bool)
        self.vectors = vectors
        self.unk_init = unk_init
        self.lower_case_backup = lower_case_backup

    def compute(self, array: Array, lead: int) -> Array:
        size = self.vectors.dimension
        missing = np.zeros(size, np.float32) if self.unk_init is None else np.array(self.unk_init, np.float32)
        find, lower = self.vectors.find, self.lower_case_backup
        found = [find(word, lower) for word in self.texts(array)]
        rows = [missing if row is None else row for row in found]
        result: Array = np.concatenate(rows) if rows else np.zeros(0, np.float32)
        return result.reshape(*array.shape, size)
