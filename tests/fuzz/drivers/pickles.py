"""Pickles of CIFAR's: damaged bytes, and programs of operations drawn at random.

No memory is taken that the file has not, and nothing runs.
"""

from __future__ import annotations

import pickle
import random as random_module
from typing import Any

import numpy as np

from mycel.mindrecord import safe_unpickling
from tests.fuzz.drivers._damage import damage

CORPUS = 200
MEMORY = 256 << 20
_CONTENT = {
    b"data": np.arange(24, dtype=np.uint8).reshape(2, 12),
    b"labels": [1, 2],
    b"f": np.linspace(0, 1, 3),
    b"names": [b"a", "b"],
}
_SOUND = [pickle.dumps(_CONTENT, protocol=k) for k in (0, 1, 2, 3, 4)]
_OPERATIONS = [
    b"(",
    b".",
    b"0",
    b"1",
    b"2",
    b"N",
    b"I1\n",
    b"J\xff\xff\xff\x7f",
    b"K\x07",
    b"M\x07\x00",
    b"]",
    b"}",
    b")",
    b"t",
    b"l",
    b"d",
    b"a",
    b"e",
    b"s",
    b"u",
    b"b",
    b"R",
    b"o",
    b"\x81",
    b"q\x00",
    b"q\xff",
    b"r\xff\xff\xff\x7f",
    b"h\x00",
    b"j\xff\xff\xff\x7f",
    b"cnumpy\nndarray\n",
    b"cnumpy\ndtype\n",
    b"cnumpy.core.multiarray\n_reconstruct\n",
    b"c_codecs\nencode\n",
    b"cos\nsystem\n",
    b"cbuiltins\neval\n",
    b"U\x02u1",
    b"U\x01O",
    b"U\x01<",
    b"U\x08AAAAAAAA",
    b"X\x02\x00\x00\x00u1",
    b"\x85",
    b"\x86",
    b"\x87",
    b"\x88",
    b"\x96" + b"\xff" * 8,
    b"\x8e" + b"\xff" * 7 + b"\x7f",
    b"\x95" + b"\xff" * 8,
    b"B\xff\xff\xff\xff",
    b"\x8a\x01\x07",
    b"\x8b\xff\xff\xff\x7f",
    b"L99999999999999999999L\n",
    b"F1e999\n",
    b"P1\n",
    b"Q",
    b"\x82\x01",
    b"\x80\x02",
]


def case(random: random_module.Random) -> bytes:
    content = random.choice(_SOUND)
    if random.random() < 0.6:
        return damage(random, content)
    drawn = b"".join([random.choice(_OPERATIONS) for _ in range(random.randint(1, 30))])
    at = random.randrange(len(content))
    return random.choice((drawn + b".", b"\x80\x02" + drawn + b".", content[:at] + drawn + content[at:]))


def run(case: bytes) -> None:
    found = safe_unpickling.load(case)
    for value in found.values() if isinstance(found, dict) else [found]:
        if isinstance(value, np.ndarray):
            assert value.dtype.kind in "iufb" and value.nbytes <= len(case)
            value.copy()


def judge(error: BaseException, case: Any) -> str:
    return "" if type(error) is ValueError else f"{type(error).__name__} comes from within"
