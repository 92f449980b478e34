"""The base of `grad`, `jvp` and the like: context, marked arguments, compiling in GRAPH_MODE."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.shape import BROADCAST_TO
from mycel._src.foundation.errors import IndexRangeError
from mycel._src.foundation.python_runtime import garbage_collection
from mycel._src.foundation.python_runtime.tracebacks import at_border
from mycel._src.foundation.pytree import LEAF, flatten, unflatten
from mycel._src.foundation.settings import config
from mycel._src.foundation.settings.parallel_settings import current
from mycel._src.staging.compiled.jit import jit
from mycel._src.staging.compiled.parallel_dispatch import dividing
from mycel._src.staging.derivatives.custom_functions import refused
from mycel._src.staging.frontend.specialization.mutable_numbers import MUTABLES, plain
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.forward_reuse import take_recorded
from mycel._src.tensors.core.autograd.recording import Recorder, recorders
from mycel._src.tensors.core.execution_context import Differentiating, EarlierCall
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor, scalar

__all__ = [
    "Marked",
    "Transformed",
    "back_in",
    "earlier_call",
    "filled_like",
    "holds_numbers",
    "is_constant",
    "mark_arguments",
    "marked_node",
    "need_position",
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
    if refused():
        raise RuntimeError("a gradient is taken in a block without gradients; take it outside")
    context = eager.current_context()
    if context is not None:
        derivatives = context.differentiating
        context.depth += 1
        try:
            yield derivatives
        finally:
            context.depth -= 1
        return
    recorder = recorders.kind()
    recorder.depth = 1
    with eager.use_context(recorder), garbage_collection.seldom() if recorders.are_large else _NOTHING:
        try:
            yield recorder
        finally:
            if keep:
                recorder.release()
            else:
                recorder.finish()


_NOTHING = nullcontext()


def earlier_call(
    fn: Any, args: tuple[Any, ...], chosen: Iterable[Any], weights: Sequence[Tensor]
) -> EarlierCall | None:
    """Return the last call of `fn`, a Cell, if it was made with `args` and a gradient by the
    arguments `chosen` and `weights` can go back through it; else None.
    """
    if not isinstance(fn, Cell):
        return None
    context = eager.current_context()
    if context is not None:
        return context.differentiating.earlier_call(fn, args, weights)
    call = fn.__dict__.get("_recorded_call")
    if call is None or not fn.requires_grad:
        return None
    by = [*[v for a in chosen for v in flatten(a)[0] if isinstance(v, Tensor)], *weights]
    found = take_recorded(call, args, by)
    if found is not None:
        fn.__dict__["_recorded_call"] = None
    return found


@contextmanager
def back_in(derivatives: Differentiating) -> Iterator[Differentiating]:
    """Enter the context of an earlier call; a recording is freed at the end."""
    context = derivatives.context
    if context is eager.current_context():
        with recording() as again:
            yield again
        return
    assert isinstance(context, Recorder)
    with eager.use_context(context):
        try:
            yield context
        finally:
            context.finish()


class Transformed:
    """A transformed function; in GRAPH_MODE a call from plain Python is compiled as a whole."""

    def __init__(self, fn: Any) -> None:
        self.fn = fn
        if hasattr(fn, "__name__"):
            functools.update_wrapper(self, fn, assigned=("__name__", "__doc__"), updated=())
        self._compiled: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            if config._context["mode"] == config.GRAPH_MODE and eager.current_context() is None:
                if self._compiled is None:
                    self._compiled = jit(self._derive)
                return self._compiled(self._constants(args, kwargs), *args, **kwargs)
            if dividing.apart and eager.current_context() is None:
                raise RuntimeError(
                    f"{getattr(self.fn, '__name__', type(self.fn).__name__)}: in the mode "
                    f"{current().parallel_mode!r} the ranks divide what is compiled, and this gradient would be of "
                    "one rank's data alone; compile the training step with jit, set mode=GRAPH_MODE, or train with "
                    "Model"
                )
            return self._run(*args, **kwargs)
        except Exception as error:
            at_border(error)
            raise

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self._derive(self._constants(args, kwargs), *args, **kwargs)

    def _constants(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return the positions and names of the arguments that are no variables."""
        return ()

    def _derive(self, constants: tuple[Any, ...], /, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


def filled_like(t: Tensor, value: float) -> Tensor:
    """Return a tensor of the type of `t` with one value everywhere."""
    number = scalar(value, t.dtype)
    return number if not t.shape else eager.apply(BROADCAST_TO, number, shape=t.shape)


def or_zeros(t: Tensor | None, like: Tensor) -> Tensor:
    """Return `t`, or zeros in place of None."""
    return filled_like(like, 0) if t is None else t


def tensor_leaf(name: str, value: Any, position: Any) -> Tensor:
    """Return `value`, which the argument at `position` holds, as a tensor to differentiate by.

    Raises TypeError for what is neither a tensor nor a number, and for floats of 8 bits.
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
            f"{name}: argument {position} has type {tensor.dtype.name}, which is for storage alone: convert it with "
            ".float(), or leave it out of grad_position"
        )
    return tensor


def marked_node(derivatives: Differentiating, t: Tensor) -> Node:
    """Return the node of a marked tensor."""
    node = derivatives.node_of(t)
    assert node is not None
    return node


class Marked:
    """The marked tensors of one argument, which `earlier` was called with before if it is given.

    `given` are the tensors of `argument`, `tensors` the marked ones, `nodes` their nodes, and
    `value` is the argument made of the marked tensors. `derivatives` marks them; `name` is the
    transformation's and `position` the argument's, for errors.
    """

    __slots__ = ("given", "tensors", "nodes", "structure", "value")

    def __init__(
        self,
        derivatives: Differentiating,
        name: str,
        argument: Any,
        position: Any,
        earlier: EarlierCall | None = None,
    ) -> None:
        leaves, self.structure = flatten(plain(argument))
        self.given = [tensor_leaf(name, v, position) for v in leaves]
        if earlier is not None:
            self.value, self.tensors = argument, self.given
            self.nodes = [earlier.nodes[id(t)] for t in self.given]
            return
        self.tensors = [derivatives.mark(t) for t in self.given]
        self.nodes = [marked_node(derivatives, t) for t in self.tensors]
        self.value = unflatten(self.structure, self.tensors)


def is_constant(value: Any) -> bool:
    """Return whether an argument has no gradient: one that holds no tensors, and in a call from
    plain Python a tuple, list or dict that `mutable` does not mark.
    """
    if isinstance(value, Tensor):
        return False
    if isinstance(value, (tuple, list, dict)) and type(value) not in MUTABLES and eager.local.staging is None:
        return True
    leaves, structure = flatten(plain(value))
    return structure is LEAF or not any(isinstance(v, Tensor) for v in leaves)


def holds_numbers(value: Any) -> bool:
    """Return whether an argument is a number of Python's, or a container of tensors and numbers."""
    leaves = flatten(plain(value))[0]
    return bool(leaves) and all(isinstance(v, (Tensor, int, float)) and not isinstance(v, bool) for v in leaves)


def mark_arguments(
    derivatives: Differentiating, name: str, arguments: dict[Any, Any], keys: Iterable[tuple[Any, Any]]
) -> list[Marked]:
    """Replace `arguments[key]` by its marked form for each pair (key, position) in `keys`.

    Returns the `Marked` arguments. `derivatives` marks them, and `name` is the transformation's,
    for errors.
    """
    found = []
    for key, position in keys:
        marked = Marked(derivatives, name, arguments[key], position)
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
    given = positions if isinstance(positions, tuple) else () if positions is None else (positions,)
    if any(not isinstance(p, int) or isinstance(p, bool) for p in given):
        raise TypeError(
            f"{name}: grad_position must be a non-negative int, a tuple of them, or None, not {positions!r}"
        )
    if any(p < 0 for p in given):
        raise ValueError(f"{name}: grad_position counts from the front and must not be negative: {positions!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"{name}: grad_position names a position twice: {positions!r}")
    return tuple(given)


def need_position(name: str, position: int, count: int) -> None:
    """Raise IndexRangeError for a position that is not among `count` arguments."""
    if position >= count:
        raise IndexRangeError(
            f"{name}: grad_position {position} is out of range for a call with {count} positional arguments"
        )


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
