"""What needs fresh processes: first steps with empty and with filled caches, peak memory, one
thread against more, and steps while another program uses a core.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cases import CASES
from compare import OURS, Plan, modes_of, start
from report import duration, simple_table

__all__ = ["disturbed", "first_steps", "scaling"]


def _caches(folder: Path) -> dict[str, str]:
    """Return the settings that put every framework's cache of compiled code into a folder."""
    return {
        "MYCEL_CACHE": str(folder / "mycel"),
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "torch"),
        "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "MS_COMPILER_CACHE_ENABLE": "1",
        "MS_COMPILER_CACHE_PATH": str(folder / "mindspore"),
    }


def first_steps(plan: Plan, names: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the time of the first step of a fresh process without and with its cache, and the
    memory at the peak of three steps; of workloads without what checking their results takes.
    """
    rows = []
    for name in names:
        for framework, mode in modes_of(plan, CASES[name]):
            row: dict[str, Any] = {"case": name, "framework": framework, "mode": mode}
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                for kind in ("cold", "warm"):
                    worker = start(plan, framework, mode, settings=_caches(Path(folder)))
                    asked = {"pass": CASES[name].passes[-1]}
                    checked = not CASES[name].kind
                    answer = (
                        worker.facts if "error" in worker.facts else worker.ask(prepare=name, check=checked, **asked)
                    )
                    if "error" not in answer and not checked:
                        answer |= worker.ask(measure=name, budget=0.1, **asked)
                    if "error" in answer:
                        row["error"] = answer["error"]
                    else:
                        row[kind] = answer["first"]
                        row["bytes"] = worker.ask(memory=True).get("bytes", 0)
                    worker.end()
            rows.append(row)
    lines = [[CASES[r["case"]].title, f"{r['framework']} {r['mode']}", *_times(r), r.get("error", "")] for r in rows]
    for row, line in zip(rows, lines):
        line.insert(-1, _share(row, rows))
    heads = [
        "work",
        "framework",
        "first step, empty cache",
        "first step, filled cache",
        "peak memory",
        "of PyTorch's",
        "",
    ]
    return rows, simple_table("First steps and memory", heads, lines)


def _times(row: dict[str, Any]) -> list[str]:
    memory = f"{row['bytes'] / 2**20:.0f} MiB" if "bytes" in row else ""
    return [*(duration(row[kind]) if kind in row else "" for kind in ("cold", "warm")), memory]


def _share(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> str:
    """Return Mycel's memory over that of PyTorch's eager mode."""
    peers = [
        r["bytes"]
        for r in rows
        if (r["case"], r["framework"], r["mode"]) == (row["case"], "torch", "eager") and "bytes" in r
    ]
    return (
        f"{row['bytes'] / peers[0]:.2f}" if row["framework"] == OURS and "bytes" in row and peers and peers[0] else ""
    )


def scaling(plan: Plan, names: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return steps with one thread against steps with all of the plan's, for Mycel and PyTorch's
    modes.
    """
    rows = []
    for name in names:
        for framework, mode in modes_of(plan, CASES[name]):
            if framework not in (OURS, "torch") or mode == "pynative":
                continue
            workers = [start(plan, framework, mode, threads) for threads in (1, plan.threads)]
            try:
                # Two workers of one name: each is compared by itself, in turns of one round.
                found: list[list[float]] = [[], []]
                wrong = ""
                for turn in range(plan.rounds):
                    for i, worker in enumerate(workers):
                        if turn == 0:
                            answer = worker.ask(prepare=name, check=False, **{"pass": "step"})
                            wrong = wrong or answer.get("error", "")
                        if not wrong:
                            answer = worker.ask(measure=name, budget=plan.budget, **{"pass": "step"})
                            wrong = answer.get("error", "")
                            found[i].append(answer.get("seconds", 0.0))
            finally:
                for worker in workers:
                    worker.end()
            row: dict[str, Any] = {"case": name, "framework": framework, "mode": mode}
            if wrong:
                row["error"] = wrong
            else:
                one, more = (sorted(times)[len(times) // 2] for times in found)
                row |= {"one": one, "more": more, "speedup": one / more}
            rows.append(row)
    lines = [
        [CASES[r["case"]].title, f"{r['framework']} {r['mode']}"]
        + ([r["error"], "", ""] if "error" in r else [duration(r["one"]), duration(r["more"]), f"{r['speedup']:.2f}"])
        for r in rows
    ]
    heads = ["work", "framework", "1 thread", f"{plan.threads} threads", "speedup"]
    return rows, simple_table("Threads", heads, lines)


# A program that never rests, on one core where that can be chosen.
_BUSY = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
while True:
    pass
"""
# Seconds until frameworks are taken to have noticed that a core is busy, or free again.
_SETTLED = 0.5


@contextmanager
def _busy_core() -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", _BUSY]) as other:
        try:
            time.sleep(_SETTLED)
            yield
        finally:
            other.kill()
    time.sleep(_SETTLED)


def disturbed(plan: Plan, names: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return training steps by themselves and while another program keeps one of the cores busy.

    Medians of means: many short steps pass between two turns of the other program, and one waits.
    With two threads on two cores nobody can do better than 1.33 times the undisturbed step.
    """
    rows = []
    for name in names:
        for framework, mode in modes_of(plan, CASES[name]):
            row: dict[str, Any] = {"case": name, "framework": framework, "mode": mode}
            worker = start(plan, framework, mode)
            try:
                answer = worker.facts if "error" in worker.facts else worker.ask(prepare=name, **{"pass": "step"})
                found: dict[str, list[float]] = {"alone": [], "shared": []}
                for _ in range(plan.rounds):
                    if "error" in answer:
                        break
                    answer = worker.ask(measure=name, budget=plan.budget, **{"pass": "step"})
                    found["alone"].append(answer.get("mean", 0.0))
                    with _busy_core():
                        shared = worker.ask(measure=name, budget=plan.budget, **{"pass": "step"})
                    found["shared"].append(shared.get("mean", 0.0))
            finally:
                worker.end()
            if "error" in answer:
                row["error"] = answer["error"]
            else:
                row |= {kind: statistics.median(times) for kind, times in found.items()}
                row["slowdown"] = row["shared"] / row["alone"]
            rows.append(row)
    lines = [
        [CASES[r["case"]].title, f"{r['framework']} {r['mode']}"]
        + ([r["error"], "", ""] if "error" in r else _slowed(r))
        for r in rows
    ]
    heads = ["work", "framework", "alone", "one core busy", "times slower"]
    return rows, simple_table("With another program on a core", heads, lines)


def _slowed(row: dict[str, Any]) -> list[str]:
    return [duration(row["alone"]), duration(row["shared"]), f"{row['slowdown']:.2f}"]
