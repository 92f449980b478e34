"""The native engine's door: from a graph to a program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Optional

from mycel.engines.native.expand import expand
from mycel.engines.native.program import Program, build
from mycel.ir.graph import Graph
from mycel.transforms.passes import optimize

__all__ = ["compile_native"]


def compile_native(graph: Graph, aliases: Optional[Mapping[int, int]] = None) -> Program:
    """The program of a graph of static types; outputs in `aliases` are written into those inputs' memory."""
    opened = expand(graph)
    return build(optimize(opened) if len(opened.nodes) > 1 else opened, aliases)
