"""Calls of Cells that a gradient of the same Cell goes back through, instead of calling it again.

The body of a training step is most often ``loss = net(x)`` and then ``grad(net, weights)(x)``. The
first call has computed all that the second one needs. So a context, or the Cell itself outside of
every context (`record_call`), remembers the last call with the nodes of its inputs and outputs, and
the gradient takes it (`EarlierCall`) if nothing that the call read has another value since then.
What the Cell does beside computing its outputs, such as statistics of batches, happens once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional

from mycel.base.tree import flatten, unflatten
from mycel.core import eager
from mycel.core.context import Differentiating
from mycel.core.recording import Recorder, recorders
from mycel.core.tensor import Tensor, make
from mycel.ir.graph import Node

__all__ = ["EarlierCall", "record_call", "same_arguments", "take_recorded"]


class EarlierCall:
    """A call that a gradient can go back through.

    `out` are its outputs, with their nodes in the context `context`. `nodes` has the nodes of the
    tensors that were its inputs, by their identity, and `stops` those at which the derivative ends
    beside the nodes that it is taken by.
    """

    def __init__(self, context: Differentiating, out: Any, nodes: dict[int, Node], stops: Sequence[Node] = ()) -> None:
        self.context, self.out, self.nodes, self.stops = context, out, nodes, stops


class RecordedCall:
    """A call of a Cell outside of every context, with its recording.

    `args` are its arguments, `nodes` the nodes of the tensors among them and of the weights,
    `values` pairs of a tensor that the call may have read and its buffer when it ended, and `out`
    the outputs with a node, or None, for each tensor among them.
    """

    __slots__ = ("recorder", "args", "nodes", "values", "out", "out_nodes")

    def __init__(
        self,
        recorder: Recorder,
        args: tuple[Any, ...],
        nodes: dict[int, Node],
        values: list[tuple[Tensor, Any]],
        out: Any,
        out_nodes: list[Optional[Node]],
    ) -> None:
        self.recorder, self.args, self.nodes, self.values = recorder, args, nodes, values
        self.out, self.out_nodes = out, out_nodes


def same_arguments(before: Sequence[Any], now: Sequence[Any]) -> bool:
    """Return whether the arguments of two calls are the same tensors in equal containers."""
    old, form = flatten(tuple(before))
    new, other = flatten(tuple(now))
    return form == other and all(
        a is b or (not isinstance(a, Tensor) and not isinstance(b, Tensor) and type(a) is type(b) and bool(a == b))
        for a, b in zip(old, new)
    )


def record_call(run: Callable[..., Any], args: tuple[Any, ...], parameters: Iterable[Tensor]) -> tuple[Any, Any]:
    """Return ``run(*args)`` and the call as a `RecordedCall`.

    `parameters` are those that `run` may use. The call is None where arguments are not distinct
    tensors.
    """
    weights = list(parameters)
    tensors = [v for v in flatten(args)[0] if isinstance(v, Tensor)]
    marked = [*tensors, *weights]
    if len({id(t) for t in marked}) != len(marked):
        return run(*args), None
    for t in tensors:
        t._settle()
    recorder = recorders.kind()
    recorder.depth = 1
    with eager.use_context(recorder), recorder.marked_weights(marked) as nodes:
        out = run(*args)
        results = [v for v in flatten(out)[0] if isinstance(v, Tensor)]
        out_nodes = [recorder.node_of(t) for t in results]
    recorder.release()
    for t in results:
        if recorder.node_of(t) is not None:
            t._node = None
    values = [(t, t._buf) for t in (*marked, *results)]
    by_tensor = {id(t): n for t, n in zip(marked, nodes)}
    return out, RecordedCall(recorder, args, by_tensor, values, out, out_nodes)


def take_recorded(call: Any, args: tuple[Any, ...], weights: Sequence[Tensor]) -> Optional[EarlierCall]:
    """Return a recorded call for a gradient by `args` and `weights`; None where it does not fit.

    It does not where arguments, outputs or parameters are others, or have other values since then.
    """
    if (
        not isinstance(call, RecordedCall)
        or not same_arguments(call.args, args)
        or any(id(w) not in call.nodes for w in weights)
        or any(t._buf is not buffer for t, buffer in call.values)
    ):
        return None
    leaves, structure = flatten(call.out)
    nodes = iter(call.out_nodes)
    out = [_with_node(v, next(nodes)) if isinstance(v, Tensor) else v for v in leaves]
    return EarlierCall(call.recorder, unflatten(structure, out), call.nodes)


def _with_node(t: Tensor, node: Optional[Node]) -> Tensor:
    made = make(t._type, t._buf)
    made._node = node
    return made
