"""Files of sound: WAVE and NIST SPHERE."""

from __future__ import annotations

import functools
import random as random_module
from pathlib import Path

import numpy as np

from mycel.dataset.sets.audio import read_sphere, read_wav
from tests.dataset import audio_set_files
from tests.fuzz.drivers._damage import clear, damage

CORPUS = 80
_WORDS = (
    b"RIFF",
    b"WAVE",
    b"fmt ",
    b"data",
    b"LIST",
    b"\xfe\xff\0\0",
    b"-i 99999999999",
    b"-i -4",
    b"-s3 ulaw",
    b"end_head\n",
    b"\0\0\0\0",
)


@functools.cache
def sound() -> tuple[tuple[str, bytes], ...]:
    waves = [audio_set_files.wav(n, 20, channels=n + 1) for n in range(2)]
    return (*(("a.wav", content) for content in waves), ("a.sph", audio_set_files.sphere(1, 40)))


# A part that claims to be longer than any memory.
KEPT = (("a.wav", sound()[0][1].replace(b"data", b"data\xb2\x9e\xe6\x9a"), 0.0, 0.0),)


def case(random: random_module.Random) -> tuple[str, bytes, float, float]:
    name, content = random.choice(sound())
    times = (0.0, 0.001, 0.0025, 1e9, -1.0)
    return name, damage(random, content, words=_WORDS), random.choice(times), random.choice(times)


def run(case: tuple[str, bytes, float, float]) -> None:
    name, content, start, end = case
    Path(name).write_bytes(content)
    wave, rate = read_wav("YesNoDataset", name) if name == "a.wav" else read_sphere("TedliumDataset", name, start, end)
    assert wave.dtype == np.float32 and wave.ndim == 2 and wave.nbytes < 1 << 20 and rate >= 0


def judge(error: BaseException, case: tuple[str, bytes, float, float]) -> str:
    return clear(error, (case[0],))
