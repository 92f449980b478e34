"""Translation of ICU's regular expressions and replacements to those of Python's `re`.

What the two write differently is translated. Sets of characters with properties, POSIX classes,
nesting, `&&` and `--` are computed and written as ranges. `\\s`, `\\d`, `\\w`, `\\h`, `\\v`, `\\R`,
`.`, `$`, `\\Z`, `\\z`, `\\Q..\\E`, `\\x{..}` and names of groups are written out, as are a
replacement's `$1`, `${name}` and `\\`. What `re` lacks raises ValueError.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel.dataset.text.unicode_sets import WHITE_SPACE, Ranges, categories, characters, intersection, invert, union

_TERMINATORS = "\\n\\r\\u0085\\u2028\\u2029\\v\\f"
_LINE_END = "(?:\\r\\n|[\\n\\r\\v\\f\\u0085\\u2028\\u2029])"
_CONTROLS = {"t": 9, "n": 10, "r": 13, "f": 12, "a": 7, "e": 27}


def _code(character: int) -> str:
    return f"\\U{character:08x}"


def _class(ranges: Ranges) -> str:
    """Return a set of characters in the syntax of `re`."""
    if not ranges:
        return "(?!)"
    return "[" + "".join(_code(a) if a == b else f"{_code(a)}-{_code(b)}" for a, b in ranges) + "]"


def _shorthand(letter: str) -> Ranges | None:
    sets: dict[str, Callable[[], Ranges]] = {
        "s": lambda: WHITE_SPACE,
        "d": lambda: categories("Nd"),
        "w": lambda: characters("word"),
        "h": lambda: characters("blank"),
        "v": lambda: ((0x0A, 0x0D), (0x85, 0x85), (0x2028, 0x2029)),
    }
    if letter.lower() not in sets:
        return None
    found = sets[letter.lower()]()
    return found if letter.islower() else invert(found)


# What Grapheme_Extend has beside marks that take no space.
_EXTENDING: Ranges = (
    (0x09BE, 0x09BE),
    (0x09D7, 0x09D7),
    (0x0B3E, 0x0B3E),
    (0x0B57, 0x0B57),
    (0x0BBE, 0x0BBE),
    (0x0BD7, 0x0BD7),
    (0x0CC2, 0x0CC2),
    (0x0CD5, 0x0CD6),
    (0x0D3E, 0x0D3E),
    (0x0D57, 0x0D57),
    (0x0DCF, 0x0DCF),
    (0x0DDF, 0x0DDF),
    (0x1B35, 0x1B35),
    (0x302E, 0x302F),
    (0xFF9E, 0xFF9F),
    (0x1133E, 0x1133E),
    (0x11357, 0x11357),
    (0x114B0, 0x114B0),
    (0x114BD, 0x114BD),
    (0x115AF, 0x115AF),
    (0x1D165, 0x1D165),
    (0x1D16E, 0x1D172),
)
_MARKS_AFTER = 4


@cache
def _boundary() -> str:
    """Return the pattern of a word boundary.

    One side is a character of a word and the other is not. Marks and format characters belong to
    what they follow, up to four of them.
    """
    joined = union(categories("Mn", "Me", "Cf"), _EXTENDING)
    words = intersection(characters("word"), invert(joined))
    before = "|".join(f"(?<={_class(words)}{_class(joined)}{{{n}}})" for n in range(_MARKS_AFTER + 1))
    other = intersection(invert(words), invert(joined))
    return f"(?:(?={_class(words)})(?!{before})|(?:(?={_class(other)})|\\Z)(?:{before}))"


class _Translator:
    """A reader of an ICU pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.place = 0

    def fail(self, reason: str) -> ValueError:
        return ValueError(f"{reason} at character {self.place} of the pattern {self.pattern!r}")

    def take(self, pattern: str) -> str | None:
        """Match a regular expression here and move past it; return None if it does not match."""
        found = re.compile(pattern, re.DOTALL).match(self.pattern, self.place)
        if found is None:
            return None
        self.place = found.end()
        return found.group()

    def translate(self) -> str:
        out: list[str] = []
        while self.place < len(self.pattern):
            if self.pattern[self.place] == "\\":
                out.append(self.escape())
            elif self.pattern[self.place] == "[":
                out.append(_class(self.set()))
            elif self.take(r"\(\?<(?=[A-Za-z])"):
                out.append("(?P<")
            elif self.take(r"\."):
                out.append(f"[^{_TERMINATORS}]")
            elif self.take(r"\$"):
                out.append(f"(?={_LINE_END}?\\Z)")
            else:
                out.append(self.pattern[self.place])
                self.place += 1
        return "".join(out)

    def escape(self) -> str:
        """Translate an escape outside of a set."""
        quoted = self.take(r"\\Q.*?(?:\\E|$)")
        if quoted:
            return re.escape(quoted[2:].removesuffix("\\E"))
        edge = self.take(r"\\[bB]")
        if edge:
            return _boundary() if edge == "\\b" else f"(?!{_boundary()})"
        simple = {"\\R": _LINE_END, "\\z": r"\Z", "\\Z": f"(?={_LINE_END}?\\Z)", "\\A": r"\A"}
        for text, meaning in simple.items():
            if self.pattern.startswith(text, self.place):
                self.place += 2
                return meaning
        name = self.take(r"\\k<\w+>")
        if name:
            return f"(?P={name[3:-1]})"
        back = self.take(r"\\[1-9][0-9]?")
        if back:
            return f"(?:{back})"
        if self.take(r"\\[XGN]"):
            raise self.fail("an escape that is not supported")
        return _class(self.escaped_set())

    def escaped_set(self) -> Ranges:
        """Return the characters that an escape stands for."""
        self.place += 1
        prop = self.take(r"[pP]\{\^?[^}]*\}")
        if prop:
            name = prop[1:].strip("{}")
            found = self.property(name.removeprefix("^"))
            return invert(found) if (prop[0] == "P") != name.startswith("^") else found
        hexadecimal = self.take(r"x\{[0-9a-fA-F]+\}|x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}")
        if hexadecimal:
            code = int(hexadecimal[1:].strip("{}"), 16)
            return ((code, code),)
        octal = self.take(r"0[0-7]{1,3}")
        if octal:
            return ((int(octal, 8), int(octal, 8)),)
        letter = self.take(r".")
        if letter is None:
            raise self.fail("a backslash without a character")
        found_set = _shorthand(letter)
        if found_set is not None:
            return found_set
        code = _CONTROLS.get(letter, ord(letter))
        if letter.isascii() and letter.isalnum() and letter not in _CONTROLS:
            raise self.fail(f"an unknown escape \\{letter}")
        return ((code, code),)

    def property(self, name: str) -> Ranges:
        try:
            return characters(name)
        except ValueError as error:
            raise self.fail(str(error)) from error

    def set(self) -> Ranges:
        """Return the characters of a set in brackets."""
        posix = self.take(r"\[:\^?[A-Za-z_= ]+:\]")
        if posix:
            found = self.property(posix[2:-2].removeprefix("^"))
            return invert(found) if posix[2] == "^" else found
        self.place += 1
        negative = self.take(r"\^") is not None
        found = self.operand(True)
        while True:
            operator = self.take(r"&&|--|\]")
            if operator is None:
                raise self.fail("a set without a closing bracket")
            if operator == "]":
                return invert(found) if negative else found
            other = self.operand(False)
            found = intersection(found, other if operator == "&&" else invert(other))

    def operand(self, start: bool) -> Ranges:
        """Return the members of a set up to an operator or its end."""
        parts: list[Ranges] = []
        while self.place < len(self.pattern):
            here = self.pattern[self.place]
            if self.pattern.startswith(("&&", "--"), self.place) or (here == "]" and not (start and not parts)):
                break
            if here == "[":
                parts.append(self.set())
                continue
            low = self.escaped_set() if here == "\\" else self.literal()
            single = len(low) == 1 and low[0][0] == low[0][1]
            if single and self.take(r"-(?![-\]\[])"):
                high = self.escaped_set() if self.pattern.startswith("\\", self.place) else self.literal()
                if len(high) != 1 or high[0][0] != high[0][1] or high[0][0] < low[0][0]:
                    raise self.fail("a range that does not go upwards")
                low = ((low[0][0], high[0][0]),)
            parts.append(low)
        return union(*parts)

    def literal(self) -> Ranges:
        if self.place >= len(self.pattern):
            raise self.fail("a set without a closing bracket")
        code = ord(self.pattern[self.place])
        self.place += 1
        return ((code, code),)


@Remembered("regular expressions", SOME).calls
def compile_pattern(operation: str, pattern: str) -> re.Pattern[str]:
    """Compile a pattern; raise ValueError, naming `operation`, if it is wrong or not supported."""
    try:
        return re.compile(_Translator(pattern).translate())
    except (ValueError, re.error) as error:
        raise ValueError(f"{operation}: {pattern!r} is no regular expression that is supported: {error}") from error


def compile_replacement(
    operation: str, compiled: re.Pattern[str], replace: str
) -> Callable[[re.Match[str]], str] | str:
    """Return a function that gives the replacement of a match.

    `operation` is named in messages. Raises ValueError for a group that the pattern lacks.
    """
    parts: list[str | int] = []
    place = 0
    while place < len(replace):
        found = re.compile(r"\\u([0-9a-fA-F]{4})|\\U([0-9a-fA-F]{8})|\\(.)|\$\{(\w+)\}|\$(\d+)|(.)", re.DOTALL).match(
            replace, place
        )
        if found is None or found.group(6) == "$":
            raise ValueError(f"{operation}: a lone {replace[place]!r} in the replacement {replace!r}; escape it as \\$")
        place = found.end()
        short, long, escaped, name, number, plain = found.groups()
        if short or long:
            parts.append(chr(int(short or long, 16)))
        elif name or number:
            digits = number or name
            while number and len(digits) > 1 and int(digits) > compiled.groups:
                digits = digits[:-1]
                place -= 1
            group = compiled.groupindex.get(digits, -1) if name else int(digits)
            if not 0 <= group <= compiled.groups:
                raise ValueError(f"{operation}: the replacement {replace!r} names a group that the pattern lacks")
            parts.append(group)
        else:
            parts.append(escaped or plain)
    if all(isinstance(part, str) for part in parts):
        return "".join(map(str, parts))
    return lambda match: "".join(part if isinstance(part, str) else match.group(part) or "" for part in parts)
