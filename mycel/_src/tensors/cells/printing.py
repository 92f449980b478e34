"""Text of Cells: `repr` as a tree, one line a layer, and HTML for notebooks."""

from __future__ import annotations

from typing import Any

from mycel._src.foundation.logged_once import say_once
from mycel._src.foundation.notebook_html import page
from mycel._src.tensors.core.parameter import Parameter

__all__ = ["CellText", "warn_of_hidden"]


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


def warn_of_hidden(cell: Any, name: str, value: Any) -> None:
    """Say once for an attribute that it is a plain sequence of Cells or parameters, which are then
    no part of the network.
    """
    if type(cell).__module__.startswith("mycel."):
        return
    members = list(value.values()) if isinstance(value, dict) else value
    inner = [m for m in members if isinstance(m, CellText)]
    hidden = [m for m in members if isinstance(m, Parameter)]
    for member in inner:
        found: Any = member
        hidden += found.get_parameters()
    if not hidden or {id(p) for p in hidden} <= {id(p) for p in cell.get_parameters()}:
        return
    mend = ("CellDict" if isinstance(value, dict) else "CellList") if inner else "ParameterTuple"
    where = "nn." if inner else ""
    say_once(
        "a sequence of Cells",
        type(cell),
        name,
        message="%s.%s is a %s of %s: its %d parameters are no part of the network, so they are neither trained nor "
        "saved; write mycel.%s%s(...)",
        arguments=(
            type(cell).__name__,
            name,
            type(value).__name__,
            "Cells" if inner else "Parameters",
            len(hidden),
            where,
            mend,
        ),
    )
