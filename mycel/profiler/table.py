"""A profile as tables for the terminal."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mycel.profiler.report import Kernel, Place, Report

__all__ = ["amount", "as_text", "short", "time_text"]


OUTRUN = (
    "kernels are faster than the machine was measured to be, as if something else had run on it at that time; "
    "measure it anew with mycel.profiler.machine(again=True) or mycel profile --measure"
)

# Pipelines that a report shows.
MOST_PIPELINES = 5


def time_text(seconds: float) -> str:
    """Return a time with its unit.

    >>> time_text(0.0), time_text(3.2e-7), time_text(0.0123), time_text(75.0)
    ('0', '320 ns', '12.3 ms', '75.0 s')
    """
    if not seconds:
        return "0"
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}" if seconds * factor < 10 else f"{seconds * factor:.1f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def amount(value: float, unit: str = "") -> str:
    """Return a number with a decimal prefix.

    >>> amount(0, "B"), amount(1536, "B"), amount(2.5e9, "F/s")
    ('0', '1.54 kB', '2.50 GF/s')
    """
    if not value:
        return "0"
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return (
                f"{value / factor:.3g} {prefix}{unit}"
                if value >= 100 * factor
                else f"{value / factor:.{1 if value >= 10 * factor else 2}f} {prefix}{unit}"
            )
    return f"{value:.0f} {unit}".rstrip()


def short(line: str) -> str:
    """Return a place with the name of its file instead of the whole path.

    >>> short("models/net.py:12")
    'net.py:12'
    """
    file, _, number = line.rpartition(":")
    return f"{os.path.basename(file)}:{number}" if file else line


def places(k: Kernel) -> str:
    """Return a kernel's source lines, at most two by name."""
    shown = [short(line) for line in k.lines[:2]]
    return ", ".join(shown) + (f" +{len(k.lines) - 2}" if len(k.lines) > 2 else "")


def as_text(report: Report, rows: int = 20, width: int = 0, color: bool = False) -> str:
    """Return the tables of a report: a summary, kernels, lines, Cells, phases, memory, host steps
    and segments.

    `report` is what a profile noted. Tables have at most `rows` rows and are `width` characters
    wide (0: as wide as the terminal); with `color` they hold the terminal's codes for styles.
    """
    from rich.console import Console

    written = io.StringIO()
    console = Console(
        file=written,
        width=width or _width(),
        force_terminal=color,
        color_system="standard" if color else None,
        highlight=False,
    )
    for part in _parts(report, rows):
        console.print(part)
    return written.getvalue()


def _width() -> int:
    import shutil

    return max(shutil.get_terminal_size((150, 40)).columns, 100)


def _parts(report: Report, rows: int) -> Iterator[Any]:
    from rich.text import Text

    yield from _summary(report)
    yield _kernels(report, rows)
    yield _places("source lines", report.lines, short, rows)
    yield _places("Cells", report.cells, str, rows)
    yield _table(
        "phases",
        [("phase", "l"), ("count", "r"), ("time", "r"), ("share", "r")],
        [[p.name, str(p.count), time_text(p.seconds), f"{p.share:.1%}"] for p in report.phases],
        0,
    )
    yield from _memory(report, rows)
    for number, pipeline in enumerate(report.pipelines[:MOST_PIPELINES]):
        yield Text(f"pipeline {number + 1}: {pipeline}", no_wrap=True)
    for s in report.segments:
        yield f"{s.function} ran {s.calls} times as {s.segments} compiled segments with Python in between:"
        yield from (f"  {b}" for b in s.breaks)
    for k in report.host_steps:
        yield f"{k.name} ran {k.count} times in NumPy ({time_text(k.seconds)}): it has no native code {places(k)}"


def _summary(report: Report) -> Iterator[str]:
    m, kernels = report.machine, report.kernels
    runs = sum(k.count for k in kernels)
    yield (
        f"wall time {time_text(report.seconds)}; {runs} steps of {len(kernels)} kernels took "
        f"{time_text(report.kernel_seconds)}; "
        f"peak memory {amount(report.memory.peak, 'B')}"
    )
    t = max(m.bandwidth)
    yield (
        f"{m.name}: {t} threads, {amount(m.bytes_per_second(m.sizes[-1], t), 'B/s')} from memory, "
        f"{amount(m.bytes_per_second(m.sizes[0], t), 'B/s')} from caches, "
        f"{amount(m.flops_per_second(t), 'F/s')} in dense products"
    )
    if report.missed:
        yield (
            f"{report.missed} records have no place here: there was no room for them, their programs are gone, or "
            "they are inside of recursive functions"
        )
    if report.outrun:
        yield OUTRUN


def _kernels(report: Report, rows: int) -> Any:
    columns = [("kernel", "l"), ("kind", "l"), ("line", "l"), ("count", "r"), ("total", "r"), ("mean", "r")]
    columns += [("share", "r"), ("bytes", "r"), ("flops", "r"), ("B/s", "r"), ("F/s", "r"), ("bound", "l")]
    columns += [("eff.", "r")]
    cells = [
        [
            k.name,
            k.kind,
            places(k),
            str(k.count),
            time_text(k.seconds),
            time_text(k.mean),
            f"{k.share:.1%}",
            amount(k.bytes // max(k.count, 1), "B"),
            amount(k.flops // max(k.count, 1)),
            amount(k.bytes_per_second, "B/s"),
            amount(k.flops_per_second, "F/s"),
            k.bound,
            f"{k.efficiency:.0%}" if k.bound in ("memory", "compute") else "",
        ]
        for k in report.kernels[:rows]
    ]
    return _table("kernels", columns, cells, len(report.kernels) - rows)


def _places(title: str, found: Sequence[Place], shown: Callable[[str], str], rows: int) -> Any:
    columns = [(title, "l"), ("steps", "r"), ("total", "r"), ("share", "r"), ("bytes", "r"), ("flops", "r")]
    columns += [("mostly", "l")]
    cells = [
        [
            shown(p.name),
            str(p.count),
            time_text(p.seconds),
            f"{p.share:.1%}",
            amount(p.bytes, "B"),
            amount(p.flops),
            ", ".join(sorted(p.names, key=lambda n: -p.names[n])[:2]),
        ]
        for p in found[:rows]
    ]
    return _table(title, columns, cells, len(found) - rows)


def _memory(report: Report, rows: int) -> Iterator[Any]:
    memory = report.memory
    columns = [("what", "l"), ("line", "l"), ("bytes", "r")]
    held = [[f"{b.name}", short(b.line), amount(b.nbytes, "B")] for b in memory.alive[:rows]]
    held += [[name, "(before)", amount(size, "B")] for name, size in memory.before[: max(rows - len(held), 3)]]
    yield _table(
        f"memory: {memory.allocations} blocks taken, {memory.frees} given back; the allocator holds "
        f"{amount(memory.allocator.get('reserved', 0), 'B')}; "
        f"at the peak of {amount(memory.peak, 'B')}",
        columns,
        held,
        len(memory.alive) + len(memory.before) - len(held),
    )
    if memory.arena:
        yield _table(
            "in the largest arena at the peak, when it was fullest",
            columns,
            [[c.name, short(c.line), amount(c.nbytes, "B")] for c in memory.arena[:rows]],
            len(memory.arena) - rows,
        )


def _table(title: str, columns: list[tuple[str, str]], rows: list[list[str]], more: int) -> Any:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False, padding=(0, 1))
    for name, side in columns:
        wide = name in ("kernel", "mostly", "what")
        table.add_column(
            name,
            justify="left" if side == "l" else "right",
            no_wrap=True,
            overflow="ellipsis",
            ratio=None,
            min_width=16 if wide else None,
        )
    for row in rows:
        table.add_row(*[Text(cell) for cell in row])
    if more > 0:
        table.caption = f"and {more} more"
    return table
