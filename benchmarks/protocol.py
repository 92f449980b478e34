"""How a worker process answers the comparison: one JSON line in, one JSON line out, standard library only.

A worker offers workloads, each a function that prepares one and gives a `Prepared`. Requests: {"prepare": NAME} is answered with the
first repetition's time, which includes compilation; {"measure": NAME, "count": N} with the time of one repetition, in seconds. A
workload that fails is answered with {"error": TEXT}, and the worker goes on.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass
class Prepared:
    """A workload ready to run: `repeat` does the work once; `parameters` counts the trained numbers.

    Work of microseconds is timed as a whole block (`block`), so that reading the clock does not count; `settle`, if given, ends
    the block by making sure that the work was done.
    """

    repeat: Callable[[], Any]
    parameters: int = 0
    block: bool = False
    settle: Callable[[Any], Any] = lambda result: None


def serve(workloads: Mapping[str, Callable[[], Prepared]], facts: Mapping[str, Any]) -> None:
    """Answer requests on standard input until it closes."""
    # What a framework prints must not get between the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    prepared: dict[str, Prepared] = {}

    def answer(content: Mapping[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    answer(facts)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                started = time.perf_counter()
                work = prepared[request["prepare"]] = workloads[request["prepare"]]()
                work.settle(work.repeat())
                answer({"first": time.perf_counter() - started, "parameters": work.parameters})
            else:
                answer({"seconds": _measure(prepared[request["measure"]], request["count"])})
        except Exception as error:
            answer(
                {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"}
            )


def _measure(work: Prepared, count: int) -> float:
    if work.block:
        result = None
        started = time.perf_counter()
        for _ in range(count):
            result = work.repeat()
        work.settle(result)
        return (time.perf_counter() - started) / count
    times = []
    for _ in range(count):
        started = time.perf_counter()
        work.repeat()
        times.append(time.perf_counter() - started)
    return statistics.median(times)
