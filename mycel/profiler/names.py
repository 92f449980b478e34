"""The names of kernels: summaries of what they compute, in the user's words.

A node's label is the class of the library's Cell that made it; else the call or operator of the
user's expression there (``ops.gelu(x)`` is "gelu", ``a + b`` "add"); else the primitive's name. A
kernel is named by the labels of its members, as a composition: "ReLU(BatchNorm2d)". The labels of
derivatives come after "grad", in the order of the operations that they are derivatives of. Long
compositions are shortened in the middle.
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterable, Sequence
from typing import Any

from mycel import nn
from mycel._src.compiler.ir.graph import Node, Where
from mycel._src.engines.trace_records import TracedStep
from mycel._src.foundation.bounded_caches import MANY, Remembered
from mycel._src.foundation.python_runtime import syntax_trees

__all__ = ["cells_of", "composed", "label", "lines_of", "name_of"]

_SHOWN = 4
_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floor_div",
    ast.Mod: "mod",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
    ast.BitAnd: "and",
    ast.BitOr: "or",
    ast.BitXor: "xor",
    ast.LShift: "shift",
    ast.RShift: "shift",
    ast.USub: "neg",
    ast.Not: "not",
    ast.Invert: "invert",
    ast.UAdd: "pos",
}


def label(node: Node) -> str:
    """Return a node's name in the user's words; a derivative has the label of its operation."""
    where = node.where
    if where is not None:
        kind = where.cell.rpartition(":")[2]
        if kind in _library_cells():
            return kind
        spoken = _spoken(where)
        if spoken:
            return spoken
    return "input" if node.prim is None else node.op


@functools.cache
def _library_cells() -> frozenset[str]:
    return frozenset(name for name in dir(nn) if isinstance(getattr(nn, name), type))


@Remembered("expressions of profiles", MANY).calls
def _spoken(where: Where) -> str:
    """Return the function or operator of a user's expression; empty where it cannot be told."""
    if not where.end_column:
        return ""
    lines = linecache.getlines(where.file)[where.line - 1 : (where.end_line or where.line)]
    if not lines:
        return ""
    parts = [line.encode() for line in lines]
    parts[-1] = parts[-1][: where.end_column]
    parts[0] = parts[0][where.column :]
    text = b"".join(parts).decode(errors="ignore")
    for attempt in (f"({text}\n)", f"(_{text}\n)" if text.startswith(".") else f"({text.rstrip(',')}\n)"):
        try:
            return _said(syntax_trees.expression(attempt))
        except (SyntaxError, ValueError):
            continue
    return ""


def _said(tree: Any) -> str:
    if isinstance(tree, ast.Call):
        called = tree.func
        if isinstance(called, ast.Attribute):
            return called.attr
        return called.id if isinstance(called, ast.Name) else ""
    if isinstance(tree, (ast.BinOp, ast.UnaryOp)):
        return _OPERATORS.get(type(tree.op), "")
    if isinstance(tree, ast.Subscript):
        return "index"
    return "compare" if isinstance(tree, ast.Compare) else ""


def composed(labels: Sequence[str]) -> str:
    """Return labels, innermost first, as a composition.

    >>> composed(["conv", "norm", "relu"])
    'relu(norm(conv))'
    >>> composed(list("abcdef"))
    'f(e(... 2 more ...(b(a))))'
    """
    labels = list(labels)
    if len(labels) > _SHOWN:
        labels[2:-2] = [f"... {len(labels) - 4} more ..."]
    return "(".join(reversed(labels)) + ")" * (len(labels) - 1)


def name_of(step: TracedStep) -> str:
    """Return a step's name."""
    nodes = step.nodes
    plain = list(dict.fromkeys(label(n) for n in nodes if n.where is None or not n.where.gradient))
    # In the backward pass the derivative of the last operation comes first.
    derived = list(dict.fromkeys(label(n) for n in nodes if n.where is not None and n.where.gradient))
    whole = composed(plain) if plain else ""
    if derived:
        whole += (" + " if whole else "") + "grad " + composed(derived[::-1])
    if step.called:
        return step.called if whole == step.called else f"{whole}: {step.called}"
    if step.kind in ("kernel", "dense", "batch"):
        return whole or step.title or step.kind
    return f"{whole}: {step.kind}" if whole and whole != step.kind else step.kind


def lines_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the source lines of nodes as "file:line", the line of most nodes first."""
    counts: dict[str, int] = {}
    for node in nodes:
        if node.where is not None:
            counts[str(node.where)] = counts.get(str(node.where), 0) + 1
    return tuple(sorted(counts, key=lambda k: -counts[k]))


def cells_of(nodes: Iterable[Node]) -> tuple[str, ...]:
    """Return the paths of the Cells that nodes belong to, the Cell of most nodes first."""
    counts: dict[str, int] = {}
    for node in nodes:
        path: str | None = node.where.cell if node.where is not None else ""
        if path:
            counts[path] = counts.get(path, 0) + 1
    return tuple(sorted(counts, key=lambda k: -counts[k]))
