"""Reverse-mode gradients as functions: `grad`, `value_and_grad`, `get_grad` and `stop_gradient`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

from mycel._src.compiler.ir.graph import Node
from mycel._src.compiler.prims.elementwise import stop_gradient as STOP
from mycel._src.compiler.prims.reduce import reduce_sum as REDUCE_SUM
from mycel._src.compiler.prims.shape import BROADCAST_TO, RESHAPE
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import GradientError, IndexRangeError
from mycel._src.foundation.pytree import flatten, map_leaves, unflatten
from mycel._src.staging.derivatives.transformed_function import (
    Marked,
    Transformed,
    back_in,
    earlier_call,
    filled_like,
    holds_numbers,
    is_constant,
    mark_arguments,
    need_position,
    or_zeros,
    positions_of,
    recording,
    split_aux,
    weights_of,
)
from mycel._src.staging.frontend.parallelism.micro_batches import invoked
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.gradient_hooks import broadcasts, hooked
from mycel._src.tensors.core.execution_context import Differentiating
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["Gradient", "cotangents_for", "get_grad", "grad", "shaped_like", "stop_gradient", "value_and_grad"]

Positions = int | tuple[int, ...] | None
A = TypeVar("A", bound=Any)
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Gradient(Transformed):
    """The gradient function of `fn`, which returns the gradients, or (value, gradients) if
    `with_value`.

    `positions` are the arguments to differentiate by, or None for all of them, whose gradients are
    a tuple then. `weights`, `has_aux`, `return_ids` and `sens_param` are those of `grad`. With
    `anew` a Cell is called also where an earlier call of it would do.
    """

    anew = False

    def __init__(
        self,
        fn: Any,
        positions: tuple[int, ...] | None,
        weights: Any,
        has_aux: bool = False,
        return_ids: bool = False,
        sens_param: bool = False,
        with_value: bool = False,
    ) -> None:
        super().__init__(fn)
        self.positions, self.weights, self.has_aux, self.return_ids = positions, weights, has_aux, return_ids
        self.sens_param, self.with_value = sens_param, with_value

    def _constants(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if self.positions == ():
            return ()
        constants = tuple([key for key, v in (*enumerate(args), *kwargs.items()) if is_constant(v)])
        if not constants or self.positions is None:
            return constants
        own, named, _ = _without_sens(args, kwargs) if self.sens_param else (args, kwargs, None)
        asked = [key for key, _ in self._keys(own, named)]
        if any(key not in constants for key in asked):
            return constants
        given: dict[Any, Any] = dict(enumerate(own)) | named
        return tuple([key for key in constants if key not in asked or not holds_numbers(given[key])])

    def _derive(self, constants: tuple[Any, ...], /, *args: Any, **kwargs: Any) -> Any:
        sens: Any = None
        if self.sens_param:
            args, kwargs, sens = _without_sens(args, kwargs)
        weights, one_weight = weights_of("grad", self.weights)
        distinct = list({id(w): w for w in weights}.values())
        arguments: dict[Any, Any] = dict(enumerate(args)) | kwargs
        keys = [(key, p) for key, p in self._keys(args, kwargs) if key not in constants]
        earlier = None
        if not kwargs and not self.anew:
            earlier = earlier_call(self.fn, args, [arguments[key] for key, _ in keys], distinct)
        with recording() if earlier is None else back_in(earlier.derivatives) as derivatives:
            if earlier is not None:
                inputs = [Marked(derivatives, "grad", arguments[key], p, earlier) for key, p in keys]
                out = earlier.out
                weight_nodes = [earlier.nodes[id(w)] for w in distinct]
                result = self._gradients(derivatives, out, inputs, distinct, weight_nodes, sens, earlier.stops)
            else:
                inputs = mark_arguments(derivatives, "grad", arguments, keys)
                with derivatives.marked_weights(distinct) as weight_nodes:
                    given = tuple([arguments[i] for i in range(len(args))])
                    out = invoked(derivatives.context, self.fn, given, {k: arguments[k] for k in kwargs})
                    result = self._gradients(derivatives, out, inputs, distinct, weight_nodes, sens)
            likes: list[Tensor] = [*[t for m in inputs for t in m.tensors], *distinct]
            sources: list[Tensor] = [*[t for m in inputs for t in m.given], *distinct]
            result = [hooked(derivatives, like, source, g) for like, source, g in zip(likes, sources, result)]
        count = len(result) - len(distinct)
        by_weight = {id(w): g for w, g in zip(distinct, result[count:])}
        by_position = _by_position(result[:count], inputs)
        if self.return_ids:
            by_position = list(zip([p for _, p in keys], by_position))
        grads = self._arrange(by_position, [by_weight[id(w)] for w in weights], weights, one_weight)
        return (out, grads) if self.with_value else (grads, out[1:]) if self.has_aux else grads

    def _keys(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Any, int]]:
        """Return the key of each argument to differentiate by, with its position.

        The key is the position, or the name of an argument that was given by name. Arguments given
        by name follow the others in the order of the function's parameters.
        """
        if self.positions == ():
            return []
        names: list[Any] = list(range(len(args)))
        if kwargs:
            known = inspect.signature(getattr(self.fn, "construct", self.fn)).parameters
            names += [n for n in known if n in kwargs] + [n for n in kwargs if n not in known]
        if self.positions is None:
            return [(name, p) for p, name in enumerate(names)]
        if not names:
            return []
        for p in self.positions:
            need_position("grad", p, len(names))
        return [(names[p], p) for p in self.positions]

    def _gradients(
        self,
        derivatives: Differentiating,
        out: Any,
        inputs: Sequence[Marked],
        weights: Sequence[Tensor],
        weight_nodes: Sequence[Node],
        sens: Any,
        stops: Sequence[Node] = (),
    ) -> list[Tensor]:
        """Return the gradients of outputs by the marked inputs and the weights.

        The context of `derivatives` computed the outputs `out`; `weight_nodes` are the nodes of the
        weights, `sens` the cotangent that was given, and at the nodes `stops` the derivative ends
        as well.
        """
        wrt = [*[n for m in inputs for n in m.nodes], *weight_nodes]
        likes = [*[t for m in inputs for t in m.tensors], *weights]
        value, _ = split_aux("grad", out, self.has_aux)
        roots = [r for r in flatten(value)[0] if isinstance(r, Tensor)]
        cotangents: Sequence[Tensor | None] = [None] * len(roots)
        if self.sens_param:
            cotangents = cotangents_for("grad", roots, sens)
        pairs = [(r, c) for r, c in zip(roots, cotangents) if r.dtype.is_differentiable]
        given = [filled_like(r, 1) if c is None else c for r, c in pairs]
        grads: Sequence[Tensor | None] = [None] * len(wrt)
        if pairs and wrt:
            grads = derivatives.pullback([r for r, _ in pairs], given, [*wrt, *stops])
        return [or_zeros(g, like) for g, like in zip(grads, likes)]

    def _arrange(
        self, by_position: list[Any], by_parameter: list[Any], weights: Sequence[Parameter], one_weight: bool
    ) -> Any:
        if self.return_ids:
            by_parameter = [(w.name, g) for w, g in zip(weights, by_parameter)]
        single = self.positions is not None and len(by_position) == 1
        inputs_part = by_position[0] if single else tuple(by_position)
        weights_part = by_parameter[0] if one_weight else tuple(by_parameter)
        if self.weights is None:
            return inputs_part
        return weights_part if self.positions == () else (inputs_part, weights_part)


def _without_sens(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """Return a function's arguments, by position and by name, and the cotangent among them."""
    for name in ("sens", "sens_param"):
        if name in kwargs:
            return args, {k: v for k, v in kwargs.items() if k != name}, kwargs[name]
    if not args:
        raise ValueError("grad: with sens_param=True the last positional argument is the cotangent of the output")
    return args[:-1], kwargs, args[-1]


def _by_position(grads: Sequence[Tensor], inputs: Sequence[Marked]) -> list[Any]:
    """Return gradients in the form of the arguments."""
    found: list[Any] = []
    start = 0
    for marked in inputs:
        found.append(unflatten(marked.structure, grads[start : start + len(marked.tensors)]))
        start += len(marked.tensors)
    return found


def _checked(
    fn: Any, positions: Any, weights: Any, has_aux: Any, return_ids: Any, sens_param: bool, with_value: bool
) -> Gradient:
    """Return the gradient function of `grad` after a check of its arguments, which are those of
    `grad` and `Gradient`.
    """
    arguments.function("grad", "fn", fn)
    if positions is None and weights is None:
        raise ValueError("grad: grad_position and weights are both None; name something to differentiate by")
    arguments.flag("grad", "has_aux", has_aux)
    arguments.flag("grad", "return_ids", return_ids)
    given = positions_of("grad", positions)
    if not given and positions is not None:
        raise IndexRangeError("grad: grad_position is empty; give None to differentiate by weights alone")
    return Gradient(fn, given, weights, has_aux, return_ids, sens_param, with_value)


def cotangents_for(name: str, outputs: Sequence[Tensor], given: Any) -> list[Tensor]:
    """Return the given cotangents, one for each output, in its shape.

    A cotangent whose shape can be broadcast to that of its output is, and one of a number's output
    is summed. Raises GradientError where their number differs and for what is no tensor, ValueError
    for other shapes, and TypeError for another element type.
    """
    found = flatten(given)[0]
    if len(found) != len(outputs):
        raise GradientError(f"{name}: {len(found)} cotangents are given for {len(outputs)} outputs; give one for each")
    result = []
    for i, (c, o) in enumerate(zip(found, outputs)):
        if not o.shape and isinstance(c, (int, float)) and not isinstance(c, bool):
            c = filled_like(o, c)
        result.append(shaped_like(name, f"cotangent {i}", c, o, "output"))
    return result


def shaped_like(name: str, what: str, given: Any, like: Tensor, whose: str) -> Tensor:
    """Return the cotangent or tangent `given` in the shape of the tensor `like`, to which it
    belongs.

    In errors `name` is the function, `what` names the cotangent and `whose` the tensor.
    """
    if not isinstance(given, Tensor):
        raise GradientError(str(arguments.wrong_type(name, what, "a Tensor", given)))
    if given.dtype is not like.dtype and like.dtype.is_differentiable:
        raise TypeError(f"{name}: {what} has type {given.dtype.name}, its {whose} {like.dtype.name}; convert it")
    shape, wanted = given.shape, like.shape
    if shape == wanted:
        return given
    if not wanted:
        return eager.apply(REDUCE_SUM, given, axes=tuple(range(len(shape))), keepdims=False)
    while len(shape) > len(wanted) and shape[0] == 1:
        shape = shape[1:]
    if not broadcasts(shape, wanted):
        raise ValueError(
            f"{name}: {what} has shape {given.shape}, its {whose} {like.shape}; give one of the same shape"
        )
    return eager.apply(BROADCAST_TO, eager.apply(RESHAPE, given, shape=shape), shape=wanted)


@overload
def grad(
    fn: Callable[Concatenate[A, P], Any], grad_position: Literal[0] = 0, weights: None = None
) -> Callable[Concatenate[A, P], A]: ...
@overload
def grad(fn: Callable[P, Any], grad_position: None, weights: Parameter) -> Callable[P, Tensor]: ...
@overload
def grad(
    fn: Callable[P, Any], grad_position: None, weights: Sequence[Parameter]
) -> Callable[P, tuple[Tensor, ...]]: ...
@overload
def grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]: ...
def grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the gradient of `fn`.

    Gradients nest to any order. A gradient has the element type of its argument: one by integers
    consists of integers, to which values are rounded wherever a cast did so on the way forward.
    Beside arguments that are tensors there is none by Python's numbers, nor by tuples, lists and
    dicts from plain Python, unless `mutable` marks them; alone they have one.

    Args:
        fn (Callable[..., Any]): The function or Cell.
        grad_position (int | tuple[int, ...] | None): The positional arguments to differentiate by.
            Default: 0.
        weights (Parameter | Sequence[Parameter] | None): Parameters to differentiate by as well.
            Default: None.
        has_aux (bool): Whether only the first output is differentiated, and the others are returned
            beside the gradients. Default: False.
        return_ids (bool): Whether each gradient comes with its position or parameter name. Default:
            False.
        sens_param (bool): Whether outputs that are not scalars are weighted by the last positional
            argument, instead of summed. Default: False.

    Returns:
        Callable[..., Any]: The function of the same arguments, which gives the gradient, or several
            as a tuple.

    Raises:
        IndexRangeError: For positions that are out of range.

    Examples:
        >>> import mycel as ms
        >>> ms.grad(lambda x: x * x * x)(ms.Tensor(2.0))
        Tensor(shape=[], dtype=Float32, value= 12)
    """
    return _checked(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=False)


@overload
def value_and_grad(
    fn: Callable[Concatenate[A, P], R], grad_position: Literal[0] = 0, weights: None = None
) -> Callable[Concatenate[A, P], tuple[R, A]]: ...
@overload
def value_and_grad(fn: Callable[P, R], grad_position: None, weights: Parameter) -> Callable[P, tuple[R, Tensor]]: ...
@overload
def value_and_grad(
    fn: Callable[P, R], grad_position: None, weights: Sequence[Parameter]
) -> Callable[P, tuple[R, tuple[Tensor, ...]]]: ...
@overload
def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]: ...
def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """Return the function that computes the outputs of `fn` and its gradient.

    Args:
        fn (Callable[..., Any]): The function or Cell.
        grad_position (int | tuple[int, ...] | None): The positional arguments to differentiate by.
            Default: 0.
        weights (Parameter | Sequence[Parameter] | None): Parameters to differentiate by as well.
            Default: None.
        has_aux (bool): Whether only the first output is differentiated, and the others are returned
            beside the gradients. Default: False.
        return_ids (bool): Whether each gradient comes with its position or parameter name. Default:
            False.
        sens_param (bool): Whether outputs that are not scalars are weighted by the last positional
            argument, instead of summed. Default: False.

    Returns:
        Callable[..., Any]: The function of the same arguments, which gives the outputs and the
            gradients.

    Examples:
        >>> import mycel as ms
        >>> value, slope = ms.value_and_grad(lambda x: x * x)(ms.Tensor(3.0))
        >>> float(value), float(slope)
        (9.0, 6.0)
    """
    return _checked(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=True)


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """Return the gradient of one position or parameter from what `grad(..., return_ids=True)`
    returned.

    Raises RuntimeError if it is not there, and TypeError for an `identifier` that is neither an int
    nor a Parameter.

    >>> import mycel as ms
    >>> g = ms.grad(lambda x, y: x * y, (0, 1), return_ids=True)(ms.Tensor(2.0), ms.Tensor(3.0))
    >>> float(ms.get_grad(g, 1))
    2.0
    """
    arguments.instance("get_grad", "identifier", identifier, (int, Parameter), "an int or a Parameter")
    found = _search(gradients, identifier.name if isinstance(identifier, Parameter) else identifier)
    if found is None:
        raise RuntimeError(
            f"get_grad: there is no gradient for {identifier!r} here; was it asked for, and with return_ids=True?"
        )
    return found


def _search(gradients: Any, wanted: int | str) -> Tensor | None:
    """Return the gradient of a position or name among pairs, which may be nested in tuples."""
    if not isinstance(gradients, tuple):
        return None
    if len(gradients) == 2 and isinstance(gradients[0], (int, str)) and isinstance(gradients[1], (Tensor, tuple, list)):
        return gradients[1] if gradients[0] == wanted else None  # type: ignore[return-value]
    return next((found for part in gradients if (found := _search(part, wanted)) is not None), None)


def stop_gradient(value: T) -> T:
    """Return `value` as a constant for differentiation.

    Tensors in a tuple, list or dict are constants too; what is no tensor is returned as it is.

    >>> import mycel as ms
    >>> float(ms.grad(lambda x: x * ms.ops.stop_gradient(x))(ms.Tensor(3.0)))
    3.0
    """
    result: T = map_leaves(lambda v: eager.apply(STOP, v) if isinstance(v, Tensor) else v, value)
    return result
