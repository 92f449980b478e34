"""A profile as one self-contained page of pictures and tables, in light and dark."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mycel._src.foundation.files import atomic_files as whole
from mycel.profiler.pictures import color, memory_picture, roofline, time_line
from mycel.profiler.report import Place, Report
from mycel.profiler.table import MOST_PIPELINES, OUTRUN, amount, short, time_text

__all__ = ["page", "write"]

_STYLE = """
:root { color-scheme: light dark; --text: #1c2126; --soft: #66707a; --back: #ffffff;
  --panel: #f5f6f8; --rule: #d9dde2; --accent: #2563a8; --kernel: #2f7fb8; --dense: #d1742f;
  --host: #c23b4e; --copy: #8a6fc0; --other: #7f8a94; --phase: #b99a2d; --python: #4c9a67; }
@media (prefers-color-scheme: dark) { :root { --text: #e4e8ec; --soft: #99a4ae; --back: #14181c;
  --panel: #1d2329; --rule: #343c44; --accent: #7db5ec; --kernel: #4e9fd6; --dense: #e28d4d;
  --host: #e06274; --copy: #a48ee0; --other: #98a3ad; --phase: #d1b450; --python: #64b782; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1240px; padding: 24px 20px 60px; background: var(--back);
  color: var(--text); font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 22px; margin: 0 0 4px; }
h2 { font-size: 16px; margin: 32px 0 8px; }
p { margin: 4px 0; color: var(--soft); }
.facts { display: flex; flex-wrap: wrap; gap: 10px; margin: 16px 0; }
.fact { background: var(--panel); border-radius: 8px; padding: 8px 14px; }
.fact b { display: block; font-size: 18px; font-variant-numeric: tabular-nums; }
.fact span { color: var(--soft); font-size: 12px; }
.panel { background: var(--panel); border-radius: 8px; padding: 10px; overflow-x: auto; }
svg { display: block; width: 100%; height: auto; min-width: 640px; }
svg text { font: 11px system-ui, sans-serif; fill: var(--soft); }
.grid { stroke: var(--rule); stroke-width: 1; }
.roof { stroke: var(--text); stroke-width: 1.5; }
circle { fill-opacity: .65; stroke: var(--panel); }
.area { fill: var(--accent); fill-opacity: .18; }
.curve { fill: none; stroke: var(--accent); stroke-width: 1.5; }
.peak { fill: var(--host); fill-opacity: 1; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th { text-align: left; color: var(--soft); font-weight: 500; font-size: 12px; }
th, td { padding: 3px 8px 3px 0; font-size: 13px; border-bottom: 1px solid var(--rule);
  white-space: nowrap; }
.n { text-align: right; }
td.wide { white-space: normal; min-width: 200px; }
.bar { display: inline-block; height: 8px; border-radius: 2px; background: var(--accent);
  margin-right: 6px; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 4px 0 12px; }
pre { white-space: pre-wrap; }
summary { cursor: pointer; color: var(--soft); }
"""
_ROWS = 40
Row = Sequence[str]


def write(report: Report, path: Path) -> None:
    """Write the page to a file."""
    whole.write(path, page(report).encode())


def page(report: Report) -> str:
    """Return the page for a report."""
    parts = [
        *_head(report),
        *_pictures(report),
        _kernels(report),
        _places("Source lines", report.lines, short),
        _places("Cells", report.cells, str),
        _table(
            "Phases",
            ("share", "phase", "count#", "time#"),
            [(_share(p.share), _e(p.name), str(p.count), time_text(p.seconds)) for p in report.phases],
        ),
        *_memory(report),
        *_pipelines(report),
        *_host(report),
        "</body></html>\n",
    ]
    return "".join(parts)


def _head(report: Report) -> Iterator[str]:
    m = report.machine
    threads = max(m.bandwidth)
    facts = [
        ("wall time", time_text(report.seconds)),
        ("in kernels", time_text(report.kernel_seconds)),
        ("steps", str(sum(k.count for k in report.kernels))),
        ("bytes moved", amount(sum(k.bytes for k in report.kernels), "B")),
        ("operations", amount(sum(k.flops for k in report.kernels), "F")),
        ("peak memory", amount(report.memory.peak, "B")),
    ]
    yield (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"/><meta name="viewport" '
        'content="width=device-width, initial-scale=1"/>'
    )
    yield f"<title>Mycel profile</title><style>{_STYLE}</style></head><body><h1>Profile</h1>"
    yield (
        f"<p>{_e(m.name)}: {threads} threads, {amount(m.bytes_per_second(m.sizes[-1], threads), 'B/s')} from memory, "
        f"{amount(m.bytes_per_second(m.sizes[0], threads), 'B/s')} from caches, "
        f"{amount(m.flops_per_second(threads), 'F/s')} in dense products</p>"
    )
    yield '<div class="facts">'
    yield from (f'<div class="fact"><b>{_e(value)}</b><span>{_e(name)}</span></div>' for name, value in facts)
    yield "</div>"
    if report.missed:
        yield (
            f"<p>{report.missed} records have no place here: there was no room for them, their programs are gone, or "
            "they are inside of recursive functions.</p>"
        )
    if report.outrun:
        yield f"<p>{_e(OUTRUN)}.</p>"


def _pictures(report: Report) -> Iterator[str]:
    kinds = {"kernel": "generated code", "dense": "oneDNN", "host": "NumPy", "copy": "copies", "other": "control"}
    legend = "".join(
        f'<span class="key" style="background:{color(kind)}"></span>{text}' for kind, text in kinds.items()
    )
    told = f"What each kernel does against what the machine can do; area is time.{legend}"
    yield _section("Roofline", told, roofline(report))
    told = "Python's side and the native engine; hold the pointer over a box."
    yield _section("Time line", told, time_line(report))
    yield _section("Memory", "In use, with what was there before the profile began.", memory_picture(report))


def _places(title: str, places: Sequence[Place], shown: Callable[[str], str]) -> str:
    rows = [
        (
            _share(p.share),
            _titled(shown(p.name), p.name),
            str(p.count),
            time_text(p.seconds),
            amount(p.bytes, "B"),
            amount(p.flops, "F"),
            _e(", ".join(sorted(p.names, key=lambda n: -p.names[n])[:2])),
        )
        for p in places[:_ROWS]
    ]
    return _table(title, ("share", title.lower(), "steps#", "time#", "bytes#", "operations#", "mostly"), rows)


def _memory(report: Report) -> Iterator[str]:
    memory, head = report.memory, ("what", "line", "bytes#")
    held = [(_e(b.name), _titled(short(b.line), b.line), amount(b.nbytes, "B")) for b in memory.alive[:_ROWS]]
    held += [(_e(name), "before", amount(size, "B")) for name, size in memory.before[: max(_ROWS - len(held), 5)]]
    yield _table("In use at the peak", head, held)
    if memory.arena:
        inside = [(_e(c.name), _titled(short(c.line), c.line), amount(c.nbytes, "B")) for c in memory.arena[:_ROWS]]
        yield _table("In the largest arena at the peak, when it was fullest", head, inside)


def _host(report: Report) -> Iterator[str]:
    """Yield what ran in Python and NumPy: functions in segments, and steps without native code."""
    if report.segments:
        yield "<h2>Functions in segments</h2>"
    for s in report.segments:
        told = html.escape("\n".join(s.breaks))
        yield f"<p>{_e(s.function)}: {s.calls} calls, {s.segments} compiled segments</p><pre>{told}</pre>"
    if report.host_steps:
        hosted = [
            (_e(k.name), _e(", ".join(short(line) for line in k.lines)), str(k.count), time_text(k.seconds))
            for k in report.host_steps
        ]
        yield _table("In NumPy, as there is no native code", ("operation", "line", "count#", "time#"), hosted)


def _kernels(report: Report) -> str:
    rows = [
        (
            _share(k.share),
            f'<span class="key" style="background:{color(k.kind)}"></span>{_e(k.name)}',
            _titled(", ".join(short(line) for line in k.lines[:3]), "\n".join(k.lines)),
            str(k.count),
            time_text(k.seconds),
            time_text(k.mean),
            amount(k.bytes // max(k.count, 1), "B"),
            amount(k.flops // max(k.count, 1), "F"),
            amount(k.bytes_per_second, "B/s"),
            amount(k.flops_per_second, "F/s"),
            k.bound,
            f"{k.efficiency:.0%}" if k.bound in ("memory", "compute") else "",
        )
        for k in report.kernels
    ]
    head = (
        "share",
        "kernel",
        "lines",
        "count#",
        "total#",
        "mean#",
        "bytes#",
        "operations#",
        "B/s#",
        "F/s#",
        "bound",
        "efficiency#",
    )
    made = _table("Kernels", head, rows[:_ROWS])
    if len(rows) > _ROWS:
        made += f"<details><summary>{len(rows) - _ROWS} more</summary>{_table('', head, rows[_ROWS:])}</details>"
    return made


def _e(text: str) -> str:
    return html.escape(text)


def _titled(text: str, whole: str) -> str:
    return f'<span title="{html.escape(whole, quote=True)}">{html.escape(text)}</span>'


def _share(part: float) -> str:
    return f'<span class="bar" style="width:{80 * part:.1f}px"></span>{part:.1%}'


def _pipelines(report: Report) -> Iterator[str]:
    for number, pipeline in enumerate(report.pipelines[:MOST_PIPELINES]):
        slowest = pipeline.bottleneck
        told = f"{time_text(pipeline.seconds)}, in which the consumer waited {time_text(pipeline.asked)} for rows"
        rows = [
            (
                _share(pipeline.share(node)),
                "&nbsp;" * 3 * node.depth + _e(node.label) + (" (bottleneck)" if node is slowest else ""),
                node.work,
                time_text(node.busy),
                time_text(node.waiting),
                str(node.rows),
                amount(node.size, "B"),
            )
            for node in pipeline.nodes
        ]
        yield _table(f"Pipeline {number + 1}", ("busy", "node", "work", "time#", "waiting#", "rows#", "bytes#"), rows)
        yield f"<p>{_e(told)}</p>"


def _section(title: str, told: str, picture: str) -> str:
    return f'<h2>{title}</h2><p>{told}</p><div class="panel">{picture}</div>'


def _table(title: str, head: Sequence[str], rows: Iterable[Row]) -> str:
    """Return a table; `rows` are HTML, and columns whose names end in "#" hold numbers."""
    sides = [' class="n"' if name.endswith("#") else "" for name in head]
    top = "".join(f"<th{side}>{html.escape(name.rstrip('#'))}</th>" for name, side in zip(head, sides))
    body = "".join(
        "<tr>" + "".join(f"<td{side}>{cell}</td>" for cell, side in zip(row, sides)) + "</tr>" for row in rows
    )
    heading = f"<h2>{html.escape(title)}</h2>" if title else ""
    return f'{heading}<div class="panel"><table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>'
