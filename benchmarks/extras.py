"""What needs fresh processes: memory at the peak, one thread against more, and steps while another
program uses a core.
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
from first import caches
from report import duration, simple_table

__all__ = ["disturbed", "memory", "scaling"]


# Repetitions of which the peak is taken.
_STEPS = 5


def memory(plan: Plan, names: Sequence[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the memory at the peak of a few repetitions in a fresh process: of PyTorch op by op,
    and of Mycel compiled, with a filled cache, and op by op.

    What a process has after it has trained a tiny network is not counted; weights and inputs are.
    """
    rows = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for name in names:
            found: dict[str, Any] = {}
            for framework, mode in (("torch", "eager"), (OURS, "graph"), (OURS, "pynative")):
                if framework not in plan.pythons:
                    continue
                # Only the second process of a compiled program takes it from the cache.
                for _ in range(1 if framework == "torch" else 2):
                    worker = start(plan, framework, mode, settings=caches(Path(folder)))
                    asked = {"pass": CASES[name].passes[-1], "steps": _STEPS}
                    answer = worker.facts if "error" in worker.facts else worker.ask(peak=name, **asked)
                    worker.end()
                found[f"{framework} {mode}"] = answer
            rows.append({"case": name, "framework": OURS, **found})
    kinds = list(dict.fromkeys(k for r in rows for k in r if k not in ("case", "framework")))
    lines = [[CASES[r["case"]].title, *[_peak(r, k) for k in kinds]] for r in rows]
    return rows, simple_table("Memory at the peak, beyond that of a tiny network", ["work", *kinds], lines)


def _peak(row: dict[str, Any], kind: str) -> str:
    """Return the memory of a kind of run, and its ratio to PyTorch's."""
    answer, peer = row[kind], row.get("torch eager", {})
    if "error" in answer:
        return str(answer["error"])
    text = f"{answer['bytes'] / 2**20:.0f} MiB"
    return text if kind == "torch eager" or not peer.get("bytes") else f"{text}, {answer['bytes'] / peer['bytes']:.2f}"


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
