"""The common parts of transformations: their context, marked arguments, compiling in GRAPH_MODE."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Optional

from mycel.base import config
from mycel.base.tree import flatten, unflatten
from mycel.core import eager
from mycel.core.context import Differentiating
from mycel.core.parameter import Parameter
from mycel.core.recording import recorders
from mycel.core.tensor import Tensor, as_tensor, scalar
from mycel.ir.graph import Node
from mycel.prims.shape import BROADCAST_TO

__all__ = [
    "Marked",
    "Transformed",
    "filled_like",
    "mark_arguments",
    "marked_node",
    "or_zeros",
    "positions_of",
    "recording",
    "split_aux",
    "tensor_leaf",
    "weights_of",
]


@contextmanager
def recording(keep: bool = False) -> Iterator[Differentiating]:
    """Enter the context that records derivatives here: the one in force, or a new recording.

    A new recording is freed at the end, unless `keep`.
    """
    context = eager.current_context()
    if context is not None:
        differentiating = context.differentiating
        differentiating.depth += 1
        try:
            yield differentiating
        finally:
            differentiating.depth -= 1
        return
    recorder = recorders.kind()
    recorder.depth = 1
    with eager.use_context(recorder):
        try:
            yield recorder
        finally:
            if keep:
                recorder.release()
            else:
                recorder.finish()


class Transformed:
    """A transformed function; in GRAPH_MODE a call from plain Python is compiled as a whole."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        if hasattr(fn, "__name__"):
            functools.update_wrapper(self, fn, assigned=("__name__", "__doc__"), updated=())
        self._compiled: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config._context["mode"] == config.GRAPH_MODE and eager.current_context() is None:
            if self._compiled is None:
                from mycel.compiled.jit import jit

                self._compiled = jit(self._run)
            return self._compiled(*args, **kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def filled_like(t: Tensor, value: float) -> Tensor:
    """Return a tensor of the type of `t` with one value everywhere."""
    number = scalar(value, t.dtype)
    return number if not t.shape else eager.apply(BROADCAST_TO, number, shape=t.shape)


def or_zeros(t: Optional[Tensor], like: Tensor) -> Tensor:
    """Return `t`, or zeros in place of None."""
    return filled_like(like, 0) if t is None else t


def tensor_leaf(name: str, value: Any, position: Any) -> Tensor:
    """Return `value`, which the argument at `position` holds, as a tensor to differentiate by.

    Raises TypeError for what is neither a tensor nor a number, and for integer types.
    """
    if isinstance(value, Tensor):
        tensor = value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        tensor = as_tensor(float(value))
    else:
        raise TypeError(
            f"{name}: argument {position} holds a {type(value).__name__} ({value!r:.60}); gradients are taken by "
            "tensors and numbers: "
            "leave it out of grad_position"
        )
    if not tensor.dtype.is_differentiable:
        raise TypeError(
            f"{name}: argument {position} has type {tensor.dtype.name}; gradients need a floating or complex type: "
            "convert it with .float(), or leave it out of grad_position"
        )
    return tensor


def marked_node(context: Differentiating, t: Tensor) -> Node:
    """Return the node of a marked tensor."""
    node = context.node_of(t)
    assert node is not None
    return node


class Marked:
    """The marked tensors of one argument.

    `given` are the tensors of `argument`, `tensors` the marked ones, `nodes` their nodes, and
    `value` is the argument made of the marked tensors. `context` marks them; `name` is the
    transformation's and `position` the argument's, for errors.
    """

    __slots__ = ("given", "tensors", "nodes", "structure", "value")

    def __init__(self, context: Differentiating, name: str, argument: Any, position: Any) -> None:
        leaves, self.structure = flatten(argument)
        self.given = [tensor_leaf(name, v, position) for v in leaves]
        self.tensors = [context.mark(t) for t in self.given]
        self.nodes = [marked_node(context, t) for t in self.tensors]
        self.value = unflatten(self.structure, self.tensors)


def mark_arguments(
    context: Differentiating, name: str, arguments: dict[Any, Any], keys: Iterable[tuple[Any, Any]]
) -> list[Marked]:
    """Replace `arguments[key]` by its marked form for each pair (key, position) in `keys`.

    Returns the `Marked` arguments. `context` marks them, and `name` is the transformation's, for
    errors.
    """
    found = []
    for key, position in keys:
        marked = Marked(context, name, arguments[key], position)
        arguments[key] = marked.value
        found.append(marked)
    return found


def weights_of(name: str, weights: Any) -> tuple[list[Parameter], bool]:
    """Return the parameters to differentiate by as a list, and whether a single one was given.

    Raises TypeError for what is no parameter.
    """
    if weights is None:
        return [], False
    if isinstance(weights, Parameter):
        return [weights], True
    if isinstance(weights, (Tensor, str)) or not isinstance(weights, Iterable):
        raise TypeError(
            f"{name}: weights must be a Parameter or a list of them, such as net.trainable_params(), not "
            f"{type(weights).__name__}"
        )
    found = list(weights)
    for w in found:
        if not isinstance(w, Parameter):
            raise TypeError(
                f"{name}: weights must be Parameters, not {type(w).__name__}; pass other tensors as arguments"
            )
    return found, False


def positions_of(name: str, positions: Any) -> tuple[int, ...]:
    """Return `grad_position` as a tuple. Raises TypeError or ValueError for invalid positions."""
    given = positions if isinstance(positions, (tuple, list)) else () if positions is None else (positions,)
    if any(not isinstance(p, int) or isinstance(p, bool) for p in given):
        raise TypeError(
            f"{name}: grad_position must be a non-negative int, a tuple of them, or None, not {positions!r}"
        )
    if any(p < 0 for p in given):
        raise ValueError(f"{name}: grad_position counts from the front and must not be negative: {positions!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"{name}: grad_position names a position twice: {positions!r}")
    return tuple(given)


def split_aux(name: str, out: Any, has_aux: bool) -> tuple[Any, tuple[Any, ...]]:
    """Return the output to differentiate, and the other outputs if `has_aux`.

    Raises ValueError if there should be others and are none.
    """
    if not has_aux:
        return out, ()
    if not isinstance(out, tuple) or len(out) < 2:
        raise ValueError(
            f"{name}: with has_aux=True the function must return a tuple of the value and at least one more output, "
            f"not a {type(out).__name__}{f' of {len(out)}' if isinstance(out, tuple) else ''}"
        )
    return out[0], out[1:]


Function = Callable[..., Any]
Tensors = Sequence[Tensor]
