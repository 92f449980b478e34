"""The text of Cells: `repr` as a tree, one line a layer, and HTML for notebooks."""

from __future__ import annotations

from typing import Any

from mycel.base.pages import page

__all__ = ["CellText"]


class CellText:
    """The part of `Cell` that shows it."""

    _cells: Any

    def extend_repr(self) -> str:
        """Return the text that `repr` shows between parentheses; layers override it."""
        return ""

    def __repr__(self) -> str:
        head = " ".join(self.extend_repr().split("\n"))
        children = [(name, repr(cell)) for name, cell in self._cells.items()]
        if not children:
            return f"{type(self).__name__}({head})"
        lines = []
        for name, text in children:
            first, *rest = text.split("\n")
            lines.append(f"  ({name}): {first}")
            lines.extend("  " + line for line in rest)
        return "\n".join([f"{type(self).__name__}(", *([f"  {head}"] if head else []), *lines, ")"])

    def _repr_html_(self) -> str:
        """Return the tree with the number of parameters, as a notebook shows it."""
        cell: Any = self
        trained = [p.size for p in cell.trainable_params()]
        fixed = [p.size for p in cell.untrainable_params()]
        counts = f"{sum(trained) + sum(fixed):,} parameters, {sum(trained):,} of them trained"
        return page(type(self).__name__, counts, repr(self))
