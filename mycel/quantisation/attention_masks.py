"""Attention masks in quantisation: large negative constants, adjusted so as not to waste the range.

Programs mask scores by a number that no score comes near (-1e9, or minus infinity): a constant that
is added, or that `where` and `masked_fill` put in a score's place. A range from there to the
largest score leaves one level for all scores. But a soft-max of 8 bits needs no more than `SPARE`
below the least score for 0. So the constants become as low as is needed, by the scores on the data
of calibration, and the range of a masked sum ends `SPARE` below the least score: what lies further
down is rounded to its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from mycel._src.compiler.ir.graph import Graph, Node, substitute
from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims.base import CONSTANT
from mycel._src.compiler.prims.neural.normalization import softmax
from mycel._src.compiler.prims.shape import BROADCAST_TO
from mycel._src.compiler.transforms.quantise.graph_freezing import literal
from mycel._src.compiler.transforms.quantise.quantisable_regions import MOVES, Regions
from mycel.formats.graph_files.graph_file import Model
from mycel.quantisation.quantised_network import run

__all__ = ["floor_of", "mask_of", "shallow_masks"]

# Numbers that no score has, and the distance at which exp is half a level of 1/256.
LOW, SPARE = -1e3, 6.5


def _bases(operand: Node) -> list[Node]:
    """Return the constants that an operand may have a mask from: itself, or a factor of it."""
    while operand.inputs and (operand.prim is BROADCAST_TO or operand.prim in MOVES):
        operand = operand.inputs[0]
    if operand.prim is E.mul:
        return [b for i in operand.inputs for b in _bases(i) if i.prim is not E.mul]
    return [operand] if operand.prim is CONSTANT else []


def mask_of(node: Node) -> tuple[Node, Node] | None:
    """Return the constant of a mask that a node adds to scores, or puts in their place, and the
    scores; None where it does neither.
    """
    if node.prim is not E.add and node.prim is not E.SELECT:
        return None
    for mask, scores in (node.inputs[-2:], node.inputs[:-3:-1]):
        for base in _bases(mask):
            if base.value.dtype == np.float32 and base.value.size:
                low = base.value <= LOW
                # A factor of what is added masks all that is not 0.
                if low.any() if node.prim is E.add and mask.prim is not E.mul else low.all():
                    return base, scores
    return None


def floor_of(node: Node, floors: Mapping[Node, float]) -> float | None:
    """Return the end of the range of a value that is a masked sum; None for others."""
    if node.prim is not E.add:
        return None
    return next((floors[base] for i in node.inputs for base in _bases(i) if base in floors), None)


def shallow_masks(model: Model, batches: Iterable[Any]) -> dict[Node, float]:
    """Replace the masks in the graph of `model` by ones that are low enough for the scores on
    `batches`.

    Returns the ends of the ranges of masked sums, by the new constants.
    """
    graph = model.graph
    regions, found = Regions(graph), dict[Node, list[tuple[Node, Node]]]()
    for node in graph.nodes:
        if node.prim is softmax:
            masked = regions.source(node.inputs[0])
            known = mask_of(masked)
            if known is not None:
                found.setdefault(known[0], []).append((masked, known[1]))
    # What is more than a mask stays as it is.
    found = {base: uses for base, uses in found.items() if _only(graph, base, {masked for masked, _ in uses})}
    if not found:
        return {}
    scores = [s for uses in found.values() for _, s in uses]
    network, ends = run(model, scores), {s: (np.inf, -np.inf) for s in scores}
    for row in batches:
        for node, value in zip(scores, network(*row)):
            array = value.asnumpy()
            if array.size:
                ends[node] = min(ends[node][0], float(array.min())), max(ends[node][1], float(array.max()))
    images, floors = dict[Node, Node](), dict[Node, float]()
    for base, uses in found.items():
        least, most = min(ends[s][0] for _, s in uses), max(ends[s][1] for _, s in uses)
        if not np.isfinite(most - least):
            continue
        added = uses[0][0].prim is E.add
        low = least - most - SPARE if added else least - SPARE
        made = literal(np.where(base.value <= LOW, np.float32(low), base.value), base)
        images[base] = made
        if added:
            floors[made] = least - SPARE
    model.graph = Graph(graph.inputs, substitute(graph.outputs, images), graph.name)
    return floors


def _only(graph: Graph, base: Node, masked: set[Node]) -> bool:
    """Return whether all that a constant is used for ends in some nodes."""
    reached, pending = {base}, [base]
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in node.inputs:
            users.setdefault(operand, []).append(node)
    while pending:
        node = pending.pop()
        if node in graph.outputs or not users.get(node):
            return False
        for user in users[node]:
            if user not in masked and user not in reached:
                if user.prim is not E.mul and user.prim is not BROADCAST_TO and user.prim not in MOVES:
                    return False
                reached.add(user)
                pending.append(user)
    return True
