"""Cases that fail in each of the ways that the harness knows; no driver of its own."""

from __future__ import annotations

import ctypes
import random
import time

KEPT = ("good", "crash", "hang", "memory", "silent", "inner")
SECONDS, MEMORY = 0.5, 1 << 30


def case(random: random.Random) -> str:
    return random.choice(KEPT)


def run(case: str) -> object:
    if case == "crash":
        return ctypes.string_at(0)
    if case == "hang":
        time.sleep(60)
    if case == "memory":
        return bytes(4 << 30)
    if case == "silent":
        raise ValueError
    if case == "inner":
        return {}["name"]
    raise ValueError("words")
