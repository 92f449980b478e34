"""Functions that are found by their exact names: MindSpore's cache of operations, and what
others call inside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mycel import mint, ops
from mycel._src.foundation.bounded_caches import SOME, Remembered
from mycel._src.tensors.cells.cell import Cell
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.tensor import Tensor

__all__ = ["PRIVATE"]

_cached = Remembered[Any, Any]("operations by their parameters", SOME)


def _frozen(value: Any) -> Any:
    """Return a hashable value that differs where another parameter differs."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, tuple(map(_frozen, value))
    return type(value), value


def _get_cache_prim(cls: Any) -> Callable[..., Any]:
    """Return a function that makes an operation of this class, the same one for the same
    parameters.
    """

    def operation(*args: Any, **named: Any) -> Any:
        key = (cls, _frozen(args), tuple((k, _frozen(v)) for k, v in sorted(named.items())))
        try:
            hash(key)
        except TypeError:
            return cls(*args, **named)
        return _cached.recall(key, lambda: cls(*args, **named))

    return operation


def _innner_log_softmax(inputs: Any, axis: Any) -> Tensor:
    """Return the logarithm of the softmax along `axis`."""
    return ops.log_softmax(inputs, axis)


def _only(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of one input."""

    def call(input: Any) -> Any:
        return function(input)

    return call


def _called(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Call a function of the user's; a function that is being staged interprets it."""
    context = eager.current_context()
    return function(*args) if context is None else context.invoke(function, args, {})


class CustomVjp(Cell):
    """A function as a Cell, whose derivative is what `defbwd` was given."""

    def __init__(self, fwd: Callable[..., Any]) -> None:
        super().__init__()
        self.fwd, self.bwd = fwd, fwd
        self.has_backward = False

    def defbwd(self, bwd: Callable[..., Any]) -> None:
        """Take the derivative: a function of the arguments, the result and its cotangent."""
        self.bwd, self.has_backward = bwd, True

    def construct(self, *args: Any) -> Any:
        """Call the function."""
        return _called(self.fwd, args)

    def bprop(self, *args: Any) -> Any:
        """Return the cotangents of the arguments."""
        if not self.has_backward:
            raise RuntimeError("custom_vjp: the function has no derivative; give it one by its method defbwd")
        return _called(self.bwd, args)


def custom_vjp(fn: Any = None) -> Any:
    """Return a function as a `CustomVjp`, or without one the decorator that does so."""
    return CustomVjp if fn is None else CustomVjp(fn)


PRIVATE: dict[str, Callable[..., Any]] = {
    "_get_cache_prim": _get_cache_prim,
    "custom_vjp": custom_vjp,
    "_innner_log_softmax": _innner_log_softmax,
    "max_": _only(mint.max),
    "min_": _only(mint.min),
}
