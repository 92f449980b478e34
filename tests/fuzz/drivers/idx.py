"""IDX files, plain and compressed."""

from __future__ import annotations

import functools
import gzip
import random as random_module
import struct
import tempfile
from pathlib import Path

import numpy as np

from mycel._src.foundation.files.idx_format import read_idx, write_idx
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 100
_ARRAYS = (
    np.arange(60, dtype=np.uint8).reshape(3, 4, 5),
    np.arange(7, dtype=np.int16),
    np.linspace(0, 1, 12).reshape(3, 4),
    np.zeros((0, 4), np.int32),
)


@functools.cache
def sound(number: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        write_idx(Path(folder, "a"), _ARRAYS[number])
        return Path(folder, "a").read_bytes()


@functools.cache
def bomb() -> bytes:
    """An array of 320 MiB, in some MiB or less."""
    return gzip.compress(struct.pack(">HBBI", 0, 8, 1, 320 << 20) + bytes(320 << 20), 1)


def case(random: random_module.Random) -> tuple[str, bytes]:
    content = sound(random.randrange(len(_ARRAYS)))
    packed = random.random() < 0.5
    if packed and random.random() < 0.0005:
        return "a.gz", b"bomb"
    if not packed or random.random() < 0.6:
        content = damage(random, content)
    if packed:
        content = gzip.compress(content, random.randrange(10), mtime=0) * random.choice((1, 1, 1, 2))
        if random.random() < 0.6:
            content = damage(random, content)
    return "a.gz" if packed else "a", content


def run(case: tuple[str, bytes]) -> None:
    name, content = case
    Path(name).write_bytes(bomb() if content == b"bomb" else content)
    array = read_idx(name)
    assert array.size < 10**6 and array.copy().nbytes == array.nbytes


def judge(error: BaseException, case: tuple[str, bytes]) -> str:
    return clear(error, (f"{case[0]} ", f"{case[0]}'"))
