"""Graphs of recomputed regions: what a backward pass computes again (`Recorder.recompute`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mycel._src.compiler.ir.graph import Graph, Node, input_node, toposort
from mycel._src.compiler.ir.structural_hash import structural_hash
from mycel._src.compiler.prims.control_flow import control
from mycel._src.compiler.prims.custom_derivatives import custom, kept_call
from mycel._src.foundation.bounded_caches import SOME, Remembered

__all__ = ["region"]


def region(nodes: Sequence[Any], inside: set[Any]) -> tuple[Graph, list[Node]] | None:
    """Return the graph of what was recorded `inside` a region and computes `nodes`, and the nodes
    that are its operands; None where a derivative of the program's own is part of it.
    """
    own = toposort(nodes, stop=_Not(inside))
    if any(n.prim is custom for n in own):
        return None
    stand_in, operands = _stand_ins(own, inside)
    return _interned(Graph([stand_in[n] for n in operands], _plain(nodes, stand_in), "region")), operands


class _Not:
    """The complement of a set."""

    def __init__(self, members: set[Any]) -> None:
        self._members = members

    def __contains__(self, node: object) -> bool:
        return node not in self._members


def _stand_ins(own: Sequence[Any], inside: set[Any]) -> tuple[dict[Node, Node], list[Node]]:
    """Return graph inputs that stand for the nodes that a region uses from outside, and these
    nodes.

    Leaves with the same buffer share one graph input.
    """
    stand_in: dict[Node, Node] = {}
    operands: list[Node] = []
    by_buffer: dict[int, Node] = {}
    for node in own:
        if node.prim is None and node in inside and id(node.buffer) in by_buffer:
            stand_in[node] = by_buffer[id(node.buffer)]
        elif node.prim is None or node not in inside:
            stand_in[node] = input_node(node.type, "operand")
            operands.append(node)
            if node.prim is None and node in inside:
                by_buffer[id(node.buffer)] = stand_in[node]
    return stand_in, operands


def _plain(outputs: Sequence[Node], stand_in: dict[Node, Node]) -> list[Node]:
    """Return copies of recorded nodes as nodes of a graph, without their values."""
    image = dict(stand_in)
    for node in toposort(outputs, stop=stand_in):
        if node in image:
            continue
        prim, params = node.prim, node.params
        if prim is kept_call:
            prim, params = control.call, {"graph": params["graph"]}
        image[node] = Node(prim, tuple([image[i] for i in node.inputs]), params, node.type, node.where)
    return [image[o] for o in outputs]


_regions = Remembered[str, Graph]("recomputed regions", SOME)


def _interned(graph: Graph) -> Graph:
    """Return the known graph of this structure, so that what was compiled for it is found."""
    return _regions.enter(structural_hash(graph), graph)
