"""First steps of fresh processes, with empty and with filled caches, and memory.

A process imports its framework, builds the network and its inputs, and makes one step; the three
are timed apart. Modes that compile without being ours are measured only where `--modes` names them,
as compiling all workloads takes PyTorch hours.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cases import CASES
from compare import OURS, Plan, modes_of, start
from report import duration, geometric_mean, simple_table

__all__ = ["caches", "first_steps"]

# Fresh processes of each kind, and seconds until one that does not answer is given up.
_PROCESSES = 3
_LIMIT = 120.0
_KINDS = ("cold", "warm")


def caches(folder: Path) -> dict[str, str]:
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
    """Return the times of first steps without and with a cache, of imports, and the memory at the
    peak of a few steps; and all of it as a table.
    """
    rows = []
    for name in names:
        modes = [(f, m) for f, m in modes_of(plan, CASES[name]) if m in plan.only or not m.startswith("compile")]
        rows += _measured(plan, name, modes)
        print(f"{name}: {'; '.join(_shown(r) for r in rows[-len(modes) :])}", file=sys.stderr, flush=True)
    return rows, f"{_table(rows)}\n\n{_summary(rows)}"


def _measured(plan: Plan, name: str, modes: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the rows of a case, whose processes take turns."""
    rows: list[dict[str, Any]] = [{"case": name, "framework": f, "mode": m} for f, m in modes]
    found: list[dict[str, list[float]]] = [{} for _ in modes]
    for _ in range(min(plan.rounds, _PROCESSES)):
        for row, times in zip(rows, found):
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                for kind in _KINDS:
                    if "error" not in row:
                        _one_process(plan, row, times, kind, Path(folder))
    for row, times in zip(rows, found):
        row |= {kind: statistics.median(seconds) for kind, seconds in times.items()}
    return rows


def _one_process(plan: Plan, row: dict[str, Any], times: dict[str, list[float]], kind: str, folder: Path) -> None:
    """Add what a fresh process takes to `times`, and its memory or its error to `row`.

    `kind` says whether the caches in `folder` are empty.
    """
    case = CASES[row["case"]]
    asked: dict[str, Any] = {"pass": case.passes[-1]}
    worker = start(replace(plan, limit=_LIMIT), row["framework"], row["mode"], settings=caches(folder))
    answer = worker.facts if "error" in worker.facts else worker.ask(prepare=case.name, check=False, **asked)
    again = answer if "error" in answer else worker.ask(measure=case.name, budget=0.1, **asked)
    if "error" in again:
        row["error"] = again["error"]
    else:
        times.setdefault(kind, []).append(answer["first"])
        times.setdefault("built", []).append(answer["built"])
        times.setdefault("imports", []).append(worker.facts["imports"])
        row["bytes"] = worker.ask(memory=True).get("bytes", 0)
    worker.end()


def _peer(row: dict[str, Any], rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of PyTorch's eager mode for the same case; {} where there is none."""
    for other in rows:
        if (other["case"], other["framework"], other["mode"]) == (row["case"], "torch", "eager"):
            return other
    return {}


def _share(row: dict[str, Any], rows: Sequence[dict[str, Any]], mine: str, theirs: str) -> str:
    """Return what Mycel takes over what PyTorch's eager mode takes."""
    peer = _peer(row, rows).get(theirs, 0)
    return f"{row[mine] / peer:.2f}" if row["framework"] == OURS and mine in row and peer else ""


def _table(rows: Sequence[dict[str, Any]]) -> str:
    heads = ["work", "framework", "imports", "building", "first step, empty cache", "of PyTorch's"]
    heads += ["first step, filled cache", "of PyTorch's", "peak memory", "of PyTorch's", ""]
    lines = []
    for row in rows:
        line = [CASES[row["case"]].title, f"{row['framework']} {row['mode']}"]
        line += [duration(row[field]) if field in row else "" for field in ("imports", "built")]
        for kind in _KINDS:
            # A framework without a cache is at its best when warm in nothing but the disk's pages.
            line += [duration(row[kind]) if kind in row else "", _share(row, rows, kind, "warm")]
        line += [f"{row['bytes'] / 2**20:.0f} MiB" if "bytes" in row else "", _share(row, rows, "bytes", "bytes")]
        lines.append([*line, row.get("error", "")])
    return simple_table("First steps and memory", heads, lines)


def _summary(rows: Sequence[dict[str, Any]]) -> str:
    """Return the mean shares of PyTorch's time, and the largest, also with building."""
    lines = []
    for mode in dict.fromkeys(r["mode"] for r in rows if r["framework"] == OURS):
        mine = [r for r in rows if r["framework"] == OURS and r["mode"] == mode and "warm" in _peer(r, rows)]
        for kind in _KINDS:
            for what, more in (("", 0), (" with building", 1)):
                shares = {
                    r["case"]: (r[kind] + more * r["built"]) / (peer["warm"] + more * peer["built"])
                    for r in mine
                    if kind in r
                    for peer in [_peer(r, rows)]
                }
                if shares:
                    worst = max(shares, key=lambda name: shares[name])
                    mean = geometric_mean(shares.values())
                    lines.append(
                        f"{mode}, {kind}{what}: {mean:.2f} of PyTorch's, at most {shares[worst]:.2f} ({worst})."
                    )
    return "\n".join(lines)


def _shown(row: dict[str, Any]) -> str:
    times = ", ".join(f"{kind} {duration(row[kind])}" for kind in _KINDS if kind in row)
    return f"{row['framework']} {row['mode']} {row.get('error') or times}"
