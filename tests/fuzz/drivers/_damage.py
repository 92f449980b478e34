"""Damaged copies of files, and what a reader may say of them."""

from __future__ import annotations

import random as random_module
import re
import struct
from collections.abc import Sequence

_NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    127,
    128,
    255,
    256,
    32767,
    65535,
    65536,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**53,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)
_WORDS = (
    b"-1",
    b"0",
    b"1e999",
    b"nan",
    b"NaN",
    b"null",
    b"true",
    b"[]",
    b"{}",
    b'""',
    b"99999999999999999999999",
    b"\xff\xfe",
    b"\0",
    b"[" * 3000,
    b'{"a":' * 2000,
    b"&#0;",
    b"\xed\xa0\x80",
)


def damage(random: random_module.Random, content: bytes, most: int = 4, words: Sequence[bytes] = _WORDS) -> bytes:
    """A copy with some bytes changed, cut out, doubled, or replaced by numbers that matter."""
    found = bytearray(content)
    for _ in range(random.randint(1, most)):
        size = len(found)
        at = random.randrange(size + 1) if random.random() < 0.6 else min(size, int(random.expovariate(1 / 40)))
        kind = random.randrange(10)
        if kind == 0 and at < size:
            found[at] ^= 1 << random.randrange(8)
        elif kind == 1 and at < size:
            found[at] = random.choice((0, 1, 127, 128, 255, random.randrange(256)))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            del found[at : at + random.randint(1, 16)]
        elif kind == 4:
            found[at:at] = random.randbytes(random.randint(1, 16))
        elif kind == 5:
            length = random.choice((1, 2, 4, 8))
            form = random.choice("<>") + {1: "B", 2: "H", 4: "I", 8: "Q"}[length]
            number = random.choice(_NUMBERS) + random.choice((0, 0, 1, -1))
            found[at : at + length] = struct.pack(form, number % 256**length)
        elif kind == 6:
            length = random.randint(1, 64)
            other = random.randrange(size + 1)
            found[at : at + length] = found[other : other + length]
        elif kind == 7:
            length = random.randint(1, 200)
            found[at:at] = found[at : at + length]
        elif kind == 8:
            found[at : at + random.randint(0, 8)] = random.choice(words)
        else:
            numbers = [match.span() for match in re.finditer(rb"-?\d+(\.\d+)?", bytes(found[:20000]))]
            if numbers:
                low, high = random.choice(numbers)
                text = str(random.choice((*_NUMBERS, -1, -(2**63), "1e400", "0.5", '"x"', "null", "[1]"))).encode()
                found[low:high] = text
    return bytes(found)


def clear(error: BaseException, names: Sequence[str]) -> str:
    """What is wrong with an error about a damaged file: "" if it is one of ours, raised on purpose,
    that names the file or the reader.
    """
    kind = type(error)
    own = kind.__module__.startswith("mycel.")
    if not own and kind not in (ValueError, RuntimeError, OSError, FileNotFoundError, NotImplementedError, TypeError):
        return f"{kind.__name__} comes from within"
    if isinstance(error, OSError) and error.filename:
        return ""
    if kind is TypeError and not any(name in str(error) for name in names):
        return "a TypeError that nobody wrote"
    if not any(name in str(error) for name in names):
        return f"does not name any of {', '.join(names)}"
    return ""
