"""Mixed precision of a Cell, in force while its `construct` runs.

A Cell with a `Precision` converts its floating inputs to `dtype`, its parameters to `dtype` where
they enter an operation (the parameters themselves do not change, so that gradients have their
type), and its floating outputs to `output`. The listed `operations` are computed in `narrow`: their
floating inputs are rounded to it, and their results are converted back to the type that they would
have had, so that nothing around them sees another type.

A precision holds for the operations of one `construct`, but not for the Cells that it calls, which
have their own. Nor does it hold in a function that is compiled on its own and called in between, so
that the compiled function serves every caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mycel._src.foundation import dtype as D
from mycel._src.foundation.dtype import DType
from mycel._src.foundation.pytree import map_leaves
from mycel._src.foundation.system import locks
from mycel._src.tensors.core import eager
from mycel._src.tensors.core.execution_context import Context
from mycel._src.tensors.core.parameter import Parameter
from mycel._src.tensors.core.tensor import Tensor, cast

__all__ = ["Precision", "converted", "in_force", "met", "narrowed"]


@dataclass(frozen=True)
class Precision:
    """The types in which a Cell computes; None and the empty set leave everything as it is."""

    dtype: DType | None = None
    output: DType | None = None
    operations: frozenset[str] = frozenset()
    narrow: DType | None = None


class _Local(threading.local):
    precision: Precision | None = None
    context: Context | None = None


_local = _Local()
active = 0
_lock = locks.lock()


@contextmanager
def in_force(precision: Precision | None) -> Iterator[None]:
    """Return a context manager that puts a precision, or none, in force in this thread."""
    global active
    before = _local.precision, _local.context
    with _lock:
        active += 1
    _local.precision, _local.context = precision, eager.local.context
    try:
        # Operators look here only where `eager.active` says that an application may mean more than
        # running a kernel.
        with eager.use_context(eager.local.context):
            yield
    finally:
        _local.precision, _local.context = before
        with _lock:
            active -= 1


def _here() -> Precision | None:
    """Return the precision in force; None in a function that is being compiled on its own."""
    context = eager.local.context
    if context is not None and context.is_staging and context is not _local.context:
        return None
    return _local.precision


def met(x: Any) -> Any:
    """Return an operand, which the precision in force converts if it is a floating parameter."""
    precision = _here()
    if precision is None or precision.dtype is None or not isinstance(x, Parameter) or not x.dtype.is_floating:
        return x
    return cast(x, precision.dtype)


def narrowed(names: tuple[str, ...], function: Callable[..., Any], *inputs: Any) -> Any:
    """Return ``function(*inputs)``, computed in the narrow type if the precision in force lists one
    of the operation's `names`.
    """
    precision = _here()
    if precision is None or precision.narrow is None or precision.operations.isdisjoint(names):
        return function(*inputs)
    floats = [v.dtype for v in inputs if _is_floating(v)]
    if not floats:
        return function(*inputs)
    wide = floats[0]
    for other in floats[1:]:
        wide = D.promote(wide, other)
    return converted(function(*[converted(v, precision.narrow) for v in inputs]), wide)


def converted(value: Any, dtype: DType) -> Any:
    """Return `value`, a tensor or a structure of them, with floating tensors in another type."""
    if _is_floating(value):
        return cast(value, dtype)
    return map_leaves(lambda v: cast(v, dtype) if _is_floating(v) else v, value)


def _is_floating(value: Any) -> bool:
    return isinstance(value, Tensor) and value.dtype.is_floating
