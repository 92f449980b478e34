"""Forward reuse: a gradient reuses the last eager call of the same Cell instead of repeating it.

The body of a training step is most often ``loss = net(x)`` and then ``grad(net, weights)(x)``. The
first call has computed all that the second one needs. So a context, or the Cell itself outside of
every context (`record_call`), remembers the last call with the nodes of its inputs and outputs, and
the gradient takes it (`EarlierCall`) if nothing that the call read has another value since then.
What the Cell does beside computing its outputs, such as statistics of batches, happens once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mycel._src.compiler.ir.graph import Node
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.recording import Recorder, recorders
from mycel._src.tensors.core.execution_context import EarlierCall
from mycel._src.tensors.core.tensor import Tensor, make

__all__ = ["record_call", "same_arguments", "take_recorded"]


class RecordedCall:
    """A call of a Cell outside of every context, recorded by `recorder`.

    `args` are its arguments, `nodes` the nodes of the tensors among them and of the weights,
    `values` pairs of a tensor that the call may have read and its buffer when it ended, `out` the
    leaves and the structure of the outputs, and `out_nodes` a node, or None, for each tensor among
    them.
    """

    __slots__ = ("recorder", "args", "nodes", "values", "out", "out_nodes")

    def __init__(
        self,
        recorder: Recorder,
        args: tuple[Any, ...],
        nodes: dict[int, Node],
        values: list[tuple[Tensor, Any]],
        out: tuple[list[Any], Any],
        out_nodes: list[Node | None],
    ) -> None:
        self.recorder, self.args, self.nodes, self.values = recorder, args, nodes, values
        self.out, self.out_nodes = out, out_nodes


def same_arguments(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Return whether the arguments of two calls are the same tensors in equal containers."""
    if len(before) == len(now) and all([a is b and isinstance(a, Tensor) for a, b in zip(before, now)]):
        return True
    old, form = flatten(tuple(before))
    new, other = flatten(tuple(now))
    return form == other and all(
        a is b or (not isinstance(a, Tensor) and not isinstance(b, Tensor) and type(a) is type(b) and bool(a == b))
        for a, b in zip(old, new)
    )


def record_call(cell: Any, args: tuple[Any, ...], parameters: Sequence[Tensor]) -> tuple[Any, Any]:
    """Return what the call of a Cell with `args` gives, and the call as a `RecordedCall`.

    `parameters` are those of the Cell. The call is None where arguments are not distinct tensors.
    """
    tensors = [v for v in flatten(args)[0] if isinstance(v, Tensor)]
    inputs = [t for t in tensors if t._type.dtype.is_inexact]
    weights = [p for p in parameters if p._type.dtype.is_inexact]
    marked = [*inputs, *weights]
    if len({id(t) for t in marked}) != len(marked):
        return cell.run_with_hooks(cell.construct, args, {}), None
    for t in tensors:
        t._settle()
    recorder = recorders.kind()
    recorder.depth = 1
    with eager.use_context(recorder), _marked(recorder, inputs) as own, recorder.marked_weights(weights) as others:
        out = cell.run_with_hooks(cell.construct, args, {})
        flat = flatten(out)
        results = [v for v in flat[0] if isinstance(v, Tensor)]
        out_nodes = [recorder.node_of(t) for t in results]
    recorder.release()
    for t in results:
        if recorder.node_of(t) is not None:
            t._node = None
    by_tensor = {id(t): n for t, n in zip(marked, (*own, *others))}
    values = [(t, t._buf) for t in (*tensors, *parameters, *results)]
    return out, RecordedCall(recorder, args, by_tensor, values, flat, out_nodes)


@contextmanager
def _marked(recorder: Recorder, inputs: Sequence[Tensor]) -> Iterator[list[Node]]:
    """Return a context manager that marks arguments in place and gives their nodes.

    They are tensors of their own to the derivative, so views of them keep their values.
    """
    before = [t._node for t in inputs]
    nodes = [recorder.leaf(t) for t in inputs]
    for t, node in zip(inputs, nodes):
        t._node = node
    try:
        yield list(nodes)
    finally:
        for t, old, node in zip(inputs, before, nodes):
            if t._node is node:
                t._node = old


def take_recorded(call: Any, args: tuple[Any, ...], by: Sequence[Tensor]) -> EarlierCall | None:
    """Return a recorded call with `args` for a gradient by the tensors `by`, or None.

    It does not fit where arguments, outputs or parameters have other values since then.
    """
    if (
        not isinstance(call, RecordedCall)
        or not same_arguments(call.args, args)
        or not all([id(t) in call.nodes for t in by])
        or not all([t._buf is buffer for t, buffer in call.values])
    ):
        return None
    leaves, structure = call.out
    nodes = iter(call.out_nodes)
    out = [_with_node(v, next(nodes)) if isinstance(v, Tensor) else v for v in leaves]
    return EarlierCall(call.recorder, unflatten(structure, out), call.nodes)


def _with_node(t: Tensor, node: Node | None) -> Tensor:
    made = make(t._type, t._buf)
    made._node = node
    return made
