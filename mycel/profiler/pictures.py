"""The pictures of a profile's page, as SVG: the roofline, the time line, memory over time.

Colours are the page's variables, so that they follow light and dark.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

from mycel.profiler.report import Report
from mycel.profiler.table import amount, short, time_text

__all__ = ["memory_picture", "roofline", "time_line"]

WIDTH, HEIGHT = 960, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 20, 16, 40
_KINDS = ("kernel", "dense", "host", "copy", "other")
_SLICES = 4000
# Boxes that enclose others in one lane are translucent, so that the inner ones are seen.
OPACITY = {"compiling": 0.5, "Cells": 0.45, "calls": 0.6}


def color(kind: str) -> str:
    """Return the page's colour of a kind of kernel."""
    return f"var(--{kind if kind in _KINDS else 'other'})"


def _svg(height: int, parts: Sequence[str], name: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}" xmlns="http://www.w3.org/2000/svg">'
        + "".join(parts)
        + "</svg>"
    )


def _text(x: float, y: float, text: str, anchor: str = "middle", extra: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{extra}>{html.escape(text)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def roofline(report: Report) -> str:
    """Return the roofline: operations a second against operations for each byte, both logarithmic.

    The roofs are those of memory, caches and dense products on all threads; a dot's area is time.
    """
    m = report.machine
    threads = max(m.bandwidth)
    peak = m.flops_per_second(threads)
    roofs = [("memory", m.bytes_per_second(m.sizes[-1], threads)), ("caches", m.bytes_per_second(m.sizes[0], threads))]
    dots = [k for k in report.kernels if k.flops and k.bytes and k.seconds]
    points = [(k.flops / k.bytes, k.flops_per_second) for k in dots]
    low_x = min([0.05, *[x for x, _ in points]])
    high_x = max([peak / roofs[0][1] * 8, *[x * 2 for x, _ in points]])
    low_y, high_y = min([low_x * roofs[0][1] / 4, peak / 1e4, *[y / 2 for _, y in points]]), peak * 2

    def x_of(value: float) -> float:
        part = math.log(value / low_x) / math.log(high_x / low_x)
        return _LEFT + part * (WIDTH - _LEFT - _RIGHT)

    def y_of(value: float) -> float:
        part = math.log(value / low_y) / math.log(high_y / low_y)
        return HEIGHT - _BOTTOM - part * (HEIGHT - _TOP - _BOTTOM)

    parts = []
    for e in range(math.ceil(math.log10(low_x)), math.floor(math.log10(high_x)) + 1):
        parts.append(_line(x_of(10.0**e), _TOP, x_of(10.0**e), HEIGHT - _BOTTOM, "grid"))
        parts.append(_text(x_of(10.0**e), HEIGHT - _BOTTOM + 16, f"{10.0**e:g}"))
    for e in range(math.ceil(math.log10(low_y)), math.floor(math.log10(high_y)) + 1):
        parts.append(_line(_LEFT, y_of(10.0**e), WIDTH - _RIGHT, y_of(10.0**e), "grid"))
        parts.append(_text(_LEFT - 6, y_of(10.0**e) + 4, amount(10.0**e, "F/s"), "end"))
    parts.append(_text((WIDTH + _LEFT) / 2, HEIGHT - 6, "operations for each byte"))
    for name, rate in roofs:
        ridge = min(peak / rate, high_x)
        start = max(low_x, low_y / rate)
        if start < ridge:
            parts.append(_line(x_of(start), y_of(start * rate), x_of(ridge), y_of(ridge * rate), "roof"))
            parts.append(_text(x_of(start) + 8, y_of(start * rate) + 16, f"{name}: {amount(rate, 'B/s')}", "start"))
    ridge = min(peak / max(rate for _, rate in roofs), high_x)
    parts.append(_line(x_of(ridge), y_of(peak), WIDTH - _RIGHT, y_of(peak), "roof"))
    parts.append(_text(WIDTH - _RIGHT, y_of(peak) - 6, f"dense products: {amount(peak, 'F/s')}", "end"))
    whole = max(report.kernel_seconds, 1e-12)
    for k, (x, y) in zip(dots, points):
        radius = 3 + 22 * math.sqrt(k.seconds / whole)
        told = (
            f"{k.name}\n{', '.join(short(line) for line in k.lines)}\n{time_text(k.seconds)}, {amount(y, 'F/s')}, "
            f"{k.bound}"
        )
        parts.append(
            f'<circle cx="{x_of(x):.1f}" cy="{y_of(max(y, low_y)):.1f}" r="{radius:.1f}" '
            f'fill="{color(k.kind)}"><title>{html.escape(told)}</title></circle>'
        )
    return _svg(HEIGHT, parts, "roofline")


def time_line(report: Report) -> str:
    """Return the time line of each thread: Python's phases and calls above, native steps below.

    The longest `_SLICES` things are shown.
    """
    recording = report.recording
    seconds = max(report.seconds, 1e-9)
    lanes: dict[tuple[str, int], int] = {}
    boxes: list[tuple[float, float, tuple[str, int], str, str]] = []
    start = recording.begin
    for s in recording.spans:
        boxes.append(
            (
                (s.begin - start) / 1e9,
                (s.end - start) / 1e9,
                ("compiling", s.thread),
                f"{s.phase} {s.detail}",
                "var(--phase)",
            )
        )
    for a in recording.asked:
        kind = "Cells" if a.kind == "cell" else "calls"
        boxes.append(
            (
                (a.begin - start) / 1e9,
                (a.end - start) / 1e9,
                (kind, a.thread),
                f"{a.name} {short(a.line)}",
                "var(--python)",
            )
        )
    for piece in report.slices:
        boxes.append((piece.begin, piece.end, ("native", piece.thread), piece.kernel.name, color(piece.kernel.kind)))
    boxes.sort(key=lambda b: b[0] - b[1])
    shown = boxes[:_SLICES]
    order = {"compiling": 0, "Cells": 1, "calls": 2, "native": 3}
    for _, _, lane, _, _ in sorted(shown, key=lambda b: (b[2][1] != recording.thread, b[2][1], order[b[2][0]])):
        lanes.setdefault(lane, len(lanes))
    height = _TOP + 26 * max(len(lanes), 1) + _BOTTOM
    scale = (WIDTH - _LEFT - _RIGHT) / seconds
    parts = []
    for k in range(6):
        x = _LEFT + k * (WIDTH - _LEFT - _RIGHT) / 5
        parts.append(_line(x, _TOP, x, height - _BOTTOM, "grid"))
        parts.append(_text(x, height - _BOTTOM + 16, time_text(seconds * k / 5)))
    for (name, _), row in lanes.items():
        parts.append(_text(_LEFT - 6, _TOP + 26 * row + 16, name, "end"))
    # Longer things first, so that those inside them lie above.
    for begin, end, lane, name, fill in shown:
        x, width = _LEFT + max(begin, 0.0) * scale, max((end - max(begin, 0.0)) * scale, 0.4)
        told = f"{name.strip()}\n{time_text(end - begin)} at {time_text(begin)}"
        parts.append(
            f'<rect x="{x:.2f}" y="{_TOP + 26 * lanes[lane] + 2}" width="{width:.2f}" height="22" fill="{fill}" '
            f'fill-opacity="{OPACITY.get(lane[0], 1)}"><title>{html.escape(told)}</title></rect>'
        )
    return _svg(height, parts, "time line")


def memory_picture(report: Report) -> str:
    """Return the curve of bytes in use over time."""
    memory = report.memory
    seconds = max(report.seconds, 1e-9)
    top = max(memory.peak, 1) * 1.1
    height = 240

    def place(time: float, nbytes: float) -> tuple[float, float]:
        return (
            _LEFT + min(max(time, 0.0) / seconds, 1.0) * (WIDTH - _LEFT - _RIGHT),
            height - _BOTTOM - nbytes / top * (height - _TOP - _BOTTOM),
        )

    parts = []
    for k in range(5):
        _, y = place(0, top / 1.1 * k / 4)
        parts.append(_line(_LEFT, y, WIDTH - _RIGHT, y, "grid"))
        parts.append(_text(_LEFT - 6, y + 4, amount(memory.peak * k / 4, "B"), "end"))
    for k in range(6):
        x, _ = place(seconds * k / 5, 0)
        parts.append(_text(x, height - _BOTTOM + 16, time_text(seconds * k / 5)))
    corners = []
    before = memory.timeline[0][1]
    for time, nbytes in _thinned(memory.timeline):
        corners += [place(time, before), place(time, nbytes)]
        before = nbytes
    base = height - _BOTTOM
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    first, last = corners[0][0], corners[-1][0]
    parts.append(f'<polygon class="area" points="{first:.1f},{base} {path} {last:.1f},{base}"/>')
    parts.append(f'<polyline class="curve" points="{path}"/>')
    x, y = place(memory.peak_time, memory.peak)
    parts.append(
        f'<circle class="peak" cx="{x:.1f}" cy="{y:.1f}" r="4"><title>peak: {amount(memory.peak, "B")}</title></circle>'
    )
    return _svg(height, parts, "memory over time")


def _thinned(timeline: Sequence[tuple[float, int]]) -> list[tuple[float, int]]:
    """Return at most some thousand points, with the largest and smallest of each stretch."""
    stretch = max(1, len(timeline) // 1500)
    found: list[tuple[float, int]] = []
    for k in range(0, len(timeline), stretch):
        part = timeline[k : k + stretch]
        ends = {part.index(max(part, key=lambda p: p[1])), part.index(min(part, key=lambda p: p[1])), len(part) - 1}
        found += [part[i] for i in sorted(ends)]
    return found
