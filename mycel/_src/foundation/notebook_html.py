"""HTML for notebooks: a line of facts above bounded text."""

from __future__ import annotations

import html

__all__ = ["page"]

LINES = 60
COLUMNS = 240


def page(title: str, facts: str, text: str) -> str:
    """Return a heading and preformatted text as HTML, escaped.

    Of long texts the first and last lines are shown, `LINES` in all, and of long lines the first
    `COLUMNS` characters.

    >>> page("Tensor", "int64[2]", "[1 < 2]")
    '<div><b>Tensor</b> int64[2]<pre>[1 &lt; 2]</pre></div>'
    """
    lines = text.split("\n")
    if len(lines) > LINES:
        left_out = len(lines) - LINES + 1
        lines[LINES // 2 : LINES // 2 + left_out] = [f"... {left_out:,} more lines ..."]
    shown = "\n".join([line if len(line) <= COLUMNS else line[:COLUMNS] + " ..." for line in lines])
    return f"<div><b>{html.escape(title)}</b> {html.escape(facts)}<pre>{html.escape(shown)}</pre></div>"
