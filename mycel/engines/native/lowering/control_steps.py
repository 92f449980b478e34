"""Control flow as steps that hold steps.

The graphs inside a `cond` or `while_loop` are lowered over the memory of the graph around them. A conditional's branches copy their results to
common buffers. A recursive function's body is lowered by itself, when its template is made. A loop's carried values have a buffer each: the body computes from them, and its results replace them when all are there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Optional

from mycel.engines.native.kernels.nest import Buffer
from mycel.engines.native.kernels.views import View, room, row_major
from mycel.ir.graph import Graph, Node

__all__ = ["Call", "Nested", "call_step", "cond_step", "while_step"]


@dataclass
class Nested:
    """A step's predicate and the steps it chooses among or repeats."""

    predicate: View
    first: list[Any]
    second: list[Any]
    loops: bool


@dataclass
class Call:
    """A call of the recursive function of a label, which begins here where `graph` is its body."""

    label: str
    graph: Optional[Graph]
    reads: list[View]
    writes: list[View]


def _inside(lowering: Any, graph: Graph, operands: list[View]) -> Any:
    inner = type(lowering)(graph)
    inner.result.constants = lowering.result.constants
    inner.result.fallbacks = lowering.result.fallbacks
    inner.bound = operands
    return inner


def _types(node: Node) -> tuple[Any, ...]:
    return node.type if isinstance(node.type, tuple) else (node.type,)


def _new(types: tuple[Any, ...], name: str) -> list[View]:
    return [row_major(Buffer(t.dtype, room(t.shape), name), t.shape) for t in types]


def _copy_into(lowering: Any, source: View, target: View) -> None:
    if math.prod(source.shape):
        source = lowering.contiguous(source)
        lowering.step("copy", [source.buffer], [target.buffer], (target, source))


def _touched(steps: list[Any]) -> tuple[list[Buffer], list[Buffer]]:
    reads = {id(b): b for s in steps for b in s.reads}
    writes = {id(b): b for s in steps for b in s.writes}
    return list(reads.values()), list(writes.values())


def cond_step(lowering: Any, node: Node) -> None:
    """One of two graphs, by a boolean."""
    predicate, *operands = [lowering.view(i) for i in node.inputs]
    targets = _new(_types(node), "cond")
    branches = []
    for name in ("true", "false"):
        inner = _inside(lowering, node.params[name], operands)
        lowered = inner.run()
        for source, target in zip(lowered.outputs, targets):
            _copy_into(inner, source, target)
        branches.append(lowered.steps)
    nested = Nested(predicate, branches[0], branches[1], False)
    reads, writes = _touched([*branches[0], *branches[1]])
    lowering.step("cond", [predicate.buffer, *reads], [*[t.buffer for t in targets], *writes], nested, node)
    lowering.bind(node, targets)


def while_step(lowering: Any, node: Node) -> None:
    """A graph repeated as long as another one says."""
    from mycel.engines.native.lowering.tape_steps import record

    operands = [lowering.view(i) for i in node.inputs]
    count = node.params["carried"]
    carried = _new(tuple(i.type for i in node.inputs[:count]), "carried")
    for source, target in zip(operands, carried):
        _copy_into(lowering, source, target)
    recorded = record(lowering, node, carried)
    inside = [*carried, *operands[count:]]
    test = _inside(lowering, node.params["test"], inside)
    test_result = test.run()
    body = _inside(lowering, node.params["body"], inside)
    lowered = body.run()
    held = {id(v.buffer) for v in inside}
    results = [body.copy(v) if id(v.buffer) in held else v for v in lowered.outputs]
    for source, target in zip(results, carried):
        _copy_into(body, source, target)
    rounds = [*recorded, *lowered.steps]
    nested = Nested(test_result.outputs[0], test_result.steps, rounds, True)
    reads, writes = _touched([*test_result.steps, *rounds])
    lowering.step("while", [nested.predicate.buffer, *reads], [*[t.buffer for t in carried], *writes], nested, node)
    lowering.bind(node, carried)


def call_step(lowering: Any, node: Node) -> None:
    """A recursive function, from outside (`recursion`) or by itself (`recur`)."""
    reads = [lowering.contiguous(lowering.view(i)) for i in node.inputs]
    writes = _new(_types(node), "result")
    call = Call(node.params["label"], node.params.get("graph"), reads, writes)
    lowering.step("call", [v.buffer for v in reads], [v.buffer for v in writes], call, node)
    lowering.bind(node, writes)
