"""Limits of addresses in every phase: what does not fit is a MemoryError that says what needed how
much; the process never ends by itself.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="addresses are limited and counted as on Linux")

CHILD = """
import os, resource, sys
import numpy as np
import mycel as ms
from mycel import Tensor, ops

x = Tensor(np.ones((64, 64), np.float32))
ops.exp(x) + x

def growing():
    y = x
    for _ in range(30):
        y = ops.concat((y, y))

def products():
    for n in range(200, 4000, 200):
        a = ops.ones((n, n))
        ops.matmul(a, a)

def compiled():
    for k in range(60):
        ms.jit(lambda v, k=k: ops.softmax(ops.exp(v * (k + 1)), k % 2).sum() + ops.tanh(v + k).mean())(x)

def staged():
    @ms.jit
    def g(v):
        for k in range(400):
            v = ops.sin(v) * 1.5 + k
        return v
    g(x)

def varying():
    h = ms.jit(lambda v: (v[:, None] * v[None, :] + 1)[v > 0])
    for n in (10, 200, 3000, 20000):
        h(Tensor(np.ones(n, np.float32)))

work = dict(growing=growing, products=products, compiled=compiled, staged=staged, varying=varying)[sys.argv[1]]
taken = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
limit = taken + int(sys.argv[2]) * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    work()
except MemoryError as error:
    said = str(error)
    amounts = ("bytes", "KiB", "MiB", "GiB")
    print("refused" if any(word in said for word in amounts) else f"says nothing: {said!r}")
else:
    print("done")
sys.stdout.flush()
os._exit(0)
"""


@pytest.mark.parametrize(
    "phase, room", [("growing", 40), ("products", 40), ("compiled", 16), ("staged", 16), ("varying", 40)]
)
def test_a_phase_that_runs_out(phase: str, room: int) -> None:
    given = {**os.environ, "PYTHONWARNINGS": "ignore"}
    child = subprocess.run(
        [sys.executable, "-c", CHILD, phase, str(room)], capture_output=True, text=True, timeout=120, env=given
    )
    assert child.returncode == 0, f"exit {child.returncode}: {child.stderr[-600:]}"
    assert child.stdout.strip() in ("refused", "done"), child.stdout
