"""Damaged copies of Protocol Buffers messages: their fields are changed as fields, and the lengths
around them follow.
"""

from __future__ import annotations

import random as random_module

from mycel._src.foundation.files.protobuf_wire import WireError, field, fields, varint

_NUMBERS = (
    0,
    1,
    2,
    3,
    7,
    127,
    128,
    255,
    2**15,
    2**16,
    2**31 - 1,
    2**31,
    2**32,
    2**40,
    2**53,
    2**58,
    2**61,
    2**62,
    2**63 - 1,
    2**63,
    2**64 - 1,
)


def mutated(random: random_module.Random, content: bytes, depth: int = 0) -> bytes:
    """A copy of a message with a field dropped, doubled, moved, renumbered, nested, or given an
    absurd value.
    """
    try:
        parts = list(fields(content))
    except WireError:
        parts = []
    if not parts or depth > 6:
        return _bytes(random, content)
    at = random.randrange(len(parts))
    number, value = parts[at]
    kind = random.randrange(9)
    if kind == 0:
        del parts[at]
    elif kind == 1:
        parts[at:at] = [parts[at]] * random.choice((1, 1, 2, 40))
    elif kind == 2:
        other = random.randrange(len(parts))
        parts[at], parts[other] = parts[other], parts[at]
    elif kind == 3:
        parts[at] = (random.choice((1, 2, 3, 4, 5, 6, 7, 100, 2**28)), value)
    elif kind == 4 and isinstance(value, bytes):
        nested = value
        for _ in range(random.choice((1, 3, 400))):
            nested = field(number, nested)
        parts[at] = (number, nested)
    elif isinstance(value, int):
        parts[at] = (number, random.choice(_NUMBERS) if random.random() < 0.8 else value + random.choice((-1, 1)))
    else:
        parts[at] = (number, mutated(random, value, depth + 1))
    found = b"".join([field(n, v % (1 << 64) if isinstance(v, int) else v) for n, v in parts])
    return _wrong_length(random, found) if random.random() < 0.1 else found


def _bytes(random: random_module.Random, content: bytes) -> bytes:
    kind = random.randrange(5)
    if kind == 0:
        return content[: random.randrange(len(content) + 1)]
    if kind == 1:
        return content + random.randbytes(random.choice((1, 2, 3, 4, 8)))
    if kind == 2:
        return b"".join([varint(random.choice(_NUMBERS)) for _ in range(random.choice((1, 2, 3, 33, 3000)))])
    if kind == 3:
        return random.choice(
            (b"", b"str", b"Float32", b"Int64", b"Bool", b"BFloat16", b"\xff\xfe", b"\0" * 8, b"Float4")
        )
    found = bytearray(content or b"\0")
    found[random.randrange(len(found))] ^= 1 << random.randrange(8)
    return bytes(found)


def _wrong_length(random: random_module.Random, content: bytes) -> bytes:
    """The message in a field whose length is not its own."""
    return varint(random.choice((1, 2, 3)) << 3 | 2) + varint(random.choice((len(content) + 1, *_NUMBERS))) + content
