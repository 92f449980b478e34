"""Function transformations for users: gradients of functions and Cells, to any order, in eager and compiled code alike.

Each marks its inputs in the context in force (a new recording, an outer one, or a graph being staged), calls the function, and asks the context
to pull ones back from the outputs. In GRAPH_MODE a transformation called from plain Python is compiled as a whole.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Optional, Union

from mycel import config, eager
from mycel.parameter import Parameter
from mycel.prims.shape import BROADCAST_TO
from mycel.record import Recorder
from mycel.tensor import Tensor, as_tensor, scalar
from mycel.tree import flatten, unflatten

__all__ = ["get_grad", "grad", "stop_gradient", "value_and_grad"]

Positions = Union[None, int, tuple[int, ...]]


@contextmanager
def _recording() -> Iterator[Any]:
    """The context that records gradients here: the one in force, or a new recording."""
    context = eager.current_context()
    if context is not None:
        context.depth += 1  # type: ignore[attr-defined]
        try:
            yield context
        finally:
            context.depth -= 1  # type: ignore[attr-defined]
        return
    recorder = Recorder()
    recorder.depth = 1
    with eager.use_context(recorder):
        try:
            yield recorder
        finally:
            recorder.finish()


def _filled_like(t: Tensor, value: float) -> Tensor:
    number = scalar(value, t.dtype)
    return number if not t.shape else eager.apply(BROADCAST_TO, number, shape=t.shape)


def _tensor_argument(value: Any, position: int) -> Tensor:
    if isinstance(value, Tensor):
        tensor = value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        tensor = as_tensor(float(value))
    else:
        raise TypeError(
            f"grad: argument {position} holds a {type(value).__name__} ({value!r:.60}); gradients are taken by tensors and numbers: "
            "leave it out of grad_position"
        )
    if not tensor.dtype.is_differentiable:
        raise TypeError(
            f"grad: argument {position} has type {tensor.dtype.name}; gradients need a floating or complex type: "
            "convert it with .float(), or leave it out of grad_position"
        )
    return tensor


def _weight_list(weights: Any) -> tuple[list[Parameter], bool]:
    if weights is None:
        return [], False
    if isinstance(weights, Parameter):
        return [weights], True
    if isinstance(weights, (Tensor, str)) or not isinstance(weights, Iterable):
        raise TypeError(
            f"grad: weights must be a Parameter or a list of them, such as net.trainable_params(), not {type(weights).__name__}"
        )
    found = list(weights)
    for w in found:
        if not isinstance(w, Parameter):
            raise TypeError(
                f"grad: weights must be Parameters, not {type(w).__name__}; pass other tensors as arguments"
            )
    return found, False


def _position_tuple(positions: Any) -> tuple[int, ...]:
    given = positions if isinstance(positions, (tuple, list)) else () if positions is None else (positions,)
    if any(not isinstance(p, int) or isinstance(p, bool) for p in given):
        raise TypeError(f"grad: grad_position must be a non-negative int, a tuple of them, or None, not {positions!r}")
    if any(p < 0 for p in given):
        raise ValueError(f"grad: grad_position counts from the front and must not be negative: {positions!r}")
    if len(set(given)) < len(given):
        raise ValueError(f"grad: grad_position names a position twice: {positions!r}")
    return tuple(given)


class _Gradient:
    """The gradient function of `fn`; calling it gives the gradients, with the value in front where asked for."""

    def __init__(
        self, fn: Any, positions: Positions, weights: Any, has_aux: bool, return_ids: bool, with_value: bool
    ) -> None:
        if not callable(fn):
            raise TypeError(f"grad: fn must be callable, not {type(fn).__name__} ({fn!r:.60})")
        if positions is None and weights is None:
            raise ValueError("grad: grad_position and weights are both None; name something to differentiate by")
        given = _position_tuple(positions)
        if not given and weights is None:
            raise ValueError("grad: grad_position is empty and weights is None; name something to differentiate by")
        self.fn, self.positions, self.single = fn, given, len(given) == 1
        self.weights, self.has_aux, self.return_ids, self.with_value = weights, has_aux, return_ids, with_value
        if hasattr(fn, "__name__"):
            functools.update_wrapper(self, fn, assigned=("__name__", "__doc__"), updated=())
        self._compiled: Any = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config._context["mode"] == config.GRAPH_MODE and eager.current_context() is None:
            if self._compiled is None:
                from mycel.jit import jit

                self._compiled = jit(self._run)
            return self._compiled(*args, **kwargs)
        return self._run(*args, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        weights, one_weight = _weight_list(self.weights)
        distinct = list({id(w): w for w in weights}.values())
        arguments: dict[Any, Any] = dict(enumerate(args)) | kwargs
        keys = [self._key(p, args, kwargs) for p in self.positions]
        with _recording() as context:
            inputs, nodes = [], []
            for p, key in zip(self.positions, keys):
                leaves, structure = flatten(arguments[key])
                marked = [context.mark(_tensor_argument(v, p)) for v in leaves]
                nodes += [context.node_of(t) for t in marked]
                inputs.append((marked, structure))
                arguments[key] = unflatten(structure, marked)
            with context.marked_weights(distinct) as weight_nodes:
                out = context.invoke(
                    self.fn, tuple([arguments[i] for i in range(len(args))]), {k: arguments[k] for k in kwargs}
                )
                likes = [t for marked, _ in inputs for t in marked] + distinct
                result = self._gradients(context, out, [*nodes, *weight_nodes], likes)
        count = len(nodes)
        by_weight = {id(w): g for w, g in zip(distinct, result[count:])}
        grads = self._arrange(result[:count], [by_weight[id(w)] for w in weights], inputs, weights, one_weight)
        return (out, grads) if self.with_value else (grads, out[1:]) if self.has_aux else grads

    def _key(self, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Where the argument of a position is: its number, or its name where it was given by name."""
        if position < len(args):
            return position
        if kwargs:
            names = list(inspect.signature(getattr(self.fn, "construct", self.fn)).parameters)
            if position < len(names) and names[position] in kwargs:
                return names[position]
        raise ValueError(
            f"grad: grad_position {position} is out of range for a call with {len(args)} positional arguments"
        )

    def _gradients(self, context: Any, out: Any, wrt: Sequence[Any], likes: Sequence[Tensor]) -> list[Tensor]:
        if self.has_aux:
            if not isinstance(out, tuple) or len(out) < 2:
                raise ValueError(
                    "grad: with has_aux=True the function must return a tuple of the value and at least one more output, "
                    f"not a {type(out).__name__}{f' of {len(out)}' if isinstance(out, tuple) else ''}"
                )
            roots = flatten(out[0])[0]
        else:
            roots = flatten(out)[0]
        roots = [r for r in roots if isinstance(r, Tensor) and r.dtype.is_differentiable]
        grads = context.pullback(roots, [_filled_like(r, 1) for r in roots], wrt) if roots else [None] * len(wrt)
        return [_filled_like(like, 0) if g is None else g for g, like in zip(grads, likes)]

    def _arrange(
        self, grads: list[Tensor], by_parameter: list[Any], inputs: Any, weights: Sequence[Parameter], one_weight: bool
    ) -> Any:
        by_position: list[Any] = []
        start = 0
        for marked, structure in inputs:
            by_position.append(unflatten(structure, grads[start : start + len(marked)]))
            start += len(marked)
        if self.return_ids:
            by_position = list(zip(self.positions, by_position))
            by_parameter = [(w.name, g) for w, g in zip(weights, by_parameter)]
        inputs_part = by_position[0] if self.single else tuple(by_position)
        weights_part = by_parameter[0] if one_weight else tuple(by_parameter)
        if self.weights is None:
            return inputs_part
        return (inputs_part, weights_part) if self.positions else weights_part


def grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """The function that computes the gradient of `fn`.

    `grad_position` names the positional arguments to differentiate by (an int, a tuple, or None), `weights` parameters to differentiate by as
    well. With `has_aux` only the first output is differentiated and the others are returned beside the gradients. Outputs that
    are not scalars are summed. With `return_ids` each gradient comes with its position or parameter name. Gradients nest to any order.

    >>> import mycel as ms
    >>> ms.grad(lambda x: x * x * x)(ms.Tensor(2.0))
    Tensor(shape=[], dtype=Float32, value= 12)
    """
    return _Gradient(fn, grad_position, weights, has_aux, return_ids, with_value=False)


def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
) -> Callable[..., Any]:
    """The function that computes the outputs of `fn` and its gradient; the arguments are those of `grad`.

    >>> import mycel as ms
    >>> value, slope = ms.value_and_grad(lambda x: x * x)(ms.Tensor(3.0))
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    return _Gradient(fn, grad_position, weights, has_aux, return_ids, with_value=True)


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """Pick one gradient, by position or parameter, from what `grad(..., return_ids=True)` returned; ValueError if it is not there.

    >>> import mycel as ms
    >>> g = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(ms.Tensor(2.0), ms.Tensor(3.0))
    >>> float(ms.get_grad(g, 1))
    2.0
    """
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier
    if isinstance(gradients, tuple):
        if (
            len(gradients) == 2
            and isinstance(gradients[0], (int, str))
            and isinstance(gradients[1], (Tensor, tuple, list))
        ):
            if gradients[0] == wanted:
                return gradients[1]  # type: ignore[return-value]
        else:
            for part in gradients:
                found = _search(part, wanted)
                if found is not None:
                    return found
    raise ValueError(
        f"get_grad: there is no gradient for {identifier!r} here; was it asked for, and with return_ids=True?"
    )


def _search(part: Any, wanted: Any) -> Optional[Tensor]:
    try:
        return get_grad(part, wanted)
    except ValueError:
        return None


def stop_gradient(value: Tensor) -> Tensor:
    """`value` as a constant for differentiation.

    >>> import mycel as ms
    >>> float(ms.grad(lambda x: x * ms.ops.stop_gradient(x))(ms.Tensor(3.0)))
    3.0
    """
    from mycel.prims.elementwise import stop_gradient as primitive

    return eager.apply(primitive, as_tensor(value))  # type: ignore[no-any-return]
