"""How a worker process answers the comparison: one JSON line in, one JSON line out.

A worker runs one framework in one mode. Requests name a case and a pass ("forward", "backward" or
"step"): {"prepare": CASE, "pass": PASS} builds it, runs it once, and answers with the time of both
(`built`, `first`: compilation is in the first run), and with what it computed (`check`);
{"measure": CASE, "pass": PASS, "budget": SECONDS} answers with the median time of a repetition, the
least and the mean, from repetitions for about that long; {"release": CASE} forgets it; {"memory":
true} answers with the bytes at the process's peak since it greeted; {"peak": CASE, "pass": PASS,
"steps": COUNT} builds a case, repeats it, and answers with the bytes at the peak of that beyond
those of a process that has trained a tiny network, and with those of the whole process. What fails
is answered with {"error": TEXT}, and the worker goes on. The worker greets with its facts, of which
`imports` is the time that importing the framework took.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Prepared", "Side", "serve"]


@dataclass
class Prepared:
    """Work that is ready to run: `repeat` does it once and waits until it is done.

    `check` runs it and gives digests of what it computed.

    `timed(count)`, if given, is the time in seconds of that many repetitions, for work of
    microseconds. `parameters` counts the trained numbers.
    """

    repeat: Callable[[], Any]
    check: Callable[[], list[Any]]
    parameters: int = 0
    timed: Callable[[int], float] | None = None


class Side(Protocol):
    """One framework in one mode."""

    def prepare(self, case: Any, kind: str) -> Prepared: ...

    def facts(self) -> Mapping[str, Any]: ...


def serve(side: Side, cases: Mapping[str, Any], imports: float) -> None:
    """Answer requests on standard input until it closes.

    `imports` is the time in seconds that importing the framework took.
    """
    # What a framework prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    prepared: dict[tuple[str, str], Prepared] = {}

    def answer(content: Mapping[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    start = _memory("VmRSS")
    answer({**side.facts(), "imports": imports})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                case, kind = cases[request["prepare"]], request["pass"]
                started = time.perf_counter()
                work = prepared[case.name, kind] = side.prepare(case, kind)
                built = time.perf_counter()
                work.repeat()
                times = {"built": built - started, "first": time.perf_counter() - built}
                check = work.check() if request.get("check", True) else []
                answer({**times, "check": check, "parameters": work.parameters})
            elif "measure" in request:
                typical, best, mean = _measure(prepared[request["measure"], request["pass"]], request["budget"])
                answer({"seconds": typical, "best": best, "mean": mean})
            elif "peak" in request:
                answer(_peak(side, cases, request["peak"], request["pass"], request["steps"]))
            elif "release" in request:
                for key in [key for key in prepared if key[0] == request["release"]]:
                    del prepared[key]
                gc.collect()
                answer({})
            else:
                answer({"bytes": max(0, _memory("VmHWM") - start)})
        except Exception as error:
            traceback.print_exc()
            lines = [line for line in map(str.strip, str(error).splitlines()) if line.strip("- ")]
            answer({"error": f"{type(error).__name__}: {lines[0][:300] if lines else ''}"})


def _measure(work: Prepared, budget: float) -> tuple[float, float, float]:
    """Return the median, the least and the mean time of a repetition."""
    if work.timed is not None:
        count = 100
        while (spent := work.timed(count)) < budget / 4:
            count *= 4
        return spent / count, spent / count, spent / count
    times: list[float] = []
    spent = 0.0
    while not times or (spent < budget and len(times) < 1000):
        started = time.perf_counter()
        work.repeat()
        times.append(time.perf_counter() - started)
        spent += times[-1]
    return statistics.median(times), min(times), spent / len(times)


# The network that every framework trains before memory is measured, so that it has loaded what it
# loads at first use.
_TINY = "wl_tiny"


def _peak(side: Side, cases: Mapping[str, Any], name: str, kind: str, steps: int) -> dict[str, int]:
    """Return the bytes at the peak of so many repetitions of a case, beyond those that the process
    had before, and those of the whole process.
    """
    tiny = side.prepare(cases[_TINY], "step")
    for _ in range(2):
        tiny.repeat()
    del tiny
    gc.collect()
    before = _memory("VmRSS")
    work = side.prepare(cases[name], kind)
    for _ in range(steps):
        work.repeat()
    return {"bytes": max(0, _memory("VmHWM") - before), "whole": _memory("VmHWM")}


def _memory(field: str) -> int:
    """Return a field of this process's memory in bytes; 0 where the system does not tell."""
    try:
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0
