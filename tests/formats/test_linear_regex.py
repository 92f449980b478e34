"""RE2's patterns: what they match, against Python's `re` where both mean the same, and what they
cost.
"""

from __future__ import annotations

import random
import re

import pytest

from mycel.formats.onnx.linear_regex import Pattern, PatternError

# Patterns that RE2 reads in its own way, with texts that match and texts that do not.
OWN = {
    "a$": (["a"], ["a\n"]),
    "(?m)a$\n^b": (["a\nb"], ["a"]),
    r"\Aab\z": (["ab"], ["ab\n"]),
    r"\pL+": (["aé", "αβ"], ["a1", ""]),
    r"\p{Lu}\P{Lu}": (["Aa", "É1"], ["aA", "AA"]),
    r"\p{^N}": (["a"], ["1"]),
    r"\Qa.b*\E*": (["a.b", "a.b***"], ["axb", "a."]),
    r"[[:alpha:]_]+": (["a_Z"], ["é", "1"]),
    r"[[:^digit:]]": (["x", "\n"], ["1"]),
    r"\s": ([" ", "\t", "\f"], ["\v", "\u00a0"]),
    r"\w\d": (["a1", "_0"], ["é1", "a\u0661"]),
    r"(?i)straße": (["STRAßE", "straße"], ["strasse"]),
    r"(?i)[^k]": (["a"], ["k", "K", "\u212a"]),
    r"(?i:a)b": (["Ab", "ab"], ["AB"]),
    r"(?P<year>\d{4})-(?<month>\d\d)": (["2024-01"], ["24-01"]),
    r"x{,2}": (["x{,2}"], ["x", "xx"]),
    r"\x41\x{1F600}\101\t": (["A\U0001f600A\t"], ["A"]),
    r"(?s).(?-s:.)": (["\na"], ["\n\n"]),
    r"(|a)+": (["", "aaa"], ["b"]),
    r"(?U)a+?b*": (["aab"], ["b"]),
    r"[]a\-z]+": (["]a-z"], ["b"]),
}
REFUSED = ["(", "a)", "[a", "[b-a]", "*a", "a**", "a{2}{3}", "a{1001}", "a{3,2}", "(?=a)", "(?<!a)", "(?>a)", "(a)\\1"]
REFUSED += ["(?P=n)", "\\", "\\y", "\\x4", "\\x{110000}", "\\p{No such}", "[[:none:]]", "|{2}", "(?i)*", "\\E", "(?q)"]
REFUSED += ["((((a{30}){30}){30}){30})", "(" * 200 + ")" * 200, "(?(1)a|b)", "a++b"]


@pytest.mark.parametrize("pattern", OWN)
def test_what_patterns_match(pattern: str) -> None:
    found = Pattern(pattern)
    yes, no = OWN[pattern]
    assert [found.matches(text) for text in (*yes, *no)] == [True] * len(yes) + [False] * len(no)


@pytest.mark.parametrize("pattern", REFUSED)
def test_what_is_no_pattern_of_re2(pattern: str) -> None:
    with pytest.raises(PatternError, match="is none of RE2's at character"):
        Pattern(pattern)


def test_patterns_that_python_has_too() -> None:
    atoms = [
        "a",
        "b",
        "ab",
        ".",
        r"[a-c]",
        r"[^a]",
        "(a|b)",
        "(?:ab|a)",
        "(a)",
        "^",
        r"\b",
        r"\B",
        r"\.",
        "c",
        "[^b\n]",
    ]
    signs = ["", "", "", "*", "+", "?", "{2}", "{0,2}", "{1,}", "*?", "+?"]
    texts = ["", "a", "b", "ab", "ba", "aab", "abab", "c", "a.b", "a\nb", "ccc", "aaaa", "abc", " ", "a b"]
    draw = random.Random(7)
    for _ in range(1500):
        pattern = "".join(draw.choice(atoms) + draw.choice(signs) for _ in range(draw.randint(1, 4)))
        mine = Pattern(pattern)
        try:
            other = re.compile(pattern, re.ASCII)
        except re.error:  # it repeats nothing but characters
            continue
        for text in texts:
            if text or r"\B" not in pattern:  # whose meaning in an empty text has changed in Python
                assert mine.matches(text) == (other.fullmatch(text) is not None), (pattern, text)


def test_a_character_costs_no_more_than_the_pattern_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    found, most = Pattern("((a|b)*(a|ab)?)*c"), [0]
    reached = Pattern._reached

    def counted(self: Pattern, places: list[int], before: str, after: str) -> list[int]:
        made = reached(self, places, before, after)
        most[0] = max(most[0], len(made), len(places))
        return made

    monkeypatch.setattr(Pattern, "_reached", counted)
    assert found.matches("ab" * 200 + "c") and not found.matches("ab" * 200)
    assert most[0] <= len(found._code) < 30
