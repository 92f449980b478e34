"""Searches for schedules: what they choose is legal, used, kept, and never in the way."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mycel as ms
from mycel import te
from mycel._src.compiler.loops.evaluation import run
from mycel._src.compiler.prims.base import REGISTRY
from mycel._src.foundation.files import code_cache
from mycel.te import schedule_search
from mycel.te.schedule_sketches import Tape, sketch
from mycel.te.schedules import Schedule, scheduled
from tests.te.random_programs import SIZE, drawn

rng = np.random.default_rng(4)


def _heat() -> Any:
    @te.operator
    def heat(u, steps):
        v = te.empty((2, u.shape[0]))
        for a in range(u.shape[0]):
            v[0, a] = u[a]
            v[1, a] = u[a]
        for t in range(steps):
            for i in range(1, u.shape[0] - 1):
                v[(t + 1) % 2, i] = v[t % 2, i] + 0.2 * (v[t % 2, i - 1] - 2 * v[t % 2, i] + v[t % 2, i + 1])
        w = te.empty(u.shape)
        for b in range(u.shape[0]):
            w[b] = v[steps % 2, b]
        return w

    return heat


def _expected(u: Any, steps: int) -> Any:
    for _ in range(steps):
        v = u.copy()
        v[1:-1] += 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:])
        u = v
    return u


U = rng.standard_normal(37)


@pytest.fixture
def falling(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let each run that is measured take less time than the one before."""
    count = [0]

    def seconds(call: Any) -> float:
        count[0] += 1
        call()
        return 1.0 / (1 + count[0]) ** 2

    monkeypatch.setattr(schedule_search, "_seconds", seconds)
    return count


def test_what_is_found_is_used_for_its_sizes(falling: list[int]) -> None:
    heat = _heat()
    u, shorter = ms.Tensor(U), ms.Tensor(U[:20])
    compiled = ms.jit(lambda u: heat(u, 6))
    want = _expected(U, 6)
    assert np.allclose(compiled(u).asnumpy(), want)
    found = heat.search(u, 6, seconds=1.0, again=True)
    assert found.schedule.startswith("@heat.schedule\ndef _(s):\n    ") and found.tried > 0 and not found.known
    assert found.schedule in str(found)
    assert heat.program(u, 6) == found.program and heat.program(shorter, 6).plan is None
    assert np.allclose(heat(u, 6).asnumpy(), want) and np.allclose(compiled(u).asnumpy(), want)
    assert np.allclose(heat(shorter, 6).asnumpy(), _expected(U[:20], 6))
    assert found.schedule.splitlines()[2].strip() in str(ms.explain(compiled, u))
    # What can be pasted is what was found.
    names: dict[str, Any] = {}
    exec(found.schedule.replace("@heat.schedule\n", ""), names)
    assert scheduled(replace(found.program, plan=None), names["_"], False) == found.program
    # Known, without a run.
    before = falling[0]
    again = heat.search(u, 6, seconds=1.0)
    assert again.known and again.program == found.program and falling[0] == before
    assert "known from an earlier search" in str(again)
    # A schedule by hand takes its place.
    heat.schedule(lambda s: None)
    assert heat.program(u, 6) != found.program


def test_nothing_faster_leaves_the_operator_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(1, 1 << 30))
    monkeypatch.setattr(schedule_search, "_seconds", lambda call: float(next(times)))
    heat = _heat()
    u = ms.Tensor(U)
    program = heat.program(u, 4)
    found = heat.search(u, 4, seconds=0.3, again=True)
    assert found.schedule == "" and "no schedule" in str(found) and heat.program(u, 4) is program
    assert heat.search(u, 4).known


def test_an_interrupt_keeps_the_best_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    count = [0]

    def seconds(call: Any) -> float:
        count[0] += 1
        if count[0] == 30:
            raise KeyboardInterrupt
        return 1.0 / count[0]

    monkeypatch.setattr(schedule_search, "_seconds", seconds)
    heat = _heat()
    found = heat.search(ms.Tensor(U), 5, seconds=1e9, again=True)
    assert found.schedule and np.allclose(heat(ms.Tensor(U), 5).asnumpy(), _expected(U, 5))


def test_another_process_finds_what_is_kept(tmp_path: Path) -> None:
    program = tmp_path / "run.py"
    program.write_text(
        "import sys, numpy as np, mycel as ms\n"
        "from mycel import te\n"
        "from mycel.te import schedule_search as search\n"
        "count = [0]\n"
        "def seconds(call):\n"
        "    count[0] += 1\n"
        "    return 1 / count[0] ** 2\n"
        "search._seconds = seconds\n"
        "@te.operator\n"
        "def scaled(x):\n"
        "    y = te.empty(x.shape)\n"
        "    for i in range(x.shape[0]):\n"
        "        for j in range(x.shape[1]):\n"
        "            y[i, j] = 2 * x[i, j]\n"
        "    return y\n"
        "x = ms.Tensor(np.ones((9, 33)))\n"
        "found = scaled.search(x, seconds=0.5)\n"
        "assert (scaled(x).asnumpy() == 2).all()\n"
        "print(found.known, hash(found.schedule.encode()) and found.schedule)\n"
    )
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(program)],
            env={"MYCEL_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(done.stdout.partition(" "))
    assert [s[0] for s in said] == ["False", "True"] and said[0][2] == said[1][2] and "@scaled" in said[0][2]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"tape": 3, "words": ""}', b'{"tape": [2.0], "words": ""}', b'{"tape": ["a"], "words": "x"}']
    + [json.dumps({"tape": [0.5] * 20, "words": "0"}).encode()],
)
def test_files_that_are_not_what_was_kept(content: bytes, monkeypatch: pytest.MonkeyPatch, falling: list[int]) -> None:
    heat = _heat()
    u = ms.Tensor(U)
    usual = code_cache.read
    monkeypatch.setattr(
        code_cache, "read", lambda kind, *k: content if kind.startswith("schedules") else usual(kind, *k)
    )
    found = heat.search(u, 3, seconds=0.1)
    assert not found.known and np.allclose(heat(u, 3).asnumpy(), _expected(U, 3))


def test_within_compiled_functions_it_is_refused() -> None:
    heat = _heat()
    with pytest.raises(NotImplementedError, match="outside of compiled code"):
        ms.jit(lambda u: heat.search(u, 3))(ms.Tensor(U))


@pytest.mark.parametrize("seed", range(40))
def test_random_sketches_are_legal(seed: int) -> None:
    program = drawn(seed // 2)
    schedule = Schedule(program, seed % 2 == 1)
    sketch(schedule, Tape((), random.Random(seed)))
    a, x = rng.standard_normal((SIZE, SIZE)), rng.standard_normal(SIZE)
    table = lambda name: REGISTRY[name].reference
    want = run(program, [a, x], table)
    for got, w in zip(run(schedule.program, [a, x], table), want):
        assert not np.isfinite(w).all() or np.abs(got - w).max(initial=0) < 1e-9
