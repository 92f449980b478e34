"""Segmentation of Chinese text by a dictionary of words, a hidden Markov model, or both.

* *MP* takes the words of the dictionary whose probabilities have the greatest product; among words
  of different lengths with equal products it takes the longer.
* *HMM* finds by Viterbi's algorithm whether each character begins a word (B), ends one (E), is in
  its middle (M) or stands alone (S). Letters with digits, and digits with points, stay together.
* *MIX* is MP, and HMM for the runs of single characters that MP leaves.

Blanks, line ends, tabs and "，" and "。" divide a text first. The files are those of cppjieba. Each
line of a dictionary has a word, its frequency and a tag. A model, without the lines that start with
"#", has a line with the four logarithms of the probabilities to start in B, E, M and S, four lines
of those to go from one to another, and four lines of "character:logarithm" separated by commas.
"""

from __future__ import annotations

import math
import os
import re
from itertools import chain

from mycel._src.foundation import arguments
from mycel.dataset.pipeline_errors import reading
from mycel.dataset.text.base import UINT32_MAX, Span, Tokenizer, check_range, check_type
from mycel.dataset.text.enums import JiebaMode

_NEVER = -3.14e100
_SEPARATORS = re.compile("[ \t\n，。]")
_ASCII_RUN = re.compile(r"[A-Za-z][A-Za-z0-9]*|[0-9][0-9.]*|[\x00-\x7f]")
_USER_LINE = re.compile(r"\s*([^\s*]+?)\s*([0-9]+)?\s*")


class _Dictionary:
    """A dictionary of words and the logarithms of their probabilities."""

    def __init__(self, path: str) -> None:
        counts: list[tuple[str, float]] = []
        with reading("JiebaTokenizer", path), open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                fields = line.split()
                if not fields:
                    continue
                try:
                    word, count = fields[0], float(fields[1])
                except (IndexError, ValueError) as error:
                    raise ValueError(
                        f"JiebaTokenizer: line {number} of {path!r} is no word with a frequency"
                    ) from error
                counts.append((word, count))
        self.total = sum(count for _, count in counts)
        if not self.total > 0:
            raise ValueError(f"JiebaTokenizer: the dictionary {path!r} has no words")
        self.weights = {word: math.log(count / self.total) if count > 0 else _NEVER for word, count in counts}
        ordered = sorted(math.log(count / self.total) if count > 0 else _NEVER for _, count in counts)
        self.least, self.median = ordered[0], ordered[len(ordered) // 2]
        self.longest = max(len(word) for word, _ in counts)

    def add(self, word: str, frequency: int) -> None:
        self.weights[word] = math.log(frequency / self.total) if frequency else self.median
        self.longest = max(self.longest, len(word))

    def segment(self, text: str) -> list[Span]:
        """Return the best words of a text, by dynamic programming from its end to its start."""
        size = len(text)
        best = [0.0] * (size + 1)
        ends = [0] * size
        for start in range(size - 1, -1, -1):
            best[start], ends[start] = self.weights.get(text[start], self.least) + best[start + 1], start + 1
            for end in range(start + 2, min(size, start + self.longest) + 1):
                weight = self.weights.get(text[start:end])
                if weight is not None and weight + best[end] > best[start]:
                    best[start], ends[start] = weight + best[end], end
        spans = []
        start = 0
        while start < size:
            spans.append((start, ends[start]))
            start = ends[start]
        return spans


class _Model:
    """A hidden Markov model of the positions of characters in words: states B, E, M and S."""

    def __init__(self, path: str) -> None:
        with reading("JiebaTokenizer", path), open(path, encoding="utf-8") as file:
            lines = [line.strip() for line in file if line.strip() and not line.startswith("#")]
        try:
            self.start = [float(value) for value in lines[0].split()]
            self.moves = [[float(value) for value in line.split()] for line in lines[1:5]]
            pairs = [[entry.rsplit(":", 1) for entry in line.split(",")] for line in lines[5:9]]
            self.emits = [{character: float(value) for character, value in row} for row in pairs]
        except (IndexError, ValueError) as error:
            raise ValueError(f"JiebaTokenizer: {path!r} is no model of start, transitions and emissions") from error
        if len(self.emits) != 4 or any(len(row) != 4 for row in (self.start, *self.moves)):
            raise ValueError(f"JiebaTokenizer: {path!r} must have four states, B, E, M and S")

    def segment(self, text: str) -> list[Span]:
        """Return the words of a text.

        Runs of ASCII are words by their kind, the rest by the most probable states.
        """
        spans: list[Span] = []
        for part in re.finditer(r"[\x00-\x7f]+|[^\x00-\x7f]+", text):
            if part.group()[0] < "\x80":
                spans += [(part.start() + m.start(), part.start() + m.end()) for m in _ASCII_RUN.finditer(part.group())]
                continue
            first = part.start()
            for place, state in enumerate(self._states(part.group()), part.start()):
                if state in (1, 3):
                    spans.append((first, place + 1))
                    first = place + 1
        return spans

    def _states(self, text: str) -> list[int]:
        weights = [self.start[y] + self.emits[y].get(text[0], _NEVER) for y in range(4)]
        paths: list[list[int]] = []
        for character in text[1:]:
            following, path = [], []
            for y in range(4):
                best, source = _NEVER, 1
                emitted = self.emits[y].get(character, _NEVER)
                for x in range(4):
                    weight = weights[x] + self.moves[x][y] + emitted
                    if weight > best:
                        best, source = weight, x
                following.append(best)
                path.append(source)
            weights = following
            paths.append(path)
        states = [1 if weights[1] >= weights[3] else 3]
        for path in reversed(paths):
            states.append(path[states[-1]])
        return states[::-1]


class JiebaTokenizer(Tokenizer):
    """The words of a Chinese text, by a model and a dictionary of cppjieba.

    Args:
        hmm_path (str): The file of the hidden Markov model.
        mp_path (str): The file of the dictionary.
        mode (JiebaMode): The method: JiebaMode.MP, by the dictionary, JiebaMode.HMM, by the model,
            or JiebaMode.MIX, by both. Default: JiebaMode.MIX.
        with_offsets (bool): Whether the result is three arrays: the words, and their first bytes
            and the bytes after their last in UTF-8, uint32. Default: False.

    Raises:
        ValueError: For a file that does not exist or is not of its kind.

    Examples:
        >>> import os, tempfile
        >>> from mycel.dataset import text
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     words, model = os.path.join(folder, "dictionary"), os.path.join(folder, "model")
        ...     with open(words, "w", encoding="utf-8") as file:
        ...         _ = file.write("今天 200 t\\n天气 100 n\\n天 40 n\\n好 90 a\\n")
        ...     with open(model, "w") as file:
        ...         _ = file.write("-1 -9 -9 -1\\n" + 4 * "-1 -1 -1 -1\\n" + 4 * "x:-1\\n")
        ...     tokenizer = text.JiebaTokenizer(model, words, text.JiebaMode.MP)
        >>> tokenizer("今天天气好").tolist()
        ['今天', '天气', '好']
        >>> tokenizer.add_word("天气好", 1000)
        >>> tokenizer("今天天气好").tolist()
        ['今天', '天气好']
    """

    def __init__(
        self, hmm_path: str, mp_path: str, mode: JiebaMode = JiebaMode.MIX, with_offsets: bool = False
    ) -> None:
        arguments.instance("JiebaTokenizer", "mode", mode, JiebaMode)
        for argument, path in (("hmm_path", hmm_path), ("mp_path", mp_path)):
            if path is None:
                raise ValueError(f"JiebaTokenizer: {argument} must be given")
            check_type("JiebaTokenizer", argument, path, str)
            if not os.path.exists(path):
                raise ValueError(f"JiebaTokenizer: there is no file {path!r}")
        super().__init__(with_offsets)
        self.hmm_path = hmm_path
        self.mp_path = mp_path
        self.mode = mode
        self._model = _Model(hmm_path)
        self._dictionary = _Dictionary(mp_path)

    def add_word(self, word: str, freq: int | None = None) -> None:
        """Add a word to the dictionary, or change its frequency.

        Without `freq` it is as frequent as the median word.
        """
        if word is None:
            raise ValueError("JiebaTokenizer.add_word: word must be given")
        check_type("JiebaTokenizer.add_word", "word", word, str)
        if freq is not None:
            check_range("JiebaTokenizer.add_word", "freq", freq, 0, UINT32_MAX)
        if word:
            self._dictionary.add(word, freq or 0)

    def add_dict(self, user_dict: str | dict[str, int | None]) -> None:
        """Add words to the dictionary.

        `user_dict` is a dict of words and frequencies, or a file with a word and optionally its
        frequency in each line. Lines of another form are ignored. Raises ValueError for a file that
        does not exist.
        """
        if isinstance(user_dict, dict):
            for word, frequency in user_dict.items():
                self.add_word(word, frequency)
            return
        arguments.text("JiebaTokenizer.add_dict", "user_dict", user_dict, what="a dict or the path of a file")
        if not os.path.exists(user_dict):
            raise ValueError(f"JiebaTokenizer.add_dict: there is no file {user_dict!r}")
        with reading("JiebaTokenizer", user_dict), open(user_dict, encoding="utf-8") as lines:
            for line in lines:
                found = _USER_LINE.fullmatch(line)
                if found is not None:
                    self.add_word(found.group(1), int(found.group(2)) if found.group(2) else None)

    def spans(self, text: str) -> list[Span]:
        spans: list[Span] = []
        after = 0
        ends = ((match.start(), match.end()) for match in _SEPARATORS.finditer(text))
        for start, end in chain(ends, ((len(text), len(text)),)):
            spans += [(after + a, after + b) for a, b in self._segment(text[after:start])]
            if end > start:
                spans.append((start, end))
            after = end
        return spans

    def _segment(self, text: str) -> list[Span]:
        if self.mode is JiebaMode.HMM:
            return self._model.segment(text)
        words = self._dictionary.segment(text)
        if self.mode is JiebaMode.MP:
            return words
        spans: list[Span] = []
        place = 0
        while place < len(words):
            first = place
            while place < len(words) and words[place][1] - words[place][0] == 1:
                place += 1
            if place > first:
                start, end = words[first][0], words[place - 1][1]
                spans += [(start + a, start + b) for a, b in self._model.segment(text[start:end])]
            if place < len(words):
                spans.append(words[place])
                place += 1
        return spans
