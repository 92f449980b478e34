"""Gradient hooks of tensors and Cells, which see or change gradients, and a Cell's own `bprop`.

A hook of a computed tensor is attached to the operation that computed it (`attach_hook` of the
context in force). A hook of an input of the derivative, such as a parameter, is called when the
gradient is complete (`hooked`). A Cell's backward hooks are attached to its outputs (where the
gradient comes in) and to its inputs (where it leaves); its `bprop` replaces the derivative between
the two.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from mycel._src.compiler.ir.types import TensorType
from mycel._src.compiler.prims.custom_derivatives import Rule
from mycel._src.compiler.prims.shape import BROADCAST_TO
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import GradientError
from mycel._src.foundation.python_runtime import finalization
from mycel._src.foundation.pytree import flatten, unflatten
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Differentiating
from mycel._src.tensors.core.tensor import Tensor, cast, scalar

__all__ = [
    "TensorHooks",
    "attach",
    "attach_bprop",
    "broadcasts",
    "by_position",
    "call_user",
    "gradient_like",
    "carry_hooks",
    "hooked",
    "hooks_key",
    "register_hook",
    "remove_hook",
    "replaced_gradients",
    "watch_cell",
    "zeros_of",
]


class TensorHooks:
    """The hooks of one tensor, in the order in which they were registered.

    `rules` are those attached to the operation that computed the tensor, and the next one will be
    attached to the node `base`. `by_number` has the hook and the rule of each handle.
    """

    __slots__ = ("hooks", "base", "rules", "by_number", "__weakref__")

    def __init__(self) -> None:
        self.hooks: tuple[Callable[..., Any], ...] = ()
        self.base: Any = None
        self.rules: list[Rule] = []
        self.by_number: dict[int, tuple[Callable[..., Any], Rule]] = {}

    def remove(self, number: int) -> None:
        """Unregister the hook of a handle; again does nothing."""
        found = self.by_number.pop(number, None)
        if found is not None:
            hook, rule = found
            rule.removed = True
            hooks = list(self.hooks)
            hooks.remove(hook)
            self.hooks = tuple(hooks)

    def apply(self, gradient: Tensor) -> Tensor:
        """Return the gradient after all hooks."""
        for hook in self.hooks:
            gradient = _applied(hook, gradient)
        return gradient

    def chain(self) -> Rule:
        """Return one rule of all that are attached."""
        rules = list(self.rules)

        def function(values: Sequence[Tensor], cts: Sequence[Tensor]) -> Sequence[Tensor]:
            for rule in rules:
                if not rule.removed:
                    cts = rule.function(values, cts)
            return cts

        return Rule(function, is_hook=True)


def _applied(hook: Callable[..., Any], gradient: Tensor) -> Tensor:
    found = call_user(hook, gradient)
    if found is None:
        return gradient
    what = f"the hook {_name(hook)}"
    if isinstance(found, Tensor) and found.shape != gradient.shape and broadcasts(found.shape, gradient.shape):
        found = eager.apply(BROADCAST_TO, found, shape=gradient.shape)
    return gradient_like(what, found, gradient)


class TensorHookHandle:
    """The handle of a tensor's hook: `remove` unregisters it, and `Tensor.remove_hook` takes its
    `id`.
    """

    def __init__(self, table: TensorHooks, number: int) -> None:
        self._table = table
        self.id = number

    def remove(self) -> None:
        """Unregister the hook; a second call does nothing."""
        self._table.remove(self.id)


class _Made:
    """The number of tensors that have ever had hooks."""

    tables = 0


_made = _Made()
_tables: finalization.Living[TensorHooks] = finalization.Living()
_numbers = itertools.count(1)


def call_user(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the user in the way of the context in force."""
    context = eager.current_context()
    return function(*args) if context is None else context.invoke(function, args, {})


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


def _checked(what: str, found: Any, like: Tensor) -> Tensor:
    if not isinstance(found, Tensor):
        raise GradientError(f"{what} must return a tensor or None, not {type(found).__name__} ({found!r:.60})")
    if found.shape != like.shape:
        raise GradientError(f"{what} returned a gradient of shape {found.shape} in place of {like.shape}")
    if found.dtype is not like.dtype:
        raise GradientError(
            f"{what} returned a gradient of {found.dtype.name} in place of {like.dtype.name}; convert it"
        )
    return found


def gradient_like(what: str, found: Any, like: Tensor) -> Tensor:
    """Return a gradient that the program gave, in the element type of the tensor that it is by.

    `what` names who gave it. Raises GradientError for what is no tensor, and for another shape.
    """
    if isinstance(found, Tensor) and found.dtype is not like.dtype and found.shape == like.shape:
        return cast(found, like.dtype)
    return _checked(what, found, like)


def broadcasts(shape: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Return whether a shape can be broadcast to another."""
    return len(shape) <= len(wanted) and all(a == b or a == 1 for a, b in zip(reversed(shape), reversed(wanted)))


def zeros_of(kind: TensorType) -> Tensor:
    """Return zeros of a type."""
    number = scalar(0, kind.dtype)
    return number if not kind.shape else eager.apply(BROADCAST_TO, number, shape=kind.shape)


# Tensors.


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> TensorHookHandle:
    """Call ``hook(gradient)`` when the gradient by this tensor is known; what it returns, unless
    None, replaces the gradient.

    Returns a handle whose `remove()` unregisters the hook. The hook must keep the gradient's shape
    and type. A hook of a tensor that a function computes is registered inside that function; one of
    an argument or of a parameter may be registered before the call.

    >>> import mycel as ms
    >>> def f(x):
    ...     y = x * x
    ...     y.register_hook(lambda g: g * 10)
    ...     return y * 3
    >>> float(ms.grad(f)(ms.Tensor(2.0)))
    120.0
    """
    arguments.function("register_hook", "the hook", hook)
    table = self.__dict__.get("_gradient_hooks")
    if table is None:
        table = self.__dict__["_gradient_hooks"] = TensorHooks()
        _tables.add(table)
        _made.tables += 1
    table.hooks = (*table.hooks, hook)
    rule = Rule(lambda values, cts: [_applied(hook, cts[0])], is_hook=True)
    context = eager.current_context()
    if context is not None:
        table.rules.append(rule)
        if not context.differentiating.attach_hook(self, rule, table):
            table.rules.pop()
    number = next(_numbers)
    table.by_number[number] = (hook, rule)
    return TensorHookHandle(table, number)


def remove_hook(handle_id: int) -> None:
    """Unregister the hook whose handle has this `id`, if it is still registered.

    Raises TypeError for an `id` that is no number.

    >>> import mycel as ms
    >>> x = ms.Tensor(2.0)
    >>> handle = x.register_hook(lambda g: g * 10)
    >>> x.remove_hook(handle.id)
    >>> float(ms.grad(lambda x: x * x)(x))
    4.0
    """
    arguments.integer("remove_hook", "handle_id", handle_id, numpy=False)
    for table in list(_tables):
        table.remove(handle_id)


def hooks(self: Tensor) -> list[Callable[..., Any]]:
    """Return the registered hooks, in order."""
    table = self.__dict__.get("_gradient_hooks")
    return [] if table is None else list(table.hooks)


setattr(Tensor, "register_hook", register_hook)  # noqa: B010
setattr(Tensor, "hooks", hooks)  # noqa: B010


def hooked(derivatives: Differentiating, marked: Tensor, source: Tensor, gradient: Tensor) -> Tensor:
    """Return the gradient by a marked tensor after the hooks of that tensor have seen it.

    `source` is the tensor that `marked` was made of, whose hooks are called as well, and
    `derivatives` took the derivative.
    """
    context = derivatives.context
    staging = context.staging
    if staging is not None:
        # One guard for all tensors: compiled gradients are made anew when one more has hooks.
        staging.following.guard_attribute(_made, "tables", _made.tables)
    if not _tables:
        return gradient
    for t in (marked, source) if marked is not source else (source,):
        table = t.__dict__.get("_gradient_hooks")
        if table is None or table.rules:
            continue
        if staging is not None:
            staging.following.guard_attribute(table, "hooks", table.hooks)
            gradient = table.apply(gradient)
            continue
        with eager.use_context(context if context.depth > 1 else None):
            gradient = table.apply(gradient)
    return gradient


def hooks_key(tensors: Sequence[Tensor]) -> Any:
    """Return what the hooks of arguments contribute to the key of a call; None without hooks."""
    found = [t.__dict__.get("_gradient_hooks") for t in tensors] if _tables else ()
    return tuple([None if table is None else table.hooks for table in found]) if any(found) else None


def carry_hooks(source: Tensor, target: Tensor) -> None:
    """Give a staged argument the hooks of the tensor that it stands for."""
    if _tables and "_gradient_hooks" in source.__dict__:
        target.__dict__["_gradient_hooks"] = source.__dict__["_gradient_hooks"]


# Cells.


def attach(values: Any, operands: Sequence[Tensor], rule: Rule) -> Any:
    """Return `values` (nested containers) with the derivative `rule` by `operands`.

    `rule` takes and returns flat lists of tensors.
    """
    context = eager.current_context()
    leaves, structure = flatten(values)
    tensors = [v for v in leaves if isinstance(v, Tensor)]
    if context is None or not tensors:
        return values
    made = iter(context.differentiating.attach(tensors, operands, rule))
    return unflatten(structure, [next(made) if isinstance(v, Tensor) else v for v in leaves])


def _smooth(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_differentiable


def watch_cell(cell: Any, before: Sequence[Any], after: Sequence[Any], args: tuple[Any, ...], call: Any) -> Any:
    """Return ``call(*args)``, the computation of `cell`, with backward hooks attached.

    The hooks `before` see the gradients by its outputs, those of `after` the gradients by its
    inputs too.
    """
    leaves, structure = flatten(args)
    inputs = [v for v in leaves if _smooth(v)]
    seen: list[Any] = []
    name = type(cell).__name__

    def leaving(values: Any, cts: Sequence[Tensor]) -> Sequence[Any]:
        return run_after(tuple(cts))

    def run_after(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in after:
            found = call_user(hook, cell, gradients, seen[0] if seen else ())
            gradients = replaced_gradients(name, hook, found, gradients)
        return gradients

    def arriving(values: Any, cts: Sequence[Tensor]) -> Sequence[Any]:
        gradients = tuple(cts)
        for hook in before:
            gradients = replaced_gradients(name, hook, call_user(hook, cell, gradients), gradients)
        seen[:] = [gradients]
        if after and not watched:
            run_after((None,) * len(inputs))
        return gradients

    watched = False
    if after and inputs:
        rule = Rule(leaving, is_hook=True)
        rule.refusal = (
            "a backward hook of a Cell sees the gradients of its inputs and of its outputs; call the Cell "
            "outside of conditions and loops that tensors decide"
        )
        made = attach(inputs, inputs, rule)
        watched = any(a is not b for a, b in zip(made, inputs))
        replaced = iter(made)
        args = unflatten(structure, [next(replaced) if _smooth(v) else v for v in leaves])
    output = call(*args)
    results = [v for v in flatten(output)[0] if _smooth(v)]
    if not results:
        return output
    rule = Rule(arriving, is_hook=True)
    if after:
        rule.refusal = (
            "a backward hook of a Cell sees the gradients of its inputs and of its outputs; call the Cell "
            "outside of conditions and loops that tensors decide"
        )
    made = iter(attach(results, results, rule))
    found, form = flatten(output)
    return unflatten(form, [next(made) if _smooth(v) else v for v in found])


def replaced_gradients(what: str, hook: Any, found: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the gradients after a hook that was called with `gradients` and returned `found`.

    Where `found`, or a gradient in it, is None, the hook changed nothing. `what` names the owner
    of the hook in errors.
    """
    if found is None:
        return gradients
    values = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    what = f"the hook {_name(hook)} of {what}"
    if len(values) != len(gradients):
        raise GradientError(f"{what} returned {len(values)} gradients in place of {len(gradients)}")
    return tuple(
        [old if new is None or old is None else _checked(what, new, old) for new, old in zip(values, gradients)]
    )


def by_position(cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments of a Cell that defines bprop as a tuple, in the order of `construct`.

    Raises TypeError for arguments that can only be given by name.
    """
    bound = inspect.signature(cell.construct).bind(*args, **kwargs)
    bound.apply_defaults()
    if bound.kwargs:
        names = ", ".join(bound.kwargs)
        raise TypeError(
            f"{type(cell).__name__}: a Cell that defines bprop takes its inputs by position, not {names} by name"
        )
    return bound.args


def attach_bprop(cell: Any, bprop: Any, args: tuple[Any, ...], output: Any) -> Any:
    """Return the output of `cell` with the derivative that its `bprop` defines.

    The gradients by `args` and by the Cell's parameters are what ``bprop(*args, output, gradient)``
    returns.
    """
    inputs = [flatten(a) for a in args]
    operands = [v for leaves, _ in inputs for v in leaves if _smooth(v)]
    weights = list(cell.get_parameters())
    leaves, structure = flatten(output)

    def rule(values: Sequence[Tensor], cts: Sequence[Tensor]) -> list[Tensor | None]:
        outs, given = iter(values), iter(cts)
        out, dout = [], []
        for leaf in leaves:
            value = next(outs) if isinstance(leaf, Tensor) else leaf
            out.append(value)
            dout.append(
                (next(given) if _smooth(value) else zeros_of(value._type)) if isinstance(leaf, Tensor) else None
            )
        found = call_user(bprop, *args, unflatten(structure, out), unflatten(structure, dout))
        return _arranged(cell, inputs, weights, found)

    return attach(output, [*operands, *weights], Rule(rule))


def _arranged(cell: Any, inputs: Any, weights: Sequence[Any], found: Any) -> list[Tensor | None]:
    """Return one gradient, or None, for each tensor of the arguments and each parameter, from
    `found`, which bprop returned.
    """
    name = f"{type(cell).__name__}.bprop"
    grads = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    by_weight: Any = {}
    if len(grads) == 2 and isinstance(grads[1], dict) and isinstance(grads[0], tuple):
        grads, by_weight = grads
    if len(grads) < len(inputs):
        raise GradientError(
            f"{name} returned {len(grads)} gradients for {len(inputs)} inputs; give one, or None, for each"
        )
    result: list[Tensor | None] = []
    for i, ((leaves, _), grad) in enumerate(zip(inputs, grads)):
        parts = [None] * len(leaves) if grad is None else flatten(grad)[0]
        if len(parts) != len(leaves):
            raise GradientError(
                f"{name} returned {len(parts)} gradients for input {i}, which holds {len(leaves)} values"
            )
        for leaf, part in zip(leaves, parts):
            if _smooth(leaf):
                result.append(None if part is None else gradient_like(f"{name}, for input {i},", part, leaf))
    for w in weights:
        part = by_weight.get(w)
        result.append(None if part is None else gradient_like(f"{name}, for parameter {w.name},", part, w))
    return result
