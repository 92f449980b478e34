"""Timeline charts (Gantt): a row for each stream or stage, a bar for each piece of work.

SVG is written by hand; other formats are matplotlib's, where it is installed. Bars that would be
thinner than a third of a point are joined with what follows them in their row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from mycel._src.foundation.files import atomic_files

__all__ = ["Bar", "picture"]

_COLOURS = {"compute": "#4878a8", "forward": "#4878a8", "backward": "#78a868", "message": "#d88848"}
_WIDTH, _LEFT, _ROW, _TOP = 1200.0, 110.0, 26.0, 48.0
_THIN = 1 / 3


@dataclass(frozen=True)
class Bar:
    """A piece of work: its row, when it begins and ends in seconds, its text, and its kind.

    `kind` is "compute", "forward", "backward" or "message".
    """

    row: str
    start: float
    end: float
    text: str
    kind: str


def picture(path: str | os.PathLike[str], title: str, seconds: float, bars: Sequence[Bar]) -> None:
    """Draw bars over `seconds` into a file, in the format of its name; it appears whole or not.

    `path` is the file and `title` what stands above. Raises ValueError for a name without a format
    that is known, ImportError where matplotlib is needed and missing.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind == "svg":
        atomic_files.write(path, _svg(title, seconds, bars).encode(), "picture")
        return
    if kind not in ("png", "pdf", "jpg"):
        raise ValueError(f"picture {os.fspath(path)!r}: name it .svg, or .png, .pdf or .jpg, which matplotlib writes")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"a picture as {kind} needs matplotlib: pip install 'mycel[plot]', or save .svg") from error
    _draw(Figure(figsize=(12, 1 + 0.3 * len(_rows(bars)))), title, seconds, bars, path, kind)


def _rows(bars: Sequence[Bar]) -> list[str]:
    return list(dict.fromkeys(b.row for b in bars))


def _joined(bars: Sequence[Bar], least: float) -> list[Bar]:
    """Return the bars of each row with those joined that are shorter than `least` seconds."""
    result: list[Bar] = []
    for row in _rows(bars):
        last: list[Bar] = []
        for b in sorted((b for b in bars if b.row == row), key=lambda b: (b.start, b.end)):
            before = last[-1] if last else None
            if before is not None and before.kind == b.kind and b.start - before.end < least:
                if before.end - before.start < least or b.end - b.start < least:
                    last[-1] = Bar(row, before.start, max(before.end, b.end), before.text, b.kind)
                    continue
            last.append(b)
        result += last
    return result


def _svg(title: str, seconds: float, bars: Sequence[Bar]) -> str:
    rows = _rows(bars)
    scale = (_WIDTH - _LEFT - 10) / (seconds or 1.0)
    height = _TOP + _ROW * len(rows) + 10
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{_WIDTH:g}" height="{height:g}" fill="#ffffff"/>',
        f'<text x="10" y="18" font-size="14">{escape(title)}</text>',
    ]
    for k in range(11):
        x = _LEFT + k / 10 * seconds * scale
        lines.append(f'<path d="M{x:.1f} {_TOP - 6:g}V{height - 8:g}" stroke="#dddddd"/>')
        lines.append(f'<text x="{x:.1f}" y="{_TOP - 10:g}" text-anchor="middle">{k / 10 * seconds:.4g} s</text>')
    for k, row in enumerate(rows):
        lines.append(f'<text x="10" y="{_TOP + _ROW * k + 16:g}">{escape(row)}</text>')
    for b in _joined(bars, _THIN / scale):
        x, y, wide = _LEFT + b.start * scale, _TOP + _ROW * rows.index(b.row), (b.end - b.start) * scale
        lines.append(
            f'<rect x="{x:.2f}" y="{y + 2:g}" width="{max(wide, 0.2):.2f}" height="{_ROW - 6:g}" '
            f'fill="{_COLOURS[b.kind]}"><title>{escape(b.text)}: {b.start:.6g} to {b.end:.6g} s</title></rect>'
        )
        if wide > 7 * len(b.text):
            middle = f'x="{x + wide / 2:.2f}" y="{y + 16:g}" text-anchor="middle"'
            lines.append(f'<text {middle} fill="#ffffff">{escape(b.text)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _draw(
    figure: Any, title: str, seconds: float, bars: Sequence[Bar], path: str | os.PathLike[str], kind: str
) -> None:
    """Draw bars with matplotlib into a file.

    `figure` is matplotlib's, `title` stands above, `seconds` is the width, `kind` the format.
    """
    rows, axes = _rows(bars), figure.add_subplot()
    for b in _joined(bars, seconds / 3000):
        axes.broken_barh(
            [(b.start, b.end - b.start)],
            (rows.index(b.row) - 0.4, 0.8),
            facecolors=_COLOURS[b.kind],
            edgecolors="white",
            lw=0.4,
        )
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlim(0, seconds or 1.0)
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    axes.set_title(title)
    figure.tight_layout()
    with atomic_files.replacing(path, "picture", durable=False) as temporary:
        figure.savefig(temporary, format=kind)
