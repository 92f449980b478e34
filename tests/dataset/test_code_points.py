"""Text that is handled as arrays of code points gives what texts character by character give."""

from __future__ import annotations

import random
import unicodedata
from typing import Any

import numpy as np
import pytest

from mycel.dataset import text
from mycel.dataset.text import base, code_points, normalize, regex, sequences, wordpiece
from mycel.dataset.text.enums import NormalizeForm

_PARTS = [
    "word",
    "Über-straße",
    "Ünï²",
    " ",
    "\t ",
    "\n",
    "\x1c",
    "\u3000",
    "北京",
    "，。",
    "12",
    "٣٤",
    "x=1;",
    "[CLS]",
    "[",
    "e\u0301",
    "\u0301",
    "각",
    "\u1100\u1161\u11a8",
    "ﬁ",
    "Ⅷ",
    "\u00ad",
    "\u200b",
    "😀",
    "\U00020000",
    "ａＢ",
    "ДЖ",
    "İ",
    "ς",
    "\\a",
    "½",
]


def _texts(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    plain = [part for part in _PARTS if part.isprintable() and not unicodedata.combining(part[-1])]
    found = []
    for number in range(count):
        among = draw.sample(plain if number % 2 else _PARTS, draw.randint(2, 8))
        found.append("".join(draw.choices(among, k=draw.randint(1, 150))))
    return [*found, "a" * 300, " " * 100, "é" * 300, "\x85" * 30, "ab" * 20 + "\ud800"]


_WORDS = [
    "[UNK]",
    "word",
    "12",
    "x",
    "=",
    "##r",
    "w",
    "##o",
    "##d",
    "##2",
    "1",
    "北",
    "über",
    "-",
    "[CLS]",
    "##ber",
    "u",
    ";",
]
_VOCABULARY = text.Vocab.from_list(_WORDS)
_MADE: list[Any] = [
    text.WhitespaceTokenizer(True),
    text.UnicodeCharTokenizer(),
    text.UnicodeCharTokenizer(True),
    text.UnicodeScriptTokenizer(),
    text.UnicodeScriptTokenizer(True, True),
    text.RegexTokenizer(r"\s+"),
    text.RegexTokenizer(r"\s"),
    text.RegexTokenizer(r"\s+", r"\s+"),
    text.RegexTokenizer(r"\s+", r"\s", True),
    text.RegexTokenizer(r"[\p{P}|\s]", r"\p{P}", True),
    text.RegexTokenizer(r"[^a-z]+", "", True),
    text.RegexTokenizer(r"a|\d+", r"\d+", True),
    text.BasicTokenizer(),
    text.BasicTokenizer(True, True, with_offsets=True),
    text.BasicTokenizer(False, True, NormalizeForm.NFKC, False, True),
    text.BertTokenizer(_VOCABULARY, lower_case=True),
    text.BertTokenizer(_VOCABULARY, max_bytes_per_token=5, unknown_token="", with_offsets=True),
    text.RegexReplace(r"\d", r"\\1"),
    text.RegexReplace(r"\s+", ""),
    text.RegexReplace(r"[\p{P}a]", "<>"),
    text.CaseFold(),
    text.NormalizeUTF8(),
]


@pytest.mark.parametrize("number", range(len(_MADE)))
def test_long_texts_give_what_short_ones_do(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    transform = _MADE[number]
    for given in _texts(40, number):
        array = np.array(given)
        found = transform(array)
        with monkeypatch.context() as patch:
            for module in (base, sequences):
                patch.setattr(module, "are_on", lambda: False)
            patch.setattr(code_points, "LONG", 1 << 30)
            patch.setattr(normalize, "_LONG", 1 << 30)
            patch.setattr(regex, "_LONG", 1 << 30)
            patch.setattr(normalize, "_folded_latin", lambda text: None)
            wanted = transform(array)
        for one, other in zip(
            found if isinstance(found, tuple) else (found,), wanted if isinstance(wanted, tuple) else (wanted,)
        ):
            assert one.dtype == other.dtype and one.tolist() == other.tolist(), (transform, given)


def test_latin_letters_fold_as_they_do_alone() -> None:
    for code in range(0x80, 0x100):
        assert normalize.case_folded(f"{chr(code)}Ab" * 5) == normalize._folded(f"{chr(code)}Ab" * 5)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64"])
def test_numbers_are_those_of_each_text(kind: str) -> None:
    given = ["0", "-0", "+7", "12", "007", "1.5", "-2e1", "3.", ".5", "1e-3", "9" * 18, "9" * 19, "", "-", "1 2", " 4"]
    given += [
        "0x10",
        "1e400",
        "127",
        "128",
        "255",
        "256",
        "-1",
        "1e",
        "1e+",
        "e5",
        ".",
        "1_0",
        "٣",
        "12\0",
        "nan",
        "65504",
    ]
    transform = text.ToNumber(kind)

    def one(value: str) -> Any:
        try:
            return transform(np.array(value)).item()
        except RuntimeError as error:
            return str(error)

    for first in ("1", "-2", "1.5"):
        for value in given:
            both = [one(first), one(value)]
            wrong = [found for found in both if isinstance(found, str)]
            array = np.array([first, value, first])
            if wrong:
                with pytest.raises(RuntimeError) as raised:
                    transform(array)
                assert str(raised.value) == wrong[0]
            else:
                found = transform(array)
                assert found.dtype == kind
                np.testing.assert_array_equal(found, np.array([*both, both[0]], kind))


def test_words_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wordpiece, "MANY", 4)
    transform = text.WordpieceTokenizer(_VOCABULARY, with_offsets=True)
    words = [f"w{'o' * number}12" for number in range(10)] * 2
    for _ in range(2):
        pieces, starts, ends = transform(words)
        wanted = [transform(word) for word in words]
        assert pieces.tolist() == [piece for row in wanted for piece in row[0].tolist()]
        assert starts.tolist() == [place for row in wanted for place in row[1].tolist()]
        assert ends.tolist() == [place for row in wanted for place in row[2].tolist()]
    assert len(wordpiece._known.of(transform, dict)) <= 4
