"""Directional derivatives: `jvp`, `linearize`, `vjp`, and Taylor-mode `jet` and `derivative`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.compiler.prims import shape as S
from mycel._src.compiler.prims.indexing import index as I
from mycel._src.foundation import arguments
from mycel._src.foundation.pytree import flatten, map_leaves, unflatten
from mycel._src.foundation.settings import config
from mycel._src.staging.compiled.jit import Jit
from mycel._src.staging.derivatives.gradient import cotangents_for, shaped_like
from mycel._src.staging.derivatives.transformed_function import (
    Marked,
    filled_like,
    marked_node,
    or_zeros,
    recording,
    split_aux,
    weights_of,
)
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.autograd.gradient_hooks import call_user, hooked
from mycel._src.tensors.core.execution_context import Differentiating
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, as_tensor, cast, make, scalar

__all__ = ["derivative", "jet", "jvp", "linearize", "vjp"]


def _arguments(name: str, inputs: Any) -> tuple[Any, ...]:
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs)
    if isinstance(inputs, (Tensor, int, float)) and not isinstance(inputs, bool):
        return (inputs,)
    raise TypeError(
        f"{name}: the inputs must be a tensor, or a tuple or list of them, not {type(inputs).__name__} ({inputs!r:.60})"
    )


def _tangents(name: str, marked: Sequence[Marked], v: Any) -> list[Tensor]:
    """Return the vectors `v` as tangents, one for each tensor of the inputs and of its type."""
    given = tuple(v) if isinstance(v, (tuple, list)) else (v,)
    if len(given) != len(marked):
        raise ValueError(f"{name}: {len(given)} tangents are given for {len(marked)} inputs; give one for each")
    result: list[Tensor] = []
    for i, (m, t) in enumerate(zip(marked, given)):
        found = flatten(t)[0]
        if len(found) != len(m.tensors):
            raise ValueError(f"{name}: tangent {i} holds {len(found)} tensors, its input {len(m.tensors)}")
        for part, like in zip(found, m.tensors):
            result.append(shaped_like(name, f"tangent {i}", part, like, "input"))
    return result


def _tensors(name: str, out: Any) -> tuple[list[Tensor], Any]:
    leaves, structure = flatten(out)
    for v in leaves:
        if not isinstance(v, Tensor):
            raise TypeError(f"{name}: the function must return tensors, not {type(v).__name__} ({v!r:.60})")
    return leaves, structure


def _jvp(fn: Any, has_aux: bool, name: str, inputs: tuple[Any, ...], v: Any) -> Any:
    with recording() as derivatives:
        marked = [Marked(derivatives, name, a, i) for i, a in enumerate(inputs)]
        tangents = _tangents(name, marked, v)
        out = derivatives.context.invoke(fn, tuple([m.value for m in marked]), {})
        value, aux = split_aux(name, out, has_aux)
        outputs, structure = _tensors(name, value)
        values, moved = derivatives.pushforward(outputs, [n for m in marked for n in m.nodes], tangents)
        result = [or_zeros(t, o) for t, o in zip(moved, outputs)]
    pair = unflatten(structure, list(values)), unflatten(structure, result)
    return (*pair, aux[0] if len(aux) == 1 else aux) if has_aux else pair


def _once(function: Any, *args: Any) -> Any:
    """Call a function of this module, compiled as a whole for a call from plain Python in
    GRAPH_MODE.
    """
    return _compiled(function)(*args) if _is_compiling() else function(*args)


def _is_compiling() -> bool:
    return config._context["mode"] == config.GRAPH_MODE and eager.current_context() is None


@functools.cache
def _compiled(function: Any) -> Any:
    return Jit(function)


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> Any:
    """Return the outputs of a function and its Jacobian times a vector, by forward mode.

    When compiled, no values are kept for a backward pass, so that the memory of a loop does not
    grow with its rounds.

    Args:
        fn (Callable[..., Any]): The function, or Cell.
        inputs (Tensor | tuple[Tensor, ...]): A tensor, or a tuple or list of as many as `fn` takes.
        v (Tensor | tuple[Tensor, ...]): The vector: of the structure and the shapes of the inputs.
        has_aux (bool): Whether only the first output is differentiated, and the others are a
            further result. Default: False.

    Returns:
        tuple[Any, ...]: The outputs and the product.

    Raises:
        TypeError, ValueError: For inputs and vectors that do not fit.

    Examples:
        >>> import mycel as ms
        >>> out, product = ms.jvp(lambda x: x * x, ms.Tensor([1.0, 2.0]), ms.Tensor([1.0, 10.0]))
        >>> product.asnumpy().tolist()
        [2.0, 40.0]
    """
    arguments.function("jvp", "fn", fn)
    arguments.flag("jvp", "has_aux", has_aux)
    return _once(_jvp, fn, bool(has_aux), "jvp", _arguments("jvp", inputs), v)


# Functions that remember where they were taken.


class _Taken:
    """The common part of functions that compute derivatives of a recorded call: the `derivatives`
    of the recording, and the `outputs` with their `structure`.
    """

    def __init__(self, derivatives: Differentiating, outputs: Sequence[Tensor], structure: Any) -> None:
        self.derivatives, self.outputs, self.structure = derivatives, list(outputs), structure
        context = derivatives.context
        # A segment must not drop the nodes before the function has been called.
        if context.is_live:
            context.taken.add(self)  # type: ignore[attr-defined]

    def within(self) -> Any:
        """Return a context manager within which a gradient around this one sees the derivative's
        operations.
        """
        return recording() if eager.current_context() is self.derivatives.context else _Outside()


class _Outside:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        return None


class _Pullback(_Taken):
    """The function from cotangents to gradients that `vjp` returns.

    `derivatives`, `outputs` and `structure` are those of `_Taken`. `inputs` are the marked
    arguments, `weights` the parameters to differentiate by (None for none given, `one` for a single
    one), and `nodes` the nodes of both.
    """

    def __init__(
        self,
        derivatives: Differentiating,
        outputs: Any,
        structure: Any,
        inputs: Any,
        weights: Any,
        nodes: Any,
        one: bool,
    ) -> None:
        super().__init__(derivatives, outputs, structure)
        self.inputs: Sequence[Marked] = inputs
        self.weights: list[Parameter] | None = weights
        self.nodes, self.one = nodes, one

    def __call__(self, *cotangents: Any) -> Any:
        given = cotangents_for("vjp", self.outputs, cotangents)
        pairs = [(o, c) for o, c in zip(self.outputs, given) if o.dtype.is_differentiable]
        likes = [t for m in self.inputs for t in m.tensors] + (self.weights or [])
        sources = [t for m in self.inputs for t in m.given] + (self.weights or [])
        with self.within():
            found = self.derivatives.pullback([o for o, _ in pairs], [c for _, c in pairs], self.nodes)
            grads = [
                hooked(self.derivatives, like, source, or_zeros(g, like))
                for like, source, g in zip(likes, sources, found)
            ]
        parts, start = [], 0
        for m in self.inputs:
            parts.append(unflatten(m.structure, grads[start : start + len(m.tensors)]))
            start += len(m.tensors)
        if self.weights is None:
            return tuple(parts)
        return tuple(parts), grads[start] if self.one else tuple(grads[start:])


class _Pushforward(_Taken):
    """The function from tangents of the inputs to tangents of the outputs that `linearize` returns.

    `derivatives`, `outputs` and `structure` are those of `_Taken`; `inputs` are the marked
    arguments.
    """

    def __init__(self, derivatives: Differentiating, outputs: Any, structure: Any, inputs: Sequence[Marked]) -> None:
        super().__init__(derivatives, outputs, structure)
        self.inputs = inputs

    def __call__(self, *tangents: Any) -> Any:
        v = tangents[0] if len(tangents) == 1 and len(self.inputs) != 1 else tangents
        given = _tangents("linearize", self.inputs, v)
        with self.within():
            nodes = [n for m in self.inputs for n in m.nodes]
            _, moved = self.derivatives.pushforward(self.outputs, nodes, given)
            result = [or_zeros(t, o) for t, o in zip(moved, self.outputs)]
        return unflatten(self.structure, result)


def _target(fn: Any) -> Any:
    """Return the function to record; from plain Python in GRAPH_MODE one that is compiled as a
    whole.
    """
    if not _is_compiling() or getattr(type(fn), "is_compiled_function", False):
        return fn
    return functools.partial(_compiled(_called), fn)


def _called(fn: Any, *args: Any) -> Any:
    return call_user(fn, *args)


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> Any:
    """Return the outputs of `fn` and the function that gives the product of a vector and its
    Jacobian, by reverse mode.

    Args:
        fn (Callable[..., Any]): The function, or Cell.
        *inputs (Tensor): As many as `fn` takes.
        weights (Parameter | list[Parameter] | None): Parameters whose gradients are wanted as well.
            Default: None.
        has_aux (bool): Whether only the first output is differentiated, and the others are a
            further result. Default: False.

    Returns:
        tuple[Any, ...]: The outputs, and a function that takes a cotangent for each output, of the
            same shape, and returns a tuple of gradients, one for each input, or with `weights` a
            pair of that tuple and the gradients of the weights. It may be called many times.

    Raises:
        TypeError, ValueError: For inputs and cotangents that do not fit.

    Examples:
        >>> import mycel as ms
        >>> out, pull = ms.vjp(lambda x, y: x * y, ms.Tensor(3.0), ms.Tensor(4.0))
        >>> [float(g) for g in pull(ms.Tensor(10.0))]
        [40.0, 30.0]
    """
    arguments.function("vjp", "fn", fn)
    arguments.flag("vjp", "has_aux", has_aux)
    chosen, one = weights_of("vjp", weights)
    target = _target(fn)
    with recording(keep=True) as derivatives:
        marked = [Marked(derivatives, "vjp", a, i) for i, a in enumerate(inputs)]
        with derivatives.marked_weights(chosen) as weight_nodes:
            out = derivatives.context.invoke(target, tuple([m.value for m in marked]), {})
            value, aux = split_aux("vjp", out, has_aux)
            outputs, structure = _tensors("vjp", value)
            nodes = [*[n for m in marked for n in m.nodes], *weight_nodes]
            held = chosen if weights is not None else None
            pull = _Pullback(derivatives, outputs, structure, marked, held, nodes, one)
    result = (_own(derivatives, value), pull)
    return (*result, _own(derivatives, aux[0] if len(aux) == 1 else aux)) if has_aux else result


def _own(derivatives: Differentiating, out: Any) -> Any:
    """Return outputs for the caller, without the nodes of a recording that is used for them alone,
    which they would keep alive.
    """
    if derivatives.context is eager.current_context():
        return out
    plain = lambda t: make(t._type, t._buf) if type(t) is Tensor and derivatives.node_of(t) is not None else t
    return map_leaves(plain, out)


def linearize(fn: Callable[..., Any], inputs: Any) -> Any:
    """Return the outputs of `fn` at `inputs` and the function that gives its Jacobian times a
    vector, for many vectors at one point.

    `inputs` are a tensor, or a tuple or list of as many as `fn` takes; the function takes as many
    tangents, or a tuple of them.

    >>> import mycel as ms
    >>> out, push = ms.ops.linearize(lambda x: x * x, ms.Tensor(3.0))
    >>> float(push(ms.Tensor(1.0))), float(push(ms.Tensor(2.0)))
    (6.0, 12.0)
    """
    arguments.function("linearize", "fn", fn)
    points = _arguments("linearize", inputs)
    target = _target(fn)
    with recording(keep=True) as derivatives:
        marked = [Marked(derivatives, "linearize", a, i) for i, a in enumerate(points)]
        out = derivatives.context.invoke(target, tuple([m.value for m in marked]), {})
        outputs, structure = _tensors("linearize", out)
        push = _Pushforward(derivatives, outputs, structure, marked)
    return _own(derivatives, out), push


# Along curves.


def _jet(fn: Any, order: int, primals: tuple[Any, ...], series: tuple[Any, ...]) -> list[Any]:
    """Return the outputs of `fn` along a curve through `primals`, and their derivatives by the
    parameter of the curve.
    """

    def along(t: Tensor) -> Any:
        points = [_curve(p, s, t, order) for p, s in zip(primals, series)]
        return call_user(fn, *points)

    if not flatten(primals)[0]:
        raise ValueError("derivative: the function needs at least one tensor to be differentiated by")
    return _derivatives(along, scalar(0.0, flatten(primals)[0][0].dtype), order)


def _derivatives(fn: Any, at: Tensor, order: int) -> list[Any]:
    """Return the value of `fn`, a function of one number, at a point, and its derivatives up to an
    order.
    """
    if order == 0:
        with recording():
            return [fn(at)]
    with recording() as derivatives:
        marked = derivatives.mark(at)
        lower = _derivatives(fn, marked, order - 1)
        outputs, structure = _tensors("jet", lower[-1])
        _, moved = derivatives.pushforward(outputs, [marked_node(derivatives, marked)], [filled_like(at, 1)])
        last = unflatten(structure, [or_zeros(m, o) for m, o in zip(moved, outputs)])
    return [*lower, last]


def _curve(primal: Tensor, series: Tensor, t: Tensor, order: int) -> Tensor:
    """Return primal + sum of series[k] * t**(k + 1) / (k + 1)!"""
    point, power = primal, t
    for k in range(order):
        row = eager.apply(I.take, series, as_tensor(k), axis=0)
        term = eager.apply(E.mul, row, eager.apply(E.mul, power, scalar(1 / math.factorial(k + 1), t.dtype)))
        point = eager.apply(E.add, point, term)
        power = eager.apply(E.mul, power, t)
    return point


def jet(fn: Callable[..., Any], primals: Any, series: Any) -> tuple[Any, Any]:
    """Return the outputs of `fn` and their first derivatives along a curve through `primals`, whose
    derivatives are `series`.

    `primals` is a tensor or a tuple of them, `series` one for each, with its derivatives of first
    to n-th order along a new first axis. Returns the outputs and their derivatives in the same form
    (Griewank and Walther, "Evaluating Derivatives", 2008, chapter 13).

    >>> import mycel as ms
    >>> curve = ms.Tensor([[1.0], [0.0], [0.0]])
    >>> out, series = ms.ops.jet(lambda x: x * x * x, ms.Tensor([2.0]), curve)
    >>> series.asnumpy().ravel().tolist()
    [12.0, 12.0, 6.0]
    """
    arguments.function("jet", "fn", fn)
    points, curves = _arguments("jet", primals), _arguments("jet", series)
    if len(points) != len(curves):
        raise ValueError(f"jet: {len(curves)} series are given for {len(points)} primals; give one for each")
    order = None
    for i, (p, s) in enumerate(zip(points, curves)):
        if not isinstance(p, Tensor) or not isinstance(s, Tensor) or not p.dtype.is_floating:
            raise TypeError(f"jet: primal {i} and its series must be tensors of a floating type")
        if s.shape[1:] != p.shape or not s.shape or s.shape[0] < 1 or (order is not None and s.shape[0] != order):
            raise ValueError(
                f"jet: series {i} has shape {s.shape}; it must be (order, *{p.shape}), of one order for all"
            )
        order = s.shape[0]
    cast_to = [cast(s, p.dtype) if s.dtype is not p.dtype else s for p, s in zip(points, curves)]
    found = _once(_jet, fn, order, points, tuple(cast_to))
    parts = [flatten(f)[0] for f in found]
    structure = flatten(found[0])[1]
    stacked = [_stack(column) for column in zip(*parts[1:])]
    return found[0], unflatten(structure, stacked)


def _stack(values: Sequence[Tensor]) -> Tensor:
    lead = [eager.apply(S.RESHAPE, v, shape=(1, *v.shape)) for v in values]
    return eager.apply(S.CONCAT, *lead, axis=0)


def derivative(fn: Callable[..., Any], primals: Any, order: int) -> tuple[Any, Any]:
    """Return the outputs of `fn` and their derivative of an order along all inputs at once, which
    is that of ``fn(primals + t)`` by t at 0.

    >>> import mycel as ms
    >>> out, third = ms.ops.derivative(lambda x: x * x * x, ms.Tensor([2.0]), 3)
    >>> third.asnumpy().tolist()
    [6.0]
    """
    arguments.function("derivative", "fn", fn)
    arguments.integer("derivative", "order", order, 1, numpy=False, error=ValueError)
    points = _arguments("derivative", primals)
    series = []
    for i, p in enumerate(points):
        if not isinstance(p, Tensor) or not p.dtype.is_floating:
            raise TypeError(f"derivative: input {i} must be a tensor of a floating type")
        one = filled_like(p, 1)
        series.append(_stack([one, *[filled_like(p, 0)] * (order - 1)]))
    found = _once(_jet, fn, order, points, tuple(series))
    return found[0], found[-1]
