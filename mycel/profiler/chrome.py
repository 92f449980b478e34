"""A profile as a trace in Chrome's JSON format, which Perfetto and chrome://tracing show.

Process 1 is Python: for each thread its requests (eager operations, compiled functions, Cells) and
the phases of compilation. Process 2 is the engine: for each thread the runs of programs and their
steps, and the parts of a step that other threads of the pool took. An arrow goes from each request
of Python to the run that it caused. Memory in use is a counter. Times are microseconds from the
beginning of the profile.
"""

from __future__ import annotations

import bisect
import json
from pathlib import Path
from typing import Any

from mycel._src.engines.select import engine
from mycel._src.engines.trace_records import TracedStep
from mycel._src.foundation.files import atomic_files as whole
from mycel.profiler.names import name_of
from mycel.profiler.report import Report

__all__ = ["events", "write"]

PYTHON, ENGINE = 1, 2


def write(report: Report, path: Path) -> None:
    """Write the trace to a file."""
    whole.write(path, json.dumps({"traceEvents": events(report), "displayTimeUnit": "ns"}).encode())


def events(report: Report) -> list[dict[str, Any]]:
    """Return the events of the trace."""
    recording = report.recording
    start = recording.begin
    threads = _threads(report)
    found: list[dict[str, Any]] = []

    def span(process: int, thread: int, name: str, category: str, begin: int, end: int, **args: Any) -> None:
        found.append(
            {
                "ph": "X",
                "pid": process,
                "tid": threads[thread][0],
                "name": name,
                "cat": category,
                "ts": (begin - start) / 1e3,
                "dur": max(end - begin, 0) / 1e3,
                "args": args,
            }
        )

    for s in recording.spans:
        span(PYTHON, s.thread, f"{s.phase} {s.detail}".rstrip(), "phase", s.begin, s.end)
    for a in recording.asked:
        span(PYTHON, a.thread, a.name, a.kind, a.begin, a.end, line=a.line, cell=a.cell)
    runs = recording.trace.runs
    for r in runs:
        span(ENGINE, r.thread, r.program.name, "program", r.begin, r.end)
    for piece in report.slices:
        k = piece.kernel
        begin = start + round(piece.begin * 1e9)
        runs_ = max(k.count, 1)
        span(
            ENGINE,
            piece.thread,
            k.name,
            k.kind,
            begin,
            start + round(piece.end * 1e9),
            lines=list(k.lines),
            cell=k.cell,
            bytes=k.bytes // runs_,
            flops=k.flops // runs_,
            bound=k.bound,
        )
    names: dict[TracedStep | None, str] = {None: "part"}
    for step, begin, end, thread in recording.trace.parts:
        if step is not None and step not in names:
            names[step] = f"part of {name_of(step)}"
        span(ENGINE, thread, names[step], "part", begin, end)
    found += _flows(report, threads)
    for begin, end, name in recording.marks:
        span(PYTHON, recording.thread, name, "mark", begin, end)
    for seconds, nbytes in report.memory.timeline:
        found.append(
            {"ph": "C", "pid": ENGINE, "tid": 0, "name": "memory", "ts": seconds * 1e6, "args": {"bytes": nbytes}}
        )
    return _names(threads) + found


def _threads(report: Report) -> dict[int, tuple[int, str]]:
    """Return a small number and a name for each thread."""
    recording = report.recording
    known: dict[int, tuple[int, str]] = {recording.thread: (1, recording.thread_names.get(recording.thread, "main"))}
    idents = [s.thread for s in recording.spans] + [a.thread for a in recording.asked]
    idents += recording.trace.threads
    workers = 0
    for ident in dict.fromkeys(idents):
        if ident not in known:
            name = recording.thread_names.get(ident)
            if name is None:
                workers += 1
                name = f"worker {workers}"
            known[ident] = (len(known) + 1, name)
    return known


def _names(threads: dict[int, tuple[int, str]]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for process, name in ((PYTHON, "Python"), (ENGINE, f"{engine().name} engine")):
        found.append({"ph": "M", "pid": process, "tid": 0, "name": "process_name", "args": {"name": name}})
        for number, thread in threads.values():
            found.append({"ph": "M", "pid": process, "tid": number, "name": "thread_name", "args": {"name": thread}})
    return found


def _flows(report: Report, threads: dict[int, tuple[int, str]]) -> list[dict[str, Any]]:
    """Return the arrows: to each run from the innermost request of Python around it."""
    recording = report.recording
    by_thread: dict[int, list[Any]] = {}
    for a in recording.asked:
        if a.kind != "cell":
            by_thread.setdefault(a.thread, []).append(a)
    begins: dict[int, list[int]] = {}
    for thread, rows in by_thread.items():
        rows.sort(key=lambda a: a.begin)
        begins[thread] = [a.begin for a in rows]
    found: list[dict[str, Any]] = []
    number = 0
    for r in recording.trace.runs:
        rows = by_thread.get(r.thread, [])
        k = bisect.bisect_right(begins.get(r.thread, []), r.begin) - 1
        while k >= 0 and rows[k].end < r.end and k > 0 and rows[k - 1].end > rows[k].end:
            k -= 1
        if k < 0 or rows[k].end < r.end:
            continue
        number += 1
        common = {"cat": "call", "name": "run", "id": number, "tid": threads[r.thread][0]}
        found.append({"ph": "s", "pid": PYTHON, "ts": (rows[k].begin - recording.begin) / 1e3, **common})
        found.append({"ph": "f", "bp": "e", "pid": ENGINE, "ts": (r.begin - recording.begin) / 1e3, **common})
    return found
