"""Gradients of functions and Cells as functions: `grad`, `value_and_grad`, `get_grad` and
`stop_gradient`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Concatenate, Literal, Optional, ParamSpec, TypeVar, Union, overload

from mycel.base import arguments
from mycel.base.tree import flatten, unflatten
from mycel.core import eager
from mycel.core.context import Differentiating
from mycel.core.hooks import hooked
from mycel.core.parameter import Parameter
from mycel.core.tensor import Tensor, as_tensor, cast
from mycel.derivatives.contexts import (
    Marked,
    Transformed,
    filled_like,
    mark_arguments,
    or_zeros,
    positions_of,
    recording,
    split_aux,
    weights_of,
)

__all__ = ["cotangents_for", "get_grad", "grad", "stop_gradient", "value_and_grad"]

Positions = Union[None, int, tuple[int, ...]]
A = TypeVar("A", bound=Any)
P = ParamSpec("P")
R = TypeVar("R")


class _Gradient(Transformed):
    """The gradient function of `fn`, which returns the gradients, or (value, gradients) if
    `with_value`.

    `positions` are the arguments to differentiate by, and `weights`, `has_aux`, `return_ids` and
    `sens_param` are those of `grad`.
    """

    def __init__(
        self,
        fn: Any,
        positions: Positions,
        weights: Any,
        has_aux: bool,
        return_ids: bool,
        sens_param: bool,
        with_value: bool,
    ) -> None:
        arguments.function("grad", "fn", fn)
        if positions is None and weights is None:
            raise ValueError("grad: grad_position and weights are both None; name something to differentiate by")
        given = positions_of("grad", positions)
        if not given and weights is None:
            raise ValueError("grad: grad_position is empty and weights is None; name something to differentiate by")
        super().__init__(fn)
        self.positions, self.single = given, len(given) == 1
        self.weights, self.has_aux, self.return_ids = weights, has_aux, return_ids
        self.sens_param, self.with_value = sens_param, with_value

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        sens: Any = None
        if self.sens_param:
            if not args:
                raise ValueError(
                    "grad: with sens_param=True the last positional argument is the cotangent of the output"
                )
            *rest, sens = args
            args = tuple(rest)
        weights, one_weight = weights_of("grad", self.weights)
        distinct = list({id(w): w for w in weights}.values())
        arguments: dict[Any, Any] = dict(enumerate(args)) | kwargs
        keys = [(self._key(p, args, kwargs), p) for p in self.positions]
        with recording() as context:
            inputs = mark_arguments(context, "grad", arguments, keys)
            with context.marked_weights(distinct) as weight_nodes:
                out = context.invoke(
                    self.fn, tuple([arguments[i] for i in range(len(args))]), {k: arguments[k] for k in kwargs}
                )
                nodes = [n for m in inputs for n in m.nodes]
                likes: list[Tensor] = [*[t for m in inputs for t in m.tensors], *distinct]
                result = self._gradients(context, out, [*nodes, *weight_nodes], likes, sens)
            sources: list[Tensor] = [*[t for m in inputs for t in m.given], *distinct]
            result = [hooked(context, like, source, g) for like, source, g in zip(likes, sources, result)]
        count = len(nodes)
        by_weight = {id(w): g for w, g in zip(distinct, result[count:])}
        grads = self._arrange(result[:count], [by_weight[id(w)] for w in weights], inputs, weights, one_weight)
        return (out, grads) if self.with_value else (grads, out[1:]) if self.has_aux else grads

    def _key(self, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the key of the argument at a position: the position, or the name of an argument
        that was given by name.
        """
        if position < len(args):
            return position
        if kwargs:
            names = list(inspect.signature(getattr(self.fn, "construct", self.fn)).parameters)
            if position < len(names) and names[position] in kwargs:
                return names[position]
        raise ValueError(
            f"grad: grad_position {position} is out of range for a call with {len(args)} positional arguments"
        )

    def _gradients(
        self, context: Differentiating, out: Any, wrt: Sequence[Any], likes: Sequence[Tensor], sens: Any
    ) -> list[Tensor]:
        value, _ = split_aux("grad", out, self.has_aux)
        roots = [r for r in flatten(value)[0] if isinstance(r, Tensor)]
        cotangents: Sequence[Optional[Tensor]] = [None] * len(roots)
        if self.sens_param:
            cotangents = cotangents_for("grad", roots, sens)
        pairs = [(r, c) for r, c in zip(roots, cotangents) if r.dtype.is_differentiable]
        given = [filled_like(r, 1) if c is None else c for r, c in pairs]
        grads = context.pullback([r for r, _ in pairs], given, wrt) if pairs else [None] * len(wrt)
        return [or_zeros(g, like) for g, like in zip(grads, likes)]

    def _arrange(
        self,
        grads: list[Tensor],
        by_parameter: list[Any],
        inputs: list[Marked],
        weights: Sequence[Parameter],
        one_weight: bool,
    ) -> Any:
        by_position: list[Any] = []
        start = 0
        for marked in inputs:
            by_position.append(unflatten(marked.structure, grads[start : start + len(marked.tensors)]))
            start += len(marked.tensors)
        if self.return_ids:
            by_position = list(zip(self.positions, by_position))
            by_parameter = [(w.name, g) for w, g in zip(weights, by_parameter)]
        inputs_part = by_position[0] if self.single else tuple(by_position)
        weights_part = by_parameter[0] if one_weight else tuple(by_parameter)
        if self.weights is None:
            return inputs_part
        return (inputs_part, weights_part) if self.positions else weights_part


def cotangents_for(name: str, outputs: Sequence[Tensor], given: Any) -> list[Tensor]:
    """Return the given cotangents, one for each output, converted to its type.

    Raises ValueError where their number or a shape differs, and TypeError for what is no tensor.
    """
    found = flatten(given)[0]
    if len(found) != len(outputs):
        raise ValueError(f"{name}: {len(found)} cotangents are given for {len(outputs)} outputs; give one for each")
    result: list[Tensor] = []
    for i, (c, o) in enumerate(zip(found, outputs)):
        if isinstance(c, (int, float)) and not isinstance(c, bool):
            c = as_tensor(float(c))
        if not isinstance(c, Tensor):
            raise arguments.wrong_type(name, f"cotangent {i}", "a Tensor", c)
        if c.shape != o.shape:
            raise ValueError(
                f"{name}: cotangent {i} has shape {c.shape}, its output {o.shape}; give one of the same shape"
            )
        result.append(c if c.dtype is o.dtype or not o.dtype.is_differentiable else cast(c, o.dtype))
    return result


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

    `grad_position` names the positional arguments to differentiate by (an int, a tuple, or None),
    `weights` parameters to differentiate by as well. With `has_aux` only the first output is
    differentiated and the others are returned beside the gradients. Outputs that are not scalars
    are summed, or weighted by the last positional argument with `sens_param`. With `return_ids`
    each gradient comes with its position or parameter name. Gradients nest to any order. Raises
    TypeError for arguments that are not of a floating type, and ValueError for positions that are
    out of range.

    >>> import mycel as ms
    >>> ms.grad(lambda x: x * x * x)(ms.Tensor(2.0))
    Tensor(shape=[], dtype=Float32, value= 12)
    """
    return _Gradient(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=False)


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

    `grad_position`, `weights`, `has_aux`, `return_ids` and `sens_param` are those of `grad`.

    >>> import mycel as ms
    >>> value, slope = ms.value_and_grad(lambda x: x * x)(ms.Tensor(3.0))
    >>> float(value), float(slope)
    (9.0, 6.0)
    """
    return _Gradient(fn, grad_position, weights, has_aux, return_ids, sens_param, with_value=True)


def get_grad(gradients: Any, identifier: Any) -> Tensor:
    """Return the gradient of one position or parameter from what `grad(..., return_ids=True)`
    returned.

    Raises ValueError if it is not there.

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
    """Return `value` as a constant for differentiation.

    >>> import mycel as ms
    >>> float(ms.grad(lambda x: x * ms.ops.stop_gradient(x))(ms.Tensor(3.0)))
    3.0
    """
    from mycel.prims.elementwise import stop_gradient as primitive

    return eager.apply(primitive, as_tensor(value))
