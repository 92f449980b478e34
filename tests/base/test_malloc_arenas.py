"""Heaps of the C library: threads of pipelines share two, unless the environment says otherwise."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

glibc = sys.platform == "linux" and hasattr(ctypes.CDLL(None), "gnu_get_libc_version")

# Eight threads allocate at once, after a pipeline has begun; printed is how many heaps there are.
PROGRAM = """
import ctypes, re, threading
import numpy as np
import mycel.dataset as ds
from mycel._src.foundation.system.malloc_arenas import share_heaps

data = ds.NumpySlicesDataset(np.zeros((8, 4), np.float32)).map(lambda x: x + 1, num_parallel_workers=2)
assert len(list(data.create_tuple_iterator(num_epochs=1))) == 8

together = threading.Barrier(8)
def hold():
    together.wait()
    held = [bytearray(100_000) for _ in range(10)]
    together.wait()
threads = [threading.Thread(target=hold) for _ in range(8)]
[t.start() for t in threads], [t.join() for t in threads]

libc = ctypes.CDLL(None)
libc.open_memstream.restype = ctypes.c_void_p
text, size = ctypes.c_char_p(), ctypes.c_size_t()
file = libc.open_memstream(ctypes.byref(text), ctypes.byref(size))
libc.malloc_info(0, ctypes.c_void_p(file))
libc.fclose(ctypes.c_void_p(file))
print(share_heaps(), len(re.findall(rb"<heap ", text.value)))
"""


def heaps(**environment: str) -> list[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("MALLOC_ARENA_MAX", "GLIBC_TUNABLES")}
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**kept, **environment}, check=False
    )
    assert not told.returncode, told.stderr
    return told.stdout.split()


@pytest.mark.skipif(not glibc, reason="another C library")
def test_threads_share_two_heaps() -> None:
    answer, count = heaps()
    # Threads of libraries may have had heaps before.
    assert answer == "True" and int(count) <= 2 + (os.cpu_count() or 1) // 4


@pytest.mark.skipif(not glibc, reason="another C library")
@pytest.mark.parametrize(
    "environment", [{"MALLOC_ARENA_MAX": "5"}, {"GLIBC_TUNABLES": "glibc.malloc.arena_max=5"}], ids=list
)
def test_what_the_environment_says_holds(environment: dict[str, str]) -> None:
    answer, count = heaps(**environment)
    assert answer == "False" and int(count) == 5
