"""Regular expressions in RE2's syntax, matched in time linear in the text.

A pattern comes from a file, and so must not decide how long a match takes: matchers that go back
and try again may double their time with each character. Here a pattern becomes a program of
instructions (Thompson's construction), and a text moves all places of the program that it may have
come to, side by side. So each character costs at most one visit of each instruction, and programs
are bounded. What such programs cannot express RE2 has not either: references to groups, and looking
around.

The syntax is that of RE2's own page, of UTF-8 texts; `\\C` and names of scripts are not supported.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import NamedTuple

__all__ = ["Pattern", "PatternError"]

_MOST_REPEATED = 1000
_MOST_INSTRUCTIONS = 20_000
_DEEPEST = 100
Test = Callable[[str], bool]
_ESCAPED = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_PERL: dict[str, Test] = {
    "d": lambda c: "0" <= c <= "9",
    "s": lambda c: c in "\t\n\f\r ",
    "w": lambda c: c == "_" or (c.isascii() and c.isalnum()),
}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_POSIX: dict[str, Test] = {
    "alnum": lambda c: c.isascii() and c.isalnum(),
    "alpha": lambda c: c.isascii() and c.isalpha(),
    "ascii": str.isascii,
    "blank": lambda c: c in "\t ",
    "cntrl": lambda c: c < " " or c == "\x7f",
    "digit": _PERL["d"],
    "graph": lambda c: "!" <= c <= "~",
    "lower": lambda c: "a" <= c <= "z",
    "print": lambda c: " " <= c <= "~",
    "punct": lambda c: c in _PUNCTUATION,
    "space": lambda c: c in "\t\n\v\f\r ",
    "upper": lambda c: "A" <= c <= "Z",
    "word": _PERL["w"],
    "xdigit": lambda c: c in "0123456789abcdefABCDEF",
}
_CATEGORIES = frozenset(
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs".split()
)


class PatternError(ValueError):
    """A pattern that is damaged, or is none of RE2's."""


class _Node(NamedTuple):
    """A part of a pattern, and how many instructions it takes.

    `kind` is "char", "assert", "join", "either" or "repeat".
    """

    kind: str
    size: int
    parts: tuple[_Node, ...] = ()
    test: Test | None = None
    name: str = ""
    least: int = 0
    most: int | None = None


class _Flags(NamedTuple):
    ignores_case: bool = False
    has_lines: bool = False
    dot_is_all: bool = False


_FLAGS = _Node("join", 0)


class _Parser:
    """Reads a pattern from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.flags, self.depth = text, 0, _Flags(), 0

    def error(self, why: str) -> PatternError:
        return PatternError(f"the pattern {self.text[:200]!r} is none of RE2's at character {self.at}: {why}")

    def peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def take(self, expected: str) -> bool:
        """Go beyond what is expected, if it is there."""
        if self.text.startswith(expected, self.at):
            self.at += len(expected)
            return True
        return False

    def next(self, what: str) -> str:
        if self.at == len(self.text):
            raise self.error(f"it ends where {what} should follow")
        self.at += 1
        return self.text[self.at - 1]

    def whole(self) -> _Node:
        found = self.either()
        if self.at < len(self.text):
            raise self.error("a ) without its (")
        return found

    def either(self) -> _Node:
        choices = [self.joined()]
        while self.take("|"):
            choices.append(self.joined())
        if len(choices) == 1:
            return choices[0]
        return self.sized(_Node("either", sum(c.size + 2 for c in choices), tuple(choices)))

    def joined(self) -> _Node:
        parts: list[_Node] = []
        while self.at < len(self.text) and self.peek() not in ("|", ")"):
            if self.take("\\Q"):
                end = self.text.find("\\E", self.at)
                end, after = (len(self.text),) * 2 if end < 0 else (end, end + 2)
                quoted, self.at = self.text[self.at : end], after
                parts += [self.char(c) for c in quoted[:-1]]
                if quoted:
                    parts.append(self.repeated(self.char(quoted[-1])))
            else:
                parts.append(self.repeated(self.atom()))
        return self.sized(_Node("join", sum(p.size for p in parts), tuple(parts)))

    def sized(self, node: _Node) -> _Node:
        if node.size > _MOST_INSTRUCTIONS:
            raise self.error(f"it takes more than {_MOST_INSTRUCTIONS} instructions")
        return node

    def repeated(self, node: _Node) -> _Node:
        """Return a part with the repetition that follows it, if one does."""
        count = 0
        while True:
            begin, bounds = self.at, self.bounds()
            if bounds is None:
                return node
            count += 1
            if count > 1 or node is _FLAGS:
                self.at = begin
                raise self.error("a repetition of another, or of flags; put a group around what is repeated")
            self.take("?")  # shortest first: the same texts match as a whole
            least, most = bounds
            size = node.size * (least if most is None else most) + node.size + (most or 0) + 3
            node = self.sized(_Node("repeat", size, (node,), least=least, most=most))

    def bounds(self) -> tuple[int, int | None] | None:
        for sign, found in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return found
        if self.peek() != "{":
            return None
        end = self.text.find("}", self.at)
        least, comma, most = self.text[self.at + 1 : end].partition(",") if end > 0 else ("", "", "")
        if not _is_count(least) or (most and not _is_count(most)):
            return None  # a brace that stands for itself
        first, last = int(least), (int(most) if most else None) if comma else int(least)
        if max(first, last or 0) > _MOST_REPEATED or (last is not None and last < first):
            raise self.error(f"repetitions must be 0 to {_MOST_REPEATED} and go up")
        self.at = end + 1
        return first, last

    def atom(self) -> _Node:
        if self.bounds() is not None:
            raise self.error("nothing that could be repeated before")
        sign = self.next("more")
        if sign == "(":
            return self.group()
        if sign == "[":
            return _Node("char", 1, test=self.folded(self.klass()))
        if sign == ".":
            return _Node("char", 1, test=(lambda c: True) if self.flags.dot_is_all else (lambda c: c != "\n"))
        if sign in "^$":
            if self.flags.has_lines:
                return _Node("assert", 1, name="line begins" if sign == "^" else "line ends")
            return _Node("assert", 1, name="begins" if sign == "^" else "ends")
        if sign == "\\":
            named = {"A": "begins", "z": "ends", "b": "word", "B": "no word"}.get(self.peek())
            if named is not None:
                self.at += 1
                return _Node("assert", 1, name=named)
            test = self.set_escape()
            if test is not None:
                return _Node("char", 1, test=self.folded(test))
            return self.char(self.escape())
        return self.char(sign)

    def char(self, one: str) -> _Node:
        return _Node("char", 1, test=self.folded(lambda c: c == one))

    def folded(self, test: Test) -> Test:
        if not self.flags.ignores_case:
            return test
        return lambda c: any(test(f) for f in _cases(c))

    def group(self) -> _Node:
        before = self.flags
        if self.take("?"):
            if self.take("P<") or (self.peek() == "<" and self.peek(2) not in ("<=", "<!") and self.take("<")):
                name = self.until(">")
                if not name.replace("_", "a").isalnum():
                    raise self.error(f"{name!r} is no name of a group")
            elif not self.take(":"):
                if self.options():
                    return _FLAGS  # for all that follows
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.error(f"groups nest more than {_DEEPEST} deep")
        found = self.either()
        self.depth -= 1
        if not self.take(")"):
            raise self.error("a ( without its )")
        self.flags = before
        return found

    def options(self) -> bool:
        """Read flags; return whether they are all that the group has."""
        value, given = True, False
        names = {"i": "ignores_case", "m": "has_lines", "s": "dot_is_all"}
        while True:
            sign = self.next("a flag")
            if sign in names:
                self.flags, given = self.flags._replace(**{names[sign]: value}), True
            elif sign == "U":
                given = True  # swaps shortest and longest
            elif sign == "-" and value:
                value, given = False, False
            elif sign in ":)" and (given or value):
                return sign == ")"
            else:
                raise self.error("groups that look around, refer to others or choose are not RE2's")

    def until(self, end: str) -> str:
        at = self.text.find(end, self.at)
        if at < 0:
            raise self.error(f"there is no {end}")
        found, self.at = self.text[self.at : at], at + len(end)
        return found

    def set_escape(self) -> Test | None:
        """Read what follows a backslash where it is a set of characters."""
        sign = self.peek()
        if sign.lower() in _PERL and sign:
            self.at += 1
            return _PERL[sign] if sign in _PERL else _not(_PERL[sign.lower()])
        if not sign or sign not in "pP":
            return None
        self.at += 1
        name = self.until("}") if self.take("{") else self.next("a category")
        negated = (sign == "P") != name.startswith("^")
        name = name.removeprefix("^")
        if name not in _CATEGORIES and name != "Any":
            raise self.error(f"{name!r} is no general category of Unicode")
        test = self.folded(lambda c: name == "Any" or unicodedata.category(c).startswith(name))
        return _not(test) if negated else test

    def escape(self) -> str:
        """Read what follows a backslash where it is one character."""
        sign = self.next("an escaped character")
        if sign in _ESCAPED:
            return _ESCAPED[sign]
        if sign in "01234567":
            if sign != "0" and not (self.peek() and self.peek() in "01234567"):
                raise self.error(f"\\{sign} refers to a group, which takes more than linear time")
            while len(sign) < 3 and self.peek() and self.peek() in "01234567":
                sign += self.next("")
            return chr(int(sign, 8))
        if sign == "x":
            digits = self.until("}") if self.take("{") else self.next("a digit") + self.next("a digit")
            if not digits or not all(d in "0123456789abcdefABCDEF" for d in digits) or int(digits[-9:], 16) > 0x10FFFF:
                raise self.error(f"\\x{digits[:9]} is no character")
            return chr(int(digits[-9:], 16))
        if sign.isascii() and not sign.isalnum():
            return sign
        raise self.error(f"there is no \\{sign}")

    def klass(self) -> Test:
        negated, first = self.take("^"), True
        tests: list[Test] = []
        singles: set[str] = set()
        while first or self.peek() != "]":
            if self.at == len(self.text):
                raise self.error("a [ without its ]")
            first = False
            if self.peek(2) == "[:" and ":]" in self.text[self.at + 2 :]:
                self.at += 2
                name = self.until(":]")
                if name.removeprefix("^") not in _POSIX:
                    raise self.error(f"{name!r} is no class of characters")
                tests.append(_POSIX[name] if name in _POSIX else _not(_POSIX[name[1:]]))
                continue
            if self.peek() == "\\":
                self.at += 1
                found = self.set_escape()
                if found is not None:
                    tests.append(found)
                    continue
                self.at -= 1
            low = self.member()
            if self.peek() == "-" and self.peek(2) not in ("-", "-]"):
                self.at += 1
                high = self.member()
                if high < low:
                    raise self.error(f"the range {low}-{high} goes down")
                tests.append(lambda c, low=low, high=high: low <= c <= high)  # type: ignore[misc]
            else:
                singles.add(low)
        self.at += 1
        test: Test = lambda c: c in singles or any(t(c) for t in tests)
        # Letters of both cases are left out where one of them is.
        return _not(self.folded(test)) if negated else test

    def member(self) -> str:
        sign = self.next("a character")
        return self.escape() if sign == "\\" else sign


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _not(test: Test) -> Test:
    return lambda c: not test(c)


def _cases(c: str) -> set[str]:
    """Return the characters that are one and the same where cases are."""
    return {f for f in (c, c.lower(), c.upper(), c.lower().upper(), c.upper().lower()) if len(f) == 1}


_CHAR, _ASSERT, _SPLIT, _JUMP, _MATCH = range(5)


class Pattern:
    """A pattern that texts are compared with as a whole.

    Raises PatternError where it is none of RE2's.

    >>> found = Pattern("(a|b)*[0-9]{2,3}")
    >>> found.matches("abba12"), found.matches("abba1")
    (True, False)
    """

    def __init__(self, text: str) -> None:
        self._code: list[tuple[int, object, object]] = []
        self._add(_Parser(text).whole())
        self._code.append((_MATCH, None, None))

    def _add(self, node: _Node) -> None:
        code = self._code
        if node.kind == "char":
            code.append((_CHAR, node.test, None))
        elif node.kind == "assert":
            code.append((_ASSERT, node.name, None))
        elif node.kind == "join":
            for part in node.parts:
                self._add(part)
        elif node.kind == "either":
            jumps = []
            for number, part in enumerate(node.parts):
                split = len(code)
                if number + 1 < len(node.parts):
                    code.append((_SPLIT, split + 1, None))
                self._add(part)
                if number + 1 < len(node.parts):
                    jumps.append(len(code))
                    code.append((_JUMP, None, None))
                    code[split] = (_SPLIT, split + 1, len(code))
            for jump in jumps:
                code[jump] = (_JUMP, len(code), None)
        else:
            self._repeat(node.parts[0], node.least, node.most)

    def _repeat(self, part: _Node, least: int, most: int | None) -> None:
        code = self._code
        for _ in range(least):
            self._add(part)
        if most is None:
            split = len(code)
            code.append((_SPLIT, None, None))
            self._add(part)
            code.append((_JUMP, split, None))
            code[split] = (_SPLIT, split + 1, len(code))
            return
        splits = []
        for _ in range(most - least):
            splits.append(len(code))
            code.append((_SPLIT, None, None))
            self._add(part)
        for split in splits:
            code[split] = (_SPLIT, split + 1, len(code))

    def matches(self, text: str) -> bool:
        """Return whether a text is one of those that the pattern stands for."""
        at = self._reached([0], "", text[:1])
        for place, sign in enumerate(text):
            moved = [p + 1 for p in at if self._code[p][0] == _CHAR and self._code[p][1](sign)]  # type: ignore[operator]
            if not moved:
                return False
            at = self._reached(moved, sign, text[place + 1 : place + 2])
        return any(self._code[p][0] == _MATCH for p in at)

    def _reached(self, places: list[int], before: str, after: str) -> list[int]:
        """Return the places to which `places` lead without a character, between two of the text."""
        seen, left, found = set(places), list(places), []
        while left:
            place = left.pop()
            kind, first, second = self._code[place]
            following: tuple[object, ...] = ()
            if kind in (_CHAR, _MATCH):
                found.append(place)
            elif kind == _SPLIT:
                following = (first, second)
            elif kind == _JUMP:
                following = (first,)
            elif _holds(str(first), before, after):
                following = (place + 1,)
            for one in following:
                assert isinstance(one, int)
                if one not in seen:
                    seen.add(one)
                    left.append(one)
        return found


def _holds(name: str, before: str, after: str) -> bool:
    """Return whether an assertion is true between two characters, "" at the ends of the text."""
    if name in ("begins", "ends"):
        return not (before if name == "begins" else after)
    if name in ("line begins", "line ends"):
        return (before if name == "line begins" else after) in ("", "\n")
    is_word = _PERL["w"]
    at_edge = (bool(before) and is_word(before)) != (bool(after) and is_word(after))
    return at_edge == (name == "word")
