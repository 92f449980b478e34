"""Ratios, what they were before, and the tables.

A ratio is the best peer's time over Mycel's: above 1 Mycel is faster. By default it is the median
over the rounds of the ratio within a round; by the least times instead where a machine is too busy
for medians.
"""

from __future__ import annotations

import json
import math
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cases import CASES
from compare import OURS

__all__ = [
    "Ratio",
    "geometric_mean",
    "load",
    "markdown",
    "processor",
    "ratios",
    "regressions",
    "shown",
    "store",
    "tolerances",
]

Rows = Sequence[Mapping[str, Any]]
Ratio = dict[str, Any]


def ratios(rows: Rows, by_best: bool = False) -> dict[str, Ratio]:
    """Return the ratio of every case and pass that Mycel and a peer ran, by "case:pass" (and mode
    of ours, where there are two).
    """
    found: dict[str, Ratio] = {}
    for key, group in _grouped(rows).items():
        peers = [r for r in group if r["framework"] != OURS and "median" in r]
        ours = [r for r in group if r["framework"] == OURS and "median" in r]
        for mine in ours:
            against = peers if mine["mode"] != "pynative" else [p for p in peers if p["mode"].startswith("eager")]
            each = {f"{p['framework']} {p['mode']}": _ratio(p, mine, by_best) for p in against}
            if each:
                peer = min(each, key=lambda name: each[name])
                name = key if mine["mode"] == "graph" or len(ours) == 1 else f"{key}:{mine['mode']}"
                found[name] = {"ratio": each[peer], "peer": peer, "each": each}
    return found


def _ratio(peer: Mapping[str, Any], mine: Mapping[str, Any], by_best: bool) -> float:
    if by_best:
        return float(peer["best"] / mine["best"])
    return statistics.median(p / m for p, m in zip(peer["rounds"], mine["rounds"]))


def _grouped(rows: Rows) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(f"{row['case']}:{row['pass']}", []).append(row)
    return groups


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean; 1 of nothing."""
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def tolerance_of(name: str) -> float:
    """Return how far below its stored ratio a case may fall, where nothing else was told."""
    return 0.05 if name.startswith("wl_") else 0.15


def store(path: Path, found: Mapping[str, Ratio], threads: int, tolerance: float | None = None) -> None:
    """Keep ratios, and what is tolerated of them, beside those of other cases in a file.

    Those of another processor than the file's own are listed by it.
    """
    content: dict[str, Any] = json.loads(path.read_text()) if path.is_file() else {}
    known, allowed = content.get("ratios", {}), content.get("tolerances", {})
    here = processor()
    usual = content.get("processor", here)
    elsewhere = {name: where for name, where in content.get("elsewhere", {}).items() if name not in found}
    if here != usual:
        elsewhere |= dict.fromkeys(found, here)
    known |= {name: round(ratio["ratio"], 3) for name, ratio in found.items()}
    allowed |= {name: tolerance_of(name) if tolerance is None else tolerance for name in found}
    own = {name: value for name, value in sorted(allowed.items()) if value != tolerance_of(name)}
    content = {"processor": usual, "threads": threads, "ratios": dict(sorted(known.items()))}
    content |= {"tolerances": own, "elsewhere": dict(sorted(elsewhere.items()))}
    path.write_text(json.dumps(content, indent=2) + "\n")


def load(path: Path) -> dict[str, float]:
    """Return the ratios kept in a file."""
    known: dict[str, float] = json.loads(path.read_text())["ratios"]
    return known


def tolerances(path: Path) -> dict[str, float]:
    """Return what is tolerated of the ratios in a file, where it is not the usual."""
    allowed: dict[str, float] = json.loads(path.read_text()).get("tolerances", {})
    return allowed


def regressions(
    found: Mapping[str, Ratio],
    stored: Mapping[str, float],
    tolerance: float | None,
    allowed: Mapping[str, float] | None = None,
) -> dict[str, str]:
    """Return what became slower than the stored ratios allow, and how: by `tolerance`, else by what
    was stored with each (`allowed`), else by the usual of its kind.
    """
    lost = {}
    for name, before in stored.items():
        share = (allowed or {}).get(name, tolerance_of(name)) if tolerance is None else tolerance
        if name in found and found[name]["ratio"] < before * (1 - share):
            lost[name] = f"{before:.2f} before, {found[name]['ratio']:.2f} now"
    return lost


def markdown(rows: Rows, found: Mapping[str, Ratio], stored: Mapping[str, float], by_best: bool = False) -> str:
    """Return tables of all rows, one for each group of cases, and the geometric means."""
    parts = []
    field = "best" if by_best else "median"
    for group in dict.fromkeys(CASES[row["case"]].group for row in rows):
        lines = [f"## {group}", "", "| work | Mycel | peers | best peer / Mycel | stored |", "|---|---|---|---|---|"]
        own_ratios = []
        for key, members in _grouped([r for r in rows if CASES[r["case"]].group == group]).items():
            case = CASES[members[0]["case"]]
            kind = {"forward": ", forward", "backward": ", forward and backward"}.get(members[0]["pass"], "")
            peers = ", ".join(shown(r, field) for r in members if r["framework"] != OURS)
            for mine in (r for r in members if r["framework"] == OURS):
                name = key if key in found and mine["mode"] == "graph" else f"{key}:{mine['mode']}"
                ratio = found.get(name) or (
                    found.get(key) if mine["mode"] == "pynative" and name not in found else None
                )
                text = f"**{ratio['ratio']:.2f}** ({ratio['peer']})" if ratio else ""
                if ratio:
                    own_ratios.append(ratio["ratio"])
                before = f"{stored[name]:.2f}" if name in stored else ""
                own = shown(mine, field).removeprefix("mycel ")
                lines.append(f"| {case.title}{kind} | {own} | {peers} | {text} | {before} |")
        if own_ratios:
            lines += ["", f"Geometric mean {geometric_mean(own_ratios):.2f}, least {min(own_ratios):.2f}."]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def shown(row: Mapping[str, Any], field: str) -> str:
    """Return a row's framework and mode with its time, or why it has none."""
    name = f"{row['framework']} {row['mode']}"
    if "error" in row:
        return f"{name} failed ({str(row['error']).replace('|', '/')})"
    return f"{name} {duration(row[field])}"


def duration(seconds: float) -> str:
    """Return seconds with a unit and three digits."""
    for scale, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def processor() -> str:
    """Return the processor's name."""
    source = Path("/proc/cpuinfo")
    for line in source.read_text().splitlines() if source.is_file() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def simple_table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str | None]]) -> str:
    """Return a Markdown table under a heading."""
    body = ["| " + " | ".join(v or "" for v in line) + " |" for line in (heads, ["---"] * len(heads), *lines)]
    return "\n".join([f"## {title}", "", *body])
