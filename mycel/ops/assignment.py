"""Writes to parameters and tensors, as functions that return the new values."""

from __future__ import annotations

from typing import Any

from mycel._src.compiler.prims import elementwise as E
from mycel._src.foundation import arguments
from mycel._src.foundation.errors import ShapeError, operation_called
from mycel._src.tensors.core.tensor import Tensor
from mycel._src.tensors.core.views import whole
from mycel.ops._operands import broadcast, run, term

__all__ = ["assign", "assign_add", "assign_sub", "depend"]


def fitted(name: str, variable: Tensor, value: Any) -> Tensor:
    """Convert `value` to the type and shape of `variable`; only a scalar is broadcast.

    Raises ValueError where shapes differ.
    """
    arguments.instance(name, "the variable", variable, Tensor, "a parameter or a tensor")
    new = term(name, value, variable.dtype)
    if new.ndim == 0 and variable.ndim:
        return broadcast(new, variable.shape)
    if new.shape != variable.shape:
        raise ShapeError(f"{name}: a value of shape {new.shape} does not fit a variable of shape {variable.shape}")
    return new


def updated(variable: Tensor, new: Tensor) -> Tensor:
    """Give a parameter or tensor the values of `new`, and return a tensor that shares them."""
    if not isinstance(variable, Tensor):
        raise arguments.wrong_type(operation_called(), "the variable", "a parameter or a tensor", variable)
    return whole(variable._replace(new))


def assign(variable: Tensor, value: Any) -> Tensor:
    """Give a parameter the values of a tensor or number in place, and return a tensor that shares
    them.

    Raises ValueError where shapes differ.

    >>> import mycel as ms
    >>> w = ms.Parameter(ms.Tensor([1.0, 2.0]))
    >>> ms.ops.assign(w, ms.Tensor([3.0, 4.0])).tolist()
    [3.0, 4.0]
    """
    new = fitted("assign", variable, value)
    return updated(variable, run(E.identity, new) if new is value else new)


def assign_add(variable: Tensor, value: Any) -> Tensor:
    """Add `value` to a parameter in place, and return a tensor that shares the parameter's values.

    Raises ValueError where shapes differ.

    >>> import mycel as ms
    >>> ms.ops.assign_add(ms.Parameter(ms.Tensor([1.0, 2.0])), ms.Tensor([1.0, 1.0])).tolist()
    [2.0, 3.0]
    """
    return updated(variable, run(E.add, variable, fitted("assign_add", variable, value)))


def assign_sub(variable: Tensor, value: Any) -> Tensor:
    """Subtract `value` from a parameter in place, and return a tensor that shares the parameter's
    values.

    Raises ValueError where shapes differ.

    >>> import mycel as ms
    >>> ms.ops.assign_sub(ms.Parameter(ms.Tensor([1.0, 2.0])), ms.Tensor([1.0, 1.0])).tolist()
    [0.0, 1.0]
    """
    return updated(variable, run(E.sub, variable, fitted("assign_sub", variable, value)))


def depend(value: Any, expr: Any) -> Any:
    """Return `value`. Operations run in program order, so `expr` has already run.

    >>> import mycel as ms
    >>> ms.ops.depend(ms.Tensor(2.0), None).item()
    2.0
    """
    return value
