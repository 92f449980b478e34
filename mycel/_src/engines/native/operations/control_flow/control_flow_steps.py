"""Lowering of control flow to steps that hold steps.

The graphs inside a `cond` or `while_loop` are lowered over the memory of the graph around them. A
conditional's branches copy their results to common buffers. A recursive function's body is lowered
by itself, when its template is made.
"""

from __future__ import annotations

from mycel._src.compiler.ir.graph import Node
from mycel._src.engines.native.operations.control_flow.loop_gradient_steps import record
from mycel._src.engines.native.operations.control_flow.loop_steps import forward_loop
from mycel._src.engines.native.steps.step_builder import StepBuilder, new_views, result_types
from mycel._src.engines.native.steps.step_types import Call, Nested, touched

__all__ = ["call_step", "cond_step", "while_step"]


def cond_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that runs one of two graphs, chosen by a boolean."""
    predicate, *operands = [steps.view(i) for i in node.inputs]
    targets = new_views(result_types(node), "cond")
    branches = []
    for name in ("true", "false"):
        inner = steps.nested(node.params[name], operands)
        for source, target in zip(inner.lowered.outputs, targets):
            inner.copy_into(source, target)
        branches.append(inner.lowered.steps)
    reads, writes = touched([*branches[0], *branches[1]])
    nested = Nested(predicate, branches[0], branches[1], False)
    steps.step(nested, [predicate.buffer, *reads], [*[t.buffer for t in targets], *writes], node)
    steps.bind(node, targets)


def while_step(steps: StepBuilder, node: Node) -> None:
    """Add the step that repeats a graph while another graph gives true."""
    steps.bind(node, forward_loop(steps, node, lambda carried: record(steps, node, carried)))


def call_step(steps: StepBuilder, node: Node) -> None:
    """Add the call of a recursive function, from outside (`recursion`) or by itself (`recur`)."""
    reads = [steps.contiguous(steps.view(i)) for i in node.inputs]
    writes = new_views(result_types(node), "result")
    call = Call(node.params["label"], node.params.get("graph"), reads, writes)
    steps.step(call, [v.buffer for v in reads], [v.buffer for v in writes], node)
    steps.bind(node, writes)
