"""Ctrl-C while compiled code runs: loops, recursions, rounds of a sink, programs of many steps and
long kernels end soon, and everything goes on afterwards.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

PROGRAM = r"""
import os, signal, sys, threading, time
import numpy as np
import mycel as ms
from mycel import Tensor, ops


@ms.jit
def forever(x):
    while x.sum() < 0.5:
        x = x * 0.0
    return x


@ms.jit
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + fib(n - 2)


@ms.jit
def backwards(x):
    def long(x):
        i = Tensor(0)
        while i < 10**7:
            x = x * 1.0
            i = i + 1
        return x.sum()

    while x.sum() < 0.5:
        x = x + ms.grad(long)(x) * 0.0
    return x


@ms.jit
def steps(x):
    for _ in range(300):
        x = ops.sort(x)[0] + 1.0
    return x


weight = ms.Parameter(Tensor(np.zeros(4, np.float32)), name="w")


@ms.jit
def writing(x):
    ops.assign(weight, weight + 1)
    while x.sum() < 0.5:
        x = x * 0.0
    return x


@ms.jit
def round_(x):
    ops.assign(weight, weight + x)
    return weight.sum()


def rounds():
    from mycel._src.staging.compiled.repeated_execution import Repeater

    run = Repeater(round_)
    batches = [(Tensor(np.ones(4, np.float32)),) for _ in range(20000)]
    while True:
        run(batches)


def other_thread():
    t = threading.Thread(target=lambda: backwards(Tensor([0.0])), daemon=True)
    t.start()
    t.join()


# Single kernels that would run for hours: by the number of rows that threads share, and by the length of one row.
many_rows = ms.jit(lambda x: (ops.sin(x[:, None]) * x[None]).sum(-1))
long_rows = {
    "one sum": ms.jit(lambda x: ops.tile(x, (2**44,)).sum()),
    "half sum": ms.jit(lambda x: ops.tile(x, (2**44,)).astype(ms.float16).sum()),
    "position": ms.jit(lambda x: ops.tile(x, (2**44,)).argmax()),
}

zero = Tensor([0.0])
cases = {
    "rows": lambda: many_rows(Tensor(np.zeros(2**22, np.float32))),
    **{name: lambda f=f: f(zero) for name, f in long_rows.items()},
    "loop": lambda: forever(zero),
    "large loop": lambda: forever(Tensor(np.zeros(1 << 18, np.float32))),
    "recursion": lambda: fib(Tensor(70)),
    "gradient of a loop": lambda: backwards(zero),
    "steps": lambda: steps(Tensor(np.random.rand(1 << 20).astype(np.float32))),
    "parameters": lambda: writing(zero),
    "rounds": rounds,
    "another thread": other_thread,
}


def interrupt(heard):
    # A signal that comes before the run begins is its own: then another is sent.
    while not heard:
        time.sleep(0.4)
        if not heard:
            os.kill(os.getpid(), signal.SIGINT)


def check(run):
    heard = []
    sender = threading.Thread(target=interrupt, args=(heard,), daemon=True)
    try:
        sender.start()
        run()
    except KeyboardInterrupt:
        heard.append(True)
    sender.join()
    assert heard


def told():
    # A handler that does not raise lets what runs go on.
    heard = []

    def note(number, frame):
        heard.append(number)
        if len(heard) == 2:
            raise ZeroDivisionError("told twice")

    before = signal.signal(signal.SIGINT, note)

    def send_twice():
        for _ in range(2):
            time.sleep(0.3)
            os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=send_twice, daemon=True).start()
    try:
        forever(zero)
    except ZeroDivisionError:
        assert len(heard) == 2
    signal.signal(signal.SIGINT, before)


forever(Tensor([1.0])), fib(Tensor(3))
for name in sys.argv[1:]:
    told() if name == "told" else check(cases[name])
    if name == "rounds":
        values = set(weight.asnumpy().tolist())
        assert len(values) == 1, values
        before = values.pop()
        round_(Tensor(np.ones(4, np.float32)))
        assert weight.asnumpy().tolist() == [before + 1] * 4
    if name != "another thread":
        assert forever(Tensor([1.0])).tolist() == [1.0]
        assert float(fib(Tensor(10))) == 55
    print("heard", name, flush=True)
os._exit(0)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("interrupts") / "program.py"
    path.write_text(PROGRAM)
    return str(path)


@pytest.mark.skipif(os.name != "posix" or threading.current_thread() is not threading.main_thread(), reason="signals")
@pytest.mark.parametrize(
    "names",
    [
        ("loop", "told", "large loop", "recursion", "parameters"),
        ("gradient of a loop", "steps", "rounds", "another thread"),
        ("rows", "one sum", "half sum", "position"),
    ],
    ids=["loops", "others", "kernels"],
)
def test_compiled_code_hears_ctrl_c(program, names):
    run = subprocess.run([sys.executable, program, *names], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0 and run.stdout.splitlines() == [f"heard {n}" for n in names], run.stdout + run.stderr
    assert "Exception ignored" not in run.stderr
