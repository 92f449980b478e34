"""The files of a profile in a folder, in the places where MindSpore's tools look for them.

``<worker>_<time>_ascend_ms/ASCEND_PROFILER_OUTPUT`` holds `trace_view.json` (a Chrome trace),
`kernel_details.csv` (every run of every kernel), `op_statistic.csv` (kernels),
`step_trace_time.csv` (the steps that the program marked) and `memory_record.csv`; beside that
folder are `report.html` and `profiler_metadata.json`.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mycel._src.foundation.files import atomic_files as whole
from mycel.profiler import chrome, html
from mycel.profiler.report import Kernel, Report

__all__ = ["OUTPUT", "STEP", "statistics", "write_all"]

OUTPUT = "ASCEND_PROFILER_OUTPUT"
STEP = "step "


def write_all(
    report: Report,
    folder: str | Path,
    worker: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    pretty: bool = False,
    step_list: Sequence[int] | None = None,
) -> Path:
    """Write a profile under `folder` and return the new folder that has its files.

    `report` is the profile; `worker` begins the folder's name, by default with the names of the
    host and of the process. `metadata` is written as JSON beside the files; `pretty` indents the
    trace. `step_list` has the numbers of the steps to write, by default all.
    """
    if worker is not None and not re.fullmatch(r"[\w.-]+", worker):
        raise ValueError(f"a worker's name is made of letters, digits, '.', '_' and '-', not {worker!r}")
    name = worker or f"{platform.node() or 'host'}_{os.getpid()}"
    stamp = time.strftime("%Y%m%d%H%M%S")
    number, made = 0, Path(folder) / f"{name}_{stamp}000_ascend_ms"
    while made.exists():
        number += 1
        made = Path(folder) / f"{name}_{stamp}{number:03}_ascend_ms"
    inside = made / OUTPUT
    inside.mkdir(parents=True)
    steps = [(b, e, n) for b, e, n in report.recording.marks if n.startswith(STEP)]
    if step_list is not None:
        steps = [s for s in steps if int(s[2][len(STEP) :]) in set(step_list)]
    spans = [(b, e) for b, e, _ in steps] if step_list is not None else None
    start = report.recording.begin
    found = chrome.events(report)
    if spans is not None:
        found = [e for e in found if "ts" not in e or any(b <= start + 1e3 * e["ts"] <= end for b, end in spans)]
    text = json.dumps({"traceEvents": found, "displayTimeUnit": "ns"}, indent=1 if pretty else None)
    whole.write(inside / "trace_view.json", text.encode())
    slices = [s for s in report.slices if spans is None or any(b <= start + 1e9 * s.begin <= e for b, e in spans)]
    _table(
        inside / "kernel_details.csv",
        ("Name", "Type", "Start Time(us)", "Duration(us)", "Line", "Cell"),
        (
            (
                s.kernel.name,
                s.kernel.kind,
                f"{s.begin * 1e6:.3f}",
                f"{(s.end - s.begin) * 1e6:.3f}",
                " ".join(s.kernel.lines),
                s.kernel.cell,
            )
            for s in slices
        ),
    )
    rows = statistics(report.kernels)
    _table(inside / "op_statistic.csv", tuple(rows[0]) if rows else ("op_name",), (tuple(r.values()) for r in rows))
    _table(
        inside / "step_trace_time.csv",
        ("Step", "Start Time(us)", "Duration(us)"),
        ((n[len(STEP) :], f"{(b - start) / 1e3:.3f}", f"{(e - b) / 1e3:.3f}") for b, e, n in steps),
    )
    _table(
        inside / "memory_record.csv",
        ("Time(us)", "In Use(bytes)"),
        ((f"{t * 1e6:.3f}", n) for t, n in report.memory.timeline),
    )
    html.write(report, made / "report.html")
    whole.write(made / "profiler_metadata.json", json.dumps(dict(metadata or {}), indent=1).encode())
    return made


def statistics(kernels: Iterable[Kernel]) -> list[dict[str, Any]]:
    """Return a dictionary for each kernel, times in microseconds."""
    return [
        {
            "op_name": k.name,
            "op_type": k.kind,
            "primitives": " ".join(k.primitives),
            "lines": " ".join(k.lines),
            "cell": k.cell,
            "op_occurrences": k.count,
            "compute_time(us)": round(k.seconds * 1e6, 3),
            "avg_time(us)": round(k.mean * 1e6, 3),
            "bytes": k.bytes,
            "flops": k.flops,
            "bound": k.bound,
        }
        for k in kernels
    ]


def _table(path: Path, head: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with whole.replacing(path, durable=False) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(rows)
